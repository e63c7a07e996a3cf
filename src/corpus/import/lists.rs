//! The lists beside the store of what is no document. They grow with the store: what stands in them
//! beyond the last commit is cut off when an import goes on.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::corpus::files::Error;
use crate::store::{self, BadRow, Batch, META, Update as _, View};

/// A list in the folder of a store.
pub(super) struct List {
    name: &'static str,
    path: PathBuf,
    file: Option<BufWriter<File>>,
    bytes: u64,
    committed: u64,
}

impl List {
    /// Opens a list as it was at the last commit.
    pub(super) fn open(
        folder: &Path,
        name: &'static str,
        view: &impl View,
    ) -> Result<Self, super::Error> {
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

    pub(super) fn push(&mut self, line: &impl Serialize) -> Result<(), Error> {
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

    /// Brings the list to the disk, and its length into a batch.
    pub(super) fn commit(&mut self, batch: &mut Batch) -> Result<(), super::Error> {
        if self.bytes == self.committed {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            let synced = file.flush().and_then(|()| file.get_ref().sync_data());
            synced.map_err(Error::io(&self.path))?;
        }
        batch.put(META, self.name, &self.bytes.to_string().into_bytes())?;
        self.committed = self.bytes;
        Ok(())
    }
}
