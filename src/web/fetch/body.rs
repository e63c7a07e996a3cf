//! The answer: its head, and as much of its body as is wanted and allowed.

use std::time::Duration;

use hyper::body::Bytes;
use reqwest::header::{self, HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout, timeout_at};

use crate::urls::escaped;

use super::room::{BodyPermit, BodyRoom};
use super::{BodyCut, Config, Exchange, Failure, WHOLE_REQUEST, text_of};

/// Bytes of an unwanted body that are read so that the connection can be used again, and the time
/// that they get: the head is all that counts, and must not wait for a body that does not come.
const DRAIN_BYTES_MAX: u64 = 64 << 10;
const DRAIN_TIME_MAX: Duration = Duration::from_millis(250);

/// What the body is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// A page: the body of a 200 or 203 that is HTML, plain text or a feed.
    Page,
    /// A robots.txt: the body of any 2xx, up to this many bytes.
    Robots(usize),
    /// A sitemap: the body of any 2xx, whatever its type, up to this many bytes.
    Sitemap(usize),
}

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Response {
    /// Status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`, all header lines joined; empty for none.
    pub content_encoding: String,
    /// `Location`, bytes beyond ASCII escaped.
    pub location: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// `Date`: what the clock of the server shows.
    pub date: Option<String>,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// `X-Robots-Tag`, one for each header line.
    pub robots_tags: Vec<String>,
    /// `TDM-Reservation`.
    pub tdm_reservation: Option<String>,
    /// `Link`, one for each header line, bytes beyond ASCII escaped.
    pub links: Vec<String>,
    /// `Cache-Control`, all header lines joined.
    pub cache_control: String,
    /// The body as it came, still compressed; empty if it was not wanted.
    pub body: Vec<u8>,
    /// The body exceeds the limit and was cut.
    pub cut: bool,
    /// The body was read, as far as the limit allows.
    pub has_body: bool,
    /// How long it waited for room in memory: the host did not take that time.
    pub waited: Duration,
    /// The room that the body has.
    pub held: BodyPermit,
}

/// Reads answers, until `end` at the latest.
pub(super) struct ResponseReader<'a> {
    pub(super) config: &'a Config,
    pub(super) room: &'a BodyRoom,
    pub(super) end: Instant,
}

impl ResponseReader<'_> {
    /// Reads as much of an answer as is wanted. Its body begins with the room of `held`.
    pub(super) async fn read(
        &self,
        mut answer: reqwest::Response,
        want: Want,
        held: BodyPermit,
        kept: Option<&mut Exchange>,
    ) -> Result<Response, Failure> {
        let mut response = head(answer.status().as_u16(), answer.headers());
        let may_be_page = || may_be_page(response.content_type.as_deref());
        let limit = match want {
            Want::Page if is_page(response.status) && may_be_page() => {
                self.config.body_size_max.bytes()
            }
            Want::Robots(limit) | Want::Sitemap(limit) if answer.status().is_success() => limit,
            _ => {
                drain(answer, kept).await;
                return Ok(response);
            }
        };
        response.held = held;
        let filled = self.fill(&mut response, answer, limit).await;
        if let Some(kept) = kept {
            kept.cut = match &filled {
                Err(Failure::Timeout(_)) => Some(BodyCut::Time),
                Err(_) => Some(BodyCut::Disconnect),
                Ok(()) => response.cut.then_some(BodyCut::Length),
            };
            if filled.is_err() {
                kept.rest = std::mem::take(&mut response.body);
            }
        }
        filled.map(|()| response)
    }

    /// Reads a body, at most `limit` bytes of it.
    async fn fill(
        &self,
        response: &mut Response,
        mut answer: reqwest::Response,
        limit: usize,
    ) -> Result<(), Failure> {
        response.has_body = true;
        let declared = answer.content_length().and_then(|bytes| usize::try_from(bytes).ok());
        let most = declared.unwrap_or(limit).min(limit);
        while let Some(chunk) = self.next(&mut answer, response.waited).await? {
            let length = response.body.len() + chunk.len();
            while length.min(limit) > response.held.bytes() {
                let next = BodyRoom::next(&response.held, most.max(length.min(limit)));
                let since = Instant::now();
                self.room.widen(&mut response.held, next).await;
                response.waited += since.elapsed();
                response.body.reserve_exact(next - response.body.len());
            }
            if length > limit {
                response.body.extend_from_slice(&chunk[..limit - response.body.len()]);
                response.cut = true;
                break;
            }
            response.body.extend_from_slice(&chunk);
        }
        if response.body.capacity() / 2 > response.body.len() {
            response.body.shrink_to_fit();
        }
        response.held.shrink(response.body.len());
        Ok(())
    }

    /// Reads on. What it `waited` for room does not count. The client has a limit of its own, which
    /// counts the time for which nobody reads.
    async fn next(
        &self,
        answer: &mut reqwest::Response,
        waited: Duration,
    ) -> Result<Option<Bytes>, Failure> {
        let end = self.end + waited;
        let stalled = Instant::now() + self.config.stall_timeout.duration();
        match timeout_at(stalled.min(end), answer.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| Failure::of(&error)),
            Err(_) if stalled < end => Err(Failure::Timeout("more of the answer")),
            Err(_) => Err(WHOLE_REQUEST),
        }
    }
}

/// Reads a short body that is not wanted, only to use the connection again: whether it succeeds
/// changes nothing.
async fn drain(mut answer: reqwest::Response, mut kept: Option<&mut Exchange>) {
    let length = answer.content_length();
    let mut is_whole = false;
    if length.is_some_and(|length| length <= DRAIN_BYTES_MAX) {
        let drain = async {
            while let Ok(Some(chunk)) = answer.chunk().await {
                if let Some(kept) = &mut kept {
                    kept.rest.extend_from_slice(&chunk);
                }
            }
        };
        is_whole = timeout(DRAIN_TIME_MAX, drain).await.is_ok();
    }
    if let Some(kept) = kept
        && !(is_whole && length == Some(kept.rest.len() as u64))
    {
        kept.cut = Some(BodyCut::Unwanted);
    }
}

fn head(status: u16, headers: &HeaderMap) -> Response {
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    // What is sent back must be the same bytes, whatever encoding they are in.
    let escaped = |value: &HeaderValue| escaped(value.as_bytes());
    Response {
        status,
        content_type: text_of(headers, &header::CONTENT_TYPE),
        content_encoding: all("content-encoding").join(", "),
        location: headers.get(header::LOCATION).map(escaped),
        retry_after: text_of(headers, &header::RETRY_AFTER),
        date: text_of(headers, &header::DATE),
        etag: text_of(headers, &header::ETAG),
        last_modified: text_of(headers, &header::LAST_MODIFIED),
        robots_tags: all("x-robots-tag"),
        tdm_reservation: all("tdm-reservation").pop(),
        links: headers.get_all(header::LINK).iter().map(escaped).collect(),
        cache_control: all("cache-control").join(", "),
        ..Response::default()
    }
}

/// Tells whether a page comes with a status: a proxy that has changed it says 203.
fn is_page(status: u16) -> bool {
    matches!(status, 200 | 203)
}

/// Tells whether a media type may hold a page. A missing one may: many servers forget it.
fn may_be_page(content_type: Option<&str>) -> bool {
    let Some(content_type) = content_type else { return true };
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(
        media.as_str(),
        "" | "text/html"
            | "application/xhtml+xml"
            | "text/plain"
            | "application/xml"
            | "text/xml"
            | "application/vnd.wap.xhtml+xml"
            | "application/rss+xml"
            | "application/atom+xml"
            | "application/rdf+xml"
            | "application/feed+json"
    )
}
