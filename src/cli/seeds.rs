//! Where a crawl starts: URLs of the command line, and seeds files with one a line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::urls::{Normalize, PageUrl, ParseError, Typed};
use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue};
use encoding_rs::{Encoding, UTF_8};

use super::args::Args;
use super::exit::Usage;

/// How seeds are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeedReading<'a> {
    /// Rules of the normal form.
    pub rules: &'a Normalize,
    /// Nothing is said of URLs without a scheme.
    pub quiet: bool,
}

/// Reads the URLs of the command line, and those of seeds files after them.
///
/// # Errors
///
/// If neither is given; what on the command line is no URL, is a file, or may be a misspelt
/// command.
pub(super) fn all(
    urls: &[String],
    files: &[PathBuf],
    read: SeedReading<'_>,
) -> Result<Vec<PageUrl>> {
    if urls.is_empty() && files.is_empty() {
        let text = "nothing to crawl: name a URL, as in `crawl https://example.org/`, or a \
                    file of URLs with --seeds FILE; `crawl --help` lists the commands";
        return Err(Usage(text.to_owned()).into());
    }
    let mut seeds = Vec::new();
    let mut assumed = Assumed::default();
    for text in urls {
        let typed = match Typed::parse(text, read.rules) {
            Err(ParseError::Word(word)) => return Err(misspelt(&word).into()),
            typed => typed.map_err(|error| Usage(error.to_string()))?,
        };
        if typed.assumed.is_some() && Path::new(text).is_file() {
            let text = format!("{text} is a file: `--seeds {text}` crawls the URLs in it");
            return Err(Usage(text).into());
        }
        assumed.count(&typed, || format!("`{text}`"));
        seeds.push(typed.url);
    }
    assumed.tell(read);
    if !files.is_empty() {
        seeds.extend(of_files(files, read)?);
    }
    Ok(seeds)
}

/// Says what a word may have meant that is neither a command nor a URL.
pub(super) fn misspelt(word: &str) -> Usage {
    let commands = clap::Command::new("crawl").subcommands(Args::command().get_subcommands());
    let error = commands.subcommand_required(true).try_get_matches_from(["crawl", word]).err();
    let similar = error.as_ref().and_then(|error| error.get(ContextKind::SuggestedSubcommand));
    // The last one is the most similar.
    let meant = match similar {
        Some(ContextValue::Strings(names)) => names.last(),
        _ => None,
    };
    let meant = meant.map(|name| format!(": did you mean `crawl {name}`?")).unwrap_or_default();
    Usage(format!(
        "`{word}` is neither a command nor a URL{meant}\n\
         A URL has a scheme, a dot or a port, as in https://example.org/ or example.org; \
         `crawl --help` lists the commands"
    ))
}

/// Returns the first argument if it can only be a misspelt command.
pub(super) fn misspelt_command() -> Option<String> {
    let first = std::env::args().nth(1)?;
    let is_command = Args::command().find_subcommand(&first).is_some() || first == "help";
    let is_word = matches!(Typed::parse(&first, Normalize::none()), Err(ParseError::Word(_)));
    (is_word && !is_command && !first.starts_with('-')).then_some(first)
}

/// Reads seeds files, in UTF-8 or in UTF-16 with a mark, by the rules of the normal form. Lines
/// that are no URLs are named and passed over; a file that is no text is an error.
pub(super) fn of_files(paths: &[PathBuf], read: SeedReading<'_>) -> Result<Vec<PageUrl>> {
    let mut seeds = Vec::new();
    for path in paths {
        let bytes = read_bytes(path)?;
        let bytes = in_utf8(&bytes);
        let lines = bytes.split(|byte| *byte == b'\n');
        if let Some((number, byte)) =
            lines.clone().zip(1..).find_map(|(line, number)| Some((number, binary(line)?)))
        {
            let name = path.display();
            let text = format!("{name} is no text: line {number} has the byte 0x{byte:02X}");
            return Err(Usage(text).into());
        }
        let mut assumed = Assumed::default();
        for (line, number) in lines.zip(1..) {
            match seed(line, read.rules) {
                Ok(Some(typed)) => {
                    assumed.count(&typed, || format!("{}:{number}", path.display()));
                    seeds.push(typed.url);
                }
                Ok(None) => {}
                Err(why) => eprintln!("warning: {}:{number}: {why}", path.display()),
            }
        }
        assumed.tell(read);
    }
    if seeds.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let text = format!("{} has no URL to start from", names.join(", "));
        return Err(Usage(text).into());
    }
    Ok(seeds)
}

/// URLs that had no scheme, by the one that they were given.
#[derive(Debug, Default)]
struct Assumed(BTreeMap<&'static str, (usize, String)>);

impl Assumed {
    /// Counts a URL. `place` is where the first of them stands.
    fn count(&mut self, typed: &Typed, place: impl Fn() -> String) {
        let Some(scheme) = typed.assumed else { return };
        let first = || (0, format!("{} is taken as {}", place(), typed.url));
        self.0.entry(scheme).or_insert_with(first).0 += 1;
    }

    /// Says it in one line for each scheme, however many there are.
    fn tell(&self, read: SeedReading<'_>) {
        for (scheme, (count, first)) in self.0.iter().filter(|_| !read.quiet) {
            let more = match count - 1 {
                0 => String::new(),
                more => format!(", and {more} more without a scheme as {scheme}://"),
            };
            eprintln!("note: {first}{more}");
        }
    }
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

/// The first byte of a line that stands in no text.
///
/// Source: <https://mimesniff.spec.whatwg.org/#binary-data-byte>.
fn binary(line: &[u8]) -> Option<u8> {
    let is_binary = |byte: &&u8| matches!(**byte, 0..=8 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F);
    line.iter().find(is_binary).copied()
}

/// The URL of a line, if it has one: what stands before a comment, which starts the line or
/// follows a blank.
fn seed(line: &[u8], rules: &Normalize) -> Result<Option<Typed>> {
    let line = str::from_utf8(line).context("the line is not UTF-8")?;
    let is_comment = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = line.match_indices('#').map(|(at, _)| at).find(|at| is_comment(*at));
    let text = line[..comment.unwrap_or(line.len())].trim();
    if text.chars().any(char::is_control) {
        return Err(Usage("the line has control characters".to_owned()).into());
    }
    if text.is_empty() { Ok(None) } else { Ok(Some(Typed::parse(text, rules)?)) }
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
