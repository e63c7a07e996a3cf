//! The form of an export, and what keeps its cells from being run.

use serde::{Deserialize, Serialize};

use super::Row;
use crate::web::robots::meta::Honour;

/// Form of the exported documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values with a header line (RFC 4180). A cell that begins like a formula gets
    /// an apostrophe before it, so that a spreadsheet shows it and does not run it.
    Csv,
    /// The same with all cells as they are.
    CsvAsIs,
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

impl Config {
    /// Returns the form that these settings make of one.
    #[must_use]
    pub fn form(&self, format: Format) -> Format {
        match format {
            Format::Csv if self.csv_formulas => Format::CsvAsIs,
            format => format,
        }
    }
}

impl Format {
    /// Returns the name of the file of documents.
    pub(super) fn documents(self) -> &'static str {
        match self {
            Self::Jsonl => "documents.jsonl",
            Self::Csv | Self::CsvAsIs => "documents.csv",
        }
    }
}

/// Characters with which a spreadsheet takes a cell for a formula: those of ASCII, what it skips
/// before them, and the wide ones of East Asian keyboards.
const FORMULA_STARTS: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

impl Row {
    /// Puts an apostrophe before every cell that begins like a formula.
    pub(super) fn without_formulas(&self) -> Self {
        let mut row = self.clone();
        let cells = [
            &mut row.doc_id,
            &mut row.url,
            &mut row.title,
            &mut row.text,
            &mut row.language,
            &mut row.author,
            &mut row.published,
            &mut row.modified,
            &mut row.site,
            &mut row.description,
            &mut row.category,
            &mut row.first_seen,
            &mut row.last_seen,
        ];
        for cell in cells.into_iter().filter(|cell| cell.starts_with(FORMULA_STARTS)) {
            cell.insert(0, '\'');
        }
        row
    }
}
