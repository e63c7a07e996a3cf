//! An exchange as records: response or revisit, request, and metadata.

use std::io;

use crate::base::clock::Timestamp;
use crate::web::fetch::{BodyCut, Exchange};

use super::cdx::IndexLine;
use super::draft::{Digest, Draft, FIELDS, fields, new_id};
use super::{Compression, HttpMessage, Kind, StoredPayload};

/// Media types of the blocks. Source: RFC 9112, 10.
const REQUEST: &str = "application/http; msgtype=request";
const RESPONSE: &str = "application/http; msgtype=response";

/// Why a record is a revisit. Source: WARC 1.1, 6.7.
const SAME_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// What was exchanged, and of what.
pub(crate) struct Captured<'a> {
    pub url: &'a str,
    /// When the request was sent.
    pub date: Timestamp,
    pub exchange: &'a Exchange,
    /// The body as it came.
    pub body: &'a [u8],
}

/// An exchange whose large records are packed.
#[derive(Debug)]
pub(crate) struct PackedExchange {
    pub url: String,
    pub date: Timestamp,
    pub status: u16,
    /// Digest of the body.
    pub digest: Digest,
    /// There is a body, and all of it.
    pub has_payload: bool,
    compression: Compression,
    media: String,
    response_id: String,
    request_id: String,
    /// Header lines of the response.
    headers: Vec<(&'static str, String)>,
    head: Vec<u8>,
    response: Vec<u8>,
    request: Vec<u8>,
}

/// A record as it is written, and the line of the index that it gets.
#[derive(Debug)]
pub(crate) struct PackedRecord {
    pub bytes: Vec<u8>,
    pub line: Option<IndexLine>,
}

impl PackedExchange {
    /// Packs what was exchanged.
    pub(crate) fn new(captured: &Captured<'_>, compression: Compression) -> io::Result<Self> {
        let Captured { url, date, exchange, body } = *captured;
        let Exchange { request, head, peer, is_http2, cut, .. } = exchange;
        let parsed = HttpMessage::parse(head.clone());
        let digest = Digest::of(&[body]);
        let (response_id, request_id) = (new_id()?, new_id()?);
        let mut headers = Vec::new();
        if let Some(peer) = peer {
            headers.push(("WARC-IP-Address", peer.to_string()));
        }
        headers.push(("WARC-Protocol", if *is_http2 { "h2" } else { "http/1.1" }.to_owned()));
        let mut of_response = headers.clone();
        of_response.push(("WARC-Payload-Digest", digest.to_string()));
        if let Some(cut) = cut {
            of_response.push(("WARC-Truncated", reason(*cut).to_owned()));
        }
        // A page that is as it was has no payload: its record is one that refers to another.
        let response = if parsed.status == 304 {
            Vec::new()
        } else {
            let draft = Draft {
                kind: Kind::Response,
                id: &response_id,
                date,
                target: Some(url),
                content_type: RESPONSE,
                headers: of_response,
                block: &[head, body],
            };
            draft.pack(compression)?
        };
        let mut of_request = headers.clone();
        of_request.push(("WARC-Concurrent-To", format!("<{response_id}>")));
        let draft = Draft {
            kind: Kind::Request,
            id: &request_id,
            date,
            target: Some(url),
            content_type: REQUEST,
            headers: of_request,
            block: &[request],
        };
        let request = draft.pack(compression)?;
        let media = parsed.headers.get("Content-Type").unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Ok(Self {
            url: url.to_owned(),
            date,
            status: parsed.status,
            digest,
            has_payload: !body.is_empty() && cut.is_none(),
            compression,
            media,
            response_id,
            request_id,
            headers,
            head: head.clone(),
            response,
            request,
        })
    }

    /// Bytes that it takes, about.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.response.len() + self.request.len() + self.head.len() + 2 * self.url.len()
    }

    /// Returns the records. With an `original`, the first one is a revisit of it; so it is for an
    /// answer that says "not modified". `about` is what is said of the exchange.
    pub(crate) fn into_records(
        self,
        original: Option<&StoredPayload>,
        about: &[(&str, String)],
    ) -> io::Result<[PackedRecord; 3]> {
        let (id, compression) = (new_id()?, self.compression);
        let is_revisit = original.is_some() || self.status == 304;
        let media = if is_revisit { "warc/revisit" } else { &self.media };
        let line = IndexLine {
            url: self.url.clone(),
            date: self.date,
            media: media.to_owned(),
            status: Some(self.status),
            digest: (self.status != 304).then_some(self.digest),
        };
        let response = if is_revisit { self.revisit(original)? } else { self.response };
        let concurrent = ("WARC-Concurrent-To", format!("<{}>", self.request_id));
        let metadata = Draft {
            kind: Kind::Metadata,
            id: &id,
            date: self.date,
            target: Some(&self.url),
            content_type: FIELDS,
            headers: vec![("WARC-Refers-To", format!("<{}>", self.response_id)), concurrent],
            block: &[&fields(about)],
        };
        let metadata = metadata.pack(compression)?;
        Ok([
            PackedRecord { bytes: response, line: Some(line) },
            PackedRecord { bytes: self.request, line: None },
            PackedRecord { bytes: metadata, line: None },
        ])
    }

    fn revisit(&self, original: Option<&StoredPayload>) -> io::Result<Vec<u8>> {
        let profile = if self.status == 304 { NOT_MODIFIED } else { SAME_PAYLOAD };
        let mut headers = self.headers.clone();
        headers.push(("WARC-Profile", profile.to_owned()));
        if let Some(original) = original {
            headers.push(("WARC-Refers-To-Target-URI", original.url.clone()));
            headers.push(("WARC-Refers-To-Date", super::draft::date(original.date)));
        }
        if self.status != 304 {
            headers.push(("WARC-Payload-Digest", self.digest.to_string()));
            headers.push(("WARC-Truncated", "length".to_owned()));
        }
        let draft = Draft {
            kind: Kind::Revisit,
            id: &self.response_id,
            date: self.date,
            target: Some(&self.url),
            content_type: RESPONSE,
            headers,
            block: &[&self.head],
        };
        draft.pack(self.compression)
    }
}

/// Why a body was cut, in the words of the standard. Source: WARC 1.1, 5.13.
fn reason(cut: BodyCut) -> &'static str {
    match cut {
        BodyCut::Length => "length",
        BodyCut::Time => "time",
        BodyCut::Disconnect => "disconnect",
        BodyCut::Unwanted => "unspecified",
    }
}
