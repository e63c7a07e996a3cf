//! Crawls sites with the crate `spider`, without delay, and prints how many pages it got.
//! Usage: spider-run URL...

use std::time::{Duration, Instant};

use spider::website::Website;

/// Returns the pages of one site, and their bytes.
async fn crawl(url: String) -> (u64, u64) {
    let mut website = Website::new(&url);
    website.with_respect_robots_txt(true).with_delay(0).with_request_timeout(Some(Duration::from_secs(30)));
    let mut pages = website.subscribe(4096);
    let counter = tokio::spawn(async move {
        let (mut count, mut bytes) = (0u64, 0u64);
        while let Ok(page) = pages.recv().await {
            count += 1;
            bytes += page.get_html_bytes_u8().len() as u64;
        }
        (count, bytes)
    });
    website.crawl().await;
    website.unsubscribe();
    drop(website);
    counter.await.expect("the counter does not panic")
}

#[tokio::main]
async fn main() {
    let started = Instant::now();
    let crawls: Vec<_> = std::env::args().skip(1).map(|url| tokio::spawn(crawl(url))).collect();
    assert!(!crawls.is_empty(), "spider-run URL...");
    let (mut pages, mut bytes) = (0, 0);
    for crawl in crawls {
        let (count, size) = crawl.await.expect("no crawl panics");
        (pages, bytes) = (pages + count, bytes + size);
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{{\"pages\": {pages}, \"bytes\": {bytes}, \"seconds\": {seconds:.3}}}");
}
