//! What was learned of addresses and hosts: rules, kinds of addresses, error pages.

use std::collections::BTreeMap;

use redb::ReadableTable as _;

use super::{Findings, hex, row_of};
use crate::corpus::boilerplate::ErrorPage;
use crate::frontier::rules::Rule;
use crate::frontier::{Address, Family, Reason, State};
use crate::store::{BadRow, Error, ReadTables};

/// Rules count what they skip, and every address that is skipped says so.
pub(super) fn rules(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let mut skipped: BTreeMap<u64, u64> = BTreeMap::new();
    for row in tables.skipped.iter()? {
        let (key, _) = row?;
        findings.look("skipped");
        let short = BadRow { kind: "skipped key", detail: "it has no number" };
        let parts = key.value().split_first_chunk::<8>().ok_or(short);
        let Some((cause, address)) = findings.read("skipped", hex(key.value()), parts) else {
            continue;
        };
        *skipped.entry(u64::from_be_bytes(*cause)).or_default() += 1;
        let address = String::from_utf8_lossy(address).into_owned();
        let known = row_of(Address::read(&tables.addresses, &address))?;
        let state = known.ok().flatten().map(|known| known.state);
        let fits = matches!(state, Some(State::Skipped { .. } | State::Refused(Reason::NoYield)));
        if !fits {
            findings.fault("skipped", || format!("{address} is in the list and not skipped"));
        }
    }
    for row in tables.rules.iter()? {
        let (number, row) = row?;
        let number = number.value();
        findings.look("rules");
        let counted = skipped.remove(&number).unwrap_or(0);
        let rule = findings.read("rules", number, Rule::decode(row.value()));
        if let Some(rule) = rule.filter(|rule| rule.skipped != counted) {
            findings.fault("rules", || {
                format!("rule {number} counts {} skipped of {counted}", rule.skipped)
            });
        }
    }
    for row in tables.rule_keys.iter()? {
        let (key, _) = row?;
        findings.look("rule_keys");
        let bad = BadRow { kind: "rule key", detail: "it has not 16 bytes" };
        let parts = key.value().split_first_chunk::<8>().filter(|(_, rest)| rest.len() == 8);
        let Some((rule, _)) = findings.read("rule_keys", hex(key.value()), parts.ok_or(bad)) else {
            continue;
        };
        let rule = u64::from_be_bytes(*rule);
        if tables.rules.get(rule)?.is_none() {
            findings.fault("rule_keys", || format!("a key is of rule {rule}, which is missing"));
        }
    }
    for row in tables.families.iter()? {
        let (number, row) = row?;
        let number = number.value();
        findings.look("families");
        let counted = skipped.remove(&number).unwrap_or(0);
        let family = findings.read("families", number, Family::decode(row.value()));
        if let Some(family) = family.filter(|family| family.stopped != counted) {
            findings.fault("families", || {
                format!("{} counts {} stopped of {counted}", family.pattern, family.stopped)
            });
        }
    }
    for (cause, count) in skipped {
        findings.fault("skipped", || format!("{count} are skipped by {cause}, which is missing"));
    }
    Ok(())
}

/// Error pages are of hosts that are known.
pub(super) fn error_pages(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.error_pages.iter()? {
        let (host, row) = row?;
        let host = host.value();
        findings.look("error_pages");
        findings.read("error_pages", host, ErrorPage::decode(row.value()));
        if tables.hosts.get(host)?.is_none() {
            findings.fault("error_pages", || format!("host {host} is missing"));
        }
    }
    Ok(())
}
