//! The tables of the file and of its transactions.

use std::sync::OnceLock;

use redb::{ReadOnlyTable, ReadTransaction, Table, TableDefinition, WriteTransaction};

use super::raw::{RawTable, RawTableMut, Stored};
use super::{BadRow, Error};

macro_rules! tables {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $name:ident = $file:literal, $key:ty => $value:ty;
    )*) => {
        /// A table of the store. Who owns its rows says what they are: see [`Table`](super::Table).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Name {
            $($(#[doc = $doc])+
            $name,)*
        }

        impl Name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns its name in messages.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($field),)*
                }
            }
        }

        /// Their names in the file.
        pub(super) const IN_FILE: &[&str] = &[$($file,)*];

        /// The tables of a write transaction.
        pub(super) struct Tables<'txn> {
            $(pub(super) $field: Table<'txn, $key, $value>,)*
        }

        impl<'txn> Tables<'txn> {
            /// Opens every table.
            pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self, Error> {
                Ok(Self { $($field: txn.open_table(in_file::<$key, $value>($file))?,)* })
            }
        }

        impl Tables<'_> {
            pub(super) fn raw(&self, name: Name) -> &dyn RawTable {
                match name {
                    $(Name::$name => &self.$field,)*
                }
            }

            pub(super) fn raw_mut(&mut self, name: Name) -> &mut dyn RawTableMut {
                match name {
                    $(Name::$name => &mut self.$field,)*
                }
            }
        }

        /// The tables of a read transaction, each opened when it is first asked.
        pub(super) struct ReadTables {
            txn: ReadTransaction,
            $($field: OnceLock<ReadOnlyTable<$key, $value>>,)*
        }

        impl ReadTables {
            pub(super) fn new(txn: ReadTransaction) -> Self {
                Self { txn, $($field: OnceLock::new(),)* }
            }

            pub(super) fn raw(&self, name: Name) -> Result<&dyn RawTable, Error> {
                match name {
                    $(Name::$name => opened(&self.$field, &self.txn, $file),)*
                }
            }
        }
    };
}

tables! {
    /// Small facts about the store: `format`, `store_number`, `features`, `urls`, `next_*` numbers.
    meta: Meta = "meta", &'static str => &'static [u8];
    /// Host key -> host number.
    host_numbers: HostNumbers = "host_numbers", &'static str => u32;
    /// Registrable domain -> number of its hosts (`frontier`).
    domains: Domains = "domains", &'static str => u64;
    /// Host number, hash of a pattern -> links of that pattern that were let in (`frontier`).
    patterns: Patterns = "patterns", &'static [u8] => u64;
    /// Host number -> host row (`frontier`).
    hosts: Hosts = "hosts", u32 => &'static [u8];
    /// Host number -> robots.txt copy (`frontier`).
    robots: Robots = "robots", u32 => &'static [u8];
    /// URL -> URL row (`frontier`).
    addresses: Addresses = "addresses", &'static str => &'static [u8];
    /// Host number, rank, depth, sequence -> queued request (`frontier`).
    queue: Queue = "queue", &'static [u8] => &'static [u8];
    /// URL -> what a sitemap or feed came to (`frontier`).
    lists: Lists = "lists", &'static str => &'static [u8];
    /// Due time, host number: hosts with a queue (`frontier`).
    schedule: Schedule = "schedule", &'static [u8] => ();
    /// Due time, sequence -> request that waits before it is queued (`frontier`).
    later: Later = "later", &'static [u8] => &'static [u8];
    /// Due time, address: URLs that were visited and are to be again (`frontier`).
    revisits: Revisits = "revisits", &'static [u8] => ();
    /// Hash of a URL, number of a linking host: links between hosts (`frontier`).
    inlinks: Inlinks = "inlinks", &'static [u8] => ();
    /// Document number -> document row (`documents`).
    documents: Documents = "documents", u64 => &'static [u8];
    /// Document identifier -> document number (`documents`).
    doc_ids: DocIds = "doc_ids", u128 => u64;
    /// Document number, URL -> copy row (`documents`).
    copies: Copies = "copies", &'static [u8] => &'static [u8];
    /// Content number -> content row: the nodes of the parent forest (`documents`).
    contents: Contents = "contents", u64 => &'static [u8];
    /// Content number -> compressed text, or the first piece of it (`documents`).
    bodies: Bodies = "bodies", u64 => &'static [u8];
    /// Content number, place from 1 -> further piece of a compressed text (`documents`).
    body_parts: BodyParts = "body_parts", &'static [u8] => &'static [u8];
    /// URL of a copy -> what is kept of its page beside the text (`documents`).
    pages: Pages = "pages", &'static str => &'static [u8];
    /// Table, segment, level, first posting -> block: the rotated tables of fingerprints (`index`).
    near: Near = "near", &'static [u8] => &'static [u8];
    /// The same for keys that must be equal (`index`).
    keys: Keys = "keys", &'static [u8] => &'static [u8];
    /// Number of a segment -> segment of the index (`index`).
    segments: Segments = "segments", u32 => &'static [u8];
    /// Number of a segment -> how to go on with what becomes it (`index`).
    merges: Merges = "merges", u32 => &'static [u8];
    /// Sequence -> contents that came and went with one commit and are in no segment yet (`index`).
    index_log: IndexLog = "index_log", u64 => &'static [u8];
    /// Content number -> URL of its first copy: contents whose matches deserve a second look
    /// (`clusters`).
    unsure: Unsure = "unsure_copies", u64 => &'static str;
    /// Document number -> (): documents whose canonical copy has another text than before, to be
    /// compared with others by it (`clusters`).
    reviews: Reviews = "reviews", u64 => ();
    /// Identifier that a sender gave -> what became of the article (`ingest`).
    sent: Sent = "sent", &'static str => &'static [u8];
    /// URL of an article that was sent -> its content (`ingest`).
    sent_urls: SentUrls = "sent_urls", &'static str => u64;
    /// Copies, document number -> (): documents of two copies and more (`documents`).
    ranking: Ranking = "ranking", &'static [u8] => ();
    /// Hour -> what came in it (`documents`).
    arrivals: Arrivals = "arrivals", u64 => &'static [u8];
    /// Hour, document number -> copies that joined the document in it (`documents`).
    growth: Growth = "growth", &'static [u8] => u64;
    /// Document number, sequence -> change of the canonical copy (`clusters`).
    history: History = "history", &'static [u8] => &'static [u8];
    /// Host number -> how often its blocks of text were seen (`boilerplate`).
    boilerplate: Boilerplate = "boilerplate", u32 => &'static [u8];
    /// Number of a rule -> rule of duplicate URLs with its evidence (`rules`).
    rules: Rules = "rules", u64 => &'static [u8];
    /// Number of a rule, hash of what it makes of a URL -> the first such URL (`rules`).
    rule_keys: RuleKeys = "rule_keys", &'static [u8] => &'static str;
    /// Number of a rule, or hash of a kind of URLs, URL -> (): URLs that are not
    /// visited because of it (`rules`, `frontier`).
    skipped: Skipped = "skipped", &'static [u8] => ();
    /// Hash of a kind of URLs -> what it has given (`frontier`).
    url_patterns: UrlPatterns = "url_patterns", u64 => &'static [u8];
    /// Host number -> what it answers for pages that it does not have (`crawl`).
    error_pages: ErrorPages = "error_pages", u32 => &'static [u8];
    /// Document number -> hash of what similarity search shows of it, 0 if nothing: documents that
    /// have changed since its index was brought up to date (`documents`).
    search_changes: SearchChanges = "search_changes", u64 => u64;
    /// Number of a duplicate feed that was taken in -> the feed with its evidence (`verdicts`).
    feeds: Feeds = "feeds", u64 => &'static [u8];
    /// Number of a feed, host key -> what the feed has been worth for the host (`verdicts`).
    feed_hosts: FeedHosts = "feed_hosts", &'static [u8] => &'static [u8];
    /// Hash of a URL, number of a feed -> what the feed says of it (`verdicts`).
    verdicts: Verdicts = "verdicts", &'static [u8] => &'static [u8];
    /// Hash of a canonical URL of a feed -> the URL, as it is known here (`verdicts`).
    known_pages: KnownPages = "known_pages", &'static [u8] => &'static str;
    /// Hash of a URL, another one that is not fetched because it is a copy of it -> number of
    /// the feed that says so (`verdicts`).
    known_skipped: KnownSkipped = "known_skipped", &'static [u8] => u64;
    /// Hash of a URL -> (): pages by which stored pages were found first (`frontier`).
    leads: Leads = "leads", u64 => ();
    /// Sequence -> document of several copies whose copies changed then for the last time
    /// (`documents`).
    verdict_log: VerdictLog = "verdict_log", u64 => u64;
    /// Document number -> its sequence in that log (`documents`).
    verdict_places: VerdictPlaces = "verdict_places", u64 => u64;
    /// Hash of a folder and of a payload -> where it lies in the WARC files there (`warc`).
    payloads: Payloads = "payloads", u128 => &'static [u8];
    /// Sequence -> document that changed then for the last time (`documents`).
    change_log: ChangeLog = "change_log", u64 => u64;
    /// Document number -> its sequence in that log (`documents`).
    change_places: ChangePlaces = "change_places", u64 => u64;
    /// Sequence of the same log -> document that ended then (`documents`).
    ended_log: EndedLog = "ended_log", u64 => &'static [u8];
    /// Number of a tree, hash of a site or 0, place -> document; only while `crawl dedup` runs, in
    /// a store of its own, as the table after it (`files`).
    line_lists: LineLists = "line_lists", &'static [u8] => u32;
    /// Number of a content -> contents that share a key with it (`files`).
    line_candidates: LineCandidates = "line_candidates", u32 => &'static [u8];
    /// Shard, sequence -> URL that was found here and is to be sent there (`frontier`).
    outbox: Outbox = "outbox", &'static [u8] => &'static [u8];
    /// Name of a reason -> how often (`crawl`).
    counters: Counters = "counters", &'static str => u64;
}

/// A table as the file has it.
pub(super) const fn in_file<K: redb::Key, V: redb::Value>(name: &str) -> TableDefinition<'_, K, V> {
    TableDefinition::new(name)
}

fn opened<'a, K: Stored + redb::Key, V: Stored>(
    table: &'a OnceLock<ReadOnlyTable<K, V>>,
    txn: &ReadTransaction,
    name: &str,
) -> Result<&'a dyn RawTable, Error> {
    if let Some(table) = table.get() {
        return Ok(table);
    }
    let opened = txn.open_table(in_file::<K, V>(name))?;
    Ok(table.get_or_init(|| opened))
}

/// Small facts of the store, by name.
pub const META: super::Table<&str, Vec<u8>> = super::Table::new(Name::Meta);

/// Name of the number of the store in [`META`].
pub const STORE_NUMBER: &str = "store_number";

/// Name in [`META`] of a number that is drawn anew when a store goes back to an earlier state: who
/// follows its changes has to begin anew. Without it, the number of the store stands for it.
pub const CHANGES_EPOCH: &str = "changes_epoch";

/// How often something has happened, by name.
pub const COUNTERS: super::Table<&str, u64> = super::Table::new(Name::Counters);

/// Reads a number of the table `meta`.
pub fn read_number(row: &[u8]) -> Result<u64, BadRow> {
    let bytes = row.try_into();
    let bad = BadRow { kind: "meta", detail: "a number has not 8 bytes" };
    bytes.map(u64::from_be_bytes).map_err(|_| bad)
}
