//! The HTTP clients of the settings, and how many idle connections they keep in all.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use reqwest::header::{self, HeaderMap, HeaderValue};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;
use url::Url;

use super::resolve::Resolver;
use super::{Config, Error, own_headers};
use crate::urls::PageUrl;

/// Codings of bodies that we can undo.
const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// What we like to get.
const ACCEPT: &str = "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.1";

/// Most header lines of an answer, as in curl.
const HEADER_LINES_MAX: usize = 5_000;

/// Most bytes of the head of an answer over HTTP/2, as in browsers. HTTP/1 has some 400 KiB.
const HEAD_BYTES_MAX: u32 = 256 << 10;

/// Bytes of a body that a server may send over HTTP/2 before they are read: what waits for room in
/// memory must not lie elsewhere meanwhile. A host has one request at a time.
const WINDOW_BYTES: u32 = 256 << 10;

/// The clients: one for each proxy, or one without, and the idle connections of each.
///
/// A client keeps idle connections of each host, however many hosts there are. So when as many
/// hosts were asked as there may be idle connections, new clients take the place of the old ones,
/// whose connections close as their requests end.
#[derive(Debug)]
pub(super) struct Clients {
    parts: ClientParts,
    /// Hosts that one set of clients is used for.
    hosts_max: usize,
    present: Mutex<Present>,
}

#[derive(Debug)]
struct Present {
    clients: Arc<[reqwest::Client]>,
    /// Hashes of the hosts that were asked.
    hosts: HashSet<u64>,
}

/// What clients are made of. Nothing of it has to be read from a file again.
#[derive(Debug)]
struct ClientParts {
    config: Arc<Config>,
    headers: HeaderMap,
    /// Those of them that the operator has set.
    own: HeaderMap,
    tls: rustls::ClientConfig,
    resolver: Resolver,
    proxies: Vec<Url>,
}

impl Clients {
    pub(super) fn new(
        config: &Arc<Config>,
        resolver: &Resolver,
        proxies: Vec<Url>,
    ) -> Result<Self, Error> {
        let per_host = config.idle_connections_per_host * proxies.len().max(1);
        let hosts_max = config.idle_connections_max.checked_div(per_host).unwrap_or(usize::MAX);
        let own = own_headers::parse(&config.headers)?;
        let parts = ClientParts {
            headers: headers(config, &own)?,
            own,
            tls: tls(config)?,
            config: Arc::clone(config),
            resolver: resolver.clone(),
            proxies,
        };
        let present = Mutex::new(Present { clients: parts.make()?, hosts: HashSet::new() });
        Ok(Self { parts, hosts_max: hosts_max.max(1), present })
    }

    /// Returns the headers that every request has, and those of them that the operator has set.
    pub(super) fn headers(&self) -> (&HeaderMap, &HeaderMap) {
        (&self.parts.headers, &self.parts.own)
    }

    /// Returns the clients for a request to the host of `url`.
    pub(super) fn of(&self, url: &PageUrl) -> Arc<[reqwest::Client]> {
        let host = xxhash_rust::xxh3::xxh3_64(url.host_key().as_str().as_bytes());
        let mut present = self.present.lock().expect("no holder of this lock panics");
        if present.hosts.len() >= self.hosts_max && !present.hosts.contains(&host) {
            // What could be made once can be made again; if not, the old ones serve on.
            match self.parts.make() {
                Ok(clients) => *present = Present { clients, hosts: HashSet::new() },
                Err(error) => tracing::warn!(%error, "idle connections are kept"),
            }
        }
        present.hosts.insert(host);
        Arc::clone(&present.clients)
    }
}

impl ClientParts {
    fn make(&self) -> Result<Arc<[reqwest::Client]>, Error> {
        if self.proxies.is_empty() {
            return Ok([self.client(None)?].into());
        }
        self.proxies.iter().map(|proxy| self.client(Some(proxy))).collect()
    }

    fn client(&self, proxy: Option<&Url>) -> Result<reqwest::Client, Error> {
        let config = &self.config;
        let mut builder = reqwest::Client::builder()
            .default_headers(self.headers.clone())
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(config.connect_timeout.duration())
            .pool_max_idle_per_host(config.idle_connections_per_host)
            .pool_idle_timeout(config.idle_timeout.duration())
            .tls_backend_preconfigured(self.tls.clone())
            .dns_resolver(self.resolver.clone())
            // Header lines that browsers read or skip take no page with them.
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_max_headers(HEADER_LINES_MAX)
            .http2_max_header_list_size(HEAD_BYTES_MAX)
            .http2_initial_stream_window_size(WINDOW_BYTES)
            .http2_initial_connection_window_size(2 * WINDOW_BYTES)
            // Proxies of the environment would get around the settings, and the guard.
            .no_proxy();
        if !config.http2 {
            builder = builder.http1_only();
        }
        if let Some(proxy) = proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.clone())?);
        }
        Ok(builder.build()?)
    }
}

fn headers(config: &Config, own: &HeaderMap) -> Result<HeaderMap, Error> {
    let agent = config.full_user_agent();
    let agent = HeaderValue::from_str(&agent).map_err(|_| Error::UserAgent(agent))?;
    let mut headers: HeaderMap = [
        (header::USER_AGENT, agent),
        (header::ACCEPT, HeaderValue::from_static(ACCEPT)),
        (header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPT_ENCODING)),
    ]
    .into_iter()
    .collect();
    headers.extend(own.clone());
    Ok(headers)
}

/// TLS with the authorities of the system and of the settings.
fn tls(config: &Config) -> Result<rustls::ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authorities = authorities(&config.ca_file)?;
    let verifier = if authorities.is_empty() {
        Verifier::new(Arc::clone(&provider))?
    } else {
        Verifier::new_with_extra_roots(authorities, Arc::clone(&provider))?
    };
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let protocols: &[&[u8]] = if config.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(tls)
}

fn authorities(file: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let bad = |detail: String| Error::File { path: Path::new(file).to_owned(), detail };
    let text = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| bad(error.to_string()))?;
    if found.is_empty() {
        return Err(bad("no certificate in PEM form".to_owned()));
    }
    Ok(found)
}
