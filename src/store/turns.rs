//! Turns at the write transaction: who came first is served first.
//!
//! redb lets one writer in at a time, and whoever asks right after its commit mostly gets the next
//! transaction too. Two busy writers of one process would starve each other; so each takes a turn
//! before it begins to write, and holds it until its transaction is over.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The line of those who want to write.
#[derive(Debug, Default)]
pub(super) struct Turns {
    line: Mutex<WaitingLine>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct WaitingLine {
    /// Number of who comes next.
    next: u64,
    /// Number of whose turn it is.
    now: u64,
}

/// Somebody's turn to write; over when this is dropped.
#[derive(Debug)]
#[must_use = "the turn is over when this is dropped"]
pub struct Turn<'a>(&'a Turns);

impl Turns {
    fn lock(&self) -> MutexGuard<'_, WaitingLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all who came before are done.
    pub(super) fn take(&self) -> Turn<'_> {
        let mut line = self.lock();
        let own = line.next;
        line.next += 1;
        while line.now != own {
            line = self.moved.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        Turn(self)
    }

    /// Tells whether somebody waits behind the one whose turn it is.
    pub(super) fn wanted(&self) -> bool {
        let line = self.lock();
        line.next > line.now + 1
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().now += 1;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_comes_first_is_served_first() {
        let turns = Turns::default();
        let order = Mutex::new(Vec::new());
        let came = AtomicUsize::new(0);
        let first = turns.take();
        assert!(!turns.wanted());
        std::thread::scope(|scope| {
            for number in 0..4_u64 {
                let (turns, order, came) = (&turns, &order, &came);
                scope.spawn(move || {
                    while came.load(Ordering::SeqCst) != number as usize {
                        std::thread::yield_now();
                    }
                    // The next one comes when this one stands in the line.
                    std::thread::scope(|inner| {
                        inner.spawn(move || {
                            while turns.lock().next != number + 2 {
                                std::thread::sleep(Duration::from_millis(1));
                            }
                            came.fetch_add(1, Ordering::SeqCst);
                        });
                        let _turn = turns.take();
                        order.lock().unwrap().push(number);
                    });
                });
            }
            while came.load(Ordering::SeqCst) < 4 {
                std::thread::yield_now();
            }
            assert!(turns.wanted() && order.lock().unwrap().is_empty());
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3]);
        assert!(!turns.wanted());
    }
}
