//! Who wrote a page.

use super::super::tree::{NodeKind, Tree};
use super::dates::{self, DateOrder};
use super::han_names::{self, Byline, Credit};
use super::linked::ThingKind;
use super::names;
use super::seen::has_word;
use super::window::VisibleText;
use super::{Evidence, PageType, Source, Stated};
use crate::text::is_han;

/// Least confidence of authors that are told.
const CONFIDENCE_MIN: f32 = 0.5;

/// Elements that are looked at.
const BYLINES_MAX: usize = 16;

/// Authors that are kept.
const AUTHORS_MAX: usize = 20;

/// Names of `<meta>` elements with an author, and how far they are believed.
const NAMES: [(&str, f32); 16] = [
    ("citation_author", 0.95),
    ("parsely-author", 0.9),
    ("sailthru.author", 0.9),
    ("byl", 0.9),
    ("article:author_name", 0.9),
    ("dc.creator", 0.82),
    ("dcterms.creator", 0.82),
    ("dc.creator.personalname", 0.82),
    ("author", 0.78),
    ("authors", 0.78),
    ("article:author", 0.75),
    ("og:article:author", 0.75),
    ("og:author", 0.7),
    ("article.author", 0.75),
    ("twitter:creator:name", 0.7),
    ("byline", 0.8),
];

/// Labels of `twitter:label1` that go with the name of an author.
const TWITTER_LABELS: [&str; 9] = [
    "written by",
    "author",
    "verfasst von",
    "écrit par",
    "escrito por",
    "by",
    "geschrieben von",
    "scritto da",
    "geschreven door",
];

type Authors = Stated<Vec<String>>;

/// How much less a name is believed on a page that need not have an author.
fn doubt(kind: PageType) -> f32 {
    match kind {
        PageType::Article => 0.0,
        PageType::Unknown => 0.06,
        PageType::Undated => 0.3,
    }
}

pub(super) fn authors(evidence: &Evidence<'_, '_>) -> Option<Authors> {
    let mut all: Vec<Authors> = Vec::new();
    all.extend(linked(evidence));
    all.extend(metas(evidence));
    all.extend(marked(evidence));
    all.extend(visible(evidence));
    all.extend(chinese(evidence));
    let agreed = |one: &Authors| {
        let same =
            |other: &&Authors| other.source != one.source && shared(&one.value, &other.value);
        all.iter().filter(same).map(|other| 1.0 - other.confidence).product::<f32>()
    };
    let weighed = all.iter().map(|one| (1.0 - (1.0 - one.confidence) * agreed(one), one));
    let mut best: Option<(f32, &Authors)> = None;
    for (confidence, one) in weighed {
        if best.is_none_or(|(most, _)| confidence > most + 1e-6) {
            best = Some((confidence, one));
        }
    }
    let (confidence, one) = best.filter(|(confidence, _)| *confidence >= CONFIDENCE_MIN)?;
    Some(Stated { value: one.value.clone(), source: one.source, confidence })
}

/// Tells whether two lists name one person alike.
fn shared(one: &[String], other: &[String]) -> bool {
    one.iter().any(|name| other.iter().any(|second| name.eq_ignore_ascii_case(second)))
}

fn stated(names: Vec<String>, source: Source, confidence: f32) -> Option<Authors> {
    let mut value: Vec<String> = Vec::new();
    for name in names.into_iter().take(AUTHORS_MAX) {
        if value.iter().all(|known| !known.eq_ignore_ascii_case(&name)) {
            value.push(name);
        }
    }
    (!value.is_empty()).then_some(Stated { value, source, confidence })
}

/// Nobody of the site: its own name is no author.
fn persons<'n>(evidence: &Evidence<'_, '_>, texts: impl Iterator<Item = &'n str>) -> Vec<String> {
    let known = texts.filter_map(names::person);
    known.filter(|name| evidence.kind == PageType::Article || !is_site(evidence, name)).collect()
}

fn is_site(evidence: &Evidence<'_, '_>, name: &str) -> bool {
    let solid = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let name = solid(name);
    evidence.site.iter().any(|site| solid(site) == name)
}

fn linked(evidence: &Evidence<'_, '_>) -> Option<Authors> {
    let linked = evidence.linked;
    let confidence = match (linked.role, linked.persons) {
        (Some(ThingKind::Article), true) => 0.92,
        (Some(ThingKind::Article), false) => 0.55,
        (Some(ThingKind::Page), true) if evidence.kind == PageType::Article => 0.62,
        _ => 0.35,
    };
    let names = persons(evidence, linked.authors.iter().map(String::as_str));
    stated(names, Source::JsonLd, confidence)
}

fn metas(evidence: &Evidence<'_, '_>) -> Option<Authors> {
    let seen = evidence.seen;
    let told = NAMES.iter().filter_map(|(name, confidence)| {
        let names = persons(evidence, seen.all_meta(name));
        stated(names, Source::Meta, *confidence)
    });
    let twitter = [("twitter:label1", "twitter:data1"), ("twitter:label2", "twitter:data2")];
    let twitter = twitter.into_iter().filter_map(|(label, data)| {
        let label = seen.meta_of(&[label])?.trim().to_lowercase();
        TWITTER_LABELS.contains(&label.as_str()).then_some(())?;
        stated(persons(evidence, seen.all_meta(data)), Source::Meta, 0.85)
    });
    let mut told: Vec<Authors> = told.chain(twitter).collect();
    for one in &mut told {
        let slogan = one.value.iter().any(|name| {
            !name.contains(',') && name.split_whitespace().count() > 6
                || name.chars().filter(|c| is_han(*c)).count() > 8
        });
        if slogan {
            one.confidence = 0.2;
        } else {
            one.confidence -= doubt(evidence.kind);
        }
    }
    let order = |one: &Authors, other: &Authors| one.confidence.total_cmp(&other.confidence);
    told.into_iter().rev().max_by(order)
}

/// Elements that name themselves a byline, near the heading.
fn marked(evidence: &Evidence<'_, '_>) -> Option<Authors> {
    let Evidence { tree, seen, window, .. } = *evidence;
    let props = seen.props.iter().filter(|(_, prop)| *prop == "author").map(|(index, _)| *index);
    let mut props = props.filter(|index| *index >= window.from);
    if let Some(first) = props.next() {
        // Those who stand together wrote together; others answered.
        let end = tree.items[first].end + 12;
        let together = props.take_while(|index| *index < end);
        let texts: Vec<String> =
            std::iter::once(first).chain(together).map(|index| named(tree, index)).collect();
        let found = persons(evidence, texts.iter().map(String::as_str));
        if !found.is_empty() {
            let confidence = if first < window.until { 0.82 } else { 0.58 };
            return stated(found, Source::Microdata, confidence - doubt(evidence.kind));
        }
    }
    let mut best: Option<(usize, Vec<String>)> = None;
    for index in bylines(evidence) {
        let names = byline_names(&byline_text(tree, index));
        let names = persons(evidence, names.iter().map(String::as_str));
        let alike = names.iter().all(|name| is_fit(tree, index, name));
        if names.is_empty() || !alike {
            continue;
        }
        // An inner element of the same byline is the closer fit.
        if best.as_ref().is_none_or(|(at, _)| index < tree.items[*at].end) {
            best = Some((index, names));
        }
    }
    let (_, names) = best?;
    let alike = names.iter().all(|name| names::looks_like_names(name));
    let confidence = if alike { 0.7 } else { 0.56 };
    stated(names, Source::Byline, confidence - doubt(evidence.kind))
}

/// Parts of addresses of pages about an author.
const AUTHOR_PATHS: [&str; 6] =
    ["/author", "/contributor", "/writer", "/members/", "mode=viewprofile", "/people/"];

/// Elements near the heading whose class, relation or target is that of a byline.
fn bylines(evidence: &Evidence<'_, '_>) -> Vec<usize> {
    let Evidence { tree, window, .. } = *evidence;
    let mut found = Vec::new();
    for index in window.from..window.until.min(tree.items.len()) {
        let NodeKind::Element(element) = tree.items[index].kind else { continue };
        let link = element.name() == "a";
        let named = element.attrs().any(|(name, value)| match name {
            "class" | "id" => is_byline(value),
            "rel" => link && has_word(value, "author"),
            "href" => link && is_author_page(value),
            _ => false,
        });
        if named {
            found.push(index);
        }
        if found.len() >= BYLINES_MAX {
            break;
        }
    }
    found
}

/// Tells whether an address is that of a page about an author. The list of all is about none.
fn is_author_page(href: &str) -> bool {
    let page = href.trim_end_matches('/').rsplit('/').next().unwrap_or(href);
    href.len() < 300
        && AUTHOR_PATHS.iter().any(|path| href.contains(path))
        && (href.contains("viewprofile") || names::looks_like_slug(page))
}

/// Class names such as `byline`, `article__author-name`, `postAuthor`, `username`.
fn is_byline(value: &str) -> bool {
    let bytes = value.as_bytes();
    let pairs = bytes.windows(2).enumerate();
    bytes.len() < 300
        && pairs.into_iter().any(|(at, pair)| {
            let word: &[u8] = match (pair[0] | 0x20, pair[1] | 0x20) {
                (b'a', b'u') => b"author",
                (b'b', b'y') => b"byline",
                (b'w', b'r') => b"writer",
                (b'u', b's') => b"username",
                (b'r', b'e') => b"reporter",
                _ => return false,
            };
            bytes.get(at..at + word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word))
        })
}

/// The text of a byline; the links in it, if there are some, hold the names.
fn byline_text(tree: &Tree<'_>, index: usize) -> String {
    let inside = index + 1..tree.items[index].end;
    let links = inside.filter(|at| tree.items[*at].name() == "a");
    let texts = links.take(4).map(|at| tree.text_of(at, 80));
    let names: Vec<String> =
        texts.filter(|text| names::looks_like_names(text) && text.contains(' ')).collect();
    if names.is_empty() { tree.text_of(index, 160) } else { names.join(", ") }
}

/// One word is a name only where names of users stand, or in a link to an author.
fn is_fit(tree: &Tree<'_>, index: usize, name: &str) -> bool {
    let item = &tree.items[index];
    let class = item.attribute("class").unwrap_or_default();
    let user = class.contains("user") || item.name() == "a";
    name.split_whitespace().count() > 1 || user || name.chars().any(is_han)
}

/// The name in an element with `itemprop=author`: that of its own `name`, or its text.
fn named(tree: &Tree<'_>, index: usize) -> String {
    let item = &tree.items[index];
    if let Some(content) = item.attribute("content") {
        return content.to_owned();
    }
    let inside = index..item.end;
    let name = inside.clone().find(|at| tree.items[*at].attribute("itemprop") == Some("name"));
    match name {
        Some(name) => match tree.items[name].attribute("content") {
            Some(content) => content.to_owned(),
            None => tree.text_of(name, 120),
        },
        None => byline_text(tree, index),
    }
}

/// The names of a byline without the date and the roles that share its line.
fn byline_names(text: &str) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let by = [" written by ", " posted by ", " by "].iter();
    let by = by.filter_map(|word| lower.find(word).map(|at| at + word.len())).min();
    let text = names::after_by(text).unwrap_or_else(|| &text[by.unwrap_or(0)..]);
    let mut text = text;
    if let Some(date) = dates::find(text, DateOrder::Unknown, 1).first() {
        text = &text[..date.start];
    }
    let cut = [" | ", " · ", " • ", " — ", "Published", "Updated", "Posted", "Follow", "Last "];
    let end = cut.iter().filter_map(|mark| text.find(mark)).filter(|at| *at > 2).min();
    let text = text[..end.unwrap_or(text.len())].trim();
    if text.chars().count() > 80 { Vec::new() } else { vec![text.to_owned()] }
}

/// `By Jane Doe` in a text of its own, or in two.
fn visible(evidence: &Evidence<'_, '_>) -> Option<Authors> {
    let lines = &evidence.window.head;
    for (at, line) in lines.iter().enumerate() {
        if line.text.len() > 200 || line.distance < -6 {
            continue;
        }
        let names = if names::is_by(line.text) {
            following(lines, at)
        } else if let Some(rest) = names::after_by(line.text) {
            byline_names(rest)
        } else {
            continue;
        };
        let names = persons(evidence, names.iter().map(String::as_str));
        let alike = names.iter().all(|name| names::looks_like_names(name));
        if !names.is_empty() && (alike || line.text.ends_with(':')) {
            let far = 0.004 * line.distance.unsigned_abs() as f32;
            return stated(names, Source::Text, 0.74 - doubt(evidence.kind) - far);
        }
    }
    None
}

/// The names in the texts after a label: `By` `Jane Doe` `and` `John Roe`.
fn following(lines: &[VisibleText<'_>], label: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut joined = true;
    for line in lines.iter().skip(label + 1).take(7) {
        let text = line.text.trim_matches([',', ' ']);
        if matches!(text, "and" | "&" | "und" | "et" | "y" | "") || line.text == "," {
            joined = true;
            continue;
        }
        if !joined {
            break;
        }
        names.extend(byline_names(text));
        joined = line.text.ends_with(',');
    }
    names
}

/// Characters at the start and the end of the main text in which a Chinese byline may stand.
const START_CHARS: usize = 260;
const END_CHARS: usize = 300;

fn chinese(evidence: &Evidence<'_, '_>) -> Option<Authors> {
    let Evidence { window, main, .. } = *evidence;
    let han = |line: &&VisibleText<'_>| line.text.chars().take(40).any(is_han);
    if !evidence.chinese || !window.head.iter().chain(&window.tail).any(|line| han(&line)) {
        return None;
    }
    let mut found: Vec<(Byline, usize)> = Vec::new();
    let mut add = |bylines: Vec<Byline>, place: usize| {
        found.extend(bylines.into_iter().map(|byline| (byline, place)));
    };
    add(han_names::bylines(&joined(&window.head)), 0);
    let start = main.char_indices().nth(START_CHARS).map_or(main, |(at, _)| &main[..at]);
    add(han_names::bylines(start), 1);
    let end = main.char_indices().rev().nth(END_CHARS).map_or(main, |(at, _)| &main[at..]);
    for line in main.lines().rev().take(3) {
        add(han_names::signed(line).into_iter().collect(), 2);
        add(han_names::reported(line).into_iter().collect(), 2);
    }
    add(han_names::bylines(end), 2);
    let near = window.head.iter().filter(|line| line.distance > -3 && line.distance < 20);
    for line in near.chain(&window.tail) {
        add(han_names::reported(line.text).into_iter().collect(), 2);
        add(han_names::signed(line.text).into_iter().collect(), 3);
    }
    add(han_names::bylines(&joined(&window.tail)), 3);
    // By what the label says, then by the place.
    let best = found.into_iter().min_by_key(|(byline, place)| (byline.part, *place));
    let (byline, _) = best?;
    let confidence = match byline.part {
        Credit::Author | Credit::Reporter => 0.85,
        Credit::Signed | Credit::Compiler => 0.7,
        Credit::Editor => 0.65,
        Credit::Picture => 0.6,
    };
    let names = persons(evidence, byline.names.iter().map(String::as_str));
    stated(names, Source::Text, confidence)
}

fn joined(lines: &[VisibleText<'_>]) -> String {
    let mut out = String::new();
    for line in lines.iter().filter(|line| !line.linked || line.text.len() < 40) {
        out.push_str(&line.text[..line.text.floor_char_boundary(900)]);
        out.push('\n');
    }
    out
}
