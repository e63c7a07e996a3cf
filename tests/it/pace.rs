//! The pace of a frontier under any course of events: leases, answers of every kind, crashes,
//! clean ends and clocks that are set back in between, on a clock that the test moves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::frontier::{
    self, Frontier, Lease, Offer, Purpose, QUEUE, Rank, Reason, RobotsAnswer, Settlement, Told,
    Visited,
};
use uniqcrawl::store::{Batch, View as _};
use uniqcrawl::urls::{PageUrl, Scope, ScopeKind};

use crate::support::Crawled;

/// Hosts with the last part of their IP address: `a` and `b` are of one domain, `a` and `c` of one
/// address.
const HOSTS: [(&str, u8); 4] =
    [("a.one.test", 1), ("b.one.test", 2), ("c.two.test", 1), ("d.three.test", 3)];

const PAGES: usize = 6;

/// What may happen next.
#[derive(Debug, Clone)]
enum Step {
    /// Time passes.
    Wait(u64),
    /// Whatever is due is leased.
    Lease,
    /// A request that is under way ends so.
    End(usize, Answer),
    /// The process ends without warning.
    Crash,
    /// It ends well, if nothing is under way.
    Stop,
    /// It ends without warning, and the clock, if it is ahead, is set back before the next begins.
    SetBack(u64),
}

#[derive(Debug, Clone)]
enum Answer {
    Fine { took_ms: u64 },
    Delay { seconds: u64 },
    Busy { seconds: Option<u64> },
    Failed,
}

fn step() -> impl Strategy<Value = Step> {
    let answer = prop_oneof![
        4 => (0..900_u64).prop_map(|took_ms| Answer::Fine { took_ms }),
        1 => (0..4_u64).prop_map(|seconds| Answer::Delay { seconds }),
        1 => prop::option::of(0..40_u64).prop_map(|seconds| Answer::Busy { seconds }),
        1 => Just(Answer::Failed),
    ];
    prop_oneof![
        6 => (0..900_u64).prop_map(Step::Wait),
        1 => (0..90_000_u64).prop_map(Step::Wait),
        6 => Just(Step::Lease),
        6 => (0..8_usize, answer).prop_map(|(request, answer)| Step::End(request, answer)),
        1 => Just(Step::Crash),
        1 => Just(Step::Stop),
        2 => (60_000..9_000_000_u64).prop_map(Step::SetBack),
    ]
}

/// What must not be contacted before a moment, by the names of hosts, addresses and domains.
#[derive(Default)]
struct Model {
    free: BTreeMap<String, Timestamp>,
    under_way: Vec<Lease>,
    /// Delays that robots.txt files ask for.
    asked: BTreeMap<u32, u64>,
    visited: BTreeSet<String>,
    /// What the clock of the frontier is ahead of the time.
    ahead: Duration,
}

/// The host of a lease, its IP address and its registrable domain.
fn names(lease: &Lease) -> [String; 3] {
    let host = lease.url.url().host_str().unwrap();
    let ip = HOSTS.iter().find(|(name, _)| *name == host).unwrap().1;
    [host.to_owned(), format!("127.0.0.{ip}"), host[2..].to_owned()]
}

impl Model {
    fn begin(&mut self, lease: Lease, clock: Timestamp) {
        let now = clock.before(self.ahead);
        if lease.purpose == Purpose::Lookup {
            return self.under_way.push(lease);
        }
        for name in names(&lease) {
            let free = self.free.get(&name).copied().unwrap_or_default();
            assert!(now >= free, "{name} is contacted {:?} too soon", now.until(free));
            let requests = self.under_way.iter().filter(|other| other.purpose != Purpose::Lookup);
            let others = requests.filter(|other| names(other).contains(&name)).count();
            assert_eq!(others, 0, "{name} is asked twice at a time");
        }
        self.under_way.push(lease);
    }

    fn end(&mut self, lease: &Lease, clock: Timestamp, wait: Duration) {
        let now = clock.before(self.ahead);
        let config = frontier::Config::default();
        let asked = self.asked.get(&lease.host).copied().unwrap_or(0);
        let delay = Duration::from_millis(config.delay.millis().max(asked)).max(wait);
        let group = config.address_delay.duration();
        for (name, wait) in names(lease).into_iter().zip([delay, group, group]) {
            let free = self.free.entry(name).or_default();
            *free = (*free).max(now.after(wait));
        }
    }
}

/// A frontier in a store, with the model that it must agree with.
struct Course {
    crawled: Crawled,
    frontier: Option<Frontier>,
    /// What its clock shows.
    now: Timestamp,
    model: Model,
}

impl Course {
    fn new(ahead_ms: u64) -> Self {
        let ahead = Duration::from_millis(ahead_ms);
        let now = Timestamp(1_800_000_000_000).after(ahead);
        let model = Model { ahead, ..Model::default() };
        let mut new = Self { crawled: Crawled::new(), frontier: None, now, model };
        new.write(|frontier, tables, now, _| {
            for (name, _) in HOSTS {
                for page in 0..PAGES {
                    let url = PageUrl::parse(&format!("http://{name}/{page}")).unwrap();
                    let (depth, rank, hops) = (0, Rank::Seed, 0);
                    let offer = Offer { url: &url, depth, rank, hops, from: None, nofollow: false };
                    frontier.offer(tables, &offer, now).unwrap();
                }
            }
        });
        new
    }

    /// Works in one transaction, with a frontier that is opened if there is none.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Frontier, &mut Batch, Timestamp, &mut Model) -> T,
    ) -> T {
        let mut batch = self.crawled.store.begin().unwrap();
        let mut frontier = self.frontier.take().unwrap_or_else(|| {
            let scope = Scope::new(ScopeKind::Any, []);
            let config = frontier::Config::default();
            Frontier::open(&mut batch, config, scope, self.now).unwrap()
        });
        let done = work(&mut frontier, &mut batch, self.now, &mut self.model);
        frontier.flush(&mut batch).unwrap();
        self.frontier = Some(frontier);
        batch.commit().unwrap();
        done
    }

    fn lease(&mut self) {
        self.write(|frontier, tables, now, model| {
            while let Some(lease) = frontier.lease(tables, now).unwrap() {
                model.begin(lease, now);
            }
        });
    }

    fn settle(&mut self, number: usize, answer: &Answer) {
        if self.model.under_way.is_empty() {
            return;
        }
        let lease = self.model.under_way.remove(number % self.model.under_way.len());
        self.write(|frontier, tables, now, model| {
            let mut told = Told::default();
            let mut wait = Duration::ZERO;
            let is_robots = matches!(lease.purpose, Purpose::Robots { .. });
            let settlement = match *answer {
                _ if lease.purpose == Purpose::Lookup => {
                    let ip: IpAddr = names(&lease)[1].parse().unwrap();
                    Settlement::LookedUp(ip)
                }
                Answer::Delay { seconds } if is_robots => {
                    model.asked.insert(lease.host, seconds * 1_000);
                    let rules = format!("User-agent: *\nCrawl-delay: {seconds}\n");
                    Settlement::Robots(RobotsAnswer::Rules(rules.into_bytes(), None))
                }
                Answer::Busy { seconds: Some(seconds) } => {
                    wait = Duration::from_secs(seconds);
                    Settlement::Busy(Some(wait))
                }
                Answer::Busy { seconds: None } => {
                    // A minute, less the tenth by which waits differ.
                    wait = Duration::from_secs(54);
                    Settlement::Busy(None)
                }
                Answer::Failed => Settlement::Failed { reason: Reason::Timeout, again: true },
                Answer::Fine { took_ms } => {
                    told.took = Duration::from_millis(took_ms);
                    wait = told.took * frontier::Config::default().response_factor;
                    if is_robots {
                        model.asked.remove(&lease.host);
                        Settlement::Robots(RobotsAnswer::None)
                    } else {
                        Settlement::Refused(Reason::NotAPage)
                    }
                }
                Answer::Delay { .. } => Settlement::Refused(Reason::NotAPage),
            };
            if lease.purpose == Purpose::Page && matches!(settlement, Settlement::Refused(_)) {
                let is_first = model.visited.insert(lease.url.to_string());
                assert!(is_first, "{} is visited twice", lease.url);
            }
            told.finished = now;
            let visited = Visited::read(tables, &lease, told).unwrap();
            frontier.settle(tables, visited, settlement).unwrap();
            if lease.purpose != Purpose::Lookup {
                model.end(&lease, now, wait);
            }
        });
    }

    /// Requests that were under way end with the process; the clock is set back for the next.
    fn crash(&mut self, back: Duration) {
        for lease in std::mem::take(&mut self.model.under_way) {
            if lease.purpose != Purpose::Lookup {
                self.model.end(&lease, self.now, Duration::ZERO);
            }
        }
        self.frontier = None;
        let back = back.min(self.model.ahead);
        (self.model.ahead, self.now) =
            (self.model.ahead.saturating_sub(back), self.now.before(back));
        self.write(|_, _, _, _| {});
    }

    fn stop(&mut self) {
        if self.model.under_way.is_empty() {
            self.write(|frontier, tables, _, _| frontier.close(tables).unwrap());
            self.frontier = None;
            self.write(|_, _, _, _| {});
        }
    }

    fn next_due(&mut self) -> Option<Timestamp> {
        self.write(|frontier, tables, _, _| frontier.next_due(tables).unwrap())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_host_address_or_domain_is_ever_contacted_too_soon(
        ahead_ms in 0..200_000_000_u64,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut course = Course::new(ahead_ms);
        for step in steps {
            match step {
                Step::Wait(ms) => course.now = course.now.after(Duration::from_millis(ms)),
                Step::Lease => course.lease(),
                Step::End(number, answer) => course.settle(number, &answer),
                Step::Crash => course.crash(Duration::ZERO),
                Step::SetBack(ms) => course.crash(Duration::from_millis(ms)),
                Step::Stop => course.stop(),
            }
        }
        // And each page has its turn in the end, or was given up for its failures.
        let mut quiet = false;
        for _ in 0..2_000 {
            course.lease();
            if !course.model.under_way.is_empty() {
                course.settle(0, &Answer::Fine { took_ms: 0 });
            } else if let Some(due) = course.next_due() {
                prop_assert!(due > course.now, "what is due is leased");
                course.now = due;
            } else {
                quiet = true;
                break;
            }
        }
        prop_assert!(quiet, "something waits for ever");
        course.crawled.assert_clean();
        let snapshot = course.crawled.store.snapshot().unwrap();
        let waiting = snapshot.len(QUEUE).unwrap();
        let visited = course.model.visited.len();
        prop_assert_eq!(waiting, 0);
        prop_assert!(visited > HOSTS.len() * PAGES / 2, "{} pages", visited);
    }
}
