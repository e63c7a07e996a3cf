//! Crawls that requests start: only if the service was told to allow them.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::documents::answer;
use super::jobs::may_change;
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, body, live};
use crate::base::clock::Timestamp;
use crate::crawl::{self, Begun, Context};
use crate::urls::{Filter, PageUrl, Pattern};
use crate::web::fetch::guard::{AddressClass, AddressGuard};

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/crawls", get list "listCrawls", post start "startCrawl"),
    route!("/v1/crawls/{id}/stop", post stop "stopCrawl"),
];

/// Crawls that are remembered.
const KEPT_MAX: usize = 100;

/// Most bytes of a request.
const BODY_BYTES_MAX: usize = 1 << 20;

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CrawlParameters {
    seeds: Vec<String>,
    pages_max: Option<u64>,
    /// Patterns that include, instead of the general ones of the settings.
    #[serde(default)]
    include: Vec<Pattern>,
    /// Patterns that exclude, beside those of the settings.
    #[serde(default)]
    exclude: Vec<Pattern>,
}

/// A crawl that was asked for.
struct RequestedCrawl {
    id: u64,
    seeds: usize,
    pages_max: u64,
    started: Timestamp,
    context: Context,
    /// When it ended, how, and why.
    end: Option<(Timestamp, &'static str, String)>,
}

/// The crawls that were asked for, the oldest first.
#[derive(Default)]
pub(super) struct RequestedCrawls(Mutex<VecDeque<RequestedCrawl>>);

impl RequestedCrawls {
    fn lock(&self) -> MutexGuard<'_, VecDeque<RequestedCrawl>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, asked: RequestedCrawl) {
        let mut all = self.lock();
        if all.len() == KEPT_MAX {
            all.pop_front();
        }
        all.push_back(asked);
    }

    fn note(&self, id: u64, moment: Timestamp, outcome: &'static str, why: String) {
        if let Some(asked) = self.lock().iter_mut().find(|asked| asked.id == id) {
            asked.end = Some((moment, outcome, why));
        }
    }

    fn row(&self, id: u64) -> Option<Value> {
        self.lock().iter().find(|asked| asked.id == id).map(in_words)
    }
}

fn in_words(asked: &RequestedCrawl) -> Value {
    let stopping = if asked.context.stop.asked() > 0 { "stopping" } else { "running" };
    let end = asked.end.as_ref();
    json!({
        "id": asked.id,
        "seeds": asked.seeds,
        "pagesMax": asked.pages_max,
        "started": asked.started.to_string(),
        "ended": end.map(|(ended, _, _)| ended.to_string()),
        "state": end.map_or(stopping, |(_, outcome, _)| outcome),
        "reason": end.map(|(_, _, reason)| reason),
        "counts": live::counts(&asked.context.live),
    })
}

/// `GET /v1/crawls`.
async fn list(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let rows: Vec<Value> = service.requested_crawls.lock().iter().rev().map(in_words).collect();
    Ok(answer(&json!({ "enabled": service.config.crawls, "rows": rows })))
}

/// `POST /v1/crawls`.
async fn start(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    may_change(&uri, &headers)?;
    if !service.config.crawls {
        let detail = "requests may not start crawls here: see --allow-crawls";
        return Err(Problem::new(StatusCode::FORBIDDEN, "crawls_disabled", detail));
    }
    let stall = service.config.stall_time();
    let whole = body::whole(&headers, body, BODY_BYTES_MAX, &service.room, stall).await?;
    let wish: CrawlParameters = serde_json::from_slice(&whole.bytes).map_err(|error| {
        let is_data = error.classify() == serde_json::error::Category::Data;
        Problem::bad(if is_data { "bad_field" } else { "bad_json" }, error.to_string())
    })?;
    let seeds = seeds(&service, &wish)?;
    let row = begin(&service, seeds, wish)?;
    Ok((StatusCode::ACCEPTED, answer(&row)).into_response())
}

/// Checks the addresses: their number, their form, and that they name no private network. Names are
/// checked when they are resolved, for each request of the crawl.
fn seeds(service: &Service, wish: &CrawlParameters) -> Result<Vec<PageUrl>, Problem> {
    let most = service.config.crawl_seeds_max;
    if wish.seeds.is_empty() {
        return Err(Problem::bad("missing_field", "`seeds` names no URL"));
    }
    if wish.seeds.len() > most {
        let detail = format!("`seeds` names more than {most} URLs");
        return Err(Problem::bad("too_many_seeds", detail));
    }
    if wish.pages_max == Some(0) {
        return Err(Problem::bad("bad_field", "`pagesMax` is at least 1"));
    }
    let guard = AddressGuard { allow_private: service.crawl.fetch.allow_private };
    let mut seeds = Vec::new();
    for text in &wish.seeds {
        let seed = PageUrl::parse_with(text, &service.crawl.normalize);
        let seed = seed.map_err(|error| Problem::bad("bad_url", format!("{text}: {error}")))?;
        let address: Option<IpAddr> = match seed.url().host() {
            Some(url::Host::Ipv4(ip)) => Some(ip.into()),
            Some(url::Host::Ipv6(ip)) => Some(ip.into()),
            _ => None,
        };
        if let Some(Err(refused)) = address.map(|address| guard.check(address)) {
            let advice = match refused.class {
                AddressClass::Private(_) => "; `allow_private` in [fetch] allows it",
                AddressClass::Never(_) => "",
            };
            return Err(Problem::bad("address_refused", format!("{text}: {refused}{advice}")));
        }
        seeds.push(seed);
    }
    Ok(seeds)
}

/// Begins a crawl in a thread of its own.
fn begin(
    service: &Arc<Service>,
    seeds: Vec<PageUrl>,
    wish: CrawlParameters,
) -> Result<Value, Problem> {
    let mut settings = service.crawl.clone();
    settings.limits.pages_max = wish.pages_max.unwrap_or(settings.limits.pages_max);
    if !wish.include.is_empty() {
        settings.filter.include = wish.include;
    }
    settings.filter.exclude.extend(wish.exclude);
    if let Err(error) = Filter::new(&settings.filter) {
        return Err(Problem::bad("bad_field", error.to_string()));
    }
    let context = Context {
        clock: service.clock.clone(),
        index: Some(service.index.clone()),
        ..Context::default()
    };
    if service.is_stopping() {
        return Err(Problem::stopping());
    }
    let folder = service.store.path().parent().unwrap_or(service.store.path());
    let Some(begun) = service.crawls.begin(None, folder, &context) else {
        let detail = "a crawl of this store is under way";
        return Err(Problem::new(StatusCode::CONFLICT, "crawl_running", detail));
    };
    let id = begun.id;
    service.requested_crawls.add(RequestedCrawl {
        id,
        seeds: seeds.len(),
        pages_max: settings.limits.pages_max,
        started: context.clock.now(),
        context: context.clone(),
        end: None,
    });
    let row = service.requested_crawls.row(id).unwrap_or_default();
    let service_of_crawl = service.clone();
    let spawned = thread::Builder::new()
        .name(format!("crawl-{id}"))
        .spawn(move || run(begun, &service_of_crawl, &settings, &seeds, &context));
    if let Err(error) = spawned {
        tracing::error!(%error, "a crawl cannot start");
        service.requested_crawls.note(id, service.clock.now(), "failed", error.to_string());
        return Err(Problem::busy("no thread can start"));
    }
    Ok(row)
}

fn run(
    begun: Begun,
    service: &Service,
    settings: &crawl::Settings,
    seeds: &[PageUrl],
    context: &Context,
) {
    // Ends the crawl at the list also if it panics.
    let end = CrawlEnd { id: begun.id, service, told: None };
    match crawl::run(&service.store, settings, seeds, context) {
        Ok(_) if context.stop.asked() > 0 => end.tell("stopped", "asked to stop".to_owned()),
        Ok(report) if report.failed_seeds.is_empty() => {
            end.tell("done", report.why_no_pages().unwrap_or_default());
        }
        Ok(report) => {
            let failed = report.failed_seeds.len();
            let first = &report.failed_seeds[0];
            let why = format!("{failed} seeds not crawled: {} ({})", first.url, first.reason);
            end.tell("seeds_failed", why);
        }
        Err(error) => {
            tracing::error!(%error, "a crawl failed");
            service.store.suspect();
            end.tell("failed", error.to_string());
        }
    }
    // The list has its end before another one may begin.
    drop(begun);
}

struct CrawlEnd<'a> {
    id: u64,
    service: &'a Service,
    told: Option<(&'static str, String)>,
}

impl CrawlEnd<'_> {
    fn tell(mut self, outcome: &'static str, why: String) {
        self.told = Some((outcome, why));
    }
}

impl Drop for CrawlEnd<'_> {
    fn drop(&mut self) {
        let wrong = || ("failed", "the program is wrong: see the log".to_owned());
        let (outcome, why) = self.told.take().unwrap_or_else(wrong);
        self.service.requested_crawls.note(self.id, self.service.clock.now(), outcome, why);
    }
}

/// `POST /v1/crawls/{id}/stop`.
async fn stop(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    may_change(&uri, &headers)?;
    let text = uri.path().split('/').nth(3).unwrap_or_default();
    let unknown = || Problem::new(StatusCode::NOT_FOUND, "unknown_crawl", "no such crawl");
    let id: u64 = text.parse().map_err(|_| unknown())?;
    let row = {
        let all = service.requested_crawls.lock();
        let asked = all.iter().find(|asked| asked.id == id).ok_or_else(unknown)?;
        if asked.end.is_some() {
            let detail = "the crawl has ended";
            return Err(Problem::new(StatusCode::CONFLICT, "crawl_ended", detail));
        }
        // To ask twice means not to wait for requests under way.
        if asked.context.stop.asked() == 0 {
            let _times = asked.context.stop.ask();
        }
        in_words(asked)
    };
    Ok((StatusCode::ACCEPTED, answer(&row)).into_response())
}
