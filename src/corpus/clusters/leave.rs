//! Copies that leave their documents: their pages are gone, or say something else.
//!
//! A text that no page carries any more is removed, but for the root of a tree, with which new
//! copies are compared. A document whose last copy leaves is kept with its text and marked as gone:
//! it comes back when another page turns out to carry it.

use crate::base::clock::Timestamp;
use crate::corpus::documents::{
    Copy, note_changed, remove_page, take_back_arrival, write_document,
};
use crate::corpus::tables::{CONTENTS, COPIES, UNSURE};
use crate::store::{Error, Transaction, Update as _, View as _};

use super::moves::{recount, remove_content};
use super::{Arrival, Article, Joined, Match, Place, add_content, join, must_read, note, stand};

/// What a copy has left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Contents that are removed, by their numbers.
    pub contents: Vec<u64>,
    /// Its document has no copy any more.
    pub gone: bool,
    /// The copy that is canonical in its place, if it was.
    pub heir: Option<String>,
}

/// Removes the copy of `document` at `address`, and elects the canonical copy anew.
pub fn leave(
    batch: &mut impl Transaction,
    document: u64,
    address: &str,
    now: Timestamp,
) -> Result<Left, Error> {
    let was_canonical = must_read(batch, document)?.canonical == address;
    let mut left = take_out(batch, document, address)?;
    recount(batch, document, now)?;
    let row = must_read(batch, document)?;
    left.gone = row.gone.0 != 0;
    left.heir = (was_canonical && !left.gone).then_some(row.canonical);
    Ok(left)
}

/// Gives the copy of `document` at the URL of an article another text, which belongs at
/// `place`.
///
/// A document with this copy only follows its page and keeps its identifier, unless the text has
/// another document already. Otherwise the copy stays, or goes where it belongs, and the document
/// that it leaves elects its canonical copy anew.
pub fn change(
    batch: &mut impl Transaction,
    document: u64,
    arrival: Arrival<'_>,
    place: &Place,
) -> Result<(Joined, Left), Error> {
    let Arrival { article, links, now } = arrival;
    if says_the_same(batch, document, &article.address, place)? {
        refresh(batch, document, article, links, now)?;
        let row = must_read(batch, document)?;
        let canonical = row.canonical == article.address;
        let joined = Joined { document, id: row.id, canonical, content: None };
        return Ok((joined, Left::default()));
    }
    let lone = must_read(batch, document)?.copies == 1;
    let stays = match place {
        Place::New => lone,
        Place::Tree(matched) => matched.document == document,
    };
    if stays && lone && !matches!(place, Place::Tree(matched) if matched.same.is_some()) {
        return renew(batch, document, arrival);
    }
    let left = if stays {
        let left = take_out(batch, document, &article.address)?;
        let mut row = must_read(batch, document)?;
        row.copies = row.copies.saturating_sub(1);
        write_document(batch, document, &row)?;
        left
    } else {
        leave(batch, document, &article.address, now)?
    };
    let mut joined = join(batch, article, place, links, now)?;
    if stays {
        // It is a copy as it was before.
        take_back_arrival(batch, document, now)?;
        recount(batch, document, now)?;
        joined.canonical = must_read(batch, document)?.canonical == article.address;
    }
    Ok((joined, left))
}

/// Tells whether a copy has the text already that its page says, and is alone with it: the text
/// would be removed with the copy before this one came.
fn says_the_same(
    batch: &impl Transaction,
    document: u64,
    address: &str,
    place: &Place,
) -> Result<bool, Error> {
    let Place::Tree(Match { document: to, same: Some(same), .. }) = place else { return Ok(false) };
    let copy = batch.get(COPIES, (document, address))?;
    if *to != document || copy.is_none_or(|copy| copy.content != *same) {
        return Ok(false);
    }
    Ok(batch.get(CONTENTS, *same)?.is_some_and(|content| content.copies == 1))
}

/// Notes what the page of a copy says of itself while its text is the same.
pub fn refresh(
    batch: &mut impl Transaction,
    document: u64,
    article: &Article,
    links: u64,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(was) = batch.get(COPIES, (document, &article.address))? else { return Ok(()) };
    let copy = Copy {
        popularity: article.score.unwrap_or(links),
        scored: article.score.is_some(),
        title: article.title.clone(),
        language: article.language.clone(),
        facts: article.facts.clone(),
        terms: article.terms,
        declared: article.declared.clone(),
        ..was.clone()
    };
    if copy == was {
        return Ok(());
    }
    batch.put(COPIES, (document, &article.address), &copy)?;
    if copy.terms != was.terms {
        // What may be shown of the document is another thing now.
        note_changed(batch, document)?;
    }
    if (copy.popularity, &copy.declared) != (was.popularity, &was.declared) {
        return recount(batch, document, now);
    }
    let mut row = must_read(batch, document)?;
    if row.canonical == article.address {
        stand(&mut row, &article.address, &copy);
    }
    write_document(batch, document, &row)
}

/// Gives the only copy of a document another text, which becomes the root of its tree.
fn renew(
    batch: &mut impl Transaction,
    document: u64,
    Arrival { article, links, now }: Arrival<'_>,
) -> Result<(Joined, Left), Error> {
    let root = must_read(batch, document)?.root;
    let content = add_content(batch, article, document, None, now)?;
    let mut row = must_read(batch, document)?;
    row.root = content;
    write_document(batch, document, &row)?;
    let mut left = take_out(batch, document, &article.address)?;
    put_down(batch, root, document, &mut left)?;
    let copy = article.copy(content, None, links, now);
    batch.put(COPIES, (document, &article.address), &copy)?;
    let was = row.canonical.clone();
    stand(&mut row, &article.address, &copy);
    row.last_arrival = now;
    note(batch, document, was, &row, now)?;
    write_document(batch, document, &row)?;
    let joined = Joined { document, id: row.id, canonical: true, content: Some(content) };
    Ok((joined, left))
}

/// Removes a copy; its document is not counted anew.
fn take_out(batch: &mut impl Transaction, document: u64, address: &str) -> Result<Left, Error> {
    let mut left = Left::default();
    if let Some(copy) = batch.get(COPIES, (document, address))? {
        batch.remove(COPIES, (document, address))?;
        remove_page(batch, address)?;
        if let Some(mut content) = batch.get(CONTENTS, copy.content)? {
            content.copies = content.copies.saturating_sub(1);
            batch.put(CONTENTS, copy.content, &content)?;
        }
        put_down(batch, copy.content, document, &mut left)?;
    }
    Ok(left)
}

/// Removes a content that nothing needs any more.
fn put_down(
    batch: &mut impl Transaction,
    number: u64,
    document: u64,
    left: &mut Left,
) -> Result<(), Error> {
    let Some(content) = batch.get(CONTENTS, number)? else { return Ok(()) };
    if content.copies > 0 {
        return Ok(());
    }
    batch.remove(UNSURE, number)?;
    let row = must_read(batch, document)?;
    // Of merged documents, texts may be packed against the root that one of them had.
    if number != row.root && row.merged.is_empty() {
        remove_content(batch, number)?;
        left.contents.push(number);
    }
    Ok(())
}
