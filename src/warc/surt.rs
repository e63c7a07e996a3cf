//! The key of a URL in an index: host names backwards, so that what belongs together stands
//! together, without what differs from visit to visit.
//!
//! As the package `surt` of the Internet Archive makes it with its usual settings, which is what
//! `cdxj-indexer` and `pywb` look up.

use url::Url;

/// Parameters that name a session. Source: `surt`, IAURLCanonicalizer.
const SESSIONS: [&str; 6] =
    ["jsessionid=", "phpsessid=", "sid=", "aspsessionid", "cfid=", "cftoken="];

/// Returns the key of a URL.
#[must_use]
pub(crate) fn surt(text: &str) -> String {
    let Ok(url) = Url::parse(text) else { return text.to_ascii_lowercase() };
    if !matches!(url.scheme(), "http" | "https") {
        return text.to_ascii_lowercase();
    }
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let host = without_www(host.trim_matches(['[', ']']).trim_end_matches('.'));
    let mut key = host.split('.').rev().collect::<Vec<_>>().join(",");
    if let Some(port) = url.port() {
        key.push(':');
        key.push_str(&port.to_string());
    }
    key.push_str(")/");
    let path = unescaped(url.path()).to_ascii_lowercase();
    let segments =
        path.split('/').filter(|segment| !segment.is_empty() && !is_session_path(segment));
    key.push_str(&segments.collect::<Vec<_>>().join("/"));
    let query = unescaped(url.query().unwrap_or_default()).to_ascii_lowercase();
    let mut parts: Vec<&str> = query.split('&').filter(|part| !is_session(part)).collect();
    parts.sort_unstable();
    let query = parts.join("&");
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query);
    }
    key
}

/// `www.`, `www2.` and the like say nothing of the site.
fn without_www(host: &str) -> &str {
    let Some(rest) = host.strip_prefix("www") else { return host };
    rest.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix('.').unwrap_or(host)
}

/// Undoes escapes of what need not be escaped.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let hex = rest.get(at + 1..at + 3);
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let plain = byte.filter(|byte| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'#'));
        let (undone, length) = match plain {
            Some(byte) => (char::from(byte), 3),
            None => ('%', 1),
        };
        out.push(undone);
        rest = &rest[at + length..];
    }
    out + rest
}

/// A session of ASP.NET, such as `(S(4hqa0555fwsecu455xqckv45))`.
fn is_session_path(segment: &str) -> bool {
    let inside = segment.strip_prefix('(').and_then(|rest| rest.strip_suffix("))"));
    let Some((letter, value)) = inside.and_then(|inside| inside.split_once('(')) else {
        return false;
    };
    letter.len() == 1 && value.len() == 24 && value.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn is_session(part: &str) -> bool {
    // A value of 32 letters and digits, as these names have it; others are content.
    let long = |value: &str| value.len() == 32 && value.bytes().all(|b| b.is_ascii_alphanumeric());
    SESSIONS.iter().any(|name| {
        part.strip_prefix(name).is_some_and(|value| match *name {
            "aspsessionid" => value.contains('='),
            "cfid=" | "cftoken=" => value.bytes().all(|byte| byte.is_ascii_digit()),
            _ => long(value),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `surt.surt` of PyPI, 0.3.1, makes of them.
    #[test]
    fn keys_are_those_of_the_archives() {
        for (url, key) in [
            ("http://example.org/", "org,example)/"),
            ("https://www.Example.org", "org,example)/"),
            ("http://www2.a.example.co.uk/Path/File.HTML", "uk,co,example,a)/path/file.html"),
            ("http://example.org/folder/", "org,example)/folder"),
            ("http://example.org:8080/a?b=2&a=1", "org,example:8080)/a?a=1&b=2"),
            ("http://127.0.0.1:4000/x", "1,0,0,127:4000)/x"),
            ("http://[::1]:80/x", "::1)/x"),
            ("http://a.org//", "org,a)/"),
            ("http://a.org/a//b", "org,a)/a/b"),
            ("http://a.org/x?", "org,a)/x"),
            ("http://a.org/x?a&b=", "org,a)/x?a&b="),
            ("http://a.org/x?b&a&", "org,a)/x?&a&b"),
            ("http://a.org/x?a=1&&b=2", "org,a)/x?&a=1&b=2"),
            ("http://a.org/%7Ea%2fb", "org,a)/~a/b"),
            ("http://a.org/a%20b?c%20d", "org,a)/a%20b?c%20d"),
            ("http://a.org/x/?a=B", "org,a)/x?a=b"),
            ("http://a.org/(S(4hqa0555fwsecu455xqckv45))/x.aspx", "org,a)/x.aspx"),
            ("http://a.org/x?cfid=12&cftoken=34&z=1", "org,a)/x?z=1"),
            ("http://a.org/x?PHPSESSID=0123456789abcdef0123456789abcdef&y=1", "org,a)/x?y=1"),
            ("http://b\u{fc}cher.de/\u{e4}", "de,xn--bcher-kva)/%c3%a4"),
            ("http://a.org/?", "org,a)/"),
            ("urn:uniqcrawl:seeds", "urn:uniqcrawl:seeds"),
        ] {
            assert_eq!(surt(url), key, "{url}");
        }
    }
}
