//! What patterns match, what is wrong with those that are none, and what is kept out.

use super::*;

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn patterns(all: &[&str]) -> Vec<Pattern> {
    all.iter().map(|text| text.parse().unwrap()).collect()
}

fn filter(include: &[&str], exclude: &[&str], host: Vec<HostFilter>) -> Filter {
    let (include, exclude) = (patterns(include), patterns(exclude));
    Filter::new(&FilterConfig { include, exclude, host }).unwrap()
}

fn of_host(host: &str, include: &[&str], exclude: &[&str]) -> HostFilter {
    let (include, exclude) = (patterns(include), patterns(exclude));
    HostFilter { host: host.parse().unwrap(), include, exclude }
}

/// The URLs that a pattern matches, and some that it does not.
#[track_caller]
fn check(pattern: &str, matches: &[&str], others: &[&str]) {
    let list = PatternSet::new("exclude", &patterns(&[pattern])).unwrap();
    for (expected, all) in [(true, matches), (false, others)] {
        for text in all {
            assert_eq!(list.matches(&url(text)), expected, "{pattern} and {text}: {list:?}");
        }
    }
}

#[test]
fn a_glob_matches_the_whole_address() {
    check(
        "https://example.org/blog/*",
        &["https://example.org/blog/", "https://example.org/blog/a/b?c=d"],
        &[
            "https://example.org/blog",
            "http://example.org/blog/",
            "https://a.org/?example.org/blog/",
        ],
    );
    check(
        "https://example.org/a",
        &["https://example.org/a"],
        &["https://example.org/a/", "https://example.org/ab", "https://example.org/a?b"],
    );
    check("*.pdf", &["http://h/a.pdf", "http://h/a/b.pdf"], &["http://h/a.pdf?x", "http://h/apdf"]);
    check("*/tag/*", &["http://h/tag/", "http://h/a/tag/b"], &["http://h/tag", "http://h/tags/a"]);
    check("*word*", &["http://word.org/", "http://h/?a=swords"], &["http://h/wor/d"]);
    check("*", &["http://h/"], &[]);
    check("**/a**", &["http://h/a", "http://h/b/ac"], &["http://h/b"]);
    check("glob:*/a", &["http://h/a"], &["http://h/ab"]);
}

#[test]
fn a_glob_without_a_scheme_is_for_both_and_one_of_a_path_for_all_hosts() {
    check(
        "example.org/a*",
        &["https://example.org/a", "http://example.org/ab/c"],
        &["http://www.example.org/a", "http://example.org:8080/a", "http://h/example.org/a"],
    );
    let private = ["http://h/private/", "https://example.org:8443/private/a?b"];
    check("/private/*", &private, &["http://h/a/private/", "http://h/?/private/"]);
    check("/", &["http://h/", "https://example.org/"], &["http://h/a"]);
    check("*://h/a", &["http://h/a", "https://h/a"], &["http://i/a"]);
    check("localhost:8080/a", &["http://localhost:8080/a"], &["http://localhost/a"]);
    check("[::1]:80/a", &["https://[::1]:80/a"], &["http://[::1]/b"]);
    // A host alone stands for all of its URLs, and * does not leave the host.
    let all = ["http://example.org/", "https://example.org/a?b"];
    check("example.org", &all, &["http://example.org.evil.test/", "http://a.example.org/"]);
    check("https://*.example.org", &["https://a.b.example.org/c"], &["https://h/a.example.org/"]);
    check("https://example.*/a", &["https://example.co.uk/a"], &["https://example.org/b/a"]);
    check("example.org?page=*", &["http://example.org/?page=2"], &["http://example.org/page=2"]);
}

#[test]
fn characters_of_addresses_stand_for_themselves_in_a_glob() {
    check(
        "*/list?page=*",
        &["http://h/list?page=2"],
        &["http://h/lis?page=2", "http://h/listXpage="],
    );
    check("*?f[0]=*", &["http://h/a?f[0]=b"], &["http://h/a?f0=b"]);
    check("*/a.b+c$", &["http://h/a.b+c$"], &["http://h/aXb+c$", "http://h/a.bbc"]);
    check(
        "*.{jpg,p{n,d}g}",
        &["http://h/a.jpg", "http://h/a.png", "http://h/a.pdg"],
        &["http://h/a.pg"],
    );
    check(r"*/a\*b\{c", &["http://h/?/a*b{c"], &["http://h/?/aXb{c"]);
    check("*/a}b,c", &["http://h/?/a}b,c"], &["http://h/?/a}b"]);
    // What URLs have as escapes may be written as it is read.
    check("*/新闻/*", &["http://h/新闻/1", "http://h/%e6%96%b0%E9%97%BB/"], &["http://h/新/1"]);
    check("*/%e6*", &["http://h/%E6%96%B0"], &["http://h/e6"]);
    check("*/a b", &["http://h/a b", "http://h/a%20b"], &["http://h/ab"]);
    check("HTTPS://Example.ORG/A", &["https://example.org/A"], &["https://example.org/a"]);
    check("https://新闻.中国/*", &["https://新闻.中国/a"], &["https://新.中国/a"]);
}

#[test]
fn a_regular_expression_matches_anywhere() {
    check("re:/tag/[0-9]+$", &["http://h/tag/12"], &["http://h/tag/a", "http://h/tag/12/"]);
    check("re:^https://", &["https://h/"], &["http://h/?https://"]);
    check(
        r"re:[?&](sort|view)=\w",
        &["http://h/?sort=a", "http://h/?a&view=b"],
        &["http://h/?resort=a"],
    );
    check("re:(?i)LOGIN", &["http://h/Login"], &["http://h/logon"]);
}

#[test]
fn what_is_no_pattern_says_why() {
    for (text, why) in [
        ("", "the pattern `` is empty"),
        ("re:", "`re:` is empty"),
        ("*\u{1b}[2J", "has control characters"),
        ("re:a(b", "`re:a(b` is no regular expression: unclosed group"),
        ("re:*", "repetition operator missing expression"),
        ("re:a(?=b)", "look-around"),
        ("re:(a{1000}){1000}", "too large when it is compiled"),
        ("re:/é", "%C3%A9 for é"),
        ("login", "a glob begins with a scheme, a host, `/` or `*`, as `*word*` does"),
        ("regex:ab", "a glob begins with"),
        ("*/a{b,c", "has a `{` without its `}`"),
        (r"*/a\", r"ends with a `\`"),
        ("*#top", "compared without what follows a #"),
        ("https://新*.中国/", "write it as URLs do, with xn--"),
    ] {
        let error = text.parse::<Pattern>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    assert!("*".repeat(2_000).parse::<Pattern>().is_ok());
    assert!("*".repeat(2_001).parse::<Pattern>().unwrap_err().to_string().contains("longer than"));
    for host in ["", "*", "a b", "example.org/a", "http://h", "*.*.org", "a@b", "h:x"] {
        assert!(host.parse::<HostPattern>().is_err(), "{host}");
    }
}

#[test]
fn what_excludes_wins_and_what_includes_leaves_nothing_else() {
    let both = filter(&["*/news/*", "re:/blog/"], &["*.pdf", "*/old/*"], vec![]);
    let told = |text: &str, asked| {
        both.keeps_out(&url(text), asked).map(|kept_out| match kept_out {
            KeptOut::Excluded(pattern, host) => format!("{pattern} {host:?}"),
            KeptOut::NotIncluded(host) => format!("none {host:?}"),
        })
    };
    assert_eq!(told("http://h/news/a", FilterScope::All), None);
    assert_eq!(told("http://h/blog/a", FilterScope::All), None);
    assert_eq!(told("http://h/news/a.pdf", FilterScope::All).unwrap(), "*.pdf None");
    assert_eq!(told("http://h/news/old/a", FilterScope::All).unwrap(), "*/old/* None");
    assert_eq!(told("http://h/about", FilterScope::All).unwrap(), "none None");
    assert_eq!(told("http://h/about", FilterScope::Excludes), None);
    assert_eq!(told("http://h/about.pdf", FilterScope::Excludes).unwrap(), "*.pdf None");
    let none = filter(&[], &[], vec![]);
    assert_eq!(none.keeps_out(&url("http://h/"), FilterScope::All), None);
}

#[test]
fn patterns_of_a_host_are_for_that_host() {
    let hosts = vec![
        of_host("example.org", &["*/docs/*"], &[]),
        of_host("*.example.org", &[], &["*/print/*"]),
        of_host("h:8080", &[], &["*"]),
        of_host("新闻.中国", &[], &["*/a"]),
        of_host("*.example.org", &["*/wiki/*"], &[]),
    ];
    let filter = filter(&["*/news/*"], &["*.pdf"], hosts);
    let is_kept_out = |text: &str| filter.keeps_out(&url(text), FilterScope::All).is_some();
    // Those that include stand for the general ones, and all that hold for a host are one list.
    for text in ["http://example.org/docs/a", "http://example.org/wiki/a", "http://h/news/a"] {
        assert!(!is_kept_out(text), "{text}");
    }
    for text in ["http://example.org/news/a", "http://a.b.example.org/docs/a", "http://h/docs/a"] {
        assert!(is_kept_out(text), "{text}");
    }
    assert!(!is_kept_out("http://a.b.example.org/wiki/a"));
    // Those that exclude add up.
    assert!(is_kept_out("http://a.example.org/wiki/print/a"));
    assert!(is_kept_out("http://example.org/docs/print/a"));
    assert!(is_kept_out("http://example.org/docs/a.pdf"));
    assert!(is_kept_out("http://h:8080/news/a") && !is_kept_out("http://h:8081/news/a"));
    assert!(is_kept_out("http://新闻.中国/news/a"));
    assert!(is_kept_out("http://notexample.org/docs/a"));
    let named = filter.keeps_out(&url("http://example.org/a"), FilterScope::All);
    let Some(KeptOut::NotIncluded(Some(host))) = named else { panic!("{named:?}") };
    assert_eq!(host.to_string(), "example.org");
}

#[test]
fn settings_are_written_as_they_are_read() {
    let text = "include = [\"*/a/*\"]\nexclude = [\"re:b$\"]\n\n[[host]]\nhost = \"*.h.org\"\n\
                include = []\nexclude = [\"/x/*\"]\n";
    let config: FilterConfig = toml::from_str(text).unwrap();
    assert_eq!(toml::to_string(&config).unwrap(), text);
    for (text, why) in [
        ("exclude = [\"a\"]", "the pattern `a` is no URL"),
        ("[[host]]\nhost = \"a b\"", "`a b` is no host"),
        ("[[host]]\nhost = \"h\"\nexlude = []", "unknown field `exlude`"),
        ("[[host]]\nexclude = []", "missing field `host`"),
    ] {
        let error = toml::from_str::<FilterConfig>(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// What a glob of `*` and literal text matches, step by step.
fn plain(glob: &[u8], text: &[u8]) -> bool {
    match glob.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| plain(rest, &text[skip..])),
        Some((first, rest)) => text.first() == Some(first) && plain(rest, &text[1..]),
    }
}

#[test]
fn a_thousand_patterns_at_once_match_as_each_alone_does() {
    let glob = |n: usize| match n % 4 {
        0 => format!("*/section-{n}/*"),
        1 => format!("*.ext{n}"),
        2 => format!("*/shop/*/item-{n}*"),
        _ => format!("http://host{n}.test/*/page"),
    };
    let globs: Vec<String> = (0..1_000).map(glob).collect();
    let all = PatternSet::new(
        "exclude",
        &patterns(&globs.iter().map(String::as_str).collect::<Vec<_>>()),
    );
    let all = all.unwrap();
    for n in 0..500 {
        let text = match n % 5 {
            0 => format!("http://h/a/section-{n}/b"),
            1 => format!("http://h/shop/a/b/item-{n}0"),
            2 => format!("http://host{n}.test/a/page"),
            3 => format!("http://h/a.ext{n}"),
            _ => format!("http://h/other/{n}?a=b"),
        };
        let expected = globs.iter().find(|glob| plain(glob.as_bytes(), text.as_bytes()));
        assert_eq!(
            all.first(&url(&text)).map(Pattern::as_str),
            expected.map(String::as_str),
            "{text}"
        );
    }
}
