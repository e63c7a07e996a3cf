//! Workers that crawl together: the documents of one machine, whoever dies, sleeps, joins or leaves,
//! and no request that is too early.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;
use uniqcrawl::corpus::shared::{SharedCorpus, SharedOptions};
use uniqcrawl::localweb::{Page, SeenRequest, Site};
use uniqcrawl::store::Store;
use uniqcrawl::urls::ScopeKind;

use crate::cluster::Nodes;
use crate::support::{Clusters, Crawled, Web, config, page, prose};

/// Hosts that have an IP address each; as many names lie on the first of them.
const HOSTS: usize = 10;
const NAMES: usize = 4;

/// Pages of each host, besides its front page.
const PAGES: u64 = 6;

pub(crate) const DELAY: Duration = Duration::from_millis(200);
/// Longest time for which anything is waited for: a machine may have much else to do.
const WAIT_MAX: Duration = Duration::from_mins(3);

const ADDRESS_DELAY: Duration = Duration::from_millis(50);

/// Every host links to its own pages, to the front page of the next one and, which makes that
/// popular, to the first two pages of every other second one. Page 1 is the same text on two hosts,
/// page 2 nearly the same.
pub(crate) fn web() -> Web {
    Web::start(HOSTS, |bases| {
        let all = [bases.to_vec(), names(bases)].concat();
        let site = |host: usize| {
            let pages = pages(host, &all).into_iter();
            pages.fold(Site::new(), |site, (path, html)| site.html(&path, html))
        };
        let mut sites: Vec<Site> = (0..HOSTS).map(site).collect();
        // The names are all at the address and port of the first host, which tells them apart.
        let named: Vec<_> = (0..NAMES).map(|n| pages(HOSTS + n, &all)).collect();
        let first = pages(0, &all);
        sites[0] = Site::new().handler(move |request| {
            let host = request.header("host").unwrap_or_default();
            let of = (0..NAMES).find(|n| host.starts_with(&format!("name{n}.")));
            let html = of.map_or(&first, |of| &named[of]).get(&request.target)?;
            Some(Page::html(html.as_str()))
        });
        sites
    })
}

/// The pages of a host.
fn pages(host: usize, all: &[String]) -> BTreeMap<String, String> {
    let mut links: Vec<String> = (1..=PAGES).map(|n| format!("/{n}")).collect();
    for base in all.iter().step_by(2) {
        links.extend([format!("{base}/1"), format!("{base}/2")]);
    }
    links.push(format!("{}/", all[(host + 1) % all.len()]));
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let own = |n: u64| host as u64 * 1_000 + n;
    let pair = |n: u64| (host as u64 / 2) * 1_000 + 500 + n;
    let near = format!("{}{}", prose(pair(2), 300), prose(own(2), 4));
    let mut pages = BTreeMap::from([
        ("/".to_owned(), page(&format!("Front {host}"), &prose(own(0), 120), &links)),
        ("/1".to_owned(), page("One", &prose(pair(1), 150), &["/"])),
        ("/2".to_owned(), page("Two", &near, &["/"])),
    ]);
    for n in 3..=PAGES {
        let title = format!("Page {host} {n}");
        pages.insert(format!("/{n}"), page(&title, &prose(own(n), 150), &["/"]));
    }
    pages
}

/// Base addresses of the names.
fn names(bases: &[String]) -> Vec<String> {
    let port = bases[0].rsplit(':').next().unwrap();
    (0..NAMES).map(|n| format!("http://name{n}.example:{port}")).collect()
}

pub(crate) fn settings(web: &Web) -> Config {
    let mut config = config();
    config.crawl.scope = ScopeKind::Any;
    config.frontier.delay = Time::from_millis(DELAY.as_millis() as u64);
    config.frontier.address_delay = Time::from_millis(ADDRESS_DELAY.as_millis() as u64);
    config.frontier.response_factor = 0;
    let address = web.web.url(0);
    let ip = address.trim_start_matches("http://").split(':').next().unwrap().to_owned();
    config.fetch.resolve = (0..NAMES).map(|n| format!("name{n}.example={ip}")).collect();
    config.cluster.shards = 16;
    config.cluster.lease = Time::from_secs(6);
    config.cluster.documents = 1_000;
    config
}

/// One machine's documents.
pub(crate) fn alone(web: &Web, config: &Config) -> Clusters {
    let crawled = Crawled::new();
    let report = crawled.run(config, &web.seeds()[..1]);
    assert_eq!(report.pages, (HOSTS + NAMES) as u64 * (PAGES + 1));
    web.web.forget();
    crawled.clusters()
}

/// Workers on a cluster, which end with the test.
pub(crate) struct Crowd {
    folder: tempfile::TempDir,
    url: String,
    workers: Vec<Option<Child>>,
    /// Of workers that have their stores elsewhere.
    pub(crate) stores: String,
    /// Where texts are, if not beside the first stores.
    texts: Option<&'static str>,
    variables: Vec<(&'static str, String)>,
}

impl Crowd {
    pub(crate) fn new(prefix: &str, web: &Web) -> Self {
        Self::on(Nodes::shared(), prefix, web)
    }

    pub(crate) fn on(nodes: &Nodes, prefix: &str, web: &Web) -> Self {
        Self::at(nodes.url(prefix), web)
    }

    pub(crate) fn at(url: String, web: &Web) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("seeds.txt"), web.web.url(0)).unwrap();
        Self {
            folder,
            url,
            workers: Vec::new(),
            stores: "stores".to_owned(),
            texts: None,
            variables: Vec::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a worker, which is known by its user agent. The first one has the seeds.
    pub(crate) fn start(&mut self, config: &Config) {
        let number = self.workers.len();
        let mut config = config.clone();
        config.fetch.user_agent = format!("worker-{number}");
        let file = self.path(&format!("{number}.toml"));
        fs::write(&file, toml::to_string(&config).unwrap()).unwrap();
        let log = File::create(self.path(&format!("{number}.log"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command.args(["worker", "--until-done", "--json", "-v", "--join", &self.url]);
        command.arg("--config").arg(file).arg("--folder").arg(self.path(&self.stores));
        let texts = self.path("stores").join("texts");
        command.arg("--texts").arg(self.texts.map_or(texts, PathBuf::from));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if number == 0 {
            command.arg("--seeds").arg(self.path("seeds.txt"));
        }
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.workers.push(Some(child));
    }

    pub(crate) fn signal(&self, number: usize, signal: &str) {
        let id = self.workers[number].as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits until a worker has ended, and returns its exit code; none if it was killed.
    #[track_caller]
    pub(crate) fn wait(&mut self, number: usize) -> Option<i32> {
        let begun = Instant::now();
        let mut child = self.workers[number].take().unwrap();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            if begun.elapsed() > WAIT_MAX {
                let _ = child.kill();
                let _ = child.wait();
                let logs: Vec<String> = (0..self.workers.len()).map(|n| self.log(n)).collect();
                panic!("worker {number} does not end: {}", logs.join("\n\n"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    pub(crate) fn wait_all(&mut self) {
        for number in 0..self.workers.len() {
            if self.workers[number].is_some() {
                let code = self.wait(number);
                assert_eq!(code, Some(0), "worker {number}: {}", self.log(number));
            }
        }
    }

    pub(crate) fn log(&self, number: usize) -> String {
        fs::read_to_string(self.path(&format!("{number}.log"))).unwrap()
    }

    pub(crate) fn clusters(&self, config: &Config) -> Clusters {
        clusters(&self.url, &self.path("stores").join("texts"), config)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in self.workers.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The documents that all workers share.
fn clusters(url: &str, texts: &Path, config: &Config) -> Clusters {
    let settings = uniqcrawl::cluster::Settings::parse(url).unwrap();
    let options = SharedOptions { documents: 1_000, ..SharedOptions::default() };
    let corpus = SharedCorpus::open(&settings, texts, &config.dedup, options).unwrap();
    let mut all = Vec::new();
    corpus
        .each_document(&mut |document| {
            all.push(document);
            Ok(())
        })
        .unwrap();
    let mut clusters = Clusters::new();
    for one in all {
        let text = corpus.text(one.number, one.document.content).unwrap();
        assert!(text.is_some_and(|text| !text.is_empty()), "{} has a text", one.document.canonical);
        let urls: BTreeSet<String> = one.copies.into_iter().map(|(url, _)| url).collect();
        clusters.insert(one.document.canonical, urls);
    }
    clusters
}

/// Requests to each host, by its name.
fn by_host(requests: &[SeenRequest]) -> BTreeMap<String, Vec<SeenRequest>> {
    let mut hosts: BTreeMap<String, Vec<SeenRequest>> = BTreeMap::new();
    for request in requests {
        let host = request.header("host").unwrap_or_default().to_owned();
        hosts.entry(host).or_default().push(request.clone());
    }
    hosts
}

/// The shortest time between an answer and the next request; zero if requests overlap.
fn gap(requests: &[SeenRequest]) -> Duration {
    let mut requests = requests.to_vec();
    requests.sort_by_key(|request| request.started);
    let pairs = requests.windows(2);
    let gaps = pairs.map(|two| two[1].started.saturating_duration_since(two[0].finished));
    gaps.min().unwrap_or(Duration::MAX)
}

/// Takes the limits of IP addresses away: nobody asks the cluster for a turn before a request.
pub(crate) fn without_turns(config: &mut Config) {
    (config.frontier.address_delay, config.frontier.connections_per_address) =
        (Time::from_millis(0), 0);
}

/// No request came too early to a host.
#[track_caller]
pub(crate) fn assert_hosts_rest(web: &Web) {
    for (host, requests) in by_host(&web.web.requests()) {
        assert!(gap(&requests) >= DELAY, "{host}: {:?}", gap(&requests));
    }
}

/// No request came too early, to a host or to an IP address.
#[track_caller]
pub(crate) fn assert_polite(web: &Web) {
    assert_hosts_rest(web);
    // Those of the first address are of several hosts.
    let first = web.web.requests_of(0);
    assert!(gap(&first) >= ADDRESS_DELAY, "{:?}", gap(&first));
}

/// How often each URL was asked for that was asked for more than once.
pub(crate) fn asked_again(web: &Web) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in web.web.requests() {
        let host = request.header("host").unwrap_or_default();
        *counts.entry(format!("{host}{}", request.target)).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > 1).collect()
}

fn agents(web: &Web) -> BTreeMap<String, usize> {
    let mut agents = BTreeMap::new();
    for request in web.web.requests() {
        let agent = request.header("user-agent").unwrap_or_default().to_owned();
        *agents.entry(agent).or_default() += 1;
    }
    agents
}

#[test]
fn four_workers_find_what_one_machine_finds() {
    let web = web();
    let config = settings(&web);
    let expected = alone(&web, &config);
    let mut crowd = Crowd::new("crowd", &web);
    (0..4).for_each(|_| crowd.start(&config));
    crowd.wait_all();
    assert_eq!(crowd.clusters(&config), expected);
    assert_eq!(asked_again(&web), BTreeMap::new());
    assert!(agents(&web).len() > 1, "{:?}", agents(&web));
    assert_polite(&web);
}

/// Waits until so many requests have come.
pub(crate) fn wait_for_requests(web: &Web, count: usize) {
    let begun = Instant::now();
    while web.web.requests().len() < count {
        assert!(begun.elapsed() < WAIT_MAX, "only {}", web.web.requests().len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_worker_that_is_killed_and_one_that_sleeps_lose_nothing_and_send_nothing_early() {
    let web = web();
    let mut config = settings(&web);
    config.cluster.lease = Time::from_secs(2);
    let expected = alone(&web, &config);
    // Much is left when it wakes, and its leases alone keep it from that.
    config.frontier.delay = Time::from_millis(DELAY.as_millis() as u64 * 6);
    without_turns(&mut config);
    let mut crowd = Crowd::new("killed", &web);
    (0..4).for_each(|_| crowd.start(&config));
    wait_for_requests(&web, 30);
    crowd.signal(1, "-KILL");
    crowd.signal(2, "-STOP");
    assert_eq!(crowd.wait(1), None);
    // Longer than its leases. Until its disk has written it goes on, and what it sent may be read
    // a while later.
    std::thread::sleep(Duration::from_secs(3));
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_secs(2));
    let woken = Instant::now();
    crowd.signal(2, "-CONT");
    crowd.wait_all();
    assert_eq!(crowd.clusters(&config), expected);
    assert_hosts_rest(&web);
    let of_sleeper: Vec<Instant> = web
        .web
        .requests()
        .iter()
        .filter(|request| request.header("user-agent") == Some("worker-2"))
        .map(|request| request.started)
        .collect();
    let asleep = of_sleeper.iter().filter(|at| **at > stopped && **at < woken);
    assert_eq!(asleep.count(), 0);
    // A shard that is taken anew rests for a delay first: before that, it had no right to any.
    let early = of_sleeper.iter().filter(|at| **at >= woken && **at < woken + DELAY);
    assert_eq!(early.count(), 0);
}

#[test]
fn shards_move_to_a_worker_that_joins_and_from_one_that_leaves_and_nothing_is_fetched_twice() {
    let web = web();
    let mut config = settings(&web);
    let expected = alone(&web, &config);
    // The second worker has time to come, whatever else the machine does.
    config.frontier.delay = Time::from_millis(DELAY.as_millis() as u64 * 6);
    let mut crowd = Crowd::new("moves", &web);
    crowd.start(&config);
    wait_for_requests(&web, 15);
    crowd.start(&config);
    // Until it has something to do.
    let begun = Instant::now();
    while !agents(&web).contains_key("worker-1") {
        assert!(begun.elapsed() < WAIT_MAX, "{}", crowd.log(1));
        std::thread::sleep(Duration::from_millis(10));
    }
    crowd.signal(0, "-INT");
    assert_eq!(crowd.wait(0), Some(130), "{}", crowd.log(0));
    crowd.wait_all();
    assert_eq!(crowd.clusters(&config), expected);
    assert_eq!(asked_again(&web), BTreeMap::new());
    assert_polite(&web);
}

#[test]
fn the_turn_of_a_worker_that_was_killed_is_free_soon_after_its_leases() {
    let (came, arrived) = std::sync::mpsc::channel();
    let all = ["/", "/1", "/2", "/3"];
    let web = Web::start(1, |_| {
        let site = Site::new().handler(move |request| {
            let at = all.iter().position(|path| *path == request.target)?;
            came.send(()).unwrap();
            let html = page("Slow", &prose(at as u64, 120), &all[1..]);
            Some(Page::html(html).after(DELAY))
        });
        vec![site]
    });
    let mut config = settings(&web);
    config.cluster.lease = Time::from_secs(1);
    // Much longer than the test may take.
    config.fetch.total_timeout = Time::from_secs(120);
    let mut crowd = Crowd::new("killed-turn", &web);
    crowd.start(&config);
    // The address is known by then, and its turn taken: the answer is under way.
    (0..2).for_each(|_| arrived.recv_timeout(Duration::from_secs(30)).unwrap());
    crowd.signal(0, "-KILL");
    assert_eq!(crowd.wait(0), None);
    crowd.start(&config);
    crowd.wait_all();
    let found = web.web.targets(0);
    assert!(all.iter().all(|path| found.contains_key(*path)), "{found:?}");
}

/// Waits until these workers have said something so often in all.
fn wait_for_log(crowd: &Crowd, workers: &[usize], said: &str, count: usize) {
    let begun = Instant::now();
    let logs = || workers.iter().map(|&number| crowd.log(number)).collect::<Vec<_>>().join("\n\n");
    while logs().matches(said).count() < count {
        assert!(begun.elapsed() < WAIT_MAX, "{}", logs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_disk_that_is_gone_is_restored_from_backups_and_an_old_one_gives_way() {
    let web = web();
    let mut config = settings(&web);
    config.cluster.lease = Time::from_secs(2);
    config.cluster.backup_interval = Time::from_millis(400);
    let expected = alone(&web, &config);
    let mut crowd = Crowd::new("backups", &web);
    config.cluster.backup = crowd.path("backups").display().to_string();
    crowd.stores = "one".to_owned();
    crowd.start(&config);
    wait_for_requests(&web, 25);
    wait_for_log(&crowd, &[0], "backed up shard=", 16);
    crowd.signal(0, "-KILL");
    assert_eq!(crowd.wait(0), None);
    // Its disk is gone; that of the next one comes to an end of its own, and the first one is back.
    fs::rename(crowd.path("one"), crowd.path("away")).unwrap();
    crowd.stores = "two".to_owned();
    crowd.start(&config);
    wait_for_requests(&web, 60);
    assert!(crowd.log(1).contains("restored from its backup"), "{}", crowd.log(1));
    crowd.signal(1, "-INT");
    assert_eq!(crowd.wait(1), Some(130), "{}", crowd.log(1));
    crowd.stores = "away".to_owned();
    crowd.start(&config);
    crowd.wait_all();
    assert!(crowd.log(2).contains("restored from its backup"), "{}", crowd.log(2));
    assert_eq!(crowd.clusters(&config), expected);
}

#[test]
fn storage_that_refuses_in_the_middle_stops_no_crawl_and_loses_nothing() {
    let web = web();
    let mut config = settings(&web);
    config.cluster.lease = Time::from_secs(2);
    config.cluster.backup_interval = Time::from_millis(300);
    config.cluster.backup = "s3://bucket/shards".to_owned();
    let expected = alone(&web, &config);
    let storage = crate::export_remote::Storage::start();
    let mut crowd = Crowd::new("refused", &web);
    crowd.variables = storage.variables().to_vec();
    crowd.stores = "one".to_owned();
    crowd.start(&config);
    wait_for_log(&crowd, &[0], "backed up shard=", 3);
    storage.refuse.set("PUT", 3);
    wait_for_log(&crowd, &[0], "shards cannot be backed up", 1);
    crowd.signal(0, "-KILL");
    assert_eq!(crowd.wait(0), None);
    fs::remove_dir_all(crowd.path("one")).unwrap();
    storage.refuse.set("", 0);
    crowd.stores = "two".to_owned();
    crowd.start(&config);
    crowd.wait_all();
    assert_eq!(crowd.clusters(&config), expected);
}

#[test]
fn texts_are_in_object_storage_whatever_it_refuses_and_whoever_dies() {
    let web = web();
    let mut config = settings(&web);
    config.cluster.lease = Time::from_secs(2);
    let expected = alone(&web, &config);
    let storage = crate::export_remote::Storage::start();
    let mut crowd = Crowd::new("objects", &web);
    crowd.variables = storage.variables().to_vec();
    crowd.texts = Some("s3://bucket/texts");
    (0..2).for_each(|_| crowd.start(&config));
    wait_for_requests(&web, 20);
    storage.refuse.set("PUT", 1);
    // Either may have all that comes next, as the other waits for links that are not committed.
    wait_for_log(&crowd, &[0, 1], "pages wait until they can be stored", 1);
    crowd.signal(1, "-KILL");
    assert_eq!(crowd.wait(1), None);
    storage.refuse.set("", 0);
    crowd.wait_all();
    assert_polite(&web);
    // All of it is read back, and compared by checksums.
    let cluster = format!("cluster:{}", crowd.url);
    let out = storage.run(crowd.folder.path(), &["store", "copy", &cluster, "copied"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let copied = Store::open_to_read(&crowd.path("copied"), 1 << 20).unwrap();
    assert_eq!(crate::support::clusters(&copied), expected);
    let names = storage.names();
    assert!(names.iter().any(|name| name.starts_with("texts/")), "{names:?}");
    assert!(!crowd.path("stores").join("texts").exists());
}
