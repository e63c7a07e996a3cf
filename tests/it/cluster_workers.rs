//! What the workers of a cluster tell of themselves: in `crawl stats`, in metrics, and in the
//! dashboard.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::base::units::Time;
use uniqcrawl::localweb::Site;
use uniqcrawl::urls::ScopeKind;

use crate::browser::Tab;
use crate::cluster::Nodes;
use crate::cluster_service::Served;
use crate::service::get;
use crate::support::{Web, config, crawl, page, prose};

const HOSTS: usize = 4;
const PAGES: u64 = 5;
const SHARDS: u64 = 8;

/// Each host has a page that is not there, and one that every second host has as well.
fn web() -> Web {
    Web::start(HOSTS, |bases| {
        let site = |host: usize| {
            let next = format!("{}/", bases[(host + 1) % HOSTS]);
            let paths: Vec<String> = (1..=PAGES).map(|n| format!("/{n}")).collect();
            let mut links: Vec<&str> = paths.iter().map(String::as_str).collect();
            links.extend(["/missing", &next]);
            let front = page(&format!("Front {host}"), &prose(host as u64, 120), &links);
            let site = Site::new().html("/", front);
            (1..=PAGES).fold(site, |site, n| {
                let text = if n == 1 { host as u64 / 2 } else { host as u64 * 100 + n } + 1_000;
                site.html(&format!("/{n}"), page(&format!("Text {text}"), &prose(text, 120), &[]))
            })
        };
        (0..HOSTS).map(site).collect()
    })
}

/// Ends with the test.
struct Worker(Child);

impl Worker {
    fn start(folder: &Path, number: usize, join: &str, seeds: &[String]) -> Self {
        let log = File::create(folder.join(format!("{number}.log"))).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args([
                "worker", "--config", "c.toml", "--folder", "stores", "--join", join, "--texts",
                "texts",
            ])
            .args(seeds)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks again until it is so.
#[track_caller]
fn until(what: &str, ask: impl Fn() -> Value, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let told = ask();
        if is_so(&told) {
            return told;
        }
        assert!(Instant::now() < end, "{what}: {told:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn sum(rows: &Value, name: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[name].as_u64().unwrap()).sum()
}

/// How many rows the table of a part has.
fn cells(part: &str) -> String {
    format!(
        "[...document.querySelectorAll('section')].find((one) => \
         one.querySelector('h2').textContent === '{part}').querySelectorAll('tbody tr').length"
    )
}

#[track_caller]
fn metrics_have_each_worker(served: &Served) {
    let all_pages = HOSTS as u64 * (PAGES + 1);
    let metrics = get(served.address, "/metrics").body;
    for line in ["uniqcrawl_workers 2", "uniqcrawl_shards_held 8", "uniqcrawl_shards_idle 8"] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{line} in {metrics}");
    }
    let pages = metrics.lines().filter(|line| line.starts_with("uniqcrawl_worker_pages{"));
    let pages: Vec<u64> =
        pages.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!((pages.len(), pages.iter().sum::<u64>()), (2, all_pages), "{metrics}");
}

/// Opens the dashboard, and looks at all of it.
#[track_caller]
fn shown(served: &Served) -> Tab {
    let tab = Tab::open("en-GB");
    tab.go(&format!("http://{}/", served.address));
    tab.until("document.querySelectorAll('section').length === 6");
    for text in ["Documents", "Pages by minute", "error status", "Version", "All shards"] {
        tab.until(&format!("document.body.textContent.includes({})", json!(text)));
    }
    tab.until(&format!("{} === 2", cells("Workers")));
    tab.until(&format!("{} === {SHARDS}", cells("Shards")));
    tab.shows("Service ready");
    tab.shot("cluster-wide");
    assert_eq!(tab.eval("document.querySelectorAll('#views a').length"), 1);
    tab.size(360, 740);
    let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(tab.eval(wide), 0, "{}", tab.text());
    tab.shot("cluster-narrow");
    tab.size(1200, 900);
    // A view that a cluster has no lists for is none of it.
    tab.go(&format!("http://{}/#/charts", served.address));
    tab.shows("There is no such view.");
    tab.eval("document.querySelector('#main a').click()");
    tab.until(&format!("{} === 2", cells("Workers")));
    tab
}

#[test]
fn what_workers_do_is_seen_in_one_view_and_a_dead_one_goes_from_it() {
    let (web, folder) = (web(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let mut config = config();
    config.crawl.scope = ScopeKind::Any;
    config.cluster.shards = SHARDS as u32;
    config.cluster.lease = Time::from_millis(1_500);
    fs::write(folder.join("c.toml"), toml::to_string(&config).unwrap()).unwrap();
    let join = Nodes::shared().url("shown");
    let mut workers = vec![Worker::start(folder, 0, &join, &[web.web.url(0)])];
    workers.push(Worker::start(folder, 1, &join, &[]));
    let store = format!("cluster:{join}");
    let stats = || -> Value {
        let out = crawl(&["stats", "--store", &store, "--json"], folder);
        serde_json::from_slice(&out.stdout).unwrap_or_default()
    };
    let all_pages = HOSTS as u64 * (PAGES + 1);
    let told = until("all is read", stats, |told| {
        let totals = &told["totals"];
        totals["workers"] == 2
            && totals["shardsHeld"] == SHARDS
            && totals["shardsIdle"] == SHARDS
            && totals["pages"] == all_pages
            && totals["linksWaiting"] == 0
            && totals["refused"]["http_error"] == HOSTS
            && sum(&told["workers"], "shards") == SHARDS
            && told["copies"] == all_pages
    });
    // Every second pair of pages is one text.
    assert_eq!(told["documents"], all_pages - HOSTS as u64 / 2, "{told:#}");
    let first = &told["workers"][0];
    for name in ["worker", "host", "version", "started", "told"] {
        assert!(first[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {first:#}");
    }
    assert!(told["totals"]["bytes"].as_u64().unwrap() > 1_000);
    let minutes = told["totals"]["minutes"].as_array().unwrap();
    assert_eq!(minutes.iter().map(|one| one[1].as_u64().unwrap()).sum::<u64>(), all_pages);
    for shard in told["shards"].as_array().unwrap() {
        assert_eq!((&shard["idle"], &shard["links"]), (&json!(true), &json!(0)), "{shard}");
        assert!(shard["since"].as_str().unwrap().starts_with("20"), "{shard}");
    }
    let text = crawl(&["stats", "--store", &store], folder).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("2 workers, 8 shards"), "{text}");
    assert!(text.contains(first["worker"].as_str().unwrap()), "{text}");

    let served = Served::start(folder, &store, &[]);
    metrics_have_each_worker(&served);
    let tab = shown(&served);

    // What a dead worker told is forgotten, and the other one takes its shards.
    workers.remove(1);
    let ask = || get(served.address, "/v1/workers").json();
    let told = until("the dead one is gone", ask, |told| {
        told["totals"]["workers"] == 1 && told["workers"][0]["shards"] == SHARDS
    });
    let left = &told["workers"][0]["worker"];
    for shard in told["shards"].as_array().unwrap() {
        assert_eq!(&shard["holder"], left, "{told:#}");
    }
    tab.until(&format!("{} === 1", cells("Workers")));
    tab.eval("document.getElementById('language').click()");
    tab.shows("工作进程");
    tab.shot("cluster-zh");
    let odd = r"/\b(null|undefined|NaN|Invalid)\b|\[object|\{\w+\}/.test(document.body.innerText)";
    assert_eq!(tab.eval(odd), false, "{}", tab.text());
    tab.is_content(&[]);
    workers.clear();
}

/// A web of one page.
fn one_page() -> Web {
    Web::one(Site::new().html("/", page("One", &prose(5, 120), &[])))
}

#[test]
fn a_page_that_becomes_due_while_its_shard_is_held_is_visited_again() {
    let (web, folder) = (one_page(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let mut config = config();
    config.cluster.shards = 2;
    config.cluster.lease = Time::from_millis(500);
    config.recrawl.enabled = true;
    config.recrawl.interval_min = Time::from_secs(1);
    config.recrawl.seed_interval_max = Time::from_secs(1);
    fs::write(folder.join("c.toml"), toml::to_string(&config).unwrap()).unwrap();
    let join = Nodes::shared().url("due");
    let _worker = Worker::start(folder, 0, &join, &[web.web.url(0)]);
    let since = || {
        let shards = Nodes::shared().engine("due").look_at_shards(2).unwrap();
        shards.iter().map(|shard| shard.since).collect::<Vec<_>>()
    };
    until("it is read", || json!(web.asked("/")), |asked| asked.as_u64() >= Some(1));
    let before = since();
    until("it is read again", || json!(web.asked("/")), |asked| asked.as_u64() >= Some(3));
    assert_eq!(since(), before, "no shard was opened anew");
}

#[test]
fn a_job_may_do_nothing_but_run_a_worker() {
    let (web, folder) = (one_page(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let mut config = config();
    config.cluster.shards = 2;
    fs::write(folder.join("c.toml"), toml::to_string(&config).unwrap()).unwrap();
    let join = Nodes::shared().url("job");
    let run = json!([
        env!("CARGO_BIN_EXE_crawl"),
        "worker",
        "--config",
        "c.toml",
        "--folder",
        "stores",
        "--join",
        join,
        "--until-done",
        web.web.url(0)
    ]);
    let job = format!(
        "[[job]]\nname = \"crowd\"\nstore = \"unused\"\nevery = \"1h\"\n\
         [job.command]\nrun = {run}\ntimeout = \"1m\"\n"
    );
    fs::write(folder.join("jobs.toml"), job).unwrap();
    let out = crawl(&["jobs", "run", "--jobs", "jobs.toml", "--once", "crowd"], folder);
    let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    assert!(out.status.success() && said.contains("ended well"), "{said}");
    assert!(!folder.join("unused").exists(), "its own store is not opened");
    let store = format!("cluster:{join}");
    let told = crawl(&["stats", "--store", &store, "--json"], folder).stdout;
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!((&told["documents"], &told["totals"]["workers"]), (&json!(1), &json!(0)), "{told}");
}
