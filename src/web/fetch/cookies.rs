//! Cookies: in memory, for the host that set them and no other, within bounds.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use cookie_store::CookieStore;
use reqwest::header::{HeaderMap, HeaderValue, SET_COOKIE};
use url::Url;

/// Hosts whose cookies are kept.
const HOSTS_MAX: usize = 10_000;

/// Cookies of one host. Source: RFC 6265, 6.1 asks for at least 50.
const COOKIES_MAX: usize = 50;

/// Bytes of one `Set-Cookie` line. Source: the same, at least 4096.
const COOKIE_BYTES_MAX: usize = 4_096;

/// One jar for each host name. Cheap to clone; all clones are the same jars.
///
/// Path, expiry and `Secure` are obeyed. A `Domain` that takes in other hosts is not: a cookie goes
/// back to the host that set it, so that no host can follow the crawler to another one.
#[derive(Clone, Default)]
pub(super) struct Cookies(Arc<Mutex<HashMap<String, CookieStore>>>);

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookies")
    }
}

impl Cookies {
    /// Returns the `Cookie` header for an address; none if there is no cookie for it.
    pub(super) fn header(&self, url: &Url) -> Option<HeaderValue> {
        let jars = self.0.lock().expect("no holder of this lock panics");
        let pairs = jars.get(url.host_str()?)?.get_request_values(url);
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
        let mut jars = self.0.lock().expect("no holder of this lock panics");
        if jars.len() >= HOSTS_MAX && !jars.contains_key(host) {
            jars.clear();
        }
        let jar = jars.entry(host.to_owned()).or_default();
        for line in lines.filter_map(|line| line.to_str().ok()) {
            if line.len() > COOKIE_BYTES_MAX {
                continue;
            }
            // A line that is no cookie for this address is an `Err`, and nothing to do about.
            let _ = jar.parse(line, url);
            if jar.iter_any().count() > COOKIES_MAX {
                drop_one(jar, line);
            }
        }
    }
}

/// Takes an expired cookie out of a full jar, or else the one that came last.
fn drop_one(jar: &mut CookieStore, last: &str) {
    let last = last.split('=').next().unwrap_or_default().trim();
    let key = |cookie: &cookie_store::Cookie<'_>| {
        let domain = String::from(&cookie.domain);
        (domain, String::from(&cookie.path), cookie.name().to_owned())
    };
    let expired = jar.iter_any().find(|cookie| cookie.is_expired()).map(key);
    let key = expired.or_else(|| jar.iter_any().find(|cookie| cookie.name() == last).map(key));
    if let Some((domain, path, name)) = key {
        jar.remove(&domain, &path, &name);
    }
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
        let cookies = Cookies::default();
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
        let cookies = Cookies::default();
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
        assert!(cookies.0.lock().unwrap().len() <= HOSTS_MAX);
    }
}
