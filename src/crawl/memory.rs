//! Memory of what fingerprinters work on. Who waits for more holds what comes before it only: a
//! body waits to be unpacked, an unpacked one to be read, what was read to be stored. So nobody
//! waits for somebody who waits for him.

use tokio::sync::OwnedSemaphorePermit;

use crate::corpus::index::LookedAhead;
use crate::page::{self, Memory};
use crate::urls::PageUrl;
use crate::web::fetch::decode::{DecodeError, DecodeLimits, decode};
use crate::web::fetch::{Exchange, Response};

use super::Settings;
use super::archive::PackedVisit;
use super::fingerprint::{ReadPage, Yield};

/// Below this many bytes a body may grow as much as it likes: prose that repeats itself does.
const RATIO_GRACE_BYTES: usize = 1 << 20;

/// Memory of what is found for a page, as long as that is not known.
const LOOK_UP_BYTES: usize = 4 << 10;

/// Bytes of a URL besides its text.
const ADDRESS_BYTES: usize = size_of::<PageUrl>() + 16;

/// What all fingerprinters share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Bodies while they are unpacked, and after that.
    unpacked: Memory,
    /// Pages while they are read, and what they yield until it is stored.
    pages: Memory,
    /// Records of WARC files until they are written.
    pub records: Memory,
}

/// What a visit holds until the committer has dealt with it.
#[derive(Debug)]
pub(super) struct HeldMemory {
    /// Memory of its page.
    pub page: Option<page::MemoryPermit>,
    /// What was exchanged, if it is kept.
    pub exchange: Option<Box<Exchange>>,
    /// The same as records, with the memory that they take.
    pub packed: Option<PackedVisit>,
    /// Its turn among the sitemaps.
    _sitemap: Option<OwnedSemaphorePermit>,
}

/// A body as it was before its codings.
pub(super) struct HeldBody {
    pub bytes: Vec<u8>,
    /// It was cut, or broke off.
    pub cut: bool,
    _held: Room,
}

/// The room that a body takes: as it came, or unpacked.
enum Room {
    Wire { _held: crate::web::fetch::BodyPermit },
    Unpacked { _held: page::MemoryPermit },
}

impl Shared {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            unpacked: Memory::new(settings.fetch.unpacked_size_max()),
            pages: Memory::new(settings.limits.pages_size_max),
            records: Memory::new(settings.warc.records_size_max),
        }
    }

    /// Takes the body out of an answer, and undoes its codings.
    pub(super) fn body(
        &self,
        response: &mut Response,
        settings: &Settings,
    ) -> Result<HeldBody, DecodeError> {
        let limits = DecodeLimits {
            bytes_max: settings.fetch.decoded_size_max.bytes(),
            ratio_max: settings.fetch.decoded_ratio_max,
            ratio_grace_bytes: RATIO_GRACE_BYTES,
        };
        let (raw, wire) = (std::mem::take(&mut response.body), std::mem::take(&mut response.held));
        let codings = &response.content_encoding;
        let held = (!codings.is_empty()).then(|| self.unpacked.take(limits.most(raw.len())));
        let decoded = decode(raw, codings, &limits, response.cut)?;
        let held = match held {
            Some(mut held) => {
                held.shrink(decoded.bytes.len());
                Room::Unpacked { _held: held }
            }
            None => Room::Wire { _held: wire },
        };
        Ok(HeldBody { bytes: decoded.bytes, cut: decoded.truncated, _held: held })
    }

    /// Waits until there is memory to read a page. Returns it with the limits of that page.
    pub(super) fn page(
        &self,
        bytes: &[u8],
        limits: &page::Limits,
    ) -> (page::Limits, page::MemoryPermit) {
        let (limits, size) = limits.for_page(bytes);
        (limits, self.pages.take(size))
    }
}

impl HeldMemory {
    pub(super) fn new(sitemap: Option<OwnedSemaphorePermit>) -> Self {
        Self { page: None, exchange: None, packed: None, _sitemap: sitemap }
    }

    /// Gives back what is not needed after a page was read.
    pub(super) fn shrink(&mut self, yielded: &Yield) {
        if let Some(held) = &mut self.page {
            held.shrink(yielded.bytes());
        }
    }
}

impl Yield {
    /// Bytes that it takes, about.
    fn bytes(&self) -> usize {
        match self {
            Self::Page(page) => page.bytes(),
            Self::List(list) => {
                list.entries.iter().map(|url| url.as_str().len() + ADDRESS_BYTES).sum()
            }
            Self::Settled(_) | Self::Unsent(_) | Self::Later(_) => 0,
        }
    }
}

impl ReadPage {
    fn bytes(&self) -> usize {
        let links = self.links.iter().chain(&self.feeds);
        let links: usize = links.map(|(url, _)| url.as_str().len() + ADDRESS_BYTES).sum();
        let whole = self.whole.as_ref().map_or(0, |whole| whole.text.len());
        let kept = self.kept.as_ref().map_or(0, |kept| kept.bytes());
        let ahead = self.ahead.as_ref().map_or(LOOK_UP_BYTES, LookedAhead::memory);
        let blocks = self.blocks.len() * size_of::<u64>();
        links + self.article.text.len() + whole + kept + blocks + ahead
    }
}
