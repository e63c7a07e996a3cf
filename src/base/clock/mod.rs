//! Time as the crawler stores it: milliseconds since 1970 UTC, from a clock that tests can move.
//!
//! The clock of a machine can be wrong, and can be set: by a person, by NTP, when a virtual machine
//! wakes up. What follows from that:
//!
//! - **A crawl has a steady clock** ([`Clock::steady`]): the time of the machine when it began, and
//!   what really went by since. Its waits are right whatever the machine's clock is set to
//!   meanwhile: it neither asks a host too soon nor waits for an hour that was put back. The time
//!   for which a machine was suspended has gone by for hosts, too, and is counted where the system
//!   does that (Linux). NTP corrects the pace of this clock as it does that of the other; its steps
//!   are not followed, because a wait that is under way would change with them. So the moments that
//!   a crawl writes are off by as much as the clock was set while it ran, until it ends: the next
//!   crawl begins with the time of the machine.
//! - **A service has the clock of the machine.** It runs for weeks and must follow what sets that
//!   clock right; it writes moments and waits for none. Each crawl in it has a steady clock of its
//!   own.
//! - **The scheduler of jobs has the clock of the machine**, because people name moments of that
//!   clock. `jobs::JobProgress` says what a step does to them.
//! - **What is stored may come from a clock that was ahead.** `Frontier::open` finds that out and
//!   moves what waits (`frontier/clock.rs`). Ages are never negative: [`Timestamp::until`].

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
    /// The same, off by so many milliseconds, as that of a machine whose clock is wrong.
    Off(Arc<AtomicI64>),
    /// A time that goes on evenly from where another clock once stood.
    Steady(Steady),
    /// A time that only [`Clock::advance`] moves.
    Hand(Arc<AtomicI64>),
}

/// A moment of two clocks: of one that may be set, and of one that never is.
#[derive(Debug, Clone, Copy)]
pub struct Steady {
    began: Duration,
    uptime: Duration,
}

impl Clock {
    /// Returns a clock that stands at `start` until it is advanced.
    #[must_use]
    pub fn hand(start: Timestamp) -> Self {
        Self::Hand(Arc::new(AtomicI64::new(start.0)))
    }

    /// Returns the system's clock as it would be if it were wrong by so many milliseconds.
    #[must_use]
    pub fn off(millis: i64) -> Self {
        Self::Off(Arc::new(AtomicI64::new(millis)))
    }

    /// Returns a clock that shows what this one does, and goes on evenly whatever this one is set
    /// to. A clock that only tests move stays one.
    #[must_use]
    pub fn steady(&self) -> Self {
        match self {
            Self::Hand(_) | Self::Steady(_) => self.clone(),
            Self::System | Self::Off(_) => {
                Self::Steady(Steady { began: self.since_1970(), uptime: uptime() })
            }
        }
    }

    /// Returns the present moment, cut to whole milliseconds.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        timestamp(self.since_1970().as_millis())
    }

    /// Returns the first whole millisecond that is not before the present moment: a wait that is
    /// counted from here is never too short.
    #[must_use]
    pub(crate) fn now_rounded_up(&self) -> Timestamp {
        timestamp(self.since_1970().as_nanos().div_ceil(1_000_000))
    }

    fn since_1970(&self) -> Duration {
        let millis = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        match self {
            Self::System => now_since_1970(),
            Self::Off(by) => match by.load(Ordering::SeqCst) {
                by @ 0.. => now_since_1970().saturating_add(millis(by)),
                by => now_since_1970().saturating_sub(millis(by)),
            },
            Self::Steady(Steady { began, uptime: then }) => {
                began.saturating_add(uptime().saturating_sub(*then))
            }
            Self::Hand(at) => millis(at.load(Ordering::SeqCst).max(0)),
        }
    }

    /// Sets by how much a clock is off that [`Clock::off`] has made; does nothing to others.
    pub fn set_off(&self, to: i64) {
        if let Self::Off(by) = self {
            by.store(to, Ordering::SeqCst);
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

/// How long this machine has been up, with the time for which it was suspended where the system
/// counts that; only differences tell something.
fn uptime() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        clock_time(rustix::time::ClockId::Boottime)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }
}

#[cfg(unix)]
fn clock_time(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
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
        clock_time(rustix::time::ClockId::ThreadCPUTime)
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
    fn a_steady_clock_goes_on_whatever_the_other_one_is_set_to() {
        const HOUR_MS: i64 = 3_600_000;
        let wall = Clock::off(24 * HOUR_MS);
        let steady = wall.steady();
        let began = steady.now();
        assert!(Clock::System.now().until(began) > Duration::from_hours(23));
        for off in [23 * HOUR_MS, 0, -40 * HOUR_MS, 99 * HOUR_MS] {
            wall.set_off(off);
            let (now, rounded) = (steady.now(), steady.now_rounded_up());
            assert!(began <= now && now <= rounded);
            assert!(began.until(rounded) < Duration::from_hours(1), "{off}");
        }
        assert!(steady.now().until(wall.now()) > Duration::from_hours(70));
        let later = steady.now().after(Duration::from_millis(2));
        while steady.now() < later {
            std::thread::yield_now();
        }
        assert!(steady.steady().now() >= later, "one of a steady clock is that clock");
        let hand = Clock::hand(Timestamp(7));
        hand.advance(Duration::from_millis(1));
        assert_eq!(hand.steady().now(), Timestamp(8));
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
