//! `crawl store info`.

use std::time::SystemTime;

use anyhow::Result;
use serde_json::{Value, json};

use crate::base::clock::{Clock, Timestamp};
use crate::config::Config;
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS};
use crate::corpus::{import, merge};
use crate::frontier::{ADDRESSES, HOSTS};
use crate::store::{FORMAT, MADE, MADE_BY, META, STORE_NUMBER, Snapshot, Store, View as _};

use crate::urls::Normalize;

use super::super::exit::Exit;
use super::super::place::StoreArg;
use super::super::screen::{self, bytes, number};

/// `crawl store info`.
pub(super) fn info(args: &StoreArg, json: bool) -> Result<Exit> {
    let store = Store::open_to_read(args.folder()?, Config::default().cache_bytes())?;
    let meta = std::fs::metadata(store.path())?;
    let snapshot = store.snapshot()?;
    let own = snapshot.bytes(META, STORE_NUMBER)?;
    let own = own.map(|row| crate::store::read_number(&row)).transpose()?;
    let text = |name| store.setting(name);
    let made = match text(MADE)?.and_then(|made| made.parse().ok()).map(Timestamp) {
        Some(made) => Some(made),
        None => first_arrival(&snapshot)?,
    };
    let written = meta.modified().ok().and_then(|time| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Timestamp(i64::try_from(since.as_millis()).ok()?))
    });
    let (features, urls) = (text("features")?, text("urls")?);
    let made_by = text(MADE_BY)?;
    let program = env!("CARGO_PKG_VERSION");
    let counts = [
        ("documents", snapshot.len(DOCUMENTS)?),
        ("copies", snapshot.len(COPIES)?),
        ("contents", snapshot.len(CONTENTS)?),
        ("URLs", snapshot.len(ADDRESSES)?),
        ("hosts", snapshot.len(HOSTS)?),
    ];
    let unfinished = unfinished(&snapshot)?;
    if json {
        let parsed = |text: &String| serde_json::from_str::<Value>(text).unwrap_or(json!(text));
        let mut told = json!({
            "path": store.path().display().to_string(),
            "format": FORMAT,
            "program": program,
            "madeBy": made_by,
            "storeNumber": own,
            "bytes": meta.len(),
            "made": made.map(|made| made.to_string()),
            "lastCommit": written.map(|written| written.to_string()),
            "settings": { "features": features, "urls": urls.as_ref().map(parsed) },
            "unfinished": unfinished,
        });
        for (name, count) in counts {
            told[screen::key(name)] = count.into();
        }
        return screen::json(&told);
    }
    println!("{}", store.path().display());
    let by = made_by.map_or(String::new(), |version| format!(", made by version {version}"));
    let mut facts = vec![
        ("format", format!("{FORMAT}, that of version {program}{by}")),
        ("number", own.map_or_else(|| "none".to_owned(), |own| own.to_string())),
        ("size", bytes(meta.len())),
    ];
    facts.extend(counts.map(|(name, count)| (name, number(count))));
    let now = Clock::System.now();
    let ago = |moment: Timestamp| format!("{moment} ({} ago)", age(now, moment));
    facts.extend(made.map(|made| ("made", ago(made))));
    facts.extend(written.map(|written| ("last commit", ago(written))));
    let none = |what: &str| format!("not fixed yet: nothing was {what}");
    facts.push(("features", features.unwrap_or_else(|| none("stored"))));
    facts.push(("rules of URLs", rules_of(urls.as_deref()).unwrap_or_else(|| none("crawled"))));
    if !unfinished.is_empty() {
        let commands = unfinished.join(", ");
        facts.push(("unfinished", format!("{commands}: the same command goes on with it")));
    }
    screen::facts(facts)?;
    Ok(Exit::Done)
}

/// The rules of URLs in words; none if they are not fixed yet.
fn rules_of(stored: Option<&str>) -> Option<String> {
    let rules = stored.and_then(Normalize::from_stored)?;
    Some(match Normalize::default().difference(&rules) {
        None => "the usual ones".to_owned(),
        Some((name, _, stored)) => {
            format!("others than the usual ones, such as {name} = {stored}: see --json")
        }
    })
}

/// What was begun with a store and has not come to its end.
fn unfinished(snapshot: &Snapshot) -> Result<Vec<String>> {
    let imports = import::unfinished(snapshot)?;
    let mut all: Vec<String> =
        imports.into_iter().map(|name| format!("import of {name}")).collect();
    if merge::is_unfinished(snapshot)? {
        all.push("merge".to_owned());
    }
    Ok(all)
}

/// A store that is older than the note of when it was made.
fn first_arrival(snapshot: &Snapshot) -> Result<Option<Timestamp>> {
    let first = snapshot.first(DOCUMENTS)?;
    Ok(first.map(|first| first.row()).transpose()?.map(|row| row.first_arrival))
}

/// A length of time as people say it.
fn age(now: Timestamp, moment: Timestamp) -> String {
    let seconds = now.0.saturating_sub(moment.0).max(0) / 1000;
    let units = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
    let (name, length) =
        units.into_iter().find(|(_, length)| seconds >= *length).unwrap_or(units[3]);
    let count = seconds / length;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}
