//! The usual site: pages of one template in a language of syllables.

/// Words that make up a third of any English text.
const USUAL: [&str; 12] =
    ["the", "of", "and", "to", "in", "is", "that", "for", "with", "as", "was", "by"];

/// Words of the language of this site: made of syllables, the first ones much more usual.
pub fn vocabulary() -> Vec<String> {
    const SYLLABLES: [&str; 20] = [
        "ba", "cor", "del", "fi", "gra", "hol", "in", "ju", "ka", "lem", "mo", "nar", "os", "pi",
        "qua", "ret", "sil", "tu", "ver", "zo",
    ];
    let word = |n: usize| {
        let parts = [n % 20, n / 20 % 20, n / 400 % 20];
        parts[..if n < 400 { 2 } else { 3 }].iter().map(|at| SYLLABLES[*at]).collect()
    };
    (0..6_000).map(word).collect()
}

pub fn page(number: u64, pages: u64, words: &[String]) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut html = format!(
        "<!DOCTYPE html><html><head><title>Page {number}</title></head><body><main><h1>Page {number}</h1>\n"
    );
    while html.len() < 12_000 {
        html.push_str("<p>");
        for _ in 0..40 {
            let bits = next();
            if bits % 3 == 0 {
                html.push_str(USUAL[(bits / 3 % 12) as usize]);
                html.push(' ');
                continue;
            }
            // The square of a uniform number favours the small ones, as usage does.
            let uniform = (next() >> 11) as f64 / (1u64 << 53) as f64;
            html.push_str(&words[(uniform * uniform * words.len() as f64) as usize]);
            html.push(' ');
        }
        html.push_str("</p>\n");
    }
    html.push_str("</main><ul>");
    for link in 0..20 {
        // Two children in a tree, so that every page is reached; the others anywhere.
        let to = match link {
            0 | 1 => number * 2 + link + 1,
            _ => next() % pages,
        };
        if to < pages {
            html.push_str(&format!("<li><a href=\"/p/{to}\">page {to}</a></li>"));
        }
    }
    html.push_str("</ul></body></html>");
    html
}
