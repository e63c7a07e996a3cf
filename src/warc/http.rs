//! What a record carries: an HTTP message with its codings undone, or bytes as they are.

use crate::web::fetch::decode::{DecodeError, DecodeLimits, decode};

use super::{Headers, Kind, Record};

/// Bytes of the head of a message at most.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// Bytes of the line before a chunk at most.
const CHUNK_LINE_BYTES_MAX: usize = 4 << 10;

/// What was sent by HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HttpMessage {
    /// The status; 200 for an answer without a head (HTTP/0.9).
    pub status: u16,
    /// The header lines.
    pub headers: Headers,
    /// The body, its transfer coding undone, still packed by `Content-Encoding`.
    pub body: Vec<u8>,
    /// The body is not whole.
    pub cut: bool,
}

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The status of the answer; none if it was no HTTP.
    pub status: Option<u16>,
    /// The header lines of the answer.
    pub headers: Headers,
    /// Its type, from the answer or from the record.
    pub content_type: Option<String>,
    /// The bytes, with all codings undone.
    pub bytes: Vec<u8>,
    /// They are not all.
    pub cut: bool,
}

/// Why nothing can be read of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PayloadFault {
    /// It names no URL.
    #[error("the record has no WARC-Target-URI")]
    NoTarget,
    /// It is of a kind that carries nothing to read.
    #[error("a record of this kind carries nothing to read")]
    NoPayload,
    /// Its body cannot be unpacked.
    #[error("{0}")]
    Encoding(String),
    /// Its body grows beyond measure.
    #[error("{0}")]
    Bomb(String),
}

impl PayloadFault {
    /// Returns the name by which it is counted.
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::NoTarget => "no_target",
            Self::NoPayload => "no_payload",
            Self::Encoding(_) => "bad_encoding",
            Self::Bomb(_) => "bomb",
        }
    }
}

impl From<DecodeError> for PayloadFault {
    fn from(error: DecodeError) -> Self {
        let text = error.to_string();
        match error {
            DecodeError::Bomb { .. } => Self::Bomb(text),
            DecodeError::Unsupported(_) | DecodeError::Corrupt(_) => Self::Encoding(text),
        }
    }
}

impl Record {
    /// Tells whether its block is an HTTP message.
    #[must_use]
    pub(crate) fn is_http(&self) -> bool {
        let media = self.headers.get("Content-Type").unwrap_or("application/http");
        let is_web = self.target().is_none_or(|target| {
            target.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
        });
        let kinds = [Kind::Response, Kind::Revisit, Kind::Request];
        let media = media.trim_start().get(..16).unwrap_or_default();
        kinds.contains(&self.kind) && is_web && media.eq_ignore_ascii_case("application/http")
    }

    /// Takes the block as an HTTP answer.
    #[must_use]
    pub(crate) fn into_http(self) -> HttpMessage {
        let cut = self.truncated().is_some();
        let mut message = HttpMessage::parse(self.block);
        message.cut |= cut;
        message
    }

    /// Takes what it carries, all codings undone: the body of an answer, or the block of a resource
    /// or of a conversion.
    ///
    /// # Errors
    ///
    /// If it carries nothing that can be read.
    pub(crate) fn into_payload(self, limits: &DecodeLimits) -> Result<Payload, PayloadFault> {
        if self.target().is_none() {
            return Err(PayloadFault::NoTarget);
        }
        match self.kind {
            Kind::Response if self.is_http() => self.into_http().decoded(limits),
            Kind::Response | Kind::Resource | Kind::Conversion => {
                let limit = limits.bytes_max;
                let mut bytes = self.block;
                let cut = self.headers.get("WARC-Truncated").is_some() || bytes.len() > limit;
                bytes.truncate(limit);
                let content_type = self.headers.get("Content-Type").map(str::to_owned);
                Ok(Payload { status: None, headers: Headers::default(), content_type, bytes, cut })
            }
            _ => Err(PayloadFault::NoPayload),
        }
    }
}

impl HttpMessage {
    /// Reads an answer. One that begins with no status line is all body (HTTP/0.9).
    #[must_use]
    pub(crate) fn parse(block: Vec<u8>) -> Self {
        let Some(status) = status_of(&block) else {
            return Self { status: 200, body: block, ..Self::default() };
        };
        let (headers, start) = head(&block);
        let mut body = block;
        body.drain(..start);
        let mut message = Self { status, headers, body, cut: false };
        let is_chunked = |value: &str| value.to_ascii_lowercase().contains("chunked");
        if message.headers.all("Transfer-Encoding").any(is_chunked) {
            // Many writers undo the chunks, and leave the header.
            if let Some((body, is_whole)) = unchunked(&message.body) {
                (message.body, message.cut) = (body, !is_whole);
            }
        }
        message
    }

    /// Undoes `Content-Encoding`. A body that is not packed though its header says so was unpacked
    /// by whoever wrote the file.
    ///
    /// # Errors
    ///
    /// If it cannot be unpacked.
    pub(crate) fn decoded(self, limits: &DecodeLimits) -> Result<Payload, PayloadFault> {
        let Self { status, headers, body, cut } = self;
        let codings: Vec<&str> = headers.all("Content-Encoding").collect();
        let codings = codings.join(", ");
        let content_type = headers.get("Content-Type").map(str::to_owned);
        let decoded = if looks_plain(&body, &codings) {
            decode(body, "", limits, cut)?
        } else {
            decode(body, &codings, limits, cut)?
        };
        let mut bytes = decoded.bytes;
        let cut = decoded.truncated || bytes.len() > limits.bytes_max;
        bytes.truncate(limits.bytes_max);
        Ok(Payload { status: Some(status), headers, content_type, bytes, cut })
    }
}

/// Tells whether a body cannot be packed as the header says, by its first bytes.
fn looks_plain(body: &[u8], codings: &str) -> bool {
    let last = codings.rsplit(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    match last.as_str() {
        "gzip" | "x-gzip" => !body.starts_with(&[0x1F, 0x8B]),
        "zstd" => !body.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) && !body.is_empty(),
        // Neither has a mark; text that begins with a tag is neither.
        "br" | "deflate" => body.trim_ascii_start().first() == Some(&b'<') && body.is_ascii(),
        _ => false,
    }
}

/// Returns the status of an answer; none if it has no status line.
fn status_of(block: &[u8]) -> Option<u16> {
    let line = block.split(|byte| *byte == b'\n').next()?;
    let rest = line.strip_prefix(b"HTTP/").or_else(|| line.strip_prefix(b"http/"))?;
    let code = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).nth(1)?;
    std::str::from_utf8(code.trim_ascii()).ok()?.parse().ok()
}

/// Reads the header lines. Returns where the body begins.
fn head(block: &[u8]) -> (Headers, usize) {
    let mut headers = Headers::default();
    let mut at = memchr::memchr(b'\n', block).map_or(block.len(), |end| end + 1);
    while at < block.len().min(HEAD_BYTES_MAX) {
        let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |end| at + end + 1);
        let line = block[at..end].trim_ascii_end();
        at = end;
        if line.is_empty() {
            break;
        }
        headers.add(line);
    }
    (headers, at)
}

/// Undoes chunks, as far as they go. Returns whether the last one was there; none if it does not
/// begin with one. Source: RFC 9112, 7.1.
fn unchunked(body: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body;
    let mut any = false;
    loop {
        let near = &rest[..rest.len().min(CHUNK_LINE_BYTES_MAX)];
        let end = memchr::memchr(b'\n', near);
        let size = end.and_then(|end| {
            let line = std::str::from_utf8(&near[..end]).ok()?;
            usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()
        });
        let (Some(end), Some(size)) = (end, size) else {
            return any.then_some((bytes, false));
        };
        any = true;
        if size == 0 {
            return Some((bytes, true));
        }
        rest = &rest[end + 1..];
        let Some(chunk) = rest.get(..size) else {
            bytes.extend_from_slice(rest);
            return Some((bytes, false));
        };
        bytes.extend_from_slice(chunk);
        rest = &rest[size..];
        rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
    }
}
