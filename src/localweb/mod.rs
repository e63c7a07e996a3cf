//! A small web on loopback, for tests and for `crawl demo`: hosts as tables of pages, the times of
//! all requests recorded.
//!
//! The server speaks HTTP/1.1 by hand, because tests need answers that a correct library refuses
//! to send: lying lengths, bodies without end, one byte a second, broken compression.

pub mod demo;
mod record;
mod serve;
mod site;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use record::RequestLog;
pub use record::SeenRequest;
pub use site::{Body, Handler, Page, Site};

/// A running web. It stops when it is dropped.
#[derive(Debug)]
pub struct LocalWeb {
    addresses: Vec<SocketAddr>,
    record: RequestLog,
    tasks: JoinSet<()>,
}

impl LocalWeb {
    /// Binds `hosts` hosts, each to a loopback address of its own (`127.77.0.1` and following) and
    /// a port that the system chooses, and serves what `sites` makes of their base addresses, such
    /// as `http://127.77.0.1:40001`.
    ///
    /// # Errors
    ///
    /// If an address cannot be bound.
    pub async fn start(
        hosts: usize,
        sites: impl FnOnce(&[String]) -> Vec<Site>,
    ) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for number in 0..hosts {
            let [high, low] = u16::try_from(number + 1).map_err(io::Error::other)?.to_be_bytes();
            let ip = IpAddr::V4(Ipv4Addr::new(127, 77, high, low));
            listeners.push(TcpListener::bind((ip, 0)).await?);
        }
        Self::serve(listeners, sites)
    }

    /// Serves one site at a loopback address and port.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound, or is no loopback address.
    pub async fn start_at(address: SocketAddr, site: Site) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            return Err(io::Error::other(format!("{address} is not on loopback")));
        }
        Self::serve(vec![TcpListener::bind(address).await?], |_| vec![site])
    }

    fn serve(
        listeners: Vec<TcpListener>,
        sites: impl FnOnce(&[String]) -> Vec<Site>,
    ) -> io::Result<Self> {
        let addresses: io::Result<Vec<_>> = listeners.iter().map(TcpListener::local_addr).collect();
        let addresses = addresses?;
        let bases: Vec<String> =
            addresses.iter().map(|address| format!("http://{address}")).collect();
        let sites = sites(&bases);
        assert_eq!(sites.len(), listeners.len(), "one site for each host");
        let record = RequestLog::default();
        let mut tasks = JoinSet::new();
        for (host, (listener, site)) in listeners.into_iter().zip(sites).enumerate() {
            tasks.spawn(serve::listen(listener, Arc::new(site), host, record.clone()));
        }
        Ok(Self { addresses, record, tasks })
    }

    /// Returns the address of the front page of a host.
    #[must_use]
    pub fn url(&self, host: usize) -> String {
        format!("http://{}/", self.addresses[host])
    }

    /// Returns the number of hosts.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.addresses.len()
    }

    /// Returns all requests so far, in the order in which they came.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.record.requests(|_| true)
    }

    /// Returns all requests to one host so far, in the order in which they came.
    #[must_use]
    pub fn requests_of(&self, host: usize) -> Vec<SeenRequest> {
        self.record.requests(|request| request.host == host)
    }

    /// Forgets all requests so far.
    pub fn forget(&self) {
        self.record.forget();
    }

    /// Records no further requests, for a server that is to be quick or to run for long.
    pub fn stop_recording(&self) {
        self.record.stop();
    }

    /// Returns how often each path of a host was asked for, robots.txt among them.
    #[must_use]
    pub fn targets(&self, host: usize) -> BTreeMap<String, usize> {
        self.record.targets(host)
    }

    /// Returns the shortest time between the end of an answer of a host and the start of its next
    /// request; zero if requests overlapped; none if there were fewer than two.
    #[must_use]
    pub fn least_gap(&self, host: usize) -> Option<Duration> {
        record::least_gap(self.requests_of(host))
    }

    /// Returns how many requests to a host were open at the same time at most; zero if it was never
    /// asked.
    #[must_use]
    pub fn most_at_once(&self, host: usize) -> usize {
        record::most_at_once(&self.requests_of(host))
    }

    /// Stops the web and waits until its ports are free.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
