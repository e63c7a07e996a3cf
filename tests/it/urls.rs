//! Normal form, scope and odd shapes of addresses.

use uniqcrawl::urls::{Limits, Normalize, OddShape, PageUrl, Scope, ScopeKind};

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
    let keep = Normalize { drop_tracking_parameters: false };
    let kept = PageUrl::from_url("http://h/?utm_a=1".parse().unwrap(), keep).unwrap();
    assert_eq!(kept.as_str(), "http://h/?utm_a=1");
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

#[test]
fn odd_shapes_are_told_on_both_sides_of_each_limit() {
    let limits = Limits { url_bytes_max: 60, path_segments_max: 4, ..Limits::default() };
    let odd = |path: &str| limits.odd_shape(&url(&format!("http://h/{path}")));
    assert_eq!(odd(&"a".repeat(51)), None);
    assert_eq!(odd(&"a".repeat(52)), Some(OddShape::TooLong));
    assert_eq!(odd("a/b/c/d"), None);
    assert_eq!(odd("a/b/c/d/e"), Some(OddShape::TooDeep));
    assert_eq!(odd("a/x/a/a"), None);
    assert_eq!(odd("a/a/a/a"), Some(OddShape::RepeatedSegment));
    assert_eq!(odd("?p=1&p=2&p=3&p=4&p=5"), None);
    assert_eq!(odd("?p=1&p=2&p=3&p=4&p=5&p=6"), Some(OddShape::RepeatedParameter));
}
