//! A web whose pages change, crawled again and again on a clock that the test moves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::config::Config;
use uniqcrawl::corpus::documents::Document;
use uniqcrawl::corpus::export::{self, JSONL, Target, export};
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::crawl::{self, Context, OnDocument, Report};
use uniqcrawl::frontier::{ADDRESSES, Address, State};
use uniqcrawl::localweb::{Page, SeenRequest, Site};
use uniqcrawl::store::View as _;
use uniqcrawl::urls::PageUrl;

use crate::support::{self, Crawled, Web, page, prose};

/// Noon of a day in November 2026.
pub(crate) const START: Timestamp = Timestamp(1_795_262_400_000);

pub(crate) const DAY: Duration = Duration::from_hours(24);
pub(crate) const HOUR_MS: u64 = 3_600_000;

/// Pages that a test changes while the web runs: host and path, answer.
type Pages = Arc<Mutex<BTreeMap<(usize, String), Page>>>;

/// A web whose pages change, a store, and a clock that the test moves.
pub(crate) struct Lab {
    pub web: Web,
    pages: Pages,
    pub crawled: Crawled,
    pub clock: Clock,
    pub config: Config,
    /// URLs of the new documents that the runs have told of.
    pub told: Arc<Mutex<Vec<String>>>,
}

impl Lab {
    pub(crate) fn new(hosts: usize) -> Self {
        let pages = Pages::default();
        let web = Web::start(hosts, |_| {
            let site = |pages: Pages| {
                Site::new().handler(move |request| {
                    let found = pages.lock().unwrap();
                    let page = found.get(&(request.host, request.target.clone()))?;
                    Some(answer(page, request))
                })
            };
            (0..hosts).map(|_| site(pages.clone())).collect()
        });
        let mut config = support::config();
        config.recrawl.enabled = true;
        config.frontier.retries_max = 0;
        config.frontier.busy_retries_max = 0;
        let clock = Clock::hand(START);
        Self { web, pages, crawled: Crawled::new(), clock, config, told: Arc::default() }
    }

    pub(crate) fn put(&self, host: usize, path: &str, page: Page) {
        self.pages.lock().unwrap().insert((host, path.to_owned()), page);
    }

    pub(crate) fn html(&self, host: usize, path: &str, html: String) {
        self.put(host, path, Page::html(html));
    }

    pub(crate) fn remove(&self, host: usize, path: &str) {
        self.pages.lock().unwrap().remove(&(host, path.to_owned()));
    }

    /// Crawls; the store must be sound afterwards.
    #[track_caller]
    pub(crate) fn run(&self) -> Report {
        self.web.web.forget();
        let told = Arc::clone(&self.told);
        let on_document = OnDocument::new(move |new| told.lock().unwrap().push(new.url));
        let (clock, on_document) = (self.clock.clone(), Some(on_document));
        let context = Context { clock, on_document, ..Context::default() };
        let seeds = self.web.seeds();
        let settings = self.config.settings();
        let report = crawl::run(&self.crawled.store, &settings, &seeds, &context).unwrap();
        self.crawled.assert_clean();
        report
    }

    /// Crawls a day later.
    #[track_caller]
    pub(crate) fn next_day(&self) -> Report {
        self.clock.advance(DAY);
        self.run()
    }

    /// Crawls so much later that everything is due.
    #[track_caller]
    pub(crate) fn much_later(&self) -> Report {
        self.clock.advance(DAY * 31);
        self.run()
    }

    pub(crate) fn address(&self, host: usize, path: &str) -> Address {
        let snapshot = self.crawled.store.snapshot().unwrap();
        let url = self.web.url(host, path);
        snapshot.get(ADDRESSES, url.as_str()).unwrap().unwrap()
    }

    /// The document of a stored page.
    #[track_caller]
    pub(crate) fn document(&self, host: usize, path: &str) -> Document {
        let State::Stored(number) = self.address(host, path).state else {
            panic!("{path} is not stored: {:?}", self.address(host, path).state)
        };
        let snapshot = self.crawled.store.snapshot().unwrap();
        snapshot.get(DOCUMENTS, number).unwrap().unwrap()
    }

    pub(crate) fn url(&self, host: usize, path: &str) -> PageUrl {
        self.web.url(host, path)
    }

    /// Requests for a page in the last run.
    pub(crate) fn requests(&self, path: &str) -> Vec<SeenRequest> {
        let all = self.web.web.requests().into_iter();
        all.filter(|request| request.target == path).collect()
    }

    /// The exported documents: address and text.
    pub(crate) fn exported(&self) -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let form = Target { format: &JSONL, folder: folder.path() };
        export(&self.crawled.store, form, &export::Config::default(), self.clock.now()).unwrap();
        let text = std::fs::read_to_string(folder.path().join("documents.jsonl")).unwrap();
        let rows =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let text_of = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        rows.map(|row| (text_of(&row["url"]), text_of(&row["text"]))).collect()
    }
}

/// What a good server answers to a conditional request.
fn answer(page: &Page, request: &SeenRequest) -> Page {
    let of = |name: &str| {
        let found = page.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    let weak = |tag: &str| tag.trim_start_matches("W/").to_owned();
    let asked = (request.header("if-none-match"), request.header("if-modified-since"));
    let same = if let (Some(asked), Some(tag)) = (asked.0, of("etag")) {
        weak(asked) == weak(tag)
    } else {
        asked.1.is_some() && asked.1 == of("last-modified")
    };
    if same && page.status == 200 { Page::status(304) } else { page.clone() }
}

pub(crate) fn tagged(html: String, etag: &str) -> Page {
    Page::html(html).header("ETag", etag)
}

pub(crate) fn story(seed: u64) -> String {
    page(&format!("Story {seed}"), &prose(seed, 120), &[])
}

/// A story on three hosts: the first is linked most, and so canonical.
pub(crate) fn cluster(lab: &Lab) {
    let mirrors: Vec<String> = (0..3).map(|host| lab.url(host, "/story").to_string()).collect();
    let near = |host: u64| format!("{} Printed in town {host} at nine.", prose(7, 200));
    for host in 0..3 {
        let links: Vec<&str> = match host {
            0 => vec![&mirrors[0]],
            _ => vec![&mirrors[0], &mirrors[host]],
        };
        lab.html(host, "/", page(&format!("Front {host}"), &prose(host as u64 + 50, 90), &links));
        lab.html(host, "/story", page("A story of the sea", &near(host as u64), &[]));
    }
}
