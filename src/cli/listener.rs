//! The service over a store that is open: beside a crawl, or for its own sake.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Clock;
use crate::config::Config;
use crate::service::{self, ClusterPlace, Service, ServiceSettings};
use crate::store::Store;
use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long the writer gets to end its last commit.
const PATIENCE: Duration = Duration::from_secs(30);

/// A service that answers from when it is told to until it is told to stop.
pub(super) struct Listener {
    pub runtime: Runtime,
    pub service: Arc<Service>,
    pub address: SocketAddr,
    socket: TcpListener,
}

/// A service that answers.
pub(super) struct Answering {
    runtime: Runtime,
    serving: JoinHandle<()>,
}

impl Listener {
    /// Listens where the settings say. Who comes waits for [`Listener::answer`].
    pub(super) fn open(config: &Config, store: &Arc<Store>) -> Result<Self> {
        Self::open_on(config, store, None)
    }

    /// Does the same for the corpus of a cluster; the store is an empty one.
    pub(super) fn open_on(
        config: &Config,
        store: &Arc<Store>,
        cluster: Option<&ClusterPlace>,
    ) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let listen = config.api.listen;
        let socket = runtime
            .block_on(TcpListener::bind(listen))
            .with_context(|| format!("cannot listen on {listen}"))?;
        let address = socket.local_addr()?;
        let settings = ServiceSettings {
            api: config.api.clone(),
            dedup: config.dedup.clone(),
            honour: config.export.honour.clone(),
            crawl: config.settings(),
            search: config.search.clone(),
            clock: Clock::System,
        };
        let service = match cluster {
            None => Service::start(store.clone(), &settings)?,
            Some(place) => Service::start_shared(place, store.clone(), &settings)?,
        };
        Ok(Self { runtime, service, address, socket })
    }

    /// Begins to answer. It ends when the sender is used or dropped.
    pub(super) fn answer(self) -> (Answering, oneshot::Sender<()>) {
        let (stop, stopped) = oneshot::channel();
        let serving = self.runtime.spawn(service::serve(self.socket, self.service, async {
            drop(stopped.await);
        }));
        (Answering { runtime: self.runtime, serving }, stop)
    }
}

impl Answering {
    /// Waits until it was told to stop, and requests under way have ended.
    pub(super) fn wait(&mut self) {
        if let Err(error) = self.runtime.block_on(&mut self.serving) {
            tracing::error!(%error, "the service has ended");
        }
    }

    /// Closes the store when nothing uses it any more.
    pub(super) fn close(self, store: Arc<Store>) {
        self.runtime.shutdown_timeout(PATIENCE);
        if !service::close(store, PATIENCE) {
            tracing::warn!("the store was left open: it is looked through when it is opened next");
        }
    }
}
