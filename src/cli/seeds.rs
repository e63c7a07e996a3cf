//! Seeds files: one address a line.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use encoding_rs::{Encoding, UTF_8};
use uniqcrawl::urls::{Normalize, PageUrl};

use super::exit::Usage;

/// Reads seeds files, in UTF-8 or in UTF-16 with a mark, by the rules of the normal form. Lines
/// that are no addresses are named and passed over; a file that is no text is an error.
pub(super) fn read(paths: &[PathBuf], rules: &Normalize) -> Result<Vec<PageUrl>> {
    let mut seeds = Vec::new();
    for path in paths {
        let bytes = read_bytes(path)?;
        let bytes = in_utf8(&bytes);
        let lines = bytes.split(|byte| *byte == b'\n');
        if let Some((number, byte)) = lines.clone().zip(1..).find_map(binary) {
            let name = path.display();
            let text = format!("{name} is no text: line {number} has the byte 0x{byte:02X}");
            return Err(Usage(text).into());
        }
        for (line, number) in lines.zip(1..) {
            match seed(line, rules) {
                Ok(seed) => seeds.extend(seed),
                Err(why) => eprintln!("warning: {}:{number}: {why}", path.display()),
            }
        }
    }
    if seeds.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let text = format!("{} has no address to start from", names.join(", "));
        return Err(Usage(text).into());
    }
    Ok(seeds)
}

fn in_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    match Encoding::for_bom(bytes) {
        None => Cow::Borrowed(bytes),
        Some((encoding, mark)) if encoding == UTF_8 => Cow::Borrowed(&bytes[mark..]),
        Some((encoding, mark)) => {
            let text = encoding.decode_without_bom_handling(&bytes[mark..]).0;
            Cow::Owned(text.into_owned().into_bytes())
        }
    }
}

/// The number of a line, and its first byte that stands in no text.
///
/// Source: <https://mimesniff.spec.whatwg.org/#binary-data-byte>.
fn binary((line, number): (&[u8], usize)) -> Option<(usize, u8)> {
    let is_binary = |byte: &&u8| matches!(**byte, 0..=8 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F);
    line.iter().find(is_binary).map(|byte| (number, *byte))
}

/// The address of a line, if it has one: what stands before a comment, which starts the line or
/// follows a blank.
fn seed(line: &[u8], rules: &Normalize) -> Result<Option<PageUrl>> {
    let line = str::from_utf8(line).context("the line is not UTF-8")?;
    let is_comment = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = line.match_indices('#').map(|(at, _)| at).find(|at| is_comment(*at));
    let text = line[..comment.unwrap_or(line.len())].trim();
    if text.chars().any(char::is_control) {
        return Err(Usage("the line has control characters".to_owned()).into());
    }
    if text.is_empty() { Ok(None) } else { Ok(Some(PageUrl::parse_with(text, rules)?)) }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes
        .map_err(|error| Usage(error.to_string()))
        .with_context(|| format!("cannot read the seeds file {}", path.display()))
}
