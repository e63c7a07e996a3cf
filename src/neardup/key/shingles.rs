//! Texts that share bands of the slots of their sketches.

use super::{KeyKind, KeyMaker, KeySearch};

pub(super) const KIND: KeyKind = KeyKind {
    word: "shingles",
    english: "runs of words",
    chinese: "词串相同",
    search: Some(KeySearch {
        asked: |config| config.bands > 0,
        votes: 1,
        of_title: false,
        weak: true,
        made: KeyMaker::Equal(|config, keys| {
            keys.text.sketch.bands(config.bands, config.band_rows).collect()
        }),
    }),
};
