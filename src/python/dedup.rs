//! Near-duplicates among documents that come one after the other, in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use arrow_array::builder::{
    BooleanBuilder, Float32Builder, Int64Builder, StringBuilder, UInt8Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyMapping, PyTuple};
use toml::{Table, Value};

use crate::neardup::{Cluster, Config, InputDocument, Preset, article_keys};
use crate::text::features::{ArticleKeys, Fingerprinter, Input};

use super::columns::{Batches, MadeBatches, Numbers, Texts, missing, offer};
use super::{apart, value_error};

/// Documents that are fingerprinted together.
const TOGETHER: usize = 256;

/// What became of a document.
#[pyclass(frozen, get_all, module = "uniqcrawl")]
pub(super) struct Verdict {
    /// The id that it was given.
    id: Py<PyAny>,
    /// It is a copy of another document.
    duplicate: bool,
    /// The id of the document that is kept of its cluster; None if it is this one.
    duplicate_of: Option<Py<PyAny>>,
    /// By which key it was found: exact_content, near_title, near_content, long_sentence, shingles
    /// or merged; first for the first document of a cluster.
    key: &'static str,
    /// Bits between its fingerprint and that of the first document of its cluster.
    distance: u8,
    /// Similarity of its text to that one, 0 to 1.
    similarity: f32,
}

#[pymethods]
impl Verdict {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let id = self.id.bind(py).repr()?;
        Ok(match &self.duplicate_of {
            None => format!("Verdict({id}, new)"),
            Some(of) => format!("Verdict({id}, copy of {} by {})", of.bind(py).repr()?, self.key),
        })
    }

    fn __bool__(&self) -> bool {
        self.duplicate
    }
}

/// A document on its way in.
struct Incoming {
    id: Py<PyAny>,
    title: String,
    text: String,
    language: String,
    url: String,
    popularity: u64,
}

impl Incoming {
    fn keys(&self, fingerprinter: &Fingerprinter) -> ArticleKeys {
        let Self { title, text, language, url, .. } = self;
        article_keys(fingerprinter, &Input { title, text, language, url, fields: &[] })
    }
}

/// Finds near-duplicates among documents that come one after the other.
///
/// `preset` is one of seeds, strict, balanced and loose. Further keywords are settings of the
/// section `[dedup]` of the settings file, such as `k=3` or `similarity_min=0.5`.
#[pyclass(frozen, module = "uniqcrawl")]
pub(super) struct Deduplicator {
    inner: Mutex<crate::neardup::Deduplicator>,
    ids: Mutex<Vec<Py<PyAny>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Deduplicator {
    #[new]
    #[pyo3(signature = (preset="balanced", **settings))]
    fn new(preset: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let config = preset.parse::<Preset>().map_err(value_error)?.config();
        let config = match settings {
            Some(settings) => with_settings(&config, settings)?,
            None => config,
        };
        config.check().map_err(value_error)?;
        let inner = crate::neardup::Deduplicator::new(config).map_err(value_error)?;
        Ok(Self { inner: Mutex::new(inner), ids: Mutex::default() })
    }

    /// Judge a document and remember it. Returns a Verdict, which is true for a copy.
    ///
    /// What is known later may change it: `settle()` looks again, `verdicts()` tells.
    #[pyo3(signature = (id, text, title=None, url=None, language=None, popularity=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn add(
        &self,
        py: Python<'_>,
        id: Py<PyAny>,
        text: &str,
        title: Option<&str>,
        url: Option<&str>,
        language: Option<&str>,
        popularity: u64,
    ) -> PyResult<Verdict> {
        let document = InputDocument {
            title: title.unwrap_or_default(),
            text,
            language: language.unwrap_or_default(),
            url: url.unwrap_or_default(),
            fields: &[],
            popularity,
        };
        // The place of the document is that of its id: nobody comes between.
        let inner = &self.inner;
        let number = apart(py, || {
            let mut inner = lock(inner);
            inner.judge(document);
            inner.len() - 1
        })?;
        self.name(py, number, id);
        self.verdict(py, number)
    }

    /// Judge many documents, look again at all matches that were less than certain, and return what
    /// became of each, in order.
    ///
    /// `documents` is an iterable of dicts, of (id, text) tuples or of texts; or a table, a batch
    /// or a stream of batches of any library that has Arrow's PyCapsule interface (pyarrow, polars,
    /// duckdb, pandas). The names are those of fields or columns; a document without an id has its
    /// place among all as its id.
    #[pyo3(signature = (documents, *, id="id", text="text", title="title", url="url",
        language="language", popularity="popularity"))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn run(
        slf: Bound<'_, Self>,
        documents: &Bound<'_, PyAny>,
        id: &str,
        text: &str,
        title: &str,
        url: &str,
        language: &str,
        popularity: &str,
    ) -> PyResult<Verdicts> {
        let py = slf.py();
        let this = slf.get();
        let names = FieldNames { id, text, title, url, language, popularity };
        let first = lock(&this.ids).len();
        if let Some(batches) = Batches::of(documents)? {
            for batch in batches {
                let batch = batch.map_err(value_error)?;
                this.take_batch(py, &batch, names)?;
            }
        } else {
            let mut waiting = Vec::new();
            for document in documents.try_iter()? {
                let place = lock(&this.ids).len() + waiting.len();
                waiting.push(names.read(&document?, place)?);
                if waiting.len() == TOGETHER {
                    this.take(py, std::mem::take(&mut waiting))?;
                }
            }
            this.take(py, waiting)?;
        }
        this.settle(py)?;
        let last = lock(&this.ids).len();
        Ok(Verdicts { of: slf.unbind(), first, last })
    }

    /// Look again at all matches that were less than certain, now that more is known. Returns how
    /// many texts moved or clusters became part of another one. To be called after the last one;
    /// `run` does.
    fn settle(&self, py: Python<'_>) -> PyResult<usize> {
        let inner = &self.inner;
        apart(py, || lock(inner).settle())
    }

    /// Return what has become of all documents by now, in the order in which they came.
    fn verdicts(slf: Bound<'_, Self>) -> Verdicts {
        let last = lock(&slf.get().ids).len();
        Verdicts { of: slf.unbind(), first: 0, last }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let inner = &self.inner;
        apart(py, || lock(inner).len())
    }
}

impl Deduplicator {
    fn name(&self, py: Python<'_>, number: usize, id: Py<PyAny>) {
        let mut ids = lock(&self.ids);
        while ids.len() <= number {
            ids.push(py.None());
        }
        ids[number] = id;
    }

    /// Fingerprints documents on all cores, and judges them in their order.
    fn take(&self, py: Python<'_>, documents: Vec<Incoming>) -> PyResult<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let inner = &self.inner;
        let first = apart(py, || {
            let mut inner = lock(inner);
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let share = documents.len().div_ceil(cores);
            let fingerprinter = inner.fingerprinter();
            let keys: Vec<ArticleKeys> = thread::scope(|scope| {
                let work = documents.chunks(share).map(|part| {
                    let keys = move || part.iter().map(|one| one.keys(fingerprinter)).collect();
                    scope.spawn(keys)
                });
                let work: Vec<_> = work.collect();
                let done = work.into_iter().map(thread::ScopedJoinHandle::join);
                done.flat_map(|keys: thread::Result<Vec<_>>| keys.expect("it does not panic"))
                    .collect()
            });
            let first = inner.len();
            for (document, keys) in documents.iter().zip(keys) {
                inner.judge_keys(keys, document.popularity);
            }
            first
        })?;
        for (place, document) in documents.into_iter().enumerate() {
            self.name(py, first + place, document.id);
        }
        Ok(())
    }

    fn take_batch(
        &self,
        py: Python<'_>,
        batch: &RecordBatch,
        names: FieldNames<'_>,
    ) -> PyResult<()> {
        let texts = Texts::find(batch, names.text)?.ok_or_else(|| missing(batch, names.text))?;
        let [titles, urls, languages] = [names.title, names.url, names.language]
            .map(|name| Texts::find(batch, name))
            .map(Result::ok)
            .map(Option::flatten);
        let popularity = Numbers::find(batch, names.popularity);
        let id_numbers = Numbers::find(batch, names.id);
        let id_texts = match (&id_numbers, batch.column_by_name(names.id)) {
            (None, Some(_)) => Texts::find(batch, names.id)?,
            _ => None,
        };
        let text_of = |column: &Option<Texts>, row| {
            column.as_ref().and_then(|column| column.get(row)).unwrap_or_default().to_owned()
        };
        let mut waiting = Vec::new();
        for row in 0..batch.num_rows() {
            let place = lock(&self.ids).len() + waiting.len();
            let number = id_numbers.as_ref().and_then(|column| column.get(row));
            let name = id_texts.as_ref().and_then(|column| column.get(row));
            let id = match (number, name) {
                (Some(number), _) => number.into_pyobject(py)?.into_any().unbind(),
                (None, Some(name)) => name.into_pyobject(py)?.into_any().unbind(),
                (None, None) => place.into_pyobject(py)?.into_any().unbind(),
            };
            let popular = popularity.as_ref().and_then(|column| column.get(row)).unwrap_or(0);
            waiting.push(Incoming {
                id,
                title: text_of(&titles, row),
                text: texts.get(row).unwrap_or_default().to_owned(),
                language: text_of(&languages, row),
                url: text_of(&urls, row),
                popularity: u64::try_from(popular.max(0)).unwrap_or(u64::MAX),
            });
            if waiting.len() == TOGETHER {
                self.take(py, std::mem::take(&mut waiting))?;
            }
        }
        self.take(py, waiting)
    }

    /// Tells what a document is by now.
    fn verdict(&self, py: Python<'_>, number: usize) -> PyResult<Verdict> {
        let inner = &self.inner;
        let told = apart(py, || told(&lock(inner), number))?;
        let ids = lock(&self.ids);
        let id = |number: usize| ids.get(number).map_or_else(|| py.None(), |id| id.clone_ref(py));
        Ok(Verdict {
            id: id(number),
            duplicate: told.kept != number,
            duplicate_of: (told.kept != number).then(|| id(told.kept)),
            key: told.key,
            distance: told.distance,
            similarity: told.similarity,
        })
    }
}

/// What is known of a document.
struct Told {
    kept: usize,
    key: &'static str,
    distance: u8,
    similarity: f32,
}

fn told(inner: &crate::neardup::Deduplicator, number: usize) -> Told {
    let fate = inner.fate(number as u32);
    let cluster: Option<Cluster> = inner.clusters().nth(fate.cluster as usize);
    let kept = cluster.map_or(number, |cluster| cluster.canonical as usize);
    let (key, similarity) = (fate.key.as_str(), fate.similarity);
    Told { kept, key, distance: fate.distance, similarity }
}

/// Lays keywords over settings.
fn with_settings(config: &Config, settings: &Bound<'_, PyDict>) -> PyResult<Config> {
    let mut table = Table::try_from(config).map_err(value_error)?;
    for (name, value) in settings {
        let name: String = name.extract()?;
        let Some(usual) = table.get(&name).filter(|usual| !usual.is_table()) else {
            let known = table.iter().filter(|(_, value)| !value.is_table());
            let known: Vec<&str> = known.map(|(name, _)| name.as_str()).collect();
            let known = known.join(", ");
            return Err(value_error(format!("`{name}` is no setting: there are {known}")));
        };
        let value = match usual {
            Value::Boolean(_) => Value::Boolean(value.extract()?),
            Value::Integer(_) => Value::Integer(value.extract()?),
            Value::Float(_) => Value::Float(value.extract()?),
            _ => Value::String(value.extract()?),
        };
        table.insert(name, value);
    }
    table.try_into().map_err(|error: toml::de::Error| value_error(error.message()))
}

/// What fields or columns are called.
#[derive(Clone, Copy)]
struct FieldNames<'a> {
    id: &'a str,
    text: &'a str,
    title: &'a str,
    url: &'a str,
    language: &'a str,
    popularity: &'a str,
}

impl FieldNames<'_> {
    /// Reads a dict, a tuple of an id and a text, or a text.
    fn read(&self, document: &Bound<'_, PyAny>, place: usize) -> PyResult<Incoming> {
        let py = document.py();
        let own = || Ok::<_, PyErr>(place.into_pyobject(py)?.into_any().unbind());
        let plain = |id, text| Incoming {
            id,
            title: String::new(),
            text,
            language: String::new(),
            url: String::new(),
            popularity: 0,
        };
        if let Ok(text) = document.extract::<String>() {
            return Ok(plain(own()?, text));
        }
        if let Ok(pair) = document.cast::<PyTuple>()
            && pair.len() == 2
        {
            return Ok(plain(pair.get_item(0)?.unbind(), pair.get_item(1)?.extract()?));
        }
        let Ok(fields) = document.cast::<PyMapping>() else {
            let kind = document.get_type().name()?;
            let why =
                format!("document {place} is a {kind}: give dicts, (id, text) tuples or texts");
            return Err(PyTypeError::new_err(why));
        };
        let get = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let there = fields.contains(name)?;
            let value = if there { Some(fields.get_item(name)?) } else { None };
            Ok(value.filter(|value| !value.is_none()))
        };
        let text_of = |name: &str| -> PyResult<Option<String>> {
            let Some(value) = get(name)? else { return Ok(None) };
            let wrong = |_| {
                let kind = value.get_type().name().map(|name| name.to_string());
                let kind = kind.unwrap_or_default();
                PyTypeError::new_err(format!("`{name}` of document {place} is a {kind}, not a str"))
            };
            value.extract::<String>().map(Some).map_err(wrong)
        };
        let Some(text) = text_of(self.text)? else {
            let known = fields.keys()?;
            let why = format!("document {place} has no `{}`: it has {known}", self.text);
            return Err(value_error(why));
        };
        let id = match get(self.id)? {
            Some(id) => id.unbind(),
            None => own()?,
        };
        let popularity = get(self.popularity)?.map(|value| value.extract()).transpose()?;
        Ok(Incoming {
            id,
            title: text_of(self.title)?.unwrap_or_default(),
            text,
            language: text_of(self.language)?.unwrap_or_default(),
            url: text_of(self.url)?.unwrap_or_default(),
            popularity: popularity.unwrap_or(0),
        })
    }
}

/// What became of many documents, in their order: a sequence of Verdict, and a table for whatever
/// library has Arrow's PyCapsule interface.
#[pyclass(frozen, module = "uniqcrawl")]
pub(super) struct Verdicts {
    of: Py<Deduplicator>,
    first: usize,
    last: usize,
}

#[pymethods]
impl Verdicts {
    fn __len__(&self) -> usize {
        self.last - self.first
    }

    fn __getitem__(&self, py: Python<'_>, at: isize) -> PyResult<Verdict> {
        let length = self.last - self.first;
        let at = if at < 0 { at + length.cast_signed() } else { at };
        let at = usize::try_from(at).ok().filter(|at| *at < length);
        let at = at.ok_or_else(|| PyIndexError::new_err("there are not so many documents"))?;
        self.of.get().verdict(py, self.first + at)
    }

    /// Return the ids of the documents that are kept: one of each cluster.
    fn kept(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let all = self.all(py)?;
        let ids = lock(&self.of.get().ids);
        let kept = all.iter().enumerate().filter(|(at, told)| told.kept == self.first + at);
        Ok(kept.map(|(at, _)| ids[self.first + at].clone_ref(py)).collect())
    }

    /// Offer the columns id, duplicate, duplicate_of, key, distance and similarity.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Who asks casts what it wants otherwise.
        drop(requested_schema);
        let batch = self.batch(py)?;
        let schema = batch.schema();
        let mut batch = Some(batch);
        offer(py, MadeBatches { schema, make: move || batch.take().map(Ok) })
    }
}

impl Verdicts {
    fn all(&self, py: Python<'_>) -> PyResult<Vec<Told>> {
        let (inner, first, last) = (&self.of.get().inner, self.first, self.last);
        apart(py, || {
            let inner = lock(inner);
            let clusters: Vec<Cluster> = inner.clusters().collect();
            let tell = |number: usize| {
                let fate = inner.fate(number as u32);
                let kept = clusters[fate.cluster as usize].canonical as usize;
                let (key, similarity) = (fate.key.as_str(), fate.similarity);
                Told { kept, key, distance: fate.distance, similarity }
            };
            (first..last).map(tell).collect()
        })
    }

    fn batch(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        let all = self.all(py)?;
        let ids = lock(&self.of.get().ids);
        let numbers: Option<Vec<i64>> = ids.iter().map(|id| id.extract(py).ok()).collect();
        let texts = match &numbers {
            Some(_) => Vec::new(),
            None => {
                ids.iter().map(|id| Ok(id.bind(py).str()?.to_string())).collect::<PyResult<_>>()?
            }
        };
        drop(ids);
        let column = |numbers_of: &dyn Fn(&Told, usize) -> Option<usize>| -> ArrayRef {
            let places = all.iter().enumerate().map(|(at, told)| numbers_of(told, self.first + at));
            if let Some(numbers) = &numbers {
                let mut builder = Int64Builder::new();
                places.for_each(|place| builder.append_option(place.map(|place| numbers[place])));
                return Arc::new(builder.finish());
            }
            let mut builder = StringBuilder::new();
            places.for_each(|place| builder.append_option(place.map(|place| &texts[place])));
            Arc::new(builder.finish())
        };
        let id = column(&|_, at| Some(at));
        let of = column(&|told, at| (told.kept != at).then_some(told.kept));
        let (mut duplicate, mut key) = (BooleanBuilder::new(), StringBuilder::new());
        let (mut distance, mut similarity) = (UInt8Builder::new(), Float32Builder::new());
        for (at, told) in all.iter().enumerate() {
            duplicate.append_value(told.kept != self.first + at);
            key.append_value(told.key);
            distance.append_value(told.distance);
            similarity.append_value(told.similarity);
        }
        let kind = if numbers.is_some() { DataType::Int64 } else { DataType::Utf8 };
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("id", kind.clone(), false),
            Field::new("duplicate", DataType::Boolean, false),
            Field::new("duplicate_of", kind, true),
            Field::new("key", DataType::Utf8, false),
            Field::new("distance", DataType::UInt8, false),
            Field::new("similarity", DataType::Float32, false),
        ]));
        let columns: Vec<ArrayRef> = vec![
            id,
            Arc::new(duplicate.finish()),
            of,
            Arc::new(key.finish()),
            Arc::new(distance.finish()),
            Arc::new(similarity.finish()),
        ];
        RecordBatch::try_new(schema, columns).map_err(value_error)
    }
}
