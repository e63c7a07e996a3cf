//! `crawl plan`: its formulas against exact figures, and against indexes that are really made.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use serde_json::{Value, json};
use uniqcrawl::corpus::index::{IndexPlan, Sizes};
use uniqcrawl::neardup::plan::{
    FOUR_TABLES, SENTENCE_BITS, TEN_TABLES, chance_by_bands, chance_by_hashes,
};
use uniqcrawl::neardup::segment::{
    BadBlock, Block, BlockId, Blocks, FILTERS, Filter, LookUpCost, Posting, Segment,
    SegmentPostings, TableContent, TableSize, Written, equality_table, exact_key, near_table,
    spread,
};
use uniqcrawl::neardup::{Config, Field, Finder, Key, Nearby, Postings as _};
use uniqcrawl::text::features::{ArticleKeys, KindHashes, Standing, TextKeys};
use uniqcrawl::text::simhash::Fingerprint;
use uniqcrawl::text::sketch::{Sketch, WIDE_SLOTS, mix};

use crate::support::crawl;

fn plan(documents: &str, more: &[&str]) -> Output {
    let documents = format!("--documents={documents}");
    crawl(&[&["plan", &documents], more].concat(), Path::new("."))
}

fn answer(documents: &str, more: &[&str]) -> Value {
    let output = plan(documents, &[&["--json"], more].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{documents}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_figures_of_the_note_are_set_right() {
    let machine = ["--no-measure", "--memory", "24 GiB", "--disk", "1 TB"];
    let plan = answer("2^34", &machine);
    let documents = 1_u64 << 34;
    assert_eq!(plan["documents"], documents);
    let [linear, four, ten] = [0, 1, 2].map(|at| &plan["layouts"][at]);
    assert_eq!([&linear["comparisons"], &linear["sets"]], [&json!(documents), &json!([documents])]);
    assert_eq!([&four["comparisons"], &four["sets"]], [&json!(4 * 262_144), &json!([262_144])]);
    assert_eq!([&ten["comparisons"], &ten["sets"]], [&json!(3_584), &json!([256, 512])]);
    // An entry in each table, of a fingerprint and a number, and as a row of 13 bytes.
    let bytes = |at: &Value| at["bytes"].as_u64().unwrap();
    for (layout, entries) in [(linear, 1), (four, 4), (ten, 10)] {
        assert_eq!(layout["entries"], entries);
        assert_eq!(bytes(&layout["space"]), documents * entries * 16);
    }
    assert_eq!(linear["rowKeys"], Value::Null);
    assert_eq!(bytes(&four["rowKeys"]), documents * 52);
    assert_eq!(bytes(&ten["rowKeys"]), documents * 130);
    // 256, 1,024 and 2,560 GiB.
    let machines = |at: &Value| [&at["machinesByMemory"], &at["machinesByDisk"]].map(Value::as_u64);
    assert_eq!(machines(&linear["space"]), [Some(11), Some(1)]);
    assert_eq!(machines(&four["space"]), [Some(43), Some(2)]);
    assert_eq!(machines(&ten["space"]), [Some(107), Some(3)]);
    // Its four rotations have as many with the same first bits as four tables have.
    let compared = plan["index"]["lookUp"]["comparisons"].as_f64().unwrap() / (4.0 * 262_144.0);
    assert!((0.8..=1.0).contains(&compared), "{compared} of what four tables compare");
    // Room for the largest segments twice decides on machines; its memory does not grow.
    let index = &plan["index"];
    let peak = 2 * bytes(&index["space"]);
    assert_eq!(index["peakBytes"], peak);
    assert_eq!(machines(&index["space"]), [Some(1), Some(peak.div_ceil(1_000_000_000_000))]);
    assert_eq!(plan["measured"], Value::Null);
    assert_eq!(four["seconds"], Value::Null);
}

#[test]
fn figures_of_what_is_no_power_of_two_are_rounded_up() {
    let plan = answer("1e10", &["--no-measure"]);
    let of = |at: usize| [&plan["layouts"][at]["comparisons"], &plan["layouts"][at]["sets"]];
    assert_eq!(of(0), [&json!(10_000_000_000_u64), &json!([10_000_000_000_u64])]);
    assert_eq!(of(1), [&json!(610_352), &json!([152_588])]);
    assert_eq!(of(2), [&json!(2_087), &json!([150, 299])]);
    let chance = &plan["chance"];
    let near = |name: &str, right: f64| {
        let told = chance[name].as_f64().unwrap();
        assert!((told / right - 1.0).abs() < 1e-9, "{name}: {told}, not {right}");
    };
    let all = 2_f64.powi(64);
    near("neighbours", 1e10 * 43_745.0 / all);
    near("pairs", 1e10 * (1e10 - 1.0) / 2.0 * 43_745.0 / all);
    near("byBands", 42.0 * 1e10 / 2_f64.powi(48));
    near("byShortBands", 42.0 * 1e10 / 2_f64.powi(24));
    near("byHashesOfBands", 42.0 * 42.0 * 1e10 / 2_f64.powi(40));
    near("bySentences", 64.0 * 1e10 / 2_f64.powi(32));
    let ball = |bits: f64| 1.0 + bits + bits * (bits - 1.0) / 2.0 * (1.0 + (bits - 2.0) / 3.0);
    let is_enough =
        |pairs: f64, bits: u32| pairs * ball(f64::from(bits)) < 2_f64.powf(f64::from(bits));
    for (name, pairs) in [("bitsForOne", 1e10), ("bitsForAll", 5e19)] {
        let bits = chance[name].as_u64().unwrap() as u32;
        assert!(is_enough(pairs, bits) && !is_enough(pairs, bits - 1), "{name}: {bits}");
    }
}

#[test]
fn numbers_of_documents_are_read_in_every_form() {
    let same: [(&str, u64); 9] = [
        ("1000000", 1_000_000),
        ("10_000_000", 10_000_000),
        ("1e9", 1_000_000_000),
        ("1E+9", 1_000_000_000),
        ("1.5e9", 1_500_000_000),
        ("2.50e1", 25),
        ("2^34", 1 << 34),
        ("1", 1),
        ("2^40", 1 << 40),
    ];
    for (text, number) in same {
        assert_eq!(answer(text, &["--no-measure"])["documents"], number, "{text}");
    }
    let none = ["", "many", "1e", "e9", "1.5", "1.25e1", "1__0", "_1", "1 000", "-5", "2^", "1e-3"];
    let none = none.map(|text| (text, "is no number of documents"));
    let beyond =
        ["0", "0e9", "2^41", "2^64", "1e13", "1e400", "1099511627777", "99999999999999999999"];
    let beyond = beyond.map(|text| (text, "is out of range"));
    for (text, says) in none.into_iter().chain(beyond) {
        let output = plan(text, &["--no-measure"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}: {said}");
        assert!(said.contains(&format!("`{text}` {says}")), "{text}: {said}");
    }
    let output = crawl(&["plan", "--documents", "5", "--memory", "24"], Path::new("."));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("`24` has no unit"), "{said}");
    let output = plan("5", &["--no-measure", "--disk", "0"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("`--disk 0`"), "{said}");
}

/// Columns of a line; Chinese characters take two.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if ('\u{2E80}'..'\u{FFFF}').contains(&c) { 2 } else { 1 }).sum()
}

#[test]
fn every_layout_is_told_with_its_source_in_100_columns() {
    let none = &["--no-measure"][..];
    for (documents, more) in
        [("1", none), ("1e9", none), ("2^34", none), ("2^40", none), ("1e9", &[])]
    {
        let output = plan(documents, more);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{text}");
        for line in text.lines() {
            assert!(columns(line) <= 100 && line.trim_end() == line, "{line:?}");
        }
        for name in ["linear scan", "four tables", "ten tables", "this index"] {
            assert!(text.contains(&format!("  {name}  ")), "no {name} in\n{text}");
        }
        for source in 1..=5 {
            let named = text.matches(&format!("[{source}]")).count();
            assert!(named >= 2, "[{source}] is named {named} times in\n{text}");
        }
        assert_eq!(text.contains("at N by arithmetic, not measured"), more.is_empty());
    }
    let text_of = |documents| {
        let machine = ["--no-measure", "--memory", "24 GiB", "--disk", "1 TB"];
        String::from_utf8(plan(documents, &machine).stdout).unwrap()
    };
    let text = text_of("2^34");
    // Each of eight hashes of 32 bits names 64 documents at most.
    assert!(!text_of("2^34").contains("are missed") && text_of("2^35").contains("are missed"));
    let words: String = text.split_whitespace().flat_map(|word| [word, " "]).collect();
    for part in [
        "17 179 869 184 documents, N = 2^34.00",
        "four tables 4 N / 2^16 262 144 1 048 576 [2]",
        "ten tables 6 N / 2^26 + 4 N / 2^25 256 or 512 3 584 [3]",
        "ten tables, rows of the note 130 2.0 TiB 87 3 [4]",
        "2^34 / 2^16 = 262 144 is meant",
        "sets of 512: 3 584 in all",
        "of two documents with one fingerprint one row is left",
        "2.6e-3, 42 N / 2^48; and 27.56 by hashes, 42^2 N / 2^40",
        "if slots had single bytes 43 008, 42 N / 2^24",
        "one of 8 sentences 256 by hashes, 8^2 N / 2^32",
    ] {
        assert!(words.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn constants_are_measured_in_bounded_memory_and_times_follow_from_them() {
    let plan = answer("1e9", &[]);
    let measured = &plan["measured"];
    let constant = |name: &str| {
        let constant = measured[name].as_f64().unwrap();
        assert!(constant.is_finite() && constant > 0.0, "{name}: {constant}");
        constant
    };
    for name in ["fourTables", "tenTables", "segment", "blockComparison", "filter"] {
        assert!(constant(name) < 60.0, "seconds");
    }
    let scan = plan["layouts"][0]["seconds"].as_f64().unwrap();
    assert!((scan / (constant("comparison") * 1e9) - 1.0).abs() < 1e-9, "{scan}");
    for (at, scheme, name) in [(1, FOUR_TABLES, "fourTables"), (2, TEN_TABLES, "tenTables")] {
        let more = scheme.comparisons(1_000_000_000) - scheme.comparisons(100_000);
        let right = constant(name) + more as f64 * constant("comparison");
        let told = plan["layouts"][at]["seconds"].as_f64().unwrap();
        assert!((told / right - 1.0).abs() < 1e-9, "{told}, not {right}");
    }
    let of = |what: &str| plan["index"][what].as_f64().unwrap();
    assert!(of("lookUpSeconds") > 0.0 && of("articleSeconds") > of("lookUpSeconds"));
    if let Some(peak) = measured["peakMemory"].as_u64() {
        assert!(peak < 200 << 20, "{peak} bytes");
    }
    if cfg!(target_os = "linux") {
        let [memory, disk] = ["memory", "disk"].map(|name| plan["machine"][name].as_u64());
        assert!(memory > Some(1 << 20) && disk > Some(1 << 20), "{}", plan["machine"]);
    }
}

fn random(content: u64, what: u64) -> u64 {
    mix(content.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ mix(what))
}

/// A sketch of slots that are drawn by lot.
fn sketch(content: u64, is_wide: bool) -> Sketch {
    let mut bytes = [0; 256 + WIDE_SLOTS];
    for (at, eight) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *eight = random(content, 100 + at as u64).to_be_bytes();
    }
    let (slots, seconds) = bytes.split_first_chunk().unwrap();
    let seconds = is_wide.then(|| Box::new(seconds.try_into().unwrap()));
    Sketch { slots: Box::new(*slots), seconds }
}

/// Keys of a text that has nothing in common with others but what chance gives them.
fn keys(content: u64) -> ArticleKeys {
    let text = TextKeys {
        hash: u128::from(random(content, 3)) << 64,
        fingerprint: Fingerprint(random(content, 1)),
        sketch: sketch(content, true),
        shingles: 200,
        words: 200,
        sentences: (0..8).map(|at| random(content, 10 + at) as u32).collect(),
        others: KindHashes::default(),
    };
    let title = Some(Fingerprint(random(content, 2)));
    ArticleKeys { text, title, standing: Standing::default() }
}

/// Writes a segment of such contents.
fn written(contents: std::ops::Range<u64>) -> (Segment, Vec<Written>) {
    let finder = Finder::new(&Config::default()).unwrap();
    let count = contents.end - contents.start;
    let postings = contents.flat_map(|content| {
        let keys = keys(content);
        let text = Posting { key: exact_key(keys.text.hash), content };
        let near = finder.postings(content, &keys).into_iter();
        near.chain([(equality_table(Key::Exact), text)])
    });
    Segment::of(0, count, postings.collect())
}

/// Tells how far two numbers are from each other, as a share.
fn off(told: f64, right: f64) -> f64 {
    (told / right - 1.0).abs()
}

#[test]
fn the_planned_bytes_are_those_of_segments_that_are_really_written() {
    let contents = 100_000;
    let plan = IndexPlan::of(contents, &Config::default(), Sizes::default(), 0);
    let sizes = plan.tiers.iter().flat_map(|tier| {
        std::iter::repeat_n((tier.contents, Some(tier.bytes)), tier.segments as usize)
    });
    let rest = contents - plan.tiers.iter().map(|tier| tier.segments * tier.contents).sum::<u64>();
    let (mut next, mut all) = (1, 0);
    for (size, planned) in sizes.chain([(rest, None)]) {
        let (segment, blocks) = written(next..next + size);
        next += size;
        assert_eq!(segment.postings(), size * plan.postings_each);
        let bytes = blocks.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        if let Some(planned) = planned {
            assert!(off(planned as f64, bytes as f64) < 0.15, "{planned}, not {bytes}");
        }
        all += bytes;
    }
    assert_eq!((next, plan.tiers.len()), (contents + 1, 1));
    assert!(off(plan.bytes as f64, all as f64) < 0.15, "{} bytes, not {all}", plan.bytes);
}

/// Blocks in memory, and how many were read.
#[derive(Default)]
struct CountedBlocks {
    blocks: HashMap<BlockId, Arc<Block>>,
    filters: HashMap<BlockId, Filter>,
    read: Cell<u64>,
}

impl CountedBlocks {
    fn of(written: Vec<Written>) -> Self {
        let mut all = Self::default();
        for (id, bytes) in written {
            if id.level == FILTERS {
                all.filters.insert(id, Filter::read(&bytes).unwrap());
            } else {
                all.blocks.insert(id, Arc::new(Block::read(&bytes).unwrap()));
            }
        }
        all
    }
}

impl Blocks for CountedBlocks {
    type Error = BadBlock;

    fn block(&self, id: BlockId) -> Result<Arc<Block>, BadBlock> {
        self.read.set(self.read.get() + 1);
        self.blocks.get(&id).cloned().ok_or(BadBlock("is missing"))
    }

    fn passes(&self, filter: BlockId, key: u64) -> Result<bool, BadBlock> {
        let filter = self.filters.get(&filter).ok_or(BadBlock("is missing"))?;
        Ok(filter.may_have(key))
    }
}

/// Contents in memory, with postings, and those that are being written.
#[test]
fn the_planned_memory_is_that_of_contents_in_memory() {
    let Sizes { tail, .. } = Sizes::default();
    let memory = IndexPlan::of(1, &Config::default(), Sizes::default(), 256 << 20).memory;
    let mut finder = Finder::new(&Config::default()).unwrap();
    let mut postings = Vec::new();
    for content in 1..=tail {
        let keys = keys(content);
        postings.extend(finder.postings(content, &keys));
        finder.insert(content, &keys);
    }
    let right = finder.bytes() + postings.capacity() * size_of::<(u8, Posting)>();
    assert!(off(memory.tail as f64, right as f64) < 0.1, "{}, not {right}", memory.tail);
    let (_, blocks) = Segment::of(1, tail, postings);
    let right = finder.bytes() + blocks.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    assert!(off(memory.writing as f64, right as f64) < 0.1, "{}, not {right}", memory.writing);
    assert_eq!(memory.cache, 768 << 20);
}

/// Runs of unlike texts have the same key because they are equal, or because their hashes are: of
/// these, some bits are taken, so that there are enough.
#[test]
fn chance_brings_as_many_equal_keys_of_bands_as_the_formulas_say() {
    const CONTENTS: u64 = 20_000;
    const QUERIES: u64 = 2_000;
    let found = |slots, is_wide, dropped: u32| {
        let bands = |content| sketch(content, is_wide).bands(42, slots).collect::<Vec<u64>>();
        let keys = |content| bands(content).into_iter().map(move |key| key >> dropped);
        let mut contents: HashMap<u64, u32> = HashMap::new();
        for key in (0..CONTENTS).flat_map(keys) {
            *contents.entry(key).or_default() += 1;
        }
        let equal = (CONTENTS..CONTENTS + QUERIES).flat_map(keys);
        let equal: u32 = equal.filter_map(|key| contents.get(&key)).sum();
        f64::from(equal) / QUERIES as f64
    };
    // Two slots of a byte, one of two bytes, and 24 bits of hashes of three such slots.
    let by_bands = chance_by_bands(CONTENTS, 42, 16);
    let hashes = chance_by_hashes(CONTENTS, 42, 24);
    for (planned, right) in [
        (by_bands, found(2, false, 0)),
        (by_bands, found(1, true, 0)),
        (hashes, found(3, true, 16)),
    ] {
        assert!(off(planned, right) < 0.05, "{planned}, not {right}");
    }
}

#[test]
fn a_look_up_compares_and_reads_what_the_formulas_say() {
    const CONTENTS: u64 = 300_000;
    const QUERIES: u64 = 2_000;
    let hash = |n: u64| mix(n) as u32;
    let postings = (0..CONTENTS).flat_map(|content| {
        let rotated = (0..4).map(move |rotation| {
            let key = mix(content).rotate_left(16 * u32::from(rotation));
            (near_table(Field::Content, rotation), Posting { key, content })
        });
        let key = spread(hash(content));
        rotated.chain([(equality_table(Key::Sentence), Posting { key, content })])
    });
    let (segment, written) = Segment::of(0, CONTENTS, postings.collect());
    let blocks = CountedBlocks::of(written);
    let all = SegmentPostings { segments: std::slice::from_ref(&segment), blocks: &blocks };

    // All that have the first bits of a query are compared, in four rotations.
    let mut compared = 0;
    for query in 0..QUERIES {
        let query = mix(1 << 40 | query);
        for rotation in 0..4 {
            let first = query.rotate_left(16 * u32::from(rotation)) & !(u64::MAX >> 16);
            let keys = first..=first | u64::MAX >> 16;
            let table = segment.table(near_table(Field::Content, rotation)).unwrap();
            table.postings_of(&blocks, 0, keys, |_, range| compared += range.len()).unwrap();
        }
    }
    let right = compared as f64 / QUERIES as f64;
    let planned = FOUR_TABLES.comparisons(CONTENTS) as f64;
    assert!(off(planned, right) < 0.1, "{planned} comparisons, not {right}");
    let rotation = TableSize::of(TableContent::fingerprints(CONTENTS)).unwrap();
    let found = rotation.found().times(4.0);
    assert!(off(found.comparisons, right) < 0.1, "{found:?}, not {right}");

    let read = |ask: &dyn Fn(u64)| {
        blocks.read.set(0);
        (0..QUERIES).for_each(|query| ask(mix(1 << 41 | query)));
        blocks.read.get() as f64 / QUERIES as f64
    };
    let right = read(&|query| {
        let asked = Nearby { field: Field::Content, fingerprint: Fingerprint(query), k: 3 };
        all.near(asked, &mut |_, _| ()).unwrap();
    });
    // Most of it filters keep out.
    let near = rotation.look_up().times(4.0);
    assert!(off(near.blocks, right) < 0.2, "{} blocks, not {right}", near.blocks);
    assert!(near.blocks < found.blocks / 10.0, "{near:?}, {found:?}");
    // Of keys that nobody has, few pass a filter.
    let right = read(&|query| all.equal(Key::Sentence, spread(hash(query)), &mut |_| ()).unwrap());
    let content = TableContent::hashes(CONTENTS, 1, 1 << SENTENCE_BITS);
    let LookUpCost { blocks: planned, filters, .. } = TableSize::of(content).unwrap().look_up();
    assert!((right / 2.0..right * 2.0).contains(&planned), "{planned} blocks, not {right}");
    assert!((filters - 1.0).abs() < 1e-9, "{filters} filters");
}
