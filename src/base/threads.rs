//! Work that several threads share.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Makes something of each part with so many threads, of which each takes the next part when it has
/// ended one, and returns it in their order. A panic of one is passed on.
pub fn each_part<P: Send, T: Send>(
    parts: impl ExactSizeIterator<Item = P> + Send,
    threads: usize,
    work: impl Fn(P) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(parts.len());
    if threads <= 1 {
        return parts.map(work).collect();
    }
    let parts = Mutex::new(parts.enumerate());
    let run = || {
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        let made = std::iter::from_fn(next).map(|(number, part)| (number, work(part)));
        made.collect::<Vec<(usize, T)>>()
    };
    let mut made = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        let ended = ended.flat_map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)));
        ended.collect::<Vec<_>>()
    });
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, made)| made).collect()
}

/// Parts of a list for each thread.
const PARTS: usize = 16;

/// Makes something of each of a list with so many threads, and returns it in their order. Of what
/// fails, the first is told.
pub(crate) fn each_of<T: Sync, M: Send, E: Send>(
    list: &[T],
    threads: usize,
    make: impl Fn(&T) -> Result<M, E> + Sync,
) -> Result<Vec<M>, E> {
    let size = list.len().div_ceil(PARTS * threads).max(1);
    let parts = each_part(list.chunks(size), threads, |part| {
        part.iter().map(&make).collect::<Result<Vec<M>, E>>()
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, E>>()?;
    Ok(parts.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_a_list_comes_in_its_order_and_the_first_that_fails_is_told() {
        let numbers: Vec<u32> = (0..100).collect();
        for threads in [1, 3, 200] {
            let made = each_of(&numbers, threads, |number| Ok::<_, u32>(number * 2));
            assert_eq!(made.unwrap(), (0..100).map(|number| number * 2).collect::<Vec<_>>());
            let failed = |number: &u32| if *number > 60 { Err(*number) } else { Ok(()) };
            assert_eq!(each_of(&numbers, threads, failed), Err(61));
        }
        assert_eq!(each_of(&[] as &[u32], 2, |number| Ok::<_, ()>(*number)), Ok(Vec::new()));
    }

    #[test]
    fn what_is_made_of_parts_comes_in_their_order_and_a_panic_is_passed_on() {
        let numbers: Vec<u32> = (0..100).collect();
        for threads in [1, 3, 200] {
            let sums = each_part(numbers.chunks(4), threads, |part| part.iter().sum::<u32>());
            let wanted: Vec<u32> = (0..25).map(|part| 16 * part + 6).collect();
            assert_eq!(sums, wanted);
        }
        let own = thread::current().id();
        assert_eq!(each_part([7].into_iter(), 2, |_| thread::current().id()), [own]);
        let panics = || each_part(0..3, 2, |number| assert_ne!(number, 1, "it is one"));
        std::panic::catch_unwind(panics).unwrap_err();
    }

    #[test]
    fn a_thread_that_is_held_up_does_not_hold_up_the_parts_of_others() {
        let ended = std::sync::atomic::AtomicUsize::new(0);
        let ordering = std::sync::atomic::Ordering::SeqCst;
        let since = std::time::Instant::now();
        each_part(0..100, 2, |part| {
            // The first one ends when all others have.
            while part == 0 && ended.load(ordering) < 99 {
                assert!(since.elapsed().as_secs() < 30, "the others wait for it");
                thread::yield_now();
            }
            ended.fetch_add(1, ordering)
        });
        assert_eq!(ended.load(ordering), 100);
    }
}
