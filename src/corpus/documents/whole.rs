//! A document with all that is said of it: what goes from one store to another as it is.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::corpus::tables::{CONTENTS, DOCUMENTS, REVIEWS, UNSURE};
use crate::store::{BadRow, Encoder, Error, Row as _, View};

use super::{CanonicalChange, Content, Copy, DocId, Document, changes_of, copies_of, read_body};

/// A document with its copies, texts and history. Numbers are those of the store it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeDocument {
    /// The document.
    pub document: Document,
    /// Its copies, in the order of their URLs.
    pub copies: Vec<(String, Copy)>,
    /// The texts that copies carry, and that of its root, which comes first.
    pub contents: Vec<WholeContent>,
    /// Changes of the canonical copy, oldest first.
    pub history: Vec<CanonicalChange>,
    /// Its canonical copy has another text than before, which is to be looked at.
    pub is_reviewed: bool,
    /// Matches of some of its texts wait for their second look.
    pub waits: bool,
}

/// A text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeContent {
    /// Its number.
    pub number: u64,
    /// Its keys.
    pub content: Content,
    /// The text.
    pub text: String,
    /// URL of the copy that brought it, if its match was less than certain.
    pub unsure: Option<String>,
}

/// How much of documents there is, and a checksum over all of it that is the same wherever they
/// lie, in whatever order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum {
    /// Documents.
    pub documents: u64,
    /// Copies.
    pub copies: u64,
    /// Texts.
    pub texts: u64,
    /// Sum of the hashes of all documents.
    pub sum: u128,
}

impl WholeDocument {
    /// Reads a document, whose matches of texts up to the number `settled` have had their second
    /// look. None if it is not there.
    ///
    /// # Errors
    ///
    /// A text that is missing or damaged, and what the store says.
    pub fn read(view: &impl View, number: u64, settled: u64) -> Result<Option<Self>, Error> {
        let Some(document) = view.get(DOCUMENTS, number)? else { return Ok(None) };
        let copies = copies_of(view, number)?;
        let mut numbers = vec![document.root];
        for content in copies.iter().map(|(_, copy)| copy.content).chain([document.content]) {
            if !numbers.contains(&content) {
                numbers.push(content);
            }
        }
        numbers[1..].sort_unstable();
        let contents = numbers.into_iter().map(|number| content(view, number));
        let contents = contents.collect::<Result<Vec<WholeContent>, Error>>()?;
        let waits = |one: &WholeContent| one.unsure.is_some() && one.number > settled;
        let waits = contents.iter().any(waits);
        let history = changes_of(view, number)?;
        let is_reviewed = view.has(REVIEWS, number)?;
        Ok(Some(Self { document, copies, contents, history, is_reviewed, waits }))
    }

    /// Returns all identifiers that lead to it beside its own, in their order.
    #[must_use]
    pub fn other_ids(&self) -> Vec<DocId> {
        let Document { merged, joined, .. } = &self.document;
        let mut ids: Vec<DocId> = merged.iter().chain(joined).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns a hash of all that is said of it, whatever its numbers are.
    #[must_use]
    pub fn hash(&self) -> u128 {
        let hash_of = |number: u64| {
            let found = self.contents.iter().find(|content| content.number == number);
            found.map_or(0, |content| content.content.hash)
        };
        let Document { id, canonical, content, root, gone, .. } = &self.document;
        let mut row = Encoder::new(1).wide(id.0).text(canonical).number(gone.0.cast_unsigned());
        row = row.wide(hash_of(*content)).wide(hash_of(*root));
        row = row.number(self.document.first_arrival.0.cast_unsigned());
        row = row.number(self.document.last_arrival.0.cast_unsigned());
        for id in self.other_ids() {
            row = row.wide(id.0);
        }
        for (url, copy) in &self.copies {
            let plain = Copy { content: 0, ..copy.clone() };
            row = row.text(url).wide(hash_of(copy.content)).bytes(&plain.encode());
        }
        let mut texts: Vec<(u128, u64, Vec<u8>)> = Vec::new();
        for WholeContent { content, text, .. } in &self.contents {
            let plain = Content { document: 0, ..content.clone() };
            texts.push((content.hash, xxh3_64(text.as_bytes()), plain.encode().into_owned()));
        }
        texts.sort_unstable();
        for (hash, text, content) in texts {
            row = row.wide(hash).number(text).bytes(&content);
        }
        for change in &self.history {
            row = row.bytes(&change.encode());
        }
        xxh3_128(&row.finish())
    }
}

impl Checksum {
    /// Counts a document.
    pub fn add(&mut self, whole: &WholeDocument) {
        self.documents += 1;
        self.copies += whole.copies.len() as u64;
        self.texts += whole.contents.len() as u64;
        self.sum = self.sum.wrapping_add(whole.hash());
    }
}

fn content(view: &impl View, number: u64) -> Result<WholeContent, Error> {
    let missing = |detail| BadRow { kind: "content", detail };
    let content = view.get(CONTENTS, number)?.ok_or_else(|| missing("a copy names no text"))?;
    let text = read_body(view, number)?.ok_or_else(|| missing("its text is missing"))?;
    Ok(WholeContent { number, content, text, unsure: view.get(UNSURE, number)? })
}
