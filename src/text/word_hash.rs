//! The hash of a word of at most eight bytes, and where such a word ends, in a few instructions:
//! most words are that short, and the general functions spend more time on finding out than on
//! the work.

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Eight bytes of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EightBytes(u64);

impl EightBytes {
    /// How many they are.
    pub(crate) const COUNT: usize = 8;

    /// Returns those at a place; none if the text ends before.
    pub(crate) fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let eight = bytes.get(at..)?.first_chunk()?;
        Some(Self(u64::from_le_bytes(*eight)))
    }

    /// Returns how many ASCII letters and digits they begin with.
    pub(crate) fn letters(self) -> usize {
        // Seven bits each, so that nothing is carried from one byte to the next.
        let bytes = self.0 & !HIGH;
        let small = bytes | (EACH * 0x20);
        let from = |bytes: u64, first: u8| bytes + EACH * u64::from(0x80 - first);
        let letter = from(small, b'a') & !from(small, b'z' + 1);
        let digit = from(bytes, b'0') & !from(bytes, b'9' + 1);
        let other = !(letter | digit) & HIGH | self.0 & HIGH;
        other.trailing_zeros() as usize / 8
    }

    /// Returns the [`xxh3_64`] of the first `length` of them, 1 to 8.
    ///
    /// Source: <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>, section XXH3.
    pub(super) fn hash(self, length: usize) -> u64 {
        let bytes = self.0 & u64::MAX >> (64 - 8 * length);
        if length < 4 {
            let byte = |at: usize| bytes >> (8 * at) & 0xFF;
            let middle = byte(length / 2);
            let all = byte(0) << 16 | middle << 24 | byte(length - 1) | (length as u64) << 8;
            let mut hash = all ^ 0x8727_5A9B;
            hash ^= hash >> 33;
            hash = hash.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
            hash ^= hash >> 29;
            hash = hash.wrapping_mul(0x1656_67B1_9E37_79F9);
            return hash ^ hash >> 32;
        }
        let last = bytes >> (8 * (length - 4)) & 0xFFFF_FFFF;
        let mut hash = (last + (bytes << 32)) ^ 0xC73A_B174_C5EC_D5A2;
        hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
        hash = hash.wrapping_mul(0x9FB2_1C65_1E98_DF25);
        hash ^= (hash >> 35) + length as u64;
        hash = hash.wrapping_mul(0x9FB2_1C65_1E98_DF25);
        hash ^ hash >> 28
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    proptest::proptest! {
        #[test]
        fn it_is_the_hash_of_the_standard(bytes: [u8; 8], length in 1..=8usize) {
            let eight = EightBytes::at(&bytes, 0).unwrap();
            proptest::prop_assert_eq!(eight.hash(length), xxh3_64(&bytes[..length]));
        }

        #[test]
        fn letters_end_where_the_first_other_byte_is(text in "[a-cX-Z0-9 .@\\[`{/:\\x7Fé]{0,16}") {
            let bytes = text.as_bytes();
            for at in 0..bytes.len() {
                let plain = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric());
                let found = EightBytes::at(bytes, at).map(EightBytes::letters);
                let whole = bytes.len() - at >= EightBytes::COUNT;
                let most = plain.count().min(EightBytes::COUNT);
                proptest::prop_assert_eq!(found, whole.then_some(most));
            }
        }
    }
}
