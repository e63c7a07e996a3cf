//! `crawl search`.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use crate::config::Config;
use crate::corpus::documents::DocId;
use crate::corpus::export::ExportPart;
use crate::corpus::files::{Lines, Record};
use crate::corpus::search::{
    self, Entry, Followed, Hit, Mode, Order, Question, Search, SentenceHit, WordHit,
};
use crate::corpus::shared::{SharedCorpus, SharedIndex};
use crate::corpus::tables::{DOC_IDS, DOCUMENTS};
use crate::store::{self, Snapshot, Store, View};
use anyhow::{Context as _, Result, anyhow};
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};

use super::batch::{self, LineAnswer};
use super::exit::{Exit, Usage};
use super::place::{SharedStoreArg, StoreName};
use super::screen::{self, number, shown};
use super::settings;

/// Characters of a title or sentence that are shown.
const SHOWN_CHARS: usize = 200;

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub store: SharedStoreArg,
    /// Search these files of lines `{"id","title","url","text"}` and no store; plain, gzip or zstd
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "no_update"])]
    pub corpus: Vec<PathBuf>,
    /// Keep the index of the files, or of a cluster, in this folder; alone: search the index of
    /// files that is there
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Of a cluster, keep and ask this part of the index, such as 1/4; several may be named, all
    /// without it
    #[arg(long = "part", value_name = "I/N", requires = "index", conflicts_with = "corpus")]
    pub parts: Vec<ExportPart>,
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
        default_value = "best", conflicts_with = "corpus")]
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

/// What else is known of documents.
enum Beside {
    /// Nothing: there is no store, or it is in use.
    Nothing,
    /// The store is held as long as it is read.
    Store(Box<(Snapshot, Store)>),
    Cluster(Box<Mutex<SharedCorpus>>),
}

/// An index that is ready to be asked.
struct Session {
    parts: Vec<Search>,
    beside: Beside,
    mode: Mode,
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
        (true, _) => Mode::Sentence,
        (_, true) => Mode::Words,
        _ => Mode::Text,
    };
    let opened = match &args.store.store {
        StoreName::Cluster(_) => of_cluster(args, &search)?,
        StoreName::Folder(_) if args.corpus.is_empty() && args.index.is_none() => {
            of_store(args, &search, store.cache_size.bytes())?
        }
        StoreName::Folder(_) => of_files(args, &search)?,
    };
    let (parts, beside, updated) = opened;
    let order = Order::ALL.into_iter().find(|(name, _)| *name == args.sort);
    let order = order.map(|(_, order)| order).unwrap_or_default();
    if order != Order::Best && matches!(beside, Beside::Nothing) {
        let in_use = "the store is in use, so that its copies cannot be counted: ask the service \
            that has it (/v1/search?sort=copies), or try again later";
        return Err(anyhow!(in_use));
    }
    let session = Session { parts, beside, mode, order, n: args.n };
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

/// Parts of an index, and how many documents were brought into them.
type OpenedSearch = (Vec<Search>, Beside, u64);

/// An index of a cluster, each part of which is brought up to date on a thread of its own.
fn of_cluster(args: &SearchArgs, config: &search::Config) -> Result<OpenedSearch> {
    let Some(folder) = &args.index else {
        let how = "name a folder for the index of the cluster with --index DIR: it is made there, \
            and brought up to date before each answer";
        return Err(Usage(how.to_owned()).into());
    };
    let parts = parts_of(&args.parts)?;
    let settings = args.store.store.cluster()?.ok_or_else(|| anyhow!("a cluster is needed"))?;
    let texts = args.store.texts.as_deref();
    if args.no_update {
        for part in &parts {
            let own = SharedIndex::folder(folder, *part);
            if !own.is_dir() {
                let own = own.display();
                let how = format!("there is no index in {own}: without --no-update it is made");
                return Err(Usage(how).into());
            }
        }
    }
    let corpus = SharedCorpus::open_to_read(&settings, texts)?;
    let opened = parts.into_iter().map(|part| SharedIndex::open(&corpus, folder, part, config));
    let opened = opened.collect::<Result<Vec<SharedIndex>, search::Error>>()?;
    if let Some(empty) = opened.iter().find(|one| args.no_update && !one.search.has_followed()) {
        let how =
            format!("part {} of the index is not whole: search without --no-update", empty.part);
        return Err(Usage(how).into());
    }
    let followed = search::at_once(&opened, |index| {
        if let Some(reason) = index.search.made_anew() {
            tracing::warn!("a part of the index could not be used and is made anew: {reason}");
        }
        if args.rebuild {
            index.clear()?;
        }
        index.check()?;
        if args.no_update {
            return Ok(Followed::default());
        }
        match index.follow(&SharedCorpus::open_to_read(&settings, texts)?) {
            Err(error @ search::Error::InUse(_)) if index.search.has_followed() => {
                tracing::warn!("{error}: the answers are those of its last update");
                Ok(Followed::default())
            }
            followed => followed,
        }
    })?;
    let indexed = followed.iter().map(|followed| followed.indexed).sum();
    let parts = opened.into_iter().map(|index| index.search).collect();
    Ok((parts, Beside::Cluster(Box::new(Mutex::new(corpus))), indexed))
}

/// The parts of an index that are named, each once: all of it without any.
pub(super) fn parts_of(named: &[ExportPart]) -> Result<Vec<ExportPart>, Usage> {
    let mut parts = named.to_vec();
    parts.sort_unstable();
    parts.dedup();
    if parts.is_empty() {
        parts.push(ExportPart::default());
    }
    if parts.iter().any(|part| part.of() != parts[0].of()) {
        return Err(Usage("--part: all parts are of the same number, such as 1/3 and 2/3".into()));
    }
    Ok(parts)
}

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
            return Ok((vec![search], Beside::Nothing, 0));
        }
        Err(error) => return Err(error.into()),
    };
    let search = Search::open(folder, config)?;
    if let Some(reason) = search.made_anew() {
        tracing::warn!("the index could not be used and is made anew: {reason}");
    }
    let updated = if args.rebuild {
        search.rebuild(&store)?.indexed
    } else if !args.no_update {
        search.update(&store)?.indexed
    } else if search.is_filled() {
        0
    } else {
        return Err(Usage("there is no index yet: search without --no-update".into()).into());
    };
    Ok((vec![search], Beside::Store(Box::new((store.snapshot()?, store))), updated))
}

/// An index of files of documents, or one that was made of such files.
fn of_files(args: &SearchArgs, config: &search::Config) -> Result<OpenedSearch> {
    let kept = args.index.as_deref();
    if !args.parts.is_empty() {
        let why = "--part is for the index of a cluster (--store cluster:...)";
        return Err(Usage(why.to_owned()).into());
    }
    if args.store.store != StoreName::Folder("store".into()) || args.no_update {
        let why = "--index is for --corpus and for clusters: the index of a store lies in it, and \
            that of files is as new as they are";
        return Err(Usage(why.to_owned()).into());
    }
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
        return Ok((vec![search], Beside::Nothing, 0));
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
    Ok((vec![search], Beside::Nothing, updated.indexed))
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
fn report(session: &Session, indexed: u64, json: bool) -> Result<Exit> {
    let documents = session.documents();
    if json {
        return screen::json(&serde_json::json!({ "documents": documents, "indexed": indexed }));
    }
    println!("{} documents in the index, {} made anew", number(documents), number(indexed));
    Ok(Exit::Done)
}

#[derive(Deserialize)]
struct QueryLine {
    #[serde(default)]
    id: serde_json::Value,
    text: String,
}

impl Session {
    /// Documents of all parts.
    fn documents(&self) -> u64 {
        self.parts.iter().map(Search::documents).sum()
    }

    /// How many copies each of some documents has, if the store can be asked.
    fn copies(&self, ids: &[Option<DocId>]) -> Result<Vec<Option<u64>>, store::Error> {
        match &self.beside {
            Beside::Nothing => Ok(vec![None; ids.len()]),
            Beside::Store(store) => ids.iter().map(|id| copies_in(&store.0, *id)).collect(),
            Beside::Cluster(corpus) => {
                let corpus = corpus.lock().unwrap_or_else(PoisonError::into_inner);
                let known: Vec<DocId> = ids.iter().copied().flatten().collect();
                let mut found = corpus.find_all(&known)?.into_iter();
                let numbers: Vec<Option<u64>> =
                    ids.iter().map(|id| id.and_then(|_| found.next().flatten())).collect();
                let there: Vec<u64> = numbers.iter().copied().flatten().collect();
                let view = corpus.view(&there)?;
                numbers.into_iter().map(|number| copies_at(&view, number)).collect()
            }
        }
    }

    fn hits(&self, query: &str) -> Result<Vec<serde_json::Value>, search::Error> {
        let parts: Vec<&Search> = self.parts.iter().collect();
        let question = Question::new(self.mode, query, self.order.looked_at(self.n));
        let found = search::ask(&parts, &question)?;
        let ids: Vec<Option<DocId>> = found.iter().map(|hit| hit.doc_id.parse().ok()).collect();
        let copies = self.copies(&ids)?;
        let told = found.into_iter().zip(copies).map(|(hit, copies)| match self.mode {
            Mode::Text => serde_json::json!(FoundJson { hit: Hit::from(hit), copies }),
            Mode::Sentence => serde_json::json!(FoundJson { hit: SentenceHit::from(hit), copies }),
            Mode::Words => serde_json::json!(FoundJson { hit: WordHit::from(hit), copies }),
        });
        let mut hits: Vec<_> = told.collect();
        self.order.arrange(&mut hits, |found| found["copies"].as_u64().unwrap_or_default());
        hits.truncate(self.n);
        Ok(hits)
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
        let mut out = std::io::stdout().lock();
        if hits.is_empty() {
            writeln!(out, "nothing like it in {} documents", number(self.documents()))?;
        }
        for hit in &hits {
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

fn copies_in(view: &impl View, id: Option<DocId>) -> Result<Option<u64>, store::Error> {
    let Some(id) = id else { return Ok(None) };
    copies_at(view, view.get(DOC_IDS, id)?)
}

fn copies_at(view: &impl View, number: Option<u64>) -> Result<Option<u64>, store::Error> {
    let Some(number) = number else { return Ok(None) };
    Ok(view.get(DOCUMENTS, number)?.map(|document| document.copies))
}

/// One line of some text, cut where it is too long.
fn shorter(text: &str) -> String {
    let mut chars = text.chars();
    let line: String = chars.by_ref().take(SHOWN_CHARS).collect();
    let more = if chars.next().is_some() { " ..." } else { "" };
    format!("{}{more}", shown(&line))
}
