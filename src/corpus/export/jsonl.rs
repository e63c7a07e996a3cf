//! Exports as lines of JSON.

use std::io::{self, Write as _};

use super::form::{DocumentWriter, Format, Packing};
use super::stream::Stream;
use super::value::Record;

/// One JSON object a line.
pub static JSONL: Format = Format {
    name: "jsonl",
    about: "One JSON object a line",
    media_type: "application/x-ndjson",
    is_typed: false,
    is_markdown: false,
    packing: Packing::Around,
    ending: |_| "jsonl",
    lists_dropped: false,
    begin: |file, _| Ok(Box::new(JsonLines(file))),
};

/// A file of lines of JSON.
struct JsonLines(Stream);

impl DocumentWriter for JsonLines {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, record)?;
        self.0.write_all(b"\n")
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn end(self: Box<Self>) -> io::Result<Stream> {
        Ok(self.0)
    }
}
