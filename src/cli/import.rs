//! `crawl import`.

use anyhow::Result;

use super::corpora::ImportArgs;
use super::exit::Exit;

/// `crawl import --store DIR INPUT...`.
pub(super) fn import(_args: &ImportArgs, _json: bool, _quiet: bool) -> Result<Exit> {
    Ok(Exit::Failed)
}
