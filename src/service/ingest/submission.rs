//! What is sent: the fields of an article, checked and fingerprinted.

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::Receipt;
use crate::base::units::Size;
use crate::corpus::clusters::Article;
use crate::corpus::documents::{Facts, nid_name};
use crate::neardup;
use crate::page::language_of;
use crate::text::features::{ArticleField, Fingerprinter, Input};
use crate::urls::{Normalize, PageUrl};
use crate::web::robots::meta::Terms;

/// Most bytes of an `nid`, a URL or a short field.
const NAME_BYTES_MAX: usize = 2_048;

/// Most bytes of a title.
const TITLE_BYTES_MAX: usize = 8_192;

/// What an article may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArticleLimits {
    /// Most bytes of a text.
    pub content_size_max: Size,
}

impl Default for ArticleLimits {
    fn default() -> Self {
        Self { content_size_max: Size::from_mib(4) }
    }
}

/// An article as it is sent. Numbers may be numbers or texts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Submission {
    /// The sender's identifier of it; without one, its URL.
    #[serde(deserialize_with = "text")]
    pub nid: String,
    /// Its URL.
    #[serde(deserialize_with = "text")]
    pub url: String,
    /// Title.
    #[serde(deserialize_with = "text")]
    pub title: String,
    /// Text.
    #[serde(deserialize_with = "text", alias = "text")]
    pub content: String,
    /// The sender's category.
    #[serde(deserialize_with = "text")]
    pub category: String,
    /// Who publishes it.
    #[serde(deserialize_with = "text")]
    pub media: String,
    /// Images in it.
    #[serde(deserialize_with = "number")]
    pub image_count: Option<u64>,
    /// How popular this copy is: the document keeps the text of the most popular one.
    #[serde(deserialize_with = "number")]
    pub popularity: Option<u64>,
    /// Language (ISO 639-1); without one it is guessed.
    #[serde(deserialize_with = "text")]
    pub language: String,
    /// Author.
    #[serde(deserialize_with = "text")]
    pub author: String,
    /// When it was published: ISO 8601.
    #[serde(deserialize_with = "text")]
    pub published: String,
}

/// What is wrong with an article.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// Neither identifier nor URL.
    #[error("the article has neither `nid` nor `url`")]
    Nameless,
    /// Neither title nor text.
    #[error("the article has neither `title` nor `content`")]
    Empty,
    /// A field is too long.
    #[error("`{field}` has {bytes} bytes, more than the {most} that are allowed")]
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// What is allowed.
        most: usize,
    },
    /// The URL is none.
    #[error("`url` is no web address: {0}")]
    Url(String),
}

/// An article that is ready to be stored, or that is known already.
#[derive(Debug, Clone)]
pub struct Prepared(pub(super) Ready);

#[derive(Debug, Clone)]
pub(super) enum Ready {
    /// What it got when it was sent before.
    Known {
        receipt: Receipt,
        /// That it came again is to be noted.
        stale: bool,
    },
    Unknown(Box<Fingerprinted>),
}

/// An article that is fingerprinted.
#[derive(Debug, Clone)]
pub(super) struct Fingerprinted {
    pub nid: String,
    /// What it is known by.
    pub name: String,
    /// Its URL in normal form; empty if it has none.
    pub url: String,
    pub article: Article,
}

/// An article that may be stored.
pub(super) struct Checked {
    pub nid: String,
    /// What it is known by.
    pub name: String,
    /// Its URL in normal form; empty if it has none.
    url: String,
    submission: Submission,
}

impl Submission {
    /// Tells whether the article may be stored. It costs next to nothing.
    pub(super) fn check(self, rules: &Normalize, limits: &ArticleLimits) -> Result<Checked, Bad> {
        if self.nid.is_empty() && self.url.is_empty() {
            return Err(Bad::Nameless);
        }
        if self.title.trim().is_empty() && self.content.trim().is_empty() {
            return Err(Bad::Empty);
        }
        for (field, value, most) in [
            ("nid", &self.nid, NAME_BYTES_MAX),
            ("url", &self.url, NAME_BYTES_MAX),
            ("title", &self.title, TITLE_BYTES_MAX),
            ("content", &self.content, limits.content_size_max.bytes()),
            ("category", &self.category, NAME_BYTES_MAX),
            ("media", &self.media, NAME_BYTES_MAX),
            ("language", &self.language, NAME_BYTES_MAX),
            ("author", &self.author, NAME_BYTES_MAX),
            ("published", &self.published, NAME_BYTES_MAX),
        ] {
            if value.len() > most {
                return Err(Bad::TooLong { field, bytes: value.len(), most });
            }
        }
        let url = match self.url.as_str() {
            "" => None,
            text => Some(
                PageUrl::parse_with(text, rules).map_err(|error| Bad::Url(error.to_string()))?,
            ),
        };
        let url = url.map_or(String::new(), |url| url.to_string());
        let (nid, name) = match self.nid.as_str() {
            "" => (url.clone(), url.clone()),
            // It is named by its URL, as without a name.
            nid if nid == self.url || nid == url => (nid.to_owned(), url.clone()),
            nid => (nid.to_owned(), nid_name(nid)),
        };
        Ok(Checked { nid, name, url, submission: self })
    }
}

impl Checked {
    pub(super) fn prepare(self, fingerprinter: &Fingerprinter) -> Fingerprinted {
        let Self { nid, name, url, submission } = self;
        let language = match submission.language {
            given if !given.is_empty() => given,
            _ => language_of(&submission.content).unwrap_or_default(),
        };
        // A title alone is an article too: a headline.
        let has_text = !submission.content.trim().is_empty();
        let text = if has_text { submission.content } else { submission.title.clone() };
        let fields = [
            ArticleField { name: "category", value: &submission.category },
            ArticleField { name: "media", value: &submission.media },
        ];
        let keys = neardup::article_keys(
            fingerprinter,
            &Input {
                title: &submission.title,
                text: &text,
                language: &language,
                url: &url,
                fields: &fields,
            },
        );
        let article = Article {
            address: if url.is_empty() { name.clone() } else { url.clone() },
            title: submission.title,
            text,
            language,
            facts: Facts {
                author: submission.author,
                published: submission.published,
                site: submission.media,
                category: submission.category,
                images: submission.image_count.unwrap_or(0),
                ..Facts::default()
            },
            left_out: 0,
            score: submission.popularity,
            terms: Terms::default(),
            declared: String::new(),
            keys,
        };
        Fingerprinted { nid, name, url, article }
    }
}

/// A text; a number is taken as it is written, null as nothing.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct AnyText;
    impl Visitor<'_> for AnyText {
        type Value = String;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_string<E: de::Error>(self, text: String) -> Result<String, E> {
            Ok(text)
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_unit<E: de::Error>(self) -> Result<String, E> {
            Ok(String::new())
        }
    }
    from.deserialize_any(AnyText)
}

/// A count, as a number or as a text; null and an empty text are none.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    struct AnyNumber;
    impl Visitor<'_> for AnyNumber {
        type Value = Option<u64>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a whole number that is not negative")
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<u64>, E> {
            Ok(Some(number))
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<u64>, E> {
            let bad = || E::invalid_value(de::Unexpected::Signed(number), &self);
            u64::try_from(number).map(Some).map_err(|_| bad())
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<u64>, E> {
            match text.trim() {
                "" => Ok(None),
                digits => {
                    let bad = || E::invalid_value(de::Unexpected::Str(text), &self);
                    digits.parse().map(Some).map_err(|_| bad())
                }
            }
        }

        fn visit_unit<E: de::Error>(self) -> Result<Option<u64>, E> {
            Ok(None)
        }
    }
    from.deserialize_any(AnyNumber)
}
