//! A service on a cluster: any number of processes at a time take articles and read documents. What
//! needs the lists of one machine is refused, with the way out.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::documents::answer;
use super::parts::SearchPlace;
use super::problem::Problem;
use super::{Service, shared_metrics};
use crate::cluster::Settings;
use crate::corpus::shared::{Error, SharedCorpus, SharedStats};
use crate::crawl::Crowd;

/// Connections that are kept for further requests.
const KEPT_MAX: usize = 32;

/// Paths that are answered on a cluster.
const ANSWERED: [&str; 17] = [
    "/",
    "/app.js",
    "/app.css",
    "/docId/getDocId",
    "/v1/articles",
    "/v1/documents/{docId}",
    "/v1/documents/{docId}/copies",
    "/v1/documents/{docId}/copy",
    "/v1/export",
    "/v1/search",
    super::parts::PATH,
    "/v1/stats",
    "/v1/workers",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
];

/// Where the corpus of a service is that does not keep it in a store of its own.
#[derive(Debug, Clone)]
pub struct ClusterPlace {
    /// The cluster.
    pub settings: Settings,
    /// The folder of the texts, if it is not the one that was named first.
    pub texts: Option<PathBuf>,
    /// The index of its search.
    pub search: SearchPlace,
}

/// Connections to the cluster of those who read.
#[derive(Debug)]
pub(super) struct SharedReaders {
    place: ClusterPlace,
    idle: Mutex<Vec<SharedCorpus>>,
    /// How much there was, when that was asked, and how long it took.
    counted: Mutex<Option<Counted>>,
}

/// How much there was.
#[derive(Debug, Clone)]
struct Counted {
    at: Instant,
    took: Duration,
    stats: Arc<SharedStats>,
}

/// For so long a count is used again, and as many times what it took, so that whoever asks often
/// does not keep the nodes busy.
const COUNTED_FOR: Duration = Duration::from_secs(1);
const COUNTED_TIMES: u32 = 20;

impl SharedReaders {
    /// Makes the first connection: what is wrong with the cluster is told at once.
    pub(super) fn open(place: &ClusterPlace) -> Result<Self, Error> {
        let readers =
            Self { place: place.clone(), idle: Mutex::default(), counted: Mutex::default() };
        readers.keep(readers.connect()?);
        Ok(readers)
    }

    fn connect(&self) -> Result<SharedCorpus, Error> {
        SharedCorpus::open_to_read(&self.place.settings, self.place.texts.as_deref())
    }

    fn keep(&self, corpus: SharedCorpus) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_MAX {
            idle.push(corpus);
        }
    }

    /// Asks the cluster.
    pub(super) fn ask<T>(
        &self,
        work: impl FnOnce(&SharedCorpus) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let corpus = match idle {
            Some(corpus) => corpus,
            None => self.connect()?,
        };
        let done = work(&corpus);
        self.keep(corpus);
        done
    }
}

impl SharedReaders {
    /// Returns how much there is, or was a moment ago. Who asks meanwhile waits for the answer.
    fn stats(&self, corpus: &SharedCorpus) -> Result<Arc<SharedStats>, Problem> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh =
            |one: &&Counted| one.at.elapsed() < COUNTED_FOR.max(one.took * COUNTED_TIMES);
        if let Some(one) = counted.as_ref().filter(is_fresh) {
            return Ok(Arc::clone(&one.stats));
        }
        let begun = Instant::now();
        let stats = Arc::new(corpus.stats()?);
        let one = Counted { at: Instant::now(), took: begun.elapsed(), stats: Arc::clone(&stats) };
        *counted = Some(one);
        Ok(stats)
    }
}

/// How much a cluster has, as answers tell it: what is not known is not there.
fn in_words(stats: &SharedStats) -> Map<String, Value> {
    let mut told = json!({
        "prefix": stats.prefix,
        "documents": stats.documents,
        "duplicates": stats.duplicates,
        "secondLooksDue": stats.due,
        "numbersGiven": stats.numbers,
        "primaries": stats.memory.iter().map(|node| json!({
            "node": node.node, "usedBytes": node.used, "maxBytes": node.most,
        })).collect::<Vec<_>>(),
    });
    if let Some(copies) = stats.copies {
        told["copies"] = copies.into();
    }
    match told {
        Value::Object(told) => told,
        _ => Map::new(),
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        tracing::error!(%error, "the cluster cannot be asked");
        Self::failed("the cluster cannot be asked")
    }
}

impl Service {
    /// How much the cluster has.
    pub(super) async fn shared_stats(self: &Arc<Self>) -> Result<Response, Problem> {
        let told = self.apart(&self.readers, |service| {
            let shared = service.shared.as_ref().ok_or_else(Problem::stopping)?;
            shared.ask(|corpus| {
                let stats = shared.stats(corpus)?;
                Ok(answer(&Value::Object(in_words(&stats))))
            })
        });
        told.await?
    }

    /// What the workers of the cluster do, and how much it has.
    pub(super) async fn shared_workers(self: &Arc<Self>) -> Result<Response, Problem> {
        let told = self.apart(&self.readers, |service| {
            let shared = service.shared.as_ref().ok_or_else(Problem::stopping)?;
            shared.ask(|corpus| {
                let stats = shared.stats(corpus)?;
                let crowd = Crowd::of(&corpus.crowd()?);
                Ok(answer(&json!({
                    "now": service.clock.now().to_string(),
                    "corpus": in_words(&stats),
                    "totals": crowd.totals,
                    "workers": crowd.workers,
                    "shards": crowd.shards,
                })))
            })
        });
        told.await?
    }

    /// The metrics of a service on a cluster.
    pub(super) async fn shared_metrics(self: &Arc<Self>) -> Result<String, Problem> {
        let told = self.apart(&self.readers, |service| {
            let shared = service.shared.as_ref().ok_or_else(Problem::stopping)?;
            shared.ask(|corpus| {
                let stats = shared.stats(corpus)?;
                let crowd = Crowd::of(&corpus.crowd()?);
                Ok(service.metrics.with(&shared_metrics::registry(&stats, &crowd)))
            })
        });
        told.await?
    }

    /// The cluster answers.
    pub(super) async fn shared_is_ready(self: &Arc<Self>) -> Result<Response, Problem> {
        let told = self.apart(&self.readers, |service| {
            let shared = service.shared.as_ref().ok_or_else(Problem::stopping)?;
            let numbers = shared.ask(|corpus| Ok(corpus.last_number()?));
            numbers.map_err(|problem| Problem::unwritable(problem.detail))
        });
        let numbers = told.await??;
        Ok(answer(&json!({ "status": "ready", "numbersGiven": numbers })))
    }
}

/// Refuses a path that is not answered on a cluster.
pub(super) fn check(path: Option<&str>) -> Result<(), Problem> {
    match path {
        Some(path) if !ANSWERED.contains(&path) => {
            let detail = format!(
                "{path} needs lists that a cluster does not keep: copy it into a store of one \
                 machine (`crawl store copy cluster:... DIR`) and serve that"
            );
            Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "not_on_a_cluster", detail))
        }
        _ => Ok(()),
    }
}
