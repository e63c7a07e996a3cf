//! What a page says of itself, beside its title: carried with each copy, exported with the
//! canonical one.

use crate::store::{BadRow, Decoder, Encoder};

/// Statements of a page about itself. A field of which nothing is known is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Authors, joined by `, `.
    pub author: String,
    /// When it was published: ISO 8601, as precise as the page was.
    pub published: String,
    /// When it was last changed, in the same form.
    pub modified: String,
    /// Name of the site.
    pub site: String,
    /// Description.
    pub description: String,
    /// Category, as whoever sent the article names it.
    pub category: String,
    /// Images in it, as whoever sent the article counted them.
    pub images: u64,
}

impl Facts {
    pub(super) fn encode(&self, row: Encoder) -> Encoder {
        row.text(&self.author)
            .text(&self.published)
            .text(&self.modified)
            .text(&self.site)
            .text(&self.description)
            .text(&self.category)
            .number(self.images)
    }

    pub(super) fn decode(row: &mut Decoder<'_>) -> Result<Self, BadRow> {
        let mut text = || row.text().map(str::to_owned);
        Ok(Self {
            author: text()?,
            published: text()?,
            modified: text()?,
            site: text()?,
            description: text()?,
            category: text()?,
            images: row.number()?,
        })
    }
}
