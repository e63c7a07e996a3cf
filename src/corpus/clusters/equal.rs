//! Contents of one text. There is one for each text, but for pages of one site that are no copies
//! of each other although their texts are equal.

use crate::corpus::documents::Content;
use crate::corpus::index::Index;
use crate::corpus::tables::CONTENTS;
use crate::store::{Batch, Error, View as _};

/// Contents of one text that are looked at.
const EQUAL_MAX: usize = 17;

/// Returns the contents that have a text of this hash, older ones first; of very many some.
pub fn contents(batch: &Batch, index: &Index, hash: u128) -> Result<Vec<(u64, Content)>, Error> {
    let mut found = Vec::new();
    for number in index.equal_texts(batch, hash)? {
        let row = batch.get(CONTENTS, number)?;
        found.extend(row.filter(|row| row.hash == hash).map(|row| (number, row)));
        if found.len() == EQUAL_MAX {
            break;
        }
    }
    Ok(found)
}
