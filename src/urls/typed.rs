//! URLs as people type them: the scheme may be missing.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Normalize, PageUrl, ParseError};

/// The port on which no server speaks TLS.
const PLAIN_PORT: u16 = 80;

/// A URL that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The URL.
    pub url: PageUrl,
    /// The scheme that it was taken to have; none if it has one.
    pub assumed: Option<&'static str>,
}

impl Typed {
    /// Parses an address to which the scheme may be missing: then it is `https`, and `http` for
    /// this machine (`localhost` and loopback addresses, where hardly a server has a certificate)
    /// and for port 80.
    ///
    /// # Errors
    ///
    /// What has no scheme must look like an address: its host has a dot or a port, is in brackets,
    /// or is `localhost`. A single word is none.
    pub fn parse(text: &str, rules: &Normalize) -> Result<Self, ParseError> {
        let text = text.trim();
        let rest = text.strip_prefix("//").unwrap_or(text);
        let Some(host) = HostPort::of(rest).filter(|_| !has_scheme(text)) else {
            let is_word = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '-');
            if is_word {
                return Err(ParseError::Word(text.to_owned()));
            }
            return Ok(Self { url: PageUrl::parse_with(text, rules)?, assumed: None });
        };
        let is_plain = host.is_this_machine() || host.port == Some(PLAIN_PORT);
        let assumed = if is_plain { "http" } else { "https" };
        let url = PageUrl::parse_with(&format!("{assumed}://{rest}"), rules)?;
        Ok(Self { url, assumed: Some(assumed) })
    }
}

fn has_scheme(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// What a URL without a scheme begins with.
struct HostPort<'a> {
    name: &'a str,
    port: Option<u16>,
}

impl<'a> HostPort<'a> {
    /// Reads a host that cannot be anything else.
    fn of(text: &'a str) -> Option<Self> {
        let end = text.find(['/', '?', '#', '\\']).unwrap_or(text.len());
        let authority = &text[..end];
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port.parse().ok()?)),
            _ => (authority, None),
        };
        let in_brackets = name.starts_with('[') && name.ends_with(']');
        let is_name = !name.is_empty() && !name.contains(['@', ':', '[', ']']);
        let is_host =
            in_brackets || is_name && (port.is_some() || name.contains('.') || is_localhost(name));
        is_host.then_some(Self { name, port })
    }

    fn is_this_machine(&self) -> bool {
        let inner = self.name.trim_start_matches('[').trim_end_matches(']');
        is_localhost(self.name)
            || self.name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
            || inner.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// Source: RFC 6761, 6.3.
fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, url: &str, assumed: Option<&'static str>) {
        let typed = Typed::parse(text, Normalize::none()).unwrap();
        assert_eq!((typed.url.as_str(), typed.assumed), (url, assumed), "{text}");
    }

    #[test]
    fn what_looks_like_an_address_gets_a_scheme() {
        for (text, url) in [
            ("example.org", "https://example.org/"),
            (" example.org/a/b?c#d ", "https://example.org/a/b?c"),
            ("Example.ORG?x=http://a.b/", "https://example.org/?x=http://a.b/"),
            ("//example.org/x", "https://example.org/x"),
            ("example.org:8443/x", "https://example.org:8443/x"),
            ("intranet:8443", "https://intranet:8443/"),
            ("192.0.2.1/x", "https://192.0.2.1/x"),
            ("[2001:db8::1]:8443/", "https://[2001:db8::1]:8443/"),
            ("[2001:db8::1]", "https://[2001:db8::1]/"),
            ("新闻.中国/甲", "https://xn--efvy88h.xn--fiqs8s/%E7%94%B2"),
        ] {
            check(text, url, Some("https"));
        }
        for (text, url) in [
            ("localhost", "http://localhost/"),
            ("LOCALHOST:8080/a", "http://localhost:8080/a"),
            ("shop.localhost", "http://shop.localhost/"),
            ("127.0.0.1:9/", "http://127.0.0.1:9/"),
            ("127.77.0.1", "http://127.77.0.1/"),
            ("[::1]:8080", "http://[::1]:8080/"),
            ("example.org:80/x", "http://example.org/x"),
        ] {
            check(text, url, Some("http"));
        }
    }

    #[test]
    fn what_has_a_scheme_keeps_it() {
        check("http://example.org/", "http://example.org/", None);
        check("HTTPS://localhost", "https://localhost/", None);
        check("http:example.org", "http://example.org/", None);
    }

    #[test]
    fn what_is_no_address_is_named() {
        for word in ["exprt", "export", "x", "nowhere-"] {
            let error = Typed::parse(word, Normalize::none()).unwrap_err();
            assert_eq!(error, ParseError::Word(word.to_owned()), "{word}");
        }
        for text in ["", "mailto:x@y.z", "javascript:alert(1)", "a b", "x@y.z", ":80", "/a.b"] {
            assert!(Typed::parse(text, Normalize::none()).is_err(), "{text}");
        }
        for text in ["ftp://example.org/", "file:///etc/passwd", "example.org:99999", "a b.c"] {
            assert!(Typed::parse(text, Normalize::none()).is_err(), "{text}");
        }
    }
}
