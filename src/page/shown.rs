//! Everything that a page shows, as a small sketch: whether two pages differ in what the main text
//! does not have.

use crate::text::is_alphanumeric;
use crate::text::sketch::{ShownSketch, mix};

use super::tags::Tag;
use super::tree::{NodeKind, Tree};

/// Words of a shingle.
const WORDS: usize = 3;

/// Sketches the texts of a page: menus, lists and footers too, but neither scripts nor the head.
pub(super) fn of(tree: &Tree<'_>) -> ShownSketch {
    let mut words = WordRuns { last: [0; WORDS], count: 0, hashes: Vec::with_capacity(1024) };
    let mut at = 0;
    while let Some(item) = tree.items.get(at) {
        match item.kind {
            NodeKind::Text(text) => words.read(text),
            NodeKind::Element(_) if matches!(item.tag, Tag::NotText | Tag::Title) => {
                at = item.end;
                continue;
            }
            NodeKind::Element(_) => {}
        }
        at += 1;
    }
    ShownSketch::of(words.hashes)
}

/// A word with one more character: FNV-1a over characters, because words are short and `mix`
/// follows.
fn joined(word: u64, c: u64) -> u64 {
    (word ^ c ^ 0xCBF2_9CE4_8422_2325).wrapping_mul(0x0100_0000_01B3)
}

/// Hashes of runs of words.
struct WordRuns {
    last: [u64; WORDS],
    count: usize,
    hashes: Vec<u64>,
}

/// First and last character of the scripts without blanks of which each character is a word here.
const SINGLE: [(char, char); 4] = [
    ('\u{3040}', '\u{30FF}'),
    ('\u{3400}', '\u{9FFF}'),
    ('\u{AC00}', '\u{D7AF}'),
    ('\u{20000}', '\u{3FFFF}'),
];

/// The lower-case form of each ASCII letter and digit; 0 for other characters.
const LOWER: [u8; 128] = {
    let mut lower = [0; 128];
    let mut at = 0;
    while at < 128 {
        if (at as u8).is_ascii_alphanumeric() {
            lower[at] = (at as u8).to_ascii_lowercase();
        }
        at += 1;
    }
    lower
};

impl WordRuns {
    fn read(&mut self, text: &str) {
        let mut word = 0;
        let mut rest = text;
        loop {
            let mut bytes = rest.as_bytes().iter();
            while let Some(lower) =
                bytes.as_slice().first().and_then(|byte| LOWER.get(usize::from(*byte)))
            {
                bytes.next();
                if *lower != 0 {
                    word = joined(word, u64::from(*lower));
                } else if word != 0 {
                    self.push(std::mem::take(&mut word));
                }
            }
            let mut chars = rest[rest.len() - bytes.len()..].chars();
            let Some(c) = chars.next() else { break };
            rest = chars.as_str();
            let single =
                c > '\u{3000}' && SINGLE.iter().any(|(from, to)| (*from..=*to).contains(&c));
            let letter = !single && is_alphanumeric(c);
            if word != 0 && !letter {
                self.push(std::mem::take(&mut word));
            }
            if single {
                self.push(u64::from(c));
            } else if letter {
                word = joined(word, u64::from(c));
            }
        }
        if word != 0 {
            self.push(word);
        }
    }

    fn push(&mut self, word: u64) {
        self.last.rotate_left(1);
        self.last[WORDS - 1] = word;
        self.count += 1;
        // A page of a word or two has shingles, too.
        if self.count >= WORDS || self.hashes.is_empty() {
            let all = self.last.iter().fold(0_u64, |all, word| mix(all.rotate_left(17) ^ word));
            self.hashes.push(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Bound, parse};
    use super::*;

    fn shown(html: &str) -> ShownSketch {
        let html = parse(html, Bound::NONE).html;
        of(&Tree::new(&html, 10_000))
    }

    #[test]
    fn what_a_page_shows_is_all_of_its_text_and_no_script() {
        let page = |name: &str, items: std::ops::Range<u32>| {
            let items: Vec<String> =
                items.map(|n| format!("<li>The entry number {n} of it</li>")).collect();
            let items = items.concat();
            format!(
                "<html><head><title>{name}</title><style>p {{}}</style></head><body><ul>{items}\
                </ul><script>var x = '{name}';</script><p>Made with a tool</p></body></html>"
            )
        };
        let one = shown(&page("One", 0..60));
        assert!(one.similarity(&shown(&page("Two", 0..60))) > 0.99);
        assert!(one.similarity(&shown(&page("One", 60..120))) < 0.6);
        let words = shown("<p>Hello,   WORLD again</p>");
        assert_eq!(words, shown("<h1>hello</h1>world <b>Again</b>"));
        assert_ne!(shown("<p>one</p>"), shown("<p>two</p>"));
        assert!(shown("去重的新闻系统").similarity(&shown("去重的新闻系统！")) > 0.99);
    }
}
