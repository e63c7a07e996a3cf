//! The title of a page, without the name of its site.

use super::super::tree::Tree;
use super::linked::Linked;
use super::names::plain;
use super::place::{Landmarks, likeness};
use super::seen::{RawMetadata, TITLE_CHARS_MAX};
use super::{Source, Stated};
use crate::text::is_han;

/// What stands between the title of a page and the name of its site.
const SEPARATORS: [&str; 16] = [
    " | ", " - ", " – ", " — ", " _ ", " :: ", " · ", " » ", " « ", " • ", " ‹ ", " › ", "_", "｜",
    "|", "--",
];

/// Names of `<meta>` elements with a title.
pub(super) const META_TITLES: [&str; 4] =
    ["og:title", "twitter:title", "dc.title", "citation_title"];

pub(super) fn title(
    tree: &Tree<'_>,
    seen: &RawMetadata<'_>,
    linked: &Linked,
    place: &Landmarks,
    site: &[&str],
) -> Option<Stated<String>> {
    let meta = seen.meta_of(&META_TITLES).map(|text| without_site(&plain(text), site));
    let headline = linked.headline.as_deref().map(|text| without_site(text, site));
    let tag = without_site(&plain(&seen.title), site);
    let heading = place.heading.map(|(index, like)| {
        let text = plain(&tree.text_of(index, TITLE_CHARS_MAX));
        let text = without_named(text.trim_end_matches(['¶', '#', ' ']), site);
        // Buttons and badges within a heading follow its words.
        let told = [meta.as_deref(), headline.as_deref(), Some(tag.as_str())];
        let own = told.into_iter().flatten().find(|told| {
            let rest = text.strip_prefix(told);
            let apart = |rest: &str| {
                rest.len() > 12
                    && rest.strip_prefix(' ').is_some_and(|rest| !rest.starts_with(['—', '+', '&']))
            };
            told.len() > 8 && rest.is_some_and(apart)
        });
        (own.map_or(text.clone(), str::to_owned), like)
    });
    let heading =
        heading.filter(|(text, like)| *like >= 0.0 && is_title(text) && !is_site(text, site));
    if let Some((text, like)) = heading.clone().filter(|(_, like)| *like >= 0.5) {
        return Some(Stated { value: text, source: Source::Heading, confidence: 0.6 + 0.4 * like });
    }
    // A single heading is the title even where the head says it in other words.
    if let Some((text, like)) = heading.clone().filter(|_| seen.h1.len() == 1)
        && text.chars().count() >= 8
    {
        return Some(Stated { value: text, source: Source::Heading, confidence: 0.5 + 0.4 * like });
    }
    let told = [(headline, Source::JsonLd), (meta, Source::Meta), (Some(tag), Source::TitleTag)];
    for (text, source) in told {
        if let Some(value) = text.filter(|text| is_title(text) && !is_site(text, site)) {
            return Some(Stated { value, source, confidence: 0.65 });
        }
    }
    let last = heading.map(|(text, _)| (text, Source::Heading));
    let last = last.or_else(|| Some((plain(&seen.title), Source::TitleTag)));
    let last = last.filter(|(text, _)| !text.is_empty());
    last.map(|(value, source)| Stated { value, source, confidence: 0.5 })
}

fn is_title(text: &str) -> bool {
    text.chars().filter(|c| c.is_alphanumeric()).count() >= 2
}

fn is_site(text: &str, site: &[&str]) -> bool {
    site.iter().any(|name| text.eq_ignore_ascii_case(name))
}

/// Takes the name of the site off the end of a heading.
fn without_named(title: &str, site: &[&str]) -> String {
    let cut = SEPARATORS.iter().filter_map(|separator| {
        let (rest, last) = title.rsplit_once(separator)?;
        let named = site.iter().any(|name| likeness(last, name) >= 0.8);
        (named && rest.len() >= 8).then_some(rest)
    });
    cut.min_by_key(|rest| rest.len()).unwrap_or(title).trim().to_owned()
}

/// Takes the parts off a title that name the site or a section of it.
fn without_site(title: &str, site: &[&str]) -> String {
    // Chinese titles have no blanks around the dash.
    let han = title.chars().take(6).filter(|c| is_han(*c)).count() > 2;
    let dash = han.then_some(&"-");
    let mut separators = SEPARATORS.iter().chain(dash);
    let Some(separator) = separators.find(|separator| title.contains(**separator)) else {
        return title.to_owned();
    };
    let parts: Vec<&str> =
        title.split(separator).map(str::trim).filter(|p| !p.is_empty()).collect();
    let named = |part: &str| site.iter().any(|name| likeness(part, name) >= 0.8);
    let mut kept = &parts[..];
    while let [rest @ .., last] = kept
        && !rest.is_empty()
        && named(last)
    {
        kept = rest;
    }
    while let [first, rest @ ..] = kept
        && !rest.is_empty()
        && named(first)
    {
        kept = rest;
    }
    if kept.len() < parts.len() && kept.len() == 1 {
        return kept[0].to_owned();
    }
    let longest = kept.iter().rev().max_by_key(|part| part.chars().count());
    // A short remainder is more likely half a title than a title.
    let whole: usize = kept.iter().map(|part| part.chars().count()).sum();
    match longest.filter(|part| part.chars().count() * 2 > whole) {
        Some(part) => (*part).to_owned(),
        None => kept.join(separator),
    }
}
