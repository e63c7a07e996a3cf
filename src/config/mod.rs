//! All settings: one section per module, read from TOML, with the source of each value.
//!
//! Later sources win: built-in default, share of the memory budget, file, command line.

pub(crate) mod memory;
mod nearest;
mod renamed;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::base::system;
use crate::base::units::{Size, Time};
use crate::corpus::documents::KeepConfig;
#[cfg(feature = "search")]
use crate::corpus::search;
use crate::corpus::{boilerplate, export};
#[cfg(feature = "cluster")]
use crate::crawl::WorkerConfig;
use crate::crawl::{BackupConfig, RunLimits, Settings, jobs};
#[cfg(feature = "service")]
use crate::service;
use crate::text::quality;
use crate::urls::{FilterConfig, Normalize, ScopeKind};
use crate::warc;
use crate::web::fetch;
use crate::{frontier, neardup, page};

/// The settings as they stand in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Memory of a command; 0 for an eighth of this machine's, 256 MiB to 1 GiB. Caches, pages,
    /// bodies and the rest have shares of it, but for those that are set by themselves.
    pub memory: Size,
    /// The scope and limits of a run.
    pub crawl: Crawl,
    /// Which URLs are kept out.
    pub filter: FilterConfig,
    /// Normal form of URLs.
    pub urls: Normalize,
    /// Queues and pace.
    pub frontier: frontier::Config,
    /// Further visits.
    pub recrawl: frontier::Recrawl,
    /// Requests.
    pub fetch: fetch::Config,
    /// Credentials.
    pub auth: fetch::AuthConfig,
    /// What was exchanged, in files.
    pub warc: warc::Config,
    /// Main text.
    pub extract: Extract,
    /// Duplicates.
    pub dedup: neardup::Config,
    /// Which texts are kept out of a corpus.
    pub filters: quality::Config,
    /// Similar texts.
    #[cfg(feature = "search")]
    pub search: search::Config,
    /// What pages ask of those who use their text.
    pub export: export::Config,
    /// The service.
    #[cfg(feature = "service")]
    pub api: service::Config,
    /// What is kept of pages beside their texts.
    pub corpus: KeepConfig,
    /// The store.
    pub store: StoreConfig,
    /// Its backups.
    pub backup: BackupConfig,
    /// Workers that crawl together.
    #[cfg(feature = "cluster")]
    pub cluster: WorkerConfig,
}

/// The scope and limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Crawl {
    /// How far to go from the seeds.
    pub scope: ScopeKind,
    /// Limits.
    #[serde(flatten)]
    pub limits: RunLimits,
}

/// The main text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extract {
    /// Limits on one page.
    #[serde(flatten)]
    pub limits: page::Limits,
    /// What repeats on the pages of a host.
    #[serde(flatten)]
    pub boilerplate: boilerplate::Config,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreConfig {
    /// Where it is, for commands that take a settings file and no `--store`.
    pub place: StorePlace,
    /// Memory of the page cache; half as much again holds what was read of the index.
    pub cache_size: Size,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { place: StorePlace::default(), cache_size: Size::from_mib(128) }
    }
}

/// The name of a store: a folder, or a cluster. It is not shown whole: it may hold a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StorePlace(pub String);

impl Default for StorePlace {
    fn default() -> Self {
        Self("store".to_owned())
    }
}

impl fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        masked_place(&self.0).fmt(f)
    }
}

/// Hides user and password of a cluster.
fn masked_place(place: &str) -> String {
    match (place.split_once("://"), place.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, hosts))) => format!("{scheme}://***@{hosts}"),
        _ => place.to_owned(),
    }
}

/// Where a value comes from. A later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingSource {
    /// Built in.
    Default,
    /// A share of the memory budget.
    Memory,
    /// The file.
    File,
    /// The command line.
    Flag,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Memory => "share of memory",
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
    /// The file is not TOML.
    #[error("{}: {detail}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        detail: String,
    },
    /// A key that does not exist, or a value that it cannot have.
    #[error("{}: {}`{key}`: {detail}", path.display(), at(*line))]
    Key {
        /// The file.
        path: PathBuf,
        /// Its line, from 1; 0 if it is not known.
        line: usize,
        /// The key as it stands there.
        key: String,
        /// What is wrong.
        detail: String,
    },
}

fn at(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

/// Settings with the source of each.
#[derive(Debug, Clone)]
pub struct Sourced {
    /// The settings.
    pub config: Config,
    /// What the user should change, though it is still understood.
    pub notes: Vec<String>,
    sources: BTreeMap<String, SettingSource>,
}

impl Default for Sourced {
    fn default() -> Self {
        let (config, notes) = (Config::default(), Vec::new());
        let mut defaults = Self { config, notes, sources: BTreeMap::new() };
        defaults.share();
        defaults
    }
}

impl Sourced {
    /// Returns the place of the store, if the file names one.
    #[must_use]
    pub fn store_place(&self) -> Option<&str> {
        self.sources.get(PLACE).map(|_| self.config.store.place.0.as_str())
    }

    /// Reads a file over the defaults; no file gives the defaults.
    ///
    /// # Errors
    ///
    /// Names the file, the line and the key. A key that does not exist is an error.
    pub fn read(path: Option<&Path>) -> Result<Self, Error> {
        let mut sourced = Self::default();
        let Some(path) = path else { return Ok(sourced) };
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let table: Table = toml::from_str(&text).map_err(|error| {
            let (path, detail) = (path.to_owned(), error.to_string());
            Error::Syntax { path, detail }
        })?;
        sourced.overlay(&table).map_err(|(key, detail)| {
            let lines = jobs::key_lines(&text).unwrap_or_default();
            let line = lines.get(&key).copied().unwrap_or(0);
            Error::Key { path: path.to_owned(), line, key, detail }
        })?;
        for note in &mut sourced.notes {
            *note = format!("{}: {note}", path.display());
        }
        Ok(sourced)
    }

    /// Reads settings over these from a table of another file: one with sections of its own.
    ///
    /// # Errors
    ///
    /// The key that is at fault, and what is wrong with it.
    pub fn overlay(&mut self, over: &Table) -> Result<(), (String, String)> {
        let known = flatten(&default_table());
        let mut given = flatten(over);
        // `store = "DIR"` is short for the place of the store, where nothing else is set of it.
        if let Some(place) = given.remove("store") {
            if !place.is_str() {
                let why = format!("must be a text, such as \"store\", not {}", kind(&place));
                return Err(("store".to_owned(), why));
            }
            given.insert(PLACE.to_owned(), place);
        }
        let renamed = renamed::rename(&mut given)?;
        for key in given.keys() {
            if !known.contains_key(key) {
                let nearest = nearest::nearest(key, known.keys().map(String::as_str));
                return Err((key.clone(), format!("unknown key; the nearest is `{nearest}`")));
            }
        }
        let mut table = table_of(&self.config);
        for (key, value) in &given {
            put(&mut table, key, value.clone());
        }
        self.config = match table.try_into() {
            Ok(config) => config,
            Err(error) => {
                let (key, why) = self.fault(&given, &known, &error);
                // It is named as it stands in the file.
                let old = renamed::old_name(&key).filter(|old| renamed.contains_key(*old));
                return Err((old.map_or(key, str::to_owned), why));
            }
        };
        memory::check(self.config.memory).map_err(|why| ("memory".to_owned(), why))?;
        self.notes.extend(renamed.into_values());
        self.sources.extend(given.into_keys().map(|key| (key, SettingSource::File)));
        self.share();
        Ok(())
    }

    /// Gives settings that nobody has set their shares of the memory budget.
    fn share(&mut self) {
        let is_set = |key: &str| self.sources.get(key) > Some(&SettingSource::Memory);
        let shared = memory::share(&mut self.config, is_set);
        self.sources.extend(shared.into_iter().map(|key| (key.to_owned(), SettingSource::Memory)));
    }

    /// Finds the key that is at fault: the first that cannot be set alone.
    fn fault(
        &self,
        given: &BTreeMap<String, Value>,
        known: &BTreeMap<String, Value>,
        all: &toml::de::Error,
    ) -> (String, String) {
        for (key, value) in given {
            let mut table = table_of(&self.config);
            put(&mut table, key, value.clone());
            let Err(error) = table.try_into::<Config>() else { continue };
            return (key.clone(), wrong(&known[key], value, error.message()));
        }
        (String::new(), all.message().to_owned())
    }

    /// Applies flags: whatever `change` sets counts as given on the command line.
    pub fn apply(&mut self, change: impl FnOnce(&mut Config)) {
        let before = flatten(&table_of(&self.config));
        change(&mut self.config);
        for (key, value) in flatten(&table_of(&self.config)) {
            if before.get(&key) != Some(&value) {
                self.sources.insert(key, SettingSource::Flag);
            }
        }
        self.share();
    }

    /// Returns every key with its value and its source, in the order of the keys, those without a
    /// section first. Values of headers, and what a proxy is told of us, are not shown.
    #[must_use]
    pub fn lines(&self) -> Vec<(String, Value, SettingSource)> {
        let source = |key: &str| self.sources.get(key).copied().unwrap_or(SettingSource::Default);
        let all = flatten(&table_of(&self.config)).into_iter();
        let (inside, alone): (Vec<_>, Vec<_>) = all.partition(|(key, _)| key.contains('.'));
        let all = alone.into_iter().chain(inside);
        all.map(|(key, value)| (key.clone(), shown(&key, value), source(&key))).collect()
    }
}

impl Config {
    /// Returns the settings of a crawl.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            scope: self.crawl.scope,
            filter: self.filter.clone(),
            normalize: self.urls.clone(),
            frontier: self.frontier.clone(),
            fetch: self.fetch.clone(),
            auth: self.auth.clone(),
            extract: self.extract.limits.clone(),
            boilerplate: self.extract.boilerplate.clone(),
            dedup: self.dedup.clone(),
            recrawl: self.recrawl.clone(),
            keep: self.corpus.clone(),
            limits: self.crawl.limits.clone(),
            warc: self.warc.clone(),
            unserved: self.unserved(),
        }
    }

    /// Returns the memory that the parts of a service have, which a process that serves nobody has
    /// over.
    #[must_use]
    pub fn unserved(&self) -> Size {
        memory::unserved(self)
    }

    /// Returns the memory budget of a command that works through files, in bytes.
    #[must_use]
    pub fn memory_for_files(&self) -> usize {
        memory::budget_for_files(self.memory, system::memory()) as usize
    }

    /// Returns the memory of the store's page cache in bytes.
    #[must_use]
    pub fn cache_bytes(&self) -> usize {
        self.store.cache_size.bytes()
    }
}

/// The key of the place of the store.
const PLACE: &str = "store.place";

fn default_table() -> Table {
    table_of(&Config::default())
}

fn table_of(config: &Config) -> Table {
    let mut table = Table::try_from(config).expect("every setting has a form in TOML");
    table.iter_mut().for_each(|(_, value)| shorten(value));
    table
}

/// Writes 0.4 for 0.4000000059604645, which is what becomes of it on its way through 32 bits.
fn shorten(value: &mut Value) {
    match value {
        Value::Float(number) if f64::from(*number as f32).to_bits() == number.to_bits() => {
            *number = (*number as f32).to_string().parse().unwrap_or(*number);
        }
        Value::Array(all) => all.iter_mut().for_each(shorten),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| shorten(value)),
        _ => {}
    }
}

/// Says what a setting should be, by its usual value.
fn wrong(usual: &Value, value: &Value, error: &str) -> String {
    let has_unit = |text: &str| text.parse::<Time>().is_ok() || text.parse::<Size>().is_ok();
    match (usual, value) {
        (Value::Integer(_), Value::Integer(_)) => {
            let bits = error.rsplit_once("expected u").and_then(|(_, bits)| bits.parse().ok());
            let most = 1_u64.checked_shl(bits.unwrap_or(64)).map_or(i64::MAX as u64, |all| all - 1);
            format!("must be a number from 0 to {most}, not {value}")
        }
        (Value::String(text), Value::Integer(_) | Value::Float(_)) if has_unit(text) => {
            error.to_owned()
        }
        (Value::Boolean(_), _) => format!("must be true or false, not {}", kind(value)),
        _ if usual.same_type(value) => error.to_owned(),
        _ => format!("must be {}, such as {usual}, not {}", kind(usual), kind(value)),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a point",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

/// Hides what may be a secret.
fn shown(key: &str, value: Value) -> Value {
    if let (PLACE, Value::String(place)) = (key, &value) {
        return masked_place(place).into();
    }
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

/// Sets `frontier.delay`, a key that is there.
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

/// Makes `frontier.delay` of the key `delay` in the table `frontier`.
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
