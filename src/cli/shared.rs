//! What commands that look into a store say of a cluster.

use std::cmp::Reverse;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::cluster::Settings;
use crate::corpus::documents::DocId;
use crate::corpus::explain::{self, Explanation};
use crate::corpus::shared::{CheckProgress, SharedCorpus};
use crate::crawl::Crowd;
use crate::urls::{Normalize, PageUrl};

use super::exit::{Exit, Usage};
use super::inspect::{CheckArgs, parse_plain};
use super::place;
use super::screen::{self, bytes, number, shown};
use super::settings;

/// Time between two lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Shards for which links wait that are named.
const WAITED_MAX: usize = 10;

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
    let found = if let Ok(id) = text.parse::<DocId>() {
        corpus.find(id)?
    } else if let Ok(plain) = parse_plain(text) {
        find_url(corpus, plain)?.1
    } else {
        let detail = format!("`{text}` is neither a docId nor a URL");
        return Err(Usage(detail).into());
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
    let crowd = Crowd::of(&corpus.crowd()?);
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
            "copies": stats.copies,
            "duplicates": stats.duplicates,
            "secondLooksDue": stats.due,
            "numbersGiven": stats.numbers,
            "settings": fixed.collect::<std::collections::BTreeMap<_, _>>(),
            "primaries": memory.collect::<Vec<_>>(),
            "totals": crowd.totals,
            "workers": crowd.workers,
            "shards": crowd.shards,
        }));
    }
    println!("{}", place::shown(settings));
    let mut facts = vec![("documents".to_owned(), number(stats.documents))];
    facts.extend(stats.copies.map(|copies| ("copies".to_owned(), number(copies))));
    facts.extend(
        stats.duplicates.iter().map(|(key, count)| (format!("duplicates.{key}"), number(*count))),
    );
    facts.extend([
        ("second looks due".to_owned(), number(stats.due)),
        ("numbers given".to_owned(), number(stats.numbers)),
    ]);
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
    show_crowd(&crowd)?;
    Ok(Exit::Done)
}

/// Shows the workers that are alive, with the shards that each holds, and shards that lack
/// something.
fn show_crowd(crowd: &Crowd) -> Result<()> {
    let totals = &crowd.totals;
    if totals.shards == 0 {
        return Ok(());
    }
    println!("{} workers, {} shards", number(totals.workers), number(totals.shards));
    screen::facts([
        ("held", number(totals.shards_held)),
        ("idle", number(totals.shards_idle)),
        ("links in their streams", number(totals.links_in_streams)),
        ("pages", format!("{} ({:.1}/s)", number(totals.counts.pages), totals.per_second)),
        ("URLs that wait", number(totals.counts.queued)),
    ])?;
    for worker in &crowd.workers {
        let counts = &worker.counts;
        let host = if worker.host.is_empty() { String::new() } else { format!(" {}", worker.host) };
        let stopping = if worker.stopping { ", stopping" } else { "" };
        println!("worker {}{} since {}{stopping}", worker.worker, shown(&host), worker.started);
        let held = crowd.shards.iter().filter(|one| one.holder.as_ref() == Some(&worker.worker));
        let facts = [
            ("version", worker.version.clone()),
            ("shards", ranges(held.map(|shard| shard.shard))),
            ("pages", format!("{} ({:.1}/s)", number(counts.pages), worker.per_second)),
            ("new", number(counts.new)),
            ("duplicates", number(counts.duplicates)),
            ("requests", number(counts.requests)),
            ("without an answer", number(counts.failed)),
            ("bytes", bytes(counts.bytes)),
            ("under way", number(counts.in_flight)),
            ("URLs that wait", number(counts.queued)),
            ("links to be sent", number(counts.links_waiting)),
            ("last commit", worker.last_commit.clone().unwrap_or_default()),
        ];
        screen::facts(facts.into_iter().filter(|(_, value)| !value.is_empty()))?;
    }
    let free = crowd.shards.iter().filter(|shard| shard.holder.is_none());
    let free = ranges(free.map(|shard| shard.shard));
    let waited = crowd.shards.iter().filter(|shard| shard.links > 0);
    let mut waited: Vec<_> = waited.map(|shard| (shard.links, shard.shard)).collect();
    waited.sort_unstable_by_key(|(links, shard)| (Reverse(*links), *shard));
    let waited = waited.iter().take(WAITED_MAX);
    let waited: Vec<String> =
        waited.map(|(links, shard)| format!("{shard} ({})", number(*links))).collect();
    let lists = [("shards without a worker", free), ("most links wait for", waited.join(", "))];
    screen::facts(lists.into_iter().filter(|(_, value)| !value.is_empty()))
}

/// Numbers that rise, as `0-3, 7`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for one in numbers {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == one => *last = one,
            _ => all.push((one, one)),
        }
    }
    let words = all.into_iter().map(|(first, last)| match first {
        _ if first == last => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `crawl check` of a cluster.
pub(super) fn check(args: &CheckArgs, json: bool, quiet: bool) -> Result<Exit> {
    let config = settings::read(args.config.as_deref())?.config;
    let corpus = args.store.shared_to_change(&config.dedup)?;
    let corpus = corpus.ok_or_else(|| anyhow!("a cluster is needed"))?;
    let shows = !quiet && !json && std::io::stderr().is_terminal();
    let mut last = Instant::now();
    let found = corpus.check(args.repair, &mut |CheckProgress { done, all, .. }| {
        if shows && last.elapsed() >= TELL_EVERY {
            last = Instant::now();
            eprintln!("{} of {} steps", number(done), number(all));
        }
    })?;
    let faults = found.faults();
    // What a repair has mended is no fault any more.
    let left = faults.saturating_sub(found.mended);
    let exit = if left == 0 { Exit::Done } else { Exit::Failed };
    if json {
        let mut told = serde_json::to_value(&found)?;
        told["faults"] = faults.into();
        screen::json(&told)?;
        return Ok(exit);
    }
    println!("looked at");
    screen::facts([
        ("documents", number(found.documents)),
        ("copies", number(found.copies)),
        ("postings", number(found.postings)),
    ])?;
    for (what, count) in found.by_kind().iter().filter(|(_, count)| *count > 0) {
        println!("{} {what}", number(*count));
    }
    for fault in &found.listed {
        println!("fault: {fault}");
    }
    match (faults, found.mended) {
        (0, _) => println!("clean: every invariant holds"),
        (faults, 0) => println!("{faults} faults: see `crawl check --repair`"),
        (faults, mended) => println!("{faults} faults, {mended} mended"),
    }
    Ok(exit)
}
