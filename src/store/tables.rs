//! All tables of one transaction, open at once.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _, Table, WriteTransaction};

use super::{
    ADDRESSES, ARRIVALS, BODIES, BOILERPLATE, BadRow, CONTENTS, COPIES, COUNTERS, DOC_IDS,
    DOCUMENTS, DOMAINS, ERROR_PAGES, EXACT, Error, FAMILIES, FEED_HOSTS, FEEDS, GROWTH, HISTORY,
    HOST_NUMBERS, HOSTS, INLINKS, KNOWN_PAGES, KNOWN_SKIPPED, LATER, LEADS, LISTS, META, NEAR,
    NEAR_LOG, PATTERNS, QUEUE, RANKING, REVIEWS, REVISITS, ROBOTS, RULE_KEYS, RULES, SCHEDULE,
    SEARCH_CHANGES, SENT, SENT_URLS, SKIPPED, TWINS, UNSURE, VERDICT_LOG, VERDICT_PLACES, VERDICTS,
};

macro_rules! tables {
    ($($field:ident: $definition:ident, $key:ty => $value:ty;)*) => {
        /// The tables of a write transaction. A read sees the transaction's own writes.
        pub struct Tables<'txn> {
            $(#[doc = concat!("See [`", stringify!($definition), "`].")]
            pub $field: Table<'txn, $key, $value>,)*
        }

        impl<'txn> Tables<'txn> {
            /// Opens every table.
            pub fn open(txn: &'txn WriteTransaction) -> Result<Self, Error> {
                Ok(Self { $($field: txn.open_table($definition)?,)* })
            }
        }

        /// The tables of a read transaction: one state of the store, whatever is written since.
        pub struct ReadTables {
            $(#[doc = concat!("See [`", stringify!($definition), "`].")]
            pub $field: ReadOnlyTable<$key, $value>,)*
        }

        impl ReadTables {
            /// Opens every table.
            pub fn open(txn: &ReadTransaction) -> Result<Self, Error> {
                Ok(Self { $($field: txn.open_table($definition)?,)* })
            }

            /// Reads every row of the table of this name.
            pub(super) fn walk(txn: &ReadTransaction, table: &str) -> Result<(), Error> {
                match table {
                    $(stringify!($field) => {
                        for row in txn.open_table($definition)?.iter()? {
                            let (key, value) = row?;
                            (key.value(), value.value());
                        }
                    })*
                    _ => {}
                }
                Ok(())
            }
        }

        /// The names of all tables.
        pub(super) const NAMES: &[&str] = &[$(stringify!($field),)*];
    };
}

tables! {
    meta: META, &'static str => &'static [u8];
    host_numbers: HOST_NUMBERS, &'static str => u32;
    domains: DOMAINS, &'static str => u64;
    patterns: PATTERNS, &'static [u8] => u64;
    hosts: HOSTS, u32 => &'static [u8];
    robots: ROBOTS, u32 => &'static [u8];
    addresses: ADDRESSES, &'static str => &'static [u8];
    queue: QUEUE, &'static [u8] => &'static [u8];
    lists: LISTS, &'static str => &'static [u8];
    schedule: SCHEDULE, &'static [u8] => ();
    later: LATER, &'static [u8] => &'static [u8];
    revisits: REVISITS, &'static [u8] => ();
    inlinks: INLINKS, &'static [u8] => ();
    documents: DOCUMENTS, u64 => &'static [u8];
    doc_ids: DOC_IDS, u128 => u64;
    copies: COPIES, &'static [u8] => &'static [u8];
    contents: CONTENTS, u64 => &'static [u8];
    bodies: BODIES, u64 => &'static [u8];
    exact: EXACT, u128 => u64;
    near: NEAR, &'static [u8] => &'static [u8];
    near_log: NEAR_LOG, u64 => &'static [u8];
    twins: TWINS, (u128, u64) => ();
    unsure: UNSURE, u64 => &'static str;
    reviews: REVIEWS, u64 => ();
    sent: SENT, &'static str => &'static [u8];
    sent_urls: SENT_URLS, &'static str => u64;
    ranking: RANKING, &'static [u8] => ();
    arrivals: ARRIVALS, u64 => &'static [u8];
    growth: GROWTH, &'static [u8] => u64;
    history: HISTORY, &'static [u8] => &'static [u8];
    boilerplate: BOILERPLATE, u32 => &'static [u8];
    rules: RULES, u64 => &'static [u8];
    rule_keys: RULE_KEYS, &'static [u8] => &'static str;
    skipped: SKIPPED, &'static [u8] => ();
    families: FAMILIES, u64 => &'static [u8];
    error_pages: ERROR_PAGES, u32 => &'static [u8];
    search_changes: SEARCH_CHANGES, u64 => u64;
    feeds: FEEDS, u64 => &'static [u8];
    feed_hosts: FEED_HOSTS, &'static [u8] => &'static [u8];
    verdicts: VERDICTS, &'static [u8] => &'static [u8];
    known_pages: KNOWN_PAGES, &'static [u8] => &'static str;
    known_skipped: KNOWN_SKIPPED, &'static [u8] => u64;
    leads: LEADS, u64 => ();
    verdict_log: VERDICT_LOG, u64 => u64;
    verdict_places: VERDICT_PLACES, u64 => u64;
    counters: COUNTERS, &'static str => u64;
}

impl Tables<'_> {
    /// Takes the next number of the sequence `name`, starting at 1.
    pub fn next_number(&mut self, name: &'static str) -> Result<u64, Error> {
        let last = match self.meta.get(name)? {
            // To start anew would give the same numbers a second time.
            Some(row) => read_number(row.value())?,
            None => 0,
        };
        self.meta.insert(name, (last + 1).to_be_bytes().as_slice())?;
        Ok(last + 1)
    }

    /// Adds `by` to the counter `name`.
    pub fn count(&mut self, name: &str, by: u64) -> Result<(), Error> {
        let now = self.counters.get(name)?.map_or(0, |row| row.value());
        self.counters.insert(name, now + by)?;
        Ok(())
    }
}

/// Reads a number of the table `meta`.
pub fn read_number(row: &[u8]) -> Result<u64, BadRow> {
    let bytes = row.try_into();
    let bad = BadRow { kind: "meta", detail: "a number has not 8 bytes" };
    bytes.map(u64::from_be_bytes).map_err(|_| bad)
}
