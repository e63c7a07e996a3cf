//! Segments in object storage: what is written together is one object, which is there when all of
//! it is. An object is read as a whole, because what came together is mostly asked for together.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::base::remote::{self, Objects};
use crate::store::{BadRow, Error};

use super::{At, Segments, StoredPlaceOfText, name_of};

/// Bytes that are sent without being asked for: whoever reads one text reads so much at most.
const OBJECT_BYTES: usize = 4 << 20;

/// Bytes of objects that are kept in memory, and about how many these are.
const KEPT_BYTES: u64 = 32 << 20;
const KEPT: usize = 256;

/// Which segment of which worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Of {
    worker: u64,
    segment: u32,
}

impl Of {
    fn place(place: &StoredPlaceOfText) -> Self {
        Self { worker: place.worker, segment: place.segment }
    }
}

#[derive(Clone)]
struct BytesOf;

impl Weighter<Of, Arc<[u8]>> for BytesOf {
    fn weight(&self, _of: &Of, bytes: &Arc<[u8]>) -> u64 {
        bytes.len() as u64 + 64
    }
}

pub(super) struct SegmentObjects {
    to: Objects,
    /// The next object, and what it has so far.
    own: Of,
    waiting: Vec<u8>,
    kept: Cache<Of, Arc<[u8]>, BytesOf>,
}

impl SegmentObjects {
    pub(super) fn new(to: &Objects, worker: u64) -> Self {
        let kept = Cache::with_weighter(KEPT, KEPT_BYTES, BytesOf);
        let own = Of { worker, segment: 0 };
        Self { to: to.clone(), own, waiting: Vec::new(), kept }
    }

    fn object(&self, of: Of) -> Objects {
        self.to.child(&name_of(of.worker, of.segment))
    }

    fn error(&self, of: Of, error: remote::Error) -> Error {
        Error::Io { path: self.object(of).to_string().into(), source: error.into() }
    }
}

impl Segments for SegmentObjects {
    fn append(&mut self, bytes: &[u8]) -> Result<At, Error> {
        if self.waiting.len() >= OBJECT_BYTES {
            self.sync()?;
        }
        let offset = self.waiting.len() as u64;
        self.waiting.extend_from_slice(bytes);
        Ok(At { segment: self.own.segment, offset })
    }

    fn sync(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let own = self.own;
        let bytes = std::mem::take(&mut self.waiting);
        // Also after a failure: what may be there under this name is nobody's.
        self.own.segment += 1;
        let failed = |source| Error::Io { path: self.object(own).to_string().into(), source };
        let mut upload = self.object(own).write();
        upload.write_all(&bytes).map_err(failed)?;
        upload.finish().map_err(|error| self.error(own, error))?;
        self.kept.insert(own, bytes.into());
        Ok(())
    }

    fn fetch(&mut self, places: &[StoredPlaceOfText]) -> Result<(), Error> {
        let of = places.iter().map(Of::place);
        let of = of.filter(|of| *of != self.own && self.kept.peek(of).is_none());
        let of: Vec<Of> = of.collect::<BTreeSet<_>>().into_iter().collect();
        let objects: Vec<Objects> = of.iter().map(|of| self.object(*of)).collect();
        for (of, got) in of.into_iter().zip(Objects::get_all(&objects)) {
            // What cannot be had is told to whoever reads it.
            if let Ok(bytes) = got {
                self.kept.insert(of, bytes.into());
            }
        }
        Ok(())
    }

    fn read(&mut self, place: &StoredPlaceOfText) -> Result<Vec<u8>, Error> {
        let of = Of::place(place);
        let slice = |bytes: &[u8]| {
            let from = usize::try_from(place.offset).unwrap_or(usize::MAX);
            let end = from.saturating_add(place.length as usize);
            let short = BadRow { kind: "body", detail: "its object ends before it" };
            bytes.get(from..end).map(<[u8]>::to_vec).ok_or_else(|| Error::from(short))
        };
        if of == self.own {
            return slice(&self.waiting);
        }
        if let Some(bytes) = self.kept.get(&of) {
            return slice(&bytes);
        }
        let bytes = self.object(of).get().map_err(|error| self.error(of, error))?;
        let found = slice(&bytes);
        self.kept.insert(of, bytes.into());
        found
    }
}
