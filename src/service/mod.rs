//! The service: articles get identifiers, and what is stored is looked at, over HTTP.
//!
//! A request passes the guard, is read under limits, fingerprinted on a thread of its own if it
//! brings an article, and stored by the one writer of [`ingest`]; or it reads one state of the
//! store. Nothing that a request says makes the service contact an address, unless it was told to
//! let requests start crawls.
//!
//! Source: 汤建明, 寇小强, 海量网络文本去重系统 (`/docId/getDocId`).

mod articles;
mod backup;
mod batch;
mod body;
mod changes;
mod config;
mod crawls;
mod cursor;
mod doc_id;
mod documents;
mod duplicate_feed;
mod expiry;
mod export;
mod guard;
mod heads;
mod index_updater;
pub mod ingest;
mod jobs;
mod lists;
mod live;
mod metrics;
mod page;
#[cfg(feature = "cluster")]
mod parts;
mod problem;
mod query;
mod route;
mod routes;
mod search;
mod server;
#[cfg(feature = "cluster")]
mod shared;
#[cfg(feature = "cluster")]
mod shared_metrics;
mod status;
mod times;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::base::clock::Clock;
use crate::corpus::dedup;
use crate::corpus::index::Index;
use crate::corpus::search as index;
#[cfg(feature = "cluster")]
use crate::corpus::shared::SharedCorpus;
use crate::crawl::jobs::JobsHandle;
use crate::crawl::{self, BackupsHandle, Crawls, stored_rules};
use crate::neardup;
use crate::service::ingest::{Ingest, Prepared, Receipt, Submission};
use crate::store::{self, Reading, Snapshot, Store};
use crate::urls::Normalize;
use crate::web::robots::meta::Honour;

use guard::Guard;
use index_updater::IndexUpdater;
use metrics::Metrics;
use problem::Problem;

pub use config::{Config, Senders};
#[cfg(feature = "cluster")]
pub use parts::SearchPlace;
pub use route::Route;
pub use routes::{openapi, routes};
pub use server::serve;
#[cfg(feature = "cluster")]
pub use shared::ClusterPlace;

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It would be open to everybody.
    #[error("to listen on {0}, no loopback address, a token is needed: `token_file` of [api]")]
    Open(SocketAddr),
    /// The token cannot be used.
    #[error("the token in {}: {detail}", path.display())]
    Token {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The index or the writer cannot start.
    #[error(transparent)]
    Dedup(#[from] dedup::Error),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The cluster cannot be used.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Shared(#[from] crate::corpus::shared::Error),
    /// The index of the search cannot be used.
    #[error(transparent)]
    Search(#[from] index::Error),
    /// A thread cannot be started.
    #[error("a thread of the search cannot be started: {0}")]
    Thread(std::io::Error),
    /// Another service that is to be asked cannot be.
    #[error("the search peer {peer}: {detail}")]
    Peer {
        /// As it was named.
        peer: String,
        /// What is wrong.
        detail: String,
    },
}

/// Returns the first setting that cannot be.
pub fn check(config: &Config) -> Result<(), Error> {
    Guard::new(config).map(drop)
}

/// What all requests share.
pub struct Service {
    store: Arc<Store>,
    index: Arc<Mutex<Index>>,
    ingest: Ingest,
    config: Config,
    honour: Honour,
    clock: Clock,
    /// Normal form of the URLs in the store.
    rules: Normalize,
    guard: Guard,
    metrics: Metrics,
    index_updater: IndexUpdater,
    fingerprinters: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    batches: Arc<Semaphore>,
    exports: Arc<Semaphore>,
    room: Arc<Semaphore>,
    stopping: AtomicBool,
    /// Settings of the crawls that requests start.
    crawl: crawl::Settings,
    /// All crawls of this process.
    crawls: Crawls,
    /// Those that requests started.
    requested_crawls: crawls::RequestedCrawls,
    jobs: OnceLock<JobsHandle>,
    backups: OnceLock<BackupsHandle>,
    /// The cluster that has the corpus, if it is not in the store.
    #[cfg(feature = "cluster")]
    shared: Option<shared::SharedReaders>,
    /// The parts of its index that can be asked.
    #[cfg(feature = "cluster")]
    search_parts: Option<parts::SearchParts>,
}

/// The settings of a service.
#[derive(Debug, Clone, Default)]
pub struct ServiceSettings {
    /// The service itself.
    pub api: Config,
    /// Duplicates.
    pub dedup: neardup::Config,
    /// What pages ask of those who use their text.
    pub honour: Honour,
    /// Crawls that requests start, and the pace that is shown of hosts.
    pub crawl: crawl::Settings,
    /// How similar texts are found.
    pub search: index::Config,
    /// The time.
    pub clock: Clock,
}

impl ServiceSettings {
    fn ingest_rules(&self, store: &Store) -> Result<ingest::IngestRules<'_>, store::Error> {
        let normalize = stored_rules(store)?.unwrap_or_default();
        Ok(ingest::IngestRules { dedup: &self.dedup, normalize, limits: self.api.article.clone() })
    }
}

impl Service {
    /// Starts the writer of a store, and everything but the listener.
    ///
    /// # Errors
    ///
    /// If it would be open to everybody, and if the token or the store cannot be read.
    pub fn start(store: Arc<Store>, settings: &ServiceSettings) -> Result<Arc<Self>, Error> {
        let index = Arc::new(Mutex::new(Index::open(&store, &settings.dedup)?));
        let by = settings.ingest_rules(&store)?;
        let ingest = Ingest::start(store.clone(), index.clone(), by, settings.clock.clone())?;
        Ok(Arc::new(Self::with(store, index, ingest, settings)?))
    }

    /// Starts a service on the corpus of a cluster. `store` is an empty one, for what belongs to
    /// this process alone.
    ///
    /// # Errors
    ///
    /// What is wrong with the cluster, and the same as of a store.
    #[cfg(feature = "cluster")]
    pub fn start_shared(
        place: &ClusterPlace,
        store: Arc<Store>,
        settings: &ServiceSettings,
    ) -> Result<Arc<Self>, Error> {
        let index = Arc::new(Mutex::new(Index::open(&store, &settings.dedup)?));
        let by = settings.ingest_rules(&store)?;
        let texts = place.texts.as_deref();
        let corpus = SharedCorpus::open_or_begin(&place.settings, texts, &settings.dedup, None)?;
        let ingest = Ingest::start_shared(corpus, store.clone(), by, settings.clock.clone())?;
        let mut service = Self::with(store, index, ingest, settings)?;
        service.shared = Some(shared::SharedReaders::open(place)?);
        service.search_parts = parts::SearchParts::start(place, &settings.search, &settings.api)?;
        Ok(Arc::new(service))
    }

    fn with(
        store: Arc<Store>,
        index: Arc<Mutex<Index>>,
        ingest: Ingest,
        settings: &ServiceSettings,
    ) -> Result<Self, Error> {
        let ServiceSettings { api, dedup, honour, search, crawl, clock } = settings;
        let guard = Guard::new(api)?;
        let fingerprinters = match api.fingerprint_threads {
            0 => available_parallelism().map_or(1, usize::from),
            given => given,
        };
        let semaphore = |most: usize| Arc::new(Semaphore::new(most.clamp(1, 1 << 20)));
        Ok(Self {
            index,
            ingest,
            config: api.clone(),
            honour: honour.clone(),
            clock: clock.clone(),
            rules: stored_rules(&store)?.unwrap_or_default(),
            guard,
            metrics: Metrics::new(),
            index_updater: IndexUpdater::start(store.clone(), search, api.search_interval()),
            fingerprinters: semaphore(fingerprinters),
            readers: semaphore(api.readers_max),
            batches: semaphore(api.batches_max),
            exports: semaphore(api.exports_max),
            room: body::room(api.bodies_size_max),
            stopping: AtomicBool::new(false),
            // What crawls into the store of the service judges as the service does.
            crawl: crawl::Settings { dedup: dedup.clone(), ..crawl.clone() },
            crawls: Crawls::default(),
            requested_crawls: crawls::RequestedCrawls::default(),
            jobs: OnceLock::new(),
            backups: OnceLock::new(),
            #[cfg(feature = "cluster")]
            shared: None,
            #[cfg(feature = "cluster")]
            search_parts: None,
            store,
        })
    }

    /// Returns the index, for others of this process that write to the store.
    #[must_use]
    pub fn index(&self) -> Arc<Mutex<Index>> {
        self.index.clone()
    }

    /// Returns the list of the crawls that are shown: all of this process belong there.
    #[must_use]
    pub fn crawls(&self) -> Crawls {
        self.crawls.clone()
    }

    /// Tells whether this process crawls, or may be asked to.
    fn may_crawl(&self) -> bool {
        self.config.crawls || self.jobs.get().is_some() || !self.crawls.running().is_empty()
    }

    /// Shows jobs, and lets them be started and stopped. Only the first handle counts.
    pub fn attach_jobs(&self, handle: JobsHandle) {
        drop(self.jobs.set(handle));
    }

    /// Lets backups be asked for. Only the first handle counts.
    pub fn attach_backups(&self, handle: BackupsHandle) {
        drop(self.backups.set(handle));
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Runs `work` on a thread where it may take its time, when one of `permits` is free.
    async fn apart<T: Send + 'static>(
        self: &Arc<Self>,
        permits: &Arc<Semaphore>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = permits.clone().acquire_owned().await.map_err(|_| Problem::stopping())?;
        let service = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            // Held to the end, also if nobody waits for the answer any more.
            let _permit = permit;
            work(&service)
        });
        task.await.map_err(|error| {
            tracing::error!(%error, "a request failed");
            Problem::failed("the request failed")
        })
    }

    /// Reads one state of the store.
    async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Snapshot) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let read = self.apart(&self.readers, |service| {
            let snapshot = service.store.snapshot()?;
            work(service, &snapshot)
        });
        read.await?
    }

    /// Reads documents, wherever they are: what is read of one is one state of it.
    async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &dyn Reading) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        #[cfg(feature = "cluster")]
        if self.shared.is_some() {
            let read = self.apart(&self.readers, |service| {
                let shared = service.shared.as_ref().ok_or_else(Problem::stopping)?;
                shared.ask(|corpus| work(service, &corpus.view(&[])?))
            });
            return read.await?;
        }
        self.read(|service, snapshot| work(service, snapshot)).await
    }

    /// Tells whether the corpus is in a cluster.
    fn is_shared(&self) -> bool {
        #[cfg(feature = "cluster")]
        let is_shared = self.shared.is_some();
        #[cfg(not(feature = "cluster"))]
        let is_shared = false;
        is_shared
    }

    /// Refuses a path that is not answered where the corpus is.
    fn check_path(&self, path: Option<&str>) -> Result<(), Problem> {
        #[cfg(feature = "cluster")]
        if self.shared.is_some() {
            return shared::check(path);
        }
        let _ = path;
        Ok(())
    }

    /// Reads an article from JSON, checks and fingerprints it.
    fn article(&self, json: &[u8]) -> Result<Prepared, Problem> {
        if let Err(error) = std::str::from_utf8(json) {
            let detail = format!("byte {} is not UTF-8", error.valid_up_to());
            return Err(Problem::bad("bad_utf8", detail));
        }
        // An array would be taken for the fields in their order.
        if json.trim_ascii_start().first() == Some(&b'[') {
            return Err(Problem::bad("bad_field", "an article is a JSON object, not an array"));
        }
        let submission: Submission = serde_json::from_slice(json).map_err(|error| {
            let code = match error.classify() {
                serde_json::error::Category::Data => "bad_field",
                _ => "bad_json",
            };
            Problem::bad(code, error.to_string())
        })?;
        self.ingest.prepare(submission).map_err(|bad| {
            self.metrics.article("refused");
            bad.into()
        })
    }

    /// Stores articles that are fingerprinted.
    async fn deliver(&self, articles: Vec<Prepared>) -> Result<Vec<Receipt>, Problem> {
        let receipts = self.ingest.deliver(articles).await?;
        for receipt in &receipts {
            self.metrics.article(receipt.found.as_str());
        }
        Ok(receipts)
    }
}

/// Waits until nothing uses the store any more, so that it is closed and not merely left: a store
/// that was left has to be looked through when it is opened again. Returns whether it is closed.
#[must_use]
pub fn close(store: Arc<Store>, patience: Duration) -> bool {
    let end = std::time::Instant::now() + patience;
    let mut store = store;
    loop {
        match Arc::try_unwrap(store) {
            Ok(store) => {
                drop(store);
                return true;
            }
            Err(_) if std::time::Instant::now() >= end => return false,
            Err(shared) => store = shared,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
