//! The smaller facts: site, description, licence, keywords, other languages, images.

use super::super::links::Base;
use super::super::tree::Tree;
use super::linked::Linked;
use super::names::plain;
use super::seen::{RawMetadata, has_word};
use super::window::Window;
use super::{Alternate, Image};

/// Images, alternates and keywords that are kept.
const IMAGES_MAX: usize = 20;
const ALTERNATES_MAX: usize = 100;
const KEYWORDS_MAX: usize = 50;
/// Characters of a description that are kept.
const DESCRIPTION_CHARS_MAX: usize = 1_000;
/// Sides below which an image is an ornament.
const SIDE_MIN: u32 = 40;

pub(super) fn site(seen: &RawMetadata<'_>, linked: &Linked) -> Option<String> {
    let told = seen.meta_of(&["og:site_name", "application-name", "apple-mobile-web-app-title"]);
    let told = told.map(plain).or_else(|| linked.site.clone());
    told.filter(|name| !name.is_empty() && name.chars().count() <= 120)
}

pub(super) fn description(seen: &RawMetadata<'_>, linked: &Linked) -> Option<String> {
    let names = ["description", "og:description", "twitter:description", "dc.description"];
    let told = seen.meta_of(&names).map(plain).or_else(|| linked.description.clone());
    let cut = |text: String| text.chars().take(DESCRIPTION_CHARS_MAX).collect::<String>();
    told.map(cut).filter(|text| !text.is_empty())
}

pub(super) fn licence(
    tree: &Tree<'_>,
    seen: &RawMetadata<'_>,
    linked: &Linked,
    base: &Base,
) -> Option<String> {
    let in_head = seen.links.iter().map(|index| &tree.items[*index]);
    let mut in_head =
        in_head.filter(|item| has_word(item.attribute("rel").unwrap_or_default(), "license"));
    let href = in_head.find_map(|item| item.attribute("href"));
    let href = href.or_else(|| linked.licence.as_deref().filter(|text| text.contains("://")));
    let href = href.or_else(|| seen.licences.first().copied());
    let href = href.or_else(|| seen.meta_of(&["dcterms.license", "dc.rights.license"]));
    base.join(href?)
}

pub(super) fn keywords(seen: &RawMetadata<'_>, linked: &Linked) -> Vec<String> {
    let listed = seen.meta_of(&["keywords", "news_keywords", "parsely-tags"]).unwrap_or_default();
    let listed = listed.split([',', '，', ';', '、']).map(plain);
    let tags = seen.all_meta("article:tag").map(plain);
    let own = linked.keywords.iter().flat_map(|text| text.split(',')).map(plain);
    let mut keywords: Vec<String> = Vec::new();
    for word in listed.chain(tags).chain(own) {
        let fits = !word.is_empty() && word.chars().count() <= 80;
        if fits && keywords.len() < KEYWORDS_MAX && !keywords.contains(&word) {
            keywords.push(word);
        }
    }
    keywords
}

pub(super) fn alternates(tree: &Tree<'_>, seen: &RawMetadata<'_>, base: &Base) -> Vec<Alternate> {
    let links = seen.links.iter().map(|index| &tree.items[*index]);
    let found = links.filter_map(|item| {
        let language = item.attribute("hreflang")?.trim();
        has_word(item.attribute("rel")?, "alternate").then_some(())?;
        let fits = (2..=35).contains(&language.len())
            && language.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let url = base.join(item.attribute("href")?)?;
        fits.then(|| Alternate { language: language.to_owned(), url })
    });
    found.take(ALTERNATES_MAX).collect()
}

/// The main image, then those of the text, each once.
pub(super) fn images(
    tree: &Tree<'_>,
    seen: &RawMetadata<'_>,
    linked: &Linked,
    window: &Window<'_>,
    base: &Base,
) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    let mut add = |image: Option<Image>| {
        let Some(image) = image.filter(|_| images.len() < IMAGES_MAX) else { return };
        match images.iter_mut().find(|known| known.url == image.url) {
            Some(known) => {
                known.alt = known.alt.take().or(image.alt);
                known.width = known.width.or(image.width);
                known.height = known.height.or(image.height);
            }
            None => images.push(image),
        }
    };
    let number = |name: &str| seen.meta_of(&[name])?.parse().ok();
    let main = seen.meta_of(&["og:image:secure_url", "og:image", "og:image:url"]);
    add(main.and_then(|href| {
        let alt = seen.meta_of(&["og:image:alt"]).map(plain);
        let (width, height) = (number("og:image:width"), number("og:image:height"));
        Some(Image { url: base.join(href)?, alt, width, height })
    }));
    if main.is_none() {
        let other = seen.meta_of(&["twitter:image", "twitter:image:src"]);
        add(other.and_then(|href| image_of(base, href)));
    }
    for (href, width, height) in &linked.images {
        let image = image_of(base, href);
        add(image.map(|image| Image { width: *width, height: *height, ..image }));
    }
    let end = window.tail.last().map_or(window.until, |line| line.index);
    let inside = seen.images.iter().filter(|index| (window.from..end).contains(*index));
    for index in inside {
        let item = &tree.items[*index];
        let side = |name| item.attribute(name)?.trim().trim_end_matches("px").parse::<u32>().ok();
        let (width, height) = (side("width"), side("height"));
        if [width, height].into_iter().flatten().any(|side| side < SIDE_MIN) {
            continue;
        }
        // Images that are loaded late have their address beside `src`.
        let lazy = ["data-src", "data-original", "data-lazy-src", "src"];
        let href = lazy.iter().find_map(|name| item.attribute(name));
        let image = href.and_then(|href| image_of(base, href));
        let alt = item.attribute("alt").map(plain).filter(|alt| !alt.is_empty());
        add(image.map(|image| Image { alt, width, height, ..image }));
    }
    images
}

fn image_of(base: &Base, href: &str) -> Option<Image> {
    let url = base.join(href)?;
    Some(Image { url, alt: None, width: None, height: None })
}
