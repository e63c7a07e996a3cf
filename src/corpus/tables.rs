//! What lies in the tables of the corpus.
//!
//! The list stands below the modules of the room, which read and write by it; it names their rows.

use crate::store::{ContentNumber, DocumentNumber, Name, Table};

use super::boilerplate::{Counts, ErrorPage};
use super::documents::{
    Arrivals, CanonicalChange, Content, Copy, DocId, Document, EndedDocument, KeptPage, Sent,
};
use super::files::StoredCandidates;
use super::index::{BlockId, StoredMerge, StoredSegment};

/// Document number -> document.
pub const DOCUMENTS: Table<DocumentNumber, Document> = Table::new(Name::Documents);

/// Identifier -> document number; of several if documents were merged.
pub const DOC_IDS: Table<DocId, DocumentNumber> = Table::new(Name::DocIds);

/// Document number, URL -> copy.
pub const COPIES: Table<(DocumentNumber, &str), Copy> = Table::new(Name::Copies);

/// Content number -> content: the nodes of the parent forest.
pub const CONTENTS: Table<ContentNumber, Content> = Table::new(Name::Contents);

/// Content number -> its text: the first piece of a [`StoredBody`](super::documents::StoredBody).
pub const BODIES: Table<ContentNumber, Vec<u8>> = Table::new(Name::Bodies);

/// Content number, place from 1 -> a further piece of its text.
pub const BODY_PARTS: Table<(ContentNumber, u32), Vec<u8>> = Table::new(Name::BodyParts);

/// URL of a copy -> what is kept of its page beside the text.
pub const PAGES: Table<&str, KeptPage> = Table::new(Name::Pages);

/// Place of a block -> block of postings of rotated fingerprints.
pub const NEAR: Table<BlockId, Vec<u8>> = Table::new(Name::Near);

/// Place of a block -> block of postings, or filter, of keys that must be equal.
pub const KEYS: Table<BlockId, Vec<u8>> = Table::new(Name::Keys);

/// Number of a segment of the index -> segment.
pub const SEGMENTS: Table<u32, StoredSegment> = Table::new(Name::Segments);

/// Number of a segment -> how to go on with the segments that become it.
pub const MERGES: Table<u32, StoredMerge> = Table::new(Name::Merges);

/// Sequence -> packed changes of one commit.
pub const INDEX_LOG: Table<u64, Vec<u8>> = Table::new(Name::IndexLog);

/// Content number -> URL of its first copy: contents whose matches get a second look.
pub const UNSURE: Table<ContentNumber, String> = Table::new(Name::Unsure);

/// Document number: documents whose canonical copy has another text than before.
pub const REVIEWS: Table<DocumentNumber, ()> = Table::new(Name::Reviews);

/// Document number, sequence -> change of the canonical copy.
pub const HISTORY: Table<(DocumentNumber, u64), CanonicalChange> = Table::new(Name::History);

/// Identifier that a sender gave -> what became of the article.
pub const SENT: Table<&str, Sent> = Table::new(Name::Sent);

/// URL of an article that was sent -> number of its content.
pub const SENT_URLS: Table<&str, ContentNumber> = Table::new(Name::SentUrls);

/// Copies, document number: documents of two copies and more.
pub const RANKING: Table<(u64, DocumentNumber), ()> = Table::new(Name::Ranking);

/// Hours since 1970 -> what came in that hour.
pub const ARRIVALS: Table<u64, Arrivals> = Table::new(Name::Arrivals);

/// Hours since 1970, document number -> copies that joined the document in that hour.
pub const GROWTH: Table<(u64, DocumentNumber), u64> = Table::new(Name::Growth);

/// Sequence -> number of a document of several copies whose copies changed then for the last time.
pub const VERDICT_LOG: Table<u64, DocumentNumber> = Table::new(Name::VerdictLog);

/// Document number -> its sequence in that log.
pub const VERDICT_PLACES: Table<DocumentNumber, u64> = Table::new(Name::VerdictPlaces);

/// Sequence -> number of a document that changed then for the last time.
pub const CHANGE_LOG: Table<u64, DocumentNumber> = Table::new(Name::ChangeLog);

/// Document number -> its sequence in that log.
pub const CHANGE_PLACES: Table<DocumentNumber, u64> = Table::new(Name::ChangePlaces);

/// Sequence of the same log -> document that ended then.
pub const ENDED_LOG: Table<u64, EndedDocument> = Table::new(Name::EndedLog);

/// Document number -> hash of what similarity search shows of it, 0 if nothing.
pub const SEARCH_CHANGES: Table<DocumentNumber, u64> = Table::new(Name::SearchChanges);

/// Host number -> how often its blocks of text were seen.
pub const BOILERPLATE: Table<u32, Counts> = Table::new(Name::Boilerplate);

/// Host number -> what it answers for pages that it does not have.
pub const ERROR_PAGES: Table<u32, ErrorPage> = Table::new(Name::ErrorPages);

/// Tree of a run over files, site, place from 0 -> document; of the site 0, all of the tree but the
/// first.
pub const LINE_LISTS: Table<((u32, u64), u32), u32> = Table::new(Name::LineLists);

/// Content of such a run whose match is unsure -> contents that share a key with it.
pub const LINE_CANDIDATES: Table<u32, StoredCandidates> = Table::new(Name::LineCandidates);
