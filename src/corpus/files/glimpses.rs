//! Glimpses of all texts, in a file: by these the many texts that share a key with an article by
//! chance are told from others without being read.

use std::path::Path;

use crate::neardup::{Candidate, Config, Glimpse, Resemblance, Rule, Sieve, sift};
use crate::store;
use crate::text::features::TextKeys;

use super::records::Records;

/// Glimpses of texts, which have numbers from 0.
#[derive(Debug)]
pub(super) struct Glimpses(GlimpsesUntil);

/// Those of all texts that were there at some time.
#[derive(Debug, Clone)]
pub(super) struct GlimpsesUntil {
    records: Records<{ Glimpse::BYTES }>,
    rule: Rule,
    sieve: Sieve,
}

impl Glimpses {
    /// Begins an empty file in a folder.
    pub(super) fn create(folder: &Path, config: &Config) -> Result<Self, store::Error> {
        let records = Records::create(folder, "glimpses")?;
        Ok(Self(GlimpsesUntil { records, rule: config.rule, sieve: Sieve::of(config) }))
    }

    /// Adds that of the next text.
    pub(super) fn push(&mut self, text: &TextKeys) -> Result<(), store::Error> {
        self.0.records.push(&Glimpse::of(&text.sketch, text.shingles).to_bytes())
    }

    /// Returns those of all texts that are there now, to be read while others come.
    pub(super) fn until_now(&self) -> GlimpsesUntil {
        self.0.clone()
    }

    /// See [`GlimpsesUntil::sifted`].
    pub(super) fn sifted(
        &self,
        candidates: Vec<Candidate>,
        article: &TextKeys,
        known: impl Fn(u64) -> Option<Resemblance>,
    ) -> Result<Vec<Candidate>, store::Error> {
        self.0.sifted(candidates, article, known)
    }
}

impl GlimpsesUntil {
    /// Returns how like an article a text looks.
    pub(super) fn compare(
        &self,
        article: &TextKeys,
        content: u64,
    ) -> Result<Resemblance, store::Error> {
        let glimpse = Glimpse::from_bytes(&self.records.get(content)?);
        Ok(Resemblance::of(article, &glimpse, &self.rule))
    }

    /// Leaves of candidates those that the judge reads. `known` tells how like the article a text
    /// looks, if they were compared before.
    pub(super) fn sifted(
        &self,
        mut candidates: Vec<Candidate>,
        article: &TextKeys,
        known: impl Fn(u64) -> Option<Resemblance>,
    ) -> Result<Vec<Candidate>, store::Error> {
        sift(&mut candidates, self.sieve, |content| match known(content) {
            Some(resemblance) => Ok::<_, store::Error>(Some(resemblance)),
            None => Ok(Some(self.compare(article, content)?)),
        })?;
        Ok(candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neardup::Key;
    use crate::text::features::KindHashes;
    use crate::text::simhash::Fingerprint;
    use crate::text::sketch::{SLOTS, Sketch, mix};

    fn text(number: u64) -> TextKeys {
        let slot = |slot| mix(number << 16 | slot as u64) as u8;
        let slots = Box::new(std::array::from_fn::<u8, SLOTS, _>(slot));
        let (hash, fingerprint) = (u128::from(number), Fingerprint(number));
        let (sketch, others) = (Sketch { slots, seconds: None }, KindHashes::default());
        let (shingles, words, sentences) = (100, 100, Box::default());
        TextKeys { hash, fingerprint, sketch, shingles, words, sentences, others }
    }

    #[test]
    fn texts_of_the_file_and_of_memory_are_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut glimpses = Glimpses::create(folder.path(), &Config::default()).unwrap();
        let count = 9_000;
        (0..count).for_each(|number| glimpses.push(&text(number)).unwrap());
        let until = glimpses.until_now();
        (0..count).for_each(|number| glimpses.push(&text(number)).unwrap());
        for number in [0, 1, count / 2, count - 11, count - 10, count - 1] {
            assert_eq!(until.compare(&text(number), number).unwrap(), Resemblance::Alike);
            assert_eq!(until.compare(&text(number + 1), number).unwrap(), Resemblance::Chance);
        }
        let candidate = |content, weak| {
            let key = Key::Near;
            Candidate { content, key, titled: false, weak, votes: 1 }
        };
        let asked = [(3, true), (5, true), (7, false), (9, true)];
        let asked: Vec<Candidate> = asked.map(|(one, weak)| candidate(one, weak)).into();
        let of = |known: &[u64]| {
            let known = |content: u64| known.contains(&content).then_some(Resemblance::Chance);
            let found = glimpses.sifted(asked.clone(), &text(5), known);
            found.unwrap().iter().map(|one| one.content).collect::<Vec<u64>>()
        };
        assert_eq!(of(&[]), [5, 7]);
        assert_eq!(of(&[3, 9]), [5, 7]);
        // What is known is not looked at.
        assert_eq!(of(&[3, 5]), [7]);
    }
}
