//! Lines that wait on the disk until it is known which are kept, and what can be read only once.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use crate::base::remote::Location;

use super::Error;
use super::input::Named;

/// Lines that are written one after the other, and then read in their order. Without lines there is
/// no file.
pub(crate) struct Spool {
    path: PathBuf,
    file: Option<zstd::Encoder<'static, File>>,
}

impl Spool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    pub(crate) fn push(&mut self, line: &str) -> Result<(), Error> {
        let failed = Error::io(&self.path);
        let file = if let Some(file) = &mut self.file {
            file
        } else {
            let file = File::create(&self.path).and_then(|file| zstd::Encoder::new(file, -1));
            self.file.insert(file.map_err(&failed)?)
        };
        file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(failed)
    }

    /// Returns a reader; none if there is no line.
    pub(crate) fn read(self) -> Result<Option<SpoolReader>, Error> {
        let Self { path, file: Some(file) } = self else { return Ok(None) };
        let reopened = file
            .finish()
            .and_then(|mut file| file.flush())
            .and_then(|()| zstd::Decoder::new(File::open(&path)?));
        let reader = BufReader::new(reopened.map_err(Error::io(&path))?);
        Ok(Some(SpoolReader { path, reader, line: Vec::new() }))
    }
}

/// Reads a [`Spool`].
pub(crate) struct SpoolReader {
    path: PathBuf,
    reader: BufReader<zstd::Decoder<'static, BufReader<File>>>,
    line: Vec<u8>,
}

impl SpoolReader {
    /// Reads the next line, which is there.
    pub(crate) fn next(&mut self) -> Result<&[u8], Error> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line).map_err(Error::io(&self.path))?;
        Ok(self.line.strip_suffix(b"\n").unwrap_or(&self.line))
    }
}

/// Names what is to be read. What can be read only once is copied to `copy` first.
pub(crate) fn named(inputs: &[PathBuf], copy: &Path) -> Result<Vec<Named>, Error> {
    let mut all: Vec<Named> = Vec::new();
    let mut copied = false;
    for input in inputs {
        let name = input.display().to_string();
        let location = match Location::parse(&name).map_err(Error::remote)? {
            // A name may be no text.
            Location::Local(path) if path.to_str() == Some(&name) => Location::Local(input.clone()),
            other => other,
        };
        let is_pipe = match &location {
            Location::Local(path) => !path.is_file() && !path.is_dir(),
            #[cfg(feature = "object-store")]
            Location::Remote(_) => false,
        };
        if !is_pipe {
            all.push(Named { name, location });
            continue;
        }
        if copied {
            return Err(Error::TwoPipes(input.clone()));
        }
        copied = true;
        spool_input(input, copy)?;
        all.push(Named { name, location: Location::Local(copy.to_owned()) });
    }
    Ok(all)
}

/// Copies a pipe, or standard input if it is called `-`, into a file that can be read twice.
fn spool_input(pipe: &Path, path: &Path) -> Result<(), Error> {
    let mut from: Box<dyn Read> = if pipe.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(pipe).map_err(Error::io(pipe))?)
    };
    let mut start = Vec::new();
    (&mut from).take(4).read_to_end(&mut start).map_err(Error::io(pipe))?;
    let mut from = start.as_slice().chain(from);
    let mut file = File::create(path).map_err(Error::io(path))?;
    // Packed bytes stay as they are; so do those of a table, which are read at any place.
    let is_packed = [&b"PAR1"[..], &[0x1F, 0x8B], &[0x28, 0xB5, 0x2F, 0xFD]];
    if is_packed.iter().any(|magic| start.starts_with(magic)) {
        io::copy(&mut from, &mut file).map_err(Error::io(path))?;
        return Ok(());
    }
    let mut packed = zstd::Encoder::new(file, -1).map_err(Error::io(path))?;
    io::copy(&mut from, &mut packed).map_err(Error::io(path))?;
    packed.finish().and_then(|mut file| file.flush()).map_err(Error::io(path))
}
