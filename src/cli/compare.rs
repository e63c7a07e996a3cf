//! `crawl compare`.

use std::path::Path;

use crate::config::Config as Settings;
use crate::corpus::dedup::{Comparison, Side, compare_sides};
use crate::corpus::files::{Lines, Record, values_of};
use crate::corpus::tables::DOCUMENTS;
use crate::neardup::{Config, InputDocument};
use crate::store::{self, Snapshot, Store, View as _};
use crate::text::features::{ArticleField, Fingerprinter};
use anyhow::{Context as _, Result};
use serde::Serialize;

use super::args::CompareArgs;
use super::exit::{Exit, Usage};
use super::{dedup, inspect, screen};

/// `crawl compare ONE OTHER`.
pub(super) fn compare(args: &CompareArgs, json: bool) -> Result<Exit> {
    let config = dedup::settings(&args.rule)?;
    if let Some(store) = &args.store {
        return compare_stored(args, &config, store.folder()?, json);
    }
    let fingerprinter = Fingerprinter::new(config.features.clone())?;
    let [one, other] = match &args.jsonl {
        Some(path) => pair(path, &fingerprinter, [&args.first, &args.second])?,
        None => [read(&fingerprinter, &args.first)?, read(&fingerprinter, &args.second)?],
    };
    let comparison = compare_sides(&config, &one, &other)?;
    if json {
        return screen::json(&comparison);
    }
    show(&comparison, None)?;
    Ok(Exit::Done)
}

/// What a store has made of the two.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SiteStanding {
    /// They are one document there.
    same: bool,
    /// The documents to which they belong.
    doc_ids: [String; 2],
    /// Their URLs.
    urls: [String; 2],
}

/// `crawl compare --store DIR ONE OTHER`.
fn compare_stored(args: &CompareArgs, config: &Config, folder: &Path, json: bool) -> Result<Exit> {
    let fingerprinter = Fingerprinter::for_articles(config.features.clone())?;
    let store = Store::open_to_read(folder, Settings::default().cache_bytes())?;
    let (name, given) = ("features", fingerprinter.name());
    if let Some(stored) = store.setting(name)?.filter(|stored| *stored != given) {
        return Err(store::Error::Setting { name: name.to_owned(), stored, given }.into());
    }
    let snapshot = store.snapshot()?;
    let one = stored(&store, &snapshot, &fingerprinter, &args.first)?;
    let other = stored(&store, &snapshot, &fingerprinter, &args.second)?;
    let standing = SiteStanding {
        same: one.number == other.number,
        doc_ids: [one.doc_id, other.doc_id],
        urls: [one.url, other.url],
    };
    let comparison = compare_sides(config, &one.side, &other.side)?;
    if json {
        return screen::json(&serde_json::json!({ "pair": comparison, "store": standing }));
    }
    show(&comparison, Some(&standing))?;
    Ok(Exit::Done)
}

/// A copy of a store.
struct StoredTexts {
    number: u64,
    doc_id: String,
    url: String,
    side: Side<'static>,
}

/// Finds the copy at a URL, or the canonical copy of a docId.
fn stored(
    store: &Store,
    snapshot: &Snapshot,
    fingerprinter: &Fingerprinter,
    name: &str,
) -> Result<StoredTexts> {
    let gone = || Usage(format!("no page carries `{name}` any more"));
    let (number, url) = inspect::find(store, snapshot, name)?;
    let document = snapshot.get(DOCUMENTS, number)?.ok_or_else(gone)?;
    let url = url.map_or(document.canonical, |url| url.to_string());
    let side = Side::stored(snapshot, fingerprinter, number, &url)?.ok_or_else(gone)?;
    Ok(StoredTexts { number, doc_id: document.id.to_string(), url, side })
}

/// A file as an article of which only the text is known.
fn read(fingerprinter: &Fingerprinter, path: &str) -> Result<Side<'static>> {
    let bytes = std::fs::read(path)
        .map_err(|error| Usage(error.to_string()))
        .with_context(|| format!("cannot read {path}"))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(keys(fingerprinter, InputDocument { text: &text, ..InputDocument::default() }))
}

/// Two documents of a file of JSON lines.
fn pair(
    path: &Path,
    fingerprinter: &Fingerprinter,
    wanted: [&str; 2],
) -> Result<[Side<'static>; 2]> {
    let mut lines = Lines::open(path).map_err(|error| Usage(error.to_string()))?;
    let names: Vec<&str> = fingerprinter.fields().collect();
    let mut found = [None, None];
    let mut line = Vec::new();
    let mut number = 0;
    while lines.next(&mut line)? {
        number += 1;
        let text = String::from_utf8_lossy(&line);
        let Ok(record) = Record::parse(&text) else { continue };
        let id = record.id(number);
        for (wanted, found) in wanted.into_iter().zip(&mut found) {
            if found.is_none() && id == wanted {
                let values = values_of(&text, &names);
                let fields: Vec<ArticleField<'_>> = (names.iter().zip(&values))
                    .map(|(name, value)| ArticleField { name, value })
                    .collect();
                let Record { title, text, language, url, .. } = &record;
                let (popularity, fields) = (record.popularity, &fields[..]);
                let document = InputDocument { title, text, language, url, fields, popularity };
                *found = Some(keys(fingerprinter, document));
            }
        }
    }
    let missing = |id: &str| Usage(format!("{} has no document `{id}`", path.display()));
    let [one, other] = found;
    Ok([one.ok_or_else(|| missing(wanted[0]))?, other.ok_or_else(|| missing(wanted[1]))?])
}

/// Fingerprints an article and keeps its text.
fn keys(fingerprinter: &Fingerprinter, document: InputDocument<'_>) -> Side<'static> {
    let Side { keys, text } = Side::of(fingerprinter, document);
    Side { keys, text: text.into_owned().into() }
}

fn show(pair: &Comparison, standing: Option<&SiteStanding>) -> Result<()> {
    println!("{}", if pair.same { "the same document" } else { "two documents" });
    println!("{}", pair.reason);
    if let Some(SiteStanding { same, doc_ids: [one, other], urls: [url, other_url] }) = standing {
        if *same {
            println!("in the store they are one document, {one}");
        } else {
            println!("in the store they are two documents, {one} and {other}");
        }
        if *same != pair.same {
            println!("  where they were judged together with all other copies");
        }
        println!("  {url}\n  {other_url}");
    }
    let keys =
        if pair.found_by.is_empty() { "nothing".to_owned() } else { pair.found_by.join(", ") };
    let titles = pair.title_distance.map_or("none to compare".to_owned(), |d| format!("{d} bits"));
    let shown = pair.shown.map_or(String::new(), |alike| format!("{alike:.3}"));
    let facts = [
        ("what they are", pair.bond.to_owned()),
        ("found by", keys),
        ("distance of the texts", format!("{} bits", pair.distance)),
        ("distance of the titles", titles),
        ("longest sentences shared", pair.shared_sentences.to_string()),
        ("bands of the sketch shared", pair.shared_bands.to_string()),
        ("similarity", format!("{:.3}", pair.similarity)),
        ("containment", format!("{:.3}", pair.containment)),
        ("size of the smaller one", format!("{:.3}", pair.size)),
        ("similarity of all they show", shown),
        ("words", format!("{} and {}", pair.words[0], pair.words[1])),
    ];
    // What is not known of them is left out.
    screen::facts(facts.into_iter().filter(|(_, value)| !value.is_empty()))?;
    for (name, words) in [("first", &pair.only_first), ("second", &pair.only_second)] {
        if !words.is_empty() {
            let shown: Vec<String> = words
                .iter()
                .map(
                    |(word, count)| {
                        if *count > 1 { format!("{word} x{count}") } else { word.clone() }
                    },
                )
                .collect();
            println!("the {name} has more of: {}", shown.join(" "));
        }
    }
    Ok(())
}
