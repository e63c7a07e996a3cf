//! A client that only reads: what any crawler pays for a page.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinSet;
use uniqcrawl::localweb::{LocalWeb, Page, Site};

use super::stages::{Taken, now};

/// Requests at a time.
const AT_A_TIME: usize = 16;

/// Reads all pages from a server on loopback: the time of the client.
pub fn read(pages: &[Vec<u8>], rounds: usize) -> Taken {
    // Already there, the second time.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let server = server.expect("a runtime");
    let site = pages.iter().enumerate().fold(Site::new(), |site, (at, page)| {
        site.page(&format!("/{at}"), Page::bytes("text/html; charset=utf-8", page.clone()))
    });
    let web = server.block_on(LocalWeb::start(1, |_| vec![site])).expect("loopback can be bound");
    web.stop_recording();
    let base = web.url(0);
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let requests = reqwest::Client::builder().build().expect("a client");
    let round = || {
        let started = now();
        client.block_on(read_all(&requests, &base, pages.len()));
        now().saturating_sub(started)
    };
    let mut times: Vec<Duration> = (0..rounds).map(|_| round()).collect();
    Taken::of(&mut times)
}

async fn read_all(client: &reqwest::Client, base: &str, count: usize) {
    let mut tasks = JoinSet::new();
    for number in 0..count {
        if tasks.len() == AT_A_TIME {
            tasks.join_next().await;
        }
        let (client, url) = (client.clone(), format!("{}/{number}", base.trim_end_matches('/')));
        tasks.spawn(async move {
            let answer = client.get(url).send().await.expect("an answer");
            assert!(answer.status().is_success());
            answer.bytes().await.expect("a body").len()
        });
    }
    tasks.join_all().await;
}
