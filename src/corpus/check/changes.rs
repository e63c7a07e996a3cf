//! The order of changes: each document stands at its last one, and at no other.

use super::{Findings, Numbers};
use crate::corpus::documents::NEXT_CHANGE;
use crate::corpus::tables::{CHANGE_LOG, CHANGE_PLACES, ENDED_LOG};
use crate::store::{Error, META, Snapshot, View as _, read_number};

/// Documents of a store that is older than this order have no place in it yet.
pub(super) fn changes(
    snapshot: &Snapshot,
    numbers: &Numbers,
    findings: &mut Findings,
) -> Result<(), Error> {
    let last = snapshot.bytes(META, NEXT_CHANGE)?.map(|row| read_number(&row)).transpose();
    let last = last?.unwrap_or(0);
    for entry in snapshot.rows(CHANGE_LOG)? {
        let entry = entry?;
        findings.look("change_log");
        let (place, document) = (entry.key()?, entry.row()?);
        if snapshot.get(CHANGE_PLACES, document)? != Some(place) {
            findings.fault("change_log", || format!("document {document} has another place"));
        }
        if place > last {
            findings.fault("change_log", || format!("change {place} has not come yet"));
        }
        if !numbers.documents.contains(document) {
            findings.fault("change_log", || format!("document {document} is missing"));
        }
    }
    let (places, listed) = (snapshot.len(CHANGE_PLACES)?, snapshot.len(CHANGE_LOG)?);
    if places != listed {
        findings.fault("change_places", || format!("{places} places of {listed} documents"));
    }
    for entry in snapshot.rows(ENDED_LOG)? {
        let entry = entry?;
        findings.look("ended_log");
        let place = entry.key()?;
        findings.read("ended_log", place, entry.row());
        if place > last || snapshot.has(CHANGE_LOG, place)? {
            findings.fault("ended_log", || format!("change {place} is another one"));
        }
    }
    Ok(())
}
