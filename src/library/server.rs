//! The HTTP service, as a program starts and stops it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::base::clock::Clock;
use crate::config::Config;
use crate::service::{self, Service, ServiceSettings};
use crate::store::Store;

use super::{LibraryError, open_store};

/// How long the writer gets to end its last commit.
const PATIENCE: Duration = Duration::from_secs(30);

/// The HTTP service with its dashboard, over the store in a folder. It answers until it is stopped.
///
/// ```no_run
/// use uniqcrawl::Server;
///
/// let server = Server::start("store", "127.0.0.1:8080".parse()?)?;
/// println!("listening on http://{}", server.address());
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    serving: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    address: SocketAddr,
    store: Arc<Store>,
}

impl Server {
    /// Opens the store, or makes it, and begins to answer on `listen`; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// Without a token, only loopback addresses may be listened on.
    pub fn start(folder: impl AsRef<Path>, listen: SocketAddr) -> Result<Self, LibraryError> {
        let mut config = Config::default();
        config.api.listen = listen;
        service::check(&config.api).map_err(LibraryError::settings)?;
        let store = Arc::new(open_store(&config, folder.as_ref())?);
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(LibraryError::service)?;
        let socket = runtime.block_on(TcpListener::bind(listen)).map_err(LibraryError::service)?;
        let address = socket.local_addr().map_err(LibraryError::service)?;
        let settings = ServiceSettings {
            dedup: config.dedup.clone(),
            honour: config.export.honour.clone(),
            crawl: config.settings(),
            search: config.search.clone(),
            api: config.api,
            clock: Clock::System,
        };
        let service = Service::start(store.clone(), &settings).map_err(LibraryError::service)?;
        let (stop, stopped) = oneshot::channel();
        let serving = runtime.spawn(service::serve(socket, service, async {
            drop(stopped.await);
        }));
        Ok(Self { runtime, serving, stop, address, store })
    }

    /// Returns where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends requests under way, commits and closes the store.
    pub fn stop(self) {
        let Self { runtime, serving, stop, store, .. } = self;
        drop(stop);
        if let Err(error) = runtime.block_on(serving) {
            tracing::error!(%error, "the service has ended");
        }
        runtime.shutdown_timeout(PATIENCE);
        if !service::close(store, PATIENCE) {
            tracing::warn!("the store was left open: it is looked through when it is opened next");
        }
    }
}
