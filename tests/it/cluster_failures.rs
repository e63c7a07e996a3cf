//! Nodes and workers that fail while articles come into a corpus of many workers, and the check
//! that finds and mends what they leave.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use uniqcrawl::base::clock::Clock;
use uniqcrawl::cluster::{self, PARTITIONS};
use uniqcrawl::corpus::dedup::Corpus as _;
use uniqcrawl::corpus::documents::Copy;
use uniqcrawl::corpus::shared::{Error, SharedChecked, SharedCorpus, SharedOptions};
use uniqcrawl::text::features::Fingerprinter;

use crate::cluster::Nodes;
use crate::cluster_corpus::{documents, open, racing};
use crate::cluster_kill::AtStep;
use crate::shelf::Came;
use crate::support::prose;

const OPTIONS: SharedOptions = SharedOptions { documents: 1, span: Duration::from_millis(400) };

pub(crate) fn place(corpus: &mut SharedCorpus, page: &Came) -> u64 {
    corpus.place(&page.article(&Fingerprinter::default()), 0).unwrap().document
}

pub(crate) fn check(corpus: &SharedCorpus, repair: bool) -> SharedChecked {
    let (mut last, mut steps) = (0, 0);
    let found = corpus
        .check(repair, &mut |progress| {
            assert!(progress.done > last && progress.done <= progress.all);
            assert!(progress.cursor <= progress.done);
            (last, steps) = (progress.done, steps + 1);
        })
        .unwrap();
    assert!(steps >= 1_024, "all partitions are looked at");
    found
}

/// A connection to the node that has a key, and what to ask it with.
fn delete_postings(nodes: &Nodes, prefix: &str) {
    for node in 0..6 {
        let mut connection = nodes.connection(node);
        if !nodes.is_primary(node) {
            continue;
        }
        let names: Vec<String> =
            redis::cmd("KEYS").arg(format!("{prefix}:*}}e*")).query(&mut connection).unwrap();
        let more: Vec<String> =
            redis::cmd("KEYS").arg(format!("{prefix}:*}}n*")).query(&mut connection).unwrap();
        // That of the last number that was given is none of them.
        let more = more.iter().filter(|name| !name.ends_with("}next"));
        for name in names.iter().chain(more) {
            redis::cmd("DEL").arg(name).exec(&mut connection).unwrap();
        }
    }
}

/// Two copies that became documents of their own, because the first one had lost its keys.
pub(crate) fn doubled(nodes: &Nodes, prefix: &str, folder: &Path) -> SharedCorpus {
    let mut corpus = open(&nodes.url(prefix), folder, OPTIONS);
    let first = place(&mut corpus, &Came::new("http://a/1", "", &prose(1, 90)));
    delete_postings(nodes, prefix);
    let copy = Came::new("http://b/1", "", &format!("{} More of it.", prose(1, 90)));
    assert_ne!(place(&mut corpus, &copy), first, "nothing leads to the first one");
    corpus
}

#[test]
fn a_check_gives_documents_their_keys_back_and_the_second_look_joins_what_was_doubled() {
    let (nodes, folder) = (Nodes::shared(), tempfile::tempdir().unwrap());
    let corpus = doubled(nodes, "unfound", folder.path());
    let found = check(&corpus, false);
    assert_eq!((found.documents, found.copies, found.unfound, found.mended), (2, 2, 1, 0));
    assert!(found.missing_keys > 20 && found.listed[0].contains("keys"), "{found:?}");
    assert_eq!(found.faults(), 1);
    let found = check(&corpus, true);
    assert_eq!((found.unfound, found.mended), (1, 1));
    assert_eq!(corpus.look_again().unwrap().merged, 1);
    let all = documents(&corpus);
    assert_eq!(all.iter().map(|one| one.copies.len()).collect::<Vec<_>>(), [2]);
    assert_eq!(check(&corpus, false).faults(), 0);
}

#[test]
fn numbers_that_a_lost_primary_has_given_are_not_given_again() {
    let (nodes, folder) = (Nodes::shared(), tempfile::tempdir().unwrap());
    let url = nodes.url("numbered");
    let mut engine = nodes.engine("numbered");
    let copies =
        ["", " More of it.", " And more.", " That is all."].map(|more| prose(1, 90) + more);
    for ((at, text), partition) in copies.iter().enumerate().zip([0, PARTITIONS / 2, 0, 0]) {
        let page = Came::new(&format!("http://{at}/1"), "", text);
        place(&mut open(&url, folder.path(), OPTIONS), &page);
        // Its replica does not know which were given.
        let mut delete = redis::cmd("DEL");
        delete.arg(format!("{}next", engine.base(partition)));
        assert_eq!(engine.ask_one(delete).unwrap(), redis::Value::Int(1));
    }
    let corpus = open(&url, folder.path(), OPTIONS);
    let [document] = &documents(&corpus)[..] else { panic!("all are copies of one") };
    let read = |(_, copy): &(String, Copy)| corpus.text(document.number, copy.content).unwrap();
    let texts: Vec<String> = document.copies.iter().filter_map(read).collect();
    assert_eq!(texts, copies, "each has its own text yet");
    assert_eq!(check(&corpus, false).faults(), 0);
}

#[test]
fn a_check_removes_what_leads_nowhere_and_nothing_that_is_young() {
    let (nodes, folder) = (Nodes::shared(), tempfile::tempdir().unwrap());
    let url = nodes.url("nowhere");
    let mut corpus = open(&url, folder.path(), OPTIONS);
    place(&mut corpus, &Came::new("http://a/1", "", &prose(1, 90)));
    // As a worker leaves it that dies between posting and settling.
    let mut engine = nodes.engine("nowhere");
    let number = engine.numbers(2).unwrap();
    let posting = |document| cluster::Posting {
        table: cluster::Table::Equal(65),
        key: 0xAB_CDEF_0123,
        each: 1,
        document: Some(document),
    };
    let buckets = cluster::Buckets { documents: 1, is_wide: false };
    engine.announce(&[number], Duration::from_millis(1)).unwrap();
    engine.announce(&[number + 1], Duration::from_mins(1)).unwrap();
    engine.post(&buckets, &[posting(number), posting(number + 1)]).unwrap();
    let found = check(&corpus, false);
    assert_eq!((found.dead_postings, found.late, found.faults()), (1, 1, 2), "{found:?}");
    let found = check(&corpus, true);
    assert_eq!((found.dead_postings, found.late, found.mended), (1, 1, 2), "{found:?}");
    let asked = cluster::Posting { document: None, ..posting(0) };
    let left = engine.post(&buckets, &[asked]).unwrap().remove(0);
    assert_eq!(left, [(0, number + 1)], "one that is still under way keeps its own");
    assert_eq!(check(&corpus, false).faults(), 0);
    assert_eq!(documents(&corpus).len(), 1);
}

#[test]
fn a_check_tells_of_a_file_that_is_away_and_takes_nothing_out() {
    let (nodes, folder) = (Nodes::shared(), tempfile::tempdir().unwrap());
    let url = nodes.url("away");
    place(&mut open(&url, folder.path(), OPTIONS), &Came::new("http://a/1", "", &prose(1, 90)));
    let (there, away) = (folder.path().to_owned(), folder.path().with_extension("away"));
    std::fs::rename(&there, &away).unwrap();
    let corpus = open(&url, &there, OPTIONS);
    let found = check(&corpus, true);
    assert_eq!((found.unreadable, found.faults(), found.mended), (1, 1, 0), "{found:?}");
    assert!(found.listed[0].contains("0.texts"), "{found:?}");
    std::fs::rename(&away, &there).unwrap();
    assert_eq!(check(&corpus, false).faults(), 0);
    assert_eq!(documents(&corpus).len(), 1);
}

/// The process that a test starts as its worker is this program again, with this test alone.
#[test]
fn a_change_of_several_documents_whose_worker_dies_is_ended_by_a_check() {
    if let Ok(task) = std::env::var("UNIQCRAWL_TEST_WORKER") {
        let task: Vec<&str> = task.split(' ').collect();
        AtStep::new(task[2], 1, || std::process::abort()).hears(|| {
            open(task[0], Path::new(task[1]), OPTIONS).look_again().unwrap();
        });
        return;
    }
    let nodes = Nodes::shared();
    for step in ["locked", "decided"] {
        let folder = tempfile::tempdir().unwrap();
        let prefix = format!("change-{step}");
        let corpus = doubled(nodes, &prefix, folder.path());
        check(&corpus, true);
        let name = "a_change_of_several_documents_whose_worker_dies_is_ended_by_a_check";
        let task = format!("{} {} {step}", nodes.url(&prefix), folder.path().display());
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("cluster_failures::{name}")])
            .env("UNIQCRAWL_TEST_WORKER", task)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.signal().is_some(), "{step} was not reached: {status}");
        // Locks are ended when a document is read, which the check does; the change is not.
        let found = check(&corpus, true);
        assert!(found.locked + found.changes > 0, "{step}: {found:?}");
        corpus.look_again().unwrap();
        let all = documents(&corpus);
        assert_eq!(all.iter().map(|one| one.copies.len()).collect::<Vec<_>>(), [2], "{step}");
        assert_eq!(check(&corpus, false).faults(), 0, "{step}");
    }
}

/// Places racing articles from two workers, again and again, until something has happened.
fn place_through(
    nodes: &Nodes,
    prefix: &str,
    folder: &Path,
    texts: u64,
    happens: &(dyn Fn() + Sync),
) -> Vec<Came> {
    let pages = racing(texts);
    let has_happened = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (pages, url, has_happened) = (&pages, nodes.url(prefix), &has_happened);
            scope.spawn(move || {
                let mut corpus = open(&url, folder, OPTIONS);
                // Its clock is minutes off: the nodes say what is late.
                let minutes = if worker == 0 { -300_000 } else { 300_000 };
                corpus.set_clock(Clock::Off(Arc::new(AtomicI64::new(minutes))));
                for (at, page) in pages.iter().enumerate().filter(|(at, _)| at % 2 == worker) {
                    while at == pages.len() / 2 && !has_happened.load(Ordering::SeqCst) {
                        // So that something comes before and while it happens.
                        patiently(&mut corpus, &pages[at % 10]);
                    }
                    patiently(&mut corpus, page);
                }
            });
        }
        sleep(Duration::from_millis(300));
        happens();
        has_happened.store(true, Ordering::SeqCst);
    });
    pages
}

/// Places a page; a node that is full is waited for, as somebody does who reads what it says.
fn patiently(corpus: &mut SharedCorpus, page: &Came) {
    let begun = Instant::now();
    while let Err(error) = corpus.place(&page.article(&Fingerprinter::default()), 0) {
        let is_full = matches!(error, Error::Cluster(cluster::Error::Full(_)))
            || error.to_string().contains("maxmemory");
        assert!(is_full && begun.elapsed() < Duration::from_secs(30), "{error:?}");
        sleep(Duration::from_millis(50));
    }
}

/// All articles are there once, and no text is two documents, after a check and a second look.
#[track_caller]
fn assert_whole(corpus: &SharedCorpus, pages: &[Came], what: &str) {
    // Whatever was under way is past its deadline.
    sleep(OPTIONS.span * 2);
    check(corpus, true);
    corpus.look_again().unwrap();
    let all = documents(corpus);
    let copies: BTreeSet<&String> =
        all.iter().flat_map(|one| one.copies.iter().map(|(url, _)| url)).collect();
    let missing: Vec<&String> =
        pages.iter().map(|page| &page.address).filter(|url| !copies.contains(url)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "{what}");
    assert_eq!(all.len(), pages.len() / 5, "{what}");
    let left = check(corpus, false);
    assert_eq!(left.faults(), 0, "{what}: {left:?}");
}

pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_mins(3), "{what}");
        sleep(Duration::from_millis(100));
    }
}

/// Waits until others have taken over from a node.
fn taken_over(nodes: &Nodes, failed: usize) {
    let others = || (0..6).filter(|node| *node != failed);
    wait("a replica takes over", || others().filter(|node| nodes.is_primary(*node)).count() == 3);
}

#[test]
fn workers_go_on_when_nodes_are_paused_full_or_all_away() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = Nodes::start(2, &[("NODE_TIMEOUT_MS", "1000")]);
    let through = |prefix: &str, happens: &(dyn Fn() + Sync)| {
        let pages = place_through(&nodes, prefix, folder.path(), 8, happens);
        wait("the cluster is whole again", || nodes.is_whole());
        let mut corpus = open(&nodes.url(prefix), folder.path(), OPTIONS);
        if prefix == "paused" {
            // What it acknowledged and did not send on is lost; it comes again.
            sleep(OPTIONS.span * 2);
            check(&corpus, true);
            for page in &pages {
                place(&mut corpus, page);
            }
        }
        assert_whole(&corpus, &pages, prefix);
    };
    through("paused", &|| {
        let node = (0..6).find(|node| nodes.is_primary(*node)).unwrap();
        nodes.node("pause", node);
        taken_over(&nodes, node);
        nodes.node("resume", node);
    });
    through("away", &|| {
        (0..6).for_each(|node| nodes.node("pause", node));
        sleep(Duration::from_secs(2));
        (0..6).for_each(|node| nodes.node("resume", node));
    });
    through("full", &|| {
        let limit = |bytes: &str| {
            for node in 0..6 {
                let mut set = redis::cmd("CONFIG");
                set.arg("SET").arg("maxmemory").arg(bytes);
                set.exec(&mut nodes.connection(node)).unwrap();
            }
        };
        limit("1mb");
        sleep(Duration::from_millis(700));
        limit("512mb");
    });
}

#[test]
fn a_replica_that_lacks_the_last_writes_takes_over_and_a_check_mends_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = Nodes::start(3, &[("NODE_TIMEOUT_MS", "1000")]);
    let pages = place_through(&nodes, "lost", folder.path(), 8, &|| {
        let node = (0..6).find(|node| nodes.is_primary(*node)).unwrap();
        // Its replica is cut off: it connects no more.
        let mut connection = nodes.connection(node);
        let set = ["SETUSER", "default", "-psync", "-sync"];
        redis::cmd("ACL").arg(&set).exec(&mut connection).unwrap();
        redis::cmd("CLIENT").arg(&["KILL", "TYPE", "replica"]).exec(&mut connection).unwrap();
        sleep(Duration::from_millis(700));
        nodes.node("kill", node);
        taken_over(&nodes, node);
        nodes.node("revive", node);
    });
    wait("the cluster is whole again", || nodes.is_whole());
    sleep(OPTIONS.span * 2);
    let mut corpus = open(&nodes.url("lost"), folder.path(), OPTIONS);
    check(&corpus, true);
    corpus.look_again().unwrap();
    // What was lost is stored when its page is visited again.
    for page in &pages {
        place(&mut corpus, page);
    }
    assert_whole(&corpus, &pages, "with lost writes");
}
