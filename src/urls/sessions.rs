//! Session identifiers in addresses: what they are called and what they look like.

/// Names that stand for a session whatever their value is.
///
/// Source: the documentation of PHP, Java servlets, ASP, `ColdFusion`, osCommerce and Zen Cart.
pub(super) const NAMES: [&str; 10] = [
    "phpsessid",
    "jsessionid",
    "aspsessionid*",
    "cfid",
    "cftoken",
    "oscsid",
    "zenid",
    "xtcsid",
    "sessid",
    "phpsession",
];

/// Names that stand for a session if the value looks like one, and for content otherwise: a
/// conference has sessions too.
pub(super) const HASHED_NAMES: [&str; 5] = ["sid", "sessionid", "session_id", "sess", "sessionkey"];

/// Tells whether `name` is in a list, in which a `*` at the end stands for any rest. Letters of
/// either case are the same.
pub(super) fn is_listed(list: &[impl AsRef<str>], name: &str) -> bool {
    list.iter().any(|listed| match listed.as_ref().strip_suffix('*') {
        Some(start) => name.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start)),
        None => listed.as_ref().eq_ignore_ascii_case(name),
    })
}

/// Tells whether a text has the form of a hash or a random key: 16 letters and digits or more, at
/// least two of each, or a UUID.
pub(super) fn is_hash(text: &str) -> bool {
    if text.len() == 36 && text.bytes().filter(|byte| *byte == b'-').count() == 4 {
        let ends = text.split('-').map(str::len);
        return ends.eq([8, 4, 4, 4, 12])
            && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    }
    text.len() >= 16 && is_random(text)
}

/// Tells whether a text has the form of a session: 26 letters and digits or more. PHP, servlets
/// and forums give 26 or 32; identifiers of content are mostly shorter or UUIDs.
fn is_key(text: &str) -> bool {
    text.len() >= 26 && is_random(text)
}

fn is_random(text: &str) -> bool {
    let count = |of: fn(&u8) -> bool| text.bytes().filter(of).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    digits >= 2 && letters >= 2 && digits + letters == text.len()
}

/// Tells whether a path segment is a cookieless session of ASP.NET, such as `(S(3x4…))` or
/// `(A(…)S(…))`.
pub(super) fn is_asp_segment(segment: &str) -> bool {
    let inner = segment.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let Some(mut rest) = inner else { return false };
    let mut has_session = false;
    while !rest.is_empty() {
        let Some(kind) = rest.as_bytes().first().filter(|byte| b"AFSX".contains(byte)) else {
            return false;
        };
        has_session |= *kind == b'S';
        let value = rest[1..].strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let Some((value, after)) = value.filter(|(value, _)| !value.contains('(')) else {
            return false;
        };
        if *kind == b'S' && value.len() < 16 {
            return false;
        }
        rest = after;
    }
    has_session
}

/// Takes the parameters of one path segment that stand for a session out of it, as `;jsessionid=…`.
/// Returns none if there are none.
pub(super) fn without_parameters(
    segment: &str,
    names: &[impl AsRef<str>],
    hashed: &[impl AsRef<str>],
) -> Option<String> {
    let (first, parameters) = segment.split_once(';')?;
    let kept = |pair: &&str| !is_session(pair, names, hashed);
    if parameters.split(';').all(|pair| kept(&pair)) {
        return None;
    }
    let mut out = first.to_owned();
    for pair in parameters.split(';').filter(kept) {
        out.push(';');
        out.push_str(pair);
    }
    Some(out)
}

/// Tells whether `name=value` stands for a session.
pub(super) fn is_session(
    pair: &str,
    names: &[impl AsRef<str>],
    hashed: &[impl AsRef<str>],
) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    is_listed(names, name) || (is_listed(hashed, name) && is_key(value))
}

/// Tells whether a path carries a session in a place from which it cannot be taken without a
/// guess, or in one from which it was not taken.
pub(super) fn in_path(path: &str) -> bool {
    let mut before = "";
    for segment in path.split('/') {
        let parameter = without_parameters(segment, &NAMES, &HASHED_NAMES).is_some();
        let pair = segment.contains('=') && is_session(segment, &NAMES, &HASHED_NAMES);
        let named = is_listed(&NAMES, before) || is_listed(&HASHED_NAMES, before);
        if parameter || pair || is_asp_segment(segment) || (named && is_key(segment)) {
            return true;
        }
        before = segment;
    }
    false
}
