//! What is counted of the service, as Prometheus reads it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::crawl::{Crawls, Live, Totals};

/// Bounds of the histogram, in seconds.
const BOUNDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabel {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ArticleLabels {
    verdict: &'static str,
}

type Seconds = Family<RouteLabel, Histogram, fn() -> Histogram>;

/// Sizes of a store, as a scrape finds them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sizes {
    pub documents: u64,
    pub copies: u64,
    pub contents: u64,
    pub store_bytes: u64,
    pub index_bytes: u64,
    /// Documents that the index of the search has yet to follow.
    pub unsearched: u64,
    /// The store cannot be written now.
    pub is_failed: bool,
    /// How often it could not be, and how often it could again.
    pub failures: (u64, u64),
}

pub(super) struct Metrics {
    registry: Mutex<Registry>,
    /// What is of a store on this machine, and of crawls into it.
    of_store: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    seconds: Seconds,
    articles: Family<ArticleLabels, Counter>,
    pub connections: Gauge,
    pub heads_refused: Counter,
    sizes: [Gauge; 6],
    /// Crawls under way, queued URLs for them, their requests under way.
    crawls: [Gauge; 3],
    /// What all crawls of the process have done, in the order of [`Totals`].
    crawled: [Counter; 6],
    /// 1 while the store can be written.
    writable: Gauge,
    /// How often it could not be, and how often it could again.
    failures: [Counter; 2],
    memory: Gauge,
    files: Gauge,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut all = Registry::default();
        let requests = Family::<RequestLabels, Counter>::default();
        let name = "uniqcrawl_http_requests";
        all.register(name, "Requests by route and status", requests.clone());
        let seconds = Seconds::new_with_constructor(|| Histogram::new(BOUNDS) as Histogram);
        let (name, help) = ("uniqcrawl_http_request_duration", "Time until an answer began");
        all.register_with_unit(name, help, Unit::Seconds, seconds.clone());
        let articles = Family::<ArticleLabels, Counter>::default();
        all.register("uniqcrawl_articles", "Articles that were sent, by verdict", articles.clone());
        let heads_refused = Counter::default();
        let (name, help) =
            ("uniqcrawl_http_heads_refused", "Connections closed for want of room for large heads");
        all.register(name, help, heads_refused.clone());
        let connections = gauge(&mut all, "uniqcrawl_http_connections", "Open connections");
        let (memory, files) = (
            gauge(&mut all, "process_resident_memory_bytes", "Resident memory"),
            gauge(&mut all, "process_open_fds", "Open file descriptors"),
        );
        let registry = Mutex::new(std::mem::take(&mut all));
        let sizes = [
            gauge(&mut all, "uniqcrawl_documents", "Documents in the store"),
            gauge(&mut all, "uniqcrawl_copies", "Copies in the store"),
            gauge(&mut all, "uniqcrawl_contents", "Distinct texts in the store"),
            gauge(&mut all, "uniqcrawl_store_bytes", "Size of the store's file"),
            gauge(&mut all, "uniqcrawl_index_bytes", "Memory of the index"),
            gauge(
                &mut all,
                "uniqcrawl_search_waiting",
                "Documents that the search has yet to follow",
            ),
        ];
        let crawls = [
            gauge(&mut all, "uniqcrawl_crawls", "Crawls under way in this process"),
            gauge(&mut all, "uniqcrawl_crawl_queued", "queued URLs for these crawls"),
            gauge(&mut all, "uniqcrawl_crawl_in_flight", "Their requests under way"),
        ];
        let counter = |all: &mut Registry, name: &str, help: &str| {
            let counter = Counter::default();
            all.register(name, help, counter.clone());
            counter
        };
        let crawled = [
            counter(&mut all, "uniqcrawl_crawl_requests", "Requests that crawls sent"),
            counter(&mut all, "uniqcrawl_crawl_pages", "Pages that crawls read"),
            counter(&mut all, "uniqcrawl_crawl_new_documents", "New documents of crawls"),
            counter(&mut all, "uniqcrawl_crawl_duplicates", "Duplicates that crawls met"),
            counter(&mut all, "uniqcrawl_crawl_failed_requests", "Requests that failed"),
            counter(&mut all, "uniqcrawl_crawl_received_bytes", "Bytes of bodies on the wire"),
        ];
        let (writable, failures) = of_store(&mut all);
        let of_store = Mutex::new(all);
        Self {
            registry,
            of_store,
            requests,
            seconds,
            articles,
            connections,
            heads_refused,
            sizes,
            crawls,
            crawled,
            writable,
            failures,
            memory,
            files,
        }
    }

    pub(super) fn answered(&self, route: &'static str, status: u16, time: Duration) {
        self.requests.get_or_create(&RequestLabels { route, status }).inc();
        self.seconds.get_or_create(&RouteLabel { route }).observe(time.as_secs_f64());
    }

    pub(super) fn article(&self, verdict: &'static str) {
        self.articles.get_or_create(&ArticleLabels { verdict }).inc();
    }

    /// Writes everything as text.
    pub(super) fn text(&self, sizes: Sizes, crawls: &Crawls) -> String {
        self.note(crawls);
        let Sizes { documents, copies, contents, store_bytes, index_bytes, unsearched, .. } = sizes;
        self.writable.set(i64::from(!sizes.is_failed));
        for (counter, value) in self.failures.iter().zip(<[u64; 2]>::from(sizes.failures)) {
            counter.inner().fetch_max(value, Ordering::Relaxed);
        }
        let values = [documents, copies, contents, store_bytes, index_bytes, unsearched];
        for (gauge, value) in self.sizes.iter().zip(values) {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        self.with(&self.of_store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes what is of this process, and something else.
    pub(super) fn with(&self, other: &Registry) -> String {
        self.memory.set(resident().unwrap_or(0));
        self.files.set(open_files().unwrap_or(0));
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode_registry(&mut text, &registry)
            .and_then(|()| encode_registry(&mut text, other))
            .and_then(|()| encode_eof(&mut text))
            .expect("writing to a string cannot fail");
        text
    }
}

fn gauge(all: &mut Registry, name: &str, help: &str) -> Gauge {
    let gauge = Gauge::default();
    all.register(name, help, gauge.clone());
    gauge
}

/// Whether the store can be written, how often it could not be, and how often it could again.
fn of_store(all: &mut Registry) -> (Gauge, [Counter; 2]) {
    let (writable, failures) = (Gauge::default(), [Counter::default(), Counter::default()]);
    let name = "uniqcrawl_store_writable";
    all.register(name, "1 while the store can be written", writable.clone());
    let [failed, mended] = failures.clone();
    let name = "uniqcrawl_store_failures";
    all.register(name, "Times when the store could not be written any more", failed);
    all.register("uniqcrawl_store_mended", "Times when it could be written again", mended);
    (writable, failures)
}

impl Metrics {
    fn note(&self, crawls: &Crawls) {
        let running = crawls.running();
        let sum = |of: fn(&Live) -> &AtomicU64| -> u64 {
            running.iter().map(|one| of(&one.context.live).load(Ordering::Relaxed)).sum()
        };
        let now = [running.len() as u64, sum(|live| &live.queued), sum(|live| &live.in_flight)];
        for (gauge, value) in self.crawls.iter().zip(now) {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let Totals { requests, pages, new, duplicates, failed, bytes } = crawls.totals();
        let done = [requests, pages, new, duplicates, failed, bytes];
        for (counter, value) in self.crawled.iter().zip(done) {
            // Two scrapes at a time must not let it fall.
            counter.inner().fetch_max(value, Ordering::Relaxed);
        }
    }
}

/// Resident memory in bytes, where the system tells.
fn resident() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<i64>().ok().map(|kib| kib * 1024)
}

fn open_files() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}
