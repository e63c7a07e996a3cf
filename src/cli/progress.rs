//! The progress line of a running crawl, and Ctrl-C.

use std::io::IsTerminal as _;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::crawl::{Context, Live};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use super::exit::Exit;
use super::screen::{bytes, number};

/// Time between two updates of the line on a terminal.
const TICK: Duration = Duration::from_millis(200);

/// Time between two log lines where there is no terminal.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// After the second Ctrl-C, the time that the last commit may take.
const GRACE: Duration = Duration::from_secs(2);

/// Shows progress until it is ended.
pub(super) struct Progress {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Progress {
    /// Starts to show progress and to listen for Ctrl-C.
    pub(super) fn start(context: &Context, quiet: bool) -> Result<Self> {
        listen(context.clone())?;
        let over = Arc::new(AtomicBool::new(false));
        let (ended, context) = (over.clone(), context.clone());
        let thread = thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || show(&context, &ended, quiet))?;
        Ok(Self { over, thread })
    }

    /// Ends the line and waits until it is gone.
    pub(super) fn end(self) {
        self.over.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        // A panic of the thread that shows progress must not hide the result of the crawl.
        drop(self.thread.join());
    }
}

/// First Ctrl-C: let requests end and commit. Second: commit and stop. Third: stop at once.
fn listen(context: Context) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                match context.stop.ask() {
                    1 => eprintln!("stopping: requests under way may end (Ctrl-C again: now)"),
                    2 => {
                        eprintln!("stopping now");
                        thread::spawn(|| {
                            thread::sleep(GRACE);
                            exit(Exit::Interrupted as i32);
                        });
                    }
                    _ => exit(Exit::Interrupted as i32),
                }
            }
        });
    })?;
    Ok(())
}

fn show(context: &Context, over: &AtomicBool, quiet: bool) {
    let terminal = std::io::stderr().is_terminal() && !quiet;
    let bar = if terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
        bar.set_style(style);
    }
    let started = Instant::now();
    let mut logged = Instant::now();
    while !over.load(Ordering::SeqCst) {
        thread::park_timeout(TICK);
        let line = line(&context.live, started.elapsed());
        if terminal {
            bar.set_message(line);
            bar.tick();
        } else if !quiet && logged.elapsed() >= LOG_EVERY {
            logged = Instant::now();
            eprintln!("{line}");
        }
    }
    bar.finish_and_clear();
}

fn line(live: &Live, elapsed: Duration) -> String {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let pages = read(&live.pages);
    let rate = pages as f64 / elapsed.as_secs_f64().max(0.001);
    let shards = match read(&live.shards) {
        0 => String::new(),
        shards => format!(
            "; {shards} shards, links {} out, {} in",
            number(read(&live.links_out)),
            number(read(&live.links_in))
        ),
    };
    format!(
        "{} pages ({rate:.0}/s), {} new, {} duplicates, {} waiting, {} under way, {} failed, \
         {}{}{shards}",
        number(pages),
        number(read(&live.new)),
        number(read(&live.duplicates)),
        number(read(&live.queued)),
        number(read(&live.in_flight)),
        number(read(&live.failed)),
        bytes(read(&live.bytes)),
        if live.short.load(Ordering::Relaxed) { "; waits for open files" } else { "" },
    )
}
