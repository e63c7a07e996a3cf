//! Room for bodies in memory: of all that are read at the same time, and of those that wait to be
//! fingerprinted.
//!
//! A body begins with little room and moves to a class with more when it turns out to be larger.
//! Each class has a share of all room, and who waits for a class holds room of lower classes
//! only: so nobody waits for somebody who waits for him.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::units::Size;

/// Bytes up to which a body stays in the first class, and in the second: nearly all pages are
/// smaller. A body of the third may be as large as its limit.
const CLASS_BYTES: [usize; CLASSES - 1] = [64 << 10, 512 << 10];

const CLASSES: usize = 3;

/// Eighths of all room that each class has. The other two are for bodies that are unpacked.
const SHARES: [usize; CLASSES] = [1, 1, 4];

/// Bytes of a permit.
const UNIT: usize = 1 << 10;

/// Room for all bodies.
#[derive(Debug)]
pub(super) struct BodyRoom([SizeClass; CLASSES]);

#[derive(Debug)]
struct SizeClass {
    free: Arc<Semaphore>,
    units: u32,
}

/// Room that a body has; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct BodyPermit {
    bytes: usize,
    permits: [Option<OwnedSemaphorePermit>; CLASSES],
}

impl BodyRoom {
    pub(super) fn new(size: Size) -> Self {
        Self(SHARES.map(|share| {
            let units = (size.bytes() / 8).saturating_mul(share) / UNIT;
            let units = u32::try_from(units.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
            let units = units.max(1);
            SizeClass { free: Arc::new(Semaphore::new(units as usize)), units }
        }))
    }

    /// Waits until there is room for a small body.
    pub(super) async fn enter(&self) -> BodyPermit {
        let mut held = BodyPermit::default();
        self.widen(&mut held, CLASS_BYTES[0]).await;
        held
    }

    /// Returns how large a body becomes next that is to be at most `bytes_max` long.
    pub(super) fn next(held: &BodyPermit, bytes_max: usize) -> usize {
        let larger = CLASS_BYTES.iter().find(|bytes| **bytes > held.bytes);
        larger.copied().unwrap_or(bytes_max).min(bytes_max)
    }

    /// Waits until there is room for so many bytes in all. A body that is larger than its class
    /// gets all of the class: it goes alone.
    pub(super) async fn widen(&self, held: &mut BodyPermit, bytes: usize) {
        let Some(more) = bytes.checked_sub(held.bytes).filter(|more| *more > 0) else { return };
        let class = CLASS_BYTES.iter().position(|most| bytes <= *most).unwrap_or(CLASSES - 1);
        let SizeClass { free, units } = &self.0[class];
        let more = u32::try_from(more.div_ceil(UNIT)).unwrap_or(u32::MAX).min(*units);
        // Who is in a class does not wait for it.
        if held.permits[class].is_none() {
            // Nobody closes it.
            held.permits[class] = Arc::clone(free).acquire_many_owned(more).await.ok();
        }
        held.bytes = bytes;
    }
}

impl BodyPermit {
    /// Bytes that there is room for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what a body of so many bytes does not need.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let mut due = bytes.div_ceil(UNIT);
        for slot in &mut self.permits {
            let Some(permit) = slot else { continue };
            let kept = permit.num_permits().min(due);
            due -= kept;
            drop(permit.split(permit.num_permits() - kept));
        }
        self.bytes = self.bytes.min(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn held(held: &BodyPermit) -> usize {
        held.permits.iter().flatten().map(OwnedSemaphorePermit::num_permits).sum()
    }

    #[tokio::test]
    async fn a_body_holds_what_it_needs_and_no_more() {
        let room = BodyRoom::new(Size::from_mib(256));
        let free = || room.0.iter().map(|class| class.free.available_permits()).sum::<usize>();
        let all = free();
        let mut body = room.enter().await;
        assert_eq!((body.bytes(), held(&body)), (64 << 10, 64));
        // It is said to be long, or nobody knows.
        assert_eq!(BodyRoom::next(&body, 100 << 10), 100 << 10);
        assert_eq!(BodyRoom::next(&body, 8 << 20), 512 << 10);
        room.widen(&mut body, 512 << 10).await;
        assert_eq!(BodyRoom::next(&body, 8 << 20), 8 << 20);
        room.widen(&mut body, 8 << 20).await;
        assert_eq!(held(&body), 8 << 10);
        body.shrink((3 << 20) + 1);
        assert_eq!((held(&body), all - free()), ((3 << 10) + 1, (3 << 10) + 1));
        drop(body);
        assert_eq!(free(), all);
    }

    /// More bodies than there is room for, each larger than its class: all come through, and the
    /// room is never too small.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn nobody_waits_for_ever() {
        let room = Arc::new(BodyRoom::new(Size::from_mib(1)));
        let units: usize = room.0.iter().map(|class| class.units as usize).sum();
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..64).map(|number| {
            let (room, inside, most) = (Arc::clone(&room), inside.clone(), most.clone());
            tokio::spawn(async move {
                for round in 0..20 {
                    let mut body = room.enter().await;
                    for bytes in [300 << 10, 8 << 20].iter().take((number + round) % 3) {
                        tokio::task::yield_now().await;
                        room.widen(&mut body, *bytes).await;
                    }
                    let now = held(&body);
                    most.fetch_max(inside.fetch_add(now, Ordering::SeqCst) + now, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(now, Ordering::SeqCst);
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= units);
    }
}
