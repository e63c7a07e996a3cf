//! A thousand workers in simulated time: who holds which shard, what the cluster is asked, and how
//! long links wait, while workers die, sleep, join and leave.
//!
//! ```text
//! cargo bench --bench simulate -- [WORKERS [SHARDS [MINUTES]]]        (1000 1024 120)
//! ```
//!
//! Leases, their times and the choice of a worker for a shard are those of the program; what a shard
//! finds and takes is drawn. Exits with 1 if a shard is starved, two workers send for one shard at a
//! time, or a key of the cluster is asked more than one node can answer.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a bench")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uniqcrawl::cluster::owners;
use uniqcrawl::text::sketch::mix;

/// Seconds: how long a lease lasts, how often it is renewed, and how long before its end its holder
/// sends nothing more.
const LEASE: u64 = 15;
const RENEW: u64 = 5;
const MARGIN: u64 = 2;

/// Pages a second of a worker, and links of a page to other shards that were not sent lately.
const PAGES: u64 = 200;
const LINKS: u64 = 2;

/// Links that a shard takes in a second, at most: what one committer was measured to offer.
const TAKEN: u64 = 15_000;

/// Links that a stream holds before senders keep theirs.
const STREAM: u64 = 1_000_000;

/// Domains of the web, of which the n-th is linked to in proportion to `1 / n`.
const DOMAINS: u64 = 10_000_000;

/// Commands a second that one node answers, of one key at most half of them.
const NODE: u64 = 100_000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Tells yes once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times.max(1))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Up,
    /// Until this second.
    Dead(u64),
    Asleep(u64),
    Gone,
}

struct Worker {
    life: Life,
    /// Shards that it believes to hold, with the fence and the second of the last renewal.
    held: BTreeMap<u32, (u64, u64)>,
}

#[derive(Default, Clone)]
struct Shard {
    holder: Option<u32>,
    until: u64,
    fence: u64,
    /// Links in its stream, and such that wait in the outboxes of others.
    stream: u64,
    waiting: u64,
    /// Age of what is in the stream: second and number.
    ages: VecDeque<(u64, u64)>,
    /// Seconds in a row in which nobody sent for it, now and at most.
    row: u64,
    longest: u64,
    /// Seconds in which somebody sent for it.
    served: u64,
}

/// Commands by key, the most in one second.
#[derive(Default)]
struct Asked {
    total: u64,
    second: BTreeMap<&'static str, u64>,
    peak: BTreeMap<&'static str, u64>,
}

impl Asked {
    /// Commands of one key in this second.
    fn of(&mut self, key: &'static str, commands: u64) {
        self.total += commands;
        let most = self.second.entry(key).or_default();
        *most = (*most).max(commands);
    }

    fn end_second(&mut self) {
        for (key, commands) in std::mem::take(&mut self.second) {
            let peak = self.peak.entry(key).or_default();
            *peak = (*peak).max(commands);
        }
    }
}

struct World {
    now: u64,
    random: Random,
    workers: Vec<Worker>,
    shards: Vec<Shard>,
    /// Workers that have told that they live, with the second until which that counts.
    members: BTreeMap<u32, u64>,
    /// Sums of the shares of all links that lead to each shard.
    shares: Vec<f64>,
    asked: Asked,
    tally: Tally,
}

/// What is told in the end.
#[derive(Default)]
struct Tally {
    /// Seconds in which two workers would have sent for one shard.
    doubled: u64,
    /// Leases that began.
    taken: u64,
    /// Links that were sent, and seconds for which those that were taken had waited, in all.
    links: u64,
    received: u64,
    waited: u64,
}

impl World {
    fn new(workers: u32, shards: u32) -> Self {
        let worker = || Worker { life: Life::Up, held: BTreeMap::new() };
        Self {
            now: 1_000,
            random: Random(7),
            workers: (0..workers).map(|_| worker()).collect(),
            shards: vec![Shard::default(); shards as usize],
            members: BTreeMap::new(),
            shares: shares(shards as usize),
            asked: Asked::default(),
            tally: Tally::default(),
        }
    }

    /// Each worker dies once in 20 hours, and sleeps for a minute as often. A tenth of them joins
    /// at a third of the time and leaves at two thirds.
    fn fates(&mut self, joined: bool) {
        let (now, count) = (self.now, self.workers.len());
        for (at, worker) in self.workers.iter_mut().enumerate() {
            let is_guest = at % 10 == 9;
            worker.life = match worker.life {
                Life::Up if is_guest && !joined => {
                    for (shard, _) in std::mem::take(&mut worker.held) {
                        self.shards[shard as usize].until = 0;
                    }
                    self.members.remove(&(at as u32));
                    Life::Gone
                }
                Life::Gone if !is_guest || joined => Life::Up,
                Life::Up if self.random.once_in(72_000) => {
                    worker.held.clear();
                    Life::Dead(now + 120)
                }
                Life::Up if self.random.once_in(72_000) => Life::Asleep(now + 60),
                Life::Dead(until) | Life::Asleep(until) if until <= now => Life::Up,
                life => life,
            };
        }
        self.asked.of("members", (count as u64).div_ceil(RENEW));
    }

    /// A worker renews its leases, lets go of what others shall have, and takes what is free.
    fn tend(&mut self, at: u32, own: &BTreeSet<u32>) {
        let now = self.now;
        self.members.insert(at, now + LEASE);
        let worker = &mut self.workers[at as usize];
        worker.held.retain(|shard, (fence, renewed)| {
            let row = &mut self.shards[*shard as usize];
            let is_held = row.holder == Some(at) && row.fence == *fence && row.until > now;
            let stays = is_held && own.contains(shard);
            if is_held {
                row.until = if stays { now + LEASE } else { 0 };
                *renewed = now;
            }
            stays
        });
        for shard in own {
            let row = &mut self.shards[*shard as usize];
            if !worker.held.contains_key(shard) && (row.until <= now || row.holder == Some(at)) {
                row.fence = (row.fence + 1).max(now * 1_000);
                (row.holder, row.until) = (Some(at), now + LEASE);
                worker.held.insert(*shard, (row.fence, now));
                self.tally.taken += 1;
            }
        }
    }

    /// What is sent and taken in a second.
    fn flow(&mut self) {
        let now = self.now;
        let mut senders = vec![0_u64; self.shards.len()];
        for worker in self.workers.iter().filter(|worker| worker.life == Life::Up) {
            for (shard, (_, renewed)) in &worker.held {
                // All that a worker knows is its own clock, also when it has just woken up.
                if renewed + LEASE > now + MARGIN {
                    senders[*shard as usize] += 1;
                }
            }
        }
        let active: u64 = senders.iter().filter(|held| **held > 0).count() as u64;
        let sent =
            self.workers.iter().filter(|one| one.life == Life::Up).count() as u64 * PAGES * LINKS;
        self.tally.links += sent;
        let mut most = 0;
        for (shard, row) in self.shards.iter_mut().enumerate() {
            let share = self.shares[shard];
            let came = drawn(sent as f64 * share, &mut self.random);
            row.waiting += came;
            let room = STREAM.saturating_sub(row.stream).min(row.waiting);
            row.waiting -= room;
            row.stream += room;
            if room > 0 {
                row.ages.push_back((now, room));
            }
            // Each shard sends once a second at most to another one, whatever has come for it.
            let commands = room.min(active);
            if senders[shard] == 1 {
                row.served += 1;
                row.row = 0;
                let mut left = TAKEN.min(row.stream);
                row.stream -= left;
                self.tally.received += left;
                while left > 0 {
                    let Some((second, links)) = row.ages.front_mut() else { break };
                    let some = left.min(*links);
                    self.tally.waited += some * (now - *second);
                    *links -= some;
                    left -= some;
                    if *links == 0 {
                        row.ages.pop_front();
                    }
                }
            } else {
                self.tally.doubled += u64::from(senders[shard] > 1);
                row.row += 1;
                row.longest = row.longest.max(row.row);
            }
            most = most.max(commands + 3);
            self.asked.total += commands + 3;
        }
        self.asked.of("stream and lease of a shard", most);
    }
}

/// A whole number that is `mean` on average.
fn drawn(mean: f64, random: &mut Random) -> u64 {
    const PARTS: f64 = 1_048_576.0;
    #[allow(clippy::cast_sign_loss, reason = "shares are never negative")]
    let parts = (mean * PARTS) as u64;
    (parts + (random.next() >> 44)) >> 20
}

/// The share of all links that leads to each shard: a domain is linked to in proportion to `1 / n`.
fn shares(shards: usize) -> Vec<f64> {
    let mut of = vec![0.0; shards];
    for domain in 1..=DOMAINS {
        of[(mix(domain) % shards as u64) as usize] += 1.0 / domain as f64;
    }
    let all: f64 = of.iter().sum();
    for share in &mut of {
        *share /= all;
    }
    of
}

/// Says what came of it. Returns whether all goals are met.
fn tell(world: &World, seconds: u64) -> bool {
    let tally = &world.tally;
    let shards = world.shards.len() as u64;
    let served: u64 = world.shards.iter().map(|shard| shard.served).sum();
    let longest = world.shards.iter().map(|shard| shard.longest).max().unwrap_or(0);
    let held: Vec<usize> =
        world.workers.iter().filter(|one| one.life == Life::Up).map(|one| one.held.len()).collect();
    let hottest = world.shares.iter().copied().fold(0.0, f64::max);
    let behind: Vec<&Shard> = world.shards.iter().filter(|shard| shard.waiting > 0).collect();
    let kept: u64 = behind.iter().map(|shard| shard.waiting).sum();
    println!(
        "shards held, of the time: {:.3} %",
        served as f64 * 100.0 / (shards * seconds) as f64
    );
    println!("longest time in which nobody held a shard: {longest} s");
    println!("seconds in which two workers sent for one shard: {}", tally.doubled);
    println!("shards of a worker in the end: {:?} to {:?}", held.iter().min(), held.iter().max());
    println!("leases taken: {}", tally.taken);
    println!(
        "links sent: {} a second; those that were taken had waited {:.2} s",
        tally.links / seconds,
        tally.waited as f64 / tally.received.max(1) as f64
    );
    println!("the shard that most links lead to: {:.2} % of all", hottest * 100.0);
    println!(
        "shards that are behind in the end: {}, with {kept} links kept by their senders",
        behind.len()
    );
    println!("commands a second, in all: {}", world.asked.total / seconds);
    let mut met = longest <= 2 * LEASE && tally.doubled == 0;
    for (key, peak) in &world.asked.peak {
        println!("commands of one key in the worst second: {peak} ({key})");
        met &= *peak <= NODE / 2;
    }
    met
}

fn main() {
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |at: usize, default| given.get(at).copied().unwrap_or(default);
    let (workers, shards) = (number(0, 1_000) as u32, number(1, 1_024) as u32);
    let seconds = number(2, 120) * 60;
    let mut world = World::new(workers, shards);
    let begin = world.now;
    let mut own: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut members: Vec<u32> = Vec::new();
    while world.now < begin + seconds {
        let (now, passed) = (world.now, world.now - begin);
        world.fates(passed > seconds / 3 && passed < seconds * 2 / 3);
        world.members.retain(|_, until| *until > now);
        let live: Vec<u32> = world.members.keys().copied().collect();
        if live != members {
            let names: Vec<String> = live.iter().map(|at| format!("worker-{at}")).collect();
            own = live.iter().map(|at| (*at, BTreeSet::new())).collect();
            for (shard, at) in owners(&names, shards).into_iter().enumerate() {
                let worker = at.map(|at| live[at]);
                worker.and_then(|at| own.get_mut(&at)).map(|own| own.insert(shard as u32));
            }
            members = live;
        }
        for at in 0..workers {
            let is_due = (now + u64::from(at)).is_multiple_of(RENEW);
            if !is_due || world.workers[at as usize].life != Life::Up {
                continue;
            }
            match own.get(&at) {
                Some(own) => world.tend(at, own),
                None => drop(world.members.insert(at, now + LEASE)),
            }
        }
        world.flow();
        world.asked.end_second();
        world.now += 1;
    }
    if !tell(&world, seconds) {
        println!(
            "a goal is missed: {} s without a holder, two holders, or {} commands of a key",
            2 * LEASE,
            NODE / 2
        );
        std::process::exit(1);
    }
}
