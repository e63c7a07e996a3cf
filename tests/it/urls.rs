//! Normal form, scope and odd shapes of addresses.

use std::path::Path;

use proptest::prelude::*;
use uniqcrawl::urls::{Normalize, PageUrl, Scope, ScopeKind, pattern};

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

#[test]
fn forms_of_one_address_are_one() {
    for form in [
        "http://EXAMPLE.com:80/../a/%7Eb?",
        "http://example.com/a/~b#part",
        "http://user:word@example.com/a/./~b",
        "http://example.com./a/%7eb",
        " http://example.com/a/~b\n",
        "http:\\\\example.com\\a\\~b",
        "http://example.com/a/~b?utm_source=x&gclid=1",
    ] {
        assert_eq!(url(form).as_str(), "http://example.com/a/~b", "{form}");
    }
    assert_eq!(
        url("http://例子.cn/目录?q=词").as_str(),
        "http://xn--fsqu00a.cn/%E7%9B%AE%E5%BD%95?q=%E8%AF%8D"
    );
    assert_eq!(url("http://h/a%2fb?x=%2f&utm_id=3&y").as_str(), "http://h/a%2Fb?x=%2F&y");
    assert_eq!(url("http://h/100%").as_str(), "http://h/100%");
}

#[test]
fn forms_that_may_differ_stay_apart() {
    let forms = [
        "http://h/a",
        "http://h/a/",
        "http://h/A",
        "https://h/a",
        "http://h/a?x=1&y=2",
        "http://h/a?y=2&x=1",
        "http://www.h/a",
        "http://h:81/a",
    ];
    let all: std::collections::HashSet<_> = forms.iter().map(|form| url(form)).collect();
    assert_eq!(all.len(), forms.len());
}

#[test]
fn what_is_no_web_address_is_named() {
    for bad in ["example.com", "mailto:a@b", "ftp://h/", "http://", "http://[::1", "/a"] {
        let error = PageUrl::parse(bad).unwrap_err().to_string();
        assert!(error.contains(bad), "{error}");
    }
}

#[test]
fn a_host_is_scheme_name_and_port() {
    assert_eq!(url("https://h:443/a?b").host_key().as_str(), "https://h");
    assert_eq!(url("http://h:8080/a").host_key().as_str(), "http://h:8080");
    assert_eq!(
        url("http://[::1]:81/").host_key().robots_url().as_str(),
        "http://[::1]:81/robots.txt"
    );
    assert_eq!(url("http://h/a/b?c=d").path_and_query(), "/a/b?c=d");
}

#[track_caller]
fn scope(kind: ScopeKind, inside: &[&str], outside: &[&str]) {
    let seeds = [url("http://www.example.co.uk/docs/index.html"), url("http://127.0.0.1:81/x/")];
    let scope = Scope::new(kind, &seeds);
    for text in inside {
        assert!(scope.contains(&url(text)), "{text} is in {kind:?}");
    }
    for text in outside {
        assert!(!scope.contains(&url(text)), "{text} is not in {kind:?}");
    }
}

#[test]
fn each_scope_holds_what_it_says() {
    scope(
        ScopeKind::Host,
        &["https://www.example.co.uk/", "http://127.0.0.1:81/"],
        &["http://example.co.uk/", "http://127.0.0.1/", "http://127.0.0.1:82/"],
    );
    scope(
        ScopeKind::Domain,
        &["http://example.co.uk/", "http://a.b.example.co.uk:8080/"],
        &["http://other.co.uk/", "http://127.0.0.1:82/"],
    );
    scope(
        ScopeKind::Prefix,
        &[
            "http://www.example.co.uk/docs/a/b?c",
            "https://www.example.co.uk/docs/",
            "http://127.0.0.1:81/x/y",
        ],
        &["http://www.example.co.uk/doc", "http://www.example.co.uk/", "http://127.0.0.1:81/xy"],
    );
    scope(ScopeKind::Any, &["http://anything.test/"], &[]);
}

/// One rule on, then off, with all others as they are by default.
#[track_caller]
fn rule(set: fn(&mut Normalize, bool), form: &str, on: &str, off: &str) {
    for (state, wanted) in [(true, on), (false, off)] {
        let mut rules = Normalize::default();
        set(&mut rules, state);
        let found = PageUrl::parse_with(form, &rules).unwrap();
        assert_eq!(found.as_str(), wanted, "{form} with the rule {state}");
    }
}

#[test]
fn escapes_host_dots_and_empty_parts_each_have_a_rule() {
    rule(
        |r, on| r.normal_escapes = on,
        "http://h/%7eb%2f?q=%7e%c3",
        "http://h/~b%2F?q=~%C3",
        "http://h/%7eb%2f?q=%7e%c3",
    );
    // Not a `~` in the end, nor one at the second time.
    rule(
        |r, on| r.normal_escapes = on,
        "http://h/%%37E%25%37E",
        "http://h/%%37E%257E",
        "http://h/%%37E%25%37E",
    );
    rule(|r, on| r.drop_host_dot = on, "http://h../a", "http://h/a", "http://h../a");
    rule(|r, on| r.drop_empty_query = on, "http://h/a?", "http://h/a", "http://h/a?");
    rule(|r, on| r.drop_empty_query = on, "http://h/a?#x", "http://h/a", "http://h/a?");
    rule(
        |r, on| r.drop_empty_parameters = on,
        "http://h/?&a=1&&b=&",
        "http://h/?a=1&b=",
        "http://h/?&a=1&&b=&",
    );
    rule(
        |r, on| r.unescape_ampersands = on,
        "http://h/?a=1&amp;b=2&AMP;amp;c&amp%3bd",
        "http://h/?a=1&b=2&c&d",
        "http://h/?a=1&amp;b=2&AMP;amp;c&amp%3Bd",
    );
    // A parameter that is called `amp` stays.
    rule(
        |r, on| r.unescape_ampersands = on,
        "http://h/?a&amp=1",
        "http://h/?a&amp=1",
        "http://h/?a&amp=1",
    );
}

#[test]
fn tracking_parameters_are_those_of_the_list() {
    let set: fn(&mut Normalize, bool) = |r, on| r.drop_tracking_parameters = on;
    rule(
        set,
        "http://h/?utm_source=x&a=1&FBCLID=2",
        "http://h/?a=1",
        "http://h/?utm_source=x&a=1&FBCLID=2",
    );
    rule(set, "http://h/?spm=a.b.c&gclid=3", "http://h/", "http://h/?spm=a.b.c&gclid=3");
    rule(
        set,
        "http://h/?amp;utm_id=3&x=utm_id",
        "http://h/?x=utm_id",
        "http://h/?utm_id=3&x=utm_id",
    );
    // Names that only begin alike, or stand as a value, are content.
    rule(
        set,
        "http://h/?spmx=1&gclids=2&u=utm_a",
        "http://h/?spmx=1&gclids=2&u=utm_a",
        "http://h/?spmx=1&gclids=2&u=utm_a",
    );
    let own = Normalize {
        tracking_parameters: vec!["from".into(), "x_*".into()],
        ..Normalize::default()
    };
    let found = PageUrl::parse_with("http://h/?from=1&x_1=2&utm_a=3", &own).unwrap();
    assert_eq!(found.as_str(), "http://h/?utm_a=3");
}

#[test]
fn sessions_are_taken_out_of_query_and_path() {
    let set: fn(&mut Normalize, bool) = |r, on| r.drop_session_ids = on;
    let same: fn(&str) = |form| rule(|r, on| r.drop_session_ids = on, form, form, form);
    let id = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    for (form, on) in [
        ("http://h/a?PHPSESSID=x&b=1", "http://h/a?b=1"),
        ("http://h/a;jsessionid=AB12.node?b", "http://h/a?b"),
        ("http://h/a;JSESSIONID=AB12/b;x=1", "http://h/a/b;x=1"),
        ("http://h/?ASPSESSIONIDQQ=x&CFID=1&CFTOKEN=2", "http://h/"),
        ("http://h/(S(0a1b2c3d4e5f60718293a4b5))/page.aspx", "http://h/page.aspx"),
        ("http://h/x/(A(1)S(0a1b2c3d4e5f60718293a4b5))", "http://h/x/"),
        (&format!("http://h/v?t=1&sid={id}"), "http://h/v?t=1"),
        (&format!("http://h/v;sid={id}/x"), "http://h/v/x"),
        // What is left may be no segment any more.
        ("http://h/a/.;jsessionid=1/b", "http://h/a/b"),
    ] {
        rule(set, form, on, form);
    }
    // A story, a talk at a conference and a folder in brackets are content.
    same("http://h/?sid=1234");
    same("http://h/?sid=5f3e0a1b2c3d4e5f60718293");
    same("http://h/?session_id=550e8400-e29b-41d4-a716-446655440000");
    same(&format!("http://h/?session={id}"));
    same("http://h/(S(short))/a");
    same("http://h/(Sun)/a;v=2");
}

#[test]
fn rules_that_are_not_safe_everywhere_are_off_and_work_when_on() {
    let all = "http://www.example.com//a//index.html?b=2&a=1";
    assert_eq!(url(all).as_str(), all);
    let docs: fn(&mut Normalize, bool) = |r, on| r.drop_default_documents = on;
    rule(docs, "http://h/a/Index.html?x", "http://h/a/?x", "http://h/a/Index.html?x");
    rule(docs, "http://h/index.html/a", "http://h/index.html/a", "http://h/index.html/a");
    let sort: fn(&mut Normalize, bool) = |r, on| r.sort_parameters = on;
    rule(sort, "http://h/?b=2&a=9&b=1", "http://h/?a=9&b=2&b=1", "http://h/?b=2&a=9&b=1");
    // A query that is no list of pairs is a text.
    rule(sort, "http://h/?page&a=1", "http://h/?page&a=1", "http://h/?page&a=1");
    rule(|r, on| r.merge_slashes = on, "http://h//a///b/", "http://h/a/b/", "http://h//a///b/");
    let www: fn(&mut Normalize, bool) = |r, on| r.drop_www = on;
    rule(www, "http://www.example.co.uk/", "http://example.co.uk/", "http://www.example.co.uk/");
    rule(www, "http://www.com/", "http://www.com/", "http://www.com/");
    rule(www, "http://www.co.uk/", "http://www.co.uk/", "http://www.co.uk/");
    let https: fn(&mut Normalize, bool) = |r, on| r.upgrade_http = on;
    rule(https, "http://h/a", "https://h/a", "http://h/a");
    rule(https, "http://h:80/a", "https://h/a", "http://h/a");
    rule(https, "http://h:8080/a", "http://h:8080/a", "http://h:8080/a");
    let bang: fn(&mut Normalize, bool) = |r, on| r.escape_hashbang = on;
    rule(bang, "http://h/a#!k=v&x%y", "http://h/a?_escaped_fragment_=k=v%26x%25y", "http://h/a");
    rule(bang, "http://h/a?b#!c", "http://h/a?b&_escaped_fragment_=c", "http://h/a?b");
    rule(bang, "http://h/a#b!", "http://h/a", "http://h/a");
}

#[test]
fn addresses_are_read_as_browsers_read_them() {
    for (form, wanted) in [
        ("http://h/a\tb\n/c", "http://h/ab/c"),
        ("HTTP:\\\\H\\a\\..\\b", "http://h/b"),
        ("http:h/a", "http://h/a"),
        ("http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433./", "http://127.0.0.1/"),
        ("http://BÜCHER.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
        ("http://ｅｘ.com/", "http://ex.com/"),
        ("http://h/a/%2e%2E/b/%2e", "http://h/b/"),
        ("http://u:p@h:443/", "http://h:443/"),
    ] {
        assert_eq!(url(form).as_str(), wanted, "{form}");
    }
    for bad in ["http://./", "http://256.1.1.1/", "http://h:65536/", "http://a b/", "http://%zz/"] {
        assert!(PageUrl::parse(bad).is_err(), "{bad}");
    }
    let page = url("http://h/a/b?c");
    let join = |href: &str| page.join(href, &Normalize::default()).unwrap().to_string();
    assert_eq!(join("d"), "http://h/a/d");
    assert_eq!(join("?d&amp;e"), "http://h/a/b?d&e");
    assert_eq!(join("//other/x/../y"), "http://other/y");
    assert_eq!(join(""), "http://h/a/b?c");
}

#[test]
fn a_pattern_forgets_numbers_hashes_and_values() {
    let id = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    for (address, wanted) in [
        ("http://h/", "/"),
        ("http://h/2024/05/story-17.html", "/0/0/story-0.html"),
        (&format!("http://h/x/{id}"), "/x/*"),
        (&format!("http://h/x/{id}.jpg"), "/x/*.jpg"),
        ("http://h/550e8400-e29b-41d4-a716-446655440000/", "/*/"),
        ("http://h/missing/3f8941ae-2.html", "/missing/*-0.html"),
        ("http://h/facade/12345678/abc1", "/facade/0/abc0"),
        ("http://h/p?b=1&a=2&a=3", "/p?a&b"),
        ("http://h/p?f[10]=1&f[11]=2", "/p?f[0]&f[0]"),
        ("http://h/%E4%BD%A0-5", "/%E4%BD%A0-0"),
        ("http://h/a-title-of-words", "/a-title-of-words"),
    ] {
        assert_eq!(pattern(&url(address)), wanted, "{address}");
    }
}

#[test]
fn rules_survive_their_stored_form_and_differences_are_named() {
    let rules = Normalize::default();
    let again = Normalize::from_stored(&rules.to_stored()).unwrap();
    assert_eq!(again, rules);
    assert_eq!(rules.difference(&again), None);
    let other = Normalize { merge_slashes: true, ..again };
    let wanted = ("merge_slashes".to_owned(), "false".to_owned(), "true".to_owned());
    assert_eq!(rules.difference(&other), Some(wanted));
    // A rule that a store does not name is as by default.
    assert_eq!(Normalize::from_stored("{}"), Some(rules));
    assert_eq!(Normalize::from_stored("no rules"), None);
}

/// Every rule on or off.
fn rules() -> impl Strategy<Value = Normalize> {
    any::<[bool; 12]>().prop_map(|on| Normalize {
        normal_escapes: on[0],
        drop_host_dot: on[1],
        drop_empty_query: on[2],
        drop_empty_parameters: on[3],
        unescape_ampersands: on[4],
        drop_tracking_parameters: on[5],
        drop_session_ids: on[6],
        drop_default_documents: on[7],
        sort_parameters: on[8],
        merge_slashes: on[9],
        drop_www: on[10],
        upgrade_http: on[11],
        escape_hashbang: on[0] != on[11],
        ..Normalize::default()
    })
}

/// Pieces that rules are about.
const PIECES: [&str; 53] = [
    "/",
    "//",
    "\\",
    ".",
    "..",
    "%",
    "%2",
    "%2e",
    "%2F",
    "%7E",
    "%25",
    "37E",
    "E",
    "?",
    "&",
    "&amp;",
    "amp;",
    "amp%3B",
    "=",
    "utm_x=1",
    "spm",
    ";",
    ";jsessionid=1",
    "jsessionid",
    "PHPSESSID=",
    "sid=",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "(S(0a1b2c3d4e5f60718293a4b5))",
    "#",
    "#!",
    "index.html",
    "www.",
    "a",
    "例",
    " ",
    "\t",
    "+",
    ":80",
    "@",
    "'",
    "\"",
    "|",
    "^",
    "{",
    "�",
    "2031-05",
    "2031",
    "05",
    "month=",
    "year=",
    "next",
    "calendar",
    "25",
];

/// Hosts that rules are about.
const HOSTS: [&str; 9] = [
    "h",
    "www.example.com",
    "example.co.uk.",
    "www.www.h.",
    "1.2.3.4",
    "[::1]",
    "例.cn",
    "h..",
    "",
];

/// Those pieces in any order.
fn odd_address() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    let rest = prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat());
    let schemes = prop::sample::select(vec!["http://", "https://", "HTTP:", "http:///"]);
    (schemes, prop::sample::select(HOSTS.to_vec()), rest)
        .prop_map(|(scheme, host, rest)| format!("{scheme}{host}/{rest}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn the_normal_form_of_a_normal_form_is_itself(text in odd_address(), rules in rules()) {
        if let Ok(once) = PageUrl::parse_with(&text, &rules) {
            let twice = PageUrl::parse_with(once.as_str(), &rules).unwrap();
            prop_assert_eq!(once.as_str(), twice.as_str(), "{}", text);
            prop_assert_eq!(PageUrl::parse_stored(once.as_str()), Some(once.clone()));
            prop_assert!(once.as_str().is_ascii() && !once.as_str().contains('#'));
            let _ = (pattern(&once), once.host_key().domain());
            let _ = uniqcrawl::urls::ShapeLimits::default().odd_shape(&once, 1_795_262_400_000);
        }
    }

    #[test]
    fn no_text_makes_the_rules_panic(text in any::<String>(), rules in rules()) {
        let page = url("http://h/a/b");
        if let Ok(found) = page.join(&text, &rules) {
            let again = PageUrl::parse_with(found.as_str(), &rules).unwrap();
            prop_assert_eq!(found, again);
        }
        let _ = PageUrl::parse_with(&text, &rules);
    }
}

/// Inputs of the Web Platform Tests that the parser below us refuses where the standard, since
/// 2026, takes them as they are: labels that are no valid Punycode. The list may only shrink.
const WPT_KNOWN: [&str; 7] = [
    "http://a.b.c.xn--pokxncvks",
    "http://10.0.0.xn--pokxncvks",
    "http://a.b.c.XN--pokxncvks",
    "http://a.b.c.Xn--pokxncvks",
    "http://10.0.0.XN--pokxncvks",
    "http://10.0.0.xN--pokxncvks",
    "https://xn--/",
];

#[test]
fn the_web_platform_tests_are_passed() {
    let Some(file) = std::env::var_os("UNIQCRAWL_WPT_URLS") else {
        eprintln!(
            "UNIQCRAWL_WPT_URLS does not name an urltestdata.json: only own cases are checked"
        );
        return;
    };
    let text = std::fs::read_to_string(Path::new(&file)).unwrap();
    let cases: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let (mut checked, mut failed) = (0, Vec::new());
    for case in cases.iter().filter(|case| case.is_object()) {
        let field = |name: &str| case[name].as_str().unwrap_or_default();
        let base = case["base"].as_str().filter(|base| *base != "about:blank");
        let base = base.map(|base| PageUrl::parse_with(base, Normalize::none()));
        // A page that is no web page has no links for us.
        if matches!(base, Some(Err(_))) {
            continue;
        }
        let input = field("input");
        let read = |rules: &Normalize| match &base {
            Some(Ok(base)) => base.join(input, rules).ok(),
            _ => PageUrl::parse_with(input, rules).ok(),
        };
        let is_web = case["failure"].is_null() && matches!(field("protocol"), "http:" | "https:");
        let parts = ["protocol", "host", "pathname", "search"].map(field);
        let wanted = is_web.then(|| format!("{}//{}{}{}", parts[0], parts[1], parts[2], parts[3]));
        let found = read(Normalize::none()).map(|url| url.to_string());
        // The standard's `search` does not tell an empty query from none.
        let found = found.map(|url| url.trim_end_matches('?').to_owned());
        let usual = read(&Normalize::default());
        let again = usual.as_ref().map(|usual| url(usual.as_str()));
        checked += 1;
        if (found != wanted || usual != again) && !WPT_KNOWN.contains(&input) {
            failed.push(format!("{input:?}: {found:?}, not {wanted:?}; {usual:?}, {again:?}"));
        }
    }
    assert!(checked > 500, "{checked} cases");
    assert_eq!(failed, Vec::<String>::new());
}
