//! Which addresses the operator lets in: patterns on the command line and in settings, whose
//! changes let in what was kept out, and never fetch again what is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uniqcrawl::base::clock::Clock;
use uniqcrawl::config::Config;
use uniqcrawl::crawl::Report;
use uniqcrawl::frontier::{Reason, State};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::urls::{HostFilter, ScopeKind};

use crate::lab::Lab;
use crate::service::Server;
use crate::support::{Crawled, Web, config, crawl, page, prose};

/// Pages of a small site, and what the front page links to.
const PATHS: [&str; 6] = ["/news/1", "/news/2", "/tag/a", "/tag/b?p=1", "/about", "/news/1/print"];

fn site() -> Site {
    let front = page("Front", &prose(1, 80), &PATHS);
    PATHS.iter().zip(2..).fold(Site::new().html("/", front), |site, (path, seed)| {
        site.html(path, page(path, &prose(seed, 80), &[]))
    })
}

/// Settings with these patterns.
fn filtered(include: &[&str], exclude: &[&str]) -> Config {
    let mut config = config();
    let parse = |all: &[&str]| all.iter().map(|text| text.parse().unwrap()).collect();
    (config.filter.include, config.filter.exclude) = (parse(include), parse(exclude));
    config
}

/// Paths of pages that were asked for, each once, since the web was last asked to forget.
#[track_caller]
fn asked(web: &Web) -> BTreeSet<String> {
    let targets = web.web.targets(0);
    let twice: Vec<_> = targets.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    targets.into_keys().filter(|path| path != "/robots.txt").collect()
}

fn paths(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|path| (*path).to_owned()).collect()
}

/// Crawls a web from its front page. Returns the report and the paths that were asked for.
#[track_caller]
fn run(crawled: &Crawled, web: &Web, config: &Config) -> (Report, BTreeSet<String>) {
    web.web.forget();
    let report = crawled.run(config, &web.seeds());
    let asked = asked(web);
    (report, asked)
}

/// What is told of the filter for a path of the first host.
fn told(crawled: &Crawled, web: &Web, path: &str) -> (&'static str, Option<&'static str>, String) {
    let told = crawled.explain(&web.url(0, path));
    let fact = told.facts.into_iter().find(|(name, _)| name == "filter");
    (told.state, told.reason, fact.map(|(_, value)| value).unwrap_or_default())
}

#[test]
fn links_are_let_in_by_patterns_and_each_refusal_names_its_pattern() {
    let web = Web::one(site());
    let crawled = Crawled::new();
    let config = filtered(&["*/news/*", "re:/tag/"], &["*/print", "re:p=[0-9]"]);
    let (report, asked) = run(&crawled, &web, &config);
    // The seed matches no include.
    assert_eq!(asked, paths(&["/", "/news/1", "/news/2", "/tag/a"]));
    let refused = |reason: &str| report.refused.get(reason).copied().unwrap_or(0);
    assert_eq!((refused("excluded"), refused("not_included")), (2, 1));
    let by: BTreeMap<String, u64> =
        [("excluded by */print", 1), ("excluded by re:p=[0-9]", 1), ("matched by no include", 1)]
            .map(|(name, count)| (name.to_owned(), count))
            .into();
    assert_eq!(report.kept_out, by);
    for (path, reason, by) in [
        ("/news/1/print", "excluded", "excluded by */print"),
        ("/tag/b?p=1", "excluded", "excluded by re:p=[0-9]"),
        ("/about", "not_included", "matched by none of */news/*, re:/tag/"),
    ] {
        assert_eq!(told(&crawled, &web, path), ("refused", Some(reason), by.to_owned()));
    }
    assert_eq!(told(&crawled, &web, "/news/1").2, "");
    // What nobody links to is told, too.
    assert_eq!(told(&crawled, &web, "/x/print").2, "excluded by */print");
    // Nothing is counted twice, and nothing is asked for again.
    let (report, asked) = run(&crawled, &web, &config);
    assert_eq!((asked, report.kept_out.len()), (paths(&[]), 0));
}

#[test]
fn other_patterns_in_a_later_run_let_in_what_was_kept_out() {
    let web = Web::one(site());
    let crawled = Crawled::new();
    let (_, asked) = run(&crawled, &web, &filtered(&["*/tag/*"], &["*/b?*"]));
    assert_eq!(asked, paths(&["/", "/tag/a"]));
    // What is stored is not fetched again, whatever the patterns say of it by now.
    let (_, asked) = run(&crawled, &web, &filtered(&["*/news/*"], &["*/print"]));
    assert_eq!(asked, paths(&["/news/1", "/news/2"]));
    // Reasons are those of the patterns of today.
    let print = ("refused", Some("excluded"), "excluded by */print".to_owned());
    assert_eq!(told(&crawled, &web, "/news/1/print"), print);
    let tag = ("refused", Some("not_included"), "matched by none of */news/*".to_owned());
    assert_eq!(told(&crawled, &web, "/tag/b?p=1"), tag);
    let (report, asked) = run(&crawled, &web, &filtered(&[], &[]));
    assert_eq!(asked, paths(&["/about", "/news/1/print", "/tag/b?p=1"]));
    assert_eq!((report.documents, report.addresses["refused"]), (7, 0));
}

#[test]
fn what_waits_is_kept_out_by_a_new_pattern_and_let_in_when_that_is_gone() {
    let web = Web::one(site());
    let crawled = Crawled::new();
    let mut first = filtered(&[], &[]);
    first.crawl.limits.pages_max = 1;
    let (report, asked) = run(&crawled, &web, &first);
    assert_eq!((asked, report.queued), (paths(&["/"]), 6));
    let (report, asked) = run(&crawled, &web, &filtered(&[], &["*/news/*"]));
    assert_eq!(asked, paths(&["/about", "/tag/a", "/tag/b?p=1"]));
    assert_eq!((report.refused["excluded"], report.queued), (3, 0));
    assert_eq!(report.kept_out, [("excluded by */news/*".to_owned(), 3)].into());
    let (report, asked) = run(&crawled, &web, &filtered(&[], &["*/print"]));
    assert_eq!((asked, report.queued), (paths(&["/news/1", "/news/2"]), 0));
    // Budgets count each address once, however often it was let in and kept out.
    let (_, asked) = run(&crawled, &web, &filtered(&[], &[]));
    assert_eq!(asked, paths(&["/news/1/print"]));
    let facts = crawled.explain(&web.url(0, "/news/1")).facts;
    let pattern = facts.iter().find(|(name, _)| name == "links of its pattern").unwrap();
    assert!(pattern.1.starts_with("2 of "), "{facts:?}");
}

#[test]
fn an_address_that_was_refused_for_two_reasons_is_let_in_when_both_are_gone() {
    let nofollow = |path: &str| format!("<a rel=nofollow href=\"{path}\">x</a>");
    let front = page("Front", &prose(1, 80), &[]) + &nofollow("/a") + &nofollow("/c");
    let site = Site::new()
        .html("/", front)
        .html("/other", page("Other", &prose(2, 80), &["/a"]))
        .html("/a", page("A", &prose(3, 80), &[]))
        .html("/c", page("C", &prose(4, 80), &[]));
    let web = Web::one(site);
    let crawled = Crawled::new();
    let config = filtered(&[], &["*/a", "*/c"]);
    run(&crawled, &web, &config);
    let state = |path: &str| crawled.address(&web.url(0, path)).unwrap().state;
    assert_eq!(state("/a"), State::Refused(Reason::Nofollow));
    let report = crawled.run(&config, &[web.url(0, "/other")]);
    // Nothing but the pattern keeps it out now; the other one is nofollow still.
    assert_eq!(state("/a"), State::Refused(Reason::Excluded));
    assert_eq!(report.kept_out, [("excluded by */a".to_owned(), 1)].into());
    assert_eq!(state("/c"), State::Refused(Reason::Nofollow));
    let (_, asked) = run(&crawled, &web, &filtered(&[], &[]));
    assert_eq!(asked, paths(&["/a"]));
}

#[test]
fn seeds_are_visited_whatever_the_patterns_say_and_redirects_are_filtered() {
    let site = |_: &[String]| {
        let front = page("Front", &prose(1, 80), &["/in/a", "/in/moved", "/in/far"]);
        vec![
            Site::new()
                .page("/", Page::redirect(302, "/start"))
                .html("/start", front)
                .html("/in/a", page("A", &prose(2, 80), &[]))
                .page("/in/moved", Page::redirect(301, "/out/a"))
                .page("/in/far", Page::redirect(301, "/in/never"))
                .html("/out/a", page("Out", &prose(3, 80), &[]))
                .page("/away", Page::redirect(302, "/in/never")),
        ]
    };
    let web = Web::start(1, site);
    let crawled = Crawled::new();
    let config = filtered(&["*/in/*"], &["*/never", "*/away"]);
    web.web.forget();
    let seeds = [web.url(0, "/"), web.url(0, "/away")];
    let report = crawled.run(&config, &seeds);
    // Where the seed redirects to need match no include, but is excluded like any other.
    let visited = ["/", "/start", "/away", "/in/a", "/in/moved", "/in/far"];
    assert_eq!(asked(&web), paths(&visited));
    assert_eq!(told(&crawled, &web, "/out/a").1, Some("not_included"));
    assert_eq!(told(&crawled, &web, "/in/never").1, Some("excluded"));
    assert_eq!(report.failed_seeds.len(), 1);
    assert_eq!(report.failed_seeds[0].reason, "excluded");
    // Who names it as a seed gets it.
    crawled.run(&config, &[web.url(0, "/out/a")]);
    assert_eq!(told(&crawled, &web, "/out/a").0, "stored");
}

#[test]
fn entries_of_sitemaps_and_feeds_are_filtered_and_sitemaps_are_not() {
    let entry = |base: &str, path: &str| format!("<url><loc>{base}{path}</loc></url>");
    let site = |bases: &[String]| {
        let entries: String = PATHS.iter().map(|path| entry(&bases[0], path)).collect();
        let set = format!("<urlset>{entries}</urlset>");
        let item = |path: &str| format!("<item><link>{}{path}</link></item>", bases[0]);
        let feed = format!("<rss><channel>{}{}</channel></rss>", item("/news/9"), item("/no/9"));
        let head = "<link rel=alternate type='application/rss+xml' href='/news/feed'>\
                    <link rel=alternate type='application/rss+xml' href='/comments/feed'><title>";
        let front = page("Front", &prose(1, 80), &[]).replacen("<title>", head, 1);
        vec![
            PATHS.iter().zip(2..).fold(
                Site::new()
                    .robots(&format!("Sitemap: {}/map.xml\n", bases[0]))
                    .page("/map.xml", Page::bytes("application/xml", set))
                    .page("/news/feed", Page::bytes("application/rss+xml", feed.clone()))
                    .page("/comments/feed", Page::bytes("application/rss+xml", feed))
                    .html("/news/9", page("Nine", &prose(90, 80), &[]))
                    .html("/", front),
                |site, (path, seed)| site.html(path, page(path, &prose(seed, 80), &[])),
            ),
        ]
    };
    let web = Web::start(1, site);
    let crawled = Crawled::new();
    let (report, asked) = run(&crawled, &web, &filtered(&["*/news/*"], &["*/print"]));
    let visited = ["/", "/map.xml", "/news/1", "/news/2", "/news/9", "/news/feed"];
    assert_eq!(asked, paths(&visited));
    assert_eq!((report.refused["excluded"], report.refused["not_included"]), (1, 5));
    let (_, asked) = run(&crawled, &web, &filtered(&[], &["*/comments/*"]));
    assert_eq!(asked, paths(&["/tag/a", "/tag/b?p=1", "/about", "/news/1/print", "/no/9"]));
}

#[test]
fn patterns_of_a_host_are_for_its_addresses() {
    let site = |bases: &[String]| {
        let links: Vec<String> = ["/docs/a", "/news/a"]
            .iter()
            .flat_map(|path| bases.iter().map(move |base| format!("{base}{path}")))
            .collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let one = |host: u64| {
            Site::new()
                .html("/", page("Front", &prose(host * 10, 80), &links))
                .html("/docs/a", page("Docs", &prose(host * 10 + 1, 80), &[]))
                .html("/news/a", page("News", &prose(host * 10 + 2, 80), &[]))
        };
        vec![one(1), one(2)]
    };
    let web = Web::start(2, site);
    let mut config = filtered(&["*/news/*"], &[]);
    let key = web.url(1, "/").host_key();
    let host = key.as_str().trim_start_matches("http://").parse().unwrap();
    let include = vec!["/docs/*".parse().unwrap()];
    config.filter.host = vec![HostFilter { host, include, exclude: vec![] }];
    let crawled = Crawled::new();
    crawled.run(&config, &web.seeds());
    let states = |host: usize| {
        ["/docs/a", "/news/a"].map(|path| crawled.explain(&web.url(host, path)).state)
    };
    assert_eq!((states(0), states(1)), (["refused", "stored"], ["stored", "refused"]));
    let named = crawled.explain(&web.url(1, "/news/a")).facts;
    let fact = ("filter".to_owned(), "matched by none of /docs/*".to_owned());
    assert!(named.contains(&fact), "{named:?}");
}

#[test]
fn a_stored_page_that_is_excluded_stays_and_is_not_visited_again_meanwhile() {
    let mut lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b"]));
    lab.html(0, "/a", page("A", &prose(2, 80), &[]));
    lab.html(0, "/b", page("B", &prose(3, 80), &[]));
    lab.run();
    lab.config.filter.exclude = vec!["*/a".parse().unwrap()];
    lab.much_later();
    assert_eq!((lab.requests("/a").len(), lab.requests("/b").len()), (0, 1));
    assert!(matches!(lab.address(0, "/a").state, State::Stored(_)));
    lab.config.filter.exclude.clear();
    lab.much_later();
    assert_eq!((lab.requests("/a").len(), lab.requests("/b").len()), (1, 1));
}

#[test]
fn what_another_scope_keeps_out_as_well_is_let_in_by_a_run_that_has_it() {
    let web = Web::one(site());
    let other = Web::one(Site::new().html("/", page("Other", &prose(50, 80), &[])));
    let crawled = Crawled::new();
    run(&crawled, &web, &filtered(&["*/news/*"], &[]));
    // A run of another site without patterns has no use for them.
    web.web.forget();
    crawled.run(&filtered(&[], &[]), &other.seeds());
    assert_eq!(asked(&web), paths(&[]));
    let kept = "that of an earlier run kept it out";
    assert_eq!(told(&crawled, &web, "/about"), ("refused", Some("not_included"), kept.to_owned()));
    let (_, asked) = run(&crawled, &web, &filtered(&[], &[]));
    assert_eq!(asked, paths(&["/about", "/tag/a", "/tag/b?p=1"]));
}

#[test]
fn far_more_than_one_step_of_addresses_is_let_in() {
    const LINKS: usize = 10_500;
    let links: Vec<String> = (0..LINKS).map(|n| format!("http://h{n}.invalid/")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let web = Web::one(Site::new().html("/", page("Front", &prose(1, 80), &links)));
    let crawled = Crawled::new();
    let mut config = filtered(&[], &["*.invalid/"]);
    config.crawl.scope = ScopeKind::Any;
    config.extract.limits.links_max = LINKS;
    config.frontier.hosts_per_domain_max = 0;
    let (report, _) = run(&crawled, &web, &config);
    assert_eq!(report.refused["excluded"], 10_500);
    config.filter.exclude = vec!["re:h[0-9]{5}[.]invalid".parse().unwrap()];
    config.crawl.limits.pages_max = 1;
    config.fetch.resolve = vec!["h0.invalid=".to_owned()];
    let report = {
        let context = uniqcrawl::crawl::Context::default();
        let _ = context.stop.ask();
        let settings = config.settings();
        uniqcrawl::crawl::run(&crawled.store, &settings, &web.seeds(), &context).unwrap()
    };
    crawled.assert_clean();
    assert_eq!((report.queued, report.addresses["refused"]), (10_000, LINKS as u64 - 10_000));
}

#[test]
fn patterns_of_flags_and_files_are_checked_and_told() {
    let web = Web::one(site());
    let folder = tempfile::tempdir().unwrap();
    let seed = web.web.url(0);
    let run = |more: &[&str]| {
        let usual = [seed.as_str(), "--allow-private", "--delay", "0", "--contact", "a@b.c"];
        let output = crawl(&[&usual, more].concat(), folder.path());
        let streams = [&output.stdout, &output.stderr];
        let text = streams.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
        (text, output.status.code().unwrap())
    };
    for (flags, says) in [
        (["--exclude", "login"], "the pattern `login` is no URL: a glob begins with"),
        (["--include", "re:a(b"], "the pattern `re:a(b` is no regular expression: unclosed group"),
    ] {
        let (text, code) = run(&flags);
        assert!(code == 2 && text.contains(says) && text.contains(flags[0]), "{text}");
    }
    for (file, says) in [
        (
            "[filter]\nexclude = [\"*/a\",\n  \"re:*\"]\n",
            "c.toml: line 2: `filter.exclude`: the pattern `re:*`",
        ),
        (
            "[[filter.host]]\nhost = \"h\"\ninclude = [\"b\"]\n",
            "`filter.host`: the pattern `b` is no URL",
        ),
        ("[filter]\nexclude = \"*\"\n", "`filter.exclude`: must be a list"),
    ] {
        fs::write(folder.path().join("c.toml"), file).unwrap();
        let (text, code) = run(&["--config", "c.toml"]);
        assert!(code == 2 && text.contains(says), "{text}");
        assert!(!folder.path().join("store").exists());
    }
    let file = "[filter]\ninclude = [\"*/about\"]\nexclude = [\"*/print\"]\n";
    fs::write(folder.path().join("c.toml"), file).unwrap();
    // Flags stand for the list of the file.
    let flags = ["--config", "c.toml", "--include", "*/news/*", "--include", "*/tag/a"];
    let (text, code) = run(&flags);
    assert!(code == 0 && text.contains("4 pages in"), "{text}");
    let told = text.split("kept out by the filter:\n").nth(1).unwrap();
    let told: Vec<&str> = told.lines().take(3).map(str::trim).collect();
    assert_eq!(told[..2], ["matched by no include  2", "excluded by */print    1"]);
    assert!(told[2].starts_with("the store "), "{told:?}");
    let url = web.url(0, "/news/1/print").to_string();
    let explained = crawl(&["explain", &url], folder.path());
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(explained.contains("refused: not in the corpus: a pattern of the filter excludes it"));
    let fact = explained.lines().find(|line| line.starts_with("  filter "));
    assert!(fact.is_some_and(|fact| fact.ends_with(" excluded by */print")), "{explained}");
    let report =
        crawl(&[&[seed.as_str(), "--allow-private", "--json"], &flags[..]].concat(), folder.path());
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["kept_out"], json!({}));
}

#[test]
fn a_crawl_that_was_asked_for_has_patterns_of_its_own() {
    let web = Web::one(site());
    let server = Server::with(|settings| {
        settings.clock = Clock::System;
        settings.crawl = filtered(&["*/about"], &["*/print"]).settings();
        settings.api.crawls = true;
    });
    let ask = |more: &Value| {
        let mut wish = json!({"seeds": [web.web.url(0)]});
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/crawls", "application/json", wish.to_string().as_bytes())
    };
    let visited = |more: &Value| {
        web.web.forget();
        let answer = ask(more);
        assert_eq!(answer.status, 202, "{}", answer.body);
        let end = Instant::now() + Duration::from_mins(1);
        while server.rows("/v1/crawls")[0]["state"] == "running" {
            assert!(Instant::now() < end, "the crawl ends");
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(server.rows("/v1/crawls")[0]["state"], "done");
        asked(&web)
    };
    // Those that include stand for those of the settings, those that exclude add to them.
    let wish = json!({"include": ["*/news/*"], "exclude": ["*/2"]});
    assert_eq!(visited(&wish), paths(&["/", "/news/1"]));
    assert_eq!(visited(&json!({})), paths(&["/about"]));
    assert_eq!(visited(&json!({"include": ["*"]})), paths(&["/news/2", "/tag/a", "/tag/b?p=1"]));
    for field in ["include", "exclude"] {
        let answer = ask(&json!({field: ["*/a", "re:a(b"]}));
        let detail = answer.json()["detail"].to_string();
        answer.is(400, "bad_field");
        assert!(detail.contains("`re:a(b` is no regular expression"), "{detail}");
    }
}
