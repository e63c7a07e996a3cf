//! Workers whose cluster is away for a while, loses a primary, or is full.

use std::thread::sleep;
use std::time::{Duration, Instant};

use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;

use crate::cluster::Nodes;
use crate::support::{Clusters, Web};
use crate::worker::{
    Crowd, DELAY, alone, assert_hosts_rest, assert_polite, settings, wait_for_requests, web,
    without_turns,
};

const LEASE: Duration = Duration::from_secs(2);
/// Longest time until what is told to stop has done so, whose disk may be busy, and what was sent has
/// been read.
const LATE: Duration = Duration::from_secs(1);

/// What a crawl of two workers finds through which something happens.
struct Through {
    nodes: Nodes,
    web: Web,
    config: Config,
    expected: Clusters,
}

impl Through {
    fn new(own: u32, wait_max: Duration) -> Self {
        let (nodes, web) = (Nodes::start(own, &[("NODE_TIMEOUT_MS", "1000")]), web());
        let mut config = settings(&web);
        config.cluster.lease = Time::from_millis(LEASE.as_millis() as u64);
        config.cluster.wait_max = Time::from_millis(wait_max.as_millis() as u64);
        let expected = alone(&web, &config);
        Self { nodes, web, config, expected }
    }

    /// Two workers that are in the middle of their crawl.
    fn begin(&self, prefix: &str) -> Crowd {
        self.web.web.forget();
        let mut crowd = Crowd::on(&self.nodes, prefix, &self.web);
        (0..2).for_each(|_| crowd.start(&self.config));
        wait_for_requests(&self.web, 30);
        crowd
    }

    fn all(&self, command: &str) {
        (0..6).for_each(|node| self.nodes.node(command, node));
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Nodes) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.nodes) {
            assert!(begun.elapsed() < Duration::from_mins(3), "{what}");
            sleep(Duration::from_millis(100));
        }
    }

    /// Requests that were begun in a time.
    fn requests(&self, from: Instant, until: Instant) -> usize {
        let all = self.web.web.requests();
        all.iter().filter(|request| request.started > from && request.started < until).count()
    }

    #[track_caller]
    fn ends_well(&self, mut crowd: Crowd) {
        crowd.wait_all();
        self.wait("the cluster is whole", Nodes::is_whole);
        assert_eq!(crowd.clusters(&self.config), self.expected);
        assert_polite(&self.web);
    }
}

#[test]
fn workers_wait_for_a_cluster_that_is_away_and_send_nothing_beyond_their_leases() {
    let through = Through::new(4, Duration::from_mins(1));
    let crowd = through.begin("away");
    through.all("pause");
    let away = Instant::now();
    sleep(LEASE * 2 + LATE);
    let back = Instant::now();
    through.all("resume");
    through.ends_well(crowd);
    assert_eq!(through.requests(away + LEASE + LATE, back), 0);
    // Shards that are taken anew rest for a delay first.
    assert_eq!(through.requests(back, back + DELAY), 0);

    let crowd = through.begin("failover");
    let node = (0..6).find(|node| through.nodes.is_primary(*node)).unwrap();
    through.nodes.node("kill", node);
    through.wait("a replica takes over", |nodes| {
        (0..6).filter(|other| *other != node).filter(|other| nodes.is_primary(*other)).count() == 3
    });
    through.nodes.node("revive", node);
    through.ends_well(crowd);

    let crowd = through.begin("full");
    let limit = |bytes: &str| {
        for node in 0..6 {
            let mut set = redis::cmd("CONFIG");
            set.arg("SET").arg("maxmemory").arg(bytes);
            set.exec(&mut through.nodes.connection(node)).unwrap();
        }
    };
    limit("1mb");
    sleep(LEASE * 2);
    limit("512mb");
    through.ends_well(crowd);
}

#[test]
fn a_worker_that_cannot_ask_sends_nothing_beyond_its_leases() {
    let mut through = Through::new(9, Duration::from_mins(1));
    // Much is left when the leases end, and nothing else keeps a worker from it.
    through.config.frontier.delay = Time::from_millis(DELAY.as_millis() as u64 * 6);
    without_turns(&mut through.config);
    let mut crowd = through.begin("leases");
    through.all("pause");
    let away = Instant::now();
    sleep(LEASE * 2 + LATE);
    let back = Instant::now();
    through.all("resume");
    crowd.wait_all();
    through.wait("the cluster is whole", Nodes::is_whole);
    assert_eq!(crowd.clusters(&through.config), through.expected);
    assert_hosts_rest(&through.web);
    assert_eq!(through.requests(away + LEASE + LATE, back), 0);
    assert_eq!(through.requests(back, back + DELAY), 0);
}

#[test]
fn workers_end_when_the_cluster_stays_away_and_go_on_when_they_are_started_again() {
    // On a busy machine a cluster that has just begun may not answer for seconds.
    let through = Through::new(5, Duration::from_secs(10));
    let mut crowd = through.begin("gone");
    through.all("kill");
    let away = Instant::now();
    for number in 0..2 {
        assert_eq!(crowd.wait(number), Some(1), "{}", crowd.log(number));
        let log = crowd.log(number);
        let said = log.lines().last().unwrap();
        assert!(said.contains("no node of the cluster answers"), "{said}");
        assert!(said.contains("start the cluster") && said.contains("start it anew"), "{said}");
    }
    assert_eq!(through.requests(away + LEASE + LATE, Instant::now()), 0);
    through.all("revive");
    through.wait("the cluster is whole", Nodes::is_whole);
    (0..2).for_each(|_| crowd.start(&through.config));
    through.ends_well(crowd);
}
