//! New documents, told when they are on the disk.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::corpus::clusters::Article;
use crate::corpus::documents::{DocId, Facts};
use crate::store::Batch;

/// A document that was stored just now.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// Its identifier.
    pub id: DocId,
    /// URL of its first copy.
    pub url: String,
    /// Title.
    pub title: String,
    /// Main text.
    pub text: String,
    /// Language (ISO 639-1), or empty.
    pub language: String,
    /// What the page says of itself.
    pub facts: Facts,
    /// Popularity.
    pub popularity: u64,
}

/// Whoever wants to be told of new documents.
#[derive(Clone)]
pub struct OnDocument(Arc<Mutex<dyn FnMut(NewDocument) + Send>>);

impl OnDocument {
    /// Has `tell` called, by one thread at a time.
    pub fn new(tell: impl FnMut(NewDocument) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(tell)))
    }

    /// Tells of documents when the batch is on the disk.
    pub(super) fn after(&self, batch: &mut Batch, documents: Vec<NewDocument>) {
        let tell = Arc::clone(&self.0);
        batch.after_commit(move || {
            let mut tell = tell.lock().unwrap_or_else(PoisonError::into_inner);
            documents.into_iter().for_each(&mut *tell);
        });
    }
}

impl fmt::Debug for OnDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDocument")
    }
}

impl NewDocument {
    /// An article that is the first of its document.
    pub(super) fn of(id: DocId, article: &Article, links: u64) -> Self {
        Self {
            id,
            url: article.address.clone(),
            title: article.title.clone(),
            text: article.text.clone(),
            language: article.language.clone(),
            facts: article.facts.clone(),
            popularity: article.score.unwrap_or(links),
        }
    }
}
