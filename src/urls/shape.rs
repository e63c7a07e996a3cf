//! The shape of addresses: escapes in normal form, and shapes that only traps have.

use std::fmt::Write as _;

use super::PageUrl;

/// Limits on the shape of an address. Each bound is inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Longest address, in bytes.
    pub url_bytes_max: usize,
    /// Most segments in a path.
    pub path_segments_max: usize,
    /// Most times that one segment, or one pair of segments, may stand in a path.
    pub segment_repeats_max: usize,
    /// Most times that one query parameter may stand in an address.
    pub parameter_repeats_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            url_bytes_max: 2_000,
            path_segments_max: 20,
            segment_repeats_max: 3,
            parameter_repeats_max: 5,
        }
    }
}

/// What makes an address look like part of a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddShape {
    /// Longer than `url_bytes_max`.
    TooLong,
    /// More segments than `path_segments_max`.
    TooDeep,
    /// One segment more often than `segment_repeats_max`.
    RepeatedSegment,
    /// One parameter more often than `parameter_repeats_max`.
    RepeatedParameter,
}

impl Limits {
    /// Returns what is odd about `url`, or nothing.
    #[must_use]
    pub fn odd_shape(&self, url: &PageUrl) -> Option<OddShape> {
        if url.as_str().len() > self.url_bytes_max {
            return Some(OddShape::TooLong);
        }
        let segments: Vec<&str> = url.url().path().split('/').filter(|s| !s.is_empty()).collect();
        if segments.len() > self.path_segments_max {
            return Some(OddShape::TooDeep);
        }
        if most_repeats(&segments) > self.segment_repeats_max {
            return Some(OddShape::RepeatedSegment);
        }
        let names: Vec<&str> = url
            .url()
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split('=').next())
            .filter(|name| !name.is_empty())
            .collect();
        if most_repeats(&names) > self.parameter_repeats_max {
            return Some(OddShape::RepeatedParameter);
        }
        None
    }
}

/// How often the commonest item stands in the list. The list is short: `path_segments_max` bounds
/// paths, and quadratic work on a query is bounded by `url_bytes_max`.
fn most_repeats(items: &[&str]) -> usize {
    let count = |item: &&str| items.iter().filter(|other| *other == item).count();
    items.iter().map(count).max().unwrap_or(0)
}

/// Decodes percent-escapes of unreserved characters and writes all others in upper case.
///
/// Source: RFC 3986, 6.2.2.1 and 6.2.2.2.
pub(super) fn normal_escapes(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = if bytes[at] == b'%' { escaped_byte(&bytes[at + 1..]) } else { None };
        match escape {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
                at += 3;
            }
            Some(byte) => {
                write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
                at += 3;
            }
            None => {
                let rest = &text[at..];
                let next = rest.chars().next().expect("`at` is a boundary before the end");
                out.push(next);
                at += next.len_utf8();
            }
        }
    }
    out
}

fn escaped_byte(after_percent: &[u8]) -> Option<u8> {
    let high = char::from(*after_percent.first()?).to_digit(16)?;
    let low = char::from(*after_percent.get(1)?).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}
