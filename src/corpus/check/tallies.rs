//! The order of copies, what came in each hour, and the articles that were sent.

use redb::{ReadableTable as _, ReadableTableMetadata as _};

use super::{Findings, hex};
use crate::corpus::documents::{Arrivals, Document, Sent, split_ranking_key};
use crate::store::{BadRow, Error, ReadTables, read_number};

/// The order of copies names each document of two copies and more at its place, and no other.
pub(super) fn ranking(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let mut ranked = 0;
    for row in tables.documents.iter()? {
        let row = row?.1;
        ranked += u64::from(Document::decode(row.value()).is_ok_and(|row| row.copies > 1));
    }
    for row in tables.ranking.iter()? {
        let row = row?;
        findings.look("ranking");
        let name = hex(row.0.value());
        let key = findings.read("ranking", &name, split_ranking_key(row.0.value()));
        let Some((copies, number)) = key else { continue };
        let document = tables.documents.get(number)?;
        let Some(document) = document else {
            findings.fault("ranking", || format!("ranking, row {name}: its document is missing"));
            continue;
        };
        // One that cannot be read was listed before.
        if let Ok(document) = Document::decode(document.value())
            && document.copies != copies
        {
            let counted = document.copies;
            findings.fault("ranking", || {
                format!("ranking, row {name}: {copies} copies, its document counts {counted}")
            });
        }
    }
    let rows = tables.ranking.len()?;
    if rows < ranked {
        findings.fault("ranking", || format!("{ranked} documents of several copies, {rows} rows"));
    }
    Ok(())
}

/// What came in each hour can be read.
pub(super) fn times(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    for row in tables.arrivals.iter()? {
        let (hour, row) = row?;
        findings.look("arrivals");
        let arrivals = findings.read("arrivals", hour.value(), Arrivals::decode(row.value()));
        if arrivals.is_some_and(|arrivals| arrivals.documents > arrivals.copies) {
            let hour = hour.value();
            findings.fault("arrivals", || format!("hour {hour} has more documents than copies"));
        }
    }
    for row in tables.growth.iter()? {
        let (key, copies) = row?;
        findings.look("growth");
        if key.value().len() != 16 || copies.value() == 0 {
            let name = hex(key.value());
            findings.fault("growth", || format!("growth, row {name} tells nothing"));
        }
    }
    Ok(())
}

/// Articles that were sent can be read, and name contents that are or have been there: their
/// documents may have ended since.
pub(super) fn sent(tables: &ReadTables, findings: &mut Findings) -> Result<(), Error> {
    let last = match tables.meta.get("next_content")? {
        Some(row) => findings.read("meta", "next_content", read_number(row.value())),
        None => Some(0),
    };
    let last = last.unwrap_or(u64::MAX);
    for row in tables.sent.iter()? {
        let (nid, row) = row?;
        findings.look("sent");
        let sent = sent_row(nid.value(), row.value());
        let Some(sent) = findings.read("sent", nid.value(), sent) else { continue };
        never_was(findings, ("sent", nid.value()), sent.content, last);
    }
    for row in tables.sent_urls.iter()? {
        let (url, content) = row?;
        findings.look("sent_urls");
        never_was(findings, ("sent_urls", url.value()), content.value(), last);
    }
    Ok(())
}

fn sent_row(nid: &str, row: &[u8]) -> Result<Sent, BadRow> {
    if nid.is_empty() {
        return Err(BadRow { kind: "sent", detail: "it has no name" });
    }
    Sent::decode(row)
}

fn never_was(findings: &mut Findings, (table, key): (&'static str, &str), content: u64, last: u64) {
    if content == 0 || content > last {
        findings.fault(table, || format!("{table}, row {key}: content {content} never was"));
    }
}
