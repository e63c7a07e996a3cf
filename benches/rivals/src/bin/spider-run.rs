//! Crawls one site with the crate `spider`, without delay, and prints how many pages it got.

use std::time::{Duration, Instant};

use spider::website::Website;

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("spider-run URL");
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
    let started = Instant::now();
    website.crawl().await;
    let seconds = started.elapsed().as_secs_f64();
    website.unsubscribe();
    drop(website);
    let (pages, bytes) = counter.await.expect("the counter does not panic");
    println!("{{\"pages\": {pages}, \"bytes\": {bytes}, \"seconds\": {seconds:.3}}}");
}
