//! One request: sent politely, bounded in time and bytes, ending in a value and never in an error.
//!
//! Redirects are not followed here: each hop is offered to the frontier like any other address.

mod body;
pub mod decode;
mod failure;
pub mod guard;
pub mod http_date;
mod inflate;
mod resolve;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Host;

use crate::urls::PageUrl;

pub use body::{Response, Want};
pub use failure::Failure;
use guard::Guard;
use resolve::Resolver;

/// Where a webmaster learns what this program is, if the operator names no contact.
pub const HOME: &str = "https://crates.io/crates/uniqcrawl";

/// Codings of bodies that we can undo.
const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// What we like to get.
const ACCEPT: &str = "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.1";

/// Settings of requests.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// The `User-Agent` header; empty for product token, version and `contact`.
    pub user_agent: String,
    /// Where a webmaster can complain: an address of a page or a mailbox.
    pub contact: String,
    /// The `From` header: a mailbox of the operator; empty for none.
    pub from: String,
    /// IP addresses of names that the system's resolver need not be asked for, each as
    /// `name=address` or `name=address,address`. The guard looks at them like at any other.
    pub resolve: Vec<String>,
    /// Longest time to connect, TLS included.
    pub connect_timeout_ms: u64,
    /// Longest time from the start of the request to the head of the answer.
    pub first_byte_timeout_ms: u64,
    /// Longest time between two pieces of the body.
    pub stall_timeout_ms: u64,
    /// Longest time for all of a request.
    pub total_timeout_ms: u64,
    /// Most bytes of a body on the wire; a longer page is cut and marked so.
    pub body_bytes_max: usize,
    /// Most bytes of a body after decompression; a longer page is cut and marked so.
    pub decoded_bytes_max: usize,
    /// Most times that a body may grow by decompression.
    pub decoded_ratio_max: u32,
    /// Private and loopback addresses may be contacted.
    pub allow_private: bool,
    /// Most requests a second of the whole process; 0 for no limit.
    pub requests_per_second_max: u32,
    /// Idle connections kept per host.
    pub idle_connections_per_host: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            user_agent: String::new(),
            contact: HOME.to_owned(),
            from: String::new(),
            resolve: Vec::new(),
            connect_timeout_ms: 10_000,
            first_byte_timeout_ms: 20_000,
            stall_timeout_ms: 15_000,
            total_timeout_ms: 60_000,
            body_bytes_max: 8 << 20,
            decoded_bytes_max: 16 << 20,
            decoded_ratio_max: 200,
            allow_private: false,
            requests_per_second_max: 0,
            idle_connections_per_host: 1,
        }
    }
}

impl Config {
    /// Returns the `User-Agent` header that is sent.
    #[must_use]
    pub fn full_user_agent(&self) -> String {
        if self.user_agent.is_empty() {
            format!("uniqcrawl/{} (+{})", env!("CARGO_PKG_VERSION"), self.contact)
        } else {
            self.user_agent.clone()
        }
    }
}

/// Why no client can be made of the settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user agent cannot stand in a header.
    #[error("the user agent `{0}` has characters that no header may have")]
    UserAgent(String),
    /// The mailbox cannot stand in a header.
    #[error("the mailbox `{0}` has characters that no header may have")]
    From(String),
    /// Not a name with its addresses.
    #[error("`{0}` in `fetch.resolve` is not a name, `=` and IP addresses")]
    Resolve(String),
    /// TLS or another part of the client is not available.
    #[error("the HTTP client cannot start: {0}")]
    Client(#[from] reqwest::Error),
}

/// Sends requests. Cheap to clone; all clones share connections and limits.
#[derive(Debug, Clone)]
pub struct Fetcher {
    client: reqwest::Client,
    guard: Guard,
    resolver: Resolver,
    limiter: Option<std::sync::Arc<DefaultDirectRateLimiter>>,
    config: std::sync::Arc<Config>,
}

impl Fetcher {
    /// Makes a client of the settings.
    pub fn new(config: Config) -> Result<Self, Error> {
        // A second call finds the provider installed, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let agent = config.full_user_agent();
        let agent = HeaderValue::from_str(&agent).map_err(|_| Error::UserAgent(agent))?;
        let mut headers: HeaderMap = [
            (header::USER_AGENT, agent),
            (header::ACCEPT, HeaderValue::from_static(ACCEPT)),
            (header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPT_ENCODING)),
        ]
        .into_iter()
        .collect::<HeaderMap>();
        if !config.from.is_empty() {
            let from = HeaderValue::from_str(&config.from);
            headers.insert(header::FROM, from.map_err(|_| Error::From(config.from.clone()))?);
        }
        let guard = Guard { allow_private: config.allow_private };
        let resolver = Resolver::new(guard, &config.resolve).map_err(Error::Resolve)?;
        let millis = Duration::from_millis;
        let client = reqwest::Client::builder()
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(millis(config.connect_timeout_ms))
            .read_timeout(millis(config.stall_timeout_ms))
            .pool_max_idle_per_host(config.idle_connections_per_host)
            .dns_resolver(resolver.clone())
            .build()?;
        let quota = NonZeroU32::new(config.requests_per_second_max).map(Quota::per_second);
        let limiter = quota.map(|quota| std::sync::Arc::new(RateLimiter::direct(quota)));
        Ok(Self { client, guard, resolver, limiter, config: std::sync::Arc::new(config) })
    }

    /// Waits until the limit on requests per second lets another one go.
    pub async fn ready(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.until_ready().await;
        }
    }

    /// Finds out the IP address of a host. Of several it is the least, so that hosts with the same
    /// set of addresses have the same one.
    pub async fn look_up(&self, url: &PageUrl) -> Result<IpAddr, Failure> {
        let Some(name) = url.url().domain() else {
            let none = || Failure::Dns("an address without host".to_owned());
            return ip_of(url).ok_or_else(none);
        };
        let longest = Duration::from_millis(self.config.connect_timeout_ms);
        match tokio::time::timeout(longest, self.resolver.look_up(name)).await {
            Ok(found) => {
                let found = found.map_err(Failure::from)?;
                least(&found).ok_or_else(|| Failure::Dns("no address".to_owned()))
            }
            Err(_) => Err(Failure::Timeout("the IP address")),
        }
    }

    /// Returns what [`Fetcher::look_up`] would, if it is known without asking anybody.
    #[must_use]
    pub fn known_address(&self, url: &PageUrl) -> Option<IpAddr> {
        match url.url().domain() {
            Some(name) => least(&self.resolver.remembered(name)?),
            None => ip_of(url).map(|ip| ip.to_canonical()),
        }
    }

    /// Sends one request and reads as much of the answer as `want` asks for.
    pub async fn visit(&self, url: &PageUrl, want: Want) -> Result<Response, Failure> {
        // Addresses that are IP numbers never pass the resolver.
        if let Some(ip) = ip_of(url) {
            self.guard.check(ip).map_err(|refused| Failure::Refused(refused.to_string()))?;
        }
        let total = Duration::from_millis(self.config.total_timeout_ms);
        match tokio::time::timeout(total, self.exchange(url, want)).await {
            Ok(result) => result,
            Err(_) => Err(Failure::Timeout("the whole request")),
        }
    }

    async fn exchange(&self, url: &PageUrl, want: Want) -> Result<Response, Failure> {
        let first_byte = Duration::from_millis(self.config.first_byte_timeout_ms);
        let request = self.client.get(url.url().clone()).send();
        let answer = match tokio::time::timeout(first_byte, request).await {
            Ok(answer) => answer.map_err(|error| Failure::of(&error))?,
            Err(_) => return Err(Failure::Timeout("the first byte")),
        };
        body::read(answer, want, &self.config).await
    }
}

fn least(addresses: &[IpAddr]) -> Option<IpAddr> {
    addresses.iter().map(IpAddr::to_canonical).min()
}

fn ip_of(url: &PageUrl) -> Option<IpAddr> {
    match url.url().host()? {
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.into()),
        Host::Domain(_) => None,
    }
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
