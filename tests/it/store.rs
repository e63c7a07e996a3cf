//! Stores that cannot be opened: each a clear error, and nothing overwritten.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use uniqcrawl::localweb::Site;
use uniqcrawl::store::{Error, META, Store, Update as _};

use crate::support::{Web, check_clean, page, prose};

fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open_or_create(folder.path(), 1 << 24).unwrap());
    let path = folder.path().join("store.redb");
    (folder, path)
}

/// Opens a damaged store and asserts that its bytes stay as they are.
#[track_caller]
fn refuses(folder: &Path) -> Error {
    let path = folder.join("store.redb");
    let before = fs::read(&path).unwrap();
    let error = Store::open_or_create(folder, 1 << 24).expect_err("it must not be opened");
    assert!(error.to_string().contains("store.redb"), "{error}");
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
    error
}

#[test]
fn a_missing_store_is_an_error_where_one_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let error = Store::open(folder.path(), 1 << 24).unwrap_err();
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_foreign_or_empty_file_is_left_as_it_is() {
    let (folder, path) = made();
    for bytes in [&b"this is not a database, and it is long enough to be one"[..], b"redb", b""] {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(refuses(folder.path()), Error::Corrupt { .. }));
    }
}

#[test]
fn a_truncated_store_is_left_as_it_is() {
    let (folder, path) = made();
    let whole = fs::read(&path).unwrap();
    for length in [20, 300, 4096, whole.len() / 2, whole.len() - 4096] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = refuses(folder.path());
        assert!(matches!(error, Error::Corrupt { .. }), "{length}: {error}");
    }
}

#[test]
fn a_damaged_header_is_refused() {
    let (folder, path) = made();
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    bytes[64..320].fill(0xAA);
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(refuses(folder.path()), Error::Corrupt { .. }));
}

fn set_format(store: &Store, format: u64) {
    let mut batch = store.begin().unwrap();
    batch.put(META, "format", &format.to_be_bytes().to_vec()).unwrap();
    batch.commit().unwrap();
}

#[test]
fn a_store_of_a_newer_format_is_refused() {
    let (folder, _) = made();
    let store = Store::open(folder.path(), 1 << 24).unwrap();
    set_format(&store, 999);
    drop(store);
    let error = Store::open(folder.path(), 1 << 24).unwrap_err();
    assert!(matches!(error, Error::NewerFormat { found: 999, .. }), "{error}");
}

#[test]
fn a_store_that_is_older_than_any_upgrade_is_refused() {
    let (folder, _) = made();
    let store = Store::open(folder.path(), 1 << 24).unwrap();
    set_format(&store, 4);
    drop(store);
    let error = Store::open(folder.path(), 1 << 24).unwrap_err();
    assert!(matches!(error, Error::OlderFormat { found: 4, .. }), "{error}");
}

#[test]
fn a_store_in_use_is_refused() {
    let (folder, _) = made();
    let _held = Store::open(folder.path(), 1 << 24).unwrap();
    let error = Store::open(folder.path(), 1 << 24).unwrap_err();
    assert!(matches!(error, Error::InUse(_)), "{error}");
}

#[test]
fn a_setting_that_is_fixed_cannot_be_changed() {
    let (folder, _) = made();
    let store = Store::open(folder.path(), 1 << 24).unwrap();
    store.fix_setting("features", "one").unwrap();
    store.fix_setting("features", "one").unwrap();
    let error = store.fix_setting("features", "two").unwrap_err().to_string();
    assert!(error.contains("one") && error.contains("two"), "{error}");
}

#[test]
fn numbers_go_on_where_they_stopped_and_a_damaged_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create_as(folder.path(), 1 << 24, 5).unwrap();
    let mut batch = store.begin().unwrap();
    let mut next = || batch.next_unique_number("next_content").unwrap();
    assert_eq!([next(), next(), next()], [1, 2, 3].map(|sequence| 5 << 40 | sequence));
    assert_eq!(
        [1, 2].map(|_| batch.next_number("next_host").unwrap()),
        [1, 2],
        "of this one alone"
    );
    // Those that are left.
    let last = (6u64 << 40) - 3;
    batch.put(META, "next_content", &last.to_be_bytes().to_vec()).unwrap();
    assert_eq!(batch.next_unique_number("next_content").unwrap(), last + 1);
    let error = batch.next_unique_number("next_content").unwrap_err().to_string();
    assert!(error.contains("no numbers left for next_content"), "{error}");
    // From 1 again, the next text would be written over the first.
    batch.put(META, "next_content", &[3].to_vec()).unwrap();
    let error = batch.next_unique_number("next_content").unwrap_err().to_string();
    assert!(error.contains("has not 8 bytes"), "{error}");
}

#[test]
fn of_two_crawls_that_start_at_once_on_a_new_store_one_runs() {
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &[])));
    let mut refused = 0;
    for _ in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.txt"), web.web.url(0)).unwrap();
        let start = || {
            Command::new(env!("CARGO_BIN_EXE_crawl"))
                .args(["--seeds", "s.txt", "--allow-private", "--delay", "0", "--quiet"])
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
        let texts = both.each_ref().map(|one| String::from_utf8_lossy(&one.stderr).into_owned());
        assert!(both.iter().any(|one| one.status.success()), "{texts:?}");
        for (one, text) in both.iter().zip(&texts) {
            if !one.status.success() {
                refused += 1;
                assert!(text.contains("is in use by another process"), "{text}");
            }
        }
        let left = fs::read_dir(folder.path().join("store")).unwrap().map(|entry| entry.unwrap());
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["store.redb"]);
        check_clean(&Store::open(&folder.path().join("store"), 1 << 24).unwrap());
    }
    eprintln!("{refused} of 12 were refused");
}

#[test]
fn of_many_that_make_a_store_at_once_all_find_it_made() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(8);
        let opened = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                match Store::open_or_create(folder.path(), 1 << 20) {
                    Err(error) if !matches!(error, Error::InUse(_)) => Err(error),
                    _ => Ok(()),
                }
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect::<Result<Vec<()>, Error>>()
        });
        opened.unwrap();
        check_clean(&Store::open(folder.path(), 1 << 20).unwrap());
    }
}

#[test]
fn what_a_kill_left_of_a_file_that_was_made_is_no_obstacle() {
    let (_made, whole) = made();
    let whole = fs::read(whole).unwrap();
    for length in [0, 1, 9, 100, 4096, whole.len() / 2, whole.len()] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in ["store.partial", "jobs.partial"] {
            fs::write(path.join(name), &whole[..length]).unwrap();
        }
        for name in ["store.redb.making", "jobs.redb.making"] {
            fs::write(path.join(name), "").unwrap();
        }
        drop(
            Store::open_or_create(path, 1 << 20)
                .unwrap_or_else(|error| panic!("{length}: {error}")),
        );
        let small = uniqcrawl::store::RunFile::open_or_create(&path.join("jobs.redb"), 1 << 20);
        drop(small.unwrap_or_else(|error| panic!("{length}: {error}")));
        let left = fs::read_dir(path).unwrap().count();
        assert_eq!(left, 2, "nothing is left over");
    }
}
