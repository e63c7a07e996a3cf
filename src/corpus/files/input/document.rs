//! A record as a document.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(feature = "parquet")]
use arrow_array::RecordBatch;
use serde::Serialize;
use url::Url;

use crate::page::{self, RawPage};
use crate::text::language_of;
use crate::warc::{Kind as RecordKind, Record as WarcRecord};
use crate::web::fetch::decode::DecodeLimits;

#[cfg(feature = "parquet")]
use super::cells::{Cell, row_json};
#[cfg(feature = "parquet")]
use super::record::thousandths;
use super::record::with_text;
use super::{Chunk, DOCUMENT_BYTES_MAX, Fault, Item, Kind, Record, Source, Sources, values_of};

/// Most times that a body of a WARC file may grow, and the size up to which it may grow freely.
const RATIO_MAX: u32 = 200;
const RATIO_GRACE_BYTES: usize = 1 << 20;

/// Types of answers that are read.
const TYPES: [&str; 3] = ["text/html", "application/xhtml+xml", "text/plain"];

/// A document.
#[derive(Debug, Clone)]
pub(crate) struct Document<'c> {
    /// Its own identifier, if it has one.
    pub id: Option<String>,
    /// Title.
    pub title: Cow<'c, str>,
    /// URL.
    pub url: Cow<'c, str>,
    /// Text.
    pub text: Cow<'c, str>,
    /// Language (ISO 639-1), if it is said.
    pub language: Cow<'c, str>,
    /// When it was published, if that is said.
    pub date: Cow<'c, str>,
    /// Popularity in thousandths, if it is said.
    pub popularity: Option<u64>,
    /// Values of further fields that were asked for, in their order.
    pub values: Vec<String>,
    /// It was read with replacement characters.
    pub repaired: bool,
    origin: Origin<'c>,
}

/// What a document was made of.
#[derive(Debug, Clone)]
enum Origin<'c> {
    Line(Cow<'c, str>),
    #[cfg(feature = "parquet")]
    Row(&'c RecordBatch, usize),
    File,
}

/// What becomes of a record.
pub(crate) enum Made<'c> {
    /// A document.
    Document(Box<Document<'c>>),
    /// None, because something is wrong with it.
    Fault(Fault),
    /// None, because it is not meant to be one.
    Skip(&'static str),
}

/// A line for a document that was made of a page or a text.
#[derive(Serialize)]
struct MadeLine<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    url: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    language: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    date: &'a str,
}

impl Document<'_> {
    /// Returns the identifier; that of a document without one is the number of its record.
    #[must_use]
    pub(crate) fn id_or(&self, number: u64) -> String {
        self.id.clone().unwrap_or_else(|| number.to_string())
    }

    /// Returns the line of JSON in which it is kept with another text.
    pub(crate) fn line_with(&self, source: &Source, number: u64, text: &str) -> String {
        match &self.origin {
            Origin::Line(line) => with_text(line, &source.fields.text, text),
            #[cfg(feature = "parquet")]
            Origin::Row(batch, row) => with_text(&row_json(batch, *row), &source.fields.text, text),
            Origin::File => {
                let Self { url, title, language, date, .. } = self;
                let id = &self.id_or(number);
                let line = MadeLine { id, url, title, text, language, date };
                serde_json::to_string(&line).expect("it has a form in JSON")
            }
        }
    }
}

/// Makes documents of records.
#[derive(Debug)]
pub(crate) struct DocumentReader<'s> {
    sources: &'s Sources,
    /// Fields that are read beside those of documents.
    names: Vec<&'s str>,
    limits: page::Limits,
}

impl<'s> DocumentReader<'s> {
    /// Makes one that also reads the fields `names`.
    #[must_use]
    pub(crate) fn new(sources: &'s Sources, names: Vec<&'s str>) -> Self {
        Self { sources, names, limits: page::Limits::default() }
    }

    /// Makes a document of a record of a chunk.
    pub(crate) fn read<'c>(&self, chunk: &'c Chunk, item: Item) -> Made<'c> {
        let source = &self.sources.all()[chunk.source];
        match item {
            Item::Line(at) => self.line(&chunk.buffer[at], source),
            Item::Row(row) => self.row(chunk, source, row),
            // A page that breaks the reader is the fault of that page, not the end of all.
            Item::Warc(record) => caught(|| self.warc(*record)),
            Item::File(bytes) => caught(|| self.file(&bytes, source)),
            Item::Fault(fault) => Made::Fault(fault),
            Item::Skip(reason) => Made::Skip(reason),
        }
    }

    fn line<'c>(&self, bytes: &'c [u8], source: &Source) -> Made<'c> {
        // Whole lines are checked at once, which is faster than looking for the fault.
        let line = match std::str::from_utf8(bytes) {
            Ok(line) => Cow::Borrowed(line),
            Err(_) if self.sources.options().repair_utf8 => String::from_utf8_lossy(bytes),
            Err(error) => return Made::Fault(not_utf8(error.valid_up_to())),
        };
        match line {
            Cow::Borrowed(line) => match Record::read(line, &source.fields) {
                Ok(record) => Made::Document(Box::new(self.of_record(record, Cow::Borrowed(line)))),
                Err(fault) => Made::Fault(fault),
            },
            Cow::Owned(line) => match Record::read(&line, &source.fields) {
                Ok(record) => {
                    let owned = owned(record);
                    let document = self.of_record(owned, Cow::Owned(line));
                    Made::Document(Box::new(Document { repaired: true, ..document }))
                }
                Err(fault) => Made::Fault(fault),
            },
        }
    }

    fn of_record<'c>(&self, record: Record<'c>, line: Cow<'c, str>) -> Document<'c> {
        let id = record.own_id();
        let popularity = record.has_popularity.then_some(record.popularity);
        let Record { title, url, text, language, date, .. } = record;
        let values = values_of(&line, &self.names);
        let origin = Origin::Line(line);
        let repaired = false;
        Document { id, title, url, text, language, date, popularity, values, repaired, origin }
    }

    #[cfg(not(feature = "parquet"))]
    fn row<'c>(&self, _: &'c Chunk, _: &Source, _: usize) -> Made<'c> {
        Made::Skip("parquet")
    }

    #[cfg(feature = "parquet")]
    fn row<'c>(&self, chunk: &'c Chunk, source: &Source, row: usize) -> Made<'c> {
        let Some(batch) = &chunk.rows else { return Made::Skip("no_rows") };
        let fields = &source.fields;
        let cell = |name: &str| {
            batch.column_by_name(name).map_or(Cell::Null, |array| Cell::of(&**array, row))
        };
        let optional = |name: &Option<String>| {
            name.as_deref().and_then(|name| cell(name).text()).unwrap_or_default()
        };
        let text = match cell(&fields.text) {
            Cell::Null => {
                return Made::Fault(Fault::new("no_text", format!("`{}` is null", fields.text)));
            }
            Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) if self.sources.options().repair_utf8 => String::from_utf8_lossy(bytes),
                Err(error) => return Made::Fault(not_utf8(error.valid_up_to())),
            },
            other => other.text().unwrap_or_default(),
        };
        if text.len() > DOCUMENT_BYTES_MAX {
            return Made::Fault(too_large(text.len()));
        }
        let id = optional(&fields.id);
        let popularity = fields.popularity.as_deref().and_then(|name| cell(name).number());
        let values = self.names.iter().map(|name| cell(name).text().unwrap_or_default().into());
        Made::Document(Box::new(Document {
            id: Some(id.into_owned()).filter(|id| !id.is_empty()),
            title: optional(&fields.title),
            url: optional(&fields.url),
            language: Some(optional(&fields.languages[0]))
                .filter(|language| !language.is_empty())
                .unwrap_or_else(|| optional(&fields.languages[1])),
            date: optional(&fields.date),
            popularity: popularity.map(thousandths),
            values: values.collect(),
            repaired: matches!(text, Cow::Owned(_)),
            text,
            origin: Origin::Row(batch, row),
        }))
    }

    fn warc<'c>(&self, record: WarcRecord) -> Made<'c> {
        let offset = Some(record.spot.offset);
        let (id, url) = (record.id().to_owned(), record.target().unwrap_or_default().to_owned());
        let date = record.headers.get("WARC-Date").unwrap_or_default().to_owned();
        let is_text = record.kind == RecordKind::Conversion;
        let limits = DecodeLimits {
            bytes_max: DOCUMENT_BYTES_MAX,
            ratio_max: RATIO_MAX,
            ratio_grace_bytes: RATIO_GRACE_BYTES,
        };
        let payload = match record.into_payload(&limits) {
            Ok(payload) => payload,
            Err(fault) => {
                let fault =
                    Fault { reason: fault.name().into(), detail: fault.to_string(), offset };
                return Made::Fault(fault);
            }
        };
        if payload.status.is_some_and(|status| !(200..300).contains(&status)) {
            return Made::Skip("status");
        }
        let media = payload.content_type.as_deref();
        let is_read = media.is_none_or(|media| {
            let media = media.trim_start().to_ascii_lowercase();
            media.is_empty() || TYPES.iter().any(|known| media.starts_with(known))
        });
        if !is_read && !is_text {
            return Made::Skip("media_type");
        }
        let mut document = if is_text {
            match text_of(&payload.bytes, self.sources.options().repair_utf8) {
                Ok(text) => made(text, String::new()),
                Err(fault) => return Made::Fault(Fault { offset, ..fault }),
            }
        } else {
            self.page(&payload.bytes, media, &url)
        };
        document.id = Some(id).filter(|id| !id.is_empty());
        document.url = Cow::Owned(url);
        if document.date.is_empty() {
            document.date = Cow::Owned(date);
        }
        Made::Document(Box::new(document))
    }

    fn file<'c>(&self, bytes: &[u8], source: &Source) -> Made<'c> {
        let mut document = if source.kind == Kind::Page {
            self.page(bytes, None, "")
        } else {
            match text_of(bytes, self.sources.options().repair_utf8) {
                Ok(text) => made(text, String::new()),
                Err(fault) => return Made::Fault(fault),
            }
        };
        document.id = Some(source.id.clone());
        Made::Document(Box::new(document))
    }

    fn page<'c>(&self, bytes: &[u8], content_type: Option<&str>, url: &str) -> Document<'c> {
        let url = Url::parse(url).ok();
        let raw = RawPage { bytes, content_type, url: url.as_ref(), fetched: None };
        let page = page::page(&raw, &self.limits);
        let date = page.metadata.date().map(|date| date.value.to_string()).unwrap_or_default();
        let url = page.canonical.filter(|_| url.is_none()).unwrap_or_default();
        let document = made(page.text, page.title);
        Document {
            url: Cow::Owned(url),
            language: Cow::Owned(page.language.unwrap_or_default()),
            date: Cow::Owned(date),
            popularity: page.popularity.map(|popularity| popularity.saturating_mul(1000)),
            ..document
        }
    }
}

/// A document of a text of its own.
fn made<'c>(text: String, title: String) -> Document<'c> {
    Document {
        id: None,
        title: Cow::Owned(title),
        url: Cow::Borrowed(""),
        language: Cow::Owned(language_of(&text, None).unwrap_or_default()),
        text: Cow::Owned(text),
        date: Cow::Borrowed(""),
        popularity: None,
        values: Vec::new(),
        repaired: false,
        origin: Origin::File,
    }
}

fn owned<'c>(record: Record<'_>) -> Record<'c> {
    let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    record.map(text)
}

fn caught<'c>(read: impl FnOnce() -> Made<'c>) -> Made<'c> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Made::Fault(Fault::new("unreadable", "the reader failed on it")))
}

fn text_of(bytes: &[u8], repair: bool) -> Result<String, Fault> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) if repair => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Err(error) => Err(not_utf8(error.valid_up_to())),
    }
}

fn not_utf8(at: usize) -> Fault {
    let detail =
        format!("byte {at} is not UTF-8; --repair-utf8 reads it with replacement characters");
    Fault::new("invalid_utf8", detail)
}

pub(super) fn too_large(bytes: usize) -> Fault {
    let most = DOCUMENT_BYTES_MAX >> 20;
    Fault::new("too_large", format!("{bytes} bytes, more than {most} MiB"))
}
