//! Pages that were read are looked up in the state of the last commit before they are judged: as
//! many together as have come while those before them were.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::text::features::ArticleKeys;

use super::crew::Home;
use super::fingerprint::{ReadPage, Yield};
use super::visitor::Visit;

/// Pages that are looked up together at most.
pub(super) const TOGETHER: usize = 256;

/// Pages that are worth a thread.
const OF_THREAD: usize = 64;

/// A page on its way to the committer of a crawl.
pub(super) type OnItsWay = (Arc<Home>, Visit<Yield>);

/// Looks pages up with so many threads until none can come any more.
pub(super) fn run(read: &Receiver<OnItsWay>, threads: usize) {
    while let Ok(first) = read.recv() {
        let mut round: Vec<OnItsWay> =
            iter::once(first).chain(read.try_iter()).take(TOGETHER).collect();
        round.sort_by_key(|(home, _)| Arc::as_ptr(home).addr());
        for of_crawl in round.chunk_by_mut(|(one, _), (next, _)| Arc::ptr_eq(one, next)) {
            look_up(of_crawl, threads);
        }
        for (home, visit) in round {
            home.deliver(visit);
        }
    }
}

/// Looks up pages of one crawl, but for those that are not to be stored. A store that cannot be
/// read is left to whoever stores them.
fn look_up(of_crawl: &mut [OnItsWay], threads: usize) {
    let Some((home, _)) = of_crawl.first() else { return };
    let home = Arc::clone(home);
    let pages = of_crawl.iter_mut().filter_map(|(_, visit)| match &mut visit.outcome {
        Yield::Page(page) if !page.noindex => Some(page),
        _ => None,
    });
    let mut pages: Vec<&mut Box<ReadPage>> = pages.collect();
    let keys: Vec<&ArticleKeys> = pages.iter().map(|page| &page.article.keys).collect();
    let threads = threads.min(keys.len().div_ceil(OF_THREAD));
    let looked = AssertUnwindSafe(|| home.committed.look_up(&keys, threads));
    let found = catch_unwind(looked).unwrap_or_default();
    tracing::trace!(pages = keys.len(), "looked up");
    for (page, found) in pages.iter_mut().zip(found) {
        page.ahead = found;
    }
    for (_, visit) in of_crawl {
        visit.held.shrink(&visit.outcome);
    }
}
