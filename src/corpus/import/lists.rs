//! The lists of what is no document. Beside a store they grow with it: what stands in them beyond
//! the last commit is cut off when an import goes on.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::corpus::files::Error;
use crate::corpus::files::input::Source;
use crate::corpus::files::prepare::{Fate, FilteredLine, RejectedLine, count};
use crate::store::{self, BadRow, Batch, META, Update as _, View};

use super::ImportReport;

/// Names of the lists.
const REJECTED: &str = "import-rejected.jsonl";
const FILTERED: &str = "import-filtered.jsonl";

/// Both lists, and what is said where nothing can be used.
pub(super) struct Lists {
    rejected: List,
    filtered: List,
    first_fault: Option<String>,
}

impl Lists {
    /// Opens those beside a store, as they were at the last commit.
    pub(super) fn open(folder: &Path, view: &impl View) -> Result<Self, super::Error> {
        let rejected = List::open(folder, REJECTED, view)?;
        Ok(Self { rejected, filtered: List::open(folder, FILTERED, view)?, first_fault: None })
    }

    /// Begins those of a run that no store is told of.
    pub(super) fn begin(folder: &Path) -> Self {
        let begin =
            |name| List { name, path: folder.join(name), file: None, bytes: 0, committed: 0 };
        Self { rejected: begin(REJECTED), filtered: begin(FILTERED), first_fault: None }
    }

    /// Returns what is a document; lists and counts a record that is none.
    pub(super) fn take<T>(
        &mut self,
        fate: Fate<T>,
        source: &Source,
        number: u64,
        report: &mut ImportReport,
    ) -> Result<Option<T>, Error> {
        match fate {
            Fate::Document(document) => return Ok(Some(document)),
            Fate::Rejected(fault) => {
                report.rejected += 1;
                count(&mut report.reasons.rejected, &fault.reason);
                let told = || format!("{}, record {number}: {}", source.name, fault.detail);
                self.first_fault.get_or_insert_with(told);
                self.rejected.push(&RejectedLine::of(source, number, &fault))?;
            }
            Fate::Filtered { id, reason } => {
                report.filtered += 1;
                count(&mut report.reasons.filtered, &reason);
                self.filtered.push(&FilteredLine::of(source, number, &id, &reason))?;
            }
            Fate::Skipped(reason) => count(&mut report.reasons.skipped, &reason),
        }
        Ok(None)
    }

    /// Brings both to the disk, and their lengths into a batch.
    pub(super) fn commit(&mut self, batch: &mut Batch) -> Result<(), super::Error> {
        self.rejected.commit(batch)?;
        self.filtered.commit(batch)
    }

    /// Brings both to the disk.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.rejected.sync()?;
        self.filtered.sync()
    }

    /// An import of which nothing can be used is an error, which tells of the first fault.
    pub(super) fn must_be_of_use(&self, report: &ImportReport) -> Result<(), Error> {
        match &self.first_fault {
            Some(first) if report.documents + report.known + report.filtered == 0 => {
                Err(Error::Nothing { rejected: report.rejected, first: first.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// A list in a folder.
struct List {
    name: &'static str,
    path: PathBuf,
    file: Option<BufWriter<File>>,
    bytes: u64,
    committed: u64,
}

impl List {
    /// Opens a list as it was at the last commit.
    fn open(folder: &Path, name: &'static str, view: &impl View) -> Result<Self, super::Error> {
        let bad = BadRow { kind: "meta", detail: "the length of a list is no number" };
        let row = view.get(META, name).map_err(super::Error::Store)?;
        let committed = match row {
            Some(row) => {
                let text = std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok());
                text.ok_or(store::Error::from(bad))?
            }
            None => 0,
        };
        let path = folder.join(name);
        if path.exists() {
            let file = OpenOptions::new().write(true).open(&path).map_err(Error::io(&path))?;
            let length = file.metadata().map_err(Error::io(&path))?.len();
            if length > committed {
                file.set_len(committed).map_err(Error::io(&path))?;
            }
        }
        Ok(Self { name, path, file: None, bytes: committed, committed })
    }

    fn push(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).expect("it has a form in JSON");
        text.push(b'\n');
        let path = &self.path;
        let file = if let Some(file) = &mut self.file {
            file
        } else {
            let opened = OpenOptions::new().create(true).truncate(false).write(true).open(path);
            let opened = opened.and_then(|mut file| {
                file.seek(SeekFrom::Start(self.bytes))?;
                Ok(file)
            });
            self.file.insert(BufWriter::new(opened.map_err(Error::io(path))?))
        };
        file.write_all(&text).map_err(Error::io(path))?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let synced = file.flush().and_then(|()| file.get_ref().sync_data());
        synced.map_err(Error::io(&self.path))
    }

    /// Brings the list to the disk, and its length into a batch.
    fn commit(&mut self, batch: &mut Batch) -> Result<(), super::Error> {
        if self.bytes == self.committed {
            return Ok(());
        }
        self.sync()?;
        batch.put(META, self.name, &self.bytes.to_string().into_bytes())?;
        self.committed = self.bytes;
        Ok(())
    }
}
