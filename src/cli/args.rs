//! What may stand on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::base::units::{Size, Time};
use crate::config::memory;
use crate::corpus::documents::Keep;
use crate::corpus::export::ExportPart;
use crate::neardup::Preset;
use crate::neardup::index::layout::LayoutKind;
use crate::text::features::Extractor;
use crate::urls::{Pattern, ScopeKind};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::corpora::{FilterArgs, ImportArgs, InputArgs, KeptArg};
use super::duplicate_feed::DuplicateFeedCommand;
use super::export::ExportArgs;
use super::follow::FollowArgs;
use super::inspect::CheckArgs;
use super::place::{SharedStoreArg, StoreArg, StoreName, store_name};
use super::plan::PlanArgs;
use super::robots::RobotsCommand;
use super::search::SearchArgs;
use super::simhash::SimhashArgs;
use super::store::StoreCommand;
use super::upkeep::{ExpireArgs, IdfArgs, MigrateArgs};
use super::warc::{RebuildArgs, WarcArgs};
use super::worker::WorkerArgs;

/// Name of `duplicate-feed` in the version before; it is read for one version, with a note.
pub(crate) const OLD_DUPLICATE_FEED: &str = "verdicts";

/// A polite, crash-safe web crawler that removes duplicate pages while it crawls.
#[derive(Debug, Parser)]
#[command(name = "crawl", version, args_conflicts_with_subcommands = true)]
#[command(
    override_usage = "crawl [OPTIONS] <URL>...\n       crawl [OPTIONS] --seeds <FILE>\n       \
    crawl <COMMAND>"
)]
#[command(after_help = "Exit codes: 0 done; 1 failed; 2 bad usage or input; 3 finished, but some \
    seeds could not be crawled; 130 interrupted and safely stopped.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub crawl: CrawlArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more: -v what happens, -vv every request
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print no progress and log errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Write log lines as JSON
    #[arg(long, global = true)]
    pub log_json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CrawlArgs {
    /// URLs to start from; `https://` may be left out
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// File of further URLs, one a line, `#` for comments, `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub seeds: Vec<PathBuf>,
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Write the final report to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub warc: WarcArgs,
    /// Answer, with the dashboard, while the crawl is running; by default where `[api]` says
    #[arg(long, value_name = "ADDR")]
    #[expect(clippy::option_option, reason = "clap's form of a flag that may have a value")]
    pub serve: Option<Option<SocketAddr>>,
}

/// Settings that can be given on the command line.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Overrides {
    /// Settings file (see config/crawl.toml); the flags below win over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How far to go from the seeds
    #[arg(long, value_name = "KIND")]
    pub scope: Option<ScopeArg>,
    /// Crawl only URLs that match this pattern: a glob of the whole URL, in
    /// which `*` is any text, or a regular expression after `re:`. Seeds are visited in any case
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<Pattern>,
    /// Skip URLs that match this pattern, even if they are included
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Pattern>,
    /// Visit at most this many pages in this run
    #[arg(long, value_name = "N")]
    pub max_pages: Option<u64>,
    /// Queue at most this many URLs of one host (0 for no limit)
    #[arg(long, value_name = "N")]
    pub max_pages_per_host: Option<u64>,
    /// Follow at most this many links from a seed
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u16>,
    /// Delay between the end of a host's answer and the next request to it: 500ms, 1s, 0
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Time>,
    /// Requests to one host at a time
    #[arg(long, value_name = "N")]
    pub connections_per_host: Option<usize>,
    /// Memory to take: `512 MiB`, `2 GB`; 0 for an eighth of the machine's, 256 MiB to 1 GiB
    #[arg(long, value_name = "SIZE", value_parser = memory::parse)]
    pub memory: Option<Size>,
    /// Keep this of each page beside its text, for exports: markdown, links, images, headers
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub keep: Vec<Keep>,
    /// Keep blocks of text that many pages of a host repeat
    #[arg(long)]
    pub keep_boilerplate: bool,
    /// Revisit pages that are due, by how often they have changed
    #[arg(long)]
    pub recrawl: bool,
    /// Do not fetch copies that this duplicate feed names (see `crawl duplicate-feed export`)
    #[arg(long, value_name = "FEED")]
    pub known: Vec<PathBuf>,
    /// Allow private and loopback IP addresses
    #[arg(long)]
    pub allow_private: bool,
    /// URL or mailbox where webmasters can reach you, sent in the user agent
    #[arg(long, value_name = "ADDRESS")]
    pub contact: Option<String>,
}

/// How far to go from the seeds.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeArg {
    /// The hosts of the seeds
    Host,
    /// The registrable domains of the seeds
    Domain,
    /// Below the folders of the seeds
    Prefix,
    /// Everywhere
    Any,
}

impl From<ScopeArg> for ScopeKind {
    fn from(arg: ScopeArg) -> Self {
        match arg {
            ScopeArg::Host => Self::Host,
            ScopeArg::Domain => Self::Domain,
            ScopeArg::Prefix => Self::Prefix,
            ScopeArg::Any => Self::Any,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show or change the rules learned from duplicates, by which URLs are skipped
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// Crawl a small web that runs on this machine: no network needed
    Demo(DemoArgs),
    /// Explain why two texts are duplicates or not: every key, distance and differing word
    Compare(CompareArgs),
    /// Remove duplicates from files of documents: JSON lines, Parquet, WARC, HTML, texts
    Dedup(DedupArgs),
    /// Take files of documents into a store: JSON lines, Parquet, WARC, HTML, texts
    Import(ImportArgs),
    /// Write the deduplicated corpus, and the list of dropped copies beside it
    Export(ExportArgs),
    /// Explain why a URL was crawled or not
    Explain(ExplainArgs),
    /// Show a document with all its copies
    Inspect(InspectArgs),
    /// Remove documents without a new copy for a given time, with all their copies
    Expire(ExpireArgs),
    /// Count the document frequency of each word of a corpus, for `idf_file`
    Idf(IdfArgs),
    /// Find the documents, or the sentences, that are most like a text
    Search(SearchArgs),
    /// Show statistics of a store
    Stats(SharedStoreArg),
    /// Check every invariant of a store
    Check(CheckArgs),
    /// Bring a store of an older format to the present one, and check it
    Migrate(MigrateArgs),
    /// Show what a store is, back it up, compact it, merge stores
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Print new, changed and ended documents as lines of JSON, each with a cursor
    Follow(FollowArgs),
    /// Show the effective settings and where each comes from
    Config(Overrides),
    /// Run crawls on a schedule, and show their history
    Jobs {
        #[command(subcommand)]
        command: JobsCommand,
    },
    /// Test URLs against a robots.txt
    Robots {
        #[command(subcommand)]
        command: RobotsCommand,
    },
    /// Run the HTTP deduplication service and dashboard
    Serve(ServeArgs),
    /// Publish a feed of duplicate URLs, and list the feeds taken from others
    #[command(alias = OLD_DUPLICATE_FEED)]
    DuplicateFeed {
        #[command(subcommand)]
        command: DuplicateFeedCommand,
    },
    /// Print the fingerprint of a text
    Simhash(SimhashArgs),
    /// Tell what a search for near-duplicates costs among so many documents: formulas beside times
    /// that are measured here
    Plan(PlanArgs),
    /// Print the main text of an HTML page
    Extract(ExtractArgs),
    /// Make a store anew from the WARC files of a crawl: the same documents
    Rebuild(RebuildArgs),
    /// Crawl together with other workers, by a cluster that all of them share
    Worker(WorkerArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Folder of the store; it must not have one yet
    #[arg(long, value_name = "DIR", default_value = "demo-store", value_parser = store_name())]
    pub store: StoreName,
    /// Keep the small web running after the crawl, until Ctrl-C
    #[arg(long)]
    pub serve: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Folder for kept.jsonl, duplicates.jsonl, clusters.jsonl, rejected.jsonl and report.json, and
    /// filtered.jsonl if there are filters; `-` writes what is kept to standard output
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// What is kept: `jsonl`, or of Parquet files `parquet`, with all their columns
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "jsonl")]
    pub format: KeptArg,
    /// It has none: whoever names one is told which command does
    #[arg(long, hide = true, value_name = "STORE", value_parser = store_name())]
    pub store: Option<StoreName>,
    #[command(flatten)]
    pub filters: FilterArgs,
    #[command(flatten)]
    pub rule: RuleArgs,
    /// Memory to take: `512 MiB`, `2 GB`; 0 for a quarter of the machine's. Beyond it, the run goes
    /// on more slowly
    #[arg(long, value_name = "SIZE", value_parser = memory::parse)]
    pub memory: Option<Size>,
}

/// How duplicates are found.
#[derive(Debug, ClapArgs)]
pub(crate) struct RuleArgs {
    /// Preset of thresholds: seeds, strict, balanced or loose
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub preset: Option<Preset>,
    /// Settings file, of which the section `dedup` is used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Feature extractor: tfidf, log-tfidf, levels, word-shingles, char-shingles,
    /// longest-sentence, lecture-chars or enum
    #[arg(long, value_name = "NAME")]
    pub extractor: Option<Extractor>,
    /// Fingerprint index: rotated, pairs, two-level, query-expansion, expanded or linear
    #[arg(long, value_name = "NAME")]
    pub layout: Option<LayoutKind>,
    /// Largest Hamming distance of near-duplicate fingerprints
    #[arg(short, value_name = "BITS")]
    pub k: Option<u32>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompareArgs {
    /// The first text: a file; with --jsonl an id, with --store a docId or the URL of a copy
    pub first: String,
    /// The second one
    pub second: String,
    /// Take the texts from the store in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "jsonl", value_parser = store_name())]
    pub store: Option<StoreName>,
    /// Take the texts from this file of lines `{"id","title","text"}`
    #[arg(long, value_name = "FILE")]
    pub jsonl: Option<PathBuf>,
    #[command(flatten)]
    pub rule: RuleArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub store: SharedStoreArg,
    /// The URL
    pub url: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub store: SharedStoreArg,
    /// The document: a docId, or the URL of any copy
    pub document: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub store: SharedStoreArg,
    /// IP address and port to listen on; anything but loopback needs a token
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// File of the token that clients must send
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Run the jobs of this file beside the service; those of the same store share it
    #[arg(long, value_name = "FILE")]
    pub jobs: Option<PathBuf>,
    /// Let requests start crawls into the store, by the settings of --config
    #[arg(long)]
    pub allow_crawls: bool,
    /// Let requests remove documents that had no new copy for long
    #[arg(long)]
    pub allow_expiry: bool,
    /// Of a cluster, keep the index of the search in this folder: it is made there, and follows the
    /// corpus
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Keep this part of the index, such as 1/4; several may be named, all without it
    #[arg(long = "part", value_name = "I/N", requires = "index")]
    pub parts: Vec<ExportPart>,
    /// Ask these services for their parts of the index, such as `http://10.0.0.2:8080`
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub search_peers: Vec<String>,
    /// Settings file; only crawls need more than `api`, `dedup`, `export`, `search` and `store`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Where the jobs are.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct JobsArg {
    /// File of jobs
    #[arg(long, value_name = "FILE", default_value = "config/jobs.toml")]
    pub jobs: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Run what is due, and wait for what comes next
    Run(JobsRunArgs),
    /// Show each job with its schedule, its last run and its next one
    List(JobsArg),
    /// Show the next moments of all jobs, or of one
    Next(JobsNextArgs),
    /// Show the runs of a job, the newest first
    History(JobsHistoryArgs),
    /// Check the file, the settings and the seeds of all jobs
    Check(JobsArg),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobsRunArgs {
    #[command(flatten)]
    pub jobs: JobsArg,
    /// Run this job now, and end
    #[arg(long, value_name = "NAME", conflicts_with = "until")]
    pub once: Option<String>,
    /// Begin nothing that is due later than this, and end when all is done: a moment such as
    /// 2026-11-21T06:00:00Z, or a time from now: 8h; 0 for what is due already
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobsNextArgs {
    #[command(flatten)]
    pub jobs: JobsArg,
    /// The job; all if it is not given
    pub name: Option<String>,
    /// Number of moments
    #[arg(short, value_name = "N", default_value_t = 5)]
    pub n: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct JobsHistoryArgs {
    #[command(flatten)]
    pub jobs: JobsArg,
    /// The job
    pub name: String,
    /// Number of runs
    #[arg(short, value_name = "N", default_value_t = 20)]
    pub n: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExtractArgs {
    /// The page; standard input if it is not given
    pub file: Option<PathBuf>,
    /// Address of the page, to resolve its links
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Content-Type header of the page
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Read lines `{"id","url","html"}` or `{"id","html_base64"}`; print one for each, in order
    #[arg(long, group = "many", conflicts_with = "file")]
    pub jsonl: bool,
    /// Read the pages of these WARC files, or of folders of them, `-` for standard input; print a
    /// line of JSON for each
    #[arg(
        long,
        value_name = "PATH",
        num_args = 1..,
        group = "many",
        conflicts_with_all = ["file", "url", "content_type", "jsonl"]
    )]
    pub warc: Vec<PathBuf>,
    /// Threads that answer lines; 0 for one per core. The answers are the same for any number
    #[arg(long, value_name = "N", default_value_t = 0, requires = "many")]
    pub threads: usize,
    /// What to print: the main text as plain text or as Markdown, or everything as JSON
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: ExtractFormat,
    /// Say of each block why it was kept or dropped
    #[arg(long)]
    pub why: bool,
    /// Print the names of the features that `--why --jsonl` gives, for training, and end
    #[arg(long, hide = true)]
    pub feature_names: bool,
}

/// Forms in which `crawl extract` prints a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExtractFormat {
    /// The main text, one line a block
    Text,
    /// The main text as Markdown
    Markdown,
    /// Text and everything that is known of the page
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// List the rules with their evidence
    List {
        #[command(flatten)]
        store: StoreArg,
        /// Only those of this host: scheme, name and port if there is one
        #[arg(long, value_name = "HOST")]
        host: Option<String>,
    },
    /// Stop to use a rule; the next run lets in what it has skipped
    Disable {
        #[command(flatten)]
        store: StoreArg,
        /// Number of the rule
        number: u64,
    },
    /// Let a disabled rule learn again
    Enable {
        #[command(flatten)]
        store: StoreArg,
        /// Number of the rule
        number: u64,
    },
}
