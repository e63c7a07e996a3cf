//! The documents that are kept: lines, or rows of a table.

#[cfg(feature = "parquet")]
use arrow_array::RecordBatch;
#[cfg(feature = "parquet")]
use arrow_schema::SchemaRef;
#[cfg(feature = "parquet")]
use parquet::arrow::ArrowWriter;
#[cfg(feature = "parquet")]
use parquet::basic::{Compression, ZstdLevel};
#[cfg(feature = "parquet")]
use parquet::file::properties::WriterProperties;

use crate::base::outputs::{Output, Outputs};

use super::Error;
#[cfg(feature = "parquet")]
use super::input::parquet::line_of;
use super::write::bytes;

/// The file of what is kept.
pub(super) enum KeptFile {
    /// Lines of JSON.
    Lines(Box<Output>),
    /// Rows, in a table that has the columns of the first that is read.
    #[cfg(feature = "parquet")]
    Table(KeptTable),
}

/// A table on its way.
#[cfg(feature = "parquet")]
pub(super) enum KeptTable {
    /// Its columns are not known yet.
    Empty(Option<Box<Output>>),
    /// It has rows.
    Rows { writer: Box<ArrowWriter<Output>>, schema: SchemaRef },
}

impl KeptFile {
    #[cfg(feature = "parquet")]
    pub(super) fn table(file: Output) -> Self {
        Self::Table(KeptTable::Empty(Some(Box::new(file))))
    }

    #[cfg(not(feature = "parquet"))]
    pub(super) fn table(file: Output) -> Self {
        Self::Lines(Box::new(file))
    }

    /// Keeps a line.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        match self {
            Self::Lines(file) => bytes(file, line),
            #[cfg(feature = "parquet")]
            Self::Table(_) => Ok(()),
        }
    }

    /// Begins to keep rows of a table.
    #[cfg(feature = "parquet")]
    pub(super) fn begin(&mut self, name: &str, columns: &SchemaRef) -> Result<(), Error> {
        let Self::Table(table) = self else { return Ok(()) };
        match table {
            KeptTable::Rows { schema, .. } if schema.fields() != columns.fields() => {
                let detail = format!("the columns of {name} are not those of the tables before it");
                Err(Error::Format { detail })
            }
            KeptTable::Rows { .. } => Ok(()),
            KeptTable::Empty(file) => {
                let Some(file) = file.take() else { return Ok(()) };
                let level = ZstdLevel::try_new(3).map_err(failed)?;
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(level))
                    .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
                    .build();
                let writer = ArrowWriter::try_new(*file, columns.clone(), Some(properties));
                let writer = Box::new(writer.map_err(failed)?);
                *table = KeptTable::Rows { writer, schema: columns.clone() };
                Ok(())
            }
        }
    }

    /// Keeps rows.
    #[cfg(feature = "parquet")]
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        match self {
            Self::Lines(file) => (0..batch.num_rows())
                .try_for_each(|row| bytes(file, line_of(batch, row).as_bytes())),
            Self::Table(table) => match table {
                KeptTable::Rows { writer, .. } => writer.write(batch).map_err(failed),
                KeptTable::Empty(_) => Ok(()),
            },
        }
    }

    /// Brings the file to the disk.
    pub(super) fn close(self, outputs: &mut Outputs) -> Result<(), Error> {
        let file = match self {
            Self::Lines(file) => *file,
            #[cfg(feature = "parquet")]
            Self::Table(table) => match table {
                KeptTable::Rows { writer, .. } => writer.into_inner().map_err(failed)?,
                KeptTable::Empty(file) => match file {
                    Some(file) => *file,
                    None => return Ok(()),
                },
            },
        };
        Ok(outputs.add(file)?)
    }
}

/// Bytes of a row group, which stays in memory until it is written.
#[cfg(feature = "parquet")]
const ROW_GROUP_BYTES: usize = 64 << 20;

#[cfg(feature = "parquet")]
fn failed(error: parquet::errors::ParquetError) -> Error {
    Error::Write(error.into())
}
