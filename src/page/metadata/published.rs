//! When a page was published and last changed: all that says so, weighed against each other.

use super::super::tree::{NodeKind, Tree};
use super::date_words::{MODIFIED_NAMES, PUBLISHED_NAMES, Says, in_words};
use super::dates::{self, DateOrder, FoundDate};
use super::linked::ThingKind;
use super::moment::Moment;
use super::window::{VisibleText, Window};
use super::{Evidence, PageType, Source, Stated};

/// Least confidence of a date that is told.
const CONFIDENCE_MIN: f32 = 0.5;

/// A date that may be that of the page.
#[derive(Debug, Clone, Copy)]
struct DateCandidate {
    moment: Moment,
    other: Option<Moment>,
    source: Source,
    confidence: f32,
}

/// The dates of a page.
#[derive(Debug, Default)]
pub(super) struct Dates {
    pub published: Option<Stated<Moment>>,
    pub modified: Option<Stated<Moment>>,
}

pub(super) fn dates(evidence: &Evidence<'_, '_>) -> Dates {
    let head = evidence.window.head.iter();
    let shown = head.map(|line| readable(line.text, evidence.order)).collect();
    let mut all = Collected { evidence, shown, published: Vec::new(), modified: Vec::new() };
    all.linked();
    all.metas();
    all.address();
    all.marked();
    all.visible();
    let published = best(&all.published, evidence.latest);
    let mut modified = best(&all.modified, evidence.latest);
    if let (Some(first), Some(last)) = (&published, &modified)
        && last.value.date < first.value.date
    {
        modified = None;
    }
    Dates { published, modified }
}

struct Collected<'c, 'e, 'a> {
    evidence: &'c Evidence<'e, 'a>,
    /// The dates in each text around the heading.
    shown: Vec<Vec<FoundDate>>,
    published: Vec<DateCandidate>,
    modified: Vec<DateCandidate>,
}

impl Collected<'_, '_, '_> {
    fn add(&mut self, says: Says, found: Option<FoundDate>, source: Source, confidence: f32) {
        let Some(FoundDate { moment, other, .. }) = found else { return };
        let candidate = DateCandidate { moment, other, source, confidence };
        match says {
            Says::Published | Says::Bare => self.published.push(candidate),
            Says::Modified => self.modified.push(candidate),
            Says::Other => {}
        }
    }

    fn linked(&mut self) {
        let linked = self.evidence.linked;
        let confidence = match linked.role {
            Some(ThingKind::Article) => 0.95,
            Some(ThingKind::Page) if self.evidence.kind == PageType::Article => 0.62,
            Some(ThingKind::Page) => 0.42,
            _ => 0.4,
        };
        let read = |text: &Option<String>| dates::value(text.as_deref()?, DateOrder::Unknown);
        self.add(Says::Published, read(&linked.published), Source::JsonLd, confidence);
        self.add(Says::Modified, read(&linked.modified), Source::JsonLd, 0.9);
    }

    fn metas(&mut self) {
        for (says, names) in
            [(Says::Published, &PUBLISHED_NAMES[..]), (Says::Modified, &MODIFIED_NAMES[..])]
        {
            for (name, confidence) in names {
                let Some(content) = self.evidence.seen.meta_of(&[name]) else { continue };
                let found = dates::value(content, self.evidence.order);
                self.add(says, found, Source::Meta, *confidence);
                // One after another in the order of trust: the first that can be read counts.
                if found.is_some() {
                    break;
                }
            }
        }
    }

    fn address(&mut self) {
        let path = self.evidence.path;
        self.add(Says::Published, in_address(path), Source::Url, 0.78);
    }

    /// Elements with a machine-readable date.
    fn marked(&mut self) {
        let Evidence { tree, seen, window, .. } = *self.evidence;
        for (index, prop) in &seen.props {
            let says = match *prop {
                "datePublished" | "dateCreated" => Says::Published,
                "dateModified" => Says::Modified,
                _ => continue,
            };
            let near = (window.from..window.until).contains(index);
            let confidence = if near || tree.items[*index].name() == "meta" { 0.88 } else { 0.6 };
            let found = marked_value(tree, *index, self.evidence.order);
            let seen_before = match says {
                Says::Published => &self.published,
                _ => &self.modified,
            };
            if seen_before.iter().all(|other| other.source != Source::Microdata) {
                self.add(says, found, Source::Microdata, confidence);
            }
        }
        let near = |index: &&usize| (window.from..window.until).contains(*index);
        let (_, less) = self.doubt(self.evidence.kind);
        for (number, index) in seen.times.iter().filter(near).take(6).enumerate() {
            let item = &tree.items[*index];
            let class = item.attribute("class").unwrap_or_default().to_ascii_lowercase();
            let says = match label(tree, window, *index) {
                Says::Bare if class.contains("publi") || class.contains("pubdate") => {
                    Says::Published
                }
                Says::Bare if class.contains("updated") || class.contains("modif") => {
                    Says::Modified
                }
                says => says,
            };
            let base = if says == Says::Bare { 0.78 } else { 0.88 };
            let confidence = base - 0.08 * number as f32 - less;
            self.add(
                says,
                marked_value(tree, *index, self.evidence.order),
                Source::Time,
                confidence,
            );
        }
    }

    fn visible(&mut self) {
        let Evidence { window, order, kind, .. } = *self.evidence;
        let (near, less) = self.doubt(kind);
        let mut before = "";
        let mut bare = 0;
        let shown = std::mem::take(&mut self.shown);
        for (line, dates) in window.head.iter().zip(shown) {
            for found in dates {
                let says = says(line.text, before, &found);
                let mut confidence = match says {
                    Says::Published | Says::Modified => 0.84,
                    _ => 0.74 - 0.06 * bare as f32,
                };
                bare += usize::from(says == Says::Bare);
                confidence -= penalty(line, &found);
                confidence -= if (0..7).contains(&line.distance) { near } else { less };
                self.add(says, Some(found), Source::Text, confidence);
            }
            before = line.text;
        }
        before = "";
        for line in &window.tail {
            for found in readable(line.text, order) {
                let says = says(line.text, before, &found);
                let confidence = if says == Says::Bare { 0.55 } else { 0.7 };
                let confidence = confidence - penalty(line, &found) - less;
                self.add(says, Some(found), Source::Text, confidence);
            }
            before = line.text;
        }
    }

    /// How much less a visible date is believed: on a list of many things each has its own, but
    /// for one that stands right beside the heading.
    fn doubt(&self, kind: PageType) -> (f32, f32) {
        let window = self.evidence.window;
        let mut days = Vec::new();
        for (line, dates) in window.head.iter().zip(&self.shown) {
            if let Some(found) = dates.first()
                && !days.contains(&found.moment.date)
                && line.text.len() < 60
            {
                days.push(found.moment.date);
            }
        }
        let listed: f32 = if days.len() >= 4 { 0.15 } else { 0.0 };
        match kind {
            PageType::Article => (0.0, 0.0),
            PageType::Unknown => (0.08, 0.08 + listed),
            PageType::Undated => (0.2, 0.2 + listed),
        }
    }
}

/// Dates in a visible text, of which prose has none to tell.
fn readable(text: &str, order: DateOrder) -> Vec<FoundDate> {
    if text.len() > 600 { Vec::new() } else { dates::find(text, order, 2) }
}

/// How much less a date is believed for where it stands.
fn penalty(line: &VisibleText<'_>, found: &FoundDate) -> f32 {
    let beside = line.text.len() - (found.end - found.start);
    let prose: f32 = match beside {
        0..=40 => 0.0,
        41..=90 => 0.04,
        91..=160 => 0.25,
        _ => 0.4,
    };
    let far = match line.distance {
        far if far < 0 => 0.06 - 0.01 * far as f32,
        far => 0.006 * far as f32,
    };
    // A date that is all of a link leads to the post that has it; others are in headlines.
    let linked = match line.linked {
        true if beside < 4 => 0.05,
        true => 0.2,
        false => 0.0,
    };
    prose + far.min(0.3) + linked
}

/// What the words beside a date say of it.
fn says(text: &str, before: &str, found: &FoundDate) -> Says {
    let own = text[..found.start].trim();
    // A label may stand in a text of its own.
    let label = if own.is_empty() && before.len() < 60 { before } else { own };
    if label.is_empty() && found.end == text.len() {
        return Says::Bare;
    }
    let tail = label.char_indices().rev().nth(39).map_or(label, |(at, _)| &label[at..]);
    match in_words(tail) {
        Says::Bare => {
            let after = &text[found.end..];
            let after = after.char_indices().nth(24).map_or(after, |(at, _)| &after[..at]);
            match in_words(after) {
                // `2024-03-05 更新`, but not `2024-03-05 | Updated: 2024-03-06`.
                Says::Modified if after.contains([':', '：', '|']) => Says::Bare,
                says => says,
            }
        }
        says => says,
    }
}

/// What the text before a `<time>` says of it.
fn label(tree: &Tree<'_>, window: &Window<'_>, index: usize) -> Says {
    let before = window.head.iter().rev().find(|line| line.index < index);
    let text = before.map_or("", |line| line.text);
    // The label belongs to the date if they stand in one element, or close to it.
    let close = before.is_some_and(|line| {
        tree.items[tree.items[line.index].parent].end > index || index - line.index < 6
    });
    if !close || text.len() > 60 {
        return Says::Bare;
    }
    in_words(text)
}

fn marked_value(tree: &Tree<'_>, index: usize, order: DateOrder) -> Option<FoundDate> {
    let item = &tree.items[index];
    let attribute = ["datetime", "content", "title"].iter().find_map(|name| {
        dates::value(item.attribute(name).filter(|value| value.len() < 100)?, DateOrder::Unknown)
    });
    attribute.or_else(|| match item.kind {
        NodeKind::Element(_) => dates::value(&tree.text_of(index, 60), order),
        NodeKind::Text(_) => None,
    })
}

/// `/2024/03/05/`, `/2024-03-05/`, `/20240305/`, `/2024-03/05/`, `/202403/05/`, `t20240305_1.htm`.
fn in_address(path: &str) -> Option<FoundDate> {
    let bytes = path.as_bytes();
    let starts = (0..bytes.len())
        .filter(|at| bytes[*at].is_ascii_digit() && (*at == 0 || !bytes[at - 1].is_ascii_digit()));
    starts.take(40).find_map(|start| {
        let rest = &bytes[start..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = |range: std::ops::Range<usize>| -> Option<i32> {
            std::str::from_utf8(rest.get(range)?).ok()?.parse().ok()
        };
        let mark = |at: usize| matches!(rest.get(at), Some(b'/' | b'-' | b'_' | b'.'));
        let ends = |at: usize| !rest.get(at).is_some_and(u8::is_ascii_digit);
        let year = number(0..4).filter(|_| matches!(digits, 4 | 6 | 8))?;
        let (month, day) = match digits {
            8 => (number(4..6)?, number(6..8)?),
            6 if mark(6) && ends(9) => (number(4..6)?, number(7..9)?),
            4 if mark(4) && mark(7) && ends(10) => (number(5..7)?, number(8..10)?),
            4 if mark(4) && rest.get(4) == rest.get(6) && ends(8) => (number(5..6)?, number(7..8)?),
            4 if mark(4) && mark(6) => (number(5..6)?, number(7..9).filter(|_| ends(9))?),
            4 if mark(4) && rest.get(4) == rest.get(7) && ends(9) => (number(5..7)?, number(8..9)?),
            4 if mark(4) && ends(9) => (number(5..7)?, number(7..9)?),
            _ => return None,
        };
        let moment = Moment::day(year, month, day)?;
        Some(FoundDate { moment, other: None, start, end: start })
    })
}

/// The date on which most confidence comes together.
fn best(all: &[DateCandidate], latest: Option<jiff::civil::Date>) -> Option<Stated<Moment>> {
    let possible = |moment: &Moment| latest.is_none_or(|latest| moment.date <= latest);
    let mut all: Vec<DateCandidate> = all.to_vec();
    // What can be read in two ways is read as something else on the page confirms it.
    let certain: Vec<_> = all.iter().filter(|c| c.other.is_none()).map(|c| c.moment.date).collect();
    for candidate in &mut all {
        let Some(other) = candidate.other else { continue };
        if certain.contains(&other.date) {
            candidate.moment = other;
        } else if !certain.contains(&candidate.moment.date) {
            candidate.confidence = 0.0;
        }
    }
    all.retain(|candidate| possible(&candidate.moment) && candidate.confidence > 0.0);
    let together = |date| {
        let mut doubt = 1.0;
        let mut sources = Vec::new();
        for candidate in all.iter().filter(|candidate| candidate.moment.date == date) {
            if !sources.contains(&candidate.source) {
                doubt *= 1.0 - candidate.confidence;
                sources.push(candidate.source);
            }
        }
        1.0 - doubt
    };
    let ranked = all.iter().map(|candidate| (together(candidate.moment.date), candidate));
    // Of equals the first one, which stands in the order of trust.
    let mut best: Option<(f32, &DateCandidate)> = None;
    for (confidence, candidate) in ranked {
        if best.is_none_or(|(most, _)| confidence > most + 1e-6) {
            best = Some((confidence, candidate));
        }
    }
    let (confidence, first) = best.filter(|(confidence, _)| *confidence >= CONFIDENCE_MIN)?;
    let same = all.iter().filter(|other| other.moment.date == first.moment.date);
    // The most precise of those that agree on the day.
    let precise = |c: &&DateCandidate| (c.moment.offset.is_some(), c.moment.time.is_some());
    let value = same.rev().max_by_key(precise).map_or(first.moment, |candidate| candidate.moment);
    Some(Stated { value, source: first.source, confidence })
}
