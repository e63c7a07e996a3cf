//! One page, and the fingerprint of a text.

use std::sync::OnceLock;

use pyo3::prelude::*;
use url::Url;

use crate::page::{self, Limits, RawPage};
use crate::text::features::{self, Fingerprinter, Input};

use super::{TextOrBytes, apart, value_error};

/// What a page says.
#[pyclass(frozen, get_all, module = "uniqcrawl")]
pub(super) struct Extracted {
    /// Title, without the name of the site where that can be told.
    title: String,
    /// Main text, one line a block.
    text: String,
    /// Language (ISO 639-1), or None.
    language: Option<String>,
    /// Authors.
    authors: Vec<String>,
    /// When it was published (ISO 8601), or None.
    published: Option<String>,
    /// Links, each URL once.
    links: Vec<String>,
    /// How much of the main text, and how little else, `text` is likely to be, 0 to 1.
    quality: f32,
}

#[pymethods]
impl Extracted {
    fn __repr__(&self) -> String {
        format!(
            "Extracted(title={:?}, text of {} characters)",
            self.title,
            self.text.chars().count()
        )
    }
}

/// Read a page: its title, main text, authors, date and links.
///
/// `html` is a str, or bytes in any charset. `url` is where the page stands, to which its links are
/// relative; a page without it has absolute links only. With `markdown`, the text is Markdown. No
/// page is an error.
#[pyfunction]
#[pyo3(signature = (html, url=None, *, markdown=false))]
pub(super) fn extract(
    py: Python<'_>,
    html: TextOrBytes,
    url: Option<&str>,
    markdown: bool,
) -> PyResult<Extracted> {
    let url =
        url.map(|url| Url::parse(url).map_err(|error| value_error(format!("`{url}`: {error}"))));
    let url = url.transpose()?;
    // What is decoded already is in no other charset, whatever the page says.
    let is_text = matches!(html, TextOrBytes::Text(_));
    let content_type = is_text.then_some("text/html; charset=utf-8");
    let bytes = html.bytes();
    apart(py, || {
        let input = RawPage { bytes, content_type, url: url.as_ref(), ..RawPage::default() };
        let limits = Limits::default();
        let read = if markdown { page::page_as_markdown } else { page::page };
        let page = read(&input, &limits);
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
    })
}

/// Return the 64-bit simhash of a text. Two near-duplicates differ in few bits:
/// `(simhash(a) ^ simhash(b)).bit_count()`.
#[pyfunction]
pub(super) fn simhash(py: Python<'_>, text: &str) -> PyResult<u64> {
    static USUAL: OnceLock<Fingerprinter> = OnceLock::new();
    apart(py, || {
        let make = || Fingerprinter::new(features::Config::default()).expect("the usual settings");
        let input = Input { text, ..Input::default() };
        USUAL.get_or_init(make).text_keys_of(&input).fingerprint.0
    })
}
