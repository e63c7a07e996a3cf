//! Crawls that find pages by sitemaps, feeds and the heads of pages.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use uniqcrawl::base::units::{Size, Time};
use uniqcrawl::config::Config;
use uniqcrawl::corpus::explain::Explanation;
use uniqcrawl::localweb::{Body, Page, Site};
use uniqcrawl::store::Store;
use uniqcrawl::urls::{PageUrl, ScopeKind};

use crate::discover::{gzip, urlset};
use crate::support::{Crawled, Web, clusters, config, crawl as run, page, prose};

pub(crate) fn text(seed: u64) -> String {
    prose(seed, 60)
}

fn xml(text: impl Into<Vec<u8>>) -> Page {
    Page::bytes("application/xml", text)
}

/// A host with a front page without links, and pages that nothing but a list names.
pub(crate) fn hidden(count: u64) -> Site {
    (1..=count).fold(Site::new().html("/", page("Front", &text(0), &[])), |site, n| {
        site.html(&format!("/p/{n}"), page("P", &text(n), &[]))
    })
}

fn index(urls: &[String]) -> String {
    let urls: String =
        urls.iter().map(|url| format!("<sitemap><loc>{url}</loc></sitemap>")).collect();
    format!("<sitemapindex>{urls}</sitemapindex>")
}

fn fact(explanation: &Explanation, name: &str) -> Option<String> {
    explanation.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

#[track_caller]
pub(crate) fn stored(web: &Web, crawled: &Crawled, paths: &[&str]) {
    for path in paths {
        assert_eq!(crawled.explain(&web.url(0, path)).state, "stored", "{path}");
    }
}

#[test]
fn sitemaps_of_robots_txt_are_read_in_every_form_and_are_no_documents() {
    let web = Web::start(1, |bases| {
        let base = &bases[0];
        let at = |path: &str| format!("{base}{path}");
        let robots = format!(
            "User-agent: other\nDisallow: /\nSitemap: {base}/index.xml\nsitemap: /list.txt\n\
             User-agent: *\nDisallow: /no\nSITEMAP:{base}/no/map.xml\nSitemap: http://[bad\n"
        );
        let packed = gzip(urlset([at("/p/1"), at("/no/1")]).as_bytes());
        let children = [at("/a.xml.gz"), at("/b.xml"), at("/b.xml"), at("/index.xml")];
        let site = hidden(4)
            .robots(&robots)
            .page("/index.xml", xml(index(&children)))
            .page("/a.xml.gz", Page::bytes("application/x-gzip", packed.clone()))
            .page(
                "/b.xml",
                xml(gzip(urlset([at("/p/2")]).as_bytes())).header("Content-Encoding", "gzip"),
            )
            .page("/list.txt", Page::bytes("text/plain", format!("{base}/p/3\n{base}/p/4\n")));
        vec![site]
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    stored(&web, &crawled, &["/", "/p/1", "/p/2", "/p/3", "/p/4"]);
    assert_eq!(crawled.clusters().len(), 5, "lists are no documents");
    for path in ["/index.xml", "/a.xml.gz", "/b.xml", "/list.txt"] {
        let found = crawled.explain(&web.url(0, path));
        assert_eq!((found.reason, web.asked(path)), (Some("sitemap"), 1), "{path}");
    }
    assert_eq!(
        (web.asked("/no/map.xml"), web.asked("/no/1"), web.asked("/sitemap.xml")),
        (0, 0, 0)
    );
    assert_eq!(crawled.explain(&web.url(0, "/no/map.xml")).reason, Some("robots_disallowed"));
    let found = crawled.explain(&web.url(0, "/a.xml.gz"));
    assert_eq!(fact(&found, "read as").as_deref(), Some("sitemap"));
    assert_eq!(fact(&found, "entries").as_deref(), Some("2"));
    assert_eq!(fact(&found, "indexes above it").as_deref(), Some("1"));
    assert_eq!(fact(&found, "found on"), Some(web.url(0, "/index.xml").to_string()));
    let page = crawled.explain(&web.url(0, "/p/1"));
    assert_eq!(fact(&page, "found on"), Some(web.url(0, "/a.xml.gz").to_string()));
    assert_eq!(fact(&page, "linking hosts").as_deref(), Some("0"));
}

#[test]
fn the_usual_place_is_asked_once_if_robots_txt_names_none() {
    let web = Web::start(1, |bases| {
        let map = urlset([format!("{}/p/1", bases[0])]);
        vec![hidden(1).page("/sitemap.xml", xml(map))]
    });
    let mut config = config();
    let crawled = Crawled::new();
    crawled.run(&config, &web.seeds());
    assert_eq!(web.asked("/sitemap.xml"), 0, "it is turned off");
    config.frontier.discover.usual_place = true;
    let crawled = Crawled::new();
    crawled.run(&config, &web.seeds());
    stored(&web, &crawled, &["/", "/p/1"]);
    assert_eq!(web.asked("/sitemap.xml"), 1);
    let found = crawled.explain(&web.url(0, "/sitemap.xml"));
    assert_eq!(fact(&found, "asked for").as_deref(), Some("as a sitemap at the usual place"));

    for none in [Page::status(404), Page::html(page("Not found", &text(9), &[])), Page::status(403)]
    {
        let web = Web::one(hidden(0).page("/sitemap.xml", none));
        let crawled = Crawled::new();
        config.frontier.robots_ttl = Time::from_millis(300);
        let report = crawled.run(&config, &web.seeds());
        std::thread::sleep(Duration::from_millis(310));
        crawled.run(&config, &[web.seeds(), vec![web.url(0, "/p/1")]].concat());
        assert!(web.asked("/robots.txt") > 1);
        assert_eq!(web.asked("/sitemap.xml"), 1);
        assert_eq!(report.refused["no_sitemap"], 1);
        assert_eq!(crawled.clusters().len(), 1);
    }
    let web = Web::one(hidden(0).robots("Sitemap: /other.xml\n"));
    Crawled::new().run(&config, &web.seeds());
    assert_eq!((web.asked("/sitemap.xml"), web.asked("/other.xml")), (0, 1));
}

#[test]
fn faults_of_a_sitemap_cost_no_page_and_are_told() {
    let web = Web::start(1, |bases| {
        let map = urlset((0..5).map(|page| format!("{}/p/{page}", bases[0])));
        let map =
            map.replacen("</url>", "</url></url>", 1).replacen("</loc></url>\n</", "</loc></", 1);
        vec![hidden(5).robots("Sitemap: /map.xml\n").page("/map.xml", xml(map))]
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    for page in 0..5 {
        assert_ne!(crawled.explain(&web.url(0, &format!("/p/{page}"))).state, "unknown", "{page}");
    }
    let found = crawled.explain(&web.url(0, "/map.xml"));
    let faults = "1 end tags of what is not open, 1 elements without an end";
    assert_eq!(fact(&found, "faults read over").as_deref(), Some(faults));
    assert_eq!(fact(&found, "entries").as_deref(), Some("5"));
    assert_eq!(fact(&found, "not read to its end"), None);
}

#[test]
fn entries_of_other_sites_need_their_robots_txt_and_the_scope() {
    // The first host lists pages of the second, which names that sitemap, and of the third, which
    // does not; the fourth is out of scope, though it names the sitemap.
    let web = Web::start(4, |bases| {
        let map = format!("{}/map.xml", bases[0]);
        let entries = urlset((0..4).map(|host| format!("{}/p/1", bases[host])));
        let naming = format!("Sitemap: {map}\n");
        let mut sites: Vec<Site> = (0..4).map(|_| hidden(1).robots(&naming)).collect();
        sites[0] = hidden(1).robots(&naming).page("/map.xml", xml(entries));
        sites[2] = hidden(1);
        sites
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds()[..3]);
    let state = |host: usize| crawled.explain(&web.url(host, "/p/1"));
    assert_eq!((state(0).state, state(1).state), ("stored", "duplicate"));
    assert_eq!(state(2).reason, Some("off_site"));
    assert_eq!(state(3).reason, Some("out_of_scope"));
    assert!(web.web.requests_of(3).is_empty());
    // The sitemap may have been read before the robots.txt that names it: once more, then.
    assert!(web.asked("/map.xml") <= 2);
    let found = crawled.explain(&web.url(0, "/map.xml"));
    assert_eq!(fact(&found, "entries of other sites").as_deref(), Some("2"));
    assert_eq!(fact(&found, "named by").as_deref(), Some("robots.txt of 2 hosts"));
    // What only a stranger named comes in by a link.
    let web2 = Web::start(2, |bases| {
        let out = format!("{}/p/1", bases[1]);
        let site = hidden(0).robots("Sitemap: /map.xml\n").page("/map.xml", xml(urlset([&out])));
        vec![
            site.html("/", page("F", &text(3), &["/late"]))
                .html("/late", page("L", &text(4), &[&out])),
            hidden(1),
        ]
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web2.seeds());
    assert_eq!(crawled.explain(&web2.url(1, "/p/1")).reason, None);
}

#[test]
fn a_sitemap_may_lie_on_another_host_if_robots_txt_names_it() {
    let web = Web::start(3, |bases| {
        let map = urlset([format!("{}/p/1", bases[0]), format!("{}/p/1", bases[1])]);
        let children = [format!("{}/map.xml", bases[1]), format!("{}/map.xml", bases[2])];
        let robots = format!("Sitemap: {}/index.xml\n", bases[1]);
        let other = hidden(1)
            .robots("Sitemap: /own.xml\n")
            .page("/index.xml", xml(index(&children)))
            .page("/map.xml", xml(map.clone()));
        vec![hidden(1).robots(&robots), other, hidden(1).page("/map.xml", xml(map))]
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds()[..1]);
    stored(&web, &crawled, &["/", "/p/1"]);
    let other = web.web.targets(1);
    assert_eq!(other.keys().collect::<Vec<_>>(), ["/index.xml", "/map.xml", "/robots.txt"]);
    assert!(web.web.requests_of(2).is_empty(), "an index names no sitemaps of other sites");
    assert_eq!(crawled.explain(&web.url(2, "/map.xml")).reason, Some("out_of_scope"));
    assert_eq!(crawled.explain(&web.url(1, "/p/1")).reason, Some("out_of_scope"));
}

/// Crawls a host that names `/map.xml`. Returns what is said of that.
fn outcome(map: Page, change: impl FnOnce(&mut Config)) -> (Crawled, Web, Explanation) {
    let site = hidden(3).robots("Sitemap: /map.xml\n").page("/map.xml", map);
    let web = Web::one(site);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.retries_max = 1;
    change(&mut config);
    crawled.run(&config, &web.seeds());
    assert_eq!(crawled.explain(&web.url(0, "/")).state, "stored");
    let found = crawled.explain(&web.url(0, "/map.xml"));
    (crawled, web, found)
}

#[test]
fn bad_sitemaps_are_told_apart_and_what_was_read_counts() {
    let reason = |map: Page| outcome(map, |_| {}).2.reason;
    assert_eq!(reason(Page::status(404)), Some("http_error"));
    assert_eq!(reason(Page::html("<p>no</p>")), Some("not_a_sitemap"));
    assert_eq!(
        reason(Page::bytes("text/plain", "User-agent: *\nSitemap: http://h/\n")),
        Some("not_a_sitemap")
    );
    assert_eq!(reason(xml("")), Some("not_a_sitemap"));
    let named = |coding| reason(xml("<urlset/>").header("Content-Encoding", coding));
    assert_eq!(
        (named("UTF-8"), named("br, br, br, br, br")),
        (Some("sitemap"), Some("bad_encoding"))
    );
    assert_eq!(reason(Page::body(Body::Close)), Some("bad_response"));
    let bomb = gzip(format!("<urlset>{}", " ".repeat(12 << 20)).as_bytes());
    assert_eq!(reason(xml(bomb.clone())), Some("decompression_bomb"));
    assert_eq!(reason(xml(bomb).header("Content-Encoding", "gzip")), Some("decompression_bomb"));
    // A server that says gzip of a file that is not packed.
    let plain =
        xml("<urlset><url><loc>/p/1</loc></url></urlset>").header("Content-Encoding", "gzip");
    let (crawled, web, _) = outcome(plain, |_| {});
    stored(&web, &crawled, &["/p/1"]);
    let broken = xml("<urlset><url><loc>/p/1</loc></url><url><loc>/p/2</loc></url><url><loc>/p/");
    let (crawled, web, found) = outcome(broken, |_| {});
    stored(&web, &crawled, &["/p/1", "/p/2"]);
    assert_eq!(fact(&found, "not read to its end").as_deref(), Some("its syntax is broken"));
    assert_eq!(crawled.explain(&web.url(0, "/p/3")).state, "unknown");
}

#[test]
fn bytes_and_entries_of_a_sitemap_have_limits_on_both_sides() {
    let map = urlset(["/p/1", "/p/2", "/p/3"]);
    let length = map.trim_end().len();
    let cut = |change: &dyn Fn(&mut Config)| {
        let (crawled, web, found) = outcome(xml(map.trim_end()), change);
        let third = crawled.explain(&web.url(0, "/p/3")).state;
        (fact(&found, "entries").unwrap(), fact(&found, "not read to its end").is_some(), third)
    };
    let bytes = |most: usize| {
        cut(&move |config| config.frontier.discover.size_max = Size::from_bytes(most as u64))
    };
    assert_eq!(bytes(length), ("3".to_owned(), false, "stored"));
    assert_eq!(bytes(length - 1), ("3".to_owned(), true, "stored"));
    assert_eq!(bytes(length - 30), ("2".to_owned(), true, "unknown"));
    let entries = |most: usize| cut(&move |config| config.frontier.discover.entries_max = most);
    assert_eq!(entries(3), ("3".to_owned(), false, "stored"));
    assert_eq!(entries(2), ("2".to_owned(), true, "unknown"));
    // A list without end, and one whose body never has a root.
    let line = b"http://127.0.0.1:9/p\n".to_vec();
    let (_, _, found) = outcome(Page::body(Body::Endless(line)), |config| {
        config.frontier.discover.size_max = Size::from_bytes(100_000);
    });
    let most = "it has more bytes than the limit".to_owned();
    assert_eq!((found.reason, fact(&found, "not read to its end")), (Some("sitemap"), Some(most)));
    let endless = Body::Endless(b"<!-- no -->\n".to_vec());
    let (_, _, found) = outcome(Page::body(endless), |config| {
        config.frontier.discover.size_max = Size::from_bytes(100_000);
    });
    assert_eq!(found.reason, Some("not_a_sitemap"));
}

#[test]
fn indexes_have_a_limit_of_depth_and_loops_end() {
    let site = || {
        let at = |n: usize| format!("/i{n}.xml");
        // Each index names the next one, itself and the first.
        let site = (0..6).fold(hidden(6), |site, n| {
            let children = [at(n + 1), at(n), at(0), format!("/m{n}.xml")];
            site.page(&at(n), xml(index(&children)))
                .page(&format!("/m{n}.xml"), xml(urlset([format!("/p/{}", n + 1)])))
        });
        Web::one(site.robots("Sitemap: /i0.xml\n"))
    };
    let web = site();
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    assert_eq!((web.asked("/i0.xml"), web.asked("/i3.xml"), web.asked("/i4.xml")), (1, 1, 0));
    assert_eq!((web.asked("/m2.xml"), web.asked("/m3.xml")), (1, 0));
    assert_eq!(crawled.explain(&web.url(0, "/i4.xml")).reason, Some("sitemap_depth"));
    stored(&web, &crawled, &["/p/1", "/p/2", "/p/3"]);
    assert_eq!(crawled.explain(&web.url(0, "/p/4")).state, "unknown");
}

#[test]
fn sitemaps_of_a_host_have_a_limit_and_do_not_hold_up_its_pages() {
    let maps: Vec<String> = (0..20).map(|n| format!("/m{n}.xml")).collect();
    let site = (0..20).fold(hidden(20).page("/i.xml", xml(index(&maps))), |site, n| {
        site.page(&maps[n], xml(urlset([format!("/p/{}", n + 1)])))
    });
    let web = Web::one(site.robots("Sitemap: /i.xml\n"));
    let mut config = config();
    config.frontier.discover.sitemaps_per_host_max = 13;
    config.frontier.robots_ttl = Time::from_millis(400);
    let crawled = Crawled::new();
    crawled.run(&config, &web.seeds());
    // The index is one of them.
    assert_eq!((web.asked("/m11.xml"), web.asked("/m12.xml")), (1, 0));
    assert_eq!(crawled.explain(&web.url(0, "/m12.xml")).reason, Some("sitemap_limit"));
    let order: Vec<String> = web.web.requests().into_iter().map(|request| request.target).collect();
    let at = |path: &str| order.iter().position(|target| target == path).unwrap();
    assert!(at("/m6.xml") < at("/p/1") && at("/p/1") < at("/m7.xml"), "{order:?}");
    // With room again, the rest is read.
    config.frontier.discover.sitemaps_per_host_max = 21;
    config.frontier.discover.again_after = Time::from_millis(1);
    config.frontier.robots_ttl = Time::from_millis(400);
    std::thread::sleep(Duration::from_millis(410));
    crawled.run(&config, &[web.url(0, "/p/1"), web.url(0, "/new")]);
    stored(&web, &crawled, &["/p/20"]);
}

#[test]
fn a_sitemap_is_read_again_when_it_is_old_and_named_again() {
    let reads = std::sync::Arc::new(AtomicUsize::new(0));
    let times = reads.clone();
    let site = hidden(3).robots("Sitemap: /map.xml\n").handler(move |request| {
        (request.target == "/map.xml").then(|| {
            let times = times.fetch_add(1, Ordering::SeqCst) + 1;
            xml(urlset((1..=times).map(|n| format!("/p/{n}"))))
        })
    });
    let web = Web::one(site);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.robots_ttl = Time::from_millis(200);
    let again = |config: &Config, n: usize| {
        std::thread::sleep(Duration::from_millis(210));
        crawled.run(config, &[web.url(0, "/"), web.url(0, &format!("/seed/{n}"))]);
        (reads.load(Ordering::SeqCst), crawled.explain(&web.url(0, "/p/2")).state)
    };
    assert_eq!(again(&config, 1), (1, "unknown"));
    assert_eq!(again(&config, 2), (1, "unknown"));
    config.frontier.discover.again_after = Time::from_millis(1);
    assert!(again(&config, 3).0 >= 2);
    stored(&web, &crawled, &["/p/2"]);
}

#[test]
fn requests_for_sitemaps_keep_the_delay_redirects_and_retries_too() {
    let tries = AtomicUsize::new(0);
    let site = hidden(2)
        .robots("Sitemap: /moved.xml\nSitemap: /flaky.xml\nSitemap: /home\n")
        .page("/moved.xml", Page::redirect(301, "/map.xml"))
        .page("/map.xml", xml(urlset(["/p/1"])))
        .page("/home", Page::redirect(302, "/"))
        .handler(move |request| {
            (request.target == "/flaky.xml").then(|| match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Page::status(503),
                // Nothing that a page could be.
                _ => Page::bytes("application/gzip", gzip(urlset(["/p/2"]).as_bytes())),
            })
        });
    let web = Web::one(site);
    let crawled = Crawled::new();
    let mut config = config();
    config.frontier.delay = Time::from_millis(60);
    crawled.run(&config, &web.seeds());
    stored(&web, &crawled, &["/", "/p/1", "/p/2"]);
    assert_eq!((web.asked("/flaky.xml"), web.asked("/")), (2, 1));
    assert_eq!(crawled.explain(&web.url(0, "/moved.xml")).state, "redirect");
    web.assert_gaps(0, Duration::from_millis(60));
}

#[test]
fn a_page_that_is_named_as_a_sitemap_is_not_lost() {
    let site = hidden(0)
        .robots("Sitemap: /story\nSitemap: /tale\n")
        .html("/", page("Front", &text(1), &["/other", "/tale"]))
        .html("/other", page("Other", &text(2), &["/story"]))
        .html("/story", page("Story", &text(3), &[]))
        .html("/tale", page("Tale", &text(4), &[]));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    stored(&web, &crawled, &["/", "/other", "/story", "/tale"]);
    assert_eq!((web.asked("/story"), web.asked("/tale")), (2, 2));
    // The front page itself is a seed, and stays a page.
    let web = Web::one(hidden(0).robots("Sitemap: /\n"));
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    assert_eq!((web.asked("/"), crawled.explain(&web.url(0, "/")).state), (1, "stored"));
}

#[test]
fn a_crawl_by_sitemaps_that_is_killed_ends_like_one_that_is_not() {
    let maps: Vec<String> = (0..10).map(|n| format!("/m{n}.xml")).collect();
    let site = (0..10).fold(hidden(40).page("/i.xml", xml(index(&maps))), |site, n| {
        site.page(&maps[n], xml(urlset((1..=4).map(|k| format!("/p/{}", n * 4 + k)))))
    });
    let web = Web::one(site.robots("Sitemap: /i.xml\n"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seeds.txt"), web.web.url(0)).unwrap();
    std::fs::write(folder.path().join("c.toml"), "[crawl]\nbatch_time_max = \"50ms\"\n").unwrap();
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["--seeds", "seeds.txt", "--allow-private", "--delay", "15ms", "--quiet"])
            .args(["--config", "c.toml"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    for life in 0..4_u64 {
        let mut child = start();
        std::thread::sleep(Duration::from_millis(150 + life * 90));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(start().wait().unwrap().success());
    let store = Store::open(&folder.path().join("store"), 16 << 20).unwrap();
    assert_eq!(clusters(&store).len(), 41);
    drop(store);
    let check = run(&["check"], folder.path());
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let maps_asked: usize = maps.iter().map(|map| web.asked(map)).sum();
    // Each of four kills repeats what was not committed: as many requests as a batch has time for.
    assert!((10..=26).contains(&maps_asked), "{maps_asked}");
    web.assert_gaps(0, Duration::from_millis(15));
}

#[test]
fn sitemaps_keep_to_the_scope_and_the_depth() {
    let site =
        hidden(2).robots("Sitemap: /map.xml\n").page("/map.xml", xml(urlset(["/p/1", "/q/2"])));
    let web = Web::one(site);
    let mut config = config();
    config.crawl.scope = ScopeKind::Prefix;
    let crawled = Crawled::new();
    let seed: PageUrl = web.url(0, "/p/2");
    crawled.run(&config, std::slice::from_ref(&seed));
    stored(&web, &crawled, &["/p/1", "/p/2"]);
    assert_eq!(crawled.explain(&web.url(0, "/q/2")).reason, Some("out_of_scope"));
    config.frontier.depth_max = 0;
    web.web.forget();
    Crawled::new().run(&config, std::slice::from_ref(&seed));
    assert_eq!(web.asked("/map.xml"), 0, "no entry could be let in");
    config.frontier.depth_max = 1;
    config.frontier.discover.sitemaps = false;
    Crawled::new().run(&config, &[seed]);
    assert_eq!(web.asked("/map.xml"), 0);
}
