//! The filters of all segments that are asked, in memory within bounds.
//!
//! Each article asks them for each of its keys in each segment, so that they lie where no look-up
//! in a cache is needed. They are read when they are first asked. Where they do not fit, those of
//! some segments are held with fewer columns: of keys that nobody has more pass then, and a block
//! of postings is read in vain.

use std::sync::OnceLock;

use crate::neardup::segment::{
    BlockId, COLUMNS, Filter, Segment, SegmentTable, bits_of, has_fingerprints,
};

/// Of the keys that nobody has, so many pass each column.
const PASSES: f64 = 0.5;

/// The filters of segments.
#[derive(Debug)]
pub(super) struct Filters {
    segments: Vec<SegmentFilters>,
    /// Memory of all, in bytes, when each was asked.
    bytes_max: usize,
}

/// The filters of the fingerprints of a segment, or of its equality keys.
#[derive(Debug)]
struct SegmentFilters {
    segment: u32,
    of_fingerprints: bool,
    tables: Vec<TableFilters>,
    /// Columns that are held.
    columns: u8,
    /// Keys in all of them.
    keys: u64,
    /// Keys that an article asks for.
    asked: f64,
}

#[derive(Debug)]
struct TableFilters {
    table: u8,
    filters: Box<[OnceLock<Filter>]>,
}

/// The filters of a table, and how much of each is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held<'a> {
    pub filters: &'a [OnceLock<Filter>],
    pub columns: u8,
}

impl Filters {
    /// Makes one that takes so many bytes at most.
    pub(super) fn within(bytes_max: usize) -> Self {
        Self { segments: Vec::new(), bytes_max }
    }

    /// Holds the filters of these segments from here on, and no others.
    pub(super) fn follow(&mut self, asked: &[Segment]) {
        let mut held = std::mem::take(&mut self.segments);
        let mut take = |segment: &Segment, of_fingerprints: bool| {
            let is_it = |own: &SegmentFilters| own.is_of(segment.number, of_fingerprints);
            let at = held.iter().position(is_it);
            at.map_or_else(
                || SegmentFilters::of(segment, of_fingerprints),
                |at| held.swap_remove(at),
            )
        };
        let all = asked.iter().flat_map(|segment| [(segment, false), (segment, true)]);
        self.segments = all.map(|(segment, near)| take(segment, near)).collect();
        while self.bytes() > self.bytes_max {
            let wide = self.segments.iter_mut().filter(|one| one.columns > 0 && one.keys > 0);
            let Some(least) = wide.min_by(|a, b| a.harm().total_cmp(&b.harm())) else { return };
            least.narrow();
        }
    }

    /// Returns the filters of a table; none if its segment is not asked, or there is no memory for
    /// any of them.
    pub(super) fn of(&self, id: BlockId) -> Option<Held<'_>> {
        let near = has_fingerprints(id.table);
        let segment = self.segments.iter().find(|segment| segment.is_of(id.segment, near))?;
        let table = segment.tables.iter().find(|table| table.table == id.table)?;
        Some(Held { filters: &table.filters, columns: segment.columns })
    }

    /// Returns the memory that they take when each was asked, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.segments.iter().map(SegmentFilters::bytes).sum()
    }
}

impl SegmentFilters {
    fn of(segment: &Segment, of_fingerprints: bool) -> Self {
        let is_one = |table: &&SegmentTable| {
            table.filters > 0 && has_fingerprints(table.table) == of_fingerprints
        };
        let filtered: Vec<&SegmentTable> = segment.tables.iter().filter(is_one).collect();
        let tables = filtered.iter().map(|table| TableFilters {
            table: table.table,
            filters: (0..table.filters).map(|_| OnceLock::new()).collect(),
        });
        let keys = filtered.iter().map(|table| table.filter_keys()).sum();
        Self {
            segment: segment.number,
            of_fingerprints,
            tables: tables.collect(),
            columns: COLUMNS as u8,
            keys,
            asked: keys as f64 / segment.contents.max(1) as f64,
        }
    }

    fn is_of(&self, segment: u32, of_fingerprints: bool) -> bool {
        self.segment == segment && self.of_fingerprints == of_fingerprints
    }

    fn bytes(&self) -> usize {
        let count: usize = self.tables.iter().map(|table| table.filters.len()).sum();
        let bits = bits_of(self.keys as usize, count, self.columns.into());
        count * size_of::<OnceLock<Filter>>() + bits / 8
    }

    /// Returns how many more blocks an article has read for each byte that is freed with a column.
    fn harm(&self) -> f64 {
        let more = self.blocks(self.columns - 1) - self.blocks(self.columns);
        more / self.keys as f64
    }

    /// Returns how many blocks an article has read that nobody's keys are in, if so many
    /// columns are held.
    fn blocks(&self, columns: u8) -> f64 {
        let passes = PASSES.powi(columns.into());
        if self.of_fingerprints {
            // A rotation is read if one of four keys passes.
            self.asked / 4.0 * (1.0 - (1.0 - passes).powi(4))
        } else {
            self.asked * passes
        }
    }

    fn narrow(&mut self) {
        self.columns -= 1;
        if self.columns == 0 {
            // Not even where they would be held.
            self.tables.clear();
        }
        for filter in self.tables.iter_mut().flat_map(|table| &mut table.filters) {
            if let Some(wide) = filter.take() {
                *filter = OnceLock::from(wide.narrowed(self.columns.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neardup::Key;
    use crate::neardup::segment::{FILTERS, Posting, equality_table};
    use crate::text::sketch::mix;

    const TABLE: u8 = equality_table(Key::Exact);

    fn key(content: u64) -> u64 {
        mix(content) >> 24
    }

    /// A segment with one key of each content, and its filters as they are written.
    fn segment(number: u32, contents: u64) -> (Segment, Vec<Filter>) {
        let postings = (0..contents).map(|content| (TABLE, Posting { key: key(content), content }));
        let (segment, written) = Segment::of(number, contents, postings.collect());
        let written = written.into_iter().filter(|(id, _)| id.level == FILTERS);
        (segment, written.map(|(_, bytes)| Filter::read(&bytes).unwrap()).collect())
    }

    fn held(filters: &Filters, segment: u32) -> Held<'_> {
        filters.of(BlockId::filter(TABLE, segment, 0)).unwrap()
    }

    #[test]
    fn what_is_asked_stays_until_its_segment_goes() {
        let ((first, read), (second, _)) = (segment(1, 7_000), segment(2, 3_000));
        let mut filters = Filters::within(usize::MAX);
        filters.follow(std::slice::from_ref(&first));
        let places = held(&filters, 1).filters;
        assert_eq!(places.len(), read.len());
        places.iter().zip(&read).for_each(|(place, read)| place.set(read.clone()).unwrap());
        filters.follow(&[first, second.clone()]);
        assert_eq!(held(&filters, 1).filters[2].get(), Some(&read[2]));
        assert!(held(&filters, 2).filters[0].get().is_none());
        filters.follow(&[second]);
        assert!(filters.of(BlockId::filter(TABLE, 1, 0)).is_none());
    }

    #[test]
    fn where_memory_is_short_the_largest_segments_lose_columns_first() {
        let ((large, read), (small, _)) = (segment(1, 60_000), segment(2, 3_000));
        let mut filters = Filters::within(usize::MAX);
        filters.follow(&[large.clone(), small.clone()]);
        let all = filters.bytes();
        let places = held(&filters, 1).filters;
        places.iter().zip(&read).for_each(|(place, read)| place.set(read.clone()).unwrap());
        filters.bytes_max = all / 2;
        // The same list is followed again: what is held becomes narrower where it is.
        filters.follow(&[large.clone(), small.clone()]);
        assert!(filters.bytes() <= all / 2);
        assert_eq!((held(&filters, 1).columns, held(&filters, 2).columns), (3, 8));
        let narrow = held(&filters, 1).filters[5].get().unwrap();
        assert_eq!(*narrow, read[5].narrowed(3));
        filters.bytes_max = 0;
        filters.follow(&[large, small]);
        assert_eq!(filters.bytes(), 0);
        assert!([1, 2].iter().all(|one| filters.of(BlockId::filter(TABLE, *one, 0)).is_none()));
    }
}
