//! Cookies: in memory, for the host that set them and no other, within bounds.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use cookie_store::{CookieStore, RawCookie};
use reqwest::header::{HeaderMap, HeaderValue, SET_COOKIE};
use url::Url;

use crate::base::units::Size;

/// Hosts whose cookies are kept.
const HOSTS_MAX: usize = 10_000;

/// Cookies of one host. Source: RFC 6265, 6.1 asks for at least 50.
const COOKIES_MAX: usize = 50;

/// Bytes of one `Set-Cookie` line. Source: the same, at least 4096.
const COOKIE_BYTES_MAX: usize = 4_096;

/// Bytes of the names and values of one host: no server reads a header line that is longer.
const HOST_BYTES_MAX: usize = 16 << 10;

/// Memory of a cookie besides its texts, about, and times that these are in memory.
const COOKIE_OVERHEAD: usize = 1 << 10;
const COPIES: usize = 3;

/// One jar for each host name. Cheap to clone; all clones are the same jars.
///
/// Path, expiry and `Secure` are obeyed. A `Domain` that takes in other hosts is not: a cookie goes
/// back to the host that set it, so that no host can follow the crawler to another one.
#[derive(Clone)]
pub(super) struct Cookies(Arc<Mutex<Jars>>);

/// The jars of all hosts. When they are too many or too large, those go that were not used for
/// longest.
struct Jars {
    bytes_max: usize,
    bytes: usize,
    hosts: HashMap<String, Jar>,
    /// Hosts by their last use.
    order: BTreeMap<u64, String>,
    uses: u64,
}

/// The cookies of a host.
#[derive(Default)]
struct Jar {
    store: CookieStore,
    bytes: usize,
    used: u64,
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookies")
    }
}

impl Cookies {
    /// Makes jars that take so much memory in all.
    pub(super) fn new(size_max: Size) -> Self {
        let (hosts, order) = (HashMap::new(), BTreeMap::new());
        let bytes_max = size_max.bytes();
        Self(Arc::new(Mutex::new(Jars { bytes_max, bytes: 0, hosts, order, uses: 0 })))
    }

    fn jars(&self) -> MutexGuard<'_, Jars> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Returns the `Cookie` header for a URL; none if there is no cookie for it.
    pub(super) fn header(&self, url: &Url) -> Option<HeaderValue> {
        let mut jars = self.jars();
        let host = url.host_str()?;
        jars.use_now(host)?;
        let pairs = jars.hosts.get(host)?.store.get_request_values(url);
        let line = pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        let mut value = HeaderValue::from_str(&line.join("; ")).ok().filter(|v| !v.is_empty())?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Keeps the cookies of an answer. One that cannot be read, is too long, or one too many, is
    /// left out, as a browser does it.
    pub(super) fn keep(&self, url: &Url, headers: &HeaderMap) {
        let mut lines = headers.get_all(SET_COOKIE).iter().peekable();
        let (Some(host), Some(_)) = (url.host_str(), lines.peek()) else { return };
        let mut jars = self.jars();
        let mut jar = jars.take(host);
        for line in lines.filter_map(|line| line.to_str().ok()) {
            if let Some(cookie) = cookie_of(line) {
                jar.add(&cookie, url);
            }
        }
        jars.put(host, jar);
    }
}

impl Jars {
    /// Notes that a host is used. Returns nothing if it has no jar.
    fn use_now(&mut self, host: &str) -> Option<()> {
        let jar = self.hosts.get_mut(host)?;
        self.uses += 1;
        let before = std::mem::replace(&mut jar.used, self.uses);
        let name = self.order.remove(&before).unwrap_or_else(|| host.to_owned());
        self.order.insert(self.uses, name);
        Some(())
    }

    /// Takes out the jar of a host, or a new one.
    fn take(&mut self, host: &str) -> Jar {
        let jar = self.hosts.remove(host).unwrap_or_default();
        self.order.remove(&jar.used);
        self.bytes -= jar.bytes;
        jar
    }

    /// Puts in a jar that was used just now, and makes room for it.
    fn put(&mut self, host: &str, mut jar: Jar) {
        self.uses += 1;
        (jar.used, jar.bytes) = (self.uses, jar.memory() + host.len() * COPIES);
        self.bytes += jar.bytes;
        self.order.insert(jar.used, host.to_owned());
        self.hosts.insert(host.to_owned(), jar);
        while self.bytes > self.bytes_max || self.hosts.len() > HOSTS_MAX {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            drop(self.take(&oldest));
        }
    }
}

impl Jar {
    fn add(&mut self, cookie: &RawCookie<'static>, url: &Url) {
        // A cookie that is none for this URL is an `Err`, and nothing to do about.
        let _ = self.store.insert_raw(cookie, url);
        while self.is_over() && self.drop_one(cookie.name()) {}
    }

    fn is_over(&self) -> bool {
        let is_expired = |cookie: &cookie_store::Cookie<'_>| cookie.is_expired();
        self.store.iter_any().any(is_expired)
            || self.store.iter_any().count() > COOKIES_MAX
            || self.texts() > HOST_BYTES_MAX
    }

    /// Takes out an expired cookie, or else the one that came last. Returns whether there was one.
    fn drop_one(&mut self, last: &str) -> bool {
        let key = |cookie: &cookie_store::Cookie<'_>| {
            let domain = String::from(&cookie.domain);
            (domain, String::from(&cookie.path), cookie.name().to_owned())
        };
        let store = &mut self.store;
        let expired = store.iter_any().find(|cookie| cookie.is_expired()).map(key);
        let last = || store.iter_any().find(|cookie| cookie.name() == last).map(key);
        let Some((domain, path, name)) = expired.or_else(last) else { return false };
        store.remove(&domain, &path, &name).is_some()
    }

    /// Bytes of all names, values and paths.
    fn texts(&self) -> usize {
        let bytes = |cookie: &cookie_store::Cookie<'_>| {
            cookie.name().len() + cookie.value().len() + String::from(&cookie.path).len()
        };
        self.store.iter_any().map(bytes).sum()
    }

    fn memory(&self) -> usize {
        (self.store.iter_any().count() + 1) * COOKIE_OVERHEAD + self.texts() * COPIES
    }
}

/// Reads a `Set-Cookie` line, and keeps of it what is obeyed.
fn cookie_of(line: &str) -> Option<RawCookie<'static>> {
    let read = RawCookie::parse(line).ok().filter(|_| line.len() <= COOKIE_BYTES_MAX)?;
    let mut cookie = RawCookie::new(read.name().to_owned(), read.value().to_owned());
    if let Some(path) = read.path() {
        cookie.set_path(path.to_owned());
    }
    if let Some(domain) = read.domain() {
        cookie.set_domain(domain.to_owned());
    }
    cookie.set_secure(read.secure());
    if let Some(expires) = read.expires() {
        cookie.set_expires(expires);
    }
    cookie.set_max_age(read.max_age());
    Some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn answer(lines: &[String]) -> HeaderMap {
        let lines = lines.iter().map(|line| (SET_COOKIE, HeaderValue::from_str(line).unwrap()));
        lines.collect()
    }

    fn sent(cookies: &Cookies, to: &str) -> Vec<String> {
        let header = cookies.header(&url(to));
        let text = header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let mut pairs: Vec<String> =
            text.split("; ").filter(|s| !s.is_empty()).map(str::to_owned).collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn path_expiry_secure_and_host_are_obeyed() {
        let cookies = Cookies::new(Size::from_mib(64));
        let lines = [
            "a=1",
            "b=2; Path=/deep",
            "c=3; Secure",
            "d=4; Max-Age=0",
            "e=5; Domain=example.org",
            "f=6; Domain=other.test",
            "g",
        ]
        .map(str::to_owned);
        cookies.keep(&url("http://www.example.org/x/y"), &answer(&lines));
        assert_eq!(sent(&cookies, "http://www.example.org/x/z"), ["a=1", "e=5"]);
        assert_eq!(sent(&cookies, "http://www.example.org/deep/z"), ["b=2"]);
        assert!(sent(&cookies, "http://example.org/x/").is_empty());
        assert!(sent(&cookies, "http://shop.example.org/x/").is_empty());
        cookies.keep(&url("http://www.example.org/x/y"), &answer(&["a=9".to_owned()]));
        assert_eq!(sent(&cookies, "http://www.example.org/x/z"), ["a=9", "e=5"]);
    }

    #[test]
    fn jars_are_bounded_in_cookies_bytes_and_hosts() {
        let cookies = Cookies::new(Size::from_mib(64));
        let lines: Vec<String> = (0..=COOKIES_MAX).map(|n| format!("n{n}=1")).collect();
        cookies.keep(&url("http://h/"), &answer(&lines[..COOKIES_MAX]));
        assert_eq!(sent(&cookies, "http://h/").len(), COOKIES_MAX);
        cookies.keep(&url("http://h/"), &answer(&lines));
        let kept = sent(&cookies, "http://h/");
        assert!(kept.len() == COOKIES_MAX && kept.contains(&"n0=1".to_owned()), "{kept:?}");
        for (length, kept) in [(COOKIE_BYTES_MAX, 1), (COOKIE_BYTES_MAX + 1, 0)] {
            let line = format!("long={}", "x".repeat(length - 5));
            cookies.keep(&url(&format!("http://l{length}/")), &answer(&[line]));
            assert_eq!(sent(&cookies, &format!("http://l{length}/")).len(), kept, "{length}");
        }
        for host in 0..HOSTS_MAX {
            cookies.keep(&url(&format!("http://h{host}/")), &answer(&lines[..1]));
        }
        assert!(cookies.jars().hosts.len() <= HOSTS_MAX);
    }

    #[test]
    fn jars_have_a_budget_in_bytes_and_the_oldest_go_first() {
        let cookies = Cookies::new(Size::from_bytes(270 << 10));
        let long = |bytes: usize| -> Vec<String> {
            (0..30)
                .map(|n| format!("n{n}={}; Junk={}", "x".repeat(bytes), "y".repeat(1000)))
                .collect()
        };
        let kept = |host: usize| sent(&cookies, &format!("http://h{host}/")).len();
        cookies.keep(&url("http://h0/"), &answer(&long(3_000)));
        assert_eq!(kept(0), HOST_BYTES_MAX / 3_002, "of one host");
        for host in 1..4 {
            cookies.keep(&url(&format!("http://h{host}/")), &answer(&long(3_000)));
        }
        assert!((0..4).all(|host| kept(host) == 5), "four hosts fit");
        // The first one is used again, and the second one is the oldest now.
        assert_eq!(kept(0), 5);
        for host in 4..6 {
            cookies.keep(&url(&format!("http://h{host}/")), &answer(&long(3_000)));
        }
        let left: Vec<usize> = (0..6).map(kept).collect();
        assert_eq!(left, [5, 0, 5, 5, 5, 5]);
        let bytes = cookies.jars().bytes;
        let order = cookies.jars().order.len();
        assert!(bytes <= 270 << 10 && order == 5, "{bytes} bytes of {order} hosts");
        let sum: usize = cookies.jars().hosts.values().map(|jar| jar.bytes).sum();
        assert_eq!(bytes, sum);
        cookies.keep(&url("http://h2/"), &answer(&["n0=1; Max-Age=0".to_owned()]));
        assert_eq!(kept(2), 4);
        assert!(cookies.jars().bytes < bytes);
        let none = Cookies::new(Size::from_bytes(0));
        none.keep(&url("http://h/"), &answer(&long(10)));
        assert!(sent(&none, "http://h/").is_empty());
    }
}
