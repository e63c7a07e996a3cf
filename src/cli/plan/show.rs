//! `crawl plan` in words: tables of at most 100 columns, and where the formulas are from.

use super::super::screen::{bytes, number};
use super::measure::{INDEXED, MachineTimes, SCANNED};
use super::{Chance, PlanReport, PlannedIndex, Space};
use crate::neardup::plan::FOUR_TABLES;

/// Sources of the formulas, and where a figure of them is not right.
const SOURCES: &str = "
sources
  [1] engineering note (simhash海量文本去重的工程化), section 抽屉原理: all are compared
  [2] engineering note, section 优化效果: four sets of N / 2^16. It takes 10^10 for 2^34, which is
      2^33.2, and writes 2^32 / 2^16 where 2^34 / 2^16 = 262 144 is meant
  [3] engineering note, section 权衡时间与空间: two of five blocks of 13, 13, 13, 13 and 12 bits. At
      2^34 it has 256 in each set, 2 560 in all; but four of the ten pairs have the block of 12
      bits, and sets of 512: 3 584 in all
  [4] engineering note, section 存储选型: 4 bytes segment, 1 byte flag, 8 bytes fingerprint. The
      number of the document is missing, so that of two documents with one fingerprint one row is
      left
  [5] this project: a log-structured merge tree, in blocks of at most 4 000 bytes, with filters of
      8.7 bits a key; four segments of a size become one";

/// Sources of the layouts.
const LAYOUTS: [&str; 3] = ["[1]", "[2]", "[3]"];

/// Prints it.
pub(super) fn show(report: &PlanReport) {
    let documents = report.documents;
    println!("{} documents, N = 2^{:.2}", number(documents), (documents as f64).log2());
    comparisons(report);
    space(report);
    index(&report.index);
    chance(&report.chance);
    if let Some(times) = &report.measured {
        look_ups(report, times);
    }
    println!("{SOURCES}");
}

fn comparisons(report: &PlanReport) {
    println!("\ncomparisons of a look-up within 3 bits, of fingerprints that are spread evenly");
    let line = |[name, formula, set, count, source]: [&str; 5]| {
        let line = format!("  {name:<12}  {formula:<25}  {set:>20}  {count:>20}  {source}");
        println!("{}", line.trim_end());
    };
    line(["", "", "with one key", "comparisons", ""]);
    for (tables, source) in report.layouts.iter().zip(LAYOUTS) {
        let sets: Vec<String> = tables.sets.iter().map(|set| number(*set)).collect();
        let (sets, count) = (sets.join(" or "), number(tables.comparisons));
        line([tables.layout, tables.formula, &sets, &count, source]);
    }
    let set = number(FOUR_TABLES.tables[0].set(report.documents));
    let count = number(rounded_up(report.index.plan.look_up.comparisons));
    let formula = format!("{} behind filters", FOUR_TABLES.formula);
    line(["this index", &formula, &set, &count, "[5]"]);
}

fn space(report: &PlanReport) {
    println!("\nspace, and how many machines have room for it");
    let line = |[name, each, all, memory, disk, source]: [&str; 6]| {
        println!("  {name:<30}  {each:>10}  {all:>11}  {memory:>16}  {disk:>16}  {source}");
    };
    let machine = |size: Option<u64>| size.map_or("unknown".to_owned(), bytes);
    let memory = format!("{} memory", machine(report.machine.memory));
    let disk = format!("{} disk", machine(report.machine.disk));
    println!("  {:<30}  {:>10}  {:>11}  {memory:>16}  {disk:>16}", "", "bytes each", "in all");
    let row = |name: &str, space: &Space, source: &str| {
        let count = |count: Option<u64>| count.map_or("-".to_owned(), number);
        let (each, all) = (format!("{:.0}", space.bytes_each), bytes(space.bytes));
        let (memory, disk) = (count(space.machines_by_memory), count(space.machines_by_disk));
        line([name, &each, &all, &memory, &disk, source]);
    };
    for (tables, source) in report.layouts.iter().zip(LAYOUTS) {
        row(tables.layout, &tables.space, source);
    }
    for tables in &report.layouts {
        if let Some(space) = &tables.row_keys {
            row(&format!("{}, rows of the note", tables.layout), space, "[4]");
        }
    }
    row("this index, all keys, on disk", &report.index.space, "[5]");
    println!("  an entry of a table is a fingerprint and a number of 8 bytes each");
}

fn fact(name: &str, text: &str) {
    println!("  {name:<28}  {text}");
}

fn index(index: &PlannedIndex) {
    println!("\nthis index [5], beside the documents themselves");
    let plan = &index.plan;
    let largest = plan.tiers.first().map_or(0, |tier| tier.contents);
    let segments = format!("{}, the largest of {} contents", plan.segments(), number(largest));
    fact("segments", &segments);
    let room = "while segments become one, by which machines are counted";
    fact("disk", &format!("{} {room}", bytes(plan.peak_bytes)));
    let parts = [plan.memory.tail, plan.memory.writing, plan.memory.cache].map(bytes);
    let [tail, writing, cache] = parts;
    let parts = format!("the newest {tail}, what is being written {writing}, cache {cache}");
    fact("memory, whatever N is", &parts);
    let blocks = number(rounded_up(plan.look_up.blocks));
    fact("a look-up reads", &format!("{blocks} blocks, if nothing is in the cache"));
    let cost = plan.article;
    let counts =
        [cost.comparisons, cost.blocks, cost.filters].map(|count| number(rounded_up(count)));
    let [comparisons, blocks, filters] = counts;
    let all = format!("{comparisons} comparisons in {blocks} blocks, and {filters} filters");
    fact("all keys of an article take", &all);
}

fn chance(chance: &Chance) {
    println!("\nunlike documents that a text finds by chance");
    let Chance { k, bands, slots, band_bits, .. } = chance;
    let (one, all) = (few(chance.neighbours), few(chance.pairs));
    let near = format!("{one}, {} N / 2^64; {all} pairs in all", number(chance.ball));
    fact(&format!("fingerprints within {k} bits"), &near);
    let (one, all) = (chance.bits_for_one, chance.bits_for_all);
    let bits = format!("{one} for less than one, {all} for less than one pair in all");
    fact("bits of a fingerprint needed", &bits);
    let (found, more) = (few(chance.by_bands), few(chance.by_hashes_of_bands));
    let found =
        format!("{found}, {bands} N / 2^{band_bits}; and {more} by hashes, {bands}^2 N / 2^40");
    fact(&format!("one of {bands} bands of {slots} slots"), &found);
    let short = format!("{}, {bands} N / 2^{}", few(chance.by_short_bands), band_bits / 2);
    fact("if slots had single bytes", &short);
    let full = chance.by_sentences >= chance.named_by_sentences_max as f64;
    let full = if full { ": full, and later ones are missed" } else { "" };
    fact(
        "one of 8 sentences",
        &format!("{} by hashes, 8^2 N / 2^32{full}", few(chance.by_sentences)),
    );
}

/// Writes a number that may be very small.
fn few(count: f64) -> String {
    match count {
        0.0 => "0".to_owned(),
        ..0.01 => format!("{count:.1e}"),
        ..100.0 => format!("{count:.2}"),
        _ => number(rounded_up(count - 0.5)),
    }
}

fn look_ups(report: &PlanReport, times: &MachineTimes) {
    println!("\ntimes of a look-up on one core, all in memory; at N by arithmetic, not measured");
    println!("  {:<20}  {:>10}  {:>10}  {:>10}", "", "measured", "among", "at N");
    let scan = times.comparison * SCANNED as f64;
    let measured = [(scan, SCANNED), (times.four_tables, INDEXED), (times.ten_tables, INDEXED)];
    let tables = report.layouts.iter().map(|tables| (tables.layout, tables.seconds));
    let PlannedIndex { look_up_seconds, article_seconds, .. } = report.index;
    let index = ("this index", look_up_seconds);
    let measured = measured.into_iter().chain([(times.segment, INDEXED)]);
    for ((name, seconds), (measured, among)) in tables.chain([index]).zip(measured) {
        let (measured, among) = (time(Some(measured)), number(among));
        println!("  {name:<20}  {measured:>10}  {among:>10}  {:>10}", time(seconds));
    }
    println!("  {:<44}  {:>10}", "this index, all keys of an article", time(article_seconds));
    let constants = [times.comparison, times.block_comparison, times.filter];
    let [scan, block, filter] = constants.map(|seconds| time(Some(seconds)));
    println!("  a comparison takes {scan} in a scan and {block} in a block, a filter {filter}");
}

/// Writes a time.
fn time(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return "-".to_owned() };
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let found = units.into_iter().find(|(unit, _)| seconds >= *unit);
    let (unit, name) = found.unwrap_or((1e-9, "ns"));
    let count = seconds / unit;
    if count < 10.0 { format!("{count:.2} {name}") } else { format!("{count:.0} {name}") }
}

#[expect(clippy::cast_sign_loss, reason = "nothing is counted below 0")]
fn rounded_up(number: f64) -> u64 {
    // What is a sum of halves and quarters need not be exact.
    (number - 1e-6).ceil() as u64
}
