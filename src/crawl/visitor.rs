//! Visitors: each sends one request at a time and passes the answer on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_channel::{Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::Timestamp;
use crate::fetch::{Failure, Fetcher, Response, Want};
use crate::frontier::{Lease, Purpose};

use super::Context;

/// Bytes of a robots.txt that are read. Source: RFC 9309, 2.5 asks for at least 500 KiB.
const ROBOTS_BYTES_MAX: usize = 512_000;

/// A lease with its answer.
#[derive(Debug)]
pub(super) struct Visit {
    pub lease: Lease,
    pub answer: Result<Response, Failure>,
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
                Purpose::Robots { .. } => Want::Robots(ROBOTS_BYTES_MAX),
            };
            let answer = self.fetcher.visit(&lease.url, want).await;
            let finished = self.context.clock.now_rounded_up();
            let live = &self.context.live;
            live.requests.fetch_add(1, Ordering::Relaxed);
            match &answer {
                Ok(response) => {
                    live.bytes.fetch_add(response.body.len() as u64, Ordering::Relaxed);
                }
                Err(failure) => {
                    live.failed.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(url = %lease.url, ?failure, "no answer");
                }
            }
            if self.visits.send(Visit { lease, answer, finished, permit }).await.is_err() {
                return;
            }
        }
    }
}
