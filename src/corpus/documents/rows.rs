//! The rows of documents, copies and contents. The order of the fields in `encode` is the stored
//! order; docs/src/reference/store-format.md draws them.

use xxhash_rust::xxh3::xxh3_64;

use crate::base::clock::Timestamp;
use crate::neardup::Key;
use crate::store::{BadRow, Decoder, Encoder};
use crate::text::features::{Signature, Signed, Standing};
use crate::text::simhash::Fingerprint;
use crate::text::sketch::{SHOWN_SLOTS, Shown, Sketch};
use crate::web::robots::meta::Terms;

use super::{DocId, Facts};

/// One article: its canonical copy and its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its public identifier.
    pub id: DocId,
    /// Content at the root of its tree in the parent forest.
    pub root: u64,
    /// Address of the canonical copy: the one of the highest popularity.
    pub canonical: String,
    /// Content of the canonical copy.
    pub content: u64,
    /// Title of the canonical copy.
    pub title: String,
    /// Language of the canonical copy (ISO 639-1), or empty.
    pub language: String,
    /// What the canonical copy says of itself.
    pub facts: Facts,
    /// Popularity of the canonical copy.
    pub popularity: u64,
    /// Copies, the canonical one among them.
    pub copies: u64,
    /// When the first copy came.
    pub first_arrival: Timestamp,
    /// When the newest copy came, or one came again.
    pub last_arrival: Timestamp,
    /// Identifiers of documents that were merged into it and still lead to it.
    pub merged: Vec<u128>,
    /// Since when no address carries it any more; 0 while one does.
    pub gone: Timestamp,
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
        }
    }

    /// Returns a hash of what a search finds and shows of it; 0 if no address carries it any more.
    #[must_use]
    pub fn shown(&self) -> u64 {
        if self.gone.0 != 0 {
            return 0;
        }
        let row = Encoder::new(1).wide(self.id.0).number(self.content);
        let row = row.text(&self.canonical).text(&self.title);
        xxh3_64(&row.finish()).max(1)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let row = Encoder::new(3)
            .wide(self.id.0)
            .number(self.root)
            .text(&self.canonical)
            .number(self.content)
            .text(&self.title)
            .text(&self.language);
        let row = self
            .facts
            .encode(row)
            .number(self.popularity)
            .number(self.copies)
            .signed(self.first_arrival.0)
            .signed(self.last_arrival.0)
            .number(self.merged.len() as u64);
        let row = self.merged.iter().fold(row, |row, id| row.wide(*id));
        row.signed(self.gone.0).finish()
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("document", 3, row)?;
        Ok(Self {
            id: DocId(row.wide()?),
            root: row.number()?,
            canonical: row.text()?.to_owned(),
            content: row.number()?,
            title: row.text()?.to_owned(),
            language: row.text()?.to_owned(),
            facts: Facts::decode(&mut row)?,
            popularity: row.number()?,
            copies: row.number()?,
            first_arrival: Timestamp(row.signed()?),
            last_arrival: Timestamp(row.signed()?),
            merged: {
                let count: usize = row.narrow()?;
                (0..count).map(|_| row.wide()).collect::<Result<_, _>>()?
            },
            gone: Timestamp(row.signed()?),
        })
    }
}

fn decode_key(row: &mut Decoder<'_>) -> Result<Key, BadRow> {
    Key::from_code(row.number()?).ok_or_else(|| row.bad("its key is unknown"))
}

/// One address that carries a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// Its content.
    pub content: u64,
    /// By which key it was recognised.
    pub key: Key,
    /// Bits between its fingerprint and that of the content it was joined to.
    pub distance: u8,
    /// Estimated similarity to that content, in thousandths.
    pub similarity: u16,
    /// Its popularity: the explicit score, or the number of distinct linking hosts.
    pub popularity: u64,
    /// The popularity was given and does not follow the links.
    pub scored: bool,
    /// Its title.
    pub title: String,
    /// Its language (ISO 639-1), or empty.
    pub language: String,
    /// What it says of itself.
    pub facts: Facts,
    /// What its page allows to be done with the text.
    pub terms: Terms,
    /// Blocks that were left out of its text because its host repeats them.
    pub left_out: u32,
    /// When it came.
    pub arrival: Timestamp,
    /// Address that its page names as canonical; empty for none or its own.
    pub declared: String,
    /// Everything that its page shows; none if that is not known.
    pub shown: Option<Shown>,
    /// Its text is likely not what its page is about.
    pub doubtful: bool,
}

impl Copy {
    /// Returns where it stands.
    #[must_use]
    pub fn standing(&self, address: &str) -> Standing {
        let standing = Standing::of(address, &self.title, &self.declared);
        Standing { shown: self.shown.clone(), doubtful: self.doubtful, ..standing }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let Terms { noarchive, noai, tdm_reserved, unavailable_after } = self.terms;
        let shown = self.shown.as_ref().map_or(&[][..], |shown| &shown.0[..]);
        let row = Encoder::new(4)
            .number(self.content)
            .number(self.key as u64)
            .number(self.distance)
            .number(self.similarity)
            .number(self.popularity)
            .number(self.scored)
            .text(&self.title)
            .text(&self.language);
        let row = self.facts.encode(row);
        row.number(u8::from(noarchive) | u8::from(noai) << 1 | u8::from(tdm_reserved) << 2)
            .number(unavailable_after.is_some())
            .signed(unavailable_after.map_or(0, |end| end.0))
            .number(self.left_out)
            .signed(self.arrival.0)
            .text(&self.declared)
            .bytes(shown)
            .number(self.doubtful)
            .finish()
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::of("copy", 3..=4, row)?;
        Ok(Self {
            content: row.number()?,
            key: decode_key(&mut row)?,
            distance: row.narrow()?,
            similarity: row.narrow()?,
            popularity: row.number()?,
            scored: row.number()? != 0,
            title: row.text()?.to_owned(),
            language: row.text()?.to_owned(),
            facts: Facts::decode(&mut row)?,
            terms: {
                let flags = row.number()?;
                let ends = row.number()? != 0;
                let end = Timestamp(row.signed()?);
                Terms {
                    noarchive: flags & 1 != 0,
                    noai: flags & 2 != 0,
                    tdm_reserved: flags & 4 != 0,
                    unavailable_after: ends.then_some(end),
                }
            },
            left_out: row.narrow()?,
            arrival: Timestamp(row.signed()?),
            declared: row.text()?.to_owned(),
            shown: match row.version() {
                3 => None,
                _ => shown(&mut row)?,
            },
            doubtful: row.version() > 3 && row.number()? != 0,
        })
    }
}

fn shown(row: &mut Decoder<'_>) -> Result<Option<Shown>, BadRow> {
    match row.bytes()? {
        [] => Ok(None),
        slots => {
            let slots: Result<[u8; SHOWN_SLOTS], _> = slots.try_into();
            slots
                .map(|slots| Some(Shown(Box::new(slots))))
                .map_err(|_| row.bad("its sketch is cut short"))
        }
    }
}

/// One distinct text: a node of the parent forest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Document it belongs to. The node is the root if the document's row says so.
    pub document: u64,
    /// 128-bit hash of the normalised text.
    pub hash: u128,
    /// Fingerprint of the text.
    pub fingerprint: Fingerprint,
    /// Hash of the site on which it first stood; 0 if that is not known.
    pub site: u64,
    /// Hash of the address of that page without what names an edition; 0 if it is not known.
    pub edition: u32,
    /// Fingerprint of the title it first came with, if that tells anything.
    pub title_fingerprint: Option<Fingerprint>,
    /// Words of the text.
    pub words: u32,
    /// Distinct shingles of the text.
    pub shingles: u32,
    /// Keys of its longest sentences.
    pub sentences: Vec<u32>,
    /// Copies that carry it.
    pub copies: u64,
    /// When it first came.
    pub arrival: Timestamp,
    /// Sketch of the text.
    pub sketch: Sketch,
}

impl Content {
    /// Returns its keys, and where it stood first: site and edition.
    #[must_use]
    pub fn signed(self) -> Signed {
        let standing = Standing { site: self.site, edition: self.edition, ..Standing::default() };
        let text = Signature {
            hash: self.hash,
            fingerprint: self.fingerprint,
            sketch: self.sketch,
            shingles: self.shingles,
            words: self.words,
            sentences: self.sentences,
        };
        Signed { text, title: self.title_fingerprint, standing }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let row = Encoder::new(3)
            .number(self.document)
            .wide(self.hash)
            .fixed(self.fingerprint.0)
            .number(self.title_fingerprint.is_some())
            .fixed(self.title_fingerprint.unwrap_or_default().0)
            .number(self.words)
            .number(self.shingles)
            .number(self.copies)
            .signed(self.arrival.0)
            .fixed(self.site)
            .number(self.edition)
            .bytes(self.sketch.0.as_slice())
            .number(self.sentences.len() as u64);
        self.sentences.iter().fold(row, |row, key| row.number(*key)).finish()
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::of("content", 2..=3, row)?;
        Ok(Self {
            document: row.number()?,
            hash: row.wide()?,
            fingerprint: Fingerprint(row.fixed()?),
            title_fingerprint: {
                let indexed = row.number()? != 0;
                let fingerprint = Fingerprint(row.fixed()?);
                indexed.then_some(fingerprint)
            },
            words: row.narrow()?,
            shingles: row.narrow()?,
            copies: row.number()?,
            arrival: Timestamp(row.signed()?),
            site: row.fixed()?,
            edition: if row.version() > 2 { row.narrow()? } else { 0 },
            sketch: {
                let slots: Box<[u8]> = row.bytes()?.into();
                Sketch(slots.try_into().map_err(|_| row.bad("its sketch is cut short"))?)
            },
            sentences: {
                let count: usize = row.narrow()?;
                (0..count).map(|_| row.narrow()).collect::<Result<_, _>>()?
            },
        })
    }
}
