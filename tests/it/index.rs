//! The index of a store: contents that come and go, crashes between, and what a stranger finds in
//! the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::dedup::{
    AskedAhead, CommittedContents, Keep as _, Lookup as _, settle_after,
};
use uniqcrawl::corpus::documents::Content;
use uniqcrawl::corpus::index::{self, Index, LookedAhead, Sizes};
use uniqcrawl::corpus::tables::{CONTENTS, INDEX_LOG, KEYS, MERGES, NEAR, SEGMENTS};
use uniqcrawl::neardup::segment::{BYTES_MAX, bytes_of_pages};
use uniqcrawl::neardup::{Candidate, Config, Finder, Resemblance, Sieve};
use uniqcrawl::store::{Batch, Store, Update as _, View as _};
use uniqcrawl::text::features::{ArticleKeys, KindHashes, Standing, TextKeys};
use uniqcrawl::text::simhash::Fingerprint;
use uniqcrawl::text::sketch::{SLOTS, Sketch, mix};

/// Parts so small that some hundred contents are merged several times.
pub(crate) const SMALL: Sizes = Sizes { tail: 9, step: 1, block_bytes: 400, more_filters: 0 };

/// Keys of a text of one of some kinds, so that many have something in common.
pub(crate) fn keys(seed: u64) -> ArticleKeys {
    let kind = seed % 23;
    let wide: [u64; SLOTS] = std::array::from_fn(|slot| {
        let is_own = !mix(seed << 16 | slot as u64).is_multiple_of(3);
        if is_own { mix(seed << 20 | slot as u64) } else { mix(kind << 32 | slot as u64) }
    });
    let sketch = Sketch {
        slots: Box::new(wide.map(|slot| slot as u8)),
        seconds: Some(Box::new(std::array::from_fn(|slot| (wide[slot] >> 8) as u8))),
    };
    let bit = |at: u64| 1 << (mix(seed ^ at << 40) % 64);
    let near = |own: u64| Fingerprint(mix(own << 8 | kind) ^ bit(1) ^ bit(2));
    let text = TextKeys {
        // Two of three have a twin.
        hash: u128::from(mix(seed / 3)) << 64 | u128::from(seed / 3),
        fingerprint: near(1),
        sketch,
        shingles: 100,
        words: 100,
        sentences: Box::from([mix(seed) as u32, mix(kind) as u32]),
        others: KindHashes::default(),
    };
    let title = (!seed.is_multiple_of(5)).then(|| near(2));
    ArticleKeys { text, title, standing: Standing::default() }
}

pub(crate) fn row(keys: &ArticleKeys) -> Content {
    Content {
        document: 1,
        hash: keys.text.hash,
        fingerprint: keys.text.fingerprint,
        title_fingerprint: keys.title,
        words: keys.text.words,
        shingles: keys.text.shingles,
        copies: 1,
        arrival: Timestamp(0),
        site: 0,
        edition: 0,
        sketch: keys.text.sketch.clone(),
        sentences: keys.text.sentences.to_vec(),
        others: Vec::new(),
    }
}

/// Returns how like any article a content looks.
fn resemblance(content: u64) -> Resemblance {
    use Resemblance::{Alike, Chance, Unlike};
    [Alike, Chance, Unlike, Chance][content as usize % 4]
}

/// Returns the candidates that a judge reads.
fn read(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut sieve = Sieve::of(&Config::default());
    candidates.retain(|one| {
        !one.weak || (!sieve.is_done() && sieve.lets_through(Some(resemblance(one.content))))
    });
    candidates
}

pub(crate) struct Indexed {
    folder: tempfile::TempDir,
    pub store: Store,
    index: Index,
    live: BTreeMap<u64, ArticleKeys>,
    next: u64,
    /// An older version has left its log, so that not all is told at first.
    is_old: bool,
    /// Articles that were looked up in the last batch.
    ahead: Option<(Vec<LookedAhead>, Vec<ArticleKeys>)>,
}

impl Indexed {
    pub(crate) fn new(sizes: Sizes) -> Self {
        Self::within(16 << 20, sizes)
    }

    fn within(cache_bytes: usize, sizes: Sizes) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(folder.path(), cache_bytes).unwrap();
        let index = Index::open_with(&store, &Config::default(), sizes).unwrap();
        Self { folder, store, index, live: BTreeMap::new(), next: 1, is_old: false, ahead: None }
    }

    /// One batch: contents that come and contents that go. Returns what is there after it.
    pub(crate) fn write(&mut self, come: u64, go: &[u64], commit: bool) {
        let mut batch = self.store.begin().unwrap();
        let mut live = self.live.clone();
        let mut next = self.next;
        let coming: Vec<ArticleKeys> =
            (next..next + come + 9).chain([3, 77, 150]).map(keys).collect();
        let asked: Vec<&ArticleKeys> = coming.iter().collect();
        let compare = |_: &ArticleKeys, content| Ok(Some(resemblance(content)));
        // Those that were looked up before the last commit are looked for behind it.
        if let Some((ahead, coming)) = self.ahead.take() {
            self.check_ahead(&batch, &ahead, &coming);
        }
        let ahead = self
            .index
            .older()
            .look_up(&self.store.snapshot().unwrap(), &asked, 3, compare)
            .unwrap();
        for _ in 0..come {
            let keys = keys(next);
            batch.put(CONTENTS, next, &row(&keys)).unwrap();
            self.index.insert(&mut batch, next, &keys);
            live.insert(next, keys);
            next += 1;
        }
        self.check_ahead(&batch, &ahead, &coming);
        for content in go {
            if live.remove(content).is_some() {
                batch.remove(CONTENTS, *content).unwrap();
                index::note(&mut batch, index::Change { content: *content, gone: true });
                self.index.forget(*content);
            }
        }
        let is_true = live.len() == self.live.len() + come as usize;
        let is_told = self.index.candidates_after(&ahead[0], &coming[0]).is_some();
        assert!(is_told == is_true || self.is_old && !is_told);
        self.index.merge_some(&mut batch).unwrap();
        if commit {
            batch.commit().unwrap();
            self.index.committed();
            (self.live, self.next) = (live, next);
            // Some that are found may have gone, sooner or later.
            let nothing_went = self.live.len() as u64 + 1 == self.next;
            self.ahead = nothing_went.then_some((ahead, coming));
        }
    }

    fn reopen(&mut self, sizes: Sizes) {
        self.index = Index::open_with(&self.store, &Config::default(), sizes).unwrap();
        // What another index has found is nothing to this one.
        let (ahead, asked) = self.ahead.take().unwrap_or_default();
        for (ahead, asked) in ahead.iter().zip(&asked) {
            assert_eq!(self.index.candidates_after(ahead, asked), None);
            assert_eq!(self.index.equal_texts_after(ahead, asked.text.hash), None);
        }
    }

    pub(crate) fn flush(&mut self) {
        let mut batch = self.store.begin().unwrap();
        self.index.flush(&mut batch).unwrap();
        batch.commit().unwrap();
        self.index.committed();
        self.ahead = None;
    }

    /// Compares what was found before contents came, and among those, with what is found now.
    fn check_ahead(&self, batch: &Batch, ahead: &[LookedAhead], asked: &[ArticleKeys]) {
        assert_eq!(ahead.len(), asked.len());
        for (at, (ahead, asked)) in ahead.iter().zip(asked).enumerate() {
            let now = read(self.index.candidates(batch, asked).unwrap());
            let after = self.index.candidates_after(ahead, asked).map(read);
            let is_told = after.is_some();
            assert!(is_told || self.is_old, "{at}");
            assert_eq!(after.unwrap_or_else(|| now.clone()), now, "{at}");
            let hash = asked.text.hash;
            let now = self.index.equal_texts(batch, hash).unwrap();
            assert_eq!(self.index.equal_texts_after(ahead, hash), is_told.then_some(now), "{at}");
            let other = keys(9_000 + at as u64);
            assert_eq!(self.index.candidates_after(ahead, &other), None);
            let mut with_other_lines = asked.clone();
            with_other_lines.text.sentences[0] ^= 1;
            assert_eq!(self.index.candidates_after(ahead, &with_other_lines), None);
            assert_eq!(self.index.equal_texts_after(ahead, other.text.hash), None);
        }
    }

    /// Compares what the index finds with what a list of all contents in memory does.
    pub(crate) fn check(&self) {
        let mut plain = Finder::new(&Config::default()).unwrap();
        for (content, keys) in &self.live {
            plain.insert(*content, keys);
        }
        let snapshot = self.store.snapshot().unwrap();
        let seeds = (self.next.saturating_sub(9)..self.next + 9).chain([3, 77, 150]);
        let all: Vec<ArticleKeys> = seeds.clone().map(keys).collect();
        let asked: Vec<&ArticleKeys> = all.iter().collect();
        let together = self.index.candidates_of(&self.store, &asked, 3, |_, found| Ok(found));
        for (seed, together) in seeds.zip(together.unwrap()) {
            let asked = keys(seed);
            let mut found = self.index.candidates(&snapshot, &asked).unwrap();
            assert_eq!(found, together, "{seed}");
            found.retain(|found| self.live.contains_key(&found.content));
            let mut wanted = plain.candidates(&asked);
            // Keys in memory are shorter, so that chance may add a vote, or a weak candidate.
            found.retain(|found| !found.weak || found.votes > 1);
            wanted.retain(|wanted| !wanted.weak || wanted.votes > 1);
            let differ = |(found, wanted): (&Candidate, &Candidate)| {
                found.votes.abs_diff(wanted.votes) > 1
                    || Candidate { votes: 0, ..*found } != Candidate { votes: 0, ..*wanted }
            };
            found.sort_unstable_by_key(|found| found.content);
            wanted.sort_unstable_by_key(|wanted| wanted.content);
            let mut equal = self.index.equal_texts(&snapshot, asked.text.hash).unwrap();
            equal.retain(|content| self.live.contains_key(content));
            let same = self.live.iter().filter(|(_, keys)| keys.text.hash == asked.text.hash);
            assert_eq!(equal, same.map(|(content, _)| *content).collect::<Vec<_>>(), "{seed}");
            let odd = found.iter().zip(&wanted).position(differ);
            let odd = odd.unwrap_or(found.len().min(wanted.len()));
            assert_eq!(found.get(odd), wanted.get(odd), "asked for {seed}, at {odd}");
        }
        let faults = index::faults(&snapshot).unwrap();
        assert!(faults.is_empty(), "{faults:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, ..Default::default() })]

    #[test]
    fn it_finds_what_a_list_of_all_contents_finds(
        steps in prop::collection::vec(
            (0u64..30, prop::collection::vec(1u64..400, 0..6), 0u8..10),
            1..40,
        ),
        // The filters of all segments fit, or of some with fewer words, or none.
        cache_bytes in prop_oneof![Just(0usize), 1usize << 12..1 << 17, Just(16 << 20)],
    ) {
        let mut indexed = Indexed::within(cache_bytes, SMALL);
        for (come, go, then) in steps {
            indexed.write(come, &go, then != 0);
            match then {
                // A writer that failed: the index is read again.
                0 | 1 => indexed.reopen(SMALL),
                2 => indexed.flush(),
                _ => {}
            }
            indexed.check();
        }
    }
}

#[test]
fn many_contents_are_in_few_segments_and_the_log_is_short() {
    let mut indexed = Indexed::new(Sizes { block_bytes: BYTES_MAX, ..SMALL });
    for _ in 0..150 {
        indexed.write(10, &[], true);
    }
    indexed.check();
    let snapshot = indexed.store.snapshot().unwrap();
    let segments = snapshot.len(SEGMENTS).unwrap();
    assert!(segments <= 30, "{segments} segments of 1,500 contents");
    let logged = index::changes(&snapshot).unwrap().len();
    assert!(logged <= 100, "{logged} of 1,500 contents are in the log");
    // What was merged is not kept twice.
    let blocks = snapshot.len(NEAR).unwrap() + snapshot.len(KEYS).unwrap();
    assert!(blocks < 1_500, "{blocks} blocks");
}

#[test]
fn blocks_of_merged_segments_are_as_long_as_they_may_be() {
    let block_bytes = bytes_of_pages(3);
    let mut indexed = Indexed::new(Sizes { tail: 200, step: 8, block_bytes, ..SMALL });
    (0..20).for_each(|_| indexed.write(100, &[], true));
    let batch = indexed.store.begin().unwrap();
    let rows = batch.rows(KEYS).unwrap().map(|row| row.unwrap().bytes().len());
    let longest = rows.max().unwrap();
    assert!((block_bytes - 20..=block_bytes).contains(&longest), "{longest}");
}

#[test]
fn what_went_leaves_nothing_behind_when_all_is_merged() {
    let mut indexed = Indexed::new(SMALL);
    for at in 0..60 {
        let go: Vec<u64> = (at * 10..at * 10 + 9).collect();
        indexed.write(10, &go, true);
    }
    indexed.check();
    let of_index = |indexed: &Indexed| {
        let all = index::fingerprints(&indexed.store.snapshot().unwrap(), ..).unwrap();
        all.contents.len().max(all.texts.len())
    };
    assert!(of_index(&indexed) < 200, "{} of 67 contents", of_index(&indexed));
}

#[test]
fn what_was_looked_up_before_a_commit_is_true_behind_it_until_newer_contents_are_in_the_store() {
    let mut indexed = Indexed::new(SMALL);
    for come in [0, 1, 9, 40, 40, 40, 3, 40, 0, 40, 7, 7, 7, 90, 90, 200, 1, 1] {
        // Compares what was looked up before the one before.
        indexed.write(come, &[], true);
        assert!(indexed.ahead.is_some());
    }
    indexed.write(90, &[], true);
    let (ahead, coming) = indexed.ahead.take().unwrap();
    indexed.flush();
    for (ahead, asked) in ahead.iter().zip(&coming) {
        assert_eq!(indexed.index.candidates_after(ahead, asked), None);
        assert_eq!(indexed.index.equal_texts_after(ahead, asked.text.hash), None);
    }
}

#[test]
fn an_index_that_was_opened_again_tells_what_was_looked_up() {
    let mut indexed = Indexed::new(SMALL);
    (0..20).for_each(|_| indexed.write(7, &[], true));
    for _ in 0..12 {
        indexed.reopen(SMALL);
        // Each asserts that it is told.
        (0..2).for_each(|_| indexed.write(3, &[], true));
    }
    indexed.flush();
    let bytes = |indexed: &Indexed| -> Vec<usize> {
        let snapshot = indexed.store.snapshot().unwrap();
        snapshot.rows(INDEX_LOG).unwrap().map(|row| row.unwrap().bytes().len()).collect()
    };
    assert_eq!(bytes(&indexed), [0]);
    indexed.write(3, &[], true);
    assert_eq!(bytes(&indexed), [0, 27]);
}

#[test]
fn an_index_of_an_older_version_tells_what_was_looked_up_when_its_log_is_in_the_store() {
    let mut indexed = Indexed::new(SMALL);
    (0..20).for_each(|_| indexed.write(7, &[], true));
    indexed.flush();
    // The last row was left as it was.
    let mut batch = indexed.store.begin().unwrap();
    batch.clear(INDEX_LOG, ..).unwrap();
    index::note(&mut batch, index::Change { content: 140, gone: false });
    batch.commit().unwrap();
    indexed.reopen(SMALL);
    indexed.is_old = true;
    let is_told = |indexed: &Indexed| {
        let (ahead, asked) = indexed.ahead.as_ref().unwrap();
        indexed.index.candidates_after(&ahead[0], &asked[0]).is_some()
    };
    let mut told = Vec::new();
    for _ in 0..12 {
        indexed.write(3, &[], true);
        told.push(is_told(&indexed));
    }
    assert!(!told[0] && told[11], "{told:?}");
    // One article at a time, in a state of the store.
    let (older, snapshot) = (indexed.index.older(), indexed.store.snapshot().unwrap());
    let compare = |_: &ArticleKeys, content| Ok(Some(resemblance(content)));
    for seed in 1..200 {
        let asked = keys(seed + indexed.next);
        let found = older.look_up_new(&snapshot, &[&asked], 2, compare).unwrap();
        let [Some(one)] = &found[..] else {
            assert!(!indexed.index.equal_texts(&snapshot, asked.text.hash).unwrap().is_empty());
            continue;
        };
        let now = read(indexed.index.candidates(&snapshot, &asked).unwrap());
        assert_eq!(indexed.index.candidates_after(one, &asked).map(read), Some(now), "{seed}");
    }
}

#[test]
fn behind_many_articles_at_once_segments_become_few_and_behind_some_they_do_not() {
    let is_merging_behind = |articles: u64| {
        let mut indexed = Indexed::new(SMALL);
        // Until many are about to become one.
        while indexed.next < 300 || !indexed.index.has_merges() {
            indexed.write(7, &[], true);
        }
        let Indexed { folder, store, index, live, next, is_old, ahead } = indexed;
        let index = Arc::new(Mutex::new(index));
        settle_after(&store, &index, &Config::default(), articles).unwrap();
        let index = Arc::into_inner(index).unwrap().into_inner().unwrap();
        let indexed = Indexed { folder, store, index, live, next, is_old, ahead };
        indexed.check();
        indexed.index.has_merges()
    };
    assert_eq!([0, 1, 20_000].map(is_merging_behind), [true, true, false]);
}

#[test]
fn whoever_stores_a_page_that_was_looked_up_finds_what_it_would_find_by_itself() {
    let mut indexed = Indexed::new(SMALL);
    (0..20).for_each(|_| indexed.write(7, &[], true));
    let Indexed { folder: _folder, store, index, next, .. } = indexed;
    let index = Mutex::new(index);
    let committed = CommittedContents::of(&store, &index).unwrap();
    let mut batch = store.begin().unwrap();
    for content in next..next + 12 {
        batch.put(CONTENTS, content, &row(&keys(content))).unwrap();
        index.insert(&mut batch, content, &keys(content));
    }
    // One in six is there word for word.
    let numbers = (0..72).map(|at| if at % 6 == 5 { 1 + at / 6 } else { next + at - at / 6 });
    let asked: Vec<ArticleKeys> = numbers.map(keys).collect();
    let asked_all: Vec<&ArticleKeys> = asked.iter().collect();
    assert!(committed.look_up_new(&[], 0).unwrap().is_empty());
    let new = committed.look_up_new(&asked_all, 2).unwrap();
    for (at, (keys, found)) in asked.iter().zip(&new).enumerate() {
        let wanted = (at % 6 != 5).then_some(keys.text.hash);
        // The first ones may have a twin among those before them.
        assert!(at < 3 || found.as_ref().map(LookedAhead::hash) == wanted, "{at}: {wanted:?}");
    }
    let mut all: Vec<LookedAhead> = new.into_iter().flatten().collect();
    all.sort_by_key(LookedAhead::hash);
    let together = committed.look_up_all(&asked_all, 2).unwrap();
    assert!(together.is_sorted_by_key(LookedAhead::hash) && together.len() == asked.len());
    assert!(all.len() > 40, "{}", all.len());
    let parts = [[&all[..], &[]], [&[], &all[..]], [&together[..10], &together[10..]]];
    for (asked, found) in asked.iter().flat_map(|asked| parts.map(|parts| (asked, parts))) {
        let of_page = AskedAhead { index: &index, found };
        let (found, all) = (of_page.candidates(&batch, asked), index.candidates(&batch, asked));
        let (found, all) = (found.unwrap(), all.unwrap());
        assert!(found.iter().all(|one| all.contains(one)), "{found:?}");
        let sure = |some: &[Candidate]| -> Vec<Candidate> {
            some.iter().filter(|one| !one.weak).copied().collect()
        };
        assert!(sure(&found) == sure(&all) && !sure(&all).is_empty(), "{found:?}");
        let hash = asked.text.hash;
        let equal = [of_page.equal_texts(&batch, hash), index.equal_texts(&batch, hash)];
        assert_eq!(equal[0].as_ref().unwrap(), equal[1].as_ref().unwrap());
    }
    // What was found for one is nothing to another.
    for ahead in &all {
        let of_one = AskedAhead { index: &index, found: [std::slice::from_ref(ahead), &[]] };
        let other = asked.iter().find(|other| other.text.hash != ahead.hash()).unwrap();
        let plain = index.candidates(&batch, other).unwrap();
        assert_eq!(of_one.candidates(&batch, other).unwrap(), plain);
    }
}

#[test]
fn other_settings_make_the_index_anew() {
    let mut indexed = Indexed::new(SMALL);
    (0..9).for_each(|_| indexed.write(10, &[4, 5], true));
    let config = Config { bands: 0, ..Config::default() };
    let without = Index::open_with(&indexed.store, &config, SMALL).unwrap();
    let mut plain = Finder::new(&config).unwrap();
    indexed.live.iter().for_each(|(content, keys)| plain.insert(*content, keys));
    let snapshot = indexed.store.snapshot().unwrap();
    for seed in 0..100 {
        let found = without.candidates(&snapshot, &keys(seed)).unwrap();
        assert_eq!(found, plain.candidates(&keys(seed)));
    }
    assert_eq!((snapshot.len(INDEX_LOG).unwrap(), snapshot.len(MERGES).unwrap()), (0, 0));
    drop(snapshot);
    indexed.reopen(SMALL);
    indexed.check();
}

/// Reads a number of some bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The postings of a block, by what the documents say of its bytes.
fn postings(block: &[u8]) -> Vec<(u64, u64)> {
    let count = number(&block[..2]) as usize;
    let (key, content) = (number(&block[2..10]), number(&block[10..18]));
    let (key_width, content_width) = (block[18] as usize, block[19] as usize);
    let (keys, contents) = block[20..].split_at(count * key_width);
    let beyond = |column: &[u8], width: usize, at: usize| number(&column[at * width..][..width]);
    (0..count)
        .map(|at| {
            (key + beyond(keys, key_width, at), content + beyond(contents, content_width, at))
        })
        .collect()
}

#[test]
fn a_reader_of_the_file_alone_finds_four_sorted_tables_and_asks_them() {
    let mut indexed = Indexed::new(Sizes::default());
    indexed.write(3_000, &[], true);
    let mut batch = indexed.store.begin().unwrap();
    indexed.index.flush(&mut batch).unwrap();
    batch.commit().unwrap();
    let Indexed { folder, store, live, .. } = indexed;
    drop(store);

    let file = redb::Database::open(folder.path().join("store.redb")).unwrap();
    let txn = redb::ReadableDatabase::begin_read(&file).unwrap();
    let near: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("near");
    let near = txn.open_table(near).unwrap();
    // Table, segment and level stand before the first posting of a block.
    let mut tables: BTreeMap<u8, Vec<(u64, u64)>> = BTreeMap::new();
    for row in redb::ReadableTable::iter(&near).unwrap() {
        let (key, block) = row.unwrap();
        if key.value()[5] == 0 {
            tables.entry(key.value()[0]).or_default().extend(postings(block.value()));
        }
    }
    assert_eq!(tables.keys().copied().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    for table in 0..4 {
        let rows = &tables[&table];
        assert_eq!(rows.len(), live.len());
        assert!(rows.is_sorted());
    }
    for seed in 5_000..5_100 {
        let query = keys(seed).text.fingerprint;
        let mut found = BTreeSet::new();
        for table in 0..4u8 {
            let turn = 16 * u32::from(table);
            let (rows, asked) = (&tables[&table], query.0.rotate_left(turn));
            let first = rows.partition_point(|row| row.0 >> 48 < asked >> 48);
            let equal = rows[first..].iter().take_while(|row| row.0 >> 48 == asked >> 48);
            found.extend(
                equal.filter(|row| (row.0 ^ asked).count_ones() <= 3).map(|(_, content)| *content),
            );
        }
        let near = |keys: &ArticleKeys| keys.text.fingerprint.distance(query) <= 3;
        let plain: BTreeSet<u64> =
            live.iter().filter(|(_, keys)| near(keys)).map(|(content, _)| *content).collect();
        assert!(!plain.is_empty() && found == plain, "{found:?} {plain:?}");
    }
}
