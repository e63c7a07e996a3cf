//! `crawl migrate`: a store of an older format is written anew, whole or not at all.

use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use uniqcrawl::corpus::documents::{Document, StoredBody};
use uniqcrawl::corpus::index::{self, Index};
use uniqcrawl::corpus::migrate::migrate;
use uniqcrawl::corpus::search::{Config, Search};
use uniqcrawl::corpus::tables::{
    BODIES, BODY_PARTS, CONTENTS, DOCUMENTS, GROWTH, HISTORY, RANKING,
};
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::frontier::{ADDRESSES, URL_PATTERNS};
use uniqcrawl::localweb::Site;
use uniqcrawl::neardup;
use uniqcrawl::store::{
    Batch, FORMAT, META, Name, Reading as _, Row as _, Store, Update as _, View as _, Writing as _,
    sequence_of, unique_number,
};

use crate::check;
use crate::search_index::assert_in_step;
use crate::support::{Clusters, Web, check_clean, clusters, config, crawl as run, page, prose};

/// Makes the index and the small facts of a store what older formats had.
pub(crate) fn age_numbers(batch: &mut Batch, format: u64) {
    for table in [Name::Near, Name::Keys, Name::Segments, Name::Merges, Name::IndexLog] {
        batch.raw_clear(table, Bound::Unbounded, Bound::Unbounded).unwrap();
    }
    // A row of the four tables as they were.
    batch.raw_put(Name::Near, &[0, 0, 7], &[1; 12]).unwrap();
    batch.raw_remove(Name::Meta, b"index").unwrap();
    batch.raw_remove(Name::Meta, b"store_number").unwrap();
    batch.raw_put(Name::Meta, b"format", &format.to_be_bytes()).unwrap();
}

/// Makes a store of small numbers one of format 6.
fn age(store: Store) {
    let mut batch = store.begin().unwrap();
    age_numbers(&mut batch, 6);
    batch.commit().unwrap();
    drop(store);
}

/// Two sites with the same stories, of which some are edited on the second one.
fn web() -> Web {
    let names: Vec<String> = (0..12).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = names.iter().map(String::as_str).collect();
    Web::start(2, |_| {
        let site = |host: u64| {
            let front = page(&format!("Front {host}"), &prose(900 + host, 80), &links);
            (0..12).fold(Site::new().html("/", front), |site, number| {
                let text = prose(number, 120);
                let edited = host == 1 && number % 3 == 0;
                let text = if edited { format!("{text} Printed at nine.") } else { text };
                site.html(&format!("/{number}"), page(&format!("Story {number}"), &text, &[]))
            })
        };
        vec![site(0), site(1)]
    })
}

fn go_on(store: &Store, web: &Web, pages_max: u64) {
    let mut config = config();
    config.crawl.limits.pages_max = pages_max;
    crawl::run(store, &config.settings(), &web.seeds(), &Context::default()).unwrap();
    check_clean(store);
}

fn open(folder: &Path) -> Store {
    Store::open(folder, 16 << 20).unwrap()
}

/// The files of an export, with their names.
fn export(folder: &Path, store: &Path) -> Vec<(String, Vec<u8>)> {
    let out = folder.join("out");
    let names = [store.to_str().unwrap(), out.to_str().unwrap()];
    let done = run(&["export", "--store", names[0], "--out", names[1]], folder);
    assert!(done.status.success(), "{done:?}");
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    // These name the store by its number.
    files.retain(|(name, _)| name != "README.md" && name != "manifest.json");
    files.sort();
    fs::remove_dir_all(out).unwrap();
    files
}

/// A document by its place, and its copies with the places of their contents.
type Shown = (u64, Document, Vec<(String, u64)>);

/// Every document with its identifier, and every copy with its content, by their places.
fn places(store: &Store) -> Vec<Shown> {
    let snapshot = store.snapshot().unwrap();
    let rows = snapshot.rows(DOCUMENTS).unwrap().map(Result::unwrap);
    rows.map(|entry| {
        let (number, mut document) = (entry.key().unwrap(), entry.row().unwrap());
        let copies = uniqcrawl::corpus::documents::copies_of(&snapshot, number).unwrap();
        let copies = copies.into_iter().map(|(url, copy)| (url, sequence_of(copy.content)));
        document.root = sequence_of(document.root);
        document.content = sequence_of(document.content);
        (sequence_of(number), document, copies.collect())
    })
    .collect()
}

/// Names of the files of a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn a_store_of_format_6_has_all_it_had_and_its_crawl_goes_on_as_that_of_a_new_one() {
    let web = web();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let whole: Clusters = {
        let store = Store::open_or_create(&path.join("whole"), 16 << 20).unwrap();
        go_on(&store, &web, 0);
        clusters(&store)
    };
    let old = path.join("old");
    let store = Store::open_or_create_as(&old, 16 << 20, 0).unwrap();
    go_on(&store, &web, 17);
    let search = Search::open(&old, &Config::default()).unwrap();
    search.update(&store).unwrap();
    assert_in_step(&search, &store);
    let before = places(&store);
    assert!(before.iter().any(|(_, document, copies)| {
        copies.len() > 1 && copies.iter().any(|(_, content)| *content != document.root)
    }));
    drop((search, store));
    let exported = export(path, &old);
    age(open(&old));

    let done = run(&["migrate", "--store", "old"], path);
    assert!(done.status.success(), "{}", text(&done));
    assert!(text(&done).contains("store.redb.format-6"), "{}", text(&done));
    assert_eq!(names(&old), ["search", "store.redb", "store.redb.format-6"]);
    assert_eq!(export(path, &old), exported);
    let store = open(&old);
    check_clean(&store);
    assert_eq!(places(&store), before);
    let number = {
        let row = store.snapshot().unwrap().get(META, "store_number").unwrap().unwrap();
        u64::from_be_bytes(row.try_into().unwrap())
    };
    let known = |store: &Store, own: u64| {
        let snapshot = store.snapshot().unwrap();
        let rows = snapshot.rows(CONTENTS).unwrap().map(|entry| entry.unwrap().key().unwrap());
        rows.into_iter().all(|content| unique_number(own, sequence_of(content)) == Some(content))
    };
    assert!(number > 0 && known(&store, number), "{number}");
    go_on(&store, &web, 0);
    assert!(known(&store, number), "new numbers are of the store, too");
    assert_eq!(clusters(&store), whole);
    let search = Search::open(&old, &Config::default()).unwrap();
    assert!(search.update(&store).unwrap().all, "the old index has other numbers");
    assert_in_step(&search, &store);
}

fn patterns_of(store: &Store) -> Vec<(u64, Vec<u8>)> {
    let snapshot = store.snapshot().unwrap();
    let rows = snapshot.rows(URL_PATTERNS).unwrap().map(Result::unwrap);
    rows.map(|row| (row.key().unwrap(), row.bytes().to_vec())).collect()
}

#[test]
fn every_table_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let store = check::made(folder.path());
    let counts = |store: &Store| -> Vec<(&'static str, u64)> {
        let snapshot = store.snapshot().unwrap();
        // The index is made anew.
        let index = [Name::Near, Name::Keys, Name::Segments, Name::Merges, Name::IndexLog];
        let all = Name::ALL.iter().filter(|name| **name != Name::Meta && !index.contains(name));
        all.map(|name| (name.as_str(), snapshot.rows_of(*name).unwrap())).collect()
    };
    let indexed = |store: &Store| -> Vec<(u64, u64)> {
        let all = index::fingerprints(&store.snapshot().unwrap(), ..).unwrap().contents;
        all.into_iter().map(|posting| (posting.key, sequence_of(posting.content))).collect()
    };
    let (before, shown, fingerprints) = (counts(&store), places(&store), indexed(&store));
    assert!(!fingerprints.is_empty());
    let patterns = patterns_of(&store);
    assert!(!patterns.is_empty());
    let rows = before.iter().filter(|(_, rows)| *rows > 0).count();
    assert!(rows > 25, "most tables have rows: {before:?}");
    age(store);
    // The name that a table had first.
    let db = redb::Database::open(folder.path().join("store.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    let table = |name| redb::TableDefinition::<u64, &[u8]>::new(name);
    txn.delete_table(table("url_patterns")).unwrap();
    {
        let mut families = txn.open_table(table("families")).unwrap();
        for (key, row) in &patterns {
            families.insert(key, &row[..]).unwrap();
        }
    }
    txn.commit().unwrap();
    drop(db);
    let done = migrate(folder.path(), 16 << 20, false).unwrap().unwrap();
    assert_eq!((done.kept, done.from_format), (None, 6));
    assert_eq!(names(folder.path()), ["store.redb"]);
    let store = open(folder.path());
    assert_eq!((counts(&store), places(&store)), (before, shown));
    assert_eq!(patterns_of(&store), patterns);
    assert_eq!(indexed(&store), []);
    drop(Index::open(&store, &neardup::Config::default()).unwrap());
    assert_eq!(indexed(&store), fingerprints);
    // What names documents and contents leads to some, which a check has seen, by own numbers.
    let snapshot = store.snapshot().unwrap();
    let own = |number: u64| number >> 40 == done.store_number;
    assert!(snapshot.rows(HISTORY).unwrap().all(|row| own(row.unwrap().key().unwrap().0)));
    assert!(snapshot.rows(RANKING).unwrap().all(|row| own(row.unwrap().key().unwrap().1)));
    assert!(snapshot.rows(GROWTH).unwrap().all(|row| own(row.unwrap().key().unwrap().1)));
    assert!(snapshot.rows(BODIES).unwrap().all(|row| own(row.unwrap().key().unwrap())));
    let stored = snapshot.rows(ADDRESSES).unwrap().map(|row| row.unwrap().row().unwrap());
    assert!(stored.filter_map(|row| row.document()).all(own));
    for name in ["next_document", "next_content", "settled"] {
        let row = snapshot.get(META, name).unwrap().unwrap();
        assert!(own(u64::from_be_bytes(row.try_into().unwrap())), "{name}");
    }
}

/// Has each text in one row, as in format 7.
fn age_texts(store: &Store) {
    let mut batch = store.begin().unwrap();
    let firsts = batch.rows(BODIES).unwrap().map(|row| {
        let row = row.unwrap();
        (row.key().unwrap(), row.bytes().to_vec())
    });
    for (content, first) in firsts.collect::<Vec<_>>() {
        let whole = StoredBody::read(&batch, content, &first).unwrap().encode().into_owned();
        batch.put(BODIES, content, &whole).unwrap();
    }
    batch.clear(BODY_PARTS, ..).unwrap();
    batch.put(META, "format", &7u64.to_be_bytes().to_vec()).unwrap();
    batch.commit().unwrap();
}

#[test]
fn texts_of_format_7_come_to_lie_in_pieces_and_all_numbers_stay() {
    let long = page("Long", &prose(1, 6_000), &[]);
    let web = Web::one(
        Site::new().html("/", page("Front", &prose(2, 80), &["/long"])).html("/long", long),
    );
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    go_on(&store, &web, 0);
    let rows = |store: &Store| {
        let snapshot = store.snapshot().unwrap();
        let raw = |name| snapshot.raw_range(name, Bound::Unbounded, Bound::Unbounded).unwrap();
        let rows = [Name::Documents, Name::Copies, Name::Contents, Name::Bodies, Name::BodyParts];
        let rows = rows.into_iter().flat_map(raw).map(Result::unwrap);
        rows.map(|(key, row)| (key.to_vec(), row.to_vec())).collect::<Vec<_>>()
    };
    let before = rows(&store);
    age_texts(&store);
    drop(store);
    let done = migrate(folder.path(), 16 << 20, false).unwrap().unwrap();
    assert_eq!(done.from_format, 7);
    let store = open(folder.path());
    assert_eq!(rows(&store), before);
    assert!(store.snapshot().unwrap().len(BODY_PARTS).unwrap() > 3);
    assert_eq!(index::fingerprints(&store.snapshot().unwrap(), ..).unwrap().contents, []);
    drop(Index::open(&store, &neardup::Config::default()).unwrap());
    let indexed = index::fingerprints(&store.snapshot().unwrap(), ..).unwrap();
    assert_eq!((indexed.contents.len(), indexed.texts.len()), (2, 2));
    go_on(&store, &web, 0);
}

/// A store of format 6 with some hundred documents, whose migration takes a while.
fn large(folder: &Path) -> Vec<Shown> {
    let names: Vec<String> = (0..150).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = names.iter().map(String::as_str).collect();
    let site = Site::new().html("/", page("Front", &prose(1, 80), &links));
    let web = Web::one((0..150u64).fold(site, |site, number| {
        let text = prose(10 + number % 120, 400);
        site.html(&format!("/{number}"), page(&format!("Story {}", number % 120), &text, &[]))
    }));
    let store = Store::open_or_create_as(folder, 16 << 20, 0).unwrap();
    go_on(&store, &web, 0);
    let shown = places(&store);
    age(store);
    shown
}

fn start(folder: &Path, crash: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["migrate", "--quiet", "--store"])
        .arg(folder)
        .env("UNIQCRAWL_LOG", "uniqcrawl=trace")
        .env("UNIQCRAWL_CRASH", crash)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Tells whether a store that a killed migration has left is the new one. It is whole in any case.
fn is_new(folder: &Path, old: &[u8]) -> bool {
    let path = folder.join("store.redb");
    if fs::read(&path).unwrap() == old {
        return false;
    }
    check_clean(&open(folder));
    let kept = fs::read(folder.join("store.redb.format-6")).unwrap();
    assert!(kept == old, "the old store is kept as it was");
    true
}

#[test]
fn a_migration_that_is_killed_at_any_moment_leaves_one_whole_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shown = large(path);
    let old = fs::read(path.join("store.redb")).unwrap();
    let put_back = || {
        for name in names(path) {
            fs::remove_file(path.join(name)).unwrap();
        }
        fs::write(path.join("store.redb"), &old).unwrap();
    };
    let began = Instant::now();
    assert!(start(path, "").wait().unwrap().success());
    let took = began.elapsed().as_millis() as u64;
    assert!(is_new(path, &old));
    put_back();

    let mut moment = u64::from(std::process::id());
    let mut outcomes = [0, 0];
    for _ in 0..20 {
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(12_345);
        let mut child = start(path, "");
        std::thread::sleep(Duration::from_millis((moment >> 33) % (took + took / 4)));
        child.kill().unwrap();
        child.wait().unwrap();
        let new = is_new(path, &old);
        outcomes[usize::from(new)] += 1;
        if new {
            put_back();
        }
    }
    assert!(outcomes[0] > 0, "none was killed in time");
    for (event, new) in [
        ("moved:1", false),
        ("moved:30", false),
        ("migrating:1", false),
        ("verified:1", false),
        ("kept:1", false),
        ("renamed:1", true),
    ] {
        put_back();
        assert_eq!(start(path, event).wait().unwrap().code(), None, "{event}: it was killed");
        assert_eq!(is_new(path, &old), new, "{event}");
        // The next one goes on, or finds nothing to do, and what was left is gone.
        assert!(start(path, "").wait().unwrap().success());
        assert!(is_new(path, &old));
        assert_eq!(names(path), ["store.redb", "store.redb.format-6"], "{event}");
    }
    assert_eq!(places(&open(path)), shown);
}

#[test]
fn old_stores_are_refused_with_the_way_out_and_present_ones_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    age(check::made(&path.join("s")));
    let old = fs::read(path.join("s/store.redb")).unwrap();
    for arguments in [
        &["stats"][..],
        &["check"],
        &["export", "--out", "out"],
        &["explain", "http://a/"],
        &["inspect", "http://a/"],
        &["--quiet", "http://127.0.0.1:9/", "--allow-private"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["search", "--words", "a"],
        &["expire", "--older-than", "1d"],
    ] {
        let told = run(&[arguments, &["--store", "s"]].concat(), path);
        assert_eq!(told.status.code(), Some(2), "{arguments:?}");
        let way = "has format 6, this version needs format 8: run `crawl migrate --store s`";
        assert!(text(&told).contains(way), "{arguments:?}: {}", text(&told));
        // Who opens a store to write has the database note that, and when it was closed.
        let reads = !matches!(arguments[0], "--quiet" | "serve" | "search" | "expire");
        assert!(!reads || fs::read(path.join("s/store.redb")).unwrap() == old, "{arguments:?}");
    }

    let told = run(&["migrate", "--store", "s", "--json", "--remove-old"], path);
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&told["format"], &told["migrated"]["fromFormat"]), (&FORMAT.into(), &6.into()));
    let again = run(&["migrate", "--store", "s"], path);
    assert!(again.status.success() && text(&again).contains("has format 8: nothing to do"));
    let stats = run(&["stats", "--store", "s", "--json"], path);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(stats["storeNumber"], told["migrated"]["storeNumber"]);
    assert_eq!(names(&path.join("s")), ["store.redb"]);

    let missing = run(&["migrate", "--store", "nowhere"], path);
    assert_eq!(missing.status.code(), Some(2));
    for (format, told) in [(4u64, "only formats from 5 on"), (FORMAT + 1, "a newer one")] {
        let store = open(&path.join("s"));
        let mut batch = store.begin().unwrap();
        batch.put(META, "format", &format.to_be_bytes().to_vec()).unwrap();
        batch.commit().unwrap();
        drop(store);
        let refused = run(&["migrate", "--store", "s"], path);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains(told), "{}", text(&refused));
        fs::remove_dir_all(path.join("s")).unwrap();
        drop(Store::open_or_create(&path.join("s"), 16 << 20).unwrap());
    }
}

#[test]
fn a_store_in_use_or_damaged_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    age(check::made(&path.join("s")));
    let file = path.join("s/store.redb");
    let used = redb::Database::open(&file).unwrap();
    let refused = run(&["migrate", "--store", "s"], path);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("is in use"), "{}", text(&refused));
    drop(used);

    let old = fs::read(&file).unwrap();
    let copies = redb::TableDefinition::<&[u8], &[u8]>::new("copies");
    let db = redb::Database::open(&file).unwrap();
    for (row, told) in [(&[0xEE; 4][..], "table copies"), (&[], "table copies")] {
        let txn = db.begin_write().unwrap();
        txn.open_table(copies).unwrap().insert(&[0; 9][..], row).unwrap();
        txn.commit().unwrap();
        let bad = path.join("bad");
        fs::create_dir_all(&bad).unwrap();
        fs::copy(&file, bad.join("store.redb")).unwrap();
        let before = fs::read(bad.join("store.redb")).unwrap();
        let refused = run(&["migrate", "--store", "bad"], path);
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
        assert!(text(&refused).contains(told), "{}", text(&refused));
        assert!(fs::read(bad.join("store.redb")).unwrap() == before);
        assert_eq!(names(&bad), ["store.redb"]);
    }
    drop(db);
    // Rows that can be read, and name what is not there.
    fs::write(&file, &old).unwrap();
    let ids = redb::TableDefinition::<u128, u64>::new("doc_ids");
    let db = redb::Database::open(&file).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(ids).unwrap().insert(5, 999).unwrap();
    txn.commit().unwrap();
    drop(db);
    let refused = run(&["migrate", "--store", "s"], path);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("is missing"), "{}", text(&refused));
    // Cut short.
    fs::write(&file, &old[..old.len() / 3]).unwrap();
    let refused = run(&["migrate", "--store", "s"], path);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("is damaged"), "{}", text(&refused));
    assert_eq!(names(&path.join("s")), ["store.redb"]);
}

#[test]
fn a_full_disk_is_told_and_the_old_store_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shown = large(&path.join("s"));
    let old = fs::read(path.join("s/store.redb")).unwrap();
    // A file that may not grow stands in for a full disk: the write fails in the same place.
    let blocks = old.len() / 1024 / 2;
    let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" migrate --store s");
    let refused = Command::new("bash")
        .args(["-c", &limited])
        .arg(env!("CARGO_BIN_EXE_crawl"))
        .current_dir(path)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(text(&refused).contains("File too large"), "{}", text(&refused));
    assert!(fs::read(path.join("s/store.redb")).unwrap() == old);
    assert_eq!(names(&path.join("s")), ["store.redb"]);
    assert!(run(&["migrate", "--store", "s"], path).status.success());
    assert_eq!(places(&open(&path.join("s"))), shown);
}

#[test]
fn a_kept_store_never_takes_the_name_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let kept = |name: &str| -> PathBuf { path.join(name) };
    for name in ["store.redb.format-6", "store.redb.format-6-2"] {
        age(check::made(path));
        let old = fs::read(kept("store.redb")).unwrap();
        let done = migrate(path, 16 << 20, true).unwrap().unwrap();
        assert_eq!(done.kept, Some(kept(name)));
        assert!(fs::read(kept(name)).unwrap() == old);
        fs::remove_file(kept("store.redb")).unwrap();
    }
}
