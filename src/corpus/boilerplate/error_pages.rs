//! Error pages that are sent as pages: what a host answers for a URL that it cannot have is
//! learned with one probe, and pages that are like it are not stored.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use xxhash_rust::xxh3::xxh3_64;

use crate::corpus::tables::ERROR_PAGES;
use crate::store::{
    BadRow, Batch, Blob, Decoder, Encoder, Error, Fixed, Part as _, Renumber, Row, Update as _,
    View as _, Wide, row,
};
use crate::text::sketch::Sketch;
use crate::urls::PageUrl;

/// Least similarity of a page to the error page of its host.
const SIMILARITY_MIN: f32 = 0.9;

/// Least similarity of a page of the same title: error pages name the URL in their text.
const TITLED_SIMILARITY_MIN: f32 = 0.5;

/// How the URL of a probe ends.
const PROBE_END: &str = "-no-such-page";

/// Hosts whose error pages are in memory.
const HOSTS_MAX: usize = 4_096;

row! {
    /// What a host answered, as far as it is compared.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Answer: part {
        hash: u128 = Wide;
        title: u64 = Fixed;
        sketch: Sketch = Blob;
    }
}

/// What is known of a host's error page.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorPage {
    /// A probe was sent; until it is answered, and if the host tells errors by their status, there
    /// is no page.
    Asked,
    /// The answer to the probe.
    Page(Box<Answer>),
    /// The probe was sent to this URL.
    Target(String),
}

impl Answer {
    /// `hash` and `sketch` are those of its text.
    #[must_use]
    pub fn new(title: &str, hash: u128, sketch: &Sketch) -> Self {
        Self { hash, title: hash_of(title), sketch: sketch.clone() }
    }

    fn is_like(&self, other: &Self) -> bool {
        if other.hash == self.hash {
            return true;
        }
        let similarity = self.sketch.similarity(&other.sketch);
        let titled = self.title == other.title;
        similarity >= if titled { TITLED_SIMILARITY_MIN } else { SIMILARITY_MIN }
    }
}

fn hash_of(title: &str) -> u64 {
    xxh3_64(title.trim().as_bytes())
}

/// Its fields are those of its kind, whose number comes first.
impl Row for ErrorPage {
    fn encode(&self) -> Cow<'_, [u8]> {
        let row = Encoder::new(1);
        let row = match self {
            Self::Asked => row.number(0u8),
            Self::Page(page) => page.put(row.number(1u8)),
            Self::Target(target) => row.number(2u8).text(target),
        };
        Cow::Owned(row.finish())
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("error page", 1, bytes)?;
        match row.number()? {
            0 => Ok(Self::Asked),
            1 => Ok(Self::Page(Box::new(Answer::take(&mut row)?))),
            2 => Ok(Self::Target(row.text()?.to_owned())),
            _ => Err(row.bad("its kind is unknown")),
        }
    }

    fn renumber(&mut self, _: &mut dyn Renumber) {}
}

/// The error pages of the hosts at work.
#[derive(Debug, Default)]
pub struct ErrorPages(HashMap<u32, Option<ErrorPage>>);

impl ErrorPages {
    fn of(&mut self, batch: &Batch, host: u32) -> Result<Option<&ErrorPage>, Error> {
        if self.0.len() >= HOSTS_MAX {
            self.0.clear();
        }
        Ok(match self.0.entry(host) {
            Entry::Occupied(known) => known.into_mut().as_ref(),
            Entry::Vacant(place) => place.insert(batch.get(ERROR_PAGES, host)?).as_ref(),
        })
    }

    fn set(&mut self, batch: &mut Batch, host: u32, known: ErrorPage) -> Result<(), Error> {
        batch.put(ERROR_PAGES, host, &known)?;
        self.0.insert(host, Some(known));
        Ok(())
    }

    /// Tells whether a host is to be probed now, and notes that it is.
    pub fn ask(&mut self, batch: &mut Batch, host: u32) -> Result<bool, Error> {
        if self.of(batch, host)?.is_some() {
            return Ok(false);
        }
        self.set(batch, host, ErrorPage::Asked)?;
        Ok(true)
    }

    /// Learns the error page of a host from the answer to the probe.
    pub fn learn(&mut self, batch: &mut Batch, host: u32, answer: Answer) -> Result<(), Error> {
        self.set(batch, host, ErrorPage::Page(Box::new(answer)))
    }

    /// Learns where a host sends URLs that it does not have.
    pub fn learn_target(
        &mut self,
        batch: &mut Batch,
        host: u32,
        target: &PageUrl,
    ) -> Result<(), Error> {
        self.set(batch, host, ErrorPage::Target(target.as_str().to_owned()))
    }

    /// Tells whether a host sends URLs that it does not have to this one.
    pub fn is_target(&mut self, batch: &Batch, host: u32, target: &PageUrl) -> Result<bool, Error> {
        let known = self.of(batch, host)?;
        Ok(matches!(known, Some(ErrorPage::Target(known)) if known == target.as_str()))
    }

    /// Tells whether a page is the error page of its host.
    pub fn is_error(&mut self, batch: &Batch, host: u32, answer: &Answer) -> Result<bool, Error> {
        Ok(match self.of(batch, host)? {
            Some(ErrorPage::Page(page)) => page.is_like(answer),
            _ => false,
        })
    }
}

/// Returns a URL that no host has: the same one at each try, so that a restart asks no more.
#[must_use]
pub fn probe_of(url: &PageUrl) -> Option<PageUrl> {
    let host = url.host_key();
    let name = xxh3_64(format!("{host} has no such page").as_bytes());
    PageUrl::parse(&format!("{host}/{name:016x}{PROBE_END}")).ok()
}

/// Tells whether a URL is the one by which its host is probed.
#[must_use]
pub fn is_probe(url: &PageUrl) -> bool {
    url.as_str().ends_with(PROBE_END) && probe_of(url).as_ref() == Some(url)
}
