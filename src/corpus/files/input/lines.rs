//! Lines of a file, plain or packed.

use std::io::{BufRead, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::base::remote::Location;

use super::super::Error;
use super::open::{Counted, is_damage, unpacked};
use super::{Chunk, DOCUMENT_BYTES_MAX, Fault, Item, Take};

/// Reads the lines of a file. Whether it is packed is told by its first bytes, not by its name.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    line: u64,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    /// A line.
    Line,
    /// None that is a document.
    Fault(Fault),
    /// No more.
    End,
}

impl Lines {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let local = Location::Local(path.to_owned());
        Self::open_counted(&local, Arc::default()).map_err(Error::io(path))
    }

    pub(crate) fn open_counted(location: &Location, read: Arc<AtomicU64>) -> std::io::Result<Self> {
        let reader = unpacked(Counted::open(location, read)?)?;
        Ok(Self { path: location.to_string().into(), reader, line: 0 })
    }

    /// Reads the next line into `line`, without its end. Returns false at the end of the file.
    pub fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        match self.read(line)? {
            LineRead::Line => Ok(true),
            LineRead::End => Ok(false),
            LineRead::Fault(fault) => {
                let (path, line, detail) = (self.path.clone(), self.line, fault.detail);
                Err(Error::Line { path, line, detail })
            }
        }
    }

    /// Reads the next line into `line`, without its end, or tells why there is none.
    pub(crate) fn read(&mut self, line: &mut Vec<u8>) -> Result<LineRead, Error> {
        line.clear();
        self.line += 1;
        let mut limited = (&mut self.reader).take(DOCUMENT_BYTES_MAX as u64);
        let read = match limited.read_until(b'\n', line) {
            Ok(read) => read,
            Err(error) if is_damage(&error) => return Ok(LineRead::Fault(cut(&error))),
            Err(error) => return Err(Error::io(&self.path)(error)),
        };
        if read >= DOCUMENT_BYTES_MAX && !line.ends_with(b"\n") {
            line.clear();
            return self.pass_over();
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        Ok(if read > 0 { LineRead::Line } else { LineRead::End })
    }

    /// Goes to the end of a line that is too long.
    fn pass_over(&mut self) -> Result<LineRead, Error> {
        let skipped = self.reader.skip_until(b'\n');
        match skipped {
            Err(error) if !is_damage(&error) => Err(Error::io(&self.path)(error)),
            _ => {
                let detail = format!("longer than {} MiB", DOCUMENT_BYTES_MAX >> 20);
                Ok(LineRead::Fault(Fault::new("too_large", detail)))
            }
        }
    }
}

/// What is packed ends here.
fn cut(error: &std::io::Error) -> Fault {
    Fault::damaged(&match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the file is cut short".to_owned(),
        _ => format!("the file is damaged ({error})"),
    })
}

/// Reads all lines of a source.
pub(super) fn read(source: usize, mut lines: Lines, take: &mut Take<'_>) -> Result<(), Error> {
    let (mut line, mut number, mut more) = (Vec::new(), 0, true);
    while more {
        let mut chunk = Chunk::new(source, number + 1);
        while more && !chunk.is_full() {
            match lines.read(&mut line)? {
                LineRead::Line => chunk.push_line(&line),
                LineRead::Fault(fault) => {
                    more = fault.reason != "damaged";
                    chunk.push(Item::Fault(fault), 0);
                }
                LineRead::End => {
                    more = false;
                    break;
                }
            }
            number += 1;
        }
        if !chunk.items.is_empty() && !take(chunk) {
            return Ok(());
        }
    }
    Ok(())
}
