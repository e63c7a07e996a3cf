//! The files of an export.

use std::io::Write as _;

use serde::Serialize;

use crate::base::outputs::{self, Output, Outputs};

use super::{Format, Row};

/// What is said of copies whose match waits for its second look.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mark {
    /// They may turn out to be copies of another document.
    pub unsettled: bool,
    /// Identifier of that document, or empty.
    pub unsettled_with: String,
}

impl Mark {
    fn is_empty(&self) -> bool {
        !self.unsettled
    }
}

/// A document in a line of JSON, where nothing is said of most.
#[derive(Serialize)]
struct DocumentLine<'a> {
    #[serde(flatten)]
    row: &'a Row,
    #[serde(flatten, skip_serializing_if = "Mark::is_empty")]
    unsettled: &'a Mark,
}

/// A file of an export.
pub(super) enum FormatWriter {
    Jsonl(Box<Output>),
    Csv {
        out: Box<csv::Writer<Output>>,
        /// Cells that begin like a formula are written as they are.
        as_is: bool,
    },
}

impl FormatWriter {
    pub(super) fn new(file: Output, format: Format) -> Self {
        match format {
            Format::Jsonl => Self::Jsonl(Box::new(file)),
            Format::Csv | Format::CsvAsIs => Self::Csv {
                out: Box::new(csv::Writer::from_writer(file)),
                as_is: format == Format::CsvAsIs,
            },
        }
    }

    pub(super) fn write(&mut self, row: &impl Serialize) -> std::io::Result<()> {
        match self {
            Self::Jsonl(out) => {
                serde_json::to_writer(&mut *out, row)?;
                out.write_all(b"\n")
            }
            Self::Csv { out, .. } => out.serialize(row).map_err(std::io::Error::other),
        }
    }

    /// Writes a document. Every line of CSV has all columns.
    pub(super) fn write_document(&mut self, row: &Row, unsettled: &Mark) -> std::io::Result<()> {
        match self {
            Self::Jsonl(_) => self.write(&DocumentLine { row, unsettled }),
            Self::Csv { out, as_is } => {
                let row = if *as_is { row.clone() } else { row.without_formulas() };
                out.serialize((row, unsettled)).map_err(std::io::Error::other)
            }
        }
    }

    pub(super) fn finish(self, outputs: &mut Outputs) -> Result<(), outputs::Error> {
        let out = match self {
            Self::Jsonl(out) => *out,
            Self::Csv { mut out, .. } => {
                let flushed = out.flush();
                let path = out.get_ref().path().to_owned();
                let error = |source| outputs::Error { path, source };
                let unpacked = flushed
                    .and_then(|()| out.into_inner().map_err(csv::IntoInnerError::into_error));
                unpacked.map_err(error)?
            }
        };
        outputs.add(out)
    }
}
