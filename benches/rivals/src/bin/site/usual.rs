//! The usual site: pages of one template in a language of syllables.

use std::net::SocketAddr;

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

/// What the pages of a site have in common.
pub struct Pages {
    /// How many there are.
    pub count: u64,
    /// What the first one is called; those of other numbers have other words.
    pub first: u64,
    /// Length of one without its links.
    pub bytes: usize,
    /// Hosts that have one page after the other in turn; none for links without a host.
    pub hosts: Vec<SocketAddr>,
}

impl Pages {
    /// Where a link leads to: anywhere, but of eight links seven stay on a host.
    fn drawn(&self, number: u64, bits: u64) -> u64 {
        let to = bits % self.count;
        let hosts = self.hosts.len() as u64;
        if hosts == 0 || bits >> 61 == 0 { to } else { to - to % hosts + number % hosts }
    }

    fn link(&self, to: u64) -> String {
        match self.hosts.len() {
            0 => format!("/p/{to}"),
            hosts => format!("http://{}/p/{to}", self.hosts[to as usize % hosts]),
        }
    }
}

pub fn page(number: u64, pages: &Pages, words: &[String]) -> String {
    let name = pages.first + number;
    let mut state = name.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut html = format!(
        "<!DOCTYPE html><html><head><title>Page {name}</title></head><body><main><h1>Page {name}</h1>\n"
    );
    while html.len() < pages.bytes {
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
            _ => pages.drawn(number, next()),
        };
        if to < pages.count {
            html.push_str(&format!("<li><a href=\"{}\">page {to}</a></li>", pages.link(to)));
        }
    }
    html.push_str("</ul></body></html>");
    html
}
