//! Records on all cores, and what is made of them in the order in which they were read.

use std::sync::mpsc::sync_channel;
use std::thread;

use super::Error;
use super::input::{Chunk, Sources};

/// Chunks that wait for a thread.
const WAITING: usize = 2;

/// Returns how many threads work; 0 asks for one for each core.
pub(crate) fn threads(asked: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if asked == 0 { cores } else { asked }
}

/// How the work is shared out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// Threads that work.
    pub threads: usize,
    /// Chunks of each of them that wait for whoever takes what was made of them, at most.
    pub made: usize,
}

impl Shares {
    /// So many threads, whose chunks are taken one after the other.
    pub(crate) fn of(threads: usize) -> Self {
        Self { threads, made: WAITING }
    }
}

/// Reads all sources from one on, has threads work on the chunks, and hands what they make of them
/// to `take` in their order.
///
/// Each thread has its own pair of channels and gets every n-th chunk, so that the results are
/// taken back in the order in which the chunks were read.
pub(crate) fn ordered<T: Send, R, E: From<Error>>(
    sources: &Sources,
    from: usize,
    shares: Shares,
    work: impl Fn(Chunk) -> T + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = T>) -> Result<R, E>,
) -> Result<R, E> {
    thread::scope(|scope| {
        let (mut hands, mut backs) = (Vec::new(), Vec::new());
        for _ in 0..shares.threads {
            let (hand, chunks) = sync_channel::<Chunk>(WAITING);
            let (done, back) = sync_channel::<T>(shares.made);
            let work = &work;
            scope.spawn(move || {
                while let Ok(chunk) = chunks.recv() {
                    if done.send(work(chunk)).is_err() {
                        return;
                    }
                }
            });
            hands.push(hand);
            backs.push(back);
        }
        let reader = scope.spawn(move || {
            let mut turns = hands.iter().cycle();
            // Whoever takes the results may have given up, and knows why.
            sources
                .read(from, &mut |chunk| turns.next().is_some_and(|hand| hand.send(chunk).is_ok()))
        });
        // Behind a thread that has gone, what the others have made is not in order.
        let mut results = backs.iter().cycle().map_while(|back| back.recv().ok()).fuse();
        let taken = take(&mut results);
        drop(results);
        drop(backs);
        let read = reader.join().expect("the reader does not panic");
        // What went wrong first is told.
        let taken = taken?;
        read?;
        Ok(taken)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::base::remote::Location;
    use crate::corpus::files::input::{InputOptions, Named};

    #[test]
    fn behind_a_chunk_whose_thread_panicked_nothing_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl");
        fs::write(&path, "{\"text\": \"some words\"}\n".repeat(5_000)).unwrap();
        let named = Named { name: "in.jsonl".to_owned(), location: Location::Local(path) };
        let sources = Sources::open(&[named], InputOptions::default(), Vec::new()).unwrap();
        let work = |chunk: Chunk| {
            assert!(!(600..900).contains(&chunk.first), "as a thread that panics");
            chunk.first
        };
        let mut taken = Vec::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            ordered(&sources, 0, Shares::of(4), work, |chunks| {
                for _ in 0..9 {
                    taken.extend(chunks.next());
                }
                Ok::<_, Error>(())
            })
        }));
        assert!(panicked.is_err(), "it is told");
        assert!(!taken.is_empty() && taken.iter().all(|first| *first < 600), "{taken:?}");
    }
}
