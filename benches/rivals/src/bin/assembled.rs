//! Crawls sites without delay and finds copies, as a program of the best crates does: `spider`
//! fetches, `dom_smoothie` extracts, `gaoya` finds candidates, `redb` stores.
//! Usage: assembled FOLDER URL...
//!
//! Candidates come from 42 bands of 3 and are confirmed by the Jaccard of all pairs of words,
//! counted exactly; a Chinese character is a word. The other peers use the same numbers.

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use dom_smoothie::{Config, Readability, TextMode};
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher64V1};
use redb::{Database, TableDefinition};
use spider::website::Website;
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BANDS: usize = 42;
const ROWS: usize = 3;
const GRAM: usize = 2;

/// Three standard deviations of the Jaccard of two sketches: less alike ones are not counted exactly.
const UNSURE: f64 = 0.15;

/// Pages of one commit.
const BATCH: usize = 256;

/// URL, text, and the number of the page of which it is a copy.
const PAGES: TableDefinition<u64, (&str, &str, Option<u64>)> = TableDefinition::new("pages");

/// A page as it comes from the net.
struct Fetched {
    url: String,
    html: String,
}

/// A page that was read: its text, its pairs of words as sorted hashes, and its sketch.
struct Read {
    url: String,
    text: String,
    grams: Vec<u64>,
    sketch: Vec<u64>,
}

fn words(text: &str) -> Vec<&str> {
    let han = |letter: char| ('\u{3400}'..='\u{9fff}').contains(&letter);
    let (mut words, mut start) = (Vec::new(), None);
    for (at, letter) in text.char_indices() {
        let inside = letter.is_alphanumeric() && !han(letter);
        match start {
            None if inside => start = Some(at),
            Some(from) if !inside => {
                words.push(&text[from..at]);
                start = None;
            }
            _ => {}
        }
        if han(letter) {
            words.push(&text[at..at + letter.len_utf8()]);
        }
    }
    words.extend(start.map(|from| &text[from..]));
    words
}

fn read(page: Fetched, hasher: &MinHasher64V1<impl std::hash::BuildHasher>) -> Read {
    let config = Config { text_mode: TextMode::Formatted, ..Config::default() };
    let article = Readability::new(page.html, Some(&page.url), Some(config));
    let text = article.and_then(|mut page| page.parse()).map(|page| page.text_content.to_string());
    let text = text.unwrap_or_default();
    let lower = text.to_lowercase();
    let words = words(&lower);
    let mut grams: Vec<u64> =
        words.windows(GRAM).map(|gram| xxh3_64(gram.join(" ").as_bytes())).collect();
    grams.sort_unstable();
    grams.dedup();
    let sketch = hasher.create_signature(grams.iter());
    Read { url: page.url, text, grams, sketch }
}

/// Of two sorted lists.
fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        both += usize::from(a[i] == b[j]);
        (i, j) = (i + usize::from(a[i] <= b[j]), j + usize::from(b[j] <= a[i]));
    }
    both as f64 / (a.len() + b.len() - both) as f64
}

/// What is known of the pages so far; only this thread looks for copies and writes.
struct Corpus {
    database: Database,
    /// A line of JSON for each page: of which other one it is a copy.
    lines: BufWriter<fs::File>,
    index: MinHashIndex<u64, u64>,
    threshold: f64,
    grams: Vec<Vec<u64>>,
    urls: Vec<String>,
    copy_of: Vec<Option<u64>>,
}

impl Corpus {
    fn add(&mut self, page: &mut Read) -> Option<u64> {
        let number = self.urls.len() as u64;
        let mut original = None;
        if !page.grams.is_empty() {
            let alike = self.index.query_owned(&page.sketch).into_iter();
            let alike = alike.map(|n| (jaccard(&page.grams, &self.grams[n as usize]), n));
            let best = alike.max_by(|a, b| a.0.total_cmp(&b.0));
            let best = best.filter(|(jaccard, _)| *jaccard >= self.threshold);
            original = best.map(|(_, n)| self.copy_of[n as usize].unwrap_or(n));
            self.index.insert(number, std::mem::take(&mut page.sketch));
        }
        self.grams.push(std::mem::take(&mut page.grams));
        self.urls.push(page.url.clone());
        self.copy_of.push(original);
        original
    }

    /// Stores pages until there are none, a batch in one transaction, and then writes their lines.
    fn store(&mut self, pages: &mpsc::Receiver<Read>) -> Result<(), Box<dyn Error>> {
        while let Ok(first) = pages.recv() {
            let stored = self.urls.len();
            let transaction = self.database.begin_write()?;
            let mut table = transaction.open_table(PAGES)?;
            for mut page in std::iter::once(first).chain(pages.iter().take(BATCH - 1)) {
                let number = self.urls.len() as u64;
                let original = self.add(&mut page);
                table.insert(number, (page.url.as_str(), page.text.as_str(), original))?;
            }
            drop(table);
            transaction.commit()?;
            self.write_lines(stored)?;
        }
        Ok(())
    }

    fn write_lines(&mut self, from: usize) -> std::io::Result<()> {
        for (url, original) in self.urls.iter().zip(&self.copy_of).skip(from) {
            let of = original.map(|n| self.urls[n as usize].as_str());
            writeln!(self.lines, "{}", serde_json::json!({"url": url, "copyOf": of}))?;
        }
        self.lines.flush()
    }
}

async fn fetch(url: String, pages: mpsc::Sender<Fetched>) {
    let mut website = Website::new(&url);
    website.with_respect_robots_txt(true).with_delay(0);
    website.with_request_timeout(Some(Duration::from_secs(30)));
    // Pages that nobody has taken yet: a subscriber that is slower than that would lose some.
    let mut fetched = website.subscribe(1 << 14);
    let taker = tokio::spawn(async move {
        while let Ok(page) = fetched.recv().await {
            let url = page.get_url().to_owned();
            if spider::url::Url::parse(&url).is_ok_and(|url| url.path() != "/") {
                let _ = pages.send(Fetched { url, html: page.get_html() });
            }
        }
    });
    website.crawl().await;
    website.unsubscribe();
    drop(website);
    taker.await.expect("the taker does not panic");
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("assembled FOLDER URL...");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let threshold = std::env::var("THRESHOLD").map_or(0.5, |text| text.parse().expect("a number"));
    let (fetched, pages) = mpsc::channel();
    let (done, read_pages) = mpsc::sync_channel(BATCH);
    let pages = Arc::new(Mutex::new(pages));
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let (pages, done) = (pages.clone(), done.clone());
        thread::spawn(move || {
            let hasher = MinHasher64V1::new(BANDS * ROWS);
            let next = || pages.lock().expect("no reader panics").recv();
            while let Ok(page) = next() {
                done.send(read(page, &hasher)).expect("the store takes all pages");
            }
        });
    }
    drop(done);
    let store = thread::spawn(move || {
        let file = Path::new(&folder);
        let lines = fs::File::create(file.join("pages.jsonl")).expect("the lines can be written");
        let mut corpus = Corpus {
            database: Database::create(file.join("pages.redb")).expect("the store can be made"),
            lines: BufWriter::new(lines),
            index: MinHashIndex::new(BANDS, ROWS, threshold - UNSURE),
            threshold,
            grams: Vec::new(),
            urls: Vec::new(),
            copy_of: Vec::new(),
        };
        corpus.store(&read_pages).expect("the store can be written");
    });
    let crawls: Vec<_> = arguments.map(|url| tokio::spawn(fetch(url, fetched.clone()))).collect();
    drop(fetched);
    for crawl in crawls {
        crawl.await.expect("no crawl panics");
    }
    store.join().expect("the store does not panic");
}
