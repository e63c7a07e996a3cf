//! Stored texts. The text of a document's root is kept whole; the text of every other content is
//! compressed against it, so that a near-duplicate costs a few bytes and can still become the
//! canonical copy, or be compared, without being fetched again.
//!
//! A row lies in pieces of which several fit in a page of the store: a row that is a little longer
//! than a page would take two of them.

use std::cell::RefCell;

use zstd::bulk::Compressor;

use crate::corpus::tables::{BODIES, BODY_PARTS};
use crate::store::{
    BadRow, Blob, Error, MaybeContentNumber, Number, Row as _, Transaction, Update as _, View, row,
};

row! {
    /// A stored text.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredBody: "body", 1 to 1 {
        /// Number of the content against whose text it is compressed.
        base: Option<u64> = MaybeContentNumber;
        /// Bytes of the text.
        length: u64 = Number;
        /// A frame of zstd.
        packed: Vec<u8> = Blob;
    }
}

/// A text is at most this many times longer than its row: a block of zstd that repeats one byte
/// makes 128 KiB of four bytes.
const RATIO_MAX: usize = 1 << 16;

/// Bytes of a piece of a row at most: eight fit in a page.
const PIECE_BYTES: usize = 490;

/// zstd level of stored texts: the first that codes letters by how often they come. Prose takes two
/// fifths of its bytes, of which the levels below leave more than a half for 8 us less a page.
const LEVEL: i32 = 1;

thread_local! {
    // Making a compressor costs as much as compressing a page.
    static PLAIN: RefCell<Compressor<'static>> =
        RefCell::new(Compressor::new(LEVEL).expect("memory for a compressor"));
}

/// Writes the text of `content`, compressed against the text of `base` if there is one.
pub fn write_body(
    batch: &mut impl Transaction,
    content: u64,
    text: &str,
    base: Option<u64>,
) -> Result<(), Error> {
    let base = base.filter(|_| batch.has_texts());
    let base_text = base.map(|base| read_body(batch, base)).transpose()?.flatten();
    let packed = match &base_text {
        Some(base_text) => Compressor::with_dictionary(LEVEL, base_text.as_bytes())
            .and_then(|mut compressor| compressor.compress(text.as_bytes())),
        None => PLAIN.with_borrow_mut(|compressor| compressor.compress(text.as_bytes())),
    };
    let packed = packed.expect("compressing into memory cannot fail");
    let base = base.filter(|_| base_text.is_some());
    let body = StoredBody { base, length: text.len() as u64, packed };
    // What was there may have had more pieces.
    batch.clear(BODY_PARTS, (content, 0)..=(content, u32::MAX))?;
    body.pieces(|piece| match piece {
        Piece::First(bytes) => batch.put(BODIES, content, &bytes),
        Piece::Further(at, bytes) => batch.put(BODY_PARTS, (content, at), &bytes),
    })
}

/// Tells whether the text of a content cannot be read without that of another one.
pub fn needs_body(view: &impl View, content: u64, other: u64) -> Result<bool, Error> {
    let mut at = content;
    while let Some(first) = view.bytes(BODIES, at)? {
        match StoredBody::read(view, at, &first)?.base {
            Some(base) if base == other => return Ok(true),
            Some(base) if base < at => at = base,
            _ => break,
        }
    }
    Ok(false)
}

/// A piece of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The first one.
    First(Vec<u8>),
    /// One behind it, with its place from 1.
    Further(u32, Vec<u8>),
}

impl StoredBody {
    /// Packs a text by itself.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        let packed = PLAIN.with_borrow_mut(|compressor| compressor.compress(text.as_bytes()));
        let packed = packed.expect("compressing into memory cannot fail");
        Self { base: None, length: text.len() as u64, packed }
    }

    /// Calls `each` with the pieces in which the row lies.
    pub fn pieces<E>(&self, mut each: impl FnMut(Piece) -> Result<(), E>) -> Result<(), E> {
        let row = self.encode();
        (0..).zip(row.chunks(PIECE_BYTES)).try_for_each(|(at, bytes)| {
            let bytes = bytes.to_vec();
            each(if at == 0 { Piece::First(bytes) } else { Piece::Further(at, bytes) })
        })
    }

    /// Reads the row of a content, whose first piece is `first`.
    pub fn read(view: &impl View, content: u64, first: &[u8]) -> Result<Self, Error> {
        let mut bytes = first.to_vec();
        for (at, part) in (1..).zip(view.under(BODY_PARTS, content)?) {
            let part = part?;
            if part.key()?.1 != at {
                return Err(BadRow { kind: "body", detail: "one of its parts is missing" }.into());
            }
            bytes.extend_from_slice(part.bytes());
        }
        Ok(Self::decode(&bytes)?)
    }
}

/// Removes the text of `content`.
pub fn remove_body(batch: &mut impl Transaction, content: u64) -> Result<(), Error> {
    batch.remove(BODIES, content)?;
    batch.clear(BODY_PARTS, (content, 0)..=(content, u32::MAX))
}

/// Reads the text of `content`.
pub fn read_body(view: &impl View, content: u64) -> Result<Option<String>, Error> {
    let Some(first) = view.bytes(BODIES, content)? else { return Ok(None) };
    let StoredBody { base, length, packed } = StoredBody::read(view, content, &first)?;
    let bad = |detail| BadRow { kind: "body", detail };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    // Looked at before as much memory is asked for.
    if length > packed.len().saturating_mul(RATIO_MAX) {
        return Err(bad("its text cannot be so long").into());
    }
    let unpacked = match base {
        None => zstd::bulk::decompress(&packed, length),
        Some(base) if base < content => {
            let base = read_body(view, base)?.ok_or_else(|| bad("its base is missing"))?;
            zstd::bulk::Decompressor::with_dictionary(base.as_bytes())
                .and_then(|mut decompressor| decompressor.decompress(&packed, length))
        }
        // A base is always older, which also bounds the depth of this recursion on damaged rows.
        Some(_) => return Err(bad("its base is not older").into()),
    };
    let bytes = unpacked.map_err(|_| bad("its text cannot be decompressed"))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("its text is not UTF-8"))?;
    Ok(Some(text))
}
