//! The index of a corpus of many workers: a folder for each part of the corpus, which whoever keeps
//! it brings up to date. Versions tell what has changed: those of all documents of the part are
//! listed, and only what differs is read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::Engine;
use crate::corpus::export::ExportPart;
use crate::corpus::search::{self, Config, Entry, Followed, NewVersion, Search};
use crate::corpus::tables::DOCUMENTS;
use crate::store::{self, BadRow, View as _};

use super::read::SharedView;
use super::{Error, SharedCorpus, numbers};

/// The setting that tells one corpus from another one of the same name.
const CORPUS: &str = "corpus";

/// One part of the index of a corpus of many workers.
#[derive(Debug)]
pub struct SharedIndex {
    /// Which one.
    pub part: ExportPart,
    /// The index.
    pub search: Search,
    source: String,
}

impl From<Error> for search::Error {
    fn from(error: Error) -> Self {
        Self::Source(Box::new(error))
    }
}

impl SharedIndex {
    /// Opens a part of the index in a folder of its own below `folder`; one that is missing begins
    /// empty.
    ///
    /// # Errors
    ///
    /// If what lies there is of another corpus, or of parts of another number.
    pub fn open(
        corpus: &SharedCorpus,
        folder: &Path,
        part: ExportPart,
        config: &Config,
    ) -> Result<Self, search::Error> {
        let own = folder.join(name_of(part));
        let io = |source| search::Error::Io { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(io)?;
        let of = format!("-of-{}", part.of());
        for entry in fs::read_dir(folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("part-") && !name.ends_with(&of) {
                return Err(search::Error::Other(entry.path()));
            }
        }
        let source = format!("{} part {part}", corpus.identity()?);
        let search = Search::open_at(Some(&own), config)?;
        Ok(Self { part, search, source })
    }

    /// Where a part lies below the folder of the index.
    #[must_use]
    pub fn folder(folder: &Path, part: ExportPart) -> PathBuf {
        folder.join(name_of(part))
    }

    /// Checks that what lies there is of this corpus.
    pub fn check(&self) -> Result<(), search::Error> {
        self.search.check_source(&self.source)
    }

    /// Has it begin anew, whatever it was made of.
    pub fn clear(&self) -> Result<(), search::Error> {
        self.search.clear(&self.source)
    }

    /// Brings it up to date with its corpus.
    pub fn follow(&self, corpus: &SharedCorpus) -> Result<Followed, search::Error> {
        self.check()?;
        let (gone, changed) = corpus.differences(self.part, &self.search.versions()?)?;
        let mut first = None;
        let followed = self.search.follow(&self.source, &gone, &changed, &mut |numbers| {
            Ok(corpus.new_versions(numbers, &mut first)?)
        })?;
        if let Some((number, error)) = first {
            let (part, unreadable) = (self.part.to_string(), followed.unreadable);
            let what = "documents cannot be read: the search has them as they were, or not at all";
            tracing::warn!(part, unreadable, number, %error, "{what}");
        }
        Ok(followed)
    }
}

fn name_of(part: ExportPart) -> String {
    format!("part-{}", part.to_string().replace('/', "-of-"))
}

/// The first document that could not be read, and why.
type Unreadable = Option<(u64, Error)>;

impl SharedCorpus {
    /// Returns what tells this corpus from all others.
    pub fn identity(&self) -> Result<String, Error> {
        let engine = &mut *self.engine.borrow_mut();
        if let Some(known) = engine.setting(CORPUS)? {
            return Ok(known);
        }
        engine.remember(CORPUS, &format!("{:016x}", numbers::draw()))?;
        Ok(engine.setting(CORPUS)?.unwrap_or_default())
    }

    /// Compares versions of documents, in the order of their numbers, with those of a part. Returns
    /// the numbers of documents that are not there any more, and of those that are new or changed.
    fn differences(
        &self,
        part: ExportPart,
        known: &[(u64, u64)],
    ) -> Result<(Vec<u64>, Vec<u64>), Error> {
        let engine = &mut *self.engine.borrow_mut();
        let (mut gone, mut changed) = (Vec::new(), Vec::new());
        let mut known = known.iter().copied().peekable();
        for block in 0..=Engine::block_of(engine.last_number()?) {
            for (number, version) in engine.versions_of_block(block, |one| part.takes(one))? {
                while let Some((before, _)) = known.next_if(|(before, _)| *before < number) {
                    gone.push(before);
                }
                let own = known.next_if(|(own, _)| *own == number).map(|(_, own)| own);
                // One that is locked is about to change.
                if version.is_none() || own != version {
                    changed.push(number);
                }
            }
        }
        gone.extend(known.map(|(number, _)| number));
        Ok((gone, changed))
    }

    /// Reads what is shown of documents, but for those that cannot be read.
    fn new_versions(
        &self,
        numbers: &[u64],
        first: &mut Unreadable,
    ) -> Result<Vec<NewVersion>, Error> {
        let view = match self.view(numbers) {
            Ok(view) => view,
            Err(error @ (Error::Cluster(_) | Error::Store(store::Error::Remote(_)))) => {
                return Err(error);
            }
            Err(error) if numbers.len() == 1 => {
                first.get_or_insert((numbers[0], error));
                return Ok(Vec::new());
            }
            // One of them cannot be read: which one, is found one by one.
            Err(_) => {
                let one = |number: &u64| self.new_versions(&[*number], first);
                let all = numbers.iter().map(one).collect::<Result<Vec<_>, _>>()?;
                return Ok(all.into_iter().flatten().collect());
            }
        };
        let mut all = Vec::with_capacity(numbers.len());
        for number in numbers.iter().copied() {
            match new_version(&view, number) {
                Ok(read) => all.push(read),
                Err(error @ store::Error::Remote(_)) => return Err(error.into()),
                Err(error) => {
                    first.get_or_insert((number, error.into()));
                }
            }
        }
        Ok(all)
    }
}

fn new_version(view: &SharedView<'_>, number: u64) -> Result<NewVersion, store::Error> {
    let Some(document) = view.get(DOCUMENTS, number)? else {
        return Ok(NewVersion { number, version: 0, entry: None });
    };
    let version = view.version_of(number);
    if document.shown() == 0 {
        return Ok(NewVersion { number, version, entry: None });
    }
    let missing = BadRow { kind: "body", detail: "its text is missing" };
    let entry = Entry::of(view, &document)?.ok_or(missing)?;
    Ok(NewVersion { number, version, entry: Some(entry) })
}
