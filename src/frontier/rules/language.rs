//! Names of languages in URLs.

/// Languages of the web by their codes (ISO 639-1, and three older ones).
const CODES: &str = "af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu \
    he hi hr hu hy id in is it iw ja ji ka kk km kn ko ky lo lt lv mk ml mn mr ms mt my nb ne nl \
    nn no or pa pl ps pt ro ru sd si sk sl sq sr sv sw ta te tg th tk tl tr uk ur uz vi yi zh zu";

/// Parameters that choose a language.
const PARAMETERS: [&str; 9] =
    ["culture", "hl", "l10n", "lang", "language", "lc", "lng", "locale", "uselang"];

/// Returns the code of the language that a text names, such as `zh` for `zh_CN`; none for any other
/// text.
pub(super) fn of(text: &str) -> Option<&str> {
    let (code, region) = text.split_once(['-', '_']).unwrap_or((text, "xx"));
    let is_region =
        (2..=4).contains(&region.len()) && region.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_code = |known: &str| known.eq_ignore_ascii_case(code);
    (is_region && CODES.split_ascii_whitespace().any(is_code)).then_some(code)
}

/// Tells whether a text has a name of a language among its parts.
pub(super) fn names_one(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| of(part).is_some())
}

/// Tells whether a parameter chooses a language.
pub(super) fn is_parameter(name: &str) -> bool {
    PARAMETERS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Tells whether two names are those of different languages.
pub(super) fn differ(one: Option<&str>, other: Option<&str>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if !one.eq_ignore_ascii_case(other))
}
