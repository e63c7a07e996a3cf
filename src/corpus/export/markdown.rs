//! Exports as Markdown: each document begins with its fields between two lines of dashes.

use std::io::{self, Write as _};

use super::form::{DocumentWriter, Format, Packing};
use super::stream::Stream;
use super::value::{Record, Value};

/// Documents in Markdown, each after its fields in YAML. Where Markdown was not kept, the plain
/// text stands.
pub static MARKDOWN: Format = Format {
    name: "markdown",
    about: "Markdown, each document after its fields in YAML",
    media_type: "text/markdown",
    is_typed: false,
    is_markdown: true,
    packing: Packing::Around,
    ending: |_| "md",
    lists_dropped: false,
    begin: |file, _| Ok(Box::new(Markdown { file, is_first: true })),
};

struct Markdown {
    file: Stream,
    is_first: bool,
}

impl DocumentWriter for Markdown {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.file.write_all(b"\n")?;
        }
        self.file.write_all(b"---\n")?;
        for (column, value) in record.iter() {
            let is_body = matches!(column.name, "text" | "markdown");
            if !(is_body || column.sparse && value.is_empty()) {
                // JSON is YAML, and needs no rules for what has to be quoted.
                let value = serde_json::to_string(value)?;
                writeln!(self.file, "{}: {value}", column.name)?;
            }
        }
        self.file.write_all(b"---\n\n")?;
        let markdown = record.get("markdown").and_then(Value::as_text);
        let body = markdown.unwrap_or_else(|| record.text("text"));
        for line in body.trim_end().lines() {
            // A line of dashes begins the next document.
            let escape = if line.trim_end() == "---" { "\\" } else { "" };
            writeln!(self.file, "{escape}{line}")?;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn end(self: Box<Self>) -> io::Result<Stream> {
        Ok(self.file)
    }
}
