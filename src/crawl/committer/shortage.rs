//! Rests of a crawl for want of something of this machine, such as open files: no host is blamed,
//! and nothing is lost.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::frontier::Lease;
use crate::store::Batch;

use super::super::Error;
use super::Committer;

/// The first rest; doubles while nothing gets better.
const REST_MIN: Duration = Duration::from_secs(1);

/// The longest one.
const REST_MAX: Duration = Duration::from_secs(10);

/// A shortage that has not passed yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shortage {
    since: Instant,
    until: Instant,
    rest: Duration,
}

impl Committer<'_> {
    /// Takes back a lease whose request was not sent, and lets the crawl rest.
    pub(super) fn unsent(
        &mut self,
        batch: &mut Batch,
        lease: &Lease,
        is_page: bool,
        want: &str,
    ) -> Result<(), Error> {
        self.frontier.give_back(batch, lease)?;
        self.pages_leased -= u64::from(is_page);
        self.tally.unsent += 1;
        let now = Instant::now();
        let before = self.shortage;
        if before.is_some_and(|shortage| now < shortage.until) {
            // Requests that were under way with the one that was told of.
            return Ok(());
        }
        let rest = before.map_or(REST_MIN, |shortage| (shortage.rest * 2).min(REST_MAX));
        let since = before.map_or(now, |shortage| shortage.since);
        self.shortage = Some(Shortage { since, until: now + rest, rest });
        self.context.live.short.store(true, Ordering::Relaxed);
        tracing::warn!(
            rest_s = rest.as_secs(),
            "this machine lets no request go ({want}): the crawl waits. Close other programs, \
             raise the limit of open files (ulimit -n) or lower crawl.requests_max"
        );
        Ok(())
    }

    /// Notes that a request has been sent.
    pub(super) fn sent(&mut self) {
        if self.shortage.take().is_some() {
            self.context.live.short.store(false, Ordering::Relaxed);
            tracing::info!("requests go again");
        }
    }

    /// Returns for how long no request is to be sent yet.
    pub(super) fn rests(&self) -> Option<Duration> {
        let left = self.shortage?.until.checked_duration_since(Instant::now())?;
        (!left.is_zero()).then_some(left)
    }

    /// The shortage lasts longer than a run waits.
    pub(super) fn is_starved(&self) -> bool {
        let longest = self.settings.limits.idle_wait_max.duration();
        self.shortage.is_some_and(|shortage| shortage.since.elapsed() > longest)
    }
}
