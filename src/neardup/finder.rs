//! Candidates: which contents may be the same article, by any of its keys.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::convert::Infallible;

use crate::neardup::index::keys::KeyIndex;
use crate::neardup::index::layout::{Layout, Near, build};
use crate::text::features::ArticleKeys;
use crate::text::simhash::Fingerprint;
use crate::text::sketch::{SLOTS, Sketch};

use super::key::KeyMaker;
use super::places::Places;
use super::{Change, Config, Error, Field, Key};

/// The keys of all contents, in memory. Inside, a content is its place among them, of 32 bits.
pub struct Finder {
    places: Places,
    near: Vec<NearTable>,
    equal: Vec<EqualTable>,
    tails: Tails,
    config: Config,
    /// Contents that were removed from the store since.
    removed: HashSet<u32>,
    /// It names contents, or names contents no more, as no commit has stored yet.
    ahead: bool,
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
    fn hashes(&self, config: &Config, keys: &ArticleKeys) -> Vec<u32> {
        match self.made {
            KeyMaker::Equal(of) => of(config, keys),
            _ => keys.text.others.of(self.key as u8).collect(),
        }
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
            tails: Tails::default(),
            config: config.clone(),
            removed: HashSet::new(),
            ahead: false,
        })
    }

    /// Adds the keys of a content. Texts that are too short to be near-duplicates have none.
    pub fn insert(&mut self, content: u64, keys: &ArticleKeys) {
        self.ahead = true;
        for Change { field, fingerprint, .. } in self.changes(content, keys) {
            for table in self.near.iter_mut().filter(|table| table.field == field) {
                table.layout.insert(fingerprint, self.places.of(content));
            }
        }
        let Ok(()) = self.insert_keys(std::iter::once(Ok::<_, Infallible>((content, keys))));
    }

    /// Names a content no more: it was removed from the store.
    pub fn forget(&mut self, content: u64) {
        self.ahead = true;
        self.removed.extend(self.places.find(content));
    }

    /// Notes that all it was told of is committed.
    pub fn committed(&mut self) {
        self.ahead = false;
    }

    /// Tells whether it was told of changes that are not committed. Whoever begins to write and
    /// finds it so follows a writer that failed: the store has to be read again.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        self.ahead
    }

    /// Returns the fingerprints by which a content is found, as changes of a stored index.
    #[must_use]
    pub fn changes(&self, content: u64, keys: &ArticleKeys) -> Vec<Change> {
        if !self.is_long_enough(keys) {
            return Vec::new();
        }
        let add = |field, fingerprint| Change { field, fingerprint, content, removed: false };
        let made = self.near.iter().filter_map(|table| Some(add(table.field, (table.of)(keys)?)));
        let mut changes: Vec<Change> = made.collect();
        changes.sort_by_key(|change| change.field);
        changes
    }

    /// Adds fingerprints that were stored.
    pub(crate) fn insert_fingerprints(&mut self, field: Field, entries: Vec<(Fingerprint, u64)>) {
        if !self.near.iter().any(|table| table.field == field) {
            return;
        }
        self.places.add_all(entries.iter().map(|(_, content)| *content));
        // In the memory of the entries.
        let entries: Vec<(Fingerprint, u32)> =
            entries.into_iter().map(|(print, content)| (print, self.places.of(content))).collect();
        for table in self.near.iter_mut().filter(|table| table.field == field) {
            table.layout.insert_all(&entries);
        }
    }

    /// Tells whether contents have equality keys here, which are read from their rows.
    pub(crate) fn has_equality_keys(&self) -> bool {
        !self.equal.is_empty()
    }

    /// Adds the equality keys of contents.
    pub(crate) fn insert_keys<E>(
        &mut self,
        contents: impl Iterator<Item = Result<(u64, impl Borrow<ArticleKeys>), E>>,
    ) -> Result<(), E> {
        let mut waiting = vec![Vec::new(); self.equal.len()];
        let has_tails = self.equal.iter().any(|table| table.key.is_weak());
        for content in contents {
            let (content, keys) = content?;
            let keys = keys.borrow();
            if !self.is_long_enough(keys) {
                continue;
            }
            let place = self.places.of(content);
            if has_tails {
                self.tails.insert(place, &keys.text.sketch);
            }
            for (table, waiting) in self.equal.iter().zip(&mut waiting) {
                let hashes = table.hashes(&self.config, keys);
                waiting.extend(hashes.into_iter().map(|hash| (hash, place)));
            }
            if waiting.iter().any(|waiting| waiting.len() >= KEYS_AT_A_TIME) {
                self.insert_waiting(&mut waiting);
            }
        }
        self.insert_waiting(&mut waiting);
        Ok(())
    }

    fn insert_waiting(&mut self, waiting: &mut [Vec<(u32, u32)>]) {
        for (table, waiting) in self.equal.iter_mut().zip(waiting) {
            table.index.insert_all(waiting);
        }
    }

    /// Tells whether a text is long enough to be a near-duplicate; an empty one never is.
    fn is_long_enough(&self, keys: &ArticleKeys) -> bool {
        keys.text.words >= self.config.rule.words_min.max(1)
    }

    /// Returns the contents that share a key with an article, those for which most speaks first,
    /// then older ones. Those that share weak keys alone, and otherwise little as the ends of their
    /// sketches tell, are left out: in a large corpus they are most of all, and each costs two
    /// look-ups.
    #[must_use]
    pub fn candidates(&self, keys: &ArticleKeys) -> Vec<Candidate> {
        let mut hits = self.hits(keys);
        hits.sort_unstable_by_key(|(place, key)| (self.places.age(*place), *key));
        let groups = hits.chunk_by(|a, b| a.0 == b.0);
        let sketch = &keys.text.sketch;
        let groups = groups.filter(|group| {
            !group.iter().all(|(_, key)| key.is_weak()) || self.tails.resembles(group[0].0, sketch)
        });
        let mut found: Vec<Candidate> = groups
            .map(|group| Candidate {
                content: self.places.content(group[0].0),
                key: group[0].1,
                titled: group.iter().any(|(_, key)| key.is_of_title()),
                votes: group.iter().map(|(_, key)| key.votes()).sum(),
            })
            .collect();
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.votes));
        found
    }

    /// Returns every key by which `content` is found from an article.
    #[must_use]
    pub fn keys_of(&self, content: u64, keys: &ArticleKeys) -> Vec<Key> {
        let place = self.places.find(content);
        let mut kinds: Vec<Key> = self
            .hits(keys)
            .into_iter()
            .filter(|(other, _)| Some(*other) == place)
            .map(|(_, key)| key)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Places of contents with the keys that lead to them.
    fn hits(&self, keys: &ArticleKeys) -> Vec<(u32, Key)> {
        let mut hits: Vec<(u32, Key)> = Vec::new();
        if !self.is_long_enough(keys) {
            return hits;
        }
        let mut near: Vec<Near> = Vec::new();
        for table in &self.near {
            let Some(fingerprint) = (table.of)(keys) else { continue };
            table.layout.probe(fingerprint, table.k, &mut near);
            hits.extend(self.nearest(&mut near).map(|place| (place, table.key)));
        }
        for table in &self.equal {
            for hash in table.hashes(&self.config, keys) {
                table.index.get(hash, |place| hits.push((place, table.key)));
            }
        }
        if !self.removed.is_empty() {
            hits.retain(|(place, _)| !self.removed.contains(place));
        }
        hits
    }

    /// Takes the nearest entries, older ones first among equals: as many as a key may have.
    fn nearest<'a>(&self, near: &'a mut Vec<Near>) -> impl Iterator<Item = u32> + use<'a> {
        let order = |near: &Near| (near.distance, self.places.age(near.number));
        if near.len() > KeyIndex::PER_KEY_MAX {
            near.select_nth_unstable_by_key(KeyIndex::PER_KEY_MAX, order);
            near.truncate(KeyIndex::PER_KEY_MAX);
        }
        near.drain(..).map(|near| near.number)
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
        near + equal + self.tails.bytes() + self.places.bytes()
    }
}

/// Keys that are put in order before they are added.
const KEYS_AT_A_TIME: usize = 1 << 22;

/// Slots at the end of a sketch, where the default bands have no part.
const TAIL: usize = 128;

/// Of them, so many must be equal: texts of a similarity of 0.3 always have them, of 0.1 in 97 % of
/// all cases, of 0.03 in 16 %.
const TAIL_EQUAL_MIN: usize = 7;

/// Contents that lie together.
const CHUNK: usize = 1024;

/// The ends of the sketches of all contents, by their places.
#[derive(Default)]
struct Tails(Vec<Option<Box<[[u8; TAIL]]>>>);

impl Tails {
    fn insert(&mut self, place: u32, sketch: &Sketch) {
        let (chunk, at) = (place as usize / CHUNK, place as usize % CHUNK);
        if self.0.len() <= chunk {
            self.0.resize_with(chunk + 1, || None);
        }
        let empty = || vec![[0; TAIL]; CHUNK].into_boxed_slice();
        self.0[chunk].get_or_insert_with(empty)[at].copy_from_slice(&sketch.0[SLOTS - TAIL..]);
    }

    /// Tells whether a content has more in common with an article than chance has it.
    fn resembles(&self, place: u32, sketch: &Sketch) -> bool {
        let Some(Some(chunk)) = self.0.get(place as usize / CHUNK) else { return true };
        let pairs = chunk[place as usize % CHUNK].iter().zip(&sketch.0[SLOTS - TAIL..]);
        pairs.filter(|(one, other)| one == other).count() >= TAIL_EQUAL_MIN
    }

    fn bytes(&self) -> usize {
        self.0.iter().flatten().count() * CHUNK * TAIL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::features::{KindHashes, Standing, TextKeys};
    use crate::text::simhash::Fingerprint;

    /// A text whose sketch has `own` in all slots but some, which have 1.
    fn text(own: u8, ones: &[(usize, usize)]) -> ArticleKeys {
        let mut sketch = Sketch(Box::new([own; SLOTS]));
        for (first, end) in ones {
            sketch.0[*first..*end].fill(1);
        }
        let fingerprint = Fingerprint(u64::from(own).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (shingles, words, sentences) = (100, 100, Box::from([u32::from(own)]));
        let hash = u128::from(own);
        let others = KindHashes::default();
        let text = TextKeys { hash, fingerprint, sketch, shingles, words, sentences, others };
        ArticleKeys { text, title: None, standing: Standing::default() }
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

    #[test]
    fn a_band_that_is_shared_by_chance_makes_no_candidate() {
        let mut finder = Finder::new(&Config::default()).unwrap();
        let rest = SLOTS - TAIL;
        let others = [
            // The first band, and nothing else.
            text(10, &[(0, 3)]),
            // And just so many slots that it may be more than chance.
            text(11, &[(0, 3), (rest, rest + TAIL_EQUAL_MIN)]),
            text(12, &[(0, 3), (rest, rest + TAIL_EQUAL_MIN - 1)]),
            // Slots without a band.
            text(13, &[(rest, SLOTS)]),
        ];
        for (number, other) in (0..).zip(&others) {
            finder.insert(number * 700, other);
        }
        let found = |finder: &Finder, keys: &ArticleKeys| {
            let found = finder.candidates(keys).into_iter();
            found.map(|candidate| candidate.content).collect::<Vec<_>>()
        };
        let article = text(1, &[]);
        assert_eq!(found(&finder, &article), [700]);
        // Another key is enough by itself.
        let mut sentence = article.clone();
        sentence.text.sentences = Box::from([10]);
        assert_eq!(found(&finder, &sentence), [0, 700]);
        // Loaded at once it is the same.
        let mut loaded = Finder::new(&Config::default()).unwrap();
        let all = (0..).zip(others).map(|(number, other)| Ok::<_, Error>((number * 700, other)));
        loaded.insert_keys(all).unwrap();
        assert_eq!(found(&loaded, &sentence), [0, 700]);
        assert_eq!(found(&loaded, &article), [700]);
    }
}
