//! Lines of a file, plain or compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use super::Error;

/// Bytes of one line at most. A document of this size is no mistake of ours.
pub(super) const LINE_BYTES_MAX: usize = 1 << 30;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// First bytes of a gzip file. Source: RFC 1952, 2.3.1.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// First bytes of a zstd frame. Source: RFC 8878, 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Reads the lines of a file. Whether it is packed is told by its first bytes, not by its name.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    line: u64,
}

impl Lines {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let start = reader.fill_buf().map_err(Error::io(path))?;
        let reader: Box<dyn BufRead + Send> = if start.starts_with(&GZIP) {
            let decoder = flate2::bufread::MultiGzDecoder::new(reader);
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        } else if start.starts_with(&ZSTD) {
            let decoder = zstd::Decoder::with_buffer(reader).map_err(Error::io(path))?;
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        } else {
            Box::new(reader)
        };
        Ok(Self { path: path.to_owned(), reader, line: 0 })
    }

    /// Reads the next line into `line`, without its end. Returns false at the end of the file.
    pub fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        line.clear();
        let mut limited = (&mut self.reader).take(LINE_BYTES_MAX as u64);
        let read = limited.read_until(b'\n', line).map_err(Error::io(&self.path))?;
        self.line += 1;
        if read >= LINE_BYTES_MAX && !line.ends_with(b"\n") {
            return Err(Error::LongLine { path: self.path.clone(), line: self.line });
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        Ok(read > 0)
    }
}

/// Copies a pipe, or standard input if it is called `-`, into a file that can be read twice.
pub(super) fn spool(pipe: &Path, path: &Path) -> Result<(), Error> {
    let mut from: Box<dyn Read> = if pipe.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(pipe).map_err(Error::io(pipe))?)
    };
    let file = File::create(path).map_err(Error::io(path))?;
    let mut packed = zstd::Encoder::new(file, -1).map_err(Error::io(path))?;
    io::copy(&mut from, &mut packed).map_err(Error::io(path))?;
    packed.finish().and_then(|mut file| file.flush()).map_err(Error::io(path))
}
