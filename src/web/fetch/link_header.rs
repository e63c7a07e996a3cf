//! The `Link` header: which URL a page names as canonical there. Source: RFC 8288, 3.

/// Returns the target of the first link of the relation `canonical`; none if there is none. A link
/// whose context is another page (`anchor`) says nothing of this one.
#[must_use]
pub(crate) fn canonical_link(value: &str) -> Option<&str> {
    let mut rest = value;
    loop {
        let link = rest.trim_start_matches([' ', '\t', ',']).strip_prefix('<')?;
        let (target, after) = link.split_once('>')?;
        let (mut parameters, next) = cut_at(after, ',');
        let (mut relation, mut anchored) = (None, false);
        while !parameters.is_empty() {
            let (parameter, others) = cut_at(parameters, ';');
            parameters = others;
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if name.trim().eq_ignore_ascii_case("anchor") {
                anchored = true;
            } else if name.trim().eq_ignore_ascii_case("rel") && relation.is_none() {
                relation = Some(value.trim().trim_matches('"'));
            }
        }
        let mut words = relation.unwrap_or_default().split_ascii_whitespace();
        if !anchored && words.any(|word| word.eq_ignore_ascii_case("canonical")) {
            return Some(target.trim());
        }
        rest = next;
    }
}

/// Cuts a text at the first separator outside quotes, which belongs to neither part.
fn cut_at(text: &str, separator: char) -> (&str, &str) {
    let (mut quoted, mut escaped) = (false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if char == separator && !quoted => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::canonical_link;

    #[test]
    fn the_first_canonical_link_of_a_header_is_found() {
        for (value, found) in [
            ("<http://a/b>; rel=\"canonical\"", Some("http://a/b")),
            ("</b?x=1,2>;rel=canonical", Some("/b?x=1,2")),
            ("<a>; rel=next, < b > ; REL = \"Prev Canonical\"", Some("b")),
            ("<a>; title=\"x, <y>; rel=canonical\"; rel=next, <b>; rel=canonical", Some("b")),
            ("<a>; title=\"\\\"; rel=canonical\"", None),
            ("<a>; rel=canonical; anchor=\"/c\", <b>; rel=canonical", Some("b")),
            ("<a>; rel=next; rel=canonical", None),
            ("<a>; rel=canonical2", None),
            (",, <a>;;rel=canonical;", Some("a")),
            ("a; rel=canonical", None),
            ("<a; rel=canonical", None),
            ("<a>", None),
            ("", None),
        ] {
            assert_eq!(canonical_link(value), found, "{value}");
        }
    }
}
