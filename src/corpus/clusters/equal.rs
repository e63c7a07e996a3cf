//! Contents of one text. There is one for each text, but for pages of one site that are no copies
//! of each other although their texts are equal: the first is found by its hash, the others follow.

use redb::ReadableTable as _;

use crate::store::{Error, Tables};

/// Contents of one text that are looked at.
const EQUAL_MAX: usize = 16;

/// Returns the contents that have a text of this hash, the first one first; of very many some.
pub fn contents(tables: &Tables<'_>, hash: u128) -> Result<Vec<u64>, Error> {
    let mut found: Vec<u64> = tables.exact.get(hash)?.map(|row| row.value()).into_iter().collect();
    if !found.is_empty() {
        for row in tables.twins.range((hash, 0)..=(hash, u64::MAX))?.take(EQUAL_MAX) {
            found.push(row?.0.value().1);
        }
    }
    Ok(found)
}

/// Notes that a content has a text of this hash.
pub(super) fn add(tables: &mut Tables<'_>, hash: u128, content: u64) -> Result<(), Error> {
    if tables.exact.get(hash)?.is_some() {
        tables.twins.insert((hash, content), ())?;
    } else {
        tables.exact.insert(hash, content)?;
    }
    Ok(())
}

/// Forgets a content that has a text of this hash.
pub(super) fn remove(tables: &mut Tables<'_>, hash: u128, content: u64) -> Result<(), Error> {
    let is_first = tables.exact.get(hash)?.is_some_and(|row| row.value() == content);
    if !is_first {
        tables.twins.remove((hash, content))?;
        return Ok(());
    }
    let next = tables.twins.range((hash, 0)..=(hash, u64::MAX))?.next().transpose()?;
    match next.map(|(key, _)| key.value()) {
        Some(twin) => {
            tables.twins.remove(twin)?;
            tables.exact.insert(hash, twin.1)?;
        }
        None => drop(tables.exact.remove(hash)?),
    }
    Ok(())
}
