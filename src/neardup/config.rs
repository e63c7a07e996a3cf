//! Settings of the dedup stage, and presets of them.

use std::fmt;
use std::str::FromStr;

use crate::neardup::index::layout::{KTooLarge, LayoutKind};
use crate::neardup::index::rotated::K_MAX;
use crate::text::features;
use crate::text::sketch::SLOTS;

use super::Rule;

/// How duplicates are found, and what makes two texts one document.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// Largest Hamming distance of fingerprints, inclusive.
    pub k: u32,
    /// How fingerprints are indexed.
    pub layout: LayoutKind,
    /// Ask for near titles as well.
    pub titles: bool,
    /// Ask for the longest sentences.
    pub sentences: bool,
    /// Bands of sketch slots that are asked for; 0 for none.
    pub bands: usize,
    /// Slots of a band.
    pub band_rows: usize,
    /// Most trees that are compared with one article.
    pub candidates_max: usize,
    /// What makes two texts one document.
    #[serde(flatten)]
    pub rule: Rule,
    /// How texts become fingerprints.
    pub features: features::Config,
}

impl Default for Config {
    fn default() -> Self {
        Preset::Balanced.config()
    }
}

/// A setting of the dedup stage that cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The layout cannot find so far neighbours.
    #[error(transparent)]
    K(#[from] KTooLarge),
    /// A store cannot find so far neighbours, whatever the layout in memory.
    #[error("k is {0}: fingerprints are found within {K_MAX} bits at most")]
    Distance(u32),
    /// The features cannot be made.
    #[error(transparent)]
    Features(#[from] features::Error),
    /// A share is none.
    #[error("{name} is {value}: it must be from 0 to 1")]
    Share {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f32,
    },
    /// The sketch has too few slots.
    #[error("{bands} bands of {rows} slots are more than the {SLOTS} slots of a sketch")]
    Bands {
        /// Bands asked for.
        bands: usize,
        /// Slots of each.
        rows: usize,
    },
}

impl Config {
    /// Names everything that decides what keys of contents the index of a store has.
    #[must_use]
    pub fn index_name(&self) -> String {
        let Self { titles, sentences, bands, band_rows, .. } = self;
        let words_min = self.rule.words_min;
        format!(
            "titles {titles}, sentences {sentences}, bands {bands} of {band_rows} wide slots far \
             apart, from {words_min} words"
        )
    }

    /// Returns how many contents are read to compare one article at most: a tree may have several,
    /// which must not cost as much as many trees.
    pub(super) fn contents_max(&self) -> usize {
        const CONTENTS_PER_TREE: usize = 4;
        self.candidates_max.saturating_mul(CONTENTS_PER_TREE)
    }

    /// Returns the first setting that cannot be.
    pub fn check(&self) -> Result<(), Error> {
        let slots = self.bands.saturating_mul(self.band_rows);
        if slots > SLOTS || (self.bands > 0 && self.band_rows == 0) {
            return Err(Error::Bands { bands: self.bands, rows: self.band_rows });
        }
        for (name, value) in self.rule.shares() {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::Share { name, value });
            }
        }
        crate::neardup::index::layout::build(self.layout, self.k)?;
        if self.k > K_MAX {
            return Err(Error::Distance(self.k));
        }
        Ok(())
    }
}

/// A set of settings for a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Fingerprints alone, within three bits, as the texts on simhash have it: nothing confirms.
    Seeds,
    /// Joins only what is beyond doubt.
    Strict,
    /// Reprints with edits, cuts and new surroundings are one document; other texts are not.
    #[default]
    Balanced,
    /// Also texts of which every fourth word differs.
    Loose,
}

impl Preset {
    /// All of them, in the order of how much they join, the bare rule of the texts first.
    pub const ALL: [Self; 4] = [Self::Seeds, Self::Strict, Self::Balanced, Self::Loose];

    /// Returns its settings.
    #[must_use]
    pub fn config(self) -> Config {
        let balanced = Config {
            k: 3,
            layout: LayoutKind::Rotated,
            titles: true,
            sentences: true,
            bands: 42,
            band_rows: 3,
            candidates_max: 64,
            rule: Rule::default(),
            features: features::Config::default(),
        };
        match self {
            Self::Balanced => balanced,
            Self::Seeds => Config {
                titles: false,
                sentences: false,
                bands: 0,
                rule: Rule { confirm: false, ..Rule::default() },
                ..balanced
            },
            Self::Strict => Config {
                rule: Rule {
                    similarity_min: 0.65,
                    site_similarity_min: 0.95,
                    abroad_similarity_min: 0.65,
                    titled_similarity_min: 0.6,
                    titled_abroad_similarity_min: 0.6,
                    titled_sure_min: 0.85,
                    containment_min: 0.9,
                    containment_size_min: 0.4,
                    ..Rule::default()
                },
                ..balanced
            },
            Self::Loose => Config {
                bands: 85,
                rule: Rule {
                    similarity_min: 0.28,
                    site_similarity_min: 0.85,
                    abroad_similarity_min: 0.28,
                    titled_similarity_min: 0.25,
                    titled_abroad_similarity_min: 0.2,
                    containment_min: 0.75,
                    ..Rule::default()
                },
                ..balanced
            },
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seeds => "seeds",
            Self::Strict => "strict",
            Self::Balanced => "balanced",
            Self::Loose => "loose",
        })
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|preset| preset.to_string() == name);
        found.ok_or_else(|| format!("`{name}` is none of seeds, strict, balanced, loose"))
    }
}
