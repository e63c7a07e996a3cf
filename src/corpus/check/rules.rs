//! What was learned of URLs and hosts: rules, kinds of URLs, error pages.

use std::collections::BTreeMap;

use super::{Findings, hex, row_of};
use crate::corpus::tables::ERROR_PAGES;
use crate::frontier::{ADDRESSES, HOSTS, RULE_KEYS, RULES, Reason, SKIPPED, State, URL_PATTERNS};
use crate::store::{Error, Snapshot, View as _};

/// Rules count what they skip, and every URL that is skipped says so.
pub(super) fn rules(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let mut skipped: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in snapshot.rows(SKIPPED)? {
        let entry = entry?;
        findings.look("skipped");
        let key = findings.read("skipped", hex(entry.key_bytes()), entry.key());
        let Some((cause, address)) = key else { continue };
        *skipped.entry(cause).or_default() += 1;
        let known = row_of(snapshot.get(ADDRESSES, address))?;
        let state = known.ok().flatten().map(|known| known.state);
        let fits = matches!(state, Some(State::Skipped { .. } | State::Refused(Reason::NoYield)));
        if !fits {
            findings.fault("skipped", || format!("{address} is in the list and not skipped"));
        }
    }
    for entry in snapshot.rows(RULES)? {
        let entry = entry?;
        let number = entry.key()?;
        findings.look("rules");
        let counted = skipped.remove(&number).unwrap_or(0);
        let rule = findings.read("rules", number, entry.row());
        if let Some(rule) = rule.filter(|rule| rule.skipped != counted) {
            findings.fault("rules", || {
                format!("rule {number} counts {} skipped of {counted}", rule.skipped)
            });
        }
    }
    for entry in snapshot.rows(RULE_KEYS)? {
        let entry = entry?;
        findings.look("rule_keys");
        let key = findings.read("rule_keys", hex(entry.key_bytes()), entry.key());
        let Some((rule, _)) = key else { continue };
        if !snapshot.has(RULES, rule)? {
            findings.fault("rule_keys", || format!("a key is of rule {rule}, which is missing"));
        }
    }
    for entry in snapshot.rows(URL_PATTERNS)? {
        let entry = entry?;
        let number = entry.key()?;
        findings.look("url_patterns");
        let counted = skipped.remove(&number).unwrap_or(0);
        let url_pattern = findings.read("url_patterns", number, entry.row());
        if let Some(url_pattern) = url_pattern.filter(|url_pattern| url_pattern.stopped != counted)
        {
            findings.fault("url_patterns", || {
                format!(
                    "{} counts {} stopped of {counted}",
                    url_pattern.pattern, url_pattern.stopped
                )
            });
        }
    }
    for (cause, count) in skipped {
        findings.fault("skipped", || format!("{count} are skipped by {cause}, which is missing"));
    }
    Ok(())
}

/// Error pages are of hosts that are known.
pub(super) fn error_pages(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(ERROR_PAGES)? {
        let entry = entry?;
        let host = entry.key()?;
        findings.look("error_pages");
        findings.read("error_pages", host, entry.row());
        if !snapshot.has(HOSTS, host)? {
            findings.fault("error_pages", || format!("host {host} is missing"));
        }
    }
    Ok(())
}
