//! Payloads that lie in the files of a folder, so that none is written twice.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::draft::Digest;
use crate::base::clock::Timestamp;
use crate::store::{Name, Number, Signed, Table, Text, row};

row! {
    /// Where a payload was written first.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredPayload: "payload", 1 to 1 {
        /// The URL that it is of.
        pub url: String = Text;
        /// When it was had.
        pub date: Timestamp = Signed;
        /// The file; empty while a crawl writes it.
        pub file: String = Text;
        /// Where its record begins there.
        pub offset: u64 = Number;
    }
}

/// Hash of a folder and the digest of a payload -> where it lies there.
pub const PAYLOADS: Table<u128, StoredPayload> = Table::new(Name::Payloads);

/// The key of a payload in the files of a folder.
#[must_use]
pub(crate) fn payload_key(folder: &Path, digest: Digest) -> u128 {
    xxh3_128(&[&digest.0[..], folder.as_os_str().as_encoded_bytes()].concat())
}
