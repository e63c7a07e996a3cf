//! What became of the address that a page names as canonical.

use crate::documents::{Copy, Document, read_copy};
use crate::frontier::{Address, State};
use crate::store::{Error, ReadTables};

/// Says which address the page of a copy names as canonical, and whether that is followed; none if
/// it names no other one.
pub fn declared(
    tables: &ReadTables,
    (number, document): (u64, &Document),
    copy: &Copy,
) -> Result<Option<String>, Error> {
    let named = &copy.declared;
    if named.is_empty() {
        return Ok(None);
    }
    let what = if let Some(other) = read_copy(&tables.copies, number, named)? {
        if *named == document.canonical {
            "followed".to_owned()
        } else if other.popularity < document.popularity {
            format!("a copy of the same document, less popular than {}", document.canonical)
        } else {
            format!("a copy of the same document; {} stands for both", document.canonical)
        }
    } else {
        format!("not followed: {}", why_not(tables, named)?)
    };
    Ok(Some(format!("{named} ({what})")))
}

fn why_not(tables: &ReadTables, named: &str) -> Result<String, Error> {
    let Some(address) = Address::read(&tables.addresses, named)? else {
        return Ok("it was never found as a link".to_owned());
    };
    Ok(match address.state {
        State::Stored(_) => "it is another document".to_owned(),
        State::Queued => "it was not visited yet".to_owned(),
        State::Redirect(target) => format!("it redirects to {target}"),
        State::Skipped { of, .. } | State::Known { of, .. } => {
            format!("it is not fetched, as the page at {of}")
        }
        State::Refused(reason) => format!("it is not in the corpus: {}", reason.describe()),
    })
}
