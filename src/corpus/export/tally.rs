//! What an export counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::field::Subject;
use super::time::Span;
use crate::base::clock::Timestamp;

/// Hosts that are counted each by themselves.
const HOSTS_MAX: usize = 100_000;

/// Counts of an export, or of a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Documents.
    pub documents: u64,
    /// Dropped copies, those that were not fetched among them.
    pub duplicates: u64,
    /// URLs that were not fetched, because by a rule or a feed they are stored pages.
    pub skipped: u64,
    /// Documents that may turn out to be copies of others.
    pub unsettled: u64,
    /// Documents that the filter did not take.
    pub filtered: u64,
    /// Documents that filters keep out, by reason.
    #[serde(default)]
    pub filtered_by: BTreeMap<String, u64>,
    /// Pieces of personal data that were masked.
    #[serde(default)]
    pub masked: u64,
    /// Documents that were left out, or whose text was, by reason.
    pub withheld: BTreeMap<String, u64>,
    /// Documents without a value of a field, because it was not kept, by field.
    pub missing: BTreeMap<String, u64>,
    /// Dates that are no dates; in types of their own they are empty.
    pub unread_dates: u64,
    /// Documents by language.
    pub languages: BTreeMap<String, u64>,
    /// Documents by host.
    pub hosts: BTreeMap<String, u64>,
    /// Documents of further hosts.
    pub other_hosts: u64,
    /// When the first and the last document was published, of those that say so.
    pub published: Option<(i64, i64)>,
    /// When the first and the last document came.
    pub seen: Option<(i64, i64)>,
    /// When a copy came last, of any document of the store: the time of the store.
    pub newest: Option<i64>,
}

fn widen(range: &mut Option<(i64, i64)>, time: Timestamp) {
    let (first, last) = range.unwrap_or((time.0, time.0));
    *range = Some((first.min(time.0), last.max(time.0)));
}

impl Tally {
    /// Counts a document that is written.
    pub(super) fn document(&mut self, subject: &Subject<'_>) {
        self.documents += 1;
        self.unsettled += u64::from(subject.unsettled_with.is_some());
        let document = subject.document;
        *self.languages.entry(document.language.clone()).or_default() += 1;
        let host = subject.host();
        if self.hosts.len() < HOSTS_MAX || self.hosts.contains_key(&host) {
            *self.hosts.entry(host).or_default() += 1;
        } else {
            self.other_hosts += 1;
        }
        if let Some(span) = Span::read(&document.facts.published) {
            widen(&mut self.published, span.from);
        }
        widen(&mut self.seen, document.first_arrival);
        for date in [&document.facts.published, &document.facts.modified] {
            self.unread_dates += u64::from(!date.is_empty() && Span::read(date).is_none());
        }
    }

    /// Counts a reason for which a document, or its text, was left out.
    pub(super) fn withhold(&mut self, reason: &str) {
        *self.withheld.entry(reason.to_owned()).or_default() += 1;
    }

    /// Counts a document that a filter keeps out.
    pub(super) fn filter(&mut self, reason: &str) {
        *self.filtered_by.entry(reason.to_owned()).or_default() += 1;
    }

    /// Counts a field without a value.
    pub(super) fn miss(&mut self, field: &str) {
        *self.missing.entry(field.to_owned()).or_default() += 1;
    }

    /// Adds the counts of another part.
    pub(super) fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.duplicates += other.duplicates;
        self.skipped += other.skipped;
        self.unsettled += other.unsettled;
        self.filtered += other.filtered;
        self.masked += other.masked;
        self.unread_dates += other.unread_dates;
        self.other_hosts += other.other_hosts;
        self.newest = self.newest.max(other.newest);
        for (own, others) in [
            (&mut self.withheld, &other.withheld),
            (&mut self.filtered_by, &other.filtered_by),
            (&mut self.missing, &other.missing),
            (&mut self.languages, &other.languages),
        ] {
            for (name, count) in others {
                *own.entry(name.clone()).or_default() += count;
            }
        }
        for (host, count) in &other.hosts {
            if self.hosts.len() < HOSTS_MAX || self.hosts.contains_key(host) {
                *self.hosts.entry(host.clone()).or_default() += count;
            } else {
                self.other_hosts += count;
            }
        }
        for (own, others) in [(&mut self.published, other.published), (&mut self.seen, other.seen)]
        {
            if let Some((first, last)) = others {
                widen(own, Timestamp(first));
                widen(own, Timestamp(last));
            }
        }
    }
}

/// Returns the names of most counts, most first, and how many are left over.
pub(super) fn top(counts: &BTreeMap<String, u64>, most: usize) -> (Vec<(&str, u64)>, u64) {
    let mut all: Vec<(&str, u64)> =
        counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    all.sort_by(|(one, many), (other, more)| more.cmp(many).then_with(|| one.cmp(other)));
    let rest = all.iter().skip(most).map(|(_, count)| count).sum();
    all.truncate(most);
    (all, rest)
}
