//! Crawls from a URL and prints each new document: `cargo run --example crawl -- https://example.org/ store`

#![allow(clippy::print_stdout, reason = "it prints what it found")]

use uniqcrawl::{Crawler, LibraryError};

fn main() -> Result<(), LibraryError> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "https://example.org/".to_owned());
    let folder = arguments.next().unwrap_or_else(|| "store".to_owned());
    let mut crawler = Crawler::builder()
        .allow_private(url.starts_with("http://127."))
        .seed(url)
        .store(folder)
        .max_pages(1_000)
        .on_document(|document| println!("{} {}", document.url, document.title))
        .build()?;
    let summary = crawler.run()?;
    println!("{} documents, {} copies", summary.documents, summary.copies);
    for (url, why) in summary.failed_seeds {
        println!("not crawled: {url}: {why}");
    }
    Ok(())
}
