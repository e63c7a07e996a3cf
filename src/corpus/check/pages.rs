//! What is kept of pages beside their texts.

use super::Findings;
use crate::corpus::tables::{COPIES, PAGES};
use crate::frontier::{ADDRESSES, Address, State};
use crate::store::{Error, Snapshot, View as _};

/// What is kept can be read, and is of a page that is a copy. `all_have_copies` tells that every
/// stored URL has its copy.
pub(super) fn pages(
    snapshot: &Snapshot,
    all_have_copies: bool,
    findings: &mut Findings,
) -> Result<(), Error> {
    for entry in snapshot.rows(PAGES)? {
        let entry = entry?;
        findings.look("pages");
        let Some(url) = findings.read("pages", "of a URL", entry.key()) else { continue };
        let page = findings.read("pages", url, entry.row());
        if let Some(page) = page {
            findings.read("pages", url, page.details());
        }
        let address = snapshot.get(ADDRESSES, url)?;
        let is_copy = match address {
            Some(Address { state: State::Stored(number), .. }) => {
                all_have_copies || snapshot.has(COPIES, (number, url))?
            }
            _ => false,
        };
        if !is_copy {
            findings.fault("pages", || format!("pages, row {url}: no document has this copy"));
        }
    }
    Ok(())
}
