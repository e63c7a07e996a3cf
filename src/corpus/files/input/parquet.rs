//! Rows of a Parquet file, one row group after the other; columns that are not needed are not read.

use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use crate::base::remote::Location;

use super::super::Error;
use super::cells::row_json;
use super::fields::{Field, Values};
use super::open::{Counted, is_damage};
use super::{CHUNK_BYTES, CHUNK_RECORDS, Chunk, Columns, Fault, Item, Source, Take};

/// Texts of a column whose length is looked at.
const SAMPLE_ROWS: usize = 64;

/// A file that is read at several places by turns.
#[derive(Clone)]
pub(crate) struct Input {
    file: Arc<Mutex<Counted>>,
    bytes: u64,
}

impl Input {
    fn open(location: &Location, read: Arc<AtomicU64>) -> io::Result<Self> {
        let mut file = Counted::open(location, read)?;
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file: Arc::new(Mutex::new(file)), bytes })
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.bytes
    }
}

/// Reads on from a place of its own.
pub(crate) struct InputPlace {
    input: Input,
    at: u64,
}

impl Read for InputPlace {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut file = self.input.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(bytes)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl ChunkReader for Input {
    type T = io::BufReader<InputPlace>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(io::BufReader::new(InputPlace { input: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<bytes::Bytes> {
        let mut out = vec![0; length];
        InputPlace { input: self.clone(), at: start }.read_exact(&mut out)?;
        Ok(out.into())
    }
}

/// A file whose footer was read.
#[derive(Clone)]
pub(crate) struct Table {
    input: Input,
    metadata: ArrowReaderMetadata,
}

/// Why a file or a part of it cannot be read.
pub(crate) enum TableFault {
    /// The machine or a server fails.
    Io(io::Error),
    /// The file is at fault.
    Damage(String),
}

impl From<ParquetError> for TableFault {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(io) if !is_damage(&io) => Self::Io(*io),
                Ok(io) => Self::Damage(io.to_string()),
                Err(other) => Self::Damage(other.to_string()),
            },
            other => Self::Damage(other.to_string()),
        }
    }
}

/// What the decoder says, also where it asserts what a damaged file does not hold.
fn caught<T, E: Into<TableFault>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, TableFault> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(TableFault::Damage("its pages make no sense".to_owned())),
    }
}

impl From<arrow_schema::ArrowError> for TableFault {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::ParquetError(detail) => Self::Damage(detail),
            other => Self::Damage(other.to_string()),
        }
    }
}

impl Table {
    /// Reads the footer. With `plain` types, columns have the types that the format has, whatever
    /// the writer says of them.
    pub(crate) fn open(
        location: &Location,
        read: Arc<AtomicU64>,
        plain: bool,
    ) -> Result<Self, TableFault> {
        let input = Input::open(location, read).map_err(TableFault::Io)?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(plain);
        let metadata = caught(|| ArrowReaderMetadata::load(&input, options))?;
        Ok(Self { input, metadata })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Rows of each row group.
    pub(crate) fn groups(&self) -> Vec<usize> {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).collect()
    }

    /// The columns, with the mean length of texts in the first rows.
    pub(super) fn fields(&self) -> Vec<Field> {
        let mut fields: Vec<Field> = (self.schema().fields().iter())
            .map(|field| {
                let kind = field.data_type();
                let values = match kind {
                    DataType::Utf8 | DataType::Binary => Values::Text,
                    kind if kind.is_nested() => Values::Nested,
                    _ => Values::Plain,
                };
                let kind = match kind {
                    DataType::List(_) => "a list".to_owned(),
                    DataType::Struct(_) => "a struct".to_owned(),
                    DataType::Map(..) => "a map".to_owned(),
                    kind => format!("of the type {kind}"),
                };
                Field { name: field.name().clone(), values, kind, mean_chars: 0.0 }
            })
            .collect();
        let texts: Vec<usize> =
            (0..fields.len()).filter(|at| fields[*at].values == Values::Text).collect();
        if texts.is_empty() || self.groups().is_empty() {
            return fields;
        }
        let mask = self.roots(texts.iter().copied());
        let limit =
            RowSelection::from(vec![RowSelector::select(SAMPLE_ROWS.min(self.groups()[0]))]);
        let Ok(Some(batch)) = self
            .group(0, mask, SAMPLE_ROWS, Some(limit))
            .and_then(|mut rows| caught(|| rows.next().transpose()))
        else {
            return fields;
        };
        for (at, array) in texts.into_iter().zip(batch.columns()) {
            let bytes: usize = (0..array.len())
                .filter_map(|row| super::cells::Cell::of(&**array, row).text())
                .map(|text| text.chars().count())
                .sum();
            fields[at].mean_chars = bytes as f64 / array.len().max(1) as f64;
        }
        fields
    }

    fn roots(&self, columns: impl IntoIterator<Item = usize>) -> ProjectionMask {
        ProjectionMask::roots(self.metadata.parquet_schema(), columns)
    }

    /// The columns that documents of a source need, and others that are asked for.
    pub(super) fn mask_of(
        &self,
        source: &Source,
        extra: &[String],
        columns: Columns,
    ) -> ProjectionMask {
        match columns {
            Columns::Needed => {
                self.mask(source.fields.all().chain(extra.iter().map(String::as_str)))
            }
            Columns::All => ProjectionMask::all(),
        }
    }

    fn mask<'n>(&self, names: impl Iterator<Item = &'n str>) -> ProjectionMask {
        let names: Vec<&str> = names.collect();
        let columns = self.schema().fields().iter().enumerate();
        let wanted = columns.filter(|(_, field)| names.contains(&field.name().as_str()));
        self.roots(wanted.map(|(at, _)| at))
    }

    fn group(
        &self,
        group: usize,
        mask: ProjectionMask,
        batch_rows: usize,
        selection: Option<RowSelection>,
    ) -> Result<ParquetRecordBatchReader, TableFault> {
        caught(|| {
            let metadata = self.metadata.clone();
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(self.input.clone(), metadata);
            let builder = builder
                .with_projection(mask)
                .with_row_groups(vec![group])
                .with_batch_size(batch_rows);
            match selection {
                Some(selection) => builder.with_row_selection(selection).build(),
                None => builder.build(),
            }
        })
    }

    /// Reads some rows of a group with all columns. Where one of these is damaged that no document
    /// needs, rows come with the columns `names`.
    pub(crate) fn selected<'n>(
        &self,
        group: usize,
        rows: &[usize],
        names: impl Iterator<Item = &'n str>,
        mut each: impl FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), TableError> {
        let mut given = 0;
        let step = self.batch_rows(group);
        let reader = self.group(group, ProjectionMask::all(), step, Some(selection(rows)));
        if let Ok(mut reader) = reader {
            while let Ok(Some(batch)) = caught(|| reader.next().transpose()) {
                given += batch.num_rows();
                each(&batch).map_err(TableError::Error)?;
            }
        }
        let needed = self.mask(names);
        for row in &rows[given..] {
            let one = |mask: ProjectionMask| {
                let mut reader = self.group(group, mask, 1, Some(selection(&[*row])))?;
                caught(|| reader.next().transpose())
            };
            let read = match one(ProjectionMask::all()) {
                Ok(Some(batch)) => Ok(Some(batch)),
                _ => one(needed.clone()),
            };
            let missing = || TableFault::Damage(format!("row {row} of group {group} is missing"));
            each(&read?.ok_or_else(missing)?).map_err(TableError::Error)?;
        }
        Ok(())
    }

    /// Rows that are read at a time: few if they are long.
    fn batch_rows(&self, group: usize) -> usize {
        let group = &self.metadata.metadata().row_groups()[group];
        let rows = usize::try_from(group.num_rows()).unwrap_or(0).max(1);
        let bytes = usize::try_from(group.total_byte_size()).unwrap_or(0);
        (CHUNK_BYTES * rows / bytes.max(1)).clamp(1, CHUNK_RECORDS)
    }
}

/// Chosen rows, in their order.
fn selection(rows: &[usize]) -> RowSelection {
    let mut selectors = Vec::new();
    let mut next = 0;
    for row in rows {
        selectors.push(RowSelector::skip(row - next));
        selectors.push(RowSelector::select(1));
        next = row + 1;
    }
    selectors.into()
}

/// What stops the copying of rows.
pub(crate) enum TableError {
    /// The table.
    Table(TableFault),
    /// Whoever takes the rows.
    Error(Error),
}

impl From<TableFault> for TableError {
    fn from(fault: TableFault) -> Self {
        Self::Table(fault)
    }
}

/// A row as a JSON object.
pub(crate) fn line_of(batch: &RecordBatch, row: usize) -> String {
    row_json(batch, row)
}

/// Reads all rows of a source with the columns of a mask.
pub(super) fn read(
    at: usize,
    source: &Source,
    table: &Table,
    mask: &ProjectionMask,
    take: &mut Take<'_>,
) -> Result<(), Error> {
    let mut reading = Reading { at, source, table, take, first: 1, goes_on: true };
    for (group, rows) in table.groups().into_iter().enumerate() {
        reading.group(group, rows, mask)?;
        if !reading.goes_on {
            break;
        }
    }
    Ok(())
}

struct Reading<'r, 't> {
    at: usize,
    source: &'r Source,
    table: &'r Table,
    take: &'r mut Take<'t>,
    /// Number of the first row of the group, from 1.
    first: u64,
    goes_on: bool,
}

impl Reading<'_, '_> {
    fn group(&mut self, group: usize, rows: usize, mask: &ProjectionMask) -> Result<(), Error> {
        let step = self.table.batch_rows(group);
        let mut row = 0;
        let mut reader = None;
        while row < rows && self.goes_on {
            let read = if let Some(reader) = reader.take() {
                Ok(reader)
            } else {
                let rest = vec![RowSelector::skip(row), RowSelector::select(rows - row)];
                self.table.group(group, mask.clone(), step, Some(rest.into()))
            };
            let read = read.and_then(|mut reader| {
                caught(|| reader.next().transpose()).map(|batch| (reader, batch))
            });
            match read {
                Ok((next, Some(batch))) => {
                    let count = batch.num_rows();
                    self.batch(row, batch);
                    row += count;
                    reader = Some(next);
                }
                Ok((_, None)) => {
                    self.lost(row, rows - row, "rows are missing");
                    row = rows;
                }
                Err(TableFault::Io(error)) => {
                    return Err(Error::Read { file: self.source.name.clone(), source: error });
                }
                Err(TableFault::Damage(detail)) => {
                    let some = row..(row + step).min(rows);
                    row = self.one_by_one(group, some, mask, &detail);
                }
            }
        }
        self.first += rows as u64;
        Ok(())
    }

    /// Reads rows each by itself of which one at least is at fault. Returns the row after them.
    fn one_by_one(
        &mut self,
        group: usize,
        some: Range<usize>,
        mask: &ProjectionMask,
        detail: &str,
    ) -> usize {
        let (mut read, until) = (0, some.end);
        for row in some {
            let one = self.table.group(group, mask.clone(), 1, Some(selection(&[row])));
            let one = one.and_then(|mut reader| caught(|| reader.next().transpose()));
            match one {
                Ok(Some(batch)) => {
                    read += 1;
                    self.batch(row, batch);
                }
                Ok(None) => self.lost(row, 1, "the row is missing"),
                Err(TableFault::Io(error)) => self.lost(row, 1, &error.to_string()),
                Err(TableFault::Damage(detail)) => self.lost(row, 1, &detail),
            }
        }
        if read > 0 {
            return until;
        }
        // Nothing of it can be read: the rest of the group is behind the damage.
        let rows = self.table.groups()[group];
        if until < rows {
            self.lost(until, rows - until, detail);
        }
        rows
    }

    fn batch(&mut self, row: usize, batch: RecordBatch) {
        let mut chunk = Chunk::new(self.at, self.first + row as u64);
        chunk.bytes = batch.get_array_memory_size() as u64;
        chunk.items = (0..batch.num_rows()).map(Item::Row).collect();
        chunk.rows = Some(batch);
        self.goes_on &= (self.take)(chunk);
    }

    /// Tells of rows that cannot be read.
    fn lost(&mut self, row: usize, rows: usize, detail: &str) {
        let mut chunk = Chunk::new(self.at, self.first + row as u64);
        let is_utf8 = detail.to_ascii_lowercase().contains("utf-8");
        let reason = if is_utf8 { "invalid_utf8" } else { "damaged" };
        let which = match rows {
            1 => String::new(),
            rows => format!("this row and the {} after it are lost: ", rows - 1),
        };
        chunk.push(Item::Fault(Fault::new(reason, format!("{which}{detail}"))), 0);
        self.goes_on &= (self.take)(chunk);
    }
}
