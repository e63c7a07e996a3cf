//! Feeds and the heads of pages: what they lead to.

use uniqcrawl::localweb::{Page, Site};

use crate::sitemaps::{hidden, stored, text};
use crate::support::{Crawled, Web, config, page};

#[test]
fn feeds_are_read_as_what_they_are_and_have_a_limit() {
    let rss = "<?xml version='1.0'?><rss><channel><item><link>/p/1</link></item></channel></rss>";
    let atom = "<feed><entry><link href='/p/2'/></entry></feed>";
    let json = "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"url\":\"/p/3\"}]}";
    let feeds = |count: usize| -> String {
        (0..count)
            .map(|n| format!("<link rel=alternate type='Application/RSS+xml' href='/c{n}'>"))
            .collect()
    };
    let head = "<link rel='alternate' type='application/rss+xml' href='/rss'>\
        <link rel='alternate home' type='application/atom+xml' href='/atom'>";
    let front = page("Front", &text(9), &["/plain.xml", "/json"]);
    let front = front.replace("</head>", &format!("{head}{}</head>", feeds(9)));
    let site = hidden(5)
        .html("/", front)
        .page("/rss", Page::bytes("application/rss+xml", rss))
        .page("/atom", Page::bytes("text/html", atom))
        .page("/json", Page::bytes("application/feed+json", json))
        .page("/plain.xml", Page::bytes("text/xml", rss.replace("/p/1", "/p/4")))
        .page(
            "/c0",
            Page::bytes("application/rss+xml", rss.replace("/p/1", "/p/5"))
                .header("X-Robots-Tag", "nofollow"),
        )
        .page("/c1", Page::bytes("application/rss+xml", "<html><p>none</p></html>"));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    stored(&web, &crawled, &["/p/1", "/p/2", "/p/3", "/p/4"]);
    assert_eq!(crawled.clusters().len(), 5);
    for path in ["/rss", "/atom", "/json", "/plain.xml"] {
        assert_eq!(crawled.explain(&web.url(0, path)).reason, Some("feed"), "{path}");
    }
    assert_eq!(crawled.explain(&web.url(0, "/p/5")).reason, Some("nofollow"));
    assert_eq!(crawled.explain(&web.url(0, "/c1")).reason, Some("not_a_page"));
    // Ten feeds of a host, and eleven are linked to.
    assert_eq!((web.asked("/c7"), web.asked("/c8")), (1, 0));
    assert_eq!(crawled.explain(&web.url(0, "/c8")).reason, Some("feed_limit"));
    let mut config = config();
    config.frontier.discover.feeds = false;
    web.web.forget();
    Crawled::new().run(&config, &web.seeds());
    assert_eq!((web.asked("/rss"), web.asked("/p/4")), (0, 0));
}

#[test]
fn the_heads_of_pages_lead_on() {
    let heads = [
        ("next", "<link rel='NEXT' href='next'>"),
        ("prev", "<link rel=prev href=prev>"),
        ("de", "<link rel='alternate' hreflang='de' href='de'>"),
        ("canonical", "<link rel=canonical href='canonical'>"),
        ("r1", "<meta http-equiv=Refresh content='5; URL = \"r1\" '>"),
        ("r2", "<meta http-equiv='refresh' content='0;r2'>"),
        ("r3", "<meta http-equiv='refresh' content='0.5 , url=r3'>"),
    ];
    let none = "<link rel=alternate media=print href=print><link rel=stylesheet href=style>\
        <meta http-equiv=refresh content=30><meta name=refresh content='0;url=name'>";
    let head: String = heads.iter().map(|(_, tag)| *tag).collect();
    let html = page("Front", &text(1), &["link"]);
    let html = html
        .replace("<head>", &format!("<head><base href='/below/'><base href='/x/'>{head}{none}"));
    let site =
        heads.iter().enumerate().fold(Site::new().html("/", html), |site, (n, (name, _))| {
            site.html(&format!("/below/{name}"), page(name, &text(n as u64 + 10), &[]))
        });
    let odd = page("Odd", &text(2), &["/end"]).replace("<head>", "<head><base href='data:x'>");
    let site = site.html("/below/link", odd).html("/end", page("End", &text(3), &[]));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    for (name, _) in heads {
        stored(&web, &crawled, &[&format!("/below/{name}")]);
    }
    stored(&web, &crawled, &["/below/link", "/end"]);
    assert_eq!(web.web.targets(0).len(), 3 + heads.len() + 1, "{:?}", web.web.targets(0));
}
