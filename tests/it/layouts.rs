//! Every in-memory index layout against a linear scan.

use std::collections::BTreeSet;

use proptest::prelude::*;
use uniqcrawl::neardup::Config;
use uniqcrawl::neardup::index::layout::{Layout, LayoutKind, Near, build};
use uniqcrawl::neardup::index::linear::Linear;
use uniqcrawl::neardup::index::rotated::Rotated;
use uniqcrawl::neardup::index::simd::{self, Level};
use uniqcrawl::text::simhash::Fingerprint;

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Insert(u64, u32),
    InsertAll(Vec<(u64, u32)>),
    Remove(u64, u32),
    /// Removes the entry at this place of the model, if there is any.
    RemoveAt(usize),
    /// Inserts again what is at this place of the model.
    Again(usize),
    Probe(u64),
}

/// Some fingerprints around few centres, some that share a block of 16 bits, some anywhere.
fn word() -> impl Strategy<Value = u64> {
    let centre = prop::sample::select(vec![0, u64::MAX, 0x0123_4567_89AB_CDEF]);
    let near = (centre, prop::collection::vec(0u32..64, 0..14))
        .prop_map(|(word, bits)| bits.iter().fold(word, |word, bit| word ^ 1 << bit));
    let skewed = (any::<u64>(), 0u32..4).prop_map(|(word, block)| {
        let mask = 0xFFFFu64 << (16 * block);
        word & !mask | 0xBEEF_BEEF_BEEF_BEEF & mask
    });
    prop_oneof![6 => near, 2 => skewed, 1 => any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    let entry = || (word(), 0u32..6);
    prop_oneof![
        4 => entry().prop_map(|(word, number)| Step::Insert(word, number)),
        3 => prop::collection::vec(entry(), 0..60).prop_map(Step::InsertAll),
        1 => entry().prop_map(|(word, number)| Step::Remove(word, number)),
        4 => any::<usize>().prop_map(Step::RemoveAt),
        2 => any::<usize>().prop_map(Step::Again),
        4 => word().prop_map(Step::Probe),
    ]
}

/// What a layout holds before a history begins.
fn entries() -> impl Strategy<Value = Vec<(Fingerprint, u32)>> {
    prop::collection::vec((word().prop_map(Fingerprint), 0u32..6), 0..300)
}

type Model = BTreeSet<(Fingerprint, u32)>;

fn scan(model: &Model, query: Fingerprint, k: u32) -> Vec<Near> {
    let near = |(fingerprint, number): &(Fingerprint, u32)| {
        let distance = fingerprint.distance(query);
        Near { number: *number, fingerprint: *fingerprint, distance }
    };
    let mut found: Vec<Near> = model.iter().map(near).filter(|near| near.distance <= k).collect();
    found.sort_unstable();
    found
}

fn compare(layout: &dyn Layout, model: &Model, query: Fingerprint) {
    let others = [Fingerprint(!query.0), query, Fingerprint(query.0 ^ 0x8001_8001)];
    for k in 0..=layout.k_max() {
        let mut all = Vec::new();
        layout.probe_all(&others, k, &mut all);
        all.sort_unstable();
        let expected = others.iter().enumerate().flat_map(|(place, query)| {
            scan(model, *query, k).into_iter().map(move |near| (place, near))
        });
        assert_eq!(all, expected.collect::<Vec<_>>());
        let mut found = Vec::new();
        layout.probe(query, k, &mut found);
        found.sort_unstable();
        assert_eq!(found, scan(model, query, k), "{query} within {k}");
    }
    assert_eq!((layout.len(), layout.is_empty()), (model.len(), model.is_empty()));
}

fn at(model: &Model, place: usize) -> Option<(Fingerprint, u32)> {
    model.iter().nth(place % model.len().max(1)).copied()
}

/// Plays the history, after entries enough to fill what a layout keeps unsorted.
fn play(layout: &mut dyn Layout, first: &[(Fingerprint, u32)], steps: &[Step]) {
    let mut model: Model = first.iter().copied().collect();
    layout.insert_all(first);
    for step in steps {
        match step {
            Step::Insert(word, number) => {
                layout.insert(Fingerprint(*word), *number);
                model.insert((Fingerprint(*word), *number));
            }
            Step::InsertAll(entries) => {
                let entries = entries.iter().map(|(word, number)| (Fingerprint(*word), *number));
                let entries: Vec<_> = entries.collect();
                layout.insert_all(&entries);
                model.extend(entries);
            }
            Step::Remove(word, number) => {
                let there = model.remove(&(Fingerprint(*word), *number));
                assert_eq!(layout.remove(Fingerprint(*word), *number), there);
            }
            Step::RemoveAt(place) => {
                if let Some(entry) = at(&model, *place) {
                    assert!(layout.remove(entry.0, entry.1));
                    assert!(!layout.remove(entry.0, entry.1));
                    model.remove(&entry);
                }
            }
            Step::Again(place) => {
                if let Some(entry) = at(&model, *place) {
                    layout.insert(entry.0, entry.1);
                }
            }
            Step::Probe(word) => compare(layout, &model, Fingerprint(*word)),
        }
    }
    compare(layout, &model, Fingerprint(0));
}

/// Inserts entries into a layout and its model, as one batch or one by one.
fn insert(
    layout: &mut dyn Layout,
    model: &mut Model,
    entries: Vec<(Fingerprint, u32)>,
    batch: bool,
) {
    if batch {
        layout.insert_all(&entries);
    } else {
        for (word, number) in &entries {
            layout.insert(*word, *number);
        }
    }
    model.extend(entries);
}

/// Removes the entries of the model that `leaves` chooses.
fn remove_some(
    layout: &mut dyn Layout,
    model: &mut Model,
    mut leaves: impl FnMut(&(Fingerprint, u32)) -> bool,
) {
    model.retain(|entry| {
        let left = leaves(entry);
        assert!(!left || layout.remove(entry.0, entry.1));
        !left
    });
}

/// A generator for entries that need no shrinking (splitmix64).
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Flips `count` different bits.
fn flipped(word: u64, count: u32, random: &mut impl FnMut() -> u64) -> u64 {
    let mut mask = 0u64;
    while mask.count_ones() < count {
        mask |= 1 << (random() % 64);
    }
    word ^ mask
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_layout_finds_what_a_linear_scan_finds(
        first in entries(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        for kind in LayoutKind::ALL.into_iter().filter(|kind| *kind != LayoutKind::QueryExpansion) {
            play(&mut *build(kind, kind.k_max()).unwrap(), &first, &steps);
        }
    }

    #[test]
    fn every_level_finds_what_plain_rust_finds(
        words in prop::collection::vec(word(), 0..200),
        query in word(),
        k in 0u32..=64,
    ) {
        let found = |level| {
            let mut found = Vec::new();
            simd::near(level, &words, query, k, &mut |row| found.push(row));
            found
        };
        let near = |word: &u64| (word ^ query).count_ones() <= k;
        let expected: Vec<usize> = (0..words.len()).filter(|row| near(&words[*row])).collect();
        for level in Level::available() {
            prop_assert_eq!(found(level), expected.clone(), "{:?}", level);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn query_expansion_finds_what_a_linear_scan_finds(
        first in entries(),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        play(&mut *build(LayoutKind::QueryExpansion, 3).unwrap(), &first, &steps);
    }
}

/// More entries than stay unsorted: packed parts, joins, marks of removal, on every level.
#[test]
fn packed_parts_stay_exact_while_entries_come_and_go() {
    for level in Level::available() {
        let mut next = random(7);
        let (mut layout, mut model) = (Rotated::with_level(level), Model::new());
        let centre = next();
        for round in 0..40 {
            let mut batch = Vec::new();
            for _ in 0..(if round % 10 == 0 { 6_000 } else { 700 }) {
                let bits = (next() % 16) as u32;
                let word = match next() % 3 {
                    0 => next(),
                    1 => flipped(centre, bits, &mut next),
                    _ => next() & 0xFFFF_FFFF | centre << 32,
                };
                batch.push((Fingerprint(word), (next() % 3) as u32));
            }
            insert(&mut layout, &mut model, batch, round % 3 == 0);
            let share = if round == 30 { 2 } else { 20 };
            remove_some(&mut layout, &mut model, |_| next().is_multiple_of(share));
            for _ in 0..2 {
                let bits = (next() % 4) as u32;
                let query = Fingerprint(flipped(centre, bits, &mut next));
                compare(&layout, &model, query);
            }
        }
        layout.pack();
        compare(&layout, &model, Fingerprint(centre));
        remove_some(&mut layout, &mut model, |_| true);
        compare(&layout, &model, Fingerprint(centre));
    }
}

/// The other layouts beyond their unsorted lists, one by one and in batches.
#[test]
fn sorted_tables_stay_exact_while_entries_come_and_go() {
    for (kind, k) in [(LayoutKind::Pairs, 3), (LayoutKind::TwoLevel, 3), (LayoutKind::Expanded, 1)]
    {
        let mut next = random(11);
        let (mut layout, mut model) = (build(kind, k).unwrap(), Model::new());
        for round in 0..6 {
            let mut entry = |_| {
                let bits = (next() % 6) as u32;
                (Fingerprint(flipped(0xABCD, bits, &mut next)), (next() % 2) as u32)
            };
            let batch: Vec<_> = (0..5_000).map(&mut entry).collect();
            insert(&mut *layout, &mut model, batch, round % 2 == 0);
            remove_some(&mut *layout, &mut model, |_| next().is_multiple_of(3));
            for _ in 0..3 {
                compare(&*layout, &model, Fingerprint(flipped(0xABCD, 2, &mut next)));
            }
        }
    }
}

#[test]
fn planted_neighbours_are_all_found_among_200_000() {
    let mut next = random(3);
    let entries: Vec<_> = (0..200_000).map(|number| (Fingerprint(next()), number)).collect();
    for kind in LayoutKind::ALL {
        // Two bits of expansion would be 5 GB here.
        let k_max = if kind == LayoutKind::Expanded { 1 } else { kind.k_max().min(12) };
        let mut layout = build(kind, k_max).unwrap();
        layout.insert_all(&entries);
        assert_eq!(layout.len(), entries.len());
        assert!(layout.bytes() > 8 * entries.len(), "{kind}");
        for k in 0..=k_max {
            let queries = match kind {
                LayoutKind::QueryExpansion => 5,
                LayoutKind::Linear => 20,
                _ => 100,
            };
            for (fingerprint, number) in entries.iter().step_by(1_999).take(queries) {
                let query = Fingerprint(flipped(fingerprint.0, k, &mut next));
                let mut found = Vec::new();
                layout.probe(query, k, &mut found);
                let planted = Near { number: *number, fingerprint: *fingerprint, distance: k };
                let count = found.iter().filter(|near| **near == planted).count();
                assert_eq!(count, 1, "{kind}: {fingerprint} at {k}");
            }
        }
    }
}

#[test]
fn a_packed_fingerprint_takes_28_bytes_and_the_directories() {
    let mut next = random(5);
    let entries: Vec<_> = (0..100_000).map(|number| (Fingerprint(next()), number)).collect();
    let mut layout = Rotated::new();
    layout.insert_all(&entries);
    assert!(layout.bytes() <= 28 * entries.len() + 4 * 4 * 65_537 + 1_024, "{}", layout.bytes());
}

#[test]
fn a_list_is_numbered_by_place() {
    let mut next = random(13);
    let words: Vec<u64> = (0..500).map(|_| next()).collect();
    let entries: Vec<_> = (0..).zip(&words).map(|(at, word)| (Fingerprint(*word), at)).collect();
    let list = Linear::numbered(words);
    assert_eq!(list.len(), entries.len());
    compare(&list, &entries.iter().copied().collect(), entries[432].0);
}

#[test]
fn a_distance_that_a_layout_cannot_find_is_refused() {
    let refused = |kind, k| build(kind, k).err().unwrap().to_string();
    let says = "the index layout rotated finds at most 11 differing bits, not 12";
    assert_eq!(refused(LayoutKind::Rotated, 12), says);
    let says = "the index layout two-level finds at most 3 differing bits, not 4";
    assert_eq!(refused(LayoutKind::TwoLevel, 4), says);
    for (kind, largest) in LayoutKind::ALL.into_iter().zip([11, 3, 3, 3, 2, 64]) {
        assert!(build(kind, largest).unwrap().k_max() >= largest);
        assert_eq!(build(kind, largest + 1).err().unwrap().largest, largest);
    }
    // What lies in a store is asked in four rotations, whatever the layout in memory.
    let far = |k| Config { k, layout: LayoutKind::Linear, ..Config::default() }.check();
    far(11).unwrap();
    let says = "k is 12: fingerprints are found within 11 bits at most";
    assert_eq!(far(12).unwrap_err().to_string(), says);
}

#[test]
fn names_of_layouts_are_read_back() {
    for kind in LayoutKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        let json = serde_json::to_string(&kind).unwrap();
        assert_eq!(json, format!("\"{kind}\""));
        assert_eq!(serde_json::from_str::<LayoutKind>(&json).unwrap(), kind);
    }
    let says = "no index layout is called \"tree\"; there are rotated, pairs, two-level, \
                query-expansion, expanded, linear";
    assert_eq!("tree".parse::<LayoutKind>().unwrap_err().to_string(), says);
}
