//! Articles that come from outside a crawl: what is known of them, and what is kept of them.

use crate::base::clock::Timestamp;
use crate::corpus::clusters::{Article, Place};
use crate::corpus::documents::{Found, Sent, sent_content};
use crate::corpus::tables::COPIES;
use crate::frontier::{ADDRESSES, Address, State};
use crate::store::{Batch, Error, View as _};

use super::place::Placed;

/// Returns the content that a URL carries, and its document, if it was crawled or sent.
pub fn known_content(batch: &Batch, url: &str) -> Result<Option<(u64, u64)>, Error> {
    let address = batch.get(ADDRESSES, url)?;
    if let Some(Address { state: State::Stored(document), .. }) = address {
        let copy = batch.get(COPIES, (document, url))?;
        return Ok(copy.map(|copy| (copy.content, document)));
    }
    let sent = sent_content(batch, url)?;
    let Some((content, document)) = sent else { return Ok(None) };
    // The copy may have left since, because its page was gone.
    let copy = batch.get(COPIES, (document, url))?;
    Ok(copy.map(|_| (content, document)))
}

/// Returns what is kept of an article that was placed.
#[must_use]
pub fn sent_as(article: &Article, placed: &Placed, now: Timestamp) -> Sent {
    let (place, joined) = (&placed.judged.place, &placed.joined);
    let content = match (joined.content, place) {
        (Some(content), _) => content,
        (None, Place::Tree(matched)) => matched.same.unwrap_or_default(),
        (None, Place::New) => 0,
    };
    let (found, distance, similarity) = match place {
        Place::New => (Found::New, 0, 1.0),
        Place::Tree(matched) => (Found::Key(matched.key), matched.distance, matched.similarity),
    };
    Sent {
        content,
        copy: article.address.clone(),
        found,
        distance: distance as u8,
        similarity: thousandths(similarity),
        arrival: now,
    }
}

fn thousandths(similarity: f32) -> u16 {
    #[expect(clippy::cast_sign_loss, reason = "clamped to zero and above")]
    let thousandths = (similarity.clamp(0.0, 1.0) * 1000.0).round() as u16;
    thousandths
}
