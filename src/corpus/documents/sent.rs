//! The row of an article that was sent: what `ingest` knows it by.

use crate::base::clock::Timestamp;
use crate::corpus::tables::{CONTENTS, SENT_URLS};
use crate::neardup::Key;
use crate::store::{Code, ContentNumber, Error, Number, Signed, Text, View, row};

/// By what an article was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// By nothing: it is new.
    New,
    /// Its `nid` was sent before.
    Nid,
    /// Its URL has a document already.
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
            Self::Key(key) if key.is_of_title() => "title",
            Self::Key(_) => "content",
        }
    }
}

row! {
    /// What is kept of an article that was sent, beside its copy.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Sent: "sent", 1 to 1 {
        /// Content that it carries: by it, its document is found.
        pub content: u64 = ContentNumber;
        /// Name of the copy that stands for it.
        pub copy: String = Text;
        /// By what it was recognised.
        pub found: Found = Code;
        /// Bits between the fingerprints.
        pub distance: u8 = Number;
        /// Estimated similarity, in thousandths.
        pub similarity: u16 = Number;
        /// When it came.
        pub arrival: Timestamp = Signed;
    }
}

/// What stands before an identifier that could be taken for a URL.
const NID: &str = "nid:";

/// Returns the name of an article that has an identifier, which is never the URL of another one.
#[must_use]
pub fn nid_name(nid: &str) -> String {
    let is_address = ["http:", "https:", NID].iter().any(|start| nid.starts_with(start));
    if is_address { format!("{NID}{nid}") } else { nid.to_owned() }
}

/// Returns the content that an article of this URL brought, and its document; none if none was
/// sent, or its document has been removed since.
pub fn sent_content(view: &impl View, url: &str) -> Result<Option<(u64, u64)>, Error> {
    let Some(content) = view.get(SENT_URLS, url)? else { return Ok(None) };
    Ok(view.get(CONTENTS, content)?.map(|row| (content, row.document)))
}
