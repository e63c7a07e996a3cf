//! `crawl simhash`: fingerprints of single texts, and of lines of them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::corpus::files::values_of;
use crate::text::features::{ArticleField, Extractor, Fingerprinter, Input, TextKeys};
use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Deserialize;

use super::batch::{self, LineAnswer};
use super::exit::{Exit, Usage};
use super::settings;
use super::{pages, screen};

/// Heaviest words that `simhash --words` shows.
const WORDS_SHOWN: usize = 20;

/// A field with its value.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub name: String,
    pub value: String,
}

fn named(given: &str) -> Result<Named, String> {
    let (name, value) = given.split_once('=').ok_or("there is no `=` in it")?;
    Ok(Named { name: name.trim().to_owned(), value: value.to_owned() })
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SimhashArgs {
    /// The text; standard input if it is not given
    pub file: Option<PathBuf>,
    /// Show the heaviest words and their weights
    #[arg(long)]
    pub words: bool,
    /// Read lines `{"id","text",...}`; print a line `{"id","simhash"}` for each
    #[arg(long, conflicts_with_all = ["file", "field"])]
    pub jsonl: bool,
    /// Settings file, of which the section `dedup.features` is used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Feature extractor: tfidf, log-tfidf, levels, word-shingles, char-shingles,
    /// longest-sentence, lecture-chars or enum
    #[arg(long, value_name = "NAME")]
    pub extractor: Option<Extractor>,
    /// Value of a field that the settings declare in `enums`, or the language
    #[arg(long, value_name = "NAME=VALUE", value_parser = named)]
    pub field: Vec<Named>,
}

/// `crawl simhash`.
pub(super) fn simhash(args: &SimhashArgs, json: bool) -> Result<Exit> {
    let mut config = settings::read(args.config.as_deref())?.config.dedup.features;
    config.extractor = args.extractor.unwrap_or(config.extractor);
    let fingerprinter = Fingerprinter::new(config)?;
    if args.jsonl {
        let answer: Arc<LineAnswer> =
            Arc::new(move |line: &str| simhash_line(line, &fingerprinter));
        return batch::run(0, &answer);
    }
    let bytes = pages::read(args.file.as_deref())?;
    let text = String::from_utf8_lossy(&bytes);
    let fields = fields(&args.field, &fingerprinter)?;
    let input = Input { text: &text, fields: &fields, ..Input::default() };
    let signature = fingerprinter.text_keys_of(&input);
    let heavy = fingerprinter.features_of(&input);
    if json {
        let words: Vec<_> = heavy
            .iter()
            .map(|feature| serde_json::json!({"word": feature.text, "weight": feature.weight}))
            .collect();
        return screen::json(&serde_json::json!({
            "simhash": signature.fingerprint.to_string(),
            "features": fingerprinter.name(),
            "words": signature.words,
            "weights": words,
        }));
    }
    println!("{}", signature.fingerprint);
    if args.words {
        for feature in heavy.iter().take(WORDS_SHOWN) {
            println!("  {:8.3}  {}", feature.weight, feature.text);
        }
    }
    Ok(Exit::Done)
}

/// The fields that are given, each of which must be one that is asked for.
fn fields<'a>(given: &'a [Named], fingerprinter: &Fingerprinter) -> Result<Vec<ArticleField<'a>>> {
    let known: Vec<&str> = fingerprinter.fields().collect();
    if let Some(odd) = given.iter().find(|field| !known.contains(&field.name.as_str())) {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let name = &odd.name;
        return Err(Usage(format!("no field `{name}` votes; the settings declare {known}")).into());
    }
    Ok(given.iter().map(|Named { name, value }| ArticleField { name, value }).collect())
}

#[derive(Deserialize)]
struct SimhashLine {
    #[serde(default)]
    id: serde_json::Value,
    text: String,
}

fn simhash_line(line: &str, fingerprinter: &Fingerprinter) -> String {
    let answer = match serde_json::from_str::<SimhashLine>(line) {
        Ok(SimhashLine { id, text }) => {
            let signature = text_keys_of_line(line, &text, fingerprinter);
            serde_json::json!({"id": id, "simhash": signature.fingerprint.to_string()})
        }
        Err(error) => serde_json::json!({"id": null, "error": error.to_string()}),
    };
    answer.to_string()
}

/// Fingerprints the text of a line with those of its fields that vote.
fn text_keys_of_line(line: &str, text: &str, fingerprinter: &Fingerprinter) -> TextKeys {
    if fingerprinter.fields().next().is_none() {
        return fingerprinter.text_keys(text, "");
    }
    // The language has two names, and the site follows from the URL, as in `crawl dedup`.
    let names: Vec<&str> = ["lang", "url"].into_iter().chain(fingerprinter.fields()).collect();
    let values = values_of(line, &names);
    let fields: Vec<ArticleField<'_>> =
        names.iter().zip(&values).map(|(name, value)| ArticleField { name, value }).collect();
    let (language, url) = (&values[0], &values[1]);
    fingerprinter.text_keys_of(&Input { title: "", text, language, url, fields: &fields })
}
