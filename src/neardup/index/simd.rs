//! The inner loops of the layouts, and of blocks of the store, in three versions chosen at run
//! time: AVX-512 with `VPOPCNTDQ`, AVX2 with `POPCNT`, and plain Rust for every other processor.
//!
//! The only module with `unsafe` code: wide loads and calls of functions that need instructions
//! which the build target does not promise. Plain Rust is several times slower.
#![allow(unsafe_code, reason = "vector instructions, checked at run time; see the module text")]
#![allow(clippy::inline_always, reason = "a loop takes the instructions of what it is inlined in")]

use super::packed::{PackedTable, Span};

/// Instructions that this processor has: other values cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Which);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Portable,
    /// AVX2 and `POPCNT`.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with `VPOPCNTDQ`: 16 rows of a table or 8 fingerprints at once.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Returns what this processor can do, from plain Rust to the best.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self(Which::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vpopcntdq");
            levels.extend(avx2.then_some(Self(Which::Avx2)));
            levels.extend((avx2 && avx512).then_some(Self(Which::Avx512)));
        }
        levels
    }
}

impl Default for Level {
    /// The best of [`Level::available`].
    fn default() -> Self {
        *Self::available().last().expect("plain Rust is always there")
    }
}

/// Look-up of one key of one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    /// Table, 0 to 3.
    pub(super) table: u8,
    /// Bits by which the key differs from that of the query.
    pub(super) flips: u16,
}

/// What a sweep goes over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub(super) tables: &'a [PackedTable; 4],
    /// Look-ups of each query.
    pub(super) probes: &'a [Probe],
    pub(super) queries: &'a [u64],
    /// Bits that may differ.
    pub(super) k: u32,
}

/// A row near a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowHit {
    /// Place of the query.
    pub(super) query: usize,
    /// What led to the row.
    pub(super) probe: Probe,
    /// Row of the table of the probe.
    pub(super) row: usize,
}

/// What the rows of one bucket are compared with.
#[derive(Debug, Clone, Copy)]
struct Aim {
    low: u32,
    mid: u16,
    limit: u32,
}

/// Calls `hit` with the place of each of `words` within `k` bits of `query`, in order.
pub fn near(level: Level, words: &[u64], query: u64, k: u32, hit: &mut dyn FnMut(usize)) {
    match level.0 {
        Which::Portable => near_plain(words, query, k, hit),
        // SAFETY: a level is made only where the processor has its instructions.
        #[cfg(target_arch = "x86_64")]
        Which::Avx2 => unsafe { x86::near_avx2(words, query, k, hit) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Which::Avx512 => unsafe { x86::near_avx512(words, query, k, hit) },
    }
}

/// Calls `hit` with each row within `k` bits of a query that its probes reach. Several tables may
/// reach the same fingerprint.
pub(super) fn sweep(level: Level, sweep: Sweep<'_>, hit: &mut dyn FnMut(RowHit)) {
    match level.0 {
        Which::Portable => sweep_with(sweep, hit, bucket_plain),
        // SAFETY: a level is made only where the processor has its instructions.
        #[cfg(target_arch = "x86_64")]
        Which::Avx2 => unsafe { x86::sweep_avx2(sweep, hit) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Which::Avx512 => unsafe { x86::sweep_avx512(sweep, hit) },
    }
}

/// Fingerprints that are compared before the first look at the outcome: the inner loop has no
/// branch, so that the compiler makes vector code of it.
const STRIDE: usize = 32;

#[inline(always)]
fn near_plain(words: &[u64], query: u64, k: u32, hit: &mut dyn FnMut(usize)) {
    for (chunk, words) in words.chunks(STRIDE).enumerate() {
        let nearest = words.iter().fold(64, |least, word| least.min((word ^ query).count_ones()));
        if nearest > k {
            continue;
        }
        for (at, word) in words.iter().enumerate() {
            if (word ^ query).count_ones() <= k {
                hit(chunk * STRIDE + at);
            }
        }
    }
}

/// Buckets that are asked from memory before the first of them is read.
const AHEAD: usize = 16;

/// Cache lines of every bucket that are asked for, without a branch that could go wrong.
const LINES_MIN: usize = 4;

/// Cache lines of a large bucket that are asked for; the processor goes on by itself.
const LINES_MAX: usize = 16;

#[inline(always)]
fn sweep_with(
    sweep: Sweep<'_>,
    hit: &mut dyn FnMut(RowHit),
    bucket: impl Fn(&[u16], Aim, &mut dyn FnMut(usize)),
) {
    let Sweep { tables, probes, queries, k } = sweep;
    let all = queries.iter().enumerate();
    let mut jobs =
        all.flat_map(|(query, word)| probes.iter().map(move |probe| (query, *word, probe)));
    loop {
        let mut group = [(0, 0, Probe { table: 0, flips: 0 }, Span::default()); AHEAD];
        let mut count = 0;
        for (place, (query, word, probe)) in group.iter_mut().zip(&mut jobs) {
            let table = usize::from(probe.table & 3);
            let turned = word.rotate_left(16 * table as u32);
            let span = tables[table].span((turned >> 48) as u16 ^ probe.flips);
            prefetch(tables[table].bucket(span));
            *place = (query, turned, *probe, span);
            count += 1;
        }
        for (query, turned, probe, span) in &group[..count] {
            let (low, mid) = (*turned as u32, (turned >> 32) as u16);
            let aim = Aim { low, mid, limit: k - probe.flips.count_ones() };
            let rows = tables[usize::from(probe.table & 3)].bucket(*span);
            bucket(rows, aim, &mut |row| {
                hit(RowHit { query: *query, probe: *probe, row: span.first + row });
            });
        }
        if count < AHEAD {
            return;
        }
    }
}

#[inline(always)]
fn prefetch(rows: &[u16]) {
    let lines = (rows.len() / 32 + 1).clamp(LINES_MIN, LINES_MAX);
    (0..lines).for_each(|line| prefetch_line(rows.as_ptr().wrapping_add(32 * line)));
}

/// Has memory come nearer that is read soon: of many places that are asked for one behind the
/// other, all are waited for at the same time.
#[inline(always)]
pub fn prefetch_line<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64 processor, reads nothing, and takes any
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    let _ = place;
}

#[inline(always)]
fn bucket_plain(rows: &[u16], aim: Aim, hit: &mut dyn FnMut(usize)) {
    let (lows, mids) = rows.split_at(rows.len() / 3 * 2);
    let query = u64::from(aim.mid) << 32 | u64::from(aim.low);
    for (row, (low, mid)) in lows.chunks_exact(2).zip(mids).enumerate() {
        let word = u64::from(*mid) << 32 | u64::from(low[1]) << 16 | u64::from(low[0]);
        if (word ^ query).count_ones() <= aim.limit {
            hit(row);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __mmask8, __mmask16, _mm256_maskz_loadu_epi16, _mm512_add_epi32, _mm512_cmple_epu64_mask,
        _mm512_cvtepu16_epi32, _mm512_loadu_epi64, _mm512_mask_cmple_epu32_mask,
        _mm512_mask_cmple_epu64_mask, _mm512_maskz_loadu_epi32, _mm512_maskz_loadu_epi64,
        _mm512_popcnt_epi32, _mm512_popcnt_epi64, _mm512_set1_epi32, _mm512_set1_epi64,
        _mm512_xor_si512,
    };

    use super::{Aim, RowHit, Sweep, bucket_plain, near_plain, sweep_with};

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn near_avx2(words: &[u64], query: u64, k: u32, hit: &mut dyn FnMut(usize)) {
        near_plain(words, query, k, hit);
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn sweep_avx2(sweep: Sweep<'_>, hit: &mut dyn FnMut(RowHit)) {
        sweep_with(sweep, hit, |rows, aim, hit| bucket_plain(rows, aim, hit));
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,avx2,popcnt")]
    pub(super) fn sweep_avx512(sweep: Sweep<'_>, hit: &mut dyn FnMut(RowHit)) {
        sweep_with(sweep, hit, |rows, aim, hit| bucket_avx512(rows, aim, hit));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
    fn bucket_avx512(rows: &[u16], aim: Aim, hit: &mut dyn FnMut(usize)) {
        let count = rows.len() / 3;
        let (lows, mids) = rows.split_at(2 * count);
        let low = _mm512_set1_epi32(aim.low.cast_signed());
        let mid = _mm512_set1_epi32(i32::from(aim.mid));
        let limit = _mm512_set1_epi32(aim.limit.cast_signed());
        let sixteen = |first: usize, some: __mmask16| {
            // SAFETY: the mask lets nothing be read behind row `count`; loads need no alignment.
            let (low_rows, mid_rows) = unsafe {
                (
                    _mm512_maskz_loadu_epi32(some, lows.as_ptr().wrapping_add(2 * first).cast()),
                    _mm256_maskz_loadu_epi16(some, mids.as_ptr().wrapping_add(first).cast()),
                )
            };
            let bits = _mm512_add_epi32(
                _mm512_popcnt_epi32(_mm512_xor_si512(low_rows, low)),
                _mm512_popcnt_epi32(_mm512_xor_si512(_mm512_cvtepu16_epi32(mid_rows), mid)),
            );
            u64::from(_mm512_mask_cmple_epu32_mask(some, bits, limit))
        };
        // Wide steps: the number of steps is then nearly the same for all buckets of an index,
        // and a branch that is not foreseen costs more than empty lanes.
        if count <= 32 {
            let some = u64::MAX.unbounded_shr(64 - count as u32);
            let hits = sixteen(0, some as u16) | sixteen(16, (some >> 16) as u16) << 16;
            report(hits, 0, hit);
            return;
        }
        for first in (0..count).step_by(64) {
            let some = u64::MAX.unbounded_shr(64 - (count - first).min(64) as u32);
            let hits = sixteen(first, some as u16)
                | sixteen(first + 16, (some >> 16) as u16) << 16
                | sixteen(first + 32, (some >> 32) as u16) << 32
                | sixteen(first + 48, (some >> 48) as u16) << 48;
            report(hits, first, hit);
        }
    }

    #[inline(always)]
    fn report(mut hits: u64, first: usize, hit: &mut dyn FnMut(usize)) {
        while hits != 0 {
            hit(first + hits.trailing_zeros() as usize);
            hits &= hits - 1;
        }
    }

    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub(super) fn near_avx512(words: &[u64], query: u64, k: u32, hit: &mut dyn FnMut(usize)) {
        let limit = _mm512_set1_epi64(i64::from(k));
        let word = _mm512_set1_epi64(query.cast_signed());
        let (wide, rest) = words.as_chunks::<32>();
        for (chunk, words) in wide.iter().enumerate() {
            let mut hits = 0u32;
            for part in 0..4 {
                // SAFETY: a chunk has 32 words, 8 for each part; loads need no alignment.
                let some = unsafe { _mm512_loadu_epi64(words.as_ptr().add(8 * part).cast()) };
                let bits = _mm512_popcnt_epi64(_mm512_xor_si512(some, word));
                hits |= u32::from(_mm512_cmple_epu64_mask(bits, limit)) << (8 * part);
            }
            report(hits.into(), 32 * chunk, hit);
        }
        for (chunk, words) in rest.chunks(8).enumerate() {
            let some: __mmask8 = 0xFF >> (8 - words.len());
            // SAFETY: the mask lets nothing be read behind the words.
            let loaded = unsafe { _mm512_maskz_loadu_epi64(some, words.as_ptr().cast()) };
            let bits = _mm512_popcnt_epi64(_mm512_xor_si512(loaded, word));
            let hits = _mm512_mask_cmple_epu64_mask(some, bits, limit);
            report(hits.into(), 32 * wide.len() + 8 * chunk, hit);
        }
    }
}
