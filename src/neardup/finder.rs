//! Candidates: which contents may be the same article, by any of its keys.

use std::collections::HashSet;
use std::convert::Infallible;

use crate::neardup::index::keys::KeyIndex;
use crate::neardup::index::layout::{Layout, Near, build};
use crate::text::features::ArticleKeys;
use crate::text::simhash::Fingerprint;

use super::chance::Sieve;
use super::key::KeyMaker;
use super::places::Places;
use super::segment::{Posting, ROTATIONS, equality_table, near_table, spread};
use super::{Config, Error, Field, Key};

/// The keys of all contents, in memory. Inside, a content is its place among them, of 32 bits.
pub struct Finder {
    places: Places,
    near: Vec<NearTable>,
    equal: Vec<EqualTable>,
    config: Config,
    /// Contents that were removed since.
    removed: HashSet<u64>,
}

/// A content that may be the same article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub content: u64,
    /// The first key, in the order of [`Key`], by which it was found.
    pub key: Key,
    /// The title is among the keys by which it was found.
    pub titled: bool,
    /// It was found by keys alone that others have by chance.
    pub weak: bool,
    /// How much speaks for it.
    pub votes: u32,
}

/// The fingerprints of a kind of key.
struct NearTable {
    key: Key,
    field: Field,
    of: fn(&ArticleKeys) -> Option<Fingerprint>,
    /// Largest distance.
    k: u32,
    layout: Box<dyn Layout>,
}

/// The hashes of a kind of key.
struct EqualTable {
    key: Key,
    made: KeyMaker,
    index: KeyIndex,
}

impl EqualTable {
    fn hashes(&self, config: &Config, keys: &ArticleKeys) -> Vec<u64> {
        match self.made {
            KeyMaker::Equal(of) => of(config, keys),
            _ => keys.text.others.of(self.key as u8).map(spread).collect(),
        }
    }

    fn each(&self, key: u64, places: &Places, each: &mut dyn FnMut(u64)) {
        self.index.get(key, |place| each(places.content(place)));
    }
}

impl Postings for Finder {
    type Error = Infallible;

    fn prefetch(&self, asked: &[(Key, Asked)]) {
        for table in &self.equal {
            for (_, asked) in asked.iter().filter(|(key, _)| *key == table.key) {
                if let Asked::Equal(hash) = asked {
                    table.index.prefetch(*hash);
                }
            }
        }
    }

    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Infallible> {
        let mut near: Vec<Near> = Vec::new();
        for table in self.near.iter().filter(|table| table.field == asked.field) {
            table.layout.probe(asked.fingerprint, asked.k, &mut near);
            for Near { distance, number, .. } in near.drain(..) {
                each(distance, self.places.content(number));
            }
        }
        Ok(())
    }

    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        for table in self.equal.iter().filter(|table| table.key == key) {
            table.each(hash, &self.places, each);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Finder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finder").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Finder {
    /// Makes an empty one.
    pub fn new(config: &Config) -> Result<Self, Error> {
        config.check()?;
        let (mut near, mut equal) = (Vec::new(), Vec::new());
        for (key, search) in Key::asked(config) {
            if let KeyMaker::Near { field, of, k_max } = search.made {
                let layout = build(config.layout, config.k)?;
                near.push(NearTable { key, field, of, k: config.k.min(k_max), layout });
            } else {
                equal.push(EqualTable { key, made: search.made, index: KeyIndex::default() });
            }
        }
        Ok(Self {
            places: Places::default(),
            near,
            equal,
            config: config.clone(),
            removed: HashSet::new(),
        })
    }

    /// Adds the keys of a content. Texts that are too short to be near-duplicates have none.
    pub fn insert(&mut self, content: u64, keys: &ArticleKeys) {
        if !self.is_long_enough(keys) {
            return;
        }
        let place = self.places.of(content);
        for table in &mut self.near {
            if let Some(fingerprint) = (table.of)(keys) {
                table.layout.insert(fingerprint, place);
            }
        }
        for table in &mut self.equal {
            let hashes = table.hashes(&self.config, keys);
            for hash in &hashes {
                table.index.prefetch(*hash);
            }
            for hash in hashes {
                table.index.insert(hash, place);
            }
        }
    }

    /// Names a content no more: it was removed.
    pub fn forget(&mut self, content: u64) {
        self.removed.insert(content);
    }

    /// Tells whether a content was removed.
    pub(crate) fn has_forgotten(&self, content: u64) -> bool {
        self.removed.contains(&content)
    }

    /// Returns the postings by which a content is found where they are not in memory, each behind
    /// the number of its table. A fingerprint has one in each of four rotations.
    #[must_use]
    pub fn postings(&self, content: u64, keys: &ArticleKeys) -> Vec<(u8, Posting)> {
        let mut postings = Vec::new();
        if !self.is_long_enough(keys) {
            return postings;
        }
        for table in &self.near {
            let Some(fingerprint) = (table.of)(keys) else { continue };
            let rotated = (0..ROTATIONS).map(|rotation| {
                let key = fingerprint.0.rotate_left(16 * u32::from(rotation));
                (near_table(table.field, rotation), Posting { key, content })
            });
            postings.extend(rotated);
        }
        for table in &self.equal {
            let hashes = table.hashes(&self.config, keys).into_iter();
            let posting = |key| (equality_table(table.key), Posting { key, content });
            postings.extend(hashes.map(posting));
        }
        postings
    }

    /// Returns the tables in which contents have postings.
    #[must_use]
    pub fn tables(&self) -> Vec<u8> {
        let of_field = |table: &NearTable| {
            let field = table.field;
            (0..ROTATIONS).map(move |rotation| near_table(field, rotation))
        };
        let near = self.near.iter().flat_map(of_field);
        near.chain(self.equal.iter().map(|table| equality_table(table.key))).collect()
    }

    /// Tells whether a text is long enough to be a near-duplicate; an empty one never is.
    fn is_long_enough(&self, keys: &ArticleKeys) -> bool {
        keys.text.words >= self.config.rule.words_min.max(1)
    }

    /// Returns what tells which candidates of an article are read.
    #[must_use]
    pub fn sieve(&self) -> Sieve {
        Sieve::of(&self.config)
    }

    /// Returns the contents that share a key with an article, those for which most speaks first,
    /// then older ones.
    #[must_use]
    pub fn candidates(&self, keys: &ArticleKeys) -> Vec<Candidate> {
        let Ok(found) = self.candidates_with(keys, &NoPostings);
        found
    }

    /// Does the same with contents whose keys lie elsewhere.
    pub fn candidates_with<M: Postings>(
        &self,
        keys: &ArticleKeys,
        more: &M,
    ) -> Result<Vec<Candidate>, M::Error> {
        Ok(ranked(self.hits(keys, more)?))
    }

    /// Returns every key by which `content` is found from an article.
    #[must_use]
    pub fn keys_of(&self, content: u64, keys: &ArticleKeys) -> Vec<Key> {
        let Ok(hits) = self.hits(keys, &NoPostings);
        let mut kinds: Vec<Key> =
            hits.into_iter().filter(|(other, _)| *other == content).map(|(_, key)| key).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Everything by which contents are found from an article.
    pub(super) fn asked(&self, keys: &ArticleKeys) -> Vec<(Key, Asked)> {
        let mut all = Vec::new();
        if !self.is_long_enough(keys) {
            return all;
        }
        for NearTable { key, field, of, k, .. } in &self.near {
            if let Some(fingerprint) = of(keys) {
                all.push((*key, Asked::Near(Nearby { field: *field, fingerprint, k: *k })));
            }
        }
        for table in &self.equal {
            let hashes = table.hashes(&self.config, keys).into_iter();
            all.extend(hashes.map(|hash| (table.key, Asked::Equal(hash))));
        }
        all
    }

    /// Contents with the keys that lead to them.
    fn hits<M: Postings>(&self, keys: &ArticleKeys, more: &M) -> Result<Vec<(u64, Key)>, M::Error> {
        let mut hits: Vec<(u64, Key)> = Vec::new();
        let mut found: Vec<(u32, u64)> = Vec::new();
        let all = self.asked(keys);
        self.prefetch(&all);
        for (key, asked) in all {
            match asked {
                Asked::Near(near) => {
                    let mut each = |distance, content| found.push((distance, content));
                    let Ok(()) = self.near(near, &mut each);
                    more.near(near, &mut each)?;
                }
                Asked::Equal(hash) => {
                    more.equal(key, hash, &mut |content| found.push((0, content)))?;
                    // The newest contents are here, and a key has its oldest ones.
                    if found.len() < KeyIndex::PER_KEY_MAX {
                        let each = &mut |content| found.push((0, content));
                        let Ok(()) = self.equal(key, hash, each);
                    }
                }
            }
            hits.extend(first_of(&mut found).map(|(_, content)| (content, key)));
        }
        if !self.removed.is_empty() {
            hits.retain(|(content, _)| !self.removed.contains(content));
        }
        Ok(hits)
    }

    /// Returns the number of contents in the index.
    #[must_use]
    pub fn len(&self) -> usize {
        self.near.iter().find(|table| table.key == Key::Near).map_or(0, |table| table.layout.len())
    }

    /// Returns whether no content is in the index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the index in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let near: usize = self.near.iter().map(|table| table.layout.bytes()).sum();
        let equal: usize = self.equal.iter().map(|table| table.index.bytes()).sum();
        near + equal + self.places.bytes()
    }
}

/// Returns contents that were found, those for which most speaks first, then older ones.
pub(super) fn ranked(hits: Vec<(u64, Key)>) -> Vec<Candidate> {
    let mut found = grouped(hits);
    found.sort_by_key(|candidate| std::cmp::Reverse(candidate.votes));
    found
}

/// Returns contents that were found, in order.
pub(super) fn grouped(mut hits: Vec<(u64, Key)>) -> Vec<Candidate> {
    // One number is compared faster than two.
    hits.sort_unstable_by_key(|(content, key)| u128::from(*content) << 8 | *key as u128);
    let mut found: Vec<Candidate> = Vec::with_capacity(hits.len());
    for (content, key) in hits {
        let one = Candidate::of(content, key);
        match found.last_mut().filter(|last| last.content == content) {
            Some(last) => last.add(&one),
            None => found.push(one),
        }
    }
    found
}

impl Candidate {
    /// One that was found by a key.
    fn of(content: u64, key: Key) -> Self {
        let search = key.kind().search.as_ref();
        Self {
            content,
            key,
            titled: search.is_some_and(|search| search.of_title),
            weak: search.is_some_and(|search| search.weak),
            votes: search.map_or(0, |search| search.votes),
        }
    }

    /// Adds what else speaks for the same content.
    pub(super) fn add(&mut self, other: &Self) {
        self.key = self.key.min(other.key);
        self.titled |= other.titled;
        self.weak &= other.weak;
        self.votes += other.votes;
    }
}

/// Takes what is nearest, older contents first among equals: as many as a key may have.
pub(super) fn first_of(found: &mut Vec<(u32, u64)>) -> impl Iterator<Item = (u32, u64)> {
    if found.len() > 1 {
        found.sort_unstable();
        // One that lies in two places, or is found by several tables.
        found.dedup();
        found.truncate(KeyIndex::PER_KEY_MAX);
    }
    found.drain(..)
}

/// What is asked for by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// Fingerprints near one.
    Near(Nearby),
    /// A hash.
    Equal(u64),
}

/// Fingerprints that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nearby {
    /// Which fingerprints.
    pub field: Field,
    /// The one near which they are to be.
    pub fingerprint: Fingerprint,
    /// Largest distance, in bits.
    pub k: u32,
}

/// Keys of further contents, which are not in memory.
pub trait Postings {
    /// What can go wrong.
    type Error;

    /// Tells what is asked for next: what lies in memory comes sooner then.
    fn prefetch(&self, _: &[(Key, Asked)]) {}

    /// Calls `each` with the distance and the content of every fingerprint near one; more than
    /// once, perhaps.
    fn near(&self, asked: Nearby, each: &mut dyn FnMut(u32, u64)) -> Result<(), Self::Error>;

    /// Calls `each` with the contents that have a hash of a kind.
    fn equal(&self, key: Key, hash: u64, each: &mut dyn FnMut(u64)) -> Result<(), Self::Error>;
}

/// There are none.
struct NoPostings;

impl Postings for NoPostings {
    type Error = Infallible;

    fn near(&self, _: Nearby, _: &mut dyn FnMut(u32, u64)) -> Result<(), Infallible> {
        Ok(())
    }

    fn equal(&self, _: Key, _: u64, _: &mut dyn FnMut(u64)) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::cell::Cell;
    use std::ops::Range;

    use super::super::chance::{CHANCE_MAX, END_EQUAL_MIN, Resemblance, SKETCH_END};
    use super::super::judge::{judge, sift};
    use super::super::known::{KnownText, KnownTree, Mate, Question, Trees};
    use super::*;
    use crate::base::clock::Timestamp;
    use crate::text::features::{KindHashes, Standing, TextKeys};
    use crate::text::simhash::Fingerprint;
    use crate::text::sketch::{SLOTS, Sketch, band_slots};

    /// A text whose sketch has `own` in all slots but some, which have 1.
    fn text(own: u8, ones: &[usize]) -> ArticleKeys {
        let mut sketch = Sketch { slots: Box::new([own; SLOTS]), seconds: None };
        for slot in ones {
            sketch.slots[*slot] = 1;
        }
        let fingerprint = Fingerprint(u64::from(own).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (shingles, words, sentences) = (100, 100, Box::from([u32::from(own)]));
        let hash = u128::from(own);
        let others = KindHashes::default();
        let text = TextKeys { hash, fingerprint, sketch, shingles, words, sentences, others };
        ArticleKeys { text, title: None, standing: Standing::default() }
    }

    /// The slots of some of the default bands.
    fn slots(bands: Range<usize>) -> Vec<usize> {
        let Config { bands: all, band_rows: rows, .. } = Config::default();
        let some = band_slots(all, rows).take(bands.end).skip(bands.start);
        some.flatten().map(|slot| usize::from(*slot)).collect()
    }

    fn compare(article: &ArticleKeys, other: &ArticleKeys) -> Resemblance {
        Resemblance::of_texts(&article.text, &other.text, &Config::default().rule)
    }

    #[test]
    fn a_hash_that_is_kept_with_the_text_leads_to_it() {
        let mut finder = Finder::new(&Config::default()).unwrap();
        let (key, made) = (Key::Merged, KeyMaker::Text(|_| None));
        finder.equal.push(EqualTable { key, made, index: KeyIndex::default() });
        let with = |own, hash| {
            let mut keys = text(own, &[]);
            keys.text.others = [(key as u8, hash), (0, 7)].into_iter().collect();
            keys
        };
        finder.insert(5, &with(10, 3));
        assert_eq!(finder.keys_of(5, &with(11, 3)), [key]);
        assert_eq!(finder.keys_of(5, &with(11, 4)), []);
        assert_eq!(finder.candidates(&with(11, 3))[0].content, 5);
    }

    /// Texts of which each is a tree; counts those that are looked up.
    struct CountedTexts {
        texts: Vec<ArticleKeys>,
        looked_up: Cell<usize>,
    }

    impl Trees for CountedTexts {
        type Error = Infallible;

        fn text(&self, content: u64) -> Result<Option<KnownText<'_>>, Infallible> {
            self.looked_up.set(self.looked_up.get() + 1);
            let keys = Cow::Borrowed(&self.texts[content as usize]);
            Ok(Some(KnownText { content, document: content, keys }))
        }

        fn tree<'a>(&'a self, text: KnownText<'a>) -> Result<KnownTree<'a>, Infallible> {
            Ok(KnownTree {
                document: text.document,
                root_content: text.content,
                root: text.keys,
                canonical: None,
                leaf: None,
                copies: 1,
                first_arrival: Timestamp(0),
            })
        }

        fn mates(&self, _: u64, _: &Question<'_>) -> Result<Vec<Mate<'_>>, Infallible> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn of_many_texts_that_share_a_band_by_chance_few_are_looked_up() {
        let mut finder = Finder::new(&Config::default()).unwrap();
        // Each shares a band of its own; the last one shares three, and more than chance has.
        let mut texts: Vec<ArticleKeys> =
            (0..40).map(|at| text(10 + at as u8, &slots(at..at + 1))).collect();
        let more = slots(0..3).into_iter().chain(SLOTS - SKETCH_END..SLOTS);
        texts.push(text(99, &more.collect::<Vec<_>>()));
        (0..).zip(&texts).for_each(|(number, other)| finder.insert(number, other));
        let article = text(1, &[]);
        let candidates = finder.candidates(&article);
        assert_eq!((candidates.len(), candidates[0].content), (41, 40));
        let known = CountedTexts { texts, looked_up: Cell::new(0) };
        let config = Config::default();
        let Ok(judged) = judge(&known, &candidates, &Question::new(&article, ""), &config);
        let matched = judged.matched.as_ref();
        assert_eq!(matched.map(|matched| matched.document), Some(40));
        assert_eq!(known.looked_up.get(), CHANCE_MAX + 1);
        // Where that is told of them before, they are not looked up at all.
        let mut sifted = candidates;
        let of = |at| Ok::<_, Infallible>(Some(compare(&article, &known.texts[at as usize])));
        let Ok(()) = sift(&mut sifted, finder.sieve(), of);
        let Ok(again) = judge(&known, &sifted, &Question::new(&article, ""), &config);
        assert_eq!(again, judged);
        assert_eq!(known.looked_up.get(), CHANCE_MAX + 2);
    }

    #[test]
    fn a_band_that_is_shared_by_chance_makes_no_candidate() {
        let mut finder = Finder::new(&Config::default()).unwrap();
        let rest = SLOTS - SKETCH_END;
        let first =
            |more: usize| slots(0..1).into_iter().chain(rest..rest + more).collect::<Vec<_>>();
        let others = [
            // The first band, and nothing else.
            text(10, &first(0)),
            // And just so many slots that it may be more than chance.
            text(11, &first(END_EQUAL_MIN)),
            text(12, &first(END_EQUAL_MIN - 1)),
            // Slots without a band.
            text(13, &(rest..SLOTS).collect::<Vec<_>>()),
        ];
        (0..).zip(&others).for_each(|(number, other)| finder.insert(number * 700, other));
        let found = |keys: &ArticleKeys| {
            let (mut found, other) =
                (finder.candidates(keys), |at: u64| &others[at as usize / 700]);
            let of = |content| Ok::<_, Infallible>(Some(compare(keys, other(content))));
            let Ok(()) = sift(&mut found, finder.sieve(), of);
            found.iter().map(|found| found.content).collect::<Vec<_>>()
        };
        let article = text(1, &[]);
        assert_eq!(found(&article), [700]);
        // Another key is enough by itself.
        let mut sentence = article.clone();
        sentence.text.sentences = Box::from([10]);
        assert_eq!(found(&sentence), [0, 700]);
    }
}
