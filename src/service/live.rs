//! What goes on: crawls of this process, hosts, and what became of URLs and articles.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde_json::{Value, json};

use super::documents::{ROWS_MAX, answer};
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, cursor};
use crate::base::clock::Timestamp;
use crate::corpus::clusters::DUPLICATES;
use crate::corpus::tables::{COPIES, DOCUMENTS};
use crate::crawl::{Live, Report, Running};
use crate::frontier::{self, HOST_NUMBERS, HOSTS, Host, Reason};
use crate::store::{COUNTERS, Snapshot, View as _};

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/live", get live "liveCrawls"),
    route!("/v1/hosts", get hosts "listHosts"),
    route!("/v1/reasons", get reasons "countReasons"),
];

/// Hosts that one request looks at.
const HOSTS_LOOKED_AT_MAX: usize = 200_000;

/// `GET /v1/live`.
async fn live(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let crawls: Vec<Value> = service.crawls.running().iter().map(in_words).collect();
    Ok(answer(&json!({ "now": service.clock.now().to_string(), "crawls": crawls })))
}

fn in_words(one: &Running) -> Value {
    let mut told = json!({
        "job": one.job,
        "store": one.store,
        "started": one.started.to_string(),
        "state": state(one),
    });
    if let (Value::Object(told), Value::Object(counts)) = (&mut told, counts(&one.context.live)) {
        told.extend(counts);
    }
    told
}

/// Whether a crawl that is under way has been asked to stop.
pub(super) fn state(one: &Running) -> &'static str {
    if one.context.stop.asked() > 0 { "stopping" } else { "running" }
}

/// The numbers of a crawl.
pub(super) fn counts(live: &Live) -> Value {
    let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
    json!({
        "pages": read(&live.pages),
        "requests": read(&live.requests),
        "new": read(&live.new),
        "duplicates": read(&live.duplicates),
        "failed": read(&live.failed),
        "errors": read(&live.errors),
        "bytes": read(&live.bytes),
        "queued": read(&live.queued),
        "inFlight": read(&live.in_flight),
    })
}

/// `GET /v1/hosts`.
async fn hosts(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["sort", "limit", "cursor"])?;
    let sort = params.word("sort", &["queued", "answered", "failed", "name"])?;
    let limit = params.number("limit", 50, ROWS_MAX)?;
    let list = format!("hosts {sort}");
    let after = params.text("cursor").map(|text| cursor::read(&list, text)).transpose()?;
    let told = service.read(move |service, snapshot| {
        let (numbers, next) = match sort {
            "name" => by_name(snapshot, after, limit)?,
            _ => by_number(snapshot, sort, after.as_deref(), limit)?,
        };
        let now = service.clock.now();
        // The pace is that of the crawl under way, or of the next one.
        let running = service.crawls.running().into_iter().find(|one| one.context.index.is_some());
        let live = running.map(|one| one.context.live);
        let pace = live.as_ref().and_then(|live| live.pace.get());
        let pace = pace.unwrap_or(&service.crawl.frontier);
        let mut rows = Vec::new();
        for number in numbers {
            let Some(host) = snapshot.get(HOSTS, number)? else { continue };
            rows.push(row_of(pace, &host, now));
        }
        let next = next.map(|place| cursor::write(&list, &place));
        Ok(answer(&json!({ "rows": rows, "next": next })))
    });
    told.await
}

/// Numbers of hosts, and the place where the list goes on; none at its end.
type CachedPage = (Vec<u32>, Option<Vec<u8>>);

fn by_name(
    snapshot: &Snapshot,
    after: Option<Vec<u8>>,
    limit: usize,
) -> Result<CachedPage, Problem> {
    let after = after.map(String::from_utf8).transpose();
    let after = after.map_err(|_| Problem::bad("bad_cursor", "`cursor` is none of this list"))?;
    let (mut numbers, mut last) = (Vec::new(), None);
    let from = after.as_deref().unwrap_or_default();
    for row in snapshot.range(HOST_NUMBERS, from..)? {
        let row = row?;
        let name = row.key()?;
        if after.as_deref() == Some(name) {
            continue;
        }
        if numbers.len() == limit {
            return Ok((numbers, last));
        }
        numbers.push(row.row()?);
        last = Some(name.as_bytes().to_vec());
    }
    Ok((numbers, None))
}

/// The hosts of which a number is highest; among equals, those that were met first.
fn by_number(
    snapshot: &Snapshot,
    sort: &str,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<CachedPage, Problem> {
    let after = after.map(cursor::split).transpose()?;
    let mut found: Vec<(u64, u32)> = Vec::new();
    for row in snapshot.rows(HOSTS)?.take(HOSTS_LOOKED_AT_MAX) {
        let row = row?;
        let (number, host) = (row.key()?, row.row()?);
        let value = match sort {
            "queued" => host.queued,
            "answered" => host.answered,
            _ => host.failed,
        };
        let is_after = |(v, n): (u64, u64)| value < v || (value == v && u64::from(number) > n);
        if after.is_none_or(is_after) {
            found.push((value, number));
        }
    }
    found.sort_unstable_by_key(|(value, number)| (std::cmp::Reverse(*value), *number));
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more);
    let next = last.map(|(value, number)| cursor::pair(*value, u64::from(*number)).to_vec());
    Ok((found.into_iter().map(|(_, number)| number).collect(), next))
}

fn row_of(pace: &frontier::Config, host: &Host, now: Timestamp) -> Value {
    let next = host.scheduled;
    let state = match () {
        () if host.queued == 0 => "done",
        () if host.breaker_open => "broken",
        () if host.blocked_until > now => "blocked",
        () if next > now => "waiting",
        () => "ready",
    };
    let delay = pace.delay(host).as_millis();
    json!({
        "host": host.key,
        "state": state,
        "nextVisit": (next.0 > 0).then(|| next.to_string()),
        "queued": host.queued,
        "answered": host.answered,
        "failed": host.failed,
        "delayMs": u64::try_from(delay).unwrap_or(u64::MAX),
        "trouble": host.trouble.map(Reason::as_str),
    })
}

/// `GET /v1/reasons`.
async fn reasons(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let told = service.read(|_, snapshot| {
        let mut duplicates: BTreeMap<String, u64> = BTreeMap::new();
        for row in snapshot.range(COUNTERS, DUPLICATES..)? {
            let row = row?;
            let Some(key) = row.key()?.strip_prefix(DUPLICATES) else { break };
            duplicates.insert(key.to_owned(), row.row()?);
        }
        // What nobody named as a page is none that was not stored.
        let is_own =
            |name: &str| Reason::ALL.iter().any(|one| one.is_own() && one.as_str() == name);
        let counts = Report::refused_counts(snapshot)?;
        let (own, refused): (BTreeMap<_, _>, BTreeMap<_, _>) =
            counts.into_iter().partition(|(name, _)| is_own(name));
        let waiting = snapshot.get(COUNTERS, "addresses.queued")?.unwrap_or(0);
        Ok(answer(&json!({
            "documents": snapshot.len(DOCUMENTS)?,
            "copies": snapshot.len(COPIES)?,
            "duplicates": duplicates,
            "refused": refused,
            "own": own,
            "errors": Report::errors(snapshot)?,
            "waiting": waiting,
        })))
    });
    told.await
}
