//! The rows of documents, copies and contents.

use xxhash_rust::xxh3::xxh3_64;

use crate::base::clock::Timestamp;
use crate::neardup::Key;
use crate::store::{
    Blob, Code, ContentNumber, DocumentNumber, Encoder, Fixed, Flag, List, MaybeNumber, Nested,
    Number, Rest, Signed, Text, Wide, row,
};
use crate::text::features::{self, Standing, TextKeys};
use crate::text::simhash::Fingerprint;
use crate::text::sketch::{ShownSketch, Sketch};
use crate::web::robots::meta::Terms;

use super::codecs::PageTerms;
use super::{DocId, Facts};

row! {
    /// One article: its canonical copy and its cluster.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Document: "document", 3 to 4 {
        /// Its public identifier.
        pub id: DocId = Wide;
        /// Content at the root of its tree in the parent forest.
        pub root: u64 = ContentNumber;
        /// URL of the canonical copy: the one of the highest popularity.
        pub canonical: String = Text;
        /// Content of the canonical copy.
        pub content: u64 = ContentNumber;
        /// Title of the canonical copy.
        pub title: String = Text;
        /// Language of the canonical copy (ISO 639-1), or empty.
        pub language: String = Text;
        /// What the canonical copy says of itself.
        pub facts: Facts = Nested;
        /// Popularity of the canonical copy.
        pub popularity: u64 = Number;
        /// Copies, the canonical one among them.
        pub copies: u64 = Number;
        /// When the first copy came.
        pub first_arrival: Timestamp = Signed;
        /// When the newest copy came, or one came again.
        pub last_arrival: Timestamp = Signed;
        /// Identifiers of documents that were merged into it and still lead to it.
        pub merged: Vec<DocId> = List<Wide>;
        /// Since when no URL carries it any more; 0 while one does.
        pub gone: Timestamp = Signed;
        /// Identifiers of documents of other stores that are part of it and lead to it.
        pub joined: Vec<DocId> = List<Wide>, since 4;
    }
}

impl Document {
    /// Makes the document of its first copy.
    #[must_use]
    pub fn first(id: DocId, root: u64, address: &str, copy: &Copy) -> Self {
        Self {
            id,
            root,
            canonical: address.to_owned(),
            content: copy.content,
            title: copy.title.clone(),
            language: copy.language.clone(),
            facts: copy.facts.clone(),
            popularity: copy.popularity,
            copies: 1,
            first_arrival: copy.arrival,
            last_arrival: copy.arrival,
            merged: Vec::new(),
            gone: Timestamp(0),
            joined: Vec::new(),
        }
    }

    /// Returns a hash of what a search finds and shows of it; 0 if no URL carries it any more.
    #[must_use]
    pub fn shown(&self) -> u64 {
        if self.gone.0 != 0 {
            return 0;
        }
        let row = Encoder::new(1).wide(self.id.0).number(self.content);
        let row = row.text(&self.canonical).text(&self.title);
        xxh3_64(&row.finish()).max(1)
    }
}

row! {
    /// One URL that carries a document.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Copy: "copy", 3 to 5 {
        /// Its content.
        pub content: u64 = ContentNumber;
        /// By which key it was recognised.
        pub key: Key = Code;
        /// Bits between its fingerprint and that of the content it was joined to.
        pub distance: u8 = Number;
        /// Estimated similarity to that content, in thousandths.
        pub similarity: u16 = Number;
        /// Its popularity: the explicit score, or the number of distinct linking hosts.
        pub popularity: u64 = Number;
        /// The popularity was given and does not follow the links.
        pub scored: bool = Flag;
        /// Its title.
        pub title: String = Text;
        /// Its language (ISO 639-1), or empty.
        pub language: String = Text;
        /// What it says of itself.
        pub facts: Facts = Nested;
        /// What its page allows to be done with the text.
        pub terms: Terms = PageTerms;
        /// Blocks that were left out of its text because its host repeats them.
        pub left_out: u32 = Number;
        /// When it came.
        pub arrival: Timestamp = Signed;
        /// URL that its page names as canonical; empty for none or its own.
        pub declared: String = Text;
        /// Everything that its page shows; none if that is not known.
        pub shown: Option<ShownSketch> = Blob, since 4;
        /// Its text is likely not what its page is about.
        pub doubtful: bool = Flag, since 4;
        /// How good its text is likely to be, in thousandths; none if that is not known.
        pub quality: Option<u64> = MaybeNumber, since 5;
    }
}

impl Copy {
    /// Returns where it stands.
    #[must_use]
    pub fn standing(&self, address: &str) -> Standing {
        let standing = Standing::of(address, &self.title, &self.declared);
        Standing { shown: self.shown.clone(), doubtful: self.doubtful, ..standing }
    }
}

row! {
    /// One distinct text: a node of the parent forest.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Content: "content", 2 to 5 {
        /// Document it belongs to. The node is the root if the document's row says so.
        pub document: u64 = DocumentNumber;
        /// 128-bit hash of the normalised text.
        pub hash: u128 = Wide;
        /// Fingerprint of the text.
        pub fingerprint: Fingerprint = Fixed;
        /// Fingerprint of the title it first came with, if that tells anything.
        pub title_fingerprint: Option<Fingerprint> = Fixed;
        /// Words of the text.
        pub words: u32 = Number;
        /// Distinct shingles of the text.
        pub shingles: u32 = Number;
        /// Copies that carry it.
        pub copies: u64 = Number;
        /// When it first came.
        pub arrival: Timestamp = Signed;
        /// Hash of the site on which it first stood; 0 if that is not known.
        pub site: u64 = Fixed;
        /// Hash of the URL of that page without what names an edition; 0 if it is not known.
        pub edition: u32 = Number, since 3;
        /// Sketch of the text.
        pub sketch: Sketch = Blob;
        /// Keys of its longest sentences.
        pub sentences: Vec<u32> = List<Number>;
        /// Hashes of the text by further kinds of keys, each with the code of its kind.
        pub others: Vec<(u8, u32)> = Rest<(Number, Number)>, since 4;
    }
}

impl Content {
    /// Makes the row of a text that came with its first page, in document `document` at `arrival`.
    #[must_use]
    pub fn first(document: u64, keys: &features::ArticleKeys, arrival: Timestamp) -> Self {
        let features::ArticleKeys { text, title, standing } = keys;
        Self {
            document,
            hash: text.hash,
            fingerprint: text.fingerprint,
            title_fingerprint: *title,
            words: text.words,
            shingles: text.shingles,
            copies: 1,
            arrival,
            site: standing.site,
            edition: standing.edition,
            sketch: text.sketch.clone(),
            sentences: text.sentences.to_vec(),
            others: text.others.all().to_vec(),
        }
    }

    /// Returns its keys, and where it stood first: site and edition.
    #[must_use]
    pub fn keys(self) -> features::ArticleKeys {
        let standing = Standing { site: self.site, edition: self.edition, ..Standing::default() };
        let text = TextKeys {
            hash: self.hash,
            fingerprint: self.fingerprint,
            sketch: self.sketch,
            shingles: self.shingles,
            words: self.words,
            sentences: self.sentences.into(),
            others: self.others.into_iter().collect(),
        };
        features::ArticleKeys { text, title: self.title_fingerprint, standing }
    }
}
