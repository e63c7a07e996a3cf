//! What a store has, document by document.

use std::path::Path;

use crate::corpus::documents::{BadDocId, DocId, Document, copies_of, read_body};
use crate::corpus::tables::{DOC_IDS, DOCUMENTS};
use crate::crawl::NewDocument;
use crate::store::{self, Snapshot, Store, View as _};

use super::LibraryError;

/// Memory of the page cache of a store that is only read.
const CACHE_BYTES: usize = 64 << 20;

/// A document as it is stored: what its canonical copy says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrawledDocument {
    /// Its identifier: two halves of 16 hexadecimal digits.
    pub doc_id: String,
    /// URL of its canonical copy.
    pub url: String,
    /// Title.
    pub title: String,
    /// Main text.
    pub text: String,
    /// Language (ISO 639-1), or empty.
    pub language: String,
    /// Authors, joined by `, `, or empty.
    pub author: String,
    /// When it says that it was published (ISO 8601), or empty.
    pub published: String,
    /// Popularity of the canonical copy.
    pub popularity: u64,
    /// URLs that carry it, the canonical one among them.
    pub copies: u64,
}

/// A store that is read. Nothing is written to its file, and others may read it at the same time.
///
/// ```no_run
/// use uniqcrawl::StoreReader;
///
/// for document in StoreReader::open("store")?.documents()? {
///     let document = document?;
///     println!("{} {} ({} copies)", document.doc_id, document.url, document.copies);
/// }
/// # Ok::<(), uniqcrawl::LibraryError>(())
/// ```
#[derive(Debug)]
pub struct StoreReader {
    store: Store,
}

/// The documents of one state of a store, in the order in which they came.
pub struct Documents {
    snapshot: Snapshot,
    next: u64,
}

impl StoreReader {
    /// Opens the store in a folder, which must be there.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, LibraryError> {
        let store = Store::open_to_read(folder.as_ref(), CACHE_BYTES);
        Ok(Self { store: store.map_err(LibraryError::store)? })
    }

    /// Returns its documents.
    pub fn documents(&self) -> Result<Documents, LibraryError> {
        let snapshot = self.store.snapshot().map_err(LibraryError::store)?;
        Ok(Documents { snapshot, next: 0 })
    }

    /// Returns the number of its documents.
    pub fn len(&self) -> Result<u64, LibraryError> {
        let snapshot = self.store.snapshot().map_err(LibraryError::store)?;
        snapshot.len(DOCUMENTS).map_err(LibraryError::store)
    }

    /// Tells whether it has no document.
    pub fn is_empty(&self) -> Result<bool, LibraryError> {
        Ok(self.len()? == 0)
    }

    /// Returns a document by its identifier, or by that of a document that is part of it now; none
    /// if it is not there.
    pub fn document(&self, doc_id: &str) -> Result<Option<CrawledDocument>, LibraryError> {
        let id: DocId = doc_id.parse().map_err(|error: BadDocId| LibraryError::store(error))?;
        let find = || -> Result<Option<CrawledDocument>, store::Error> {
            let snapshot = self.store.snapshot()?;
            let Some(number) = snapshot.get(DOC_IDS, id)? else { return Ok(None) };
            let document = snapshot.get(DOCUMENTS, number)?;
            document.map(|document| crawled(&snapshot, document)).transpose()
        };
        find().map_err(LibraryError::store)
    }

    /// Returns the URLs of all copies of a document, in their order. Empty if it is not there.
    pub fn copies(&self, doc_id: &str) -> Result<Vec<String>, LibraryError> {
        let id: DocId = doc_id.parse().map_err(|error: BadDocId| LibraryError::store(error))?;
        let snapshot = self.store.snapshot().map_err(LibraryError::store)?;
        let number = snapshot.get(DOC_IDS, id).map_err(LibraryError::store)?;
        let Some(number) = number else { return Ok(Vec::new()) };
        let copies = copies_of(&snapshot, number).map_err(LibraryError::store)?;
        Ok(copies.into_iter().map(|(url, _)| url).collect())
    }
}

impl From<NewDocument> for CrawledDocument {
    fn from(new: NewDocument) -> Self {
        let NewDocument { id, url, title, text, language, facts, popularity } = new;
        let (doc_id, author, published) = (id.to_string(), facts.author, facts.published);
        Self { doc_id, url, title, text, language, author, published, popularity, copies: 1 }
    }
}

impl Documents {
    fn read(&mut self) -> Result<Option<CrawledDocument>, store::Error> {
        let mut rows = self.snapshot.range(DOCUMENTS, self.next..)?;
        let Some(entry) = rows.next() else { return Ok(None) };
        let entry = entry?;
        let (number, document) = (entry.key()?, entry.row()?);
        drop((entry, rows));
        self.next = number + 1;
        crawled(&self.snapshot, document).map(Some)
    }
}

/// Returns a document with its text.
fn crawled(snapshot: &Snapshot, document: Document) -> Result<CrawledDocument, store::Error> {
    let Document { id, canonical, content, title, language, facts, popularity, copies, .. } =
        document;
    let text = read_body(snapshot, content)?.unwrap_or_default();
    Ok(CrawledDocument {
        doc_id: id.to_string(),
        url: canonical,
        title,
        text,
        language,
        author: facts.author,
        published: facts.published,
        popularity,
        copies,
    })
}

impl Iterator for Documents {
    type Item = Result<CrawledDocument, LibraryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map_err(LibraryError::store).transpose()
    }
}
