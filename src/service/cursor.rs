//! Where a list goes on: opaque to clients, and good only for the list that gave it.

use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

use super::problem::Problem;

const CHECK: usize = 8;

fn check(list: &str, place: &[u8]) -> [u8; CHECK] {
    xxh3_64(&[list.as_bytes(), &[0], place].concat()).to_be_bytes()
}

/// Writes the place in a list. `list` names the list with all that decides its order and rows.
pub(super) fn write(list: &str, place: &[u8]) -> String {
    let mut text = String::new();
    for byte in check(list, place).iter().chain(place) {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// Reads a place back.
pub(super) fn read(list: &str, text: &str) -> Result<Vec<u8>, Problem> {
    let bytes: Option<Vec<u8>> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            Some((digit(0)? * 16 + digit(1)?) as u8)
        })
        .collect();
    let found = bytes.as_deref().and_then(<[u8]>::split_first_chunk::<CHECK>);
    match found {
        Some((sum, place)) if *sum == check(list, place) => Ok(place.to_vec()),
        _ => Err(Problem::bad("bad_cursor", "`cursor` is none of this list")),
    }
}

/// A place of two numbers.
pub(super) fn pair(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
}

/// Takes a place of two numbers apart.
pub(super) fn split(place: &[u8]) -> Result<(u64, u64), Problem> {
    let bytes: Result<[u8; 16], _> = place.try_into();
    let both = bytes.map(u128::from_be_bytes);
    let both = both.map_err(|_| Problem::bad("bad_cursor", "`cursor` is none of this list"))?;
    Ok(((both >> 64) as u64, both as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_list_only() {
        let text = write("newest", &pair(7, 9));
        assert_eq!(split(&read("newest", &text).unwrap()), Ok((7, 9)));
        for (list, text) in [("oldest", text.as_str()), ("newest", &text[2..]), ("newest", "é")] {
            assert_eq!(read(list, text).unwrap_err().code, "bad_cursor", "{text}");
        }
    }
}
