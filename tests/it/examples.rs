//! The programs in `examples/`, run as they are: `cargo test` builds them beside the command.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use uniqcrawl::localweb::Site;
use uniqcrawl::{Crawler, LibraryError, StoreReader};

use crate::support::{Web, page, prose};

fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_crawl")).parent().unwrap().join("examples");
    let path = folder.join(name);
    assert!(path.exists(), "{} is missing: `cargo build --examples` makes it", path.display());
    path
}

#[track_caller]
fn run(name: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(example(name)).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn web() -> Web {
    let site = Site::new()
        .html("/", page("Front", &prose(1, 80), &["/story", "/copy"]))
        .html("/story", page("Story", &prose(2, 90), &[]))
        .html("/copy", page("Story", &prose(2, 90), &[]));
    Web::one(site)
}

#[test]
fn a_crawl_tells_its_documents_and_a_reader_finds_them_with_their_copies() {
    let web = web();
    let folder = tempfile::tempdir().unwrap();
    let told = run("crawl", &[&web.web.url(0), "store"], folder.path());
    for (path, title) in [("/", "Front"), ("/story", "Story")] {
        assert!(told.contains(&format!("{path} {title}\n")), "{told}");
    }
    assert!(told.contains("2 documents, 3 copies\n"), "{told}");
    let read = run("read_store", &["store"], folder.path());
    assert_eq!(read.lines().count(), 5, "two documents and three URLs: {read}");
    assert!(read.contains("/story\n") && read.contains("/copy\n"), "{read}");
}

#[test]
fn a_file_of_texts_a_page_and_a_robots_txt_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let texts = [prose(1, 60), prose(2, 60), format!("{} And more.", prose(1, 60))];
    fs::write(path.join("texts"), texts.join("\n")).unwrap();
    let told = run("dedup", &["texts"], path);
    assert!(told.starts_with("0 new\n1 new\n2 copy of 0 by "), "{told}");
    fs::write(path.join("page.html"), page("Tides", &prose(3, 60), &[])).unwrap();
    let told = run("extract", &["page.html"], path);
    assert!(told.starts_with("Tides\n\n") && told.len() > 200, "{told}");
    fs::write(path.join("robots.txt"), "User-agent: *\nDisallow: /private\n").unwrap();
    let told = run("robots", &["robots.txt", "mybot", "/private/x"], path);
    assert_eq!(told, "disallowed (Disallow: /private)\n");
    assert_eq!(run("robots", &["robots.txt", "mybot", "/"], path), "allowed (no rule)\n");
}

#[test]
fn the_service_answers_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(example("serve"));
    command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").expect(&line).to_owned();
    let answer = std::net::TcpStream::connect(address).and_then(|mut stream| {
        std::io::Write::write_all(&mut stream, b"GET /healthz HTTP/1.0\r\n\r\n")?;
        std::io::read_to_string(stream)
    });
    assert!(answer.unwrap().starts_with("HTTP/1.0 200"));
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_program_is_told_what_is_wrong_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let crawl = || Crawler::builder().store(&store);
    assert!(matches!(crawl().build().unwrap_err(), LibraryError::NoSeed));
    let bad = crawl().seed("nonsense").build().unwrap_err();
    assert!(
        matches!(bad, LibraryError::Seed(_)) && bad.to_string().contains("`nonsense`"),
        "{bad}"
    );
    let unknown = crawl().seed("a.test").settings("frontier.dealy = '1s'").build().unwrap_err();
    assert!(unknown.to_string().contains("`frontier.dealy`"), "{unknown}");
    assert!(unknown.to_string().contains("`frontier.delay`"), "{unknown}");
    let wrong = crawl().seed("a.test").settings("dedup.k = 99").build().unwrap_err();
    assert!(matches!(wrong, LibraryError::Settings(_)), "{wrong}");
    assert!(!store.exists(), "nothing was made");
    assert!(matches!(StoreReader::open(&store).unwrap_err(), LibraryError::Store(_)));
}

#[test]
fn a_crawl_that_is_stopped_goes_on_with_the_next_run() {
    let web = web();
    let folder = tempfile::tempdir().unwrap();
    let url = web.web.url(0);
    let crawl = || {
        let crawl = Crawler::builder().seed(&url).store(folder.path()).allow_private(true);
        crawl.settings("frontier.delay = '50ms'")
    };
    let (tell, told) = std::sync::mpsc::channel();
    let mut stopped =
        crawl().on_document(move |document| tell.send(document).unwrap()).build().unwrap();
    let stop = stopped.stop_handle();
    let first = std::thread::spawn(move || {
        let document = told.recv().unwrap();
        stop.stop();
        document
    });
    let summary = stopped.run().unwrap();
    drop(stopped);
    let document = first.join().unwrap();
    assert_eq!((document.title.as_str(), document.copies), ("Front", 1));
    assert!(!document.text.is_empty() && summary.documents >= 1);
    let summary = crawl().build().unwrap().run().unwrap();
    assert_eq!((summary.documents, summary.copies, summary.queued), (2, 3, 0));
}
