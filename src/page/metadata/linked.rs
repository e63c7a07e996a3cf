//! JSON-LD: the description of the page among all that it describes.
//!
//! Source: <https://schema.org/Article>, <https://schema.org/WebPage>, and how sites write them:
//! one object, a list, an `@graph` whose nodes refer to each other by `@id`, nested `mainEntity`.

use super::json::{self, Value};
use super::names;
use super::place::likeness;

/// Nodes of all blocks that are looked at.
const NODES_MAX: usize = 400;

/// What kind of thing a node describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ThingKind {
    /// Something that was written at a date by somebody.
    Article,
    /// The page, whatever is on it.
    Page,
    /// A recording, a course: its date is seldom that of the page.
    Work,
    /// Anything else.
    Other,
}

/// What the best node says.
#[derive(Debug, Default)]
pub(super) struct Linked {
    pub role: Option<ThingKind>,
    pub headline: Option<String>,
    pub authors: Vec<String>,
    /// All authors are persons by their type.
    pub persons: bool,
    pub published: Option<String>,
    pub modified: Option<String>,
    pub site: Option<String>,
    pub description: Option<String>,
    pub licence: Option<String>,
    pub keywords: Vec<String>,
    pub images: Vec<(String, Option<u32>, Option<u32>)>,
    /// A product or an offer is described.
    pub product: bool,
}

impl Linked {
    /// Reads the blocks. Of several articles the one is taken whose headline is most like `title`.
    pub(super) fn read(blocks: &[&str], title: &str) -> Self {
        let values: Vec<Value<'_>> = blocks.iter().map(|block| json::read(block)).collect();
        let mut nodes = Vec::new();
        for value in &values {
            collect(value, &mut nodes, 0);
        }
        let product = nodes.iter().any(|node| has_type(node, &["Product", "Offer"]));
        let mut linked = Self { product, ..Self::default() };
        let ranked = nodes.iter().map(|node| (role(node), *node));
        let best = ranked.filter(|(role, _)| *role < ThingKind::Other).min_by(|one, other| {
            let like = |node: &Value<'_>| likeness(headline(node).unwrap_or_default(), title);
            let order = one.0.cmp(&other.0);
            order.then_with(|| like(other.1).total_cmp(&like(one.1)))
        });
        if let Some((role, node)) = best {
            linked.role = Some(role);
            linked.fill(node, &nodes);
        }
        let page = nodes.iter().find(|node| self::role(node) == ThingKind::Page);
        if let Some(page) = page.filter(|_| linked.role != Some(ThingKind::Page)) {
            linked.fill_missing(page);
        }
        let site = nodes.iter().find(|node| has_type(node, &["WebSite"]));
        let site = site.and_then(|site| site.get("name")).and_then(Value::text);
        linked.site = site.map(names::plain).or(linked.site);
        linked
    }

    fn fill(&mut self, node: &Value<'_>, nodes: &[&Value<'_>]) {
        let text = |key: &str| node.get(key).and_then(Value::text).map(str::to_owned);
        self.headline = headline(node).map(names::plain);
        self.published = text("datePublished").or_else(|| text("dateCreated"));
        self.published = self.published.take().or_else(|| text("uploadDate"));
        self.modified = text("dateModified");
        self.description = text("description").map(|text| names::plain(&text));
        self.licence = text("license");
        self.persons = true;
        let by = ["author", "authors", "creator"].iter().find_map(|key| node.get(key));
        for author in by.map(Value::all).unwrap_or_default().iter().take(20) {
            if let Some((name, person)) = name_of(author, nodes) {
                self.persons &= person;
                self.authors.push(name);
            }
        }
        let publisher = node.get("publisher").and_then(|node| name_of(node, nodes));
        self.site = publisher.map(|(name, _)| name);
        for keyword in node.get("keywords").map(Value::all).unwrap_or_default() {
            self.keywords.extend(keyword.text().map(names::plain));
        }
        for image in node.get("image").map(Value::all).unwrap_or_default().iter().take(8) {
            let image = resolve(image, nodes);
            let number = |key| image.get(key).and_then(Value::text)?.parse().ok();
            let url = image.get("url").or_else(|| image.get("contentUrl")).and_then(Value::text);
            if let Some(url) = url.or_else(|| image.text()) {
                self.images.push((url.to_owned(), number("width"), number("height")));
            }
        }
    }

    /// What the node of the page knows and that of the article does not.
    fn fill_missing(&mut self, page: &Value<'_>) {
        let text = |key: &str| page.get(key).and_then(Value::text);
        self.description =
            self.description.take().or_else(|| text("description").map(names::plain));
        self.modified = self.modified.take().or_else(|| text("dateModified").map(str::to_owned));
        if self.role == Some(ThingKind::Work) {
            self.published = text("datePublished").map(str::to_owned).or(self.published.take());
        }
    }
}

fn headline<'v>(node: &'v Value<'_>) -> Option<&'v str> {
    node.get("headline").or_else(|| node.get("name")).and_then(Value::text)
}

fn collect<'v, 'a>(value: &'v Value<'a>, nodes: &mut Vec<&'v Value<'a>>, depth: usize) {
    if nodes.len() >= NODES_MAX || depth > 4 {
        return;
    }
    match value {
        Value::List(values) => values.iter().for_each(|value| collect(value, nodes, depth + 1)),
        Value::Object(_) => {
            nodes.push(value);
            for key in ["@graph", "mainEntity", "author"] {
                if let Some(inner) = value.get(key) {
                    collect(inner, nodes, depth + 1);
                }
            }
        }
        _ => {}
    }
}

fn has_type(node: &Value<'_>, types: &[&str]) -> bool {
    let own = node.get("@type").map(Value::all).unwrap_or_default();
    own.iter().filter_map(Value::text).any(|own| {
        let own = own.rsplit(['/', ':', '#']).next().unwrap_or(own);
        types.iter().any(|known| own.eq_ignore_ascii_case(known))
    })
}

fn role(node: &Value<'_>) -> ThingKind {
    let own = node.get("@type").map(Value::all).unwrap_or_default();
    let role = |own: &str| match own.rsplit(['/', ':', '#']).next().unwrap_or(own) {
        "BlogPosting"
        | "Report"
        | "LiveBlogPosting"
        | "DiscussionForumPosting"
        | "Recipe"
        | "SocialMediaPosting"
        | "Question"
        | "HowTo"
        | "CreativeWork"
        | "Posting" => ThingKind::Article,
        own if own.ends_with("Article") => ThingKind::Article,
        own if own.ends_with("Page") => ThingKind::Page,
        "VideoObject" | "PodcastEpisode" | "Review" | "MediaObject" | "AudioObject" => {
            ThingKind::Work
        }
        _ => ThingKind::Other,
    };
    own.iter().filter_map(Value::text).map(role).min().unwrap_or(ThingKind::Other)
}

/// A node that is only a reference stands for the node with that identifier.
fn resolve<'v, 'a>(node: &'v Value<'a>, nodes: &[&'v Value<'a>]) -> &'v Value<'a> {
    let Some(id) = node.get("@id").and_then(Value::text) else { return node };
    if node.get("name").is_some() || node.get("url").is_some() {
        return node;
    }
    let named = |other: &&&Value<'a>| {
        other.get("@id").and_then(Value::text) == Some(id)
            && (other.get("name").is_some() || other.get("url").is_some())
    };
    nodes.iter().find(named).copied().unwrap_or(node)
}

/// The name of a person or an organisation, and whether it is a person.
fn name_of(node: &Value<'_>, nodes: &[&Value<'_>]) -> Option<(String, bool)> {
    if let Value::Text(name) = node {
        return Some((names::plain(name), true));
    }
    let node = resolve(node, nodes);
    let person =
        !has_type(node, &["Organization", "NewsMediaOrganization", "Corporation", "Brand"]);
    if let Some(name) = node.get("name").and_then(Value::text) {
        return Some((names::plain(name), person));
    }
    let part = |key| node.get(key).and_then(Value::text);
    let full = format!("{} {}", part("givenName")?, part("familyName")?);
    Some((names::plain(&full), person))
}
