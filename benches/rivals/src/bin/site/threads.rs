//! Work on many pages, on all cores.

use std::thread;

/// What `make` says of each number below `count`, in their order.
pub fn in_threads<T: Send>(count: u64, make: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let each = count.div_ceil(threads);
    let part = |thread: u64| (thread * each)..((thread + 1) * each).min(count);
    thread::scope(|scope| {
        let make = &make;
        let of_part = |thread| scope.spawn(move || part(thread).map(make).collect::<Vec<T>>());
        let started: Vec<_> = (0..threads).map(of_part).collect();
        started.into_iter().flat_map(|part| part.join().expect("no page panics")).collect()
    })
}
