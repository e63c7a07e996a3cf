//! Memory of heads that are still coming: of all clients together, and of each.
//!
//! A head may have 256 KiB, because an article may stand in it, and it comes before anything is
//! known of who sends it. The first bytes of each are free; what is beyond is taken from a budget,
//! and given back when the head is whole.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

/// Bytes of a head that every connection has.
const FREE_BYTES: u64 = 4 << 10;

/// What a client reads whose head finds no room.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
    content-type: application/problem+json\r\ncontent-length: 111\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"code\":\"busy\",\
    \"detail\":\"too many large heads\"}";

/// The budget of all heads.
#[derive(Debug)]
pub(super) struct Heads {
    held: Mutex<HeldHead>,
    /// Most bytes of all clients.
    most: u64,
    /// Most bytes of one client.
    most_of_client: u64,
}

#[derive(Debug, Default)]
struct HeldHead {
    all: u64,
    clients: HashMap<IpAddr, u64>,
}

impl Heads {
    pub(super) fn new(most: u64, most_of_client: u64) -> Self {
        Self { held: Mutex::default(), most, most_of_client }
    }

    fn lock(&self) -> MutexGuard<'_, HeldHead> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so many bytes for a client, if there is room.
    fn take(&self, client: IpAddr, bytes: u64) -> bool {
        let mut held = self.lock();
        let of_client = held.clients.get(&client).copied().unwrap_or(0) + bytes;
        if held.all + bytes > self.most || of_client > self.most_of_client {
            return false;
        }
        held.all += bytes;
        held.clients.insert(client, of_client);
        true
    }

    fn give(&self, client: IpAddr, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut held = self.lock();
        held.all = held.all.saturating_sub(bytes);
        if let Some(of_client) = held.clients.get_mut(&client) {
            *of_client = of_client.saturating_sub(bytes);
            if *of_client == 0 {
                held.clients.remove(&client);
            }
        }
    }
}

/// The head that a connection is reading, if it is reading one.
#[derive(Debug)]
pub(super) struct Head {
    heads: Arc<Heads>,
    client: IpAddr,
    come: Mutex<Come>,
}

#[derive(Debug, Default)]
struct Come {
    /// The head is whole: what comes is a body.
    whole: bool,
    /// Its body was read to the end, and the answer has begun.
    read: bool,
    answered: bool,
    bytes: u64,
    taken: u64,
}

impl Head {
    pub(super) fn new(heads: Arc<Heads>, client: IpAddr) -> Arc<Self> {
        Arc::new(Self { heads, client, come: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Come> {
        self.come.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that more has come. Returns false if there is no room for it.
    fn more(&self, bytes: u64) -> bool {
        let mut come = self.lock();
        if come.whole {
            return true;
        }
        come.bytes += bytes;
        let wanted = come.bytes.saturating_sub(FREE_BYTES).saturating_sub(come.taken);
        if wanted > 0 && !self.heads.take(self.client, wanted) {
            return false;
        }
        come.taken += wanted;
        true
    }

    /// The head is whole.
    pub(super) fn end(&self) {
        let come = std::mem::replace(&mut *self.lock(), Come { whole: true, ..Come::default() });
        self.heads.give(self.client, come.taken);
    }

    /// The answer has begun. The next head comes after the rest of the body.
    pub(super) fn answered(&self) {
        self.lock().answered = true;
        self.next();
    }

    fn body_read(&self) {
        self.lock().read = true;
        self.next();
    }

    fn next(&self) {
        let mut come = self.lock();
        come.whole &= !(come.read && come.answered);
    }
}

/// A body whose end is noted.
pub(super) struct Watched {
    body: Incoming,
    head: Arc<Head>,
}

impl Watched {
    pub(super) fn new(body: Incoming, head: &Arc<Head>) -> Self {
        if body.is_end_stream() {
            head.body_read();
        }
        Self { body, head: head.clone() }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None)) {
            self.head.body_read();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        self.end();
    }
}

/// A connection whose heads are counted.
pub(super) struct Counted {
    pub stream: Pin<Box<TimeoutStream<TcpStream>>>,
    pub head: Arc<Head>,
    /// Counts connections that end here.
    pub refused: Counter,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let read = self.stream.as_mut().poll_read(cx, to);
        let bytes = (to.filled().len() - before) as u64;
        if bytes > 0 && !self.head.more(bytes) {
            self.refused.inc();
            let _ = self.stream.get_ref().try_write(FULL);
            return Poll::Ready(Err(io::Error::other("no room for its head")));
        }
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
