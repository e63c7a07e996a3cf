//! Exports as comma-separated values, and what keeps their cells from being run.

use std::io;

use crate::base::outputs::Output;

use super::Row;
use super::form::{DocumentWriter, Format, Mark};

/// Comma-separated values with a header line (RFC 4180). A cell that begins like a formula gets an
/// apostrophe before it, so that a spreadsheet shows it and does not run it.
pub static CSV: Format = Format {
    name: "csv",
    about: "Comma-separated values with a header line",
    file: "documents.csv",
    begin: |file, config| {
        Ok(Box::new(CsvLines { out: csv::Writer::from_writer(file), as_is: config.csv_formulas }))
    },
};

struct CsvLines {
    out: csv::Writer<Output>,
    /// Cells that begin like a formula are written as they are.
    as_is: bool,
}

impl DocumentWriter for CsvLines {
    /// Every line has all columns.
    fn write(&mut self, row: &Row, unsettled: &Mark) -> io::Result<()> {
        let row = if self.as_is { row.clone() } else { row.without_formulas() };
        self.out.serialize((row, unsettled)).map_err(io::Error::other)
    }

    fn end(mut self: Box<Self>) -> io::Result<Output> {
        self.out.flush()?;
        self.out.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

/// Characters with which a spreadsheet takes a cell for a formula: those of ASCII, what it skips
/// before them, and the wide ones of East Asian keyboards.
const FORMULA_STARTS: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

impl Row {
    /// Puts an apostrophe before every cell that begins like a formula.
    fn without_formulas(&self) -> Self {
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
