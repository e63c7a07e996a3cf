//! Changes by the rules: announced, looked for, judged, written, and tried again where somebody
//! else was faster. Many at a time, so that few round trips do for all.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cluster::{Look, Posting};
use crate::corpus::clusters::Article;
use crate::corpus::dedup::Placer;
use crate::store;

use super::commit::{Outcome, Plan, makes};
use super::keys::SharedKeys;
use super::postings::id_of;
use super::unit::{Peers, Unit};
use super::{Error, SharedCorpus};

/// Wait for an article of another worker, and before what somebody else has written is read again.
const WAIT: Duration = Duration::from_millis(2);
const WAIT_MAX: Duration = Duration::from_millis(200);

/// Times that a change is tried while others write the same, or are waited for.
const TRIES_MAX: u32 = 1_000;

/// The longest time that an article gets to be decided.
const SPAN_MAX: Duration = Duration::from_secs(80);

/// How much is done at a time, and how long others wait for it. Where that is not enough, as on a
/// machine that is busy with other things, less is done at a time, and a single article gets
/// longer: what is late is never done. Both come back when all goes well, because others wait that
/// long for one whose worker has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    pub together: usize,
    pub span: Duration,
    span_min: Duration,
}

impl Pace {
    pub(super) fn new(span: Duration) -> Self {
        Self { together: usize::MAX, span, span_min: span }
    }

    /// Something of so many came late.
    pub(super) fn was_late(&mut self, tried: usize) {
        match tried {
            0 | 1 => self.span = (self.span * 2).min(SPAN_MAX),
            _ => self.together = tried / 2,
        }
    }

    /// So many were done in time.
    fn was_in_time(&mut self, tried: usize, took: Duration) {
        if took >= self.span / 4 {
            return;
        }
        self.span = (self.span / 2).max(self.span_min);
        if tried >= self.together {
            self.together = self.together.saturating_mul(2);
        }
    }
}

/// The rules, on documents of the cluster.
pub(super) type SharedPlacer<'a, 'u> = Placer<'a, Unit<'u>, SharedKeys>;

/// An article that was announced.
pub(super) struct Announced {
    pub number: u64,
    /// They are there.
    pub postings: BTreeSet<Posting>,
}

/// One of the things that are done together.
struct Task<'a, R> {
    article: Option<&'a Article>,
    announced: Option<Announced>,
    done: Option<R>,
}

/// A task that was tried, and can be written.
pub(super) struct Tried {
    at: usize,
    pub plan: Plan,
}

impl SharedCorpus {
    /// Does things by the rules and writes them, each again and again until nobody else has written
    /// the same meanwhile. An article that may become a document is announced first.
    pub(super) fn change_all<R>(
        &self,
        articles: &[Option<&Article>],
        work: &mut dyn FnMut(usize, &mut SharedPlacer<'_, '_>) -> Result<R, store::Error>,
    ) -> Result<Vec<R>, Error> {
        let task = |article| Task { article, announced: None, done: None };
        let mut tasks: Vec<Task<'_, R>> = articles.iter().copied().map(task).collect();
        let mut left: Vec<usize> = (0..tasks.len()).collect();
        let mut wait = WAIT;
        for _ in 0..TRIES_MAX {
            if left.is_empty() {
                return Ok(tasks.into_iter().filter_map(|task| task.done).collect());
            }
            let before = left.len();
            let later = left.split_off(self.pace.get().together.min(before));
            left = self.round(&mut tasks, &left, work)?;
            left.extend(later);
            if left.len() < before {
                wait = WAIT;
            } else if !left.is_empty() {
                self.rest(wait);
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
        let late = left.first().and_then(|at| articles[*at]);
        Err(Error::Busy(late.map(|article| article.address.clone())))
    }

    /// Tries some tasks once. Returns those that must be tried again.
    fn round<R>(
        &self,
        tasks: &mut [Task<'_, R>],
        left: &[usize],
        work: &mut dyn FnMut(usize, &mut SharedPlacer<'_, '_>) -> Result<R, store::Error>,
    ) -> Result<Vec<usize>, Error> {
        let begun = Instant::now();
        let keys = self.announce(tasks, left)?;
        let number = |at: usize| tasks[at].announced.as_ref().map(|announced| announced.number);
        let numbers = left.iter().filter_map(|at| number(*at)).collect();
        let peers = RefCell::new(Peers { numbers, ..Peers::default() });
        let unit = |at: &usize| Unit::among(self, number(*at), &peers);
        let mut units: Vec<Unit<'_>> = left.iter().map(unit).collect();
        for ((at, unit), keys) in left.iter().zip(&mut units).zip(&keys) {
            if let Some(article) = tasks[*at].article {
                let id = id_of(article);
                unit.know_id(id.0, keys.of_id(id.0));
            }
        }
        self.preload(tasks, left, &keys, &units)?;
        let (mut tried, mut done) = (Vec::new(), Vec::new());
        let (config, now) = (&self.config, self.now());
        let mut urls = HashSet::new();
        for ((at, unit), keys) in left.iter().copied().zip(&mut units).zip(&keys) {
            let result = work(at, &mut Placer { batch: unit, index: keys, config, now })?;
            let is_second = tasks[at].article.is_some_and(|one| !urls.insert(&one.address));
            if is_second || unit.waits() || unit.changes_peer()? {
                continue;
            }
            let plan = self.plan(unit, number(at))?;
            if let Some(number) = number(at) {
                let rows =
                    if makes(&plan, number) { unit.rows_of_document(number) } else { Vec::new() };
                peers.borrow_mut().judged.insert(number, rows);
            }
            tried.push(Tried { at, plan });
            done.push((result, unit.counts()));
        }
        let announced: Vec<Option<&Announced>> =
            tried.iter().map(|one| tasks[one.at].announced.as_ref()).collect();
        let outcomes = self.carry_out(&tried, &announced)?;
        self.note_pace(left.len(), &outcomes, begun.elapsed());
        let mut over = Vec::new();
        for ((Tried { at, plan }, outcome), (result, counts)) in
            tried.into_iter().zip(outcomes).zip(done)
        {
            let task = &mut tasks[at];
            if outcome == Outcome::Written {
                task.done = Some(result);
                self.add_counts(counts);
                over.extend(task.announced.take_if(|one| !makes(&plan, one.number)));
            } else if outcome == Outcome::Late {
                over.extend(task.announced.take());
            }
        }
        self.withdraw(&over)?;
        self.send_counts()?;
        Ok(left.iter().copied().filter(|at| tasks[*at].done.is_none()).collect())
    }

    /// Notes how a round of so many articles went.
    fn note_pace(&self, left: usize, outcomes: &[Outcome], took: Duration) {
        let came = |of: Outcome| outcomes.iter().filter(|one| **one == of).count();
        tracing::trace!(
            left,
            tried = outcomes.len(),
            written = came(Outcome::Written),
            conflicts = came(Outcome::Conflict),
            marked = came(Outcome::Marked),
            late = came(Outcome::Late),
            ?took,
            "round"
        );
        let mut pace = self.pace.get();
        if outcomes.contains(&Outcome::Late) {
            pace.was_late(left);
        } else {
            pace.was_in_time(left, took);
        }
        self.pace.set(pace);
    }

    /// Waits a little, not as long as others who wait for the same.
    fn rest(&self, wait: Duration) {
        let own = self.worker.rotate_left(self.changes.get() as u32) % 64;
        sleep(wait + wait * own as u32 / 64);
    }

    /// Announces articles, and then asks by all their keys who else was: in this order, so that of
    /// two who race at least one sees the other. Returns what was found for each task.
    fn announce<R>(
        &self,
        tasks: &mut [Task<'_, R>],
        left: &[usize],
    ) -> Result<Vec<SharedKeys>, Error> {
        self.renew(tasks, left)?;
        while self.announce_new(tasks, left)? {}
        tracing::trace!("announced");
        let of_task = |at: &usize| tasks[*at].announced.as_ref().map(|one| &one.postings);
        let postings: Vec<Posting> = left.iter().filter_map(of_task).flatten().copied().collect();
        let mut found = self.engine.borrow_mut().post(&self.buckets, &postings)?.into_iter();
        let mut all = Vec::new();
        for at in left {
            let keys = SharedKeys::default();
            for posting in of_task(at).into_iter().flatten() {
                keys.add(posting, found.next().unwrap_or_default());
            }
            if let Some(article) = tasks[*at].article {
                keys.ask(self, &self.asked(&article.keys))?;
            }
            all.push(keys);
        }
        tracing::trace!("looked");
        Ok(all)
    }

    /// Announces articles that are not. Tells whether there were any: a number may turn out to be
    /// that of somebody else.
    fn announce_new<R>(&self, tasks: &mut [Task<'_, R>], left: &[usize]) -> Result<bool, Error> {
        let engine = &mut *self.engine.borrow_mut();
        let mut new = Vec::new();
        for at in left {
            if tasks[*at].article.is_some() && tasks[*at].announced.is_none() {
                new.push((*at, self.numbers.borrow_mut().next(engine)?));
            }
        }
        if new.is_empty() {
            return Ok(false);
        }
        let numbers: Vec<u64> = new.iter().map(|(_, number)| *number).collect();
        let free = engine.announce(&numbers, self.pace.get().span)?;
        for ((at, number), _) in new.into_iter().zip(free).filter(|(_, is_free)| *is_free) {
            let task = &mut tasks[at];
            task.announced = task.article.map(|article| Announced {
                number,
                postings: self.postings_of_article(article, number),
            });
        }
        Ok(true)
    }

    /// Takes the marks off articles that were announced before; those that are late get a new
    /// number.
    fn renew<R>(&self, tasks: &mut [Task<'_, R>], left: &[usize]) -> Result<(), Error> {
        let known: Vec<usize> =
            left.iter().copied().filter(|at| tasks[*at].announced.is_some()).collect();
        let numbers: Vec<u64> = known
            .iter()
            .filter_map(|at| tasks[*at].announced.as_ref().map(|one| one.number))
            .collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let pending = self.engine.borrow_mut().renew(&numbers, self.pace.get().span)?;
        let mut over = Vec::new();
        for (at, pending) in known.into_iter().zip(pending) {
            over.extend(tasks[at].announced.take_if(|_| !pending));
        }
        self.withdraw(&over)
    }

    /// Reads the documents that the judge will likely ask for, all together.
    fn preload<R>(
        &self,
        tasks: &[Task<'_, R>],
        left: &[usize],
        keys: &[SharedKeys],
        units: &[Unit<'_>],
    ) -> Result<(), Error> {
        let mut looks: Vec<Look> = Vec::new();
        let mut counts = Vec::new();
        for ((at, keys), unit) in left.iter().zip(keys).zip(units) {
            let wanted = match tasks[*at].article {
                Some(article) => unit.wanted(&keys.likely(self, article)?),
                None => Vec::new(),
            };
            counts.push(wanted.len());
            looks.extend(wanted);
        }
        if looks.is_empty() {
            return Ok(());
        }
        let found = self.engine.borrow_mut().look_unlocked(&looks)?;
        self.fetch_records(&found)?;
        let mut found = looks.into_iter().zip(found);
        for (count, unit) in counts.into_iter().zip(units) {
            found.by_ref().take(count).try_for_each(|(look, found)| unit.take_in(look, found))?;
        }
        Ok(())
    }

    /// Takes back what was announced of articles that did not become documents.
    fn withdraw(&self, over: &[Announced]) -> Result<(), Error> {
        let over: Vec<_> = over.iter().map(|one| (one.number, &one.postings)).collect();
        Ok(self.take_back(&over)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_is_done_in_smaller_parts_and_a_single_article_gets_longer() {
        let mut pace = Pace::new(Duration::from_secs(5));
        pace.was_late(100);
        assert_eq!(pace.together, 50);
        (0..10).for_each(|_| pace.was_late(pace.together));
        assert_eq!((pace.together, pace.span), (1, SPAN_MAX));
        pace.was_in_time(1, Duration::from_secs(20));
        assert_eq!(pace.together, 1, "that was nearly too long");
        (0..3).for_each(|_| pace.was_in_time(pace.together, Duration::from_secs(1)));
        assert_eq!((pace.together, pace.span), (8, Duration::from_secs(10)));
        pace.was_in_time(2, Duration::from_secs(1));
        assert_eq!(pace.span, Duration::from_secs(5), "and no shorter than it was");
        pace.was_in_time(4, Duration::from_secs(1));
        assert_eq!(pace.together, 8, "there was no more to do");
    }
}
