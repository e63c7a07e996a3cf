//! Seeds files: one address a line.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use uniqcrawl::urls::{Normalize, PageUrl};

use super::exit::Usage;

/// Reads seeds files by the rules of the normal form. Lines that are no addresses are named and
/// passed over.
pub(super) fn read(paths: &[PathBuf], rules: &Normalize) -> Result<Vec<PageUrl>> {
    let mut seeds = Vec::new();
    for path in paths {
        let bytes = read_bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match PageUrl::parse_with(line, rules) {
                Ok(url) => seeds.push(url),
                Err(error) => {
                    eprintln!("warning: {}:{}: {error}", path.display(), number + 1);
                }
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
