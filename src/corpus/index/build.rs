//! The index of a store made anew, for other settings than before.

use crate::corpus::documents::{Content, read_body};
use crate::corpus::tables::{CONTENTS, INDEX_LOG, KEYS, MERGES, NEAR, SEGMENTS};
use crate::neardup::segment::{Posting, Segment};
use crate::neardup::{Config, Finder};
use crate::store::{Batch, Error, META, Store, Update as _, View};
use crate::text::features::sketch_of;

use super::blocks::keep;
use super::recent::postings_of;
use super::rows::StoredSegment;

/// Name in [`META`] of the settings for which the index was made; none as long as it is not whole.
pub const SETTINGS: &str = "index";

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
    let mut part = Part::default();
    let mut narrow = 0_u64;
    for entry in snapshot.rows(CONTENTS)? {
        let entry = entry?;
        let (number, mut row) = (entry.key()?, entry.row()?);
        if row.sketch.seconds.is_none() {
            if widen(&snapshot, number, &mut row, config.features.simplify)? {
                part.widened.push((number, row.clone()));
            } else {
                narrow += 1;
            }
        }
        let own = postings_of(finder, number, &row.keys());
        part.contents += u64::from(!own.is_empty());
        part.postings.extend(own);
        if part.contents.max(part.widened.len() as u64) >= CONTENTS_AT_A_TIME {
            let mut batch = store.begin()?;
            std::mem::take(&mut part).add(&mut batch)?;
            batch.commit()?;
        }
    }
    if narrow > 0 {
        tracing::warn!(
            contents = narrow,
            "not found by runs of words: their texts are not as they were"
        );
    }
    let mut batch = store.begin()?;
    part.add(&mut batch)?;
    batch.put(META, SETTINGS, &name.into_bytes())?;
    batch.commit()
}

/// Completes the sketch of a content that an older version has stored, from its text. Returns
/// whether it could: the sketch of the text must be the one that is stored.
fn widen(view: &impl View, content: u64, row: &mut Content, simplify: bool) -> Result<bool, Error> {
    let Some(text) = read_body(view, content)? else { return Ok(false) };
    let sketch = sketch_of(&text, simplify);
    let is_same = sketch.slots == row.sketch.slots;
    if is_same {
        row.sketch = sketch;
    }
    Ok(is_same)
}

/// Contents that are written at once.
#[derive(Default)]
struct Part {
    contents: u64,
    postings: Vec<(u8, Posting)>,
    /// Contents whose sketches are complete from now on.
    widened: Vec<(u64, Content)>,
}

impl Part {
    /// Adds them as a segment.
    fn add(self, batch: &mut Batch) -> Result<(), Error> {
        for (number, row) in &self.widened {
            batch.put(CONTENTS, *number, row)?;
        }
        if self.contents == 0 {
            return Ok(());
        }
        let number = batch.next_number("next_segment")? as u32;
        let (segment, written) = Segment::of(number, self.contents, self.postings);
        keep(batch, written)?;
        batch.put(SEGMENTS, number, &StoredSegment::of(&segment, true))
    }
}
