//! What pages say of themselves reaches a terminal as text, never as a command.

use std::path::Path;

use uniqcrawl::crawl::{self, Context};
use uniqcrawl::localweb::Site;
use uniqcrawl::store::Store;

use crate::support::{Web, config, crawl as run, prose};

/// Clears the screen, sets the title of the window, begins a sequence in one byte of the second
/// set, deletes, rings, turns the text around in every way there is, ends the line.
const EVIL: &str = "a\u{1b}[2J\u{1b}]0;x\u{7}b\u{9b}31m\u{7f}\u{8}c\u{202e}d\u{2066}e\u{2069}\
    \u{200f}\u{61c}f\u{2028}g";

/// Characters that a terminal may obey.
fn obeyed(text: &str) -> Vec<char> {
    let bidi = |c: char| {
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    text.chars().filter(|c| c.is_control() && *c != '\n' || bidi(*c)).collect()
}

/// Runs a command. Returns what it wrote, and which characters of it a terminal may obey.
fn ran(arguments: &[&str], folder: &Path) -> (String, Vec<char>) {
    let told = run(arguments, folder);
    let whole = [told.stdout, told.stderr].concat();
    let text = String::from_utf8_lossy(&whole).into_owned();
    let found = obeyed(&text);
    (text, found)
}

/// A page with `EVIL` in everything that it says of itself.
fn page(n: u64) -> String {
    let evil: String = EVIL.chars().map(|c| format!("&#{};", u32::from(c))).collect();
    // A reference to a code of the second set means something else: it must stand there itself.
    let evil = evil.replace("&#155;", "\u{9b}");
    format!(
        "<!DOCTYPE html><html><head><title>Title {n} {evil}</title>\
         <meta name=author content=\"Ann {evil} Lee\">\
         <meta property=og:site_name content=\"Site {evil} name\">\
         <meta property=article:published_time content=\"2020-01-01{evil}\">\
         <link rel=canonical href=\"/c?{evil}\"></head>\
         <body><article><h1>Title {n} {evil}</h1><p>{evil} {}</p></article>\
         <a href=\"/{n}?{evil}\">{evil}</a></body></html>",
        prose(n + 1, 80)
    )
}

#[test]
fn nothing_that_a_page_says_is_obeyed_by_a_terminal() {
    let front = crate::support::page("Front", &prose(9, 60), &["/1", "/2", "/3"]);
    let site = Site::new().html("/", front);
    let web = Web::one((1..4).fold(site, |site, n| site.html(&format!("/{n}"), page(n))));
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s");
    let opened = Store::open_or_create(&store, 16 << 20).unwrap();
    let settings = config().settings();
    crawl::run(&opened, &settings, &web.seeds(), &Context::default()).unwrap();
    drop(opened);
    let url = web.url(0, "/1").to_string();
    let other = web.url(0, "/2").to_string();
    let commands: [&[&str]; 11] = [
        &["inspect", "--store", "s", &url],
        &["inspect", "--json", "--store", "s", &url],
        &["explain", "--store", "s", &url],
        &["explain", "--store", "s", EVIL],
        &["explain", "--json", "--store", "s", &url],
        &["compare", "--store", "s", &url, &other],
        &["compare", "--json", "--store", "s", &url, &other],
        &["search", "--store", "s", "--words", "Title"],
        &["search", "--json", "--store", "s", "--words", "Title"],
        &["inspect", "--store", "s", EVIL],
        &["stats", "--store", EVIL],
    ];
    let mut bad = Vec::new();
    for arguments in commands {
        let (text, found) = ran(arguments, folder.path());
        assert!(!text.is_empty(), "{arguments:?}");
        if !found.is_empty() {
            bad.push((arguments, found));
        }
    }
    assert!(bad.is_empty(), "{} of {}: {bad:#?}", bad.len(), commands.len());
    // It is shown, and JSON means what was there.
    let (text, _) = ran(&["inspect", "--store", "s", &url], folder.path());
    assert!(text.contains("\\u{202e}") && text.contains("Ann"), "{text}");
    let (text, _) = ran(&["inspect", "--json", "--store", "s", &url], folder.path());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["document"]["title"].as_str().unwrap().contains('\u{202e}'), "{text}");
}

#[test]
fn identifiers_and_lines_of_files_are_shown_harmlessly_too() {
    let folder = tempfile::tempdir().unwrap();
    let record = |n: u64| {
        serde_json::json!({"id": format!("{n}{EVIL}"), "title": EVIL, "url": EVIL,
            "text": format!("{EVIL} {}", prose(n, 60))})
        .to_string()
    };
    let lines = format!("{}\n{}\n", record(1), record(2));
    std::fs::write(folder.path().join("x.jsonl"), lines).unwrap();
    // Junk, and names that are none: what is wrong with them is told.
    let seeds = format!("http://{EVIL}/\n{EVIL}\nhttp://[{EVIL}]/\n");
    std::fs::write(folder.path().join("seeds.txt"), seeds).unwrap();
    let robots = format!("User-agent: *\nDisallow: /x{}\n", EVIL.replace('\u{2028}', ""));
    std::fs::write(folder.path().join("robots.txt"), robots).unwrap();
    std::fs::write(folder.path().join("bad.toml"), format!("[fetch]\n\"{EVIL}\" = 1\n")).unwrap();
    let words = ["search", "--corpus", "x.jsonl", "--words"];
    let word = prose(1, 1);
    let ids = [format!("1{EVIL}"), format!("2{EVIL}")];
    let commands: [&[&str]; 8] = [
        &[&words[..], &[&word]].concat(),
        &[&words[..], &[&word, "--json"]].concat(),
        &["compare", &ids[0], &ids[1], "--jsonl", "x.jsonl"],
        &["compare", "none", EVIL, "--jsonl", "x.jsonl"],
        &["--seeds", "seeds.txt", "--store", "t", "-v"],
        &["--seeds", "seeds.txt", "--store", "t", "-v", "--log-json"],
        &["robots", "test", "robots.txt", "/xa", EVIL],
        &["config", "--config", "bad.toml"],
    ];
    for arguments in commands {
        let (text, found) = ran(arguments, folder.path());
        assert!(found.is_empty() && !text.is_empty(), "{arguments:?}: {found:?}\n{text:?}");
    }
}

#[test]
fn lines_of_the_log_are_harmless_in_both_forms() {
    let web = Web::one(Site::new().robots("User-agent: *\nCrawl-delay: 0\n").html("/", page(1)));
    let folder = tempfile::tempdir().unwrap();
    let turned: String = EVIL.chars().filter(|c| !c.is_control()).collect();
    let seed = format!("{}?q={}\n", web.web.url(0), turned.replace('\u{2028}', ""));
    std::fs::write(folder.path().join("seeds.txt"), seed).unwrap();
    // A name of a file that a line of the log has as it is.
    let secrets = format!("secrets{}.toml", EVIL.replace('/', ""));
    std::fs::write(folder.path().join(&secrets), "").unwrap();
    let settings = format!("[auth]\nfile = {}\n", toml::Value::from(secrets));
    std::fs::write(folder.path().join("settings.toml"), settings).unwrap();
    let base = ["--config", "settings.toml", "--seeds", "seeds.txt", "--allow-private", "--delay"];
    let base = [&base[..], &["0", "--store"]].concat();
    let mut lines = 0;
    for (store, form) in [("a", "--verbose"), ("b", "--log-json")] {
        let arguments = [&base[..], &[store, form, "-vv"]].concat();
        let (text, found) = ran(&arguments, folder.path());
        assert!(found.is_empty(), "{arguments:?}: {found:?}\n{text:?}");
        assert!(text.contains("others may read this file"), "{text}");
        lines += text.lines().filter(|line| line.contains("visited")).count();
    }
    assert!(lines >= 2, "there is a log");
}
