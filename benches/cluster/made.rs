//! Articles that are made of a number: the same in every process.

use std::fmt::Write as _;

use uniqcrawl::corpus::clusters::Article;
use uniqcrawl::corpus::documents::Facts;
use uniqcrawl::neardup::article_keys;
use uniqcrawl::text::features::{Fingerprinter, Input, Standing};
use uniqcrawl::web::robots::meta::Terms;

/// Which articles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every fifth is an edited copy of one before it.
    Place,
    /// Five edited copies of each text, one after the other.
    Race,
}

#[derive(Debug, Clone)]
pub(crate) struct Words(pub(crate) u64);

impl Words {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn prose(seed: u64, words: usize, copy: u64) -> String {
    let mut random = Words(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut text = String::new();
    for at in 0..words {
        let word = random.next() % 60_000;
        if copy > 0 && at as u64 % 41 == copy * 7 {
            write!(text, "edited{copy}").unwrap();
        } else {
            write!(text, "w{word}").unwrap();
        }
        text.push_str(if at % 14 == 13 { ". " } else { " " });
    }
    text
}

/// The text and the copy of an article.
fn parts(kind: Kind, number: u64) -> (u64, u64) {
    match kind {
        Kind::Place if number % 5 == 4 => (number - 1 - number / 5 % 3, 1 + number % 3),
        Kind::Place => (number, 0),
        Kind::Race => (number / 5, number % 5),
    }
}

/// Makes an article.
pub(crate) fn article(kind: Kind, number: u64, fingerprinter: &Fingerprinter) -> Article {
    let (text_of, copy) = parts(kind, number);
    let address = format!("https://site{}.example/{text_of}/{number}", number % 997);
    let title = prose(text_of + 1_000_000_007, 6, 0);
    let text = prose(text_of + 1, 200, copy);
    let input = Input { title: &title, text: &text, url: &address, ..Input::default() };
    let mut keys = article_keys(fingerprinter, &input);
    keys.standing = Standing::of(&address, &title, "");
    Article {
        address,
        title,
        text,
        language: "en".to_owned(),
        facts: Facts::default(),
        left_out: 0,
        score: None,
        terms: Terms::default(),
        declared: String::new(),
        keys,
    }
}

/// The number of the text that a URL carries.
pub(crate) fn text_of(url: &str) -> u64 {
    url.split('/').nth(3).unwrap().parse().unwrap()
}
