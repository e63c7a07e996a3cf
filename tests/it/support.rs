//! A web and a crawl for one test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tokio::runtime::Runtime;
use uniqcrawl::base::units::{Size, Time};
use uniqcrawl::config::Config;
use uniqcrawl::corpus::explain::{Explanation, explain};
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::crawl::{self, Context, Report};
use uniqcrawl::frontier::{ADDRESSES, Address};
use uniqcrawl::localweb::{LocalWeb, Site};
use uniqcrawl::store::{Store, View as _};
use uniqcrawl::urls::PageUrl;

/// A running web with the runtime it runs on.
pub(crate) struct Web {
    _runtime: Runtime,
    pub web: LocalWeb,
}

impl Web {
    pub(crate) fn start(hosts: usize, sites: impl FnOnce(&[String]) -> Vec<Site>) -> Self {
        let runtime = Runtime::new().unwrap();
        let web = runtime.block_on(LocalWeb::start(hosts, sites)).unwrap();
        Self { _runtime: runtime, web }
    }

    pub(crate) fn one(site: Site) -> Self {
        Self::start(1, |_| vec![site])
    }

    pub(crate) fn seeds(&self) -> Vec<PageUrl> {
        (0..self.web.hosts()).map(|host| PageUrl::parse(&self.web.url(host)).unwrap()).collect()
    }

    pub(crate) fn url(&self, host: usize, path: &str) -> PageUrl {
        PageUrl::parse(&format!("{}{}", self.web.url(host), &path[1..])).unwrap()
    }

    /// How often a path of the first host was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        self.web.targets(0).get(path).copied().unwrap_or(0)
    }

    #[track_caller]
    pub(crate) fn assert_gaps(&self, host: usize, delay: Duration) {
        let gap = self.web.least_gap(host).expect("the host was asked more than once");
        assert!(gap >= delay, "host {host}: a gap of {gap:?} is shorter than {delay:?}");
    }
}

/// Settings for tests on loopback: no delay, short waits.
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.fetch.allow_private = true;
    config.frontier.delay = Time::from_millis(0);
    config.frontier.retry_delay = Time::from_millis(20);
    config.frontier.busy_delay = Time::from_millis(20);
    config.frontier.robots_retry = Time::from_millis(30);
    config.crawl.limits.probe_error_page = false;
    config.crawl.limits.idle_wait_max = Time::from_millis(2_000);
    config.store.cache_size = Size::from_mib(16);
    // Tests count requests; those of sitemaps turn it on.
    config.frontier.discover.usual_place = false;
    config
}

/// Every invariant of a store holds.
#[track_caller]
pub(crate) fn check_clean(store: &Store) {
    let findings = uniqcrawl::corpus::check::check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(findings.listed, Vec::<String>::new());
}

/// A store in a folder of its own. Its number is 0, so that documents are 1, 2, 3.
pub(crate) struct Crawled {
    _folder: tempfile::TempDir,
    pub store: Store,
}

impl Crawled {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap();
        Self { _folder: folder, store }
    }

    #[track_caller]
    pub(crate) fn run(&self, config: &Config, seeds: &[PageUrl]) -> Report {
        let report = crawl::run(&self.store, &config.settings(), seeds, &Context::default());
        let report = report.unwrap();
        self.assert_clean();
        report
    }

    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        check_clean(&self.store);
    }

    pub(crate) fn explain(&self, url: &PageUrl) -> Explanation {
        explain(&self.store.snapshot().unwrap(), url).unwrap()
    }

    pub(crate) fn address(&self, url: &PageUrl) -> Option<Address> {
        self.store.snapshot().unwrap().get(ADDRESSES, url.as_str()).unwrap()
    }

    pub(crate) fn clusters(&self) -> Clusters {
        clusters(&self.store)
    }
}

/// Every document as its canonical address with the addresses of all its copies.
pub(crate) type Clusters = BTreeMap<String, BTreeSet<String>>;

/// Every document of a store.
pub(crate) fn clusters(store: &Store) -> Clusters {
    let snapshot = store.snapshot().unwrap();
    let mut clusters = BTreeMap::new();
    for entry in snapshot.rows(DOCUMENTS).unwrap() {
        let entry = entry.unwrap();
        let (number, document) = (entry.key().unwrap(), entry.row().unwrap());
        let copies = uniqcrawl::corpus::documents::copies_of(&snapshot, number).unwrap();
        let copies = copies.into_iter().map(|(address, _)| address).collect();
        let text = uniqcrawl::corpus::documents::read_body(&snapshot, document.content).unwrap();
        assert!(text.is_some_and(|text| !text.is_empty()), "{} has a text", document.canonical);
        clusters.insert(document.canonical, copies);
    }
    clusters
}

/// Runs the binary.
pub(crate) fn crawl(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("UNIQCRAWL_LOG")
        .output()
        .unwrap()
}

/// Text of about `words` words that no other seed gives.
pub(crate) fn prose(seed: u64, words: usize) -> String {
    let mut state = seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9;
    let mut text = String::new();
    for number in 0..words {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let syllable = ["ba", "ko", "ri", "tu", "me"][(state % 5) as usize];
        write!(text, "{syllable}{}", state % 977).unwrap();
        text.push_str(if number % 12 == 11 { ". " } else { " " });
    }
    text
}

/// An HTML page with links.
pub(crate) fn page(title: &str, text: &str, links: &[&str]) -> String {
    let links: String =
        links.iter().map(|link| format!("<a href=\"{link}\">{link}</a>\n")).collect();
    format!(
        "<!DOCTYPE html><html><head><title>{title}</title></head><body><article><h1>{title}</h1>\
         <p>{text}</p></article>{links}</body></html>"
    )
}
