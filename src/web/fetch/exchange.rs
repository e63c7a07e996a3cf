//! What was sent and what came, as far as the HTTP client tells it, for who keeps it.
//!
//! The client sends names of headers in small letters and gives those of the answer likewise, in
//! the order in which it keeps them; it undoes chunks. Secrets are not kept.

use std::net::IpAddr;

use hyper::ext::ReasonPhrase;
use reqwest::Version;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Position;

/// What stands for a secret.
const HIDDEN: &[u8] = b"***";

/// Name of the header that told of chunks, which are undone.
const UNDONE: &str = "x-crawler-transfer-encoding";

/// Why the body of an answer is not all there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyCut {
    /// It is longer than the limit.
    Length,
    /// It took too long.
    Time,
    /// The connection broke.
    Disconnect,
    /// It was not wanted.
    Unwanted,
}

/// A request with its answer.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// The head of the request, with the empty line behind it.
    pub request: Vec<u8>,
    /// The head of the answer, with the empty line behind it; empty if there was none.
    pub head: Vec<u8>,
    /// The IP address that answered; none behind a proxy.
    pub peer: Option<IpAddr>,
    /// HTTP/2 was spoken; the heads are written as HTTP/1.1 has them.
    pub is_http2: bool,
    /// The body, if it is not with the answer: it was not wanted, or broke off.
    pub rest: Vec<u8>,
    /// Why the body is not whole.
    pub cut: Option<BodyCut>,
}

impl Exchange {
    /// Keeps the head of a request. `defaults` are the headers that the client adds, `secret` names
    /// those of the operator.
    pub(super) fn keep_request(
        &mut self,
        request: &reqwest::Request,
        defaults: &HeaderMap,
        secret: &dyn Fn(&HeaderName) -> bool,
    ) {
        let url = request.url();
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let mut head = format!("{} {target} HTTP/1.1\r\n", request.method()).into_bytes();
        let own = request.headers();
        let added = defaults.iter().filter(|(name, _)| !own.contains_key(*name));
        for (name, value) in own.iter().chain(added) {
            let hidden = value.is_sensitive() || secret(name);
            line(&mut head, name.as_str(), if hidden { HIDDEN } else { value.as_bytes() });
        }
        if !own.contains_key("host") {
            let host = &url[Position::BeforeHost..Position::AfterPort];
            line(&mut head, "host", host.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        self.request = head;
    }

    /// Keeps the head of an answer.
    pub(super) fn keep_head(&mut self, answer: &reqwest::Response, has_proxy: bool) {
        let status = answer.status();
        self.is_http2 = answer.version() == Version::HTTP_2;
        self.peer = answer.remote_addr().map(|peer| peer.ip()).filter(|_| !has_proxy);
        let version = if answer.version() == Version::HTTP_10 { "1.0" } else { "1.1" };
        let mut head = format!("HTTP/{version} {} ", status.as_str()).into_bytes();
        let usual = status.canonical_reason().unwrap_or_default().as_bytes();
        let own = answer.extensions().get::<ReasonPhrase>().map(ReasonPhrase::as_bytes);
        head.extend_from_slice(own.unwrap_or(usual));
        head.extend_from_slice(b"\r\n");
        for (name, value) in answer.headers() {
            let name = if name == "transfer-encoding" { UNDONE } else { name.as_str() };
            line(&mut head, name, value.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        self.head = head;
    }
}

fn line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// Tells which headers of the operator may be secret: all but those that say what is liked.
pub(super) fn is_secret(own: &HeaderMap<HeaderValue>) -> impl Fn(&HeaderName) -> bool {
    let is_open = |name: &HeaderName| name.as_str().starts_with("accept") || name == "referer";
    move |name| own.contains_key(name) && !is_open(name)
}
