//! Which URLs of one site are editions of one page: they differ in folders of language,
//! version or architecture only, or lead to a view of it for printing.

/// Languages of ISO 639-1.
const LANGUAGES: &str = "\
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy \
    da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu \
    hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb \
    lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om \
    or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw \
    ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// Processors, as Debian and others name them.
const ARCHITECTURES: [&str; 24] = [
    "aarch64", "alpha", "amd64", "arm", "arm64", "armel", "armhf", "armv7", "hppa", "i386", "i486",
    "i586", "i686", "ia64", "loong64", "mips", "mips64el", "mipsel", "ppc64el", "riscv64", "s390x",
    "sparc64", "x64", "x86_64",
];

/// Versions that have names.
const NAMED_VERSIONS: [&str; 13] = [
    "current", "dev", "devel", "head", "latest", "lts", "main", "master", "next", "nightly", "old",
    "stable", "unstable",
];

/// Folders below which a plain number is a version; elsewhere it may be anything.
const VERSIONED: [&str; 15] = [
    "api",
    "archive",
    "doc",
    "docs",
    "documentation",
    "guide",
    "guides",
    "help",
    "javase",
    "manual",
    "manuals",
    "reference",
    "release",
    "releases",
    "version",
];

/// Views of a page that show the same.
const VIEWS: [&str; 7] = ["amp", "mobile", "plain", "print", "printable", "printer", "text"];

/// Names of parameters that choose such a view, if their value is one or `1`, `true` or nothing.
const VIEW_NAMES: [&str; 7] = ["amp", "format", "output", "print", "printable", "theme", "view"];

/// Names of parameters that choose a language.
const LANGUAGE_NAMES: [&str; 5] = ["hl", "lang", "language", "locale", "uselang"];

/// Segments of a path that are looked at; longer paths have no editions.
const SEGMENTS_MAX: usize = 32;

/// Returns a URL without its scheme and all that names an edition: pages of one site with
/// equal ones are editions of one page, or at least called so by their site. Empty for a text that
/// is no URL.
///
/// Left out are languages (`/zh-CN/`, `index.ja.html`, `?lang=de`), versions (`/v2/`, `/3.11/`,
/// `/latest/`, `/docs/15/`), architectures (`/amd64/`), views (`/print/`, `?view=print`) and the
/// name of the index of a folder. A plain number is a version only below a folder such as `docs`:
/// elsewhere it tells pages apart.
///
/// ```
/// use uniqcrawl::urls::without_edition;
///
/// let page = without_edition("https://a.example/docs/15/index.html"); assert_eq!(page,
/// "a.example/docs"); assert_eq!(without_edition("https://a.example/de/docs/16/"), page);
/// assert_ne!(without_edition("https://a.example/docs/15/create.html"), page);
/// assert_ne!(without_edition("https://a.example/item/15/"),
/// without_edition("https://a.example/item/16/"));
/// ```
#[must_use]
pub fn without_edition(address: &str) -> String {
    let Some((_, rest)) = address.split_once("://") else { return String::new() };
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut segments = path.split('/');
    let mut kept = segments.next().unwrap_or_default().to_ascii_lowercase();
    if kept.is_empty() {
        return kept;
    }
    let segments: Vec<&str> = segments.collect();
    let last = segments.len().saturating_sub(1);
    let mut before = "";
    for (at, segment) in segments.iter().enumerate() {
        let file = at == last;
        if at < SEGMENTS_MAX && is_edition(segment, before) {
            continue;
        }
        before = segment;
        let name = if file { file_name(segment) } else { (*segment).to_owned() };
        if !name.is_empty() {
            kept.push('/');
            kept.push_str(&name);
        }
    }
    for (at, parameter) in query.split('&').filter(|one| !is_choice(one)).enumerate() {
        kept.push(if at == 0 { '?' } else { '&' });
        kept.push_str(parameter);
    }
    kept
}

/// Returns what [`without_edition`] makes of a URL without the numbers in the names of its
/// folders, which may be versions or anything.
///
/// `a.example/rt4/2012/p1.html` becomes `a.example/rt#/#/p1.html`.
#[must_use]
pub(crate) fn without_folder_numbers(edition: &str) -> String {
    let path = edition.split('?').next().unwrap_or_default();
    let Some((first, last)) = path.find('/').zip(path.rfind('/')) else {
        return edition.to_owned();
    };
    let mut out = edition[..first].to_owned();
    for c in edition[first..last].chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out + &edition[last..]
}

/// Tells whether a folder names an edition; `before` is the one above it.
fn is_edition(segment: &str, before: &str) -> bool {
    let lower = segment.to_ascii_lowercase();
    let named = [&ARCHITECTURES[..], &NAMED_VERSIONS[..], &VIEWS[..]];
    is_language(&lower)
        || named.iter().any(|names| names.contains(&lower.as_str()))
        || is_version(&lower)
        || (is_number(&lower) && VERSIONED.contains(&before.to_ascii_lowercase().as_str()))
}

/// `zh`, `zh-cn`, `zh_hant_tw`, `sr@latin`.
fn is_language(lower: &str) -> bool {
    let mut parts = lower.split(['-', '_', '@']);
    let language = parts.next().unwrap_or_default();
    language.len() == 2
        && LANGUAGES.split(' ').any(|known| known == language)
        && parts.clone().count() <= 2
        && parts.all(|part| matches!(part.len(), 2..=5) && part.bytes().all(is_letter_or_digit))
}

fn is_letter_or_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// `v2`, `3.11`, `v1.2.3`, `1_81`, `4.x`.
fn is_version(lower: &str) -> bool {
    let digits = lower.strip_prefix('v').unwrap_or(lower);
    let mut parts = digits.split(['.', '_']);
    let first = parts.next().unwrap_or_default();
    let more = parts.clone().count();
    is_number(first)
        && (more > 0 || digits.len() < lower.len())
        && more <= 3
        && parts.all(|part| is_number(part) || part == "x")
}

fn is_number(text: &str) -> bool {
    matches!(text.len(), 1..=4) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of a file without a language in it: `index.ja.html`, `faq.html.en`; empty for the index
/// of a folder.
fn file_name(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let of_page = |part: &str| matches!(part, "html" | "htm" | "xhtml" | "shtml" | "php" | "txt");
    let kept: Vec<&str> = (0..parts.len())
        .filter(|at| {
            let next = parts.get(at + 1).is_some_and(|next| of_page(next));
            let previous = *at > 0 && of_page(parts[at - 1]);
            *at == 0 || !(next || previous) || !is_language(&parts[*at].to_ascii_lowercase())
        })
        .map(|at| parts[at])
        .collect();
    let is_index = matches!(kept[0], "index" | "default") && kept[1..].iter().all(|p| of_page(p));
    if is_index { String::new() } else { kept.join(".") }
}

/// Tells whether a parameter chooses a language or a view; one without name and value does nothing.
fn is_choice(parameter: &str) -> bool {
    let lower = parameter.to_ascii_lowercase();
    let (name, value) = lower.split_once('=').unwrap_or((lower.as_str(), ""));
    let view = matches!(value, "" | "1" | "true" | "yes") || VIEWS.contains(&value);
    let chosen = VIEW_NAMES.contains(&name) && view && (!value.is_empty() || name != "format");
    lower.is_empty() || chosen || (LANGUAGE_NAMES.contains(&name) && is_language(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &[&str], expected: &str) {
        for address in addresses {
            assert_eq!(without_edition(address), expected, "{address}");
        }
    }

    #[test]
    fn languages_versions_architectures_and_views_are_left_out() {
        check(
            &[
                "http://h/manual/ch02.html",
                "https://H/en/manual/ch02.html",
                "http://h/zh-CN/manual/ch02.html",
                "http://h/manual/pt_BR/ch02.html#top",
                "http://h/manual/zh_Hant_TW/ch02.ja.html",
                "http://h/manual/ch02.html.de",
                "http://h/3.11/manual/ch02.html",
                "http://h/v2/manual/ch02.html",
                "http://h/manual/v1.2.3/ch02.html",
                "http://h/manual/4.x/ch02.html",
                "http://h/latest/manual/ch02.html?lang=fr",
                "http://h/amd64/manual/ch02.html?",
                "http://h/manual/15/ch02.html?print=1",
                "http://h/print/manual/ch02.html?view=print&hl=zh-tw",
            ],
            "h/manual/ch02.html",
        );
        check(&["http://h", "http://h/", "http://h/de/", "https://h/index.html"], "h");
        check(&["http://h:8080/p/index.php?id=7", "http://h:8080/p?id=7"], "h:8080/p?id=7");
    }

    #[test]
    fn what_tells_pages_apart_stays() {
        for (one, other) in [
            ("http://h/item/15/", "http://h/item/16/"),
            ("http://h/2024/05/daily.html", "http://h/2024/06/daily.html"),
            ("http://h/p/15.html", "http://h/p/16.html"),
            ("http://h/a?id=1", "http://h/a?id=2"),
            ("http://h/a?page=2", "http://h/a"),
            ("http://h/std/fail", "http://h/std/bad"),
            ("http://h/xx/a.html", "http://h/yy/a.html"),
            ("http://h/docs/12345/", "http://h/docs/12346/"),
            ("http://g/en/a.html", "http://h/en/a.html"),
            ("http://h/tool.pl", "http://h/tool.py"),
            ("http://h/a?format=", "http://h/a"),
            ("http://h/a?lang=klingon", "http://h/a"),
        ] {
            assert_ne!(without_edition(one), without_edition(other), "{one} {other}");
        }
        check(&["no URL", "", "http://", "http:///x"], "");
    }
}
