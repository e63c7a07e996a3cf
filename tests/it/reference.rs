//! What the documents say of routes, formats and keys is made from their descriptions. `UPDATE_DOCS=1 cargo test
//! --test it reference::` writes it anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use uniqcrawl::corpus::documents::{
    Arrivals, CanonicalChange, Content, Copy, Document, EndedDocument, Facts, KeptHeaders,
    KeptImage, KeptLink, KeptPage, PageDetails, Sent, StoredBody,
};
use uniqcrawl::corpus::export::{FIELDS, FORMATS};
use uniqcrawl::corpus::files::{StoredCandidate, StoredCandidates, StoredLine};
use uniqcrawl::corpus::index::{
    StoredMerge, StoredPaused, StoredPosting, StoredSegment, StoredTable,
};
use uniqcrawl::corpus::shared::{ShortDocument, StoredPlaceOfText};
use uniqcrawl::crawl::jobs::{JobProgress, Run, RunCounts};
use uniqcrawl::frontier::duplicate_feed::{Feed, FeedHost};
use uniqcrawl::frontier::rules::UrlRule;
use uniqcrawl::frontier::{
    Address, Host, List, QueuePlace, Revisit, RobotsCopy, SentLink, UrlPattern, Validators,
};
use uniqcrawl::neardup::Key;
use uniqcrawl::service::{openapi, routes};
use uniqcrawl::store::{Format, Part as _, Shape};
use uniqcrawl::warc::StoredPayload;

fn table() -> String {
    let description: Value = serde_json::from_str(openapi()).unwrap();
    let mut page =
        "# HTTP API\n\nMade from `/openapi.json` of the service, which has the shapes of all \
        bodies. Errors are `application/problem+json` with a stable `code`.\n"
            .to_owned();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, of) in methods.as_object().unwrap() {
            if of["operationId"].is_null() {
                continue;
            }
            let summary = of["summary"].as_str().unwrap();
            write!(page, "\n## `{} {path}`\n\n{summary}.\n", method.to_uppercase()).unwrap();
            let parameters = of["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<&Value> =
                parameters.filter(|one| one["name"].is_string()).collect();
            if !parameters.is_empty() {
                page += "\n| parameter | in | what |\n|---|---|---|\n";
            }
            for one in parameters {
                let [name, place] = ["name", "in"].map(|key| one[key].as_str().unwrap());
                let what = one["description"].as_str().unwrap_or_default().replace('|', "\\|");
                let needed = if one["required"] == true { " (required)" } else { "" };
                writeln!(page, "| `{name}`{needed} | {place} | {what} |").unwrap();
            }
            let answers = of["responses"].as_object().unwrap();
            let answers: Vec<&str> = answers.keys().map(String::as_str).collect();
            writeln!(page, "\nAnswers: {}.", answers.join(", ")).unwrap();
        }
    }
    page
}

fn file(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The list of all routes, in their order.
fn list() -> String {
    let mut list = "| | |\n|---|---|\n".to_owned();
    for route in routes() {
        for (method, operation) in route.methods {
            let operation: Value = serde_json::from_str(operation).unwrap();
            let (method, summary) = (method.to_uppercase(), operation["summary"].as_str().unwrap());
            writeln!(list, "| `{method} {}` | {summary} |", route.path).unwrap();
        }
    }
    list
}

/// Compares a document with what it is to be, or writes it.
fn check(path: &str, whole: impl Fn(&str) -> String) {
    let path = file(path);
    let stored = fs::read_to_string(&path).unwrap();
    let made = whole(&stored);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, made).unwrap();
    } else {
        assert!(stored == made, "{} is old: UPDATE_DOCS=1 writes it anew", path.display());
    }
}

#[test]
fn the_reference_of_the_api_is_made_from_its_description() {
    check("docs/src/reference/api.md", |_| table());
}

/// Compares what stands in a document between the marks of a list.
fn check_list(path: &str, name: &str, list: &str) {
    let marks = [format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n")];
    check(path, |stored| {
        let (before, rest) = stored.split_once(&marks[0]).unwrap();
        let (_, after) = rest.split_once(&marks[1]).unwrap();
        [before, &marks[0], list, &marks[1], after].concat()
    });
}

#[test]
fn the_list_of_routes_in_the_guide_is_made_from_them() {
    check_list("docs/src/guide/service.md", "routes", &list());
}

#[test]
fn the_list_of_keys_is_made_from_their_kinds() {
    let mut list = "| code | in output | what people read | |\n|---|---|---|---|\n".to_owned();
    for (code, key) in Key::ALL.iter().enumerate() {
        let [english, chinese] = key.in_words();
        writeln!(list, "| {code} | `{}` | {english} | {chinese} |", key.as_str()).unwrap();
    }
    check_list("docs/src/reference/store-format.md", "keys", &list);
}

/// A kind of rows: the file that declares it, its name, and what stands in the document.
struct RowKind {
    name: &'static str,
    text: String,
}

fn row_kind<R: Format>() -> RowKind {
    let head = format!("{}, version {}", R::KIND, R::VERSION);
    RowKind { name: R::KIND, text: fields(&head, R::FIELDS) }
}

fn fields(head: &str, fields: &[Shape]) -> String {
    let mut text = format!("\n### {head}\n\n");
    text += "| field | how it is stored | since version |\n|---|---|---|\n";
    for Shape { name, stored, since } in fields {
        let since = if *since == 0 { String::new() } else { since.to_string() };
        writeln!(text, "| `{name}` | {stored} | {since} |").unwrap();
    }
    text
}

#[test]
fn the_rows_of_the_store_are_described_by_their_declarations() {
    let kinds = [
        row_kind::<Address>(),
        row_kind::<Host>(),
        row_kind::<RobotsCopy>(),
        row_kind::<List>(),
        row_kind::<SentLink>(),
        row_kind::<UrlPattern>(),
        row_kind::<UrlRule>(),
        row_kind::<Feed>(),
        row_kind::<FeedHost>(),
        row_kind::<Document>(),
        row_kind::<Copy>(),
        row_kind::<Content>(),
        row_kind::<StoredBody>(),
        row_kind::<KeptPage>(),
        row_kind::<PageDetails>(),
        row_kind::<Sent>(),
        row_kind::<CanonicalChange>(),
        row_kind::<EndedDocument>(),
        row_kind::<Arrivals>(),
        row_kind::<StoredSegment>(),
        row_kind::<StoredMerge>(),
        row_kind::<StoredPayload>(),
        row_kind::<StoredLine>(),
        row_kind::<StoredCandidates>(),
        row_kind::<JobProgress>(),
        row_kind::<Run>(),
        row_kind::<ShortDocument>(),
        row_kind::<StoredPlaceOfText>(),
    ];
    let listed: BTreeSet<&str> = kinds.iter().map(|kind| kind.name).collect();
    assert_eq!(listed, declared_rows(&file("src")).iter().map(String::as_str).collect());
    let parts = [
        fields("facts, in a copy", Facts::FIELDS),
        fields("headers, in a page", KeptHeaders::FIELDS),
        fields("link, in details of a page", KeptLink::FIELDS),
        fields("image, in details of a page", KeptImage::FIELDS),
        fields("place, in a URL", QueuePlace::FIELDS),
        fields("validators, in a URL", Validators::FIELDS),
        fields("revisit, in a URL", Revisit::FIELDS),
        fields("counts, in a run", RunCounts::FIELDS),
        fields("table, in a segment", StoredTable::FIELDS),
        fields("paused, in a merge", StoredPaused::FIELDS),
        fields("posting, in a merge", StoredPosting::FIELDS),
        fields("candidate, in candidates", StoredCandidate::FIELDS),
    ];
    let rows = kinds.iter().map(|kind| kind.text.as_str());
    let all: String = rows.chain(parts.iter().map(String::as_str)).collect();
    check_list("docs/src/reference/store-format.md", "rows", &all);
}

/// The names of all rows that the code declares.
fn declared_rows(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(declared_rows(&path));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let (text, _) = text.split_once("#[cfg(test)]\nmod tests").unwrap_or((&text, ""));
        let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        // `pub struct Address: "address", 1 to 1 {`
        let heads = code.filter(|line| line.contains("struct ") && line.contains(": \""));
        found.extend(heads.filter_map(|line| Some(line.split('"').nth(1)?.to_owned())));
    }
    found
}

#[test]
fn the_lists_of_formats_and_fields_in_the_guide_are_made_from_them() {
    let mut list = "| `--format` | file | |\n|---|---|---|\n".to_owned();
    for format in FORMATS {
        let file = format!("documents.{}", format.file_ending(format.compression(None)));
        writeln!(list, "| `{}` | `{file}` | {} |", format.name, format.about).unwrap();
    }
    check_list("docs/src/guide/export.md", "formats", &list);
    let mut list = "| field | usual | | |\n|---|---|---|---|\n".to_owned();
    for field in FIELDS {
        let kept = field.kept_as();
        let kept = kept.map_or(String::new(), |keep| format!(" (`--keep {}`)", keep.as_str()));
        let usual = if field.is_usual { "yes" } else { "" };
        let (name, kind) = (field.column.name, field.column.kind.as_str());
        writeln!(list, "| `{name}` | {usual} | {kind} | {}{kept} |", field.about).unwrap();
    }
    check_list("docs/src/guide/export.md", "fields", &list);
}

/// A description that no route names is one that nobody reads.
#[test]
fn every_description_is_of_a_route_and_named_by_its_operation() {
    let described = routes().flat_map(|route| route.methods).map(|(_, operation)| {
        let operation: Value = serde_json::from_str(operation).unwrap();
        format!("{}.json", operation["operationId"].as_str().unwrap())
    });
    let described: BTreeSet<String> = described.collect();
    let folder = fs::read_dir(file("src/service/openapi")).unwrap();
    let files = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(described, files.collect());
}
