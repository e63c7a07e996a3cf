//! What kinds of URLs of a host yield: a kind that gives nothing but duplicates is slowed,
//! then stopped. So is one whose pages are too short to be compared and say the same but for
//! numbers, such as the empty days of a calendar; but it takes far more of them to stop it, because
//! a number may be all that two articles of a shop differ in.
//!
//! The kind of a URL, its *URL pattern*, is its path with numbers and hashes replaced, and the
//! names of its parameters. A URL pattern that has given nothing new for long goes to the end of
//! the queue of its host; later only a few of its URLs are visited. One new document, and all of it
//! is let in again.

use crate::store::{Batch, Error, Fixed, List, Number, Text, Update as _, View, row};
use crate::urls::{PageUrl, pattern};

use super::lease::Waiting;
use super::rows::{Rank, State};
use super::tables::{ADDRESSES, SKIPPED, URL_PATTERNS};
use super::{Frontier, Reason};

/// When a URL pattern is slowed and stopped.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct YieldConfig {
    /// Pages without anything new after which a URL pattern waits for all others; 0 for never.
    pub slow_after: u64,
    /// Pages without anything new after which a URL pattern is stopped; 0 for never.
    pub stop_after: u64,
    /// Short pages in a row that say the same but for numbers, after which a URL pattern is
    /// stopped; 0 for never.
    pub alike_stop_after: u64,
    /// Of so many URLs of a stopped URL pattern one is visited all the same; 0 for none.
    pub explore_one_in: u64,
}

impl Default for YieldConfig {
    fn default() -> Self {
        Self { slow_after: 50, stop_after: 500, alike_stop_after: 1_000, explore_one_in: 20 }
    }
}

row! {
    /// What a URL pattern has given.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct UrlPattern: "url_pattern", 1 to 1 {
        /// The URL with its numbers replaced.
        pub pattern: String = Text;
        /// Pages that were read.
        pub pages: u64 = Number;
        /// Those that were new documents.
        pub new: u64 = Number;
        /// Pages since the last new document.
        pub since_new: u64 = Number;
        /// URLs that are not visited because of it.
        pub stopped: u64 = Number;
        /// URLs that were visited although it was stopped.
        pub explored: u64 = Number;
        /// Short pages in a row that said the same but for numbers.
        pub alike: u64 = Number;
        /// What the last of its short pages said, numbers aside: hashes, the newest last.
        pub said: Vec<u64> = List<Fixed>;
    }
}

/// What is to be done with a URL of a URL pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brake {
    Go,
    /// Go, to see whether there is anything new after all.
    Explore,
    Slow,
    Stop,
}

/// Numbers from this one on stand for URL patterns in the list of skipped URLs, where those below
/// are rules.
const FAMILY_BIT: u64 = 1 << 63;

/// Texts of a URL pattern that are remembered.
const SAID_MAX: usize = 8;

/// URLs of a URL pattern that are let in again in one step.
const REOPENED_MAX: usize = 1_000;

impl UrlPattern {
    /// Notes what a page says, numbers aside. Returns whether none of the last ones said that.
    fn hears(&mut self, said: u64) -> bool {
        let before = self.said.iter().position(|known| *known == said);
        if let Some(at) = before {
            self.said.remove(at);
        } else if self.said.len() == SAID_MAX {
            self.said.remove(0);
        }
        self.said.push(said);
        before.is_none()
    }

    /// Reads the URL pattern of a URL.
    pub fn of(view: &impl View, url: &PageUrl) -> Result<Option<Self>, Error> {
        view.get(URL_PATTERNS, number(&pattern_of(url)))
    }
}

/// The pattern of a URL, with its host.
fn pattern_of(url: &PageUrl) -> String {
    format!("{}{}", url.host_key(), pattern(url))
}

/// Stands for a URL pattern, and never for a rule.
fn number(pattern: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(pattern.as_bytes()) | FAMILY_BIT
}

impl Frontier {
    /// Tells how a URL is to be treated for what its URL pattern has given.
    pub(super) fn brake(&self, batch: &Batch, url: &PageUrl, rank: Rank) -> Result<Brake, Error> {
        let YieldConfig { slow_after, stop_after, alike_stop_after, explore_one_in } =
            self.config.yields;
        let over = |count: u64, most: u64| most > 0 && count >= most;
        if rank < Rank::Link {
            return Ok(Brake::Go);
        }
        let Some(url_pattern) = UrlPattern::of(batch, url)? else { return Ok(Brake::Go) };
        if over(url_pattern.since_new, stop_after) || over(url_pattern.alike, alike_stop_after) {
            let turn = url_pattern.stopped + url_pattern.explored + 1;
            let explore = explore_one_in > 0 && turn.is_multiple_of(explore_one_in);
            return Ok(if explore { Brake::Explore } else { Brake::Stop });
        }
        let slow =
            over(url_pattern.since_new.max(url_pattern.alike), slow_after) && rank < Rank::Slow;
        Ok(if slow { Brake::Slow } else { Brake::Go })
    }

    /// Does what the brake says with the first URL of a queue.
    pub(super) fn hold_back(
        &mut self,
        batch: &mut Batch,
        Waiting { host, place, url }: Waiting<'_>,
        brake: Brake,
    ) -> Result<(), Error> {
        self.unqueue(batch, host, place)?;
        let Some(mut address) = batch.get(ADDRESSES, url.as_str())? else {
            return Ok(());
        };
        if brake != Brake::Stop {
            address.place.rank = Rank::Slow;
            return self.enqueue(batch, url, &mut address);
        }
        let state = State::Refused(Reason::NoYield);
        self.recount(Some(&address.state), &state);
        address.state = state;
        batch.put(ADDRESSES, url.as_str(), &address)?;
        let number = number(&pattern_of(url));
        batch.put(SKIPPED, (number, url.as_str()), &())?;
        change_family(batch, url, |url_pattern| url_pattern.stopped += 1)?;
        self.release_copies(batch, url.as_str())
    }

    /// Counts a page that was read, whether it is a new document, and, if it is short, the hash of
    /// what it says, numbers aside. If it gives anything new, the URLs of its URL pattern that were
    /// stopped are let in again.
    pub fn count_yield(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        is_new: bool,
        said: Option<u64>,
    ) -> Result<(), Error> {
        let mut reopen = false;
        change_family(batch, url, |url_pattern| {
            url_pattern.pages += 1;
            let is_other = said.is_none_or(|said| url_pattern.hears(said));
            url_pattern.alike = if is_other { 0 } else { url_pattern.alike + 1 };
            url_pattern.new += u64::from(is_new);
            url_pattern.since_new = if is_new { 0 } else { url_pattern.since_new + 1 };
            reopen = is_new && is_other && url_pattern.stopped > 0;
            if reopen {
                url_pattern.stopped = 0;
            }
        })?;
        while reopen {
            let number = number(&pattern_of(url));
            let some = crate::frontier::rules::take_skipped(batch, number, REOPENED_MAX)?;
            reopen = !some.is_empty();
            for address in some {
                self.let_in_again(batch, &address)?;
            }
        }
        Ok(())
    }
}

/// Counts a URL of a stopped URL pattern that is visited all the same.
pub(super) fn explore(batch: &mut Batch, url: &PageUrl) -> Result<(), Error> {
    change_family(batch, url, |url_pattern| url_pattern.explored += 1)
}

/// Changes what is known of the URL pattern of a URL.
fn change_family(
    batch: &mut Batch,
    url: &PageUrl,
    change: impl FnOnce(&mut UrlPattern),
) -> Result<(), Error> {
    let pattern = pattern_of(url);
    let number = number(&pattern);
    let known = batch.get(URL_PATTERNS, number)?;
    let mut url_pattern = known.unwrap_or_else(|| UrlPattern { pattern, ..UrlPattern::default() });
    change(&mut url_pattern);
    batch.put(URL_PATTERNS, number, &url_pattern)
}
