//! Stores with damaged rows: each is found, and none hides another.

use std::ops::{Bound, Range};
use std::path::Path;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::base::units::Time;
use uniqcrawl::corpus::check::{Findings, check, check_in_parts};
use uniqcrawl::corpus::clusters;
use uniqcrawl::corpus::documents::{CanonicalChange, Content, DocId, note_change, write_body};
use uniqcrawl::corpus::index::{Change, note};
use uniqcrawl::corpus::tables::{
    BODIES, BODY_PARTS, CONTENTS, DOC_IDS, DOCUMENTS, HISTORY, INDEX_LOG, REVIEWS, UNSURE,
};
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::frontier::{DOMAINS, HOST_NUMBERS, PATTERNS, REVISITS, ROBOTS};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::{
    Batch, COUNTERS, META, Name, Reading as _, Store, Update as _, View as _, Writing as _,
};

use crate::support::{Web, config, crawl as run, page, prose};

/// Rows that no table has: of another version, cut short, and with a number that names more bytes
/// than there are.
const GARBAGE: [&[u8]; 5] =
    [&[0xEE; 40], &[1], &[2], &[1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], &[0]];

/// A crawl that was stopped on its way, so that every table has rows. Its numbers are small ones.
pub(crate) fn made(folder: &Path) -> Store {
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
    let store = Store::open_or_create_as(folder, 16 << 20, 0).unwrap();
    let mut config = config();
    config.frontier.retry_delay = Time::from_millis(60_000);
    config.crawl.limits.idle_wait_max = Time::from_millis(50);
    config.crawl.limits.pages_max = 5;
    crawl::run(&store, &config.settings(), &web.seeds(), &Context::default()).unwrap();
    write(&store, |batch| {
        note(batch, Change { content: 0, gone: true });
        let number = batch.first(DOCUMENTS).unwrap().unwrap().key().unwrap();
        let change =
            CanonicalChange { time: Timestamp(1), from: "a".to_owned(), to: "b".to_owned() };
        note_change(batch, number, &change).unwrap();
        let content = batch.first(CONTENTS).unwrap().unwrap().key().unwrap();
        batch.put(UNSURE, content, &"http://somewhere/".to_owned()).unwrap();
        batch.put(REVIEWS, number, &()).unwrap();
        twin(batch);
        let newest = clusters::newest(batch).unwrap().to_be_bytes();
        batch.put(META, "settled", &newest.to_vec()).unwrap();
    });
    assert_eq!(findings(&store).listed, Vec::<String>::new());
    store
}

/// Gives the last text the hash of the first one, as if both were equal texts of one site that are
/// no copies of each other. Returns the hash and the two contents.
fn twin(batch: &mut Batch) -> (u128, [u64; 2]) {
    let first = batch.first(CONTENTS).unwrap().unwrap().key().unwrap();
    let last = batch.last(CONTENTS).unwrap().unwrap().key().unwrap();
    let hash = batch.get(CONTENTS, first).unwrap().unwrap().hash;
    let mut row = batch.get(CONTENTS, last).unwrap().unwrap();
    row.hash = hash;
    batch.put(CONTENTS, last, &row).unwrap();
    // Its keys are read from its row until they are in a segment.
    note(batch, Change { content: last, gone: false });
    (hash, [first, last])
}

fn write<T>(store: &Store, work: impl FnOnce(&mut Batch) -> T) -> T {
    let mut batch = store.begin().unwrap();
    let result = work(&mut batch);
    batch.commit().unwrap();
    result
}

/// What a check finds, which is the same when the store is looked at in many parts.
fn findings(store: &Store) -> Findings {
    let snapshot = store.snapshot().unwrap();
    let found = check(&snapshot).unwrap();
    for at_a_time in [1, 3] {
        let mut parts = check_in_parts(&snapshot, at_a_time, &mut |_| {}).unwrap();
        assert_eq!((&parts.rows, parts.faults), (&found.rows, found.faults));
        let mut wanted = found.listed.clone();
        wanted.sort();
        parts.listed.sort();
        assert_eq!(parts.listed, wanted, "{at_a_time} at a time");
    }
    found
}

/// Asserts that a row of a table is listed, by its key.
#[track_caller]
fn lists(findings: &Findings, table: &str, row: &str) {
    let start = format!("{table}, row {row}");
    let found = findings.listed.iter().any(|fault| fault.starts_with(&start));
    assert!(found, "no `{start}` among {:#?}", findings.listed);
}

/// The bytes of a key and of its row.
type Raw = (Vec<u8>, Vec<u8>);

/// Writes over the last row of a table, and returns its key and what it was.
fn spoil(batch: &mut Batch, table: Name, row: &[u8]) -> Raw {
    let (key, was) = {
        let mut rows = batch.raw_range(table, Bound::Unbounded, Bound::Unbounded).unwrap();
        let (key, row) = rows.next_back().expect("every table has rows").unwrap();
        (key.to_vec(), row.to_vec())
    };
    batch.raw_put(table, &key, row).unwrap();
    (key, was)
}

/// Batch whose rows are bytes.
const OF_BYTES: [Name; 14] = [
    Name::Meta,
    Name::Hosts,
    Name::Robots,
    Name::Addresses,
    Name::Lists,
    Name::Queue,
    Name::Later,
    Name::Documents,
    Name::Copies,
    Name::Contents,
    Name::Bodies,
    Name::Near,
    Name::IndexLog,
    Name::History,
];

#[test]
fn a_row_that_cannot_be_read_is_listed_in_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    for table in OF_BYTES {
        for garbage in GARBAGE {
            let (key, was) = write(&store, |batch| spoil(batch, table, garbage));
            lists(&findings(&store), table.as_str(), "");
            write(&store, |batch| drop(batch.raw_put(table, &key, &was).unwrap()));
        }
    }
    assert_eq!(findings(&store).listed, Vec::<String>::new());

    // Rows whose lengths would take all memory.
    let long: Vec<u8> = [&[0xFF; 8][..], &[0x7F, 1, 0]].concat();
    let (body, copy) = ([&[1, 0][..], &long].concat(), [&[1, 0, 0, 0, 0, 1][..], &long].concat());
    write(&store, |batch| {
        spoil(batch, Name::Bodies, &body);
        spoil(batch, Name::Robots, &copy);
    });
    lists(&findings(&store), "bodies", "");
    lists(&findings(&store), "robots", "");
    // An entry of the right length that neither adds nor removes.
    write(&store, |batch| drop(spoil(batch, Name::IndexLog, &[4; 9])));
    lists(&findings(&store), "index_log", "");
}

#[test]
fn a_key_that_cannot_be_read_is_listed_in_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    let key: &[u8] = &[7];
    let not_utf8: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0xFF];
    write(&store, |batch| {
        let of_bytes = [Name::Queue, Name::Later, Name::Near, Name::History, Name::Copies];
        for table in of_bytes.into_iter().chain([Name::Schedule, Name::Inlinks, Name::Revisits]) {
            batch.raw_put(table, key, &[]).unwrap();
        }
        batch.raw_put(Name::Copies, not_utf8, &[]).unwrap();
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
    write(&store, |batch| {
        batch.put(HOST_NUMBERS, "https://nowhere", &999).unwrap();
        let robots = batch.first(ROBOTS).unwrap().unwrap().row().unwrap();
        batch.put(ROBOTS, 999, &robots).unwrap();
        batch.raw_put(Name::Schedule, &[0xFF; 12], &[]).unwrap();
        batch.put(REVISITS, (Timestamp(0), "http://nowhere/"), &()).unwrap();
        batch.put(DOC_IDS, DocId(5), &999).unwrap();
        let history = batch.first(HISTORY).unwrap().unwrap().row().unwrap();
        batch.put(HISTORY, (u64::MAX, u64::MAX), &history).unwrap();
        batch.put(UNSURE, 999, &String::new()).unwrap();
        batch.put(REVIEWS, 999, &()).unwrap();
        batch.put(META, "settled", &1_000u64.to_be_bytes().to_vec()).unwrap();
        let body = batch.first(BODIES).unwrap().unwrap().row().unwrap();
        batch.put(BODIES, 999, &body).unwrap();
        batch.put(BODY_PARTS, (998, 1), &body).unwrap();
        batch.put(COUNTERS, "addresses.stored", &77).unwrap();
        batch.put(HOST_NUMBERS, "no host at all", &998).unwrap();
        batch.put(DOMAINS, "example.org", &5).unwrap();
        batch.put(PATTERNS, (1, 0x0707_0707_0707_0707), &1).unwrap();
        batch.raw_put(Name::Patterns, &[9; 12], &1u64.to_be_bytes()).unwrap();
        batch.raw_put(Name::Patterns, &[9; 11], &1u64.to_be_bytes()).unwrap();
    });
    let findings = findings(&store);
    lists(&findings, "host_numbers", "https://nowhere: ");
    lists(&findings, "robots", "999: ");
    lists(&findings, "schedule", "ffffffffffffffffffffffff: ");
    lists(&findings, "revisits", "http://nowhere/: ");
    lists(&findings, "doc_ids", "00000000000000000000000000000005: ");
    lists(&findings, "history", "ffffffffffffffffffffffffffffffff: ");
    lists(&findings, "body_parts", "998 1: ");
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
fn what_is_there_twice_or_has_no_other_side_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    let first = |table| {
        let snapshot = store.snapshot().unwrap();
        let mut rows = snapshot.raw_range(table, Bound::Unbounded, Bound::Unbounded).unwrap();
        let (key, row) = rows.next().expect("every table has rows").unwrap();
        (key.to_vec(), row.to_vec())
    };
    let (queued, revisit, copy) = (first(Name::Queue), first(Name::Revisits), first(Name::Copies));
    let listed = |table, key: &[u8], row: &[u8]| {
        write(&store, |batch| drop(batch.raw_put(table, key, row).unwrap()));
        let listed = findings(&store).listed;
        write(&store, |batch| drop(batch.raw_remove(table, key).unwrap()));
        assert_eq!(findings(&store).listed, Vec::<String>::new());
        listed
    };

    let later = [&1u64.to_be_bytes()[..], &queued.0].concat();
    let told = listed(Name::Later, &later, &queued.1);
    assert!(told.len() == 1 && told[0].ends_with(" waits twice"), "{told:?}");

    let url = std::str::from_utf8(&revisit.0[8..]).unwrap();
    let never = [&(u64::MAX >> 1).to_be_bytes()[..], url.as_bytes()].concat();
    let told = listed(Name::Revisits, &never, &[]);
    let wanted = [
        format!("revisits, row {url}: it is there twice"),
        format!("{url} is due at another time than planned"),
    ];
    assert_eq!(told, wanted);

    for number in [0, 1 << 39] {
        let key = [&u64::to_be_bytes(number)[..], b"http://nowhere/"].concat();
        let told = listed(Name::Copies, &key, &copy.1);
        let wanted = format!("copies name document {number}, which is missing");
        assert!(told.contains(&wanted), "{told:?}");
    }

    let one_more = [&copy.0[..8], b"http://nowhere/"].concat();
    let told = listed(Name::Copies, &one_more, &copy.1);
    let counts = |fault: &&String| fault.contains("counts 1 of 2 copies");
    let of_contents = told.iter().filter(|fault| fault.starts_with("content "));
    assert_eq!(of_contents.filter(counts).count(), 1, "{told:?}");

    let (document, url) = copy.0.split_at(8);
    let (document, url) = (u64::from_be_bytes(document.try_into().unwrap()), url.to_vec());
    let url = String::from_utf8(url).unwrap();
    let id = store.snapshot().unwrap().get(DOCUMENTS, document).unwrap().unwrap().id;
    write(&store, |batch| _ = batch.take(DOC_IDS, id).unwrap().unwrap());
    write(&store, |batch| drop(batch.raw_remove(Name::Copies, &copy.0).unwrap()));
    write(&store, |batch| drop(batch.raw_put(Name::Pages, url.as_bytes(), &[]).unwrap()));
    let told = findings(&store);
    for wanted in [
        format!("{id} leads to another document"),
        format!("{url} is stored and has no copy row"),
        format!("pages, row {url}: no document has this copy"),
    ] {
        assert!(told.listed.contains(&wanted), "no `{wanted}` among {:#?}", told.listed);
    }
}

#[test]
fn damage_in_all_tables_is_listed_at_once_and_the_command_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(&folder.path().join("store"));
    write(&store, |batch| {
        for table in OF_BYTES {
            spoil(batch, table, &[0xEE; 40]);
        }
        // A table full of faults hides none of another.
        for number in 1_000..1_150 {
            batch.put(UNSURE, number, &String::new()).unwrap();
        }
    });
    let found = findings(&store);
    for table in OF_BYTES {
        lists(&found, table.as_str(), "");
    }
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
    let snapshot = store.snapshot().unwrap();
    let rows = findings(&store).rows;
    let others = [
        Name::HostNumbers,
        Name::Schedule,
        Name::Revisits,
        Name::Inlinks,
        Name::Domains,
        Name::Patterns,
        Name::DocIds,
        Name::Unsure,
        Name::Reviews,
        Name::Counters,
    ];
    for table in OF_BYTES.into_iter().chain(others) {
        let name = table.as_str();
        assert!(snapshot.rows_of(table).unwrap() > 0, "{name} has no row in this test");
        assert!(rows.get(name).is_some_and(|rows| *rows > 0), "{name}: {rows:?}");
    }
}

#[test]
fn a_text_that_is_not_found_by_its_hash_is_listed_and_so_is_a_key_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    // What the log names is looked up by its row; all but the twin is in a segment as well.
    write(&store, |batch| batch.clear(INDEX_LOG, ..).unwrap());
    let last = store.snapshot().unwrap().last(CONTENTS).unwrap().unwrap().key().unwrap();
    assert_eq!(findings(&store).listed, [format!("content {last} is not found by its hash")]);
    write(&store, |batch| note(batch, Change { content: last, gone: false }));
    let (number, row) = {
        let snapshot = store.snapshot().unwrap();
        let first = snapshot.first(CONTENTS).unwrap().unwrap();
        (first.key().unwrap(), first.row().unwrap())
    };
    let other = Content { hash: row.hash ^ 1 << 127, ..row.clone() };
    write(&store, |batch| batch.put(CONTENTS, number, &other).unwrap());
    assert_eq!(findings(&store).listed, [format!("content {number} is not found by its hash")]);
    write(&store, |batch| drop(batch.take(CONTENTS, number).unwrap().unwrap()));
    let wanted = format!("the index names content {number}, which is missing");
    assert!(findings(&store).listed.contains(&wanted), "{:?}", findings(&store).listed);
    write(&store, |batch| batch.put(CONTENTS, number, &row).unwrap());
    assert_eq!(findings(&store).listed, Vec::<String>::new());
}

#[test]
fn a_text_that_more_pages_have_than_a_key_may_have_need_not_be_found_by_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    write(&store, |batch| batch.clear(INDEX_LOG, ..).unwrap());
    let (last, row) = {
        let snapshot = store.snapshot().unwrap();
        let last = snapshot.last(CONTENTS).unwrap().unwrap();
        (last.key().unwrap(), last.row().unwrap())
    };
    let faults = || findings(&store).faults;
    let add = |contents: Range<u64>| {
        write(&store, |batch| {
            for content in contents {
                batch.put(CONTENTS, content, &row).unwrap();
                write_body(batch, content, "a text", None).unwrap();
            }
        });
        faults()
    };
    assert_eq!(faults(), 1);
    // With the first and the last one they are as many as a key may have.
    let as_many = add(last + 1..last + 63);
    let more = add(last + 63..last + 64);
    // No copy carries the one that came. The last one is under another hash: that stays a fault.
    assert_eq!(more, as_many + 1 - 62);
}

#[test]
fn numbers_of_any_size_are_read_as_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    // Read as texts, those from 128 on were faults.
    let number = 200u64.to_be_bytes().to_vec();
    write(&store, |batch| {
        for name in ["next_content", "settled", "search_update"] {
            batch.put(META, name, &number).unwrap();
        }
    });
    assert_eq!(findings(&store).listed, Vec::<String>::new());
    write(&store, |batch| batch.put(META, "settled", &[0xFF].to_vec()).unwrap());
    lists(&findings(&store), "meta", "settled: ");
}

#[test]
fn a_document_that_ends_or_becomes_part_of_another_one_is_not_reviewed() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    let numbers: Vec<u64> = {
        let snapshot = store.snapshot().unwrap();
        snapshot.rows(DOCUMENTS).unwrap().map(|entry| entry.unwrap().key().unwrap()).collect()
    };
    write(&store, |batch| {
        for number in numbers.iter().copied() {
            batch.put(REVIEWS, number, &()).unwrap();
        }
        clusters::merge(batch, numbers[0], numbers[1], Timestamp(9)).unwrap();
        assert!(!batch.has(REVIEWS, numbers[0]).unwrap());
        clusters::end(batch, numbers[1], &mut clusters::Left::default()).unwrap();
        assert!(!batch.has(REVIEWS, numbers[1]).unwrap());
    });
}
