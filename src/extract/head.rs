//! What a page says of itself in its head, and its title.

use super::tree::{Kind, Tree};

/// Characters of a title that are kept.
const TITLE_CHARS_MAX: usize = 500;

/// What stands between the title of a page and the name of its site.
const SEPARATORS: [&str; 10] = [" | ", " - ", " – ", " — ", " _ ", " :: ", " · ", " » ", "_", "｜"];

/// Names of `<meta>` elements that tell how often a page was read.
const POPULARITY_NAMES: [&str; 4] = ["popularity", "views", "pageviews", "readcount"];

/// The facts of a head.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub titles: Titles,
    pub canonical: Option<String>,
    pub base: Option<String>,
    pub language: Option<String>,
    pub robots: Vec<(String, String)>,
    pub popularity: Option<u64>,
}

/// The titles of a page.
#[derive(Debug, Default)]
pub(super) struct Titles {
    pub title: String,
    pub og: String,
    pub h1: Vec<usize>,
}

impl Head {
    pub(super) fn read(tree: &Tree<'_>) -> Self {
        let mut head = Self::default();
        for (index, item) in tree.items.iter().enumerate() {
            match item.name() {
                "title" if head.titles.title.is_empty() && !is_in_svg(tree, index) => {
                    head.titles.title = tree.text_of(index, TITLE_CHARS_MAX);
                }
                "h1" => head.titles.h1.push(index),
                "html" => head.language = item.attribute("lang").map(str::to_owned),
                "base" if head.base.is_none() => {
                    head.base = item.attribute("href").map(str::to_owned);
                }
                "link" => head.read_link(item),
                "meta" => head.read_meta(item),
                _ => {}
            }
        }
        head
    }

    fn read_link(&mut self, item: &super::tree::Item<'_>) {
        let rel = item.attribute("rel").unwrap_or_default();
        let is_canonical =
            rel.split_whitespace().any(|word| word.eq_ignore_ascii_case("canonical"));
        if is_canonical && self.canonical.is_none() {
            self.canonical = item.attribute("href").map(str::to_owned);
        }
    }

    fn read_meta(&mut self, item: &super::tree::Item<'_>) {
        let Some(content) = item.attribute("content") else { return };
        let name = item.attribute("name").or_else(|| item.attribute("property"));
        let name = name.unwrap_or_default().trim().to_ascii_lowercase();
        let counts = || content.trim().replace([',', ' '], "").parse().ok();
        match name.as_str() {
            "og:title" => self.titles.og = collapse(content),
            name if POPULARITY_NAMES.contains(&name) => {
                self.popularity = self.popularity.or_else(counts);
            }
            "tdm-reservation" => self.robots.push((name, content.to_owned())),
            // Any other name may be that of a crawler; whoever asks knows its own.
            name if is_robots_content(content) => {
                self.robots.push((name.to_owned(), content.to_owned()));
            }
            _ => {}
        }
        let property = item.attribute("itemprop").unwrap_or_default();
        if property.eq_ignore_ascii_case("userInteractionCount") {
            self.popularity = self.popularity.or_else(counts);
        }
    }

    /// Returns the title of the page: the heading if the head agrees with it, else the head's
    /// title without the name of the site.
    pub(super) fn best_title(&self, tree: &Tree<'_>) -> String {
        let title = &self.titles.title;
        let headings = self.titles.h1.iter().map(|index| tree.text_of(*index, TITLE_CHARS_MAX));
        let headings: Vec<String> = headings.filter(|text| !text.is_empty()).collect();
        let agreed = headings.iter().find(|heading| {
            title.contains(heading.as_str()) || self.titles.og.contains(heading.as_str())
        });
        if let Some(heading) = agreed.filter(|heading| heading.chars().count() > 3) {
            return heading.clone();
        }
        if !self.titles.og.is_empty() {
            return self.titles.og.clone();
        }
        if title.is_empty() {
            return headings.into_iter().next().unwrap_or_default();
        }
        let longest = SEPARATORS.iter().filter(|separator| title.contains(**separator)).find_map(
            |separator| {
                let parts = title.split(separator).map(str::trim);
                parts.max_by_key(|part| part.chars().count())
            },
        );
        // A short remainder is more likely half a title than a title.
        let whole = title.as_str();
        longest
            .filter(|part| part.chars().count() * 2 > whole.chars().count())
            .map_or_else(|| whole.to_owned(), str::to_owned)
    }
}

fn is_in_svg(tree: &Tree<'_>, index: usize) -> bool {
    tree.items[tree.items[index].parent].name() == "svg"
}

fn is_robots_content(content: &str) -> bool {
    let known = [
        "noindex",
        "nofollow",
        "none",
        "index",
        "follow",
        "all",
        "noarchive",
        "nocache",
        "noai",
        "nosnippet",
        "unavailable_after",
    ];
    content
        .split([',', ' ', ':'])
        .any(|word| known.iter().any(|directive| word.trim().eq_ignore_ascii_case(directive)))
}

/// Collapses white space.
pub(super) fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS_MAX).collect()
}

/// Returns the text of an element that has nothing but text.
pub(super) fn only_text<'a>(tree: &Tree<'a>, index: usize) -> Option<&'a str> {
    match tree.items.get(index + 1)?.kind {
        Kind::Text(text) if tree.items[index].end == index + 2 => Some(text),
        _ => None,
    }
}
