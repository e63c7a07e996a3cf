//! `crawl export`.

use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tokio::runtime::Runtime;
use url::Url;

use crate::base::clock::Clock;
use crate::base::remote::Location;
use crate::base::system;
use crate::config::Config;
use crate::corpus::export::{
    self, Compression, ExportPart, ExportPlan, Expression, FORMATS, Fields, Format, List,
    ShardSize, Summary, Tally, Unsettled,
};
use crate::corpus::shared::SharedSource;
use crate::store::{self, Store};
use crate::web::fetch::{self, Fetcher};

use super::corpora::FilterArgs;
use super::exit::{Exit, Usage};
use super::place::SharedStoreArg;
use super::screen::{self, number};
use super::settings;

/// Time without a byte after which a service is given up.
const STALL_TIME_MAX: Duration = Duration::from_mins(5);

/// Bytes of an answer that is no export that are read.
const PROBLEM_BYTES_MAX: u64 = 64 << 10;

/// Bytes of standard output that are written at a time.
const STDOUT_BYTES: usize = 1 << 16;

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub store: SharedStoreArg,
    /// Export from a running service, or a crawl with `--serve`, in place of a store: its URL
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub from: Option<Url>,
    /// File of the token of that service
    #[arg(long, value_name = "FILE", requires = "from")]
    pub token_file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = FORMATS[0].name, value_parser = format())]
    pub format: &'static Format,
    /// Folder to write to, also `s3://bucket/folder`, `gs://`, `az://`; `-` for standard output
    #[arg(long, value_name = "DIR")]
    pub out: String,
    /// Export only documents that match, such as `language in (en, zh) and published >= 2026-11`
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub filter: Option<Expression>,
    /// Fields of each document, with commas between them; also `usual` and `all`
    #[arg(long, value_name = "NAMES")]
    pub fields: Option<Fields>,
    /// Export one of several parts, such as 1/4: many processes export together, each a part into
    /// a folder of its own
    #[arg(long, value_name = "I/N", conflicts_with = "from")]
    pub part: Option<ExportPart>,
    /// Begin a new file after so many documents, or bytes: `10000`, `256 MiB`
    #[arg(long, value_name = "SIZE")]
    pub shard_size: Option<ShardSize>,
    /// Compress the files: zstd, gzip, none (usual: zstd in Parquet, none elsewhere)
    #[arg(long, value_name = "HOW")]
    pub compress: Option<Compression>,
    /// List to write to standard output
    #[arg(long, value_name = "LIST", default_value = "documents", value_parser = list())]
    pub list: List,
    /// Leave out copies that are not settled: some may turn out to be documents of their own before
    /// a crawl ends
    #[arg(long)]
    pub trust_unsettled: bool,
    /// Settings file, of which the sections `export` and `filters` are used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub texts: FilterArgs,
}

fn format() -> impl TypedValueParser<Value = &'static Format> {
    let values = FORMATS.iter();
    let values = values.map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(values).try_map(|name| Format::named(&name))
}

fn list() -> impl TypedValueParser<Value = List> {
    let values = List::ALL.map(|list| PossibleValue::new(list.as_str()));
    PossibleValuesParser::new(values).map(|name| {
        let found = List::ALL.into_iter().find(|list| list.as_str() == name);
        found.expect("only names of lists are let in")
    })
}

/// `crawl export`.
pub(crate) fn export(args: &ExportArgs, json: bool, quiet: bool) -> Result<Exit> {
    let mut config = settings::read(args.config.as_deref())?.config;
    args.texts.over(&mut config.filters)?;
    let plan = ExportPlan {
        format: args.format,
        fields: args.fields.clone().unwrap_or_else(|| Fields::usual(args.format)),
        filter: args.filter.clone(),
        part: args.part,
        shard: args.shard_size,
        compression: args.compress,
        unsettled: if args.trust_unsettled { Unsettled::Trusted } else { Unsettled::Apart },
        filters: config.filters,
        config: config.export,
    };
    if args.out == "-" {
        return to_stdout(args, &plan, quiet);
    }
    if args.list != List::Documents {
        let detail = "--list is for --out -: a folder has a file for each list";
        return Err(Usage(detail.to_owned()).into());
    }
    let location = Location::parse(&args.out)?;
    let summary = if let Some(url) = &args.from {
        export::export_from(&mut ask(args, url, &plan)?, &location, &plan)?
    } else {
        let now = Clock::System.now();
        let done = if let Some(corpus) = args.store.shared()? {
            export::export_of(&SharedSource(&corpus), &location, &plan, now)
        } else {
            export::export_to(&open(args)?, &location, &plan, now)
        };
        done.map_err(|error| resumable(error, &plan, &location))?
    };
    if json {
        return screen::json(&summary);
    }
    show(&summary, &plan);
    Ok(Exit::Done)
}

/// Says that what is whole is kept, if that is so.
fn resumable(error: export::Error, plan: &ExportPlan, location: &Location) -> anyhow::Error {
    let is_kept = plan.shard.is_some() && location.local().is_some();
    match error {
        // Of a full disk more is told.
        export::Error::Output(error) if is_kept && !system::is_full(&error.source) => {
            anyhow!("{error}. Files that are whole are kept: the same command goes on behind them")
        }
        other => other.into(),
    }
}

fn open(args: &ExportArgs) -> Result<Store> {
    let cache = Config::default().cache_bytes();
    Store::open_to_read(args.store.folder()?, cache).map_err(|error| match error {
        store::Error::InUse(_) => anyhow!(
            "{error}. If that is `crawl serve`, or a crawl with `--serve`, export from it: \
             crawl export --from http://127.0.0.1:8080 --out {}",
            args.out
        ),
        other => other.into(),
    })
}

fn to_stdout(args: &ExportArgs, plan: &ExportPlan, quiet: bool) -> Result<Exit> {
    if plan.shard.is_some() {
        let detail = "standard output is one file: --shard-size needs a folder";
        return Err(Usage(detail.to_owned()).into());
    }
    let out = BufWriter::with_capacity(STDOUT_BYTES, io::stdout());
    let now = Clock::System.now();
    let tally = if let Some(url) = &args.from {
        export::pass_on(&mut ask(args, url, plan)?, args.list, plan, out)?
    } else if let Some(corpus) = args.store.shared()? {
        export::stream_of(&SharedSource(&corpus), args.list, plan, now, out)?
    } else {
        export::stream(&open(args)?, args.list, plan, now, out)?
    };
    io::stdout().flush()?;
    if !quiet {
        tell(&tally, args.list);
    }
    Ok(Exit::Done)
}

/// Says on standard error what went to standard output.
fn tell(tally: &Tally, list: List) {
    let count = match list {
        List::Documents => tally.documents,
        List::Duplicates => tally.duplicates,
        List::Withheld => {
            tally.withheld.values().sum::<u64>() + tally.filtered_by.values().sum::<u64>()
        }
    };
    eprintln!("note: {} {} written", number(count), list.as_str());
    if list == List::Documents && tally.duplicates > 0 {
        let dropped = number(tally.duplicates);
        eprintln!("note: {dropped} dropped copies are not: see --list duplicates");
    }
    if list == List::Documents {
        for (reason, count) in &tally.filtered_by {
            eprintln!("note: {} documents are kept out by a filter: {reason}", number(*count));
        }
    }
    for (field, count) in &tally.missing {
        eprintln!("note: {}", missing(field, *count));
    }
}

fn missing(field: &str, count: u64) -> String {
    format!("{} documents without `{field}`: it was not kept (--keep)", number(count))
}

fn show(summary: &Summary, plan: &ExportPlan) {
    println!("{} documents in {}", number(summary.documents), summary.path.display());
    if summary.unsettled > 0 {
        println!("  {} of them may turn out to be copies of others", number(summary.unsettled));
    }
    if plan.filter.is_some() {
        println!("  {} others are not taken by --where", number(summary.filtered));
    }
    for (reason, count) in &summary.filtered_by {
        println!("  {} others are kept out by a filter: {reason}", number(*count));
    }
    if summary.masked > 0 {
        println!("  {} pieces of personal data are masked", number(summary.masked));
    }
    let path = summary.duplicates_path.display();
    let is_there = summary.files.iter().any(|file| file.starts_with(List::Duplicates.as_str()));
    // Of shards, those without a dropped copy have no list of them.
    let place = if is_there { format!(" in {path}") } else { String::new() };
    println!("{} dropped copies{place}", number(summary.duplicates));
    if summary.skipped > 0 {
        println!("  {} of them not fetched, by a rule", number(summary.skipped));
    }
    for (reason, count) in &summary.withheld {
        let what = if reason == "noarchive" { "without their text" } else { "left out" };
        println!("{} documents {what}: {reason}", number(*count));
    }
    for (field, count) in &summary.missing {
        println!("{}", missing(field, *count));
    }
    if summary.unread_dates > 0 {
        println!("{} dates are none, and empty in this format", number(summary.unread_dates));
    }
}

/// Asks a service for all lists of an export.
fn ask(args: &ExportArgs, url: &Url, plan: &ExportPlan) -> Result<impl io::BufRead> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Usage(format!("--from {url}: a service has a URL of http or https")).into());
    }
    let mut url = url.join("/v1/export").context("the URL of the service")?;
    url.query_pairs_mut()
        .append_pair("list", "all")
        .append_pair("compress", "zstd")
        .append_pair("fields", &plan.fields.names().join(","));
    if let Some(filter) = &plan.filter {
        url.query_pairs_mut().append_pair("where", &filter.to_string());
    }
    let none = "--from: the service reads no file of words of yours, and no limits of rules: \
                only filters with flags of their own can be asked for";
    let filters = plan.filters.named().ok_or_else(|| Usage(none.to_owned()))?;
    for (name, value) in filters {
        url.query_pairs_mut().append_pair(name, &value);
    }
    if plan.unsettled == Unsettled::Trusted {
        url.query_pairs_mut().append_pair("unsettled", "trusted");
    }
    let token = args.token_file.as_ref().map(std::fs::read_to_string).transpose();
    let token = token.map_err(|error| Usage(format!("the token file: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The operator names the service, as he names it to a browser.
    let config = fetch::Config { allow_private: true, ..fetch::Config::default() };
    let fetcher = Fetcher::new(config)?;
    let answer = runtime.block_on(fetcher.open(&url, token.as_deref().map(str::trim)));
    let host = url.host_str().unwrap_or_default().to_owned();
    let answer = answer.map_err(|failure| anyhow!("{host}: {}", in_words(&failure)))?;
    let status = answer.status();
    let mut body = Body { runtime, answer, chunk: hyper::body::Bytes::new() };
    if !status.is_success() {
        return Err(refused(&host, status.as_u16(), &mut body));
    }
    Ok(BufReader::new(zstd::Decoder::new(body)?))
}

/// Why a service did not answer.
fn in_words(failure: &fetch::Failure) -> String {
    use fetch::Failure::{Connect, Dns, Timeout, Tls};
    match failure {
        Connect(why) => format!("no service answers there: {why}"),
        Dns(why) => format!("its name cannot be resolved: {why}"),
        Tls(why) => format!("no secure connection: {why}"),
        Timeout(what) => format!("it took too long: {what}"),
        other => format!("{other:?}"),
    }
}

/// What a service says that does not export.
fn refused(host: &str, status: u16, body: &mut Body) -> anyhow::Error {
    let mut text = Vec::new();
    // What cannot be read is not told.
    drop(body.take(PROBLEM_BYTES_MAX).read_to_end(&mut text));
    let problem: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
    let detail = detail.map_or(format!("status {status}"), str::to_owned);
    match status {
        400 => Usage(format!("{host}: {detail}")).into(),
        404 => Usage(format!("{host} has no /v1/export: is it a service of this version?")).into(),
        401 => Usage(format!("{host}: {detail} (--token-file)")).into(),
        _ => anyhow!("{host}: {detail}"),
    }
}

/// The body of an answer, as it comes.
struct Body {
    runtime: Runtime,
    answer: reqwest::Response,
    chunk: hyper::body::Bytes,
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            let answer = &mut self.answer;
            // Made inside, where there is a clock.
            let next = async { tokio::time::timeout(STALL_TIME_MAX, answer.chunk()).await };
            let next = self.runtime.block_on(next);
            match next.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))? {
                Ok(Some(chunk)) => self.chunk = chunk,
                Ok(None) => return Ok(0),
                Err(error) => return Err(io::Error::other(error.without_url())),
            }
        }
        let some = self.chunk.len().min(out.len());
        out[..some].copy_from_slice(&self.chunk.split_to(some));
        Ok(some)
    }
}
