//! Shapes of URLs that only traps have.

use super::calendar::{self, CalendarRange};
use super::escapes::nesting;
use super::{PageUrl, sessions};

/// Limits on the shape of a URL. Each bound is inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ShapeLimits {
    /// Longest URL, in characters.
    pub url_length_max: usize,
    /// Most segments in a path.
    pub path_segments_max: usize,
    /// Most times that one segment may stand in a path.
    pub segment_repeats_max: usize,
    /// Most times that two or more segments may stand in a path right after each other.
    pub sequence_repeats_max: usize,
    /// Most times that the URL's own host may stand as a segment in its path.
    pub host_repeats_max: usize,
    /// Most times that one query parameter may stand in a URL.
    pub parameter_repeats_max: usize,
    /// Most times that a part may be escaped over and over, as `%2525` or `&amp;amp;` is twice.
    pub escape_nesting_max: usize,
    /// Most months from now to a month ahead that a URL names; 0 for no limit.
    pub calendar_months_ahead_max: u32,
    /// Most years from now back to a month that the URL of a calendar names; 0 for no limit.
    pub calendar_years_back_max: u32,
    /// Refuse links with a session in the path, where rules of the normal form do not take it out.
    pub refuse_path_sessions: bool,
}

impl Default for ShapeLimits {
    fn default() -> Self {
        Self {
            url_length_max: 2_000,
            path_segments_max: 20,
            segment_repeats_max: 3,
            sequence_repeats_max: 2,
            host_repeats_max: 1,
            parameter_repeats_max: 5,
            escape_nesting_max: 2,
            calendar_months_ahead_max: 24,
            calendar_years_back_max: 100,
            refuse_path_sessions: true,
        }
    }
}

/// What makes a URL look like part of a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddShape {
    /// Longer than `url_length_max`.
    TooLong,
    /// More segments than `path_segments_max`.
    TooDeep,
    /// One segment more often than `segment_repeats_max`.
    RepeatedSegment,
    /// A sequence of segments more often than `sequence_repeats_max`.
    RepeatedSequence,
    /// The host in the path more often than `host_repeats_max`.
    HostInPath,
    /// One parameter more often than `parameter_repeats_max`.
    RepeatedParameter,
    /// Escaped more often than `escape_nesting_max`.
    NestedEscapes,
    /// A month out of the range of calendars.
    Calendar,
    /// A session in the path.
    SessionInPath,
}

impl OddShape {
    /// Tells whether only a link can be odd in this way: a seed or the target of a redirect that
    /// names a month or a session is one URL, and no step on an endless way.
    #[must_use]
    pub(crate) fn is_of_links(self) -> bool {
        matches!(self, Self::Calendar | Self::SessionInPath)
    }
}

impl ShapeLimits {
    /// Returns what is odd about `url` at `now`, in milliseconds since 1970; or nothing.
    #[must_use]
    pub fn odd_shape(&self, url: &PageUrl, now: i64) -> Option<OddShape> {
        if url.as_str().len() > self.url_length_max {
            return Some(OddShape::TooLong);
        }
        let path = url.url().path();
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        if segments.len() > self.path_segments_max {
            return Some(OddShape::TooDeep);
        }
        if most_repeats(&segments) > self.segment_repeats_max {
            return Some(OddShape::RepeatedSegment);
        }
        if sequence_repeats(&segments) > self.sequence_repeats_max {
            return Some(OddShape::RepeatedSequence);
        }
        if host_repeats(url, &segments) > self.host_repeats_max {
            return Some(OddShape::HostInPath);
        }
        let query = url.url().query().unwrap_or_default();
        let names = query.split('&').filter_map(|pair| pair.split('=').next());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        if most_repeats(&names) > self.parameter_repeats_max {
            return Some(OddShape::RepeatedParameter);
        }
        if nesting(url.path_and_query()) > self.escape_nesting_max {
            return Some(OddShape::NestedEscapes);
        }
        if self.refuse_path_sessions && sessions::in_path(path) {
            return Some(OddShape::SessionInPath);
        }
        let range = CalendarRange {
            months_ahead_max: self.calendar_months_ahead_max,
            years_back_max: self.calendar_years_back_max,
        };
        calendar::is_beyond(url, range, now).then_some(OddShape::Calendar)
    }
}

/// How often the commonest item stands in the list. The list is short: `path_segments_max` bounds
/// paths, and quadratic work on a query is bounded by `url_length_max`.
fn most_repeats(items: &[&str]) -> usize {
    let count = |item: &&str| items.iter().filter(|other| *other == item).count();
    items.iter().map(count).max().unwrap_or(0)
}

/// How often two or more segments stand right after each other at most: 3 for `a/b/a/b/a/b`.
fn sequence_repeats(segments: &[&str]) -> usize {
    let mut most = 1;
    for length in 2..=segments.len() / 2 {
        // Segments in a row that are equal to the one `length` places on.
        let mut run = 0;
        for pair in segments.iter().zip(&segments[length..]) {
            run = if pair.0 == pair.1 { run + 1 } else { 0 };
            most = most.max(run / length + 1);
        }
    }
    most
}

/// How often the host of the URL stands in its path, with or without `www.` and port.
fn host_repeats(url: &PageUrl, segments: &[&str]) -> usize {
    let bare = |name: &str| -> usize { if name.starts_with("www.") { 4 } else { 0 } };
    let host = url.url().host_str().unwrap_or_default();
    let host = &host[bare(host)..];
    let is_host = |segment: &&&str| {
        let name = segment.split(':').next().unwrap_or(segment);
        name[bare(name)..].eq_ignore_ascii_case(host)
    };
    segments.iter().filter(is_host).count()
}
