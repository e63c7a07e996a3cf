//! Where a text stands, and what tells the pages of one site apart.

use xxhash_rust::xxh3::xxh3_64;

use crate::text::sketch::ShownSketch;
use crate::text::{Tokens, normalize};
use crate::urls::{without_edition, without_folder_numbers};

use super::input::authority_of;

/// What is known of the page that carries a text. Numbers are hashes; 0 is not known, or none. But
/// for the site they are only compared within one site, so that 32 bits are enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its site: scheme left out, host with port.
    pub site: u64,
    /// Its URL without what names an edition ([`without_edition`]).
    pub edition: u32,
    /// The same without the numbers in names of folders: `rt4` and `rt5`, `2012` and `2020` may be
    /// editions, too.
    pub form: u32,
    /// Its URL.
    pub address: u32,
    /// Its title.
    pub name: u32,
    /// Its title, if that has two words: one names a kind of page.
    pub title: u32,
    /// Its title without the number of a chapter before it, if that has two words.
    pub heading: u32,
    /// The URL that it names as canonical.
    pub declared: u32,
    /// Everything that it shows.
    pub shown: Option<ShownSketch>,
    /// The text is likely not what the page is about.
    pub doubtful: bool,
    /// How good the text is likely to be, in thousandths; none if nobody knows.
    pub quality: Option<u16>,
}

impl Standing {
    /// Notes URL and title of a page, and the URL that it names as canonical; each may be
    /// empty.
    #[must_use]
    pub fn of(address: &str, title: &str, declared: &str) -> Self {
        let site = site_of(address);
        let edition = if site == 0 { String::new() } else { without_edition(address) };
        let form = if site == 0 { String::new() } else { without_folder_numbers(&edition) };
        let title = normalize(title);
        let tells = |title: &str| if has_two_words(title) { hash(title) } else { 0 };
        Self {
            site,
            edition: hash(&edition),
            form: hash(&form),
            address: hash(address),
            name: hash(&title),
            title: tells(&title),
            heading: tells(without_number(&title)),
            declared: hash(declared),
            ..Self::default()
        }
    }

    /// Returns how alike is what two pages show, 0 to 1, if that is known of both.
    #[must_use]
    pub fn shows(&self, other: &Self) -> Option<f32> {
        Some(self.shown.as_ref()?.similarity(other.shown.as_ref()?))
    }

    /// Tells whether one of two pages names the other one as canonical.
    #[must_use]
    pub fn named(&self, other: &Self) -> bool {
        let names = |one: &Self, other: &Self| one.declared != 0 && one.declared == other.address;
        names(self, other) || names(other, self)
    }
}

/// Returns the hash of the host of a URL; 0 if it has none.
#[must_use]
pub fn site_of(address: &str) -> u64 {
    let host = authority_of(address);
    if host.is_empty() { 0 } else { xxh3_64(host.to_ascii_lowercase().as_bytes()).max(1) }
}

/// Words before the number of a chapter.
const CHAPTERS: [&str; 5] = ["annex", "appendix", "chapter", "part", "section"];

/// A normalised title without the number that it begins with: `4.6. `, `d.5 `, `chapter 2. `.
fn without_number(title: &str) -> &str {
    let (first, rest) = title.split_once(' ').unwrap_or((title, ""));
    let (number, rest) = if CHAPTERS.contains(&first) {
        rest.split_once(' ').unwrap_or((rest, ""))
    } else {
        (first, rest)
    };
    let mut parts = number.trim_end_matches(['.', ':', ')']).split(['.', '-']);
    let of_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let leads = parts.next().is_some_and(|first| first.len() == 1 || of_digits(first));
    if leads && parts.all(of_digits) && number.bytes().any(|b| b.is_ascii_digit()) {
        rest
    } else {
        title
    }
}

/// Three characters of a script without blanks are about two words.
fn has_two_words(title: &str) -> bool {
    let tokens = Tokens::of(title);
    let singles = tokens.all.iter().filter(|token| token.single).count();
    tokens.all.len() - singles + singles * 2 / 3 >= 2
}

/// Hash of a text; 0 for an empty one.
fn hash(text: &str) -> u32 {
    if text.is_empty() { 0 } else { ((xxh3_64(text.as_bytes()) >> 32) as u32).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_of_one_word_tells_nothing() {
        for (title, tells) in [
            ("", false),
            ("Header", false),
            ("首页", false),
            ("Table header", true),
            ("关于我们", true),
            ("3.1", true),
        ] {
            let standing = Standing::of("", title, "");
            assert_eq!(standing.title != 0, tells, "{title}");
            assert_eq!(standing.name != 0, !title.is_empty(), "{title}");
        }
        let title = |title| Standing::of("", title, "").title;
        assert_eq!(title("The  Bridge"), title("the bridge"));
        assert_ne!(title("the bridge 1"), title("the bridge 2"));
    }

    #[test]
    fn numbers_of_chapters_are_no_part_of_a_heading() {
        for (title, heading) in [
            ("4.6. the installer", "the installer"),
            ("d.5 the installer", "the installer"),
            ("1: the installer", "the installer"),
            ("chapter 12. the installer", "the installer"),
            ("a-2) the installer", "the installer"),
            ("a bridge", "a bridge"),
            ("1st bridge", "1st bridge"),
            ("django 1.4 notes", "django 1.4 notes"),
            ("chapter", "chapter"),
            ("x11 server", "x11 server"),
        ] {
            assert_eq!(without_number(title), heading);
        }
    }

    #[test]
    fn one_of_two_pages_may_name_the_other() {
        let page = |address, declared| Standing::of(address, "", declared);
        let (one, other) = (page("http://h/a", ""), page("http://h/b", "http://h/a"));
        assert!(one.named(&other) && other.named(&one));
        assert!(!one.named(&page("http://h/c", "http://h/b")));
        assert!(!one.named(&one) && !Standing::default().named(&Standing::default()));
    }
}
