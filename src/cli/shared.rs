//! What commands that look into a store say of a cluster.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde::Serialize;

use crate::cluster::Settings;
use crate::corpus::documents::{DocId, WholeDocument};
use crate::corpus::explain::{self, Explanation};
use crate::corpus::export::Source as _;
use crate::corpus::shared::{SharedCorpus, SharedSource};
use crate::store;
use crate::urls::{Normalize, PageUrl};

use super::exit::{Exit, Usage};
use super::inspect::{CheckArgs, parse_plain};
use super::place;
use super::screen::{self, bytes, number};
use super::settings;

/// Faults that are listed.
const LISTED_MAX: usize = 100;

/// Finds the copy at a URL: as it was typed, or in the usual normal form.
fn find_url(corpus: &SharedCorpus, plain: PageUrl) -> Result<(PageUrl, Option<u64>)> {
    if let Some(number) = corpus.find_url(plain.as_str())? {
        return Ok((plain, Some(number)));
    }
    let form = PageUrl::from_url(plain.url().clone(), &Normalize::default());
    let form = form.map_err(|error| Usage(error.to_string()))?;
    let number = corpus.find_url(form.as_str())?;
    Ok((form, number))
}

/// Finds the document of a docId or a URL.
pub(super) fn find(corpus: &SharedCorpus, text: &str) -> Result<u64> {
    let found = match text.parse::<DocId>() {
        Ok(id) => corpus.find(id)?,
        Err(_) => match parse_plain(text) {
            Ok(plain) => find_url(corpus, plain)?.1,
            Err(_) => {
                let detail = format!("`{text}` is neither a docId nor a URL");
                return Err(Usage(detail).into());
            }
        },
    };
    found.ok_or_else(|| Usage(format!("no document `{text}` in the corpus")).into())
}

/// Explains a URL, as far as the corpus knows it.
pub(super) fn explain(corpus: &SharedCorpus, plain: PageUrl) -> Result<Explanation> {
    let (url, number) = find_url(corpus, plain)?;
    if let Some(number) = number {
        return Ok(explain::explain_copy(&corpus.view(&[number])?, &url, number)?);
    }
    Ok(Explanation {
        url: url.to_string(),
        state: "unknown",
        reason: None,
        summary: "it is no copy in the corpus; whether it was visited, and what became of it, is \
                  in the store of the worker that has its shard"
            .to_owned(),
        facts: Vec::new(),
    })
}

/// `crawl stats` of a cluster.
pub(super) fn stats(settings: &Settings, texts: Option<&Path>, json: bool) -> Result<Exit> {
    let corpus = SharedCorpus::open_to_read(settings, texts)?;
    let stats = corpus.stats()?;
    let used: u64 = stats.memory.iter().map(|node| node.used).sum();
    let most: u64 = stats.memory.iter().map(|node| node.most).sum();
    if json {
        let memory = stats.memory.iter().map(|node| {
            serde_json::json!({
                "node": node.node, "usedBytes": node.used, "maxBytes": node.most,
            })
        });
        let fixed = stats.settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        return screen::json(&serde_json::json!({
            "prefix": stats.prefix,
            "documents": stats.documents,
            "secondLooksDue": stats.due,
            "numbersGiven": stats.numbers,
            "settings": fixed.collect::<std::collections::BTreeMap<_, _>>(),
            "primaries": memory.collect::<Vec<_>>(),
        }));
    }
    println!("{}", place::shown(settings));
    let mut facts = vec![
        ("documents".to_owned(), number(stats.documents)),
        ("second looks due".to_owned(), number(stats.due)),
        ("numbers given".to_owned(), number(stats.numbers)),
    ];
    for (name, value) in stats.settings {
        let name = match name {
            "format" => "format of rows",
            "documents" => "documents expected",
            "texts" => "texts in",
            other => other,
        };
        facts.push((name.to_owned(), value));
    }
    facts.push(("primaries".to_owned(), number(stats.memory.len() as u64)));
    let of = if most == 0 { String::new() } else { format!(" of {}", bytes(most)) };
    facts.push(("memory of all primaries".to_owned(), format!("{}{of}", bytes(used))));
    screen::facts(facts.iter().map(|(name, value)| (name.as_str(), value.clone())))?;
    Ok(Exit::Done)
}

/// What a look at every document has found.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Walked {
    documents: u64,
    copies: u64,
    texts: u64,
    faults: u64,
    /// The first hundred, in words.
    listed: Vec<String>,
}

impl Walked {
    fn fault(&mut self, text: String) {
        self.faults += 1;
        if self.listed.len() < LISTED_MAX {
            self.listed.push(text);
        }
    }

    /// Looks whether a document is whole, and found by its identifiers and URLs.
    fn look(&mut self, corpus: &SharedCorpus, number: u64, whole: &WholeDocument) -> Result<()> {
        let WholeDocument { document, copies, contents, .. } = whole;
        let id = document.id;
        self.documents += 1;
        self.copies += copies.len() as u64;
        self.texts += contents.len() as u64;
        if document.copies != copies.len() as u64 {
            let (counted, found) = (document.copies, copies.len());
            self.fault(format!("{id} counts {counted} of {found} copies"));
        }
        let is_there = copies.iter().any(|(url, _)| *url == document.canonical);
        if !is_there && document.gone.0 == 0 {
            self.fault(format!("{id} has no copy at {}", document.canonical));
        }
        let ids = [whole.other_ids(), vec![id]].concat();
        for (id, found) in ids.iter().zip(corpus.find_all(&ids)?) {
            if found != Some(number) {
                self.fault(format!("{id} is not found by its identifier"));
            }
        }
        let urls: Vec<&str> = copies.iter().map(|(url, _)| url.as_str()).collect();
        for (url, found) in urls.iter().zip(corpus.find_urls(&urls)?) {
            if found != Some(number) {
                self.fault(format!("the copy of {id} at {url} is not found by its URL"));
            }
        }
        Ok(())
    }
}

/// `crawl check` of a cluster.
pub(super) fn check(args: &CheckArgs, json: bool) -> Result<Exit> {
    let config = settings::read(args.config.as_deref())?.config;
    let corpus = args.store.shared_to_change(&config.dedup)?;
    let corpus = corpus.ok_or_else(|| anyhow!("a cluster is needed"))?;
    let mut walked = Walked::default();
    let mut failed = None;
    SharedSource(&corpus).each(None, None, &mut |stored| {
        let id = stored.document.id;
        let looked = match WholeDocument::read(&stored.view, stored.number, stored.settled) {
            Ok(Some(whole)) => walked.look(&corpus, stored.number, &whole),
            Ok(None) => Ok(()),
            Err(error @ (store::Error::Row(_) | store::Error::Io { .. })) => {
                walked.fault(format!("{id} cannot be read: {error}"));
                Ok(())
            }
            Err(error) => Err(error.into()),
        };
        failed = failed.take().or(looked.err());
        Ok(())
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let exit = if walked.faults == 0 { Exit::Done } else { Exit::Failed };
    if json {
        screen::json(&walked)?;
        return Ok(exit);
    }
    screen::facts([
        ("documents", number(walked.documents)),
        ("copies", number(walked.copies)),
        ("texts", number(walked.texts)),
    ])?;
    for fault in &walked.listed {
        println!("fault: {fault}");
    }
    match walked.faults {
        0 => println!("clean: every document is whole, and found by its identifiers and URLs"),
        faults => println!("{faults} faults"),
    }
    Ok(exit)
}
