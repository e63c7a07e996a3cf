//! `rel=canonical`: a hint that is followed only within the copies of one document.

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::{self, Article};
use uniqcrawl::corpus::dedup;
use uniqcrawl::corpus::documents::Facts;
use uniqcrawl::corpus::explain::Explanation;
use uniqcrawl::corpus::export::{Config, JSONL, Target, export};
use uniqcrawl::corpus::index::Index;
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::neardup::{self, Question};
use uniqcrawl::store::View as _;
use uniqcrawl::text::features::{Fingerprinter, Input};
use uniqcrawl::web::robots::meta::Terms;

use crate::lab::Lab;
use crate::support::{Crawled, Web, clusters as stored, config, page, prose};

/// An article whose head names `named` as canonical, unless that is empty.
fn article(seed: u64, named: &str) -> String {
    let html = page(&format!("Article {seed}"), &prose(seed, 80), &[]);
    let link = format!("</title><link rel=\"canonical\" href=\"{named}\">");
    if named.is_empty() { html } else { html.replace("</title>", &link) }
}

fn front(links: &[&str]) -> String {
    page("Front", &prose(1, 80), links)
}

fn fact(told: &Explanation) -> &str {
    let found = told.facts.iter().find(|(name, _)| name == "names as canonical");
    found.map_or("", |(_, value)| value)
}

#[track_caller]
fn assert_canonical(crawled: &Crawled, web: &Web, expected: &[(usize, &str)]) {
    let found: Vec<String> = crawled.clusters().into_keys().collect();
    let mut expected: Vec<String> =
        expected.iter().map(|(host, path)| web.url(*host, path).to_string()).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_copy_defers_to_the_one_that_it_names_whichever_comes_first() {
    for links in [["/a", "/articles/a.html"], ["/articles/a.html", "/a"]] {
        let site = Site::new()
            .html("/", front(&links))
            .html("/a", article(2, "/articles/a.html"))
            .html("/articles/a.html", article(2, "/articles/a.html"));
        let web = Web::one(site);
        let crawled = Crawled::new();
        crawled.run(&config(), &web.seeds());
        assert_canonical(&crawled, &web, &[(0, "/"), (0, "/articles/a.html")]);
        let told = crawled.explain(&web.url(0, "/a"));
        assert_eq!(told.state, "duplicate");
        let named = web.url(0, "/articles/a.html");
        assert_eq!(fact(&told), format!("{named} (followed)"));
        assert_eq!(fact(&crawled.explain(&named)), "", "it names itself");
        // The list of duplicates says what each of them names.
        let folder = tempfile::tempdir().unwrap();
        let form = Target { format: &JSONL, folder: folder.path() };
        export(&crawled.store, form, &Config::default(), Timestamp(0)).unwrap();
        let lost = std::fs::read_to_string(folder.path().join("duplicates.jsonl")).unwrap();
        let lost: serde_json::Value = serde_json::from_str(&lost).unwrap();
        assert_eq!(lost["declaredCanonical"], named.as_str());
    }
}

#[test]
fn a_more_popular_copy_stays_whatever_its_page_names() {
    let web = Web::start(2, |urls| {
        let a = format!("{}/a", urls[0]);
        let first = Site::new()
            .html("/", front(&["/a", "/articles/a.html"]))
            .html("/a", article(2, "/articles/a.html"))
            .html("/articles/a.html", article(2, ""));
        vec![first, Site::new().html("/", page("Other", &prose(3, 80), &[&a]))]
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    assert_canonical(&crawled, &web, &[(0, "/"), (1, "/"), (0, "/a")]);
    let told = crawled.explain(&web.url(0, "/a"));
    assert_eq!(told.state, "stored");
    assert!(fact(&told).contains("same document, less popular than"), "{}", fact(&told));
}

#[test]
fn what_is_no_copy_of_the_page_is_not_believed() {
    let links = ["/b", "/c", "/d", "/e", "/f", "/other", "/no", "/private", "/moved", "/g"];
    let site = Site::new()
        .robots("User-agent: *\nDisallow: /private\n")
        .html("/", front(&links))
        .html("/other", article(10, ""))
        .page("/moved", Page::redirect(302, "/other"))
        .html("/private", article(15, ""))
        .html("/b", article(11, "/other"))
        .html("/c", article(12, "/no"))
        .html("/d", article(13, "/private"))
        .html("/e", article(14, "/moved"))
        .html("/f", article(16, "http://not.known.test/f"))
        .html("/g", article(17, "mailto:a@b"));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    let own = ["/", "/other", "/b", "/c", "/d", "/e", "/f", "/g"].map(|path| (0, path));
    assert_canonical(&crawled, &web, &own);
    for (path, why) in [
        ("/b", "not followed: it is another document"),
        ("/c", "not followed: it is not in the corpus: the server answered with an error status"),
        ("/d", "not followed: it is not in the corpus: robots.txt of the host disallows it"),
        ("/e", "not followed: it redirects to"),
        ("/f", "not followed: it "),
    ] {
        let told = crawled.explain(&web.url(0, path));
        assert_eq!(told.state, "stored", "{path}");
        assert!(fact(&told).contains(why), "{path}: {}", fact(&told));
    }
    assert_eq!(fact(&crawled.explain(&web.url(0, "/g"))), "");
}

#[test]
fn other_hosts_and_headers_are_taken_on_the_same_terms() {
    let web = Web::start(2, |urls| {
        let original = format!("{}/articles/original.html", urls[0]);
        let header = format!("<{original}>; rel=\"canonical\"");
        let first = Site::new()
            .html("/", front(&["/articles/original.html", "/lie"]))
            .html("/articles/original.html", article(2, ""))
            .html("/lie", article(4, &format!("{}/copy", urls[1])));
        let second = Site::new()
            // As many hosts link to the original as to the copy, which the lie names.
            .html("/", page("Other", &prose(3, 80), &["/copy", &original]))
            .page("/copy", Page::html(article(2, "")).header("Link", &header));
        vec![first, second]
    });
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    let expected = [(0, "/"), (1, "/"), (0, "/articles/original.html"), (0, "/lie")];
    assert_canonical(&crawled, &web, &expected);
    let told = crawled.explain(&web.url(1, "/copy"));
    assert_eq!((told.state, fact(&told).ends_with("(followed)")), ("duplicate", true), "{told:?}");
    let told = crawled.explain(&web.url(0, "/lie"));
    assert!(fact(&told).contains("it is another document"), "{}", fact(&told));
}

#[test]
fn chains_and_cycles_end() {
    let links = ["/a", "/bbb", "/ccccc", "/x", "/yyy", "/p", "/qq", "/neutral"];
    let site = Site::new()
        .html("/", front(&links))
        // A chain: its end stands for all.
        .html("/a", article(2, "/bbb"))
        .html("/bbb", article(2, "/ccccc"))
        .html("/ccccc", article(2, ""))
        // A cycle tells nothing.
        .html("/x", article(3, "/yyy"))
        .html("/yyy", article(3, "/x"))
        // Beside one, a copy that names none stands.
        .html("/p", article(4, "/qq"))
        .html("/qq", article(4, "/p"))
        .html("/neutral", article(4, ""));
    let web = Web::one(site);
    let crawled = Crawled::new();
    crawled.run(&config(), &web.seeds());
    assert_canonical(&crawled, &web, &[(0, "/"), (0, "/ccccc"), (0, "/x"), (0, "/neutral")]);
    let told = crawled.explain(&web.url(0, "/a"));
    let end = web.url(0, "/ccccc");
    assert!(fact(&told).ends_with(&format!("of the same document; {end} stands for both)")));
}

#[test]
fn a_page_that_names_another_address_later_or_whose_canonical_copy_goes_is_elected_anew() {
    let lab = Lab::new(1);
    lab.html(0, "/", front(&["/a", "/bb", "/ccc"]));
    lab.html(0, "/a", article(2, "/ccc"));
    lab.html(0, "/bb", article(2, "/ccc"));
    lab.html(0, "/ccc", article(2, ""));
    let canonical = || lab.document(0, "/a").canonical;
    let url = |path: &str| lab.url(0, path).to_string();
    lab.run();
    assert_eq!(canonical(), url("/ccc"));
    // The text is the same; what the page names is not.
    lab.html(0, "/a", article(2, ""));
    lab.much_later();
    assert_eq!(canonical(), url("/a"));
    lab.html(0, "/a", article(2, "/ccc"));
    lab.much_later();
    assert_eq!(canonical(), url("/ccc"));
    // What is gone stands for nothing.
    lab.remove(0, "/ccc");
    lab.much_later();
    lab.much_later();
    assert_eq!(canonical(), url("/a"));
    let told = lab.crawled.explain(&lab.url(0, "/a"));
    assert!(fact(&told).contains("no longer there"), "{}", fact(&told));
}

#[test]
fn the_order_of_arrival_decides_nothing() {
    let crawled = Crawled::new();
    let mut index = Index::open(&crawled.store, &neardup::Config::default()).unwrap();
    let fingerprinter = Fingerprinter::default();
    let mut batch = crawled.store.begin().unwrap();
    let mut chance = 7_u64;
    let mut pick = |below: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (chance >> 33) % below
    };
    for trial in 0..60 {
        // Five copies that name each other, themselves or nobody, with popularities 0 and 1.
        let copies: Vec<(u64, u64)> = (0..5).map(|_| (pick(7), pick(3) / 2)).collect();
        let mut elected = Vec::new();
        for order in 0..4 {
            let address = |copy: u64| format!("http://{trial}/{order}/{copy}");
            let text = prose(trial * 10 + order + 1, 60);
            let mut left: Vec<u64> = (0..5).collect();
            let mut document = 0;
            while !left.is_empty() {
                let copy = left.remove(pick(left.len() as u64) as usize);
                let (named, links) = copies[copy as usize];
                let named = if named < 5 && named != copy { address(named) } else { String::new() };
                let article = Article {
                    address: address(copy),
                    title: String::new(),
                    text: text.clone(),
                    language: String::new(),
                    facts: Facts::default(),
                    left_out: 0,
                    score: None,
                    terms: Terms::default(),
                    declared: named,
                    keys: neardup::article_keys(
                        &fingerprinter,
                        &Input { text: &text, url: &address(copy), ..Input::default() },
                    ),
                };
                let config = neardup::Config::default();
                let question = Question::new(&article.keys, &article.address);
                let judged = dedup::judge_stored(&batch, &index, &question, &config).unwrap();
                let now = Timestamp(1);
                // Half of them get their links later.
                let at_once = if pick(2) == 0 { links } else { 0 };
                let joined =
                    clusters::join(&mut batch, &article, &judged.place, at_once, now).unwrap();
                document = joined.document;
                if let Some(content) = joined.content {
                    index.insert(&mut batch, content, &article.keys);
                }
                clusters::set_links(&mut batch, document, &article.address, links, now).unwrap();
            }
            let row = batch.get(DOCUMENTS, document).unwrap();
            elected.push(row.unwrap().canonical.chars().next_back());
        }
        elected.dedup();
        assert_eq!(elected.len(), 1, "{copies:?}: {elected:?}");
    }
    batch.commit().unwrap();
    // Also as the check of the whole store sees it.
    let findings = uniqcrawl::corpus::check::check(&crawled.store.snapshot().unwrap()).unwrap();
    let wrong: Vec<&String> =
        findings.listed.iter().filter(|fault| fault.contains(" keeps ")).collect();
    assert_eq!(wrong, Vec::<&String>::new());
    assert_eq!(stored(&crawled.store).len(), 240);
}
