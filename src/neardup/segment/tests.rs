//! Segments against plain sets.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::cursor::Cursor;
use super::*;
use crate::neardup::finder::{Asked, Nearby};
use crate::text::simhash::Fingerprint;

/// Blocks in memory.
#[derive(Debug, Default, Clone)]
struct MemoryBlocks(BTreeMap<BlockId, Vec<u8>>);

impl Blocks for MemoryBlocks {
    type Error = BadBlock;

    fn block(&self, id: BlockId) -> Result<Arc<Block>, BadBlock> {
        let bytes = self.0.get(&id).ok_or(BadBlock("is missing"))?;
        Ok(Arc::new(Block::read(bytes)?))
    }

    fn passes(&self, filter: BlockId, key: u64) -> Result<bool, BadBlock> {
        let bytes = self.0.get(&filter).ok_or(BadBlock("is missing"))?;
        Ok(Filter::read(bytes)?.may_have(key))
    }
}

impl MemoryBlocks {
    fn keep(&mut self, written: Vec<Written>) {
        for (id, bytes) in written {
            assert!(bytes.len() <= BYTES_MAX, "{id:?} has {} bytes", bytes.len());
            assert!(self.0.insert(id, bytes).is_none(), "{id:?} is written twice");
        }
    }
}

/// Bytes of a block of a merge at most.
const BLOCK_BYTES: usize = 700;

type Model = BTreeSet<(u8, Posting)>;

/// A segment of so many contents, some of whose keys others have too.
fn segment(
    blocks: &mut MemoryBlocks,
    number: u32,
    contents: std::ops::Range<u64>,
) -> (Segment, Model) {
    let mut postings = Vec::new();
    for content in contents.clone() {
        let key = mix(content);
        postings.extend((0..2).map(|table| (table, Posting { key: key.rotate_left(16), content })));
        for own in 0..5 {
            // One in eight is a key of many.
            let key = mix(content * 5 + own) >> 24;
            let key = if key.is_multiple_of(8) { (key % 64) << 40 } else { key };
            postings.push((EQUALITY, Posting { key, content }));
        }
    }
    let (segment, written) = Segment::of(number, contents.end - contents.start, postings.clone());
    blocks.keep(written);
    (segment, postings.into_iter().collect())
}

fn all_of(blocks: &MemoryBlocks, segment: &Segment) -> Model {
    let mut all = Model::new();
    for table in &segment.tables {
        let before = all.len();
        table
            .postings_of(blocks, segment.number, 0..=u64::MAX, |block, range| {
                all.extend(range.map(|at| (table.table, block.get(at))));
            })
            .unwrap();
        assert_eq!((all.len() - before) as u64, table.postings);
    }
    all
}

/// What is left of some segments when they are one.
fn merged(models: &[&Model], gone: &HashSet<u64>) -> Model {
    let mut held: BTreeMap<(u8, u64), usize> = BTreeMap::new();
    let all: Model = models.iter().flat_map(|model| model.iter().copied()).collect();
    all.into_iter()
        .filter(|(_, posting)| !gone.contains(&posting.content))
        .filter(|(table, posting)| {
            let held = held.entry((*table, posting.key)).or_default();
            *held += 1;
            *table < EQUALITY || *held <= PER_KEY_MAX
        })
        .collect()
}

#[test]
fn keys_are_found_by_ranges_and_filters() {
    let mut blocks = MemoryBlocks::default();
    let (segment, model) = segment(&mut blocks, 7, 0..20_000);
    assert_eq!(all_of(&blocks, &segment), model);
    assert!(segment.tables.iter().all(|table| table.top >= 1), "{segment:?}");
    for n in 0..200 {
        let table = segment.table(0).unwrap();
        let (first, last) = (mix(n) & !0xFFFF << 48, mix(n) | u64::MAX >> 16);
        let first = first.min(last);
        let mut found = Vec::new();
        let each = |block: &Block, range: std::ops::Range<usize>| {
            found.extend(range.map(|at| block.get(at)));
        };
        table.postings_of(&blocks, 7, first..=last, each).unwrap();
        let in_range = |posting: &&(u8, Posting)| (first..=last).contains(&posting.1.key);
        let plain: Vec<Posting> = model
            .iter()
            .filter(|(table, _)| *table == 0)
            .filter(in_range)
            .map(|(_, p)| *p)
            .collect();
        assert_eq!(found, plain);
    }
    let table = segment.table(EQUALITY).unwrap();
    let has = |key| table.may_have(&blocks, 7, key).unwrap();
    assert!(model.iter().filter(|(table, _)| *table == EQUALITY).all(|(_, one)| has(one.key)));
    let others = (0..10_000).filter(|n| has(mix(*n << 32 | 1) >> 24)).count();
    assert!(others < 400, "{others} of 10,000 keys that nobody has");
}

#[test]
fn a_merge_that_is_interrupted_after_every_step_makes_the_same_segment() {
    let mut blocks = MemoryBlocks::default();
    let (one, first) = segment(&mut blocks, 1, 0..9_000);
    let (two, second) = segment(&mut blocks, 2, 9_000..10_000);
    let (three, third) = segment(&mut blocks, 3, 9_500..9_501);
    let inputs = vec![one, two, three];
    let (mut whole, mut parts) = (blocks.clone(), blocks);

    let begin = |blocks: &MemoryBlocks| {
        let merge = Merge::begin(blocks, inputs.clone(), Segment::new(9, 1), true).unwrap();
        merge.with_block_bytes(BLOCK_BYTES)
    };
    let mut merge = begin(&whole);
    let straight = loop {
        let step = merge.step(&whole, 40).unwrap();
        whole.keep(step.written);
        if let Some(done) = step.done {
            break done;
        }
    };
    let mut state = begin(&parts).state();
    let mut steps = 0;
    let interrupted = loop {
        let merge = Merge::resume(&parts, &inputs, state).unwrap();
        let mut merge = merge.with_block_bytes(BLOCK_BYTES);
        let step = merge.step(&parts, 40).unwrap();
        parts.keep(step.written);
        steps += 1;
        if let Some(done) = step.done {
            break done;
        }
        state = merge.state();
    };
    assert!(steps > 3, "{steps} steps");
    assert_eq!(straight, interrupted);
    assert_eq!(whole.0, parts.0);
    let model = merged(&[&first, &second, &third], &HashSet::new());
    assert_eq!(all_of(&whole, &straight), model);
    let made = whole.0.iter().filter(|(id, _)| id.segment == 9 && id.level != FILTERS);
    assert!(made.clone().all(|(_, bytes)| bytes.len() <= BLOCK_BYTES));
    assert!(made.count() > 100);
}

/// What is asked for by some contents, in order; all of one content have its number.
fn asks_of(contents: impl Iterator<Item = u64>) -> Vec<Ask> {
    let mut asks = Vec::new();
    for (number, content) in (0..).zip(contents) {
        // Its fingerprint with two other bits.
        let fingerprint = Fingerprint(mix(content).rotate_left(16) ^ 1 << (content % 64) ^ 1 << 7);
        let near = Nearby { field: Field::Content, fingerprint, k: 2 };
        let asked = Ask::near(Key::Near, near, number);
        asks.extend(asked.inspect(|ask| assert_eq!(ask.asked(), Asked::Near(near))));
        for own in 0..5 {
            asks.push(Ask::equal(Key::First, mix(content * 5 + own) >> 24, number));
        }
        asks.push(Ask::equal(Key::First, (content % 64) << 40, number));
    }
    asks.sort_unstable();
    asks
}

type AllFound = BTreeSet<(u32, u32, u64)>;

fn found_by<B: Blocks<Error = BadBlock>>(
    postings: &SegmentPostings<'_, B>,
    asks: &[Ask],
) -> AllFound {
    let mut all = AllFound::new();
    let each = &mut |answer: Answer| {
        assert!((1..=PER_KEY_MAX).contains(&answer.found.each().count()));
        assert!(answer.found.each().is_sorted(), "{:?}", answer.found);
        all.extend(answer.found.each().map(|(bits, content)| (answer.ask.number, bits, content)));
    };
    postings.find(asks, each).unwrap();
    all
}

#[test]
fn a_table_of_fingerprints_says_of_which_kind_and_rotation_it_is() {
    for field in [Field::Content, Field::Title] {
        let of = |rotation| near_of(near_table(field, rotation));
        assert!((0..ROTATIONS).all(|rotation| of(rotation) == (field, rotation)));
    }
}

#[test]
fn asks_in_order_find_what_each_finds_by_itself_and_what_plain_sets_have() {
    let mut blocks = MemoryBlocks::default();
    let mut segments = Vec::new();
    let mut model = Model::new();
    for (number, contents) in (0..).zip([0..200, 200..700, 700..9_000, 9_000..9_001, 9_001..12_000])
    {
        let (segment, postings) = segment(&mut blocks, number, contents);
        segments.push(segment);
        model.extend(postings);
    }
    assert!(segments[2].tables.iter().all(|table| table.top >= 1), "{segments:?}");
    // Known ones, unknown ones, and some twice.
    let asks = asks_of((0..12_200).step_by(7).chain(8_990..9_010).chain(8_990..9_010));
    let postings = SegmentPostings { segments: &segments, blocks: &blocks };
    let found = found_by(&postings, &asks);
    let alone = asks.iter().flat_map(|ask| found_by(&postings, &[*ask]));
    assert_eq!(found, alone.collect());

    let mut plain = AllFound::new();
    for ask in &asks {
        let keys = ask.keys();
        let from = (ask.table, Posting { key: *keys.start(), content: 0 });
        let to = (ask.table, Posting { key: *keys.end(), content: u64::MAX });
        let all = model.range(from..=to).map(|(_, posting)| posting);
        let near = all.map(|posting| ((posting.key ^ ask.key).count_ones(), posting.content));
        let mut near: Vec<(u32, u64)> =
            near.filter(|(bits, _)| *bits <= u32::from(ask.k)).collect();
        near.sort_unstable();
        let first = near.into_iter().take(PER_KEY_MAX);
        plain.extend(first.map(|(bits, content)| (ask.number, bits, content)));
    }
    assert_eq!(found, plain);
    let of = |number| found.iter().filter(|one| one.0 == number).count();
    assert!([0, 8, 16].iter().all(|number| of(*number) >= PER_KEY_MAX), "a key that many have");
    let near = found.iter().filter(|one| one.1 == 2).count();
    assert!(near > 1_000, "{near} by a fingerprint with two other bits");
}

#[test]
fn a_place_that_goes_forward_reads_what_is_asked_and_each_block_once() {
    let mut blocks = MemoryBlocks::default();
    let (segment, model) = segment(&mut blocks, 3, 0..40_000);
    let table = segment.table(EQUALITY).unwrap();
    let all: Vec<Posting> =
        model.iter().filter(|(table, _)| *table == EQUALITY).map(|(_, posting)| *posting).collect();
    for (width, step) in [(1, 1 << 30), (1 << 33, 1 << 33), (1 << 36, 1 << 38), (1 << 39, 1 << 39)]
    {
        let counted = CountedBlocks { blocks: &blocks, read: RefCell::default() };
        let mut cursor = Cursor::new(&counted, segment.number, table);
        let ranges = (0..(1_u64 << 40) / step).map(|at| at * step..=at * step + (width - 1));
        let keys_of_many = (1..64).map(|key| key << 40..=key << 40);
        for keys in ranges.chain(keys_of_many) {
            let mut found = Vec::new();
            let each = |block: &Block, range: std::ops::Range<usize>| {
                found.extend(range.map(|at| block.get(at)));
            };
            cursor.postings_of(keys.clone(), each).unwrap();
            let from = all.partition_point(|posting| posting.key < *keys.start());
            let to = all.partition_point(|posting| posting.key <= *keys.end());
            assert_eq!(found, all[from..to], "{keys:?}");
        }
        let read = counted.read.into_inner();
        assert!(read.len() > 2 && read.values().all(|times| *times == 1), "{read:?}");
    }
}

#[test]
fn titles_of_which_very_many_share_their_first_bits_cost_some_blocks_and_equal_ones_are_found() {
    let mut blocks = MemoryBlocks::default();
    // Each has the first 16 bits of all others, and of its next 16 bits one of eight values.
    let fingerprint = |content: u64| 0xABCD << 48 | (content % 8) << 32 | mix(content) >> 32;
    let contents = 60_000;
    let postings = |table| {
        let posting = |content| Posting { key: fingerprint(content), content };
        (0..contents).map(move |content| (table, posting(content)))
    };
    let (title, text) = (near_table(Field::Title, 0), near_table(Field::Content, 0));
    let (segment, written) =
        Segment::of(1, contents, postings(text).chain(postings(title)).collect());
    blocks.keep(written);
    let ask = |field, content| {
        let fingerprint = Fingerprint(fingerprint(content));
        let mut asks: Vec<Ask> =
            Ask::near(Key::Near, Nearby { field, fingerprint, k: 3 }, 0).collect();
        asks.retain(|ask| ask.table == title || ask.table == text);
        let counted = CountedBlocks { blocks: &blocks, read: RefCell::default() };
        let segments = std::slice::from_ref(&segment);
        let found = found_by(&SegmentPostings { segments, blocks: &counted }, &asks);
        (found, counted.read.into_inner().len())
    };
    for content in [0, 7, 23_456, contents - 1] {
        let (all, read) = ask(Field::Content, content);
        assert!(read > 80, "{read} blocks of texts");
        let (some, read) = ask(Field::Title, content);
        assert!(read < 20, "{read} blocks of titles");
        assert!(some.contains(&(0, 0, content)), "the same title");
        assert!(some.is_subset(&all), "{content}");
    }
}

#[test]
fn filters_keep_no_fingerprint_out_that_is_near_and_most_of_the_others() {
    let mut blocks = MemoryBlocks::default();
    let contents = 40_000;
    let rotated = |content: u64| {
        (0..ROTATIONS).map(move |rotation| {
            let key = mix(content).rotate_left(16 * u32::from(rotation));
            (near_table(Field::Content, rotation), Posting { key, content })
        })
    };
    let (segment, written) = Segment::of(1, contents, (0..contents).flat_map(rotated).collect());
    blocks.keep(written);
    assert!(segment.tables.iter().all(|table| table.filters == 64), "{segment:?}");
    let ask = |fingerprint, k| {
        let asked = Nearby { field: Field::Content, fingerprint: Fingerprint(fingerprint), k };
        let mut asks: Vec<Ask> = Ask::near(Key::Near, asked, 0).collect();
        asks.sort_unstable();
        let counted = CountedBlocks { blocks: &blocks, read: RefCell::default() };
        let segments = std::slice::from_ref(&segment);
        let found = found_by(&SegmentPostings { segments, blocks: &counted }, &asks);
        let leaves = counted.read.into_inner().into_keys().filter(|id| id.level == 0).count();
        (found, leaves, asks.len())
    };
    for n in 0..600 {
        let (content, k) = (mix(n) % contents, (n % 6) as u32);
        let flips = (0..k).fold(0, |flips, bit| flips | 1 << (mix(n * 8 + u64::from(bit)) % 64));
        let (found, ..) = ask(mix(content) ^ flips, k);
        assert!(found.contains(&(0, flips.count_ones(), content)), "{k} bits: {flips:x}");
    }
    let (mut read, mut asked) = (0, 0);
    for n in contents..contents + 500 {
        let (_, leaves, asks) = ask(mix(n), 3);
        (read, asked) = (read + leaves, asked + asks);
    }
    assert!(asked == 2_000 && read < 200, "{read} blocks of {asked}");
}

#[test]
fn fingerprints_with_the_same_first_bits_are_merged_in_steps_however_many_they_are() {
    let mut blocks = MemoryBlocks::default();
    // Three quarters have the same first bits.
    let key = |content: u64| {
        let spread = mix(content);
        if content.is_multiple_of(4) { spread } else { 0x4321 << 48 | spread >> 16 }
    };
    let mut inputs = Vec::new();
    for (number, contents) in (0..).zip([0..30_000, 30_000..42_000]) {
        let postings = contents.clone().map(|content| (0, Posting { key: key(content), content }));
        let (segment, written) =
            Segment::of(number, contents.end - contents.start, postings.collect());
        blocks.keep(written);
        inputs.push(segment);
    }
    let mut state =
        Merge::begin(&blocks, inputs.clone(), Segment::new(9, 0), true).unwrap().state();
    let (mut most, mut steps) = (0, 0);
    let segment = loop {
        let mut merge = Merge::resume(&blocks, &inputs, state).unwrap();
        let step = merge.step(&blocks, 8).unwrap();
        blocks.keep(step.written);
        (most, steps) = (most.max(step.postings), steps + 1);
        if let Some(done) = step.done {
            break done;
        }
        state = merge.state();
    };
    assert!(steps > 5 && most < 12_000, "{steps} steps of up to {most}");
    assert_eq!(all_of(&blocks, &segment).len(), 42_000);
    let filters = blocks.0.keys().filter(|id| id.segment == 9 && id.level == FILTERS);
    assert_eq!(filters.count() as u32, segment.tables[0].filters);
    let may_be = |fingerprint| {
        let asked = Nearby { field: Field::Content, fingerprint: Fingerprint(fingerprint), k: 3 };
        let ask = Ask::near(Key::Near, asked, 0).next().unwrap();
        segment.tables[0].may_be_near(&blocks, 9, ask).unwrap()
    };
    assert!((0..42_000).step_by(11).all(|content| may_be(key(content))), "each is there");
    assert!(may_be(0x4321 << 48 | 0xABCD), "of so many that are alike it tells nothing");
    let others = (50_000..51_000).filter(|n| may_be(mix(*n))).count();
    assert!(others < 100, "{others} of 1,000");
}

#[test]
fn a_table_of_fingerprints_that_was_begun_without_filters_ends_without_them() {
    let mut blocks = MemoryBlocks::default();
    let (one, first) = segment(&mut blocks, 1, 0..9_000);
    let (two, second) = segment(&mut blocks, 2, 9_000..18_000);
    let inputs = vec![one, two];
    let mut merge = Merge::begin(&blocks, inputs.clone(), Segment::new(9, 1), true).unwrap();
    let step = merge.step(&blocks, 8).unwrap();
    blocks.keep(step.written.into_iter().filter(|(id, _)| id.level != FILTERS).collect());
    let mut state = merge.state();
    let tree = state.current.as_mut().and_then(|current| current.tree.as_mut()).unwrap();
    assert!(tree.filter > 0 && tree.postings > 1_000, "{tree:?}");
    tree.filter = 0;
    let mut merge = Merge::resume(&blocks, &inputs, state).unwrap();
    let segment = loop {
        let step = merge.step(&blocks, 8).unwrap();
        blocks.keep(step.written);
        if let Some(done) = step.done {
            break done;
        }
    };
    let filters: Vec<bool> = segment.tables.iter().map(|table| table.filters > 0).collect();
    assert_eq!(filters, [false, true, true]);
    assert_eq!(all_of(&blocks, &segment), merged(&[&first, &second], &HashSet::new()));
}

/// Counts how often each block is read.
struct CountedBlocks<'a> {
    blocks: &'a MemoryBlocks,
    read: RefCell<BTreeMap<BlockId, u32>>,
}

impl Blocks for CountedBlocks<'_> {
    type Error = BadBlock;

    fn block(&self, id: BlockId) -> Result<Arc<Block>, BadBlock> {
        *self.read.borrow_mut().entry(id).or_default() += 1;
        self.blocks.block(id)
    }

    fn passes(&self, filter: BlockId, key: u64) -> Result<bool, BadBlock> {
        self.blocks.passes(filter, key)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn segments_that_become_one_have_what_they_had(
        sizes in prop::collection::vec(0u64..3_000, 1..5),
        gone in prop::collection::hash_set(0u64..6_000, 0..50),
        forgets in any::<bool>(),
        blocks_max in 1usize..20,
    ) {
        let mut blocks = MemoryBlocks::default();
        let (mut inputs, mut models, mut next) = (Vec::new(), Vec::new(), 0);
        for (number, size) in (0..).zip(sizes) {
            let (segment, model) = segment(&mut blocks, number, next..next + size);
            inputs.push(segment);
            models.push(model);
            next += size;
        }
        let tombs: Vec<(u8, Posting)> =
            gone.iter().map(|content| (GONE, Posting { key: *content, content: 0 })).collect();
        let (last, written) = Segment::of(99, 0, tombs.clone());
        blocks.keep(written);
        inputs.push(last);
        let mut merge = Merge::begin(&blocks, inputs, Segment::new(100, 0), forgets).unwrap();
        let done = loop {
            let step = merge.step(&blocks, blocks_max).unwrap();
            blocks.keep(step.written);
            if let Some(done) = step.done {
                break done;
            }
        };
        let mut model = merged(&models.iter().collect::<Vec<_>>(), &gone);
        if !forgets {
            model.extend(tombs);
        }
        prop_assert_eq!(all_of(&blocks, &done), model);
        prop_assert_eq!(done.contents, next);
    }
}
