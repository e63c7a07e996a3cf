//! How the memory for building an index is divided, and what keeps to it.
//!
//! ```text
//! arenas   a half    postings of documents that are not written yet; 15 MiB a thread at least
//! waiting  an 8th    texts that were read and documents made of them, until a thread takes them;
//!                    4 MiB at least
//! merging  as much   rows of the segment that is copied into a larger one, for a short time;
//!          again     16 MiB at least
//! ```

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tantivy::directory::{Directory as _, ManagedDirectory};
use tantivy::index::{SegmentComponent, SegmentMeta};
use tantivy::indexer::{LogMergePolicy, MergeCandidate, MergePolicy};
use tantivy::schema::document::Document as EngineDocument;
use tantivy::{HasLen as _, TantivyDocument};

/// The engine wants this much memory for each thread, and takes no more than the most.
const ARENA_BYTES: (usize, usize) = (15 << 20, 2048 << 20);

/// Least memory for documents that wait.
const WAITING_BYTES_MIN: usize = 4 << 20;

/// Least memory for merging: a segment that a thread writes has fewer rows than this.
const MERGING_BYTES_MIN: usize = 16 << 20;

/// A thread more is worth its while for this many documents.
const DOCUMENTS_PER_THREAD: u64 = 500;

const THREADS_MAX: usize = 8;

/// Segments of fewer documents than this are merged with each other, whatever their size.
const SMALL_DOCUMENTS: u32 = 1_000;

/// How an index is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// Threads that cut texts into words.
    pub cutters: usize,
    /// Threads that write segments.
    pub writers: usize,
    /// Memory of each of these.
    pub arena_bytes: usize,
    /// Memory of documents that wait.
    pub waiting_bytes: usize,
    /// A segment with more rows than this is merged into no other.
    pub merged_bytes_max: usize,
}

impl Plan {
    /// Divides `memory` for an update of so many documents.
    pub(super) fn new(memory: usize, documents: u64) -> Self {
        Self::on(thread::available_parallelism().map_or(1, usize::from), memory, documents)
    }

    fn on(cores: usize, memory: usize, documents: u64) -> Self {
        let useful = usize::try_from(documents / DOCUMENTS_PER_THREAD).unwrap_or(usize::MAX);
        let cutters = useful.clamp(1, cores.min(THREADS_MAX));
        let (least, most) = ARENA_BYTES;
        let writers = (memory / 2 / least).clamp(1, cutters);
        Self {
            cutters,
            writers,
            arena_bytes: (memory / 2 / writers).clamp(least, most),
            waiting_bytes: (memory / 8).max(WAITING_BYTES_MIN),
            merged_bytes_max: memory.max(MERGING_BYTES_MIN),
        }
    }
}

/// Room for documents that wait.
#[derive(Debug)]
pub(super) struct Room {
    bytes_max: usize,
    state: Mutex<RoomState>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct RoomState {
    taken: usize,
    /// Nobody waits any more.
    open: bool,
}

/// Room that a document has; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub(super) fn new(bytes_max: usize) -> Arc<Self> {
        let (state, given_back) = Default::default();
        Arc::new(Self { bytes_max, state, given_back })
    }

    /// Waits until there is room for so many bytes. A document that is larger than all room waits
    /// until it is alone.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Held {
        let full = |state: &mut RoomState| {
            !state.open && state.taken > 0 && state.taken + bytes > self.bytes_max
        };
        let waited = self.given_back.wait_while(self.state(), full);
        waited.unwrap_or_else(PoisonError::into_inner).taken += bytes;
        Held { room: Arc::clone(self), bytes }
    }

    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.state().taken -= self.bytes;
        self.room.given_back.notify_one();
    }
}

/// Opens the room for all when a thread ends that makes room: if it fails, nobody waits for it.
#[derive(Debug)]
pub(super) struct Leaving(pub Arc<Room>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.state().open = true;
        self.0.given_back.notify_all();
    }
}

/// A document on its way to a thread of the engine, whose queue counts documents and not bytes.
#[derive(Debug)]
pub(super) struct Waiting {
    document: TantivyDocument,
    _held: Held,
}

impl Waiting {
    pub(super) fn new(document: TantivyDocument, held: Held) -> Self {
        Self { document, _held: held }
    }
}

impl EngineDocument for Waiting {
    type Value<'a> = <TantivyDocument as EngineDocument>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as EngineDocument>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        self.document
    }
}

/// Merges segments of similar size, but for those with more rows than there is memory for: the
/// engine has all rows of a segment in memory when it copies them. Of those, it merges each of
/// which more than half is deleted with nothing: rows that are left are copied one by one.
#[derive(Debug)]
pub(super) struct Merges {
    pub files: ManagedDirectory,
    pub bytes_max: usize,
}

impl MergePolicy for Merges {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let (small, large): (Vec<_>, Vec<_>) = segments.iter().cloned().partition(|segment| {
            let rows = self.files.open_read(&segment.relative_path(SegmentComponent::Store));
            // One that cannot be read is found by the merge, which says so.
            rows.map_or(0, |rows| rows.len()) <= self.bytes_max
        });
        let mut policy = LogMergePolicy::default();
        policy.set_min_layer_size(SMALL_DOCUMENTS);
        let mut merges = policy.compute_merge_candidates(&small);
        let emptied = large.iter().filter(|one| one.num_deleted_docs() > one.num_docs());
        merges.extend(emptied.map(|one| MergeCandidate(vec![one.id()])));
        merges
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use tantivy::schema::{BytesOptions, INDEXED, Schema};
    use tantivy::{Index, IndexWriter, Term};

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn no_more_threads_write_than_half_of_the_memory_is_enough_for() {
        let writers = |mib: usize| Plan::on(8, mib * MIB, u64::MAX).writers;
        assert_eq!([4, 16, 59, 60, 90, 1024].map(writers), [1, 1, 1, 2, 3, 8]);
        let cutters = |documents| Plan::on(4, 64 * MIB, documents).cutters;
        assert_eq!([0, 999, 1_000, u64::MAX].map(cutters), [1, 1, 2, 4]);
    }

    #[test]
    fn arenas_and_documents_that_wait_fit_into_the_memory() {
        for mib in [32, 64, 100, 128, 1_000] {
            let plan = Plan::on(8, mib * MIB, u64::MAX);
            let all = plan.writers * plan.arena_bytes + plan.waiting_bytes;
            assert!(all <= mib * MIB, "{plan:?}");
            assert_eq!(plan.merged_bytes_max, mib * MIB);
        }
        let least = Plan::on(8, 4 * MIB, u64::MAX);
        assert_eq!((least.arena_bytes, least.waiting_bytes), (15 * MIB, 4 * MIB));
        assert_eq!(least.merged_bytes_max, 16 * MIB);
    }

    #[test]
    fn a_document_waits_for_room_and_one_that_is_too_large_until_it_is_alone() {
        let room = Room::new(10);
        let (first, second) = (room.take(6), room.take(4));
        let (done, taken) = channel();
        let other = Arc::clone(&room);
        let waiting = thread::spawn(move || {
            let held = other.take(1_000);
            done.send(()).unwrap();
            held
        });
        let soon = Duration::from_millis(50);
        assert!(taken.recv_timeout(soon).is_err(), "there is no room");
        drop(first);
        assert!(taken.recv_timeout(soon).is_err(), "it is not alone");
        drop(second);
        let large = waiting.join().unwrap();
        assert_eq!(room.state().taken, 1_000);
        drop(large);
        assert_eq!(room.state().taken, 0);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_failed() {
        let room = Room::new(10);
        let _full = room.take(10);
        let other = Arc::clone(&room);
        let waiting = thread::spawn(move || drop(other.take(1)));
        drop(Leaving(Arc::clone(&room)));
        waiting.join().unwrap();
    }

    /// Writes twenty segments of one document, deletes that of `deleted`, and returns how many
    /// segments are left, and how many of their documents are deleted.
    fn merged(bytes_max: usize, documents: u64, deleted: u64) -> (usize, u32) {
        let mut schema = Schema::builder();
        let number = schema.add_u64_field("number", INDEXED);
        let row = schema.add_bytes_field("row", BytesOptions::default().set_stored());
        let index = Index::create_in_ram(schema.build());
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15 * MIB).unwrap();
        let files = index.directory().clone();
        writer.set_merge_policy(Box::new(Merges { files, bytes_max }));
        for segment in 0..20 {
            for one in 0..documents {
                let mut document = TantivyDocument::new();
                document.add_u64(number, segment * documents + one);
                document.add_bytes(row, &[b'x'; 100]);
                writer.add_document(document).unwrap();
            }
            writer.commit().unwrap();
        }
        for one in 0..deleted {
            writer.delete_term(Term::from_field_u64(number, one));
        }
        writer.commit().unwrap();
        writer.wait_merging_threads().unwrap();
        let segments = index.searchable_segment_metas().unwrap();
        (segments.len(), segments.iter().map(SegmentMeta::num_deleted_docs).sum())
    }

    #[test]
    fn segments_with_more_rows_than_there_is_memory_for_are_not_merged() {
        assert_eq!(merged(1, 4, 0), (20, 0));
        assert!(merged(MIB, 4, 0).0 < 10);
    }

    #[test]
    fn a_large_segment_is_copied_when_more_than_half_of_it_is_deleted() {
        assert_eq!(merged(1, 4, 2), (20, 2));
        assert_eq!(merged(1, 4, 3), (20, 0));
    }
}
