//! Which leaves of a tree hang on it by boilerplate alone.

use crate::text::sketch::Sketch;

/// Passes of the second look over all matches that are unsure, while any of them moves.
pub(crate) const LOOKS_MAX: u32 = 3;

/// Loose leaves of one tree from which they are believed to be so.
const LOOSE_MIN: usize = 4;

/// A leaf that is more like the root than this is a reprint with something added, not a page of a
/// site: boilerplate would have to be nearly four times the text.
const LOOSE_SIMILARITY_MAX: f32 = 0.65;

/// Siblings with which a leaf is compared.
const SIBLINGS_MAX: usize = 16;

/// A leaf is loose if what it shares with its siblings is at least this share of what it shares
/// with the root.
const SIBLING_SHARE_MIN: f32 = 0.85;

/// Leaves of other sites that share more than this with each other are copies of one text, and it
/// is the root that differs: pages that share nothing but boilerplate are all alike to one degree.
const SIBLING_SHARE_MAX: f32 = 1.25;

/// Marks the leaves that are no more like their root than like each other.
///
/// Edited copies of one text are more like it than like each other: each has its own edits. Pages
/// of one site that share nothing but its boilerplate are all alike to the same degree. Fewer than
/// four such leaves prove nothing, and none is marked.
///
/// `leaves` are those whose matches are unsure, each with whether it is of the same site as the
/// root: only a site has boilerplate of many times its texts. Cost: at most 16 comparisons a leaf.
#[must_use]
pub fn loose_leaves(root: &Sketch, leaves: &[(&Sketch, bool)]) -> Vec<bool> {
    if leaves.len() < LOOSE_MIN {
        return vec![false; leaves.len()];
    }
    let loose: Vec<bool> = (0..leaves.len())
        .map(|at| {
            let (leaf, one_site) = leaves[at];
            // The next ones in the ring, so that each is compared with some and none with all.
            let siblings = (1..leaves.len()).take(SIBLINGS_MAX);
            let mut alike: Vec<f32> = siblings
                .map(|step| leaf.similarity(leaves[(at + step) % leaves.len()].0))
                .collect();
            alike.sort_unstable_by(f32::total_cmp);
            let to_root = leaf.similarity(root);
            let to_siblings = alike[alike.len() / 2];
            to_siblings >= SIBLING_SHARE_MIN * to_root
                && (one_site
                    || (to_root <= LOOSE_SIMILARITY_MAX
                        && to_siblings <= SIBLING_SHARE_MAX * to_root))
        })
        .collect();
    let enough = loose.iter().filter(|loose| **loose).count() >= LOOSE_MIN;
    loose.into_iter().map(|loose| loose && enough).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_sites<'a>(leaves: &[&'a Sketch], one_site: bool) -> Vec<(&'a Sketch, bool)> {
        leaves.iter().map(|leaf| (*leaf, one_site)).collect()
    }

    fn sketch(parts: &[std::ops::Range<u64>]) -> Sketch {
        Sketch::of(parts.iter().cloned().flatten())
    }

    #[test]
    fn copies_that_are_more_like_each_other_than_an_edited_root_are_not_loose() {
        // The root has lost a part of what all others have.
        let loose = |lost: u64, one_site| {
            let root = sketch(&[lost..4_000, 90_000..90_000 + lost]);
            let copies: Vec<Sketch> = (1..6)
                .map(|n| sketch(&[0..4_000, n * 5_000 + 10_000..n * 5_000 + 10_800]))
                .collect();
            let copies: Vec<&Sketch> = copies.iter().collect();
            loose_leaves(&root, &of_sites(&copies, one_site))
        };
        assert_eq!(loose(1_200, false), [false; 5]);
        assert_eq!(loose(1_200, true), [true; 5]);
        assert_eq!(loose(600, false), [true; 5]);
    }

    #[test]
    fn pages_with_common_boilerplate_are_loose_and_edited_copies_are_not() {
        let pages: Vec<Sketch> =
            (1..6).map(|n| sketch(&[0..2_000, n * 10_000..n * 10_000 + 1_000])).collect();
        let others: Vec<&Sketch> = pages[1..].iter().collect();
        assert_eq!(loose_leaves(&pages[0], &of_sites(&others, false)), [true; 4]);
        assert_eq!(
            loose_leaves(&pages[0], &of_sites(&others[..3], false)),
            [false; 3],
            "three prove nothing"
        );
        // Each copy has lost another quarter of the text and has something of its own.
        let original = Sketch::of(0..4_000);
        let copies: Vec<Sketch> = (0..4)
            .map(|n| {
                sketch(&[
                    0..n * 1_000,
                    (n + 1) * 1_000..4_000,
                    n * 9_999 + 50_000..n * 9_999 + 51_000,
                ])
            })
            .collect();
        let copies: Vec<&Sketch> = copies.iter().collect();
        assert_eq!(loose_leaves(&original, &of_sites(&copies, true)), [false; 4]);
        // They have a twin each, which they are more like than the original.
        let twins: Vec<&Sketch> = copies.iter().chain(&copies).copied().collect();
        assert_eq!(loose_leaves(&original, &of_sites(&twins, true)), [false; 8]);
        // Three loose leaves prove nothing either if others hang beside them.
        let true_copies = [1_500, 1_600].map(|to| sketch(&[0..2_000, 10_000..10_000 + to]));
        let beside: Vec<&Sketch> = others[..3].iter().copied().chain(&true_copies).collect();
        assert_eq!(loose_leaves(&pages[0], &of_sites(&beside, false)), [false; 5]);
        // Reprints that each add an eighth of their own are one document.
        let reprints: Vec<Sketch> =
            (0..5).map(|n| sketch(&[0..2_000, n * 5_000 + 10_000..n * 5_000 + 10_250])).collect();
        let others_of: Vec<&Sketch> = reprints[1..].iter().collect();
        assert_eq!(loose_leaves(&reprints[0], &of_sites(&others_of, false)), [false; 4]);
        // On one site the same are pages of a shop.
        assert_eq!(loose_leaves(&reprints[0], &of_sites(&others_of, true)), [true; 4]);
        // A true copy among pages of the site of its original stays.
        let copy = sketch(&[0..2_000, 10_000..10_900, 70_000..70_200]);
        let mut mixed = others.clone();
        mixed.push(&copy);
        assert_eq!(
            loose_leaves(&pages[0], &of_sites(&mixed, false)),
            [true, true, true, true, false]
        );
    }
}
