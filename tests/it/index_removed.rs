//! Contents that were removed from a store while its index was open.

use std::sync::Mutex;

use uniqcrawl::corpus::dedup::{AskedAhead, CommittedContents, Keep as _, Lookup as _};
use uniqcrawl::corpus::index::{self, Index, lock};
use uniqcrawl::corpus::tables::CONTENTS;
use uniqcrawl::neardup::{Candidate, Config};
use uniqcrawl::store::{Batch, Store, Update as _};
use uniqcrawl::text::features::ArticleKeys;
use uniqcrawl::text::simhash::Fingerprint;
use uniqcrawl::text::sketch::{SLOTS, Sketch, mix};

use crate::index::{SMALL, keys, row};

/// Keys of a text that has some slots of its sketch in common with others of this kind, and nothing
/// else.
fn text(seed: u64, shares: impl Fn(usize) -> bool) -> ArticleKeys {
    let wide: [u64; SLOTS] = std::array::from_fn(|slot| {
        mix(if shares(slot) { 0 } else { seed << 32 } | 1 << 16 | slot as u64)
    });
    let mut made = keys(seed);
    made.title = None;
    made.text.shingles = 1_000;
    made.text.fingerprint = Fingerprint(mix(seed << 40));
    made.text.sentences = Box::from([mix(seed << 42) as u32]);
    made.text.sketch = Sketch {
        slots: Box::new(wide.map(|slot| slot as u8)),
        seconds: Some(Box::new(std::array::from_fn(|slot| (wide[slot] >> 8) as u8))),
    };
    made
}

fn commit(store: &Store, index: &Mutex<Index>, write: impl FnOnce(&mut Batch)) {
    let mut batch = store.begin().unwrap();
    write(&mut batch);
    lock(index).merge_some(&mut batch).unwrap();
    batch.commit().unwrap();
    lock(index).committed();
}

#[test]
fn what_was_compared_with_many_before_and_is_gone_hides_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    let index = Mutex::new(Index::open_with(&store, &Config::default(), SMALL).unwrap());
    let is_start = |slot: usize| slot < SLOTS / 2;
    // Each of thirty shares all bands with the article, and nothing behind them; the copy a few.
    let mut all: Vec<ArticleKeys> = (1..=30).map(|seed| text(seed, is_start)).collect();
    let copy = all.len() as u64 + 1;
    all.push(text(copy, |slot| !is_start(slot) || slot.is_multiple_of(2)));
    commit(&store, &index, |batch| {
        for (content, keys) in (1..).zip(&all) {
            batch.put(CONTENTS, content, &row(keys)).unwrap();
            index.insert(batch, content, keys);
        }
    });
    let article = text(99, |_| true);
    // By whoever stores it, and by whoever looks it up before.
    let found = || {
        let committed = CommittedContents::of(&store, &index).unwrap();
        let ahead = committed.look_up_all(&[&article], 1).unwrap();
        let batch = store.begin().unwrap();
        assert!(lock(&index).candidates_after(&ahead[0], &article).is_some());
        let after = AskedAhead { index: &index, found: [&ahead, &[]] };
        let found = [index.candidates(&batch, &article), after.candidates(&batch, &article)];
        found.map(Result::unwrap)
    };
    let has_copy = |found: &[Candidate]| found.iter().any(|one| one.content == copy);
    let [now, after] = found();
    assert_eq!(now, after);
    assert!(!has_copy(&now), "{now:?}");
    let looked_before = CommittedContents::of(&store, &index).unwrap();
    commit(&store, &index, |batch| {
        for content in 1..copy {
            batch.remove(CONTENTS, content).unwrap();
            index::note(batch, index::Change { content, gone: true });
            index.forget(content);
        }
    });
    // Whoever looks ahead in the state of before has them at hand once more.
    looked_before.look_up_all(&[&article], 1).unwrap();
    let [now, after] = found();
    assert!(has_copy(&now), "{now:?}");
    assert!(has_copy(&after), "{after:?}");
}
