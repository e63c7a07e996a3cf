//! Visiting again: conditional requests, intervals, what is due and what is not.

use std::time::Duration;

use proptest::prelude::*;
use uniqcrawl::base::units::{Size, Time};
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::frontier::{Rank, Recrawl};
use uniqcrawl::localweb::Page;

use crate::discover::urlset;
use crate::lab::{DAY, HOUR_MS, Lab, START, cluster, story, tagged};
use crate::support::{page, prose};

#[test]
fn a_304_refreshes_times_only_and_weak_tags_and_dates_are_sent_as_they_came() {
    let lab = Lab::new(1);
    let links = ["/tag", "/weak", "/date", "/both", "/future", "/none", "/odd"];
    let past = "Fri, 20 Nov 2026 08:00:00 GMT";
    let future = "Fri, 01 Jan 2100 00:00:00 GMT";
    lab.html(0, "/", page("Front", &prose(1, 80), &links));
    lab.put(0, "/tag", tagged(story(2), "\"v1\""));
    lab.put(0, "/weak", tagged(story(3), "W/\"v1\""));
    lab.put(0, "/date", Page::html(story(4)).header("Last-Modified", past));
    lab.put(0, "/both", tagged(story(5), "\"b\"").header("Last-Modified", past));
    lab.put(0, "/future", Page::html(story(6)).header("Last-Modified", future));
    lab.html(0, "/none", story(7));
    let long = format!("\"{}\"", "x".repeat(255));
    lab.put(0, "/odd", tagged(story(8), &long).header("Last-Modified", "yesterday"));
    let first = lab.run();
    assert_eq!((first.pages, first.new, first.revisits.due), (8, 8, 0));
    assert!(lab.requests("/tag")[0].header("if-none-match").is_none());
    let before = lab.document(0, "/tag");

    let second = lab.next_day();
    let asked = |path: &str, name: &str| {
        let requests = lab.requests(path);
        assert_eq!(requests.len(), 1, "{path}");
        requests[0].header(name).map(str::to_owned)
    };
    assert_eq!(asked("/tag", "if-none-match").as_deref(), Some("\"v1\""));
    assert_eq!(asked("/tag", "if-modified-since"), None);
    assert_eq!(asked("/weak", "if-none-match").as_deref(), Some("W/\"v1\""));
    assert_eq!(asked("/date", "if-modified-since").as_deref(), Some(past));
    assert_eq!(asked("/both", "if-none-match").as_deref(), Some("\"b\""));
    assert_eq!(asked("/both", "if-modified-since").as_deref(), Some(past));
    // A date in the future proves nothing, nor does one that is none; long tags are not kept.
    assert_eq!(asked("/future", "if-modified-since"), None);
    assert_eq!(asked("/odd", "if-modified-since"), None);
    assert_eq!(asked("/odd", "if-none-match"), None);
    let found = second.revisits;
    assert_eq!((found.due, found.unmodified, found.unchanged, found.changed), (8, 4, 4, 0));
    assert!((found.unmodified_share() - 0.5).abs() < 1e-9);
    assert_eq!((second.pages, second.new, second.duplicates_total()), (4, 0, 0));
    assert_eq!(lab.document(0, "/tag"), before);
    let address = lab.address(0, "/tag");
    assert_eq!((address.visited, address.status), (START.after(DAY), 304));
    assert_eq!((address.revisit.visits, address.revisit.changes), (2, 0));
    let facts = format!("{:?}", lab.crawled.explain(&lab.url(0, "/tag")).facts);
    for fact in ["\"0 of 2 visits\"", "\"30.0 hours\"", "2026-11-23T", "1 times in a row"] {
        assert!(facts.contains(fact), "{facts}");
    }
}

#[test]
fn a_tag_that_fits_in_a_header_is_kept_up_to_its_limit() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/most"]));
    let most = format!("\"{}\"", "x".repeat(254));
    lab.put(0, "/most", tagged(story(2), &most));
    lab.run();
    assert_eq!(lab.next_day().revisits.unmodified, 1);
    assert_eq!(lab.requests("/most")[0].header("if-none-match"), Some(most.as_str()));
}

#[test]
fn a_server_that_always_says_unmodified_is_asked_for_the_whole_page_now_and_then() {
    let mut lab = Lab::new(1);
    lab.config.recrawl.full_after = 2;
    lab.html(0, "/", page("Front", &prose(1, 80), &["/lie"]));
    lab.put(0, "/lie", tagged(story(2), "\"same\""));
    lab.run();
    let old = lab.document(0, "/lie");
    lab.put(0, "/lie", tagged(story(3), "\"same\""));
    for _ in 0..2 {
        assert_eq!(lab.much_later().revisits.unmodified, 1);
        assert_eq!(lab.document(0, "/lie"), old);
    }
    let third = lab.much_later();
    assert_eq!(lab.requests("/lie")[0].header("if-none-match"), None);
    assert_eq!(third.revisits.changed, 1);
    assert_ne!(lab.document(0, "/lie").content, old.content);
    assert_eq!(lab.much_later().revisits.unmodified, 1, "and then it is believed again");
}

#[test]
fn a_304_to_a_request_without_condition_is_no_answer() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.put(0, "/a", Page::status(304));
    lab.run();
    assert_eq!(lab.crawled.explain(&lab.url(0, "/a")).reason, Some("other_status"));
}

#[test]
fn nothing_is_visited_again_unless_asked_and_nothing_before_it_is_due() {
    let mut lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", story(2));
    lab.config.recrawl.enabled = false;
    lab.run();
    let again = lab.next_day();
    assert_eq!((again.pages, again.revisits.due, lab.requests("/a").len()), (0, 0, 0));
    assert!(again.next_revisit.is_some());

    // What was noted while it was off is used when it is on.
    lab.config.recrawl.enabled = true;
    let run = lab.run();
    assert_eq!((run.revisits.due, run.revisits.unchanged), (2, 2));
    // An unmodified page is not due at once (NUTCH-1564), nor before its time.
    assert_eq!(lab.run().revisits.due, 0);
    lab.clock.advance(Duration::from_hours(29));
    assert_eq!(lab.run().revisits.due, 1, "the seed only");
    assert_eq!(lab.requests("/a").len(), 0);
    lab.clock.advance(Duration::from_hours(1));
    assert_eq!(lab.run().revisits.due, 1);
    assert_eq!(lab.requests("/a").len(), 1);
}

#[test]
fn the_interval_shrinks_with_changes_and_grows_without() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/calm", "/busy"]));
    lab.html(0, "/calm", story(2));
    let hours = |path: &str| lab.address(0, path).revisit.interval_ms / HOUR_MS;
    lab.html(0, "/busy", story(1_000));
    lab.run();
    assert_eq!((hours("/calm"), hours("/busy")), (20, 20));
    let mut calm = Vec::new();
    let mut busy = Vec::new();
    for seed in 1_001..1_012 {
        lab.html(0, "/busy", story(seed));
        lab.much_later();
        calm.push(hours("/calm"));
        busy.push(hours("/busy"));
    }
    assert_eq!(calm[..3], [30, 45, 67]);
    assert_eq!(calm.last(), Some(&720), "30 days are the longest");
    assert_eq!(busy[..3], [10, 5, 2]);
    assert_eq!(busy.last(), Some(&1), "an hour is the shortest");
    assert_eq!(hours("/"), 24, "a seed waits no longer than a day");
    let address = lab.address(0, "/busy").revisit;
    assert_eq!((address.visits, address.changes), (12, 11));
    assert_eq!(address.changed, lab.clock.now());
}

fn rank() -> impl Strategy<Value = Rank> {
    prop::sample::select(vec![Rank::Redirect, Rank::Seed, Rank::Link])
}

proptest! {
    #[test]
    fn an_interval_is_within_its_bounds_whatever_is_set_and_happens(
        (min, first, max, seed) in (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()),
        (shorten, lengthen, factor) in (any::<f64>(), any::<f64>(), any::<f64>()),
        rank in rank(),
        start in any::<u64>(),
        changes in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        let recrawl = Recrawl {
            interval_min: Time::from_millis(min),
            interval_first: Time::from_millis(first),
            interval_max: Time::from_millis(max),
            seed_interval_max: Time::from_millis(seed),
            shorten,
            lengthen,
            copy_factor: factor,
            ..Recrawl::default()
        };
        let (shortest, longest) = recrawl.bounds(rank);
        prop_assert!((1_000..=longest).contains(&shortest));
        let mut interval = start;
        for changed in changes {
            let before = interval.clamp(shortest, longest);
            interval = recrawl.interval(rank, interval, changed);
            prop_assert!((shortest..=longest).contains(&interval));
            let wait = recrawl.of_copy(rank, interval);
            prop_assert!((shortest..=longest).contains(&wait));
            if start > 0 && !shorten.is_nan() && !lengthen.is_nan() {
                // A 64-bit number loses its last bits as a float.
                let slack = before / 1_000_000;
                let slack = slack.min(u64::MAX - before);
                let fine = if changed { interval <= before + slack } else { interval >= before - slack };
                prop_assert!(fine, "{before} {interval}");
            }
        }
    }
}

#[test]
fn copies_that_are_not_canonical_are_visited_less_often() {
    let lab = Lab::new(3);
    cluster(&lab);
    lab.run();
    let mut asked = [0; 3];
    for _ in 0..10 {
        lab.next_day();
        for (host, asked) in asked.iter_mut().enumerate() {
            *asked += lab.web.web.targets(host).get("/story").copied().unwrap_or(0);
        }
    }
    assert!(asked[0] >= 4 && asked[1] <= 2 && asked[2] <= 2 && asked[1] > 0, "{asked:?}");
}

#[test]
fn seeds_and_listing_pages_lead_to_new_pages() {
    let lab = Lab::new(1);
    let listing = |links: &[&str]| {
        let asks = "<meta name=\"robots\" content=\"noindex\"><title>";
        page("List", &prose(2, 80), links).replace("<title>", asks)
    };
    lab.html(0, "/", page("Front", &prose(1, 80), &["/list"]));
    lab.html(0, "/list", listing(&["/1"]));
    for number in 1..4 {
        lab.html(0, &format!("/{number}"), story(number + 10));
    }
    lab.run();
    lab.html(0, "/list", listing(&["/1", "/2"]));
    lab.next_day();
    assert_eq!(lab.document(0, "/2").copies, 1);
    // New links are a change for the interval, though the text is not even stored.
    assert_eq!(lab.address(0, "/list").revisit.changes, 1);
    assert!(lab.address(0, "/list").revisit.interval_ms < 20 * HOUR_MS);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/list", "/3"]));
    let report = lab.next_day();
    assert_eq!(lab.document(0, "/3").copies, 1);
    assert_eq!(report.new, 1, "the front page itself says the same");
}

#[test]
fn an_expired_page_is_only_read_for_its_links() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", story(2));
    lab.run();
    let mut batch = lab.crawled.store.begin().unwrap();
    let ended = uniqcrawl::corpus::clusters::expire(&mut batch, START.after(DAY)).unwrap();
    uniqcrawl::frontier::Frontier::forget_expired(&mut batch, &ended.addresses).unwrap();
    batch.commit().unwrap();
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/new"]));
    lab.html(0, "/new", story(3));
    let report = lab.next_day();
    assert_eq!((report.documents, report.new), (1, 1));
    assert_eq!(lab.crawled.explain(&lab.url(0, "/a")).reason, Some("expired"));
}

#[test]
fn an_interrupted_revisit_is_due_again_and_another_scope_does_not_block() {
    let mut lab = Lab::new(2);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b"]));
    lab.html(0, "/a", story(2));
    lab.html(0, "/b", story(3));
    lab.html(1, "/", page("Other", &prose(4, 80), &[]));
    lab.run();
    lab.config.crawl.limits.pages_max = 1;
    lab.clock.advance(DAY);
    assert_eq!(lab.run().revisits.visited(), 1);
    lab.config.crawl.limits.pages_max = 0;
    // Those that wait in queues are still stored documents.
    assert_eq!(lab.exported().len(), 4);
    assert_eq!(lab.run().revisits.visited(), 3);
    // With the other host as only seed, the first one's pages are put off.
    lab.clock.advance(DAY * 31);
    lab.web.web.forget();
    let context = Context { clock: lab.clock.clone(), ..Context::default() };
    let seeds = [lab.url(1, "/")];
    let settings = lab.config.settings();
    let report = crawl::run(&lab.crawled.store, &settings, &seeds, &context).unwrap();
    lab.crawled.assert_clean();
    assert_eq!((report.revisits.due, lab.web.web.targets(0).len()), (1, 0));
}

#[test]
fn blocks_of_a_page_that_is_read_again_and_again_are_no_boilerplate() {
    let lab = Lab::new(1);
    let text = |day: u64| {
        let own = format!("<p>{}</p><p>{}</p>", prose(2, 60), prose(3, 60));
        page("Front", &format!("</p>{own}<p>{}", prose(day + 100, 150)), &[])
    };
    for day in 0..8 {
        lab.html(0, "/", text(day));
        lab.next_day();
    }
    let exported = lab.exported();
    let found = &exported[lab.url(0, "/").as_str()];
    assert!(found.contains(&prose(2, 60)[..100]) && found.contains(&prose(107, 150)[..100]));
}

#[test]
fn a_second_and_third_run_a_day_later_judge_only_what_has_changed() {
    let lab = Lab::new(2);
    let links: Vec<String> = (0..60).map(|n| format!("/{n}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    for host in 0..2 {
        lab.html(host, "/", page("Front", &prose(host as u64 + 7_000, 80), &links));
        for n in 0..60 {
            let seed = host as u64 * 1_000 + n;
            lab.put(host, &format!("/{n}"), tagged(story(seed), &format!("\"{seed}\"")));
        }
    }
    let first = lab.run();
    assert_eq!((first.pages, first.new), (122, 122));
    for (day, changed) in [(1, 3..6), (2, 10..14)] {
        for n in changed.clone() {
            let seed = day * 10_000 + n;
            lab.put(0, &format!("/{n}"), tagged(story(seed), &format!("\"{seed}\"")));
        }
        let report = lab.much_later();
        let found = report.revisits;
        let count = changed.count() as u64;
        assert_eq!((found.due, found.changed, found.unmodified), (122, count, 120 - count));
        assert_eq!(report.pages, count + 2, "only those and the fronts are read");
        assert_eq!(report.new + report.duplicates_total(), count, "and only those are judged");
        assert!(found.unmodified_share() > 0.9);
        assert_eq!((report.documents, report.copies), (122, 122));
    }
}

#[test]
fn a_page_that_was_cut_stays_marked_until_it_is_read_whole() {
    let mut lab = Lab::new(1);
    lab.config.fetch.body_size_max = Size::from_bytes(2_000);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/long", "/whole"]));
    let long = page("Long", &prose(2, 400), &[]);
    lab.put(0, "/long", tagged(long.clone(), "\"1\""));
    lab.put(0, "/whole", tagged(story(3), "\"1\""));
    lab.run();
    let is_cut = |path: &str| {
        let facts = lab.crawled.explain(&lab.url(0, path)).facts;
        facts.iter().any(|(name, _)| name == "truncated")
    };
    assert!(is_cut("/long") && !is_cut("/whole"));
    assert_eq!(lab.next_day().revisits.unmodified, 2);
    assert!(is_cut("/long"), "the stored text is the same");
    lab.put(0, "/long", Page::status(500));
    lab.much_later();
    assert!(is_cut("/long"));
    lab.put(0, "/long", tagged(story(4), "\"2\""));
    assert_eq!(lab.much_later().revisits.changed, 1);
    assert!(!is_cut("/long"));
}

#[test]
fn sitemaps_and_feeds_are_read_again_and_lead_to_new_pages() {
    let mut lab = Lab::new(1);
    lab.config.frontier.discover.usual_place = true;
    let map = |paths: &[&str], tag: &str| {
        let base = lab.url(0, "/").to_string();
        let urls = paths.iter().map(|path| format!("{}{path}", base.trim_end_matches('/')));
        let map = Page::bytes("application/xml", urlset(urls));
        if tag.is_empty() { map } else { map.header("ETag", tag) }
    };
    let feed = |items: &[&str]| {
        let items: String =
            items.iter().map(|path| format!("<item><link>{path}</link></item>")).collect();
        Page::bytes(
            "application/rss+xml",
            format!("<rss version=\"2.0\"><channel>{items}</channel></rss>"),
        )
    };
    let link = "<link rel=\"alternate\" type=\"application/rss+xml\" href=\"/feed\"><title>";
    lab.html(0, "/", page("Front", &prose(1, 80), &[]).replace("<title>", link));
    for number in 1..6 {
        lab.html(0, &format!("/{number}"), story(number + 10));
    }
    lab.put(0, "/sitemap.xml", map(&["/1"], "\"m1\""));
    lab.put(0, "/feed", feed(&["/2"]));
    assert_eq!(lab.run().new, 3);
    let again = lab.next_day();
    assert_eq!((again.new, again.revisits.changed), (0, 0));
    let asked = lab.requests("/sitemap.xml");
    assert_eq!(asked[0].header("if-none-match"), Some("\"m1\""));
    assert_eq!((asked.len(), lab.requests("/feed").len()), (1, 1));
    lab.put(0, "/sitemap.xml", map(&["/1", "/3"], ""));
    lab.clock.advance(DAY);
    lab.put(0, "/feed", feed(&["/2", "/4"]));
    let new = lab.next_day();
    assert_eq!((new.new, new.revisits.changed), (2, 2));
    let (map_seen, feed_seen) =
        (lab.address(0, "/sitemap.xml").revisit, lab.address(0, "/feed").revisit);
    assert_eq!((map_seen.changes, feed_seen.changes), (1, 1));
    assert_eq!(lab.document(0, "/3").copies, 1);
    assert_eq!(lab.document(0, "/4").copies, 1);
}
