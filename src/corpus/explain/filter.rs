//! What the filter of the last run says of a URL.

use crate::frontier::{Address, QueuePlace, Rank, State, patterns_for, stored_filter};
use crate::store::{Error, Snapshot};
use crate::urls::{KeptOut, PageUrl, Pattern};

use super::words::{ExplainedFacts, said};

/// Patterns that are named at most.
const NAMED_MAX: usize = 5;

/// Names the pattern that keeps a URL out; none for one that nobody has found yet.
pub(super) fn facts(
    snapshot: &Snapshot,
    url: &PageUrl,
    address: Option<&Address>,
    facts: &mut ExplainedFacts,
) -> Result<(), Error> {
    let place = match address {
        // As if somebody linked to it.
        None => QueuePlace { rank: Rank::Link, depth: 1, sequence: 0 },
        Some(Address { state: State::Queued | State::Refused(_), place, .. }) => *place,
        Some(_) => return Ok(()),
    };
    let is_kept_out = address.is_some_and(
        |address| matches!(address.state, State::Refused(reason) if reason.is_of_filter()),
    );
    let is_waiting = address.is_none_or(|address| address.state == State::Queued);
    if !is_kept_out && !is_waiting {
        return Ok(());
    }
    let Some(filter) = stored_filter(snapshot)? else { return Ok(()) };
    let kept_out = patterns_for(place).and_then(|asked| filter.keeps_out(url, asked));
    let told = match kept_out {
        None if is_kept_out => {
            said!("that of an earlier run kept it out", "先前一次运行的过滤规则将它排除")
        }
        None => return Ok(()),
        Some(KeptOut::Excluded(pattern, None)) => {
            said!("excluded by {pattern}", "被 {pattern} 排除")
        }
        Some(KeptOut::Excluded(pattern, Some(host))) => {
            said!("excluded by {pattern} of {host}", "被 {host} 的 {pattern} 排除")
        }
        Some(KeptOut::NotIncluded(host)) => {
            let named = named(filter.includes_of(host));
            said!("matched by none of {named}", "不匹配其中任何一个：{named}")
        }
    };
    facts.add("filter", told);
    Ok(())
}

/// The first patterns of a list.
fn named<'a>(patterns: impl Iterator<Item = &'a Pattern>) -> String {
    let mut named: Vec<&str> = patterns.take(NAMED_MAX + 1).map(Pattern::as_str).collect();
    if named.len() > NAMED_MAX {
        named[NAMED_MAX] = "...";
    }
    named.join(", ")
}
