//! The first minutes with the crawler: addresses as people type them, and what is said of those
//! that lead nowhere.

use std::fs;
use std::path::Path;
use std::process::Output;

use uniqcrawl::localweb::Site;

use crate::support::{Web, crawl, page, prose};

fn said(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Two pages, each of which is linked to by nobody.
fn site() -> Site {
    let one = |title: &str, seed: u64| page(title, &prose(seed, 80), &[]);
    Site::new().html("/", one("Front", 1)).html("/a", one("A", 2)).html("/b", one("B", 3))
}

/// What a crawl in a folder says, and how it ends.
fn run(folder: &Path, arguments: &[&str]) -> (String, i32) {
    let usual = ["--delay", "0", "--contact", "me@example.org"];
    let output = crawl(&[arguments, &usual].concat(), folder);
    (said(&output), output.status.code().unwrap())
}

#[test]
fn addresses_of_the_command_line_are_crawled_beside_those_of_files() {
    let web = Web::one(site());
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (web.url(0, "/a").to_string(), web.url(0, "/b").to_string());
    let (text, code) = run(folder.path(), &[&a, "--allow-private"]);
    assert_eq!((code, web.asked("/a"), web.asked("/b")), (0, 1, 0), "{text}");
    assert!(text.contains("1 pages in") && !text.contains("note:"), "{text}");
    fs::write(folder.path().join("s.txt"), web.web.url(0)).unwrap();
    let (text, code) =
        run(folder.path(), &["--seeds", "s.txt", &a, &b, "--allow-private", "--store", "all"]);
    assert_eq!((code, web.asked("/"), web.asked("/b")), (0, 1, 1), "{text}");
    assert!(text.contains("3 pages in"), "{text}");
    let (text, code) = run(folder.path(), &[]);
    assert!(code == 2 && text.contains("nothing to crawl") && text.contains("--seeds"), "{text}");
}

#[test]
fn an_address_without_a_scheme_gets_one_with_a_note() {
    let web = Web::one(site());
    let folder = tempfile::tempdir().unwrap();
    let bare = |path: &str| web.url(0, path).as_str().trim_start_matches("http://").to_owned();
    let (text, code) = run(folder.path(), &[&bare("/a"), "--allow-private"]);
    assert_eq!((code, web.asked("/a")), (0, 1), "{text}");
    let note = format!("note: `{0}` is taken as http://{0}\n", bare("/a"));
    assert!(text.contains(&note), "{text}");
    let (text, _) = run(folder.path(), &[&bare("/a"), "--allow-private", "--quiet"]);
    assert!(!text.contains("note:"), "{text}");
    // One note for a file, however many lines it has.
    let seeds = format!("# seeds\n{}  # one\n{}\n{}\n", bare("/"), bare("/a"), bare("/b"));
    fs::write(folder.path().join("s.txt"), seeds).unwrap();
    let (text, code) = run(folder.path(), &["--seeds", "s.txt", "--allow-private"]);
    assert_eq!((code, web.asked("/"), web.asked("/b")), (0, 1, 1), "{text}");
    let note = format!("note: s.txt:2 is taken as {}, and 2 more", web.web.url(0));
    assert_eq!(text.matches("note:").count(), 1, "{text}");
    assert!(text.contains(&note), "{text}");
    // The same words find it again.
    let text = said(&crawl(&["explain", &bare("/a")], folder.path()));
    assert!(text.contains("stored: it is the canonical copy"), "{text}");
    let text = said(&crawl(&["inspect", &bare("/a")], folder.path()));
    assert!(text.contains("canonical   http://"), "{text}");
}

#[test]
fn a_misspelt_command_is_no_address() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], says: &[&str]| {
        let output = crawl(arguments, folder.path());
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        for words in says {
            assert!(text.contains(words), "{arguments:?} does not say `{words}`: {text}");
        }
        assert!(!folder.path().join("store").exists());
    };
    let exprt = "`exprt` is neither a command nor an address: did you mean `crawl export`?";
    refused(&["exprt"], &[exprt]);
    // Also with arguments that only the command has.
    refused(&["exprt", "--out", "corpus"], &[exprt]);
    refused(&["https://example.invalid/", "chekc"], &["did you mean `crawl check`?"]);
    refused(&["zzzz"], &["`zzzz` is neither a command nor an address\n", "example.org"]);
    // A command with a wrong argument is told about that.
    refused(&["export", "--out"], &["--out <DIR>"]);
    refused(&["mailto:me@example.org"], &["neither http nor https"]);
    fs::write(folder.path().join("seeds.txt"), "http://127.0.0.1:9/\n").unwrap();
    refused(&["seeds.txt"], &["seeds.txt is a file", "--seeds seeds.txt"]);
}
