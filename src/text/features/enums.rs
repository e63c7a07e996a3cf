//! Fields with a fixed set of values, such as a category: features by the lecture's enum hash.

use std::collections::HashMap;
use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

use crate::text::sketch::mix;

use super::{ArticleField, Error, Feature, WEIGHT_MAX, lecture};

/// Most values of an enumeration.
const VALUES_MAX: usize = 65_535;

/// Most enumerations.
const ENUMS_MAX: usize = 64;

/// Values of `language_weight`; all other languages are the value 0.
const LANGUAGES: [&str; 15] =
    ["en", "zh", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "ja", "ko", "ar", "tr", "vi"];

/// A field whose value is a feature: one vote, whatever the length of the text.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enumeration {
    /// Name of the field.
    pub field: String,
    /// Its values in order, numbered from 1. Any other value, and none at all, is the value 0.
    /// Letter case and blanks around a value do not matter.
    pub values: Vec<String>,
    /// Weight of the vote; 0 leaves it out. A word has its count times some 12 in `tfidf`.
    #[serde(default = "one")]
    pub weight: f32,
    /// How a value becomes a hash.
    #[serde(default)]
    pub hash: EnumHash,
}

fn one() -> f32 {
    1.0
}

/// How a value of an enumeration becomes a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnumHash {
    /// The lecture's: the number of the value repeated over all bits ([`lecture::enum_hash`]).
    /// Values are as far apart as can be (one value: 0 and all ones). But all bits vote in step,
    /// so that a large weight fills some buckets of the index and leaves others empty; and one
    /// value more may change the hashes of all others.
    #[default]
    Lecture,
    /// The number of the value and the name of the field, mixed: two values differ in about 32
    /// bits, buckets fill evenly, and a value that is added at the end changes no other.
    Mixed,
}

/// Enumerations that are ready to be asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Enums(Vec<Declared>);

#[derive(Debug, Clone)]
struct Declared {
    field: String,
    /// Number of each value, from 1.
    numbers: HashMap<String, u32>,
    weight: f32,
    hash: EnumHash,
    /// Digest of the values in their order.
    digest: u64,
}

impl Enums {
    /// Checks the enumerations; that of the language is one of them if it has a weight.
    pub(super) fn new(given: &[Enumeration], language_weight: f32) -> Result<Self, Error> {
        let language = Enumeration {
            field: "language".to_owned(),
            values: LANGUAGES.map(str::to_owned).to_vec(),
            weight: language_weight,
            hash: EnumHash::Lecture,
        };
        let language = (language_weight > 0.0).then_some(&language);
        let mut all: Vec<Declared> = Vec::new();
        for one in given.iter().chain(language) {
            let bad = |detail: String| Error::Enum { field: one.field.clone(), detail };
            if all.len() == ENUMS_MAX {
                return Err(bad(format!("it is one more than the {ENUMS_MAX} there may be")));
            }
            if all.iter().any(|other| other.field == one.field) {
                return Err(
                    bad("it is declared twice (`language_weight` declares it, too)".into()),
                );
            }
            all.push(Declared::new(one).map_err(bad)?);
        }
        all.retain(|declared| declared.weight > 0.0);
        Ok(Self(all))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the fields that are asked for.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|declared| declared.field.as_str())
    }

    /// Names everything that moves their votes.
    pub(super) fn name(&self) -> String {
        let mut name = String::new();
        for Declared { field, numbers, weight, hash, digest } in &self.0 {
            let (count, digest) = (numbers.len() + 1, digest >> 32);
            let mixed = if *hash == EnumHash::Mixed { ", mixed" } else { "" };
            let _ = write!(name, ", {field} of {count} ({digest:08x}{mixed}) x {weight}");
        }
        name
    }

    /// Returns the vote of each, by the value that `value_of` has for a field.
    pub(super) fn votes<'a>(
        &self,
        value_of: impl Fn(&str) -> &'a str,
    ) -> impl Iterator<Item = (u64, f32)> {
        self.0.iter().map(move |declared| {
            (declared.hash_of(declared.number(value_of(&declared.field))), declared.weight)
        })
    }

    /// Returns the same as features, which name the field and its value.
    pub(super) fn features<'a>(&self, value_of: impl Fn(&str) -> &'a str) -> Vec<Feature> {
        let votes = self.0.iter().zip(self.votes(&value_of));
        let feature = |(declared, (hash, weight)): (&Declared, (u64, f32))| {
            let value = plain(value_of(&declared.field));
            let value = if declared.numbers.contains_key(&value) { value } else { "other".into() };
            Feature { text: format!("{}={value}", declared.field), hash, weight }
        };
        votes.map(feature).collect()
    }
}

impl Declared {
    fn new(given: &Enumeration) -> Result<Self, String> {
        let Enumeration { field, values, weight, hash } = given;
        if field.is_empty() {
            return Err("it has no name".to_owned());
        }
        if !(0.0..=WEIGHT_MAX).contains(weight) {
            return Err(format!("its weight is {weight}: it must be from 0 to 1,000,000"));
        }
        if values.is_empty() || values.len() > VALUES_MAX {
            let count = values.len();
            return Err(format!("it has {count} values: they must be from 1 to {VALUES_MAX}"));
        }
        let mut numbers = HashMap::with_capacity(values.len());
        let mut joined = String::new();
        for (number, value) in (1..).zip(values) {
            let value = plain(value);
            if value.is_empty() {
                return Err("one of its values is empty".to_owned());
            }
            joined += &value;
            joined.push('\n');
            if let Some(first) = numbers.insert(value, number) {
                return Err(format!("its values {first} and {number} are the same"));
            }
        }
        let digest = xxh3_64(joined.as_bytes());
        Ok(Self { field: field.clone(), numbers, weight: *weight, hash: *hash, digest })
    }

    fn number(&self, value: &str) -> u32 {
        self.numbers.get(&plain(value)).copied().unwrap_or(0)
    }

    fn hash_of(&self, number: u32) -> u64 {
        match self.hash {
            EnumHash::Lecture => lecture::enum_hash(number, self.numbers.len() as u32 + 1),
            EnumHash::Mixed => mix(xxh3_64(self.field.as_bytes()).wrapping_add(number.into())),
        }
    }
}

/// The form in which values are compared.
fn plain(value: &str) -> String {
    value.trim().to_lowercase()
}

/// Returns the value of a field, empty if it is not there.
pub(super) fn value_of<'a>(fields: &[ArticleField<'a>], name: &str) -> &'a str {
    fields.iter().find(|field| field.name == name).map_or("", |field| field.value)
}
