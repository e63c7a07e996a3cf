//! Traps crawled on loopback, and the rules of the normal form in a store.

use uniqcrawl::config::Config;
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::store::{COUNTERS, View as _};
use uniqcrawl::urls::{Normalize, PageUrl};

use crate::support::{Crawled, Web, config, crawl, page, prose};

fn text(seed: u64) -> String {
    prose(seed, 60)
}

/// A page whose text depends on its address, with these links.
fn any_page(target: &str, links: &[&str]) -> Page {
    let seed = target.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    Page::html(page("Trap", &text(seed), links))
}

/// Crawls one host whose every page is made by `handler`; returns the paths that were asked for.
fn crawl_trap(
    handler: impl Fn(&str) -> Page + Send + Sync + 'static,
    change: impl Fn(&mut Config),
) -> (Vec<String>, Web, Crawled) {
    let web = Web::one(Site::new().handler(move |request| {
        (request.target != "/robots.txt").then(|| handler(&request.target))
    }));
    let crawled = Crawled::new();
    let mut config = config();
    // Where a test fails, it must end.
    config.frontier.host_addresses_max = 400;
    change(&mut config);
    crawled.run(&config, &web.seeds());
    let asked = web.web.targets(0).into_keys().filter(|path| path != "/robots.txt").collect();
    (asked, web, crawled)
}

#[track_caller]
fn reason(web: &Web, crawled: &Crawled, path: &str, wanted: &str) {
    let found = crawled.explain(&web.url(0, path));
    assert_eq!(found.reason, Some(wanted), "{path}: {found:?}");
}

/// How many addresses were turned away for a reason.
fn refused(crawled: &Crawled, reason: &str) -> u64 {
    let name = format!("addresses.refused.{reason}");
    crawled.store.snapshot().unwrap().get(COUNTERS, name.as_str()).unwrap().unwrap_or(0)
}

#[test]
fn relative_links_without_a_slash_grow_to_a_limit() {
    let trap = |target: &str| any_page(target, &["news/item"]);
    let (asked, web, crawled) = crawl_trap(trap, |_| {});
    assert_eq!(asked, ["/", "/news/item", "/news/news/item", "/news/news/news/item"]);
    reason(&web, &crawled, "/news/news/news/news/item", "repeated_segment");
    let (asked, _, crawled) = crawl_trap(trap, |config| {
        config.frontier.shape.segment_repeats_max = 100;
        config.frontier.shape.sequence_repeats_max = 100;
    });
    assert_eq!(asked.len(), 1 + 19, "a path of 20 segments is the last");
    assert_eq!(refused(&crawled, "path_too_deep"), 1);
    // Two such links can be mixed, which is bounded all the same.
    let two = |target: &str| any_page(target, &["news/item", "about/"]);
    let (asked, ..) = crawl_trap(two, |_| {});
    assert!(asked.len() < 100, "{} pages", asked.len());
}

#[test]
fn paths_that_repeat_sequences_end_early() {
    let (asked, web, crawled) = crawl_trap(
        |target| any_page(target, &[&format!("{}/a/b", target.trim_end_matches('/'))]),
        |_| {},
    );
    assert_eq!(asked, ["/", "/a/b", "/a/b/a/b"]);
    reason(&web, &crawled, "/a/b/a/b/a/b", "repeated_sequence");
}

#[test]
fn a_calendar_is_turned_to_its_limits_only() {
    // Forward from the month of the test run: the clock of the crawl is the system's.
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let first = i64::from(now.year()) * 12 + i64::from(now.month()) - 1;
    let path = |month: i64| format!("/calendar?month={:04}-{:02}", month / 12, month % 12 + 1);
    let (asked, web, crawled) = crawl_trap(
        move |target| {
            let month = target.split_once('=').map_or(first, |(_, month)| {
                let (year, month) = month.split_once('-').unwrap();
                year.parse::<i64>().unwrap() * 12 + month.parse::<i64>().unwrap() - 1
            });
            any_page(target, &[&path(month + 1), &path(month - 1)])
        },
        |config| config.frontier.shape.calendar_years_back_max = 2,
    );
    // The front page, two years ahead, two years back; the present month is linked from both sides.
    assert_eq!(asked.len(), 1 + 24 + 24 + 1);
    reason(&web, &crawled, &path(first + 25), "calendar");
    reason(&web, &crawled, &path(first - 25), "calendar");
    assert!(!asked.contains(&path(first + 25)) && asked.contains(&path(first + 24)));
}

#[test]
fn growing_ampersands_do_not_grow() {
    let growing = |target: &str| {
        let query = target.split_once('?').map_or("a=1", |(_, query)| query);
        let again = query.replace('&', "&amp;amp;");
        any_page(target, &[&format!("/p?{again}&amp;amp;b=2")])
    };
    let (asked, ..) = crawl_trap(growing, |_| {});
    // Parameters still grow in number, and end where one stands too often.
    assert!(asked.len() <= 8, "{asked:?}");
    assert!(asked.iter().all(|path| !path.contains("amp")), "{asked:?}");
    let (asked, _, crawled) = crawl_trap(growing, |config| config.urls.unescape_ampersands = false);
    assert!(asked.len() <= 4, "{asked:?}");
    assert_eq!(refused(&crawled, "nested_escapes"), 1);
    // The same with percent-escapes, which no rule undoes.
    let percent = |target: &str| {
        let more = target.strip_prefix("/p%25").unwrap_or("F");
        any_page(target, &[&format!("/p%2525{more}")])
    };
    let (asked, _, crawled) = crawl_trap(percent, |_| {});
    assert_eq!(asked, ["/", "/p%2525F"]);
    assert_eq!(refused(&crawled, "nested_escapes"), 1);
}

#[test]
fn a_host_in_its_own_path_ends() {
    let (asked, web, crawled) =
        crawl_trap(|target| any_page(target, &[&format!("{target}127.77.0.1/")]), |_| {});
    assert_eq!(asked, ["/", "/127.77.0.1/"]);
    reason(&web, &crawled, "/127.77.0.1/127.77.0.1/", "host_in_path");
}

#[test]
fn a_server_that_insists_on_sessions_is_read_once_a_page() {
    // Without a session it redirects to a new one each time, as servers without cookies do.
    let count = std::sync::atomic::AtomicU64::new(0);
    let (asked, web, crawled) = crawl_trap(
        move |target| {
            let Some((path, _)) = target.split_once(";jsessionid=") else {
                let id = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                return Page::redirect(302, &format!("{target};jsessionid=A{id}"));
            };
            let links: Vec<String> = (0..5).map(|n| format!("/page-{n};jsessionid=B{n}")).collect();
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            any_page(path, &links)
        },
        |_| {},
    );
    assert_eq!(asked.len(), 2 * 6, "{asked:?}");
    assert_eq!(crawled.clusters().len(), 6, "no page is lost");
    assert_eq!(crawled.explain(&web.url(0, "/page-3")).state, "redirect");
    // As it stands, each visit would find five new addresses.
    let (asked, ..) = crawl_trap(
        |target| {
            let id = target.len();
            let links: Vec<String> = (0..5).map(|n| format!("/p{n};jsessionid={id}{n}")).collect();
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            any_page(target, &links)
        },
        |config| {
            config.urls.drop_session_ids = false;
            config.frontier.shape.refuse_path_sessions = false;
            config.frontier.host_addresses_max = 50;
        },
    );
    assert!(asked.len() > 5 * 2, "{asked:?}");
    let (asked, web, crawled) = crawl_trap(
        |target| any_page(target, &["/a;jsessionid=1", "/b"]),
        |config| config.urls.drop_session_ids = false,
    );
    assert_eq!(asked, ["/", "/b"]);
    let kept = format!("{}a;jsessionid=1", web.web.url(0));
    let kept = PageUrl::parse_with(&kept, Normalize::none()).unwrap();
    assert_eq!(crawled.explain(&kept).reason, Some("session_in_path"));
}

#[test]
fn a_pattern_without_end_leaves_room_for_other_pages() {
    let (asked, web, crawled) = crawl_trap(
        |target| {
            let number: u64 = target.trim_start_matches("/list/").parse().unwrap_or(0);
            let next = format!("/list/{}", number + 1);
            any_page(
                target,
                &[&next, &format!("/story-{}", "abcdefgh".repeat(1 + (number % 3) as usize))],
            )
        },
        |config| config.frontier.pattern_addresses_max = 12,
    );
    assert_eq!(asked.len(), 1 + 12 + 3, "{asked:?}");
    reason(&web, &crawled, "/list/13", "pattern_budget");
}

#[test]
fn forms_of_one_page_are_asked_for_once() {
    let links = [
        "/a?utm_source=x",
        "/a?fbclid=1&",
        "/a?",
        "/a#top",
        "/%61",
        "/a;jsessionid=1",
        "/b/../a",
        "/a?PHPSESSID=0123",
        "/a?spm=1.2&amp;amp;gclid=3",
        "///",
        "/a?b=1",
        "/a?&b=1&utm_id=2",
    ];
    let (asked, _, crawled) = crawl_trap(
        move |target| any_page(target, if target == "/" { &links } else { &[] }),
        |_| {},
    );
    assert_eq!(asked, ["/", "/a", "/a?b=1"]);
    assert_eq!(crawled.clusters().len(), 3);
}

#[test]
fn other_rules_than_those_of_the_store_are_an_error_that_names_the_rule() {
    let web =
        Web::one(Site::new().html("/", page("Front", &text(1), &["/a?b=2&a=1", "/a?a=1&b=2"])));
    let crawled = Crawled::new();
    let mut config = config();
    config.urls.sort_parameters = true;
    crawled.run(&config, &web.seeds());
    crawled.run(&config, &web.seeds());
    assert_eq!((web.asked("/a?a=1&b=2"), web.asked("/a?b=2&a=1")), (1, 0));
    config.urls.sort_parameters = false;
    let run = crawl::run(&crawled.store, &config.settings(), &web.seeds(), &Context::default());
    let error = run.unwrap_err().to_string();
    assert!(error.contains("urls.sort_parameters = true, not false"), "{error}");
    config.urls.sort_parameters = true;
    config.urls.tracking_parameters.push("b".to_owned());
    let run = crawl::run(&crawled.store, &config.settings(), &web.seeds(), &Context::default());
    let error = run.unwrap_err().to_string();
    assert!(error.contains("urls.tracking_parameters"), "{error}");
    assert_eq!(crawl::stored_rules(&crawled.store).unwrap().unwrap().tracking_parameters.len(), 27);
}

#[test]
fn explain_reads_addresses_by_the_rules_of_the_store() {
    let web = Web::one(Site::new().html("/", page("Front", &text(1), &["/a?b=2&a=1"])));
    let folder = tempfile::tempdir().unwrap();
    let rules = "[urls]\nsort_parameters = true\ndrop_tracking_parameters = false\n[fetch]\n\
                 allow_private = true\n[frontier]\ndelay = \"0s\"\n";
    std::fs::write(folder.path().join("rules.toml"), rules).unwrap();
    let seeds = format!("{}?utm_b=1&a=2\n", web.web.url(0));
    std::fs::write(folder.path().join("seeds.txt"), seeds).unwrap();
    let run = ["--seeds", "seeds.txt", "--config", "rules.toml", "--store", "s", "--quiet"];
    let done = crawl(&run, folder.path());
    assert!(done.status.success() || done.status.code() == Some(3), "{done:?}");
    let seed = format!("{}?utm_b=1&a=2", web.web.url(0));
    let found = crawl(&["explain", &seed, "--store", "s"], folder.path());
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(found.contains("?a=2&utm_b=1\n"), "{found}");
}
