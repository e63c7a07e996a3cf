//! Texts whose fingerprints are near each other.

use super::{KeyKind, KeyMaker, KeySearch};
use crate::neardup::Field;

/// It tells more than a sentence or a band of the sketch.
pub(super) const KIND: KeyKind = KeyKind {
    word: "near_content",
    english: "similar text",
    chinese: "正文相似",
    search: Some(KeySearch {
        asked: |_| true,
        votes: 6,
        of_title: false,
        weak: false,
        made: KeyMaker::Near {
            field: Field::Content,
            of: |keys| Some(keys.text.fingerprint),
            k_max: u32::MAX,
        },
    }),
};
