//! Values of tables, as texts and as JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, Decimal128Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

/// A value that is no list and no object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell<'a> {
    /// None.
    Null,
    /// A text.
    Text(&'a str),
    /// Bytes, which may be a text.
    Bytes(&'a [u8]),
    /// True or false.
    Truth(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Real(f64),
    /// A number or a moment that is written.
    Written(String),
    /// Anything else.
    Other,
}

impl<'a> Cell<'a> {
    /// Returns the value of a row.
    pub(super) fn of(array: &'a dyn Array, row: usize) -> Self {
        if array.is_null(row) {
            return Self::Null;
        }
        match array.data_type() {
            DataType::Utf8 => Self::Text(array.as_string::<i32>().value(row)),
            DataType::Binary => Self::Bytes(array.as_binary::<i32>().value(row)),
            DataType::FixedSizeBinary(_) => Self::Bytes(array.as_fixed_size_binary().value(row)),
            DataType::Boolean => Self::Truth(array.as_boolean().value(row)),
            DataType::Int8 => whole::<Int8Type>(array, row),
            DataType::Int16 => whole::<Int16Type>(array, row),
            DataType::Int32 => whole::<Int32Type>(array, row),
            DataType::Int64 => whole::<Int64Type>(array, row),
            DataType::UInt8 => whole::<UInt8Type>(array, row),
            DataType::UInt16 => whole::<UInt16Type>(array, row),
            DataType::UInt32 => whole::<UInt32Type>(array, row),
            DataType::UInt64 => whole::<UInt64Type>(array, row),
            DataType::Float16 => {
                Self::Real(array.as_primitive::<Float16Type>().value(row).to_f64())
            }
            DataType::Float32 => {
                Self::Real(f64::from(array.as_primitive::<Float32Type>().value(row)))
            }
            DataType::Float64 => Self::Real(array.as_primitive::<Float64Type>().value(row)),
            DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row)),
            DataType::Timestamp(unit, zone) => moment(array, row, *unit, zone.is_some()),
            DataType::Decimal128(..) => {
                let decimals = array.as_any().downcast_ref::<Decimal128Array>();
                decimals.map_or(Self::Other, |all| Self::Written(all.value_as_string(row)))
            }
            _ => Self::Other,
        }
    }

    /// Returns it as a text; nothing for none.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        Some(match self {
            Self::Null => Cow::Borrowed(""),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Bytes(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).ok()?),
            Self::Truth(truth) => Cow::Owned(truth.to_string()),
            Self::Whole(number) => Cow::Owned(number.to_string()),
            Self::Real(number) => Cow::Owned(number.to_string()),
            Self::Written(text) => Cow::Owned(text),
            Self::Other => return None,
        })
    }

    /// Returns it as a number, if it is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Written(text) => text.parse().ok(),
            _ => None,
        }
    }
}

fn whole<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Cell<'_>
where
    i128: From<T::Native>,
{
    Cell::Whole(array.as_primitive::<T>().value(row).into())
}

/// Days since 1970.
fn date<'a>(days: i32) -> Cell<'a> {
    let epoch = jiff::civil::date(1970, 1, 1);
    let date = epoch.checked_add(jiff::Span::new().try_days(days).unwrap_or_default());
    date.map_or(Cell::Whole(days.into()), |date| Cell::Written(date.to_string()))
}

fn moment(array: &dyn Array, row: usize, unit: TimeUnit, has_zone: bool) -> Cell<'_> {
    let (number, moment) = match unit {
        TimeUnit::Second => {
            let number = array.as_primitive::<TimestampSecondType>().value(row);
            (number, jiff::Timestamp::from_second(number))
        }
        TimeUnit::Millisecond => {
            let number = array.as_primitive::<TimestampMillisecondType>().value(row);
            (number, jiff::Timestamp::from_millisecond(number))
        }
        TimeUnit::Microsecond => {
            let number = array.as_primitive::<TimestampMicrosecondType>().value(row);
            (number, jiff::Timestamp::from_microsecond(number))
        }
        TimeUnit::Nanosecond => {
            let number = array.as_primitive::<TimestampNanosecondType>().value(row);
            (number, jiff::Timestamp::from_nanosecond(number.into()))
        }
    };
    moment.map_or(Cell::Whole(number.into()), |moment| {
        let written = moment.to_string();
        // One without a zone is a time on the wall.
        let bare = written.trim_end_matches('Z').to_owned();
        Cell::Written(if has_zone { written } else { bare })
    })
}

/// Writes a row as a JSON object, with all its columns in their order.
pub(super) fn row_json(batch: &RecordBatch, row: usize) -> String {
    let mut out = String::from("{");
    for (at, (field, array)) in batch.schema().fields().iter().zip(batch.columns()).enumerate() {
        if at > 0 {
            out.push(',');
        }
        string(&mut out, field.name());
        out.push(':');
        value(&mut out, &**array, row);
    }
    out.push('}');
    out
}

fn string(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a text has a form in JSON"));
}

fn value(out: &mut String, array: &dyn Array, row: usize) {
    if array.is_null(row) {
        out.push_str("null");
        return;
    }
    match array.data_type() {
        DataType::List(_) => list(out, &*array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(out, &*array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(out, &*array.as_fixed_size_list().value(row)),
        DataType::Map(..) => list(out, &array.as_map().value(row)),
        DataType::Struct(fields) => {
            out.push('{');
            for (at, (field, array)) in fields.iter().zip(array.as_struct().columns()).enumerate() {
                if at > 0 {
                    out.push(',');
                }
                string(out, field.name());
                out.push(':');
                value(out, &**array, row);
            }
            out.push('}');
        }
        _ => match Cell::of(array, row) {
            Cell::Text(text) => string(out, text),
            Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => string(out, text),
                Err(_) => hex(out, bytes),
            },
            Cell::Truth(truth) => out.push_str(if truth { "true" } else { "false" }),
            Cell::Whole(number) => drop(write!(out, "{number}")),
            Cell::Real(number) if number.is_finite() => {
                out.push_str(&serde_json::Value::from(number).to_string());
            }
            Cell::Null | Cell::Other | Cell::Real(_) => out.push_str("null"),
            Cell::Written(text) => string(out, &text),
        },
    }
}

fn list(out: &mut String, all: &dyn Array) {
    out.push('[');
    for row in 0..all.len() {
        if row > 0 {
            out.push(',');
        }
        value(out, all, row);
    }
    out.push(']');
}

/// Bytes that are no text, two digits for each.
fn hex(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push('"');
}
