//! What texts have in common by chance, and how that is told without reading them.

use crate::text::sketch::{Sketch, equal_slots};

/// Slots at the end of a sketch, where the default bands have no part.
pub(crate) const SKETCH_END: usize = 128;

/// Of them, so many must be equal. One pair of texts in ten thousand million that have a similarity
/// of 0.3 has fewer; of 0.1 14 % have, of 0.05 85 %, of 0.03 99 %.
pub(super) const END_EQUAL_MIN: usize = 10;

/// Returns the end of a sketch, by which texts that share weak keys are compared first.
pub(crate) fn sketch_end(sketch: &Sketch) -> &[u8; SKETCH_END] {
    sketch.slots.last_chunk().expect("a sketch has more slots than its end")
}

/// Tells whether two texts that share weak keys have more in common than chance has it.
pub(crate) fn resembles(one: &Sketch, other: &Sketch) -> bool {
    ends_resemble(sketch_end(one), sketch_end(other))
}

/// Tells the same of the ends of their sketches.
pub(crate) fn ends_resemble(one: &[u8], other: &[u8]) -> bool {
    equal_slots(one, other) >= END_EQUAL_MIN
}
