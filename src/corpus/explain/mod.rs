//! Why a URL was crawled or not: everything the store knows of it, in words.

mod canonical;
mod feeds;
mod filter;
mod words;

use std::time::Duration;

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::corpus::documents::sent_content;
use crate::corpus::tables::{COPIES, DOCUMENTS};
use crate::frontier::{
    ADDRESSES, Address, DOMAINS, HOST_NUMBERS, HOSTS, LISTS, PATTERNS, ROBOTS, RULES, Reason,
    State, UrlPattern, pattern_hash,
};
use crate::store::{Error, Snapshot, View};
use crate::urls::{PageUrl, pattern};
use crate::web::discover::ListKind;
use crate::web::robots::meta::Terms;

pub use canonical::declared;
pub use words::Language;
use words::{ExplainedFacts, Said, said};

/// Redirects that are followed to the document behind an alias.
const HOPS_MAX: usize = 20;

/// What is known of a URL.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The URL in normal form.
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

/// Explains a URL in English.
pub fn explain(snapshot: &Snapshot, url: &PageUrl) -> Result<Explanation, Error> {
    explain_in(snapshot, url, Language::English)
}

/// Explains a URL in a language.
pub fn explain_in(
    snapshot: &Snapshot,
    url: &PageUrl,
    language: Language,
) -> Result<Explanation, Error> {
    let mut facts = ExplainedFacts::default();
    let (state, reason, summary) = tell(snapshot, url, &mut facts)?;
    let (url, summary) = (url.to_string(), summary.in_language(language));
    Ok(Explanation { url, state, reason, summary, facts: facts.in_language(language) })
}

type ToldState = (&'static str, Option<&'static str>, Said);

fn tell(
    snapshot: &Snapshot,
    url: &PageUrl,
    facts: &mut ExplainedFacts,
) -> Result<ToldState, Error> {
    let Some(address) = snapshot.get(ADDRESSES, url.as_str())? else {
        if let Some((_, document)) = sent_content(snapshot, url.as_str())? {
            let place = StoredPlace { view: snapshot, frontier: Some(snapshot), number: document };
            let (state, summary) = stored(place, url, facts)?;
            facts.add("found", said!("it was sent, not crawled", "由请求送入，不是抓取得来"));
            return Ok((state, None, summary));
        }
        filter::facts(snapshot, url, None, facts)?;
        host_facts(snapshot, url, facts)?;
        room_facts(snapshot, url, facts)?;
        let summary = said!(
            "no page that was crawled links to it, and it is no seed",
            "抓取过的页面都没有链接到它，它也不是种子"
        );
        return Ok(("unknown", None, summary));
    };
    let mut reason = address.trouble.map(Reason::as_str);
    let (state, summary) = match &address.state {
        State::Queued => ("queued", waiting(&address)),
        State::Redirect(target) => {
            reason = None;
            redirect(snapshot, target, address.status, facts)?
        }
        State::Skipped { rule, of } => {
            reason = Some("skipped_by_rule");
            ("skipped", by_rule(snapshot, *rule, of, facts)?)
        }
        State::Known { feed, of } => {
            reason = Some("skipped_by_feed");
            ("skipped", feeds::by_feed(snapshot, *feed, of)?)
        }
        State::Refused(why) => {
            reason = Some(why.as_str());
            let (en, zh) = (why.describe(), words::reason(*why));
            ("refused", said!("not in the corpus: {en}", "不在语料库中：{zh}"))
        }
        State::Stored(document) => {
            reason = None;
            let place = StoredPlace { view: snapshot, frontier: Some(snapshot), number: *document };
            stored(place, url, facts)?
        }
    };
    filter::facts(snapshot, url, Some(&address), facts)?;
    feeds::facts(snapshot, url, facts)?;
    address_facts(&address, facts);
    if let Some(url_pattern) = UrlPattern::of(snapshot, url)? {
        let UrlPattern { pattern, pages, new, since_new, alike, .. } = url_pattern;
        let mut told = said!(
            "{pattern}: {new} new of {pages} pages, none of the last {since_new}",
            "{pattern}：{pages} 个页面中有 {new} 个新页面，最近 {since_new} 个都不是"
        );
        if alike > 0 {
            told += said!(
                "; the last {alike} say the same but for numbers",
                "；最近 {alike} 个除数字外内容相同"
            );
        }
        facts.add("kind of URL", told);
    }
    list_facts(snapshot, url, facts)?;
    host_facts(snapshot, url, facts)?;
    room_facts(snapshot, url, facts)?;
    Ok((state, reason, summary))
}

fn waiting(address: &Address) -> Said {
    let Some(trouble) = address.trouble else {
        return said!("queued at its host", "在其主机的队列中等待");
    };
    let (en, zh) = (trouble.describe(), words::reason(trouble));
    match address.not_before {
        Timestamp(0) => said!("pending retry, after: {en}", "等待再试，此前：{zh}"),
        time => {
            said!("pending retry at {time}, after: {en}", "等待在 {time} 再试，此前：{zh}")
        }
    }
}

fn by_rule(
    snapshot: &Snapshot,
    number: u64,
    of: &str,
    facts: &mut ExplainedFacts,
) -> Result<Said, Error> {
    if let Some(rule) = snapshot.get(RULES, number)? {
        let Said { en, zh } = words::change(&rule.change);
        facts.add("rule", said!("{number}: {en}", "{number}：{zh}"));
        let all = rule.held + rule.failed;
        facts.add("pairs that held", said!("{} of {all}", "{all} 中的 {}", rule.held));
    }
    if let Some(Address { state: State::Stored(document), .. }) = snapshot.get(ADDRESSES, of)?
        && let Some(document) = snapshot.get(DOCUMENTS, document)?
    {
        facts.add("docId", document.id.to_string());
        facts.add("title", document.title);
    }
    Ok(said!(
        "not fetched: by a rule learned from duplicates it is the page at {of}",
        "未抓取：按从重复页面学得的规则，它就是 {of} 的页面"
    ))
}

/// A permanent redirect makes the URL another name of the document to which it leads.
/// Source: RFC 9110, 15.4.
fn redirect(
    snapshot: &Snapshot,
    target: &str,
    status: u16,
    facts: &mut ExplainedFacts,
) -> Result<(&'static str, Said), Error> {
    if !matches!(status, 301 | 308) {
        let summary = said!("for the time being it redirects to {target}", "暂时重定向到 {target}");
        return Ok(("redirect", summary));
    }
    let mut next = target.to_owned();
    for _ in 0..HOPS_MAX {
        match snapshot.get(ADDRESSES, &next)?.map(|address| (address.state, address.status)) {
            Some((State::Redirect(target), 301 | 308)) => next = target,
            Some((State::Stored(number), _)) => {
                if let Some(document) = snapshot.get(DOCUMENTS, number)? {
                    facts.add("alias of docId", document.id.to_string());
                }
                break;
            }
            _ => break,
        }
    }
    let summary =
        said!("an alias: it redirects for good to {target}", "是别名：永久重定向到 {target}");
    Ok(("redirect", summary))
}

/// Where the document of a URL is.
struct StoredPlace<'a, V> {
    view: &'a V,
    /// The store of its crawl, if there is one.
    frontier: Option<&'a Snapshot>,
    number: u64,
}

/// Explains a URL by the document that has a copy there, where nothing is known of crawls.
pub fn explain_copy(view: &impl View, url: &PageUrl, number: u64) -> Result<Explanation, Error> {
    let mut facts = ExplainedFacts::default();
    let place = StoredPlace { view, frontier: None, number };
    let (state, summary) = stored(place, url, &mut facts)?;
    let language = Language::English;
    let (url, summary) = (url.to_string(), summary.in_language(language));
    Ok(Explanation { url, state, reason: None, summary, facts: facts.in_language(language) })
}

fn stored<V: View>(
    StoredPlace { view, frontier, number }: StoredPlace<'_, V>,
    url: &PageUrl,
    facts: &mut ExplainedFacts,
) -> Result<(&'static str, Said), Error> {
    let Some(document) = view.get(DOCUMENTS, number)? else {
        let summary = said!(
            "its document {number} is missing: run `crawl check`",
            "它的文档 {number} 缺失：请运行 `crawl check`"
        );
        return Ok(("stored", summary));
    };
    facts.add("docId", document.id.to_string());
    facts.add("title", document.title.clone());
    facts.add("copies", document.copies.to_string());
    let copy = view.get(COPIES, (number, url.as_str()))?;
    if let Some(copy) = &copy {
        facts.add("popularity", copy.popularity.to_string());
        facts.add("found by", words::key(copy.key));
        facts.add("distance", said!("{} bits", "{} 位", copy.distance));
        if copy.terms != Terms::default() {
            facts.add("asks for", copy.terms.in_words());
        }
        facts.add("similarity", format!("{:.3}", f64::from(copy.similarity) / 1000.0));
        if copy.left_out > 0 {
            facts.add("boilerplate removed", said!("{} blocks", "{} 个文本块", copy.left_out));
        }
        if let Some(declared) = canonical::named(view, frontier, number, &document, copy)? {
            facts.add("names as canonical", declared);
        }
    }
    if document.canonical == url.as_str() {
        let summary = said!("it is the canonical copy of its document", "它是其文档的主副本");
        return Ok(("stored", summary));
    }
    facts.add("canonical popularity", document.popularity.to_string());
    Ok(("duplicate", said!("a copy of {}", "{} 的副本", document.canonical)))
}

fn address_facts(address: &Address, facts: &mut ExplainedFacts) {
    facts.add("discovered", address.discovered.to_string());
    if address.referrer.is_empty() {
        facts.add("found", said!("it is a seed", "它是种子"));
    } else {
        facts.add("found on", address.referrer.clone());
    }
    facts.add("depth", address.place.depth.to_string());
    if address.hops > 0 {
        facts.add("redirects before it", address.hops.to_string());
    }
    facts.add("linking hosts", address.links.to_string());
    if address.visited.0 != 0 {
        facts.add("visited", address.visited.to_string());
        facts.add("status", address.status.to_string());
    }
    let again = &address.revisit;
    if again.visits > 0 {
        facts.add(
            "changes seen",
            said!("{} of {} visits", "{1} 次访问中 {0} 次", again.changes, again.visits),
        );
        if again.changed.0 != 0 {
            facts.add("last change", again.changed.to_string());
        }
        facts.add("interval", in_words(Duration::from_millis(again.interval_ms)));
        if again.unmodified > 0 {
            facts.add("not modified", words::in_a_row(again.unmodified));
        }
        if again.misses > 0 {
            facts.add("not found", words::in_a_row(again.misses));
        }
    }
    if again.waits {
        facts.add("next visit", said!("it queued at its host", "在其主机的队列中等待"));
    } else if again.due.0 != 0 {
        let told =
            said!("{}, if the crawl visits pages again", "{}，如果抓取会再次访问页面", again.due);
        facts.add("next visit", told);
    }
    if let (Some(trouble), false) = (address.trouble, address.state == State::Queued) {
        facts.add("last visit failed", words::describe(trouble));
    }
    if address.failures > 0 {
        facts.add("failed tries", address.failures.to_string());
    }
    if address.busy > 0 {
        facts.add("busy answers", address.busy.to_string());
    }
    if let Some(cut) = address.cut {
        facts.add("truncated", words::cut_page(cut));
    }
    if address.links_beyond > 0 {
        let told =
            said!("{}, more than the limit of a page", "{} 个，超过每页上限", address.links_beyond);
        facts.add("links not followed", told);
    }
}

/// What of its domain and its pattern was let in.
fn room_facts(snapshot: &Snapshot, url: &PageUrl, facts: &mut ExplainedFacts) -> Result<(), Error> {
    let key = url.host_key();
    let domain = key.domain();
    if let Some(hosts) = snapshot.get(DOMAINS, &domain)? {
        let told = said!("{hosts} of {domain}", "{domain} 有 {hosts} 个");
        facts.add("hosts of its domain", told);
    }
    let Some(host) = snapshot.get(HOST_NUMBERS, key.as_str())? else { return Ok(()) };
    if let Some(count) = snapshot.get(PATTERNS, (host, pattern_hash(url)))? {
        let told = said!("{} of {}", "{1} 有 {0} 个", count, pattern(url));
        facts.add("links of its pattern", told);
    }
    Ok(())
}

/// A time in the largest unit of which it has two at least.
fn in_words(time: Duration) -> Said {
    let seconds = time.as_secs();
    let units = [(86_400, "days", "天"), (3_600, "hours", "小时"), (60, "minutes", "分钟")];
    let fits = units.into_iter().find(|(unit, ..)| seconds >= 2 * unit);
    fits.map_or_else(
        || said!("{seconds} seconds", "{seconds} 秒"),
        |(unit, en, zh)| {
            let many = seconds as f64 / f64::from(unit as u32);
            said!("{many:.1} {en}", "{many:.1} {zh}")
        },
    )
}

/// What is known of a URL as a sitemap or feed.
fn list_facts(snapshot: &Snapshot, url: &PageUrl, facts: &mut ExplainedFacts) -> Result<(), Error> {
    let Some(list) = snapshot.get(LISTS, url.as_str())? else { return Ok(()) };
    let is_feed = list.kind.is_some_and(ListKind::is_feed);
    if list.admitted && list.hosts.is_empty() && list.level == 0 {
        facts.add("asked for", said!("as a sitemap at the usual place", "作为通常位置的站点地图"));
    } else if !is_feed {
        let word = if list.hosts.len() == 1 { "host" } else { "hosts" };
        let told = said!("robots.txt of {} {word}", "{} 个主机的 robots.txt", list.hosts.len());
        facts.add("named by", told);
    }
    let Some(kind) = list.kind else { return Ok(()) };
    facts.add("read as", words::kind(kind));
    if list.level > 0 {
        facts.add("indexes above it", list.level.to_string());
    }
    facts.add("entries", list.entries.to_string());
    facts.add("entries queued", list.queued.to_string());
    for (name, count) in [
        ("entries refused", list.refused),
        ("entries of other sites", list.strangers),
        ("entries without URL", list.bad),
    ] {
        if count > 0 {
            facts.add(name, count.to_string());
        }
    }
    if let Some(faults) = words::faults(&list.faults) {
        facts.add("faults read over", faults);
    }
    if let Some(cut) = list.cut {
        facts.add("not read to its end", words::cut(cut));
    }
    Ok(())
}

fn host_facts(snapshot: &Snapshot, url: &PageUrl, facts: &mut ExplainedFacts) -> Result<(), Error> {
    let key = url.host_key();
    let Some(number) = snapshot.get(HOST_NUMBERS, key.as_str())? else {
        facts.add("host", said!("{key} is not known", "{key} 未知"));
        return Ok(());
    };
    let Some(host) = snapshot.get(HOSTS, number)? else { return Ok(()) };
    facts.add("host", host.key.clone());
    facts.add("host queue", host.queued.to_string());
    if host.unstored > 0 {
        let told = said!(
            "{} links of its pages, beyond the room of the host",
            "{} 个（其页面的链接，超出主机的空间上限）",
            host.unstored
        );
        facts.add("URLs not kept", told);
    }
    if host.next_allowed.0 != 0 {
        facts.add("host next request", host.next_allowed.max(host.blocked_until).to_string());
    }
    if let Some(trouble) = host.trouble {
        let (until, en, zh) = (host.blocked_until, trouble.describe(), words::reason(trouble));
        facts.add("host backing off", said!("until {until}: {en}", "直到 {until}：{zh}"));
    }
    if host.breaker_open {
        let told = said!(
            "open after {} failures in a row; its queue is kept, one request tests it",
            "连续 {} 次失败后断开；队列保留，由单个请求试探",
            host.failures
        );
        facts.add("host circuit breaker", told);
    }
    if host.busy > 0 {
        let told = said!(
            "{}, forgiven when none came for long",
            "{} 次，长时间没有再出现则不计",
            host.busy
        );
        facts.add("host busy answers", told);
    }
    if host.crawl_delay_ms > 0 {
        let mut told = words::ms(host.crawl_delay_ms);
        if host.slow_lane {
            told += said!(": it is in the slow lane", "：在慢车道中");
        }
        facts.add("crawl delay", told);
    }
    if host.response_ms > 0 {
        facts.add("host response time", words::ms(host.response_ms));
    }
    if let Some(address) = host.address {
        facts.add("host IP address", address.to_string());
    }
    if let Some(copy) = snapshot.get(ROBOTS, number)? {
        let mut told = match &copy.body {
            None => said!("unreachable", "无法取得"),
            Some(body) if body.is_empty() => said!("allows everything", "允许一切"),
            Some(_) => said!("has rules", "有规则"),
        };
        told += said!(" (status {}, {})", "（状态码 {}，{}）", copy.status, copy.fetched);
        if let Some(bytes) = copy.cut_after() {
            told += said!(
                "; it was cut after {bytes} bytes, rules beyond do not hold",
                "；在 {bytes} 字节处截断，其后的规则无效"
            );
        }
        facts.add("robots.txt", told);
    }
    Ok(())
}
