//! Many hosts of few pages each, under names that all lead to 250 addresses of loopback.
//!
//! `many DIR HOSTS PAGES` serves them until it is ended, and writes `seeds`, `config.toml` (which
//! names resolve where) and, last, `ready`.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use webs::{Answer, Log, page, prose, serve, title};

/// Addresses that the hosts share.
const ADDRESSES: u64 = 250;

/// The number in a name such as `h12.example:8080`, or in a path such as `/p/3`.
fn number(text: &str, before: &str, behind: char) -> Option<u64> {
    text.strip_prefix(before)?.split(behind).next()?.parse().ok()
}

fn answer(hosts: u64, pages: u64, port: u16, host: &str, target: &str) -> Answer {
    let at = if target == "/" { Some(0) } else { number(target, "/p/", '?') };
    let known = number(host, "h", '.').filter(|host| *host < hosts).zip(at);
    let Some((host, at)) = known.filter(|(_, at)| *at < pages) else {
        return Answer::status(404, "none");
    };
    let mut links: Vec<String> = (1..pages).map(|page| format!("/p/{page}")).collect();
    if at > 0 {
        links = vec!["/".to_owned(), format!("http://h{}.example:{port}/", (host + at) % hosts)];
    }
    let seed = (host << 24) + at;
    Answer::page("page", page(&title(seed), &prose(seed, 6), links))
}

async fn run(folder: &Path, hosts: u64, pages: u64) -> std::io::Result<()> {
    let ip = |one: u64| Ipv4Addr::new(127, 2, 0, (one % ADDRESSES + 1) as u8);
    let first = TcpListener::bind((ip(0), 0)).await?;
    let port = first.local_addr()?.port();
    let mut listeners = vec![first];
    for one in 1..ADDRESSES.min(hosts) {
        listeners.push(TcpListener::bind((ip(one), port)).await?);
    }
    let mut seeds = String::new();
    let mut config = "[fetch]\nallow_private = true\nresolve = [\n".to_owned();
    for host in 0..hosts {
        writeln!(seeds, "http://h{host}.example:{port}/").expect("a string takes it");
        writeln!(config, "\"h{host}.example={}\",", ip(host)).expect("a string takes it");
    }
    std::fs::write(folder.join("seeds"), seeds)?;
    std::fs::write(folder.join("config.toml"), config + "]\n[frontier]\ndelay = \"0\"\n")?;
    let answers = move |host: &str, target: &str| answer(hosts, pages, port, host, target);
    let log = Log::create(&folder.join("log"))?;
    // The last file: whoever waits for it finds every host listening.
    std::fs::write(folder.join("ready"), "")?;
    serve(listeners, Arc::new(answers), log).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("many DIR HOSTS PAGES");
    let mut number = || arguments.next().and_then(|n| n.parse().ok()).expect("many DIR HOSTS PAGES");
    run(Path::new(&folder), number(), number()).await
}
