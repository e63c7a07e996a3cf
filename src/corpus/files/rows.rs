//! The rows of a run over files: its documents, their texts and clusters.

use crate::neardup::{Candidate, Cluster, JudgedPage, JudgedTree, Key, LineStanding, TextPlace};
use crate::store::{BadRow, Code, Fixed, Flag, List, Nested, Number, Text, row};

use super::work::LineSource;

row! {
    /// A document of a run over files.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredLine: "line", 1 to 1 {
        /// Number of its file, from 0.
        pub file: u32 = Number;
        /// Number of its line in the file, from 1.
        pub line: u64 = Number;
        /// Its identifier.
        pub id: String = Text;
        /// Its content.
        pub content: u32 = Number;
        /// Its popularity.
        pub popularity: u64 = Number;
        /// Hash of its site; 0 if that is not known, as all hashes that follow.
        pub site: u64 = Fixed;
        /// Hash of its URL without what names an edition.
        pub edition: u32 = Number;
        /// The same without the numbers in names of folders.
        pub form: u32 = Number;
        /// Hash of its title.
        pub name: u32 = Number;
        /// The same if the title has two words.
        pub title: u32 = Number;
        /// Hash of its title without the number of a chapter.
        pub heading: u32 = Number;
    }
}

row! {
    /// Contents that share a key with a text of a run over files, when all are known.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredCandidates: "candidates", 1 to 1 {
        /// Those for which most speaks first.
        pub all: Vec<StoredCandidate> = List<Nested>;
    }
}

row! {
    /// A content that shares a key with a text.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredCandidate: part {
        /// Its number.
        pub content: u32 = Number;
        /// The first key by which it was found.
        pub key: Key = Code;
        /// The title is among them.
        pub titled: bool = Flag;
        /// It was found by keys alone that others have by chance.
        pub weak: bool = Flag;
        /// How much speaks for it.
        pub votes: u32 = Number;
    }
}

impl StoredLine {
    pub(super) fn source(self) -> LineSource {
        LineSource { file: self.file, line: self.line, id: self.id }
    }

    pub(super) fn page(&self) -> JudgedPage {
        let Self { content, popularity, site, edition, form, name, title, heading, .. } = *self;
        let standing = LineStanding { site, edition, form, name, title, heading };
        JudgedPage { content, popularity, standing }
    }
}

/// Bytes of where a text hangs.
pub(super) const PLACE_BYTES: usize = 14;

pub(super) fn place_bytes(place: &TextPlace) -> [u8; PLACE_BYTES] {
    let TextPlace { tree, first, key, distance, similarity } = *place;
    let mut bytes = [0; PLACE_BYTES];
    bytes[..4].copy_from_slice(&tree.to_be_bytes());
    bytes[4..8].copy_from_slice(&first.to_be_bytes());
    bytes[8] = key as u8;
    bytes[9] = distance;
    bytes[10..].copy_from_slice(&similarity.to_be_bytes());
    bytes
}

/// Reads where a text hangs.
pub(super) fn place_of(bytes: &[u8; PLACE_BYTES]) -> Result<TextPlace, BadRow> {
    let bad = BadRow { kind: "place", detail: "its key is unknown" };
    Ok(TextPlace {
        tree: number_at(bytes, 0),
        first: number_at(bytes, 4),
        key: Key::from_code(bytes[8].into()).ok_or(bad)?,
        distance: bytes[9],
        similarity: f32::from_bits(number_at(bytes, 10)),
    })
}

/// Bytes of a tree.
pub(super) const TREE_BYTES: usize = 28;

pub(super) fn tree_bytes(row: &JudgedTree) -> [u8; TREE_BYTES] {
    let JudgedTree { cluster: Cluster { first, canonical, copies }, popularity, root, best } = *row;
    let mut bytes = [0; TREE_BYTES];
    bytes[..8].copy_from_slice(&popularity.to_be_bytes());
    for (field, number) in
        bytes[8..].as_chunks_mut().0.iter_mut().zip([first, canonical, copies, root, best])
    {
        *field = number.to_be_bytes();
    }
    bytes
}

/// Reads a tree.
pub(super) fn tree_of(bytes: &[u8; TREE_BYTES]) -> JudgedTree {
    let popularity = u64::from(number_at(bytes, 0)) << 32 | u64::from(number_at(bytes, 4));
    let [first, canonical, copies, root, best] = [8, 12, 16, 20, 24].map(|at| number_at(bytes, at));
    JudgedTree { cluster: Cluster { first, canonical, copies }, popularity, root, best }
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

impl From<&[Candidate]> for StoredCandidates {
    fn from(all: &[Candidate]) -> Self {
        let stored = |candidate: &Candidate| {
            let Candidate { content, key, titled, weak, votes } = *candidate;
            StoredCandidate { content: content as u32, key, titled, weak, votes }
        };
        Self { all: all.iter().map(stored).collect() }
    }
}

impl From<StoredCandidates> for Vec<Candidate> {
    fn from(row: StoredCandidates) -> Self {
        let candidate = |stored: StoredCandidate| {
            let StoredCandidate { content, key, titled, weak, votes } = stored;
            Candidate { content: u64::from(content), key, titled, weak, votes }
        };
        row.all.into_iter().map(candidate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_trees_are_read_as_they_were_written() {
        for key in Key::ALL {
            let (tree, first, similarity) = (1 << 30 | 2, 3 << 20 | 4, 0.123);
            let place = TextPlace { tree, first, key: *key, distance: 63, similarity };
            assert_eq!(place_of(&place_bytes(&place)).unwrap(), place);
        }
        assert!(place_of(&[u8::MAX; PLACE_BYTES]).is_err());
        let cluster = Cluster { first: 1 << 24 | 1, canonical: 2 << 16 | 2, copies: 3 << 8 | 3 };
        let (popularity, root, best) = (u64::MAX - 9, u32::MAX - 1, 5);
        let tree = JudgedTree { cluster, popularity, root, best };
        assert_eq!(tree_of(&tree_bytes(&tree)), tree);
    }
}
