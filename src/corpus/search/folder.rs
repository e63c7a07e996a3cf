//! The folder of an index: its fields, its version, and what becomes of one that cannot be used.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::store::Compressor;
use tantivy::{Index, IndexSettings, TantivyError};

use super::files::Files;
use super::{Error, damaged};

/// Name of the folder beside the store.
pub(super) const NAME: &str = "search";

/// Number of the form of the index; one of another number is made anew. To be raised when fields,
/// rows or the way in which texts are cut into words change.
const VERSION: u64 = 2;

/// A file that says that the folder is one of an index, and may be emptied.
const MARK: &str = "uniqcrawl-search";

/// Bytes that are compressed together: candidates lie far apart, and all of a block is unpacked
/// for one of them.
const BLOCK_BYTES: usize = 4096;

/// What is noted with each commit of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Payload {
    /// Up to which update of the store it has seen all; 0 if it belongs to none.
    pub update: u64,
    /// What it was made from, if not from a store.
    #[serde(default)]
    pub source: String,
}

/// The fields of a document in the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// Number of the document: by it a document is replaced.
    pub number: Field,
    /// Its version in a corpus that keeps no list of changes; 0 elsewhere.
    pub version: Field,
    /// Words of the text, with blanks between them.
    pub words: Field,
    /// Words of the title.
    pub title: Field,
    /// All that is needed of a candidate (`row`).
    pub row: Field,
}

/// An index that can be used.
pub(super) struct Opened {
    pub index: Index,
    pub fields: Fields,
    /// Why the one that was there could not be.
    pub made_anew: Option<String>,
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer("whitespace")
        .set_index_option(IndexRecordOption::WithFreqs);
    let words = TextOptions::default().set_indexing_options(words);
    let fields = Fields {
        number: schema.add_u64_field("number", INDEXED | FAST),
        version: schema.add_u64_field("version", FAST),
        words: schema.add_text_field("words", words.clone()),
        title: schema.add_text_field("title", words),
        row: schema.add_bytes_field("row", BytesOptions::default().set_stored()),
    };
    (schema.build(), fields)
}

fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::Lz4,
        docstore_blocksize: BLOCK_BYTES,
        ..IndexSettings::default()
    }
}

/// Makes an index in a temporary folder, which is removed with it.
pub(super) fn temporary() -> Result<(Index, Fields), Error> {
    let (schema, fields) = schema();
    let made = Files::temporary().and_then(|files| Index::create(files, schema, settings()));
    Ok((made.map_err(|error| damaged(Path::new("a temporary folder"), error))?, fields))
}

/// Opens the index in a folder, and makes it anew if it cannot be used. A folder that is not `ours`
/// is only emptied if it says that it is one of an index.
pub(super) fn open(path: &Path, ours: bool) -> Result<Opened, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    fs::create_dir_all(path).map_err(io)?;
    let empty = fs::read_dir(path).map_err(io)?.next().is_none();
    let reason = if empty {
        None
    } else {
        let marked = path.join(MARK).try_exists().map_err(io)?;
        if !marked && !ours {
            return Err(Error::Foreign(path.to_owned()));
        }
        match open_made(path) {
            Ok((index, fields)) => return Ok(Opened { index, fields, made_anew: None }),
            Err(reason) => Some(reason),
        }
    };
    for entry in fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        if !entry.file_type().map_err(io)?.is_dir() {
            fs::remove_file(entry.path()).map_err(io)?;
        }
    }
    fs::write(path.join(MARK), VERSION.to_string()).map_err(io)?;
    let (schema, fields) = schema();
    let made = Files::open(path).and_then(|files| Index::create(files, schema, settings()));
    Ok(Opened { index: made.map_err(|error| damaged(path, error))?, fields, made_anew: reason })
}

/// Opens an index that is there, with all its files; a damaged one may make the engine panic.
pub(super) fn open_made(path: &Path) -> Result<(Index, Fields), String> {
    let version = fs::read_to_string(path.join(MARK)).unwrap_or_default();
    if version != VERSION.to_string() {
        return Err(format!("its version is `{version}`, not `{VERSION}`"));
    }
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let index = Index::open(Files::open(path)?)?;
        let reader = index.reader_builder().try_into()?;
        drop(reader);
        Ok::<_, TantivyError>(index)
    }));
    let index = opened
        .map_err(|_| "its files are damaged".to_owned())?
        .map_err(|error| error.to_string())?;
    let (schema, fields) = schema();
    if index.schema() != schema {
        return Err("its fields are others".to_owned());
    }
    Ok((index, fields))
}
