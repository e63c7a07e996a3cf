//! A rule as it is stored.

use crate::store::{BadRow, Decoder, Encoder};

use super::{Change, Config, lower_bound};

/// Least pairs behind a rule with one counter-example.
const REPROOF_PAIRS: u64 = 200;

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is not enough evidence, or too much against it.
    Learning,
    /// Addresses are skipped by it.
    Active,
    /// Somebody said that it shall not be used.
    Disabled,
}

impl Status {
    /// Returns the word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Learning => "learning",
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }
}

/// A rule of one host, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Scheme, host and port of the addresses that it changes.
    pub host: String,
    /// What it changes.
    pub change: Change,
    /// Where it stands.
    pub status: Status,
    /// Pairs that were one document.
    pub held: u64,
    /// Pairs that were two.
    pub failed: u64,
    /// Addresses that wait linked to their partner, unfetched.
    pub skipped: u64,
    /// Times that a counter-example ended its activity.
    pub demotions: u8,
    /// Addresses that were skipped since it was last seen whether it holds.
    pub unchecked: u64,
}

impl Rule {
    pub(super) fn new(host: &str, change: Change) -> Self {
        let status = Status::Learning;
        let (host, [held, failed, skipped, unchecked]) = (host.to_owned(), [0; 4]);
        Self { host, change, status, held, failed, skipped, demotions: 0, unchecked }
    }

    /// Lower bound of the share of pairs that held.
    #[must_use]
    pub fn bound(&self) -> f64 {
        lower_bound(self.held, self.held + self.failed)
    }

    /// Notes a pair of addresses. Returns whether the rule ceased to be active by it.
    ///
    /// While a rule is active few pairs are seen, so that one counter-example is enough: the rule
    /// has to prove itself anew. A rule with counter-examples needs four times as many pairs for
    /// each: what it is wrong about would be lost.
    pub(super) fn note(&mut self, held: bool, config: &Config) -> bool {
        self.unchecked = 0;
        if self.status == Status::Active && !held {
            (self.held, self.failed) = (0, 1);
            self.demotions = self.demotions.saturating_add(1);
            self.status = Status::Learning;
            return true;
        }
        if held {
            self.held += 1;
        } else {
            self.failed += 1;
        }
        let counter = u32::try_from(self.failed).unwrap_or(u32::MAX).max(self.demotions.into());
        let again = counter.checked_sub(1);
        let pairs = again
            .map_or(config.pairs_min, |again| REPROOF_PAIRS << again.saturating_mul(2).min(32));
        let holds = self.held + self.failed >= pairs && self.bound() >= config.bound_min;
        if self.status == Status::Learning && holds {
            self.status = Status::Active;
        }
        false
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, one, other) = self.change.parts();
        Encoder::new(1)
            .text(&self.host)
            .number(kind)
            .text(one)
            .text(other)
            .number(self.status as u64)
            .number(self.held)
            .number(self.failed)
            .number(self.skipped)
            .number(self.demotions)
            .number(self.unchecked)
            .finish()
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("rule", 1, row)?;
        let host = row.text()?.to_owned();
        let (kind, one, other) = (row.narrow()?, row.text()?, row.text()?);
        let change = Change::from_parts(kind, one, other);
        let change = change.ok_or_else(|| row.bad("its change is unknown"))?;
        let status = match row.number()? {
            0 => Status::Learning,
            1 => Status::Active,
            2 => Status::Disabled,
            _ => return Err(row.bad("its status is unknown")),
        };
        let (held, failed, skipped) = (row.number()?, row.number()?, row.number()?);
        let (demotions, unchecked) = (row.narrow()?, row.number()?);
        Ok(Self { host, change, status, held, failed, skipped, demotions, unchecked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_example_asks_for_four_times_as_many_pairs() {
        let config = Config::default();
        let rule = |failures: u64| {
            let mut rule = Rule::new("http://a.org", Change::DropParameter("sid".to_owned()));
            for _ in 0..failures {
                assert!(!rule.note(false, &config));
            }
            rule
        };
        let pairs = |failures: u64| {
            let mut rule = rule(failures);
            while rule.status == Status::Learning {
                rule.note(true, &config);
            }
            rule.held + rule.failed
        };
        assert_eq!([pairs(0), pairs(1), pairs(2), pairs(3)], [52, 200, 800, 3_200]);
        let mut refuted = rule(0);
        while refuted.status == Status::Learning {
            refuted.note(true, &config);
        }
        assert!(refuted.note(false, &config));
        assert_eq!((refuted.status, refuted.held, refuted.failed), (Status::Learning, 0, 1));
    }
}
