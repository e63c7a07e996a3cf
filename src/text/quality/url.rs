//! What is a URL among words: it is not cut.
//!
//! Source: spaCy 3.8 (MIT), `URL_PATTERN`, after Diego Perini's expression.

use std::net::Ipv4Addr;

use super::classes::Class;

/// Tells whether a piece without blanks is a URL, a mail address or the name of a host.
pub(super) fn is_url(piece: &str) -> bool {
    if !piece.contains('.') {
        return false;
    }
    let scheme_end = piece.find("://").filter(|end| {
        let scheme = &piece[..*end];
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '+' | '-' | '.');
        scheme.chars().nth(1).is_some() && scheme.chars().all(fits)
    });
    let bases = [Some(0), scheme_end.map(|end| end + "://".len())];
    bases.into_iter().flatten().any(|base| {
        let rest = &piece[base..];
        // Whatever stands before an `@` may be a name.
        let names = rest.match_indices('@').filter(|(at, _)| *at > 0).map(|(at, _)| at + 1);
        std::iter::once(0).chain(names).any(|start| is_host_with_path(&rest[start..]))
    })
}

fn is_host_with_path(text: &str) -> bool {
    let end = text.find([':', '/', '?', '#']).unwrap_or(text.len());
    let (host, rest) = text.split_at(end);
    let rest = match rest.strip_prefix(':') {
        None => rest,
        Some(port) => {
            let digits = port.bytes().take_while(u8::is_ascii_digit).count();
            if !(2..=5).contains(&digits) {
                return false;
            }
            &port[digits..]
        }
    };
    let fits = rest.is_empty() || rest.starts_with(['/', '?', '#']);
    fits && (is_name(host) || is_public_number(host))
}

/// Labels, and an end in small letters.
fn is_name(host: &str) -> bool {
    let Some((labels, end)) = host.rsplit_once('.') else { return false };
    let length = end.chars().count();
    let ends = (2..=63).contains(&length) && end.chars().all(|c| Class::Lower.has(c));
    ends && labels.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let outside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '\u{A1}'..='\u{FFFF}');
    let (first, last) = (label.chars().next(), label.chars().next_back());
    let ends = first.is_some_and(outside) && last.is_some_and(outside);
    ends && label.chars().count() <= 64
        && label.chars().all(|c| outside(c) || matches!(c, '_' | '-'))
}

/// Four numbers that may stand for a host that all can reach.
fn is_public_number(host: &str) -> bool {
    let is_number = host.split('.').count() == 4
        && host.split('.').all(|part| {
            (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        });
    let numbers: Option<Vec<u8>> = host.split('.').map(|part| part.parse().ok()).collect();
    let Some([a, b, c, d]) = numbers.as_deref().filter(|_| is_number) else { return false };
    let address = Ipv4Addr::new(*a, *b, *c, *d);
    let ends_are_short =
        [0, 3].iter().all(|at| !host.split('.').nth(*at).is_some_and(|part| part.starts_with('0')));
    let is_private = matches!(a, 10 | 127) || address.is_private() || address.is_link_local();
    (1..=223).contains(a) && (1..=254).contains(d) && ends_are_short && !is_private
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_names_and_mail_addresses_are_told_from_words() {
        for url in [
            "example.com",
            "http://a.example.com:8080/x?y",
            "me@site.org",
            "8.8.8.8/x",
            "x.ai#top",
            "user:word@host.net",
            "mailto:a@b.co",
        ] {
            assert!(is_url(url), "{url}");
        }
        for word in ["example.Com", "10.0.0.1", "a..b", "3.5", "end.", "-a.com", "a.com:1"] {
            assert!(!is_url(word), "{word}");
        }
    }
}
