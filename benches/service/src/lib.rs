//! Articles that are made, not written: the same ones for the same numbers.
//!
//! Chinese ones are of real words of two characters, English ones of made ones; each has the words
//! of one of 2,000 subjects beside those that all may have, the first ranks of which come often, as
//! in any language. They share no sentences.

use jieba_rs::Jieba;
use serde::Serialize;

/// Subjects, and words of one.
const SUBJECTS: u64 = 2_000;
const SUBJECT_WORDS: u64 = 150;

/// English words that are made.
const ENGLISH_WORDS: u64 = 40_000;

const USUAL_CHINESE: [&str; 24] = [
    "的", "了", "在", "是", "和", "有", "这", "他", "对", "将", "就", "也", "为", "与", "从", "都",
    "到", "而", "以", "中", "上", "不", "被", "把",
];
const USUAL_ENGLISH: [&str; 24] = [
    "the", "of", "and", "to", "in", "is", "that", "for", "it", "with", "as", "was", "on", "by",
    "this", "from", "at", "be", "are", "not", "have", "an", "they", "which",
];

/// An article as it is sent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Article {
    pub nid: String,
    pub url: String,
    pub title: String,
    pub content: String,
    pub category: String,
    pub media: String,
    pub image_count: String,
}

/// Numbers that look random.
pub struct Random(u64);

impl Random {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// From 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A rank of which the first are the most frequent, as with words.
    fn rank(&mut self, end: u64) -> u64 {
        ((end as f64).powf(self.share()) as u64).saturating_sub(1).min(end - 1)
    }
}

/// The words of all articles.
pub struct Words {
    chinese: Vec<String>,
    english: Vec<String>,
}

impl Words {
    /// Collects the words.
    #[must_use]
    pub fn new() -> Self {
        let jieba = Jieba::new();
        let common: Vec<char> = (0xb0..=0xd7u8)
            .flat_map(|row| (0xa1..=0xfeu8).map(move |cell| [row, cell]))
            .filter_map(|bytes| encoding_rs::GBK.decode(&bytes).0.chars().next())
            .filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c))
            .collect();
        let mut chinese = Vec::new();
        let mut pair = String::new();
        for first in &common {
            for second in &common {
                pair.clear();
                pair.extend([*first, *second]);
                if jieba.has_word(&pair) {
                    chinese.push(pair.clone());
                }
            }
        }
        // Ranks must not go by pinyin.
        chinese.sort_by_key(|word| xxhash_rust::xxh3::xxh3_64(word.as_bytes()));
        let english = (0..ENGLISH_WORDS).map(made_word).collect();
        Self { chinese, english }
    }

    fn word(&self, chinese: bool, subject: u64, random: &mut Random) -> &str {
        let (words, usual) = match chinese {
            true => (&self.chinese, &USUAL_CHINESE),
            false => (&self.english, &USUAL_ENGLISH),
        };
        let all = words.len() as u64;
        match random.below(100) {
            0..20 => usual[random.below(24) as usize],
            20..50 => {
                let at = random.below(SUBJECT_WORDS) + subject * SUBJECT_WORDS;
                &words[Random::new(at).below(all) as usize]
            }
            _ => &words[random.rank(all) as usize],
        }
    }

    /// The words of an article: title, then text, of which `\u{1}` ends sentences and `\n` too.
    fn plan(&self, number: u64) -> Plan<'_> {
        let mut random = Random::new(number);
        let (chinese, subject) = (!number.is_multiple_of(3), random.below(SUBJECTS));
        let length = 200 + random.below(1_300) as usize;
        let word = |random: &mut Random| self.word(chinese, subject, random);
        let count = 6 + random.below(6);
        let title = (0..count).map(|_| word(&mut random)).collect();
        let (mut text, mut have, mut sentence) = (Vec::new(), 0, 0);
        while have < length {
            if sentence == 0 {
                sentence = 6 + random.below(18);
            }
            let next = word(&mut random);
            have += next.chars().count() + usize::from(!chinese);
            sentence -= 1;
            text.push((next, sentence == 0));
        }
        Plan { chinese, subject, title, text }
    }

    /// The article of a number.
    #[must_use]
    pub fn article(&self, number: u64) -> Article {
        let plan = self.plan(number);
        named(&format!("a{number}"), number % 5_000, plan.title(), plan.content())
    }

    /// A copy of an article with other words in a few places, a line more and another title in one
    /// of two cases, on another site.
    #[must_use]
    pub fn near_copy(&self, number: u64, copy: u64) -> Article {
        let mut plan = self.plan(number);
        let mut random = Random::new(copy ^ 0xc0_0001);
        for at in 0..plan.text.len() {
            if random.below(100) < 3 {
                plan.text[at].0 = self.word(plan.chinese, plan.subject, &mut random);
            }
        }
        if random.below(2) == 0 {
            let at = random.below(plan.title.len() as u64) as usize;
            plan.title[at] = self.word(plan.chinese, plan.subject, &mut random);
        }
        let media = 5_000 + copy % 5_000;
        let line = match plan.chinese {
            true => format!("\n来源：第{media}频道，{copy}号。"),
            false => format!("\nFrom channel {media}, number {copy}."),
        };
        named(&format!("c{copy}"), media, plan.title(), plan.content() + &line)
    }

    /// The same text and title on another site.
    #[must_use]
    pub fn reprint(&self, number: u64, copy: u64) -> Article {
        let plan = self.plan(number);
        named(&format!("r{copy}"), 10_000 + copy % 5_000, plan.title(), plan.content())
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::new()
    }
}

struct Plan<'a> {
    chinese: bool,
    subject: u64,
    title: Vec<&'a str>,
    /// Words, and whether a sentence ends after it.
    text: Vec<(&'a str, bool)>,
}

impl Plan<'_> {
    fn title(&self) -> String {
        self.title.join(if self.chinese { "" } else { " " })
    }

    fn content(&self) -> String {
        let mut content = String::new();
        for (at, (word, ends)) in self.text.iter().enumerate() {
            content.push_str(word);
            match (ends, self.chinese) {
                (true, true) => content.push_str(if at % 5 == 0 { "。\n" } else { "。" }),
                (true, false) => content.push_str(if at % 5 == 0 { ".\n" } else { ". " }),
                (false, true) => {}
                (false, false) => content.push(' '),
            }
        }
        content
    }
}

fn named(nid: &str, media: u64, title: String, content: String) -> Article {
    Article {
        nid: nid.to_owned(),
        url: format!("http://news{media}.example/2026/{nid}.html"),
        title,
        content,
        category: "0".to_owned(),
        media: format!("media{media}"),
        image_count: "4".to_owned(),
    }
}

/// A word of two to four syllables.
fn made_word(number: u64) -> String {
    const FIRST: [&str; 20] = [
        "b", "br", "c", "d", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "pl", "r", "s", "st",
        "t", "v", "w",
    ];
    const MIDDLE: [&str; 10] = ["a", "e", "i", "o", "u", "ai", "ea", "io", "ou", "y"];
    const LAST: [&str; 10] = ["", "n", "r", "s", "t", "l", "m", "ck", "nd", "rt"];
    let mut random = Random::new(number ^ 0xe0_0001);
    let mut word = String::new();
    for _ in 0..2 + random.below(3) {
        word.push_str(FIRST[random.below(20) as usize]);
        word.push_str(MIDDLE[random.below(10) as usize]);
    }
    word + LAST[random.below(10) as usize]
}
