//! The feature hashes of the lecture: enumerations by repeating bits, Chinese words by the place of
//! their characters in GB 2312.
//!
//! Source: 罗刚, lecture on web page deduplication. As printed, the loops lose their upper half to a
//! 32-bit shift; here all shifts are of 64 bits, which is what the text describes.

use std::sync::LazyLock;

use encoding_rs::GBK;

use crate::text::sketch::mix;

/// Hanzi of GB 2312: 72 rows of 94.
const HANZI: i64 = 6768;

/// The base of the polynomial: the Hanzi, and 117 codes for single bytes.
const BASE: i64 = HANZI + 117;

/// Bits that the lecture counts for one character: 2^13 is the first power above [`BASE`].
const CHAR_BITS: u32 = 13;

/// Repeats the number of a value of an enumeration over 64 bits, so that unlike values of the same
/// enumeration are far apart. `count` is the number of values.
///
/// Each repetition has as many bits as `count - 1` needs, at least one; the bits that are left at
/// the top are the lowest ones of one more. Two values of two are 0 and all ones. Adding a value to
/// an enumeration of 2, 4, 8, ... values changes every hash but that of its first value.
///
/// ```
/// use uniqcrawl::text::features::lecture::enum_hash;
///
/// assert_eq!((enum_hash(0, 2), enum_hash(1, 2)), (0, u64::MAX));
/// assert_eq!(enum_hash(1, 3), 0x5555_5555_5555_5555);
/// ```
#[must_use]
pub fn enum_hash(ordinal: u32, count: u32) -> u64 {
    let bits = u32::BITS - count.saturating_sub(1).leading_zeros();
    let bits = bits.max(1);
    let mut hash = u64::from(ordinal);
    for _ in 0..64 / bits {
        hash = (hash << bits).wrapping_add(u64::from(ordinal));
    }
    hash
}

/// Returns the number of a character: 0 to 6,767 for the Hanzi of GB 2312 by row and cell (啊 is 0,
/// 齄 is 6,767), below zero for its symbols and letters, 6,759 and above for single bytes.
///
/// A character outside GB 2312 has the number of `?`, as in the listing: the lecture's hash cannot
/// tell traditional characters from each other.
#[must_use]
pub fn char_code(c: char) -> i64 {
    CODES.get(c as usize).map_or_else(|| single(b'?'), |code| i64::from(*code))
}

/// The code of each character of the basic plane; GB 2312 has no others.
static CODES: LazyLock<Vec<i16>> = LazyLock::new(|| {
    let mut codes = vec![single(b'?') as i16; 1 << 16];
    for byte in 0..0x80 {
        codes[usize::from(byte)] = single(byte) as i16;
    }
    // GB 2312 has rows and cells from 0xA1 on; what GBK adds lies elsewhere.
    for (row, cell) in (0xA1..=0xF7).flat_map(|row| (0xA1..=0xFE).map(move |cell| (row, cell))) {
        let bytes = [row, cell];
        let (text, _) = GBK.decode_without_bom_handling(&bytes);
        if let Some(c) = text.chars().next().filter(|c| *c != char::REPLACEMENT_CHARACTER) {
            let code = (i64::from(row) - 176) * 94 + i64::from(cell) - 161;
            codes[c as usize] = code as i16;
        }
    }
    codes
});

fn single(byte: u8) -> i64 {
    i64::from(byte) - 9 + HANZI
}

/// Hashes a word as the lecture does: a polynomial of its [`char_code`]s in the base 6,885,
/// repeated over the 64 bits. Kept for comparison: words of two characters have only 26 free bits.
///
/// An empty word has the hash 0.
#[must_use]
pub fn string_hash_as_printed(word: &str) -> u64 {
    repeated(word.chars().map(char_code))
}

/// The polynomial of some codes, repeated.
fn repeated(mut codes: impl Iterator<Item = i64>) -> u64 {
    let Some(mut polynomial) = codes.next() else { return 0 };
    let mut bits = CHAR_BITS;
    for code in codes {
        polynomial = polynomial.wrapping_mul(BASE).wrapping_add(code);
        bits = bits.saturating_add(CHAR_BITS);
    }
    let mut hash = polynomial;
    for _ in 0..=64 / bits {
        // Shifts count modulo 64, as on the machine of the listing.
        hash = hash.wrapping_shl(bits).wrapping_add(polynomial);
    }
    hash.cast_unsigned()
}

/// Hashes a word by its characters, without a dictionary: the lecture's polynomial, whose bits are
/// then spread evenly over all 64. The hash that is used for features.
///
/// A character outside GB 2312 counts with its code point, as the last line of the listing says,
/// which is never reached there: rare and traditional characters are told apart.
#[must_use]
pub fn string_hash(word: &str) -> u64 {
    let unknown = single(b'?');
    mix(repeated(word.chars().map(|c| match char_code(c) {
        code if code == unknown && c != '?' => i64::from(u32::from(c)),
        code => code,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hanzi_are_numbered_by_their_place_in_gb_2312() {
        for (c, code) in [
            ('啊', 0),
            ('齄', 6767),
            ('阿', 1),
            ('。', -1408),
            ('Ａ', -1190),
            ('の', -1083),
            ('A', 6824),
            ('~', 6885),
            ('?', 6822),
            ('\0', 6759),
            ('國', 6822),
            ('한', 6822),
            ('😀', 6822),
        ] {
            assert_eq!(char_code(c), code, "{c}");
        }
    }

    #[test]
    fn the_polynomial_of_two_characters_repeats_after_26_bits() {
        let polynomial = char_code('去') * 6_885 + char_code('重');
        let hash = string_hash_as_printed("去重");
        assert_eq!(hash & ((1 << 26) - 1), polynomial.cast_unsigned());
        assert_eq!(hash >> 26 & ((1 << 26) - 1), polynomial.cast_unsigned());
        assert_eq!(hash >> 52, polynomial.cast_unsigned() & 0xFFF, "up to the top");
        let one = char_code('去').cast_unsigned();
        let repeated = (0..5).fold(0, |all, n| all | one << (13 * n));
        assert_eq!(string_hash_as_printed("去"), repeated);
        assert_eq!(string_hash_as_printed(""), 0);
        assert_ne!(string_hash("去重"), string_hash("系统"));
        assert_eq!(string_hash("去重"), mix(string_hash_as_printed("去重")));
        assert_eq!(string_hash_as_printed("國體"), string_hash_as_printed("憂鬱"), "as printed");
        assert_ne!(string_hash("國體"), string_hash("憂鬱"));
        assert_ne!(string_hash("𠀀"), string_hash("?"));
        assert_ne!(string_hash("一二三四五六七八九十".repeat(9).as_str()), 0);
    }

    #[test]
    fn values_of_an_enumeration_are_far_apart() {
        assert_eq!(enum_hash(2, 3), 0xAAAA_AAAA_AAAA_AAAA);
        assert_eq!(enum_hash(0, 1), 0);
        assert_eq!(enum_hash(1, 5), 0x9249_2492_4924_9249, "three bits each, and one more");
        for one in 0..16 {
            for other in 0..one {
                let distance = (enum_hash(one, 16) ^ enum_hash(other, 16)).count_ones();
                assert!((16..=64).contains(&distance), "{one} {other}: {distance}");
            }
        }
    }
}
