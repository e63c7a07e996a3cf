//! The stored index of fingerprints: log and rotated tables.

use std::collections::BTreeSet;

use proptest::prelude::*;
use uniqcrawl::corpus::keys::{self, K_MAX};
use uniqcrawl::corpus::tables::NEAR;
use uniqcrawl::neardup::{Change, Field};
use uniqcrawl::store::Update as _;
use uniqcrawl::text::simhash::Fingerprint;

use crate::support::Crawled;

fn change(field: Field, fingerprint: u64, content: u64, removed: bool) -> Change {
    Change { field, fingerprint: Fingerprint(fingerprint), content, removed }
}

/// Writes each batch in a transaction of its own; folds after those that are marked.
fn write(store: &Crawled, batches: &[(Vec<Change>, bool)]) {
    for (changes, fold) in batches {
        let mut batch = store.store.begin().unwrap();
        keys::append(&mut batch, changes.iter().copied());
        if *fold {
            batch.commit().unwrap();
            batch = store.store.begin().unwrap();
            let mut all = keys::load(&batch).unwrap();
            keys::fold(&mut batch, &mut all).unwrap();
            assert_eq!(keys::load(&batch).unwrap(), {
                all.contents.sort_unstable();
                all.titles.sort_unstable();
                all
            });
        }
        batch.commit().unwrap();
    }
}

fn probe(store: &Crawled, field: Field, query: u64, k: u32) -> Vec<(u32, u64)> {
    let snapshot = store.store.snapshot().unwrap();
    keys::probe(&snapshot, field, Fingerprint(query), k).unwrap()
}

fn faults(store: &Crawled) -> Vec<(&'static str, String)> {
    let snapshot = store.store.snapshot().unwrap();
    keys::faults(&snapshot).unwrap()
}

#[test]
fn three_bits_apart_is_found_and_four_is_not_in_the_log_and_in_the_tables() {
    for fold in [false, true] {
        let store = Crawled::new();
        let prints = [0b0111, 0b1111, 1 | 1 << 16 | 1 << 32, 1 | 1 << 16 | 1 << 32 | 1 << 48];
        let add = |(at, print): (usize, &u64)| change(Field::Content, *print, at as u64, false);
        write(&store, &[(prints.iter().enumerate().map(add).collect(), fold)]);
        assert_eq!(probe(&store, Field::Content, 0, 3), [(3, 0), (3, 2)]);
        assert!(probe(&store, Field::Title, 0, 3).is_empty(), "titles are kept apart");
        assert!(faults(&store).is_empty());
    }
}

#[test]
fn a_damaged_table_is_found() {
    let store = Crawled::new();
    let batch = (0..50).map(|n| change(Field::Content, n << 40, n, false)).collect();
    write(&store, &[(batch, true)]);
    let mut batch = store.store.begin().unwrap();
    assert!(batch.remove(NEAR, (2, 0)).unwrap());
    batch.commit().unwrap();
    let faults = faults(&store);
    assert!(faults.iter().any(|(_, fault)| fault.contains("do not agree")), "{faults:?}");
}

#[test]
fn an_entry_that_went_and_came_back_is_there_once() {
    let store = Crawled::new();
    let steps = [false, true, false].map(|removed| change(Field::Title, 7, 1, removed));
    write(&store, &[(steps[..2].to_vec(), false), (steps[2..].to_vec(), false)]);
    let snapshot = store.store.snapshot().unwrap();
    let all = keys::load(&snapshot).unwrap();
    assert_eq!(all.titles, [(Fingerprint(7), 1)]);
    assert_eq!(probe(&store, Field::Title, 7, 0), [(0, 1)]);
}

#[test]
fn rows_in_another_order_or_place_are_found() {
    let row = |prints: &[u64]| -> Vec<u8> {
        let entry = |print: &u64| [&print.to_be_bytes()[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
        prints.iter().flat_map(entry).collect()
    };
    for (key, prints, wrong) in [
        ((0, 0), [1, 2], false),
        ((0, 0), [2, 1], true),
        ((0, 1), [1, 2], true),
        ((8, 0), [1, 2], true),
    ] {
        let store = Crawled::new();
        let mut batch = store.store.begin().unwrap();
        batch.put(NEAR, key, &row(&prints)).unwrap();
        batch.commit().unwrap();
        let faults = faults(&store);
        let found = faults.iter().any(|(_, fault)| fault.contains("not in order"));
        assert_eq!(found, wrong, "{key:?} {prints:?}: {faults:?}");
    }
}

#[test]
fn the_log_is_folded_when_it_has_outgrown_the_tables() {
    let store = Crawled::new();
    let mut next = 0;
    let mut log = |count: u64| {
        let batch = (next..next + count).map(|n| change(Field::Content, n, n, false));
        next += count;
        write(&store, &[(batch.collect(), false)]);
        let snapshot = store.store.snapshot().unwrap();
        keys::load(&snapshot).unwrap().is_fold_due()
    };
    assert!(!log((1 << 16) - 1) && log(1));
    write(&store, &[(Vec::new(), true)]);
    // As many again as there are.
    assert!(!log((1 << 16) - 1) && log(1));
    write(&store, &[(Vec::new(), true)]);
    assert!(!log(1 << 16) && !log((1 << 16) - 1) && log(1));
}

/// One number has two fingerprints at one distance, and the later one goes again.
#[test]
fn a_removal_hides_its_own_fingerprint_only() {
    let store = Crawled::new();
    let of = |bit: u32, removed| change(Field::Title, 1 << bit, 3, removed);
    write(&store, &[(vec![of(0, false)], false), (vec![of(43, false), of(43, true)], false)]);
    assert_eq!(probe(&store, Field::Title, 0, 3), [(1, 3)]);
}

type Step = (u8, Vec<u32>, u64);

/// Fingerprints near `base`, with what is done to them.
fn batches(base: u64, steps: &[Vec<Step>]) -> Vec<(Vec<Change>, bool)> {
    let make = |(kind, flips, content): &Step| {
        let print = flips.iter().fold(base, |print, bit| print ^ 1 << bit);
        let field = if kind & 1 == 1 { Field::Title } else { Field::Content };
        change(field, print, *content, kind & 6 == 6)
    };
    let folds = |batch: &Vec<Step>| batch.len().is_multiple_of(3);
    steps.iter().map(|batch| (batch.iter().map(make).collect(), folds(batch))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn log_and_tables_find_what_a_linear_scan_finds(
        base in any::<u64>(),
        steps in prop::collection::vec(
            prop::collection::vec((0u8..8, prop::collection::vec(0u32..64, 0..5), 0u64..9), 0..12),
            1..8,
        ),
        k in 0..=K_MAX,
    ) {
        let batches = batches(base, &steps);
        let mut model: BTreeSet<(Field, u64, u64)> = BTreeSet::new();
        // An entry is added once: the committer gives each content a number of its own.
        let mut valid = Vec::new();
        for (changes, fold) in batches {
            let mut kept = Vec::new();
            for change in changes {
                let key = (change.field, change.fingerprint.0, change.content);
                let fits = if change.removed { model.remove(&key) } else { model.insert(key) };
                if fits {
                    kept.push(change);
                }
            }
            valid.push((kept, fold));
        }
        let store = Crawled::new();
        write(&store, &valid);
        let mut all = {
            let snapshot = store.store.snapshot().unwrap();
            keys::load(&snapshot).unwrap()
        };
        all.contents.sort_unstable();
        all.titles.sort_unstable();
        for (field, loaded) in [(Field::Content, &all.contents), (Field::Title, &all.titles)] {
            let of_field = model.iter().filter(|(of, _, _)| *of == field);
            let expected: Vec<(Fingerprint, u64)> =
                of_field.map(|(_, print, content)| (Fingerprint(*print), *content)).collect();
            prop_assert_eq!(loaded, &expected);
        }
        for field in [Field::Content, Field::Title] {
            let mut expected: Vec<(u32, u64)> = model
                .iter()
                .filter(|(of, _, _)| *of == field)
                .map(|(_, print, content)| ((print ^ base).count_ones(), *content))
                .filter(|(distance, _)| *distance <= k)
                .collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(probe(&store, field, base, k), expected);
        }
        prop_assert!(faults(&store).is_empty());
    }
}
