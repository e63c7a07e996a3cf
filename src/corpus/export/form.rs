//! In which ways documents are exported, and by what settings.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::web::robots::meta::Honour;

use super::stream::{Compression, Stream};
use super::value::{Columns, Record};
use super::{csv, jsonl, markdown, warc};

/// All formats, the usual one first. The values of the command line and of jobs, their help, their
/// errors and the documents are made from it.
pub static FORMATS: &[&Format] = &[
    &jsonl::JSONL,
    &csv::CSV,
    #[cfg(feature = "parquet")]
    &super::parquet::PARQUET,
    &markdown::MARKDOWN,
    &warc::WARC,
];

/// A way to write the documents of an export.
pub struct Format {
    /// Its name for the command line and for jobs.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Media type, without compression.
    pub media_type: &'static str,
    /// Its values have types of their own: several authors are a list.
    pub is_typed: bool,
    /// Its text is Markdown.
    pub is_markdown: bool,
    /// Who compresses the file, and how if nobody says.
    pub packing: Packing,
    /// The end of the names of its files, without that of a compression around them.
    pub ending: fn(Compression) -> &'static str,
    /// The list of dropped copies is written in it, too, beside the one in JSON.
    pub lists_dropped: bool,
    /// Begins a file; what stands in it before the first record is written here.
    pub(super) begin: fn(Stream, &Manner) -> io::Result<Box<dyn DocumentWriter>>,
}

/// Who compresses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// All of it goes through the compression, if one is asked for.
    Around,
    /// The format does it by itself; in this way if none is asked for.
    Inside(Compression),
}

/// What a writer knows of its file.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    /// The columns of all its records.
    pub columns: Columns,
    /// The compression, for formats that compress by themselves.
    pub compression: Compression,
    pub config: Config,
}

impl Format {
    /// Returns the format of a name.
    ///
    /// # Errors
    ///
    /// Tells which names there are.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let found = FORMATS.iter().find(|format| format.name == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            let (last, others) = names.split_last().expect("there are formats");
            format!("must be {} or {last}", others.join(", "))
        })
    }

    /// Returns the compression of its files, if `asked` is what was asked for.
    #[must_use]
    pub fn compression(&self, asked: Option<Compression>) -> Compression {
        match self.packing {
            Packing::Around => asked.unwrap_or(Compression::None),
            Packing::Inside(usual) => asked.unwrap_or(usual),
        }
    }

    /// Returns the end of the names of its files.
    #[must_use]
    pub fn file_ending(&self, compression: Compression) -> String {
        let own = (self.ending)(compression);
        match self.packing {
            Packing::Around => format!("{own}{}", compression.ending()),
            Packing::Inside(_) => own.to_owned(),
        }
    }

    /// Begins a file of records.
    pub(super) fn begin(
        &self,
        to: super::stream::Raw,
        manner: &Manner,
    ) -> io::Result<Box<dyn DocumentWriter>> {
        let around = match self.packing {
            Packing::Around => manner.compression,
            Packing::Inside(_) => Compression::None,
        };
        (self.begin)(Stream::new(to, around)?, manner)
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

/// A file of documents, or of a list beside them, on its way.
pub(super) trait DocumentWriter {
    /// Writes a record, which has the columns that the file began with.
    fn write(&mut self, record: &Record) -> io::Result<()>;

    /// Returns how long the file is by now, about.
    fn bytes(&self) -> u64;

    /// Writes what stands after the last record, and gives the file back.
    fn end(self: Box<Self>) -> io::Result<Stream>;
}

/// Settings of exports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Which terms of pages are honoured.
    #[serde(flatten)]
    pub honour: Honour,
    /// Cells of CSV that begin like a formula are written as they are.
    pub csv_formulas: bool,
}
