//! What is kept of a run of a job, as bytes and in words.

use std::fmt;

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Decoder, Encoder};

/// Version of the rows of runs.
const VERSION: u8 = 1;

/// What made a run begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Its moment had come.
    Schedule,
    /// Its moment had passed while no scheduler ran.
    CatchUp,
    /// An earlier run for the same moment was cut off.
    Resume,
    /// A person asked for it.
    Hand,
}

/// How a run ended, or why there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It goes on, or its process has died since and nobody has looked.
    Running,
    /// It ended well.
    Done,
    /// It ended, but some seeds could not be crawled.
    SeedsFailed,
    /// It could not go on.
    Failed,
    /// It was asked to stop, and stopped safely.
    Stopped,
    /// Its process died.
    Interrupted,
    /// It did not begin: another run of the job, or another user of its store, was under way.
    Refused,
    /// It did not begin: its moment passed while no scheduler ran.
    Missed,
}

impl Outcome {
    const ALL: [Self; 8] = [
        Self::Running,
        Self::Done,
        Self::SeedsFailed,
        Self::Failed,
        Self::Stopped,
        Self::Interrupted,
        Self::Refused,
        Self::Missed,
    ];

    /// Returns its name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::SeedsFailed => "seeds_failed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
            Self::Refused => "refused",
            Self::Missed => "missed",
        }
    }

    /// Tells whether a run was cut off, so that it may be tried again.
    #[must_use]
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Stopped | Self::Interrupted)
    }

    /// Tells whether nothing ran.
    #[must_use]
    pub fn is_no_run(self) -> bool {
        matches!(self, Self::Refused | Self::Missed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a run has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Pages that were read.
    pub pages: u64,
    /// New documents.
    pub new: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Bytes of bodies on the wire.
    pub bytes: u64,
    /// Seeds that are not in the corpus.
    pub failed_seeds: u64,
    /// Documents in the store afterwards.
    pub documents: u64,
    /// Addresses that wait afterwards.
    pub queued: u64,
}

/// One run of a job, or one moment at which it did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The moment for which it was planned.
    pub planned: Timestamp,
    /// What made it begin.
    pub trigger: Trigger,
    /// When it began; for moments without a run, when that was decided.
    pub started: Timestamp,
    /// When it ended; none while it runs and if its process died.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it ended so.
    pub reason: String,
    /// What it did.
    pub counts: Counts,
    /// Moments that this row stands for: more than one if several were missed.
    pub moments: u64,
    /// What became of the export, the webhook and the command, each with its name.
    pub after: Vec<(String, String)>,
}

impl Run {
    /// A row for a run that begins.
    #[must_use]
    pub fn begin(planned: Timestamp, trigger: Trigger, now: Timestamp) -> Self {
        Self {
            planned,
            trigger,
            started: now,
            ended: None,
            outcome: Outcome::Running,
            reason: String::new(),
            counts: Counts::default(),
            moments: 1,
            after: Vec::new(),
        }
    }

    /// A row for moments at which nothing ran.
    #[must_use]
    pub fn none(
        (planned, moments): (Timestamp, u64),
        outcome: Outcome,
        reason: &str,
        now: Timestamp,
    ) -> Self {
        Self {
            ended: Some(now),
            outcome,
            reason: reason.to_owned(),
            moments,
            ..Self::begin(planned, Trigger::Schedule, now)
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let counts = &self.counts;
        let trigger = match self.trigger {
            Trigger::Schedule => 0u8,
            Trigger::CatchUp => 1,
            Trigger::Resume => 2,
            Trigger::Hand => 3,
        };
        let outcome = Outcome::ALL.iter().position(|one| *one == self.outcome).unwrap_or(0);
        let mut row = Encoder::new(VERSION)
            .signed(self.planned.0)
            .number(trigger)
            .signed(self.started.0)
            .number(u8::from(self.ended.is_some()))
            .signed(self.ended.unwrap_or_default().0)
            .number(outcome as u64)
            .text(&self.reason)
            .number(counts.pages)
            .number(counts.new)
            .number(counts.duplicates)
            .number(counts.bytes)
            .number(counts.failed_seeds)
            .number(counts.documents)
            .number(counts.queued)
            .number(self.moments)
            .number(self.after.len() as u64);
        for (name, text) in &self.after {
            row = row.text(name).text(text);
        }
        row.finish()
    }

    pub(super) fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("run", VERSION, row)?;
        let planned = Timestamp(row.signed()?);
        let trigger = match row.number()? {
            0 => Trigger::Schedule,
            1 => Trigger::CatchUp,
            2 => Trigger::Resume,
            3 => Trigger::Hand,
            _ => return Err(row.bad("its trigger is unknown")),
        };
        let started = Timestamp(row.signed()?);
        let has_ended = row.number()? == 1;
        let ended = Timestamp(row.signed()?);
        let outcome = Outcome::ALL.get(row.narrow::<usize>()?).copied();
        let outcome = outcome.ok_or_else(|| row.bad("its outcome is unknown"))?;
        let reason = row.text()?.to_owned();
        let counts = Counts {
            pages: row.number()?,
            new: row.number()?,
            duplicates: row.number()?,
            bytes: row.number()?,
            failed_seeds: row.number()?,
            documents: row.number()?,
            queued: row.number()?,
        };
        let moments = row.number()?;
        let mut after = Vec::new();
        for _ in 0..row.number()? {
            after.push((row.text()?.to_owned(), row.text()?.to_owned()));
        }
        let ended = has_ended.then_some(ended);
        Ok(Self { planned, trigger, started, ended, outcome, reason, counts, moments, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_and_damaged_ones_are_errors() {
        let begun = Run::begin(Timestamp(-5), Trigger::Resume, Timestamp(7));
        let ended = Run {
            ended: Some(Timestamp(9)),
            outcome: Outcome::SeedsFailed,
            reason: "page limit".to_owned(),
            counts: Counts { pages: 3, bytes: 1 << 40, ..Counts::default() },
            after: vec![("webhook".to_owned(), "delivered".to_owned())],
            ..begun.clone()
        };
        for run in [begun, ended] {
            let bytes = run.encode();
            assert_eq!(Run::decode(&bytes).unwrap(), run);
            for cut in 0..bytes.len() {
                assert!(Run::decode(&bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
        for outcome in Outcome::ALL {
            let run = Run::none((Timestamp(1), 4), outcome, "x", Timestamp(2));
            assert_eq!(Run::decode(&run.encode()).unwrap().outcome, outcome);
        }
    }
}
