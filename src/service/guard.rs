//! Who may ask: token, host name, origin, and how often.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use subtle::ConstantTimeEq as _;

use super::problem::Problem;
use super::{Config, Error, page};

/// Least bytes of a token.
const TOKEN_BYTES_MIN: usize = 16;

/// Clients whose pace is remembered before those that are at rest are forgotten.
const CLIENTS_MAX: usize = 65_536;

/// The address of a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub IpAddr);

/// Decides whether a request is answered.
pub(super) struct Guard {
    token: Option<Box<[u8]>>,
    all: Option<DefaultDirectRateLimiter>,
    each: Option<DefaultKeyedRateLimiter<IpAddr>>,
    seen: AtomicUsize,
}

impl Guard {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let named = !config.token_file.as_os_str().is_empty();
        let token = named.then(|| read_token(&config.token_file)).transpose()?;
        if token.is_none() && !config.listen.ip().is_loopback() {
            return Err(Error::Open(config.listen));
        }
        let quota = |most| NonZeroU32::new(most).map(Quota::per_second);
        Ok(Self {
            token,
            all: quota(config.requests_per_second_max).map(RateLimiter::direct),
            each: quota(config.client_requests_per_second_max).map(RateLimiter::keyed),
            seen: AtomicUsize::new(0),
        })
    }

    /// Tells why a request is not answered.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap, peer: Peer) -> Result<(), Problem> {
        self.pace(peer.0)?;
        let Some(token) = &self.token else { return from_here(uri, headers) };
        // Whoever watches the process need not know the token; the page asks for it.
        if matches!(uri.path(), "/healthz" | "/readyz") || page::PATHS.contains(&uri.path()) {
            return Ok(());
        }
        let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|given| match given.split_at_checked(7) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(rest),
            _ => None,
        });
        match given {
            Some(given) if bool::from(given.trim_ascii().ct_eq(token)) => Ok(()),
            _ => {
                let detail = "send the token: `Authorization: Bearer ...`";
                Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail))
            }
        }
    }

    fn pace(&self, client: IpAddr) -> Result<(), Problem> {
        let fast = |what: &str| {
            let detail = format!("more requests per second than {what} may send");
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail)
        };
        if let Some(each) = &self.each {
            if self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLIENTS_MAX) {
                each.retain_recent();
            }
            each.check_key(&network(client)).map_err(|_| fast("one client"))?;
        }
        match &self.all {
            Some(all) => all.check().map_err(|_| fast("all clients together")),
            None => Ok(()),
        }
    }
}

/// One client has a whole network of IPv6 addresses.
fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let mut parts = address.segments();
            parts[4..].fill(0);
            Ipv6Addr::from(parts).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn read_token(path: &Path) -> Result<Box<[u8]>, Error> {
    let text = std::fs::read(path)
        .map_err(|source| Error::Token { path: path.to_owned(), detail: source.to_string() })?;
    let token = text.trim_ascii();
    let plain = token.iter().all(u8::is_ascii_graphic);
    if token.len() < TOKEN_BYTES_MIN || !plain {
        let detail =
            format!("a token is one word of at least {TOKEN_BYTES_MIN} visible ASCII characters");
        return Err(Error::Token { path: path.to_owned(), detail });
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let open = std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
        if open {
            tracing::warn!(path = %path.display(), "other users may read the token");
        }
    }
    Ok(token.into())
}

/// Without a token, a page in a browser of this machine must not reach the service: neither by a
/// name that its server lets point here, nor by a form.
fn from_here(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let forbidden =
        |code, detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, code, detail.to_owned()));
    let named = headers.get_all(header::HOST).iter().map(HeaderValue::to_str);
    let named = named.map(Result::unwrap_or_default);
    for host in named.chain(uri.authority().map(Authority::as_str)) {
        if !is_loopback(host) {
            let detail = "without a token, only loopback names and addresses are answered";
            return forbidden("forbidden_host", detail);
        }
    }
    let origins = headers.get_all(header::ORIGIN).iter().map(HeaderValue::to_str);
    for origin in origins.map(Result::unwrap_or_default) {
        let host = origin.split_once("://").map_or("", |(_, host)| host);
        if !is_loopback(host) {
            return forbidden("forbidden_origin", "pages of other sites are not answered");
        }
    }
    // A link of another site may lead to the page, which holds no data.
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site == Some(b"cross-site") && !page::PATHS.contains(&uri.path()) {
        return forbidden("forbidden_origin", "pages of other sites are not answered");
    }
    Ok(())
}

/// Refuses a request that changes something if a page of another origin sent it: browsers name the
/// origin of whatever is no plain look. Another port of this machine is another origin.
pub(super) fn same_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let foreign = || {
        let detail = "pages of other origins may not change anything here";
        Problem::new(StatusCode::FORBIDDEN, "forbidden_origin", detail)
    };
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    match site {
        Some(b"same-origin" | b"none") => return Ok(()),
        Some(_) => return Err(foreign()),
        None => {}
    }
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_own = |page: &HeaderValue| {
        let page = page.to_str().unwrap_or_default();
        let named = page.split_once("://").and_then(|(_, named)| named.split('/').next());
        named.unwrap_or_default().as_bytes().eq_ignore_ascii_case(host)
    };
    // Browsers without that header name the page in which an image stands.
    let mut pages = headers.get_all(header::ORIGIN).iter().chain(headers.get(header::REFERER));
    if pages.all(is_own) { Ok(()) } else { Err(foreign()) }
}

/// Tells whether a name with an optional port is this machine.
fn is_loopback(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
        return address.is_loopback();
    }
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_many_names_and_others_do_not_look_like_it() {
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.9:1", "[::1]", "[::1]:80"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.nip.io:80",
            "localhost@evil.example",
            "10.0.0.1",
            "[::2]:80",
            "0.0.0.0:80",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn one_ipv6_network_is_one_client() {
        let address = |text: &str| network(text.parse().unwrap());
        assert_eq!(address("2001:db8:1:2:3::4"), address("2001:db8:1:2:ffff::"));
        assert_ne!(address("2001:db8:1:2::"), address("2001:db8:1:3::"));
        assert_ne!(address("127.0.0.1"), address("127.0.0.2"));
        assert_eq!(address("::ffff:127.0.0.1"), address("127.0.0.1"));
    }
}
