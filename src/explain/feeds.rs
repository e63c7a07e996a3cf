//! What feeds of verdicts say of an address, and how far they are believed.

use crate::documents::{DocId, read_document};
use crate::frontier::{Address, State};
use crate::store::{Error, ReadTables};
use crate::urls::PageUrl;
use crate::verdicts::{DAY_MS, Feed, FeedHost, canonical_id, page_of, said_of};

use crate::clock::Timestamp;

fn read_feed(tables: &ReadTables, number: u64) -> Result<Option<Feed>, Error> {
    let row = tables.feeds.get(number)?;
    Ok(row.map(|row| Feed::decode(row.value())).transpose()?)
}

/// Says why an address is not fetched.
pub(super) fn by_feed(tables: &ReadTables, number: u64, of: &str) -> Result<String, Error> {
    let feed = read_feed(tables, number)?;
    let name = feed.map_or_else(|| format!("{number}, which is gone"), |feed| feed.in_words());
    let page = Address::read(&tables.addresses, of)?;
    let what = match page.map(|page| page.state) {
        Some(State::Queued) => "the page that will be visited at",
        _ => "the page at",
    };
    Ok(format!("not fetched: by the feed {name} it is a copy of {what} {of}"))
}

/// What each feed says of an address, and its evidence.
pub(super) fn facts(
    tables: &ReadTables,
    url: &PageUrl,
    facts: &mut Vec<(String, String)>,
) -> Result<(), Error> {
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    for said in said_of(&tables.verdicts, url.as_str())? {
        let Some((canonical, day)) = said.copy_of else { continue };
        let Some(feed) = read_feed(tables, said.feed)? else { continue };
        fact("feed", format!("{}: {}", said.feed, feed.in_words()));
        let page = page_of(&tables.known_pages, canonical, None)?;
        let day = Timestamp((day.cast_signed()).saturating_mul(DAY_MS)).to_string();
        let day = day.split('T').next().unwrap_or_default().to_owned();
        let of = page.as_deref().unwrap_or("a page that is not known here");
        fact("feed says", format!("a copy of {of}, seen on {day}"));
        if let Some(id) = canonical_id(&tables.verdicts, canonical, said.feed)? {
            fact("docId of the feed", DocId(id).to_string());
        }
        let host = FeedHost::read(&tables.feed_hosts, said.feed, url.host_key().as_str())?;
        let host = host.unwrap_or_default();
        let told = match (feed.lost, host.failed) {
            (true, _) => ": not believed any more",
            (false, 0) => "",
            _ => ": not believed for this host any more",
        };
        let all = host.held + host.failed;
        fact("feed was right", format!("for {} of {all} looked at on this host{told}", host.held));
        if let Some(page) = page
            && let Some(Address { state: State::Stored(document), .. }) =
                Address::read(&tables.addresses, &page)?
            && let Some(document) = read_document(&tables.documents, document)?
        {
            fact("docId of that page", document.id.to_string());
        }
    }
    Ok(())
}
