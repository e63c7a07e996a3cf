//! One page, read without a crawl.

use url::Url;

use crate::page::{self, Limits, RawPage};

/// What a page says.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Extracted {
    /// Title, without the name of the site where that can be told; may be empty.
    pub title: String,
    /// Main text, one line a block; empty only if the page has no text.
    pub text: String,
    /// Language (ISO 639-1), if it can be told.
    pub language: Option<String>,
    /// Authors.
    pub authors: Vec<String>,
    /// When it was published (ISO 8601, as precise as the page is), if it says so.
    pub published: Option<String>,
    /// Links, in the order of the page, each URL once; only absolute ones if the page has no URL.
    pub links: Vec<String>,
    /// How much of the main text, and how little else, `text` is likely to be, 0 to 1.
    pub quality: f32,
}

/// Reads a page: bytes in any charset, after `Content-Encoding`. `url` is where it stands, which
/// its links are relative to. Never fails: a page without structure is plain text.
///
/// ```
/// let html = "<title>Tides</title><p>High water at the north quay is at six in the morning and \
///             again at half past six in the evening.</p><a href='/next'>Next</a>";
/// let page = uniqcrawl::extract(html.as_bytes(), Some("https://example.org/tides"));
/// assert_eq!(page.title, "Tides");
/// assert!(page.text.starts_with("High water"));
/// assert_eq!(page.links, ["https://example.org/next"]);
/// ```
#[must_use]
pub fn extract(html: &[u8], url: Option<&str>) -> Extracted {
    let url = url.and_then(|url| Url::parse(url).ok());
    let input = RawPage { bytes: html, url: url.as_ref(), ..RawPage::default() };
    let page = page::page(&input, &Limits::default());
    let published = page.metadata.date().map(|stated| stated.value.to_string());
    Extracted {
        authors: page.metadata.authors.map(|authors| authors.value).unwrap_or_default(),
        published,
        title: page.title,
        text: page.text,
        language: page.language,
        links: page.links.into_iter().map(|link| link.url.into()).collect(),
        quality: page.quality,
    }
}
