//! The documents of one state of a store, in their order, as lines of an export.

use std::borrow::Cow;
use std::sync::Arc;

use super::field::{Field, Needs, Subject, WITHHELD};
use super::rows::{Allowed, allowed, dropped, stand_for};
use super::skipped::Skipped;
use super::source::{Source, StoredDocument};
use super::tally::Tally;
use super::value::{Columns, Record};
use super::{Error, ExportPlan, Unsettled};
use crate::base::clock::Timestamp;
use crate::corpus::clusters::{self, Part};
use crate::corpus::documents::{Copy, Document, Keep, read_body};
use crate::corpus::tables::{DOCUMENTS, PAGES};
use crate::store::{self, View};
use crate::text::quality::{Filters, Outcome};

/// A list of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// The documents.
    Documents,
    /// The copies that were dropped.
    Duplicates,
    /// The documents that were left out.
    Withheld,
}

impl List {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Documents, Self::Duplicates, Self::Withheld];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Documents => "documents",
            Self::Duplicates => "duplicates",
            Self::Withheld => "withheld",
        }
    }

    pub(super) fn columns(self, plan: &ExportPlan) -> Columns {
        match self {
            Self::Documents => plan.fields.columns().clone(),
            Self::Duplicates => Arc::from(super::field::DROPPED),
            Self::Withheld => Arc::from(WITHHELD),
        }
    }
}

/// Takes the lines of an export, whoever gives them.
pub(super) trait Sink {
    /// Takes a line of a list.
    fn take(&mut self, list: List, record: Record) -> Result<(), Error>;

    /// All lines of the document of this number have come, and of all before it. May take the
    /// counts since it took them last.
    fn pause(&mut self, after: u64, tally: &mut Tally) -> Result<(), Error>;
}

/// A document as it is shown.
pub(super) struct ShownDocument {
    pub document: Document,
    /// The copy that is shown.
    pub copy: Option<Copy>,
    /// Its text must stay hidden.
    pub hidden: bool,
    /// What filters leave of its text, if they change it.
    pub text: Option<String>,
    /// Pieces of personal data that were masked in it.
    pub masked: u64,
}

/// What is shown of a document, or of a part of it.
pub(super) enum Shown {
    /// The document.
    Document(Box<ShownDocument>),
    /// Nothing, for this reason.
    Withheld { document: Box<Document>, reason: &'static str },
    /// Nothing: a filter of texts keeps it out, for this reason.
    Unfit { document: Box<Document>, reason: &'static str },
    /// Nothing: the expression does not take it.
    Filtered,
}

/// A walk over the documents of a store.
pub(super) struct Walk<'a> {
    source: &'a dyn Source,
    pub plan: &'a ExportPlan,
    pub now: Timestamp,
    needs: Needs,
    /// Filters of texts, if any is on.
    filters: Option<Filters>,
    /// Fields that were not kept of every page.
    kept: Vec<&'static Field>,
    pub tally: Tally,
}

impl<'a> Walk<'a> {
    /// # Errors
    ///
    /// A field that was kept of no page.
    pub(super) fn new(
        source: &'a dyn Source,
        plan: &'a ExportPlan,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let kept: Vec<&'static Field> =
            plan.fields.iter().filter(|field| field.kept_as().is_some()).collect();
        let filter = plan.filter.iter().flat_map(|filter| &filter.fields).copied();
        let asked = filter.chain(plan.fields.iter().filter(|_| plan.fields.are_named));
        let mut kept_as: Vec<(Keep, &'static Field)> = Vec::new();
        kept_as.extend(asked.filter_map(|field| Some((field.kept_as()?, field))));
        match source.beside() {
            Some(snapshot) if snapshot.len(DOCUMENTS)? == 0 => kept_as.clear(),
            Some(snapshot) => {
                for entry in snapshot.rows(PAGES)? {
                    if kept_as.is_empty() {
                        break;
                    }
                    let page = entry?.row().map_err(store::Error::from)?;
                    kept_as.retain(|(keep, _)| !page.has(*keep));
                }
            }
            None => {}
        }
        if let Some((_, field)) = kept_as.first() {
            return Err(Error::NotKept(field.column.name));
        }
        let filters = Some(Filters::new(plan.filters.clone())?).filter(Filters::is_on);
        let drops_lines = filters.as_ref().is_some_and(Filters::drops_lines);
        if drops_lines && plan.fields.iter().any(|field| field.column.name == "markdown") {
            return Err(Error::MarkdownLines);
        }
        let needs = Needs::of(plan.fields.iter());
        Ok(Self { source, plan, now, needs, filters, kept, tally: Tally::default() })
    }

    /// Gives all lines to `sink`, those of the documents behind `after`.
    pub(super) fn run(&mut self, after: Option<u64>, sink: &mut dyn Sink) -> Result<(), Error> {
        let source = self.source;
        source.each(after, self.plan.part, &mut |stored| {
            let (view, number) = (stored.view, stored.number);
            self.tally.newest = self.tally.newest.max(Some(stored.document.last_arrival.0));
            for part in self.parts(stored)? {
                self.part(&view, part, sink)?;
            }
            sink.pause(number, &mut self.tally)
        })?;
        let Some(snapshot) = source.beside() else { return Ok(()) };
        let mut skipped = Skipped::default();
        for url in Skipped::urls(snapshot)? {
            if let Some(record) = skipped.one(self, snapshot, url?)? {
                self.tally.duplicates += 1;
                self.tally.skipped += 1;
                sink.take(List::Duplicates, record)?;
            }
        }
        Ok(())
    }

    /// Takes apart what may be taken apart of a document.
    pub(super) fn parts(&self, stored: StoredDocument<'_>) -> Result<Vec<Part>, Error> {
        let StoredDocument { view, number, document, settled } = stored;
        let settled = match self.plan.unsettled {
            Unsettled::Apart => settled,
            Unsettled::Trusted => u64::MAX,
        };
        Ok(clusters::parts(&view, number, document, settled)?)
    }

    /// Tells what is shown of a part.
    pub(super) fn shown(&self, view: &impl View, part: &Part) -> Result<Shown, Error> {
        let mut document = part.document.clone();
        let found = allowed(&document, &part.copies, &self.plan.config.honour, self.now);
        let hidden = match found {
            Allowed::Canonical => Ok(false),
            Allowed::Nothing(reason) => Err(reason),
            Allowed::Copy { address, copy, hidden } => {
                stand_for(&mut document, address, copy);
                Ok(hidden)
            }
        };
        let copy = part.copies.iter().find(|(address, _)| *address == document.canonical);
        let copy = copy.map(|(_, copy)| copy.clone());
        if let Some(filter) = &self.plan.filter {
            let mut subject = Subject::read(view, &document, copy.as_ref(), filter.needs)?;
            subject.unsettled_with = part.unsettled_with;
            if !filter.takes(&subject) {
                return Ok(Shown::Filtered);
            }
        }
        let hidden = match hidden {
            Ok(hidden) => hidden,
            Err(reason) => return Ok(Shown::Withheld { document: Box::new(document), reason }),
        };
        let (mut text, mut masked) = (None, 0);
        if let Some(filters) = &self.filters {
            let whole = read_body(view, document.content)?.unwrap_or_default();
            match filters.ask(&whole) {
                Outcome::Filtered(reason) => {
                    let (document, reason) = (Box::new(document), reason.as_str());
                    return Ok(Shown::Unfit { document, reason });
                }
                Outcome::Kept(kept) => {
                    masked = kept.masked;
                    text = if let Cow::Owned(text) = kept.text { Some(text) } else { None };
                }
            }
        }
        Ok(Shown::Document(Box::new(ShownDocument { document, copy, hidden, text, masked })))
    }

    /// Lists a document that is not shown.
    fn left_out(document: Document, reason: String, sink: &mut dyn Sink) -> Result<(), Error> {
        let values = vec![document.id.to_string().into(), document.canonical.into(), reason.into()];
        sink.take(List::Withheld, Record { columns: Arc::from(WITHHELD), values })
    }

    fn part(&mut self, view: &impl View, part: Part, sink: &mut dyn Sink) -> Result<(), Error> {
        let shown = self.shown(view, &part)?;
        let ShownDocument { document, copy, hidden, text, masked } = match shown {
            Shown::Filtered => {
                self.tally.filtered += 1;
                return Ok(());
            }
            Shown::Withheld { document, reason } => {
                self.tally.withhold(reason);
                return Self::left_out(*document, reason.to_owned(), sink);
            }
            Shown::Unfit { document, reason } => {
                self.tally.filter(reason);
                return Self::left_out(*document, format!("filter:{reason}"), sink);
            }
            Shown::Document(shown) => *shown,
        };
        let mut subject = Subject::read(view, &document, copy.as_ref(), self.needs)?;
        subject.unsettled_with = part.unsettled_with;
        if let Some(filters) = &self.filters {
            subject.filter(text, filters);
            self.tally.masked += masked;
        }
        if hidden {
            subject.withhold("noarchive");
            self.tally.withhold("noarchive");
        }
        for field in &self.kept {
            if field.is_missing(&subject) {
                self.tally.miss(field.column.name);
            }
        }
        self.tally.document(&subject);
        sink.take(List::Documents, self.plan.fields.record(&subject))?;
        tracing::trace!(url = document.canonical, "exported");
        for lost in dropped(view, &document, part.copies)? {
            self.tally.duplicates += 1;
            sink.take(List::Duplicates, lost.record())?;
        }
        Ok(())
    }
}
