//! An object that is written, in parts.

use std::fmt;
use std::io::{self, Write};

use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};
use tokio::task::JoinHandle;

use super::super::Error;
use super::{Objects, runtime};

/// Bytes of a part of an upload. Servers take parts from 5 MiB on; some want all of one length.
const PART_BYTES: usize = 8 << 20;

/// Parts that an object may have. Source: Amazon S3, multipart upload limits.
const PARTS_MAX: usize = 10_000;

/// An object that is written: one part goes out while the next one is filled. It is there when
/// [`Upload::finish`] has returned; one that is dropped before leaves nothing.
pub struct Upload {
    to: Objects,
    buffer: Vec<u8>,
    parts: Option<Box<dyn MultipartUpload>>,
    under_way: Option<JoinHandle<Result<(), object_store::Error>>>,
    sent: usize,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("to", &self.to).finish_non_exhaustive()
    }
}

impl Upload {
    pub(super) fn new(to: Objects) -> Self {
        Self { to, buffer: Vec::new(), parts: None, under_way: None, sent: 0 }
    }

    /// Waits for the part that is under way.
    fn settle(&mut self) -> Result<(), Error> {
        let Some(part) = self.under_way.take() else { return Ok(()) };
        let sent = runtime(&self.to.url)?.block_on(part);
        let sent = sent.map_err(|error| Error {
            url: self.to.to_string(),
            detail: format!("a part was not sent: {error}"),
            is_usage: false,
        })?;
        sent.map_err(|error| self.to.error(&error))
    }

    /// Sends what is held as a part.
    fn send(&mut self) -> Result<(), Error> {
        self.settle()?;
        if self.sent == PARTS_MAX {
            let detail = format!("it would have more than {PARTS_MAX} parts: write smaller files");
            return Err(Error { url: self.to.to_string(), detail, is_usage: false });
        }
        let Objects { store, path, .. } = &self.to;
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(self.to.wait(store.put_multipart(path))?),
        };
        let part = parts.put_part(PutPayload::from(std::mem::take(&mut self.buffer)));
        self.under_way = Some(runtime(&self.to.url)?.spawn(part));
        self.sent += 1;
        Ok(())
    }

    /// Writes the rest, and gives the object its name.
    ///
    /// # Errors
    ///
    /// What the server says. The object is then as it was before.
    pub fn finish(mut self) -> Result<(), Error> {
        if self.parts.is_none() {
            let all = PutPayload::from(std::mem::take(&mut self.buffer));
            self.to.wait(self.to.store.put(&self.to.path, all))?;
            return Ok(());
        }
        if !self.buffer.is_empty() {
            self.send()?;
        }
        self.settle()?;
        let Some(mut parts) = self.parts.take() else { return Ok(()) };
        let done = self.to.wait(parts.complete());
        if done.is_err() {
            // What is left of it on the server is nobody's any more.
            self.parts = Some(parts);
        }
        done.map(drop)
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(PART_BYTES);
        }
        let some = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..some]);
        if self.buffer.len() == PART_BYTES {
            self.send()?;
        }
        Ok(some)
    }

    /// What fills no part waits for more.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(part) = self.under_way.take() {
            part.abort();
        }
        if let Some(mut parts) = self.parts.take()
            && let Err(error) = self.to.wait(parts.abort())
        {
            tracing::warn!(%error, "parts of an upload are left on the server");
        }
    }
}
