//! `crawl compare`.

use std::path::Path;

use anyhow::{Context as _, Result};
use uniqcrawl::corpus::{Lines, Record};
use uniqcrawl::dedup::{Comparison, Document, compare as compare_pair};

use super::args::CompareArgs;
use super::exit::{Exit, Usage};
use super::{dedup, screen};

/// `crawl compare ONE OTHER`.
pub(super) fn compare(args: &CompareArgs, json: bool) -> Result<Exit> {
    let config = dedup::settings(&args.rule)?;
    let [(first_title, first), (second_title, second)] = match &args.jsonl {
        Some(path) => pair(path, &args.first, &args.second)?,
        None => [read(&args.first)?, read(&args.second)?],
    };
    let document = |title, text| Document { title, text, ..Document::default() };
    let comparison =
        compare_pair(&config, document(&first_title, &first), document(&second_title, &second))?;
    if json {
        return screen::json(&comparison);
    }
    show(&comparison)?;
    Ok(Exit::Done)
}

/// A file as an article without title.
fn read(path: &str) -> Result<(String, String)> {
    let bytes = std::fs::read(path)
        .map_err(|error| Usage(error.to_string()))
        .with_context(|| format!("cannot read {path}"))?;
    Ok((String::new(), String::from_utf8_lossy(&bytes).into_owned()))
}

/// Title and text of two documents of a file of JSON lines.
fn pair(path: &Path, first: &str, second: &str) -> Result<[(String, String); 2]> {
    let mut lines = Lines::open(path).map_err(|error| Usage(error.to_string()))?;
    let mut found = [None, None];
    let mut line = Vec::new();
    let mut number = 0;
    while lines.next(&mut line)? {
        number += 1;
        let text = String::from_utf8_lossy(&line);
        let Ok(record) = Record::parse(&text) else { continue };
        let id = record.id(number);
        for (wanted, found) in [first, second].into_iter().zip(&mut found) {
            if found.is_none() && id == wanted {
                *found =
                    Some((record.title.clone().into_owned(), record.text.clone().into_owned()));
            }
        }
    }
    let missing = |id: &str| Usage(format!("{} has no document `{id}`", path.display()));
    let [one, other] = found;
    Ok([one.ok_or_else(|| missing(first))?, other.ok_or_else(|| missing(second))?])
}

fn show(pair: &Comparison) -> Result<()> {
    println!("{}", if pair.same { "the same document" } else { "two documents" });
    println!("{}", pair.reason);
    let keys =
        if pair.found_by.is_empty() { "nothing".to_owned() } else { pair.found_by.join(", ") };
    let titles = pair.title_distance.map_or("none to compare".to_owned(), |d| format!("{d} bits"));
    screen::facts([
        ("found by", keys),
        ("distance of the texts", format!("{} bits", pair.distance)),
        ("distance of the titles", titles),
        ("longest sentences shared", pair.shared_sentences.to_string()),
        ("runs of the sketch shared", pair.shared_bands.to_string()),
        ("similarity", format!("{:.3}", pair.similarity)),
        ("containment", format!("{:.3}", pair.containment)),
        ("size of the smaller one", format!("{:.3}", pair.size)),
        ("words", format!("{} and {}", pair.words[0], pair.words[1])),
    ])?;
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
