//! How far each input was read.

use std::io::Read as _;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::base::remote::Location;
use crate::corpus::files::input::Source;
use crate::store::{BadRow, Batch, Error, META, Snapshot, Update as _, View};

use super::ImportReport;

/// What stands before the name of an input in [`META`].
const KEY: &str = "import ";

/// Bytes at the start of an input by which it is known again.
const START_BYTES: u64 = 64 << 10;

/// An input as it is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    bytes: u64,
    /// Hash of its first bytes.
    start: String,
    /// Hash of how it is read.
    options: String,
}

/// How far an input was read, and what it has given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct InputRow {
    pub(super) identity: Identity,
    /// Records that were read.
    pub(super) records: u64,
    /// There are no more.
    pub(super) done: bool,
    pub(super) report: ImportReport,
}

impl Identity {
    pub(super) fn of(source: &Source, options: u128) -> std::io::Result<Self> {
        let mut start = Vec::new();
        source.location.open()?.take(START_BYTES).read_to_end(&mut start)?;
        Ok(Self {
            bytes: source.bytes,
            start: format!("{:032x}", xxh3_128(&start)),
            options: format!("{options:032x}"),
        })
    }
}

/// The name of an input: the same from wherever it is called.
pub(super) fn key_of(source: &Source) -> String {
    let name = match &source.location {
        // Standard input was copied to a place of its own.
        Location::Local(_) if source.name == "-" => source.name.clone(),
        Location::Local(path) => {
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            whole.display().to_string()
        }
        #[cfg(feature = "object-store")]
        Location::Remote(objects) => objects.to_string(),
    };
    format!("{KEY}{name}")
}

pub(super) fn read(view: &impl View, key: &str) -> Result<Option<InputRow>, Error> {
    let Some(row) = view.get(META, key)? else { return Ok(None) };
    let bad = BadRow { kind: "meta", detail: "how far an input was read is no JSON" };
    Ok(Some(serde_json::from_slice(&row).map_err(|_| bad)?))
}

/// Returns the names of the inputs that are in a store in part.
pub(super) fn unfinished(snapshot: &Snapshot) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in snapshot.rows(META)? {
        let entry = entry?;
        let key = entry.key()?;
        let Some(name) = key.strip_prefix(KEY) else { continue };
        if read(snapshot, key)?.is_some_and(|row| !row.done) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

pub(super) fn write(batch: &mut Batch, key: &str, row: &InputRow) -> Result<(), Error> {
    batch.put(META, key, &serde_json::to_vec(row).expect("it has a form in JSON"))
}
