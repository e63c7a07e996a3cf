//! The bytes of a file without its compression: plain, gzip or zstd, whether each record is packed
//! by itself or all of them together.
//!
//! A part that is packed by itself is a member of gzip, or a frame of zstd. One that is broken ends
//! there, and the next one is looked for.

use std::io::{self, BufRead as _, Read as _};
use std::mem;

use flate2::bufread::GzDecoder;
use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use super::raw::Raw;

/// First bytes of a gzip member, with the one method that there is. Source: RFC 1952, 2.3.1.
const GZIP: [u8; 3] = [0x1F, 0x8B, 8];

/// Bits of the fourth byte that no gzip member has.
const GZIP_RESERVED: u8 = 0xE0;

/// First bytes of a zstd frame. Source: RFC 8878, 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The same of a frame that is passed over, without the lower half of its first byte. Source: RFC
/// 8878, 3.1.2.
const SKIPPED: [u8; 4] = [0x50, 0x2A, 0x4D, 0x18];

/// First byte of the frame that has the dictionary of a file. Source: the specification of
/// zstd-compressed WARC files of the IIPC, "WARC-ZSTD", 1.0.
const DICTIONARY: u8 = 0x5D;

/// Bytes of a dictionary at most.
const DICTIONARY_BYTES_MAX: u32 = 16 << 20;

/// Largest window of a zstd frame, as a power of two: what `zstd -d` takes.
const WINDOW_LOG_MAX: u32 = 27;

/// Bytes that come out at a time.
const PIECE_BYTES: usize = 64 << 10;

/// What came of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Bytes of the same part.
    Bytes,
    /// The part has ended; the next bytes are of another one.
    PartEnd,
    /// The file has ended.
    End,
    /// The part is broken; the next bytes are of another one.
    Corrupt,
    /// The file ends within the part.
    Cut,
}

/// A file without its compression.
#[derive(Debug)]
pub(super) struct Unpacked {
    state: State,
    packing: Packing,
    dictionary: Vec<u8>,
    /// Where the present part begins.
    part: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

enum State {
    /// Before a part, or behind the last one.
    Between(Raw),
    /// At the end of a part, of which nobody was told.
    Ended(Raw),
    Plain(Raw),
    Gzip(GzDecoder<Raw>),
    Zstd(Raw, Box<Decoder<'static>>),
    /// While it changes.
    Moved,
}

impl Unpacked {
    /// Looks how a file is packed.
    pub(super) fn new(mut raw: Raw) -> io::Result<Self> {
        let start = raw.peek(ZSTD.len())?;
        let packing = match start {
            start if start.starts_with(&GZIP) => Packing::Gzip,
            start if start.starts_with(&ZSTD) || is_skipped(start) => Packing::Zstd,
            _ => Packing::Plain,
        };
        let dictionary = if packing == Packing::Zstd { dictionary(&mut raw)? } else { Vec::new() };
        let state = if packing == Packing::Plain { State::Plain(raw) } else { State::Between(raw) };
        Ok(Self { state, packing, dictionary, part: 0 })
    }

    /// Returns where the present part begins.
    pub(super) fn part(&self) -> u64 {
        self.part
    }

    /// Tells whether a record may end where a part does.
    pub(super) fn is_packed(&self) -> bool {
        self.packing != Packing::Plain
    }

    /// Appends the next bytes to `out`.
    pub(super) fn step(&mut self, out: &mut Vec<u8>) -> io::Result<Step> {
        match mem::replace(&mut self.state, State::Moved) {
            State::Plain(mut raw) => {
                let piece = raw.fill_buf()?;
                let read = piece.len();
                out.extend_from_slice(piece);
                raw.consume(read);
                self.state = State::Plain(raw);
                Ok(if read == 0 { Step::End } else { Step::Bytes })
            }
            State::Between(raw) => self.begin(raw, out),
            State::Ended(raw) => self.ended(raw, Step::PartEnd),
            State::Gzip(mut decoder) => {
                let before = out.len();
                out.resize(before + PIECE_BYTES, 0);
                let read = decoder.read(&mut out[before..]);
                out.truncate(before + *read.as_ref().unwrap_or(&0));
                match read {
                    Ok(0) => self.ended(decoder.into_inner(), Step::PartEnd),
                    Ok(_) => self.goes_on(State::Gzip(decoder)),
                    Err(error) => match error.kind() {
                        io::ErrorKind::UnexpectedEof => {
                            self.broken(decoder.into_inner(), Step::Cut)
                        }
                        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                            self.broken(decoder.into_inner(), Step::Corrupt)
                        }
                        _ => Err(error),
                    },
                }
            }
            State::Zstd(raw, decoder) => self.unzstd(raw, decoder, out),
            State::Moved => Ok(Step::End),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "an arm of a step")]
    fn goes_on(&mut self, state: State) -> io::Result<Step> {
        self.state = state;
        Ok(Step::Bytes)
    }

    #[expect(clippy::unnecessary_wraps, reason = "an arm of a step")]
    fn ended(&mut self, raw: Raw, step: Step) -> io::Result<Step> {
        self.state = State::Between(raw);
        Ok(step)
    }

    /// Begins the next part.
    fn begin(&mut self, mut raw: Raw, out: &mut Vec<u8>) -> io::Result<Step> {
        loop {
            let start = raw.peek(ZSTD.len())?;
            if start.is_empty() {
                return self.ended(raw, Step::End);
            }
            if self.packing == Packing::Zstd && is_skipped(start) {
                let frame = skipped(&mut raw)?;
                io::copy(&mut (&mut raw).take(frame.into()), &mut io::sink())?;
            } else if self.is_start(start) {
                break;
            } else if start[0] == 0 {
                // Tapes and disks fill their blocks.
                raw.consume(1);
            } else {
                self.part = raw.offset();
                return self.broken(raw, Step::Corrupt);
            }
        }
        self.part = raw.offset();
        self.state = match self.packing {
            Packing::Zstd => {
                let mut decoder = Decoder::with_dictionary(&self.dictionary)?;
                decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
                State::Zstd(raw, Box::new(decoder))
            }
            _ => State::Gzip(GzDecoder::new(raw)),
        };
        self.step(out)
    }

    fn unzstd(
        &mut self,
        mut raw: Raw,
        mut decoder: Box<Decoder<'static>>,
        out: &mut Vec<u8>,
    ) -> io::Result<Step> {
        let before = out.len();
        out.resize(before + PIECE_BYTES, 0);
        let mut written = 0;
        let end = loop {
            let input = raw.fill_buf()?;
            let is_over = input.is_empty();
            let Ok(status) = decoder.run_on_buffers(input, &mut out[before + written..]) else {
                break Some(Step::Corrupt);
            };
            raw.consume(status.bytes_read);
            written += status.bytes_written;
            match status.remaining {
                0 => break Some(Step::PartEnd),
                _ if written == PIECE_BYTES => break None,
                _ if is_over => break Some(Step::Cut),
                _ => {}
            }
        };
        out.truncate(before + written);
        match end {
            Some(Step::PartEnd) if written == 0 => self.ended(raw, Step::PartEnd),
            Some(Step::PartEnd) => self.goes_on(State::Ended(raw)),
            Some(step) => self.broken(raw, step),
            None => self.goes_on(State::Zstd(raw, decoder)),
        }
    }

    /// Looks for the part after one that is broken.
    fn broken(&mut self, mut raw: Raw, step: Step) -> io::Result<Step> {
        // What is broken may have led the decoder over the start of the next one.
        raw.go_back(self.part + 1)?;
        loop {
            let unread = raw.peek(ZSTD.len())?;
            let found = (0..unread.len()).find(|at| self.is_start(&unread[*at..]));
            let is_last = unread.len() < ZSTD.len();
            let passed = found.unwrap_or((unread.len() + 1).saturating_sub(ZSTD.len()));
            raw.consume(passed);
            if found.is_none() && is_last {
                let rest = raw.peek(1)?.len();
                raw.consume(rest);
            }
            if found.is_some() || is_last {
                return self.ended(raw, step);
            }
        }
    }

    fn is_start(&self, bytes: &[u8]) -> bool {
        match self.packing {
            Packing::Plain => false,
            Packing::Gzip => {
                bytes.starts_with(&GZIP)
                    && bytes.get(3).is_none_or(|flags| flags & GZIP_RESERVED == 0)
            }
            Packing::Zstd => bytes.starts_with(&ZSTD),
        }
    }
}

fn is_skipped(bytes: &[u8]) -> bool {
    let [first, rest @ ..] = bytes else { return false };
    first & 0xF0 == SKIPPED[0] && rest.starts_with(&SKIPPED[1..])
}

/// Reads the head of a frame that is passed over. Returns the length of the rest of it.
fn skipped(raw: &mut Raw) -> io::Result<u32> {
    let head = raw.peek(8)?;
    let length = head.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let length = length.ok_or(io::ErrorKind::UnexpectedEof)?;
    raw.consume(8);
    Ok(length)
}

/// Reads the dictionary of a file, if it begins with one.
fn dictionary(raw: &mut Raw) -> io::Result<Vec<u8>> {
    let start = raw.peek(ZSTD.len())?;
    if start.first() != Some(&DICTIONARY) || !is_skipped(start) {
        return Ok(Vec::new());
    }
    let length = skipped(raw)?;
    if length > DICTIONARY_BYTES_MAX {
        return Err(io::Error::other("its dictionary is too large"));
    }
    let mut bytes = Vec::new();
    raw.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.starts_with(&ZSTD) {
        let decoder = zstd::Decoder::with_buffer(&bytes[..])?;
        let mut unpacked = Vec::new();
        decoder.take(DICTIONARY_BYTES_MAX.into()).read_to_end(&mut unpacked)?;
        bytes = unpacked;
    }
    Ok(bytes)
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Between(_) => "Between",
            Self::Ended(_) => "Ended",
            Self::Plain(_) => "Plain",
            Self::Gzip(_) => "Gzip",
            Self::Zstd(..) => "Zstd",
            Self::Moved => "Moved",
        })
    }
}
