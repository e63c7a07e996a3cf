//! What became of the URL that a page names as canonical.

use crate::corpus::documents::{Copy, Document};
use crate::corpus::tables::COPIES;
use crate::frontier::{ADDRESSES, State};
use crate::store::{Error, Snapshot, View};

use super::words::{self, Language, Said, said};

/// Says which URL the page of a copy names as canonical, and whether that is followed; none if
/// it names no other one. `frontier` is the store of its crawl, if there is one at hand.
pub fn declared(
    view: &impl View,
    frontier: Option<&Snapshot>,
    number: u64,
    document: &Document,
    copy: &Copy,
) -> Result<Option<String>, Error> {
    Ok(named(view, frontier, number, document, copy)?
        .map(|said| said.in_language(Language::English)))
}

/// The same in all languages.
pub(super) fn named(
    view: &impl View,
    frontier: Option<&Snapshot>,
    number: u64,
    document: &Document,
    copy: &Copy,
) -> Result<Option<Said>, Error> {
    let named = &copy.declared;
    if named.is_empty() {
        return Ok(None);
    }
    let canonical = &document.canonical;
    let Said { en, zh } = if let Some(other) = view.get(COPIES, (number, named))? {
        if named == canonical {
            said!("followed", "已遵循")
        } else if other.popularity < document.popularity {
            said!(
                "a copy of the same document, less popular than {canonical}",
                "同一文档的副本，热度低于 {canonical}"
            )
        } else {
            said!(
                "a copy of the same document; {canonical} stands for both",
                "同一文档的副本；两者以 {canonical} 为准"
            )
        }
    } else {
        let Said { en, zh } = why_not(frontier, named)?;
        said!("not followed: {en}", "未遵循：{zh}")
    };
    Ok(Some(said!("{named} ({en})", "{named}（{zh}）")))
}

fn why_not(frontier: Option<&Snapshot>, named: &str) -> Result<Said, Error> {
    let Some(snapshot) = frontier else {
        return Ok(said!("it is no copy of the same document", "它不是同一文档的副本"));
    };
    let Some(address) = snapshot.get(ADDRESSES, named)? else {
        return Ok(said!("it was never found as a link", "从未作为链接出现"));
    };
    Ok(match address.state {
        State::Stored(_) => said!("it is another document", "它是另一个文档"),
        State::Queued => said!("it was not visited yet", "尚未访问"),
        State::Redirect(target) => said!("it redirects to {target}", "它重定向到 {target}"),
        State::Skipped { of, .. } | State::Known { of, .. } => {
            said!("it is not fetched, as the page at {of}", "未抓取，视同 {of} 的页面")
        }
        State::Refused(reason) => {
            let (en, zh) = (reason.describe(), words::reason(reason));
            said!("it is not in the corpus: {en}", "它不在语料库中：{zh}")
        }
    })
}
