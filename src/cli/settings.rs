//! Settings from file and flags, and `crawl config`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::config::{Config, Sourced};
use anyhow::Result;

use super::args::Overrides;
use super::exit::Exit;
use super::screen;

/// Reads the settings file, and says what in it should be changed. A file is read once: it may be a
/// pipe.
pub(super) fn read(path: Option<&Path>) -> Result<Sourced> {
    static LAST: Mutex<Option<(PathBuf, Sourced)>> = Mutex::new(None);
    let Some(path) = path else { return Ok(Sourced::read(None)?) };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match last.as_ref() {
        Some((known, sourced)) if known == path => Ok(sourced.clone()),
        _ => {
            let sourced = Sourced::read(Some(path))?;
            tell(&sourced);
            *last = Some((path.to_owned(), sourced.clone()));
            Ok(sourced)
        }
    }
}

/// Says what should be changed, though it is still understood.
pub(super) fn tell(sourced: &Sourced) {
    for note in &sourced.notes {
        eprintln!("note: {note}");
    }
}

/// Reads the settings file and applies the flags.
pub(super) fn effective(flags: &Overrides) -> Result<Sourced> {
    let mut sourced = read(flags.config.as_deref())?;
    sourced.apply(|config| overlay(config, flags));
    Ok(sourced)
}

fn overlay(config: &mut Config, flags: &Overrides) {
    if let Some(memory) = flags.memory {
        config.memory = memory;
    }
    if let Some(scope) = flags.scope {
        config.crawl.scope = scope.into();
    }
    let filter = &mut config.filter;
    for (given, list) in
        [(&flags.include, &mut filter.include), (&flags.exclude, &mut filter.exclude)]
    {
        if !given.is_empty() {
            list.clone_from(given);
        }
    }
    if let Some(pages) = flags.max_pages {
        config.crawl.limits.pages_max = pages;
    }
    if let Some(addresses) = flags.max_pages_per_host {
        config.frontier.host_addresses_max = addresses;
    }
    if let Some(depth) = flags.max_depth {
        config.frontier.depth_max = depth;
    }
    if let Some(delay) = flags.delay {
        config.frontier.delay = delay;
    }
    if let Some(connections) = flags.connections_per_host {
        config.frontier.connections_per_host = connections;
        config.fetch.idle_connections_per_host = connections;
    }
    if !flags.keep.is_empty() {
        config.corpus.keep.clone_from(&flags.keep);
    }
    if flags.keep_boilerplate {
        config.extract.boilerplate.learn_boilerplate = false;
    }
    if flags.recrawl {
        config.recrawl.enabled = true;
    }
    if !flags.known.is_empty() {
        config.frontier.duplicate_feeds.known.clone_from(&flags.known);
    }
    if flags.allow_private {
        config.fetch.allow_private = true;
    }
    if let Some(contact) = &flags.contact {
        config.fetch.contact.clone_from(contact);
    }
}

/// `crawl config`.
pub(super) fn show(flags: &Overrides, json: bool) -> Result<Exit> {
    let sourced = effective(flags)?;
    if json {
        let lines = sourced.lines().into_iter();
        let all: Vec<_> = lines
            .map(|(key, value, source)| {
                serde_json::json!({"key": key, "value": value, "source": source.to_string()})
            })
            .collect();
        return screen::json(&all);
    }
    let lines = sourced.lines().into_iter();
    let lines: Vec<_> =
        lines.map(|(key, value, source)| (key, value.to_string(), source)).collect();
    let width = lines.iter().map(|(key, value, _)| key.len() + value.len() + 3).max();
    let mut section = String::new();
    for (key, value, source) in &lines {
        let (group, name) = key.split_once('.').unwrap_or(("", key));
        if group != section {
            println!("\n[{group}]");
            group.clone_into(&mut section);
        }
        let line = format!("{name} = {value}");
        println!("{line:<width$}  # {source}", width = width.unwrap_or(0).min(60));
    }
    Ok(Exit::Done)
}
