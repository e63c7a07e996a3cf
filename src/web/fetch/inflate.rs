//! Readers that tell a body that broke off from one that ended, where those of the libraries do
//! not.

use std::io::{self, Read};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};

/// Deflate data, with or without the header of zlib.
pub(super) struct Inflate<'a> {
    raw: &'a [u8],
    state: Decompress,
    ended: bool,
}

impl<'a> Inflate<'a> {
    pub(super) fn new(raw: &'a [u8], zlib_header: bool) -> Self {
        // An empty body is an empty page.
        Self { raw, state: Decompress::new(zlib_header), ended: raw.is_empty() }
    }
}

impl Read for Inflate<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let (read_before, written_before) = (self.state.total_in(), self.state.total_out());
        let step = |now: u64, before: u64| {
            usize::try_from(now - before).expect("bounded by the slices that were handed in")
        };
        let status = self.state.decompress(self.raw, out, FlushDecompress::None);
        let status = status.map_err(io::Error::other)?;
        self.raw = &self.raw[step(self.state.total_in(), read_before)..];
        let written = step(self.state.total_out(), written_before);
        self.ended = status == Status::StreamEnd;
        if written == 0 && !self.ended {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(written)
    }
}

/// Brotli data with windows of at most 16 MiB: the extension of up to 1 GiB is not part of `br`.
/// Source: RFC 7932, 9.1.
pub(super) struct Brotli<'a> {
    raw: &'a [u8],
    at: usize,
    total: usize,
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    ended: bool,
}

impl<'a> Brotli<'a> {
    pub(super) fn new(raw: &'a [u8]) -> Self {
        let alloc = StandardAlloc::default;
        let state = Box::new(BrotliState::new_strict(alloc(), alloc(), alloc()));
        Self { raw, at: 0, total: 0, state, ended: raw.is_empty() }
    }
}

impl Read for Brotli<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let (mut left, mut room, mut written) = (self.raw.len() - self.at, out.len(), 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut self.at,
            self.raw,
            &mut room,
            &mut written,
            out,
            &mut self.total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => Err(io::Error::other("invalid brotli data")),
            BrotliResult::ResultSuccess => {
                self.ended = true;
                Ok(written)
            }
            BrotliResult::NeedsMoreInput if written == 0 => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok(written),
        }
    }
}
