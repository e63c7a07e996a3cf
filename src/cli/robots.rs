//! `crawl robots test`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::units::Size;
use crate::web::robots::{self, Options, RobotsRules};
use anyhow::{Context as _, Result};
use clap::{Args as ClapArgs, Subcommand};

use super::exit::{Exit, Usage};
use super::{batch, screen};

#[derive(Debug, Subcommand)]
pub(crate) enum RobotsCommand {
    /// Tell for each URL whether a robots.txt allows it, and by which line
    Test(RobotsArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RobotsArgs {
    /// The robots.txt file
    #[arg(required_unless_present = "jsonl")]
    pub file: Option<PathBuf>,
    /// Product token of the crawler
    #[arg(long, value_name = "NAME", default_value = "uniqcrawl")]
    pub agent: String,
    /// URLs, or paths
    #[arg(required_unless_present = "jsonl")]
    pub urls: Vec<String>,
    /// Read lines `{"robots_base64","checks":[[agent,url],...]}`; print a line of 0 and 1 for each
    #[arg(long, conflicts_with_all = ["file", "urls"])]
    pub jsonl: bool,
    /// Follow RFC 9309 only, without what Google's parser adds
    #[arg(long)]
    pub strict: bool,
    /// Bytes of a file that are read, as `frontier.robots_size_max` for a crawl
    #[arg(long, value_name = "SIZE", default_value = "500 KiB")]
    pub size_max: Size,
}

/// `crawl robots test`.
pub(super) fn run(command: RobotsCommand, json: bool) -> Result<Exit> {
    let RobotsCommand::Test(args) = command;
    let options = Options { google_extras: !args.strict, bytes_max: args.size_max.bytes() };
    if args.jsonl { lines(options) } else { test(&args, options, json) }
}

fn test(args: &RobotsArgs, options: Options, json: bool) -> Result<Exit> {
    let path = args.file.as_deref().ok_or_else(|| Usage("no robots.txt is given".to_owned()))?;
    let body = std::fs::read(path)
        .map_err(|error| Usage(error.to_string()))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let rules = RobotsRules::parse(&body, &options);
    if let Some(read) = rules.cut() {
        let (file, bytes) = (path.display(), body.len());
        eprintln!(
            "note: {file} has {bytes} bytes and was cut after {read}: rules beyond do not hold"
        );
    }
    let mut answers = Vec::new();
    for url in &args.urls {
        let verdict = rules.verdict(&args.agent, url);
        let line = verdict.rule.as_ref().map(|rule| rule.line);
        let text = verdict.rule.as_ref().map(|rule| rule.text.clone());
        if json {
            answers.push(serde_json::json!({
                "url": url, "allowed": verdict.allowed, "line": line, "rule": text,
                "cut": rules.cut().is_some(),
            }));
            continue;
        }
        let word = if verdict.allowed { "allowed" } else { "disallowed" };
        match (line, text) {
            (Some(line), Some(text)) => println!("{word:<10}  {url}  (line {line}: {text})"),
            _ => println!("{word:<10}  {url}  (no rule)"),
        }
    }
    if json {
        return screen::json(&answers);
    }
    Ok(Exit::Done)
}

fn lines(options: Options) -> Result<Exit> {
    let (bad, cut) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counts = (Arc::clone(&bad), Arc::clone(&cut));
    let exit = batch::run(
        0,
        &(Arc::new(move |line: &str| match robots::batch_line(line, &options) {
            Ok(answer) => {
                counts.1.fetch_add(u64::from(answer.cut.is_some()), Ordering::Relaxed);
                answer.checks
            }
            Err(error) => {
                counts.0.fetch_add(1, Ordering::Relaxed);
                serde_json::json!({"error": error.to_string()}).to_string()
            }
        }) as Arc<batch::LineAnswer>),
    )?;
    let (bad, cut) = (bad.load(Ordering::Relaxed), cut.load(Ordering::Relaxed));
    if cut > 0 {
        let read = options.bytes_max;
        eprintln!("note: files cut after {read} bytes: {cut}; their rules beyond do not hold");
    }
    if bad > 0 {
        let what = format!("lines that cannot be answered: {bad}; see `error` in their places");
        return Err(Usage(what).into());
    }
    Ok(exit)
}
