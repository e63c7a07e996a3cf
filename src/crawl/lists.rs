//! Fingerprinting of sitemaps and feeds: an answer becomes a list of URLs.

use crate::frontier::{Lease, Listed, Reason, Settlement};
use crate::web::discover::{self, AddressList, NotAList};
use crate::web::fetch::Response;
use crate::web::fetch::decode;
use crate::web::robots::meta::Directives;

use super::Settings;
use super::fingerprint::{With, Yield};

/// Reads the answer to a request for a sitemap.
pub(super) fn sitemap(lease: &Lease, response: &Response, with: With<'_>) -> Yield {
    let settings = with.settings;
    let config = &settings.frontier.discover;
    let refused = |reason| Yield::Settled(Settlement::Refused(reason));
    let body = &response.body;
    let codings = &response.content_encoding;
    let Ok(reader) = decode::reader(body, codings, config.size_max.bytes() as u64) else {
        return refused(Reason::BadEncoding);
    };
    match discover::read(reader, body.len(), config, settings.fetch.decoded_ratio_max) {
        Ok(list) => listed(lease, &list, response.cut, false, settings),
        Err(NotAList::Other) => refused(Reason::NotASitemap),
        Err(NotAList::Bomb) => refused(Reason::Bomb),
    }
}

/// Reads what came as a page and is a list; none if it is a page.
pub(super) fn page(
    lease: &Lease,
    response: &Response,
    bytes: &[u8],
    settings: &Settings,
) -> Option<Yield> {
    let content_type = response.content_type.as_deref();
    if !discover::may_be_list(content_type, bytes) {
        return None;
    }
    let config = &settings.frontier.discover;
    let ratio = settings.fetch.decoded_ratio_max;
    match discover::read(bytes, bytes.len(), config, ratio) {
        Ok(list) => {
            let agent = &settings.frontier.agent;
            let nofollow =
                response.robots_tags.iter().any(|tag| Directives::from_header(tag, agent).nofollow);
            let is_feed = list.kind.is_feed();
            Some(listed(lease, &list, response.cut, nofollow && is_feed, settings))
        }
        // HTML that is sent as a feed is no page either: no browser shows it.
        Err(_) if discover::is_feed_type(content_type) => {
            Some(Yield::Settled(Settlement::Refused(Reason::NotAPage)))
        }
        Err(_) => None,
    }
}

fn listed(
    lease: &Lease,
    list: &AddressList,
    cut: bool,
    nofollow: bool,
    settings: &Settings,
) -> Yield {
    let mut bad = list.bad;
    let entries = list.entries.iter().filter_map(|text| {
        let url = lease.url.join(text, &settings.normalize).ok();
        bad += u64::from(url.is_none());
        url
    });
    let entries = entries.collect();
    let cut = if cut { Some(discover::ListCut::Bytes) } else { list.cut };
    let (kind, faults) = (list.kind, list.faults);
    Yield::List(Box::new(Listed { kind, entries, bad, faults, cut, nofollow }))
}
