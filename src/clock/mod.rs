//! Time as the crawler stores it: milliseconds since 1970 UTC, from a clock that tests can move.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment, in milliseconds since 1970-01-01T00:00:00Z. Ordered, and stored as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the moment `duration` later. Saturates at the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Returns the moment `duration` before.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis).max(0))
    }

    /// Returns how long it is from `self` until `later`; zero if `later` has passed.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.0.saturating_sub(self.0).max(0).unsigned_abs())
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC, such as `2026-11-21T05:15:01Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{}", time.strftime("%Y-%m-%dT%H:%M:%SZ")),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// Where the time comes from: the system, or a hand that tests move.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The time of the operating system.
    #[default]
    System,
    /// A time that only [`Clock::advance`] moves.
    Hand(Arc<AtomicI64>),
}

impl Clock {
    /// Returns a clock that stands at `start` until it is advanced.
    #[must_use]
    pub fn hand(start: Timestamp) -> Self {
        Self::Hand(Arc::new(AtomicI64::new(start.0)))
    }

    /// Returns the present moment, cut to whole milliseconds.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => timestamp(now_since_1970().as_millis()),
            Self::Hand(millis) => Timestamp(millis.load(Ordering::SeqCst)),
        }
    }

    /// Returns the first whole millisecond that is not before the present moment: a wait that is
    /// counted from here is never too short.
    #[must_use]
    pub fn now_rounded_up(&self) -> Timestamp {
        match self {
            Self::System => timestamp(now_since_1970().as_nanos().div_ceil(1_000_000)),
            Self::Hand(_) => self.now(),
        }
    }

    /// Moves a hand clock forward; does nothing to the system's.
    pub fn advance(&self, by: Duration) {
        if let Self::Hand(millis) = self {
            let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            millis.fetch_add(by, Ordering::SeqCst);
        }
    }
}

fn now_since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn timestamp(millis: u128) -> Timestamp {
    Timestamp(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// Returns how long the present thread has run on a processor; only differences tell something.
/// Where the system does not count that, it is the time that went by.
#[must_use]
pub fn thread_time() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds)
            + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
    }
    #[cfg(not(unix))]
    {
        now_since_1970()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_added_and_subtracted_within_their_range() {
        let (second, noon) = (Duration::from_secs(1), Timestamp(1_795_262_400_000));
        assert_eq!(noon.after(second), Timestamp(noon.0 + 1_000));
        assert_eq!(noon.until(noon.after(second)), second);
        assert_eq!(noon.after(second).until(noon), Duration::ZERO);
        assert_eq!(Timestamp(i64::MAX).after(second), Timestamp(i64::MAX));
        assert_eq!(noon.after(Duration::MAX), Timestamp(i64::MAX));
        let all = Timestamp(i64::MIN).until(Timestamp(i64::MAX));
        assert_eq!(all, Duration::from_millis(i64::MAX.unsigned_abs()));
    }

    #[test]
    fn moments_are_written_as_people_read_them() {
        assert_eq!(Timestamp(1_795_242_901_999).to_string(), "2026-11-21T06:35:01Z");
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp(i64::MAX).to_string(), format!("{} ms", i64::MAX));
    }

    #[test]
    fn only_a_hand_clock_can_be_moved() {
        let hand = Clock::hand(Timestamp(7));
        let same = hand.clone();
        hand.advance(Duration::from_millis(1_500));
        assert_eq!(same.now(), Timestamp(1_507), "clones are one clock");
        let before = Clock::System.now();
        Clock::System.advance(Duration::from_secs(1_000_000));
        assert!(before.until(Clock::System.now()) < Duration::from_secs(100_000));
    }

    #[test]
    fn a_wait_from_the_rounded_moment_is_never_too_short() {
        let clock = Clock::System;
        for _ in 0..1_000 {
            let (before, rounded, after) = (now_since_1970(), clock.now_rounded_up(), clock.now());
            assert!(u128::from(rounded.0.unsigned_abs()) * 1_000_000 >= before.as_nanos());
            assert!(rounded.0 <= after.0 + 1);
        }
        let hand = Clock::hand(Timestamp(7));
        assert_eq!((hand.now(), hand.now_rounded_up()), (Timestamp(7), Timestamp(7)));
    }
}
