//! A store that is read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::library::{CrawledDocument, Documents as Stored, LibraryError, StoreReader};

use super::apart;
use super::columns::{MadeBatches, offer};

/// Documents of one batch.
const BATCH: usize = 1_000;

/// A document as it is stored: what its canonical copy says.
#[pyclass(frozen, get_all, module = "uniqcrawl")]
pub(super) struct Document {
    /// Its identifier: two halves of 16 hexadecimal digits.
    doc_id: String,
    /// URL of its canonical copy.
    url: String,
    /// Title.
    title: String,
    /// Main text.
    text: String,
    /// Language (ISO 639-1), or empty.
    language: String,
    /// Authors, joined by `, `, or empty.
    author: String,
    /// When it says that it was published (ISO 8601), or empty.
    published: String,
    /// Popularity of the canonical copy.
    popularity: u64,
    /// URLs that carry it, the canonical one among them.
    copies: u64,
}

#[pymethods]
impl Document {
    fn __repr__(&self) -> String {
        format!("Document({:?}, {:?}, {:?})", self.doc_id, self.url, self.title)
    }
}

impl From<CrawledDocument> for Document {
    fn from(found: CrawledDocument) -> Self {
        let CrawledDocument {
            doc_id,
            url,
            title,
            text,
            language,
            author,
            published,
            popularity,
            copies,
        } = found;
        Self { doc_id, url, title, text, language, author, published, popularity, copies }
    }
}

fn failed(error: LibraryError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// A store that is read. Others may read it at the same time; nothing is written to it.
#[pyclass(frozen, module = "uniqcrawl")]
pub(super) struct Store(Arc<StoreReader>);

/// Open the store in a folder to read it. OSError if there is none, or if a crawl or a service has
/// it open.
#[pyfunction]
pub(super) fn open_store(py: Python<'_>, path: PathBuf) -> PyResult<Store> {
    apart(py, || StoreReader::open(path))?.map(|store| Store(Arc::new(store))).map_err(failed)
}

#[pymethods]
impl Store {
    fn __iter__(&self, py: Python<'_>) -> PyResult<Documents> {
        let documents = Mutex::new(apart(py, || self.0.documents())?.map_err(failed)?);
        Ok(Documents { documents, _store: self.0.clone() })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let count = apart(py, || self.0.len())?.map_err(failed)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Return a document by its docId, also by that of a document that is part of it now; None if
    /// it is not there.
    fn get(&self, py: Python<'_>, doc_id: &str) -> PyResult<Option<Document>> {
        check(doc_id)?;
        let found = apart(py, || self.0.document(doc_id))?.map_err(failed)?;
        Ok(found.map(Document::from))
    }

    fn __getitem__(&self, py: Python<'_>, doc_id: &str) -> PyResult<Document> {
        self.get(py, doc_id)?.ok_or_else(|| PyKeyError::new_err(doc_id.to_owned()))
    }

    /// Return the URLs of all copies of a document, in their order; empty if it is not there.
    fn copies(&self, py: Python<'_>, doc_id: &str) -> PyResult<Vec<String>> {
        check(doc_id)?;
        apart(py, || self.0.copies(doc_id))?.map_err(failed)
    }

    /// Offer the documents as batches, read while they are taken.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Who asks casts what it wants otherwise.
        drop(requested_schema);
        let mut documents = apart(py, || self.0.documents())?.map_err(failed)?;
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let number = |name: &str| Field::new(name, DataType::UInt64, false);
        let texts = ["doc_id", "url", "title", "text", "language", "author", "published"];
        let mut fields: Vec<Field> = texts.into_iter().map(text).collect();
        fields.extend(["popularity", "copies"].map(number));
        let schema = Arc::new(Schema::new(fields));
        let made = schema.clone();
        let store = self.0.clone();
        let make = move || {
            // It can be read as long as it is open.
            let _store = &store;
            let mut rows = Vec::with_capacity(BATCH);
            for row in documents.by_ref().take(BATCH) {
                match row {
                    Ok(row) => rows.push(row),
                    Err(error) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
                }
            }
            if rows.is_empty() { None } else { Some(batch(&made, &rows)) }
        };
        offer(py, MadeBatches { schema, make })
    }
}

fn batch(schema: &Arc<Schema>, rows: &[CrawledDocument]) -> Result<RecordBatch, ArrowError> {
    type Get = fn(&CrawledDocument) -> &str;
    let texts: [Get; 7] = [
        |row| &row.doc_id,
        |row| &row.url,
        |row| &row.title,
        |row| &row.text,
        |row| &row.language,
        |row| &row.author,
        |row| &row.published,
    ];
    let mut columns: Vec<ArrayRef> = Vec::new();
    for get in texts {
        let mut builder = StringBuilder::new();
        rows.iter().for_each(|row| builder.append_value(get(row)));
        columns.push(Arc::new(builder.finish()));
    }
    for get in [|row: &CrawledDocument| row.popularity, |row: &CrawledDocument| row.copies] {
        let mut builder = UInt64Builder::new();
        rows.iter().for_each(|row| builder.append_value(get(row)));
        columns.push(Arc::new(builder.finish()));
    }
    RecordBatch::try_new(schema.clone(), columns)
}

fn check(doc_id: &str) -> PyResult<()> {
    let parsed = doc_id.parse::<crate::corpus::documents::DocId>();
    parsed.map(drop).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The documents of one state of a store.
#[pyclass(frozen, module = "uniqcrawl")]
pub(super) struct Documents {
    documents: Mutex<Stored>,
    /// They can be read as long as it is open.
    _store: Arc<StoreReader>,
}

#[pymethods]
impl Documents {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Document>> {
        let next =
            apart(py, || self.documents.lock().unwrap_or_else(PoisonError::into_inner).next())?;
        next.transpose().map_err(failed).map(|next| next.map(Document::from))
    }
}
