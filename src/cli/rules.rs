//! `crawl rules`: what was learned of duplicate URLs.

use std::path::Path;

use crate::config::Config;
use crate::frontier::RULES;
use crate::frontier::rules::Rules;
use crate::store::{Store, View as _};
use anyhow::Result;

use super::args::RulesCommand;
use super::exit::{Exit, Usage};
use super::screen::{self, number};

pub(super) fn run(command: RulesCommand, json: bool) -> Result<Exit> {
    match command {
        RulesCommand::List { store, host } => list(store.folder()?, host.as_deref(), json),
        RulesCommand::Disable { store, number } => set(store.folder()?, number, true, json),
        RulesCommand::Enable { store, number } => set(store.folder()?, number, false, json),
    }
}

fn list(folder: &Path, host: Option<&str>, json: bool) -> Result<Exit> {
    let store = Store::open_to_read(folder, Config::default().cache_bytes())?;
    let snapshot = store.snapshot()?;
    let host = host.map(|host| host.trim_end_matches('/'));
    let mut rules = Vec::new();
    for row in snapshot.rows(RULES)? {
        let row = row?;
        let rule = row.row()?;
        if host.is_none_or(|host| rule.host == host) {
            rules.push((row.key()?, rule));
        }
    }
    if json {
        let rules = rules.iter().map(|(number, rule)| {
            serde_json::json!({
                "rule": number,
                "host": rule.host,
                "change": rule.change.to_string(),
                "status": rule.status.as_str(),
                "held": rule.held,
                "failed": rule.failed,
                "bound": rule.bound(),
                "skipped": rule.skipped,
            })
        });
        return screen::json(&rules.collect::<serde_json::Value>());
    }
    if rules.is_empty() {
        println!("no rules were learned");
    }
    for (at, rule) in rules {
        println!("{at:>5}  {}  {}: {}", rule.status.as_str(), rule.host, rule.change);
        println!(
            "       {} of {} pairs held (at least {:.3}), {} URLs skipped",
            number(rule.held),
            number(rule.held + rule.failed),
            rule.bound(),
            number(rule.skipped)
        );
    }
    Ok(Exit::Done)
}

fn set(folder: &Path, rule: u64, disabled: bool, json: bool) -> Result<Exit> {
    let store = Store::open(folder, Config::default().cache_bytes())?;
    let mut batch = store.begin()?;
    if !Rules::set_disabled(&mut batch, rule, disabled)? {
        return Err(Usage(format!("the store has no rule {rule}: see `crawl rules list`")).into());
    }
    batch.commit()?;
    let status = if disabled { "disabled" } else { "learning" };
    if json {
        return screen::json(&serde_json::json!({ "rule": rule, "status": status }));
    }
    println!("rule {rule} is {status}");
    Ok(Exit::Done)
}
