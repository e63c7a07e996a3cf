//! The kind of an address: what it looks like with numbers and names that stand for one page
//! replaced.

use super::PageUrl;

/// Shortest part of hexadecimal digits that is taken for a hash.
const HASH_CHARS_MIN: usize = 8;

impl PageUrl {
    /// Returns the host, the path with each number or hash as `#`, and the sorted names of the
    /// parameters: what pages of one kind have in common.
    #[must_use]
    pub fn pattern(&self) -> String {
        let mut pattern = self.host_key().as_str().to_owned();
        for part in self.url().path().split('/').skip(1) {
            pattern.push('/');
            pattern.push_str(&replaced(part));
        }
        let mut names: Vec<&str> = self
            .url()
            .query()
            .into_iter()
            .flat_map(|query| query.split('&'))
            .map(|pair| pair.split('=').next().unwrap_or(pair))
            .collect();
        names.sort_unstable();
        names.dedup();
        if !names.is_empty() {
            pattern.push('?');
            pattern.push_str(&names.join("&"));
        }
        pattern
    }
}

/// A part of a path with its numbers as `#`; one that is a hash is `#` as a whole.
fn replaced(part: &str) -> String {
    let is_hash = part.len() >= HASH_CHARS_MIN
        && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && part.bytes().any(|byte| byte.is_ascii_digit());
    if is_hash {
        return "#".to_owned();
    }
    let mut out = String::with_capacity(part.len());
    for c in part.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_one_kind_have_one_pattern() {
        for (url, pattern) in [
            ("http://a.org/2024/05/x-17.html", "http://a.org/#/#/x-#.html"),
            ("http://a.org/p?b=1&a=2&b=3", "http://a.org/p?a&b"),
            ("http://a.org/s/9f86d081884c7d65/page", "http://a.org/s/#/page"),
            ("http://a.org/facade/", "http://a.org/facade/"),
            ("http://a.org/", "http://a.org/"),
        ] {
            assert_eq!(PageUrl::parse(url).expect("an address").pattern(), pattern);
        }
    }
}
