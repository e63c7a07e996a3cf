//! Why an address was crawled or not: everything the store knows of it, in words.

mod canonical;
mod feeds;

use std::time::Duration;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::discover::Kind;
use crate::documents::{read_content, read_copy, read_document};
use crate::frontier::{Address, Family, Host, List, Reason, RobotsCopy, State, pattern_key};
use crate::robots::meta::Terms;
use crate::rules::Rule;
use crate::store::{Error, ReadTables};
use crate::urls::{PageUrl, pattern};

pub use canonical::declared;

/// Redirects that are followed to the document behind an alias.
const HOPS_MAX: usize = 20;

/// What is known of an address.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The address in normal form.
    pub url: String,
    /// `unknown`, `queued`, `stored`, `duplicate`, `redirect`, `skipped` or `refused`.
    pub state: &'static str,
    /// Code of the reason, if it was refused or its last try failed.
    pub reason: Option<&'static str>,
    /// One sentence.
    pub summary: String,
    /// Further facts, in order.
    pub facts: Vec<(String, String)>,
}

/// Explains an address.
pub fn explain(tables: &ReadTables, url: &PageUrl) -> Result<Explanation, Error> {
    let mut facts = Vec::new();
    let Some(address) = Address::read(&tables.addresses, url.as_str())? else {
        if let Some(document) = sent(tables, url)? {
            let (state, summary) = stored(tables, url, document, &mut facts)?;
            facts.push(("found".to_owned(), "it was sent, not crawled".to_owned()));
            return Ok(Explanation { url: url.to_string(), state, reason: None, summary, facts });
        }
        let summary = "no page that was crawled links to it, and it is no seed".to_owned();
        host_facts(tables, url, &mut facts)?;
        room_facts(tables, url, &mut facts)?;
        let (url, state) = (url.to_string(), "unknown");
        return Ok(Explanation { url, state, reason: None, summary, facts });
    };
    let mut reason = address.trouble.map(Reason::as_str);
    let (state, summary) = match &address.state {
        State::Queued => ("queued", waiting(&address)),
        State::Redirect(target) => {
            reason = None;
            redirect(tables, (target, address.status), &mut facts)?
        }
        State::Skipped { rule, of } => {
            reason = Some("skipped_by_rule");
            ("skipped", by_rule(tables, *rule, of, &mut facts)?)
        }
        State::Known { feed, of } => {
            reason = Some("skipped_by_feed");
            ("skipped", feeds::by_feed(tables, *feed, of)?)
        }
        State::Refused(why) => {
            reason = Some(why.as_str());
            ("refused", format!("not in the corpus: {}", why.describe()))
        }
        State::Stored(document) => {
            reason = None;
            stored(tables, url, *document, &mut facts)?
        }
    };
    feeds::facts(tables, url, &mut facts)?;
    address_facts(&address, &mut facts);
    if let Some(family) = Family::of(&tables.families, url)? {
        let Family { pattern, pages, new, since_new, alike, .. } = family;
        let alike = match alike {
            0 => String::new(),
            some => format!("; the last {some} say the same but for numbers"),
        };
        let told =
            format!("{pattern}: {new} new of {pages} pages, none of the last {since_new}{alike}");
        facts.push(("kind of address".to_owned(), told));
    }
    list_facts(tables, url, &mut facts)?;
    host_facts(tables, url, &mut facts)?;
    room_facts(tables, url, &mut facts)?;
    Ok(Explanation { url: url.to_string(), state, reason, summary, facts })
}

/// The document of an article that was sent with this address.
fn sent(tables: &ReadTables, url: &PageUrl) -> Result<Option<u64>, Error> {
    let Some(content) = tables.sent_urls.get(url.as_str())?.map(|row| row.value()) else {
        return Ok(None);
    };
    Ok(read_content(&tables.contents, content)?.map(|content| content.document))
}

fn waiting(address: &Address) -> String {
    match (address.trouble, address.not_before) {
        (Some(trouble), Timestamp(0)) => {
            format!("waits for another try, after: {}", trouble.describe())
        }
        (Some(trouble), time) => {
            format!("waits for another try at {time}, after: {}", trouble.describe())
        }
        _ => "waits in the queue of its host".to_owned(),
    }
}

fn by_rule(
    tables: &ReadTables,
    number: u64,
    of: &str,
    facts: &mut Vec<(String, String)>,
) -> Result<String, Error> {
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if let Some(row) = tables.rules.get(number)? {
        let rule = Rule::decode(row.value())?;
        fact("rule", format!("{number}: {}", rule.change));
        fact("pairs that held", format!("{} of {}", rule.held, rule.held + rule.failed));
    }
    if let Some(Address { state: State::Stored(document), .. }) =
        Address::read(&tables.addresses, of)?
        && let Some(document) = read_document(&tables.documents, document)?
    {
        fact("docId", document.id.to_string());
        fact("title", document.title);
    }
    Ok(format!("not fetched: by a rule learned from duplicates it is the page at {of}"))
}

/// A permanent redirect makes the address another name of the document to which it leads.
/// Source: RFC 9110, 15.4.
fn redirect(
    tables: &ReadTables,
    (target, status): (&str, u16),
    facts: &mut Vec<(String, String)>,
) -> Result<(&'static str, String), Error> {
    if !matches!(status, 301 | 308) {
        return Ok(("redirect", format!("for the time being it redirects to {target}")));
    }
    let mut next = target.to_owned();
    for _ in 0..HOPS_MAX {
        match Address::read(&tables.addresses, &next)?
            .map(|address| (address.state, address.status))
        {
            Some((State::Redirect(target), 301 | 308)) => next = target,
            Some((State::Stored(number), _)) => {
                if let Some(document) = read_document(&tables.documents, number)? {
                    facts.push(("alias of docId".to_owned(), document.id.to_string()));
                }
                break;
            }
            _ => break,
        }
    }
    Ok(("redirect", format!("an alias: it redirects for good to {target}")))
}

fn stored(
    tables: &ReadTables,
    url: &PageUrl,
    number: u64,
    facts: &mut Vec<(String, String)>,
) -> Result<(&'static str, String), Error> {
    let Some(document) = read_document(&tables.documents, number)? else {
        return Ok(("stored", format!("its document {number} is missing: run `crawl check`")));
    };
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("docId", document.id.to_string());
    fact("title", document.title.clone());
    fact("copies", document.copies.to_string());
    let copy = read_copy(&tables.copies, number, url.as_str())?;
    if let Some(copy) = &copy {
        fact("popularity", copy.popularity.to_string());
        fact("recognised by", copy.key.as_str().to_owned());
        fact("distance", format!("{} bits", copy.distance));
        if copy.terms != Terms::default() {
            fact("asks for", copy.terms.in_words());
        }
        fact("similarity", format!("{:.3}", f64::from(copy.similarity) / 1000.0));
        if copy.left_out > 0 {
            fact("boilerplate removed", format!("{} blocks", copy.left_out));
        }
        if let Some(declared) = declared(tables, (number, &document), copy)? {
            fact("names as canonical", declared);
        }
    }
    if document.canonical == url.as_str() {
        return Ok(("stored", "it is the canonical copy of its document".to_owned()));
    }
    fact("canonical popularity", document.popularity.to_string());
    Ok(("duplicate", format!("a copy of {}", document.canonical)))
}

fn address_facts(address: &Address, facts: &mut Vec<(String, String)>) {
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("discovered", address.discovered.to_string());
    if address.referrer.is_empty() {
        fact("found", "it is a seed".to_owned());
    } else {
        fact("found on", address.referrer.clone());
    }
    fact("depth", address.place.depth.to_string());
    if address.hops > 0 {
        fact("redirects before it", address.hops.to_string());
    }
    fact("linking hosts", address.links.to_string());
    if address.visited.0 != 0 {
        fact("visited", address.visited.to_string());
        fact("status", address.status.to_string());
    }
    let again = &address.revisit;
    if again.visits > 0 {
        fact("changes seen", format!("{} of {} visits", again.changes, again.visits));
        if again.changed.0 != 0 {
            fact("last change", again.changed.to_string());
        }
        fact("interval", in_words(Duration::from_millis(again.interval_ms)));
        if again.unmodified > 0 {
            fact("not modified", format!("{} times in a row", again.unmodified));
        }
        if again.misses > 0 {
            fact("not found", format!("{} times in a row", again.misses));
        }
    }
    if again.waits {
        fact("next visit", "it waits in the queue of its host".to_owned());
    } else if again.due.0 != 0 {
        fact("next visit", format!("{}, if the crawl visits pages again", again.due));
    }
    if let (Some(trouble), false) = (address.trouble, address.state == State::Queued) {
        fact("last visit failed", trouble.describe().to_owned());
    }
    if address.failures > 0 {
        fact("failed tries", address.failures.to_string());
    }
    if address.busy > 0 {
        fact("busy answers", address.busy.to_string());
    }
    if address.cut {
        fact("truncated", "longer than a limit, or it broke off".to_owned());
    }
    if address.links_beyond > 0 {
        let told = format!("{}, more than the limit of a page", address.links_beyond);
        fact("links not followed", told);
    }
}

/// What of its domain and its pattern was let in.
fn room_facts(
    tables: &ReadTables,
    url: &PageUrl,
    facts: &mut Vec<(String, String)>,
) -> Result<(), Error> {
    let key = url.host_key();
    let domain = key.domain();
    if let Some(hosts) = tables.domains.get(domain.as_str())? {
        facts.push(("hosts of its domain".to_owned(), format!("{} of {domain}", hosts.value())));
    }
    let Some(host) = tables.host_numbers.get(key.as_str())?.map(|row| row.value()) else {
        return Ok(());
    };
    if let Some(count) = tables.patterns.get(pattern_key(host, url).as_slice())? {
        let value = format!("{} of {}", count.value(), pattern(url));
        facts.push(("links of its pattern".to_owned(), value));
    }
    Ok(())
}

/// A time in the largest unit of which it has two at least.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let fits = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    fits.map_or_else(
        || format!("{seconds} seconds"),
        |(unit, name)| format!("{:.1} {name}", seconds as f64 / f64::from(unit as u32)),
    )
}

/// What is known of an address as a sitemap or feed.
fn list_facts(
    tables: &ReadTables,
    url: &PageUrl,
    facts: &mut Vec<(String, String)>,
) -> Result<(), Error> {
    let Some(list) = List::read(&tables.lists, url.as_str())? else { return Ok(()) };
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    let is_feed = list.kind.is_some_and(Kind::is_feed);
    if list.admitted && list.hosts.is_empty() && list.level == 0 {
        fact("asked for", "as a sitemap at the usual place".to_owned());
    } else if !is_feed {
        let word = if list.hosts.len() == 1 { "host" } else { "hosts" };
        fact("named by", format!("robots.txt of {} {word}", list.hosts.len()));
    }
    let Some(kind) = list.kind else { return Ok(()) };
    fact("read as", kind.as_str().to_owned());
    if list.level > 0 {
        fact("indexes above it", list.level.to_string());
    }
    fact("entries", list.entries.to_string());
    fact("entries queued", list.queued.to_string());
    for (name, count) in [
        ("entries refused", list.refused),
        ("entries of other sites", list.strangers),
        ("entries without address", list.bad),
    ] {
        if count > 0 {
            fact(name, count.to_string());
        }
    }
    if let Some(cut) = list.cut {
        fact("not read to its end", cut.as_str().to_owned());
    }
    Ok(())
}

fn host_facts(
    tables: &ReadTables,
    url: &PageUrl,
    facts: &mut Vec<(String, String)>,
) -> Result<(), Error> {
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    let key = url.host_key();
    let Some(number) = tables.host_numbers.get(key.as_str())?.map(|row| row.value()) else {
        fact("host", format!("{key} is not known"));
        return Ok(());
    };
    let Some(row) = tables.hosts.get(number)? else { return Ok(()) };
    let host = Host::decode(row.value())?;
    fact("host", host.key.clone());
    fact("host queue", host.queued.to_string());
    if host.next_allowed.0 != 0 {
        fact("host next request", host.next_allowed.max(host.blocked_until).to_string());
    }
    if let Some(trouble) = host.trouble {
        fact("host left alone", format!("until {}: {}", host.blocked_until, trouble.describe()));
    }
    if host.breaker_open {
        let tries = format!("open after {} failures in a row", host.failures);
        fact("host circuit breaker", format!("{tries}; its queue is kept, one request tests it"));
    }
    if host.busy > 0 {
        fact("host busy answers", format!("{}, forgiven when none came for long", host.busy));
    }
    if host.crawl_delay_ms > 0 {
        let lane = if host.slow_lane { ": it is in the slow lane" } else { "" };
        fact("crawl delay", format!("{} ms{lane}", host.crawl_delay_ms));
    }
    if host.response_ms > 0 {
        fact("host response time", format!("{} ms", host.response_ms));
    }
    if let Some(address) = host.address {
        fact("host IP address", address.to_string());
    }
    if let Some(copy) = RobotsCopy::read(&tables.robots, number)? {
        let kind = match &copy.body {
            None => "unreachable",
            Some(body) if body.is_empty() => "allows everything",
            Some(_) => "has rules",
        };
        let cut = copy.cut_after();
        let cut = cut.map_or(String::new(), |bytes| {
            format!("; it was cut after {bytes} bytes, rules beyond do not hold")
        });
        fact("robots.txt", format!("{kind} (status {}, {}){cut}", copy.status, copy.fetched));
    }
    Ok(())
}
