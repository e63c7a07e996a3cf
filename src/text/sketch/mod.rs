//! One-permutation MinHash of shingles: 256 slots of a byte that tell how alike two texts are, and
//! second bytes of half of them, so that texts which share bands of slots can be found by these: of
//! bands of single bytes, those of a billion texts have thousands in common by chance.
//!
//! Source: Li, Owen, Zhang, "One Permutation Hashing", NIPS 2012; Shrivastava, Li, "Densifying
//! One Permutation Hashing via Rotation", ICML 2014; Li, König, "b-Bit Minwise Hashing", WWW 2010.

/// Slots of a sketch.
pub const SLOTS: usize = 256;

/// Slots, the first ones, of which a second byte is kept.
pub const WIDE_SLOTS: usize = SLOTS / 2;

/// Orders of the wide slots, one after the other cut into bands.
const ORDERS: [[u8; WIDE_SLOTS]; 3] = [order(1), order(2), order(3)];

/// Shuffles the numbers of the wide slots.
///
/// Source: Fisher and Yates, "Statistical tables for biological, agricultural and medical
/// research", 1938, example 12.
const fn order(number: u64) -> [u8; WIDE_SLOTS] {
    let mut order = [0; WIDE_SLOTS];
    let mut at = 0;
    while at < WIDE_SLOTS {
        let other = (mix(number << 32 | at as u64) % (at as u64 + 1)) as usize;
        order[at] = order[other];
        order[other] = at as u8;
        at += 1;
    }
    order
}

/// Slots of which a byte can tell how many are equal, so that many are compared by one instruction.
const COUNTED: usize = 128;

/// Chance that two unlike slots of 8 bits are equal.
const CHANCE: f32 = 1.0 / 256.0;

/// A sketch of a set of shingles. The standard error of the estimated similarity is about 0.03 in
/// the middle of the range, less at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    /// The slots.
    pub slots: Box<[u8; SLOTS]>,
    /// The second bytes of the first ones; none of a text that was stored without them.
    pub seconds: Option<Box<[u8; WIDE_SLOTS]>>,
}

impl Sketch {
    /// Makes the sketch of a set of 64-bit hashes; repeated ones count once. No hashes give a
    /// sketch of zeros.
    #[must_use]
    pub fn of(hashes: impl IntoIterator<Item = u64>) -> Self {
        let slots: [u16; SLOTS] = densify(&least(hashes));
        let seconds = std::array::from_fn(|at| (slots[at] >> 8) as u8);
        Self { slots: Box::new(slots.map(|slot| slot as u8)), seconds: Some(Box::new(seconds)) }
    }

    /// Returns the estimated share of shingles that both texts have among those that either has
    /// (Jaccard), 0 to 1.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> f32 {
        let equal = equal_slots(&*self.slots, &*other.slots);
        let share = equal as f32 / SLOTS as f32;
        ((share - CHANCE) / (1.0 - CHANCE)).max(0.0)
    }

    /// Returns the same estimate from some of the slots only.
    #[must_use]
    pub fn similarity_in(&self, other: &Self, slots: &[bool; SLOTS]) -> f32 {
        let parts = self.slots.chunks(COUNTED).zip(other.slots.chunks(COUNTED));
        let (mut equal, mut all) = (0, 0);
        for ((one, other), slots) in parts.zip(slots.chunks(COUNTED)) {
            let (mut equal_here, mut all_here) = (0_u8, 0_u8);
            for ((a, b), counts) in one.iter().zip(other).zip(slots) {
                all_here += u8::from(*counts);
                equal_here += u8::from(*counts) & u8::from(a == b);
            }
            (equal, all) = (equal + u32::from(equal_here), all + u32::from(all_here));
        }
        let share = equal as f32 / all.max(1) as f32;
        ((share - CHANCE) / (1.0 - CHANCE)).max(0.0)
    }

    /// Takes the marks off slots that are those of another sketch, too.
    pub fn unmark_equal(&self, other: &Self, marked: &mut [bool; SLOTS]) {
        unmark(&self.slots, &other.slots, marked);
    }

    /// Returns the keys, of 40 bits, of `bands` bands of `rows` slots each. Two texts of similarity
    /// `s` share one of them with probability `1 - (1 - s^rows)^bands`, less where slots are in
    /// several bands. At most [`SLOTS`]` / rows` bands.
    ///
    /// Source: Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", section 3.4.
    pub fn bands(&self, bands: usize, rows: usize) -> impl Iterator<Item = u64> {
        (1..).zip(band_slots(bands, rows)).map(|(band, slots)| {
            let slots = slots.iter().map(|slot| usize::from(*slot));
            slots.fold(band, |all, at| mix(all << 16 | self.wide_slot(at))) >> 24
        })
    }

    /// Returns both bytes of a slot, as far as there are two.
    fn wide_slot(&self, at: usize) -> u64 {
        let second = self.seconds.as_ref().and_then(|seconds| seconds.get(at));
        u64::from(second.copied().unwrap_or(0)) << 8 | u64::from(self.slots[at])
    }
}

/// Returns the slots of bands, all of which have two bytes.
///
/// Those of a band lie far from each other: side by side they are often filled from one shingle, so
/// that a band would be no more than that shingle, which very many texts have.
pub(crate) fn band_slots(bands: usize, rows: usize) -> impl Iterator<Item = &'static [u8]> {
    let rows = rows.clamp(1, WIDE_SLOTS);
    let all = ORDERS.iter().flat_map(move |order| order.chunks_exact(rows));
    all.take(bands.min(SLOTS / rows))
}

/// Counts slots that are equal, of 256 in some nanoseconds.
pub(crate) fn equal_slots(one: &[u8], other: &[u8]) -> usize {
    let parts = one.chunks(COUNTED).zip(other.chunks(COUNTED));
    let equal = |(one, other): (&[u8], &[u8])| {
        let pairs = one.iter().zip(other);
        usize::from(pairs.fold(0_u8, |equal, (a, b)| equal + u8::from(a == b)))
    };
    parts.map(equal).sum()
}

/// By itself it is known that no two of the lists are one, and many slots are looked at at a time.
#[inline(never)]
fn unmark(one: &[u8; SLOTS], other: &[u8; SLOTS], marked: &mut [bool; SLOTS]) {
    for ((marked, one), other) in marked.iter_mut().zip(one).zip(other) {
        *marked &= one != other;
    }
}

/// Slots of a sketch of what a page shows.
pub(crate) const SHOWN_SLOTS: usize = 64;

/// A small sketch of everything that a page shows, menus and footers too: whether two pages of one
/// site show different things although their main texts are alike. The standard error of the
/// estimated similarity is about 0.06 in the middle of the range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSketch(pub Box<[u8; SHOWN_SLOTS]>);

impl ShownSketch {
    /// Makes the sketch of a set of 64-bit hashes; repeated ones count once.
    #[must_use]
    pub fn of(hashes: impl IntoIterator<Item = u64>) -> Self {
        let slots: [u16; SHOWN_SLOTS] = densify(&least(hashes));
        Self(Box::new(slots.map(|slot| slot as u8)))
    }

    /// Returns the estimated share of what both show of what either shows, 0 to 1.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> f32 {
        let equal = equal_slots(&*self.0, &*other.0);
        let share = equal as f32 / SHOWN_SLOTS as f32;
        ((share - CHANCE) / (1.0 - CHANCE)).max(0.0)
    }
}

/// Returns the least hash of each slot, without the bits that choose the slot.
fn least<const N: usize>(hashes: impl IntoIterator<Item = u64>) -> [u64; N] {
    let mut least = [u64::MAX; N];
    for hash in hashes {
        // The top bits choose the slot, the others are the value.
        let hash = mix(hash);
        let slot = (hash >> (64 - N.ilog2())) as usize;
        let value = hash & (u64::MAX >> N.ilog2());
        least[slot] = least[slot].min(value);
    }
    least
}

/// Fills each empty slot from the next full one, marked with its distance so that only slots
/// that were filled in the same way can be equal.
fn densify<const N: usize>(least: &[u64; N]) -> [u16; N] {
    let mut slots = [0; N];
    let Some(first) = least.iter().position(|value| *value != u64::MAX) else { return slots };
    // From the end, so that each empty slot is one step further than the one after it.
    let (mut value, mut steps) = (least[first], first as u64);
    for (at, slot) in slots.iter_mut().enumerate().rev() {
        if least[at] == u64::MAX {
            steps += 1;
        } else {
            (value, steps) = (least[at], 0);
        }
        *slot = (mix(value.wrapping_add(steps << 55)) >> 32) as u16;
    }
    slots
}

/// A bijection of 64 bits in which every input bit moves every output bit.
///
/// Source: the finaliser of `MurmurHash3` by Austin Appleby (public domain).
#[must_use]
pub const fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sets of which the second has a share of the first and as many others.
    fn estimate(size: u64, shared: u64) -> f32 {
        let one = Sketch::of(1..=size);
        let other = Sketch::of((size - shared + 1)..=(2 * size - shared));
        one.similarity(&other)
    }

    #[test]
    fn the_estimate_is_near_the_truth_for_small_and_large_sets() {
        for size in [20_u64, 100, 1_000, 50_000] {
            for tenths in [0, 3, 5, 8, 10] {
                let shared = size * tenths / 10;
                let truth = shared as f32 / (2 * size - shared) as f32;
                let found = estimate(size, shared);
                assert!((found - truth).abs() < 0.12, "{size} {tenths}: {found}, not {truth}");
            }
        }
    }

    #[test]
    fn empty_slots_are_filled_from_the_next_full_one() {
        let mut least = [u64::MAX; SLOTS];
        (least[3], least[200]) = (7, 9);
        let slots: [u16; SLOTS] = densify(&least);
        for (at, slot) in slots.iter().enumerate() {
            let (value, steps) = match at {
                0..=3 => (7, 3 - at),
                4..=200 => (9, 200 - at),
                _ => (7, SLOTS - at + 3),
            };
            assert_eq!(*slot, (mix(value + ((steps as u64) << 55)) >> 32) as u16, "{at}");
        }
        assert_eq!(densify(&[u64::MAX; SLOTS]), [0; SLOTS]);
    }

    #[test]
    fn the_mixing_of_bits_is_part_of_the_stored_format() {
        assert_eq!((mix(0), mix(1)), (0, 0xB456_BCFC_34C2_CB2C));
        assert_eq!(mix(u64::MAX), 0x64B5_720B_4B82_5F21);
    }

    #[test]
    fn some_of_the_slots_are_compared_alone() {
        let (one, other) = (Sketch::of(1..500), Sketch::of(250..750));
        let equal: Vec<bool> = one.slots.iter().zip(&*other.slots).map(|(a, b)| a == b).collect();
        let equal: [bool; SLOTS] = equal.try_into().unwrap();
        assert!((one.similarity_in(&other, &equal) - 1.0).abs() < 1e-6);
        assert!(one.similarity_in(&other, &equal.map(|equal| !equal)).abs() < 1e-6);
        let all = one.similarity_in(&other, &[true; SLOTS]);
        assert!((all - one.similarity(&other)).abs() < 1e-6);
        assert!(one.similarity_in(&other, &[false; SLOTS]).abs() < 1e-6);
    }

    #[test]
    fn marks_are_taken_off_equal_slots() {
        let (one, other) = (Sketch::of(1..500), Sketch::of(250..750));
        let mut marked = [true; SLOTS];
        marked[..9].fill(false);
        one.unmark_equal(&other, &mut marked);
        let differ = |at: usize| one.slots[at] != other.slots[at];
        assert_eq!(marked, std::array::from_fn(|at| at >= 9 && differ(at)));
    }

    #[test]
    fn slots_of_any_number_are_counted_as_one_by_one() {
        for slots in [0_usize, 1, 64, 127, 128, 129, 255, 256, 300] {
            for every in [1, 2, 7, 300] {
                let one: Vec<u8> = (0..slots).map(|at| at as u8).collect();
                let other: Vec<u8> =
                    (0..slots).map(|at| at as u8 ^ u8::from(at % every != 0)).collect();
                assert_eq!(equal_slots(&one, &other), slots.div_ceil(every), "{slots} {every}");
            }
        }
    }

    #[test]
    fn equal_slots_in_another_run_are_another_key() {
        let same = Sketch { slots: Box::new([7; SLOTS]), seconds: None };
        let mut keys: Vec<u64> = same.bands(64, 4).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 64);
    }

    #[test]
    fn bands_that_are_equal_by_chance_are_told_apart_by_second_bytes() {
        // 500 sets, of which 125,000 pairs have 42 bands each: of three single bytes, a third of a
        // band is equal by chance; of bands of two, 80.
        let shared = |bare: bool| {
            let keys = (0..500u64).map(|n| {
                let mut sketch = Sketch::of(n * 10_000..n * 10_000 + 500);
                if bare {
                    sketch.seconds = None;
                }
                sketch.bands(42, 2).collect::<Vec<u64>>()
            });
            let mut keys: Vec<u64> = keys.flatten().collect();
            let all = keys.len();
            keys.sort_unstable();
            keys.dedup();
            all - keys.len()
        };
        assert!(shared(true) > 40, "{} by single bytes", shared(true));
        assert!(shared(false) < 3, "{} by both", shared(false));
        // Each slot of a band has both, but for texts that were stored without.
        let one = Sketch::of(1..500);
        let (wide, bare) = (one.clone(), Sketch { seconds: None, ..one });
        assert!(wide.bands(85, 3).zip(bare.bands(85, 3)).all(|(one, other)| one != other));
    }

    #[test]
    fn a_shingle_that_short_texts_have_in_common_is_no_band() {
        // Pairs of 50 shingles each, of which some are the same.
        let share_a_band = |same: u64| {
            let is_shared = |n: &u64| {
                let of = |first: u64| {
                    let own = n * 10_000 + first..n * 10_000 + first + 50 - same;
                    Sketch::of((1..=same).map(|one| n * 10_000 + 9_000 + one).chain(own))
                };
                let (one, other) = (of(0), of(5_000));
                one.bands(42, 3).zip(other.bands(42, 3)).any(|(one, other)| one == other)
            };
            (0..1_000u64).filter(is_shared).count()
        };
        let found = [1, 2, 25, 34].map(share_a_band);
        // As many as chance has it, and nearly all of a similarity of a third and of a half.
        assert!(found[0] <= 1 && found[1] <= 5, "{found:?}");
        assert!(found[2] >= 680 && found[3] >= 950, "{found:?}");
    }

    #[test]
    fn each_slot_is_in_one_band_of_an_order_and_any_number_of_bands_has_as_many_slots() {
        let mut slots: Vec<u8> = band_slots(42, 3).flatten().copied().collect();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 126);
        for rows in [1, 2, 3, 4, 5, 60, 100, 128] {
            let most = SLOTS / rows;
            for bands in [0, 1, most / 2, most, most + 9] {
                let all: Vec<&[u8]> = band_slots(bands, rows).collect();
                assert_eq!(all.len(), bands.min(most), "{bands} bands of {rows}");
                let is_whole = |slots: &&[u8]| {
                    slots.len() == rows && slots.iter().all(|slot| usize::from(*slot) < WIDE_SLOTS)
                };
                assert!(all.iter().all(is_whole));
            }
        }
    }

    #[test]
    fn unlike_sets_are_estimated_at_nothing() {
        // Slots of 8 bits agree by chance once in 256.
        let mean = (0..200u64)
            .map(|n| {
                let sketch = |from: u64| Sketch::of(from..from + 2_000);
                sketch(n * 10_000).similarity(&sketch(n * 10_000 + 5_000))
            })
            .sum::<f32>()
            / 200.0;
        assert!(mean < 0.004, "{mean}");
        let tenth = estimate(11_000, 2_000);
        assert!((tenth - 0.1).abs() < 0.04, "{tenth}");
    }

    #[test]
    fn equal_sketches_share_every_band_and_unlike_ones_none() {
        let (one, other) = (Sketch::of(1..500), Sketch::of(1_000..1_500));
        let keys: Vec<u64> = one.bands(32, 4).collect();
        assert_eq!(keys.len(), 32);
        assert_eq!(keys, Sketch::of(1..500).bands(32, 4).collect::<Vec<_>>());
        assert!(other.bands(32, 4).all(|key| !keys.contains(&key)));
        assert_eq!(one.bands(1_000, 4).count(), SLOTS / 4);
    }
}
