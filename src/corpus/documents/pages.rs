//! What is kept of the page of a copy beside its text, if the settings ask for it: its Markdown,
//! where it links to, its images, and what the server said with it.
//!
//! A row stands under the URL of its copy, wherever the copy moves, and goes with it.

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::corpus::tables::PAGES;
use crate::store::{
    BadRow, Blob, Error, Flag, List, MaybeNumber, Nested, Number, Row as _, Signed, Text, Update,
    View, row,
};

/// A thing of a page that may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// The main text in Markdown.
    Markdown,
    /// Its links, with their texts.
    Links,
    /// Its images.
    Images,
    /// Status and headers of the answer.
    Headers,
}

impl Keep {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Markdown, Self::Links, Self::Images, Self::Headers];

    /// Returns its name in the settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Links => "links",
            Self::Images => "images",
            Self::Headers => "headers",
        }
    }

    fn bit(self) -> u64 {
        1 << self as u64
    }
}

impl std::str::FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|keep| keep.as_str() == text);
        let names = Self::ALL.map(Self::as_str).join(", ");
        found.ok_or_else(|| format!("`{text}` is nothing that can be kept: there are {names}"))
    }
}

/// What is kept of pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeepConfig {
    /// What is kept of each page beside its text.
    pub keep: Vec<Keep>,
}

row! {
    /// Headers of an answer that say what the page is. Those that did not come are empty.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct KeptHeaders: part {
        /// `Content-Type`.
        pub content_type: String = Text;
        /// `Last-Modified`, as it came.
        pub last_modified: String = Text;
        /// `ETag`, with its quotes.
        pub etag: String = Text;
        /// `Content-Language`.
        pub content_language: String = Text;
    }
}

row! {
    /// A link of a page.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct KeptLink: part {
        /// Where it leads.
        pub url: String = Text;
        /// Its text, white space collapsed.
        pub text: String = Text;
        /// It is marked `rel=nofollow`.
        pub nofollow: bool = Flag;
    }
}

row! {
    /// An image of a page.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct KeptImage: part {
        /// Its URL.
        pub url: String = Text;
        /// Text for those who do not see it, or empty.
        pub alt: String = Text;
        /// Width in pixels, if it is given.
        pub width: Option<u64> = MaybeNumber;
        /// Height in pixels, if it is given.
        pub height: Option<u64> = MaybeNumber;
    }
}

row! {
    /// What is long of a page.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PageDetails: "page_details", 1 to 1 {
        /// Main text in Markdown.
        pub markdown: String = Text;
        /// Links, in the order of the page, each URL once.
        pub links: Vec<KeptLink> = List<Nested>;
        /// Images, the main one first.
        pub images: Vec<KeptImage> = List<Nested>;
    }
}

row! {
    /// What is kept of a page.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct KeptPage: "page", 1 to 1 {
        /// What of it was kept: a bit for each [`Keep`].
        kept: u64 = Number;
        /// When it was fetched.
        pub fetched: Timestamp = Signed;
        /// Status of the answer; 0 if it was not kept.
        pub status: u16 = Number;
        /// Headers of the answer.
        pub headers: KeptHeaders = Nested;
        /// Bytes of the details.
        length: u64 = Number;
        /// The details as a frame of zstd; empty if none were kept.
        packed: Vec<u8> = Blob;
    }
}

/// zstd level of details. They are read seldom, and written beside work that takes longer.
const LEVEL: i32 = 3;

/// Details are at most this many times longer than their frame.
const RATIO_MAX: usize = 1 << 16;

impl KeptPage {
    /// Packs what is kept of a page that was fetched at a moment.
    #[must_use]
    pub fn new(
        keep: &[Keep],
        fetched: Timestamp,
        status: u16,
        headers: KeptHeaders,
        details: &PageDetails,
    ) -> Self {
        let kept = keep.iter().fold(0, |bits, keep| bits | keep.bit());
        let (mut length, mut packed) = (0, Vec::new());
        if *details != PageDetails::default() {
            let bytes = details.encode();
            length = bytes.len() as u64;
            packed =
                zstd::bulk::compress(&bytes, LEVEL).expect("compressing into memory cannot fail");
        }
        Self { kept, fetched, status, headers, length, packed }
    }

    /// Tells whether a thing was kept, though there may have been none of it.
    #[must_use]
    pub fn has(&self, keep: Keep) -> bool {
        self.kept & keep.bit() != 0
    }

    /// Returns the bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.packed.len() + size_of::<Self>()
    }

    /// Unpacks what is long of it.
    ///
    /// # Errors
    ///
    /// A row that is damaged.
    pub fn details(&self) -> Result<PageDetails, BadRow> {
        if self.packed.is_empty() {
            return Ok(PageDetails::default());
        }
        let bad = |detail| BadRow { kind: "page", detail };
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        // Looked at before as much memory is asked for.
        if length > self.packed.len().saturating_mul(RATIO_MAX) {
            return Err(bad("its details cannot be so long"));
        }
        let bytes = zstd::bulk::decompress(&self.packed, length);
        PageDetails::decode(&bytes.map_err(|_| bad("its details cannot be unpacked"))?)
    }
}

/// Notes what is kept of the page of a copy.
pub fn write_page(batch: &mut impl Update, url: &str, page: &KeptPage) -> Result<(), Error> {
    batch.put(PAGES, url, page)
}

/// Forgets what was kept of the page of a copy.
pub fn remove_page(batch: &mut impl Update, url: &str) -> Result<(), Error> {
    batch.remove(PAGES, url).map(drop)
}

/// Returns what was kept of the page of a copy; none if nothing was.
pub fn read_page(view: &impl View, url: &str) -> Result<Option<KeptPage>, Error> {
    view.get(PAGES, url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Encoder;

    #[test]
    fn what_was_kept_is_read_again_and_its_bytes_are_those_of_the_first_version() {
        let details = PageDetails {
            markdown: "# 題\n\n**text**".to_owned(),
            links: vec![KeptLink { url: "http://a/".into(), text: "b".into(), nofollow: true }],
            images: vec![KeptImage {
                url: "http://a/i.png".into(),
                alt: String::new(),
                width: Some(640),
                height: None,
            }],
        };
        let by_hand = Encoder::new(1).text("# 題\n\n**text**").number(1u64).text("http://a/");
        let by_hand = by_hand.text("b").number(1u64).number(1u64).text("http://a/i.png").text("");
        let by_hand = by_hand.number(641u64).number(0u64).finish();
        assert_eq!(*details.encode(), by_hand);
        let headers = KeptHeaders { etag: "\"x\"".into(), ..KeptHeaders::default() };
        let kept = [Keep::Markdown, Keep::Headers];
        let page = KeptPage::new(&kept, Timestamp(9), 200, headers, &details);
        let row = Encoder::new(1).number(9u64).keys(9).number(200u64).text("").text("");
        let row = row.text("\"x\"").text("").number(by_hand.len() as u64).bytes(&page.packed);
        assert_eq!(*page.encode(), row.finish());
        let read = KeptPage::decode(&page.encode()).unwrap();
        assert_eq!((read.details().unwrap(), &read), (details, &page));
        assert!(read.has(Keep::Headers) && !read.has(Keep::Links));
        let long = KeptPage { length: u64::MAX, ..page.clone() };
        let cut = KeptPage { packed: page.packed[..5].to_vec(), ..page };
        assert!(long.details().is_err() && cut.details().is_err());
    }
}
