//! Makes the HTTP clients of the settings: one for each proxy, or one without.

use std::path::Path;

use reqwest::header::{self, HeaderMap, HeaderValue};
use url::Url;

use super::resolve::Resolver;
use super::{Config, Error, own_headers};

/// Codings of bodies that we can undo.
const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// What we like to get.
const ACCEPT: &str = "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.1";

/// Makes a client for each proxy; one client if there is no proxy.
pub(super) fn clients(
    config: &Config,
    resolver: &Resolver,
    proxies: &[Url],
) -> Result<Vec<reqwest::Client>, Error> {
    // A second call finds the provider installed, which is just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let headers = headers(config)?;
    let authorities = authorities(&config.ca_file)?;
    let client = |proxy: Option<&Url>| {
        let mut builder = reqwest::Client::builder()
            .default_headers(headers.clone())
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(config.connect_timeout.duration())
            .read_timeout(config.stall_timeout.duration())
            .pool_max_idle_per_host(config.idle_connections_per_host)
            .tls_certs_merge(authorities.iter().cloned())
            .dns_resolver(resolver.clone())
            // Proxies of the environment would get around the settings, and the guard.
            .no_proxy();
        if !config.http2 {
            builder = builder.http1_only();
        }
        if let Some(proxy) = proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.clone())?);
        }
        Ok(builder.build()?)
    };
    if proxies.is_empty() {
        return Ok(vec![client(None)?]);
    }
    proxies.iter().map(|proxy| client(Some(proxy))).collect()
}

fn headers(config: &Config) -> Result<HeaderMap, Error> {
    let agent = config.full_user_agent();
    let agent = HeaderValue::from_str(&agent).map_err(|_| Error::UserAgent(agent))?;
    let mut headers: HeaderMap = [
        (header::USER_AGENT, agent),
        (header::ACCEPT, HeaderValue::from_static(ACCEPT)),
        (header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPT_ENCODING)),
    ]
    .into_iter()
    .collect();
    headers.extend(own_headers::parse(&config.headers)?);
    Ok(headers)
}

fn authorities(file: &str) -> Result<Vec<reqwest::Certificate>, Error> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let bad = |detail: String| Error::File { path: Path::new(file).to_owned(), detail };
    let text = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
    let found = reqwest::Certificate::from_pem_bundle(&text).map_err(|e| bad(e.to_string()))?;
    if found.is_empty() {
        return Err(bad("no certificate in PEM form".to_owned()));
    }
    Ok(found)
}
