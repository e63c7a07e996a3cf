//! Visitors: each sends one request at a time and passes the answer on.

use std::future::poll_fn;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use futures_util::FutureExt as _;
use tokio::sync::Semaphore;

use crate::frontier::{Lease, Purpose, Told, Validators};
use crate::web::fetch::{Ask, Exchange, Failure, Fetcher, Preconditions, Response, Want};

use super::crew::{Errand, Home, Way};
use super::memory::HeldMemory;
use super::{Beyond, Context};

/// What came back.
#[derive(Debug)]
pub(super) enum VisitAnswer {
    /// Nothing was sent: it is somebody else's turn, for so long at least.
    Later(Duration),
    Response(Result<Box<Response>, Failure>),
    Address(Result<IpAddr, Failure>),
}

/// A lease on its way to the committer: with the answer to its request, then with what that has
/// yielded.
#[derive(Debug)]
pub(super) struct Visit<T> {
    pub lease: Lease,
    pub outcome: T,
    pub told: Told,
    pub held: HeldMemory,
    /// Where it goes back to.
    pub way: Way,
}

/// One of many; ends when no more leases can come.
pub(super) struct Visitor {
    pub fetcher: Fetcher,
    pub context: Context,
    pub errands: Receiver<Errand>,
    pub visits: Sender<Visit<VisitAnswer>>,
    /// Most bytes of a robots.txt.
    pub robots_bytes_max: usize,
    /// Most bytes of a sitemap.
    pub sitemap_bytes_max: usize,
    /// Sitemaps may be large: only so many are in memory at a time.
    pub sitemaps: Arc<Semaphore>,
    /// What is exchanged is kept.
    pub keeps: bool,
}

/// For how long a request waits at least that must not be sent for want of the right to do so.
const NOT_HELD: Duration = Duration::from_secs(1);

impl Visitor {
    pub(super) async fn run(self) {
        while let Ok(Errand { lease, way }) = self.errands.recv().await {
            // Until the sitemap is read and stored.
            let mut held = HeldMemory::new(match lease.purpose {
                Purpose::Sitemap => Arc::clone(&self.sitemaps).acquire_owned().await.ok(),
                _ => None,
            });
            // What breaks the client is the outcome of one request. A visitor that ended here would
            // take its lease with it, and the crawl would wait for it for ever.
            let visit = AssertUnwindSafe(self.visit_in_turn(&lease, &way, &mut held));
            let outcome = visit.catch_unwind().await;
            let (outcome, mut told) = outcome.unwrap_or_else(|_| {
                (VisitAnswer::Response(Err(Failure::Panicked)), Told::default())
            });
            told.finished = self.context.clock.now_rounded_up();
            if self.visits.send(Visit { lease, outcome, told, held, way }).await.is_err() {
                return;
            }
        }
    }

    /// Sends the request of a lease; of a crawl that is one of many, in its turn, and no longer
    /// than it has the right to.
    async fn visit_in_turn(
        &self,
        lease: &Lease,
        way: &Way,
        own: &mut HeldMemory,
    ) -> (VisitAnswer, Told) {
        let home = way.home.as_deref();
        let Some(beyond) = home.and_then(|home| home.context.beyond.as_deref()) else {
            return self.visit(lease, home, own).await;
        };
        let address = lease.address().filter(|_| lease.purpose != Purpose::Lookup);
        // Until the answer has come, or will not come.
        let mut _turn = None;
        if let Some(address) = address {
            match while_held(beyond, beyond.turn(address)).await.unwrap_or(Err(NOT_HELD)) {
                Ok(held) => _turn = Some(held),
                Err(wait) => return (VisitAnswer::Later(wait), Told::default()),
            }
        }
        let visit = AssertUnwindSafe(self.visit(lease, home, own)).catch_unwind();
        match while_held(beyond, visit).await {
            None => (VisitAnswer::Later(NOT_HELD), Told::default()),
            Some(Ok(visited)) => visited,
            Some(Err(_)) => (VisitAnswer::Response(Err(Failure::Panicked)), Told::default()),
        }
    }

    /// Sends the request of a lease.
    async fn visit(
        &self,
        lease: &Lease,
        home: Option<&Home>,
        own: &mut HeldMemory,
    ) -> (VisitAnswer, Told) {
        let want = match lease.purpose {
            Purpose::Page => Want::Page,
            Purpose::Sitemap => Want::Sitemap(self.sitemap_bytes_max),
            Purpose::Robots { .. } => Want::Robots(self.robots_bytes_max),
            Purpose::Lookup => {
                let address = self.fetcher.look_up(&lease.url).await;
                if let Err(failure) = &address {
                    tell_of_seed(lease, home, failure);
                }
                return (VisitAnswer::Address(address), Told::default());
            }
        };
        let held = self.fetcher.ready().await;
        let started = Instant::now();
        let preconditions = Preconditions {
            if_none_match: &lease.validators.etag,
            if_modified_since: &lease.validators.last_modified,
        };
        let ask = Ask { url: &lease.url, preconditions, want };
        let mut kept = self.keeps.then(Box::<Exchange>::default);
        let answer = self.fetcher.visit(ask, held, kept.as_deref_mut()).await;
        own.exchange = kept.filter(|kept| !kept.head.is_empty());
        let waited = answer.as_ref().map_or(Duration::ZERO, |response| response.waited);
        let took = started.elapsed().saturating_sub(waited);
        let took_ms = took.as_millis() as u64;
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
                tell_of_seed(lease, home, failure);
            }
        }
        (VisitAnswer::Response(answer.map(Box::new)), told)
    }
}

/// Does something as long as there is the right to; none if that ended. It is looked at each time
/// before anything goes on: a process that slept sends nothing when it wakes.
async fn while_held<F: Future>(beyond: &dyn Beyond, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|context| {
        if beyond.is_held() { work.as_mut().poll(context).map(Some) } else { Poll::Ready(None) }
    })
    .await
}

/// Warns that a host of a seed cannot be had: whoever waits for its pages wants to know now.
fn tell_of_seed(lease: &Lease, home: Option<&Home>, failure: &Failure) {
    let first = matches!(lease.purpose, Purpose::Lookup | Purpose::Robots { .. });
    let host = lease.url.host_key();
    if !first || !home.is_some_and(|home| home.seeds.contains(&host)) {
        return;
    }
    match failure {
        Failure::Dns(why) => {
            tracing::warn!(%host, why, "the name of a seed's host cannot be resolved");
        }
        Failure::Private(why) => tracing::warn!(
            %host,
            why,
            "a seed's host is not contacted: use --allow-private if it is yours"
        ),
        Failure::Refused(why) => {
            tracing::warn!(%host, why, "a seed's host is never contacted");
        }
        // These are our own trouble, which is told elsewhere.
        Failure::Exhausted(_) | Failure::Panicked => {}
        failure => {
            tracing::warn!(%host, why = ?failure, "a seed's host gives no answer");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::urls::PageUrl;
    use crate::web::fetch;

    fn lease(purpose: Purpose) -> Lease {
        Lease::of(PageUrl::parse("http://127.0.0.1:1/").expect("a URL"), purpose)
    }

    /// A log that panics stands for whatever may break while a request is under way.
    #[test]
    fn a_panic_while_a_request_is_under_way_is_the_outcome_of_that_request() {
        let broken = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(|| -> io::Sink { panic!("the log is broken") })
            .finish();
        // With one subscriber alone, an event to which the thread of another test comes first is
        // told to nobody from then on.
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        let _log = tracing::subscriber::set_default(broken);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (errands, handed) = async_channel::bounded(2);
            let (visits, visited) = async_channel::bounded(2);
            let config = fetch::Config { allow_private: true, ..fetch::Config::default() };
            let visitor = Visitor {
                fetcher: Fetcher::new(config).expect("a client"),
                context: Context::default(),
                errands: handed,
                visits,
                robots_bytes_max: 100,
                sitemap_bytes_max: 100,
                sitemaps: Arc::new(Semaphore::new(1)),
                keeps: false,
            };
            tokio::spawn(visitor.run());
            for purpose in [Purpose::Page, Purpose::Sitemap] {
                let lease = lease(purpose);
                errands.send(Errand { lease, way: Way::default() }).await.expect("a visitor");
                let visit = visited.recv().await.expect("an outcome");
                assert_eq!(visit.lease.purpose, purpose);
                let panicked =
                    matches!(visit.outcome, VisitAnswer::Response(Err(Failure::Panicked)));
                assert!(panicked, "{:?}", visit.outcome);
            }
        });
    }
}
