//! Contents of one text. There is one for each text, but for pages of one site that are no copies
//! of each other although their texts are equal, and for a page that came behind a copy of it which
//! hung on another page of its site.

use crate::corpus::documents::Content;
use crate::corpus::tables::CONTENTS;
use crate::store::{Error, View};

/// Contents of one text that are looked at.
const EQUAL_MAX: usize = 17;

/// Returns those of some contents that have a text of this hash; of very many the first ones.
pub fn contents(
    view: &impl View,
    numbers: Vec<u64>,
    hash: u128,
) -> Result<Vec<(u64, Content)>, Error> {
    let mut found = Vec::new();
    for number in numbers {
        let row = view.get(CONTENTS, number)?;
        found.extend(row.filter(|row| row.hash == hash).map(|row| (number, row)));
        if found.len() == EQUAL_MAX {
            break;
        }
    }
    Ok(found)
}
