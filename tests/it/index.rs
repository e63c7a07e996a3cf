//! The rotated tables against a linear scan.

use proptest::prelude::*;
use uniqcrawl::index::{Field, K_MAX, Tables as Rotated};
use uniqcrawl::simhash::Fingerprint;
use uniqcrawl::store::Tables;

use crate::support::Crawled;

fn check(stored: &[u64], query: u64, k: u32, expected: &[u64]) {
    let store = Crawled::new().store;
    let txn = store.db().begin_write().unwrap();
    let mut tables = Tables::open(&txn).unwrap();
    for (number, fingerprint) in stored.iter().enumerate() {
        let rotated = Rotated::new(Field::Content);
        rotated.insert(&mut tables.near, Fingerprint(*fingerprint), number as u64).unwrap();
    }
    let found = Rotated::new(Field::Content).probe(&tables.near, Fingerprint(query), k).unwrap();
    let found: Vec<u64> = found.iter().map(|found| found.content).collect();
    assert_eq!(found, expected, "{stored:x?} near {query:x}");
    let titles = Rotated::new(Field::Title).probe(&tables.near, Fingerprint(query), k).unwrap();
    assert!(titles.is_empty(), "titles are kept apart from contents");
}

#[test]
fn three_bits_apart_is_found_and_four_is_not() {
    check(&[0b0111], 0, 3, &[0]);
    check(&[0b1111], 0, 3, &[]);
    check(&[1 | 1 << 16 | 1 << 32], 0, 3, &[0]);
    check(&[1 | 1 << 16 | 1 << 32 | 1 << 48], 0, 3, &[]);
}

#[test]
fn equal_fingerprints_of_different_contents_are_all_kept() {
    check(&[5, 5, 7], 5, 3, &[0, 1, 2]);
    check(&[5, 5, 7], 5, 0, &[0, 1]);
    check(&[u64::MAX, 0], u64::MAX, 3, &[0]);
}

#[test]
fn what_is_removed_is_no_longer_found() {
    let store = Crawled::new().store;
    let txn = store.db().begin_write().unwrap();
    let mut tables = Tables::open(&txn).unwrap();
    let (rotated, print) = (Rotated::new(Field::Content), Fingerprint(0xDEAD_BEEF));
    rotated.insert(&mut tables.near, print, 1).unwrap();
    rotated.insert(&mut tables.near, print, 2).unwrap();
    assert!(rotated.contains(&tables.near, print, 1).unwrap());
    rotated.remove(&mut tables.near, print, 1).unwrap();
    assert!(!rotated.contains(&tables.near, print, 1).unwrap());
    let found = rotated.probe(&tables.near, print, 3).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].content, found[0].distance), (2, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_tables_find_what_a_linear_scan_finds(
        base in any::<u64>(),
        flips in prop::collection::vec(prop::collection::vec(0u32..64, 0..6), 1..40),
        k in 0..=K_MAX,
    ) {
        let stored: Vec<u64> =
            flips.iter().map(|bits| bits.iter().fold(base, |print, bit| print ^ 1 << bit)).collect();
        let mut expected: Vec<(u32, u64)> = stored
            .iter()
            .enumerate()
            .map(|(number, print)| ((print ^ base).count_ones(), number as u64))
            .filter(|(distance, _)| *distance <= k)
            .collect();
        expected.sort_unstable();
        let expected: Vec<u64> = expected.into_iter().map(|(_, number)| number).collect();
        check(&stored, base, k, &expected);
    }
}
