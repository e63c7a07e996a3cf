//! Exports as lines of JSON.

use std::io::{self, Write as _};

use serde::Serialize;

use crate::base::outputs::Output;

use super::Row;
use super::form::{DocumentWriter, Format, Mark};

/// One JSON object a line.
pub static JSONL: Format = Format {
    name: "jsonl",
    about: "One JSON object a line",
    file: "documents.jsonl",
    begin: |file, _| Ok(Box::new(JsonLines(file))),
};

/// A file of lines of JSON.
pub(super) struct JsonLines(pub Output);

impl JsonLines {
    pub(super) fn write(&mut self, row: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, row)?;
        self.0.write_all(b"\n")
    }
}

/// A document in a line of JSON, where nothing is said of most.
#[derive(Serialize)]
struct DocumentLine<'a> {
    #[serde(flatten)]
    row: &'a Row,
    #[serde(flatten)]
    unsettled: Option<&'a Mark>,
}

impl DocumentWriter for JsonLines {
    fn write(&mut self, row: &Row, unsettled: &Mark) -> io::Result<()> {
        let unsettled = unsettled.unsettled.then_some(unsettled);
        Self::write(self, &DocumentLine { row, unsettled })
    }

    fn end(self: Box<Self>) -> io::Result<Output> {
        Ok(self.0)
    }
}
