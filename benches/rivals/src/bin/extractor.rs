//! Answers pages as `crawl extract --jsonl` does: a line `{"id", "url", "html"}` with a line
//! `{"id", "text", "cpu_ms"}`, where `cpu_ms` is the processor time of the page alone.
//! Usage: extractor parse|dom_smoothie

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use dom_smoothie::{Config, Readability, TextMode};
use rustix::time::{ClockId, clock_gettime};
use scraper::Html;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Parses a page and drops it: what every extractor on this parser pays. The answer has the number
/// of nodes in place of a text.
fn parse(html: &str) -> String {
    Html::parse_document(html).tree.values().len().to_string()
}

/// The text that `dom_smoothie` finds, laid out in lines; none if it finds nothing.
fn dom_smoothie(html: &str, url: Option<&str>) -> String {
    let config = Config { text_mode: TextMode::Formatted, ..Config::default() };
    let article = Readability::new(html, url, Some(config.clone()))
        .or_else(|_| Readability::new(html, None, Some(config)))
        .and_then(|mut page| page.parse());
    article.map(|article| article.text_content.to_string()).unwrap_or_default()
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let page: Value = serde_json::from_str(&line.expect("the input is read")).expect("JSON");
        let html = page["html"].as_str().expect("a page has HTML");
        let started = thread_time();
        let text = match name.as_str() {
            "parse" => parse(html),
            "dom_smoothie" => dom_smoothie(html, page["url"].as_str()),
            _ => panic!("usage: extractor parse|dom_smoothie"),
        };
        let cpu_ms = (thread_time() - started).as_secs_f64() * 1000.0;
        let answer = json!({"id": page["id"], "text": text, "cpu_ms": cpu_ms});
        writeln!(out, "{answer}").expect("the output is written");
    }
}
