//! Candidates: which contents may be the same article, by any of its keys.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::convert::Infallible;

use crate::neardup::index::keys::KeyIndex;
use crate::neardup::index::layout::{Layout, Near, build};
use crate::text::features::ArticleKeys;
use crate::text::simhash::Fingerprint;
use crate::text::sketch::{SLOTS, Sketch};

use super::{Change, Config, Error, Field, Key};

/// The keys of all contents, in memory.
pub struct Finder {
    near: Box<dyn Layout>,
    titles: Box<dyn Layout>,
    sentences: KeyIndex,
    bands: KeyIndex,
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
    pub content: u32,
    /// The first key, in the order of [`Key`], by which it was found.
    pub key: Key,
    /// The title is among the keys by which it was found.
    pub titled: bool,
    /// How much speaks for it.
    pub votes: u32,
}

/// Votes of each kind of key: a near fingerprint or a long sentence tells more than a band.
const VOTES: [(Key, u32); 4] =
    [(Key::Title, 2), (Key::Near, 6), (Key::Sentence, 3), (Key::Shingles, 1)];

impl std::fmt::Debug for Finder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finder").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Finder {
    /// Makes an empty one.
    pub fn new(config: &Config) -> Result<Self, Error> {
        config.check()?;
        Ok(Self {
            near: build(config.layout, config.k)?,
            titles: build(config.layout, config.k)?,
            sentences: KeyIndex::default(),
            bands: KeyIndex::default(),
            tails: Tails::default(),
            config: config.clone(),
            removed: HashSet::new(),
            ahead: false,
        })
    }

    /// Adds the keys of a content. Texts that are too short to be near-duplicates have none.
    pub fn insert(&mut self, content: u32, keys: &ArticleKeys) {
        self.ahead = true;
        for Change { field, fingerprint, .. } in self.changes(content, keys) {
            match field {
                Field::Content => self.near.insert(fingerprint, content),
                Field::Title => self.titles.insert(fingerprint, content),
            }
        }
        let Ok(()) = self.insert_keys(std::iter::once(Ok::<_, Infallible>((content, keys))));
    }

    /// Names a content no more: it was removed from the store.
    pub fn forget(&mut self, content: u32) {
        self.ahead = true;
        self.removed.insert(content);
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
    pub fn changes(&self, content: u32, keys: &ArticleKeys) -> Vec<Change> {
        if !self.is_long_enough(keys) {
            return Vec::new();
        }
        let add = |field, fingerprint| Change { field, fingerprint, content, removed: false };
        let title = keys.title.filter(|_| self.config.titles);
        let title = title.map(|title| add(Field::Title, title));
        std::iter::once(add(Field::Content, keys.text.fingerprint)).chain(title).collect()
    }

    /// Adds fingerprints that were stored.
    pub(crate) fn insert_fingerprints(&mut self, field: Field, entries: &[(Fingerprint, u32)]) {
        match field {
            Field::Content => self.near.insert_all(entries),
            Field::Title if self.config.titles => self.titles.insert_all(entries),
            Field::Title => {}
        }
    }

    /// Adds the equality keys of contents.
    pub(crate) fn insert_keys<E>(
        &mut self,
        contents: impl Iterator<Item = Result<(u32, impl Borrow<ArticleKeys>), E>>,
    ) -> Result<(), E> {
        let (mut sentences, mut bands) = (Vec::new(), Vec::new());
        for content in contents {
            let (content, keys) = content?;
            let keys = keys.borrow();
            if !self.is_long_enough(keys) {
                continue;
            }
            if self.config.bands > 0 {
                self.tails.insert(content, &keys.text.sketch);
            }
            sentences.extend(self.sentence_keys(keys).into_iter().map(|key| (key, content)));
            bands.extend(self.band_keys(keys).into_iter().map(|key| (key, content)));
            if bands.len().max(sentences.len()) >= KEYS_AT_A_TIME {
                self.sentences.insert_all(&mut sentences);
                self.bands.insert_all(&mut bands);
            }
        }
        self.sentences.insert_all(&mut sentences);
        self.bands.insert_all(&mut bands);
        Ok(())
    }

    /// Tells whether a text is long enough to be a near-duplicate; an empty one never is.
    fn is_long_enough(&self, keys: &ArticleKeys) -> bool {
        keys.text.words >= self.config.rule.words_min.max(1)
    }

    fn sentence_keys(&self, keys: &ArticleKeys) -> Vec<u32> {
        if self.config.sentences { keys.text.sentences.clone() } else { Vec::new() }
    }

    fn band_keys(&self, keys: &ArticleKeys) -> Vec<u32> {
        keys.text.sketch.bands(self.config.bands, self.config.band_rows).collect()
    }

    /// Returns the contents that share a key with an article, those for which most speaks first,
    /// then older ones. Those that share bands alone, and otherwise little as the ends of their
    /// sketches tell, are left out: in a large corpus they are most of all, and each costs two
    /// look-ups.
    #[must_use]
    pub fn candidates(&self, keys: &ArticleKeys) -> Vec<Candidate> {
        let mut hits = self.hits(keys);
        hits.sort_unstable();
        let groups = hits.chunk_by(|a, b| a.0 == b.0);
        let mut found: Vec<Candidate> = groups
            .map(|group| Candidate {
                content: group[0].0,
                key: VOTES[group[0].1].0,
                titled: group[0].1 == 0,
                votes: group.iter().map(|(_, kind)| VOTES[*kind].1).sum(),
            })
            .collect();
        let sketch = &keys.text.sketch;
        found.retain(|found| {
            found.key != Key::Shingles
                || found.titled
                || self.tails.resembles(found.content, sketch)
        });
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.votes));
        found
    }

    /// Returns every key by which `content` is found from an article.
    #[must_use]
    pub fn keys_of(&self, content: u32, keys: &ArticleKeys) -> Vec<Key> {
        let mut kinds: Vec<usize> = self
            .hits(keys)
            .into_iter()
            .filter(|(other, _)| *other == content)
            .map(|(_, kind)| kind)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.into_iter().map(|kind| VOTES[kind].0).collect()
    }

    /// Contents with the places in [`VOTES`] of the keys that lead to them.
    fn hits(&self, keys: &ArticleKeys) -> Vec<(u32, usize)> {
        let mut hits: Vec<(u32, usize)> = Vec::new();
        if !self.is_long_enough(keys) {
            return hits;
        }
        let mut near: Vec<Near> = Vec::new();
        if let Some(title) = keys.title.filter(|_| self.config.titles) {
            self.titles.probe(title, self.config.k.min(TITLE_K), &mut near);
            hits.extend(nearest(&mut near).map(|number| (number, 0)));
        }
        self.near.probe(keys.text.fingerprint, self.config.k, &mut near);
        hits.extend(nearest(&mut near).map(|number| (number, 1)));
        for key in self.sentence_keys(keys) {
            self.sentences.get(key, |content| hits.push((content, 2)));
        }
        for key in self.band_keys(keys) {
            self.bands.get(key, |content| hits.push((content, 3)));
        }
        if !self.removed.is_empty() {
            hits.retain(|(content, _)| !self.removed.contains(content));
        }
        hits
    }

    /// Returns the number of contents in the index.
    #[must_use]
    pub fn len(&self) -> usize {
        self.near.len()
    }

    /// Returns whether no content is in the index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty()
    }

    /// Returns the memory of the index in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let keys = self.sentences.bytes() + self.bands.bytes();
        self.near.bytes() + self.titles.bytes() + keys + self.tails.bytes()
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

/// The ends of the sketches of all contents, by their numbers.
#[derive(Default)]
struct Tails(Vec<Option<Box<[[u8; TAIL]]>>>);

impl Tails {
    fn insert(&mut self, content: u32, sketch: &Sketch) {
        let (chunk, at) = (content as usize / CHUNK, content as usize % CHUNK);
        if self.0.len() <= chunk {
            self.0.resize_with(chunk + 1, || None);
        }
        let empty = || vec![[0; TAIL]; CHUNK].into_boxed_slice();
        self.0[chunk].get_or_insert_with(empty)[at].copy_from_slice(&sketch.0[SLOTS - TAIL..]);
    }

    /// Tells whether a content has more in common with an article than chance has it.
    fn resembles(&self, content: u32, sketch: &Sketch) -> bool {
        let Some(Some(chunk)) = self.0.get(content as usize / CHUNK) else { return true };
        let pairs = chunk[content as usize % CHUNK].iter().zip(&sketch.0[SLOTS - TAIL..]);
        pairs.filter(|(one, other)| one == other).count() >= TAIL_EQUAL_MIN
    }

    fn bytes(&self) -> usize {
        self.0.iter().flatten().count() * CHUNK * TAIL
    }
}

/// Takes the nearest entries, older ones first among equals: as many as a key may have.
fn nearest(near: &mut Vec<Near>) -> impl Iterator<Item = u32> + '_ {
    let order = |near: &Near| (near.distance, near.number);
    if near.len() > KeyIndex::PER_KEY_MAX {
        near.select_nth_unstable_by_key(KeyIndex::PER_KEY_MAX, order);
        near.truncate(KeyIndex::PER_KEY_MAX);
    }
    near.drain(..).map(|near| near.number)
}

/// Largest distance of titles: they are short, so that a few more bits are another title.
const TITLE_K: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::features::{Standing, TextKeys};
    use crate::text::simhash::Fingerprint;

    /// A text whose sketch has `own` in all slots but some, which have 1.
    fn text(own: u8, ones: &[(usize, usize)]) -> ArticleKeys {
        let mut sketch = Sketch(Box::new([own; SLOTS]));
        for (first, end) in ones {
            sketch.0[*first..*end].fill(1);
        }
        let fingerprint = Fingerprint(u64::from(own).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (shingles, words, sentences) = (100, 100, vec![u32::from(own)]);
        let hash = u128::from(own);
        let text = TextKeys { hash, fingerprint, sketch, shingles, words, sentences };
        ArticleKeys { text, title: None, standing: Standing::default() }
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
        sentence.text.sentences = vec![10];
        assert_eq!(found(&finder, &sentence), [0, 700]);
        // Loaded at once it is the same.
        let mut loaded = Finder::new(&Config::default()).unwrap();
        let all = (0..).zip(others).map(|(number, other)| Ok::<_, Error>((number * 700, other)));
        loaded.insert_keys(all).unwrap();
        assert_eq!(found(&loaded, &sentence), [0, 700]);
        assert_eq!(found(&loaded, &article), [700]);
    }
}
