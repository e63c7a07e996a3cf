//! The kinds of keys. Each is one description, and a line in the list below: its code in the store,
//! its words in output and on the dashboard, and what the index does with it are taken from there.

mod content;
mod sentence;
mod shingles;
mod title;

use super::{Config, Field};
use crate::text::features::{ArticleKeys, Fingerprinter, Input};
use crate::text::simhash::Fingerprint;

/// All that is said of a kind of key.
pub(crate) struct KeyKind {
    /// Its word in output.
    pub word: &'static str,
    /// What people read, in English.
    pub english: &'static str,
    /// The same in Chinese.
    pub chinese: &'static str,
    /// How the index names candidates by it, if it does: the judge must confirm these.
    pub search: Option<KeySearch>,
}

/// How candidates are found by a kind of key.
pub(crate) struct KeySearch {
    /// Tells whether the settings ask for it.
    pub asked: fn(&Config) -> bool,
    /// How much each equal hash, or near fingerprint, speaks for a candidate.
    pub votes: u32,
    /// It is made of the title, not of the text.
    pub of_title: bool,
    /// Other texts have it by chance: alone it makes no candidate unless the ends of the sketches
    /// have more in common as well.
    pub weak: bool,
    /// How it is made of an article.
    pub made: KeyMaker,
}

/// How a kind of key is made of an article, and what makes two of them the same.
#[derive(Clone, Copy)]
pub(crate) enum KeyMaker {
    /// A fingerprint that may differ in `k_max` bits, and in no more than the settings say.
    Near { field: Field, of: fn(&ArticleKeys) -> Option<Fingerprint>, k_max: u32 },
    /// Hashes, made of what is kept of each content.
    Equal(fn(&Config, &ArticleKeys) -> Vec<u64>),
    /// A hash of the normalised text, which is kept with the content. Contents that were stored
    /// before there was this kind have none.
    #[allow(dead_code, reason = "no kind is made so at the moment")]
    Text(fn(&str) -> Option<u32>),
}

/// Declares the kinds, in the order of their codes in the store, so that a new one is the last.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $kind:expr;)*) => {
        /// By which key a copy was recognised.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Key {
            $($(#[$doc])* $name,)*
        }

        impl Key {
            /// All of them, by their codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            pub(crate) fn kind(self) -> &'static KeyKind {
                match self {
                    $(Self::$name => {
                        const KIND: KeyKind = $kind;
                        &KIND
                    })*
                }
            }
        }
    };
}

keys! {
    /// The first copy of its document.
    First = not_searched("first", "first copy", "首个副本");
    /// The normalised main text is the same.
    Exact = not_searched("exact_content", "equal text", "正文完全相同");
    /// The title is near, and the texts confirm it.
    Title = title::KIND;
    /// The main text is near, and the texts confirm it.
    Near = content::KIND;
    /// They share one of their longest sentences, and the texts confirm it.
    Sentence = sentence::KIND;
    /// They share bands of their sketches, and the texts confirm it.
    Shingles = shingles::KIND;
    /// Its document was merged into this one.
    Merged = not_searched("merged", "merged", "合并");
}

/// A kind that the index does not have.
const fn not_searched(word: &'static str, english: &'static str, chinese: &'static str) -> KeyKind {
    KeyKind { word, english, chinese, search: None }
}

impl Key {
    /// Takes back a stored code.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        usize::try_from(code).ok().and_then(|at| Self::ALL.get(at)).copied()
    }

    /// Returns the word for it in output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.kind().word
    }

    /// Returns what people read, in English and in Chinese.
    #[must_use]
    pub fn in_words(self) -> [&'static str; 2] {
        [self.kind().english, self.kind().chinese]
    }

    /// Tells whether it finds duplicates: it is neither that of a first copy nor of a merger.
    #[must_use]
    pub fn finds(self) -> bool {
        self == Self::Exact || self.kind().search.is_some()
    }

    /// Tells whether it is made of the title, not of the text.
    #[must_use]
    pub fn is_of_title(self) -> bool {
        self.kind().search.as_ref().is_some_and(|search| search.of_title)
    }

    /// Returns the kinds that the index has under some settings.
    pub(crate) fn asked(config: &Config) -> impl Iterator<Item = (Self, &'static KeySearch)> {
        let all = Self::ALL.iter().filter_map(|key| Some((*key, key.kind().search.as_ref()?)));
        all.filter(|(_, search)| (search.asked)(config))
    }
}

/// Fingerprints an article, with the hashes of all kinds.
#[must_use]
pub fn article_keys(fingerprinter: &Fingerprinter, input: &Input<'_>) -> ArticleKeys {
    article_keys_in_stages(fingerprinter, input, &mut |_| ())
}

/// Does the same, and says when each stage has ended, by its name: for measuring them.
#[must_use]
pub fn article_keys_in_stages(
    fingerprinter: &Fingerprinter,
    input: &Input<'_>,
    ended: &mut impl FnMut(&'static str),
) -> ArticleKeys {
    let others = |text: &str| {
        let hash = |key: &Key| match key.kind().search.as_ref()?.made {
            KeyMaker::Text(of) => Some((*key as u8, of(text)?)),
            _ => None,
        };
        Key::ALL.iter().filter_map(hash).collect()
    };
    fingerprinter.article_keys_with(input, others, ended)
}
