//! Commands that look into a store: explain, inspect, stats, check.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use crate::base::clock::Clock;
use crate::config::Config;
use crate::corpus::documents::DocId;
use crate::corpus::explain::Explanation;
use crate::corpus::export;
use crate::corpus::tables::{CONTENTS, COPIES, DOC_IDS, DOCUMENTS};
use crate::corpus::{check, explain};
use crate::crawl::stored_rules;
use crate::frontier::{ADDRESSES, Address, HOSTS, INLINKS, REVISITS, Reason, State};
use crate::store::{COUNTERS, META, STORE_NUMBER, Snapshot, Store, View, read_number};
use crate::urls::{Normalize, PageUrl, Typed};
use anyhow::Result;
use clap::Args as ClapArgs;

use super::args::{ExplainArgs, InspectArgs};
use super::exit::{Exit, Usage};
use super::place::SharedStoreArg;
use super::screen::{self, bytes, number, shown};
use super::shared;

/// Bytes of a store from which on a check tells on a terminal what it is looking at.
const TELL_FROM: u64 = 1 << 30;

/// Characters of a text that `inspect` shows.
const EXCERPT_CHARS: usize = 300;

/// `crawl check`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub store: SharedStoreArg,
    /// Mend what can be mended, also while workers go on; only in a cluster
    #[arg(long)]
    pub repair: bool,
    /// Settings file, of which the section `dedup` is used; only of a cluster
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

fn open(arg: &SharedStoreArg) -> Result<Store> {
    Ok(Store::open_to_read(arg.folder()?, Config::default().cache_bytes())?)
}

pub(super) fn parse_plain(text: &str) -> Result<PageUrl> {
    let typed = Typed::parse(text, Normalize::none());
    typed.map(|typed| typed.url).map_err(|error| Usage(error.to_string()).into())
}

/// Brings a URL into the normal form of the store; one that stands in it is left as it is.
fn in_form_of(store: &Store, snapshot: &Snapshot, plain: PageUrl) -> Result<PageUrl> {
    if snapshot.has(ADDRESSES, plain.as_str())? {
        return Ok(plain);
    }
    let rules = stored_rules(store)?.unwrap_or_default();
    let form = PageUrl::from_url(plain.url().clone(), &rules);
    form.map_err(|error| Usage(error.to_string()).into())
}

/// `crawl explain URL`.
pub(super) fn explain(args: &ExplainArgs, json: bool) -> Result<Exit> {
    let plain = parse_plain(&args.url)?;
    if let Some(corpus) = args.store.shared()? {
        return show_explained(&shared::explain(&corpus, plain)?, json);
    }
    let store = open(&args.store)?;
    let snapshot = store.snapshot()?;
    let url = in_form_of(&store, &snapshot, plain)?;
    show_explained(&explain::explain(&snapshot, &url)?, json)
}

fn show_explained(found: &Explanation, json: bool) -> Result<Exit> {
    if json {
        return screen::json(found);
    }
    println!("{}", shown(&found.url));
    println!("{}: {}", found.state, shown(&found.summary));
    screen::facts(found.facts.iter().map(|(name, value)| (name.as_str(), value.clone())))?;
    Ok(Exit::Done)
}

/// `crawl inspect DOCID|URL`.
pub(super) fn inspect(args: &InspectArgs, json: bool) -> Result<Exit> {
    if let Some(corpus) = args.store.shared()? {
        let number = shared::find(&corpus, &args.document)?;
        return show_document(&corpus.view(&[number])?, None, number, json);
    }
    let store = open(&args.store)?;
    let snapshot = store.snapshot()?;
    let (number, _) = find(&store, &snapshot, &args.document)?;
    show_document(&snapshot, Some(&snapshot), number, json)
}

/// Shows a document. `frontier` is the store of its crawl, if there is one.
fn show_document(
    view: &impl View,
    frontier: Option<&Snapshot>,
    number: u64,
    json: bool,
) -> Result<Exit> {
    let document = view.get(DOCUMENTS, number)?;
    let document = document.ok_or_else(|| Usage(format!("document {number} is gone")))?;
    let row = export::row_of(view, &document)?;
    let dropped = export::dropped_of(view, number, &document)?;
    let copy = view.get(COPIES, (number, document.canonical.as_str()))?;
    let declared = match &copy {
        Some(copy) => {
            explain::declared(view, frontier, number, &document, copy)?.unwrap_or_default()
        }
        None => String::new(),
    };
    if json {
        return screen::json(&serde_json::json!({
            "document": row, "dropped": dropped, "namesAsCanonical": declared
        }));
    }
    println!("{}", shown(&row.title));
    let gone = if document.gone.0 == 0 { String::new() } else { document.gone.to_string() };
    let excerpt: String = row.text.chars().take(EXCERPT_CHARS).collect();
    let more = if excerpt.len() < row.text.len() { " ..." } else { "" };
    let facts = [
        ("docId", row.doc_id),
        ("canonical", row.url),
        ("names as canonical", declared),
        ("popularity", row.popularity.to_string()),
        ("language", row.language),
        ("author", row.author),
        ("published", row.published),
        ("modified", row.modified),
        ("site", row.site),
        ("category", row.category),
        ("images", if row.images == 0 { String::new() } else { row.images.to_string() }),
        ("copies", row.copies.to_string()),
        ("first seen", row.first_seen),
        ("last seen", row.last_seen),
        ("gone since", gone),
        ("text", format!("{excerpt}{more}")),
    ];
    // What the page does not say is left out.
    screen::facts(facts.into_iter().filter(|(_, value)| !value.is_empty()))?;
    for copy in dropped {
        let named = &copy.declared_canonical;
        let named =
            if named.is_empty() { String::new() } else { format!(", names {}", shown(named)) };
        println!(
            "  copy  {}  ({}, {} bits, similarity {:.2}, popularity {}{named})",
            shown(&copy.url),
            copy.reason,
            copy.distance,
            copy.similarity,
            copy.popularity
        );
    }
    Ok(Exit::Done)
}

/// Finds the document of a docId, or of a URL, which is returned in the form of the store.
pub(super) fn find(
    store: &Store,
    snapshot: &Snapshot,
    text: &str,
) -> Result<(u64, Option<PageUrl>)> {
    let unknown = || Usage(format!("no document `{text}` in the store"));
    if let Ok(id) = text.parse::<DocId>() {
        let number = snapshot.get(DOC_IDS, id)?;
        return Ok((number.ok_or_else(unknown)?, None));
    }
    let Ok(plain) = parse_plain(text) else {
        let detail = format!("`{text}` is neither a docId nor a URL");
        return Err(Usage(detail).into());
    };
    let url = in_form_of(store, snapshot, plain)?;
    match snapshot.get(ADDRESSES, url.as_str())? {
        Some(Address { state: State::Stored(number), .. }) => Ok((number, Some(url))),
        _ => Err(unknown().into()),
    }
}

/// `crawl stats`.
pub(super) fn stats(args: &SharedStoreArg, json: bool) -> Result<Exit> {
    if let Some(settings) = args.store.cluster()? {
        return shared::stats(&settings, args.texts.as_deref(), json);
    }
    let store = open(args)?;
    let size = std::fs::metadata(store.path()).map_or(0, |meta| meta.len());
    let snapshot = store.snapshot()?;
    let mut facts = vec![
        ("documents".to_owned(), snapshot.len(DOCUMENTS)?),
        ("copies".to_owned(), snapshot.len(COPIES)?),
        ("contents".to_owned(), snapshot.len(CONTENTS)?),
        ("hosts".to_owned(), snapshot.len(HOSTS)?),
        ("links between hosts".to_owned(), snapshot.len(INLINKS)?),
        ("URLs".to_owned(), snapshot.len(ADDRESSES)?),
        ("URLs to revisit".to_owned(), snapshot.len(REVISITS)?),
        ("URLs due now".to_owned(), due_now(&snapshot)?),
    ];
    facts.extend(trouble_of_hosts(&snapshot)?);
    for row in snapshot.rows(COUNTERS)? {
        let row = row?;
        let count = row.row()?;
        if count > 0 {
            facts.push((row.key()?.replacen("addresses.", "urls.", 1), count));
        }
    }
    facts.push(("file bytes".to_owned(), size));
    let own = snapshot.bytes(META, STORE_NUMBER)?.map(|row| read_number(&row)).transpose()?;
    facts.extend(own.map(|number| (STORE_NUMBER.replace('_', " "), number)));
    if json {
        let facts = facts.into_iter().map(|(name, count)| (screen::key(&name), count.into()));
        let map: serde_json::Map<_, _> = facts.collect();
        return screen::json(&map);
    }
    println!("{}", store.path().display());
    screen::facts(facts.iter().map(|(name, count)| {
        let value = match name.as_str() {
            "file bytes" => bytes(*count),
            "store number" => count.to_string(),
            _ => number(*count),
        };
        (name.trim_end_matches(" bytes"), value)
    }))?;
    Ok(Exit::Done)
}

/// URLs whose next visit is due.
fn due_now(snapshot: &Snapshot) -> Result<u64> {
    let now = Clock::System.now();
    let mut due = 0;
    for row in snapshot.rows(REVISITS)? {
        let (moment, _) = row?.key()?;
        if moment > now {
            break;
        }
        due += 1;
    }
    Ok(due)
}

/// How many hosts are not visited at the usual pace, and why.
fn trouble_of_hosts(snapshot: &Snapshot) -> Result<Vec<(String, u64)>> {
    let (mut busy, mut failing, mut slow) = (0, 0, 0);
    for row in snapshot.rows(HOSTS)? {
        let host = row?.row()?;
        busy += u64::from(host.trouble == Some(Reason::Busy));
        failing += u64::from(host.breaker_open);
        slow += u64::from(host.slow_lane);
    }
    let counts = [
        ("hosts backing off", busy),
        ("hosts with an open circuit breaker", failing),
        ("hosts in the slow lane", slow),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    Ok(counts.map(|(name, count)| (name.to_owned(), count)).collect())
}

/// `crawl check`.
pub(super) fn check(args: &CheckArgs, json: bool, quiet: bool) -> Result<Exit> {
    if args.store.store.cluster()?.is_some() {
        return shared::check(args, json, quiet);
    }
    if args.repair || args.config.is_some() {
        let why = "--repair and --config are for a cluster: a backup mends a store of this machine";
        return Err(Usage(why.to_owned()).into());
    }
    let mut store = open(&args.store)?;
    // Of a large store a check takes minutes.
    let is_large = fs::metadata(store.path()).is_ok_and(|file| file.len() > TELL_FROM);
    let shows = is_large && !quiet && !json && io::stderr().is_terminal();
    let mut tell = |what: &'static str| {
        if shows {
            eprintln!("looking at {what}");
        }
    };
    tell("the pages of the file");
    let clean = store.check_pages()?;
    let mut findings = check::check_in_parts(&store.snapshot()?, check::AT_A_TIME, &mut tell)?;
    if !clean {
        findings.faults += 1;
        findings.listed.insert(0, "the file has damaged pages".to_owned());
    }
    let exit = if findings.faults == 0 { Exit::Done } else { Exit::Failed };
    if json {
        screen::json(&findings)?;
        return Ok(exit);
    }
    let rows = findings.rows.iter().map(|(table, rows)| (*table, number(*rows)));
    println!("rows looked at");
    screen::facts(rows)?;
    for fault in &findings.listed {
        println!("fault: {fault}");
    }
    match findings.faults {
        0 => println!("clean: every invariant holds"),
        faults => println!("{faults} faults"),
    }
    Ok(exit)
}
