//! Contents of one text. There is one for each text, but for pages of one site that are no copies
//! of each other although their texts are equal: the first is found by its hash, the others follow.

use crate::corpus::tables::{EXACT, TWINS};
use crate::store::{Batch, Error, Update as _, View as _};

/// Contents of one text that are looked at.
const EQUAL_MAX: usize = 16;

/// Returns the contents that have a text of this hash, the first one first; of very many some.
pub fn contents(batch: &Batch, hash: u128) -> Result<Vec<u64>, Error> {
    let Some(first) = batch.get(EXACT, hash)? else { return Ok(Vec::new()) };
    let mut found = vec![first];
    for entry in batch.under(TWINS, hash)?.take(EQUAL_MAX) {
        found.push(entry?.key()?.1);
    }
    Ok(found)
}

/// Notes that a content has a text of this hash.
pub(super) fn add(batch: &mut Batch, hash: u128, content: u64) -> Result<(), Error> {
    if batch.has(EXACT, hash)? {
        batch.put(TWINS, (hash, content), &())
    } else {
        batch.put(EXACT, hash, &content)
    }
}

/// Forgets a content that has a text of this hash.
pub(super) fn remove(batch: &mut Batch, hash: u128, content: u64) -> Result<(), Error> {
    if batch.get(EXACT, hash)? != Some(content) {
        batch.remove(TWINS, (hash, content))?;
        return Ok(());
    }
    let next = match batch.under(TWINS, hash)?.next().transpose()? {
        Some(twin) => Some(twin.key()?.1),
        None => None,
    };
    match next {
        Some(twin) => {
            batch.remove(TWINS, (hash, twin))?;
            batch.put(EXACT, hash, &twin)
        }
        None => batch.remove(EXACT, hash).map(drop),
    }
}
