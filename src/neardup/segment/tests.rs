//! Segments against plain sets.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::text::sketch::mix;

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

    let mut merge = Merge::begin(&whole, inputs.clone(), Segment::new(9, 1), true).unwrap();
    let straight = loop {
        let step = merge.step(&whole, 40).unwrap();
        whole.keep(step.written);
        if let Some(done) = step.done {
            break done;
        }
    };
    let mut state = Merge::begin(&parts, inputs.clone(), Segment::new(9, 1), true).unwrap().state();
    let mut steps = 0;
    let interrupted = loop {
        let mut merge = Merge::resume(&parts, &inputs, state).unwrap();
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
