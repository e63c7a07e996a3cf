//! robots.txt on whole crawls: where it is asked for, how long a copy holds, what an unreachable
//! one means, what its redirects are worth; and what pages say of themselves.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::base::units::{Size, Time};
use uniqcrawl::config::Config;
use uniqcrawl::crawl::{self, Context, Report};
use uniqcrawl::frontier::RobotsLost;
use uniqcrawl::localweb::{Body, LocalWeb, Page, Site};
use uniqcrawl::urls::PageUrl;

use crate::support::{Crawled, Web, config, page, prose};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// After this long, a host that said once that it is busy may be contacted, and the copy of its
/// robots.txt still holds.
const BUSY: Duration = Duration::from_millis(25);

const RULES: &str = "User-agent: *\nDisallow: /no\n";

fn html(seed: u64, links: &[&str]) -> String {
    page(&format!("Page {seed}"), &prose(seed, 80), links)
}

/// A site that does not change, but for its robots.txt: `robots` makes it of the number of times
/// that it was asked for before, and of what the test has set.
fn site(
    robots: impl Fn(usize, usize) -> Page + Send + Sync + 'static,
    set: Arc<AtomicUsize>,
) -> Site {
    let asked = AtomicUsize::new(0);
    let links = ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/no"];
    let site = links[..7]
        .iter()
        .zip(10..)
        .fold(Site::new().html("/", html(1, &links)), |site, (path, n)| {
            site.html(path, html(n, &[]))
        });
    site.html("/no", html(99, &[])).handler(move |request| {
        (request.target == "/robots.txt")
            .then(|| robots(asked.fetch_add(1, Ordering::SeqCst), set.load(Ordering::SeqCst)))
    })
}

/// A store with a clock that stands still while a run goes on.
struct Slow {
    crawled: Crawled,
    context: Context,
    config: Config,
}

impl Slow {
    fn new() -> Self {
        let clock = Clock::hand(Timestamp(1_800_000_000_000));
        let mut config = config();
        config.crawl.limits.idle_wait_max = Time::from_millis(0);
        Self { crawled: Crawled::new(), context: Context { clock, ..Context::default() }, config }
    }

    /// Visits at most so many pages; none for all.
    #[track_caller]
    fn run(&mut self, web: &Web, pages: u64) -> Report {
        self.config.crawl.limits.pages_max = pages;
        let (settings, seeds) = (self.config.settings(), web.seeds());
        let report = crawl::run(&self.crawled.store, &settings, &seeds, &self.context).unwrap();
        self.crawled.assert_clean();
        report
    }

    fn wait(&self, time: Duration) {
        self.context.clock.advance(time);
    }
}

#[test]
fn each_port_has_a_robots_txt_of_its_own() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = |site| {
        let any = "127.0.0.1:0".parse().unwrap();
        runtime.block_on(LocalWeb::start_at(any, site)).unwrap()
    };
    let base = || Site::new().html("/", html(1, &["/no", "/robots.txt"])).html("/no", html(2, &[]));
    let (strict, open) =
        (start(base().robots("User-agent: *\nDisallow: /no\nDisallow: /r\n")), start(base()));
    let seeds = [&strict, &open].map(|web| PageUrl::parse(&web.url(0)).unwrap());
    Crawled::new().run(&config(), &seeds);
    assert_eq!((strict.targets(0).get("/no"), open.targets(0).get("/no")), (None, Some(&1)));
    // As a page it is asked for once more: no rule can forbid it.
    assert_eq!((strict.targets(0)["/robots.txt"], open.targets(0)["/robots.txt"]), (2, 2));
}

#[test]
fn a_copy_is_used_for_a_day_at_most_and_as_long_as_its_server_says() {
    for (cache_control, fresh) in [
        ("", DAY),
        ("max-age=864000", DAY),
        ("public, max-age=7200", 2 * HOUR),
        ("max-age=60", HOUR),
        ("no-cache", HOUR),
        ("max-age=later", DAY),
    ] {
        let header = cache_control.to_owned();
        let robots = move |_, _| Page::bytes("text/plain", RULES).header("Cache-Control", &header);
        let web = Web::one(site(robots, Arc::default()));
        let mut slow = Slow::new();
        slow.run(&web, 2);
        slow.wait(fresh.saturating_sub(MINUTE));
        slow.run(&web, 2);
        assert_eq!(web.asked("/robots.txt"), 1, "{cache_control}: it is fresh");
        slow.wait(2 * MINUTE);
        slow.run(&web, 0);
        assert_eq!((web.asked("/robots.txt"), web.asked("/no")), (2, 0), "{cache_control}");
    }
}

#[test]
fn missing_files_are_asked_for_again_after_a_day_too() {
    let web = Web::one(site(|_, _| Page::status(404), Arc::default()));
    let mut slow = Slow::new();
    slow.run(&web, 2);
    slow.wait(DAY.saturating_sub(MINUTE));
    slow.run(&web, 2);
    assert_eq!(web.asked("/robots.txt"), 1);
    slow.wait(2 * MINUTE);
    slow.run(&web, 2);
    assert_eq!(web.asked("/robots.txt"), 2);
}

#[test]
fn the_last_good_copy_holds_while_the_file_is_unreachable() {
    let set = Arc::new(AtomicUsize::new(0));
    let robots = |_, broken| match broken {
        0 => Page::bytes("text/plain", RULES),
        1 => Page::status(500),
        _ => Page::body(Body::Close),
    };
    let web = Web::one(site(robots, set.clone()));
    let mut slow = Slow::new();
    slow.run(&web, 1);
    for (broken, pages) in [(1, 2), (2, 2)] {
        set.store(broken, Ordering::SeqCst);
        slow.wait(25 * HOUR);
        let before = web.asked("/robots.txt");
        assert_eq!(slow.run(&web, pages).pages, pages);
        assert_eq!(web.asked("/robots.txt"), before + 1);
    }
    slow.wait(25 * HOUR);
    slow.run(&web, 0);
    assert_eq!((web.asked("/g"), web.asked("/no")), (1, 0));
    let no = slow.crawled.explain(&web.url(0, "/no"));
    assert_eq!(no.reason, Some("robots_disallowed"));
}

#[test]
fn what_holds_after_thirty_days_is_a_setting() {
    for (lost, fetched) in [(RobotsLost::Keep, 0), (RobotsLost::Allow, 1)] {
        // There never was a copy.
        let web = Web::one(site(|_, _| Page::status(503), Arc::default()));
        let mut slow = Slow::new();
        slow.config.frontier.robots_lost = lost;
        assert_eq!(slow.run(&web, 0).pages, 0);
        slow.wait((30 * DAY).saturating_sub(MINUTE));
        assert_eq!(slow.run(&web, 0).pages, 0, "{lost:?}: not yet");
        slow.wait(DAY);
        slow.run(&web, 0);
        slow.wait(BUSY);
        slow.run(&web, 0);
        assert_eq!((web.asked("/a"), web.asked("/no")), (fetched, fetched), "{lost:?}");

        // There was one.
        let robots = |asked, _| match asked {
            0 => Page::bytes("text/plain", RULES),
            _ => Page::status(503),
        };
        let web = Web::one(site(robots, Arc::default()));
        let mut slow = Slow::new();
        slow.config.frontier.robots_lost = lost;
        slow.run(&web, 1);
        slow.wait(30 * DAY);
        slow.run(&web, 0);
        // The host said that it is busy, and is left alone for a while.
        assert_eq!(web.asked("/a"), 0);
        slow.wait(BUSY);
        slow.run(&web, 0);
        assert_eq!((web.asked("/a"), web.asked("/no")), (1, fetched), "{lost:?}");
    }
}

#[test]
fn rules_that_find_no_room_in_memory_are_obeyed_from_the_store() {
    let web = Web::one(site(|_, _| Page::bytes("text/plain", RULES), Arc::default()));
    let mut config = config();
    config.frontier.robots_in_memory = Size::from_mib(0);
    config.crawl.limits.batch_pages_max = 1;
    Crawled::new().run(&config, &web.seeds());
    assert_eq!((web.asked("/robots.txt"), web.asked("/g"), web.asked("/no")), (1, 1, 0));
}

#[test]
fn the_first_500_kib_count_and_no_half_line() {
    let mut file = RULES.to_owned();
    while file.len() < 511_000 {
        file.push_str("# a line that says nothing to anybody\n");
    }
    file.push_str("Disallow: /a\n");
    // The border of 512,000 bytes is inside this pattern.
    let cut = "*".repeat(1_000);
    write!(file, "Disallow: /b{cut}\nDisallow: /c\n").unwrap();
    let endless = Body::Endless(RULES.as_bytes().to_vec());
    for (robots, asked) in
        [(Page::bytes("text/plain", file), [0, 1, 1]), (Page::body(endless), [1, 1, 1])]
    {
        let web = Web::one(site(move |_, _| robots.clone(), Arc::default()));
        Crawled::new().run(&config(), &web.seeds());
        assert_eq!(web.asked("/no"), 0);
        assert_eq!(["/a", "/b", "/c"].map(|path| web.asked(path)), asked);
    }
}

#[test]
fn loops_of_redirects_are_counted_and_then_allow() {
    let web = Web::one(site(|_, _| Page::redirect(302, "/robots.txt"), Arc::default()));
    Crawled::new().run(&config(), &web.seeds());
    assert_eq!((web.asked("/robots.txt"), web.asked("/"), web.asked("/no")), (6, 1, 1));
}

#[test]
fn a_hop_that_is_refused_or_leads_nowhere_is_no_licence() {
    for robots in [
        Page::redirect(302, "http://169.254.169.254/robots.txt"),
        Page::redirect(301, "data:text/plain,User-agent"),
        Page::redirect(301, "http://[::1/"),
        Page::status(302),
        Page::redirect(302, "http://127.0.0.1:9/robots.txt"),
    ] {
        let named = format!("{robots:?}");
        let web = Web::one(site(move |_, _| robots.clone(), Arc::default()));
        let mut config = config();
        config.crawl.limits.idle_wait_max = Time::from_millis(100);
        let report = Crawled::new().run(&config, &web.seeds());
        assert_eq!((web.asked("/"), report.pages), (0, 0), "{named}");
        assert_eq!(report.failed_seeds[0].reason, "robots_unreachable", "{named}");
    }
}

#[test]
fn every_hop_of_a_robots_txt_keeps_the_pace_of_its_host() {
    let delay = Duration::from_millis(120);
    let web = Web::start(2, |bases| {
        let far = format!("{}/hop", bases[1]);
        let first = Site::new().html("/", html(1, &["/a"])).html("/a", html(2, &[]));
        let second = Site::new()
            .html("/", html(3, &["/b"]))
            .html("/b", html(4, &[]))
            .page("/hop", Page::redirect(302, "/rules"))
            .page("/rules", Page::bytes("text/plain", RULES));
        vec![first.page("/robots.txt", Page::redirect(301, &far)), second]
    });
    let mut config = config();
    config.frontier.delay = Time::from_millis(120);
    Crawled::new().run(&config, &web.seeds());
    assert_eq!((web.asked("/a"), web.web.targets(1)["/rules"]), (1, 1));
    web.assert_gaps(0, delay);
    web.assert_gaps(1, delay);
}

#[test]
fn a_private_host_is_refused_address_by_address() {
    let mut config = config();
    config.fetch.allow_private = false;
    config.crawl.limits.idle_wait_max = Time::from_millis(100);
    let seeds = ["http://127.0.0.1:9/", "http://127.0.0.1:9/a", "http://localhost:9/"];
    let seeds = seeds.map(|text| PageUrl::parse(text).unwrap());
    let crawled = Crawled::new();
    let report = crawled.run(&config, &seeds);
    assert_eq!((report.refused["address_refused"], report.queued), (3, 0));
    assert!(report.failed_seeds.iter().all(|seed| seed.reason == "address_refused"));
    assert_eq!(report.failed_seeds.len(), 3);
}

#[test]
fn what_a_page_says_of_itself_is_obeyed_for_our_agent_and_in_every_header() {
    let tagged = |seed: u64, link: &str, tags: &[&str]| {
        let page = Page::html(html(seed, &[link]));
        tags.iter().fold(page, |page, tag| page.header("X-Robots-Tag", tag))
    };
    let meta = |seed: u64, link: &str, name: &str, content: &str| {
        let tag = format!("<meta name=\"{name}\" content=\"{content}\"><title>");
        html(seed, &[link]).replace("<title>", &tag)
    };
    let all = ["/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8"];
    let mut site = Site::new()
        .html("/", html(1, &all))
        .page("/1", tagged(11, "/1x", &["uniqcrawl: noindex"]))
        .page("/2", tagged(12, "/2x", &["uniqcrawl: nofollow"]))
        .page("/3", tagged(13, "/3x", &["otherbot: noindex, nofollow"]))
        .page("/4", tagged(14, "/4x", &["otherbot: none", "noarchive", "UniqCrawl: none"]))
        .page("/5", tagged(15, "/5x", &["nofollow", "noindex"]))
        .html("/6", meta(16, "/6x", "robots", "nofollow"))
        .html("/7", meta(17, "/7x", "uniqcrawl", "noindex"))
        .page("/8", tagged(18, "/8x", &["unavailable_after: 25 Jun 2010 15:00:00 PST"]));
    for (path, seed) in all.iter().zip(30..) {
        site = site.html(&format!("{path}x"), html(seed, &[]));
    }
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    let outcome = |path: &str| {
        let found = crawled.explain(&web.url(0, path));
        found.reason.unwrap_or(found.state)
    };
    let pages = all.map(outcome);
    let no = "noindex";
    assert_eq!(pages, [no, "stored", "stored", no, no, "stored", no, no]);
    let links = all.map(|path| outcome(&format!("{path}x")));
    let none = "nofollow";
    assert_eq!(links, ["stored", none, "stored", none, none, none, "stored", "stored"]);
    assert_eq!(web.asked("/2x") + web.asked("/4x") + web.asked("/5x") + web.asked("/6x"), 0);
}

/// A file with a rule beyond the least limit, at which a line breaks off in its worst place.
#[test]
fn rules_beyond_the_limit_of_a_robots_txt_are_told_and_read_under_a_larger_one() {
    let mut file = "User-agent: *\nDisallow: /no\n".to_owned();
    while file.len() < (500 << 10) - 100 {
        file.push_str("# nothing but words that nobody needs\n");
    }
    let gap = (500 << 10) + 1 - file.len() - "#\nDisallow: /".len();
    write!(file, "#{}\nDisallow: /beyond\n", "-".repeat(gap)).unwrap();
    let links = ["/no", "/beyond"];
    let site =
        links.iter().zip(2..).fold(Site::new(), |site, (path, n)| site.html(path, html(n, &[])));
    let site = site.robots(&file).html("/", html(1, &links)).html("/later", html(9, &[]));
    let web = Web::one(site);
    let fact = |crawled: &Crawled| {
        let facts = crawled.explain(&web.seeds()[0]).facts;
        facts.into_iter().find(|(name, _)| name == "robots.txt").unwrap().1
    };
    let (least, mut large) = (Crawled::new(), config());
    large.frontier.robots_size_max = Size::from_mib(1);
    least.run(&config(), &web.seeds());
    assert!(fact(&least).contains("cut after 512000 bytes"), "{}", fact(&least));
    assert_eq!((web.asked("/no"), web.asked("/beyond")), (0, 1));
    // The copy is what it was: half a line counts no more under a larger limit.
    least.run(&large, &[web.url(0, "/later")]);
    assert_eq!((web.asked("/later"), web.asked("/robots.txt")), (1, 1));
    let whole = Crawled::new();
    web.web.forget();
    whole.run(&large, &web.seeds());
    assert_eq!((web.asked("/no"), web.asked("/beyond")), (0, 0));
    assert_eq!(whole.explain(&web.url(0, "/beyond")).reason, Some("robots_disallowed"));
    assert!(!fact(&whole).contains("cut"), "{}", fact(&whole));
}
