//! Rules by which two URLs are one page, learned from duplicates that were verified.
//!
//! Two copies of one document on one site whose URLs differ in one thing propose a rule: drop
//! this parameter, read this folder as that one, this host is that host. Every page that is stored
//! later and has a partner by the rule is evidence for or against it. A rule is active while the
//! lower bound of the share of pairs that held is high enough; then a URL whose partner is
//! stored is linked to it and not fetched. A few are fetched all the same, so that a rule that no
//! longer holds is found out; its skipped URLs are then let in again.
//!
//! Source: Bar-Yossef, Keidar, Schonfeld, Do Not Crawl in the DUST (2007); Dasgupta, Kumar,
//! Sasturkar, De-duping URLs via rewrite rules (2008).

mod change;
mod language;
mod learned;
mod rows;

use serde::{Deserialize, Serialize};

pub use change::UrlChange;
pub use learned::{Pair, Rules, document_of, take_skipped};
pub use rows::{Status, UrlRule};

/// How rules are learned and used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Learn rules and skip URLs by them.
    pub learn_rules: bool,
    /// Least pairs of URLs behind an active rule.
    pub pairs_min: u64,
    /// Least lower bound (Wilson, 95 %, one-sided) of the share of pairs that held.
    pub bound_min: f64,
    /// Of so many URLs that a rule would skip, one is fetched all the same; 0 for none.
    pub explore_one_in: u64,
    /// Most rules of one host.
    pub rules_per_host_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            learn_rules: true,
            pairs_min: 10,
            bound_min: 0.95,
            explore_one_in: 30,
            rules_per_host_max: 32,
        }
    }
}

/// Deviations of a normal distribution below which 95 % of it lie.
const Z: f64 = 1.644_853_6;

/// Lower bound of a share of which `held` of `all` trials are known. Source: Wilson (1927).
#[must_use]
pub fn lower_bound(held: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    let (n, share) = (all as f64, held as f64 / all as f64);
    let middle = share + Z * Z / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    (middle - spread) / (1.0 + Z * Z / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_that_of_wilson() {
        assert!(lower_bound(0, 0).abs() < 1e-9);
        assert!((lower_bound(10, 10) - 0.787).abs() < 0.001);
        assert!(lower_bound(51, 51) < 0.95);
        assert!(lower_bound(52, 52) >= 0.95);
        assert!(lower_bound(52, 53) < 0.95);
    }
}
