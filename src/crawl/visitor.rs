//! Visitors: each sends one request at a time and passes the answer on.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use async_channel::{Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::Timestamp;
use crate::fetch::{Failure, Fetcher, Response, Want};
use crate::frontier::{Lease, Purpose, Told, Validators};

use super::Context;

/// What came back.
#[derive(Debug)]
pub(super) enum Answer {
    Response(Result<Box<Response>, Failure>),
    Address(Result<IpAddr, Failure>),
}

/// A lease with its answer.
#[derive(Debug)]
pub(super) struct Visit {
    pub lease: Lease,
    pub answer: Answer,
    pub told: Told,
    pub finished: Timestamp,
    /// Held until the sitemap is read.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// One of many; ends when no more leases can come.
pub(super) struct Visitor {
    pub fetcher: Fetcher,
    pub context: Context,
    pub leases: Receiver<Lease>,
    pub visits: Sender<Visit>,
    /// Most bytes of a robots.txt.
    pub robots_bytes_max: usize,
    /// Most bytes of a sitemap.
    pub sitemap_bytes_max: usize,
    /// Sitemaps may be large: only so many are in memory at a time.
    pub sitemaps: Arc<Semaphore>,
}

impl Visitor {
    pub(super) async fn run(self) {
        while let Ok(lease) = self.leases.recv().await {
            let permit = match lease.purpose {
                Purpose::Sitemap => Arc::clone(&self.sitemaps).acquire_owned().await.ok(),
                _ => None,
            };
            let want = match lease.purpose {
                Purpose::Page => Want::Page,
                Purpose::Sitemap => Want::Sitemap(self.sitemap_bytes_max),
                Purpose::Robots { .. } => Want::Robots(self.robots_bytes_max),
                Purpose::Lookup => {
                    let address = self.fetcher.look_up(&lease.url).await;
                    let finished = self.context.clock.now_rounded_up();
                    let (answer, told) = (Answer::Address(address), Told::default());
                    if self
                        .visits
                        .send(Visit { lease, answer, told, finished, permit })
                        .await
                        .is_err()
                    {
                        return;
                    }
                    continue;
                }
            };
            self.fetcher.ready().await;
            let started = Instant::now();
            let same = (lease.validators.etag.as_str(), lease.validators.last_modified.as_str());
            let answer = self.fetcher.visit_unless(&lease.url, want, same).await;
            let took = started.elapsed();
            let took_ms = took.as_millis() as u64;
            let finished = self.context.clock.now_rounded_up();
            let live = &self.context.live;
            live.requests.fetch_add(1, Ordering::Relaxed);
            let mut told = Told { took, ..Told::default() };
            told.address = self.fetcher.known_address(&lease.url);
            match &answer {
                Ok(response) => {
                    let bytes = response.body.len() as u64;
                    live.bytes.fetch_add(bytes, Ordering::Relaxed);
                    let status = response.status;
                    let (etag, date) = (&response.etag, &response.last_modified);
                    told.validators = Validators::new(etag.as_deref(), date.as_deref());
                    told.status = status;
                    tracing::debug!(url = %lease.url, status, bytes, took_ms, "visited");
                }
                Err(failure) => {
                    let own = matches!(failure, Failure::Exhausted(_));
                    live.failed.fetch_add(u64::from(!own), Ordering::Relaxed);
                    tracing::debug!(url = %lease.url, ?failure, took_ms, "no answer");
                }
            }
            let answer = Answer::Response(answer.map(Box::new));
            if self.visits.send(Visit { lease, answer, told, finished, permit }).await.is_err() {
                return;
            }
        }
    }
}
