//! Documents and dropped copies as they are shown, and what pages allow to be shown of them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::field::DROPPED;
use super::value::{Record, Value};
use crate::base::clock::Timestamp;
use crate::corpus::clusters::ranked;
use crate::corpus::documents::{Content, Copy, Document, copies_of, read_body};
use crate::corpus::tables::{CONTENTS, COPIES};
use crate::store::{self, BadRow, View};
use crate::web::robots::meta::Honour;

/// One document of the corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Identifier of the document.
    pub doc_id: String,
    /// URL of the canonical copy.
    pub url: String,
    /// Title of the canonical copy.
    pub title: String,
    /// Main text of the canonical copy.
    pub text: String,
    /// Language (ISO 639-1), or empty.
    pub language: String,
    /// Authors of the canonical copy, joined by `, `, or empty.
    pub author: String,
    /// When the canonical copy says it was published (ISO 8601), or empty.
    pub published: String,
    /// When it says it was last changed, or empty.
    pub modified: String,
    /// Name of its site, or empty.
    pub site: String,
    /// Its description of itself, or empty.
    pub description: String,
    /// Category, as whoever sent the article names it, or empty.
    pub category: String,
    /// Images in it, as whoever sent it counted them.
    pub images: u64,
    /// Popularity of the canonical copy.
    pub popularity: u64,
    /// Copies, the canonical one among them.
    pub copies: u64,
    /// When the first copy came.
    pub first_seen: String,
    /// When the newest copy came.
    pub last_seen: String,
    /// Why the text was left out; empty if it was not.
    pub withheld: &'static str,
}

/// One copy that is not in the corpus, because another one is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// URL of the copy.
    pub url: String,
    /// Identifier of its document.
    pub doc_id: String,
    /// URL of the copy that was kept.
    pub canonical: String,
    /// By which key it was recognised; `first` if it was the first and lost to a better copy;
    /// `skipped_by_rule` or `skipped_by_feed` if it was not fetched, so that nothing else is
    /// known of it.
    pub reason: &'static str,
    /// Number of the rule by which it was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u64>,
    /// Number of the duplicate feed by which it was not fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<u64>,
    /// Bits between its fingerprint and that of the copy that was kept.
    pub distance: u32,
    /// Estimated similarity of its text to that of the copy that was kept, 0 to 1.
    pub similarity: f64,
    /// Estimated similarity of its text to the one that made it a copy, 0 to 1: mostly that of the
    /// first copy.
    pub root_similarity: f64,
    /// Its popularity.
    pub popularity: u64,
    /// Its title.
    pub title: String,
    /// URL that its page names as canonical; empty for none or its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub declared_canonical: String,
    /// When it came.
    pub seen: String,
}

impl Dropped {
    /// Returns it as a line of an export.
    pub(super) fn record(self) -> Record {
        let values = vec![
            self.url.into(),
            self.doc_id.into(),
            self.canonical.into(),
            self.reason.into(),
            self.rule.into(),
            self.feed.into(),
            Value::Count(u64::from(self.distance)),
            Value::Number(self.similarity),
            Value::Number(self.root_similarity),
            Value::Count(self.popularity),
            self.title.into(),
            self.declared_canonical.into(),
            Value::Text(self.seen),
        ];
        Record { columns: Arc::from(DROPPED), values }
    }
}

/// What the pages of a document allow.
pub(super) enum Allowed<'a> {
    /// Its canonical copy stands as it is.
    Canonical,
    /// This copy, perhaps without its text.
    Copy { address: &'a str, copy: &'a Copy, hidden: bool },
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// Tells what the pages of a document allow.
pub(super) fn allowed<'a>(
    document: &Document,
    copies: &'a [(String, Copy)],
    honour: &Honour,
    now: Timestamp,
) -> Allowed<'a> {
    if document.gone.0 != 0 {
        return Allowed::Nothing("gone");
    }
    let forbids = |copy: &Copy| copy.terms.forbids(honour, now);
    let hides = |copy: &Copy| copy.terms.hides_text(honour);
    let canonical = copies.iter().find(|(address, _)| *address == document.canonical);
    if canonical.is_none_or(|(_, copy)| forbids(copy).is_none() && !hides(copy)) {
        return Allowed::Canonical;
    }
    let free = ranked(copies).filter(|(_, _, copy)| forbids(copy).is_none());
    let best = free
        .min_by(|(one, _, a), (other, _, b)| hides(a).cmp(&hides(b)).then_with(|| one.cmp(other)));
    match (best, canonical) {
        (Some((_, address, copy)), _) => Allowed::Copy { address, copy, hidden: hides(copy) },
        (None, Some((_, copy))) => Allowed::Nothing(forbids(copy).unwrap_or("noarchive")),
        (None, None) => Allowed::Canonical,
    }
}

/// Makes `document` show the best copy whose page allows it at the moment `now`. Returns whether
/// the text must stay hidden; or the reason, if nothing of it may be shown.
pub fn show(
    snapshot: &impl View,
    number: u64,
    document: &mut Document,
    honour: &Honour,
    now: Timestamp,
) -> Result<Result<bool, &'static str>, store::Error> {
    if document.gone.0 != 0 {
        return Ok(Err("gone"));
    }
    let canonical = snapshot.get(COPIES, (number, &document.canonical))?;
    let free = |copy: &Copy| copy.terms.forbids(honour, now).is_none();
    if canonical.is_none_or(|copy| free(&copy) && !copy.terms.hides_text(honour)) {
        return Ok(Ok(false));
    }
    let copies = copies_of(snapshot, number)?;
    Ok(match allowed(document, &copies, honour, now) {
        Allowed::Canonical => Ok(false),
        Allowed::Nothing(reason) => Err(reason),
        Allowed::Copy { address, copy, hidden } => {
            stand_for(document, address, copy);
            Ok(hidden)
        }
    })
}

/// Makes another copy the one that is shown.
pub(super) fn stand_for(document: &mut Document, address: &str, copy: &Copy) {
    address.clone_into(&mut document.canonical);
    document.content = copy.content;
    document.title.clone_from(&copy.title);
    document.language.clone_from(&copy.language);
    document.popularity = copy.popularity;
    document.facts.clone_from(&copy.facts);
}

/// Returns a document as it is exported.
pub fn row_of(snapshot: &impl View, document: &Document) -> Result<Row, store::Error> {
    let facts = document.facts.clone();
    Ok(Row {
        doc_id: document.id.to_string(),
        url: document.canonical.clone(),
        title: document.title.clone(),
        text: read_body(snapshot, document.content)?.unwrap_or_default(),
        language: document.language.clone(),
        author: facts.author,
        published: facts.published,
        modified: facts.modified,
        site: facts.site,
        description: facts.description,
        category: facts.category,
        images: facts.images,
        popularity: document.popularity,
        copies: document.copies,
        first_seen: Timestamp::to_string(&document.first_arrival),
        last_seen: Timestamp::to_string(&document.last_arrival),
        withheld: "",
    })
}

/// Returns the copies of a document that are not canonical, in the order of their URLs.
pub fn dropped_of(
    snapshot: &impl View,
    number: u64,
    document: &Document,
) -> Result<Vec<Dropped>, store::Error> {
    dropped(snapshot, document, copies_of(snapshot, number)?)
}

/// Returns those of some copies that are not canonical. Reads each of their texts' keys once.
pub(super) fn dropped(
    snapshot: &impl View,
    document: &Document,
    mut copies: Vec<(String, Copy)>,
) -> Result<Vec<Dropped>, store::Error> {
    copies.retain(|(address, _)| *address != document.canonical);
    let mut likeness =
        LikenessTo { snapshot, content: document.content, text: None, known: HashMap::new() };
    let mut lost = Vec::new();
    for (address, copy) in copies {
        let (similarity, distance) = likeness.of(copy.content)?;
        lost.push(Dropped {
            url: address,
            doc_id: document.id.to_string(),
            canonical: document.canonical.clone(),
            reason: copy.key.as_str(),
            rule: None,
            feed: None,
            distance,
            similarity,
            root_similarity: f64::from(copy.similarity) / 1000.0,
            popularity: copy.popularity,
            title: copy.title,
            declared_canonical: copy.declared,
            seen: copy.arrival.to_string(),
        });
    }
    Ok(lost)
}

/// How alike texts are to one of them.
struct LikenessTo<'a, V> {
    snapshot: &'a V,
    content: u64,
    /// Its keys, when the first other text was asked for.
    text: Option<Content>,
    known: HashMap<u64, (f64, u32)>,
}

impl<V: View> LikenessTo<'_, V> {
    /// Returns the similarity of a text in thousandths, and the bits between the fingerprints.
    fn of(&mut self, content: u64) -> Result<(f64, u32), store::Error> {
        if content == self.content {
            return Ok((1.0, 0));
        }
        if let Some(known) = self.known.get(&content) {
            return Ok(*known);
        }
        let missing = BadRow { kind: "content", detail: "a copy carries one that is missing" };
        let read = |content| -> Result<Content, store::Error> {
            Ok(self.snapshot.get(CONTENTS, content)?.ok_or_else(|| missing.clone())?)
        };
        let other = read(content)?;
        let text = match &mut self.text {
            Some(text) => text,
            none => none.insert(read(self.content)?),
        };
        let similarity = f64::from(text.sketch.similarity(&other.sketch));
        let likeness =
            ((similarity * 1000.0).round() / 1000.0, text.fingerprint.distance(other.fingerprint));
        self.known.insert(content, likeness);
        Ok(likeness)
    }
}
