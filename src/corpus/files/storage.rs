//! Where a run keeps what it remembers: in memory as long as that is enough, on the disk from then
//! on. What comes out is the same.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::neardup::{
    Candidate, Config, JudgedPage, JudgedText, JudgedTree, MemoryStorage, PageList, Storage,
    TextPlace,
};
use crate::store;
use crate::text::features::ArticleKeys;

use super::looker::{FoundAhead, Looker};
use super::rows::StoredLine;
use super::together::together_first;
use super::work::{LineSource, LineStorage};
use super::{Error, Resources};

/// Memory of all else: the dictionary of Chinese words, and documents on their way.
const ELSE_BYTES: usize = 192 << 20;

/// Documents after which memory is measured.
const MEASURED: usize = 1_024;

/// Memory of a line beside its identifier, in bytes.
const LINE_BYTES: usize = 48;

/// The documents of a run.
pub(super) struct RunStorage {
    kept: Kept,
    folder: PathBuf,
    config: Config,
    memory: usize,
    threads: usize,
}

enum Kept {
    Memory(Box<MemoryLines>),
    Disk(Box<LineStorage>),
}

/// In memory.
struct MemoryLines {
    storage: MemoryStorage,
    /// The lines of all documents.
    lines: Vec<LineSource>,
    /// Memory of their identifiers.
    id_bytes: usize,
}

impl RunStorage {
    /// Makes an empty one that takes about as much memory as there is; what has no room there goes
    /// into `folder`. What a run that was killed has left there is removed.
    pub(super) fn new(folder: PathBuf, config: &Config, of: Resources) -> Result<Self, Error> {
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&folder)(error));
            }
            _ => {}
        }
        let memory = of.memory.saturating_sub(ELSE_BYTES).max(of.memory / 4);
        let threads = of.threads;
        let storage = MemoryStorage::new(config)?;
        let kept = Kept::Memory(Box::new(MemoryLines { storage, lines: Vec::new(), id_bytes: 0 }));
        Ok(Self { kept, folder, config: config.clone(), memory, threads })
    }

    /// Returns what looks up documents while those before them are judged; none where that is not
    /// worth a thread.
    pub(super) fn looker(&mut self) -> Result<Option<Looker>, Error> {
        match &mut self.kept {
            Kept::Disk(disk) => Ok(Some(disk.looker()?)),
            Kept::Memory(_) => Ok(None),
        }
    }

    /// Takes what was found for the documents that are judged next.
    pub(super) fn take_found(&mut self, found: FoundAhead) {
        if let Kept::Disk(disk) = &mut self.kept {
            disk.take_found(found);
        }
    }

    /// Names the line that is judged next.
    pub(super) fn coming(&mut self, line: LineSource) -> Result<(), Error> {
        match &mut self.kept {
            Kept::Disk(disk) => disk.coming([line]),
            Kept::Memory(memory) => {
                memory.id_bytes += line.id.len();
                memory.lines.push(line);
                // It stays taken when it is empty: freed, but not given back to the system.
                let room = self.memory / 4;
                if memory.lines.len().is_multiple_of(MEASURED) && memory.bytes() > room {
                    self.move_to_disk()?;
                }
            }
        }
        Ok(())
    }

    fn move_to_disk(&mut self) -> Result<(), Error> {
        let disk =
            LineStorage::begin(self.folder.clone(), &self.config, self.memory, self.threads)?;
        let disk = Kept::Disk(Box::new(disk));
        if let Kept::Memory(memory) = std::mem::replace(&mut self.kept, disk)
            && let Kept::Disk(disk) = &mut self.kept
        {
            tracing::info!(documents = memory.lines.len(), "no more room in memory");
            disk.coming(memory.lines);
            memory.storage.move_to(&mut **disk)?;
        }
        Ok(())
    }

    /// Returns a document.
    pub(super) fn line(&self, document: u32) -> Result<LineSource, store::Error> {
        match &self.kept {
            Kept::Memory(memory) => Ok(memory.lines[document as usize].clone()),
            Kept::Disk(disk) => disk.line(document).map(StoredLine::source),
        }
    }

    /// Returns how many documents have an identifier that an earlier one has.
    pub(super) fn equal_ids(&self) -> Result<u64, store::Error> {
        match &self.kept {
            Kept::Memory(memory) => {
                let mut ids: Vec<&str> = memory.lines.iter().map(|line| &*line.id).collect();
                ids.sort_unstable();
                ids.dedup();
                Ok((memory.lines.len() - ids.len()) as u64)
            }
            Kept::Disk(disk) => disk.equal_ids(self.memory),
        }
    }

    /// Returns the memory of the index, in bytes.
    pub(super) fn index_bytes(&self) -> usize {
        match &self.kept {
            Kept::Memory(memory) => memory.storage.index_bytes(),
            Kept::Disk(disk) => disk.index_bytes(),
        }
    }
}

impl MemoryLines {
    fn bytes(&self) -> usize {
        self.storage.bytes() + self.id_bytes + self.lines.capacity() * LINE_BYTES
    }
}

/// Asks the storage that there is.
macro_rules! kept {
    ($self:ident, $storage:ident => $asked:expr) => {
        match &$self.kept {
            Kept::Memory(memory) => {
                let $storage = &memory.storage;
                let Ok(found) = $asked;
                Ok(found)
            }
            Kept::Disk($storage) => $asked,
        }
    };
    (mut $self:ident, $storage:ident => $asked:expr) => {
        match &mut $self.kept {
            Kept::Memory(memory) => {
                let $storage = &mut memory.storage;
                let Ok(done) = $asked;
                Ok(done)
            }
            Kept::Disk($storage) => $asked,
        }
    };
}

impl Storage for RunStorage {
    type Error = store::Error;

    fn candidates(&self, keys: &ArticleKeys) -> Result<Vec<Candidate>, store::Error> {
        kept!(self, kept => kept.candidates(keys))
    }

    fn together(&self) -> usize {
        match &self.kept {
            Kept::Memory(_) => together_first(self.memory),
            Kept::Disk(disk) => disk.together(),
        }
    }

    fn candidates_of(&mut self, contents: &[u32]) -> Result<Vec<Vec<Candidate>>, store::Error> {
        kept!(mut self, kept => kept.candidates_of(contents))
    }

    fn equal_texts(&self, hash: u128) -> Result<Vec<u32>, store::Error> {
        kept!(self, kept => kept.equal_texts(hash))
    }

    fn text(&self, content: u32) -> Result<JudgedText<'_>, store::Error> {
        kept!(self, kept => kept.text(content))
    }

    fn place(&self, content: u32) -> Result<TextPlace, store::Error> {
        kept!(self, kept => kept.place(content))
    }

    fn put_place(&mut self, content: u32, place: TextPlace) -> Result<(), store::Error> {
        kept!(mut self, kept => kept.put_place(content, place))
    }

    fn add_text(
        &mut self,
        content: u32,
        place: TextPlace,
        keys: ArticleKeys,
    ) -> Result<(), store::Error> {
        kept!(mut self, kept => kept.add_text(content, place, keys))
    }

    fn tree(&self, tree: u32) -> Result<JudgedTree, store::Error> {
        kept!(self, kept => kept.tree(tree))
    }

    fn put_tree(&mut self, tree: u32, row: JudgedTree) -> Result<(), store::Error> {
        kept!(mut self, kept => kept.put_tree(tree, row))
    }

    fn page(&self, document: u32) -> Result<JudgedPage, store::Error> {
        kept!(self, kept => kept.page(document))
    }

    fn add_page(&mut self, document: u32, page: JudgedPage) -> Result<(), store::Error> {
        kept!(mut self, kept => kept.add_page(document, page))
    }

    fn listed(&self, list: PageList, limit: usize) -> Result<Vec<u32>, store::Error> {
        kept!(self, kept => kept.listed(list, limit))
    }

    fn add_listed(&mut self, list: PageList, at: u32, document: u32) -> Result<(), store::Error> {
        kept!(mut self, kept => kept.add_listed(list, at, document))
    }

    fn clear_list(&mut self, list: PageList) -> Result<(), store::Error> {
        kept!(mut self, kept => kept.clear_list(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neardup::{Key, article_keys};
    use crate::text::features::{Fingerprinter, Input};

    #[test]
    fn of_pages_with_one_text_as_many_are_asked_as_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::default();
        let mut disk = LineStorage::begin(folder.path().join("work"), &config, 1 << 20, 2).unwrap();
        let mut memory = MemoryStorage::new(&config).unwrap();
        let input = Input { text: "Loading Searching No Matches", ..Input::default() };
        let keys = article_keys(&Fingerprinter::default(), &input);
        for tree in 0..100 {
            let (key, distance, similarity) = (Key::First, 0, 1.0);
            let place = TextPlace { tree, first: tree, key, distance, similarity };
            disk.add_text(tree, place, keys.clone()).unwrap();
            let Ok(()) = memory.add_text(tree, place, keys.clone());
        }
        let Ok(asked) = memory.equal_texts(keys.text.hash);
        assert_eq!(asked, (0..64).collect::<Vec<_>>(), "the oldest");
        assert_eq!(disk.equal_texts(keys.text.hash).unwrap(), asked);
    }
}
