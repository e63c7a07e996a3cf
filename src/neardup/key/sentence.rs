//! Texts that share one of their longest sentences.

use super::{KeyKind, KeyMaker, KeySearch};
use crate::neardup::segment::spread;

pub(super) const KIND: KeyKind = KeyKind {
    word: "long_sentence",
    english: "long sentences",
    chinese: "长句相同",
    search: Some(KeySearch {
        asked: |config| config.sentences,
        votes: 3,
        of_title: false,
        weak: false,
        made: KeyMaker::Equal(|_, keys| {
            keys.text.sentences.iter().map(|hash| spread(*hash)).collect()
        }),
    }),
};
