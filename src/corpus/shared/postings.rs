//! Which postings lead to a document.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::{Posting, Table};
use crate::corpus::clusters::Article;
use crate::corpus::documents::{Content, DocId, Document};
use crate::neardup::Key;
use crate::neardup::segment::{equality_table, exact_key};
use crate::store::{BadRow, Name, Row as _};
use crate::text::features::ArticleKeys;

use super::SharedCorpus;
use super::rows::PartRow;

/// The table of identifiers, and that of URLs: behind those of all kinds of keys.
const IDS: u8 = 253;
const URLS: u8 = 254;

/// Keys of sentences that a document has, about.
const SENTENCES: u64 = 8;

/// Tables below this one are of rotated fingerprints.
const EQUALITY: u8 = 64;

/// A table of the index.
fn table_of(table: u8) -> Table {
    if table < EQUALITY { Table::Near(table) } else { Table::Equal(table) }
}

/// The posting of an identifier.
pub(super) fn of_id(id: u128, document: Option<u64>) -> Posting {
    Posting { table: Table::Equal(IDS), key: (id >> 88) as u64, each: 1, document }
}

/// The posting of a URL.
pub(super) fn of_url(url: &str, document: Option<u64>) -> Posting {
    Posting { table: Table::Equal(URLS), key: xxh3_64(url.as_bytes()) >> 24, each: 1, document }
}

/// The posting of a whole text.
pub(super) fn of_text(hash: u128, document: Option<u64>) -> Posting {
    let table = Table::Equal(equality_table(Key::Exact));
    Posting { table, key: exact_key(hash), each: 1, document }
}

/// The identifier of an article that becomes a document.
pub(super) fn id_of(article: &Article) -> DocId {
    DocId::of(&article.address, &article.title, article.keys.text.hash)
}

impl SharedCorpus {
    /// All kinds of postings.
    pub(super) fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.finder.tables().into_iter().map(table_of).collect();
        tables.extend([equality_table(Key::Exact), IDS, URLS].map(Table::Equal));
        tables
    }

    /// The postings by which near-duplicates are found.
    pub(super) fn near(&self, keys: &ArticleKeys, document: Option<u64>) -> Vec<Posting> {
        let found = self.finder.postings(0, keys);
        let postings = found.iter().map(|(table, posting)| {
            // The same for all documents, whatever this one has.
            let is_run = *table == equality_table(Key::Shingles);
            let each = if is_run { self.config.bands as u64 } else { SENTENCES };
            Posting { table: table_of(*table), key: posting.key, each, document }
        });
        postings.collect()
    }

    /// All postings of an article that becomes the document of such a number.
    pub(super) fn postings_of_article(&self, article: &Article, number: u64) -> BTreeSet<Posting> {
        let document = Some(number);
        let mut postings: BTreeSet<Posting> =
            self.near(&article.keys, document).into_iter().collect();
        if article.keys.text.words > 0 {
            postings.insert(of_text(article.keys.text.hash, document));
        }
        postings.insert(of_id(id_of(article).0, document));
        postings.insert(of_url(&article.address, document));
        postings
    }

    /// All postings of a document: of its root those by which near-duplicates are found, of every
    /// text that of the whole text, its identifiers, and the URLs of its copies.
    pub(super) fn postings_of(
        &self,
        number: u64,
        rows: &[PartRow],
    ) -> Result<BTreeSet<Posting>, BadRow> {
        let mut postings = BTreeSet::new();
        let document = Some(number);
        let mut root = None;
        for PartRow { table, key, row } in rows {
            match table {
                Name::Documents => {
                    let document = Document::decode(row)?;
                    let ids = document.merged.iter().chain([&document.id]);
                    postings.extend(ids.map(|id| of_id(id.0, Some(number))));
                    root = Some(document.root.to_be_bytes());
                }
                Name::Copies => {
                    let url = str::from_utf8(key)
                        .map_err(|_| BadRow { kind: "key", detail: "it is not UTF-8" })?;
                    postings.insert(of_url(url, document));
                }
                Name::Contents => {
                    let keys = Content::decode(row)?.keys();
                    if keys.text.words > 0 {
                        postings.insert(of_text(keys.text.hash, document));
                    }
                    if root.is_some_and(|root| root == key.as_slice()) {
                        postings.extend(self.near(&keys, document));
                    }
                }
                _ => {}
            }
        }
        Ok(postings)
    }
}
