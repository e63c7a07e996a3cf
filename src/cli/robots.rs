//! `crawl robots test`.

use std::io::{BufRead as _, Write as _};

use anyhow::{Context as _, Result};
use uniqcrawl::robots::{self, Options, Rules};

use super::args::{RobotsArgs, RobotsCommand};
use super::exit::{Exit, Usage};
use super::screen;

/// `crawl robots test`.
pub(super) fn run(command: RobotsCommand, json: bool) -> Result<Exit> {
    let RobotsCommand::Test(args) = command;
    let options = Options { google_extras: !args.strict };
    if args.jsonl { batch(options) } else { test(&args, options, json) }
}

fn test(args: &RobotsArgs, options: Options, json: bool) -> Result<Exit> {
    let path = args.file.as_deref().ok_or_else(|| Usage("no robots.txt is given".to_owned()))?;
    let body = std::fs::read(path)
        .map_err(|error| Usage(error.to_string()))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let rules = Rules::parse(&body, &options);
    let mut answers = Vec::new();
    for url in &args.urls {
        let verdict = rules.verdict(&args.agent, url);
        let line = verdict.rule.as_ref().map(|rule| rule.line);
        let text = verdict.rule.as_ref().map(|rule| rule.text.clone());
        if json {
            answers.push(serde_json::json!({
                "url": url, "allowed": verdict.allowed, "line": line, "rule": text,
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

fn batch(options: Options) -> Result<Exit> {
    let mut out = std::io::stdout().lock();
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let answer = robots::batch_line(&line?, &options)
            .map_err(|error| Usage(format!("line {}: {error}", number + 1)))?;
        writeln!(out, "{answer}")?;
    }
    Ok(Exit::Done)
}
