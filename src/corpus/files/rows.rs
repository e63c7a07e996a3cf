//! The rows of a run over files: its documents, their texts and clusters.

use crate::neardup::{Candidate, Cluster, JudgedPage, JudgedTree, Key, LineStanding, TextPlace};
use crate::store::{Code, Fixed, Flag, List, Nested, Number, Text, row};

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
    /// Where a text of a run over files hangs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredPlace: "place", 1 to 1 {
        /// Its tree.
        pub tree: u32 = Number;
        /// The first document that has it.
        pub first: u32 = Number;
        /// By which key it was found.
        pub key: Key = Code;
        /// Bits between its fingerprint and that of the root.
        pub distance: u8 = Number;
        /// Bits of its similarity to the root, as IEEE 754 has them.
        pub similarity: u32 = Number;
    }
}

row! {
    /// A tree of a run over files.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredTree: "tree", 1 to 1 {
        /// Its first document.
        pub first: u32 = Number;
        /// Its most popular document.
        pub canonical: u32 = Number;
        /// Its documents.
        pub copies: u32 = Number;
        /// Popularity of the canonical document.
        pub popularity: u64 = Number;
        /// Content at its root.
        pub root: u32 = Number;
        /// Content of the canonical document.
        pub best: u32 = Number;
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

impl From<TextPlace> for StoredPlace {
    fn from(place: TextPlace) -> Self {
        let TextPlace { tree, first, key, distance, similarity } = place;
        Self { tree, first, key, distance, similarity: similarity.to_bits() }
    }
}

impl From<StoredPlace> for TextPlace {
    fn from(row: StoredPlace) -> Self {
        let StoredPlace { tree, first, key, distance, similarity } = row;
        Self { tree, first, key, distance, similarity: f32::from_bits(similarity) }
    }
}

impl From<JudgedTree> for StoredTree {
    fn from(tree: JudgedTree) -> Self {
        let JudgedTree { cluster: Cluster { first, canonical, copies }, popularity, root, best } =
            tree;
        Self { first, canonical, copies, popularity, root, best }
    }
}

impl From<StoredTree> for JudgedTree {
    fn from(row: StoredTree) -> Self {
        let StoredTree { first, canonical, copies, popularity, root, best } = row;
        Self { cluster: Cluster { first, canonical, copies }, popularity, root, best }
    }
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
