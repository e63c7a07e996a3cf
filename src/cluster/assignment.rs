//! Whose own each shard is: all workers find out alike from the list of those who are alive, so
//! that none is above the others, and one that joins or leaves moves no shards but its own.
//!
//! Rendezvous hashing: a shard is that of the worker whose hash together with the shard is largest.
//! Source: Thaler, Ravishankar, Using name-based mappings to increase hit rates, 1998.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Returns whose own each shard is, by its place in the list of workers; none without workers.
pub fn owners<S: AsRef<str>>(workers: &[S], shards: u32) -> Vec<Option<usize>> {
    let hashes: Vec<u64> =
        workers.iter().map(|worker| xxh3_64(worker.as_ref().as_bytes())).collect();
    let owner = |shard: u32| {
        let weight = |at: &usize| {
            let hash = xxh3_64_with_seed(&shard.to_be_bytes(), hashes[*at]);
            (hash, workers[*at].as_ref())
        };
        (0..workers.len()).max_by(|one, other| weight(one).cmp(&weight(other)))
    };
    (0..shards).map(owner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(from: u32, to: u32) -> Vec<String> {
        (from..to).map(|number| format!("worker-{number}")).collect()
    }

    fn owner_names(workers: &[String], shards: u32) -> Vec<String> {
        let own = owners(workers, shards).into_iter();
        own.map(|at| workers[at.expect("there are workers")].clone()).collect()
    }

    #[test]
    fn the_order_of_the_list_says_nothing() {
        let mut workers = names(0, 7);
        let before = owner_names(&workers, 256);
        workers.reverse();
        assert_eq!(owner_names(&workers, 256), before);
    }

    #[test]
    fn a_worker_that_joins_takes_shards_and_moves_no_others() {
        let before = owner_names(&names(0, 9), 1_024);
        let after = owner_names(&names(0, 10), 1_024);
        let moved: Vec<&String> =
            before.iter().zip(&after).filter(|(a, b)| a != b).map(|(_, b)| b).collect();
        assert!(moved.iter().all(|owner| *owner == "worker-9"));
        assert!((60..150).contains(&moved.len()), "{} moved", moved.len());
    }

    #[test]
    fn shards_are_spread_evenly() {
        let workers = names(0, 100);
        let mut counts = vec![0; workers.len()];
        owners(&workers, 16_384).into_iter().flatten().for_each(|at| counts[at] += 1);
        assert!(counts.iter().all(|count| (110..220).contains(count)), "{counts:?}");
    }

    #[test]
    fn without_workers_a_shard_is_nobodys() {
        assert_eq!(owners::<&str>(&[], 3), [None, None, None]);
    }
}
