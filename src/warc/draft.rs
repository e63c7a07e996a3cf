//! Records as bytes: what stands in their headers, their digests, and how each is packed by itself.

use std::io::{self, Write as _};

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use super::Kind;
use crate::base::clock::Timestamp;

/// Level of zstd: that of the tools of the field.
const ZSTD_LEVEL: i32 = 3;

/// Letters of base32. Source: RFC 4648, 6.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Media type of lines `name: value`. Source: WARC 1.1, annex B.
pub(crate) const FIELDS: &str = "application/warc-fields";

/// How each record is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// A member of gzip: what every tool reads.
    #[default]
    Gzip,
    /// A frame of zstd: quicker, and smaller.
    Zstd,
}

impl Compression {
    /// Returns what the names of files end with.
    #[must_use]
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Gzip => "warc.gz",
            Self::Zstd => "warc.zst",
        }
    }

    /// Packs a record by itself.
    pub(crate) fn pack(self, record: &[&[u8]]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Level::default());
                record.iter().try_for_each(|part| encoder.write_all(part))?;
                encoder.finish()
            }
            Self::Zstd => {
                let mut encoder = zstd::stream::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                let length: usize = record.iter().map(|part| part.len()).sum();
                encoder.set_pledged_src_size(Some(length as u64))?;
                encoder.include_checksum(true)?;
                record.iter().try_for_each(|part| encoder.write_all(part))?;
                encoder.finish()
            }
        }
    }
}

impl std::str::FromStr for Compression {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            other => Err(format!("`{other}` is neither gzip nor zstd")),
        }
    }
}

/// SHA-1 of some bytes, by which tools tell whether two payloads are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Digest(pub [u8; 20]);

impl Digest {
    /// Makes the digest of parts that follow each other.
    #[must_use]
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        parts.iter().for_each(|part| context.update(part));
        Self(context.finish().as_ref().try_into().expect("SHA-1 has 20 bytes"))
    }

    /// Reads `sha1:` and base32; none if it is another digest.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let letters = text.strip_prefix("sha1:")?;
        let (mut bytes, mut bits, mut count) = (Vec::with_capacity(20), 0_u32, 0);
        for letter in letters.bytes() {
            let five = BASE32.iter().position(|known| known.eq_ignore_ascii_case(&letter))?;
            bits = bits << 5 | u32::try_from(five).ok()?;
            count += 5;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        Some(Self(bytes.try_into().ok()?))
    }
}

/// Base32, as all tools of the field write it.
impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("sha1:")?;
        for group in self.0.chunks(5) {
            let bits = group.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
            for place in (0..8).rev() {
                let letter = BASE32[(bits >> (5 * place) & 31) as usize];
                std::fmt::Write::write_char(f, char::from(letter))?;
            }
        }
        Ok(())
    }
}

/// Makes an identifier that no other record has.
pub(crate) fn new_id() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| io::Error::other("the system gives no random numbers"))?;
    // Version 4, variant 1. Source: RFC 9562, 5.4.
    let bits = u128::from_be_bytes(bytes) & !(0xF << 76) & !(0x3 << 62) | 4 << 76 | 2 << 62;
    let hex = format!("{bits:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(format!("urn:uuid:{}", parts.join("-")))
}

/// A moment as WARC 1.1 has it: with milliseconds, so that nothing of it is lost.
#[must_use]
pub(crate) fn date(moment: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(moment.0) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        Err(_) => moment.to_string(),
    }
}

/// A record that is to be written.
#[derive(Debug, Clone)]
pub(crate) struct Draft<'a> {
    pub kind: Kind,
    pub id: &'a str,
    pub date: Timestamp,
    /// The URL that it is of.
    pub target: Option<&'a str>,
    pub content_type: &'a str,
    /// Further header lines.
    pub headers: Vec<(&'static str, String)>,
    /// The block, in parts.
    pub block: &'a [&'a [u8]],
}

impl Draft<'_> {
    /// Packs it.
    pub(crate) fn pack(&self, compression: Compression) -> io::Result<Vec<u8>> {
        let mut head = format!("WARC/1.1\r\nWARC-Type: {}\r\n", self.kind.name());
        let mut line = |name: &str, value: &str| {
            // A line break in a value would begin another line.
            let value = value.replace(['\r', '\n'], " ");
            head.push_str(&[name, ": ", &value, "\r\n"].concat());
        };
        line("WARC-Record-ID", &format!("<{}>", self.id));
        line("WARC-Date", &date(self.date));
        if let Some(target) = self.target {
            line("WARC-Target-URI", target);
        }
        self.headers.iter().for_each(|(name, value)| line(name, value));
        line("WARC-Block-Digest", &Digest::of(self.block).to_string());
        line("Content-Type", self.content_type);
        let length: usize = self.block.iter().map(|part| part.len()).sum();
        line("Content-Length", &length.to_string());
        head.push_str("\r\n");
        let parts: Vec<&[u8]> = std::iter::once(head.as_bytes())
            .chain(self.block.iter().copied())
            .chain([&b"\r\n\r\n"[..]])
            .collect();
        compression.pack(&parts)
    }
}

/// Lines `name: value`, as a block.
#[must_use]
pub(crate) fn fields(lines: &[(&str, String)]) -> Vec<u8> {
    let line = |(name, value): &(&str, String)| {
        let value = value.replace(['\r', '\n'], " ");
        format!("{name}: {value}\r\n")
    };
    lines.iter().map(line).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_all_tools_write_them() {
        for (text, digest) in [
            // Of RFC 3174, in base32.
            ("abc", "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"),
            // Known to everybody who has seen a CDX file.
            ("", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        ] {
            let made = Digest::of(&[text.as_bytes()]);
            assert_eq!(made.to_string(), digest);
            assert_eq!(Digest::parse(digest), Some(made));
            assert_eq!(Digest::parse(&digest.to_lowercase()), Some(made));
        }
        for bad in ["", "sha1:", "md5:ABC", "sha1:VGMT4NSHA2AWVOR6", "sha1:!!"] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn identifiers_are_of_version_4_and_differ() {
        let (one, other) = (new_id().unwrap(), new_id().unwrap());
        assert_ne!(one, other);
        let bare = one.strip_prefix("urn:uuid:").unwrap();
        let lengths: Vec<usize> = bare.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&bare[14..15], "4");
        assert!("89ab".contains(&bare[19..20]), "{bare}");
    }
}
