//! The body of a list as a stream of UTF-8: unpacked, bounded, whatever its encoding.

use std::cell::Cell;
use std::io::{self, BufReader, Cursor, Read};
use std::rc::Rc;

use encoding_rs::{Decoder, Encoding, UTF_8};
use flate2::bufread::MultiGzDecoder;

use super::{Config, ListCut};

/// First bytes of every gzip member. Source: RFC 1952, 2.3.1.
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// Times that a list may be packed by gzip: a packed file that a server packs once more.
const PACKINGS_MAX: usize = 2;

/// A list may grow as much as it likes up to this size.
const RATIO_GRACE_BYTES: u64 = 1 << 20;

/// Bytes at the start in which the encoding is looked for.
const HEAD_BYTES: u64 = 512;

type SharedCut = Rc<Cell<Option<ListCut>>>;

/// Opens a body of `wire` bytes. Why it ends early, if it does, is put in `end`.
pub(super) fn open<'a>(
    body: impl Read + 'a,
    wire: usize,
    config: &Config,
    ratio_max: u32,
    end: &SharedCut,
) -> Box<dyn Read + 'a> {
    let most = config.size_max.bytes() as u64;
    let grown = (wire as u64).saturating_mul(ratio_max.into()).max(RATIO_GRACE_BYTES);
    let bounded = |inner: Box<dyn Read + 'a>| -> Box<dyn Read + 'a> {
        Box::new(Bounded { inner, left: most, grown, end: Rc::clone(end) })
    };
    let (mut head, mut reader) = peek(bounded(Box::new(body)));
    for _ in 0..PACKINGS_MAX {
        if !head.starts_with(&GZIP_MAGIC) {
            break;
        }
        // Bounded at each step, because members without content are read and give nothing.
        let unpacked = MultiGzDecoder::new(BufReader::new(reader));
        (head, reader) = peek(bounded(Box::new(unpacked)));
    }
    Box::new(Utf8::new(reader, encoding(&head)))
}

/// Reads the start of a stream, and returns it with the whole stream.
fn peek<'a>(mut reader: Box<dyn Read + 'a>) -> (Vec<u8>, Box<dyn Read + 'a>) {
    let mut head = Vec::new();
    // A stream that breaks here breaks again below, where it is noted.
    let _ = (&mut reader).take(HEAD_BYTES).read_to_end(&mut head);
    (head.clone(), Box::new(Cursor::new(head).chain(reader)))
}

/// What the start says of the encoding: a byte order mark, the XML declaration, else UTF-8.
fn encoding(head: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return encoding;
    }
    match head {
        [b'<', 0, ..] => return encoding_rs::UTF_16LE,
        [0, b'<', ..] => return encoding_rs::UTF_16BE,
        _ => {}
    }
    let head = String::from_utf8_lossy(head.trim_ascii_start());
    let declared = head.strip_prefix("<?xml").and_then(|rest| {
        let declaration = &rest[..rest.find("?>")?];
        let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let label = value[1..].split(quote).next()?;
        Encoding::for_label(label.as_bytes())
    });
    // A declaration that can be read as ASCII is none of UTF-16.
    declared.filter(|encoding| encoding.is_ascii_compatible()).unwrap_or(UTF_8)
}

/// Ends at a limit or an error, and notes which.
struct Bounded<R> {
    inner: R,
    left: u64,
    grown: u64,
    end: SharedCut,
}

impl<R: Read> Bounded<R> {
    fn stop(&self, cut: ListCut) -> usize {
        if self.end.get().is_none() {
            self.end.set(Some(cut));
        }
        0
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() || self.end.get().is_some() {
            return Ok(0);
        }
        // One byte more tells a list that is too long from one that just fits.
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).max(1).min(out.len());
        let read = match self.inner.read(&mut out[..room]) {
            Ok(read) => read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(_) => return Ok(self.stop(ListCut::Broken)),
        };
        if read > self.grown {
            return Ok(self.stop(ListCut::Bomb));
        }
        if read > self.left {
            return Ok(self.stop(ListCut::Bytes));
        }
        (self.left, self.grown) = (self.left - read, self.grown - read);
        Ok(read as usize)
    }
}

/// Any encoding as UTF-8.
struct Utf8<R> {
    inner: R,
    decoder: Decoder,
    raw: Vec<u8>,
    text: String,
    /// Bytes of `text` that were handed out.
    at: usize,
    ended: bool,
}

impl<R: Read> Utf8<R> {
    fn new(inner: R, encoding: &'static Encoding) -> Self {
        let decoder = encoding.new_decoder_with_bom_removal();
        let (raw, text) = (vec![0; 8 << 10], String::new());
        Self { inner, decoder, raw, text, at: 0, ended: false }
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() && !self.ended {
            let read = self.inner.read(&mut self.raw)?;
            self.ended = read == 0;
            self.text.clear();
            self.at = 0;
            let room = self.decoder.max_utf8_buffer_length(read).unwrap_or(self.raw.len() * 4);
            self.text.reserve(room);
            // There is room for all of it, so that nothing is left over.
            let _ = self.decoder.decode_to_string(&self.raw[..read], &mut self.text, self.ended);
        }
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
