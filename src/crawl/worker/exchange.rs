//! The thread that carries links between the stores of shards and the streams of the cluster, and
//! tells which shards have nothing to do.
//!
//! What is on its way is told by somebody at any moment: by the shard that has it in its outbox,
//! by the stream, or by the shard that takes it in, which says that it is busy before a link leaves
//! its stream. So all shards are quiet and all streams are empty only when nothing is on its way.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::cluster::{Engine, Error, LinksTo, ReadFrom, Settings};
use crate::frontier::{LinksSent, OUTBOX, SentLink, received};
use crate::store::{self, Row as _, Store, View as _};

use super::Common;
use super::shard::{Shard, lock};

/// Links that are read from a stream, or sent to one, at a time.
const TOGETHER: usize = 1_000;

/// Rests between two rounds: after one that found something, and after one that did not.
const REST: Duration = Duration::from_millis(20);
const REST_MAX: Duration = Duration::from_millis(200);

/// Time after which all is told once more: a primary that is lost may take with it what it was told
/// last.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// What the thread knows of a shard.
struct Known {
    fence: u64,
    /// Where the last link stands that was read.
    read: String,
    /// Where the last link stands that was removed from the stream.
    trimmed: String,
    /// What was told of it; none if nobody knows whether that has arrived.
    quiet: Option<bool>,
    told: Instant,
    /// Up to which sequence its links have arrived at each shard.
    sent: BTreeMap<u32, u64>,
}

impl Known {
    /// Tells whether the shard has nothing to do.
    fn tell(
        &mut self,
        engine: &mut Engine,
        shard: &Shard,
        worker: &str,
        quiet: bool,
    ) -> Result<(), Error> {
        if self.quiet != Some(quiet) {
            self.quiet = None;
            if engine.tell_quiet(shard.lease, worker, quiet)? {
                self.quiet = Some(quiet);
            }
        }
        Ok(())
    }
}

/// What stops one round.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Cluster(#[from] Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Carries links until the worker is over.
pub(super) fn run(settings: &Settings, common: &Common) {
    let (mut engine, mut known) = (None, HashMap::new());
    let mut rest = REST;
    while !common.is_over() {
        match round(&mut engine, settings, common, &mut known) {
            Ok(true) => rest = REST,
            Ok(false) => rest = (rest * 2).min(REST_MAX),
            Err(RoundError::Store(error)) => common.fail(error.to_string()),
            Err(error) => {
                tracing::warn!(%error, "links wait until the cluster takes them");
                engine = None;
                rest = REST_MAX;
            }
        }
        common.rest(rest);
    }
}

/// A shard with its open store.
struct Open {
    shard: Arc<Shard>,
    store: Arc<Store>,
}

/// Returns whether anything was carried.
fn round(
    engine: &mut Option<Engine>,
    settings: &Settings,
    common: &Common,
    known: &mut HashMap<u32, Known>,
) -> Result<bool, RoundError> {
    let engine = match engine {
        Some(engine) => engine,
        none => none.insert(Engine::connect(settings)?),
    };
    let shards: Vec<Arc<Shard>> = lock(&common.shards).values().cloned().collect();
    let opened = shards.into_iter().filter_map(|shard| {
        let store = lock(&shard.store).clone()?;
        Some(Open { shard, store })
    });
    let open: Vec<Open> = opened.collect();
    known.retain(|number, _| open.iter().any(|one| one.shard.number() == *number));
    for Open { shard, store } in &open {
        let fence = shard.lease.fence;
        if known.get(&shard.number()).is_none_or(|known| known.fence != fence) {
            let read = received(&store.snapshot()?)?;
            // Whoever had the shard before may have died between its commit and this. With backups,
            // links leave the stream when one of this lease has them.
            let trimmed = if common.backups.is_some() { "0".to_owned() } else { read.clone() };
            if !engine.trim_links(shard.lease, &common.worker, &trimmed)? {
                continue;
            }
            // Whoever takes a shard says by it that there is something to do.
            let (quiet, told, sent) = (Some(false), Instant::now(), BTreeMap::new());
            known.insert(shard.number(), Known { fence, read, trimmed, quiet, told, sent });
        }
    }
    let mut carried = false;
    for one in &open {
        if let Some(known) = known.get_mut(&one.shard.number()) {
            carried |= send(engine, one, known, common)?;
        }
    }
    carried |= read(engine, &open, known, common)?;
    for one in &open {
        if let Some(known) = known.get_mut(&one.shard.number()) {
            tell(engine, &one.shard, known, common)?;
        }
    }
    Ok(carried)
}

/// Sends what a shard has found of others.
fn send(
    engine: &mut Engine,
    Open { shard, store }: &Open,
    known: &mut Known,
    common: &Common,
) -> Result<bool, RoundError> {
    // Before the look: what comes after it is looked for in the next round.
    if !shard.has_links.swap(false, Ordering::SeqCst) {
        return Ok(false);
    }
    let snapshot = store.snapshot()?;
    let (mut all, mut ends, mut is_all) = (Vec::new(), Vec::new(), true);
    let mut from = 0;
    while let Some(to) = next_target(&snapshot, from)? {
        let after = known.sent.get(&to).map_or(0, |sent| sent + 1);
        if let Some(found) = waiting(&snapshot, LinksSent { shard: to, until: after })? {
            is_all &= found.is_all;
            all.push(LinksTo { shard: to, links: found.links });
            ends.push(LinksSent { shard: to, until: found.until });
        }
        from = to + 1;
    }
    drop(snapshot);
    let sent = engine.send_links(&all, common.config.links_max);
    let sent = match sent {
        Ok(sent) => sent,
        Err(error) => {
            shard.has_links.store(true, Ordering::SeqCst);
            return Err(error.into());
        }
    };
    let mut carried = false;
    for ((to, end), sent) in all.iter().zip(ends).zip(sent) {
        is_all &= sent;
        if sent {
            common.links_out.fetch_add(to.links.len() as u64, Ordering::Relaxed);
            known.sent.insert(end.shard, end.until);
            shard.arrived(end);
            carried = true;
        }
    }
    if !is_all {
        shard.has_links.store(true, Ordering::SeqCst);
    }
    shard.links_are_out.store(is_all, Ordering::SeqCst);
    Ok(carried)
}

/// Links that wait for one shard.
struct Waiting {
    links: Vec<Vec<u8>>,
    /// Sequence of the last of them.
    until: u64,
    /// There are no more.
    is_all: bool,
}

/// Reads links to a shard, from a sequence on.
fn waiting(view: &store::Snapshot, from: LinksSent) -> Result<Option<Waiting>, store::Error> {
    let (mut links, mut until, mut is_all) = (Vec::new(), None, true);
    for entry in view.range(OUTBOX, (from.shard, from.until)..=(from.shard, u64::MAX))? {
        let entry = entry?;
        if links.len() == TOGETHER {
            is_all = false;
            break;
        }
        until = Some(entry.key()?.1);
        links.push(entry.row()?.encode().into_owned());
    }
    Ok(until.map(|until| Waiting { links, until, is_all }))
}

/// The first shard from one on for which there are links.
fn next_target(view: &store::Snapshot, from: u32) -> Result<Option<u32>, store::Error> {
    let mut rows = view.range(OUTBOX, (from, 0)..)?;
    Ok(rows.next().transpose()?.map(|entry| entry.key()).transpose()?.map(|key| key.0))
}

/// Reads what has come for shards that have taken in what came before.
fn read(
    engine: &mut Engine,
    open: &[Open],
    known: &mut HashMap<u32, Known>,
    common: &Common,
) -> Result<bool, RoundError> {
    let (mut wanting, mut from) = (Vec::new(), Vec::new());
    for Open { shard, .. } in open {
        let Some(known) = known.get(&shard.number()) else { continue };
        if shard.wants_links() {
            wanting.push(shard);
            from.push(ReadFrom { shard: shard.number(), last: known.read.clone() });
        }
    }
    let mut carried = false;
    for (shard, found) in wanting.into_iter().zip(engine.read_links(&from, TOGETHER)?) {
        let (Some(last), Some(known)) = (found.last, known.get_mut(&shard.number())) else {
            continue;
        };
        // It is busy from now on, and says so before anything leaves the stream.
        known.tell(engine, shard, &common.worker, false)?;
        let mut links = Vec::new();
        for link in &found.links {
            match SentLink::decode(link) {
                Ok(link) => links.push(link),
                Err(error) => tracing::error!(%error, "a link that came cannot be read"),
            }
        }
        known.read.clone_from(&last);
        shard.take_in(links, last);
        carried = true;
    }
    Ok(carried)
}

/// Removes links that are taken in, and tells whether the shard has anything to do.
fn tell(
    engine: &mut Engine,
    shard: &Shard,
    known: &mut Known,
    common: &Common,
) -> Result<(), RoundError> {
    let is_again = known.told.elapsed() > TELL_AGAIN;
    if is_again {
        (known.told, known.quiet) = (Instant::now(), None);
    }
    let done = shard.done_links(&known.read);
    if let Some(done) = done.filter(|last| is_again || *last != known.trimmed)
        && engine.trim_links(shard.lease, &common.worker, &done)?
    {
        known.trimmed = done;
    }
    // In this order: a shard that is quiet has told before of all that it has to send.
    let quiet = shard.is_quiet()
        && shard.is_taken_in()
        && known.read == known.trimmed
        && !shard.has_links.load(Ordering::SeqCst)
        && shard.links_are_out.load(Ordering::SeqCst);
    Ok(known.tell(engine, shard, &common.worker, quiet)?)
}
