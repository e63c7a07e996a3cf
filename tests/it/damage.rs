//! Damaged stores: every command ends with an error that names a table, and reading changes
//! nothing.

use std::fs;
use std::ops::Bound::Unbounded;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use uniqcrawl::localweb::Site;
use uniqcrawl::store::{Name, Reading as _, Store, Writing as _};

use crate::support::{Web, crawl, page, prose};

/// A store of some pages and copies, with one of their addresses.
fn made(folder: &Path) -> (Vec<u8>, String) {
    let stories: Vec<String> = (0..30).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = stories.iter().map(String::as_str).collect();
    let site = Site::new().html("/", page("Front", &prose(1, 80), &links));
    let web = Web::one((0..30u64).fold(site, |site, number| {
        let text = prose(10 + number % 20, 300);
        site.html(&format!("/{number}"), page(&format!("Story {}", number % 20), &text, &[]))
    }));
    fs::write(folder.join("s.txt"), web.web.url(0)).unwrap();
    let done = crawl(&["--seeds", "s.txt", "--allow-private", "--delay", "0", "--quiet"], folder);
    assert!(done.status.success(), "{done:?}");
    (fs::read(folder.join("store/store.redb")).unwrap(), web.url(0, "/3").to_string())
}

/// Runs the binary; it has to end in time.
fn run(arguments: &[&str], folder: &Path) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("errors")).unwrap())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_mins(2);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Output { status, stdout: Vec::new(), stderr: fs::read(folder.join("errors")).unwrap() }
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % most
    }
}

fn damage(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let pages = bytes.len() / 4096;
    match random.below(5) {
        0 => bytes.truncate(9 + random.below(whole.len())),
        1 => {
            for _ in 0..=random.below(200) {
                let at = 9 + random.below(whole.len() - 9);
                bytes[at] = random.below(256) as u8;
            }
        }
        2 => {
            for _ in 0..=random.below(5) {
                let at = 4096 * (1 + random.below(pages - 1));
                bytes[at..at + 4096].fill_with(|| random.below(256) as u8);
            }
        }
        3 => {
            let (one, other) = (1 + random.below(pages - 1), 1 + random.below(pages - 1));
            bytes.copy_within(one * 4096..(one + 1) * 4096, other * 4096);
        }
        _ => {
            let at = 9 + random.below(4_000);
            bytes[at] ^= 1 << random.below(8);
        }
    }
    bytes
}

#[test]
fn no_command_panics_at_a_damaged_store_and_reading_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (whole, url) = made(path);
    let file = path.join("store/store.redb");
    let reading: [&[&str]; 7] = [
        &["check"],
        &["export", "--out", "out"],
        &["inspect", &url],
        &["explain", &url],
        &["stats"],
        &["duplicate-feed", "export", "feed.jsonl"],
        &["rules", "list"],
    ];
    let writing: [&[&str]; 2] =
        [&["search", "--words", "ba1"], &["expire", "--older-than", "1d", "--yes"]];
    let mut random = Random(11);
    for round in 0..25 {
        let bytes = damage(&whole, &mut random);
        fs::write(&file, &bytes).unwrap();
        for (at, arguments) in reading.into_iter().chain(writing).enumerate() {
            if at >= reading.len() {
                fs::write(&file, &bytes).unwrap();
            }
            let output = run(arguments, path);
            let text = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            assert!(matches!(code, Some(0..=2)), "{round} {arguments:?} {code:?}: {text}");
            assert!(!text.contains("panicked"), "{round} {arguments:?}: {text}");
            let told = arguments[0] == "check" || text.contains("damaged: ");
            assert!(code != Some(1) || told, "{round} {arguments:?}: {text}");
            if at < reading.len() {
                assert!(fs::read(&file).unwrap() == bytes, "{round} {arguments:?} has written");
            }
        }
        let _ = fs::remove_dir_all(path.join("store/search"));
    }
}

#[test]
fn a_store_that_was_left_is_read_by_several_at_once_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (whole, url) = made(path);
    let file = path.join("store/store.redb");
    // As a killed process leaves it: the flag that it has to be repaired is set.
    let mut bytes = whole;
    bytes[9] |= 2;
    fs::write(&file, &bytes).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let done = crawl(&["check"], path);
                assert!(done.status.success(), "{done:?}");
                let done = crawl(&["explain", &url], path);
                assert!(done.status.success(), "{done:?}");
            });
        }
    });
    assert!(fs::read(&file).unwrap() == bytes);
    assert!(crawl(&["export", "--out", "out"], path).status.success());
    assert!(fs::read(&file).unwrap() == bytes);
}

#[test]
fn a_row_that_makes_no_sense_is_told_with_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (_, url) = made(path);
    let store = Store::open(&path.join("store"), 1 << 20).unwrap();
    let mut batch = store.begin().unwrap();
    let rows = batch.raw_range(Name::Documents, Unbounded, Unbounded).unwrap();
    let keys: Vec<Vec<u8>> = rows.map(|row| row.unwrap().0.to_vec()).collect();
    for key in keys {
        batch.raw_put(Name::Documents, &key, &[0xEE; 40]).unwrap();
    }
    batch.commit().unwrap();
    drop(store);
    let commands: [&[&str]; 5] = [
        &["export", "--out", "out"],
        &["duplicate-feed", "export", "feed.jsonl"],
        &["search", "--words", "ba1"],
        &["expire", "--older-than", "1d"],
        &["inspect", &url],
    ];
    for arguments in commands {
        let output = crawl(arguments, path);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(text.contains("damaged: ") && text.contains("documents"), "{arguments:?}: {text}");
        // Before all of it is read, it is told why.
        let told: Vec<&str> = text.lines().take(2).collect();
        let is_told = told[0].contains("a stored document row") && told[1].contains("reading all");
        assert!(is_told, "{arguments:?}: {text}");
    }
}
