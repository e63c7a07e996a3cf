//! A web of known truth: every address has an identity, which is that of the page behind it.

use std::collections::BTreeSet;

use crate::{Answer, page, prose, title};

/// Names of hosts without their port. Each has a loopback address of its own.
pub const HOSTS: [&str; 16] = [
    "www.sessions.test",
    "www.folders.test",
    "www.java.test",
    "www.campaign.test",
    "www.store.test",
    "www.herald.test",
    "herald.test",
    "m.herald.test",
    "www.origin.test",
    "www.mirror-a.test",
    "www.mirror-b.test",
    "www.events.test",
    "www.lost.test",
    "www.slow.test",
    "www.flaky.test",
    "www.honest.test",
];

/// What stands behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// An article; equal names are equal articles, wherever they are.
    Article(String),
    /// A page that is no article, such as a list.
    Other(String),
    /// Sent as a page, but the host has none there.
    Soft404,
    Missing,
}

/// A page: what it is, and its links.
struct Found {
    content: Content,
    links: Vec<String>,
}

fn article(name: String, links: Vec<String>) -> Option<Found> {
    Some(Found { content: Content::Article(name), links })
}

fn other(name: &str, links: Vec<String>) -> Option<Found> {
    Some(Found { content: Content::Other(name.to_owned()), links })
}

/// The parameters of a query, in their order.
fn parameters(query: &str) -> Vec<(&str, &str)> {
    query.split('&').filter_map(|pair| pair.split_once('=')).collect()
}

fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    parameters(query).into_iter().find(|(other, _)| *other == name).map(|(_, value)| value)
}

fn count(query: &str, name: &str) -> Option<u64> {
    value(query, name)?.parse().ok()
}

/// The number in `/folder/NUMBER.html`.
fn numbered(path: &str, folder: &str, below: u64) -> Option<u64> {
    let number = path.strip_prefix(folder)?.strip_suffix(".html")?;
    number.parse().ok().filter(|number| *number < below)
}

/// Links to lists of 25 addresses each.
fn lists(articles: u64, link: impl Fn(String) -> String) -> Vec<String> {
    (0..articles.div_ceil(25)).map(|list| link(format!("/list/{list}.html"))).collect()
}

/// Numbers of the articles of a list.
fn listed(list: u64, articles: u64) -> std::ops::Range<u64> {
    list * 25..(list * 25 + 25).min(articles)
}

/// A site of articles `/a/N.html`, lists of them, and a front page that names the lists. `links`
/// makes the addresses under which a page names another one.
fn plain(
    site: &str,
    path: &str,
    articles: u64,
    links: &dyn Fn(&str) -> Vec<String>,
) -> Option<Found> {
    let all = |paths: Vec<String>| paths.iter().flat_map(|path| links(path)).collect::<Vec<_>>();
    if path == "/" {
        return other(&format!("{site} front"), all(lists(articles, |list| list)));
    }
    if let Some(list) = numbered(path, "/list/", articles.div_ceil(25)) {
        let paths = listed(list, articles).map(|number| format!("/a/{number}.html")).collect();
        return other(&format!("{site} list {list}"), all(paths));
    }
    let number = numbered(path, "/a/", articles)?;
    let next = [number * 7 + 1, number * 3 + 5].map(|next| format!("/a/{}.html", next % articles));
    article(format!("{site} {number}"), all(next.to_vec()))
}

/// A number that a text always gives.
#[must_use]
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Identifiers of visits: short, so that nothing in them tells that they are.
const VISITS: [&str; 8] = ["qhkzw", "bmxtr", "vplsd", "gjwny", "tkfcb", "xrzmo", "ldqpu", "wcyhe"];

/// The session that the links of a page carry: a new one for most pages, as where sessions end
/// soon, of `of` that there are in all.
fn next_visit(path: &str, own: &str, of: u64) -> u64 {
    hash(&format!("{path} {own}")) % of
}

fn sessions(path: &str, query: &str) -> Option<Found> {
    let visit = VISITS[next_visit(path, query, 8) as usize];
    plain("sessions", path, 200, &|path| vec![format!("{path}?v={visit}")])
}

fn folders(path: &str) -> Option<Found> {
    let mut inner = path;
    let visit = VISITS[next_visit(path, "", 4) as usize];
    if let Some((first, _)) = path.strip_prefix("/s-").and_then(|rest| rest.split_once('/')) {
        VISITS.iter().find(|visit| **visit == first)?;
        inner = &path[first.len() + 3..];
    }
    plain("folders", inner, 200, &|path| vec![format!("/s-{visit}{path}")])
}

fn java(path: &str) -> Option<Found> {
    let (inner, session) = path.split_once(";jsessionid=").unwrap_or((path, ""));
    let key = |n: u64| format!("{:016X}{:016X}", hash("java") ^ n, hash("session") ^ n);
    let session = key(next_visit(inner, session, 4));
    plain("java", inner, 150, &|path| vec![format!("{path};jsessionid={session}")])
}

fn campaign(path: &str, query: &str) -> Option<Found> {
    let known = ["utm_source", "utm_medium", "from"];
    if parameters(query).iter().any(|(name, _)| !known.contains(name)) {
        return None;
    }
    let at = hash(&format!("{path}?{query}"));
    let source = ["mail", "feed", "social"][(at % 3) as usize];
    let from = ["top", "side", "related", "foot"][(at / 3 % 4) as usize];
    plain("campaign", path, 200, &|path| {
        vec![format!("{path}?utm_source={source}&utm_medium=link"), format!("{path}?from={from}")]
    })
}

/// Facets of a shop with their values.
const FACETS: [(&str, u64); 4] = [("brand", 6), ("color", 6), ("size", 6), ("use", 6)];

fn store(path: &str, query: &str) -> Option<Found> {
    let items = 150;
    if path == "/item" {
        let id = count(query, "id").filter(|id| *id < items)?;
        let is = |id: u64| (id, id % 7);
        let known = ["id", "cat", "print", "sort", "order"];
        if parameters(query).iter().any(|(name, _)| !known.contains(name)) {
            return None;
        }
        let (next, cat) = is((id * 7 + 1) % items);
        let links = vec![
            format!("/item?id={next}"),
            format!("/item?cat={cat}&id={next}"),
            format!("/item?id={id}&print=1"),
        ];
        return article(format!("store {id}"), links);
    }
    if path == "/list" {
        // The same items for whatever is chosen; each choice can be made and unmade.
        let chosen: Vec<Option<u64>> =
            FACETS.iter().map(|(name, many)| count(query, name).filter(|n| n < many)).collect();
        let address = |choice: &[Option<u64>]| {
            let pairs = FACETS
                .iter()
                .zip(choice)
                .filter_map(|((name, _), n)| Some(format!("{name}={}", (*n)?)));
            let pairs: Vec<String> = pairs.collect();
            if pairs.is_empty() { "/list".to_owned() } else { format!("/list?{}", pairs.join("&")) }
        };
        let mut links = Vec::new();
        for (facet, (_, many)) in FACETS.iter().enumerate() {
            for n in (0..*many).map(Some).chain([None]) {
                let mut other = chosen.clone();
                other[facet] = n;
                links.push(address(&other));
            }
        }
        links.extend((0..20).map(|id| format!("/item?id={id}")));
        return other("store list", links);
    }
    if path == "/shelf" {
        let shelf = count(query, "n").filter(|n| *n < 6)?;
        let links = listed(shelf, items).flat_map(|id| {
            let cat = id % 7;
            [
                format!("/item?id={id}"),
                format!("/item?id={id}&cat={cat}"),
                format!("/item?cat={cat}&id={id}"),
                format!("/item?id={id}&print=1"),
                format!("/item?id={id}&sort=price&order=asc"),
                format!("/item?id={id}&sort=date&order=desc"),
            ]
        });
        return other(&format!("store shelf {shelf}"), links.collect());
    }
    let front = (0..6).map(|n| format!("/shelf?n={n}")).chain(["/list".to_owned()]);
    if path == "/" { other("store front", front.collect()) } else { None }
}

fn herald(path: &str, hosts: &Hosts) -> Option<Found> {
    // The front page names the other hosts; each then keeps to itself.
    let found = plain("herald", path, 200, &|path| vec![path.to_owned()])?;
    let others =
        ["www.herald.test", "herald.test", "m.herald.test"].map(|name| hosts.url(name, "/"));
    let more = if path == "/" {
        others.into_iter().chain([hosts.second("herald.test")]).collect()
    } else {
        vec![]
    };
    Some(Found { links: [found.links, more].concat(), ..found })
}

/// Copies of a site, of which the last one has articles of its own.
fn origin(host: &str, path: &str) -> Option<Found> {
    let own = if host == "www.mirror-b.test" { 20 } else { 0 };
    let same = |path: &str| vec![path.to_owned()];
    let found = plain("origin", path, 200 + own, &same)?;
    match numbered(path, "/a/", 220).filter(|number| *number >= 200) {
        Some(number) => article(format!("mirror-b {number}"), found.links),
        // A list with articles of a mirror is another list.
        None if own > 0 && matches!(found.content, Content::Other(_)) => {
            other(&format!("mirror-b {path}"), found.links)
        }
        None => Some(found),
    }
}

/// Months around the present one of which every fourth has an event.
const MONTHS: std::ops::RangeInclusive<i64> = -36..=6;

fn events(path: &str, query: &str, now: i64) -> Option<Found> {
    let link = |at: i64| format!("/calendar?month={:04}-{:02}", at / 12, at % 12 + 1);
    if path != "/calendar" {
        let found = plain("events", path, 100, &|path| vec![path.to_owned()])?;
        let more = if path == "/" { vec![link(now)] } else { vec![] };
        return Some(Found { links: [found.links, more].concat(), ..found });
    }
    let (year, month) = value(query, "month")?.split_once('-')?;
    let at = year.parse::<i64>().ok()? * 12 + month.parse::<i64>().ok()? - 1;
    let links =
        vec![link(at + 1), link((at - 1).max(0)), format!("/a/{}.html", at.rem_euclid(100))];
    // Most months are empty, and are one page but for their name.
    if MONTHS.contains(&(at - now)) && (at - now) % 4 == 0 {
        article(format!("event {}", at - now), links)
    } else {
        other("events empty month", links)
    }
}

fn lost(path: &str) -> Option<Found> {
    if path.starts_with("/topics/") {
        return other("lost topics", vec!["archive/".to_owned(), "/a/1.html".to_owned()]);
    }
    let found = plain("lost", path, 150, &|path| vec![path.to_owned()]);
    let Some(mut found) = found else {
        return Some(Found { content: Content::Soft404, links: vec!["/".to_owned()] });
    };
    if path == "/" {
        found.links.push("/topics/".to_owned());
    } else if matches!(found.content, Content::Article(_)) {
        // Two of the links of each article are broken.
        let n = hash(path) % 1000;
        found.links.extend([format!("/old/{n}.html"), format!("/a/missing-{n}.html")]);
    }
    Some(found)
}

fn flaky(path: &str) -> Option<Found> {
    plain("flaky", path, 120, &|path| vec![path.to_owned()])
}

/// Parameters that tell pages apart: `id`, `page`, and `lang` and `ed`, which do not always.
fn honest(path: &str, query: &str) -> Option<Found> {
    let id = || count(query, "id");
    match path {
        "/" => other("honest front", (0..12).map(|n| format!("/index?n={n}")).collect()),
        "/index" => {
            // All first editions are listed before the second ones.
            let n = count(query, "n").filter(|n| *n < 12)?;
            if n >= 6 {
                let second = listed(n - 6, 150).map(|id| format!("/archive?id={id}&ed=2"));
                return other(&format!("honest index {n}"), second.collect());
            }
            let links = listed(n, 150).flat_map(|id| {
                let story = ["en", "de"].map(|lang| format!("/story?id={id}&lang={lang}"));
                let long = [1, 2, 3, 4].map(|page| format!("/long?id={id}&page={page}"));
                let mut links = vec![format!("/archive?id={id}&ed=1")];
                if id < 100 {
                    links.extend(story)
                }
                if id < 40 {
                    links.extend(long)
                }
                links
            });
            other(&format!("honest index {n}"), links.collect())
        }
        "/story" => {
            let id = id().filter(|id| *id < 100)?;
            let lang = value(query, "lang").filter(|lang| ["en", "de"].contains(lang))?;
            // One of seven was never translated.
            let lang = if id % 7 == 3 { "en" } else { lang };
            article(
                format!("story {id} {lang}"),
                vec![format!("/story?id={}&lang={lang}", (id + 1) % 100)],
            )
        }
        "/long" => {
            let id = id().filter(|id| *id < 40)?;
            let page = count(query, "page").filter(|page| (1..=4).contains(page))?;
            article(
                format!("long {id} {page}"),
                vec![format!("/long?id={id}&page={}", page % 4 + 1)],
            )
        }
        "/archive" => {
            let id = id().filter(|id| *id < 150)?;
            let edition = count(query, "ed").filter(|ed| (1..=2).contains(ed))?;
            // The first eighty have one edition, which is sent for both: a rule that ceases to hold.
            let edition = if id < 80 { 1 } else { edition };
            article(format!("archive {id} {edition}"), vec!["/".to_owned()])
        }
        _ => None,
    }
}

/// Where the hosts are.
#[derive(Debug, Clone)]
pub struct Hosts {
    pub port: u16,
    /// Another port, at which `herald.test` has an alias.
    pub second: u16,
    /// The present month, counted from the year 0.
    pub month: i64,
}

impl Hosts {
    pub fn url(&self, name: &str, path: &str) -> String {
        format!("http://{name}:{}{path}", self.port)
    }

    fn second(&self, name: &str) -> String {
        format!("http://{name}:{}/", self.second)
    }

    fn found(&self, host: &str, target: &str) -> Found {
        let name = host.split(':').next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let found = match name {
            "www.sessions.test" => sessions(path, query),
            "www.folders.test" => folders(path),
            "www.java.test" => java(path),
            "www.campaign.test" => campaign(path, query),
            "www.store.test" => store(path, query),
            "www.herald.test" | "herald.test" | "m.herald.test" => herald(path, self),
            "www.origin.test" | "www.mirror-a.test" | "www.mirror-b.test" => origin(name, path),
            "www.events.test" => events(path, query, self.month),
            "www.lost.test" => lost(path),
            "www.slow.test" => plain("slow", path, 60, &|path| vec![path.to_owned()]),
            "www.flaky.test" => flaky(path),
            "www.honest.test" => honest(path, query),
            _ => None,
        };
        found.unwrap_or(Found { content: Content::Missing, links: Vec::new() })
    }

    /// What stands behind an address of this web.
    pub fn content(&self, url: &str) -> Content {
        let rest = url.strip_prefix("http://").unwrap_or_default();
        let path = rest.find('/').unwrap_or(rest.len());
        self.found(&rest[..path], &rest[path..]).content
    }

    /// The page at an address, well served.
    pub fn answer(&self, host: &str, target: &str) -> Answer {
        let Found { content, links } = self.found(host, target);
        let site = host.split(':').next().unwrap_or_default();
        match content {
            Content::Article(name) => {
                let seed = hash(&name);
                let frame =
                    format!("<p>{site} is read by people who know {}.</p>", title(hash(site)));
                let main = format!("{}{frame}", prose(seed, 5));
                Answer::page(format!("article {name}"), page(&title(seed), &main, links))
            }
            Content::Other(name) => {
                let seed = hash(&name);
                let main = if name == "events empty month" {
                    format!("<p>{}: no events. {}</p>", target, prose(hash("no events"), 1))
                } else {
                    prose(seed, 2)
                };
                Answer::page(format!("other {name}"), page(&title(seed), &main, links))
            }
            Content::Soft404 => {
                let main =
                    format!("<p>There is nothing at {target}.</p>{}", prose(hash("sorry"), 2));
                Answer::page("soft404", page("Sorry", &main, links))
            }
            Content::Missing => Answer::status(404, "missing"),
        }
    }

    /// Every article that a visitor of all pages would see.
    pub fn articles(&self) -> BTreeSet<String> {
        let mut articles = BTreeSet::new();
        let mut numbered = |site: &str, numbers: std::ops::Range<u64>| {
            articles.extend(numbers.map(|number| format!("{site} {number}")));
        };
        for (site, count) in [
            ("sessions", 200),
            ("folders", 200),
            ("java", 150),
            ("campaign", 200),
            ("store", 150),
            ("herald", 200),
            ("origin", 200),
            ("events", 100),
            ("lost", 150),
            ("slow", 60),
            ("flaky", 120),
        ] {
            numbered(site, 0..count);
        }
        numbered("mirror-b", 200..220);
        for id in 0..100 {
            articles.insert(format!("story {id} en"));
            if id % 7 != 3 {
                articles.insert(format!("story {id} de"));
            }
        }
        articles.extend((0..160).map(|n| format!("long {} {}", n / 4, n % 4 + 1)));
        articles
            .extend(MONTHS.filter(|month| month % 4 == 0).map(|month| format!("event {month}")));
        articles.extend((0..150).map(|id| format!("archive {id} 1")));
        articles.extend((80..150).map(|id| format!("archive {id} 2")));
        articles
    }
}
