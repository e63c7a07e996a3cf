//! Hashes of a text by kinds of keys that this room does not know.

/// Hashes, each with the code of its kind. In one word: most texts have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::box_collection, reason = "a list takes three words also when it is empty")]
pub struct KindHashes(Option<Box<Vec<(u8, u32)>>>);

impl KindHashes {
    /// Returns all of them.
    #[must_use]
    pub fn all(&self) -> &[(u8, u32)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Returns those of a kind.
    pub fn of(&self, code: u8) -> impl Iterator<Item = u32> {
        self.all().iter().filter(move |(of, _)| *of == code).map(|(_, hash)| *hash)
    }
}

impl FromIterator<(u8, u32)> for KindHashes {
    fn from_iter<I: IntoIterator<Item = (u8, u32)>>(hashes: I) -> Self {
        let hashes: Vec<(u8, u32)> = hashes.into_iter().collect();
        Self((!hashes.is_empty()).then(|| Box::new(hashes)))
    }
}
