//! What a crawl exchanges, kept in WARC files, in step with the commits of its store: a page is in
//! the files if, and only if, it is in the store.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::remote::Location;
use crate::frontier::{Purpose, Rank, Visited};
use crate::page::MemoryPermit;
use crate::store::{Batch, META, Store, Update as _, View as _};
use crate::urls::PageUrl;
use crate::warc::{
    Archive, Awaited, Captured, Compression, Kept, PAYLOADS, PackedExchange, Position, Resource,
    StoredPayload, Target, WriteError, new_id, payload_key, recover,
};
use crate::web::fetch::Exchange;

use super::fingerprint::Yield;
#[cfg(feature = "object-store")]
use super::uploads::Place;
use super::uploads::Uploads;
use super::visitor::{Visit, VisitAnswer};
use super::{Error, Settings};

/// Row of `meta` that tells how far the files are, as JSON.
const WARC: &str = "warc";

/// How the targets of records begin that tell of a run.
pub const URN: &str = "urn:uniqcrawl:";
pub(super) const SEEDS: &str = "urn:uniqcrawl:seeds";
pub(super) const SETTINGS: &str = "urn:uniqcrawl:settings";
/// The record behind all others of a run that came to its end.
pub(super) const END: &str = "urn:uniqcrawl:end";

/// How far the files of a store are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    folder: PathBuf,
    id: String,
    position: Position,
}

/// A visit as records.
#[derive(Debug)]
pub(super) struct PackedVisit {
    exchange: io::Result<PackedExchange>,
    /// Hashes of the blocks that were left out of the text of the page.
    left_out: Vec<u64>,
    held: MemoryPermit,
}

/// The files that a run writes.
#[derive(Debug)]
pub(super) struct Writing {
    archive: Archive,
    progress: Progress,
    commits: u64,
    /// Something was written since the last commit.
    is_behind: bool,
    /// Sends what is finished, if it goes to another place.
    uploads: Option<Uploads>,
}

impl PackedVisit {
    /// Packs what was exchanged, before the answer is read.
    pub(super) fn of(
        visit: &Visit<VisitAnswer>,
        exchange: &Exchange,
        compression: Compression,
        take: impl FnOnce(usize) -> MemoryPermit,
    ) -> Self {
        let Visit { lease, outcome: answer, told, .. } = visit;
        let body = match answer {
            VisitAnswer::Response(Ok(response)) if response.has_body => &response.body,
            _ => &exchange.rest,
        };
        // A packed body is hardly larger than it was.
        let mut held = take(body.len() + exchange.head.len() + exchange.request.len());
        let date = told.finished.before(told.took);
        let captured = Captured { url: lease.url.as_str(), date, exchange, body };
        let exchange = PackedExchange::new(&captured, compression);
        held.shrink(exchange.as_ref().map_or(0, PackedExchange::bytes));
        Self { exchange, left_out: Vec::new(), held }
    }

    /// Notes what the page has yielded.
    pub(super) fn note(&mut self, yielded: &Yield) {
        if let Yield::Page(page) = yielded {
            self.left_out.clone_from(&page.left_out);
        }
    }
}

impl Writing {
    /// Begins the files of a run, if the settings name a folder. What a crash has left is brought
    /// to the last commit.
    pub(super) fn start(
        store: &Store,
        settings: &Settings,
        seeds: &[PageUrl],
        now: Timestamp,
    ) -> Result<Option<Self>, Error> {
        let before = store.snapshot()?.get(META, WARC)?;
        let before = before.map(|row| read(&row)).transpose()?;
        if let Some(before) = &before {
            recover(&before.folder, &before.id, before.position)?;
        }
        if settings.warc.folder.is_empty() {
            return Ok(None);
        }
        let (folder, uploads) = destination(&settings.warc.folder, store)?;
        let before = before.filter(|before| before.folder == folder);
        let (id, serial) = match before {
            Some(before) => (before.id, before.position.serial + 1),
            None => (short_id(&folder)?, 0),
        };
        let position = Position { serial, offset: 0 };
        let progress = Progress { folder: folder.clone(), id: id.clone(), position };
        // The store knows of the file before it is there.
        let turn = store.turn();
        let mut batch = store.begin()?;
        progress.write(&mut batch)?;
        batch.commit()?;
        drop(turn);
        let archive = Archive::start(Target {
            folder,
            id,
            serial,
            size_max: settings.warc.file_size_max.bytes() as u64,
            compression: settings.warc.compress,
            info: info(settings, now),
            resources: resources(settings, seeds),
        })?;
        Ok(Some(Self { archive, progress, commits: 0, is_behind: false, uploads }))
    }

    /// Keeps a visit. A payload that lies in the files already is not written again.
    pub(super) fn keep(
        &mut self,
        batch: &mut Batch,
        visited: &Visited<'_>,
        packed: Option<PackedVisit>,
    ) -> Result<(), Error> {
        let Some(PackedVisit { exchange, left_out, held }) = packed else { return Ok(()) };
        let exchange = exchange.map_err(WriteError::of(&self.progress.folder))?;
        let key = payload_key(&self.progress.folder, exchange.digest);
        let here = |date| {
            let url = visited.lease.url.as_str().to_owned();
            StoredPayload { url, date, file: String::new(), offset: 0 }
        };
        let last = visited.address.as_ref().map_or(Timestamp(0), |address| address.visited);
        let original = match exchange.status {
            304 => Some(here(last)).filter(|_| last.0 > 0),
            _ if !exchange.has_payload => None,
            _ => {
                let known = batch.get(PAYLOADS, key)?;
                if known.is_none() {
                    batch.put(PAYLOADS, key, &here(exchange.date))?;
                }
                known
            }
        };
        let about = about(visited, &left_out, self.commits);
        self.archive.keep(Kept { exchange, original, about, held: Some(held) });
        self.is_behind = true;
        Ok(())
    }

    /// Asks for all that was kept to be on the disk.
    pub(super) fn sync(&mut self) -> Option<Awaited<Position>> {
        std::mem::take(&mut self.is_behind).then(|| self.archive.sync())
    }

    /// Waits for that, and lets the batch say so.
    pub(super) fn note(
        &mut self,
        batch: &mut Batch,
        synced: Option<Awaited<Position>>,
    ) -> Result<(), Error> {
        if let Some(synced) = synced {
            self.progress.position = synced.wait()?;
            self.progress.write(batch)?;
        }
        Ok(())
    }

    /// Notes that the batch is committed.
    pub(super) fn committed(&mut self) {
        self.commits += 1;
        self.archive.committed();
        if let Some(uploads) = &self.uploads {
            uploads.look();
        }
    }

    /// Gives all files their names. A run that came to its end says so.
    pub(super) fn close(self, has_ended: bool) -> Result<(), Error> {
        let end = Resource { name: END, media: "text/plain", text: "settled\r\n".to_owned() };
        self.archive.close(has_ended.then_some(end))?;
        Ok(self.uploads.map_or(Ok(()), Uploads::end)?)
    }
}

impl Progress {
    fn write(&self, batch: &mut Batch) -> Result<(), Error> {
        let json = serde_json::to_vec(self).expect("it has a form in JSON");
        Ok(batch.put(META, WARC, &json)?)
    }
}

fn read(row: &[u8]) -> Result<Progress, Error> {
    let bad = crate::store::BadRow { kind: "meta", detail: "the place in the WARC files" };
    Ok(serde_json::from_slice(row).map_err(|_| crate::store::Error::from(bad))?)
}

/// The same folder has the same name whatever the folder is that the program runs in.
fn absolute(folder: &Path) -> Result<PathBuf, WriteError> {
    std::path::absolute(folder).map_err(WriteError::of(folder))
}

/// The folder of this machine into which files are written, and what sends them on. Those for
/// another place wait beside the store, in a folder of that place.
#[cfg_attr(
    not(feature = "object-store"),
    allow(unused_variables, reason = "without object storage there is no other place for files")
)]
fn destination(named: &str, store: &Store) -> Result<(PathBuf, Option<Uploads>), Error> {
    match Location::parse(named)? {
        Location::Local(folder) => Ok((absolute(&folder)?, None)),
        #[cfg(feature = "object-store")]
        Location::Remote(objects) => {
            let name = objects.to_string();
            let spool = format!("warc-{:08x}", xxhash_rust::xxh3::xxh3_64(name.as_bytes()) as u32);
            let beside = store.path().parent().unwrap_or(Path::new("."));
            let spool = absolute(&beside.join(spool))?;
            let send = move |file: &Path| {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                let mut upload = objects.child(&name).write();
                io::copy(&mut std::fs::File::open(file)?, &mut upload)?;
                Ok(upload.finish()?)
            };
            let place = Place { name, spool: spool.clone(), send: Box::new(send) };
            Ok((spool, Some(Uploads::start(place)?)))
        }
    }
}

fn short_id(folder: &Path) -> Result<String, WriteError> {
    let id = new_id().map_err(WriteError::of(folder))?;
    Ok(id.trim_start_matches("urn:uuid:").chars().take(8).collect())
}

/// What each file says of itself. Source: WARC 1.1, 6.2.
fn info(settings: &Settings, now: Timestamp) -> Vec<(&'static str, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let robots = format!("obey; agent {}", settings.frontier.agent);
    vec![
        ("software", format!("uniqcrawl/{version}")),
        ("format", "WARC File Format 1.1".to_owned()),
        ("conformsTo", "http://iipc.github.io/warc-specifications/1.1/".to_owned()),
        ("http-header-user-agent", settings.fetch.full_user_agent()),
        ("operator", settings.fetch.contact.clone()),
        ("robots", robots),
        ("isPartOf", format!("crawl of {}", crate::warc::date(now))),
    ]
}

/// What a store can be made anew from, beside the pages: seeds and settings. Nothing of it is a
/// secret.
fn resources(settings: &Settings, seeds: &[PageUrl]) -> Vec<Resource> {
    let seeds: String = seeds.iter().flat_map(|seed| [seed.as_str(), "\n"]).collect();
    vec![
        Resource { name: SEEDS, media: "text/uri-list", text: seeds },
        Resource { name: SETTINGS, media: "application/toml", text: stated(settings) },
    ]
}

/// The settings that decide what becomes of a page, as they stand in a file of settings.
fn stated(settings: &Settings) -> String {
    #[derive(Serialize)]
    struct Crawl<'a> {
        scope: crate::urls::ScopeKind,
        probe_error_page: &'a bool,
        obey_noindex: &'a bool,
    }
    #[derive(Serialize)]
    struct Extract<'a> {
        #[serde(flatten)]
        limits: &'a crate::page::Limits,
        #[serde(flatten)]
        boilerplate: &'a crate::corpus::boilerplate::Config,
    }
    #[derive(Serialize)]
    struct Fetch<'a> {
        body_size_max: &'a crate::base::units::Size,
        decoded_size_max: &'a crate::base::units::Size,
        decoded_ratio_max: &'a u32,
        allow_private: &'a bool,
    }
    #[derive(Serialize)]
    struct Stated<'a> {
        crawl: Crawl<'a>,
        extract: Extract<'a>,
        fetch: Fetch<'a>,
        filter: &'a crate::urls::FilterConfig,
        urls: &'a crate::urls::Normalize,
        frontier: crate::frontier::Config,
        recrawl: &'a crate::frontier::Recrawl,
        dedup: &'a crate::neardup::Config,
        corpus: &'a crate::corpus::documents::KeepConfig,
    }
    let Settings { limits, fetch, .. } = settings;
    let mut frontier = settings.frontier.clone();
    // Files of this machine.
    frontier.duplicate_feeds.known.clear();
    let stated = Stated {
        crawl: Crawl {
            scope: settings.scope,
            probe_error_page: &limits.probe_error_page,
            obey_noindex: &limits.obey_noindex,
        },
        extract: Extract { limits: &settings.extract, boilerplate: &settings.boilerplate },
        fetch: Fetch {
            body_size_max: &fetch.body_size_max,
            decoded_size_max: &fetch.decoded_size_max,
            decoded_ratio_max: &fetch.decoded_ratio_max,
            allow_private: &fetch.allow_private,
        },
        filter: &settings.filter,
        urls: &settings.normalize,
        frontier,
        recrawl: &settings.recrawl,
        dedup: &settings.dedup,
        corpus: &settings.keep,
    };
    let table = toml::Table::try_from(&stated).expect("every setting has a form in TOML");
    table.to_string()
}

/// What is said of an exchange: by it a store can be made anew.
fn about(visited: &Visited<'_>, left_out: &[u64], commit: u64) -> Vec<(&'static str, String)> {
    let Visited { lease, address, told } = visited;
    let mut about = Vec::new();
    if let Some(address) = address.as_ref().filter(|address| !address.referrer.is_empty()) {
        about.push(("via", address.referrer.clone()));
    }
    about.push(("fetchTimeMs", told.took.as_millis().to_string()));
    about.push(("purpose", purpose(lease.purpose).to_owned()));
    if let Some(place) = lease.place {
        about.push(("rank", rank_name(place.rank).to_owned()));
        about.push(("depth", place.depth.to_string()));
        about.push(("redirects", lease.hops.to_string()));
    }
    if !left_out.is_empty() {
        let hashes: Vec<String> = left_out.iter().map(|hash| format!("{hash:016x}")).collect();
        about.push(("leftOut", hashes.join(" ")));
    }
    about.push(("commit", commit.to_string()));
    about
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Page | Purpose::Lookup => "page",
        Purpose::Sitemap => "sitemap",
        Purpose::Robots { .. } => "robots",
    }
}

const RANKS: [(&str, Rank); 7] = [
    ("robots", Rank::Robots),
    ("redirect", Rank::Redirect),
    ("seed", Rank::Seed),
    ("sitemap", Rank::Sitemap),
    ("link", Rank::Link),
    ("late-sitemap", Rank::LateSitemap),
    ("slow", Rank::Slow),
];

fn rank_name(rank: Rank) -> &'static str {
    RANKS.iter().find(|(_, known)| *known == rank).map_or("link", |(name, _)| name)
}

/// Reads the rank that an exchange had.
pub(super) fn rank_of(name: &str) -> Option<Rank> {
    RANKS.iter().find(|(known, _)| *known == name).map(|(_, rank)| *rank)
}
