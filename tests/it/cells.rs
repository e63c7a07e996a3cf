//! Cells of CSV, which spreadsheets take for formulas.

use std::path::Path;

use uniqcrawl::crawl::{self, Context};
use uniqcrawl::localweb::Site;
use uniqcrawl::store::Store;

use crate::support::{Web, config, crawl as run, page, prose};

const TITLES: [&str; 8] = [
    "=HYPERLINK(\"http://evil.example/\",\"Click\")",
    "+1 and more",
    "-2+3 is one",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "＝1+1 in wide letters",
    "＠name in wide letters",
    "A plain = title",
    "'quoted already",
];

/// The titles of an export, in order, and all its cells.
fn exported(store: &Path, format: &str, settings: &str) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("settings.toml"), settings).unwrap();
    let store = store.to_str().unwrap();
    let arguments =
        ["export", "--store", store, "--format", format, "--out", "o", "--config", "settings.toml"];
    let told = run(&arguments, folder.path());
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let file = folder.path().join("o").join(format!("documents.{format}"));
    let (mut titles, mut cells) = (Vec::new(), Vec::new());
    if format == "jsonl" {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            titles.push(row["title"].as_str().unwrap().to_owned());
        }
    } else {
        for row in csv::Reader::from_path(file).unwrap().records() {
            let row = row.unwrap();
            titles.push(row[2].to_owned());
            cells.extend(row.iter().map(str::to_owned));
        }
    }
    titles.sort();
    (titles, cells)
}

#[test]
fn cells_that_begin_like_a_formula_are_neutralised_unless_a_setting_says_otherwise() {
    let links: Vec<String> = (0..TITLES.len()).map(|n| format!("/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let mut site = Site::new().html("/", page("Front", &prose(1, 60), &links));
    for ((link, title), n) in links.iter().zip(TITLES).zip(2..) {
        let escaped = title.replace('"', "&quot;");
        site = site.html(link, page(&escaped, &format!("=1+1 {}", prose(n, 60)), &[]));
    }
    let web = Web::one(site);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let opened = Store::open_or_create(&store, 16 << 20).unwrap();
    let settings = config().settings();
    let report = crawl::run(&opened, &settings, &web.seeds(), &Context::default()).unwrap();
    assert_eq!(report.documents, 9);
    drop(opened);
    let mut plain: Vec<String> = TITLES.into_iter().chain(["Front"]).map(str::to_owned).collect();
    plain.sort();

    let (titles, cells) = exported(&store, "csv", "");
    let risky = |cell: &&String| cell.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＠']);
    let bad: Vec<&String> = cells.iter().filter(risky).collect();
    assert!(bad.is_empty(), "{} of {} cells: {bad:?}", bad.len(), cells.len());
    let bare = titles.iter().map(|title| match title.strip_prefix('\'') {
        Some(rest) if rest != "quoted already" => rest.to_owned(),
        _ => title.clone(),
    });
    let mut bare: Vec<String> = bare.collect();
    bare.sort();
    assert_eq!(bare, plain, "nothing but the apostrophe is new");

    let (as_is, _) = exported(&store, "csv", "[export]\ncsv_formulas = true\n");
    assert_eq!(as_is, plain);
    assert_eq!(exported(&store, "jsonl", "").0, plain);
}
