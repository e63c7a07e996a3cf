//! Many pages at once, as lines of JSON.

use std::borrow::Cow;

use serde::Deserialize;
use url::Url;

use super::{Limits, Memory, Page, RawPage, TextReasons, page, page_and_why, page_as_markdown};
use crate::base::clock::{Timestamp, thread_time};

/// What is wanted of each page of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchOutput {
    /// Its main text, plain.
    Text,
    /// Its main text in Markdown.
    Markdown,
    /// Its main text, plain, and why each block was kept or dropped.
    Reasons,
}

#[derive(Deserialize)]
struct BatchLine {
    #[serde(default)]
    id: serde_json::Value,
    url: Option<String>,
    html: Option<String>,
    #[serde(alias = "html_b64")]
    html_base64: Option<String>,
    content_type: Option<String>,
    fetched: Option<String>,
}

/// Answers a line `{"id", "url", "html"}` or `{"id", "url", "html_base64"}` with a line
/// `{"id", "title", "text", "author", "date", "lang", ...}`; a line that cannot be read with one
/// that has `error`. A line may have `content_type` and `fetched` (RFC 3339), after which no date
/// of the page can lie.
/// `why` says why each block was kept or dropped, if that is wanted. `cpu_ms` is the time that the
/// page took on its processor, without the line around it. Pages that are read at the same time
/// share the `memory`.
#[must_use]
pub fn batch_line(line: &str, output: BatchOutput, memory: &Memory) -> String {
    let line: BatchLine = match serde_json::from_str(line) {
        Ok(line) => line,
        Err(error) => {
            return serde_json::json!({"id": null, "error": error.to_string()}).to_string();
        }
    };
    let bytes = match (&line.html, &line.html_base64) {
        (Some(html), _) => Some(Cow::Borrowed(html.as_bytes())),
        (None, Some(coded)) => crate::base::decode_base64(coded).map(Cow::Owned),
        (None, None) => None,
    };
    let Some(bytes) = bytes else {
        let error = "the line has neither `html` nor `html_base64`";
        return serde_json::json!({"id": line.id, "error": error}).to_string();
    };
    let fetched = line.fetched.as_deref().and_then(|time| time.parse().ok());
    let fetched = fetched.map(|time: jiff::Timestamp| Timestamp(time.as_millisecond()));
    let page = BatchPage {
        id: &line.id,
        url: line.url.as_deref(),
        content_type: line.content_type.as_deref(),
        fetched,
        bytes: &bytes,
    };
    batch_page(&page, output, memory).to_string()
}

/// A page of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchPage<'a> {
    /// What it is called.
    pub id: &'a serde_json::Value,
    /// Its URL.
    pub url: Option<&'a str>,
    /// The `Content-Type` header that came with it.
    pub content_type: Option<&'a str>,
    /// When it was fetched: no date of it can lie behind that.
    pub fetched: Option<Timestamp>,
    /// The page.
    pub bytes: &'a [u8],
}

/// Reads a page, and says what was found, as [`batch_line`] does.
#[must_use]
pub fn batch_page(
    given: &BatchPage<'_>,
    output: BatchOutput,
    memory: &Memory,
) -> serde_json::Value {
    let BatchPage { url, content_type, fetched, bytes, .. } = *given;
    let url = url.and_then(|url| Url::parse(url).ok());
    let input = RawPage { bytes, content_type, url: url.as_ref(), fetched };
    let (limits, size) = Limits { links_max: 0, ..Limits::default() }.for_page(bytes);
    let _held = memory.take(size);
    let started = thread_time();
    let (page, why) = match output {
        BatchOutput::Reasons => {
            let (page, why) = page_and_why(&input, &limits);
            (page, Some(why))
        }
        BatchOutput::Markdown => (page_as_markdown(&input, &limits), None),
        BatchOutput::Text => (page(&input, &limits), None),
    };
    let cpu_ms = thread_time().saturating_sub(started).as_secs_f64() * 1000.0;
    answer(given, &page, why.as_ref(), cpu_ms)
}

fn answer(
    given: &BatchPage<'_>,
    page: &Page,
    why: Option<&TextReasons>,
    cpu_ms: f64,
) -> serde_json::Value {
    serde_json::json!({
        "id": given.id,
        "url": given.url,
        "title": page.title,
        "text": page.text,
        "author": page.metadata.authors.as_ref().map(|_| page.metadata.byline()),
        "date": page.metadata.date().map(|date| date.value.to_string()),
        "modified": page.metadata.modified.as_ref().map(|date| date.value.to_string()),
        "lang": page.language,
        "site": page.metadata.site,
        "description": page.metadata.description,
        "licence": page.metadata.licence,
        "image": page.metadata.images.first().map(|image| &image.url),
        "binary": page.binary,
        "charset": page.charset.name,
        "canonical": page.canonical,
        "popularity": page.popularity,
        "kind": page.kind,
        "quality": page.quality,
        "why": why,
        "cpu_ms": cpu_ms,
    })
}
