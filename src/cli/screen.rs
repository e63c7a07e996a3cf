//! What all commands print alike: logs, JSON, tables of facts, numbers.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Result;
use serde::Serialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::exit::Exit;

/// Starts the log on standard error. `UNIQCRAWL_LOG` overrides the flags.
pub(super) fn start_log(verbose: u8, quiet: bool, json: bool) {
    let level = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "warn,uniqcrawl=info",
        (false, _) => "info,uniqcrawl=debug",
    };
    let filter = EnvFilter::try_from_env("UNIQCRAWL_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would tell of lines that nobody reads with a macro that panics then.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    match super::crash::asked_for() {
        Some(crash) => log.finish().with(crash).init(),
        None if json => log.json().init(),
        None => log.init(),
    }
}

/// Prints a value as one JSON document.
pub(super) fn json(value: &impl Serialize) -> Result<Exit> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(Exit::Done)
}

/// Prints names and values, the values in one column.
pub(super) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Result<()> {
    let facts: Vec<_> = facts.into_iter().collect();
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    for (name, value) in facts {
        writeln!(out, "  {name:<width$}  {value}")?;
    }
    Ok(())
}

/// Makes the key `linksBetweenHosts` in JSON of the name `links between hosts`.
pub(super) fn key(name: &str) -> String {
    let mut words = name.split(' ');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |key, word| {
        let (head, rest) = word.split_at(word.ceil_char_boundary(1));
        format!("{key}{}{rest}", head.to_uppercase())
    })
}

/// Writes a number with blanks between its thousands.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Writes a number of bytes in the unit that fits.
pub(super) fn bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

/// Returns the peak memory of this process in bytes, where the system tells.
pub(super) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
