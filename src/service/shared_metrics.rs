//! What Prometheus reads of a cluster: how much it has, and what its workers do.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::corpus::shared::SharedStats;
use crate::crawl::{Crowd, WorkerStatus};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWorker {
    worker: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfNode {
    node: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKey {
    key: String,
}

/// A number of each worker.
type Number = (&'static str, &'static str, fn(&WorkerStatus) -> u64);

/// What is told of each worker. Counts are those since it began.
const NUMBERS: [Number; 12] = [
    ("shards", "Shards that a worker holds", |one| one.shards),
    ("requests", "Requests that it sent", |one| one.counts.requests),
    ("pages", "Pages that it read", |one| one.counts.pages),
    ("new_documents", "Documents that were new in their shard", |one| one.counts.new),
    ("duplicates", "Duplicates in their shard", |one| one.counts.duplicates),
    ("failed_requests", "Requests that got no answer", |one| one.counts.failed),
    ("received_bytes", "Bytes of bodies on the wire", |one| one.counts.bytes),
    ("queued", "URLs that wait in its shards", |one| one.counts.queued),
    ("in_flight", "Its requests under way", |one| one.counts.in_flight),
    ("links_sent", "Links that it sent to other shards", |one| one.counts.links_out),
    ("links_received", "Links from other shards, and seeds", |one| one.counts.links_in),
    ("links_waiting", "Links that wait to be sent", |one| one.counts.links_waiting),
];

fn value(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn gauge(all: &mut Registry, name: &str, help: &str, number: u64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value(number));
    all.register(name, help, gauge);
}

/// Makes the metrics of one look at a cluster. Each is a gauge: it goes when its worker does.
pub(super) fn registry(stats: &SharedStats, crowd: &Crowd) -> Registry {
    let all = &mut Registry::default();
    gauge(all, "uniqcrawl_documents", "Documents in the cluster", stats.documents);
    if let Some(copies) = stats.copies {
        gauge(all, "uniqcrawl_copies", "Copies in the cluster", copies);
    }
    let duplicates = Family::<OfKey, Gauge>::default();
    for (key, count) in &stats.duplicates {
        duplicates.get_or_create(&OfKey { key: key.clone() }).set(value(*count));
    }
    let help = "Copies that were found, by the key that found them";
    all.register("uniqcrawl_duplicates", help, duplicates);
    gauge(all, "uniqcrawl_second_looks_due", "Documents that wait for a second look", stats.due);
    let totals = &crowd.totals;
    gauge(all, "uniqcrawl_workers", "Workers that are alive", totals.workers);
    gauge(all, "uniqcrawl_shards", "Shards of the crawl", totals.shards);
    gauge(all, "uniqcrawl_shards_held", "Shards that a worker holds", totals.shards_held);
    gauge(all, "uniqcrawl_shards_idle", "Shards that have nothing to do", totals.shards_idle);
    let help = "Links that wait in the streams of all shards";
    gauge(all, "uniqcrawl_links_in_streams", help, totals.links_in_streams);
    let nodes = [
        ("uniqcrawl_node_used_bytes", "Memory that a primary uses"),
        ("uniqcrawl_node_max_bytes", "Memory that a primary may use; 0 for no bound"),
    ];
    for (at, (name, help)) in nodes.into_iter().enumerate() {
        let memory = Family::<OfNode, Gauge>::default();
        for node in &stats.memory {
            let bytes = [node.used, node.most][at];
            memory.get_or_create(&OfNode { node: node.node.clone() }).set(value(bytes));
        }
        all.register(name, help, memory);
    }
    for (name, help, of) in NUMBERS {
        let family = Family::<OfWorker, Gauge>::default();
        for one in &crowd.workers {
            let labels = OfWorker { worker: one.worker.clone(), host: one.host.clone() };
            family.get_or_create(&labels).set(value(of(one)));
        }
        all.register(format!("uniqcrawl_worker_{name}"), help, family);
    }
    std::mem::take(all)
}
