//! The index of a store made anew, for other settings than before.

use crate::corpus::tables::{CONTENTS, INDEX_LOG, KEYS, MERGES, NEAR, SEGMENTS};
use crate::neardup::segment::{Posting, Segment};
use crate::neardup::{Config, Finder};
use crate::store::{Batch, Error, META, Store, Update as _, View as _};

use super::blocks::keep;
use super::rows::StoredSegment;

/// Name of the settings of the index in [`META`].
const SETTINGS: &str = "index";

/// Contents of a segment.
const CONTENTS_AT_A_TIME: u64 = 1 << 14;

/// Makes the index anew unless it was made for these settings. Interrupted, it begins again.
pub(super) fn build_if_other(store: &Store, finder: &Finder, config: &Config) -> Result<(), Error> {
    let name = config.index_name();
    if store.setting(SETTINGS)?.as_deref() == Some(&name) {
        return Ok(());
    }
    let mut batch = store.begin()?;
    batch.clear(NEAR, ..)?;
    batch.clear(KEYS, ..)?;
    batch.clear(SEGMENTS, ..)?;
    batch.clear(MERGES, ..)?;
    batch.clear(INDEX_LOG, ..)?;
    batch.remove(META, SETTINGS)?;
    batch.commit()?;
    let snapshot = store.snapshot()?;
    let mut postings = Vec::new();
    let mut contents = 0;
    for entry in snapshot.rows(CONTENTS)? {
        let entry = entry?;
        let own = finder.postings(entry.key()?, &entry.row()?.keys());
        contents += u64::from(!own.is_empty());
        postings.extend(own);
        if contents == CONTENTS_AT_A_TIME {
            let mut batch = store.begin()?;
            add(&mut batch, contents, std::mem::take(&mut postings))?;
            batch.commit()?;
            contents = 0;
        }
    }
    let mut batch = store.begin()?;
    if contents > 0 {
        add(&mut batch, contents, postings)?;
    }
    batch.put(META, SETTINGS, &name.into_bytes())?;
    batch.commit()
}

/// Adds a segment.
fn add(batch: &mut Batch, contents: u64, postings: Vec<(u8, Posting)>) -> Result<(), Error> {
    let number = batch.next_number("next_segment")? as u32;
    let (segment, written) = Segment::of(number, contents, postings);
    keep(batch, written)?;
    batch.put(SEGMENTS, number, &StoredSegment::of(&segment, true))
}
