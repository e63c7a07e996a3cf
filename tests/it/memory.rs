//! Memory of pages and bodies, with hostile ones: each bound is kept, and nothing waits for ever.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use uniqcrawl::base::units::Size;
use uniqcrawl::localweb::{Page, Site};

use crate::support::{Crawled, Web, config, page, prose};

const MIB: u64 = 1 << 20;

/// Waits for the end of a process. Returns its peak resident memory in bytes.
pub(crate) fn peak(child: &mut Child) -> u64 {
    let mut peak = 0;
    loop {
        peak = peak.max(peak_now(child.id()).unwrap_or(0));
        if child.try_wait().unwrap().is_some() {
            assert!(peak > 0, "it was never seen");
            return peak;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the peak resident memory of a process in bytes, or nothing if it has none of its own:
/// until the kernel has put its program in place it has that of these tests, also for a moment
/// after `spawn` has returned.
fn peak_now(process: u32) -> Option<u64> {
    let process = Path::new("/proc").join(process.to_string());
    // First, so that what follows is of the program.
    let program = fs::read_link(process.join("exe")).ok()?;
    if program == std::env::current_exe().unwrap() {
        return None;
    }
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[test]
fn the_memory_of_these_tests_is_taken_for_that_of_no_other_process() {
    assert_eq!(peak_now(std::process::id()), None);
}

fn start(arguments: &[&str], folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("UNIQCRAWL_LOG")
        // As on a machine of many cores: memory must not grow with them.
        .env("TOKIO_WORKER_THREADS", "64")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Rows of a table, of which each byte costs a hundred in a tree.
fn rows(bytes: usize) -> String {
    let rows = (0..).map(|n| match n % 23 {
        0 => format!("<tr><td>{}<td>b<td>c", n % 97),
        _ => "<tr><td>a<td>b<td>c".to_owned(),
    });
    let mut all = String::new();
    rows.take_while(|row| {
        all.push_str(row);
        all.len() < bytes
    })
    .for_each(drop);
    all
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// 744 MiB before the tree had a bound.
#[test]
fn a_page_of_cells_is_read_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page.html"), format!("<table>{}", rows(8 << 20))).unwrap();
    let mut child = start(&["extract", "page.html"], folder.path());
    let peak = peak(&mut child);
    assert!(peak < 400 * MIB, "{} MiB", peak / MIB);
}

/// 8 fingerprinters would read 8 such pages at a time, each in some 80 MiB.
#[test]
fn pages_that_are_read_at_the_same_time_share_their_memory() {
    let front: Vec<String> = (0..12).map(|n| format!("/{n}")).collect();
    let links: Vec<&str> = front.iter().map(String::as_str).collect();
    let site = Site::new().html("/", page("Front", &prose(1, 60), &links));
    let site = front.iter().zip(2..).fold(site, |site, (path, seed)| {
        let text = format!("<title>{seed}</title><p>{}<table>{}", prose(seed, 60), rows(512 << 10));
        let packed = Page::bytes("text/html", gzip(&text)).header("Content-Encoding", "gzip");
        site.page(path, packed)
    });
    let (web, folder) = (Web::one(site), tempfile::tempdir().unwrap());
    let settings = "[crawl]\npage_threads = 8\npages_size_max = \"32 MiB\"\nprobe_error_page = false\n\
                    [frontier]\nconnections_per_host = 16\nconnections_per_address = 0\n\
                    delay = \"0\"\n";
    fs::write(folder.path().join("some.toml"), settings).unwrap();
    let seed = web.web.url(0);
    let run = ["crawl", &seed, "--allow-private", "--config", "some.toml", "--report", "r.json"];
    let peak = peak(&mut start(&run[1..], folder.path()));
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(report["addresses"]["stored"], 13, "{report}");
    assert!(peak < 450 * MIB, "{} MiB", peak / MIB);
}

/// A host that sends its page at once but for the last byte, which comes a moment later.
fn late(address: Ipv4Addr, body: Arc<Vec<u8>>) -> String {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer = move |mut stream: TcpStream| -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut first = String::new();
        while reader.read_line(&mut first)? > 0 && !first.ends_with("\r\n\r\n") {}
        if first.starts_with("GET /robots.txt") {
            return stream.write_all(b"HTTP/1.0 404 None\r\n\r\n");
        }
        stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n")?;
        let (last, all) = body.split_last().expect("a body");
        stream.write_all(all)?;
        thread::sleep(Duration::from_millis(300));
        stream.write_all(&[*last])
    };
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            // A client that goes away is its own affair.
            thread::spawn(move || drop(stream.and_then(answer)));
        }
    });
    url
}

/// 60 bodies of 6 MiB each that come at the same time.
#[test]
fn bodies_that_come_at_the_same_time_share_their_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Read at once: it is no page.
    let body = Arc::new([b"%PDF-1.4\n".to_vec(), vec![0; 6 << 20]].concat());
    let seeds: Vec<String> =
        (1..=60).map(|n| late(Ipv4Addr::new(127, 88, 1, n), Arc::clone(&body))).collect();
    fs::write(folder.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    let settings = "[crawl]\nprobe_error_page = false\n[fetch]\nbodies_size_max = \"64 MiB\"\n\
                    [frontier.discover]\nusual_place = false\n";
    fs::write(folder.path().join("some.toml"), settings).unwrap();
    let run = ["--seeds", "seeds.txt", "--allow-private", "--config", "some.toml"];
    let peak = peak(&mut start(&[&run[..], &["--report", "r.json"]].concat(), folder.path()));
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(report["refused"], serde_json::json!({"binary": 60}), "{report}");
    assert_eq!(report["retries"], 0, "who waits for room is not late: {report}");
    // 172 to 181 MiB on a machine at rest, of which 64 are those of bodies; all at a time have 360.
    assert!(peak < 256 * MIB, "{} MiB", peak / MIB);
}

/// Bodies and pages that are each larger than all there is go one by one.
#[test]
fn what_is_larger_than_all_memory_goes_alone() {
    let web = Web::start(6, |bases| {
        let site = |host: usize| {
            let links: Vec<String> = (0..4).map(|n| format!("/{n}")).collect();
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            let front = page("Front", &prose(host as u64, 60), &links);
            links.iter().enumerate().fold(Site::new().html("/", front), |site, (n, path)| {
                let text = prose((host * 100 + n + 7) as u64, 4_000);
                let packed = Page::bytes("text/html", gzip(&page("Long", &text, &[])));
                site.page(path, packed.header("Content-Encoding", "gzip"))
            })
        };
        (0..bases.len()).map(site).collect()
    });
    let mut config = config();
    config.crawl.limits.page_threads = 4;
    config.crawl.limits.pages_size_max = Size::from_bytes(1 << 10);
    config.fetch.bodies_size_max = Size::from_bytes(1 << 10);
    let report = Crawled::new().run(&config, &web.seeds());
    assert_eq!((report.addresses["stored"], report.retries), (30, 0));
}

#[test]
fn a_page_whose_tree_is_cut_is_marked_and_counted() {
    let links = ["/long"];
    let site = Site::new()
        .html("/", page("Front", &prose(1, 60), &links))
        .html("/long", format!("<title>Long</title><p>{}{}", prose(2, 60), "<p>x".repeat(20_000)));
    let web = Web::one(site);
    let crawled = Crawled::new();
    let mut config = config();
    config.extract.limits.nodes_max = 10_000;
    let report = crawled.run(&config, &web.seeds());
    assert_eq!(report.pages_cut.into_iter().collect::<Vec<_>>(), [("tree", 1)]);
    let told = crawled.explain(&web.url(0, "/long"));
    assert_eq!(told.state, "stored");
    let why = "more elements, or more memory for them, than a page may have".to_owned();
    assert!(told.facts.contains(&("truncated".to_owned(), why)), "{:?}", told.facts);
    let whole = crawled.explain(&web.url(0, "/")).facts;
    assert!(!whole.iter().any(|(name, _)| name == "truncated"));
}

/// Hosts that set fifty cookies of 4 KB each.
#[test]
fn cookies_of_many_hosts_share_their_memory() {
    const HOSTS: usize = 250;
    let cookies = (0..50).fold(Page::html(page("Front", &prose(1, 60), &["/a"])), |page, n| {
        page.header("Set-Cookie", &format!("c{n}={}", "x".repeat(4_000)))
    });
    let web = Web::start(HOSTS, |bases| {
        bases.iter().map(|_| Site::new().page("/", cookies.clone())).collect()
    });
    let folder = tempfile::tempdir().unwrap();
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    fs::write(folder.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    let settings = "[crawl]\nrequests_max = 32\nprobe_error_page = false\n\
                    [fetch]\nidle_connections_max = 16\ncookies = true\ncookies_size_max = \"4 MiB\"\n\
                    [frontier.discover]\nusual_place = false\n";
    fs::write(folder.path().join("some.toml"), settings).unwrap();
    let run = ["--seeds", "seeds.txt", "--allow-private", "--config", "some.toml"];
    let peak = peak(&mut start(&[&run[..], &["--delay", "50ms"]].concat(), folder.path()));
    let asked: usize = (0..HOSTS).map(|host| web.web.targets(host)["/a"]).sum();
    assert_eq!(asked, HOSTS);
    assert!(peak < 200 * MIB, "{} MiB", peak / MIB);
}
