//! The order of copies, what came in each hour, and the articles that were sent.

use super::{Findings, Spot, hex, row_of};
use crate::corpus::documents::Sent;
use crate::corpus::tables::{ARRIVALS, DOCUMENTS, GROWTH, RANKING, SENT, SENT_URLS};
use crate::store::{BadRow, Entry, Error, META, Snapshot, View as _, read_number};

/// The order of copies names each document of two copies and more at its place, and no other.
pub(super) fn ranking(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let mut ranked = 0;
    for entry in snapshot.rows(DOCUMENTS)? {
        ranked += u64::from(entry?.row().is_ok_and(|row| row.copies > 1));
    }
    for entry in snapshot.rows(RANKING)? {
        let entry = entry?;
        findings.look("ranking");
        let name = hex(entry.key_bytes());
        let Some((copies, number)) = findings.read("ranking", &name, entry.key()) else { continue };
        let Some(document) = row_of(snapshot.get(DOCUMENTS, number))?.transpose() else {
            findings.fault("ranking", || format!("ranking, row {name}: its document is missing"));
            continue;
        };
        // One that cannot be read was listed before.
        if let Ok(document) = document
            && document.copies != copies
        {
            let counted = document.copies;
            findings.fault("ranking", || {
                format!("ranking, row {name}: {copies} copies, its document counts {counted}")
            });
        }
    }
    let rows = snapshot.len(RANKING)?;
    if rows < ranked {
        findings.fault("ranking", || format!("{ranked} documents of several copies, {rows} rows"));
    }
    Ok(())
}

/// What came in each hour can be read.
pub(super) fn times(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    for entry in snapshot.rows(ARRIVALS)? {
        let entry = entry?;
        findings.look("arrivals");
        let hour = entry.key()?;
        let arrivals = findings.read("arrivals", hour, entry.row());
        if arrivals.is_some_and(|arrivals| arrivals.documents > arrivals.copies) {
            findings.fault("arrivals", || format!("hour {hour} has more documents than copies"));
        }
    }
    for entry in snapshot.rows(GROWTH)? {
        let entry = entry?;
        findings.look("growth");
        if entry.key().is_err() || entry.row()? == 0 {
            let name = hex(entry.key_bytes());
            findings.fault("growth", || format!("growth, row {name} tells nothing"));
        }
    }
    Ok(())
}

/// Articles that were sent can be read, and name contents that are or have been there: their
/// documents may have ended since.
pub(super) fn sent(snapshot: &Snapshot, findings: &mut Findings) -> Result<(), Error> {
    let last = match snapshot.bytes(META, "next_content")? {
        Some(row) => findings.read("meta", "next_content", read_number(&row)),
        None => Some(0),
    };
    let last = last.unwrap_or(u64::MAX);
    for entry in snapshot.rows(SENT)? {
        let entry = entry?;
        findings.look("sent");
        let nid = entry.key()?;
        let Some(sent) = findings.read("sent", nid, sent_row(&entry)) else { continue };
        never_was(findings, Spot { table: "sent", key: nid }, sent.content, last);
    }
    for entry in snapshot.rows(SENT_URLS)? {
        let entry = entry?;
        findings.look("sent_urls");
        never_was(findings, Spot { table: "sent_urls", key: entry.key()? }, entry.row()?, last);
    }
    Ok(())
}

fn sent_row(entry: &Entry<'_, &'static str, Sent>) -> Result<Sent, BadRow> {
    if entry.key_bytes().is_empty() {
        return Err(BadRow { kind: "sent", detail: "it has no name" });
    }
    entry.row()
}

fn never_was(findings: &mut Findings, spot: Spot<'_>, content: u64, last: u64) {
    if content == 0 || content > last {
        findings.fault(spot.table, || format!("{spot}: content {content} never was"));
    }
}
