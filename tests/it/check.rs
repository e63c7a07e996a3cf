//! Stores with damaged rows: each is found, and none hides another.

use std::path::Path;

use redb::{Key, ReadableTable as _, ReadableTableMetadata as _, Table};
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::base::units::Time;
use uniqcrawl::corpus::check::{Findings, check};
use uniqcrawl::corpus::clusters;
use uniqcrawl::corpus::documents::{Change, note_change, read_content, write_content};
use uniqcrawl::corpus::keys;
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::{Store, Tables};

use crate::support::{Web, config, crawl as run, page, prose};

/// Rows that no table has: of another version, cut short, and with a number that names more bytes
/// than there are.
const GARBAGE: [&[u8]; 5] =
    [&[0xEE; 40], &[1], &[2], &[1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], &[0]];

/// A crawl that was stopped on its way, so that every table has rows.
fn made(folder: &Path) -> Store {
    let text = prose(1, 90);
    let near = format!("{text} Printed at nine.");
    let web = Web::start(2, |bases| {
        let other = format!("{}/mirror", bases[0]);
        let links = ["/fails", "/story", "/mirror", "/no", "/1", "/2", "/3", "/4", "/5"];
        let front = page("Front", &prose(5, 80), &links);
        let site = Site::new()
            .robots("User-agent: *\nDisallow: /no\nSitemap: /map.xml\n")
            .html("/", front)
            .page("/fails", Page::status(500))
            .html("/story", page("A story of the sea", &text, &[]))
            .html("/mirror", page("A story of the sea", &near, &[]));
        vec![site, Site::new().html("/", page("Links", &prose(6, 80), &[&other]))]
    });
    let store = Store::open_or_create(folder, 16 << 20).unwrap();
    let mut config = config();
    config.frontier.retry_delay = Time::from_millis(60_000);
    config.crawl.limits.idle_wait_max = Time::from_millis(50);
    config.crawl.limits.pages_max = 5;
    crawl::run(&store, &config.settings(), &web.seeds(), &Context::default()).unwrap();
    write(&store, |tables| {
        let mut entries = keys::load(&tables.near, &tables.near_log).unwrap();
        keys::fold(&mut tables.near, &mut tables.near_log, &mut entries).unwrap();
        tables.near_log.insert(1, [].as_slice()).unwrap();
        let number = tables.documents.first().unwrap().unwrap().0.value();
        let change = Change { time: Timestamp(1), from: "a".to_owned(), to: "b".to_owned() };
        note_change(&mut tables.history, number, &change).unwrap();
        let content = tables.contents.first().unwrap().unwrap().0.value();
        tables.unsure.insert(content, "http://somewhere/").unwrap();
        tables.reviews.insert(number, ()).unwrap();
        twin(tables);
        let newest = clusters::newest(&tables.meta).unwrap().to_be_bytes();
        tables.meta.insert("settled", newest.as_slice()).unwrap();
    });
    assert_eq!(findings(&store).listed, Vec::<String>::new());
    store
}

/// Gives the last text the hash of the first one, as if both were equal texts of one site that are
/// no copies of each other. Returns the hash and the two contents.
fn twin(tables: &mut Tables<'_>) -> (u128, [u64; 2]) {
    let number = |row: Option<(redb::AccessGuard<'_, u64>, _)>| row.unwrap().0.value();
    let first = number(tables.contents.first().unwrap());
    let last = number(tables.contents.last().unwrap());
    let hash = read_content(&tables.contents, first).unwrap().unwrap().hash;
    let mut row = read_content(&tables.contents, last).unwrap().unwrap();
    tables.exact.remove(row.hash).unwrap();
    tables.twins.insert((hash, last), ()).unwrap();
    row.hash = hash;
    write_content(&mut tables.contents, last, &row).unwrap();
    (hash, [first, last])
}

fn write<T>(store: &Store, work: impl FnOnce(&mut Tables<'_>) -> T) -> T {
    let txn = store.db().begin_write().unwrap();
    let mut tables = Tables::open(&txn).unwrap();
    let result = work(&mut tables);
    drop(tables);
    txn.commit().unwrap();
    result
}

fn findings(store: &Store) -> Findings {
    check(&store.read().unwrap()).unwrap()
}

/// Asserts that a row of a table is listed, by its key.
#[track_caller]
fn lists(findings: &Findings, table: &str, row: &str) {
    let start = format!("{table}, row {row}");
    let found = findings.listed.iter().any(|fault| fault.starts_with(&start));
    assert!(found, "no `{start}` among {:#?}", findings.listed);
}

/// Writes over the last row of a table, and returns its key and what it was.
fn spoil<K: Key + 'static>(
    table: &mut Table<'_, K, &'static [u8]>,
    row: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let (key, was) = {
        let (key, value) = table.last().unwrap().expect("every table has rows");
        (K::as_bytes(&key.value()).as_ref().to_vec(), value.value().to_vec())
    };
    table.insert(K::from_bytes(&key), row).unwrap();
    (key, was)
}

fn restore<K: Key + 'static>(
    table: &mut Table<'_, K, &'static [u8]>,
    (key, was): &(Vec<u8>, Vec<u8>),
) {
    table.insert(K::from_bytes(key), was.as_slice()).unwrap();
}

/// Does something with each table whose rows are bytes.
macro_rules! each_of_bytes {
    ($do:ident) => {
        $do!(meta);
        $do!(hosts);
        $do!(robots);
        $do!(addresses);
        $do!(lists);
        $do!(queue);
        $do!(later);
        $do!(documents);
        $do!(copies);
        $do!(contents);
        $do!(bodies);
        $do!(near);
        $do!(near_log);
        $do!(history);
    };
}

#[test]
fn a_row_that_cannot_be_read_is_listed_in_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    macro_rules! spoil_alone {
        ($table:ident) => {
            for garbage in GARBAGE {
                let was = write(&store, |tables| spoil(&mut tables.$table, garbage));
                lists(&findings(&store), stringify!($table), "");
                write(&store, |tables| restore(&mut tables.$table, &was));
            }
        };
    }
    each_of_bytes!(spoil_alone);
    assert_eq!(findings(&store).listed, Vec::<String>::new());

    // Rows whose lengths would take all memory.
    let long: Vec<u8> = [&[0xFF; 8][..], &[0x7F, 1, 0]].concat();
    let (body, copy) = ([&[1, 0][..], &long].concat(), [&[1, 0, 0, 0, 0, 1][..], &long].concat());
    write(&store, |tables| {
        spoil(&mut tables.bodies, &body);
        spoil(&mut tables.robots, &copy);
    });
    lists(&findings(&store), "bodies", "");
    lists(&findings(&store), "robots", "");
    // An entry of the right length that neither adds nor removes.
    write(&store, |tables| drop(spoil(&mut tables.near_log, &[4; 13])));
    lists(&findings(&store), "near_log", "1: ");
}

#[test]
fn a_key_that_cannot_be_read_is_listed_in_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    let key: &[u8] = &[7];
    let not_utf8: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0xFF];
    write(&store, |tables| {
        for table in [&mut tables.queue, &mut tables.later, &mut tables.near] {
            table.insert(key, [].as_slice()).unwrap();
        }
        tables.history.insert(key, [].as_slice()).unwrap();
        tables.copies.insert(key, [].as_slice()).unwrap();
        tables.copies.insert(not_utf8, [].as_slice()).unwrap();
        tables.schedule.insert(key, ()).unwrap();
        tables.inlinks.insert(key, ()).unwrap();
        tables.revisits.insert(key, ()).unwrap();
    });
    let findings = findings(&store);
    for table in ["queue", "later", "history", "copies", "schedule", "inlinks", "revisits"] {
        lists(&findings, table, "07: ");
    }
    lists(&findings, "copies", "0000000000000001ff: ");
    lists(&findings, "near", "[7]: ");
}

#[test]
fn a_row_that_names_what_is_missing_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    write(&store, |tables| {
        tables.host_numbers.insert("https://nowhere", 999).unwrap();
        let robots = tables.robots.first().unwrap().unwrap().1.value().to_vec();
        tables.robots.insert(999, robots.as_slice()).unwrap();
        tables.schedule.insert([0xFF; 12].as_slice(), ()).unwrap();
        let nowhere = [&[0; 8][..], b"http://nowhere/"].concat();
        tables.revisits.insert(nowhere.as_slice(), ()).unwrap();
        tables.doc_ids.insert(5, 999).unwrap();
        let history = tables.history.first().unwrap().unwrap().1.value().to_vec();
        tables.history.insert([0xFF; 16].as_slice(), history.as_slice()).unwrap();
        tables.exact.insert(5, 999).unwrap();
        tables.unsure.insert(999, "").unwrap();
        tables.twins.insert((5, 998), ()).unwrap();
        tables.reviews.insert(999, ()).unwrap();
        tables.meta.insert("settled", 1_000u64.to_be_bytes().as_slice()).unwrap();
        let body = tables.bodies.first().unwrap().unwrap().1.value().to_vec();
        tables.bodies.insert(999, body.as_slice()).unwrap();
        tables.counters.insert("addresses.stored", 77).unwrap();
        tables.host_numbers.insert("no host at all", 998).unwrap();
        tables.domains.insert("example.org", 5).unwrap();
        tables.patterns.insert([0, 0, 0, 1, 7, 7, 7, 7, 7, 7, 7, 7].as_slice(), 1).unwrap();
        tables.patterns.insert([9; 12].as_slice(), 1).unwrap();
        tables.patterns.insert([9; 11].as_slice(), 1).unwrap();
    });
    let findings = findings(&store);
    lists(&findings, "host_numbers", "https://nowhere: ");
    lists(&findings, "robots", "999: ");
    lists(&findings, "schedule", "ffffffffffffffffffffffff: ");
    lists(&findings, "revisits", "http://nowhere/: ");
    lists(&findings, "doc_ids", "00000000000000000000000000000005: ");
    lists(&findings, "history", "ffffffffffffffffffffffffffffffff: ");
    lists(&findings, "exact", "00000000000000000000000000000005: ");
    lists(&findings, "twins", "00000000000000000000000000000005 998: content 998 is missing");
    lists(&findings, "unsure", "999: ");
    lists(&findings, "reviews", "999: ");
    lists(&findings, "meta", "settled: content 1000 is to come");
    lists(&findings, "bodies", "999: ");
    lists(&findings, "patterns", "0909090909090909090909: ");
    for wanted in [
        "counter addresses.stored is 77",
        "no host at all does not count",
        "nowhere does not count",
        "example.org counts 5 hosts, not 0",
        "http://127.77.0.1:",
        "patterns are of host 151587081",
    ] {
        let found = findings.listed.iter().any(|fault| fault.starts_with(wanted));
        assert!(found, "no `{wanted}` among {:#?}", findings.listed);
    }
}

#[test]
fn damage_in_all_tables_is_listed_at_once_and_the_command_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(&folder.path().join("store"));
    write(&store, |tables| {
        macro_rules! spoil_too {
            ($table:ident) => {
                spoil(&mut tables.$table, &[0xEE; 40]);
            };
        }
        each_of_bytes!(spoil_too);
        // A table full of faults hides none of another.
        for number in 1_000..1_150 {
            tables.unsure.insert(number, "").unwrap();
        }
    });
    let found = findings(&store);
    macro_rules! is_listed {
        ($table:ident) => {
            lists(&found, stringify!($table), "");
        };
    }
    each_of_bytes!(is_listed);
    let of_unsure = found.listed.iter().filter(|fault| fault.starts_with("unsure"));
    assert_eq!(of_unsure.count(), 100);
    assert!(found.faults >= 163, "all are counted: {}", found.faults);
    drop(store);
    let output = run(&["check"], folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("fault: documents, row ") && text.contains("fault: near, row "),
        "{text}"
    );
}

#[test]
fn every_table_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    let tables = store.read().unwrap();
    let rows = findings(&store).rows;
    macro_rules! looked_at {
        ($($table:ident)*) => {$(
            let name = stringify!($table);
            assert!(tables.$table.len().unwrap() > 0, "{name} has no row in this test");
            assert!(rows.get(name).is_some_and(|rows| *rows > 0), "{name}: {rows:?}");
        )*};
    }
    looked_at!(meta host_numbers hosts robots addresses queue schedule later revisits inlinks documents);
    looked_at!(domains patterns doc_ids copies contents bodies exact twins near near_log unsure reviews);
    looked_at!(history counters);
}

#[test]
fn a_text_is_found_by_its_hash_or_after_another_one_and_else_it_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    let tables = store.read().unwrap();
    let (hash, last) = tables.twins.first().unwrap().unwrap().0.value();
    let first = tables.exact.get(hash).unwrap().unwrap().value();
    let (other, of_other) = {
        let row = tables.exact.iter().unwrap().map(|row| row.unwrap());
        let mut rows = row.map(|(hash, content)| (hash.value(), content.value()));
        rows.find(|(found, _)| *found != hash).unwrap()
    };
    drop(tables);
    let check =
        |damage: &dyn Fn(&mut Tables<'_>), repair: &dyn Fn(&mut Tables<'_>), wanted: &[String]| {
            write(&store, damage);
            let mut listed = findings(&store).listed;
            listed.sort();
            assert_eq!(listed, wanted);
            write(&store, repair);
            assert_eq!(findings(&store).listed, Vec::<String>::new());
        };
    check(
        &|tables| drop(tables.twins.remove((hash, last)).unwrap()),
        &|tables| drop(tables.twins.insert((hash, last), ()).unwrap()),
        &[format!("content {last} is not found by its hash")],
    );
    check(
        &|tables| drop(tables.exact.remove(hash).unwrap()),
        &|tables| drop(tables.exact.insert(hash, first).unwrap()),
        &[
            format!("content {first} is not found by its hash"),
            format!("twins, row {hash:032x} {last}: it follows no other content"),
        ],
    );
    check(
        &|tables| drop(tables.twins.insert((hash, first), ()).unwrap()),
        &|tables| drop(tables.twins.remove((hash, first)).unwrap()),
        &[format!("twins, row {hash:032x} {first}: it follows no other content")],
    );
    check(
        &|tables| drop(tables.twins.insert((other, first), ()).unwrap()),
        &|tables| drop(tables.twins.remove((other, first)).unwrap()),
        &[format!("twins, row {other:032x} {first}: content {first} has another text")],
    );
    check(
        &|tables| drop(tables.exact.insert(other, first).unwrap()),
        &|tables| drop(tables.exact.insert(other, of_other).unwrap()),
        &[
            format!("content {of_other} is not found by its hash"),
            format!("exact, row {other:032x}: content {first} has another text"),
        ],
    );
}

#[test]
fn numbers_of_any_size_are_read_as_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    // Read as texts, those from 128 on were faults.
    let number = 200u64.to_be_bytes();
    write(&store, |tables| {
        for name in ["next_content", "settled", "search_update"] {
            tables.meta.insert(name, number.as_slice()).unwrap();
        }
    });
    assert_eq!(findings(&store).listed, Vec::<String>::new());
    write(&store, |tables| drop(tables.meta.insert("settled", [0xFF].as_slice()).unwrap()));
    lists(&findings(&store), "meta", "settled: ");
}

#[test]
fn a_document_that_ends_or_becomes_part_of_another_one_is_not_reviewed() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    let numbers: Vec<u64> = {
        let tables = store.read().unwrap();
        tables.documents.iter().unwrap().map(|row| row.unwrap().0.value()).collect()
    };
    write(&store, |tables| {
        for number in &numbers {
            tables.reviews.insert(number, ()).unwrap();
        }
        clusters::merge(tables, numbers[0], numbers[1], Timestamp(9)).unwrap();
        assert!(tables.reviews.get(numbers[0]).unwrap().is_none());
        clusters::end(tables, numbers[1], &mut clusters::Left::default()).unwrap();
        assert!(tables.reviews.get(numbers[1]).unwrap().is_none());
    });
}
