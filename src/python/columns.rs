//! Columns of Arrow tables, in and out.

use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, LargeStringArray, PrimitiveArray, RecordBatch,
    RecordBatchReader, StringArray, StringViewArray,
};
use arrow_pyarrow::FromPyArrow as _;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::value_error;

/// A table or a stream of batches that some library of Arrow has.
pub(super) enum Batches {
    Stream(RecordBatchStreamReader),
    One(Option<RecordBatch>),
}

impl Batches {
    /// Takes what an object offers by the PyCapsule interface of Arrow; none if it offers nothing.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if object.hasattr("__arrow_c_stream__")? {
            return Ok(Some(Self::Stream(RecordBatchStreamReader::from_pyarrow_bound(object)?)));
        }
        if object.hasattr("__arrow_c_array__")? {
            return Ok(Some(Self::One(Some(RecordBatch::from_pyarrow_bound(object)?))));
        }
        Ok(None)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Stream(reader) => reader.next(),
            Self::One(batch) => batch.take().map(Ok),
        }
    }
}

/// A column of texts.
pub(super) struct Texts(ArrayRef);

impl Texts {
    /// Finds a column by its name; none if there is none.
    pub(super) fn find(batch: &RecordBatch, name: &str) -> PyResult<Option<Self>> {
        let Some(column) = batch.column_by_name(name) else { return Ok(None) };
        let kind = column.data_type();
        if matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
            return Ok(Some(Self(column.clone())));
        }
        Err(PyTypeError::new_err(format!("column `{name}` is of {kind}: cast it to string")))
    }

    /// Returns the text of a row; none where it is null.
    pub(super) fn get(&self, row: usize) -> Option<&str> {
        if self.0.is_null(row) {
            return None;
        }
        let any = self.0.as_any();
        if let Some(column) = any.downcast_ref::<StringArray>() {
            return Some(column.value(row));
        }
        if let Some(column) = any.downcast_ref::<LargeStringArray>() {
            return Some(column.value(row));
        }
        any.downcast_ref::<StringViewArray>().map(|column| column.value(row))
    }
}

/// A column of whole numbers.
pub(super) struct Numbers(ArrayRef);

impl Numbers {
    /// Takes a column of whole numbers; none if it has something else.
    pub(super) fn find(batch: &RecordBatch, name: &str) -> Option<Self> {
        let column = batch.column_by_name(name)?;
        column.data_type().is_integer().then(|| Self(column.clone()))
    }

    /// Returns the number of a row; none where it is null.
    pub(super) fn get(&self, row: usize) -> Option<i128> {
        fn of<T: ArrowPrimitiveType>(column: &ArrayRef, row: usize) -> Option<i128>
        where
            T::Native: Into<i128>,
        {
            let column = column.as_any().downcast_ref::<PrimitiveArray<T>>()?;
            (!column.is_null(row)).then(|| column.value(row).into())
        }
        let column = &self.0;
        match column.data_type() {
            DataType::Int8 => of::<Int8Type>(column, row),
            DataType::Int16 => of::<Int16Type>(column, row),
            DataType::Int32 => of::<Int32Type>(column, row),
            DataType::Int64 => of::<Int64Type>(column, row),
            DataType::UInt8 => of::<UInt8Type>(column, row),
            DataType::UInt16 => of::<UInt16Type>(column, row),
            DataType::UInt32 => of::<UInt32Type>(column, row),
            DataType::UInt64 => of::<UInt64Type>(column, row),
            _ => None,
        }
    }
}

/// Batches that are made while they are read.
pub(super) struct MadeBatches<F> {
    pub schema: SchemaRef,
    pub make: F,
}

impl<F: FnMut() -> Option<Result<RecordBatch, ArrowError>>> Iterator for MadeBatches<F> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.make)()
    }
}

impl<F: FnMut() -> Option<Result<RecordBatch, ArrowError>>> RecordBatchReader for MadeBatches<F> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Offers batches to whatever library of Arrow asks for them.
pub(super) fn offer<'py, F>(
    py: Python<'py>,
    batches: MadeBatches<F>,
) -> PyResult<Bound<'py, PyCapsule>>
where
    F: FnMut() -> Option<Result<RecordBatch, ArrowError>> + Send + 'static,
{
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Says that a column is missing, and which there are.
pub(super) fn missing(batch: &RecordBatch, name: &str) -> PyErr {
    let schema = batch.schema();
    let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    value_error(format!("there is no column `{name}`: there are {}", known.join(", ")))
}
