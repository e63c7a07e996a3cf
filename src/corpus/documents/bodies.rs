//! Stored texts. The text of a document's root is kept whole; the text of every other content is
//! compressed against it, so that a near-duplicate costs a few bytes and can still become the
//! canonical copy, or be compared, without being fetched again.

use std::cell::RefCell;

use zstd::bulk::Compressor;

use crate::corpus::tables::BODIES;
use crate::store::{
    BadRow, Batch, Blob, Error, MaybeContentNumber, Number, Update as _, View, row,
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

/// zstd level of stored texts: fast, and still halves prose.
const LEVEL: i32 = -3;

thread_local! {
    // Making a compressor costs as much as compressing a page.
    static PLAIN: RefCell<Compressor<'static>> =
        RefCell::new(Compressor::new(LEVEL).expect("memory for a compressor"));
}

/// Writes the text of `content`, compressed against the text of `base` if there is one.
pub fn write_body(
    batch: &mut Batch,
    content: u64,
    text: &str,
    base: Option<u64>,
) -> Result<(), Error> {
    let base_text = base.map(|base| read_body(batch, base)).transpose()?.flatten();
    let packed = match &base_text {
        Some(base_text) => Compressor::with_dictionary(LEVEL, base_text.as_bytes())
            .and_then(|mut compressor| compressor.compress(text.as_bytes())),
        None => PLAIN.with_borrow_mut(|compressor| compressor.compress(text.as_bytes())),
    };
    let packed = packed.expect("compressing into memory cannot fail");
    let base = base.filter(|_| base_text.is_some());
    batch.put(BODIES, content, &StoredBody { base, length: text.len() as u64, packed })
}

/// Reads the text of `content`.
pub fn read_body(view: &impl View, content: u64) -> Result<Option<String>, Error> {
    let Some(StoredBody { base, length, packed }) = view.get(BODIES, content)? else {
        return Ok(None);
    };
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
