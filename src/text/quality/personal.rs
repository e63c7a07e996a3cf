//! Personal data in a text, replaced by made-up data of the same kind.
//!
//! Mail addresses and IP addresses as FineWeb masks them (datatrove's `PIIFormatter`, Apache-2.0);
//! telephone numbers by rules of our own, which FineWeb does not have.

use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::text::is_han;

/// Addresses that are nobody's, in turn.
const MAILS: [&str; 2] = ["email@example.com", "firstname.lastname@example.org"];

/// Addresses that did not answer when FineWeb was made, in turn.
const IPS: [&str; 6] = [
    "22.214.171.124",
    "126.96.36.199",
    "188.8.131.52",
    "184.108.40.206",
    "220.127.116.11",
    "18.104.22.168",
];

/// A number that is given to nobody: those of 555-01 are for fiction.
const PHONE: &str = "+1 202-555-0143";

/// Digits of a number with its country at least and at most. Source: ITU-T E.164, 6.1.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// A kind of personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Personal {
    /// Mail addresses.
    Mail,
    /// IP addresses that all can reach (version 4).
    Ip,
    /// Telephone numbers.
    Phone,
}

impl Personal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mail, Self::Ip, Self::Phone];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Ip => "ip",
            Self::Phone => "phone",
        }
    }

    /// Replaces all data of this kind. Returns how many there were.
    #[must_use]
    pub fn mask(self, text: &str) -> (Cow<'_, str>, u64) {
        let (found, masks): (Vec<Range<usize>>, &[&str]) = match self {
            Self::Mail => (mails(text), &MAILS),
            Self::Ip => (ips(text), &IPS),
            Self::Phone => (phones(text), &[PHONE]),
        };
        if found.is_empty() {
            return (Cow::Borrowed(text), 0);
        }
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for (at, mask) in found.iter().zip(masks.iter().cycle()) {
            out.push_str(&text[end..at.start]);
            out.push_str(mask);
            end = at.end;
        }
        out.push_str(&text[end..]);
        (Cow::Owned(out), found.len() as u64)
    }
}

/// Characters of a name before the `@`, beside full stops between them.
fn is_atom(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte)
}

/// A character of a word, Chinese apart: an address may stand right behind it.
fn is_word(c: char) -> bool {
    (c.is_alphanumeric() || c == '_') && !is_han(c)
}

fn mails(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in memchr::memchr_iter(b'@', bytes) {
        let from = found.last().map_or(0, |last| last.end);
        let Some(end) = mail_host(&text[at + 1..]).map(|length| at + 1 + length) else { continue };
        let mut start = at;
        while start > from {
            let byte = bytes[start - 1];
            let follows_atom = start < at && bytes[start] != b'.';
            let goes_on = is_atom(byte) || (byte == b'.' && follows_atom);
            if !goes_on {
                break;
            }
            start -= 1;
        }
        // It begins where a word does.
        let begins = |start: &usize| {
            let before = text[..*start].chars().next_back().is_some_and(is_word);
            is_atom(bytes[*start]) && before != is_word(char::from(bytes[*start]))
        };
        if let Some(start) = (start..at).find(begins) {
            found.push(start..end);
        }
    }
    found
}

/// Bytes of the name of a host, or of an address in brackets, at the beginning of a text.
fn mail_host(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'[') {
        let end = text.find(']')?;
        return text[1..end].parse::<Ipv4Addr>().is_ok().then_some(end + 1);
    }
    let (mut start, mut labels) = (0, 0);
    loop {
        let run = bytes[start..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-');
        let end = start + run.count();
        let label = &text[start..end];
        if !label.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return None;
        }
        labels += 1;
        let goes_on = !label.ends_with('-')
            && bytes.get(end) == Some(&b'.')
            && bytes.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
        if !goes_on {
            return (labels > 1).then_some(start + label.trim_end_matches('-').len());
        }
        start = end + 1;
    }
}

/// The longest number up to 255 at the beginning of a text, or the first that fits: `[01]?[0-9]?`
/// is tried after `25[0-5]` and `2[0-4][0-9]`.
fn octet(bytes: &[u8]) -> usize {
    let digits = bytes.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    match (digits, bytes) {
        (3, [b'2', b'5', b'0'..=b'5', ..] | [b'2', b'0'..=b'4', ..] | [b'0' | b'1', ..]) => 3,
        (2 | 3, _) => 2,
        (digits, _) => digits,
    }
}

fn ips(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|next| at + next) {
        match ip(&bytes[start..]) {
            Some(length) => {
                let address = text[start..start + length].parse::<Ipv4Addr>();
                if address.is_ok_and(is_public) {
                    found.push(start..start + length);
                }
                at = start + length;
            }
            None => at = start + 1,
        }
    }
    found
}

/// Bytes of an address at the beginning of a text.
fn ip(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for part in 0..4 {
        let digits = octet(&bytes[at..]);
        if digits == 0 {
            return None;
        }
        at += digits;
        if part < 3 {
            if bytes.get(at) != Some(&b'.') {
                return None;
            }
            at += 1;
        }
    }
    Some(at)
}

/// Tells whether an address can be reached from everywhere. Source: IANA IPv4 Special-Purpose
/// Address Registry.
fn is_public(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let is_special = a == 0
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 100 && (64..128).contains(&b)
        || (a, b, c) == (192, 0, 0) && !matches!(d, 9 | 10)
        || a == 198 && matches!(b, 18 | 19)
        || a >= 240;
    !is_special
}

/// Numbers with `+` and a country, of North America, and of China.
fn phones(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begins = matches!(bytes[at], b'+' | b'(') || bytes[at].is_ascii_digit();
        let is_inside = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'.');
        if !begins || is_inside {
            at += 1;
            continue;
        }
        let (length, digits) = number(&bytes[at..]);
        let run = &text[at..at + length];
        if is_phone(run, &digits) {
            found.push(at..at + length);
        }
        at += length.max(1);
    }
    found
}

/// Bytes and digits of what may be a number: groups of digits with one sign between two.
fn number(bytes: &[u8]) -> (usize, String) {
    let (mut at, mut end, mut digits) = (0, 0, String::new());
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let is_part = match byte {
            b'0'..=b'9' => true,
            b'+' => at == 0,
            b'(' => next.is_some_and(|next| next.is_ascii_digit()) && digits.len() < 4,
            b')' => digits.len() < 8,
            b' ' | b'-' | b'.' => next.is_some_and(|next| next.is_ascii_digit() || next == b'('),
            _ => false,
        };
        if !is_part {
            break;
        }
        at += 1;
        if byte.is_ascii_digit() {
            digits.push(char::from(*byte));
            end = at;
        }
    }
    // What goes on as a word or a fraction is none.
    let goes_on = bytes.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'%');
    if goes_on { (end, String::new()) } else { (end, digits) }
}

fn is_phone(run: &str, digits: &str) -> bool {
    if run.starts_with('+') {
        return DIGITS.contains(&digits.len());
    }
    let shape: String = run.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let north_america =
        ["000-000-0000", "(000) 000-0000", "(000)000-0000", "000.000.0000", "1-000-000-0000"];
    let area = digits.strip_prefix('1').filter(|_| digits.len() == 11).unwrap_or(digits);
    let is_area = |at: usize| area.as_bytes().get(at).is_some_and(|digit| *digit >= b'2');
    if north_america.contains(&shape.as_str()) {
        return is_area(0) && is_area(3);
    }
    let china = ["00000000000", "000-0000-0000", "000 0000 0000"];
    let is_mobile = digits.starts_with('1') && digits.as_bytes().get(1) >= Some(&b'3');
    if china.contains(&shape.as_str()) {
        return is_mobile;
    }
    let lines = ["000-00000000", "0000-0000000", "0000-00000000", "(000)00000000", "(0000)0000000"];
    lines.contains(&shape.as_str()) && digits.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(kind: Personal, text: &str) -> String {
        kind.mask(text).0.into_owned()
    }

    #[test]
    fn mail_addresses_are_masked_in_turn() {
        let text = "Ask a.b+c@mail.example.net, or <x@y.de>; 写信到me@site.cn。";
        assert_eq!(
            masked(Personal::Mail, text),
            "Ask email@example.com, or <firstname.lastname@example.org>; 写信到email@example.com。"
        );
        for text in ["@name said", "a@b", "a..@b.c", "x @ y.z", "@@"] {
            assert_eq!(masked(Personal::Mail, text), text);
        }
        assert_eq!(masked(Personal::Mail, ".a@b.c-d.-"), ".email@example.com.-");
    }

    #[test]
    fn public_addresses_are_masked_and_others_stay() {
        let text = "From 8.8.8.8 and 10.0.0.1, 192.168.1.9, 300.1.1.1, version 1.2.3";
        assert_eq!(
            masked(Personal::Ip, text),
            "From 22.214.171.124 and 10.0.0.1, 192.168.1.9, 300.1.1.1, version 1.2.3"
        );
    }

    #[test]
    fn numbers_of_telephones_are_masked_and_other_numbers_stay() {
        for phone in [
            "+49 30 901820",
            "(212) 664-7665",
            "212-664-7665",
            "13812345678",
            "010-62791234",
            "+86 138 1234 5678",
        ] {
            assert_eq!(masked(Personal::Phone, &format!("T: {phone}.")), format!("T: {PHONE}."));
        }
        for text in [
            "In 2026-11-24 there were 1 234 567 of 12345678901234567890",
            "3.14159265358979",
            "ISBN 978-3-16-148410-0",
            "112-555-0143",
            "20261124123",
        ] {
            assert_eq!(masked(Personal::Phone, text), text);
        }
    }
}
