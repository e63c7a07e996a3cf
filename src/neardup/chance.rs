//! What texts have in common by chance or by what they are about, and how that is told without
//! reading them.

use crate::text::features::TextKeys;
use crate::text::sketch::{Sketch, equal_slots};

use super::{Config, Rule};

/// Slots at the end of a sketch, where the default bands have no part.
pub(crate) const SKETCH_END: usize = 128;

/// Of them, so many must be equal. One pair of texts in ten thousand million that have a similarity
/// of 0.3 has fewer; of 0.1 14 % have, of 0.05 85 %, of 0.03 99 %.
pub(super) const END_EQUAL_MIN: usize = 10;

/// Of two texts that are just alike enough to be one, at least this share of the equal slots that
/// the end has on average is there. Of pairs of 256 shingles one in 180 or fewer has less, of 64
/// one in twelve, of 32 one in six (simulated): there many slots are filled from one shingle. These
/// are found all the same, unless many that are unlike share more keys.
const SURE_SHARE: f32 = 0.7;

/// Texts that share bands of the sketch with an article and turn out to have no more in common with
/// it: those behind them are not looked at. Those that share most come first.
pub(super) const CHANCE_MAX: usize = 16;

/// Texts that are read though they are too unlike to be one with an article: they tell what is
/// commonplace. Where all texts are written to one pattern, most of them are such.
pub(super) const UNLIKE_MAX: usize = 16;

/// What is kept of a text to be compared first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glimpse {
    /// The end of its sketch.
    end: [u8; SKETCH_END],
    /// Distinct shingles.
    shingles: u32,
}

impl Glimpse {
    /// Bytes in which one is stored.
    pub(crate) const BYTES: usize = SKETCH_END + size_of::<u32>();

    /// Takes it of a text.
    pub(crate) fn of(sketch: &Sketch, shingles: u32) -> Self {
        let end = *sketch.slots.last_chunk().expect("a sketch has more slots than its end");
        Self { end, shingles }
    }

    /// Returns it as it is stored.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..SKETCH_END].copy_from_slice(&self.end);
        bytes[SKETCH_END..].copy_from_slice(&self.shingles.to_be_bytes());
        bytes
    }

    /// Reads one that is stored.
    pub(crate) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (end, shingles) = (bytes.first_chunk(), bytes.last_chunk());
        let (end, shingles) = end.zip(shingles).expect("both are there");
        Self { end: *end, shingles: u32::from_be_bytes(*shingles) }
    }
}

/// How alike two texts that share weak keys look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resemblance {
    /// They have no more in common than chance has it.
    Chance,
    /// They have more in common, and are too unlike to be one.
    Unlike,
    /// They may be one.
    Alike,
}

impl Resemblance {
    /// Compares an article with another text that was read.
    pub(super) fn of_texts(article: &TextKeys, other: &TextKeys, rule: &Rule) -> Self {
        Self::of(article, &Glimpse::of(&other.sketch, other.shingles), rule)
    }

    /// Compares an article with another text.
    pub(crate) fn of(article: &TextKeys, other: &Glimpse, rule: &Rule) -> Self {
        let end = &article.sketch.slots[article.sketch.slots.len() - SKETCH_END..];
        let equal = equal_slots(end, &other.end);
        if equal < END_EQUAL_MIN {
            return Self::Chance;
        }
        let least = rule.similarity_least(article.shingles, other.shingles);
        if (equal as f32) < SURE_SHARE * least * SKETCH_END as f32 {
            Self::Unlike
        } else {
            Self::Alike
        }
    }
}

/// Tells which of the candidates that share weak keys alone with an article are read: these may be
/// thousands. To be asked in their order.
#[derive(Debug, Clone, Copy)]
pub struct Sieve {
    /// How many may still be like the article by chance.
    chance: usize,
    /// How many may still be read of those that are unlike it.
    unlike: usize,
    /// How many may still be more than that by chance.
    others: usize,
}

impl Sieve {
    /// Begins with the first candidate of an article.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self { chance: CHANCE_MAX, unlike: UNLIKE_MAX, others: config.contents_max() }
    }

    /// Tells whether none of the candidates that follow is read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.chance == 0 || self.others == 0
    }

    /// Tells whether the next candidate is read, which looks so like the article; of one that is
    /// not there, the judge has to say.
    pub fn lets_through(&mut self, resemblance: Option<Resemblance>) -> bool {
        let Some(resemblance) = resemblance else { return true };
        let left = match resemblance {
            Resemblance::Chance => &mut self.chance,
            Resemblance::Unlike | Resemblance::Alike => &mut self.others,
        };
        *left = left.saturating_sub(1);
        match resemblance {
            Resemblance::Chance => false,
            Resemblance::Unlike => {
                let is_read = self.unlike > 0;
                self.unlike -= usize::from(is_read);
                is_read
            }
            Resemblance::Alike => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Resemblance::{Alike, Chance, Unlike};
    use super::*;
    use crate::text::features::KindHashes;
    use crate::text::simhash::Fingerprint;
    use crate::text::sketch::SLOTS;

    /// A text of which so many slots at the end are equal to those of every other such text.
    fn text(equal: usize, own: u8, shingles: u32) -> TextKeys {
        let mut slots = Box::new([own; SLOTS]);
        slots[SLOTS - equal..].fill(1);
        let sketch = Sketch { slots, seconds: None };
        let (hash, fingerprint) = (u128::from(own), Fingerprint(u64::from(own)));
        let (words, sentences, others) = (100, Box::default(), KindHashes::default());
        TextKeys { hash, fingerprint, sketch, shingles, words, sentences, others }
    }

    #[test]
    fn what_may_be_one_has_to_be_as_alike_as_the_sizes_of_the_texts_ask_for() {
        let rule = Rule::default();
        let look = |equal, one, other| {
            let other = Glimpse::from_bytes(&{
                let text = text(SKETCH_END, 3, other);
                Glimpse::of(&text.sketch, text.shingles).to_bytes()
            });
            let mut article = text(equal, 2, one);
            article.sketch.slots[..SLOTS - SKETCH_END].fill(1);
            Resemblance::of(&article, &other, &rule)
        };
        // 0.3 of texts of one size, or if one is very much shorter; else a part may be all of it.
        assert_eq!(
            [9, 10, 26, 27].map(|equal| look(equal, 100, 100)),
            [Chance, Unlike, Unlike, Alike]
        );
        assert_eq!([26, 27].map(|equal| look(equal, 1_000, 500)), [Unlike, Alike]);
        assert_eq!([20, 21].map(|equal| look(equal, 300, 1_000)), [Unlike, Alike]);
        assert_eq!([31, 32].map(|equal| look(equal, 1_000, 299)), [Unlike, Alike]);
        let bare = Rule { confirm: false, ..rule };
        let glimpse = Glimpse::of(&text(SKETCH_END, 3, 9).sketch, 9);
        let looks = [9, 10].map(|equal| Resemblance::of(&text(equal, 2, 9), &glimpse, &bare));
        assert_eq!(looks, [Chance, Alike]);
    }

    #[test]
    fn of_many_that_are_unlike_few_are_read_and_of_all_not_more_than_the_judge_can() {
        let config = Config { candidates_max: 20, ..Config::default() };
        let mut sieve = Sieve::of(&config);
        let mut read = |looks: Option<Resemblance>, times: usize| {
            (0..times).filter(|_| !sieve.is_done() && sieve.lets_through(looks)).count()
        };
        assert_eq!(read(Some(Unlike), UNLIKE_MAX + 3), UNLIKE_MAX);
        assert_eq!(read(Some(Alike), 2), 2);
        assert_eq!(read(Some(Chance), CHANCE_MAX - 1), 0);
        assert_eq!(read(None, 200), 200);
        assert_eq!(read(Some(Alike), 200), 80 - (UNLIKE_MAX + 3) - 2);
        let mut sieve = Sieve::of(&config);
        (0..CHANCE_MAX).for_each(|_| assert!(!sieve.lets_through(Some(Chance))));
        assert!(sieve.is_done());
    }
}
