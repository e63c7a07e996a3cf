//! Six real nodes of a cluster on loopback, and what workers ask of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use uniqcrawl::cluster::{
    Buckets, Change, Engine, Error, Found, How, Look, Posting, Secret, Settings, Settled, Table,
    Version, Write, Written,
};

/// Six nodes. They end with this process, however it ends.
pub(crate) struct Nodes {
    folder: PathBuf,
    pub(crate) port: u16,
    variables: Vec<(String, String)>,
}

impl Nodes {
    /// The nodes that all tests of this process share, each with a prefix of its own.
    pub(crate) fn shared() -> &'static Self {
        static NODES: OnceLock<Nodes> = OnceLock::new();
        NODES.get_or_init(|| Self::start(0, &[]))
    }

    /// Starts nodes on ports that are free; `own` tells those of one process apart.
    pub(crate) fn start(own: u32, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let first = 15_000 + (std::process::id() % 400) * 20 + own * 6;
        let mut told = String::new();
        for try_of in 0..8 {
            let port = (first + try_of * 1_000) as u16;
            let variables =
                variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            let nodes = Self { folder: folder.clone(), port, variables: variables.collect() };
            let out = nodes.run("start", &[]);
            if out.status.success() {
                return nodes;
            }
            told = String::from_utf8_lossy(&out.stderr).into_owned();
        }
        panic!("the nodes do not start: {told}");
    }

    fn run(&self, command: &str, more: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/nodes");
        Command::new(script)
            .arg(command)
            .arg(&self.folder)
            .arg(self.port.to_string())
            .args(more)
            .env("PARENT", std::process::id().to_string())
            .envs(self.variables.iter().cloned())
            .output()
            .unwrap()
    }

    /// Does something to a node: kill, pause, resume, revive.
    pub(crate) fn node(&self, command: &str, node: usize) {
        let out = self.run(command, &[&node.to_string()]);
        assert!(out.status.success(), "{command} {node}: {out:?}");
    }

    /// Tells whether all nodes agree that every slot is served, by replicas as well.
    pub(crate) fn is_whole(&self) -> bool {
        self.run("status", &[]).status.success()
    }

    pub(crate) fn connection(&self, node: usize) -> redis::Connection {
        let url = format!("redis://127.0.0.1:{}", self.port + node as u16);
        redis::Client::open(url).unwrap().get_connection().unwrap()
    }

    /// Tells whether a node is a primary. It must not be paused.
    pub(crate) fn is_primary(&self, node: usize) -> bool {
        let mut ask = redis::cmd("INFO");
        let told: String = ask.arg("replication").query(&mut self.connection(node)).unwrap();
        told.contains("role:master")
    }

    /// What names the cluster, for a crawl of a prefix.
    pub(crate) fn url(&self, prefix: &str) -> String {
        let port = self.port;
        format!("redis://127.0.0.1:{port},127.0.0.1:{}/{prefix}", port + 1)
    }

    pub(crate) fn settings(&self, prefix: &str) -> Settings {
        Settings::parse(&self.url(prefix)).unwrap()
    }

    pub(crate) fn engine(&self, prefix: &str) -> Engine {
        Engine::connect(&self.settings(prefix)).unwrap()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.run("stop", &[]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const SPAN: Duration = Duration::from_secs(20);

fn write(document: u64, version: Version, row: &[u8]) -> Write {
    Write { document, version, row: row.to_vec() }
}

fn read(engine: &mut Engine, document: u64) -> Option<(Version, Vec<u8>)> {
    match engine.read(&[document]).unwrap().pop().unwrap() {
        Found::Live(live) => Some((live.version, live.row)),
        Found::Nothing => None,
        other => panic!("{other:?}"),
    }
}

fn look(engine: &mut Engine, document: u64, how: How) -> Found {
    engine.look(&[Look { document, how }]).unwrap().pop().unwrap()
}

#[test]
fn what_is_announced_is_waited_for_by_newer_and_marked_by_older_ones() {
    let mut engine = Nodes::shared().engine("announce");
    let first = engine.numbers(10).unwrap();
    assert_eq!(engine.numbers(1).unwrap(), first + 10, "nobody else gets a number");
    let one = first + 5;
    assert_eq!(look(&mut engine, one, How::Newer), Found::Nothing);
    engine.announce(&[one], SPAN).unwrap();
    assert_eq!(look(&mut engine, one, How::Read), Found::Nothing);
    assert_eq!(look(&mut engine, one, How::Newer), Found::Waits);
    assert_eq!(look(&mut engine, one, How::Older), Found::Nothing);
    // It was marked: it must look again before it is live.
    let settle =
        |engine: &mut Engine| engine.settle(vec![write(one, Version::NONE, b"row")]).unwrap()[0];
    assert_eq!([settle(&mut engine), settle(&mut engine)], [Settled::Marked; 2]);
    assert_eq!(engine.renew(&[one, one + 1], SPAN).unwrap(), [true, false]);
    assert_eq!([settle(&mut engine), settle(&mut engine)], [Settled::Live; 2], "twice is once");
    let (version, row) = read(&mut engine, one).unwrap();
    assert_eq!(row, b"row");
    engine.withdraw(&[one]).unwrap();
    assert_eq!(read(&mut engine, one), Some((version, row)), "what is live is not withdrawn");
}

#[test]
fn who_comes_late_finds_that_nobody_took_notice() {
    let mut engine = Nodes::shared().engine("late");
    let one = engine.numbers(3).unwrap();
    engine.announce(&[one, one + 1, one + 2], Duration::from_millis(1)).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(look(&mut engine, one, How::Newer), Found::Nothing);
    assert_eq!(look(&mut engine, one + 1, How::Older), Found::Nothing);
    let rows = (0..3).map(|at| write(one + at, Version::NONE, b"row")).collect();
    // Nobody has looked at the third one.
    let all = engine.settle(rows).unwrap();
    assert_eq!(all, [Settled::Late, Settled::Late, Settled::Live]);
    assert_eq!(engine.renew(&[one], SPAN).unwrap(), [false]);
    engine.withdraw(&[one, one + 1]).unwrap();
    assert_eq!(engine.settle(vec![write(one, Version::NONE, b"row")]).unwrap(), [Settled::Late]);
}

#[test]
fn a_document_is_written_only_if_nobody_has_written_it_since_it_was_read() {
    let mut engine = Nodes::shared().engine("write");
    let one = engine.numbers(1).unwrap();
    engine.announce(&[one], SPAN).unwrap();
    engine.settle(vec![write(one, Version::NONE, b"first")]).unwrap();
    let (version, _) = read(&mut engine, one).unwrap();
    assert_eq!(engine.write(vec![write(one, version, b"second")]).unwrap(), [true]);
    assert_eq!(engine.write(vec![write(one, version, b"second")]).unwrap(), [true], "sent again");
    assert_eq!(engine.write(vec![write(one, version, b"other")]).unwrap(), [false]);
    let (newer, row) = read(&mut engine, one).unwrap();
    assert_eq!(row, b"second");
    assert_eq!(engine.write(vec![write(one, newer, b"")]).unwrap(), [true]);
    assert_eq!(engine.write(vec![write(one, newer, b"")]).unwrap(), [true], "sent again");
    assert_eq!(read(&mut engine, one), None);
}

/// Documents that are live, with their versions.
fn documents(engine: &mut Engine, count: u64) -> Vec<u64> {
    let first = engine.numbers(count).unwrap();
    let all: Vec<u64> = (first..first + count).collect();
    engine.announce(&all, SPAN).unwrap();
    let rows = all.iter().map(|number| write(*number, Version::NONE, b"old")).collect();
    engine.settle(rows).unwrap();
    all
}

#[test]
fn a_change_of_several_documents_is_whole_or_never_was() {
    let mut engine = Nodes::shared().engine("changes");
    let all = documents(&mut engine, 3);
    let versions: Vec<Version> = all.iter().map(|one| read(&mut engine, *one).unwrap().0).collect();
    let new = engine.numbers(1).unwrap();
    let writes = |last: &[u8]| {
        vec![
            write(all[0], versions[0], b"one"),
            write(all[1], versions[1], b""),
            write(all[2], versions[2], last),
            write(new, Version::NONE, b"new"),
        ]
    };
    engine.write(vec![write(all[2], versions[2], b"meanwhile")]).unwrap();
    let done = engine.write_together(Change::of(1, 1), &writes(b"three"), SPAN).unwrap();
    assert_eq!(done, Written::None);
    let rows = |engine: &mut Engine| {
        [all[0], all[1], all[2], new].map(|one| read(engine, one).map(|(_, row)| row))
    };
    let old = [Some(b"old".to_vec()), Some(b"old".to_vec()), Some(b"meanwhile".to_vec()), None];
    assert_eq!(rows(&mut engine), old);
    let mut writes = writes(b"three");
    writes[2].version = read(&mut engine, all[2]).unwrap().0;
    assert_eq!(engine.write_together(Change::of(1, 2), &writes, SPAN).unwrap(), Written::All);
    let all_new = [Some(b"one".to_vec()), None, Some(b"three".to_vec()), Some(b"new".to_vec())];
    assert_eq!(rows(&mut engine), all_new);
}

#[test]
fn changes_that_race_for_the_same_documents_leave_one_after_the_other() {
    let nodes = Nodes::shared();
    let mut engine = nodes.engine("race");
    let all = documents(&mut engine, 4);
    // Each adds its letter to two documents at a time, which so stay equally long in all.
    let add = |worker: u64| {
        let mut engine = nodes.engine("race");
        for round in 0..25 {
            let pair =
                [all[((worker + round) % 4) as usize], all[((worker + round + 1) % 4) as usize]];
            for number in 0.. {
                let rows = pair.map(|one| read(&mut engine, one).unwrap());
                let writes: Vec<Write> = pair
                    .iter()
                    .zip(rows)
                    .map(|(one, (version, row))| {
                        write(*one, version, &[&row[..], &[b'a' + worker as u8]].concat())
                    })
                    .collect();
                let change = Change::of(worker + 1, round << 32 | number);
                if engine.write_together(change, &writes, SPAN).unwrap() == Written::All {
                    break;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || add(worker));
        }
    });
    let lengths: usize = all.iter().map(|one| read(&mut engine, *one).unwrap().1.len()).sum();
    assert_eq!(lengths, 4 * 3 + 4 * 25 * 2);
}

#[test]
fn postings_lead_to_the_documents_that_were_there_before() {
    let mut engine = Nodes::shared().engine("postings");
    let buckets = Buckets { documents: 1_000, is_wide: false };
    let equal = |key, document| Posting { table: Table::Equal(3), key, each: 8, document };
    let near = |key, document| Posting { table: Table::Near(1), key, each: 8, document };
    let key = 0xAB_CDEF_0123;
    let ask = |engine: &mut Engine, posting| engine.post(&buckets, &[posting]).unwrap().remove(0);
    assert_eq!(ask(&mut engine, equal(key, Some(7))), []);
    assert_eq!(ask(&mut engine, equal(key, Some(7))), [], "sent again");
    assert_eq!(ask(&mut engine, equal(key, Some(1 << 39))), [(0, 7)]);
    assert_eq!(ask(&mut engine, equal(key, None)), [(0, 7), (0, 1 << 39)]);
    assert_eq!(ask(&mut engine, equal(key ^ 1, None)), []);
    assert_eq!(ask(&mut engine, equal(key ^ 1 << 39, None)), []);
    assert_eq!(ask(&mut engine, equal(key ^ 1 << 25, None)), []);
    engine.unpost(&buckets, &[equal(key, Some(7)), equal(key, Some(8))]).unwrap();
    assert_eq!(ask(&mut engine, equal(key, None)), [(0, 1 << 39)]);
    // What is kept of a key may look like the end of one entry and the start of the next.
    for document in [0x11_1111_1111, 0x11_1111_1112] {
        ask(&mut engine, equal(0x1111, Some(document)));
    }
    let found = ask(&mut engine, equal(0x1111, None));
    assert_eq!(found, [(0, 0x11_1111_1111), (0, 0x11_1111_1112)]);
    // Fingerprints of a bucket, each with its distance.
    let print = 0x1234_5678_9ABC_DEF0;
    assert_eq!(ask(&mut engine, near(print, Some(1))), []);
    assert_eq!(ask(&mut engine, near(print ^ 0b111, Some(2))), [(3, 1)]);
    assert_eq!(ask(&mut engine, near(print, None)), [(0, 1), (3, 2)]);
    assert_eq!(ask(&mut engine, near(print ^ 1 << 63, None)), []);
    // Of very many, those that come late lie elsewhere.
    for document in 1_000..1_100 {
        ask(&mut engine, near(print, Some(document)));
    }
    let found = ask(&mut engine, near(print, None));
    assert_eq!(found.len(), 102);
    engine.unpost(&buckets, &[near(print, Some(1_000)), near(print, Some(1_099))]).unwrap();
    let left = ask(&mut engine, near(print, None));
    let numbers = |found: &[(u32, u64)]| -> std::collections::BTreeSet<u64> {
        found.iter().map(|(_, number)| *number).collect()
    };
    let mut expected = numbers(&found);
    expected.retain(|number| ![1_000, 1_099].contains(number));
    assert_eq!(numbers(&left), expected);
    // A commonplace leads to some documents, and costs no more with every one that has it.
    for document in 100..200 {
        ask(&mut engine, equal(5, Some(document)));
    }
    assert_eq!(ask(&mut engine, equal(5, None)).len(), 64);
}

#[test]
fn of_very_many_fingerprints_only_such_are_read_as_may_be_near() {
    let mut engine = Nodes::shared().engine("deep");
    let buckets = Buckets { documents: 1, is_wide: false };
    let near = |key, document| Posting { table: Table::Near(0), key, each: 1, document };
    // All have the same first bits, and drawn ones after them.
    let key = |number: u64| 0x5A5A << 48 | number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    let all: Vec<Posting> = (1..=2_000).map(|number| near(key(number), Some(number))).collect();
    for some in all.chunks(500) {
        engine.post(&buckets, some).unwrap();
    }
    engine.post(&buckets, &all[1_990..]).unwrap();
    let numbers = |found: &[(u32, u64)], most: u32| -> Vec<u64> {
        let near = found.iter().filter(|(distance, _)| *distance <= most);
        let mut numbers: Vec<u64> = near.map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers
    };
    let left = |engine: &mut Engine| {
        let mut left = Vec::new();
        for partition in 0..1_024 {
            engine
                .each_posting(partition, &[Table::Near(0)], |_, postings| {
                    left.extend(
                        postings.iter().map(|posting| (posting.document.unwrap(), posting.key)),
                    );
                    Ok(())
                })
                .unwrap();
        }
        left.sort_unstable();
        left
    };
    let wide = Buckets { is_wide: true, ..buckets.clone() };
    for (number, flips) in [(3, 0), (300, 1 << 47 | 1 << 3), (1_999, 0b111), (2_000, 1 << 40)] {
        let asked = [near(key(number) ^ flips, None)];
        let found = engine.post(&buckets, &asked).unwrap().remove(0);
        assert!(numbers(&found, 3).contains(&number), "{number}");
        assert!(found.len() < 620, "{} are read", found.len());
        let all = engine.post(&wide, &asked).unwrap().remove(0);
        assert_eq!(numbers(&all, 64).len(), 2_000);
        assert_eq!(numbers(&all, 3), numbers(&found, 3));
    }
    // One of each place goes, and nothing that stays is lost.
    engine.unpost(&buckets, &[all[2], all[299], all[1_999]]).unwrap();
    engine.post(&buckets, &[all[1_000]]).unwrap();
    let mut expected: Vec<(u64, u64)> = (1..2_000).map(|number| (number, key(number))).collect();
    expected.retain(|(number, _)| ![3, 300].contains(number));
    assert_eq!(left(&mut engine), expected);
    let found = engine.post(&buckets, &[near(key(1_999), None)]).unwrap().remove(0);
    assert!(numbers(&found, 0).contains(&1_999) && !numbers(&found, 64).contains(&3));
}

#[test]
fn postings_stay_as_they_are_while_more_and_more_hashes_hold_them() {
    let mut engine = Nodes::shared().engine("growing");
    // As if each document had very many keys: soon there are hashes for all.
    let buckets = Buckets { documents: 1, is_wide: false };
    let posting = |number: u64| {
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24 & 0x3FFF_FFFF;
        Posting { table: Table::Equal(3), key, each: 400_000, document: Some(number) }
    };
    let all: Vec<Posting> = (1..=3_000).map(posting).collect();
    for some in all.chunks(100) {
        engine.post(&buckets, some).unwrap();
    }
    engine.unpost(&buckets, &all[..500]).unwrap();
    let asked: Vec<Posting> =
        all.iter().map(|posting| Posting { document: None, ..*posting }).collect();
    for (posting, found) in all.iter().zip(engine.post(&buckets, &asked).unwrap()) {
        let number = posting.document.unwrap();
        assert_eq!(found.contains(&(0, number)), number > 500, "{number}");
    }
    let mut told = Vec::new();
    engine
        .each_posting(0, &[Table::Equal(3)], |_, postings| {
            told.push(postings);
            Ok(())
        })
        .unwrap();
    assert!(told.len() > 1_000, "{} hashes", told.len());
    let numbers: std::collections::BTreeSet<u64> =
        told.iter().flatten().filter_map(|posting| posting.document).collect();
    assert_eq!(numbers, (501..=3_000).collect());
    let keys = told.iter().flatten().all(|one| all.iter().any(|other| other.key == one.key));
    assert!(keys, "keys are told whole");
}

#[test]
fn a_number_that_was_given_twice_is_used_by_one() {
    let nodes = Nodes::shared();
    let (mut one, mut other) = (nodes.engine("given"), nodes.engine("given"));
    let number = one.numbers(1).unwrap();
    assert_eq!(one.announce(&[number], SPAN).unwrap(), [true]);
    assert_eq!(one.announce(&[number], SPAN).unwrap(), [true], "sent again");
    assert_eq!(other.announce(&[number], SPAN).unwrap(), [false]);
    let row = |row: &[u8]| vec![write(number, Version::NONE, row)];
    assert_eq!(other.settle(row(b"other")).unwrap(), [Settled::Late]);
    other.withdraw(&[number]).unwrap();
    assert_eq!(one.settle(row(b"one")).unwrap(), [Settled::Live]);
    assert_eq!(other.settle(row(b"other")).unwrap(), [Settled::Late]);
    assert_eq!(other.announce(&[number], SPAN).unwrap(), [false]);
    assert_eq!(read(&mut one, number).unwrap().1, b"one");
    // Who was given numbers knows the last one, whatever a node has forgotten.
    let far = other.numbers(1_000).unwrap() + 999;
    let mut next = redis::cmd("SET");
    next.arg(format!("{}next", one.base(0))).arg(1);
    one.ask_one(next).unwrap();
    assert_eq!(other.numbers(1).unwrap(), far + 1);
}

#[test]
fn settings_of_a_crawl_are_fixed_when_it_is_begun() {
    let mut engine = Nodes::shared().engine("settings");
    engine.fix("keys", "runs of 3").unwrap();
    engine.fix("keys", "runs of 3").unwrap();
    let error = engine.fix("keys", "runs of 4").unwrap_err().to_string();
    for word in ["settings", "keys", "runs of 3", "runs of 4", "prefix"] {
        assert!(error.contains(word), "{error}");
    }
    // Another crawl on the same cluster has its own.
    Nodes::shared().engine("settings-2").fix("keys", "runs of 4").unwrap();
}

#[test]
fn errors_name_the_node_and_the_way_out_and_never_the_password() {
    let nodes = Nodes::shared();
    let fails = |settings: &Settings| {
        let error = Engine::connect(settings).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hidden"), "{error:?}");
        error
    };
    let nowhere = Settings::parse("redis://127.0.0.1:1,127.0.0.1:2").unwrap();
    let error = fails(&nowhere);
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("127.0.0.1:1") && told.contains("127.0.0.1:2"), "{told}");
    let account = nodes.url("p").replace("redis://", "redis://somebody:hidden@");
    let error = fails(&Settings::parse(&account).unwrap());
    assert!(matches!(&error, Error::Refused { user, .. } if user == "somebody"), "{error:?}");
    assert!(error.to_string().contains("p:*"), "{error}");
    let mut wrong = nodes.settings("p");
    (wrong.tls, wrong.timeout) = (true, Duration::from_millis(500));
    wrong.password = Secret::new("hidden");
    fails(&wrong);
    // A server by itself.
    let folder = tempfile::tempdir().unwrap();
    let port = nodes.port + 15;
    let server = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
    let mut single = Command::new(server)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--dir", folder.path().to_str().unwrap()])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let alone = Settings::parse(&format!("redis://127.0.0.1:{port}")).unwrap();
    let begun = Instant::now();
    let error = loop {
        let error = fails(&alone);
        if !matches!(error, Error::Unreachable(_)) || begun.elapsed() > Duration::from_secs(10) {
            break error;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    single.kill().unwrap();
    single.wait().unwrap();
    assert!(matches!(error, Error::NoCluster(_)), "{error:?}");
    assert!(error.to_string().contains("cluster-enabled"), "{error}");
}

#[test]
fn a_primary_that_is_killed_is_followed_by_its_replica_and_nothing_is_lost() {
    let nodes = Nodes::start(1, &[("PASSWORD", "hidden"), ("NODE_TIMEOUT_MS", "1000")]);
    let url = nodes.url("over").replace("redis://", "redis://:hidden@");
    let settings = Settings::parse(&url).unwrap();
    assert!(matches!(Engine::connect(&nodes.settings("over")).unwrap_err(), Error::Refused { .. }));
    let mut engine = Engine::connect(&settings).unwrap();
    let is_killed = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut numbers = Vec::new();
            let mut after = None;
            loop {
                numbers.extend(documents(&mut engine, 16));
                if after.is_none() && is_killed.load(Ordering::SeqCst) {
                    after = Some(numbers.len());
                }
                // Some rounds that began after the node was gone.
                if after.is_some_and(|after| numbers.len() >= after + 3 * 16) {
                    return numbers;
                }
            }
        });
        std::thread::sleep(Duration::from_millis(300));
        nodes.node("kill", 0);
        is_killed.store(true, Ordering::SeqCst);
        writer.join().unwrap()
    });
    assert!(engine.traffic().repeated > 0, "commands were sent again");
    let mut fresh = Engine::connect(&settings).unwrap();
    let found = fresh.read(&written).unwrap();
    let lost = found.iter().filter(|found| !matches!(found, Found::Live(_))).count();
    assert_eq!(lost, 0, "of {}", written.len());
    nodes.node("revive", 0);
    let begun = Instant::now();
    while !nodes.is_whole() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it joins again as a replica");
        std::thread::sleep(Duration::from_millis(200));
    }
    // A node that is full says so, and what it has can be read.
    for at in 0..6 {
        let address = format!("redis://:hidden@127.0.0.1:{}", nodes.port + at);
        let client = redis::Client::open(address).unwrap();
        let mut connection = client.get_connection().unwrap();
        let set = |limit: &str| {
            let mut set = redis::cmd("CONFIG");
            set.arg("SET").arg("maxmemory").arg(limit).to_owned()
        };
        set("1mb").exec(&mut connection).unwrap();
    }
    let error = fresh.numbers(1).unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert!(error.to_string().contains("maxmemory"), "{error}");
}
