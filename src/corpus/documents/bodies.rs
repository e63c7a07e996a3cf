//! Stored texts. The text of a document's root is kept whole; the text of every other content is
//! compressed against it, so that a near-duplicate costs a few bytes and can still become the
//! canonical copy, or be compared, without being fetched again.
//!
//! Row of `bodies`: version 1, number of the base content plus one (0: none), length of the text
//! in bytes, zstd frame.

use std::cell::RefCell;

use redb::{ReadableTable, Table};
use zstd::bulk::Compressor;

use crate::store::{Decoder, Encoder, Error};

/// A text is at most this many times longer than its row: a block of zstd that repeats one byte
/// makes 128 KiB of four bytes.
const RATIO_MAX: usize = 1 << 16;

/// zstd level of stored texts: fast, and still halves prose.
const LEVEL: i32 = -3;

thread_local! {
    // Making a compressor costs as much as compressing a page.
    static PLAIN: RefCell<Compressor<'static>> =
        RefCell::new(Compressor::new(LEVEL).expect("memory for a compressor"));
}

/// Writes the text of `content`, compressed against the text of `base` if there is one.
pub fn write_body(
    bodies: &mut Table<u64, &'static [u8]>,
    content: u64,
    text: &str,
    base: Option<u64>,
) -> Result<(), Error> {
    let base_text = base.map(|base| read_body(bodies, base)).transpose()?.flatten();
    let packed = match &base_text {
        Some(base_text) => Compressor::with_dictionary(LEVEL, base_text.as_bytes())
            .and_then(|mut compressor| compressor.compress(text.as_bytes())),
        None => PLAIN.with_borrow_mut(|compressor| compressor.compress(text.as_bytes())),
    };
    let packed = packed.expect("compressing into memory cannot fail");
    let base = if base_text.is_some() { base.map_or(0, |base| base + 1) } else { 0 };
    let row = Encoder::new(1).number(base).number(text.len() as u64).bytes(&packed).finish();
    bodies.insert(content, row.as_slice())?;
    Ok(())
}

/// Reads the text of `content`.
pub fn read_body(
    bodies: &impl ReadableTable<u64, &'static [u8]>,
    content: u64,
) -> Result<Option<String>, Error> {
    let Some(guard) = bodies.get(content)? else { return Ok(None) };
    let mut row = Decoder::new("body", 1, guard.value())?;
    let base = row.number()?;
    let length: usize = row.narrow()?;
    let packed = row.bytes()?;
    // Looked at before as much memory is asked for.
    if length > packed.len().saturating_mul(RATIO_MAX) {
        return Err(row.bad("its text cannot be so long").into());
    }
    let unpacked = match base.checked_sub(1) {
        None => zstd::bulk::decompress(packed, length),
        Some(base) if base < content => {
            let base = read_body(bodies, base)?.ok_or_else(|| row.bad("its base is missing"))?;
            zstd::bulk::Decompressor::with_dictionary(base.as_bytes())
                .and_then(|mut decompressor| decompressor.decompress(packed, length))
        }
        // A base is always older, which also bounds the depth of this recursion on damaged rows.
        Some(_) => return Err(row.bad("its base is not older").into()),
    };
    let bytes = unpacked.map_err(|_| row.bad("its text cannot be decompressed"))?;
    let text = String::from_utf8(bytes).map_err(|_| row.bad("its text is not UTF-8"))?;
    Ok(Some(text))
}
