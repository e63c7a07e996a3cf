//! Exports as Parquet, with real types: moments, whole numbers, lists of structs.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::form::{DocumentWriter, Format, Manner, Packing};
use super::stream::{Compression, GZIP_LEVEL, Stream, ZSTD_LEVEL};
use super::time::Span;
use super::value::{Column, Columns, Kind, Record, Value};

/// Parquet, compressed by itself. Dates are moments in UTC: a day is its first moment.
pub static PARQUET: Format = Format {
    name: "parquet",
    about: "Parquet with real types: moments, whole numbers, lists",
    media_type: "application/vnd.apache.parquet",
    is_typed: true,
    is_markdown: false,
    packing: Packing::Inside(Compression::Zstd),
    ending: |_| "parquet",
    lists_dropped: true,
    begin: |file, manner| Ok(Box::new(ParquetFile::new(file, manner)?)),
};

/// Rows and bytes that are turned into columns at a time.
const BATCH_ROWS: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;

/// Rows of a row group at most, and bytes of it that are in memory: readers take one at a time.
const GROUP_ROWS: usize = 100_000;
const GROUP_BYTES: usize = 64 << 20;

struct ParquetFile {
    out: ArrowWriter<Stream>,
    schema: SchemaRef,
    columns: Columns,
    rows: Vec<Record>,
    bytes: usize,
}

impl ParquetFile {
    fn new(file: Stream, manner: &Manner) -> io::Result<Self> {
        let columns = manner.columns.clone();
        let fields: Vec<Field> = columns.iter().map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("uniqcrawl ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(codec(manner.compression)?)
            .set_max_row_group_row_count(Some(GROUP_ROWS));
        // Hardly a text stands there twice.
        for name in ["text", "markdown"] {
            let path = ColumnPath::from(name);
            properties = properties.set_column_dictionary_enabled(path, false);
        }
        let out = ArrowWriter::try_new(file, schema.clone(), Some(properties.build()))?;
        Ok(Self { out, schema, columns, rows: Vec::new(), bytes: 0 })
    }

    /// Turns what is held into columns.
    fn flush(&mut self) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let arrays = self.columns.iter().enumerate().map(|(at, column)| {
            let values = rows.iter().map(|row| &row.values[at]);
            array(column.kind, values)
        });
        let batch = RecordBatch::try_new(self.schema.clone(), arrays.collect());
        self.out.write(&batch.map_err(io::Error::other)?)?;
        if self.out.in_progress_size() >= GROUP_BYTES {
            self.out.flush()?;
        }
        Ok(())
    }
}

impl DocumentWriter for ParquetFile {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        self.bytes += record.values.iter().map(size_of_value).sum::<usize>();
        self.rows.push(record.clone());
        if self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        (self.out.bytes_written() + self.out.in_progress_size() + self.bytes) as u64
    }

    fn end(mut self: Box<Self>) -> io::Result<Stream> {
        self.flush()?;
        Ok(self.out.into_inner()?)
    }
}

/// Bytes of a value, about.
fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Texts(list) => list.iter().map(String::len).sum(),
        Value::Links(list) => list.iter().map(|link| link.url.len() + link.text.len()).sum(),
        Value::Images(list) => list.iter().map(|image| image.url.len() + image.alt.len()).sum(),
        Value::Keys(keys) => keys.sketch.len() + 8 * keys.sentences.len() + 64,
        _ => 8,
    }
}

fn codec(compression: Compression) -> io::Result<Codec> {
    Ok(match compression {
        Compression::None => Codec::UNCOMPRESSED,
        Compression::Gzip => Codec::GZIP(GzipLevel::try_new(GZIP_LEVEL)?),
        Compression::Zstd => Codec::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?),
    })
}

fn moment() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

fn texts(names: &[&str]) -> Vec<Field> {
    names.iter().map(|name| Field::new(*name, DataType::Utf8, false)).collect()
}

fn link_fields() -> Fields {
    let mut fields = texts(&["url", "text"]);
    fields.push(Field::new("nofollow", DataType::Boolean, false));
    fields.into()
}

fn image_fields() -> Fields {
    let mut fields = texts(&["url", "alt"]);
    fields.push(Field::new("width", DataType::Int32, true));
    fields.push(Field::new("height", DataType::Int32, true));
    fields.into()
}

fn header_fields() -> Fields {
    texts(&["contentType", "lastModified", "etag", "contentLanguage"]).into()
}

fn key_fields() -> Fields {
    let mut fields = texts(&["hash", "title"]);
    fields.push(Field::new("words", DataType::Int64, false));
    let item = Field::new("element", DataType::Int64, false);
    fields.push(Field::new("sentences", DataType::List(Arc::new(item)), false));
    fields.extend(texts(&["sketch"]));
    fields.into()
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", item, false)))
}

/// A column as Arrow has it. What may not be known may be null.
fn field(column: &Column) -> Field {
    let kind = match column.kind {
        Kind::Text => DataType::Utf8,
        Kind::Texts => list_of(DataType::Utf8),
        Kind::Count => DataType::Int64,
        Kind::Number => DataType::Float64,
        Kind::Flag => DataType::Boolean,
        Kind::Date | Kind::Time => moment(),
        Kind::Links => list_of(DataType::Struct(link_fields())),
        Kind::Images => list_of(DataType::Struct(image_fields())),
        Kind::Headers => DataType::Struct(header_fields()),
        Kind::Keys => DataType::Struct(key_fields()),
    };
    Field::new(column.name, kind, true)
}

/// The values of a column as Arrow has them.
fn array<'a>(kind: Kind, values: impl ExactSizeIterator<Item = &'a Value>) -> ArrayRef {
    match kind {
        Kind::Text => Arc::new(values.map(Value::as_text).collect::<StringArray>()),
        Kind::Texts => text_lists(values),
        Kind::Count => Arc::new(values.map(count).collect::<Int64Array>()),
        Kind::Number => {
            let numbers = values.map(|value| match value {
                Value::Number(number) => Some(*number),
                _ => None,
            });
            Arc::new(numbers.collect::<Float64Array>())
        }
        Kind::Flag => {
            let flags = values.map(|value| match value {
                Value::Flag(flag) => Some(*flag),
                _ => None,
            });
            Arc::new(flags.collect::<BooleanArray>())
        }
        Kind::Date | Kind::Time => {
            let times = values.map(|value| match value {
                Value::Time(time) => Some(time.0),
                Value::Text(date) => Span::read(date).map(|span| span.from.0),
                _ => None,
            });
            Arc::new(times.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
        }
        Kind::Links => links(values),
        Kind::Images => images(values),
        Kind::Headers => headers(values),
        Kind::Keys => keys(values),
    }
}

fn count(value: &Value) -> Option<i64> {
    match value {
        Value::Count(count) => i64::try_from(*count).ok(),
        _ => None,
    }
}

fn element(kind: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", kind, false))
}

fn text_lists<'a>(values: impl Iterator<Item = &'a Value>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new()).with_field(element(DataType::Utf8));
    for value in values {
        if let Value::Texts(list) = value {
            for text in list {
                lists.values().append_value(text);
            }
        }
        lists.append(matches!(value, Value::Texts(_)));
    }
    Arc::new(lists.finish())
}

fn text(of: &mut StructBuilder, at: usize, text: &str) {
    of.field_builder::<StringBuilder>(at).expect("this field is a text").append_value(text);
}

fn links<'a>(values: impl Iterator<Item = &'a Value>) -> ArrayRef {
    let items = StructBuilder::from_fields(link_fields(), 0);
    let mut lists = ListBuilder::new(items).with_field(element(DataType::Struct(link_fields())));
    for value in values {
        if let Value::Links(list) = value {
            for link in list {
                let item = lists.values();
                text(item, 0, &link.url);
                text(item, 1, &link.text);
                let nofollow = item.field_builder::<BooleanBuilder>(2);
                nofollow.expect("this field is a flag").append_value(link.nofollow);
                item.append(true);
            }
        }
        lists.append(matches!(value, Value::Links(_)));
    }
    Arc::new(lists.finish())
}

fn images<'a>(values: impl Iterator<Item = &'a Value>) -> ArrayRef {
    let items = StructBuilder::from_fields(image_fields(), 0);
    let mut lists = ListBuilder::new(items).with_field(element(DataType::Struct(image_fields())));
    for value in values {
        if let Value::Images(list) = value {
            for image in list {
                let item = lists.values();
                text(item, 0, &image.url);
                text(item, 1, &image.alt);
                for (at, side) in [(2, image.width), (3, image.height)] {
                    let builder = item.field_builder::<Int32Builder>(at);
                    let side = side.and_then(|side| i32::try_from(side).ok());
                    builder.expect("this field is a number").append_option(side);
                }
                item.append(true);
            }
        }
        lists.append(matches!(value, Value::Images(_)));
    }
    Arc::new(lists.finish())
}

fn headers<'a>(values: impl Iterator<Item = &'a Value>) -> ArrayRef {
    let mut all = StructBuilder::from_fields(header_fields(), 0);
    for value in values {
        let (is_known, headers) = match value {
            Value::Headers(headers) => (true, headers.as_ref().clone()),
            _ => (false, crate::corpus::documents::KeptHeaders::default()),
        };
        text(&mut all, 0, &headers.content_type);
        text(&mut all, 1, &headers.last_modified);
        text(&mut all, 2, &headers.etag);
        text(&mut all, 3, &headers.content_language);
        all.append(is_known);
    }
    Arc::new(all.finish())
}

fn keys<'a>(values: impl Iterator<Item = &'a Value>) -> ArrayRef {
    let sentences = ListBuilder::new(Int64Builder::new()).with_field(element(DataType::Int64));
    let mut all = StructBuilder::new(
        key_fields(),
        vec![
            Box::new(StringBuilder::new()),
            Box::new(StringBuilder::new()),
            Box::new(Int64Builder::new()),
            Box::new(sentences),
            Box::new(StringBuilder::new()),
        ],
    );
    for value in values {
        let (is_known, keys) = match value {
            Value::Keys(keys) => (true, keys.as_ref().clone()),
            _ => (false, super::value::KeysValue::default()),
        };
        text(&mut all, 0, &keys.hash);
        text(&mut all, 1, &keys.title);
        let words = all.field_builder::<Int64Builder>(2).expect("this field is a number");
        words.append_option(i64::try_from(keys.words).ok().or(Some(i64::MAX)));
        let lists = all.field_builder::<ListBuilder<Int64Builder>>(3);
        let lists = lists.expect("this field is a list");
        for key in &keys.sentences {
            lists.values().append_option(i64::try_from(*key).ok().or(Some(i64::MAX)));
        }
        lists.append(true);
        text(&mut all, 4, &keys.sketch);
        all.append(is_known);
    }
    Arc::new(all.finish())
}
