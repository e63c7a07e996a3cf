//! In which ways documents are exported, and by what settings.

use std::io;

use serde::{Deserialize, Serialize};

use crate::base::outputs::Output;
use crate::web::robots::meta::Honour;

use super::{Row, csv, jsonl};

/// All formats, the usual one first. The values of the command line and of jobs, their help, their
/// errors and the documents are made from it.
pub static FORMATS: [&Format; 2] = [&jsonl::JSONL, &csv::CSV];

/// A way to write the documents of an export.
pub struct Format {
    /// Its name for the command line and for jobs.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Name of the file.
    pub file: &'static str,
    /// Begins the file; what stands in it before the first document is written here.
    pub(super) begin: fn(Output, &Config) -> io::Result<Box<dyn DocumentWriter>>,
}

impl Format {
    /// Returns the format of a name.
    ///
    /// # Errors
    ///
    /// Tells which names there are.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let found = FORMATS.into_iter().find(|format| format.name == name);
        found.ok_or_else(|| {
            let names = FORMATS.map(|format| format.name);
            let [others @ .., last] = &names;
            format!("must be {} or {last}", others.join(", "))
        })
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

/// A file of documents on its way.
pub(super) trait DocumentWriter {
    fn write(&mut self, row: &Row, unsettled: &Mark) -> io::Result<()>;

    /// Writes what stands after the last document, and gives the file back.
    fn end(self: Box<Self>) -> io::Result<Output>;
}

/// What is said of copies whose match waits for its second look.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mark {
    /// They may turn out to be copies of another document.
    pub unsettled: bool,
    /// Identifier of that document, or empty.
    pub unsettled_with: String,
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
