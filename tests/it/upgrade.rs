//! Stores of format 5 are opened, and crawled on.

use std::process::{Command, Stdio};

use redb::{ReadableTable as _, ReadableTableMetadata as _, TableDefinition, TableHandle as _};
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::documents::{Content, Copy};
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::frontier::Address;
use uniqcrawl::localweb::Site;
use uniqcrawl::store::{Encoder, FORMAT, META, REVIEWS, Store, TWINS, Tables, UNSURE};

use crate::support::{Clusters, Web, check_clean, clusters, config, page, prose};

/// What format 5 had in place of `unsure_copies`.
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
        .signed(content.arrival.0)
        .fixed(content.site)
        .bytes(content.sketch.0.as_slice())
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

/// Makes a store what format 5 would have made of it. `unsure` are contents of uncertain joints.
fn age(store: &Store, unsure: &[u64]) {
    let txn = store.db().begin_write().unwrap();
    let mut tables = Tables::open(&txn).unwrap();
    let rows = |row: Result<_, redb::StorageError>| row.unwrap();
    let contents: Vec<(u64, Vec<u8>)> = tables
        .contents
        .iter()
        .unwrap()
        .map(rows)
        .map(|(key, row)| (key.value(), old_content(&Content::decode(row.value()).unwrap())))
        .collect();
    let copies: Vec<(Vec<u8>, Vec<u8>)> = tables
        .copies
        .iter()
        .unwrap()
        .map(|row| row.unwrap())
        .map(|(key, row)| (key.value().to_vec(), old_copy(row.value())))
        .collect();
    for (number, row) in &contents {
        tables.contents.insert(number, row.as_slice()).unwrap();
    }
    for (key, row) in &copies {
        tables.copies.insert(key.as_slice(), row.as_slice()).unwrap();
    }
    tables.meta.remove("settled").unwrap();
    tables.meta.insert("format", 5u64.to_be_bytes().as_slice()).unwrap();
    drop(tables);
    txn.delete_table(UNSURE).unwrap();
    txn.delete_table(TWINS).unwrap();
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
    let tables = store.read().unwrap();
    let mut found = vec![9_999];
    for row in tables.contents.iter().unwrap() {
        let (number, row) = row.unwrap();
        let content = Content::decode(row.value()).unwrap();
        let document = tables.documents.get(content.document).unwrap().unwrap();
        let root = uniqcrawl::corpus::documents::Document::decode(document.value()).unwrap().root;
        found.extend((root != number.value()).then(|| number.value()));
    }
    found
}

fn format_of(store: &Store) -> u64 {
    let txn = redb::ReadableDatabase::begin_read(&*store.db()).unwrap();
    let row = txn.open_table(META).unwrap().get("format").unwrap().unwrap();
    u64::from_be_bytes(row.value().try_into().unwrap())
}

#[test]
fn a_store_of_format_5_is_opened_and_its_crawl_goes_on_as_that_of_a_new_one() {
    let web = web();
    let whole: Clusters = {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
        run(&store, &web, 0);
        clusters(&store)
    };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    // All but one of the last pages.
    run(&store, &web, 5);
    let before = clusters(&store);
    let unsure = unsure_of(&store);
    age(&store, &unsure);
    assert_eq!((unsure.len(), format_of(&store)), (2, 5), "one near copy came: {before:?}");
    drop(store);

    let store = Store::open(folder.path(), 16 << 20).unwrap();
    assert_eq!(format_of(&store), FORMAT);
    check_clean(&store);
    assert_eq!(clusters(&store), before);
    {
        let tables = store.read().unwrap();
        let rows = tables.unsure.iter().unwrap().map(|row| row.unwrap());
        let rows: Vec<(u64, String)> =
            rows.map(|(key, row)| (key.value(), row.value().to_owned())).collect();
        let [(content, address)] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(*content, unsure[1]);
        let known = Address::read(&tables.addresses, address).unwrap();
        assert!(known.is_some() && address.ends_with("/story"), "{address}");
        let txn = redb::ReadableDatabase::begin_read(&*store.db()).unwrap();
        let names: Vec<String> =
            txn.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
        assert!(!names.iter().any(|name| name == UNSURE_5.name()), "{names:?}");
        assert!(tables.twins.is_empty().unwrap() && tables.reviews.is_empty().unwrap());
    }
    run(&store, &web, 0);
    assert_eq!(clusters(&store), whole);
    drop(store);
    check_clean(&Store::open(folder.path(), 16 << 20).unwrap());
}

#[test]
fn the_first_copy_of_an_unsure_text_is_the_one_that_came_first() {
    let folder = tempfile::tempdir().unwrap();
    let web = web();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    run(&store, &web, 0);
    let unsure = unsure_of(&store);
    let content = unsure[1];
    // A second copy with an address that sorts before the first one, and came later.
    let txn = store.db().begin_write().unwrap();
    let mut tables = Tables::open(&txn).unwrap();
    let found = tables.copies.iter().unwrap().map(|row| row.unwrap()).find_map(|(key, row)| {
        let copy = Copy::decode(row.value()).unwrap();
        (copy.content == content).then(|| (key.value().to_vec(), copy))
    });
    let (key, copy) = found.unwrap();
    let document = u64::from_be_bytes(key[..8].try_into().unwrap());
    let late = Copy { arrival: Timestamp(copy.arrival.0 + 1), ..copy };
    uniqcrawl::corpus::documents::write_copy(&mut tables.copies, document, "a", &late).unwrap();
    drop(tables);
    txn.commit().unwrap();
    age(&store, &unsure);
    drop(store);
    let store = Store::open(folder.path(), 16 << 20).unwrap();
    let tables = store.read().unwrap();
    let address = tables.unsure.get(content).unwrap().unwrap().value().to_owned();
    assert_eq!(address.as_bytes(), &key[8..]);
}

#[test]
fn a_crash_before_the_upgrade_is_whole_leaves_the_old_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    run(&store, &web(), 0);
    let unsure = unsure_of(&store);
    age(&store, &unsure);
    drop(store);
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.args(["stats", "--store"]).arg(folder.path());
    command.env("UNIQCRAWL_LOG", "uniqcrawl=trace").env("UNIQCRAWL_CRASH", "upgraded:1");
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), None, "it was killed");

    let db = redb::Database::open(folder.path().join("store.redb")).unwrap();
    let txn = redb::ReadableDatabase::begin_read(&db).unwrap();
    let row = txn.open_table(META).unwrap().get("format").unwrap().unwrap();
    assert_eq!(row.value(), 5u64.to_be_bytes());
    assert_eq!(txn.open_table(UNSURE_5).unwrap().len().unwrap(), unsure.len() as u64);
    assert!(txn.open_table(UNSURE).is_err(), "nothing of the new format is there");
    drop((txn, db));
    let store = Store::open(folder.path(), 16 << 20).unwrap();
    check_clean(&store);
    assert_eq!(store.read().unwrap().unsure.len().unwrap(), unsure.len() as u64 - 1);
}
