//! `crawl plan`: what a search for near-duplicates costs among so many documents, by formulas, and
//! by times that are measured here.

mod measure;
mod show;

use std::path::Path;

use crate::base::system;
use crate::base::units::Size;
use crate::config::Config as Settings;
use crate::corpus::index::{IndexPlan, Sizes};
use crate::neardup::Config;
use crate::neardup::plan::{
    DOCUMENTS_MAX, ENTRY_BYTES, EQUALITY_BITS, FOUR_TABLES, K, LINEAR_SCAN, ROW_KEY_BYTES,
    SENTENCE_BITS, SLOT_BITS, TEN_TABLES, TableScheme, ball, bits_needed, chance_by_bands,
    chance_by_hashes, chance_neighbours, chance_pairs, machines,
};
use crate::neardup::segment::PER_KEY_MAX;
use crate::text::features::SENTENCES;
use crate::text::simhash::BITS;
use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;

use super::exit::{Exit, Usage};
use super::screen;
use measure::{INDEXED, MachineTimes, measure};

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    /// Number of documents: `1000000`, `10_000_000`, `1e9` or `2^34`
    #[arg(long, value_name = "N", value_parser = documents)]
    pub documents: u64,
    /// Memory of a machine; that of this one by default
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Disk of a machine; by default the one that has the current folder
    #[arg(long, value_name = "SIZE")]
    pub disk: Option<Size>,
    /// Print formulas alone, and measure nothing
    #[arg(long)]
    pub no_measure: bool,
}

/// `crawl plan`.
pub(super) fn plan(args: &PlanArgs, json: bool) -> Result<Exit> {
    let machine = MachineSize {
        memory: given("--memory", args.memory)?.or_else(system::memory),
        disk: given("--disk", args.disk)?.or_else(|| system::disk(Path::new("."))),
    };
    let times = if args.no_measure { None } else { Some(measure()?) };
    let report = PlanReport::of(args.documents, machine, times);
    if json {
        return screen::json(&report);
    }
    show::show(&report);
    Ok(Exit::Done)
}

/// Returns the bytes of a flag; without any there is room for nothing.
fn given(flag: &str, size: Option<Size>) -> Result<Option<u64>> {
    match size.map(|size| size.bytes() as u64) {
        Some(0) => Err(Usage(format!("a machine with `{flag} 0` has room for nothing")).into()),
        bytes => Ok(bytes),
    }
}

/// Reads a number of documents: digits with `_` between them, with a power of ten, or a power.
fn documents(text: &str) -> Result<u64, String> {
    let number = if let Some((base, exponent)) = text.split_once('^') {
        power(base, exponent)
    } else if let Some((number, exponent)) = text.split_once(['e', 'E']) {
        scaled(number, exponent)
    } else {
        digits(text)
    };
    match number {
        Some(number) if (1..=DOCUMENTS_MAX).contains(&number) => Ok(number),
        Some(_) => {
            let most = screen::number(DOCUMENTS_MAX);
            Err(format!("`{text}` is out of range: from 1 to 2^40, which is {most}"))
        }
        None => Err(format!(
            "`{text}` is no number of documents: write 1000000, 10_000_000, 1e9 or 2^34"
        )),
    }
}

/// Returns the number of some digits, in groups or not; the largest one if they are too many.
fn digits(text: &str) -> Option<u64> {
    let is_group =
        |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    text.split('_').all(is_group).then(|| text.replace('_', "").parse().unwrap_or(u64::MAX))
}

/// Returns a power; the largest number if it is too large.
fn power(base: &str, exponent: &str) -> Option<u64> {
    Some(digits(base)?.saturating_pow(exponent.parse().ok()?))
}

/// Returns digits, of which some may stand behind a point, times a power of ten, if that is whole.
fn scaled(number: &str, exponent: &str) -> Option<u64> {
    let exponent: u32 = exponent.parse().ok()?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let part = part.trim_end_matches('0');
    let exponent = exponent.checked_sub(u32::try_from(part.len()).ok()?)?;
    Some(digits(&format!("{whole}{part}"))?.saturating_mul(10u64.saturating_pow(exponent)))
}

/// What a machine has, in bytes, as far as it is known.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct MachineSize {
    memory: Option<u64>,
    disk: Option<u64>,
}

/// Bytes, and how many machines have room for them.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Space {
    bytes_each: f64,
    bytes: u64,
    machines_by_memory: Option<u64>,
    machines_by_disk: Option<u64>,
}

impl Space {
    fn of(documents: u64, bytes_each: u64, machine: MachineSize) -> Self {
        let bytes = documents.saturating_mul(bytes_each);
        Self {
            bytes_each: bytes_each as f64,
            bytes,
            machines_by_memory: machine.memory.map(|each| machines(bytes, each)),
            machines_by_disk: machine.disk.map(|each| machines(bytes, each)),
        }
    }
}

/// Tables of fingerprints and numbers.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlannedTables {
    layout: &'static str,
    formula: &'static str,
    /// Entries of a fingerprint.
    entries: u64,
    /// Fingerprints that have one key, for each kind of tables.
    sets: Vec<u64>,
    comparisons: u64,
    space: Space,
    /// Bytes of the same entries as rows of the text; a scan has none.
    row_keys: Option<Space>,
    /// By the times that were measured.
    seconds: Option<f64>,
}

impl PlannedTables {
    fn of(scheme: &TableScheme, documents: u64, machine: MachineSize) -> Self {
        let entries = scheme.entries();
        let rows = || Space::of(documents, entries * ROW_KEY_BYTES, machine);
        Self {
            layout: scheme.name,
            formula: scheme.formula,
            entries,
            sets: scheme.tables.iter().map(|of| of.set(documents)).collect(),
            comparisons: scheme.comparisons(documents),
            space: Space::of(documents, entries * ENTRY_BYTES, machine),
            row_keys: (entries > 1).then(rows),
            seconds: None,
        }
    }

    /// Adds how long a look-up takes: as long as among those that were measured, and as much more
    /// as more are compared.
    fn timed(self, measured: f64, scheme: &TableScheme, times: &MachineTimes) -> Self {
        let before = scheme.comparisons(INDEXED);
        let more = self.comparisons as f64 - before as f64;
        Self { seconds: Some((measured + more * times.comparison).max(0.0)), ..self }
    }
}

/// The index of a store, and how long look-ups take by the times that were measured, with all
/// blocks in memory.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlannedIndex {
    #[serde(flatten)]
    plan: IndexPlan,
    /// Machines have room for its file at its peak.
    space: Space,
    look_up_seconds: Option<f64>,
    article_seconds: Option<f64>,
}

impl PlannedIndex {
    fn of(documents: u64, machine: MachineSize, times: Option<&MachineTimes>) -> Self {
        let cache = Settings::default().cache_bytes();
        let plan = IndexPlan::of(documents, &Config::default(), Sizes::default(), cache);
        let space = Space {
            bytes_each: plan.file_bytes as f64 / documents as f64,
            bytes: plan.file_bytes,
            machines_by_memory: machine.memory.map(|each| machines(plan.memory.bytes(), each)),
            machines_by_disk: machine.disk.map(|each| machines(plan.peak_bytes, each)),
        };
        let seconds = |cost| times.map(|times| times.of(cost));
        let (look_up_seconds, article_seconds) = (seconds(plan.look_up), seconds(plan.article));
        Self { plan, space, look_up_seconds, article_seconds }
    }
}

/// What unlike texts have in common by chance.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chance {
    k: u32,
    /// Fingerprints within `k` bits of one.
    ball: u64,
    neighbours: f64,
    pairs: f64,
    /// Bits of a fingerprint for less than one neighbour of a text, and for less than one pair.
    bits_for_one: u32,
    bits_for_all: u32,
    bands: usize,
    slots: usize,
    band_bits: u32,
    by_bands: f64,
    /// By bands of slots of half the bits, as they are compared.
    by_short_bands: f64,
    by_hashes_of_bands: f64,
    /// At most as many as sentences name.
    by_sentences: f64,
    named_by_sentences_max: usize,
}

impl Chance {
    fn of(documents: u64) -> Self {
        let Config { bands, band_rows: slots, .. } = Config::default();
        let band_bits = slots as u32 * SLOT_BITS;
        let named_by_sentences_max = SENTENCES * PER_KEY_MAX;
        let by_sentences = chance_by_hashes(documents, SENTENCES, SENTENCE_BITS);
        Self {
            k: K,
            ball: u64::try_from(ball(BITS, K)).unwrap_or(u64::MAX),
            neighbours: chance_neighbours(documents, BITS, K),
            pairs: chance_pairs(documents, BITS, K),
            bits_for_one: bits_needed(|bits| chance_neighbours(documents, bits, K)),
            bits_for_all: bits_needed(|bits| chance_pairs(documents, bits, K)),
            bands,
            slots,
            band_bits,
            by_bands: chance_by_bands(documents, bands, band_bits),
            by_short_bands: chance_by_bands(documents, bands, band_bits / 2),
            by_hashes_of_bands: chance_by_hashes(documents, bands, EQUALITY_BITS),
            by_sentences: by_sentences.min(named_by_sentences_max as f64),
            named_by_sentences_max,
        }
    }
}

/// All that is told.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanReport {
    documents: u64,
    machine: MachineSize,
    layouts: Vec<PlannedTables>,
    index: PlannedIndex,
    chance: Chance,
    measured: Option<MachineTimes>,
}

impl PlanReport {
    fn of(documents: u64, machine: MachineSize, times: Option<MachineTimes>) -> Self {
        let tables = |scheme, measured: fn(&MachineTimes) -> f64| {
            let tables = PlannedTables::of(scheme, documents, machine);
            let Some(times) = &times else { return tables };
            tables.timed(measured(times), scheme, times)
        };
        Self {
            documents,
            machine,
            layouts: vec![
                tables(&LINEAR_SCAN, |times| times.comparison * INDEXED as f64),
                tables(&FOUR_TABLES, |times| times.four_tables),
                tables(&TEN_TABLES, |times| times.ten_tables),
            ],
            index: PlannedIndex::of(documents, machine, times.as_ref()),
            chance: Chance::of(documents),
            measured: times,
        }
    }
}
