//! Lists of documents, one row for each cluster.
//!
//! Most copies first: the table `ranking` has the documents of several copies in that order; those
//! of one copy follow, the newest first. Fewest copies first is the same list from its end.
//!
//! A request looks at a bounded number of rows, so that a filter that few documents pass costs no
//! more than one that all pass: its page is then short, and says where to go on.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde_json::{Value, json};

use super::documents::{ROWS_MAX, answer, in_words, media as media_of};
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, cursor};
use crate::base::clock::Timestamp;
use crate::corpus::documents::{CopiesPlace, Document, by_copies};
use crate::corpus::export;
use crate::corpus::tables::DOCUMENTS;
use crate::store::{Error, Snapshot, View as _};

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/documents", get documents "listDocuments"),
    route!("/v1/facets", get facets "facets"),
];

/// Documents that one request looks at.
const LOOKED_AT_MAX: usize = 5_000;

/// Documents whose media and languages are counted, the newest.
const COUNTED_MAX: usize = 100_000;

/// Media that are listed.
const MEDIA_MAX: usize = 500;

struct ListFilter {
    media: Option<String>,
    language: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl ListFilter {
    fn passes(&self, document: &Document) -> bool {
        let began = document.first_arrival;
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        self.since.is_none_or(|since| began >= since)
            && self.until.is_none_or(|until| began < until)
            && is(&self.language, &document.language)
            && (self.media.is_none()
                || is(&self.media, &media_of(&document.facts.site, &document.canonical)))
    }
}

/// `GET /v1/documents`.
async fn documents(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let known = ["sort", "limit", "cursor", "media", "language", "since", "until"];
    let params = Params::parse(uri.query(), &known)?;
    let sort = params.word("sort", &["newest", "oldest", "copies", "fewest"])?;
    let limit = params.number("limit", 50, ROWS_MAX)?;
    let text = |name| params.text(name).map(str::to_owned);
    let filter = ListFilter {
        media: text("media"),
        language: text("language"),
        since: params.time("since")?,
        until: params.time("until")?,
    };
    let list = format!(
        "{sort} {:?} {:?} {:?} {:?}",
        filter.media, filter.language, filter.since, filter.until
    );
    let after = match params.text("cursor") {
        Some(text) => Some(cursor::split(&cursor::read(&list, text)?)?),
        None => None,
    };
    let told = service.read(move |service, snapshot| {
        let mut page = ListPage { rows: Vec::new(), limit, looked_at: 0, filter, last: None };
        let complete = match sort {
            "copies" => most_copies(service, snapshot, after, &mut page)?,
            "fewest" => fewest_copies(service, snapshot, after, &mut page)?,
            "oldest" => {
                let from = after.map_or(0, |(_, number)| number.saturating_add(1));
                let rows = snapshot.range(DOCUMENTS, from..)?;
                rows_of(service, snapshot, rows.map(|row| Ok((0, row?.key()?))), &mut page)?
            }
            _ => {
                let below = after.map_or(u64::MAX, |(_, number)| number);
                let rows = snapshot.range(DOCUMENTS, ..below)?.rev();
                rows_of(service, snapshot, rows.map(|row| Ok((0, row?.key()?))), &mut page)?
            }
        };
        let place = page.last.filter(|_| !complete);
        let next = place.map(|(a, b)| cursor::write(&list, &cursor::pair(a, b)));
        Ok(answer(&json!({ "rows": page.rows, "next": next })))
    });
    told.await
}

/// `GET /v1/facets`: what a list can be filtered by.
async fn facets(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let told = service.read(move |service, snapshot| {
        let (mut media, mut languages) = (FacetCounts::new(), FacetCounts::new());
        let now = service.clock.now();
        let mut complete = true;
        for (seen, row) in snapshot.range(DOCUMENTS, 0..)?.rev().enumerate() {
            if seen == COUNTED_MAX {
                complete = false;
                break;
            }
            let row = row?;
            let (number, mut document) = (row.key()?, row.row()?);
            if export::show(snapshot, number, &mut document, &service.honour, now)?.is_ok() {
                let name = media_of(&document.facts.site, &document.canonical);
                *media.entry(name).or_default() += 1;
                *languages.entry(document.language).or_default() += 1;
            }
        }
        complete &= media.len() <= MEDIA_MAX;
        Ok(answer(&json!({
            "media": most(media, "media"),
            "languages": most(languages, "language"),
            "complete": complete,
        })))
    });
    told.await
}

/// Names with the number of their documents.
type FacetCounts = HashMap<String, u64>;

/// Those of most documents first; what has no name cannot be asked for.
fn most(counts: FacetCounts, kind: &str) -> Vec<Value> {
    let mut counts: Vec<_> = counts.into_iter().filter(|(name, _)| !name.is_empty()).collect();
    counts.sort_by(|(one, many), (other, more)| more.cmp(many).then_with(|| one.cmp(other)));
    counts.truncate(MEDIA_MAX);
    counts.into_iter().map(|(name, count)| json!({ kind: name, "documents": count })).collect()
}

struct ListPage {
    rows: Vec<Value>,
    limit: usize,
    looked_at: usize,
    filter: ListFilter,
    /// The last document that was looked at; its copies are 0 where they do not matter.
    last: Option<CopiesPlace>,
}

fn most_copies(
    service: &Service,
    snapshot: &Snapshot,
    after: Option<CopiesPlace>,
    page: &mut ListPage,
) -> Result<bool, Problem> {
    if after.is_none_or(|(copies, _)| copies > 1)
        && !rows_of(service, snapshot, by_copies(snapshot, None, after)?.rev(), page)?
    {
        return Ok(false);
    }
    let below = after.filter(|(copies, _)| *copies <= 1).map_or(u64::MAX, |(_, number)| number);
    let rows = snapshot.range(DOCUMENTS, ..below)?.rev().map(|row| Ok((1, row?.key()?)));
    rows_of(service, snapshot, rows, page)
}

fn fewest_copies(
    service: &Service,
    snapshot: &Snapshot,
    after: Option<CopiesPlace>,
    page: &mut ListPage,
) -> Result<bool, Problem> {
    let several = after.filter(|(copies, _)| *copies > 1);
    if several.is_none() {
        let from = after.map_or(0, |(_, number)| number.saturating_add(1));
        let rows = snapshot.range(DOCUMENTS, from..)?.map(|row| Ok((1, row?.key()?)));
        if !rows_of(service, snapshot, rows, page)? {
            return Ok(false);
        }
    }
    rows_of(service, snapshot, by_copies(snapshot, several, None)?, page)
}

/// Takes rows while the page has room. Returns whether these were all.
fn rows_of(
    service: &Service,
    snapshot: &Snapshot,
    places: impl Iterator<Item = Result<CopiesPlace, Error>>,
    page: &mut ListPage,
) -> Result<bool, Problem> {
    let now = service.clock.now();
    for place in places {
        if page.rows.len() == page.limit || page.looked_at == LOOKED_AT_MAX {
            return Ok(false);
        }
        let (copies, number) = place?;
        page.looked_at += 1;
        page.last = Some((copies, number));
        let Some(mut document) = snapshot.get(DOCUMENTS, number)? else { continue };
        // Documents of several copies stood before those of one.
        if (copies == 1 && document.copies > 1) || !page.filter.passes(&document) {
            continue;
        }
        if export::show(snapshot, number, &mut document, &service.honour, now)?.is_ok() {
            page.rows.push(in_words(&document));
        }
    }
    Ok(true)
}
