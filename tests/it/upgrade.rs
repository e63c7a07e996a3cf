//! Stores of format 5 are migrated, and crawled on.

use std::path::Path;
use std::process::{Command, Stdio};

use redb::{ReadableDatabase as _, ReadableTableMetadata as _, TableDefinition, TableHandle as _};
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::{self, Match, Place};
use uniqcrawl::corpus::documents::{Content, Copy, write_body};
use uniqcrawl::corpus::index::Index;
use uniqcrawl::corpus::migrate::migrate;
use uniqcrawl::corpus::tables::{self, CONTENTS, COPIES, DOCUMENTS};
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::frontier::ADDRESSES;
use uniqcrawl::localweb::Site;
use uniqcrawl::neardup::{Config, Key};
use uniqcrawl::store::{
    Encoder, FORMAT, Name, Reading as _, Row as _, Store, Update as _, View as _, Writing as _,
    sequence_of,
};

use crate::migrate::age_numbers;
use crate::search_index::article;
use crate::support::{Clusters, Web, check_clean, clusters, config, page, prose};

/// What format 5 had in place of `unsure_copies`.
const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
const UNSURE: TableDefinition<u64, &str> = TableDefinition::new("unsure_copies");
const REVIEWS: TableDefinition<u64, ()> = TableDefinition::new("reviews");
const UNSURE_5: TableDefinition<u64, ()> = TableDefinition::new("unsure");

/// A site of some pages, of which two are edited copies of others.
fn web() -> Web {
    let near = format!("{} Printed at nine.", prose(1, 120));
    let host = |host: u64, text: &str| {
        let site = Site::new().html("/", page("Front", &prose(host + 50, 80), &["/story"]));
        site.html("/story", page("A story of the sea", text, &["/last"]))
            .html("/last", page("The last page", &prose(host + 60, 80), &[]))
    };
    Web::start(2, |_| vec![host(0, &prose(1, 120)), host(1, &near)])
}

fn run(store: &Store, web: &Web, pages_max: u64) {
    let mut config = config();
    config.crawl.limits.pages_max = pages_max;
    crawl::run(store, &config.settings(), &web.seeds(), &Context::default()).unwrap();
    check_clean(store);
}

/// A row of `contents` as format 5 wrote it: without the edition.
fn old_content(content: &Content) -> Vec<u8> {
    let row = Encoder::new(2)
        .number(content.document)
        .wide(content.hash)
        .fixed(content.fingerprint.0)
        .number(content.title_fingerprint.is_some())
        .fixed(content.title_fingerprint.unwrap_or_default().0)
        .number(content.words)
        .number(content.shingles)
        .number(content.copies)
        .keys(content.arrival.0)
        .fixed(content.site)
        .bytes(content.sketch.slots.as_slice())
        .number(content.sentences.len() as u64);
    content.sentences.iter().fold(row, |row, key| row.number(*key)).finish()
}

/// A row of `copies` as format 5 wrote it: without what the page shows, and whether it is doubtful.
fn old_copy(row: &[u8]) -> Vec<u8> {
    let shown = Copy::decode(row).unwrap().shown.map_or(0, |shown| shown.0.len());
    let mut old = row[..row.len() - shown - 2].to_vec();
    old[0] = 3;
    old
}

/// Makes a store what format 5 would have made of it. `unsure` are contents of uncertain matches.
fn age(store: Store, unsure: &[u64]) {
    let mut batch = store.begin().unwrap();
    let contents = batch.rows(CONTENTS).unwrap().map(Result::unwrap);
    let contents: Vec<(Vec<u8>, Vec<u8>)> =
        contents.map(|row| (row.key_bytes().to_vec(), old_content(&row.row().unwrap()))).collect();
    let copies = batch.rows(COPIES).unwrap().map(Result::unwrap);
    let copies: Vec<(Vec<u8>, Vec<u8>)> =
        copies.map(|row| (row.key_bytes().to_vec(), old_copy(row.bytes()))).collect();
    for (table, rows) in [(Name::Contents, contents), (Name::Copies, copies)] {
        for (key, row) in rows {
            batch.raw_put(table, &key, &row).unwrap();
        }
    }
    batch.raw_remove(Name::Meta, b"settled").unwrap();
    age_numbers(&mut batch, 5);
    batch.commit().unwrap();
    let path = store.path().to_owned();
    drop(store);
    let db = redb::Database::open(path).unwrap();
    let txn = db.begin_write().unwrap();
    txn.delete_table(UNSURE).unwrap();
    txn.delete_table(REVIEWS).unwrap();
    let mut old = txn.open_table(UNSURE_5).unwrap();
    for content in unsure {
        old.insert(content, ()).unwrap();
    }
    drop(old);
    txn.commit().unwrap();
}

/// The contents of the near copies, and one that is not there any more.
fn unsure_of(store: &Store) -> Vec<u64> {
    let snapshot = store.snapshot().unwrap();
    let mut found = vec![9_999];
    for entry in snapshot.rows(CONTENTS).unwrap() {
        let entry = entry.unwrap();
        let (number, content) = (entry.key().unwrap(), entry.row().unwrap());
        let root = snapshot.get(DOCUMENTS, content.document).unwrap().unwrap().root;
        found.extend((root != number).then_some(number));
    }
    found
}

/// Opens a store as it is made before its numbers are those of a format.
fn new(folder: &Path) -> Store {
    Store::open_or_create_as(folder, 16 << 20, 0).unwrap()
}

fn migrated(folder: &Path) -> Store {
    let done = migrate(folder, 16 << 20, true).unwrap().unwrap();
    assert_eq!(done.from_format, 5);
    Store::open(folder, 16 << 20).unwrap()
}

fn format_of(folder: &Path) -> u64 {
    let db = redb::Database::open(folder.join("store.redb")).unwrap();
    let txn = db.begin_read().unwrap();
    let row = txn.open_table(META).unwrap().get("format").unwrap().unwrap();
    u64::from_be_bytes(row.value().try_into().unwrap())
}

#[test]
fn a_store_of_format_5_is_migrated_and_its_crawl_goes_on_as_that_of_a_new_one() {
    let web = web();
    let whole: Clusters = {
        let folder = tempfile::tempdir().unwrap();
        let store = new(folder.path());
        run(&store, &web, 0);
        clusters(&store)
    };
    let folder = tempfile::tempdir().unwrap();
    let store = new(folder.path());
    // All but one of the last pages.
    run(&store, &web, 5);
    let before = clusters(&store);
    let unsure = unsure_of(&store);
    age(store, &unsure);
    let format = format_of(folder.path());
    assert_eq!((unsure.len(), format), (2, 5), "one near copy came: {before:?}");

    drop(migrated(folder.path()));
    assert_eq!(format_of(folder.path()), FORMAT);
    {
        let db = redb::Database::open(folder.path().join("store.redb")).unwrap();
        let txn = db.begin_read().unwrap();
        let names: Vec<String> =
            txn.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
        assert!(!names.iter().any(|name| name == UNSURE_5.name()), "{names:?}");
    }
    let store = Store::open(folder.path(), 16 << 20).unwrap();
    check_clean(&store);
    assert_eq!(clusters(&store), before);
    {
        let snapshot = store.snapshot().unwrap();
        let rows = snapshot.rows(tables::UNSURE).unwrap().map(Result::unwrap);
        let rows: Vec<(u64, String)> =
            rows.map(|entry| (entry.key().unwrap(), entry.row().unwrap())).collect();
        let [(content, address)] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(sequence_of(*content), unsure[1]);
        let known = snapshot.get(ADDRESSES, address).unwrap();
        assert!(known.is_some() && address.ends_with("/story"), "{address}");
        let of = |table| snapshot.rows_of(table).unwrap();
        assert_eq!(of(Name::Reviews), 0);
    }
    assert!(!narrow(&store).is_empty(), "contents of that format have narrow sketches");
    run(&store, &web, 0);
    assert_eq!(clusters(&store), whole);
    assert!(narrow(&store).is_empty(), "sketches are completed when the index is made");
    drop(store);
    check_clean(&Store::open(folder.path(), 16 << 20).unwrap());
}

#[test]
fn of_tables_that_stay_behind_only_unknown_ones_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = new(folder.path());
    run(&store, &web(), 0);
    age(store, &[]);
    let db = redb::Database::open(folder.path().join("store.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    for name in ["near_log", "stray"] {
        txn.open_table(TableDefinition::<u64, u64>::new(name)).unwrap();
    }
    txn.commit().unwrap();
    drop(db);
    let said = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["migrate", "--store"])
        .arg(folder.path())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && log.contains("stray"), "{log}");
    assert!(!log.contains("near_log"), "the index is made anew: {log}");
}

/// The contents whose sketches have no second bytes.
fn narrow(store: &Store) -> Vec<u64> {
    let snapshot = store.snapshot().unwrap();
    let rows = snapshot.rows(CONTENTS).unwrap().map(Result::unwrap);
    let narrow = rows.filter(|entry| entry.row().unwrap().sketch.seconds.is_none());
    narrow.map(|entry| entry.key().unwrap()).collect()
}

#[test]
fn a_sketch_is_completed_from_the_text_it_was_made_of_and_from_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let web = web();
    let store = new(folder.path());
    run(&store, &web, 0);
    let (mut batch, mut before) = (store.begin().unwrap(), Vec::new());
    for entry in store.snapshot().unwrap().rows(CONTENTS).unwrap() {
        let entry = entry.unwrap();
        let (number, row) = (entry.key().unwrap(), entry.row().unwrap());
        let mut old = row.clone();
        old.sketch.seconds = None;
        batch.put(CONTENTS, number, &old).unwrap();
        before.push((number, row));
    }
    let (other, _) = before.pop().unwrap();
    write_body(&mut batch, other, "Another text than the one that was fingerprinted.", None)
        .unwrap();
    batch.raw_remove(Name::Meta, b"index").unwrap();
    batch.commit().unwrap();
    drop(Index::open(&store, &Config::default()).unwrap());
    assert_eq!(narrow(&store), [other]);
    for (number, row) in before {
        assert_eq!(store.snapshot().unwrap().get(CONTENTS, number).unwrap(), Some(row));
    }
}

#[test]
fn the_first_copy_of_an_unsure_text_is_the_one_that_came_first() {
    let folder = tempfile::tempdir().unwrap();
    let web = web();
    let store = new(folder.path());
    run(&store, &web, 0);
    let unsure = unsure_of(&store);
    let content = unsure[1];
    // A second copy with an address that sorts before the first one, and came later.
    let mut batch = store.begin().unwrap();
    let (document, address, copy) = {
        let mut copies = batch.rows(COPIES).unwrap().map(Result::unwrap);
        let entry = copies.find(|entry| entry.row().unwrap().content == content).unwrap();
        let (document, address) = entry.key().unwrap();
        (document, address.to_owned(), entry.row().unwrap())
    };
    let (key, same) = (Key::Exact, Some(content));
    let matched = Match { document, same, key, distance: 0, similarity: 1.0, sure: true };
    let late = Timestamp(copy.arrival.0 + 1);
    let again = article("a", "the same");
    clusters::join(&mut batch, &again, &Place::Tree(matched), 0, late).unwrap();
    batch.commit().unwrap();
    age(store, &unsure);
    let store = migrated(folder.path());
    let snapshot = store.snapshot().unwrap();
    let (number, first) = {
        let row = snapshot.first(tables::UNSURE).unwrap().unwrap();
        (row.key().unwrap(), row.row().unwrap())
    };
    assert_eq!((sequence_of(number), first), (content, address));
}

#[test]
fn a_crash_before_the_migration_is_whole_leaves_the_old_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = new(folder.path());
    run(&store, &web(), 0);
    let unsure = unsure_of(&store);
    age(store, &unsure);
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.args(["migrate", "--store"]).arg(folder.path());
    command.env("UNIQCRAWL_LOG", "uniqcrawl=trace").env("UNIQCRAWL_CRASH", "kept:1");
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), None, "it was killed");

    let db = redb::Database::open(folder.path().join("store.redb")).unwrap();
    let txn = redb::ReadableDatabase::begin_read(&db).unwrap();
    let row = txn.open_table(META).unwrap().get("format").unwrap().unwrap();
    assert_eq!(row.value(), 5u64.to_be_bytes());
    assert_eq!(txn.open_table(UNSURE_5).unwrap().len().unwrap(), unsure.len() as u64);
    assert!(txn.open_table(UNSURE).is_err(), "nothing of the new format is there");
    drop((txn, db));
    let store = migrated(folder.path());
    check_clean(&store);
    assert_eq!(store.snapshot().unwrap().len(tables::UNSURE).unwrap(), unsure.len() as u64 - 1);
}
