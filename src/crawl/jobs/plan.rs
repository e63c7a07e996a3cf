//! Which moments of a job get a run: pure decisions, from the schedule, the policy and the time.
//!
//! Moments are those of the clock on the wall, which may be set. Set forward, it has skipped
//! moments: they are missed. Set back, it comes to a moment again that has had its run: that one
//! has none again, or a job of 02:00 would run twice in such a night. But if the job would have to
//! stand still for that, because the clock goes back over several of its moments or by more than
//! three hours, it starts anew: nobody waits a year because a clock was a year ahead.

use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Codec, Decoder, Encoder, List, Signed, row};

use super::row::{Outcome, Run, Trigger};
use super::schedule::Schedule;

/// Missed moments that are counted at most; of a longer time only the newest are.
const MISSED_MAX: usize = 1_000;

/// A clock that is set back by more is put right, and moments come again that have had a run.
/// Source: cron(8) of Vixie cron, "changes of more than 3 hours are considered to be corrections".
const AHEAD_MAX: Duration = Duration::from_hours(3);

/// What happens to moments that were missed while no scheduler ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatchUp {
    /// Nothing: the job waits for its next moment.
    Skip,
    /// One run makes up for all of them.
    Once,
    /// Each gets a run, the newest ones up to a bound.
    All,
}

/// When a job is due, and what happens to moments that were missed.
#[derive(Debug, Clone)]
pub struct CronRule {
    /// Its moments.
    pub schedule: Schedule,
    /// What happens to those that were missed.
    pub catch_up: CatchUp,
    /// Missed moments that get a run at most.
    pub catch_up_max: usize,
    /// A moment counts as missed if it is this much in the past.
    pub late_max: Duration,
}

/// A moment that waits for its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// The moment.
    pub moment: Timestamp,
    /// What makes the run begin.
    pub trigger: Trigger,
}

/// The moment alone: whoever reads it has restarted, and the run makes up for it.
struct MomentCode;

impl Codec<Planned> for MomentCode {
    const SHAPE: &'static str = "ms since 1970, keys";

    fn put(field: &Planned, row: Encoder) -> Encoder {
        row.keys(field.moment.0)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Planned, BadRow> {
        let moment = Timestamp(row.keys()?);
        Ok(Planned { moment, trigger: Trigger::CatchUp })
    }
}

row! {
    /// How far a job has come: stored, so that no moment is lost or taken twice.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct JobProgress: "job", 1 to 1 {
        /// The first moment of an interval.
        pub anchor: Timestamp = Signed;
        /// All moments up to this one are dealt with.
        pub seen: Timestamp = Signed;
        /// Moments that wait for their run, the oldest first.
        pub pending: Vec<Planned> = List<MomentCode>;
    }
}

impl JobProgress {
    /// Starts at `now`: a cron line waits for its next moment, an interval is due at once.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { anchor: now, seen: Timestamp(now.0.saturating_sub(1)), pending: Vec::new() }
    }

    /// Deals with the moments that came since the last look, and returns rows for those that get
    /// no run. `busy` tells that a run of the job is under way: whatever comes then is refused.
    pub fn look(&mut self, rule: &CronRule, busy: bool, now: Timestamp) -> Vec<Run> {
        let moments = self.come(rule, now);
        if moments.is_empty() {
            return Vec::new();
        }
        if busy || !self.pending.is_empty() {
            let reason = if busy {
                "a run of the job is under way"
            } else {
                "an earlier moment of the job still waits for its run"
            };
            let newest = moments[moments.len() - 1];
            let count = moments.len() as u64;
            return vec![Run::none(newest, count, Outcome::Refused, reason, now)];
        }
        self.settle(rule, moments, None, now)
    }

    /// Goes on after a restart: what waited, what was missed, and the moment `cut` whose run was
    /// cut off are one list, which the policy is applied to.
    pub fn restore(&mut self, rule: &CronRule, cut: Option<Timestamp>, now: Timestamp) -> Vec<Run> {
        self.follow_clock(rule, now);
        let cut = cut.filter(|moment| *moment <= now);
        let mut moments: Vec<Timestamp> = self.pending.drain(..).map(|one| one.moment).collect();
        let cut = cut.filter(|_| rule.catch_up != CatchUp::Skip);
        moments.extend(cut);
        moments.extend(self.come(rule, now));
        moments.sort_unstable();
        moments.dedup();
        self.settle(rule, moments, cut, now)
    }

    /// Starts anew if the clock was ahead when moments were dealt with. Returns whether it was so.
    pub fn follow_clock(&mut self, rule: &CronRule, now: Timestamp) -> bool {
        if self.seen <= now {
            return false;
        }
        let is_next = rule.schedule.next_after(now, self.anchor) == Some(self.seen);
        if is_next && now.until(self.seen) <= AHEAD_MAX {
            return false;
        }
        (self.anchor, self.seen) = (now, now);
        let is_due = |one: &Planned| one.moment <= now || one.trigger == Trigger::Hand;
        self.pending.retain(is_due);
        true
    }

    /// The moments since the last look, the oldest first.
    fn come(&mut self, rule: &CronRule, now: Timestamp) -> Vec<Timestamp> {
        let mut moments = Vec::new();
        let mut until = now;
        while let Some(moment) = rule.schedule.last_until(until, self.anchor) {
            if moment <= self.seen || moments.len() == MISSED_MAX {
                break;
            }
            moments.push(moment);
            until = Timestamp(moment.0 - 1);
        }
        moments.reverse();
        if let Some(newest) = moments.last() {
            self.seen = *newest;
        }
        moments
    }

    fn settle(
        &mut self,
        rule: &CronRule,
        mut moments: Vec<Timestamp>,
        cut: Option<Timestamp>,
        now: Timestamp,
    ) -> Vec<Run> {
        let Some(newest) = moments.last().copied() else { return Vec::new() };
        let fresh = newest.until(now) <= rule.late_max && Some(newest) != cut;
        if fresh {
            moments.pop();
        }
        let runs = match (rule.catch_up, fresh) {
            (CatchUp::Skip, _) | (CatchUp::Once, true) => 0,
            (CatchUp::Once, false) => 1,
            (CatchUp::All, _) => rule.catch_up_max,
        };
        let made_up = moments.split_off(moments.len().saturating_sub(runs));
        let trigger = |moment| if Some(moment) == cut { Trigger::Resume } else { Trigger::CatchUp };
        let planned = |moment| Planned { moment, trigger: trigger(moment) };
        self.pending.extend(made_up.into_iter().map(planned));
        if fresh {
            self.pending.push(Planned { moment: newest, trigger: Trigger::Schedule });
        }
        // The run that was cut off has a row of its own.
        moments.retain(|moment| Some(*moment) != cut);
        let Some(newest) = moments.last().copied() else { return Vec::new() };
        let reason = if self.pending.is_empty() {
            "no scheduler ran at that time"
        } else {
            "no scheduler ran at that time; a later run makes up for it"
        };
        let count = moments.len() as u64;
        vec![Run::none(newest, count, Outcome::Missed, reason, now)]
    }
}
