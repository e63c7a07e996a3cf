//! The row of an article that was sent: what `intake` knows it by. The order of the fields in
//! `encode` is the stored order.

use redb::ReadableTable;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Decoder, Encoder, Error};

use crate::neardup::Key;

/// By what an article was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// By nothing: it is new.
    New,
    /// Its `nid` was sent before.
    Nid,
    /// Its address has a document already.
    Url,
    /// By a key of its title or content.
    Key(Key),
}

impl Found {
    /// Returns the word for it in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New | Self::Key(Key::First) => "new",
            Self::Nid => "nid",
            Self::Url => "url",
            Self::Key(Key::Title) => "title",
            Self::Key(_) => "content",
        }
    }
}

/// What is kept of an article that was sent, beside its copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Content that it carries: by it, its document is found.
    pub content: u64,
    /// Name of the copy that stands for it.
    pub copy: String,
    /// By what it was recognised.
    pub found: Found,
    /// Bits between the fingerprints.
    pub distance: u8,
    /// Estimated similarity, in thousandths.
    pub similarity: u16,
    /// When it came.
    pub arrival: Timestamp,
}

impl Sent {
    /// Makes the row.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let found = match self.found {
            Found::New => 0,
            Found::Nid => 1,
            Found::Url => 2,
            Found::Key(key) => 16 + key as u64,
        };
        Encoder::new(1)
            .number(self.content)
            .text(&self.copy)
            .number(found)
            .number(self.distance)
            .number(self.similarity)
            .signed(self.arrival.0)
            .finish()
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("sent", 1, row)?;
        Ok(Self {
            content: row.number()?,
            copy: row.text()?.to_owned(),
            found: match row.number()? {
                0 => Found::New,
                1 => Found::Nid,
                2 => Found::Url,
                code => {
                    let key = code.checked_sub(16).and_then(Key::from_code);
                    Found::Key(key.ok_or_else(|| row.bad("its key is unknown"))?)
                }
            },
            distance: row.narrow()?,
            similarity: row.narrow()?,
            arrival: Timestamp(row.signed()?),
        })
    }

    /// Reads what is known of an article.
    pub fn read(
        sent: &impl ReadableTable<&'static str, &'static [u8]>,
        nid: &str,
    ) -> Result<Option<Self>, Error> {
        let row = sent.get(nid)?;
        Ok(row.map(|row| Self::decode(row.value())).transpose()?)
    }
}

/// Returns the content that an article of this address brought, and its document; none if none was
/// sent, or its document has been removed since.
pub fn sent_content(
    sent_urls: &impl ReadableTable<&'static str, u64>,
    contents: &impl ReadableTable<u64, &'static [u8]>,
    url: &str,
) -> Result<Option<(u64, u64)>, Error> {
    let Some(content) = sent_urls.get(url)?.map(|row| row.value()) else { return Ok(None) };
    Ok(super::read_content(contents, content)?.map(|row| (content, row.document)))
}
