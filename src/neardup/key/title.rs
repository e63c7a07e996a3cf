//! Titles that are near each other.

use super::{KeyKind, KeyMaker, KeySearch};
use crate::neardup::Field;

/// Largest distance of titles: they are short, so that a few more bits are another title.
const TITLE_K: u32 = 3;

pub(super) const KIND: KeyKind = KeyKind {
    word: "near_title",
    english: "similar title",
    chinese: "标题相似",
    search: Some(KeySearch {
        asked: |config| config.titles,
        votes: 2,
        of_title: true,
        weak: false,
        made: KeyMaker::Near { field: Field::Title, of: |keys| keys.title, k_max: TITLE_K },
    }),
};
