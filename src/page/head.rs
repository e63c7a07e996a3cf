//! What a page says in its head to crawlers. What it says of itself is read by `metadata`.

use super::tags::Tag;
use super::tree::Tree;

/// Names of `<meta>` elements that tell how often a page was read.
const POPULARITY_NAMES: [&str; 4] = ["popularity", "views", "pageviews", "readcount"];

/// The facts of a head.
#[derive(Debug, Default)]
pub(super) struct HeadFacts {
    pub canonical: Option<String>,
    pub base: Option<String>,
    pub language: Option<String>,
    pub robots: Vec<(String, String)>,
    pub popularity: Option<u64>,
}

impl HeadFacts {
    pub(super) fn read(tree: &Tree<'_>) -> Self {
        let mut head = Self::default();
        for item in &tree.items {
            match item.tag {
                Tag::Html => head.language = item.attribute("lang").map(str::to_owned),
                Tag::Base if head.base.is_none() => {
                    head.base = item.attribute("href").map(str::to_owned);
                }
                Tag::Link => head.read_link(item),
                Tag::Meta => head.read_meta(item),
                _ => {}
            }
        }
        head
    }

    fn read_link(&mut self, item: &super::tree::TreeNode<'_>) {
        let rel = item.attribute("rel").unwrap_or_default();
        let is_canonical =
            rel.split_whitespace().any(|word| word.eq_ignore_ascii_case("canonical"));
        if is_canonical && self.canonical.is_none() {
            self.canonical = item.attribute("href").map(str::to_owned);
        }
    }

    fn read_meta(&mut self, item: &super::tree::TreeNode<'_>) {
        let Some(content) = item.attribute("content") else { return };
        let name = item.attribute("name").or_else(|| item.attribute("property"));
        let name = name.unwrap_or_default().trim().to_ascii_lowercase();
        let counts = || content.trim().replace([',', ' '], "").parse().ok();
        match name.as_str() {
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
