//! Visits of an earlier crawl, as its files tell them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::frontier::{Asked, Lease, Purpose, Rank, Told, Validators};
use crate::urls::{Normalize, PageUrl};
use crate::warc::{self, Digest, Entry, Headers, Kind, Reader, Record, Spot, StoredPayload};
use crate::web::fetch::{Failure, Response, Want};

use super::super::archive::{END, SEEDS, SETTINGS, rank_of};
use super::super::visitor::VisitAnswer;
use super::super::{Error, Settings};
use super::{Counts, Place, Progress};

/// Bytes that the head of an answer takes at most, beside its body.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// The seeds of a run.
#[derive(Debug)]
pub(in super::super) struct Run {
    pub seeds: Vec<PageUrl>,
    pub date: Timestamp,
    pub place: Option<Place>,
}

/// What comes next in the files.
#[derive(Debug)]
pub(in super::super) enum Step {
    /// A visit.
    Visit(Box<Replayed>),
    /// A run begins.
    Run(Run),
    /// A run has come to its end.
    RunEnd,
    /// So have the files.
    End,
}

/// A visit of an earlier crawl.
#[derive(Debug)]
pub(in super::super) struct Replayed {
    pub asked: Asked,
    pub host: u32,
    /// Until it is fingerprinted.
    pub answer: Option<VisitAnswer>,
    pub told: Told,
    /// Blocks that were left out of its text; none if that is not known.
    pub left_out: Option<Vec<u64>>,
    /// Number of the commit that it was in.
    pub commit: Option<u64>,
    /// When the request was sent.
    pub date: Timestamp,
    /// Digest of its payload.
    pub digest: Option<Digest>,
    /// The payload lies in another record.
    pub is_revisit: bool,
    pub folder: PathBuf,
    pub file: String,
    pub offset: u64,
    inside: u64,
}

impl Replayed {
    pub(in super::super) fn place(&self) -> Place {
        Place { file: self.file.clone(), offset: self.offset, inside: self.inside }
    }

    /// Bytes of its body.
    pub(in super::super) fn bytes(&self) -> usize {
        match &self.answer {
            Some(VisitAnswer::Response(Ok(response))) => response.body.len(),
            _ => 0,
        }
    }

    /// Takes the payload from the record that has it. Returns whether it is there.
    pub(in super::super) fn fill(&mut self, from: &StoredPayload) -> bool {
        let path = self.folder.join(&from.file);
        let record = Reader::open_at(&path, from.offset).and_then(|mut reader| reader.next());
        let Ok(Some(Entry::Record(record))) = record else { return false };
        let found = record.into_http();
        if let Some(VisitAnswer::Response(Ok(response))) = &mut self.answer {
            response.body = if response.has_body { found.body } else { Vec::new() };
        }
        true
    }

    /// The lease that it is fingerprinted with: its place in a queue does not matter there.
    pub(in super::super) fn provisional_lease(&self) -> Lease {
        let purpose = match self.asked.rank {
            _ if self.asked.robots => Purpose::Robots { of: self.host, hops: 0 },
            Some(Rank::Sitemap | Rank::LateSitemap) => Purpose::Sitemap,
            _ => Purpose::Page,
        };
        let mut lease = Lease::of(self.asked.url.clone(), purpose);
        lease.host = self.host;
        if self.told.status == 304 {
            // Only who names what it has is answered so.
            lease.validators = Validators::new(Some("\"\""), None);
        }
        lease
    }
}

/// What the metadata of a visit say; none if there are none.
#[derive(Clone, Copy)]
struct About<'a>(Option<&'a Headers>);

impl<'a> About<'a> {
    fn say(self, name: &str) -> Option<&'a str> {
        self.0.and_then(|about| about.get(name))
    }

    fn number<N: std::str::FromStr>(self, name: &str) -> Option<N> {
        self.say(name).and_then(|text| text.parse().ok())
    }

    fn asked(self, url: PageUrl) -> Asked {
        let robots = match self.say("purpose") {
            Some(purpose) => purpose == "robots",
            None => url.path_and_query() == "/robots.txt",
        };
        let rank = self.say("rank").and_then(rank_of);
        let depth = self.number("depth").unwrap_or(0);
        let hops = self.number("redirects").unwrap_or(0);
        Asked { url, robots, rank, depth, hops }
    }

    /// Hashes of the blocks that were left out of its text.
    fn left_out(self) -> Option<Vec<u64>> {
        let hashes = self.0?.get("leftOut").unwrap_or_default().split(' ');
        Some(hashes.filter_map(|hash| u64::from_str_radix(hash, 16).ok()).collect())
    }
}

/// The files, one record after the other.
pub(in super::super) struct Source {
    files: Vec<PathBuf>,
    /// Bytes of each; 0 of one that has none to be known, such as a pipe.
    lengths: Vec<u64>,
    next: usize,
    /// Where the last record of the present file began.
    offset: u64,
    reader: Option<Reader>,
    /// An answer whose metadata may come.
    pending: Option<Record>,
    /// A step that comes before the next record.
    stash: Option<Step>,
    /// What was recorded in an earlier run of the command.
    skip: Option<Place>,
    counts: Counts,
    rules: Normalize,
    limits: [usize; 3],
    /// The file was written by this very version.
    is_ours: bool,
}

impl Source {
    pub(super) fn new(files: &[PathBuf], settings: &Settings, progress: &Progress) -> Self {
        let limits = [
            settings.fetch.body_size_max.bytes(),
            settings.frontier.robots_size_max.bytes().saturating_add(1),
            settings.frontier.discover.size_max.bytes(),
        ];
        let skip = Some(progress.at.clone()).filter(|at| !at.file.is_empty());
        let first = skip.as_ref().and_then(|at| files.iter().position(|f| name_of(f) == at.file));
        let length = |file: &PathBuf| std::fs::metadata(file).map_or(0, |meta| meta.len());
        Self {
            files: files.to_vec(),
            lengths: files.iter().map(length).collect(),
            next: first.unwrap_or(0),
            offset: 0,
            reader: None,
            pending: None,
            stash: None,
            skip,
            counts: progress.counts.clone(),
            rules: settings.normalize.clone(),
            limits,
            is_ours: false,
        }
    }

    pub(in super::super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns how many bytes of how many were read.
    pub(in super::super) fn position(&self) -> (u64, u64) {
        let before: u64 = self.lengths.iter().take(self.next.saturating_sub(1)).sum();
        let of = self.lengths.iter().sum();
        ((before + self.offset).min(of), of)
    }

    /// Lets a step come next.
    pub(super) fn put_back(&mut self, step: Step) {
        self.stash = Some(step);
    }

    /// Returns what comes next.
    pub(in super::super) fn next(&mut self) -> Result<Step, Error> {
        loop {
            if let Some(step) = self.stash.take() {
                return Ok(step);
            }
            let Some(reader) = &mut self.reader else {
                let Some(path) = self.files.get(self.next) else { return Ok(Step::End) };
                self.next += 1;
                self.offset = 0;
                let most = self.limits.iter().fold(warc::BLOCK_BYTES_MAX, |most, limit| {
                    most.max(limit.saturating_add(HEAD_BYTES_MAX))
                });
                let reader = Reader::open(path).map_err(|error| unreadable(&error))?;
                self.reader = Some(reader.with_block_max(most));
                continue;
            };
            let found = match reader.next().map_err(|error| unreadable(&error))? {
                None => {
                    let last = self.pending.take().and_then(|record| self.visit(record, None));
                    self.reader = None;
                    last
                }
                Some(Entry::Record(record)) => {
                    self.offset = record.spot.offset;
                    self.take(record)
                }
                Some(Entry::Fault(fault)) => {
                    self.count_fault(&fault);
                    None
                }
            };
            if let Some(step) = found {
                return Ok(step);
            }
        }
    }

    fn count_fault(&mut self, fault: &warc::Fault) {
        if self.is_skipped(fault.spot) {
            return;
        }
        tracing::warn!(file = self.file(), "{fault}");
        *self.counts.faults.entry(fault.kind.name().to_owned()).or_default() += 1;
    }

    fn unused(&mut self, reason: &str) -> Option<Step> {
        *self.counts.unused.entry(reason.to_owned()).or_default() += 1;
        None
    }

    fn file(&self) -> String {
        self.reader.as_ref().map(|reader| name_of(reader.path())).unwrap_or_default()
    }

    fn is_skipped(&mut self, spot: Spot) -> bool {
        let Some(skip) = &self.skip else { return false };
        let place = Place { file: self.file(), offset: spot.offset, inside: spot.inside };
        let is_skipped = place.file == skip.file && place <= *skip;
        if !is_skipped {
            self.skip = None;
        }
        is_skipped
    }

    /// Takes a record in. Returns a step, if one is whole by it.
    fn take(&mut self, record: Record) -> Option<Step> {
        if record.kind == Kind::Warcinfo {
            let text = String::from_utf8_lossy(&record.block).into_owned();
            let software = concat!("software: uniqcrawl/", env!("CARGO_PKG_VERSION"));
            self.is_ours = text.lines().any(|line| line.trim_end() == software);
        }
        if self.is_skipped(record.spot) {
            return None;
        }
        match record.kind {
            Kind::Response | Kind::Revisit if record.target().is_none() => self.unused("no_target"),
            Kind::Response | Kind::Revisit if !record.is_http() => self.unused("not_http"),
            Kind::Response | Kind::Revisit => {
                let before = self.pending.replace(record);
                before.and_then(|before| self.visit(before, None))
            }
            Kind::Metadata => {
                let refers = record.headers.get("WARC-Refers-To").map(warc::bare_id);
                let pending = self.pending.take_if(|pending| Some(pending.id()) == refers);
                pending.and_then(|pending| self.visit(pending, Some(&fields(&record.block))))
            }
            Kind::Resource => match record.target() {
                Some(SEEDS) => {
                    let run = self.run(&record);
                    Some(self.after_pending(Step::Run(run)))
                }
                Some(END) => Some(self.after_pending(Step::RunEnd)),
                Some(SETTINGS) => None,
                _ => self.unused("resource"),
            },
            Kind::Conversion | Kind::Continuation => self.unused(record.kind.name()),
            Kind::Warcinfo | Kind::Request | Kind::Other => None,
        }
    }

    /// Lets a step come after the answer that waits.
    fn after_pending(&mut self, step: Step) -> Step {
        match self.pending.take().and_then(|record| self.visit(record, None)) {
            Some(visit) => {
                self.stash = Some(step);
                visit
            }
            None => step,
        }
    }

    fn run(&self, record: &Record) -> Run {
        let text = String::from_utf8_lossy(&record.block);
        let seeds = text.lines().filter_map(|line| PageUrl::parse_stored(line.trim())).collect();
        let Spot { offset, inside } = record.spot;
        let place = Some(Place { file: self.file(), offset, inside });
        Run { seeds, date: record.date().unwrap_or_default(), place }
    }

    fn visit(&mut self, record: Record, about: Option<&Headers>) -> Option<Step> {
        let target = record.target().unwrap_or_default();
        let Some(date) = record.date() else { return self.unused("no_date") };
        let url = PageUrl::parse_stored(target)
            .or_else(|| PageUrl::from_url(url::Url::parse(target).ok()?, &self.rules).ok());
        let Some(url) = url else { return self.unused("bad_url") };
        let about = About(about);
        let asked = about.asked(url);
        let took = Duration::from_millis(about.number("fetchTimeMs").unwrap_or(0));
        let left_out = if self.is_ours { about.left_out() } else { None };
        let cut = record.truncated().map(str::to_owned);
        let digest = record.headers.get("WARC-Payload-Digest").and_then(Digest::parse);
        let is_revisit = record.kind == Kind::Revisit;
        let address: Option<IpAddr> =
            record.headers.get("WARC-IP-Address").and_then(|text| text.parse().ok());
        let Spot { offset, inside } = record.spot;
        let path = self.reader.as_ref().map(|reader| reader.path().to_owned()).unwrap_or_default();
        let message = record.into_http();
        let status = message.status;
        let response = self.answer(&asked, message, cut.as_deref(), is_revisit);
        let validators = response.as_ref().map_or_else(
            |_| Validators::default(),
            |answer| Validators::new(answer.etag.as_deref(), answer.last_modified.as_deref()),
        );
        let finished = date.after(took);
        let told = Told { finished, status, took, address, validators, ..Told::default() };
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        // Another record can refer to it, or it refers to another one.
        let has_payload = status != 304 && (is_revisit || (cut.is_none() && inside == 0));
        Some(Step::Visit(Box::new(Replayed {
            asked,
            host: 0,
            answer: Some(VisitAnswer::Response(response.map(Box::new))),
            told,
            left_out,
            commit: about.number("commit"),
            date,
            digest: digest.filter(|_| has_payload),
            is_revisit: is_revisit && status != 304,
            folder,
            file: name_of(&path),
            offset,
            inside,
        })))
    }

    fn answer(
        &self,
        asked: &Asked,
        message: warc::HttpMessage,
        cut: Option<&str>,
        is_revisit: bool,
    ) -> Result<Response, Failure> {
        match cut.filter(|_| !is_revisit) {
            Some("time") => return Err(Failure::Timeout("the whole request")),
            Some("disconnect") => return Err(Failure::BadResponse("it broke off".to_owned())),
            _ => {}
        }
        let [page, robots, sitemap] = self.limits;
        let (want, limit) = match asked.rank {
            _ if asked.robots => (Want::Robots(robots), robots),
            Some(Rank::Sitemap | Rank::LateSitemap) => (Want::Sitemap(sitemap), sitemap),
            _ => (Want::Page, page),
        };
        let mut response = Response::replayed(want, message.status, &message.head, message.body);
        response.cut = message.cut && !is_revisit || response.body.len() > limit;
        response.body.truncate(limit);
        Ok(response)
    }
}

fn unreadable(error: &warc::Error) -> Error {
    Error::WarcFile(error.to_string())
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads lines `name: value`.
fn fields(block: &[u8]) -> Headers {
    let text = String::from_utf8_lossy(block);
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    Headers(lines.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect())
}
