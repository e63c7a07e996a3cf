//! Which tables of a damaged store cannot be read.

use std::ops::Bound::Unbounded;
use std::path::Path;

use super::file::{caught, close, open_overlay};
use super::raw::Reading as _;
use super::{Error, Name, Snapshot};

/// Reads every row of a store, and returns the tables that have some that cannot be read, each with
/// the reason; nothing is written. Rows are not understood: see [`crate::corpus::check`].
///
/// # Errors
///
/// If not even one table can be opened.
pub fn damaged_tables(folder: &Path) -> Result<Vec<(&'static str, String)>, Error> {
    let path = folder.join("store.redb");
    let open = || open_overlay(&path, CACHE_BYTES).map(|(db, _)| db);
    let mut db = open()?;
    let mut damaged = Vec::new();
    for table in Name::ALL {
        let walked = caught(
            || path.clone(),
            || {
                for row in Snapshot::open(&db)?.raw_range(*table, Unbounded, Unbounded)? {
                    let (key, row) = row?;
                    // Texts are read as such.
                    let _ = (key.len(), row.len());
                }
                Ok(())
            },
        );
        if let Err(error) = walked {
            let detail = match error {
                Error::Corrupt { detail, .. } => detail,
                other => other.to_string(),
            };
            damaged.push((table.as_str(), detail));
            // A panic may have left locks behind that nobody can take any more.
            close(std::mem::replace(&mut db, open()?));
        }
    }
    close(db);
    Ok(damaged)
}

/// Memory for the pages that are read.
const CACHE_BYTES: usize = 16 << 20;
