//! Exports as comma-separated values, and what keeps their cells from being run.

use std::borrow::Cow;
use std::io;

use super::form::{DocumentWriter, Format, Packing};
use super::stream::Stream;
use super::value::{Record, Value};

/// Comma-separated values with a header line (RFC 4180). A cell that begins like a formula gets an
/// apostrophe before it, so that a spreadsheet shows it and does not run it. Lists are JSON.
pub static CSV: Format = Format {
    name: "csv",
    about: "Comma-separated values with a header line",
    media_type: "text/csv",
    is_typed: false,
    is_markdown: false,
    packing: Packing::Around,
    ending: |_| "csv",
    lists_dropped: false,
    begin: |file, manner| {
        let mut out = ::csv::Writer::from_writer(file);
        out.write_record(manner.columns.iter().map(|column| column.name))?;
        Ok(Box::new(CsvLines { out, as_is: manner.config.csv_formulas }))
    },
};

struct CsvLines {
    out: ::csv::Writer<Stream>,
    /// Cells that begin like a formula are written as they are.
    as_is: bool,
}

impl DocumentWriter for CsvLines {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        for value in &record.values {
            let cell = cell(value);
            if !self.as_is && cell.starts_with(FORMULA_STARTS) {
                self.out.write_field(format!("'{cell}")).map_err(inside)?;
            } else {
                self.out.write_field(cell.as_bytes()).map_err(inside)?;
            }
        }
        self.out.write_record(None::<&[u8]>).map_err(inside)
    }

    fn bytes(&self) -> u64 {
        self.out.get_ref().bytes()
    }

    fn end(mut self: Box<Self>) -> io::Result<Stream> {
        self.out.flush()?;
        self.out.into_inner().map_err(::csv::IntoInnerError::into_error)
    }
}

/// What the operating system says, and not that it was said while writing CSV.
fn inside(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::None => Cow::Borrowed(""),
        Value::Text(text) => Cow::Borrowed(text),
        Value::Time(time) => Cow::Owned(time.to_string()),
        other => Cow::Owned(serde_json::to_string(other).expect("a value has a form in JSON")),
    }
}

/// Characters with which a spreadsheet takes a cell for a formula: those of ASCII, what it skips
/// before them, and the wide ones of East Asian keyboards.
const FORMULA_STARTS: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];
