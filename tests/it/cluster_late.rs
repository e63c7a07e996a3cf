//! Workers that come back late between two steps, and answers that get lost while others go on:
//! nothing is taken away that somebody has added since.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use uniqcrawl::cluster::{Change, Settled, Version, Write, Written};
use uniqcrawl::corpus::dedup::Corpus as _;
use uniqcrawl::corpus::transfer;
use uniqcrawl::text::features::Fingerprinter;

use crate::cluster::Nodes;
use crate::cluster_corpus::{documents, open, racing};
use crate::cluster_failures::{check, doubled, place, wait};
use crate::cluster_kill::{AtStep, OPTIONS, TEXTS};
use crate::shelf::Came;
use crate::support::prose;
use crate::worker::{Crowd, alone, assert_polite, settings, wait_for_requests, web};

/// Does something with a worker of its own that stops when a step comes for the first time, does
/// something else meanwhile, and lets it go on.
fn with_one_that_stops_at(
    step: &'static str,
    work: impl FnOnce() + Send,
    meanwhile: impl FnOnce(),
) {
    let (stopped, told): (Sender<()>, Receiver<()>) = channel();
    let (go_on, told_to): (Sender<()>, Receiver<()>) = channel();
    let told_to = Mutex::new(told_to);
    std::thread::scope(move |scope| {
        let worker = scope.spawn(move || {
            let at = AtStep::new(step, 1, move || {
                stopped.send(()).unwrap();
                told_to.lock().unwrap().recv().unwrap();
            });
            at.hears(work);
        });
        // It goes on also when what is done meanwhile fails.
        let go_on = go_on;
        told.recv().expect("the step comes");
        meanwhile();
        go_on.send(()).unwrap();
        worker.join().unwrap();
    });
}

fn revise(url: &str, texts: &Path, document: u64, page: &Came) {
    let article = page.article(&Fingerprinter::default());
    open(url, texts, OPTIONS).revise(document, &article, 0).unwrap();
}

#[test]
fn a_late_worker_takes_no_key_away_that_a_document_has_again() {
    let (url, folder) = (Nodes::shared().url("late-keys"), tempfile::tempdir().unwrap());
    let (first, second) = (prose(1, 90), prose(2, 90));
    let [was, is] = [first, second].map(|text| Came::new("http://site/page", "", &text));
    let document = place(&mut open(&url, folder.path(), OPTIONS), &was);
    // One gives the page another text, and sleeps before it takes the keys of the first one away;
    // meanwhile the page has its first text again.
    with_one_that_stops_at(
        "written",
        || revise(&url, folder.path(), document, &is),
        || revise(&url, folder.path(), document, &was),
    );
    let mut corpus = open(&url, folder.path(), OPTIONS);
    assert_eq!(check(&corpus, false).faults(), 0);
    assert_eq!(place(&mut corpus, &Came { address: "http://other/page".into(), ..was }), document);
}

#[test]
fn a_check_takes_no_keys_away_from_an_article_that_becomes_a_document_after_all() {
    let (url, folder) = (Nodes::shared().url("late-check"), tempfile::tempdir().unwrap());
    let corpus = open(&url, folder.path(), OPTIONS);
    let page = Came::new("http://site/page", "", &prose(1, 90));
    with_one_that_stops_at(
        "posted",
        || assert!(place(&mut open(&url, folder.path(), OPTIONS), &page) > 0),
        || {
            std::thread::sleep(OPTIONS.span * 2);
            check(&corpus, true);
        },
    );
    assert_eq!(documents(&corpus).len(), 1);
    assert_eq!(check(&corpus, false).faults(), 0);
}

#[test]
fn a_write_that_is_sent_again_is_known_when_somebody_has_locked_the_document_since() {
    let nodes = Nodes::shared();
    let [mut engine, mut other] = ["late-write"; 2].map(|prefix| nodes.engine(prefix));
    let number = engine.numbers(1).unwrap();
    let row = |version, row: &[u8]| Write { document: number, version, row: row.to_vec() };
    assert_eq!(engine.announce(&[number], OPTIONS.span).unwrap(), [true]);
    assert_eq!(engine.settle(vec![row(Version::NONE, b"first")]).unwrap(), [Settled::Live]);
    let (first, second) = (Version::NONE.next(), Version::NONE.next().next());
    assert_eq!(engine.write(vec![row(first, b"second")]).unwrap(), [true]);
    let change = Change::of(1, 1);
    with_one_that_stops_at(
        "locked",
        || {
            let third = [row(second, b"third")];
            assert_eq!(other.write_together(change, &third, OPTIONS.span).unwrap(), Written::All);
        },
        || assert_eq!(engine.write(vec![row(first, b"second")]).unwrap(), [true]),
    );
}

/// One of the pages under one title that nothing tells apart at first.
fn of_one_title(number: u64) -> Came {
    let text = format!("{} {}", prose(99, 200), prose(number, 100));
    Came::new(&format!("http://site/{number}"), "News of the town", &text)
}

fn place_of_one_title(url: &str, texts: &Path, numbers: Range<u64>) {
    let mut corpus = open(url, texts, OPTIONS);
    for number in numbers {
        place(&mut corpus, &of_one_title(number));
    }
}

#[test]
fn documents_that_part_have_their_keys_when_their_worker_was_slow_and_a_check_was_not() {
    let (url, folder) = (Nodes::shared().url("late-parts"), tempfile::tempdir().unwrap());
    place_of_one_title(&url, folder.path(), 0..6);
    let corpus = open(&url, folder.path(), OPTIONS);
    assert!(documents(&corpus).len() < 6, "nothing tells them apart at first");
    with_one_that_stops_at(
        "posted",
        || look_again(&url, folder.path()),
        || {
            std::thread::sleep(OPTIONS.span * 2);
            assert!(check(&corpus, true).dead_postings > 0);
        },
    );
    look_again(&url, folder.path());
    assert_eq!(documents(&corpus).len(), 6);
    let found = check(&corpus, false);
    assert_eq!(found.unfound, 0, "{found:?}");
}

/// What is done before somebody hears that an answer is lost.
type Then = Box<dyn FnOnce() + Send>;

/// Tells of what is asked whether its answer gets lost.
type Choice = Box<dyn FnMut(&[u8]) -> Option<Then> + Send>;

#[test]
fn an_article_that_was_given_up_becomes_no_document_beside_another_change() {
    let (url, folder) = (Nodes::shared().url("late-lock"), tempfile::tempdir().unwrap());
    let mut corpus = open(&url, folder.path(), OPTIONS);
    let [first, copy] = ["http://site/page", "http://other/page"]
        .map(|address| Came::new(address, "", &prose(1, 90)));
    let document = place(&mut corpus, &first);
    assert_eq!(place(&mut corpus, &copy), document);
    // One of two copies gets a text of its own: both documents are written, or none. Meanwhile the
    // number of the new one is given up, and the same text comes from elsewhere.
    let [own, same] = ["http://other/page", "http://third/page"]
        .map(|address| Came::new(address, "", &prose(2, 90)));
    with_one_that_stops_at(
        "posted",
        || revise(&url, folder.path(), document, &own),
        || {
            std::thread::sleep(OPTIONS.span * 2);
            check(&corpus, true);
            place(&mut open(&url, folder.path(), OPTIONS), &same);
        },
    );
    assert_eq!(check(&corpus, false).faults(), 0);
    let copies: Vec<usize> = documents(&corpus).iter().map(|one| one.copies.len()).collect();
    assert_eq!(copies, [1, 2]);
}

/// Stands before each node, and passes on what is asked and answered, but for some answers.
struct Passage {
    ports: Vec<u16>,
    choice: Arc<Mutex<Choice>>,
}

impl Passage {
    /// Has all who ask nodes come this way.
    fn before(nodes: &Nodes) -> Self {
        let choice: Arc<Mutex<Choice>> = Arc::new(Mutex::new(Box::new(|_| None)));
        let mut ports = Vec::new();
        for node in 0..6_u16 {
            let gate = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = gate.local_addr().unwrap().port();
            redis::cmd("CONFIG")
                .arg(&["SET", "cluster-announce-port", &port.to_string()])
                .exec(&mut nodes.connection(usize::from(node)))
                .unwrap();
            let (choice, address) = (Arc::clone(&choice), ("127.0.0.1", nodes.port + node));
            std::thread::spawn(move || {
                for asker in gate.incoming() {
                    pass(asker.unwrap(), TcpStream::connect(address).unwrap(), &choice);
                }
            });
            ports.push(port);
        }
        let is_told = |node| {
            let mut ask = redis::cmd("CLUSTER");
            let told: String = ask.arg("NODES").query(&mut nodes.connection(node)).unwrap();
            ports.iter().all(|port| told.contains(&format!(":{port}@")))
        };
        wait("all nodes know the way", || (0..6).all(is_told));
        Self { ports, choice }
    }

    fn url(&self, prefix: &str) -> String {
        format!("redis://127.0.0.1:{},127.0.0.1:{}/{prefix}", self.ports[0], self.ports[1])
    }

    fn lose(&self, choice: impl FnMut(&[u8]) -> Option<Then> + Send + 'static) {
        *self.choice.lock().unwrap() = Box::new(choice);
    }

    fn lose_none(&self) {
        self.lose(|_| None);
    }
}

/// Passes on what somebody asks of a node.
fn pass(asker: TcpStream, node: TcpStream, choice: &Arc<Mutex<Choice>>) {
    let (loses, lost) = channel();
    let (mut from, mut to) = (asker.try_clone().unwrap(), node.try_clone().unwrap());
    let choice = Arc::clone(choice);
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if let Some(then) = choice.lock().unwrap()(&bytes[..count]) {
                let _ = loses.send(then);
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (node, asker);
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if let Ok(then) = lost.try_recv() {
                then();
                break;
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Calls of a function in what is asked.
fn calls(asked: &[u8], function: &str) -> usize {
    let name = format!("{function}\r\n").into_bytes();
    asked.windows(name.len()).filter(|found| *found == name).count()
}

fn place_all(url: &str, texts: &Path) {
    let mut corpus = open(url, texts, OPTIONS);
    for page in racing(TEXTS) {
        place(&mut corpus, &page);
    }
}

/// A page that gets another text, and its first one again.
fn texts_of_a_page() -> [Came; 2] {
    [1, 2].map(|seed| Came::new("http://site/page", "", &prose(seed, 90)))
}

/// The only document of a corpus that was made of it.
const DOCUMENT: u64 = 1;

/// What a worker does whose answer gets lost, and what another one does meanwhile.
struct Course {
    /// Functions, and how many calls of them come before the one whose answer is lost.
    calls: &'static [(&'static str, usize)],
    /// Those of a change of several documents.
    changes: &'static [(&'static str, usize)],
    before: fn(&Nodes, &str, &Path),
    work: fn(&str, &Path),
    meanwhile: fn(&str, &Path),
    /// Documents that there are in the end.
    documents: u64,
}

const CHANGES: &[(&str, usize)] =
    &[("change", 0), ("lock", 0), ("change", 1), ("unlock", 0), ("change", 2)];

const COURSES: [Course; 6] = [
    // Both place the same articles.
    Course {
        calls: &[
            ("announce", 1),
            ("post", 0),
            ("post", 1),
            ("look", 0),
            ("settle", 0),
            ("settle", 1),
            ("write", 0),
            ("write", 1),
            ("unpost", 0),
            ("withdraw", 0),
        ],
        before: |_, _, _| (),
        work: place_all,
        meanwhile: place_all,
        changes: &[],
        documents: TEXTS,
    },
    // A page has another text; meanwhile it has its first one again.
    Course {
        calls: &[("post", 0), ("look", 0), ("unpost", 0), ("write", 0), ("withdraw", 0)],
        changes: CHANGES,
        before: |nodes, prefix, texts| {
            let mut corpus = open(&nodes.url(prefix), texts, OPTIONS);
            assert_eq!(place(&mut corpus, &texts_of_a_page()[0]), DOCUMENT);
        },
        work: |url, texts| revise(url, texts, DOCUMENT, &texts_of_a_page()[1]),
        meanwhile: |url, texts| revise(url, texts, DOCUMENT, &texts_of_a_page()[0]),
        documents: 1,
    },
    // A second look joins two documents; meanwhile a copy comes.
    Course {
        calls: &[("SRANDMEMBER", 0), ("SREM", 0), ("unpost", 0)],
        changes: CHANGES,
        before: |nodes, prefix, texts| drop(check(&doubled(nodes, prefix, texts), true)),
        work: look_again,
        meanwhile: |url, texts| {
            let copy = Came::new("http://c/1", "", &format!("{} And more.", prose(1, 90)));
            place(&mut open(url, texts, OPTIONS), &copy);
        },
        documents: 1,
    },
    // A page may be a copy or not, which a second look finds out; meanwhile comes one that is.
    Course {
        calls: &[("write", 0)],
        changes: &[],
        before: |nodes, prefix, texts| {
            place_of_one_title(&nodes.url(prefix), texts, 0..5);
            // It had its second look as far as it is known.
            assert!(!nodes.engine(prefix).take_due(100).unwrap().is_empty());
        },
        work: |url, texts| place_of_one_title(url, texts, 5..6),
        meanwhile: |url, texts| {
            let copy = Came { address: "http://copy/0".into(), ..of_one_title(0) };
            place(&mut open(url, texts, OPTIONS), &copy);
        },
        documents: 6,
    },
    // Documents are copied from another corpus; when they are there, a copy of one comes.
    Course {
        calls: &[("settle", 0), ("settle", 1)],
        changes: &[],
        before: |nodes, prefix, texts| place_all(&nodes.url(&format!("{prefix}-from")), texts),
        work: copy_from_another,
        meanwhile: |url, texts| {
            let copy = Came { address: "http://other/0".into(), ..racing(1).remove(0) };
            place(&mut open(url, texts, OPTIONS), &copy);
        },
        documents: TEXTS,
    },
    // The same of two that a second look joins when they are there.
    Course {
        calls: &[("settle", 0), ("settle", 1)],
        changes: &[],
        before: |nodes, prefix, texts| {
            drop(check(&doubled(nodes, &format!("{prefix}-from"), texts), true));
        },
        work: copy_from_another,
        meanwhile: |url, texts| {
            check(&open(url, texts, OPTIONS), true);
            look_again(url, texts);
        },
        documents: 1,
    },
];

fn copy_from_another(url: &str, texts: &Path) {
    let all =
        [&format!("{url}-from"), url].map(|url| transfer::Place::shared(open(url, texts, OPTIONS)));
    assert!(transfer::transfer(&all[0], &all[1], |_| ()).unwrap().copied > 0);
}

fn look_again(url: &str, texts: &Path) {
    open(url, texts, OPTIONS).look_again().unwrap();
}

#[test]
fn an_answer_that_is_lost_while_others_go_on_loses_and_doubles_nothing() {
    let nodes = Nodes::start(6, &[("REPLICAS", "0")]);
    let passage = Passage::before(&nodes);
    for (number, course) in COURSES.iter().enumerate() {
        for &(function, left) in course.calls.iter().chain(course.changes) {
            let folder = tempfile::tempdir().unwrap();
            let prefix = format!("{number}-{function}-{left}");
            let (url, path) = (passage.url(&prefix), folder.path());
            (course.before)(&nodes, &prefix, path);
            let (done, is_done) = channel();
            let (meanwhile, at) = (course.meanwhile, (url.clone(), path.to_owned()));
            let mut then: Option<Then> = Some(Box::new(move || {
                meanwhile(&at.0, &at.1);
                done.send(()).unwrap();
            }));
            let is_own = function.starts_with(char::is_lowercase);
            let name = if is_own { format!("_{function}") } else { format!("\n{function}") };
            let mut came = 0;
            passage.lose(move |asked| {
                came += calls(asked, &name);
                then.take_if(|_| came > left)
            });
            (course.work)(&url, path);
            let at = format!("{number}, the answer of {function} behind {left}");
            passage.lose_none();
            is_done.recv().unwrap_or_else(|_| panic!("{at} was not reached"));
            look_again(&url, path);
            let corpus = open(&url, path, OPTIONS);
            assert_eq!(documents(&corpus).len() as u64, course.documents, "{at}");
            let found = check(&corpus, false);
            assert_eq!(found.faults(), 0, "{at}: {found:?}");
        }
    }
}

#[test]
fn workers_that_lose_one_answer_after_the_other_crawl_what_one_machine_crawls() {
    let (nodes, web) = (Nodes::start(7, &[("REPLICAS", "0")]), web());
    let config = settings(&web);
    let expected = alone(&web, &config);
    let passage = Passage::before(&nodes);
    let (mut asked_in_all, lost) = (0, Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&lost);
    passage.lose(move |asked| {
        let calls = calls(asked, "FCALL");
        asked_in_all += calls;
        (calls > 0 && asked_in_all % 29 < calls).then(|| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::new(|| ()) as Then
        })
    });
    let mut crowd = Crowd::at(passage.url("lossy"), &web);
    (0..2).for_each(|_| crowd.start(&config));
    crowd.wait_all();
    passage.lose_none();
    assert!(lost.load(Ordering::SeqCst) > 100, "{lost:?} answers were lost");
    assert_eq!(crowd.clusters(&config), expected);
    assert_polite(&web);
}

#[test]
fn workers_end_though_a_lost_primary_has_taken_with_it_that_nothing_is_left() {
    let (nodes, web) = (Nodes::shared(), web());
    let config = settings(&web);
    let expected = alone(&web, &config);
    let mut crowd = Crowd::on(nodes, "forgotten", &web);
    crowd.start(&config);
    wait_for_requests(&web, 60);
    // Each shard once when it is quiet for the first time, and that there was anything to do.
    let mut engine = nodes.engine("forgotten");
    let mut left: BTreeSet<u32> = (0..config.cluster.shards).collect();
    wait("shards are quiet", || {
        let states = engine.shard_states(config.cluster.shards).unwrap();
        let quiet: Vec<u32> =
            left.iter().copied().filter(|shard| states[*shard as usize].quiet).collect();
        for shard in quiet {
            let mut forget = redis::cmd("HSET");
            forget.arg(format!("{}lease", engine.base_of(shard))).arg("quiet").arg(0);
            engine.ask_one(forget).unwrap();
            left.remove(&shard);
        }
        let mut forget = redis::cmd("DEL");
        engine.ask_one(forget.arg(format!("{}begun", engine.base(0))).clone()).unwrap();
        left.is_empty()
    });
    crowd.wait_all();
    assert_eq!(crowd.clusters(&config), expected);
}
