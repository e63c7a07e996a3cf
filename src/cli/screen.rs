//! What all commands print alike: logs, JSON, tables of facts, numbers; and that nothing which
//! pages say reaches a terminal as a command.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::clock::Clock;
use anyhow::Result;
use serde::Serialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::exit::Exit;

/// Tells whether a terminal may obey a character instead of showing it: control codes of both sets,
/// and what turns the direction of the text around it.
/// Source: Unicode Standard Annex 9 (the property `Bidi_Control`), and separators of lines.
fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}');
    let turns = turns || matches!(c, '\u{2066}'..='\u{206F}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Writes some text for a terminal: what it would obey is shown as an escape, but for what `kept`
/// lets through.
fn harmless(text: &str, kept: fn(char) -> bool, escape: fn(&mut String, char)) -> Cow<'_, str> {
    let is_bad = |c: char| is_obeyed(c) && !kept(c);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) { escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// A value that others have written, on one line.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    harmless(
        text,
        |_| false,
        |out, c| {
            if c.is_whitespace() { out.push(' ') } else { out.extend(c.escape_unicode()) }
        },
    )
}

/// Whole lines.
pub(super) fn lines(text: &str) -> Cow<'_, str> {
    harmless(text, |c| matches!(c, '\n' | '\t'), |out, c| out.extend(c.escape_unicode()))
}

/// JSON, in which the same characters have escapes that mean them.
pub(super) fn json_lines(text: &str) -> Cow<'_, str> {
    let escape = |out: &mut String, c: char| {
        // All of them are of the basic plane.
        let _ = std::fmt::Write::write_fmt(out, format_args!("\\u{:04x}", u32::from(c)));
    };
    harmless(text, |c| c == '\n', escape)
}

/// A text that was asked for: as it is, unless it goes to a terminal.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() { lines(text) } else { Cow::Borrowed(text) }
}

/// The log is in JSON, and so is all else on standard error.
static JSON_LOG: AtomicBool = AtomicBool::new(false);

/// A line for standard error that is no event of the log: as it is, or in the form of an event.
pub(super) fn aside(text: &str) -> Cow<'_, str> {
    if !JSON_LOG.load(Ordering::Relaxed) {
        return lines(text);
    }
    let levels = [("error: ", "ERROR"), ("warning: ", "WARN"), ("note: ", "INFO")];
    let level =
        levels.into_iter().find_map(|(word, level)| Some((level, text.strip_prefix(word)?)));
    let (level, message) = level.unwrap_or(("INFO", text));
    let timestamp = Clock::default().now().to_string();
    let event = serde_json::json!({
        "timestamp": timestamp, "level": level, "fields": {"message": message}, "target": "crawl",
    });
    Cow::Owned(json_lines(&event.to_string()).into_owned())
}

/// Standard error for lines of JSON.
struct JsonLog;

impl std::io::Write for JsonLog {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        std::io::stderr().write_all(json_lines(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

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
        .log_internal_errors(false);
    let crash = super::crash::asked_for();
    if json && crash.is_none() {
        JSON_LOG.store(true, Ordering::Relaxed);
        return log.json().with_writer(|| JsonLog).init();
    }
    let fields = debug_fn(|out, field, value| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(out, "{}", shown(&value)),
            name => write!(out, "{name}={}", shown(&value)),
        }
    });
    let log = log.fmt_fields(fields.delimited(" ")).with_ansi(std::io::stderr().is_terminal());
    match crash {
        Some(crash) => log.finish().with(crash).init(),
        None => log.init(),
    }
}

/// Prints a value as one JSON document.
pub(super) fn json(value: &impl Serialize) -> Result<Exit> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    writeln!(std::io::stdout(), "{}", json_lines(&text))?;
    Ok(Exit::Done)
}

/// Prints names and values, the values in one column.
pub(super) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Result<()> {
    let facts: Vec<_> = facts.into_iter().collect();
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    for (name, value) in facts {
        writeln!(out, "  {:<width$}  {}", shown(name), shown(&value))?;
    }
    Ok(())
}

/// Makes the key `linksBetweenHosts` in JSON of the name `links between hosts`.
pub(super) fn key(name: &str) -> String {
    let mut words = name.split(' ');
    let first = words.next().unwrap_or_default().replacen("URLs", "urls", 1);
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
