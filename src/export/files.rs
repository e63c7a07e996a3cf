//! The files of an export.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Format, Row};

/// What is said of copies whose joint waits for its second look.
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
struct Line<'a> {
    #[serde(flatten)]
    row: &'a Row,
    #[serde(flatten, skip_serializing_if = "Mark::is_empty")]
    unsettled: &'a Mark,
}

/// A file that gets its name when it is whole.
pub(super) struct Writer {
    path: PathBuf,
    partial: PathBuf,
    out: Sink,
}

enum Sink {
    Jsonl(BufWriter<File>),
    Csv(Box<csv::Writer<File>>),
}

impl Writer {
    pub(super) fn create(path: &Path, format: Format) -> std::io::Result<Self> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial)?;
        let out = match format {
            Format::Jsonl => Sink::Jsonl(BufWriter::new(file)),
            Format::Csv => Sink::Csv(Box::new(csv::Writer::from_writer(file))),
        };
        Ok(Self { path: path.to_owned(), partial, out })
    }

    pub(super) fn write(&mut self, row: &impl Serialize) -> std::io::Result<()> {
        match &mut self.out {
            Sink::Jsonl(out) => {
                serde_json::to_writer(&mut *out, row)?;
                out.write_all(b"\n")
            }
            Sink::Csv(out) => out.serialize(row).map_err(std::io::Error::other),
        }
    }

    /// Writes a document. Every line of CSV has all columns.
    pub(super) fn write_document(&mut self, row: &Row, unsettled: &Mark) -> std::io::Result<()> {
        match &mut self.out {
            Sink::Jsonl(_) => self.write(&Line { row, unsettled }),
            Sink::Csv(out) => out.serialize((row, unsettled)).map_err(std::io::Error::other),
        }
    }

    pub(super) fn finish(self) -> std::io::Result<()> {
        let file = match self.out {
            Sink::Jsonl(out) => out.into_inner()?,
            Sink::Csv(out) => out.into_inner().map_err(csv::IntoInnerError::into_error)?,
        };
        file.sync_all()?;
        tracing::trace!(file = %self.path.display(), "written");
        std::fs::rename(&self.partial, &self.path)?;
        tracing::trace!(file = %self.path.display(), "renamed");
        Ok(())
    }
}
