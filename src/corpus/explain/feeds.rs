//! What duplicate feeds say of a URL, and how far they are believed.

use crate::corpus::documents::DocId;
use crate::corpus::tables::DOCUMENTS;
use crate::frontier::duplicate_feed::{DAY_MS, Feed, Role, said_of};
use crate::frontier::{ADDRESSES, Address, DUPLICATES, FEED_HOSTS, FEEDS, KNOWN_PAGES, State};
use crate::store::{Error, Snapshot, View as _};
use crate::urls::PageUrl;

use crate::base::clock::Timestamp;

use super::words::{ExplainedFacts, Said, said};

/// Says why a URL is not fetched.
pub(super) fn by_feed(snapshot: &Snapshot, number: u64, of: &str) -> Result<Said, Error> {
    let feed = snapshot.get(FEEDS, number)?;
    let gone = || said!("{number}, which is gone", "{number}（已不存在）");
    let Said { en, zh } = feed.as_ref().map_or_else(gone, in_words);
    let page = snapshot.get(ADDRESSES, of)?;
    Ok(match page.map(|page| page.state) {
        Some(State::Queued) => said!(
            "not fetched: by the feed {en} it is a copy of the page that will be visited at {of}",
            "未抓取：按信息源 {zh}，它是将要访问的页面 {of} 的副本"
        ),
        _ => said!(
            "not fetched: by the feed {en} it is a copy of the page at {of}",
            "未抓取：按信息源 {zh}，它是页面 {of} 的副本"
        ),
    })
}

fn in_words(feed: &Feed) -> Said {
    let (en, Feed { name, publisher, made, .. }) = (feed.in_words(), feed);
    said!("{en}", "{publisher} 的 {name}，生成于 {made}")
}

/// What each feed says of a URL, and its evidence.
pub(super) fn facts(
    snapshot: &Snapshot,
    url: &PageUrl,
    facts: &mut ExplainedFacts,
) -> Result<(), Error> {
    for said in said_of(snapshot, url.as_str())? {
        let Role::Copy { of: canonical, day } = said.role else { continue };
        let Some(feed) = snapshot.get(FEEDS, said.feed)? else { continue };
        let Said { en, zh } = in_words(&feed);
        facts.add("feed", said!("{}: {en}", "{}：{zh}", said.feed));
        let page = snapshot.get(KNOWN_PAGES, (canonical, None))?;
        let day = Timestamp((day.cast_signed()).saturating_mul(DAY_MS)).to_string();
        let day = day.split('T').next().unwrap_or_default().to_owned();
        facts.add(
            "feed says",
            match &page {
                Some(of) => said!("a copy of {of}, seen on {day}", "{of} 的副本，见于 {day}"),
                None => said!(
                    "a copy of a page that is not known here, seen on {day}",
                    "此处未知的页面的副本，见于 {day}"
                ),
            },
        );
        if let Some(Role::Canonical { doc_id }) =
            snapshot.get(DUPLICATES, (canonical, said.feed))?
        {
            facts.add("docId of the feed", DocId(doc_id).to_string());
        }
        let host = snapshot.get(FEED_HOSTS, (said.feed, url.host_key().as_str()))?;
        let host = host.unwrap_or_default();
        let all = host.held + host.failed;
        let mut told = said!(
            "for {} of {all} looked at on this host",
            "在此主机上核对的 {all} 个中有 {} 个正确",
            host.held
        );
        match (feed.lost, host.failed) {
            (true, _) => told += said!(": not believed any more", "：不再采信"),
            (false, 0) => {}
            _ => told += said!(": not believed for this host any more", "：对此主机不再采信"),
        }
        facts.add("feed was right", told);
        if let Some(page) = page
            && let Some(Address { state: State::Stored(document), .. }) =
                snapshot.get(ADDRESSES, &page)?
            && let Some(document) = snapshot.get(DOCUMENTS, document)?
        {
            facts.add("docId of that page", document.id.to_string());
        }
    }
    Ok(())
}
