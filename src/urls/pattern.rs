//! The pattern of an address: what is left when numbers and hashes are one.

use super::PageUrl;
use super::sessions::is_hash;

/// Shortest part of a segment that may be a hexadecimal key.
const KEY_MIN: usize = 6;

/// Returns the pattern of a URL within its host: its path with `0` for each number and `*` for
/// each hash, UUID or hexadecimal key, and the names of its parameters in order, each once.
///
/// URLs of one pattern are mostly made by one template; a URL pattern of them without end is a
/// trap.
#[must_use]
pub fn pattern(url: &PageUrl) -> String {
    let mut out = String::new();
    for segment in url.url().path().split('/').skip(1) {
        out.push('/');
        generalise(segment, &mut out);
    }
    let query = url.url().query().unwrap_or_default();
    let mut names: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    names.sort_unstable();
    names.dedup();
    for (number, name) in names.into_iter().filter(|name| !name.is_empty()).enumerate() {
        out.push(if number == 0 { '?' } else { '&' });
        generalise(name, &mut out);
    }
    out
}

fn generalise(text: &str, out: &mut String) {
    if is_hash(text) {
        out.push('*');
        return;
    }
    for (number, token) in
        text.split_inclusive(|char: char| !char.is_ascii_alphanumeric()).enumerate()
    {
        let end = token.trim_end_matches(|char: char| !char.is_ascii_alphanumeric());
        if number > 0 && out.ends_with('%') && end.len() >= 2 {
            // The digits of an escape are no number.
            out.push_str(&end[..2]);
            numbers(&end[2..], out);
        } else if is_hash(end) || is_hex_key(end) {
            out.push('*');
        } else {
            numbers(end, out);
        }
        out.push_str(&token[end.len()..]);
    }
}

/// Tells whether a text is hexadecimal and has letters and digits, as short keys have.
fn is_hex_key(text: &str) -> bool {
    text.len() >= KEY_MIN
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn numbers(text: &str, out: &mut String) {
    let mut in_number = false;
    for char in text.chars() {
        if !char.is_ascii_digit() {
            out.push(char);
        } else if !in_number {
            out.push('0');
        }
        in_number = char.is_ascii_digit();
    }
}
