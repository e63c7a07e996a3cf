//! All settings: one section per module, read from TOML, with the source of each value.
//!
//! Later sources win: built-in default, file, command line.

mod nearest;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::crawl::{Limits, Settings};
use crate::robots::meta::Honour;
use crate::urls::{Normalize, ScopeKind};
use crate::{api, boilerplate, dedup, extract, fetch, frontier, search};

/// The settings as they stand in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The scope and limits of a run.
    pub crawl: Crawl,
    /// Normal form of addresses.
    pub urls: Normalize,
    /// Queues and pace.
    pub frontier: frontier::Config,
    /// Further visits.
    pub recrawl: frontier::Recrawl,
    /// Requests.
    pub fetch: fetch::Config,
    /// Credentials.
    pub auth: fetch::AuthConfig,
    /// Main text.
    pub extract: Extract,
    /// Duplicates.
    pub dedup: dedup::Config,
    /// Similar texts.
    pub search: search::Config,
    /// What pages ask of those who use their text.
    pub export: Honour,
    /// The service.
    pub api: api::Config,
    /// The store.
    pub store: Store,
}

/// The scope and limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Crawl {
    /// How far to go from the seeds.
    pub scope: ScopeKind,
    /// Limits.
    #[serde(flatten)]
    pub limits: Limits,
}

/// The main text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extract {
    /// Limits on one page.
    #[serde(flatten)]
    pub limits: extract::Limits,
    /// What repeats on the pages of a host.
    #[serde(flatten)]
    pub boilerplate: boilerplate::Config,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Store {
    /// Memory of the page cache, in MiB.
    pub cache_mib: usize,
}

impl Default for Store {
    fn default() -> Self {
        Self { cache_mib: 256 }
    }
}

/// Where a value comes from. A later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Built in.
    Default,
    /// The file.
    File,
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Flag => "command line",
        })
    }
}

/// What is wrong with a file of settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The file is not TOML, or a value has the wrong type.
    #[error("{}: {detail}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        detail: String,
    },
    /// A key that does not exist.
    #[error("{}: unknown key `{key}`; the nearest is `{nearest}`", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The key as it stands there.
        key: String,
        /// The key that is most like it.
        nearest: String,
    },
}

/// Settings with the source of each.
#[derive(Debug, Clone)]
pub struct Sourced {
    /// The settings.
    pub config: Config,
    sources: BTreeMap<String, Source>,
}

impl Sourced {
    /// Reads a file over the defaults; no file gives the defaults.
    ///
    /// # Errors
    ///
    /// Names the file and the key. A key that does not exist is an error.
    pub fn read(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else {
            return Ok(Self { config: Config::default(), sources: BTreeMap::new() });
        };
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let syntax = |detail: String| Error::Syntax { path: path.to_owned(), detail };
        let table: Table = toml::from_str(&text).map_err(|error| syntax(error.to_string()))?;
        let known = flatten(&default_table());
        let given = flatten(&table);
        for key in given.keys() {
            if !known.contains_key(key) {
                let nearest = nearest::nearest(key, known.keys().map(String::as_str));
                let (path, key) = (path.to_owned(), key.clone());
                return Err(Error::UnknownKey { path, key, nearest: nearest.to_owned() });
            }
        }
        let config = toml::from_str(&text).map_err(|error| syntax(error.to_string()))?;
        let sources = given.into_keys().map(|key| (key, Source::File)).collect();
        Ok(Self { config, sources })
    }

    /// Reads settings over these from a table of another file: one with sections of its own.
    ///
    /// # Errors
    ///
    /// The key that is at fault, and what is wrong with it.
    pub fn overlay(&mut self, over: &Table) -> Result<(), (String, String)> {
        let known = flatten(&default_table());
        for (key, value) in flatten(over) {
            if !known.contains_key(&key) {
                let nearest = nearest::nearest(&key, known.keys().map(String::as_str));
                return Err((key, format!("unknown key; the nearest is `{nearest}`")));
            }
            let mut table = table_of(&self.config);
            put(&mut table, &key, value);
            // One at a time, so that the key at fault is known.
            match table.try_into() {
                Ok(config) => self.config = config,
                Err(error) => return Err((key, error.message().to_owned())),
            }
            self.sources.insert(key, Source::File);
        }
        Ok(())
    }

    /// Applies flags: whatever `change` sets counts as given on the command line.
    pub fn apply(&mut self, change: impl FnOnce(&mut Config)) {
        let before = flatten(&table_of(&self.config));
        change(&mut self.config);
        for (key, value) in flatten(&table_of(&self.config)) {
            if before.get(&key) != Some(&value) {
                self.sources.insert(key, Source::Flag);
            }
        }
    }

    /// Returns every key with its value in TOML and its source, in the order of the keys. Values of
    /// headers, and what a proxy is told of us, are not shown.
    #[must_use]
    pub fn lines(&self) -> Vec<(String, String, Source)> {
        let source = |key: &str| self.sources.get(key).copied().unwrap_or(Source::Default);
        let all = flatten(&table_of(&self.config)).into_iter();
        all.map(|(key, value)| (key.clone(), shown(&key, value).to_string(), source(&key)))
            .collect()
    }
}

impl Config {
    /// Returns the settings of a crawl.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            scope: self.crawl.scope,
            normalize: self.urls.clone(),
            frontier: self.frontier.clone(),
            fetch: self.fetch.clone(),
            auth: self.auth.clone(),
            extract: self.extract.limits.clone(),
            boilerplate: self.extract.boilerplate.clone(),
            dedup: self.dedup.clone(),
            recrawl: self.recrawl.clone(),
            limits: self.crawl.limits.clone(),
        }
    }

    /// Returns the memory of the store's page cache in bytes.
    #[must_use]
    pub fn cache_bytes(&self) -> usize {
        self.store.cache_mib << 20
    }
}

fn default_table() -> Table {
    table_of(&Config::default())
}

fn table_of(config: &Config) -> Table {
    Table::try_from(config).expect("every setting has a form in TOML")
}

/// Hides what may be a secret.
fn shown(key: &str, value: Value) -> Value {
    let hide: fn(&str) -> String = match key {
        "fetch.proxies" => fetch::masked,
        "fetch.headers" => |line| match line.split_once(':') {
            Some((name, _)) => format!("{name}: ***"),
            None => "***".to_owned(),
        },
        _ => return value,
    };
    let Value::Array(all) = value else { return value };
    let shown = all.iter().map(|one| Value::from(hide(one.as_str().unwrap_or_default())));
    Value::Array(shown.collect())
}

/// Sets `frontier.delay_ms`, a key that is there.
fn put(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            if let Some(Value::Table(inner)) = table.get_mut(section) {
                put(inner, rest, value);
            }
        }
    }
}

/// Makes `frontier.delay_ms` of the key `delay_ms` in the table `frontier`.
fn flatten(table: &Table) -> BTreeMap<String, Value> {
    let mut flat = BTreeMap::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                let inner = flatten(inner).into_iter();
                flat.extend(inner.map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => {
                flat.insert(key.clone(), value.clone());
            }
        }
    }
    flat
}
