//! The first minutes with the crawler: addresses as people type them, and what is said of those
//! that lead nowhere.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use uniqcrawl::base::units::Time;
use uniqcrawl::localweb::Site;
use uniqcrawl::urls::PageUrl;

use crate::support::{Crawled, Web, config, crawl, page, prose};

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
    let exprt = "`exprt` is neither a command nor a URL: did you mean `crawl export`?";
    refused(&["exprt"], &[exprt]);
    // Also with arguments that only the command has.
    refused(&["exprt", "--out", "corpus"], &[exprt]);
    refused(&["https://example.invalid/", "chekc"], &["did you mean `crawl check`?"]);
    refused(&["zzzz"], &["`zzzz` is neither a command nor a URL\n", "example.org"]);
    // A command with a wrong argument is told about that.
    refused(&["export", "--out"], &["--out <DIR>"]);
    refused(&["mailto:me@example.org"], &["neither http nor https"]);
    fs::write(folder.path().join("seeds.txt"), "http://127.0.0.1:9/\n").unwrap();
    refused(&["seeds.txt"], &["seeds.txt is a file", "--seeds seeds.txt"]);
}

/// A crawl of one host that is nowhere, and of `more`. The resolver of the system is not asked.
fn nowhere(folder: &Path, more: &[&str]) -> (String, i32, Duration) {
    resolves(folder, &["nowhere.invalid="]);
    let begun = Instant::now();
    let seed = ["http://nowhere.invalid/", "--config", "c.toml"];
    let (text, code) = run(folder, &[&seed, more].concat());
    (text, code, begun.elapsed())
}

#[test]
fn a_name_that_cannot_be_resolved_is_told_at_once_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (text, code, took) = nowhere(path, &[]);
    assert_eq!(code, 3, "{text}");
    // It would be asked for again after five minutes.
    assert!(took < Duration::from_mins(2), "{took:?}");
    let warning = text.lines().find(|line| line.contains("WARN")).unwrap_or_default();
    for words in ["the name of a seed's host cannot be resolved", "host=http://nowhere.invalid"] {
        assert!(warning.contains(words), "{text}");
    }
    let table = text.lines().find(|line| line.starts_with("  http://nowhere.invalid "));
    assert!(table.unwrap().ends_with("the host name cannot be resolved"), "{text}");
    let line = "seed not crawled: http://nowhere.invalid/ (dns: the host name cannot be resolved)";
    assert!(text.contains(line), "{text}");
    let told = said(&crawl(&["explain", "http://nowhere.invalid/"], path));
    assert!(
        told.contains("host backing off") && told.contains("name cannot be resolved"),
        "{told}"
    );
    // Whoever asks again gets an answer of today, not of the last run.
    let (text, code, took) = nowhere(path, &[]);
    assert!(text.contains("WARN"), "{text}");
    assert!(code == 3 && took < Duration::from_mins(2), "{took:?}: {text}");
    // A name that was mended is crawled at once.
    let web = Web::one(site());
    let mended = format!("http://mended.invalid:{}/", web.seeds()[0].url().port().unwrap());
    let arguments = [&mended, "--allow-private", "--config", "c.toml"];
    resolves(path, &["mended.invalid="]);
    assert_eq!(run(path, &arguments).1, 3);
    resolves(path, &["nowhere.invalid=", &format!("mended.invalid={}", ip(&web))]);
    let (text, code) = run(path, &arguments);
    assert!(code == 0 && text.contains("1 pages in"), "{text}");
    assert!(!text.contains("WARN") && !text.contains("seed not crawled"), "{text}");
}

/// Writes settings by which names have these addresses.
fn resolves(folder: &Path, names: &[&str]) {
    fs::write(folder.join("c.toml"), format!("[fetch]\nresolve = {names:?}\n")).unwrap();
}

/// The address of the first host.
fn ip(web: &Web) -> String {
    web.seeds()[0].url().host_str().unwrap().to_owned()
}

#[test]
fn a_host_that_answers_is_crawled_beside_one_that_is_nowhere_and_the_run_ends_with_it() {
    let web = Web::one(site());
    let folder = tempfile::tempdir().unwrap();
    let (text, code, took) = nowhere(folder.path(), &[&web.web.url(0), "--allow-private"]);
    assert!(code == 3 && text.contains("1 pages in"), "{text}");
    assert!(took < Duration::from_mins(2), "{took:?}");
    assert_eq!(text.matches("seed not crawled").count(), 1, "{text}");
}

#[test]
fn a_host_that_has_answered_is_waited_for_though_its_name_is_lost() {
    let web = Web::one(site());
    let port = web.seeds()[0].url().port().unwrap();
    let lost = |path: &str| PageUrl::parse(&format!("http://lost.invalid:{port}{path}")).unwrap();
    let mut config = config();
    config.fetch.resolve = vec![format!("lost.invalid={}", ip(&web))];
    let crawled = Crawled::new();
    assert_eq!(crawled.run(&config, &[lost("/")]).pages, 1);
    config.fetch.resolve = vec!["lost.invalid=".to_owned()];
    config.frontier.retries_max = 2;
    let report = crawled.run(&config, &[lost("/"), lost("/a")]);
    assert_eq!((report.failed_seeds.len(), report.queued), (1, 0), "{report:?}");
    assert_eq!(report.retries, 3, "it was tried again in the same run, twice");
    // Of a host that never answered, nothing is waited for before the next run.
    config.frontier.retry_delay = Time::from_secs(60);
    config.frontier.busy_delay = Time::from_secs(60);
    let report = Crawled::new().run(&config, &[lost("/")]);
    assert_eq!((report.hosts[0].failed, report.queued), (1, 1), "{report:?}");
    assert_eq!(report.failed_seeds[0].reason, "dns");
}

#[test]
fn a_private_address_is_refused_with_the_flag_that_allows_it() {
    let web = Web::one(site());
    let folder = tempfile::tempdir().unwrap();
    let seed = web.web.url(0);
    let (text, code) = run(folder.path(), &[&seed]);
    assert_eq!((code, web.web.requests().len()), (3, 0), "{text}");
    let warning = text.lines().find(|line| line.contains("WARN")).unwrap_or_default();
    let address = format!("{} is a loopback address", ip(&web));
    for words in [&address, "use --allow-private if it is yours", seed.trim_end_matches('/')] {
        assert!(warning.contains(words), "no `{words}` in {text}");
    }
    let line = format!("seed not crawled: {seed} (address_refused: ");
    let line = text.lines().find(|one| one.starts_with(&line)).unwrap();
    assert!(line.contains("--allow-private"), "{text}");
    let told = said(&crawl(&["explain", &seed], folder.path()));
    assert!(told.contains("--allow-private"), "{told}");
    // The flag helps on the same store, too, also when another run has had it for another host.
    let other = Web::one(Site::new().html("/", page("Other", &prose(77, 60), &[])));
    assert_eq!(run(folder.path(), &[&other.web.url(0), "--allow-private"]).1, 0);
    let (text, code) = run(folder.path(), &[&seed, "--allow-private"]);
    assert!(code == 0 && text.contains("1 pages in"), "{text}");
    let told = said(&crawl(&["explain", &seed], folder.path()));
    assert!(told.contains("stored: ") && !told.contains("allow-private"), "{told}");
    // What no flag allows names none.
    let (text, code) = run(folder.path(), &["http://169.254.169.254/"]);
    let warning = text.lines().find(|line| line.contains("WARN")).unwrap();
    assert!(code == 3 && warning.contains("cloud metadata"), "{text}");
    assert!(!warning.contains("--allow-private"), "{text}");
}
