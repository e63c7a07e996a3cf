//! What a page says of itself: title, authors, dates, site, description, licence, images.
//!
//! Machine-readable statements (JSON-LD, `<meta>`, microdata) and what a reader sees around the
//! heading are weighed against each other. Each fact has its source and a confidence; what is not
//! more likely right than wrong is not told. Visible texts are looked at only near the heading
//! and at the end of the main text.

mod around;
mod authors;
mod date_words;
mod dates;
mod han_names;
mod json;
mod linked;
mod moment;
mod months;
mod names;
mod place;
mod published;
mod seen;
mod title;
mod window;

use jiff::ToSpan as _;
use serde::Serialize;
use url::Url;

use super::links::Base;
use super::tree::Tree;
use crate::base::clock::Timestamp;
use dates::DateOrder;
use linked::{Linked, ThingKind};
use place::Landmarks;
use seen::RawMetadata;
use window::Window;

pub use moment::Moment;

/// Where a fact was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// JSON-LD.
    JsonLd,
    /// A `<meta>` element: `OpenGraph`, Dublin Core, Highwire Press and their kind.
    Meta,
    /// An element with `itemprop`.
    Microdata,
    /// A `<time>` element.
    Time,
    /// An element whose class or relation calls it a byline.
    Byline,
    /// A visible text.
    Text,
    /// The heading of the page.
    Heading,
    /// The `<title>` element.
    TitleTag,
    /// The address of the page.
    Url,
}

/// A fact with its source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stated<T> {
    /// The fact.
    pub value: T,
    /// Where it was found; of several that agree, the most trusted one.
    pub source: Source,
    /// How sure it is, 0 to 1.
    pub confidence: f32,
}

/// The same page in another language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternate {
    /// Language (BCP 47), or `x-default`.
    pub language: String,
    /// Its address.
    pub url: String,
}

/// An image of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Its address.
    pub url: String,
    /// Text for those who do not see it.
    pub alt: Option<String>,
    /// Width in pixels, if it is given.
    pub width: Option<u32>,
    /// Height in pixels, if it is given.
    pub height: Option<u32>,
}

/// What a page says of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    /// Title, without the name of the site where that can be told.
    pub title: Option<Stated<String>>,
    /// Authors; the reporter rather than the editor, the editor rather than nobody.
    pub authors: Option<Stated<Vec<String>>>,
    /// When it was published.
    pub published: Option<Stated<Moment>>,
    /// When it was last changed; never before it was published.
    pub modified: Option<Stated<Moment>>,
    /// Name of the site.
    pub site: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Address of the licence.
    pub licence: Option<String>,
    /// Keywords.
    pub keywords: Vec<String>,
    /// The same page in other languages.
    pub alternates: Vec<Alternate>,
    /// Images: the main one first, then those of the text.
    pub images: Vec<Image>,
}

impl Metadata {
    /// Returns the date of the page: when it was published or, where only that is shown, when it
    /// was last changed. A change that only the head tells of is no date of the page.
    #[must_use]
    pub fn date(&self) -> Option<&Stated<Moment>> {
        let shown = |stated: &&Stated<Moment>| {
            matches!(stated.source, Source::Text | Source::Time) && stated.confidence >= 0.7
        };
        self.published.as_ref().or_else(|| self.modified.as_ref().filter(shown))
    }

    /// Returns the authors in one line; empty without any.
    #[must_use]
    pub fn byline(&self) -> String {
        self.authors.as_ref().map(|authors| authors.value.join(", ")).unwrap_or_default()
    }
}

/// What is known of a page before its metadata are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageContext<'a> {
    /// Its address.
    pub url: Option<&'a Url>,
    /// What its links are relative to.
    pub base: &'a Base,
    /// Its main text.
    pub main: &'a str,
    /// Its language.
    pub language: Option<&'a str>,
    /// The language that it declares.
    pub declared: Option<&'a str>,
    /// When it was fetched: nothing on it is more than a day younger.
    pub fetched: Option<Timestamp>,
}

/// Everything that is known when authors and dates are weighed.
#[derive(Debug, Clone, Copy)]
struct Evidence<'e, 'a> {
    tree: &'e Tree<'a>,
    seen: &'e RawMetadata<'a>,
    linked: &'e Linked,
    window: &'e Window<'a>,
    /// The main text.
    main: &'e str,
    /// Path of the address.
    path: &'e str,
    /// Names of the site, which write nothing.
    site: &'e [&'e str],
    kind: PageType,
    /// Names may be written as Chinese ones are.
    chinese: bool,
    /// How dates in figures alone are read.
    order: DateOrder,
    /// The latest day that a page can have.
    latest: Option<jiff::civil::Date>,
}

/// Reads the metadata of a page.
pub(super) fn read(tree: &Tree<'_>, known: &PageContext<'_>) -> Metadata {
    if tree.items.is_empty() {
        return Metadata::default();
    }
    let seen = RawMetadata::read(tree);
    let tag = names::plain(&seen.title);
    let linked = Linked::read(&seen.ld, &tag);
    let og = seen.meta_of(&title::META_TITLES).map(names::plain).unwrap_or_default();
    let headline = linked.headline.clone().unwrap_or_default();
    let titles = [og.as_str(), headline.as_str(), tag.as_str()];
    let titles: Vec<&str> = titles.into_iter().filter(|title| !title.is_empty()).collect();
    let place = Landmarks::find(tree, &seen, &titles, known.main);
    let window = Window::new(tree, &seen, &place);
    let site = around::site(&seen, &linked);
    let host = known.url.and_then(Url::host_str).map(label_of).unwrap_or_default();
    let sites: Vec<&str> = site.as_deref().into_iter().chain([host]).collect();
    let sites: Vec<&str> = sites.into_iter().filter(|name| !name.is_empty()).collect();
    let path = known.url.map_or("", Url::path);
    let kind = kind(&seen, &linked, path);
    let evidence = Evidence {
        tree,
        seen: &seen,
        linked: &linked,
        window: &window,
        main: known.main,
        path,
        site: &sites,
        kind,
        chinese: matches!(known.language, Some("zh" | "ja") | None),
        order: order(known),
        latest: known.fetched.and_then(day_after),
    };
    let dates = published::dates(&evidence);
    let authors = authors::authors(&evidence);
    Metadata {
        title: title::title(tree, &seen, &linked, &place, &sites),
        authors,
        published: dates.published,
        modified: dates.modified,
        description: around::description(&seen, &linked),
        licence: around::licence(tree, &seen, &linked, known.base),
        keywords: around::keywords(&seen, &linked),
        alternates: around::alternates(tree, &seen, known.base),
        images: around::images(tree, &seen, &linked, &window, known.base),
        site,
    }
}

/// The label of a host that names its owner: `example` of `www.example.co.uk`.
fn label_of(host: &str) -> &str {
    let domain = psl::domain_str(host).unwrap_or(host);
    domain.split('.').next().unwrap_or(domain)
}

/// How much a page looks like one that was written at a date by somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PageType {
    /// A product.
    Undated,
    /// Nothing tells.
    Unknown,
    /// An article or a thread.
    Article,
}

/// Words in the path of articles and threads.
const ARTICLE_PATHS: [&str; 22] = [
    "blog",
    "news",
    "article",
    "post",
    "story",
    "stories",
    "thread",
    "topic",
    "forum",
    "archives",
    "insights",
    "journal",
    "magazine",
    "questions",
    "review",
    "press",
    "column",
    "20",
    "content_",
    "detail",
    "discussion",
    "xinwen",
];

fn kind(seen: &RawMetadata<'_>, linked: &Linked, path: &str) -> PageType {
    let og = seen.meta_of(&["og:type"]).unwrap_or_default();
    if linked.product || og.contains("product") {
        return PageType::Undated;
    }
    if linked.role == Some(ThingKind::Article)
        || seen.meta_of(&["article:published_time"]).is_some()
    {
        return PageType::Article;
    }
    // The last part of the path is the page; a page of which it is a mere word is a section.
    let (folder, page) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
    let named = |text: &str| ARTICLE_PATHS.iter().any(|word| text.contains(word));
    let long = page.len() > 12 || page.bytes().any(|byte| byte.is_ascii_digit());
    match path.len() {
        0 | 1 => PageType::Unknown,
        _ if named(folder) && long || page.len() > 6 && named(page) && long => PageType::Article,
        _ => PageType::Unknown,
    }
}

/// Which part of `03/04/2012` is the day: by the region that the page declares, by the domain,
/// and by the language. English without a region is left open.
fn order(known: &PageContext<'_>) -> DateOrder {
    let region = known.declared.and_then(|tag| tag.split(['-', '_']).nth(1)).unwrap_or_default();
    let host = known.url.and_then(Url::host_str).unwrap_or_default();
    let tld = host.rsplit('.').next().unwrap_or_default();
    if region.eq_ignore_ascii_case("us") || matches!(tld, "us" | "gov" | "mil" | "edu") {
        return DateOrder::MonthFirst;
    }
    let day_first = ["gb", "uk", "au", "nz", "ie", "in", "za"];
    if day_first.iter().any(|code| region.eq_ignore_ascii_case(code) || tld == *code) {
        return DateOrder::DayFirst;
    }
    match known.language {
        Some("en") | None => DateOrder::Unknown,
        Some(_) => DateOrder::DayFirst,
    }
}

fn day_after(fetched: Timestamp) -> Option<jiff::civil::Date> {
    let time = jiff::Timestamp::from_millisecond(fetched.0).ok()?;
    let date = time.to_zoned(jiff::tz::TimeZone::UTC).date();
    date.checked_add(1.day()).ok()
}
