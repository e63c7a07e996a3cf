//! Documents that come as they are, as another store had them: nothing is judged, and each keeps
//! its identifier, its copies, its canonical copy and its history.

use std::collections::{BTreeSet, HashMap};
use std::thread::sleep;
use std::time::Duration;

use crate::cluster::{Posting, Settled, Version, Write};
use crate::corpus::documents::{Content, Copy, Document, StoredBody, WholeContent, WholeDocument};
use crate::store::{self, BadRow, Name, Row as _};

use super::commit::COPIES_COUNTED;
use super::rows::{PartRow, packed, record_of, sort};
use super::{Error, SharedCorpus};

/// Times that documents are brought while they come too late, or others were announced.
const TRIES_MAX: u32 = 100;

/// Wait before they are brought again.
const WAIT: Duration = Duration::from_millis(20);

/// A document on its way.
struct Coming {
    number: u64,
    /// What the cluster has of it.
    row: Vec<u8>,
    postings: BTreeSet<Posting>,
    /// It waits for a second look.
    is_due: bool,
    copies: u64,
}

impl SharedCorpus {
    /// Stores documents as they are. None of them may be there.
    ///
    /// # Errors
    ///
    /// Some of them may be stored: look which are there before the others are brought again.
    pub fn bring(&self, all: &[WholeDocument]) -> Result<(), Error> {
        let mut left: Vec<&WholeDocument> = all.iter().collect();
        for _ in 0..TRIES_MAX {
            let before = left.len();
            left = self.bring_once(left)?;
            if left.len() == before {
                let mut pace = self.pace.get();
                pace.was_late(1);
                self.pace.set(pace);
            }
            self.send_counts()?;
            if left.is_empty() {
                return Ok(());
            }
            sleep(WAIT);
        }
        Err(Error::Busy(left.first().map(|one| one.document.canonical.clone())))
    }

    /// Announces documents, has them found, and stores them: in this order, as articles come.
    /// Returns those that came too late.
    fn bring_once<'w>(&self, all: Vec<&'w WholeDocument>) -> Result<Vec<&'w WholeDocument>, Error> {
        let mut coming = Vec::new();
        for whole in &all {
            coming.push(self.coming(whole)?);
        }
        self.texts.borrow_mut().sync()?;
        let numbers: Vec<u64> = coming.iter().map(|one| one.number).collect();
        let mut engine = self.engine.borrow_mut();
        // A number may turn out to be that of somebody else.
        let mut free = engine.announce(&numbers, self.pace.get().span)?.into_iter();
        let mut taken = Vec::new();
        let (coming, all): (Vec<Coming>, Vec<&WholeDocument>) = coming
            .into_iter()
            .zip(all)
            .filter(|(_, whole)| {
                let is_free = free.next() == Some(true);
                taken.extend((!is_free).then_some(*whole));
                is_free
            })
            .unzip();
        let postings = coming.iter().flat_map(|one| one.postings.iter().copied());
        engine.post(&self.buckets, &postings.collect::<Vec<_>>())?;
        tracing::trace!("posted");
        let write = |one: &Coming| Write {
            document: one.number,
            version: Version::NONE,
            row: one.row.clone(),
        };
        let mut settled = engine.settle(coming.iter().map(write).collect())?;
        let marked = |settled: &[Settled]| -> Vec<usize> {
            let of = settled.iter().enumerate();
            of.filter(|(_, one)| **one == Settled::Marked).map(|(at, _)| at).collect()
        };
        // Whoever marked them has seen them: there is nothing to look for again.
        for _ in 0..TRIES_MAX {
            let again = marked(&settled);
            if again.is_empty() {
                break;
            }
            let numbers: Vec<u64> = again.iter().map(|at| coming[*at].number).collect();
            engine.renew(&numbers, self.pace.get().span)?;
            let writes = again.iter().map(|at| write(&coming[*at])).collect();
            for (at, one) in again.into_iter().zip(engine.settle(writes)?) {
                settled[at] = one;
            }
        }
        tracing::trace!("written");
        let of = || coming.iter().enumerate();
        drop(engine);
        let late = of().filter(|(at, _)| settled[*at] != Settled::Live);
        let late: Vec<_> = late.map(|(_, one)| (one.number, &one.postings)).collect();
        self.take_back(&late)?;
        for (at, settled) in settled.iter_mut().enumerate() {
            if *settled != Settled::Live && self.find(all[at].document.id)?.is_some() {
                // It was live, and somebody has changed or joined it before that was heard of.
                *settled = Settled::Live;
            }
        }
        let is_in = |at: usize| settled[at] == Settled::Live;
        let due: Vec<u64> =
            of().filter(|(at, one)| is_in(*at) && one.is_due).map(|(_, one)| one.number).collect();
        self.engine.borrow_mut().note_due(&due)?;
        let came = of().filter(|(at, _)| is_in(*at)).map(|(_, one)| one.copies).sum();
        self.add_counts(HashMap::from([(COPIES_COUNTED[0].to_owned(), came)]));
        let left = all.into_iter().enumerate().filter(|(at, _)| !is_in(*at));
        Ok(left.map(|(_, whole)| whole).chain(taken).collect())
    }

    /// Gives a document and its texts numbers of this cluster, and writes the texts.
    fn coming(&self, whole: &WholeDocument) -> Result<Coming, Error> {
        let mut numbers = HashMap::new();
        let root = whole.document.root;
        let number = self.next_number()?;
        for WholeContent { number: was, .. } in &whole.contents {
            // The root of a document has its number: candidates are looked for by it.
            let new = if *was == root { number } else { self.next_number()? };
            numbers.insert(*was, new);
        }
        let mut rows = self.rows_of(whole, number, &numbers)?;
        sort(&mut rows);
        let postings = self.postings_of(number, &rows).map_err(store::Error::from)?;
        let is_due = whole.is_reviewed || whole.waits;
        let row = packed(&self.texts.borrow_mut().append_record(record_of(&rows))?);
        let copies = whole.copies.len() as u64;
        Ok(Coming { number, row, postings, is_due, copies })
    }

    fn next_number(&self) -> Result<u64, Error> {
        Ok(self.numbers.borrow_mut().next(&mut self.engine.borrow_mut())?)
    }

    /// All rows of a document, in the order in which they are stored.
    fn rows_of(
        &self,
        whole: &WholeDocument,
        number: u64,
        numbers: &HashMap<u64, u64>,
    ) -> Result<Vec<PartRow>, store::Error> {
        let missing = BadRow { kind: "document", detail: "it names a text that it does not have" };
        let new = |was: &u64| numbers.get(was).copied().ok_or_else(|| missing.clone());
        let part =
            |table, key: &[u8], row: &[u8]| PartRow { table, key: key.to_vec(), row: row.to_vec() };
        let document = Document {
            root: new(&whole.document.root)?,
            content: new(&whole.document.content)?,
            // What leads to it is looked for in one list.
            merged: whole.other_ids(),
            joined: Vec::new(),
            ..whole.document.clone()
        };
        let mut rows = vec![part(Name::Documents, &[], &document.encode())];
        for (url, copy) in &whole.copies {
            let copy = Copy { content: new(&copy.content)?, ..copy.clone() };
            rows.push(part(Name::Copies, url.as_bytes(), &copy.encode()));
        }
        for (at, change) in (0_u64..).zip(&whole.history) {
            rows.push(part(Name::History, &at.to_be_bytes(), &change.encode()));
        }
        if whole.is_reviewed {
            rows.push(part(Name::Reviews, &[], &[]));
        }
        let mut contents: Vec<(u64, &WholeContent)> = Vec::new();
        for content in &whole.contents {
            contents.push((new(&content.number)?, content));
        }
        contents.sort_unstable_by_key(|(number, _)| *number);
        for (own, WholeContent { content, text, unsure, .. }) in contents {
            let key = own.to_be_bytes();
            let content = Content { document: number, ..content.clone() };
            rows.push(part(Name::Contents, &key, &content.encode()));
            if let Some(url) = unsure {
                rows.push(part(Name::Unsure, &key, url.as_bytes()));
            }
            let place = self.texts.borrow_mut().append(&StoredBody::plain(text).encode())?;
            rows.push(part(Name::Bodies, &key, &place.encode()));
        }
        Ok(rows)
    }
}
