//! Crashes at a chosen point, for the tests of what survives them. Only in builds for debugging:
//! `UNIQCRAWL_CRASH=EVENT:N` ends the process at once at the N-th event of the log with that name.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Listens to the log until its event has come often enough.
pub(super) struct Crash {
    event: String,
    left: AtomicUsize,
}

/// Returns the crash that the environment asks for; none in a build for release.
pub(super) fn asked_for() -> Option<Crash> {
    if !cfg!(debug_assertions) {
        return None;
    }
    let asked = std::env::var("UNIQCRAWL_CRASH").ok()?;
    let (event, number) = asked.rsplit_once(':')?;
    let left = AtomicUsize::new(number.parse().ok()?);
    Some(Crash { event: event.to_owned(), left })
}

impl<S: Subscriber> Layer<S> for Crash {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut name = CrashName { wanted: &self.event, found: false };
        event.record(&mut name);
        if name.found && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            // As `kill -9` does: nothing is closed, flushed or told to anybody.
            std::process::abort();
        }
    }
}

/// Looks for the name of an event.
struct CrashName<'a> {
    wanted: &'a str,
    found: bool,
}

impl Visit for CrashName<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.found |= field.name() == "message" && format!("{value:?}") == self.wanted;
    }
}
