//! What is fingerprinted: texts with the fields that belong to them.

use super::enums::value_of;

/// An article before it is fingerprinted. What is not known of it is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Input<'a> {
    /// Title.
    pub title: &'a str,
    /// Main text.
    pub text: &'a str,
    /// Language (ISO 639-1): the field `language`, unless that is given.
    pub language: &'a str,
    /// URL; its host is the field `site`, unless that is given.
    pub url: &'a str,
    /// Further fields. Only those matter that the settings declare.
    pub fields: &'a [ArticleField<'a>],
}

/// A field of an article.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArticleField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: &'a str,
}

/// Fields of the articles of a store.
pub(crate) const ARTICLE_FIELDS: [&str; 4] = ["category", "language", "media", "site"];

impl<'a> Input<'a> {
    /// Returns the value of a field; empty if it is not known.
    pub(super) fn value_of(&self, name: &str) -> &'a str {
        match (value_of(self.fields, name), name) {
            ("", "language") => self.language,
            ("", "site") => host_of(self.url),
            (value, _) => value,
        }
    }
}

/// The host of a URL, without user and port.
fn host_of(address: &str) -> &str {
    let authority = authority_of(address);
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    place.rsplit_once(':').filter(|(_, end)| port(end)).map_or(place, |(host, _)| host)
}

/// The host of a URL with user and port.
pub(super) fn authority_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}
