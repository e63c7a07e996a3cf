//! What the store knows of its index beside its blocks.

use crate::neardup::segment::{MergeState, PausedTable, Posting, Segment, SegmentTable, TreeState};
use crate::store::{Blob, Fixed, Flag, List, Nested, Number, row};

row! {
    /// A segment of the index.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredSegment: "segment", 1 to 1 {
        /// It can be asked; if not, it is not whole yet, or its blocks are being removed.
        pub is_whole: bool = Flag;
        /// Orders segments by when the first of their contents came.
        pub age: u32 = Number;
        /// Contents that were put into it.
        pub contents: u64 = Number;
        /// Its tables.
        pub tables: Vec<StoredTable> = List<Nested>;
    }
}

row! {
    /// A table of a segment.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredTable: part {
        /// Its number.
        pub table: u8 = Number;
        /// Its postings.
        pub postings: u64 = Number;
        /// Level of the block that stands for all.
        pub top: u8 = Number;
        /// Key of the first posting.
        pub key: u64 = Fixed;
        /// Content of the first posting.
        pub content: u64 = Fixed;
        /// Its filters.
        pub filters: u32 = Number;
    }
}

row! {
    /// Segments that are becoming one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredMerge: "merge", 1 to 1 {
        /// Their numbers, oldest first.
        pub inputs: Vec<u32> = List<Number>;
        /// No older segment is left out.
        pub forgets: bool = Flag;
        /// Contents that were put into them.
        pub contents: u64 = Number;
        /// Tables that are done.
        pub tables: Vec<StoredTable> = List<Nested>;
        /// The table that is being written; none between two.
        pub current: Vec<StoredPaused> = List<Nested>;
    }
}

row! {
    /// A table of a segment that is being written.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredPaused: part {
        /// Its number.
        pub table: u8 = Number;
        /// The last posting that was dealt with; none at its start.
        pub after: Vec<StoredPosting> = List<Nested>;
        /// Its first posting; none if it has none yet.
        pub first: Vec<StoredPosting> = List<Nested>;
        /// Its postings so far.
        pub postings: u64 = Number;
        /// Its filters so far.
        pub filter: u32 = Number;
        /// The blocks of all levels that are not full yet.
        pub levels: Vec<Vec<u8>> = List<Blob>;
    }
}

row! {
    /// A key with a content.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct StoredPosting: part {
        /// The key.
        pub key: u64 = Fixed;
        /// Number of the content.
        pub content: u64 = Fixed;
    }
}

impl StoredSegment {
    pub(super) fn of(segment: &Segment, is_whole: bool) -> Self {
        let tables = segment.tables.iter().map(StoredTable::of).collect();
        Self { is_whole, age: segment.age, contents: segment.contents, tables }
    }

    pub(super) fn segment(self, number: u32) -> Segment {
        let tables = self.tables.into_iter().map(StoredTable::table).collect();
        Segment { number, age: self.age, contents: self.contents, tables }
    }
}

impl StoredTable {
    fn of(table: &SegmentTable) -> Self {
        let SegmentTable { table, postings, top, first, filters } = *table;
        Self { table, postings, top, key: first.key, content: first.content, filters }
    }

    fn table(self) -> SegmentTable {
        let Self { table, postings, top, key, content, filters } = self;
        SegmentTable { table, postings, top, first: Posting { key, content }, filters }
    }
}

impl StoredMerge {
    pub(super) fn of(state: &MergeState) -> Self {
        let MergeState { inputs, output, forgets, current } = state;
        Self {
            inputs: inputs.clone(),
            forgets: *forgets,
            contents: output.contents,
            tables: output.tables.iter().map(StoredTable::of).collect(),
            current: current.iter().map(StoredPaused::of).collect(),
        }
    }

    pub(super) fn state(self, output: u32, age: u32) -> MergeState {
        let tables = self.tables.into_iter().map(StoredTable::table).collect();
        let output = Segment { number: output, age, contents: self.contents, tables };
        let current = self.current.into_iter().next().map(StoredPaused::paused);
        MergeState { inputs: self.inputs, output, forgets: self.forgets, current }
    }
}

impl StoredPaused {
    fn of(paused: &PausedTable) -> Self {
        let stored = |posting: Option<Posting>| {
            let stored = posting.map(|Posting { key, content }| StoredPosting { key, content });
            stored.into_iter().collect::<Vec<_>>()
        };
        let tree = paused.tree.as_ref();
        Self {
            table: paused.table,
            after: stored(paused.after),
            first: stored(tree.map(|tree| tree.first)),
            postings: tree.map_or(0, |tree| tree.postings),
            filter: tree.map_or(0, |tree| tree.filter),
            levels: tree.map_or_else(Vec::new, |tree| tree.levels.clone()),
        }
    }

    fn paused(self) -> PausedTable {
        let posting = |stored: Vec<StoredPosting>| {
            let first = stored.into_iter().next();
            first.map(|StoredPosting { key, content }| Posting { key, content })
        };
        let Self { table, after, first, postings, filter, levels } = self;
        let tree = posting(first).map(|first| TreeState { levels, postings, first, filter });
        PausedTable { table, tree, after: posting(after) }
    }
}
