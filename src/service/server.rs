//! The listener: connections, their limits, and the end.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use super::guard::Peer;
use super::heads::{Counted, Head, Heads, Watched};
use super::{Service, routes};
use crate::base::system;

/// Most bytes of the head of a request: an article may stand in it.
const HEAD_BYTES_MAX: usize = 256 << 10;

/// Open files that connections leave to crawls of the same process, if there may be any: at most
/// half of all.
const CRAWL_FILES: usize = 1_024;

/// Rest after an accept that failed: mostly no file descriptor is left.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What a client reads that finds no room.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
    content-type: application/problem+json\r\ncontent-length: 111\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"code\":\"busy\",\
    \"detail\":\"too many connections\"}";

/// Answers requests until `stop`; then those under way are finished, as long as that is bearable.
pub async fn serve(listener: TcpListener, service: Arc<Service>, stop: impl Future<Output = ()>) {
    let most = connections_max(&service);
    let connections = Arc::new(Semaphore::new(most));
    let config = &service.config;
    let (all, of_client) = (config.heads_size_max, config.client_heads_size_max);
    let heads = Arc::new(Heads::new(all.bytes() as u64, of_client.bytes() as u64));
    let router = TowerToHyperService::new(routes::router(service.clone()));
    let (tell, told) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match connections.clone().try_acquire_owned() {
                Ok(permit) => {
                    let one = Connection {
                        peer: Peer(peer.ip()),
                        head: Head::new(heads.clone(), peer.ip()),
                        router: router.clone(),
                        service: service.clone(),
                        told: told.clone(),
                        _permit: permit,
                    };
                    tokio::spawn(one.run(stream));
                }
                Err(_) => drop(stream.try_write(FULL)),
            },
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be taken");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
    drop(listener);
    service.stopping.store(true, Ordering::Relaxed);
    service.crawls.close();
    drop((tell, router));
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let ended = tokio::time::timeout(service.config.stop_time(), connections.acquire_many(all));
    if ended.await.is_err() {
        tracing::warn!("requests under way were cut off");
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

struct Connection {
    peer: Peer,
    head: Arc<Head>,
    router: TowerToHyperService<Router>,
    service: Arc<Service>,
    /// Changes when the service stops.
    told: watch::Receiver<()>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        let Self { peer, head, router, service, mut told, _permit } = self;
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(service.config.stall_time()));
        let header_time = service.config.header_time();
        service.metrics.connections.inc();
        let refused = service.metrics.heads_refused.clone();
        let stream = Counted { stream: Box::pin(stream), head: head.clone(), refused };
        let answer = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer);
            head.end();
            let request = request.map(|body| Watched::new(body, &head));
            let (answer, head) = (router.call(request), head.clone());
            async move {
                let answer = answer.await;
                head.answered();
                answer
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_time)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), answer);
        let mut connection = pin!(connection);
        let mut ending = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, peer = %peer.0, "a connection ended");
                    }
                    break;
                }
                _ = told.changed(), if !ending => {
                    ending = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
        service.metrics.connections.dec();
    }
}

/// Most connections that there are file descriptors for, after asking for all we may have.
fn connections_max(service: &Service) -> usize {
    let wanted = service.config.connections_max.clamp(1, 1 << 20);
    let Some(room) = system::raise_open_files() else { return wanted };
    let room = room - if service.may_crawl() { CRAWL_FILES.min(room / 2) } else { 0 };
    if room < wanted {
        tracing::warn!(room, wanted, "fewer connections than wanted: open files are limited");
    }
    wanted.min(room)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_answer_to_one_too_many_is_as_long_as_it_says() {
        let text = std::str::from_utf8(super::FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
    }
}
