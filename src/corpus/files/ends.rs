//! The ends of the sketches of all texts, in a file: by these the many texts that share a key with
//! an article by chance are told from others without being read.

use std::path::Path;

use crate::neardup::{Candidate, SKETCH_END, ends_resemble, sift, sketch_end};
use crate::store;
use crate::text::sketch::Sketch;

use super::records::Records;

/// The ends of the sketches of texts, which have numbers from 0.
#[derive(Debug)]
pub(super) struct SketchEnds(EndsUntil);

/// Those of all texts that were there at some time.
#[derive(Debug, Clone)]
pub(super) struct EndsUntil(Records<SKETCH_END>);

impl SketchEnds {
    /// Begins an empty file in a folder.
    pub(super) fn create(folder: &Path) -> Result<Self, store::Error> {
        Ok(Self(EndsUntil(Records::create(folder, "sketch-ends")?)))
    }

    /// Adds the sketch of the next text.
    pub(super) fn push(&mut self, sketch: &Sketch) -> Result<(), store::Error> {
        self.0.0.push(sketch_end(sketch))
    }

    /// Returns those of all texts that are there now, to be read while others come.
    pub(super) fn until_now(&self) -> EndsUntil {
        self.0.clone()
    }

    /// See [`EndsUntil::sifted`].
    pub(super) fn sifted(
        &self,
        candidates: Vec<Candidate>,
        sketch: &Sketch,
        known: &[u64],
    ) -> Result<Vec<Candidate>, store::Error> {
        self.0.sifted(candidates, sketch, known)
    }
}

impl EndsUntil {
    /// Tells whether a text has more in common with a sketch than chance has it.
    pub(super) fn resembles(&self, content: u64, sketch: &Sketch) -> Result<bool, store::Error> {
        Ok(ends_resemble(sketch_end(sketch), &self.0.get(content)?))
    }

    /// Leaves of candidates those that the judge reads. Of `known`, in order, it is known that they
    /// have something in common by chance.
    pub(super) fn sifted(
        &self,
        mut candidates: Vec<Candidate>,
        sketch: &Sketch,
        known: &[u64],
    ) -> Result<Vec<Candidate>, store::Error> {
        sift(&mut candidates, |content| {
            Ok::<_, store::Error>(
                known.binary_search(&content).is_err() && self.resembles(content, sketch)?,
            )
        })?;
        Ok(candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neardup::Key;
    use crate::text::sketch::{SLOTS, mix};

    fn sketch(number: u64) -> Sketch {
        let slot = |slot| mix(number << 16 | slot as u64) as u8;
        Sketch { slots: Box::new(std::array::from_fn::<u8, SLOTS, _>(slot)), seconds: None }
    }

    #[test]
    fn texts_of_the_file_and_of_memory_are_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut ends = SketchEnds::create(folder.path()).unwrap();
        let count = 9_000;
        (0..count).for_each(|number| ends.push(&sketch(number)).unwrap());
        let until = ends.until_now();
        (0..count).for_each(|number| ends.push(&sketch(number)).unwrap());
        for number in [0, 1, count / 2, count - 11, count - 10, count - 1] {
            assert!(until.resembles(number, &sketch(number)).unwrap());
            assert!(!until.resembles(number, &sketch(number + 1)).unwrap());
        }
        let candidate = |content, weak| {
            let key = Key::Near;
            Candidate { content, key, titled: false, weak, votes: 1 }
        };
        let asked = [(3, true), (5, true), (7, false), (9, true)];
        let asked: Vec<Candidate> = asked.map(|(one, weak)| candidate(one, weak)).into();
        let of = |known: &[u64]| {
            let found = ends.sifted(asked.clone(), &sketch(5), known);
            found.unwrap().iter().map(|one| one.content).collect::<Vec<u64>>()
        };
        assert_eq!(of(&[]), [5, 7]);
        assert_eq!(of(&[3, 9]), [5, 7]);
        // What is known is not looked at.
        assert_eq!(of(&[3, 5]), [7]);
    }
}
