//! Documents that lose, swallow or outlive their copies.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::{self, Match, Place};
use uniqcrawl::corpus::dedup::Corpus as _;
use uniqcrawl::corpus::documents::{changes_of, copies_of, read_body};
use uniqcrawl::corpus::export::{Config, JSONL, Target, export};
use uniqcrawl::corpus::index;
use uniqcrawl::corpus::tables::{DOC_IDS, DOCUMENTS, UNSURE};
use uniqcrawl::neardup::Key;
use uniqcrawl::store::{Batch, Name, Reading as _, Snapshot, Update as _, View as _};

use crate::shelf::Shelf;
use crate::support::{clusters, prose};

#[test]
fn pages_under_one_title_part_at_the_second_look_and_their_copies_go_with_them() {
    let mut shelf = Shelf::new();
    let boilerplate = prose(99, 200);
    let page = |n: u64| format!("{boilerplate} {}", prose(n, 100));
    for n in 0..6 {
        shelf.add_titled(&format!("http://site/{n}"), "News of the town", &page(n));
    }
    // An exact and a near copy of the fourth page.
    shelf.add_titled("http://copy/3", "News of the town", &page(3));
    let near = format!("{} Printed at nine.", page(3));
    shelf.add_titled("http://near/3", "News of the town", &near);
    assert!(clusters(&shelf.crawled.store).len() < 6, "nothing tells the pages apart at first");
    assert!(shelf.look_again() > 0);
    let found = clusters(&shelf.crawled.store);
    assert_eq!(found.len(), 6);
    let sizes: Vec<usize> = found.values().map(std::collections::BTreeSet::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 8);
    let three = found.values().find(|copies| copies.contains("http://near/3")).unwrap();
    assert!(three.contains("http://copy/3") && three.contains("http://site/3"), "{three:?}");
    shelf.look_again();
    assert_eq!(clusters(&shelf.crawled.store), found, "a third look changes nothing");
}

#[test]
fn merged_documents_are_one_and_both_identifiers_lead_to_it() {
    let mut shelf = Shelf::new();
    let (first, second) =
        (shelf.add("http://a/1", &prose(1, 80)), shelf.add("http://b", &prose(2, 80)));
    shelf.add("http://a/1/copy", &prose(1, 80));
    shelf.add("http://b/near", &format!("{} And more.", prose(2, 80)));
    let id = |number: u64| {
        let snapshot = shelf.crawled.store.snapshot().unwrap();
        snapshot.get(DOCUMENTS, number).unwrap().unwrap().id
    };
    let ids = [id(first), id(second)];
    // A leaf whose match was less than certain hangs by a decision now.
    shelf.write(|snapshot| snapshot.put(UNSURE, 1, &String::new()).unwrap());
    let moved = shelf.write(|snapshot| {
        assert!(clusters::merge(snapshot, first, first, Timestamp(50)).is_err());
        clusters::merge(snapshot, first, second, Timestamp(50)).unwrap()
    });
    assert_eq!(moved, ["http://a/1", "http://a/1/copy"]);
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    for id in ids {
        assert_eq!(snapshot.get(DOC_IDS, id).unwrap().unwrap(), second);
    }
    assert_eq!(snapshot.len(UNSURE).unwrap(), 0);
    let document = snapshot.get(DOCUMENTS, second).unwrap().unwrap();
    assert_eq!((document.copies, document.canonical.as_str()), (4, "http://b"));
    let keys: Vec<Key> =
        copies_of(&snapshot, second).unwrap().into_iter().map(|(_, copy)| copy.key).collect();
    assert_eq!(keys, [Key::Merged, Key::Exact, Key::First, Key::Near]);
}

/// Contents that the index names.
fn indexed(snapshot: &Snapshot) -> BTreeSet<u64> {
    let stored = index::fingerprints(snapshot, ..).unwrap().contents;
    let mut all: BTreeSet<u64> = stored.iter().map(|posting| posting.content).collect();
    for change in index::changes(snapshot).unwrap() {
        if change.gone {
            all.remove(&change.content);
        } else {
            all.insert(change.content);
        }
    }
    all
}

#[test]
fn a_document_ends_as_a_whole_when_nothing_new_came_for_long() {
    let mut shelf = Shelf::new();
    let old = shelf.add("http://old", &prose(1, 80));
    shelf.add("http://old/near", &format!("{} More.", prose(1, 80)));
    let kept = shelf.add("http://kept", &prose(2, 80));
    shelf.add("http://kept/copy", &prose(2, 80));
    let ended = shelf.write(|snapshot| clusters::expire(snapshot, Timestamp(3)).unwrap());
    assert_eq!((ended.documents, ended.addresses.len()), (1, 2));
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    assert!(snapshot.get(DOCUMENTS, old).unwrap().is_none());
    assert!(snapshot.get(DOCUMENTS, kept).unwrap().is_some());
    assert_eq!(indexed(&snapshot).len(), 1, "the index forgets it as well");
    // The newest copy of the other one came at 4: it is not older than that.
    let ended = shelf.write(|snapshot| clusters::expire(snapshot, Timestamp(4)).unwrap());
    assert_eq!(ended.documents, 0);
}

#[test]
fn nothing_is_left_of_documents_that_ended() {
    let mut shelf = Shelf::new();
    let (first, second) =
        (shelf.add("http://a/long/one", &prose(1, 80)), shelf.add("http://b/", &prose(2, 80)));
    // The shorter address takes over, which is history.
    shelf.add("http://a/", &prose(1, 80));
    shelf.add("http://b/near", &format!("{} And more.", prose(2, 80)));
    shelf.write(|snapshot| {
        let changes = changes_of(snapshot, first).unwrap();
        assert_eq!(changes.len(), 1);
        clusters::merge(snapshot, first, second, Timestamp(50)).unwrap();
        let moved = changes_of(snapshot, second).unwrap();
        assert_eq!(moved[0], changes[0], "it goes along");
        let last = (moved[1].time.0, moved[1].from.as_str(), moved[1].to.as_str());
        assert_eq!((last, moved.len()), ((50, "http://b/", "http://a/"), 2));
    });
    shelf.write(|snapshot| clusters::expire(snapshot, Timestamp(99)).unwrap());
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    for table in [
        Name::Documents,
        Name::DocIds,
        Name::Copies,
        Name::Contents,
        Name::Bodies,
        Name::Unsure,
        Name::History,
    ] {
        assert_eq!(snapshot.rows_of(table).unwrap(), 0, "{table:?}");
    }
    assert_eq!(indexed(&snapshot), BTreeSet::new());
}

#[test]
fn a_leaf_may_move_to_a_younger_tree_and_is_looked_at_again_if_that_is_unsure() {
    let mut shelf = Shelf::new();
    shelf.add("http://a/", &prose(1, 80));
    let near = format!("{} And more.", prose(1, 80));
    let from = shelf.add("http://a/near", &near);
    let into = shelf.add("http://b/", &prose(2, 80));
    let place = |document, sure| {
        let (key, distance, similarity) = (Key::Shingles, 9, 0.5);
        Place::Tree(Match { document, same: None, key, distance, similarity, sure })
    };
    let now = Timestamp(9);
    shelf.write(|snapshot| {
        let moved = clusters::replace(snapshot, 2, &place(into, false), now).unwrap().unwrap();
        assert_eq!((moved.from, moved.document), (from, into));
        assert_eq!(moved.addresses, ["http://a/near"]);
        clusters::recount(snapshot, from, now).unwrap();
    });
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    assert_eq!(read_body(&snapshot, 2).unwrap(), Some(near));
    drop(snapshot);
    assert_eq!(unsure_of(&shelf), [2]);
    for (sure, left) in [(false, &[2][..]), (true, &[])] {
        shelf.write(|snapshot| {
            assert_eq!(clusters::replace(snapshot, 2, &place(into, sure), now).unwrap(), None);
        });
        assert_eq!(unsure_of(&shelf), left, "its own tree would take it again");
    }
    let copies = clusters(&shelf.crawled.store);
    assert_eq!(copies["http://b/"].len(), 2);
}

fn unsure_of(shelf: &Shelf) -> Vec<u64> {
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    snapshot.rows(UNSURE).unwrap().map(|entry| entry.unwrap().key().unwrap()).collect()
}

#[test]
fn the_history_of_canonical_copies_is_kept() {
    let mut shelf = Shelf::new();
    let document = shelf.add("http://long.example/article", &prose(1, 80));
    shelf.add("http://short/a", &prose(1, 80));
    shelf.write(|snapshot| {
        let links = |snapshot: &mut Batch, count, time| {
            let address = "http://long.example/article";
            clusters::set_links(snapshot, document, address, count, Timestamp(time)).unwrap()
        };
        assert!(links(snapshot, 5, 70));
        assert!(!links(snapshot, 6, 71), "it is canonical already");
    });
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    let changes = changes_of(&snapshot, document).unwrap();
    let changes: Vec<(i64, &str, &str)> = changes
        .iter()
        .map(|change| (change.time.0, change.from.as_str(), change.to.as_str()))
        .collect();
    let (long, short) = ("http://long.example/article", "http://short/a");
    assert_eq!(changes, [(2, long, short), (70, short, long)]);
}

#[test]
fn identifiers_lead_to_the_last_of_a_chain_of_mergers() {
    let mut shelf = Shelf::new();
    let numbers: Vec<u64> =
        (0..4).map(|n| shelf.add(&format!("http://a/{n}"), &prose(n, 80))).collect();
    let ids: Vec<_> = numbers
        .iter()
        .map(|number| {
            let snapshot = shelf.crawled.store.snapshot().unwrap();
            snapshot.get(DOCUMENTS, *number).unwrap().unwrap().id
        })
        .collect();
    shelf.write(|snapshot| {
        for pair in numbers.windows(2) {
            clusters::merge(snapshot, pair[0], pair[1], Timestamp(50)).unwrap();
        }
        let back = clusters::merge(snapshot, numbers[3], numbers[0], Timestamp(51));
        assert!(back.is_err(), "nothing leads back into what was merged");
    });
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    for id in ids {
        assert_eq!(snapshot.get(DOC_IDS, id).unwrap().unwrap(), numbers[3]);
    }
    assert_eq!(snapshot.len(DOCUMENTS).unwrap(), 1);
}

/// What may happen to a shelf of pages.
#[derive(Debug, Clone)]
enum Step {
    Add(u8, u8),
    Links(u8, u8),
    Leave(u8),
    Merge(u8, u8),
    LookAgain,
}

fn step() -> impl Strategy<Value = Step> {
    let small = 0..9_u8;
    prop_oneof![
        6 => (small.clone(), small.clone()).prop_map(|(text, form)| Step::Add(text, form)),
        6 => (0..30_u8, small.clone()).prop_map(|(copy, links)| Step::Links(copy, links)),
        2 => (0..30_u8).prop_map(Step::Leave),
        1 => (small.clone(), small).prop_map(|(from, into)| Step::Merge(from, into)),
        1 => Just(Step::LookAgain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn whatever_happens_every_copy_names_one_document_that_is_no_copy_itself(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (mut shelf, mut links) = (Shelf::new(), BTreeMap::new());
        for (number, step) in (1_000..).zip(steps) {
            let held = copies(&shelf);
            let now = Timestamp(number);
            match step {
                Step::Add(text, form) => {
                    let form = if form < 4 { String::new() } else { format!(" Form {form}.") };
                    let text = format!("{}{form}", prose(text.into(), 80));
                    shelf.add(&format!("http://h/{number}"), &text);
                }
                Step::Links(copy, more) if !held.is_empty() => {
                    let (document, address) = &held[usize::from(copy) % held.len()];
                    // Links only grow in number.
                    let links = links.entry(address.clone()).or_insert(0_u64);
                    *links += u64::from(more);
                    shelf.write(|snapshot| {
                        clusters::set_links(snapshot, *document, address, *links, now).unwrap();
                    });
                }
                Step::Leave(copy) if !held.is_empty() => {
                    let (document, address) = &held[usize::from(copy) % held.len()];
                    shelf.write(|batch| {
                        shelf.placer(batch, now).leave(*document, address).unwrap();
                    });
                }
                Step::Merge(from, into) if !held.is_empty() => {
                    let from = held[usize::from(from) % held.len()].0;
                    let into = held[usize::from(into) % held.len()].0;
                    shelf.write(|snapshot| {
                        assert_eq!(clusters::merge(snapshot, from, into, now).is_ok(), from != into);
                    });
                }
                Step::LookAgain => {
                    shelf.look_again();
                }
                _ => {}
            }
        }
        // What is exported is flat: a dropped copy names a kept page, and no kept page is dropped.
        let folder = tempfile::tempdir().unwrap();
        let form = Target { format: &JSONL, folder: folder.path() };
        export(&shelf.crawled.store, form, &Config::default(), Timestamp(9)).unwrap();
        let rows = |file: &str, field: &str| -> Vec<String> {
            let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
            let row = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
            text.lines().map(|line| row(line)[field].as_str().unwrap().to_owned()).collect()
        };
        let kept: BTreeSet<String> = rows("documents.jsonl", "url").into_iter().collect();
        let dropped = rows("duplicates.jsonl", "url");
        prop_assert!(rows("duplicates.jsonl", "canonical").iter().all(|url| kept.contains(url)));
        prop_assert!(dropped.iter().all(|url| !kept.contains(url)));
        prop_assert_eq!(kept.len() + dropped.len(), copies(&shelf).len());
    }
}

/// Document and address of every copy.
fn copies(shelf: &Shelf) -> Vec<(u64, String)> {
    let snapshot = shelf.crawled.store.snapshot().unwrap();
    let rows = snapshot.rows(DOCUMENTS).unwrap().map(|entry| entry.unwrap().key().unwrap());
    let of = |document| copies_of(&snapshot, document).unwrap().into_iter();
    rows.flat_map(|document| of(document).map(move |(address, _)| (document, address))).collect()
}
