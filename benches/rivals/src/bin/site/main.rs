//! Serves a site of N pages on loopback, until it is killed: by default of 13 KB with 20 links each.
//! Usage: site ADDRESS [PAGES [--bytes N [--first N] | --copies TRUTH [--language en|zh]] [--hosts N]]
//!
//! With `--bytes`, pages have N bytes of text and are made when they are asked for, so that there may
//! be more of them than memory holds. They are numbered from `--first` (0): those of other numbers
//! have other words.
//! With `--copies`, one page in ten is a copy of another one with known edits, and one of a series
//! that shares a notice; TRUTH is the file that says so, a line of JSON for each page. The pages are
//! spread over N (1) hosts: the addresses that follow ADDRESS, with its port.

mod chinese;
mod copies;
mod english;
mod language;
mod layout;
mod usual;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use uniqcrawl::localweb::{LocalWeb, Page, Site};

use language::Vocabulary;
use usual::Pages;

const ROBOTS: &str = "User-agent: *\nAllow: /\n";

struct Arguments {
    address: SocketAddr,
    pages: u64,
    /// File of the truth, for a site of copies.
    copies: Option<String>,
    hosts: u8,
    chinese: bool,
    /// Length of the text of a page that is made when it is asked for.
    bytes: Option<usize>,
    /// Number of the first of them.
    first: u64,
}

fn arguments() -> Arguments {
    let mut rest = std::env::args().skip(1);
    let address = rest.next().expect("site ADDRESS [PAGES [--copies TRUTH ...]]");
    let address = address.parse().expect("an address and port");
    let pages = rest.next().map_or(5_000, |n| n.parse().expect("a number of pages"));
    let mut all = Arguments {
        address,
        pages,
        copies: None,
        hosts: 1,
        chinese: false,
        bytes: None,
        first: 0,
    };
    while let Some(name) = rest.next() {
        let value = rest.next().expect("each option has a value");
        match name.as_str() {
            "--bytes" => all.bytes = Some(value.parse().expect("a number of bytes")),
            "--first" => all.first = value.parse().expect("a number"),
            "--copies" => all.copies = Some(value),
            "--hosts" => all.hosts = value.parse().expect("a number of hosts"),
            "--language" => all.chinese = value == "zh",
            _ => panic!("unknown option {name}"),
        }
    }
    all
}

/// A site of one template, as it has always been: what figures of different times are compared by.
fn usual(count: u64) -> Site {
    let words = usual::vocabulary();
    let pages = Pages { count, first: 0, bytes: 12_000, hosts: Vec::new() };
    let made = |number| Page::html(usual::page(number, &pages, &words));
    let front = Site::new().page("/", made(0)).robots(ROBOTS);
    (0..count).fold(front, |site, number| site.page(&format!("/p/{number}"), made(number)))
}

/// The same on many hosts, each page made when it is asked for.
fn on_demand(pages: Pages) -> Vec<Site> {
    let hosts = pages.hosts.len() as u64;
    let common = Arc::new((pages, usual::vocabulary()));
    let site = |host: u64| {
        let common = common.clone();
        Site::new().robots(ROBOTS).handler(move |request| {
            let (pages, words) = &*common;
            let number = match request.target.as_str() {
                "/" => host,
                target => target.strip_prefix("/p/")?.parse().ok()?,
            };
            (number < pages.count).then(|| Page::html(usual::page(number, pages, words)))
        })
    };
    (0..hosts).map(site).collect()
}

/// The same port at the addresses that follow.
fn addresses(first: SocketAddr, count: u8) -> Vec<SocketAddr> {
    let IpAddr::V4(ip) = first.ip() else { return vec![first] };
    let address = |n: u8| Ipv4Addr::from(u32::from(ip) + u32::from(n));
    (0..count).map(|n| SocketAddr::from((address(n), first.port()))).collect()
}

/// Sites with known copies, one for each host.
fn with_copies(arguments: &Arguments, hosts: &[SocketAddr]) -> Vec<Site> {
    let language = if arguments.chinese { &chinese::CHINESE } else { &english::ENGLISH };
    let bases = hosts.iter().map(|address| format!("http://{address}")).collect();
    let all = copies::Site::new(arguments.pages, bases, Vocabulary::new(language));
    if let Some(file) = &arguments.copies {
        std::fs::write(file, all.truth()).expect("the truth can be written");
    }
    let front = |host| Site::new().robots(ROBOTS).page("/", Page::html(all.front(host)));
    let mut sites: Vec<Site> = (0..all.hosts()).map(front).collect();
    for (number, html) in (0..).zip(all.each(|number| all.html(number))) {
        let site = &mut sites[all.host(number)];
        *site = std::mem::take(site).page(&format!("/p/{number}"), Page::html(html));
    }
    sites
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = arguments();
    let hosts = addresses(arguments.address, arguments.hosts);
    let sites = match (&arguments.copies, arguments.bytes) {
        (Some(_), _) => with_copies(&arguments, &hosts),
        (None, Some(bytes)) => {
            let Arguments { pages: count, first, .. } = arguments;
            on_demand(Pages { count, first, bytes, hosts: hosts.clone() })
        }
        (None, None) => vec![usual(arguments.pages)],
    };
    let mut webs = Vec::new();
    for (address, site) in hosts.iter().zip(sites) {
        let web = match LocalWeb::start_at(*address, site).await {
            Ok(web) => web,
            Err(error) => {
                eprintln!("site: {address}: {error}: name an address of loopback and a free port");
                return ExitCode::FAILURE;
            }
        };
        web.stop_recording();
        webs.push(web);
    }
    webs.iter().for_each(|web| println!("{}", web.url(0)));
    std::future::pending().await
}
