//! Workers that are killed at any step of the way into a corpus of many workers, and such that come
//! back late.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, Registry};
use uniqcrawl::corpus::dedup::Corpus as _;
use uniqcrawl::corpus::shared::SharedOptions;
use uniqcrawl::text::features::Fingerprinter;

use crate::cluster::Nodes;
use crate::cluster_corpus::{documents, open, racing};

/// Steps of the way of an article, as the log names them.
const STEPS: [&str; 5] = ["announced", "looked", "posted", "written", "withdrawn"];

pub(crate) const OPTIONS: SharedOptions =
    SharedOptions { documents: 1_000, span: Duration::from_millis(400) };

pub(crate) const TEXTS: u64 = 3;

/// Does something when a step has come so many times.
pub(crate) struct AtStep {
    step: String,
    left: AtomicUsize,
    does: Box<dyn Fn() + Send + Sync>,
}

impl AtStep {
    pub(crate) fn new(step: &str, number: usize, does: impl Fn() + Send + Sync + 'static) -> Self {
        Self { step: step.to_owned(), left: AtomicUsize::new(number), does: Box::new(does) }
    }
}

struct StepName<'a> {
    wanted: &'a str,
    found: bool,
}

impl Visit for StepName<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.found |= field.name() == "message" && format!("{value:?}") == self.wanted;
    }
}

impl<S: Subscriber> Layer<S> for AtStep {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut name = StepName { wanted: &self.step, found: false };
        event.record(&mut name);
        if name.found && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            (self.does)();
        }
    }
}

impl AtStep {
    /// Does `work` on this thread, and hears of each of its steps.
    ///
    /// A second subscriber is there meanwhile. With one alone, an event to which another thread
    /// comes first, which has none, is told to nobody from then on.
    pub(crate) fn hears<T>(self, work: impl FnOnce() -> T) -> T {
        let _second = Dispatch::new(Registry::default());
        tracing::subscriber::with_default(Registry::default().with(self), work)
    }
}

/// Places all articles; at a step something happens.
fn work(url: &str, texts: &Path, step: &str, number: usize, does: fn()) {
    AtStep::new(step, number, does).hears(|| {
        let mut corpus = open(url, texts, OPTIONS);
        for page in racing(TEXTS) {
            corpus.place(&page.article(&Fingerprinter::default()), 0).unwrap();
        }
    });
}

/// All articles are there, each once, and no text is two documents.
#[track_caller]
pub(crate) fn assert_whole(url: &str, texts: &Path, at: &str) {
    let corpus = open(url, texts, OPTIONS);
    corpus.look_again().unwrap();
    let all = documents(&corpus);
    let copies: BTreeSet<&String> =
        all.iter().flat_map(|one| one.copies.iter().map(|(url, _)| url)).collect();
    assert_eq!(copies.len() as u64, TEXTS * 5, "lost {at}");
    assert_eq!(all.len() as u64, TEXTS, "doubled {at}");
}

/// The process that a test starts as its worker is this program again, with this test alone.
#[test]
fn a_worker_that_is_killed_at_any_step_loses_and_doubles_nothing() {
    if let Ok(task) = std::env::var("UNIQCRAWL_TEST_WORKER") {
        let task: Vec<&str> = task.split(' ').collect();
        // As `kill -9` does: nothing is closed, flushed or told to anybody.
        work(task[0], Path::new(task[1]), task[2], task[3].parse().unwrap(), || {
            std::process::abort()
        });
        return;
    }
    let nodes = Nodes::shared();
    for step in STEPS {
        for number in [1, 4, 6] {
            let folder = tempfile::tempdir().unwrap();
            let url = nodes.url(&format!("kill-{step}-{number}"));
            let name = "a_worker_that_is_killed_at_any_step_loses_and_doubles_nothing";
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", &format!("cluster_kill::{name}")])
                .env(
                    "UNIQCRAWL_TEST_WORKER",
                    format!("{url} {} {step} {number}", folder.path().display()),
                )
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            let at = format!("at {step} {number}");
            assert!(status.signal().is_some(), "{at} was not reached: {status}");
            // Whoever sent the articles heard nothing of the last one, and sends all again.
            work(&url, folder.path(), "none", 1, || ());
            assert_whole(&url, folder.path(), &at);
        }
    }
}

#[test]
fn a_worker_that_comes_back_late_doubles_nothing() {
    let nodes = Nodes::shared();
    for step in STEPS {
        let folder = tempfile::tempdir().unwrap();
        let url = nodes.url(&format!("late-{step}"));
        std::thread::scope(|scope| {
            // Both place the same copies of the same texts; one sleeps until its time is over.
            let (url, folder) = (&url, folder.path());
            let late = || std::thread::sleep(OPTIONS.span * 2);
            scope.spawn(move || work(url, folder, step, 2, late));
            std::thread::sleep(Duration::from_millis(50));
            work(url, folder, "none", 1, || ());
        });
        assert_whole(&url, folder.path(), &format!("late at {step}"));
    }
}
