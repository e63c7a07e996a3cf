//! What lies in the tables of the frontier, and the types of their keys and rows.
//! docs/src/reference/store-format.md draws the rows.

use std::borrow::Cow;

use crate::base::clock::Timestamp;
use crate::store::{BadRow, Coded, FixedKey, Key, Name, Table};

use super::duplicate_feed::{Feed, FeedHost, Role};
use super::lists::List;
use super::robots_copy::RobotsCopy;
use super::rows::{Address, Host, QueuePlace, Rank, Request};
use super::rules::UrlRule;
use super::shards::SentLink;
use super::url_pattern::UrlPattern;

/// Host key, such as `https://example.org` -> number of the host.
pub const HOST_NUMBERS: Table<&str, u32> = Table::new(Name::HostNumbers);
/// Host number -> what is known of the host.
pub const HOSTS: Table<u32, Host> = Table::new(Name::Hosts);
/// Registrable domain -> number of its hosts.
pub const DOMAINS: Table<&str, u64> = Table::new(Name::Domains);
/// Host number, hash of a pattern -> links of that pattern that were let in.
pub const PATTERNS: Table<(u32, u64), u64> = Table::new(Name::Patterns);
/// Host number -> copy of its robots.txt.
pub const ROBOTS: Table<u32, RobotsCopy> = Table::new(Name::Robots);
/// URL -> what is known of it.
pub const ADDRESSES: Table<&str, Address> = Table::new(Name::Addresses);
/// Host number, place -> queued request.
pub const QUEUE: Table<(u32, QueuePlace), Request> = Table::new(Name::Queue);
/// When it is due, host number, place -> request that waits before it is queued there.
pub const LATER: Table<(Timestamp, (u32, QueuePlace)), Request> = Table::new(Name::Later);
/// When it is due, host number: hosts with a queue.
pub const SCHEDULE: Table<(Timestamp, u32), ()> = Table::new(Name::Schedule);
/// When it is due, address: what was visited and is to be again. A URL has one row there, or
/// is in a queue, or was never visited.
pub const REVISITS: Table<(Timestamp, &str), ()> = Table::new(Name::Revisits);
/// URL of a sitemap or feed -> what it came to.
pub const LISTS: Table<&str, List> = Table::new(Name::Lists);
/// Hash of a URL, number of a linking host: links between hosts.
pub const INLINKS: Table<(u64, u32), ()> = Table::new(Name::Inlinks);
/// Hash of a kind of URLs -> what it has given.
pub const URL_PATTERNS: Table<u64, UrlPattern> = Table::new(Name::UrlPatterns);
/// Hash of an address: pages by which stored pages were found first.
pub const LEADS: Table<u64, ()> = Table::new(Name::Leads);
/// Number of a rule -> rule of duplicate URLs with its evidence.
pub const RULES: Table<u64, UrlRule> = Table::new(Name::Rules);
/// Number of a rule, hash of what it makes of a URL -> the first such URL.
pub const RULE_KEYS: Table<(u64, u64), String> = Table::new(Name::RuleKeys);
/// Number of a rule, or hash of a kind of URLs, address: what is not visited because of it.
pub const SKIPPED: Table<(u64, &str), ()> = Table::new(Name::Skipped);
/// Number of a duplicate feed -> the feed with its evidence.
pub const FEEDS: Table<u64, Feed> = Table::new(Name::Feeds);
/// Number of a feed, host key -> what the feed has been worth for the host.
pub const FEED_HOSTS: Table<(u64, &str), FeedHost> = Table::new(Name::FeedHosts);
/// Hash of a URL, number of a feed -> what the feed says of it.
pub const DUPLICATES: Table<(u128, u64), Role> = Table::new(Name::Verdicts);
/// Hash of a canonical URL -> the URL, as it is known here. With the number of a feed
/// behind it: the first copy that was stored while the canonical page was not. It stands for it.
pub const KNOWN_PAGES: Table<(u128, Option<u64>), String> = Table::new(Name::KnownPages);
/// Hash of a URL, another one that is not fetched because it is a copy of it -> number of the
/// feed that says so.
pub const KNOWN_SKIPPED: Table<(u128, &str), u64> = Table::new(Name::KnownSkipped);

/// Shard, sequence -> URL that was found here and is to be sent there.
pub const OUTBOX: Table<(u32, u64), SentLink> = Table::new(Name::Outbox);

/// Rank (1 byte), depth (2), sequence (8).
impl Key for QueuePlace {
    type Ref<'a> = Self;

    fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
        let mut bytes = vec![key.rank as u8];
        bytes.extend_from_slice(&key.depth.to_be_bytes());
        bytes.extend_from_slice(&key.sequence.to_be_bytes());
        Cow::Owned(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadRow> {
        let bad = |detail| BadRow { kind: "queue key", detail };
        let bytes: [u8; Self::SIZE] = bytes.try_into().map_err(|_| bad("it has not 15 bytes"))?;
        let [rank, d0, d1, sequence @ ..] = bytes;
        Ok(Self {
            rank: Rank::from_code(rank.into()).ok_or_else(|| bad("its rank is unknown"))?,
            depth: u16::from_be_bytes([d0, d1]),
            sequence: u64::from_be_bytes(sequence),
        })
    }
}

impl FixedKey for QueuePlace {
    const SIZE: usize = 11;
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::super::rows::{Purpose, State};
    use super::super::rules::{Status, UrlChange};
    use super::super::{PageCut, Reason, Revisit, Validators};
    use super::*;
    use crate::store::{Encoder, Row};

    /// Asserts that a row has these bytes, and is read back.
    #[track_caller]
    fn is_stored<R: Row + PartialEq + Debug>(row: &R, bytes: Encoder) {
        let bytes = bytes.finish();
        assert_eq!(row.encode().as_ref(), bytes);
        assert_eq!(R::decode(&bytes).as_ref(), Ok(row));
        assert!(R::decode(&bytes[..bytes.len() - 1]).is_err(), "it is cut short");
    }

    fn numbers(row: Encoder, numbers: &[u64]) -> Encoder {
        numbers.iter().fold(row, |row, number| row.number(*number))
    }

    #[test]
    fn an_address_is_stored_with_what_goes_with_its_state() {
        let states = [
            (State::Queued, 0, 0, ""),
            (State::Stored(300), 1, 300, ""),
            (State::Redirect("http://b/".to_owned()), 2, 0, "http://b/"),
            (State::Refused(Reason::Dns), 3, 30, ""),
            (State::Skipped { rule: 7, of: "http://c/".to_owned() }, 4, 7, "http://c/"),
            (State::Known { feed: 8, of: "http://d/".to_owned() }, 5, 8, "http://d/"),
        ];
        for (state, code, number, text) in states {
            let validators = Validators { etag: "e".to_owned(), last_modified: "m".to_owned() };
            let address = Address {
                state,
                host: 9,
                place: QueuePlace { rank: Rank::Slow, depth: 3, sequence: 400 },
                hops: 1,
                failures: 2,
                links: 4,
                status: 200,
                trouble: Some(Reason::Busy),
                not_before: Timestamp(-5),
                cut: Some(PageCut::Tree),
                revisit: Revisit {
                    validators,
                    due: Timestamp(11),
                    interval_ms: 12,
                    visits: 13,
                    changes: 14,
                    changed: Timestamp(15),
                    unmodified: 16,
                    misses: 17,
                    waits: true,
                },
                links_beyond: 18,
                ..Address::found(Timestamp(10), "http://from/")
            };
            let bytes = numbers(Encoder::new(1), &[code, number]).text(text).number(9_u64);
            let bytes = numbers(bytes, &[6, 3, 400, 1, 2, 4, 200, 38]);
            let bytes = bytes.keys(10).keys(0).keys(-5).text("http://from/");
            let bytes = bytes.number(0_u64).number(3_u64).text("e").text("m").keys(11);
            let bytes = bytes.number(12_u64).number(13_u64).number(14_u64).keys(15);
            let bytes = bytes.number(16_u64).number(17_u64).number(true).number(18_u64);
            is_stored(&address, bytes);
        }
    }

    #[test]
    fn a_host_is_stored_with_its_ip_address_and_read_without_what_version_1_lacks() {
        let host = |key: &str, version, ip: &[u8]| {
            let row = Encoder::new(version).text(key).number(false).keys(0).keys(0);
            let row = numbers(row, &[0; 9]).keys(0);
            let row = row.number(0_u64).bytes(ip).number(0_u64).keys(0);
            numbers(row, &[0; 4])
        };
        for (key, ip) in [
            ("http://a.org", &[][..]),
            ("http://10.0.0.1", &[10, 0, 0, 1][..]),
            ("http://[::1]", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..]),
        ] {
            let row = host(key, 2, ip).number(1_u64).number(0_u64).number(0_u64);
            is_stored(&Host::new(key), row);
            let old = Host { queued_bytes: None, ..Host::new(key) };
            assert_eq!(Host::decode(&host(key, 1, ip).finish()), Ok(old));
        }
        let odd = host("http://a.org", 1, &[1, 2, 3]).finish();
        assert!(Host::decode(&odd).is_err());
    }

    #[test]
    fn requests_rules_and_verdicts_are_stored_as_they_are_drawn() {
        for (purpose, of, hops, is_sitemap) in [
            (Purpose::Page, 0, 0, 0_u64),
            (Purpose::Sitemap, 0, 0, 1),
            (Purpose::Robots { of: 5, hops: 2 }, 5, 2, 0),
        ] {
            let request = Request { purpose, url: "http://a/".to_owned() };
            is_stored(
                &request,
                numbers(Encoder::new(1), &[of, hops]).text("http://a/").number(is_sitemap),
            );
        }
        let change = UrlChange::SwapFolder("x".to_owned(), "y".to_owned());
        let mut rule = UrlRule::new("http://a", change);
        (rule.status, rule.held, rule.demotions) = (Status::Disabled, 1, 2);
        let bytes = Encoder::new(1).text("http://a").number(3_u64).text("x").text("y");
        let bytes = numbers(bytes, &[2, 1, 0, 0, 2, 0]);
        is_stored(&rule, bytes);
        is_stored(&Role::Copy { of: 6, day: 7 }, Encoder::new(1).wide(6).number(7_u64));
        is_stored(&Role::Canonical { doc_id: 8 }, Encoder::new(2).wide(8));
    }

    #[test]
    fn a_place_is_a_key_in_the_order_of_its_queue() {
        let place = QueuePlace { rank: Rank::Link, depth: 258, sequence: 3 };
        let bytes = [0, 0, 0, 9, 4, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3];
        assert_eq!(<(u32, QueuePlace) as Key>::encode((9, place)).as_ref(), bytes);
        assert_eq!(<(u32, QueuePlace) as Key>::decode(&bytes), Ok((9, place)));
        assert!(<(u32, QueuePlace) as Key>::decode(&bytes[..14]).is_err());
        assert!(<QueuePlace as Key>::decode(&[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        let page = <(u128, Option<u64>) as Key>::encode((1, None)).into_owned();
        let of_feed = <(u128, Option<u64>) as Key>::encode((1, Some(2))).into_owned();
        assert_eq!((page.len(), of_feed.len()), (16, 24));
        assert!(of_feed.starts_with(&page) && of_feed.ends_with(&[0, 2]));
    }
}
