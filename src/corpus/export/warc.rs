//! Exports as WARC: each document is a `conversion` record with its text, as in the WET files of
//! Common Crawl, and a `metadata` record with its other fields as JSON.
//!
//! The same documents are the same bytes: identifiers are made of what the records say.

use std::io::{self, Write as _};

use crate::base::clock::{Clock, Timestamp};
use crate::warc::{Draft, FIELDS, Kind, fields, named_id};

use super::form::{DocumentWriter, Format, Packing};
use super::stream::{Compression, Stream};
use super::value::{Record, Value};

/// Documents in records, each of which is packed by itself.
pub(super) static WARC: Format = Format {
    name: "warc",
    about: "WARC 1.1: conversion records with the texts, as WET files have them",
    media_type: "application/warc",
    is_typed: true,
    is_markdown: false,
    packing: Packing::Inside(Compression::Gzip),
    ending: |compression| match compression {
        Compression::None => "warc",
        Compression::Gzip => "warc.gz",
        Compression::Zstd => "warc.zst",
    },
    lists_dropped: false,
    begin: |file, manner| {
        let compression = match manner.compression {
            Compression::None => None,
            Compression::Gzip => Some(crate::warc::Compression::Gzip),
            Compression::Zstd => Some(crate::warc::Compression::Zstd),
        };
        Ok(Box::new(Records { file, compression, is_first: true }))
    },
};

struct Records {
    file: Stream,
    /// None for records as they are.
    compression: Option<crate::warc::Compression>,
    is_first: bool,
}

impl Records {
    fn put(&mut self, draft: &Draft<'_>) -> io::Result<()> {
        let bytes = match self.compression {
            Some(compression) => draft.pack(compression)?,
            None => draft.plain(),
        };
        self.file.write_all(&bytes)
    }

    fn put_info(&mut self, date: Timestamp) -> io::Result<()> {
        let info = [
            ("software", concat!("uniqcrawl/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("format", "WARC File Format 1.1".to_owned()),
            ("conformsTo", "http://iipc.github.io/warc-specifications/1.1/".to_owned()),
            ("description", "texts of documents, without their copies".to_owned()),
        ];
        let block = fields(&info);
        self.put(&Draft {
            kind: Kind::Warcinfo,
            id: &named_id(&["warcinfo", &date.to_string()]),
            date,
            target: None,
            content_type: FIELDS,
            headers: Vec::new(),
            block: &[&block],
        })
    }
}

impl DocumentWriter for Records {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let (url, date) = (record.text("url"), date_of(record));
        if url.is_empty() {
            let why = "a WARC file needs the field `url`: add it to --fields";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if std::mem::take(&mut self.is_first) {
            self.put_info(date)?;
        }
        let markdown = record.get("markdown").and_then(Value::as_text).unwrap_or_default();
        let (content_type, name, text) = if markdown.is_empty() {
            ("text/plain; charset=utf-8", "text", record.text("text"))
        } else {
            ("text/markdown; charset=utf-8", "markdown", markdown)
        };
        let rest: serde_json::Map<String, serde_json::Value> = record
            .iter()
            .filter(|(column, value)| column.name != name && !(column.sparse && value.is_empty()))
            .map(|(column, value)| Ok((column.name.to_owned(), serde_json::to_value(value)?)))
            .collect::<serde_json::Result<_>>()?;
        let rest = serde_json::to_vec(&rest)?;
        let id = named_id(&["conversion", url, record.text("docId"), text]);
        self.put(&Draft {
            kind: Kind::Conversion,
            id: &id,
            date,
            target: Some(url),
            content_type,
            headers: Vec::new(),
            block: &[text.as_bytes()],
        })?;
        self.put(&Draft {
            kind: Kind::Metadata,
            id: &named_id(&["metadata", &id]),
            date,
            target: Some(url),
            content_type: "application/json",
            headers: vec![("WARC-Refers-To", format!("<{id}>"))],
            block: &[&rest],
        })
    }

    fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn end(self: Box<Self>) -> io::Result<Stream> {
        Ok(self.file)
    }
}

/// When the answer came, or the document was last seen.
fn date_of(record: &Record) -> Timestamp {
    let mut times = ["fetched", "lastSeen", "firstSeen"].into_iter();
    let found = times.find_map(|name| match record.get(name) {
        Some(Value::Time(time)) => Some(*time),
        _ => None,
    });
    found.unwrap_or_else(|| Clock::System.now())
}
