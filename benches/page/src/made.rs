//! Pages that are made, the same ones for the same numbers: plain articles of 13 KB with 20 links,
//! as `benches/speed.sh` serves them, in English and in Chinese. No text of others is in them.

use jieba_rs::Jieba;

/// Words that make up a third of any English text.
const USUAL_ENGLISH: [&str; 12] =
    ["the", "of", "and", "to", "in", "is", "that", "for", "with", "as", "was", "by"];

/// Characters that make up a fifth of any Chinese text.
const USUAL_CHINESE: [&str; 24] = [
    "的", "了", "在", "是", "和", "有", "这", "他", "对", "将", "就", "也", "为", "与", "从", "都",
    "到", "而", "以", "中", "上", "不", "被", "把",
];

/// Bytes of a page before its links.
const LENGTH: usize = 12_000;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, of which the small ones come often, as with words.
    fn rank(&mut self, end: usize) -> usize {
        let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (uniform * uniform * end as f64) as usize
    }
}

/// Words of which pages are made.
pub struct Words {
    usual: &'static [&'static str],
    /// One of so many words is a usual one.
    usual_of: u64,
    others: Vec<String>,
    /// What stands between two words, and at the end of a sentence.
    between: &'static str,
    end: &'static str,
}

impl Words {
    /// Words that are made of syllables.
    pub fn english() -> Self {
        const SYLLABLES: [&str; 20] = [
            "ba", "cor", "del", "fi", "gra", "hol", "in", "ju", "ka", "lem", "mo", "nar", "os",
            "pi", "qua", "ret", "sil", "tu", "ver", "zo",
        ];
        let word = |n: usize| {
            let parts = [n % 20, n / 20 % 20, n / 400 % 20];
            parts[..if n < 400 { 2 } else { 3 }].iter().map(|at| SYLLABLES[*at]).collect()
        };
        let others = (0..6_000).map(word).collect();
        Self { usual: &USUAL_ENGLISH, usual_of: 3, others, between: " ", end: ". " }
    }

    /// Words of two characters that the dictionary has, and one pair in twenty that it may not
    /// have, as names are.
    pub fn chinese() -> Self {
        let jieba = Jieba::new();
        let rows = (0xB0..=0xD7_u8).flat_map(|row| (0xA1..=0xFE_u8).map(move |cell| [row, cell]));
        let common: Vec<char> = rows
            .filter_map(|bytes| encoding_rs::GBK.decode(&bytes).0.chars().next())
            .filter(|c| ('\u{4E00}'..='\u{9FFF}').contains(c))
            .collect();
        let mut random = Random::new(1);
        let mut others = Vec::new();
        while others.len() < 6_000 {
            let mut next = || common[(random.next() >> 33) as usize % common.len()];
            let pair: String = [next(), next()].iter().collect();
            if jieba.has_word(&pair) || random.next() % 8_000 == 0 {
                others.push(pair);
            }
        }
        Self { usual: &USUAL_CHINESE, usual_of: 5, others, between: "", end: "。" }
    }

    fn word(&self, random: &mut Random) -> &str {
        let bits = random.next();
        if bits % self.usual_of == 0 {
            return self.usual[(bits / self.usual_of) as usize % self.usual.len()];
        }
        &self.others[random.rank(self.others.len())]
    }

    /// Makes the page of a number.
    pub fn page(&self, number: u64) -> String {
        let mut random = Random::new(number);
        let mut html = format!(
            "<!DOCTYPE html><html><head><title>Page {number}</title></head><body><main>\
             <h1>Page {number}</h1>\n"
        );
        while html.len() < LENGTH {
            html.push_str("<p>");
            for word in 1..=40 {
                html.push_str(self.word(&mut random));
                html.push_str(if word % 10 == 0 { self.end } else { self.between });
            }
            html.push_str("</p>\n");
        }
        html.push_str("</main><ul>");
        for _ in 0..20 {
            let to = random.next() % 5_000;
            html.push_str(&format!("<li><a href=\"/p/{to}\">page {to}</a></li>"));
        }
        html.push_str("</ul></body></html>");
        html
    }
}
