//! `crawl search`.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::config::Config;
use crate::corpus::documents::DocId;
use crate::corpus::files::{Lines, Record};
use crate::corpus::search::{self, Entry, Order, Search, Updated};
use crate::corpus::tables::{DOC_IDS, DOCUMENTS};
use crate::store::{self, Snapshot, Store, View as _};
use anyhow::{Context as _, Result, anyhow};
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};

use super::batch::{self, LineAnswer};
use super::exit::{Exit, Usage};
use super::place::StoreArg;
use super::screen::{self, number, shown};
use super::settings;

/// Characters of a title or sentence that are shown.
const SHOWN_CHARS: usize = 200;

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Search these files of lines `{"id","title","url","text"}` and no store; plain, gzip or zstd
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "no_update"])]
    pub corpus: Vec<PathBuf>,
    /// Keep the index of the files in this folder; alone: search the index that is there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["store", "no_update"])]
    pub index: Option<PathBuf>,
    /// Settings file, of which the section `search` is used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Find the documents that have the sentence most like the query
    #[arg(long)]
    pub sentence: bool,
    /// Find the documents that have most of these words
    #[arg(long, conflicts_with = "sentence")]
    pub words: bool,
    /// Read lines `{"id","text"}`; print a line `{"id","hits"}` for each, in order
    #[arg(long, conflicts_with_all = ["query", "file"])]
    pub jsonl: bool,
    /// Threads that answer lines; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0, requires = "jsonl")]
    pub threads: usize,
    /// Number of answers
    #[arg(short, value_name = "N", default_value_t = 10)]
    pub n: usize,
    /// The best first; or, of the best 200, those of most or of fewest copies
    #[arg(long, value_name = "ORDER", value_parser = ["best", "copies", "fewest"],
        default_value = "best", conflicts_with_all = ["corpus", "index"])]
    pub sort: String,
    /// Least cosine of an answer, 0 to 1
    #[arg(long, value_name = "X", conflicts_with = "words")]
    pub min_cosine: Option<f64>,
    /// Ask the index as it is, also while a crawl is writing the store
    #[arg(long)]
    pub no_update: bool,
    /// Make the index anew from the store or the files; no query is needed
    #[arg(long, conflicts_with = "no_update")]
    pub rebuild: bool,
    /// Read the text that is looked for from this file, `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    pub file: Option<PathBuf>,
    /// The text, sentence or words that are looked for
    pub query: Vec<String>,
}

/// One answer of any kind, with what the store knows of its document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundJson<T> {
    #[serde(flatten)]
    hit: T,
    /// Copies of the document, the canonical one among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<u64>,
}

/// What is asked, and how.
#[derive(Clone, Copy)]
enum SearchMode {
    Text,
    Sentence,
    Words,
}

/// An index that is ready to be asked.
struct Session {
    search: Search,
    /// The store, unless there is none or it is in use.
    snapshot: Option<(Snapshot, Store)>,
    mode: SearchMode,
    order: Order,
    n: usize,
}

/// `crawl search`.
pub(super) fn search(args: &SearchArgs, json: bool) -> Result<Exit> {
    let Config { mut search, store, .. } = settings::read(args.config.as_deref())?.config;
    if let Some(least) = args.min_cosine {
        if !(0.0..=1.0).contains(&least) {
            return Err(Usage(format!("--min-cosine {least}: a cosine is from 0 to 1")).into());
        }
        search.cosine_min = least;
    }
    let query = query(args)?;
    if query.is_none() && !args.jsonl && !args.rebuild {
        let usage = "give a text, --file FILE, or --jsonl and lines on standard input";
        return Err(Usage(usage.to_owned()).into());
    }
    let mode = match (args.sentence, args.words) {
        (true, _) => SearchMode::Sentence,
        (_, true) => SearchMode::Words,
        _ => SearchMode::Text,
    };
    let (search, snapshot, updated) = if args.corpus.is_empty() && args.index.is_none() {
        of_store(args, &search, store.cache_size.bytes())?
    } else {
        of_files(args, &search)?
    };
    let order = Order::ALL.into_iter().find(|(name, _)| *name == args.sort);
    let order = order.map(|(_, order)| order).unwrap_or_default();
    if order != Order::Best && snapshot.is_none() {
        let in_use = "the store is in use, so that its copies cannot be counted: ask the service \
            that has it (/v1/search?sort=copies), or try again later";
        return Err(anyhow!(in_use));
    }
    let session = Session { search, snapshot, mode, order, n: args.n };
    if args.jsonl {
        let answer: Arc<LineAnswer> = Arc::new(move |line: &str| session.line(line));
        return batch::run(args.threads, &answer);
    }
    let Some(query) = query else { return report(&session, updated, json) };
    if json {
        return screen::json(&session.hits(&query)?);
    }
    session.show(&query)
}

fn query(args: &SearchArgs) -> Result<Option<String>> {
    let Some(path) = &args.file else {
        return Ok((!args.query.is_empty()).then(|| args.query.join(" ")));
    };
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Usage(error.to_string()))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

type OpenedSearch = (Search, Option<(Snapshot, Store)>, Updated);

/// The index beside a store, up to date if it can be.
fn of_store(
    args: &SearchArgs,
    config: &search::Config,
    cache_bytes: usize,
) -> Result<OpenedSearch> {
    let folder = args.store.folder()?;
    let open = if args.no_update { Store::open_to_read } else { Store::open };
    let opened = open(folder, cache_bytes);
    let store = match opened {
        Ok(store) => store,
        Err(error @ store::Error::InUse(_)) if !args.rebuild => {
            let search = Search::open_as_is(folder, config)?;
            let Some(search) = search.filter(Search::is_filled) else {
                return Err(anyhow!(error).context("there is no index yet that could be asked"));
            };
            if !args.no_update {
                tracing::warn!("the store is in use: the answers are those of the last update");
            }
            return Ok((search, None, Updated::default()));
        }
        Err(error) => return Err(error.into()),
    };
    let search = Search::open(folder, config)?;
    if let Some(reason) = search.made_anew() {
        tracing::warn!("the index could not be used and is made anew: {reason}");
    }
    let updated = if args.rebuild {
        search.rebuild(&store)?
    } else if !args.no_update {
        search.update(&store)?
    } else if search.is_filled() {
        Updated::default()
    } else {
        return Err(Usage("there is no index yet: search without --no-update".into()).into());
    };
    Ok((search, Some((store.snapshot()?, store)), updated))
}

/// An index of files of documents, or one that was made of such files.
fn of_files(args: &SearchArgs, config: &search::Config) -> Result<OpenedSearch> {
    let kept = args.index.as_deref();
    if args.corpus.is_empty()
        && let Some(folder) = kept.filter(|folder| !folder.is_dir())
    {
        return Err(Usage(format!("there is no index in {}", folder.display())).into());
    }
    let search = Search::open_at(kept, config)?;
    if let Some(reason) = search.made_anew() {
        tracing::warn!("the index could not be used and is made anew: {reason}");
    }
    if args.corpus.is_empty() {
        if !search.is_filled() {
            return Err(Usage("the index is empty: name the files with --corpus".into()).into());
        }
        return Ok((search, None, Updated::default()));
    }
    let mut source = fingerprint(&args.corpus)?;
    if args.rebuild {
        // No index was made from this.
        let _ = write!(source, ", {:?}", std::time::SystemTime::now());
    }
    let mut rejected = 0u64;
    let updated = search.fill(&source, entries(&args.corpus, &mut rejected))?;
    if rejected > 0 {
        tracing::warn!("{rejected} lines are no document and were left out");
    }
    Ok((search, None, updated))
}

/// Names, sizes and times of files: as long as they stay, so does their index.
fn fingerprint(files: &[PathBuf]) -> Result<String> {
    let mut all = String::new();
    for path in files {
        let facts = path
            .metadata()
            .map_err(|error| Usage(error.to_string()))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let changed = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = path.canonicalize()?;
        writeln!(all, "{} {} {}", path.display(), facts.len(), changed.as_nanos())?;
    }
    Ok(all)
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The documents of some files; lines that are none are counted.
fn entries<'a>(
    files: &'a [PathBuf],
    rejected: &'a mut u64,
) -> impl Iterator<Item = Result<Entry, BoxError>> + 'a {
    let mut files = files.iter();
    let mut open: Option<Lines> = None;
    let (mut line, mut count) = (Vec::new(), 0u64);
    std::iter::from_fn(move || {
        loop {
            let Some(lines) = &mut open else {
                match Lines::open(files.next()?) {
                    Ok(lines) => open = Some(lines),
                    Err(error) => return Some(Err(error.into())),
                }
                continue;
            };
            match lines.next(&mut line) {
                Ok(true) => count += 1,
                Ok(false) => {
                    open = None;
                    continue;
                }
                Err(error) => return Some(Err(error.into())),
            }
            let text = String::from_utf8_lossy(&line);
            match Record::parse(&text) {
                Ok(record) => {
                    return Some(Ok(Entry {
                        id: record.id(count),
                        title: record.title.clone().into_owned(),
                        url: record.url.clone().into_owned(),
                        text: record.text.clone().into_owned(),
                    }));
                }
                Err(_) => *rejected += 1,
            }
        }
    })
}

/// What a run without a query has done.
fn report(session: &Session, updated: Updated, json: bool) -> Result<Exit> {
    let documents = session.search.documents();
    if json {
        return screen::json(&serde_json::json!({
            "documents": documents, "indexed": updated.indexed,
        }));
    }
    println!("{} documents in the index, {} made anew", number(documents), number(updated.indexed));
    Ok(Exit::Done)
}

#[derive(Deserialize)]
struct QueryLine {
    #[serde(default)]
    id: serde_json::Value,
    text: String,
}

impl Session {
    /// Copies of a document, if the store can be asked.
    fn copies(&self, id: &str) -> Option<u64> {
        let (snapshot, _) = self.snapshot.as_ref()?;
        let id: DocId = id.parse().ok()?;
        let number = snapshot.get(DOC_IDS, id).ok()??;
        Some(snapshot.get(DOCUMENTS, number).ok()??.copies)
    }

    fn hits(&self, query: &str) -> Result<serde_json::Value, search::Error> {
        let search = &self.search;
        let n = self.order.looked_at(self.n);
        Ok(match self.mode {
            SearchMode::Text => self.found(search.text(query, n)?, |hit| &hit.doc_id),
            SearchMode::Sentence => self.found(search.sentence(query, n)?, |hit| &hit.doc_id),
            SearchMode::Words => self.found(search.words(query, n)?, |hit| &hit.doc_id),
        })
    }

    fn found<T: Serialize>(&self, hits: Vec<T>, id: impl Fn(&T) -> &str) -> serde_json::Value {
        let hits = hits.into_iter().map(|hit| FoundJson { copies: self.copies(id(&hit)), hit });
        let mut hits: Vec<_> = hits.collect();
        self.order.arrange(&mut hits, |found| found.copies.unwrap_or_default());
        hits.truncate(self.n);
        serde_json::json!(hits)
    }

    fn line(&self, line: &str) -> String {
        let answer = match serde_json::from_str::<QueryLine>(line) {
            Ok(QueryLine { id, text }) => match self.hits(&text) {
                Ok(hits) => serde_json::json!({"id": id, "hits": hits}),
                Err(error) => serde_json::json!({"id": id, "error": error.to_string()}),
            },
            Err(error) => serde_json::json!({"id": null, "error": error.to_string()}),
        };
        answer.to_string()
    }

    fn show(&self, query: &str) -> Result<Exit> {
        let hits = self.hits(query)?;
        let hits = hits.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut out = std::io::stdout().lock();
        if hits.is_empty() {
            writeln!(out, "nothing like it in {} documents", number(self.search.documents()))?;
        }
        for hit in hits {
            let text = |name: &str| hit[name].as_str().unwrap_or_default();
            let value = hit["cosine"].as_f64().or(hit["score"].as_f64()).unwrap_or_default();
            let copies = match hit["copies"].as_u64() {
                Some(1) => "  1 copy".to_owned(),
                Some(copies) => format!("  {} copies", number(copies)),
                None => String::new(),
            };
            writeln!(out, "{value:.3}  {}{copies}", shown(text("docId")))?;
            if let Some(at) = hit["number"].as_u64() {
                writeln!(out, "       sentence {at}: {}", shorter(text("sentence")))?;
            }
            for line in [shorter(text("title")), shown(text("url")).into_owned()] {
                if !line.is_empty() {
                    writeln!(out, "       {line}")?;
                }
            }
            let words = hit["keywords"].as_array().into_iter().flatten();
            let words: Vec<&str> = words.filter_map(|word| word.as_str()).collect();
            writeln!(out, "       keywords: {}", shown(&words.join(" ")))?;
        }
        Ok(Exit::Done)
    }
}

/// One line of some text, cut where it is too long.
fn shorter(text: &str) -> String {
    let mut chars = text.chars();
    let line: String = chars.by_ref().take(SHOWN_CHARS).collect();
    let more = if chars.next().is_some() { " ..." } else { "" };
    format!("{}{more}", shown(&line))
}
