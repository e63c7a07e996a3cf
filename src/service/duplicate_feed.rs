//! Duplicates, to be published: parts of a feed in the order in which they changed.
//!
//! Each answer is a feed of its own. Its last line tells where the next one goes on, also when
//! there is no more at the moment.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use xxhash_rust::xxh3::xxh3_64;

use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, cursor};
use crate::base::clock::Timestamp;
use crate::corpus::export::{Changes, FeedPlace, changes};
use crate::frontier::duplicate_feed::{Addresses, FeedWriter, Header};

pub(super) const ROUTES: &[Route] =
    &[route!("/v1/duplicate-feed", get duplicates "getDuplicateFeed")];

/// Duplicates of one answer at most.
const VERDICTS_MAX: usize = 10_000;

/// Name of the list in cursors.
const LIST: &str = "verdicts";

/// `GET /v1/duplicate-feed`.
async fn duplicates(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["after", "limit", "addresses"])?;
    let limit = params.number("limit", 1_000, VERDICTS_MAX)?;
    let addresses = match params.word("addresses", &["plain", "hashed"])? {
        "hashed" => Addresses::Hashed,
        _ => Addresses::Plain,
    };
    let from = params.text("after").map_or_else(|| Ok(FeedPlace::default()), read_place)?;
    let told = service.read(move |service, snapshot| {
        let now = service.clock.now();
        let part = changes(snapshot, &from, limit, &service.honour, now)?;
        let failed = |_| Problem::failed("the feed cannot be written");
        let write = |made| write(service, &part, addresses, made).map_err(failed);
        // The same duplicates are the same answer, whenever it is made.
        let tag = format!("W/\"{:016x}\"", xxh3_64(&write(Timestamp(0))?));
        Ok((write(now)?, tag))
    });
    let (body, tag) = told.await?;
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let kind = "application/x-ndjson".to_owned();
    Ok(([(header::CONTENT_TYPE, kind), (header::ETAG, tag)], body).into_response())
}

fn write(
    service: &Service,
    part: &Changes,
    addresses: Addresses,
    made: Timestamp,
) -> std::io::Result<Vec<u8>> {
    let publisher = &service.config.publisher;
    let header = Header::new(publisher, made, addresses, service.rules.clone());
    let mut feed = FeedWriter::new(Vec::new(), &header)?;
    for duplicate in &part.duplicates {
        feed.duplicate(duplicate)?;
    }
    Ok(feed.finish(Some((write_place(&part.next), part.more)))?.0)
}

/// The client has this answer already. Source: RFC 9110, 13.1.2.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let given = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let mut tags = given.flat_map(|tags| tags.split(','));
    tags.any(|other| other.trim() == "*" || bare(other) == bare(tag))
}

fn write_place(place: &FeedPlace) -> String {
    let mut bytes = cursor::pair(place.after, place.partly).to_vec();
    bytes.extend_from_slice(place.told.as_bytes());
    cursor::write(LIST, &bytes)
}

fn read_place(text: &str) -> Result<FeedPlace, Problem> {
    let wrong = || Problem::bad("bad_cursor", "`after` is no place of this feed");
    let bytes = cursor::read(LIST, text).map_err(|_| wrong())?;
    let (numbers, told) = bytes.split_at_checked(16).ok_or_else(wrong)?;
    let (after, partly) = cursor::split(numbers)?;
    let told = String::from_utf8(told.to_vec()).map_err(|_| wrong())?;
    Ok(FeedPlace { after, partly, told })
}
