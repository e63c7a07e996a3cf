//! Records one after the other, whatever lies between them.
//!
//! Memory: one record, and of that no more than the limit. What is longer, broken or no record is
//! passed over, up to the next line that begins one.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::raw::{Raw, Source};
use super::unpacked::{Step, Unpacked};
use super::{BLOCK_BYTES_MAX, Entry, Error, Fault, FaultKind, Headers, Kind, Record, Spot};

/// Bytes of the header of a record at most.
pub(super) const HEADER_BYTES_MAX: usize = 1 << 20;

/// Bytes of a line that are kept of what is no record.
const STRAY_BYTES_MAX: usize = 64;

/// Bytes at the start of a file in which a record is looked for.
const SEARCHED_BYTES_MAX: u64 = 16 << 20;

/// What is between two records, and how the second begins.
const NEXT: &[u8] = b"\r\n\r\nWARC/";

/// How each record begins.
const START: &[u8] = b"WARC/";

/// How a file of the format before WARC begins.
const ARC: &[u8] = b"filedesc:";

/// Reads a file.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    unpacked: Unpacked,
    block_bytes_max: usize,
    /// What was unpacked; all of it is of one part.
    window: Vec<u8>,
    /// Bytes of the window that were taken.
    at: usize,
    /// Where the window begins.
    spot: Spot,
    /// What the next step is, where it was looked at before its turn.
    pending: Option<Step>,
    /// The first line of the next record, if it was read.
    begun: Option<Line>,
    /// A fault that is told after the record that it is of.
    later: Option<Fault>,
    /// A fault was told, which explains what is passed over next.
    astray: bool,
    /// There was a record, or what was meant for one.
    any: bool,
    /// How a file begins that is none.
    hint: &'static str,
}

/// What came after some bytes that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// More of the same.
    More,
    /// Another part.
    Part,
    End,
    Corrupt,
    Cut,
}

/// A line, as far as it is kept.
#[derive(Debug)]
struct Line {
    spot: Spot,
    bytes: Vec<u8>,
    /// Bytes of it in the file.
    length: u64,
    /// What stands behind it.
    next: Next,
}

impl Line {
    fn is_blank(&self) -> bool {
        self.length <= 2 && self.bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
    }

    fn is_start(&self) -> bool {
        let version = self.bytes.strip_prefix(START);
        version.and_then(|rest| rest.first()).is_some_and(u8::is_ascii_digit)
    }
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        Self::over(path, Source::File(file))
    }

    /// Reads what comes from anywhere else; `name` is told where it cannot be read.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) fn new(name: &Path, stream: Box<dyn Read + Send>) -> Result<Self, Error> {
        Self::over(name, Source::Stream(stream))
    }

    fn over(path: &Path, source: Source) -> Result<Self, Error> {
        let unpacked = Unpacked::new(Raw::new(source))
            .map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Ok(Self {
            path: path.to_owned(),
            unpacked,
            block_bytes_max: BLOCK_BYTES_MAX,
            window: Vec::new(),
            at: 0,
            spot: Spot::default(),
            pending: None,
            begun: None,
            later: None,
            astray: false,
            any: false,
            hint: "no record begins in it",
        })
    }

    /// Sets how many bytes of a block are held in memory; a longer one is passed over.
    #[must_use]
    pub(crate) fn with_block_max(self, bytes: usize) -> Self {
        Self { block_bytes_max: bytes, ..self }
    }

    /// Returns the file.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the next record or fault; none at the end.
    ///
    /// # Errors
    ///
    /// If the file cannot be read on, or has no record at all.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, Error> {
        let found = self.find().map_err(|source| Error::Io { path: self.path.clone(), source })?;
        let is_stray =
            matches!(found, Some(Entry::Fault(Fault { kind: FaultKind::Stray { .. }, .. })));
        // What a file begins with may be stray, if it has a record after all.
        if is_stray && !self.any && self.begun.is_none() {
            return Err(Error::NotWarc { path: self.path.clone(), hint: self.hint });
        }
        self.any |= found.is_some();
        Ok(found)
    }

    fn find(&mut self) -> io::Result<Option<Entry>> {
        if let Some(fault) = self.later.take() {
            self.astray = true;
            return Ok(Some(Entry::Fault(fault)));
        }
        let mut stray: Option<(Spot, u64)> = None;
        loop {
            let begun = self.begun.take();
            if begun.is_none() && self.at == self.window.len() {
                match self.more()? {
                    Next::More | Next::Part => {}
                    Next::End => return Ok(self.told(stray)),
                    Next::Corrupt | Next::Cut => return Ok(Some(self.broken(stray))),
                }
                continue;
            }
            let line = match begun {
                Some(line) => line,
                None => self.line(STRAY_BYTES_MAX)?,
            };
            if line.is_start() {
                if let Some(fault) = self.told(stray) {
                    self.begun = Some(line);
                    return Ok(Some(fault));
                }
                self.astray = false;
                return self.record(&line).map(Some);
            }
            if line.is_blank() {
                continue;
            }
            if !self.any && line.bytes.starts_with(ARC) {
                self.hint = "it is an ARC file; `warcio recompress` makes a WARC file of it";
            }
            let (spot, bytes) = stray.unwrap_or((line.spot, 0));
            stray = Some((spot, bytes + line.length));
            if !self.any && bytes > SEARCHED_BYTES_MAX {
                return Ok(self.told(stray));
            }
        }
    }

    /// Tells of bytes that are no record, unless a fault before them did.
    fn told(&mut self, stray: Option<(Spot, u64)>) -> Option<Entry> {
        let (spot, bytes) = stray.filter(|_| !self.astray)?;
        self.astray = true;
        Some(Entry::Fault(fault(spot, FaultKind::Stray { bytes })))
    }

    /// Tells of a part that is broken, after what is no record before it.
    fn broken(&mut self, stray: Option<(Spot, u64)>) -> Entry {
        self.any = true;
        let corrupt = fault(self.spot, FaultKind::Corrupt);
        if let Some(fault) = self.told(stray) {
            self.later = Some(corrupt);
            return fault;
        }
        self.astray = true;
        Entry::Fault(corrupt)
    }

    /// Reads the rest of a record whose first line was read.
    fn record(&mut self, first: &Line) -> io::Result<Entry> {
        let spot = first.spot;
        let mut headers = Headers::default();
        let (mut bytes, mut next) = (0, first.next);
        loop {
            if next != Next::More {
                return Ok(self.cut(spot, &headers, next, 0));
            }
            let line = self.line(HEADER_BYTES_MAX)?;
            next = line.next;
            if next == Next::More && line.is_blank() {
                break;
            }
            bytes += line.length;
            if bytes > HEADER_BYTES_MAX as u64 {
                return Ok(self.lost(spot, &headers, FaultKind::OpenHeader));
            }
            headers.add(line.bytes.trim_ascii_end());
        }
        let Some(length) = headers.get("Content-Length").and_then(|text| text.parse().ok()) else {
            return Ok(self.lost(spot, &headers, FaultKind::NoLength));
        };
        self.block(spot, headers, length)
    }

    fn lost(&mut self, spot: Spot, headers: &Headers, kind: FaultKind) -> Entry {
        self.astray = true;
        Entry::Fault(of(spot, headers, kind))
    }

    /// A record that ends with its part, or with the file.
    fn cut(&mut self, spot: Spot, headers: &Headers, next: Next, missing: u64) -> Entry {
        let kind = match next {
            Next::Corrupt => FaultKind::Corrupt,
            Next::Part | Next::More => FaultKind::OpenHeader,
            Next::Cut | Next::End => FaultKind::CutShort { missing },
        };
        self.lost(spot, headers, kind)
    }

    fn block(&mut self, spot: Spot, headers: Headers, length: u64) -> io::Result<Entry> {
        let is_held = length <= self.block_bytes_max as u64;
        let mut block = Vec::new();
        let mut left = length;
        while left > 0 {
            if self.at == self.window.len() {
                match self.more()? {
                    Next::More => {}
                    Next::Part if !self.window.starts_with(START) => {}
                    // Its part is whole: so is its block.
                    Next::Part if is_held => {
                        let found = length - left;
                        return Ok(self.found(Record::of(spot, headers, block), length, found));
                    }
                    Next::Part => {
                        let kind = FaultKind::WrongLength { stated: length, found: length - left };
                        return Ok(self.lost(spot, &headers, kind));
                    }
                    next => {
                        if next == Next::End
                            && let Some(at) = inner_start(&block)
                        {
                            return Ok(self.split(Record::of(spot, headers, block), length, at));
                        }
                        return Ok(self.cut(spot, &headers, next, left));
                    }
                }
                continue;
            }
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let piece = &self.window[self.at..];
            let piece = &piece[..piece.len().min(most)];
            if is_held {
                block.extend_from_slice(piece);
            }
            left -= piece.len() as u64;
            self.at += piece.len();
        }
        if !is_held {
            return Ok(self.lost(spot, &headers, FaultKind::TooLarge { bytes: length }));
        }
        if self.ends_here()? {
            return Ok(Entry::Record(Record::of(spot, headers, block)));
        }
        // The next record may begin in the last bytes of the block.
        let end = block.len();
        block.extend(self.window[self.at..].iter().take(NEXT.len()));
        let inner = inner_start(&block).filter(|at| *at < end);
        block.truncate(end);
        let record = Record::of(spot, headers, block);
        Ok(match inner {
            Some(at) => self.split(record, length, at),
            // The rest of a longer one is told as bytes of no record.
            None => Entry::Record(record),
        })
    }

    /// Gives a block the length that it has, and goes on with what was taken for a part of it.
    fn split(&mut self, mut record: Record, stated: u64, found: usize) -> Entry {
        let rest = record.block.split_off(found);
        let rest = rest.get(NEXT.len() - START.len()..).unwrap_or_default();
        // In the same part, or in one that is passed over anyway.
        self.spot.inside = (self.spot.inside + self.at as u64).saturating_sub(rest.len() as u64);
        let mut window = rest.to_vec();
        window.extend_from_slice(&self.window[self.at..]);
        (self.window, self.at) = (window, 0);
        self.found(record, stated, found as u64)
    }

    fn found(&mut self, record: Record, stated: u64, found: u64) -> Entry {
        let kind = FaultKind::WrongLength { stated, found };
        self.later = Some(of(record.spot, &record.headers, kind));
        Entry::Record(record)
    }

    /// Tells whether a record may end here: before an empty line, a part, or the end.
    fn ends_here(&mut self) -> io::Result<bool> {
        if self.at == self.window.len() {
            match self.more()? {
                Next::More => {}
                Next::Part | Next::End => return Ok(true),
                // Told with the next record.
                Next::Corrupt | Next::Cut => {
                    self.later = Some(fault(self.spot, FaultKind::Corrupt));
                    return Ok(true);
                }
            }
        }
        self.look_ahead(NEXT.len() + 1)?;
        let rest = &self.window[self.at..];
        Ok(matches!(rest, [b'\r' | b'\n', ..]) || rest.starts_with(START))
    }

    /// Reads a line, and keeps its first bytes.
    fn line(&mut self, kept_max: usize) -> io::Result<Line> {
        let mut line = Line { spot: self.here(), bytes: Vec::new(), length: 0, next: Next::More };
        loop {
            if self.at == self.window.len() {
                match self.more()? {
                    Next::More => {}
                    Next::Part if !self.window.starts_with(START) => {}
                    next => {
                        line.next = next;
                        return Ok(line);
                    }
                }
                continue;
            }
            let rest = &self.window[self.at..];
            let end = memchr::memchr(b'\n', rest).map(|at| at + 1);
            let piece = &rest[..end.unwrap_or(rest.len())];
            let room = kept_max.saturating_sub(line.bytes.len());
            line.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            line.length += piece.len() as u64;
            self.at += piece.len();
            if end.is_some() {
                return Ok(line);
            }
        }
    }

    fn here(&self) -> Spot {
        let inside = self.spot.inside + self.at as u64;
        if self.unpacked.is_packed() {
            Spot { inside, ..self.spot }
        } else {
            Spot { offset: inside, inside: 0 }
        }
    }

    /// Unpacks until so many bytes of the window are not taken, or its part ends.
    fn look_ahead(&mut self, bytes: usize) -> io::Result<()> {
        while self.window.len() - self.at < bytes && self.pending.is_none() {
            let step = self.unpacked.step(&mut self.window)?;
            self.pending = Some(step).filter(|step| *step != Step::Bytes);
        }
        Ok(())
    }

    /// Unpacks more, when all of the window was taken.
    fn more(&mut self) -> io::Result<Next> {
        let inside = self.spot.inside + self.window.len() as u64;
        self.spot.inside = inside;
        self.window.clear();
        self.at = 0;
        let mut next = Next::More;
        loop {
            let step = match self.pending.take() {
                Some(step) => step,
                None => self.unpacked.step(&mut self.window)?,
            };
            if !self.window.is_empty() {
                self.pending = Some(step).filter(|step| *step != Step::Bytes);
                if next == Next::Part || inside == 0 {
                    self.spot = Spot { offset: self.unpacked.part(), inside: 0 };
                }
                // Enough to see whether a record begins.
                self.look_ahead(START.len())?;
                return Ok(next);
            }
            match step {
                Step::Bytes => {}
                Step::PartEnd => next = Next::Part,
                Step::End => return Ok(Next::End),
                Step::Corrupt | Step::Cut => {
                    self.spot = Spot { offset: self.unpacked.part(), inside: 0 };
                    return Ok(if step == Step::Cut { Next::Cut } else { Next::Corrupt });
                }
            }
        }
    }
}

impl Record {
    fn of(spot: Spot, headers: Headers, block: Vec<u8>) -> Self {
        let kind = headers.get("WARC-Type").map_or(Kind::Other, Kind::from_name);
        Self { spot, kind, headers, block }
    }
}

fn fault(spot: Spot, kind: FaultKind) -> Fault {
    Fault { spot, kind, target: None }
}

fn of(spot: Spot, headers: &Headers, kind: FaultKind) -> Fault {
    Fault { spot, kind, target: headers.get("WARC-Target-URI").map(str::to_owned) }
}

/// Finds where in a block another record begins, if its length was wrong.
fn inner_start(block: &[u8]) -> Option<usize> {
    let starts = memchr::memmem::find_iter(block, NEXT);
    let is_version = |at: &usize| block.get(at + NEXT.len()).is_none_or(u8::is_ascii_digit);
    starts.into_iter().find(is_version)
}
