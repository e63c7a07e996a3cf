//! `crawl --warc`, `crawl extract --warc` and `crawl rebuild`: pages that are kept, and read again.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;

use crate::base::units::Size;
use crate::config::{self, Sourced};
use crate::corpus::files::Position;
use crate::crawl::{self, RebuildError, RebuildProgress, Rebuilt};
use crate::page::{self, BatchOutput, BatchPage, Memory};
use crate::warc::{self, Compression, Entry, Fault, Kind, Payload, Reader, Record};
use crate::web::fetch;
use crate::web::fetch::decode::DecodeLimits;

use super::args::{ExtractArgs, ExtractFormat};
use super::corpora::ReadingBar;
use super::exit::{Exit, Usage};
use super::place::{StoreName, store_name};
use super::screen::{self, json_lines, number};
use super::settings;

/// Where what is exchanged is kept.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct WarcArgs {
    /// Keep what is exchanged with servers in WARC files in this folder, also `s3://bucket/folder`,
    /// `gs://`, `az://`
    #[arg(long, value_name = "DIR")]
    pub warc: Option<PathBuf>,
    /// Size from which a WARC file is full, and the next one begins
    #[arg(long, value_name = "SIZE", requires = "warc")]
    pub warc_size: Option<Size>,
    /// How each record is packed: gzip or zstd
    #[arg(long, value_name = "HOW", requires = "warc")]
    pub warc_compress: Option<Compression>,
}

impl WarcArgs {
    /// Puts what is given in the place of the settings.
    pub(crate) fn apply(&self, config: &mut warc::Config) {
        if let Some(folder) = &self.warc {
            config.folder = folder.to_string_lossy().into_owned();
        }
        config.file_size_max = self.warc_size.unwrap_or(config.file_size_max);
        config.compress = self.warc_compress.unwrap_or(config.compress);
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RebuildArgs {
    /// WARC files, or folders of them
    #[arg(long, required = true, value_name = "PATH", num_args = 1..)]
    pub warc: Vec<PathBuf>,
    /// Folder of the new store; one that was interrupted goes on
    #[arg(long, value_name = "DIR", value_parser = store_name())]
    pub store: StoreName,
    /// Settings file, for settings that shall be others than those of the crawl
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What the names of WARC files end with; a file that a crash left open has one more.
const ENDINGS: [&str; 6] =
    [".warc", ".warc.gz", ".warc.zst", ".warc.open", ".warc.gz.open", ".warc.zst.open"];

/// Bytes of payloads that are read together.
const CHUNK_BYTES: usize = 32 << 20;

/// Pages of them for each thread.
const CHUNK_PAGES: usize = 16;

/// A body may grow by decompression as much as it likes up to this size.
const RATIO_GRACE_BYTES: usize = 1 << 20;

/// The WARC files that are named, those of folders in the order of their names.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            files.push(path.clone());
            continue;
        }
        let cannot = || format!("cannot read {}", path.display());
        let about = std::fs::metadata(path).map_err(|error| Usage(error.to_string()));
        if !about.with_context(cannot)?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path).with_context(cannot)? {
            let entry = entry.with_context(cannot)?.path();
            let name = entry.to_string_lossy().into_owned();
            if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                inside.push(entry);
            }
        }
        if inside.is_empty() {
            let ways = "*.warc, *.warc.gz and *.warc.zst";
            return Err(Usage(format!("{} has no WARC file ({ways})", path.display())).into());
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// Counts by reason.
#[derive(Debug, Default)]
struct Reasons(BTreeMap<&'static str, u64>);

impl Reasons {
    fn count(&mut self, reason: &'static str) {
        *self.0.entry(reason).or_default() += 1;
    }

    fn tell_fault(&mut self, file: &Path, fault: &Fault) {
        eprintln!("{}: {fault}", file.display());
        self.count(fault.kind.name());
    }
}

/// A page that is to be read, and what came of it.
struct Slot {
    record: Record,
    read: Option<Result<String, &'static str>>,
}

/// `crawl extract --warc`.
pub(super) fn extract(args: &ExtractArgs, quiet: bool) -> Result<Exit> {
    let files = files(&args.warc)?;
    let output = match args.format {
        _ if args.why => BatchOutput::Reasons,
        ExtractFormat::Markdown => BatchOutput::Markdown,
        ExtractFormat::Text | ExtractFormat::Json => BatchOutput::Text,
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if args.threads == 0 { cores } else { args.threads };
    let memory = Memory::new(crawl::RunLimits::default().pages_size_max);
    let (mut pages, mut reasons) = (0, Reasons::default());
    let mut out = std::io::stdout().lock();
    for file in &files {
        let mut reader = if file.as_os_str() == "-" {
            Reader::new(Path::new("standard input"), Box::new(std::io::stdin()))
        } else {
            Reader::open(file)
        };
        let reader = reader.as_mut().map_err(|error| Usage(error.to_string()))?;
        let mut is_over = false;
        while !is_over {
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            while chunk.len() < threads.saturating_mul(CHUNK_PAGES) && bytes < CHUNK_BYTES {
                match reader.next().map_err(|error| usage(&error))? {
                    Some(Entry::Record(record)) => match unwanted(&record) {
                        None => {
                            bytes += record.block.len();
                            chunk.push(Slot { record, read: None });
                        }
                        Some("") => {}
                        Some(reason) => reasons.count(reason),
                    },
                    Some(Entry::Fault(fault)) => reasons.tell_fault(file, &fault),
                    None => {
                        is_over = true;
                        break;
                    }
                }
            }
            for read in read_all(chunk, threads, output, &memory) {
                match read {
                    Ok(line) => {
                        writeln!(out, "{}", json_lines(&line))?;
                        pages += 1;
                    }
                    Err(reason) => reasons.count(reason),
                }
            }
        }
    }
    out.flush()?;
    if !quiet {
        eprintln!("{} pages read{}", number(pages), not_read(&reasons.0));
    }
    if pages == 0 {
        return Err(Usage("no page can be read from these files".to_owned()).into());
    }
    Ok(Exit::Done)
}

fn usage(error: &warc::Error) -> anyhow::Error {
    Usage(error.to_string()).into()
}

fn not_read<K: AsRef<str>>(reasons: &BTreeMap<K, u64>) -> String {
    let told =
        reasons.iter().map(|(reason, count)| format!("{} {}", reason.as_ref(), number(*count)));
    let told = told.collect::<Vec<_>>().join(", ");
    if told.is_empty() { told } else { format!("; not read: {told}") }
}

/// Why a record is no page; an empty reason for one that never is.
fn unwanted(record: &Record) -> Option<&'static str> {
    match record.kind {
        Kind::Response | Kind::Resource => match record.target() {
            None => Some("no_target"),
            // What a crawl says of itself.
            Some(target) if target.starts_with(crawl::URN) => Some(""),
            Some(target) if target.ends_with("/robots.txt") => Some("robots_txt"),
            Some(_) => None,
        },
        Kind::Revisit => Some("revisit"),
        Kind::Conversion => Some("conversion"),
        Kind::Continuation => Some("continuation"),
        Kind::Warcinfo | Kind::Request | Kind::Metadata | Kind::Other => Some(""),
    }
}

/// Reads pages on all threads. The answers are in the order of the records.
fn read_all(
    chunk: Vec<Slot>,
    threads: usize,
    output: BatchOutput,
    memory: &Memory,
) -> Vec<Result<String, &'static str>> {
    let slots: Vec<Mutex<Slot>> = chunk.into_iter().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads.min(slots.len()) {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.read = Some(read_page(&slot.record, output, memory));
                }
            });
        }
    });
    let slots =
        slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    slots.map(|slot| slot.read.unwrap_or(Err("unreadable"))).collect()
}

fn read_page(
    record: &Record,
    output: BatchOutput,
    memory: &Memory,
) -> Result<String, &'static str> {
    let fetch = fetch::Config::default();
    let limits = DecodeLimits {
        bytes_max: fetch.decoded_size_max.bytes(),
        ratio_max: fetch.decoded_ratio_max,
        ratio_grace_bytes: RATIO_GRACE_BYTES,
    };
    let payload = record.clone().into_payload(&limits).map_err(|fault| fault.name())?;
    let Payload { status, content_type, bytes, cut, .. } = payload;
    if status.is_some_and(|status| !matches!(status, 200 | 203)) {
        return Err("status");
    }
    if !fetch::may_be_page(content_type.as_deref()) {
        return Err("not_a_page");
    }
    let id = serde_json::Value::from(record.id());
    let given = BatchPage {
        id: &id,
        url: record.target(),
        content_type: content_type.as_deref(),
        fetched: record.date(),
        bytes: &bytes,
    };
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        page::batch_page(&given, output, memory)
    }));
    let mut answer = read.map_err(|_| "unreadable")?;
    answer["fetched"] = record.headers.get("WARC-Date").into();
    answer["cut"] = cut.into();
    Ok(answer.to_string())
}

/// `crawl rebuild`.
pub(super) fn rebuild(args: &RebuildArgs, json: bool, quiet: bool) -> Result<Exit> {
    let files = files(&args.warc)?;
    let config = settings_of(&files, args.config.as_deref())?;
    let folder = args.store.folder()?;
    let store = super::crawl::open(&config, folder)?;
    let bar = ReadingBar::start(quiet)?;
    let tell = |progress: RebuildProgress| {
        let RebuildProgress { visits, read, of } = progress;
        bar.show(Position { read, of }, &format!("{} visits", number(visits)));
    };
    let rebuilt = crawl::rebuild(&store, &config.settings(), &files, &tell);
    bar.end();
    let rebuilt = rebuilt.map_err(|error| match error {
        RebuildError::Crawl(error) => anyhow::Error::from(error),
        error => Usage(format!("{}: {error}", folder.display())).into(),
    })?;
    if json {
        return screen::json(&rebuilt);
    }
    show(&rebuilt)?;
    Ok(Exit::Done)
}

/// The settings of the crawl that wrote the files, and over them those of a file.
fn settings_of(files: &[PathBuf], over: Option<&Path>) -> Result<config::Config> {
    let mut sourced = Sourced::default();
    let stated = files.first().map(|file| crawl::stated_settings(file)).transpose();
    let stated = stated.map_err(|error| Usage(error.to_string()))?.flatten();
    if let Some(stated) = stated {
        let bad = |detail: String| Usage(format!("the settings in the WARC file: {detail}"));
        let table: toml::Table = toml::from_str(&stated).map_err(|error| bad(error.to_string()))?;
        sourced.overlay(&table).map_err(|(key, detail)| bad(format!("`{key}`: {detail}")))?;
    }
    if let Some(path) = over {
        // What is wrong with the file is told as everywhere.
        drop(settings::read(Some(path))?);
        let text = std::fs::read_to_string(path)?;
        let table: toml::Table = toml::from_str(&text)?;
        sourced
            .overlay(&table)
            .map_err(|(key, detail)| Usage(format!("{}: `{key}`: {detail}", path.display())))?;
    }
    Ok(sourced.config)
}

fn show(rebuilt: &Rebuilt) -> Result<()> {
    println!("{} visits read again", number(rebuilt.visits));
    for (title, reasons) in [
        ("visits that were not:", &rebuilt.unused),
        ("parts of files that are no record:", &rebuilt.faults),
    ] {
        if !reasons.is_empty() {
            println!("{title}");
            let facts = reasons.iter();
            screen::facts(facts.map(|(reason, count)| (reason.as_str(), number(*count))))?;
        }
    }
    println!("the store has");
    screen::facts([("documents", number(rebuilt.documents)), ("copies", number(rebuilt.copies))])
}
