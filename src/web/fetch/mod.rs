//! One request: sent politely, bounded in time and bytes, ending in a value and never in an error.
//!
//! Redirects are not followed here: each hop is offered to the frontier like any other URL.

mod auth;
mod body;
mod client;
mod cookies;
pub(crate) mod decode;
mod exchange;
mod failure;
pub mod guard;
pub(crate) mod http_date;
mod inflate;
mod link_header;
mod own_headers;
mod post;
mod proxy;
mod resolve;
mod room;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, timeout_at};
use url::Host;

use crate::base::units::{Size, Time};
use crate::urls::PageUrl;

pub use auth::{Auth, AuthConfig};
pub(crate) use body::{Response, Want};
pub(crate) use exchange::{BodyCut, Exchange};
pub use failure::Failure;
pub(crate) use link_header::canonical_link;
pub(crate) use proxy::masked;
pub(crate) use room::BodyPermit;

use body::ResponseReader;
use client::Clients;
use cookies::Cookies;
use guard::AddressGuard;
use resolve::Resolver;
use room::BodyRoom;

/// Where a webmaster learns what this program is, if the operator names no contact.
pub const HOME: &str = "https://crates.io/crates/uniqcrawl";

/// The status with which a proxy asks who we are.
const PROXY_AUTHENTICATION: u16 = 407;

/// All of a request took too long.
const WHOLE_REQUEST: Failure = Failure::Timeout("the whole request");

/// Settings of requests.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// The `User-Agent` header; empty for product token, version and `contact`.
    pub user_agent: String,
    /// Where a webmaster can complain: an address of a page or a mailbox.
    pub contact: String,
    /// IP addresses of names that the system's resolver need not be asked for, each as
    /// `name=address` or `name=address,address`. The guard looks at them like at any other. A name
    /// with nothing behind it has no address.
    pub resolve: Vec<String>,
    /// Longest time to connect, TLS included.
    pub connect_timeout: Time,
    /// Longest time from the start of the request to the head of the answer.
    pub first_byte_timeout: Time,
    /// Longest time between two pieces of the body.
    pub stall_timeout: Time,
    /// Longest time for all of a request.
    pub total_timeout: Time,
    /// Most bytes of a body on the wire; a longer page is cut and marked so.
    pub body_size_max: Size,
    /// Most bytes of a body after decompression; a longer page is cut and marked so.
    pub decoded_size_max: Size,
    /// Memory of all bodies: of those that are read, wait to be fingerprinted or are unpacked.
    pub bodies_size_max: Size,
    /// Most times that a body may grow by decompression.
    pub decoded_ratio_max: u32,
    /// Private and loopback addresses may be contacted.
    pub allow_private: bool,
    /// Most requests a second of the whole process; 0 for no limit.
    pub requests_per_second_max: u32,
    /// Idle connections kept per host.
    pub idle_connections_per_host: usize,
    /// Idle connections kept in all; fewer where open files are limited.
    pub idle_connections_max: usize,
    /// Time for which an idle connection is kept.
    pub idle_timeout: Time,
    /// Proxies, used in turn, one a request; empty for none. Those of the environment are not used.
    pub proxies: Vec<String>,
    /// Header lines that every request has, such as `Accept-Language: de`.
    pub headers: Vec<String>,
    /// Cookies are kept, in memory, and given back to the host that set them.
    pub cookies: bool,
    /// Memory of all cookies; those of the hosts go first that were not asked for longest.
    pub cookies_size_max: Size,
    /// HTTP/2 is spoken with servers that offer it (ALPN).
    pub http2: bool,
    /// File of further certificate authorities, in PEM form; empty for none.
    pub ca_file: String,
    /// Time for which the URLs of a name are remembered; 0 to ask each time.
    pub dns_ttl: Time,
    /// Names whose URLs are remembered at most.
    pub dns_names_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            user_agent: String::new(),
            contact: HOME.to_owned(),
            resolve: Vec::new(),
            connect_timeout: Time::from_secs(10),
            first_byte_timeout: Time::from_secs(20),
            stall_timeout: Time::from_secs(15),
            total_timeout: Time::from_secs(60),
            body_size_max: Size::from_mib(8),
            decoded_size_max: Size::from_mib(16),
            bodies_size_max: Size::from_mib(128),
            decoded_ratio_max: 200,
            allow_private: false,
            requests_per_second_max: 0,
            idle_connections_per_host: 1,
            idle_connections_max: 512,
            idle_timeout: Time::from_secs(30),
            proxies: Vec::new(),
            headers: Vec::new(),
            cookies: false,
            cookies_size_max: Size::from_mib(32),
            http2: true,
            ca_file: String::new(),
            dns_ttl: Time::from_secs(60),
            dns_names_max: 10_000,
        }
    }
}

impl Config {
    /// Returns the memory of bodies that are unpacked: what those that come do not have.
    #[must_use]
    pub(crate) fn unpacked_size_max(&self) -> Size {
        Size::from_bytes(self.bodies_size_max.bytes() as u64 / 4)
    }

    /// Returns the `User-Agent` header that is sent.
    #[must_use]
    pub(crate) fn full_user_agent(&self) -> String {
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
    /// A header that cannot be set.
    #[error("the header `{name}` cannot be set: {why}")]
    Header {
        /// Its name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A proxy that cannot be used.
    #[error("the proxy `{proxy}` cannot be used: {why}")]
    Proxy {
        /// Its URL without the password.
        proxy: String,
        /// Why not.
        why: &'static str,
    },
    /// A file that cannot be read.
    #[error("{}: {detail}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong; never what stands in it.
        detail: String,
    },
    /// Not a name with its URLs.
    #[error("`{0}` in `fetch.resolve` is not a name, `=` and IP addresses")]
    Resolve(String),
    /// TLS cannot be set up, such as for want of certificate authorities of the system.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// TLS or another part of the client is not available.
    #[error("the HTTP client cannot start: {0}")]
    Client(#[from] reqwest::Error),
}

/// When a page is sent again (RFC 9110, 13.1): otherwise the answer has status 304. What is empty
/// is not asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preconditions<'a> {
    /// Unless it has still this `ETag`.
    pub if_none_match: &'a str,
    /// If it was modified after this date.
    pub if_modified_since: &'a str,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// The URL.
    pub url: &'a PageUrl,
    /// When it is sent again.
    pub preconditions: Preconditions<'a>,
    /// What its body is wanted for.
    pub want: Want,
}

/// Sends requests. Cheap to clone; all clones share connections and limits.
#[derive(Debug, Clone)]
pub struct Fetcher {
    clients: Arc<Clients>,
    /// Counts requests, so that the proxies take turns.
    turn: Arc<AtomicUsize>,
    resolver: Resolver,
    limiter: Option<Arc<DefaultDirectRateLimiter>>,
    cookies: Option<Cookies>,
    auth: Arc<Auth>,
    room: Arc<BodyRoom>,
    config: Arc<Config>,
}

impl Fetcher {
    /// Makes a client of the settings.
    pub fn new(config: Config) -> Result<Self, Error> {
        let proxies = proxy::parse(&config.proxies)?;
        let resolver = Resolver::new(&config, proxy::names(&proxies))?;
        let config = Arc::new(config);
        let quota = NonZeroU32::new(config.requests_per_second_max).map(Quota::per_second);
        Ok(Self {
            clients: Arc::new(Clients::new(&config, &resolver, proxies)?),
            turn: Arc::default(),
            resolver,
            limiter: quota.map(|quota| Arc::new(RateLimiter::direct(quota))),
            cookies: config.cookies.then(|| Cookies::new(config.cookies_size_max)),
            auth: Arc::default(),
            room: Arc::new(BodyRoom::new(config.bodies_size_max)),
            config,
        })
    }

    /// Sends these credentials to the hosts that they belong to.
    #[must_use]
    pub(crate) fn with_auth(self, auth: Auth) -> Self {
        Self { auth: Arc::new(auth), ..self }
    }

    /// Waits until the limit on requests per second lets another one go, and there is room in
    /// memory for its answer.
    pub(crate) async fn ready(&self) -> BodyPermit {
        if let Some(limiter) = &self.limiter {
            limiter.until_ready().await;
        }
        self.room.enter().await
    }

    /// Finds out the IP address of a host. Of several it is the least, so that hosts with the same
    /// set of addresses have the same one.
    pub(crate) async fn look_up(&self, url: &PageUrl) -> Result<IpAddr, Failure> {
        let Some(name) = url.url().domain() else {
            let none = || Failure::Dns("a URL without host".to_owned());
            return ip_of(url).ok_or_else(none);
        };
        let longest = self.config.connect_timeout.duration();
        match tokio::time::timeout(longest, self.resolver.look_up(name)).await {
            Ok(found) => {
                let found = found.map_err(Failure::from)?;
                least(&found).ok_or_else(|| Failure::Dns("no address".to_owned()))
            }
            Err(_) => Err(Failure::Dns(format!("no answer within {longest:?}"))),
        }
    }

    /// Returns what [`Fetcher::look_up`] would, if it is known without asking anybody.
    #[must_use]
    pub(crate) fn known_address(&self, url: &PageUrl) -> Option<IpAddr> {
        match url.url().domain() {
            Some(name) => least(&self.resolver.remembered(name)?),
            None => ip_of(url).map(|ip| ip.to_canonical()),
        }
    }

    /// Sends one request and reads as much of the answer as is wanted. [`Fetcher::ready`] gives the
    /// room that the answer begins with. What is exchanged goes to `kept` as well, if that is asked
    /// for.
    pub(crate) async fn visit(
        &self,
        ask: Ask<'_>,
        held: BodyPermit,
        mut kept: Option<&mut Exchange>,
    ) -> Result<Response, Failure> {
        let end = Instant::now() + self.config.total_timeout.duration();
        let answer = self.exchange(ask.url, ask.preconditions, kept.as_deref_mut());
        let answer = timeout_at(end, answer).await.unwrap_or(Err(WHOLE_REQUEST))?;
        if let Some(kept) = &mut kept {
            kept.keep_head(&answer, self.has_proxy());
        }
        let reader = ResponseReader { config: &self.config, room: &self.room, end };
        reader.read(answer, ask.want, held, kept).await
    }

    /// Sends a request and waits for the head of its answer.
    async fn exchange(
        &self,
        url: &PageUrl,
        preconditions: Preconditions<'_>,
        kept: Option<&mut Exchange>,
    ) -> Result<reqwest::Response, Failure> {
        self.guard(url).await?;
        let first_byte = self.config.first_byte_timeout.duration();
        let mut request = self.request(url);
        let Preconditions { if_none_match, if_modified_since } = preconditions;
        for (name, value) in
            [(header::IF_NONE_MATCH, if_none_match), (header::IF_MODIFIED_SINCE, if_modified_since)]
        {
            if !value.is_empty()
                && let Ok(value) = HeaderValue::from_str(value)
            {
                request = request.header(name, value);
            }
        }
        let (client, request) = request.build_split();
        let request = request.map_err(|error| self.through(Failure::of(&error)))?;
        if let Some(kept) = kept {
            let (sent, own) = self.clients.headers();
            kept.keep_request(&request, sent, &exchange::is_secret(own));
        }
        let request = client.execute(request);
        let answer = match tokio::time::timeout(first_byte, request).await {
            Ok(answer) => answer.map_err(|error| self.through(Failure::of(&error)))?,
            Err(_) => return Err(Failure::Timeout("the first byte")),
        };
        if let Some(cookies) = &self.cookies {
            cookies.keep(url.url(), answer.headers());
        }
        if self.has_proxy() && answer.status() == PROXY_AUTHENTICATION {
            return Err(Failure::Proxy("it asks for a user name and a password".to_owned()));
        }
        Ok(answer)
    }

    /// Refuses targets that must not be contacted and that the resolver would not see: IP numbers
    /// never pass it, and behind a proxy no name does.
    async fn guard(&self, url: &PageUrl) -> Result<(), Failure> {
        let guard = AddressGuard { allow_private: self.config.allow_private };
        match ip_of(url) {
            Some(ip) => guard.check(ip).map_err(Failure::from),
            None if self.has_proxy() => {
                let name = url.url().host_str().unwrap_or_default();
                self.resolver.look_up(name).await.map(drop).map_err(Failure::from)
            }
            None => Ok(()),
        }
    }

    fn request(&self, url: &PageUrl) -> reqwest::RequestBuilder {
        let clients = self.clients.of(url);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % clients.len();
        let mut request = clients[turn].get(url.url().clone());
        if let Some(cookies) = self.cookies.as_ref().and_then(|all| all.header(url.url())) {
            request = request.header(header::COOKIE, cookies);
        }
        self.auth.sign(request, url)
    }

    fn has_proxy(&self) -> bool {
        !self.config.proxies.is_empty()
    }

    /// With a proxy, it is the proxy that no connection could be made with or through.
    fn through(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Connect(detail) if self.has_proxy() => Failure::Proxy(detail),
            failure => failure,
        }
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
