//! The bytes of a file as they stand in it, and the place that reading has come to.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek as _, SeekFrom};

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Where bytes come from.
pub(super) enum Source {
    /// A file, in which reading can go back.
    File(File),
    /// Anything else.
    Stream(Box<dyn Read + Send>),
}

/// A source with a buffer.
pub(super) struct Raw {
    source: Source,
    buffer: Box<[u8]>,
    at: usize,
    filled: usize,
    /// Bytes of the source before the buffer.
    before: u64,
}

impl Raw {
    pub(super) fn new(source: Source) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES].into(), at: 0, filled: 0, before: 0 }
    }

    /// Returns how many bytes were consumed.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Goes back to a byte that was read before, if that can be; else stays.
    pub(super) fn go_back(&mut self, offset: u64) -> io::Result<()> {
        if let Some(at) = offset.checked_sub(self.before).and_then(|at| usize::try_from(at).ok())
            && at <= self.filled
        {
            self.at = at;
        } else if let Source::File(file) = &mut self.source
            && let Ok(at) = file.seek(SeekFrom::Start(offset))
        {
            (self.before, self.at, self.filled) = (at, 0, 0);
        }
        Ok(())
    }

    /// Fills the buffer until at least so many bytes are unread, or the source ends.
    pub(super) fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.filled - self.at < bytes {
            self.buffer.copy_within(self.at..self.filled, 0);
            self.before += self.at as u64;
            (self.at, self.filled) = (0, self.filled - self.at);
            if self.refill()? == 0 {
                break;
            }
        }
        Ok(&self.buffer[self.at..self.filled])
    }

    fn refill(&mut self) -> io::Result<usize> {
        loop {
            let free = &mut self.buffer[self.filled..];
            let read = match &mut self.source {
                Source::File(file) => file.read(free),
                Source::Stream(stream) => stream.read(free),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let read = read?;
                    self.filled += read;
                    return Ok(read);
                }
            }
        }
    }
}

impl BufRead for Raw {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.peek(1)
    }

    fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.filled);
    }
}

impl Read for Raw {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let unread = self.fill_buf()?;
        let read = unread.len().min(out.len());
        out[..read].copy_from_slice(&unread[..read]);
        self.consume(read);
        Ok(read)
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Raw").field("offset", &self.offset()).finish_non_exhaustive()
    }
}
