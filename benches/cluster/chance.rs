//! Steps at which a worker dies, or sleeps beyond its deadline, by chance.

use std::fmt::Debug;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, Registry};

use crate::work::Task;

/// Kills this process, or has it sleep, at random steps.
struct Chance {
    state: AtomicU64,
    task: Task,
}

struct IsStep(bool);

impl Visit for IsStep {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let steps = ["announced", "looked", "posted", "written", "withdrawn", "locked", "decided"];
        self.0 |= field.name() == "message" && steps.contains(&format!("{value:?}").as_str());
    }
}

impl<S: Subscriber> Layer<S> for Chance {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut step = IsStep(false);
        event.record(&mut step);
        if !step.0 {
            return;
        }
        let mut next = self.state.load(Ordering::Relaxed);
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        self.state.store(next, Ordering::Relaxed);
        let Task { killed, paused, .. } = self.task;
        match next % 100 {
            hit if hit < killed => std::process::abort(),
            hit if hit < killed + paused => {
                let mut file = fs::File::options()
                    .create(true)
                    .append(true)
                    .open(self.task.file("pauses"))
                    .unwrap();
                std::io::Write::write_all(&mut file, b".").unwrap();
                sleep(Duration::from_millis(700));
            }
            _ => {}
        }
    }
}

/// Begins, if the task is to have such steps.
pub(crate) fn begin(task: &Task) {
    if task.killed + task.paused > 0 {
        let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let state = AtomicU64::new(seed.as_nanos() as u64 | 1);
        let layer = Chance { state, task: task.clone() };
        tracing::subscriber::set_global_default(Registry::default().with(layer)).unwrap();
    }
}
