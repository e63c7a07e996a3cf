//! Header lines of the operator, sent with every request.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::Error;

/// Headers that belong to one connection, or that the client sets itself.
/// Source: RFC 9110, 7.6.1.
const OURS: [&str; 14] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "accept-encoding",
    "range",
];

/// Tells why a header cannot be set by the operator at all, if it cannot.
pub(super) fn reserved(name: &HeaderName) -> Option<&'static str> {
    let name = name.as_str();
    let conditional = name.starts_with("if-");
    if OURS.contains(&name) || conditional || name.starts_with("http2-settings") {
        return Some("it is the client's own");
    }
    (name == "user-agent").then_some("set `fetch.user_agent` instead")
}

/// Reads lines such as `Accept-Language: de`. A later line of a name takes the place of one
/// before it.
pub(super) fn parse(lines: &[String]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for line in lines {
        // The value may be a secret: only the name is told.
        let name = line.split(':').next().unwrap_or_default().trim();
        let bad = |why| Error::Header { name: name.to_owned(), why };
        let (_, value) = line.split_once(':').ok_or_else(|| bad("it has no `:`"))?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("it is no name"))?;
        if let Some(why) = reserved(&name) {
            return Err(bad(why));
        }
        if matches!(name.as_str(), "authorization" | "cookie") {
            return Err(bad("it would go to every host; name the host in `auth.file`"));
        }
        let value = HeaderValue::from_str(value.trim())
            .map_err(|_| bad("its value has characters that no header may have"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}
