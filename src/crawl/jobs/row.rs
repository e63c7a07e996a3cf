//! What is kept of a run of a job, as bytes and in words.

use std::fmt;

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::store::{
    BadRow, Code, Codec, Coded, Decoder, Encoder, List, Nested, Number, Signed, Text, row,
};

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

impl Coded for Outcome {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

impl Coded for Trigger {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        [Self::Schedule, Self::CatchUp, Self::Resume, Self::Hand]
            .into_iter()
            .find(|trigger| trigger.code() == code)
    }
}

/// Whether a run has ended, and when.
struct EndCode;

impl Codec<Option<Timestamp>> for EndCode {
    const SHAPE: &'static str = "0 or 1, ms since 1970";

    fn put(field: &Option<Timestamp>, row: Encoder) -> Encoder {
        row.number(field.is_some()).keys(field.unwrap_or_default().0)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<Timestamp>, BadRow> {
        let has_ended = row.number()? == 1;
        let ended = row.keys()?;
        Ok(has_ended.then_some(Timestamp(ended)))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

row! {
    /// What a run has done.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    pub struct RunCounts: part {
        /// Pages that were read.
        pub pages: u64 = Number;
        /// New documents.
        pub new: u64 = Number;
        /// Duplicates.
        pub duplicates: u64 = Number;
        /// Bytes of bodies on the wire.
        pub bytes: u64 = Number;
        /// Seeds that are not in the corpus.
        pub failed_seeds: u64 = Number;
        /// Documents in the store afterwards.
        pub documents: u64 = Number;
        /// queued URLs afterwards.
        pub queued: u64 = Number;
    }
}

row! {
    /// One run of a job, or one moment at which it did not run.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Run: "run", 1 to 1 {
        /// The moment for which it was planned.
        pub planned: Timestamp = Signed;
        /// What made it begin.
        pub trigger: Trigger = Code;
        /// When it began; for moments without a run, when that was decided.
        pub started: Timestamp = Signed;
        /// When it ended; none while it runs and if its process died.
        pub ended: Option<Timestamp> = EndCode;
        /// How it ended.
        pub outcome: Outcome = Code;
        /// Why it ended so.
        pub reason: String = Text;
        /// What it did.
        pub counts: RunCounts = Nested;
        /// Moments that this row stands for: more than one if several were missed.
        pub moments: u64 = Number;
        /// What became of the export, the webhook and the command, each with its name.
        pub after: Vec<(String, String)> = List<(Text, Text)>;
    }
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
            counts: RunCounts::default(),
            moments: 1,
            after: Vec::new(),
        }
    }

    /// A row for moments at which nothing ran.
    #[must_use]
    pub fn none(
        planned: Timestamp,
        moments: u64,
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Row as _;

    #[test]
    fn rows_come_back_as_they_were_and_damaged_ones_are_errors() {
        let begun = Run::begin(Timestamp(-5), Trigger::Resume, Timestamp(7));
        let ended = Run {
            ended: Some(Timestamp(9)),
            outcome: Outcome::SeedsFailed,
            reason: "page limit".to_owned(),
            counts: RunCounts { pages: 3, bytes: 1 << 40, ..RunCounts::default() },
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
            let run = Run::none(Timestamp(1), 4, outcome, "x", Timestamp(2));
            assert_eq!(Run::decode(&run.encode()).unwrap().outcome, outcome);
        }
    }
}
