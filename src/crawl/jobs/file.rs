//! The file of jobs: every fault is found at once and told with its job, key and line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize as _;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use crate::base::units::Time;
use crate::corpus::export::{FORMATS, Format};
use crate::urls::{Normalize, Typed};

use super::plan::{CatchUp, CronRule};
use super::schedule::Schedule;
use super::{Expire, Export, Job, JobCommand, JobsSettings, Seeds, Webhook};

/// Longest name of a job, which is also part of a file name.
const NAME_BYTES_MAX: usize = 64;

/// The keys of a job, in the order of the documentation.
const KEYS: [&str; 15] = [
    "name",
    "seeds",
    "store",
    "settings_file",
    "settings",
    "cron",
    "time_zone",
    "every",
    "catch_up",
    "catch_up_max",
    "time_max",
    "expire",
    "export",
    "webhook",
    "command",
];

/// What is wrong with a file of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1; 0 if it is not known.
    pub line: usize,
    /// Name of the job, or its number if it has none; empty outside jobs.
    pub job: String,
    /// The key; empty if it is about the whole.
    pub key: String,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.job.is_empty() {
            write!(f, "job {}: ", self.job)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.detail)
    }
}

/// The file as read.
#[derive(Debug, Clone)]
pub struct JobsFile {
    /// Settings of the scheduler.
    pub settings: JobsSettings,
    /// The jobs, in the order of the file.
    pub jobs: Vec<Job>,
    /// Line of each key, such as `job.0.cron`.
    lines: BTreeMap<String, usize>,
}

impl JobsFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// All faults of the file, in the order of its lines.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        let fault = |error: &toml::de::Error| Fault {
            line: error.span().map_or(0, |span| line_of(text, span.start)),
            job: String::new(),
            key: String::new(),
            detail: error.message().to_owned(),
        };
        let root: Table = toml::from_str(text).map_err(|error| vec![fault(&error)])?;
        let lines = key_lines(text).map_err(|error| vec![fault(&error)])?;
        let mut faults = Vec::new();
        let mut file =
            JobsReader { lines: &lines, faults: &mut faults, job: "", path: "", of: &root };
        file.known(&["scheduler", "job"]);
        let settings = scheduler(&mut file);
        let all: Vec<&Table> = match root.get("job") {
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_table).collect(),
            _ => Vec::new(),
        };
        if all.is_empty() {
            file.fault("", "there is no [[job]]");
        }
        let mut jobs = Vec::new();
        for (number, table) in all.iter().enumerate() {
            let name = table.get("name").and_then(Value::as_str);
            let name = name.map_or_else(|| format!("number {}", number + 1), str::to_owned);
            let path = format!("job.{number}");
            let (lines, faults) = (&lines, &mut faults);
            let mut reader = JobsReader { lines, faults, job: &name, path: &path, of: table };
            jobs.extend(job(&mut reader, settings.late_max));
        }
        let mut names = BTreeSet::new();
        for job in &jobs {
            if !names.insert(job.name.to_lowercase()) {
                let detail = "another job has this name".to_owned();
                let (line, job, key) = (job.line, job.name.clone(), "name".to_owned());
                faults.push(Fault { line, job, key, detail });
            }
        }
        faults.sort_by_key(|fault| fault.line);
        if faults.is_empty() { Ok(Self { settings, jobs, lines }) } else { Err(faults) }
    }

    /// Returns the job of that name.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.name == name)
    }

    /// Makes the fault of a key that was found out later, such as `settings.crawl.pages_max`.
    #[must_use]
    pub fn fault(&self, job: &Job, key: &str, detail: String) -> Fault {
        let number = self.jobs.iter().position(|other| other.name == job.name);
        let path = format!("job.{}.{key}", number.unwrap_or_default());
        let line = self.lines.get(&path).copied().unwrap_or(job.line);
        Fault { line, job: job.name.clone(), key: key.to_owned(), detail }
    }
}

/// Returns the line of each key of a TOML file, such as `job.0.cron`.
///
/// # Errors
///
/// If it is not TOML.
pub fn key_lines(text: &str) -> Result<BTreeMap<String, usize>, toml::de::Error> {
    let mut lines = BTreeMap::new();
    note_lines(text, DeTable::parse(text)?.get_ref(), "", &mut lines);
    Ok(lines)
}

fn line_of(text: &str, at: usize) -> usize {
    text.char_indices().take_while(|(here, _)| *here < at).filter(|(_, c)| *c == '\n').count() + 1
}

fn note_lines(text: &str, table: &DeTable, path: &str, lines: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let gap = if path.is_empty() { "" } else { "." };
        let inner = format!("{path}{gap}{}", key.get_ref());
        lines.insert(inner.clone(), line_of(text, key.span().start));
        match value.get_ref() {
            DeValue::Table(table) => note_lines(text, table, &inner, lines),
            DeValue::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    let inner = format!("{inner}.{number}");
                    lines.insert(inner.clone(), line_of(text, item.span().start));
                    if let DeValue::Table(table) = item.get_ref() {
                        note_lines(text, table, &inner, lines);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Reads the keys of one table and gathers what is wrong with them.
struct JobsReader<'a> {
    lines: &'a BTreeMap<String, usize>,
    faults: &'a mut Vec<Fault>,
    job: &'a str,
    path: &'a str,
    of: &'a Table,
}

impl JobsReader<'_> {
    fn line(&self, key: &str) -> usize {
        let path = match (self.path, key) {
            ("", key) => key.to_owned(),
            (path, "") => path.to_owned(),
            (path, key) => format!("{path}.{key}"),
        };
        let own = self.lines.get(&path).or_else(|| self.lines.get(self.path));
        own.copied().unwrap_or_default()
    }

    fn fault(&mut self, key: &str, detail: impl Into<String>) {
        let line = self.line(key);
        let (job, detail) = (self.job.to_owned(), detail.into());
        // `job.0.webhook` is `webhook` to the reader of the file.
        let inside: Vec<&str> = self.path.splitn(3, '.').collect();
        let inside = if self.job.is_empty() { self.path } else { inside.get(2).unwrap_or(&"") };
        let gap = if inside.is_empty() || key.is_empty() { "" } else { "." };
        self.faults.push(Fault { line, job, key: format!("{inside}{gap}{key}"), detail });
    }

    fn known(&mut self, keys: &[&str]) {
        let unknown: Vec<String> =
            self.of.keys().filter(|key| !keys.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            self.fault(&key, format!("no such key; there are {}", keys.join(", ")));
        }
    }

    fn wrong(&mut self, key: &str, wanted: &str) {
        let found = self.of.get(key).map_or("nothing", Value::type_str);
        self.fault(key, format!("must be {wanted}, not {found}"));
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.of.get(key)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            _ => {
                self.wrong(key, "a text");
                None
            }
        }
    }

    fn needed(&mut self, key: &str) -> Option<String> {
        if !self.of.contains_key(key) {
            self.fault(key, "is missing");
        }
        self.text(key)
    }

    fn number(&mut self, key: &str, least: usize, most: usize) -> Option<usize> {
        let number = self.of.get(key)?.as_integer().and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.fault(key, format!("must be a number from {least} to {most}"));
        }
        number
    }

    fn time(&mut self, key: &str) -> Option<Duration> {
        match Time::deserialize(self.of.get(key)?.clone()) {
            Ok(time) => Some(time.duration()),
            Err(error) => {
                self.fault(key, error.message());
                None
            }
        }
    }

    fn flag(&mut self, key: &str) -> bool {
        match self.of.get(key) {
            None => false,
            Some(Value::Boolean(flag)) => *flag,
            Some(_) => {
                self.wrong(key, "true or false");
                false
            }
        }
    }

    fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let texts = self.of.get(key)?.as_array();
        let texts: Option<Vec<String>> = texts
            .and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect())
            .filter(|all: &Vec<String>| !all.is_empty());
        if texts.is_none() {
            self.wrong(key, "a list of texts");
        }
        texts
    }

    /// Reads the table `key`, if it is there.
    fn table<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut JobsReader) -> Option<T>,
    ) -> Option<T> {
        let Value::Table(of) = self.of.get(key)? else {
            self.wrong(key, "a table");
            return None;
        };
        let gap = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{gap}{key}", self.path);
        let (lines, faults, job) = (self.lines, &mut *self.faults, self.job);
        read(&mut JobsReader { lines, faults, job, path: &path, of })
    }
}

fn scheduler(file: &mut JobsReader) -> JobsSettings {
    let mut settings = JobsSettings::default();
    file.table("scheduler", |table| {
        table.known(&["at_once", "history", "history_max", "late_max"]);
        settings.at_once = table.number("at_once", 1, 64).unwrap_or(settings.at_once);
        settings.history_max =
            table.number("history_max", 1, 100_000).unwrap_or(settings.history_max);
        settings.late_max = table.time("late_max").unwrap_or(settings.late_max);
        if let Some(path) = table.text("history") {
            settings.history = PathBuf::from(path);
        }
        Some(())
    });
    settings
}

fn job(reader: &mut JobsReader, late_max: Duration) -> Option<Job> {
    reader.known(&KEYS);
    let name = reader.needed("name").filter(|name| {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let good = name.len() <= NAME_BYTES_MAX && name.chars().all(good) && !name.starts_with('.');
        if !good {
            reader.fault("name", "may have letters, digits, `.`, `_` and `-`, 64 at most");
        }
        good
    });
    // A job may do nothing but remove what is old, or run its command.
    let has = |key: &str| reader.of.contains_key(key);
    let crawls = has("seeds") || !(has("expire") || has("command"));
    let seeds = if crawls { seeds(reader) } else { Some(Seeds::None) };
    let store = reader.needed("store");
    // What stands there may hold a password, and is not told.
    if store.as_ref().is_some_and(|store| store.starts_with("cluster:")) {
        let way_out = "a job crawls into a store of this machine: workers crawl into a cluster \
                       (`crawl worker --join`)";
        reader.fault("store", way_out);
    }
    let store = store.map(|store| PathBuf::from(store.strip_prefix("redb:").unwrap_or(&store)));
    let settings_file = reader.text("settings_file").map(PathBuf::from);
    let settings = reader.table("settings", |table| Some(table.of.clone())).unwrap_or_default();
    let schedule = schedule(reader);
    let catch_up = catch_up(reader);
    let catch_up_max = reader.number("catch_up_max", 1, 100).unwrap_or(10);
    let time_max = reader.time("time_max");
    let expire = reader.table("expire", expire);
    let export = reader.table("export", export);
    let webhook = reader.table("webhook", webhook);
    let command = reader.table("command", command);
    Some(Job {
        line: reader.line(""),
        rule: CronRule { schedule: schedule?, catch_up, catch_up_max, late_max },
        name: name?,
        seeds: seeds?,
        store: store?,
        settings_file,
        settings,
        time_max,
        expire,
        export,
        webhook,
        command,
    })
}

fn seeds(reader: &mut JobsReader) -> Option<Seeds> {
    if !matches!(reader.of.get("seeds"), Some(Value::Array(_))) {
        return reader.needed("seeds").map(|path| Seeds::File(PathBuf::from(path)));
    }
    let mut seeds = Vec::new();
    for text in reader.texts("seeds")? {
        match Typed::parse(&text, &Normalize::default()) {
            Ok(typed) => seeds.push(typed.url),
            Err(error) => reader.fault("seeds", error.to_string()),
        }
    }
    Some(Seeds::List(seeds))
}

fn schedule(reader: &mut JobsReader) -> Option<Schedule> {
    let zone = reader.text("time_zone");
    let zone = Schedule::zone(zone.as_deref().unwrap_or("UTC"));
    let zone = zone.map_err(|error| reader.fault("time_zone", error)).ok();
    let has = |key: &str| reader.of.contains_key(key);
    match (has("cron"), has("every")) {
        (true, false) => {
            let (line, zone) = (reader.text("cron")?, zone?);
            Schedule::cron(&line, zone).map_err(|error| reader.fault("cron", error)).ok()
        }
        (false, true) => {
            if has("time_zone") {
                reader.fault("time_zone", "is for `cron`; an interval has none");
            }
            let interval = reader.time("every")?;
            Schedule::every(interval).map_err(|error| reader.fault("every", error)).ok()
        }
        (true, true) => {
            reader.fault("every", "there is a `cron` too: choose one");
            None
        }
        (false, false) => {
            reader.fault("", "needs `cron` or `every`");
            None
        }
    }
}

fn catch_up(reader: &mut JobsReader) -> CatchUp {
    let Some(text) = reader.text("catch_up") else { return CatchUp::Once };
    let named = CatchUp::ALL.iter().find(|(name, _)| *name == text);
    if named.is_none() {
        reader.fault("catch_up", "must be skip, once or all");
    }
    named.map_or(CatchUp::Once, |(_, policy)| *policy)
}

fn expire(table: &mut JobsReader) -> Option<Expire> {
    table.known(&["older_than", "more_than_half"]);
    if !table.of.contains_key("older_than") {
        table.fault("older_than", "is missing");
        return None;
    }
    let older_than = table.time("older_than")?;
    Some(Expire { older_than, more_than_half: table.flag("more_than_half") })
}

fn export(table: &mut JobsReader) -> Option<Export> {
    table.known(&["folder", "format", "where", "fields", "shard_size", "compress"]);
    let named = table.text("format").map(|name| Format::named(&name));
    let format = named.unwrap_or(Ok(FORMATS[0])).unwrap_or_else(|detail| {
        table.fault("format", detail);
        FORMATS[0]
    });
    let filter = parsed(table, "where");
    let fields = parsed(table, "fields");
    let shard = parsed(table, "shard_size");
    let compression = parsed(table, "compress");
    let folder = PathBuf::from(table.needed("folder")?);
    Some(Export { folder, format, filter, fields, shard, compression })
}

/// Reads a text that stands for something else.
fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    table: &mut JobsReader,
    name: &'static str,
) -> Option<T> {
    match table.text(name)?.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            table.fault(name, error.to_string());
            None
        }
    }
}

fn webhook(table: &mut JobsReader) -> Option<Webhook> {
    table.known(&["url", "token_file", "timeout", "retries", "allow_private"]);
    let token_file = table.text("token_file").map(PathBuf::from);
    let timeout = table.time("timeout").unwrap_or(Duration::from_secs(10));
    let retries = table.number("retries", 0, 10).unwrap_or(3) as u32;
    let allow_private = table.flag("allow_private");
    let url = url::Url::parse(&table.needed("url")?).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if url.is_none() {
        // The URL may be a secret: it is not told.
        table.fault("url", "is no URL of the web");
    }
    Some(Webhook { url: url?, token_file, timeout, retries, allow_private })
}

fn command(table: &mut JobsReader) -> Option<JobCommand> {
    table.known(&["run", "timeout"]);
    if !table.of.contains_key("run") {
        table.fault("run", "is missing");
    }
    let timeout = table.time("timeout").unwrap_or(Duration::from_mins(1));
    Some(JobCommand { run: table.texts("run")?, timeout })
}

impl Seeds {
    /// Returns the file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::List(_) | Self::None => None,
        }
    }
}
