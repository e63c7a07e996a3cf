//! Documents as trees of height two (parent forest), and which copy of each is canonical.
//!
//! A tree has a root content and leaves; every content is in one tree. A new content that is
//! confirmed by a tree becomes its leaf. Where several trees would take it, the most alike does,
//! then the one with most copies, then the oldest, then the one with the smaller root fingerprint.
//!
//! Source: the text on near-duplicates of a public-opinion platform (双亲森林).

mod canonical;
pub mod equal;
mod leave;
mod moves;
mod unsettled;

use crate::base::clock::Timestamp;
use crate::corpus::documents::{
    CanonicalChange, Content, Copy, DocId, Document, Facts, note_arrival, note_change, write_body,
    write_document,
};
use crate::corpus::tables::{CONTENTS, COPIES, DOC_IDS, DOCUMENTS, REVIEWS, UNSURE};
use crate::neardup::Key;
use crate::store::{BadRow, Error, Transaction, Update as _, View};
use crate::text::features::ArticleKeys;
use crate::web::robots::meta::Terms;

use canonical::{elect, stand};

pub use canonical::{defers, rank, ranked};
pub use leave::{Left, change, leave, refresh};
pub use moves::{
    Ended, Moved, Unsure, end, expire, expire_some, merge, recount, replace, take_ids, unsure,
};
pub use unsettled::{Part, newest, parts, settled};

/// An article at one URL, ready to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Article {
    /// Its URL, or another name that is given to one copy only.
    pub address: String,
    /// Title.
    pub title: String,
    /// Main text.
    pub text: String,
    /// Language (ISO 639-1), or empty.
    pub language: String,
    /// What it says of itself.
    pub facts: Facts,
    /// Blocks that were left out of its text because its host repeats them.
    pub left_out: u32,
    /// Popularity that was given; without one it follows the links.
    pub score: Option<u64>,
    /// What its page allows to be done with the text.
    pub terms: Terms,
    /// URL that its page names as canonical; empty for none or its own.
    pub declared: String,
    /// Its keys.
    pub keys: ArticleKeys,
}

impl Article {
    /// Makes the row of the copy that carries it, at its place.
    fn copy(&self, content: u64, matched: Option<&Match>, links: u64, now: Timestamp) -> Copy {
        Copy {
            content,
            key: matched.map_or(Key::First, |matched| matched.key),
            distance: matched.map_or(0, |matched| matched.distance as u8),
            similarity: matched.map_or(1000, Match::thousandths),
            popularity: self.score.unwrap_or(links),
            scored: self.score.is_some(),
            title: self.title.clone(),
            language: self.language.clone(),
            facts: self.facts.clone(),
            terms: self.terms,
            left_out: self.left_out,
            arrival: now,
            declared: self.declared.clone(),
            shown: self.keys.standing.shown.clone(),
            doubtful: self.keys.standing.doubtful,
            quality: self.keys.standing.quality.map(u64::from),
        }
    }
}

/// An article as it comes.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The article.
    pub article: &'a Article,
    /// Distinct hosts that link to it: its popularity if it has no score.
    pub links: u64,
    /// When it comes.
    pub now: Timestamp,
}

/// Where an article belongs.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// A document of its own.
    New,
    /// A tree that has it already, or takes it as a leaf.
    Tree(Match),
}

/// How an article hangs on its tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// Number of the document.
    pub document: u64,
    /// The content that has the very same text, if the document has it.
    pub same: Option<u64>,
    /// By which key it was found.
    pub key: Key,
    /// Bits between the fingerprints.
    pub distance: u32,
    /// Estimated similarity of the texts, 0 to 1.
    pub similarity: f32,
    /// It needs no second look when more documents are known.
    pub sure: bool,
}

/// Counters of duplicates by the key that recognised them start so (`crawl`, `ingest`).
pub const DUPLICATES: &str = "duplicates.";

/// Counts an article that was judged, if it is a duplicate.
pub fn count_found(batch: &mut impl Transaction, place: &Place) -> Result<(), Error> {
    match place {
        Place::New => Ok(()),
        Place::Tree(matched) => batch.count(&format!("{DUPLICATES}{}", matched.key.as_str()), 1),
    }
}

impl Match {
    fn thousandths(&self) -> u16 {
        let thousandths = (self.similarity.clamp(0.0, 1.0) * 1000.0).round();
        #[expect(clippy::cast_sign_loss, reason = "clamped to zero and above")]
        let thousandths = thousandths as u16;
        thousandths
    }
}

/// What became of an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Number of its document.
    pub document: u64,
    /// Identifier of its document.
    pub id: DocId,
    /// It is the canonical copy from here on.
    pub canonical: bool,
    /// Number of its content, if that is new: its keys belong in the index.
    pub content: Option<u64>,
}

/// Stores `article` at its place, with all its keys, and elects the canonical copy anew.
///
/// `links` is the number of distinct hosts that link to it, its popularity if it has no score.
pub fn join(
    batch: &mut impl Transaction,
    article: &Article,
    place: &Place,
    links: u64,
    now: Timestamp,
) -> Result<Joined, Error> {
    let (document, content, matched) = match place {
        Place::New => {
            let document = batch.next_unique_number("next_document")?;
            (document, add_content(batch, article, document, None, now)?, None)
        }
        Place::Tree(matched) => {
            let content = if let Some(content) = matched.same {
                carry(batch, content)?
            } else {
                let root = must_read(batch, matched.document)?.root;
                let content = add_content(batch, article, matched.document, Some(root), now)?;
                if !matched.sure {
                    batch.put(UNSURE, content, &article.address)?;
                }
                content
            };
            (matched.document, content, Some(matched))
        }
    };
    let copy = article.copy(content, matched, links, now);
    batch.put(COPIES, (document, &article.address), &copy)?;
    if matched.is_none() {
        let id = free_id(batch, &article.address, &article.title, article.keys.text.hash)?;
        let first = Document::first(id, copy.content, &article.address, &copy);
        batch.put(DOC_IDS, first.id, &document)?;
        write_document(batch, document, &first)?;
        note_arrival(batch, document, true, now)?;
        return Ok(Joined { document, id: first.id, canonical: true, content: Some(content) });
    }
    note_arrival(batch, document, false, now)?;
    let mut row = must_read(batch, document)?;
    row.copies += 1;
    row.last_arrival = row.last_arrival.max(now);
    let was = row.canonical.clone();
    if row.gone.0 != 0 {
        // Its canonical copy is no more.
        row.gone = Timestamp(0);
        article.address.clone_into(&mut row.canonical);
    }
    let mut canonical = elect(batch, document, &mut row, &article.address, &copy)?;
    let held = batch.get(COPIES, (document, &was))?;
    note(batch, document, was, &row, now)?;
    write_document(batch, document, &row)?;
    if held.is_some_and(|held| held.declared == article.address) {
        // The copy that was canonical defers from here on: any other one may be better.
        recount(batch, document, now)?;
        canonical = must_read(batch, document)?.canonical == article.address;
    }
    let content = matched.is_some_and(|matched| matched.same.is_none()).then_some(content);
    Ok(Joined { document, id: row.id, canonical, content })
}

/// Copies before and after a URL that are its neighbours.
const NEIGHBOURS_MAX: usize = 3;

/// Returns the URLs of copies of a document that stand next to one in the order of URLs,
/// and its canonical copy: those that are most likely written alike.
pub fn neighbours(batch: &impl View, document: u64, address: &str) -> Result<Vec<String>, Error> {
    let before = batch.range(COPIES, (document, "")..(document, address))?.rev();
    let after = batch.range(COPIES, (document, address)..(document + 1, ""))?;
    let mut found = Vec::new();
    for entry in before.take(NEIGHBOURS_MAX).chain(after.take(NEIGHBOURS_MAX + 1)) {
        found.push(entry?.key()?.1.to_owned());
    }
    found.extend(batch.get(DOCUMENTS, document)?.map(|row| row.canonical));
    found.retain(|other| other != address);
    Ok(found)
}

/// Sets the popularity of the copy of `document` at `address` to `links`, unless it has a score,
/// and elects anew. Returns true if the copy became canonical by that.
pub fn set_links(
    batch: &mut impl Transaction,
    document: u64,
    address: &str,
    links: u64,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(copy) = batch.get(COPIES, (document, address))? else { return Ok(false) };
    if copy.scored || copy.popularity == links {
        return Ok(false);
    }
    let was = copy.popularity;
    let copy = Copy { popularity: links, ..copy };
    put_popularity(batch, CopyPlace { document, address }, was, &copy, now)
}

/// Gives the copy of `document` at `address` an explicit popularity, and elects anew. Returns true
/// if another copy is canonical by that.
pub fn set_score(
    batch: &mut impl Transaction,
    document: u64,
    address: &str,
    popularity: u64,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(copy) = batch.get(COPIES, (document, address))? else { return Ok(false) };
    if copy.scored && copy.popularity == popularity {
        return Ok(false);
    }
    let was = copy.popularity;
    let copy = Copy { popularity, scored: true, ..copy };
    put_popularity(batch, CopyPlace { document, address }, was, &copy, now)
}

/// Where a copy stands.
#[derive(Clone, Copy)]
struct CopyPlace<'a> {
    document: u64,
    address: &'a str,
}

/// Writes a copy that had the popularity `before`, and elects anew. Returns true if another one is
/// canonical by that.
fn put_popularity(
    batch: &mut impl Transaction,
    CopyPlace { document, address }: CopyPlace<'_>,
    before: u64,
    copy: &Copy,
    now: Timestamp,
) -> Result<bool, Error> {
    let mut row = must_read(batch, document)?;
    let was = row.canonical.clone();
    batch.put(COPIES, (document, address), copy)?;
    if was == address && copy.popularity < before {
        // Any other copy may be better.
        recount(batch, document, now)?;
        return Ok(must_read(batch, document)?.canonical != was);
    }
    elect(batch, document, &mut row, address, copy)?;
    note(batch, document, was.clone(), &row, now)?;
    write_document(batch, document, &row)?;
    Ok(row.canonical != was)
}

/// Notes that another copy than `was` is canonical, if that is so.
fn note(
    batch: &mut impl Transaction,
    document: u64,
    was: String,
    row: &Document,
    now: Timestamp,
) -> Result<(), Error> {
    if was != row.canonical {
        if row.content != row.root {
            batch.put(REVIEWS, document, &())?;
        }
        let change = CanonicalChange { time: now, from: was, to: row.canonical.clone() };
        note_change(batch, document, &change)?;
    }
    Ok(())
}

/// The identifier of a new document. A page may say again what it said when another document that
/// has followed it since was made.
fn free_id(view: &impl View, address: &str, title: &str, mut hash: u128) -> Result<DocId, Error> {
    loop {
        let id = DocId::of(address, title, hash);
        if !view.has(DOC_IDS, id)? {
            return Ok(id);
        }
        hash = hash.wrapping_add(1);
    }
}

fn add_content(
    batch: &mut impl Transaction,
    article: &Article,
    document: u64,
    root: Option<u64>,
    now: Timestamp,
) -> Result<u64, Error> {
    let number = batch.next_unique_number("next_content")?;
    let content = Content::first(document, &article.keys, now);
    batch.put(CONTENTS, number, &content)?;
    write_body(batch, number, &article.text, root)?;
    Ok(number)
}

/// Counts one more copy that carries `content`.
fn carry(batch: &mut impl Transaction, content: u64) -> Result<u64, Error> {
    let mut row = batch
        .get(CONTENTS, content)?
        .ok_or(BadRow { kind: "content", detail: "an exact hash names one that is missing" })?;
    row.copies += 1;
    batch.put(CONTENTS, content, &row)?;
    Ok(content)
}

fn must_read(batch: &impl View, document: u64) -> Result<Document, Error> {
    let missing = BadRow { kind: "document", detail: "a content names one that is missing" };
    Ok(batch.get(DOCUMENTS, document)?.ok_or(missing)?)
}
