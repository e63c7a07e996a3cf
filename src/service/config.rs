//! Settings of the service.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::units::{Size, Time};
use crate::service::ingest;

/// Who may send articles in the form of the paper, in which a `GET` stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Senders {
    /// Plain clients, which name no origin, and pages of this service; no page of another origin.
    #[default]
    Plain,
    /// The same, and by `POST` alone: old browsers do not say which page has an image in it.
    Post,
    /// Everybody, as in the paper.
    Any,
}

/// How the service listens, and what a client may ask of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// URL and port to listen on. Any URL but loopback needs a token.
    pub listen: SocketAddr,
    /// File of the token that clients must send; empty for none.
    pub token_file: PathBuf,
    /// Who may send articles to `/docId/getDocId`.
    pub doc_id_senders: Senders,
    /// Name of the publisher in duplicate feeds.
    pub publisher: String,
    /// Limits on an article.
    #[serde(flatten)]
    pub article: ingest::ArticleLimits,
    /// Most bytes of a body, and of a line of a batch.
    pub body_size_max: Size,
    /// Most memory of large bodies at a time.
    pub bodies_size_max: Size,
    /// Most lines of a batch.
    pub batch_lines_max: u64,
    /// Most batches at a time.
    pub batches_max: usize,
    /// Most exports at a time.
    pub exports_max: usize,
    /// Most requests per second, of all clients; 0 for no limit.
    pub requests_per_second_max: u32,
    /// Most requests per second of one IP address; 0 for no limit.
    pub client_requests_per_second_max: u32,
    /// Most connections at a time.
    pub connections_max: usize,
    /// Most memory of large heads (of more than 4 KiB) that are still coming.
    pub heads_size_max: Size,
    /// Most of it for the heads of one IP address.
    pub client_heads_size_max: Size,
    /// Time in which the head of a request must have come, and for which a connection may idle.
    pub header_time_max: Time,
    /// Time without a byte after which a body, or an answer that nobody takes, ends.
    pub stall_time_max: Time,
    /// Time that a request may take.
    pub request_time_max: Time,
    /// Time that requests under way get to end when the service stops.
    pub stop_time_max: Time,
    /// Articles that are fingerprinted at a time; 0 for one per core.
    pub fingerprint_threads: usize,
    /// Requests that read the store at a time.
    pub readers_max: usize,
    /// Let requests start crawls into the store.
    pub crawls: bool,
    /// Most seeds of such a crawl.
    pub crawl_seeds_max: usize,
    /// Let requests remove documents that had no new copy for long.
    pub expiry: bool,
    /// Time between two looks at what the index of the search has to follow.
    pub search_update: Time,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            token_file: PathBuf::new(),
            doc_id_senders: Senders::default(),
            publisher: "uniqcrawl".to_owned(),
            article: ingest::ArticleLimits::default(),
            body_size_max: Size::from_mib(8),
            bodies_size_max: Size::from_mib(64),
            batch_lines_max: 1_000_000,
            batches_max: 16,
            exports_max: 2,
            requests_per_second_max: 0,
            client_requests_per_second_max: 10_000,
            connections_max: 12_000,
            heads_size_max: Size::from_mib(32),
            client_heads_size_max: Size::from_mib(16),
            header_time_max: Time::from_secs(10),
            stall_time_max: Time::from_secs(20),
            request_time_max: Time::from_secs(30),
            stop_time_max: Time::from_secs(15),
            fingerprint_threads: 0,
            readers_max: 16,
            crawls: false,
            expiry: false,
            crawl_seeds_max: 1_000,
            search_update: Time::from_secs(3),
        }
    }
}

impl Config {
    pub(super) fn header_time(&self) -> Duration {
        self.header_time_max.duration().max(Duration::from_millis(1))
    }

    pub(super) fn stall_time(&self) -> Duration {
        self.stall_time_max.duration().max(Duration::from_millis(1))
    }

    pub(super) fn request_time(&self) -> Duration {
        self.request_time_max.duration().max(Duration::from_millis(1))
    }

    pub(super) fn search_interval(&self) -> Duration {
        self.search_update.duration().max(Duration::from_millis(10))
    }

    pub(super) fn stop_time(&self) -> Duration {
        self.stop_time_max.duration()
    }
}
