//! The experiments of the text on Elasticsearch, TF-IDF and cosine: edited documents and edited
//! sentences must find where they come from. See benches/README.md.
//!
//! `search make FOLDER [DOCUMENTS [QUERIES [SENTENCES]]]` makes texts, edits some and writes both;
//! `search FOLDER [--index DIR] [--documents-only] [--keywords-only] [--quick] [--misses]` asks.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a program for the deduping"
)]

mod made;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rapidfuzz::distance::lcs_seq;
use uniqcrawl::base::clock::thread_time;
use uniqcrawl::corpus::dedup::compare;
use uniqcrawl::corpus::files::{Lines, Record};
use uniqcrawl::corpus::search::{Config, Entry, Search};
use uniqcrawl::neardup::{self, InputDocument};
use uniqcrawl::text::features::Fingerprinter;
use uniqcrawl::text::simhash::Fingerprint;
use uniqcrawl::text::{Idf, Normal, Tokens, normalize_as};

/// Distances that are tried.
const DISTANCES: [u32; 4] = [3, 10, 16, 25];

/// A question with the documents that are right answers.
struct Query {
    text: String,
    right: HashSet<String>,
}

/// The text of each document.
type Texts<'a> = HashMap<&'a str, &'a str>;

/// One text to be found: a document, or a sentence of one.
struct Item {
    document: u32,
    fingerprint: Fingerprint,
    words: Box<[u32]>,
    square: u64,
    letters: Box<[char]>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [make, folder, counts @ ..] = arguments.as_slice()
        && make == "make"
    {
        let count = |at: usize, usual| counts.get(at).map_or(usual, |text| text.parse().unwrap());
        let counts = (count(0, 10_000), count(1, 500), count(2, 68));
        made::write(Path::new(folder), counts, sentences);
        return;
    }
    let Some(folder) = arguments.first().map(PathBuf::from) else {
        println!("usage: search make FOLDER [DOCUMENTS [QUERIES [SENTENCES]]]");
        println!(
            "       search FOLDER [--index DIR] [--documents-only] [--keywords-only] [--quick] [--misses]"
        );
        return;
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let (only, misses, quick) = (has("--keywords-only"), has("--misses"), has("--quick"));
    let index = arguments.iter().position(|a| a == "--index").map(|at| &arguments[at + 1]);
    let started = Instant::now();
    // Its name says whether an index is of this corpus.
    let corpus = folder.join("corpus.jsonl").canonicalize().unwrap();
    let search = Search::open_at(index.map(Path::new), &Config::default()).unwrap();
    let updated = search.fill(&format!("{} 1", corpus.display()), read(&corpus).map(Ok)).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    println!("{} documents, {} indexed in {seconds:.1} s", search.documents(), updated.indexed);

    let texts: Vec<Entry> = read(&corpus).collect();
    let by_id: Texts<'_> = texts.iter().map(|t| (t.id.as_str(), t.text.as_str())).collect();
    println!("\n## Edited documents\n");
    let queries = queries(&folder, "docs", 2);
    heading();
    let of =
        |hits: Vec<uniqcrawl::corpus::search::Hit>| hits.into_iter().next().map(|hit| hit.doc_id);
    let lost =
        measure("keywords + cosine", (&queries, &by_id), |text| of(search.text(text, 1).unwrap()));
    for query in lost.into_iter().filter(|_| misses) {
        tell(&search, query);
    }
    let fingerprinter = Fingerprinter::default();
    if !only {
        let started = Instant::now();
        let items = items(&texts, &fingerprinter, |text| vec![text]);
        let first = started.elapsed().as_secs_f64();
        rivals((&texts, &by_id), &items, &queries, (&fingerprinter, quick));
        let longest = longest_sentences(&texts);
        measure("longest sentence", (&queries, &by_id), |text| {
            longest.get(&longest_of(text)?).map(|at| texts[*at as usize].id.clone())
        });
        let all = started.elapsed().as_secs_f64();
        println!("\nfingerprints took {first:.0} s, all but keywords + cosine {all:.0} s");
    }

    println!("\n## Edited sentences\n");
    let queries = self::queries(&folder, "sents", 2);
    heading();
    measure("keywords + cosine", (&queries, &by_id), |text| {
        search.sentence(text, 1).unwrap().into_iter().next().map(|hit| hit.doc_id)
    });
    if !only && !has("--documents-only") {
        let items = self::items(&texts, &fingerprinter, sentences);
        println!("| ({} sentences) | | | | | | | |", items.len());
        rivals((&texts, &by_id), &items, &queries, (&fingerprinter, quick));
    }
}

fn rivals(
    (texts, by_id): (&[Entry], &Texts<'_>),
    items: &[Item],
    queries: &[Query],
    (fingerprinter, quick): (&Fingerprinter, bool),
) {
    for most in DISTANCES {
        measure(&format!("simhash, distance {most}"), (queries, by_id), |text| {
            let asked = fingerprinter.text_keys(text, "").fingerprint;
            let near = items.iter().map(|item| (item.fingerprint.distance(asked), item));
            let best = near.min_by_key(|(distance, _)| *distance)?;
            (best.0 <= most).then(|| texts[best.1.document as usize].id.clone())
        });
    }
    let all = if quick { &[][..] } else { &[64] };
    for most in DISTANCES.iter().chain(all) {
        let name = match most {
            64 => "cosine over all".to_owned(),
            most => format!("simhash, distance {most}, + cosine"),
        };
        measure(&name, (queries, by_id), |text| {
            let asked = fingerprinter.text_keys(text, "").fingerprint;
            let words = words(text);
            let square = square(&words);
            let mut counts: HashMap<u32, u64> = HashMap::new();
            for word in &words {
                *counts.entry(*word).or_default() += 1;
            }
            let near = items.iter().filter(|item| item.fingerprint.distance(asked) <= *most);
            let cosine = |item: &Item| {
                let product: u64 = item.words.iter().filter_map(|word| counts.get(word)).sum();
                product as f64 / ((item.square as f64).sqrt() * (square as f64).sqrt()).max(1e-9)
            };
            let best = near.map(|item| (cosine(item), item)).max_by(|a, b| a.0.total_cmp(&b.0));
            best.map(|(_, item)| texts[item.document as usize].id.clone())
        });
    }
    if quick {
        return;
    }
    measure("longest common subsequence over all", (queries, by_id), |text| {
        let asked = lcs_seq::BatchComparator::new(text.chars());
        let share = |item: &Item| asked.normalized_similarity(item.letters.iter().copied());
        let all = items.iter().map(|item| (share(item), item));
        let best = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(texts[best.1.document as usize].id.clone())
    });
}

fn heading() {
    println!(
        "| | recall | with reprints | precision | all queries | CPU time of one | median | p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
}

/// Asks every question and prints a row. Another document that `crawl dedup` takes for a copy of the
/// right one is a reprint of it.
fn measure<'q>(
    name: &str,
    (queries, texts): (&'q [Query], &Texts<'_>),
    mut answer: impl FnMut(&str) -> Option<String>,
) -> Vec<&'q Query> {
    let (mut right, mut reprints, mut answered) = (0u32, 0u32, 0u32);
    let (mut times, mut work, mut missed) = (Vec::new(), Duration::ZERO, Vec::new());
    for query in queries {
        let (started, worked) = (Instant::now(), thread_time());
        let found = answer(&query.text);
        times.push(started.elapsed());
        work += thread_time().saturating_sub(worked);
        let is_right = found.as_ref().is_some_and(|found| query.right.contains(found));
        right += u32::from(is_right);
        if !is_right {
            missed.push(query);
        }
        let Some(found) = found else { continue };
        answered += 1;
        if !is_right && query.right.iter().any(|id| same(texts[id.as_str()], texts[found.as_str()]))
        {
            reprints += 1;
        }
    }
    times.sort_unstable();
    let all: Duration = times.iter().sum();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "| {name} | {:.2} % ({right}/{}) | {:.2} % | {:.2} % | {:.2} s | {:.2} ms | {:.2} ms | {:.2} ms |",
        100.0 * f64::from(right) / queries.len() as f64,
        queries.len(),
        100.0 * f64::from(right + reprints) / queries.len() as f64,
        100.0 * f64::from(right) / f64::from(answered.max(1)),
        all.as_secs_f64(),
        ms(work) / queries.len() as f64,
        ms(times[times.len() / 2]),
        ms(times[times.len() * 99 / 100]),
    );
    missed
}

/// Tells what was found instead of the right answer.
fn tell(search: &Search, query: &Query) {
    let start: String = query.text.chars().take(20).collect();
    println!("\nnot found: {:?}, asked {start:?}...", query.right);
    for keyword in search.keywords(&query.text).unwrap() {
        print!("{} ({}, {:.0}) ", keyword.word, keyword.documents, keyword.weight);
    }
    println!();
    for hit in search.text(&query.text, 1_000).unwrap().iter().enumerate() {
        let (rank, hit) = (hit.0 + 1, hit.1);
        if rank <= 3 || query.right.contains(&hit.doc_id) {
            println!("{rank}. {} {:.5} {}", hit.doc_id, hit.cosine, hit.keywords.join(" "));
        }
    }
}

fn same(one: &str, other: &str) -> bool {
    let document = |text| InputDocument { text, ..InputDocument::default() };
    compare(&neardup::Config::default(), document(one), document(other)).unwrap().same
}

fn read(path: &Path) -> impl Iterator<Item = Entry> + use<> {
    let (mut lines, mut line, mut at) = (Lines::open(path).unwrap(), Vec::new(), 0);
    std::iter::from_fn(move || {
        lines.next(&mut line).unwrap().then(|| {
            at += 1;
            let line = String::from_utf8_lossy(&line);
            let record = Record::parse(&line).unwrap();
            let (id, text) = (record.id(at), record.text.clone().into_owned());
            Entry { id, text, ..Entry::default() }
        })
    })
}

/// Reads questions, and their answers from a column of the table of truth.
fn queries(folder: &Path, kind: &str, column: usize) -> Vec<Query> {
    let mut right = HashMap::new();
    let truth = File::open(folder.join(format!("truth_{kind}.tsv"))).unwrap();
    for line in BufReader::new(truth).lines().skip(1).map(Result::unwrap) {
        let fields: Vec<&str> = line.split('\t').collect();
        let mut ids: HashSet<String> = fields[column].split(',').map(str::to_owned).collect();
        ids.insert(fields[1].to_owned());
        right.insert(fields[0].to_owned(), ids);
    }
    let asked = File::open(folder.join(format!("queries_{kind}.jsonl"))).unwrap();
    BufReader::new(asked)
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let right = right.remove(line["qid"].as_str().unwrap()).unwrap();
            Query { text: line["text"].as_str().unwrap().to_owned(), right }
        })
        .collect()
}

fn words(text: &str) -> Vec<u32> {
    let (text, mut words) = (normalize_as(text, Normal::default()), Vec::new());
    let idf = Idf::built_in();
    Tokens::of(&text).every_word(|word, hash| {
        // As the search does it.
        if idf.of(word, hash) >= 3.0 {
            words.push(hash as u32);
        }
    });
    words
}

fn square(words: &[u32]) -> u64 {
    let mut words = words.to_vec();
    words.sort_unstable();
    words.chunk_by(|a, b| a == b).map(|run| (run.len() as u64).pow(2)).sum()
}

/// Fingerprints all parts of all texts, on all cores.
fn items(
    texts: &[Entry],
    fingerprinter: &Fingerprinter,
    parts: impl Fn(&str) -> Vec<&str> + Sync,
) -> Vec<Item> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = texts.len().div_ceil(cores);
    thread::scope(|scope| {
        let hands: Vec<_> = texts
            .chunks(share)
            .enumerate()
            .map(|(hand, chunk)| {
                let parts = &parts;
                scope.spawn(move || {
                    let mut items = Vec::new();
                    for (at, text) in chunk.iter().enumerate() {
                        for part in parts(&text.text) {
                            let words = words(part);
                            items.push(Item {
                                document: (hand * share + at) as u32,
                                fingerprint: fingerprinter.text_keys(part, "").fingerprint,
                                square: square(&words),
                                words: words.into(),
                                letters: part.chars().collect(),
                            });
                        }
                    }
                    items
                })
            })
            .collect();
        hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    })
}

fn sentences(text: &str) -> Vec<&str> {
    let tokens = Tokens::of(text);
    let all = tokens.sentences().filter(|sentence| sentence.len() > 5);
    all.map(|sentence| tokens.stretch(sentence)).collect()
}

fn longest_of(text: &str) -> Option<u64> {
    let longest = sentences(text).into_iter().max_by_key(|sentence| sentence.len())?;
    Some(xxhash_rust::xxh3::xxh3_64(normalize_as(longest, Normal::default()).as_bytes()))
}

/// The first document of each longest sentence.
fn longest_sentences(texts: &[Entry]) -> HashMap<u64, u32> {
    let mut found = HashMap::new();
    for (at, text) in texts.iter().enumerate() {
        if let Some(longest) = longest_of(&text.text) {
            found.entry(longest).or_insert(at as u32);
        }
    }
    found
}
