//! Names of persons and sites: what belongs to them and what does not.

/// Characters of a name.
const NAME_CHARS_MAX: usize = 90;

/// Words before a name, in lower case.
const BEFORE: [&str; 40] = [
    "written by",
    "posted by",
    "published by",
    "reviewed by",
    "story by",
    "words by",
    "text by",
    "article by",
    "authored by",
    "created by",
    "by:",
    "by",
    "author:",
    "authors:",
    "author",
    "von:",
    "von",
    "autor:",
    "autorin:",
    "autor",
    "par:",
    "par",
    "auteur :",
    "auteur:",
    "por:",
    "por",
    "di",
    "door",
    "af",
    "av",
    "przez",
    "автор:",
    "автор",
    "текст:",
    "συντάκτης:",
    "του",
    "της",
    "από",
    "started by",
    "asked by",
];

/// What is no name of a person, in lower case.
const NOBODY: [&str; 70] = [
    "admin",
    "administrator",
    "webmaster",
    "editor",
    "editors",
    "unknown",
    "anonymous",
    "guest",
    "null",
    "undefined",
    "none",
    "author",
    "authors",
    "user",
    "root",
    "n/a",
    "na",
    "home",
    "about",
    "share",
    "follow",
    "staff",
    "team",
    "website",
    "web",
    "posts",
    "comments",
    "reply",
    "login",
    "佚名",
    "未知",
    "本站",
    "网络",
    "管理员",
    "默认",
    "无",
    "staff writer",
    "name",
    "writer",
    "by",
    "authorized dealer",
    "view profile",
    "read more",
    "full bio",
    "about the author",
    "view bio",
    "insights from",
    "by line",
    "sign in",
    "sign up",
    "log in",
    "create account",
    "my account",
    "create an account",
    "account settings",
    "my profile",
    "profile",
    "members",
    "youtube",
    "bluesky",
    "twitter",
    "facebook",
    "linkedin",
    "meet the team",
    "meet our staff",
    "verification",
    "contributors",
    "free trial",
    "privacy",
    "activities",
];

/// Returns a text without markup, character references and line breaks.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(1_024));
    let mut rest = &text[..text.floor_char_boundary(16 << 10)];
    while let Some(at) = rest.find(['<', '&']) {
        push(&mut out, &rest[..at]);
        rest = &rest[at..];
        if let Some(end) = tag_end(rest) {
            out.push(' ');
            rest = &rest[end..];
        } else if let Some((c, end)) = reference(rest) {
            out.push(c);
            rest = &rest[end..];
        } else {
            push(&mut out, &rest[..1]);
            rest = &rest[1..];
        }
    }
    push(&mut out, rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn push(out: &mut String, text: &str) {
    out.extend(text.chars().filter(|c| {
        !matches!(c, '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' | '\u{AD}' | '\0')
    }));
}

fn tag_end(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('<')?;
    let named = inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let end = inner.find('>').filter(|end| named && *end < 200)?;
    Some(end + 2)
}

/// Reads a character reference, as texts have them that were escaped twice.
fn reference(text: &str) -> Option<(char, usize)> {
    let inner = text.strip_prefix('&')?;
    let end = inner.bytes().take(10).position(|byte| byte == b';')?;
    let name = &inner[..end];
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" | "rsquo" | "lsquo" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "ldquo" => '“',
        "rdquo" => '”',
        name => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((c, end + 2))
}

/// Returns the rest of a text that starts with a word for `by`.
pub(super) fn after_by(text: &str) -> Option<&str> {
    let text = text.trim_start();
    before(text).find_map(|word| {
        let rest = without_start(text, word)?;
        let apart = word.ends_with(':') || rest.starts_with([' ', '\u{A0}', ':', '\n']);
        apart.then(|| rest.trim_start_matches([':', ' ', '\u{A0}', '\n']))
    })
}

/// Tells whether a text is a word for `by` and nothing else.
pub(super) fn is_by(text: &str) -> bool {
    let text = text.trim_end_matches([':', ' ']);
    text.len() < 24 && before(text).any(|word| without_start(text, word) == Some(""))
}

/// The words with which a text can start by its first letter.
fn before(text: &str) -> impl Iterator<Item = &'static str> {
    let first = text.chars().next().and_then(|c| c.to_lowercase().next());
    BEFORE.into_iter().filter(move |word| first.is_some_and(|first| word.starts_with(first)))
}

/// Takes a word in lower case off the start of a text in any.
fn without_start<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for c in word.chars() {
        let own = rest.next()?;
        if own != c && !own.to_lowercase().eq(std::iter::once(c)) {
            return None;
        }
    }
    Some(rest.as_str())
}

/// Returns the name that a field or a byline holds, if it is one.
pub(super) fn person(text: &str) -> Option<String> {
    let plain = plain(text);
    let mut name = plain.as_str();
    while let Some(rest) = after_by(name) {
        name = rest;
    }
    for mark in [" | ", " • ", " · ", " — ", " – ", "\u{2028}", " on ", " Published", " Updated"]
    {
        if let Some(at) = name.find(mark).filter(|at| *at > 2) {
            name = &name[..at];
        }
    }
    let name = name.trim_matches(|c: char| {
        c.is_whitespace()
            || matches!(c, ',' | ';' | ':' | '|' | '-' | '–' | '—' | '·' | '•' | '/' | '"' | '@')
    });
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let bad = name.chars().count() < 2
        || name.chars().count() > NAME_CHARS_MAX
        || name.contains("://")
        || name.contains("www.")
        || name.contains('@')
        || name.contains(['{', '}', '<', '>', '=', '\\', '【', '╱', '，', '。'])
        || !name.chars().any(char::is_alphabetic)
        || digits > 6
        || NOBODY.contains(&name.to_lowercase().as_str());
    (!bad).then(|| name.to_owned())
}

/// Tells whether a byline is written as names of persons are: few words, most of them with a
/// capital.
pub(super) fn looks_like_names(name: &str) -> bool {
    let words: Vec<&str> = name.split_whitespace().collect();
    let capital = |word: &&&str| {
        word.trim_start_matches(['(', '"', '‘', '“']).starts_with(char::is_uppercase)
    };
    let small = ["and", "de", "van", "der", "von", "la", "und", "et", "y", "e", "di", "da", "&"];
    let plain = words.iter().filter(|word| !small.contains(word));
    let capitals = plain.clone().filter(capital).count();
    words.len() <= 12
        && !words.is_empty()
        && capitals == plain.count()
        && capitals > 0
        && !name.contains(['.', '!', '?', '…']) | is_abbreviated(name)
}

/// Tells whether the end of an address can be the name of a person: `jane-doe`, `janedoe`.
pub(super) fn looks_like_slug(page: &str) -> bool {
    let known = ["author", "authors", "people", "writers", "contributors", "members", "index"];
    page.len() > 3 && !known.iter().any(|word| page.eq_ignore_ascii_case(word))
}

/// Dots in a name are those of initials and titles: `J. R. R. Tolkien`, `Dr. Who`.
fn is_abbreviated(name: &str) -> bool {
    !name.contains(['!', '?', '…'])
        && name
            .split_whitespace()
            .all(|word| !word.trim_end_matches(',').ends_with('.') || word.chars().count() <= 5)
}
