//! A rule as it is stored.

use crate::store::{BadRow, Code, Codec, Coded, Decoder, Encoder, Number, Text, row};

use super::{Config, UrlChange, lower_bound};

/// Least pairs behind a rule with one counter-example.
const REPROOF_PAIRS: u64 = 200;

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is not enough evidence, or too much against it.
    Learning,
    /// URLs are skipped by it.
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

impl Coded for Status {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        [Self::Learning, Self::Active, Self::Disabled].into_iter().find(|s| s.code() == code)
    }
}

row! {
    /// A rule of one host, with its evidence.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UrlRule: "rule", 1 to 1 {
        /// Scheme, host and port of the URLs that it changes.
        pub host: String = Text;
        /// What it changes.
        pub change: UrlChange = PartsCodec;
        /// Where it stands.
        pub status: Status = Code;
        /// Pairs that were one document.
        pub held: u64 = Number;
        /// Pairs that were two.
        pub failed: u64 = Number;
        /// queued URLs linked to their partner, unfetched.
        pub skipped: u64 = Number;
        /// Times that a counter-example ended its activity.
        pub demotions: u8 = Number;
        /// URLs that were skipped since it was last seen whether it holds.
        pub unchecked: u64 = Number;
    }
}

/// The number of the kind of a change, and the two texts that go with it.
struct PartsCodec;

impl Codec<UrlChange> for PartsCodec {
    const SHAPE: &'static str = "code, two texts";

    fn put(change: &UrlChange, row: Encoder) -> Encoder {
        let (kind, one, other) = change.parts();
        row.number(kind).text(one).text(other)
    }

    fn take(row: &mut Decoder<'_>) -> Result<UrlChange, BadRow> {
        let (kind, one, other) = (row.narrow()?, row.text()?, row.text()?);
        UrlChange::from_parts(kind, one, other).ok_or_else(|| row.bad("its change is unknown"))
    }
}

impl UrlRule {
    /// A rule that somebody proposes.
    #[must_use]
    pub fn new(host: &str, change: UrlChange) -> Self {
        let status = Status::Learning;
        let (host, [held, failed, skipped, unchecked]) = (host.to_owned(), [0; 4]);
        Self { host, change, status, held, failed, skipped, demotions: 0, unchecked }
    }

    /// Lower bound of the share of pairs that held.
    #[must_use]
    pub fn bound(&self) -> f64 {
        lower_bound(self.held, self.held + self.failed)
    }

    /// Notes a pair of URLs. Returns whether the rule ceased to be active by it.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_example_asks_for_four_times_as_many_pairs() {
        let config = Config::default();
        let rule = |failures: u64| {
            let mut rule = UrlRule::new("http://a.org", UrlChange::DropParameter("sid".to_owned()));
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
