//! Redirects of pages: every hop is an address like any other.

use uniqcrawl::localweb::{Body, Page, Site};
use uniqcrawl::urls::{PageUrl, ScopeKind};

use crate::support::{Crawled, Web, config, page, prose};

fn html(seed: u64, links: &[&str]) -> String {
    page(&format!("Page {seed}"), &prose(seed, 80), links)
}

#[test]
fn every_form_of_location_is_followed_or_refused_with_a_reason() {
    // Status, what stands in the header, and where that leads; nothing for "nowhere".
    let forms = [
        (301, "target", Some("/in/target")),
        (302, "../up", Some("/up")),
        (303, "?q=1", Some("/in/3?q=1")),
        (307, "/abs#part", Some("/abs")),
        (308, "./dot/../flat", Some("/in/flat")),
        (301, "/caf\u{e9} 1", Some("/caf%C3%A9%201")),
        (302, "/%7Euser", Some("/~user")),
        (302, "", Some("/in/8")),
        (301, "data:text/html,hello", None),
        (302, "javascript:alert(1)", None),
        (302, "mailto:a@b", None),
        (302, "http://", None),
        (302, "http://[::1/", None),
    ];
    let names: Vec<String> = (1..=forms.len()).map(|n| format!("/in/{n}")).collect();
    let links: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut site = Site::new().html("/", html(1, &links));
    for (seed, ((status, location, leads), name)) in (10..).zip(forms.iter().zip(&names)) {
        site = site.page(name, Page::redirect(*status, location));
        if let Some(path) = leads.filter(|path| path != name) {
            site = site.html(path, html(seed, &[]));
        }
    }
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    for ((_, location, leads), name) in forms.iter().zip(&names) {
        let found = crawled.explain(&web.url(0, name));
        match leads {
            Some(path) => {
                assert_eq!(found.state, "redirect", "{location}");
                assert!(found.summary.ends_with(web.url(0, path).as_str()), "{}", found.summary);
                let there = crawled.explain(&web.url(0, path)).state;
                assert_eq!(there, if path == name { "redirect" } else { "stored" }, "{location}");
                assert_eq!(web.asked(path), 1, "{location}");
            }
            None => assert_eq!(found.reason, Some("bad_redirect"), "{location}"),
        }
    }
}

#[test]
fn bytes_beyond_ascii_in_a_header_are_escaped_as_they_are() {
    // What the header holds, and where that leads.
    let forms: [(&[u8], &str); 6] = [
        (b"/caf\xE9", "/caf%E9"),
        (b"/\xD0\xC2\xCE\xC5?class=\xD0\xC2", "/%D0%C2%CE%C5?class=%D0%C2"),
        (b"/half\xC3", "/half%C3"),
        ("/\u{65B0}\u{95FB}".as_bytes(), "/%E6%96%B0%E9%97%BB"),
        (b"/a%E9\xE9%zz b", "/a%E9%E9%zz%20b"),
        (b"list?q=\xE9#part\xE9", "/list?q=%E9"),
    ];
    let answer = |head: &[u8]| {
        let head = [b"HTTP/1.1 ", head, b"\r\nContent-Length: 0\r\n\r\n"].concat();
        Page::body(Body::Raw(head))
    };
    let names: Vec<String> = (1..=forms.len()).map(|n| format!("/{n}")).collect();
    let links: Vec<&str> =
        names.iter().map(String::as_str).chain(["/host", "/no-host", "/linked"]).collect();
    let mut site = Site::new().html("/", html(1, &links));
    for (seed, (name, (location, path))) in (10..).zip(names.iter().zip(&forms)) {
        let page = answer(&[b"301 Moved\r\nLocation: ", *location].concat());
        site = site.page(name, page).html(path, html(seed, &[]));
    }
    let linked = html(2, &[]);
    let head = b"200 OK\r\nContent-Type: text/html\r\nLink: </caf\xE9>; rel=canonical\r\n";
    let length = format!("Content-Length: {}\r\n\r\n{linked}", linked.len());
    let linked = [b"HTTP/1.1 ", &head[..], length.as_bytes()].concat();
    let site = site
        .page("/linked", Page::body(Body::Raw(linked)))
        .page("/host", answer("301 Moved\r\nLocation: http://b\u{FC}cher.test/".as_bytes()))
        .page("/no-host", answer(b"301 Moved\r\nLocation: http://b\xFCcher.test/"));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    for (name, (_, path)) in names.iter().zip(&forms) {
        let found = crawled.explain(&web.url(0, name)).summary;
        let target = web.url(0, path);
        assert!(found.ends_with(target.as_str()), "{found}");
        assert_eq!((crawled.explain(&target).state, web.asked(path)), ("stored", 1), "{path}");
    }
    let found = crawled.explain(&web.url(0, "/host")).summary;
    assert!(found.ends_with("http://xn--bcher-kva.test/"), "{found}");
    assert_eq!(crawled.explain(&web.url(0, "/no-host")).reason, Some("bad_redirect"));
    let facts = crawled.explain(&web.url(0, "/linked")).facts;
    let canonical = facts.into_iter().find(|(name, _)| name == "names as canonical").unwrap().1;
    assert!(canonical.contains(web.url(0, "/caf%E9").as_str()), "{canonical}");
}

#[test]
fn every_hop_is_checked_for_scope_robots_and_address_before_it_is_asked() {
    let web = Web::start(2, |bases| {
        let out = format!("{}/out", bases[1]);
        let site = Site::new()
            .robots("User-agent: *\nDisallow: /no\n")
            .html("/", html(1, &["/to-no", "/to-out", "/to-private"]))
            .page("/to-no", Page::redirect(301, "/hop"))
            .page("/hop", Page::redirect(301, "/no"))
            .html("/no", html(2, &[]))
            .page("/to-out", Page::redirect(302, &out))
            .page("/to-private", Page::redirect(302, "http://169.254.169.254/latest"));
        vec![site, Site::new().html("/out", html(3, &[]))]
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds()[..1]);
    assert_eq!((web.asked("/hop"), web.asked("/no"), web.web.requests_of(1).len()), (1, 0, 0));
    assert_eq!(crawled.explain(&web.url(0, "/no")).reason, Some("robots_disallowed"));
    assert_eq!(crawled.explain(&web.url(1, "/out")).reason, Some("out_of_scope"));
    let mut wide = config();
    wide.crawl.scope = ScopeKind::Any;
    let crawled = Crawled::new();
    crawled.run(&wide, &web.seeds()[..1]);
    assert_eq!(crawled.explain(&web.url(1, "/out")).state, "stored");
    let private = PageUrl::parse("http://169.254.169.254/latest").unwrap();
    assert_eq!(crawled.explain(&private).reason, Some("address_refused"));
}

#[test]
fn permanent_redirects_are_aliases_and_nothing_is_fetched_twice() {
    let mut site = Site::new()
        .html("/", html(1, &["/story", "/301", "/308", "/302", "/303", "/307", "/far"]))
        .html("/story", html(2, &[]))
        .page("/far", Page::redirect(301, "/308"));
    for status in [301, 302, 303, 307, 308] {
        site = site.page(&format!("/{status}"), Page::redirect(status, "/story"));
    }
    let web = Web::one(site);
    let crawled = Crawled::new();
    let report = crawled.run(&config(), &web.seeds());
    assert_eq!((report.pages, report.redirects, web.asked("/story")), (2, 6, 1));
    let alias = |path: &str| {
        let found = crawled.explain(&web.url(0, path));
        found.facts.into_iter().find(|(name, _)| name == "alias of docId").map(|(_, id)| id)
    };
    let facts = crawled.explain(&web.url(0, "/story")).facts;
    let id = facts.into_iter().find(|(name, _)| name == "docId").map(|(_, id)| id);
    assert!(id.is_some());
    for path in ["/301", "/308", "/far"] {
        assert_eq!(alias(path), id, "{path}");
    }
    for path in ["/302", "/303", "/307"] {
        assert_eq!(alias(path), None, "{path}");
        assert!(crawled.explain(&web.url(0, path)).summary.contains("for the time being"));
    }
    crawled.run(&config(), &web.seeds());
    assert!(web.web.targets(0).values().all(|times| *times == 1));
}
