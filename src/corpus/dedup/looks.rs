//! Second looks at matches that were less than certain, in a store, while more articles come.
//!
//! What two pages have in common may since have turned out to be boilerplate of their site, and a
//! better place may have come. No match waits for its second look longer than [`PAGES_MAX`] further
//! texts or [`TIME_MAX`], whichever comes first, as long as anything writes to the store.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::base::clock::Timestamp;
use crate::corpus::clusters::{self, Article, Joined, Match, Place, Unsure, newest, settled};
use crate::corpus::documents::{Copy, Document, copies_of};
use crate::corpus::index::Index;
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS, REVIEWS, UNSURE};
use crate::frontier::Address;
use crate::neardup::{Config, Question};
use crate::store::{Batch, Error, META, Transaction, Update as _, View as _};
use crate::text::features::{ArticleKeys, site_of};

use super::lookup::Keep;
use super::stored::{
    Judged, judge_near, judge_stored, keys_at, loose_contents, must_read, page_is_allowed,
};

/// Texts that come before a match gets its second look, at most.
pub const PAGES_MAX: u64 = 1_000;

/// Texts of which the matches are left for the next time: more will be known then.
const PAGES_LEFT: u64 = 500;

/// Time until a match gets its second look, at most.
pub const TIME_MAX: Duration = Duration::from_mins(1);

/// Documents whose canonical copy has changed that are looked at in one step.
const REVIEWS_MAX: usize = 256;

/// Copies of a tree among which loose leaves are looked for.
const LEAVES_MAX: usize = 256;

/// Copies of the smaller of two documents that are asked before both become one.
const MERGED_MAX: usize = 32;

/// What second looks have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Texts that went to another document.
    pub moved: u64,
    /// Documents that became part of another one.
    pub merged: u64,
}

/// Which matches get a look.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// Those of texts after this one.
    pub after: u64,
    /// Up to this one.
    pub until: u64,
    /// Trees on which leaves are loose are taken apart.
    pub apart: bool,
}

/// Places articles, and looks again at those that are there: in a store, unless it says otherwise.
pub struct Placer<'a, T = Batch, I = Mutex<Index>> {
    /// All tables.
    pub batch: &'a mut T,
    /// The index.
    pub index: &'a I,
    /// The rule.
    pub config: &'a Config,
    /// When it is.
    pub now: Timestamp,
}

/// When looks are due.
#[derive(Debug)]
pub struct Looks {
    last: Instant,
}

impl Default for Looks {
    fn default() -> Self {
        Self { last: Instant::now() }
    }
}

impl Looks {
    /// Looks at the matches whose time has come. To be called before each commit; costs two
    /// look-ups if there is nothing to do.
    pub fn step(&mut self, placer: &mut Placer<'_>) -> Result<Looked, Error> {
        let late = self.last.elapsed() >= TIME_MAX;
        let looked = placer.look_due(late)?;
        if looked.is_some() {
            self.last = Instant::now();
        }
        Ok(looked.unwrap_or_default())
    }

    /// How long it may be until the next step.
    #[must_use]
    pub fn wait(&self) -> Duration {
        TIME_MAX.saturating_sub(self.last.elapsed())
    }
}

impl<T: Transaction, I: Keep<T>> Placer<'_, T, I> {
    /// Looks at the matches whose time has come by how much has come since; with `late`, at all.
    /// None if there is nothing to do.
    pub fn look_due(&mut self, late: bool) -> Result<Option<Looked>, Error> {
        let (settled, newest) = (settled(self.batch)?, newest(self.batch)?);
        if newest < settled + PAGES_MAX && !late {
            return Ok(None);
        }
        let until = if late { newest } else { newest - PAGES_LEFT };
        let mut looked = self.look(Range { after: settled, until, apart: true }, || true)?.0;
        looked.merged += self.review()?;
        Ok(Some(looked))
    }

    /// Looks at matches, in the order of their texts, as long as `goes_on` says so; at least at
    /// one. Returns what has changed, and up to which text it came.
    pub fn look(
        &mut self,
        range: Range,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<(Looked, u64), Error> {
        let mut unsure = clusters::unsure(self.batch, range.after)?;
        unsure.retain(|one| one.content <= range.until);
        let asked = unsure.len();
        let loose = if range.apart { self.loose(&mut unsure)? } else { BTreeSet::new() };
        let mut looked = Looked::default();
        let mut left = BTreeSet::new();
        let mut at = range.until;
        for (place, one) in unsure.iter().enumerate() {
            let content = one.content;
            looked.merged += self.look_at(one, Why::due(loose.contains(&content)), &mut left)?;
            if place + 1 < unsure.len() && !goes_on() {
                at = if place + 1 < asked { content } else { range.until };
                break;
            }
        }
        looked.moved += left.len() as u64;
        self.recount(left)?;
        if at > settled(self.batch)? {
            self.batch.put(META, "settled", &at.to_be_bytes().to_vec())?;
        }
        Ok((looked, at))
    }

    /// Finds the place of an article among the stored ones.
    pub fn judge(&self, question: &Question<'_>) -> Result<Judged, Error> {
        judge_stored(self.batch, self.index, question, self.config)
    }

    /// Does what follows when an article has been stored where it belongs: documents become one,
    /// pages that cannot stay beside it go. Returns its document.
    pub(super) fn follow(
        &mut self,
        article: &Article,
        joined: &Joined,
        judged: &Judged,
    ) -> Result<United, Error> {
        if let Some(content) = joined.content
            && judged.refused
        {
            self.batch.put(UNSURE, content, &article.address)?;
        }
        for document in &judged.perhaps {
            // A page that is alone may have come before what it is a copy of.
            let row = self.batch.get(DOCUMENTS, *document)?;
            if let Some(row) = row.filter(|row| row.copies == 1) {
                self.batch.put(UNSURE, row.root, &row.canonical)?;
            }
        }
        let mut left = BTreeSet::new();
        for content in &judged.evicts {
            let Some(address) = self.carrier_on(*content, &article.address)? else { continue };
            let one = Unsure { content: *content, address };
            self.look_at(&one, Why::InTheWay, &mut left)?;
        }
        self.recount(left)?;
        self.unite(self.document_of(joined, judged)?, &judged.also)
    }

    /// The document of an article: that in which it was stored may have become part of another one
    /// when pages had to leave it.
    fn document_of(&self, joined: &Joined, judged: &Judged) -> Result<u64, Error> {
        let content = match (joined.content, &judged.place) {
            (Some(content), _) => content,
            (None, Place::Tree(Match { same: Some(content), .. })) => *content,
            (None, _) => return Ok(joined.document),
        };
        Ok(must_read(self.batch, content)?.document)
    }

    /// Looks at one match; notes its text and the document that it leaves. Returns how many
    /// documents were merged.
    fn look_at(
        &mut self,
        one: &Unsure,
        why: Why,
        left: &mut BTreeSet<(u64, u64)>,
    ) -> Result<u64, Error> {
        let Some(carried) = self.carried(one)? else {
            self.batch.remove(UNSURE, one.content)?;
            return Ok(0);
        };
        let question = Question {
            content: Some(one.content),
            wary: (why == Why::Loose).then_some(carried.document),
            leaves: (why == Why::InTheWay).then_some(carried.document),
            ..Question::new(&carried.keys, &carried.address)
        };
        let judged = if why == Why::InTheWay {
            // Very many may resemble it: its very text is found whatever their number.
            self.judge(&question)?
        } else {
            judge_near(self.batch, self.index, &question, self.config)?
        };
        // What is in the way of another text may be in its turn: that goes on at the next look.
        let mut place = if judged.evicts.is_empty() { judged.place } else { Place::New };
        let fits = self.may_move(one.content, carried.document, &place)?;
        if !fits && why == Why::InTheWay {
            place = Place::New;
        }
        let moved = if fits || why == Why::InTheWay {
            clusters::replace(self.batch, one.content, &place, self.now)?
        } else {
            None
        };
        let mut document = carried.document;
        if let Some(moved) = moved {
            tracing::trace!(content = one.content, document = moved.document, "moved");
            left.insert((one.content, moved.from));
            document = moved.document;
            for address in moved.addresses {
                Address::set_document(self.batch, &address, document)?;
            }
        }
        let mut also = judged.also;
        if let Place::Tree(matched) = place
            && matched.document != document
        {
            // It is the root of a document that another one would take.
            also.push(matched.document);
        }
        Ok(self.unite(document, &also)?.merged)
    }

    /// Counts the documents anew that texts have left.
    fn recount(&mut self, left: BTreeSet<(u64, u64)>) -> Result<(), Error> {
        let documents: BTreeSet<u64> = left.into_iter().map(|(_, document)| document).collect();
        for document in documents {
            if self.batch.has(DOCUMENTS, document)? {
                clusters::recount(self.batch, document, self.now)?;
            }
        }
        Ok(())
    }

    /// Documents whose canonical copy is another one now are compared with others by it.
    pub fn review(&mut self) -> Result<u64, Error> {
        let rows = self.batch.rows(REVIEWS)?.take(REVIEWS_MAX);
        let documents = rows.map(|entry| Ok(entry?.key()?)).collect::<Result<Vec<u64>, Error>>()?;
        let mut merged = 0;
        for number in documents {
            self.batch.remove(REVIEWS, number)?;
            let Some(document) = self.batch.get(DOCUMENTS, number)? else { continue };
            let one = Unsure { content: document.content, address: document.canonical };
            let Some(carried) = self.carried(&one)? else { continue };
            let question = Question {
                content: Some(one.content),
                ..Question::new(&carried.keys, &carried.address)
            };
            let judged = judge_near(self.batch, self.index, &question, self.config)?;
            merged += self.unite(number, &judged.also)?.merged;
        }
        Ok(merged)
    }

    /// Makes documents one of which a text is surely a copy, as far as they have no different pages
    /// of one site.
    pub fn unite(&mut self, mut document: u64, also: &[u64]) -> Result<United, Error> {
        let mut merged = 0;
        for other in also.iter().copied() {
            let rows = (self.batch.get(DOCUMENTS, document)?, self.batch.get(DOCUMENTS, other)?);
            let (Some(row), Some(other_row)) = rows else { continue };
            if document == other {
                continue;
            }
            let rank = |row: &Document, number| (row.copies, Reverse((row.first_arrival, number)));
            let takes = rank(&row, document) >= rank(&other_row, other);
            let (large, small) = if takes { (document, other) } else { (other, document) };
            if !self.may_merge(small, large)? {
                continue;
            }
            for address in clusters::merge(self.batch, small, large, self.now)? {
                Address::set_document(self.batch, &address, large)?;
            }
            tracing::trace!(from = small, document = large, "merged");
            document = large;
            merged += 1;
        }
        Ok(United { document, merged })
    }

    /// Tells whether two documents may be one for all that is known of the sites of their pages.
    fn may_merge(&self, small: u64, large: u64) -> Result<bool, Error> {
        self.allow(copies_of(self.batch, small)?.iter(), large)
    }

    /// Tells whether all pages of a text of a document may be pages of another one for all that is
    /// known of their sites.
    fn may_move(&self, content: u64, document: u64, place: &Place) -> Result<bool, Error> {
        let Place::Tree(Match { document: to, .. }) = place else { return Ok(true) };
        if *to == document || must_read(self.batch, content)?.copies < 2 {
            return Ok(true);
        }
        let copies = copies_of(self.batch, document)?;
        self.allow(copies.iter().filter(|(_, copy)| copy.content == content), *to)
    }

    fn allow<'c>(
        &self,
        pages: impl Iterator<Item = &'c (String, Copy)>,
        document: u64,
    ) -> Result<bool, Error> {
        for (address, copy) in pages.take(MERGED_MAX) {
            let keys = keys_at(must_read(self.batch, copy.content)?, address, copy);
            let page = Question { content: Some(copy.content), ..Question::new(&keys, address) };
            if !page_is_allowed(self.batch, &page, document, self.config)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds a page that carries a content, on the site of a URL if one does.
    fn carrier_on(&self, content: u64, address: &str) -> Result<Option<String>, Error> {
        let site = site_of(address);
        // The article may have been the last to carry it.
        let Some(row) = self.batch.get(CONTENTS, content)? else { return Ok(None) };
        let mut copies = copies_of(self.batch, row.document)?;
        copies.retain(|(_, copy)| copy.content == content);
        let on_site = copies.iter().position(|(other, _)| site_of(other) == site);
        Ok(copies.into_iter().nth(on_site.unwrap_or(0)).map(|(address, _)| address))
    }

    /// Finds the loose leaves among some contents and the others that hang less than surely on the
    /// same trees, which are added behind them.
    fn loose(&self, unsure: &mut Vec<Unsure>) -> Result<BTreeSet<u64>, Error> {
        let mut documents = BTreeSet::new();
        for one in unsure.iter() {
            documents.extend(self.batch.get(CONTENTS, one.content)?.map(|c| c.document));
        }
        for document in documents {
            for entry in self.batch.under(COPIES, document)?.take(LEAVES_MAX) {
                let entry = entry?;
                let content = entry.row()?.content;
                if self.batch.has(UNSURE, content)? {
                    unsure.push(Unsure { content, address: entry.key()?.1.to_owned() });
                }
            }
        }
        let mut seen = BTreeSet::new();
        unsure.retain(|one| seen.insert(one.content));
        let contents: Vec<u64> = unsure.iter().map(|one| one.content).collect();
        let loose = loose_contents(self.batch, &contents)?;
        Ok(contents.into_iter().zip(loose).filter(|(_, loose)| *loose).map(|(c, _)| c).collect())
    }

    /// Finds a page that carries a content; none if none does any more.
    fn carried(&self, one: &Unsure) -> Result<Option<Carried>, Error> {
        let Some(content) = self.batch.get(CONTENTS, one.content)? else {
            return Ok(None);
        };
        let document = content.document;
        let copy = self.batch.get(COPIES, (document, &one.address))?;
        let found = match copy.filter(|copy| copy.content == one.content) {
            Some(copy) => Some((one.address.clone(), copy)),
            None => copies_of(self.batch, document)?
                .into_iter()
                .find(|(_, copy)| copy.content == one.content),
        };
        Ok(found.map(|(address, copy)| {
            let keys = keys_at(content, &address, &copy);
            Carried { document, address, keys }
        }))
    }
}

/// Why a text gets a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// More is known than when it came.
    Due,
    /// The same, and it hangs on its tree by boilerplate alone.
    Loose,
    /// It cannot stay beside a page that came.
    InTheWay,
}

impl Why {
    fn due(loose: bool) -> Self {
        if loose { Self::Loose } else { Self::Due }
    }
}

/// What became of documents that are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct United {
    /// The document that has all copies.
    pub document: u64,
    /// Documents that became part of another one.
    pub merged: u64,
}

/// A content at the URL of a page that carries it.
struct Carried {
    document: u64,
    address: String,
    keys: ArticleKeys,
}
