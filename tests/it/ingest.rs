//! Articles that are sent: identifiers, order of the look-ups, durability.

use std::sync::{Arc, Mutex};

use serde_json::json;
use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::corpus::clusters;
use uniqcrawl::corpus::documents::{DocId, Document, by_copies, growth_since};
use uniqcrawl::corpus::explain::explain;
use uniqcrawl::corpus::export::{self, JSONL};
use uniqcrawl::corpus::index::Index;
use uniqcrawl::corpus::tables::{ARRIVALS, DOC_IDS, DOCUMENTS};
use uniqcrawl::neardup::Config;
use uniqcrawl::neardup::Key;
use uniqcrawl::service::ingest::{
    ArticleLimits, Bad, Found, Ingest, IngestRules, Receipt, Submission,
};
use uniqcrawl::store::Store;
use uniqcrawl::store::View as _;
use uniqcrawl::urls::{Normalize, PageUrl};

use crate::support::{check_clean, prose};

fn by(dedup: &Config, normalize: Normalize) -> IngestRules<'_> {
    IngestRules { dedup, normalize, limits: ArticleLimits::default() }
}

struct Harness {
    folder: tempfile::TempDir,
    store: Arc<Store>,
    ingest: Ingest,
    clock: Clock,
    runtime: tokio::runtime::Runtime,
}

impl Harness {
    fn new() -> Self {
        Self::with(&Config::default(), Normalize::default())
    }

    fn with(config: &Config, rules: Normalize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap());
        let index = Arc::new(Mutex::new(Index::open(&store, config).unwrap()));
        let clock = Clock::hand(Timestamp(1_795_262_400_000));
        let ingest = Ingest::start(store.clone(), index, by(config, rules), clock.clone()).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self { folder, store, ingest, clock, runtime }
    }

    /// What is wrong with an article.
    fn refusal(&self, article: serde_json::Value) -> Bad {
        let submission: Submission = serde_json::from_value(article).unwrap();
        self.ingest.prepare(submission).unwrap_err()
    }

    fn document(&self, id: DocId) -> Document {
        let snapshot = self.store.snapshot().unwrap();
        let number = snapshot.get(DOC_IDS, id).unwrap().unwrap();
        snapshot.get(DOCUMENTS, number).unwrap().unwrap()
    }

    fn send(&self, article: serde_json::Value) -> Receipt {
        let submission: Submission = serde_json::from_value(article).unwrap();
        let prepared = self.ingest.prepare(submission).unwrap();
        let receipts = self.runtime.block_on(self.ingest.deliver(vec![prepared])).unwrap();
        check_clean(&self.store);
        receipts.into_iter().next().unwrap()
    }
}

#[test]
fn the_two_articles_of_the_paper_are_one_document() {
    let harness = Harness::new();
    let first = harness.send(json!({
        "url": "http://www.simhash.com", "title": "计算机应用与软件",
        "content": "海量网络文本去重系统实验测试,这是一段测试文本的内容。",
        "category": "0", "media": "sina", "imageCount": "4",
    }));
    assert_eq!(first.found, Found::New);
    let second = harness.send(json!({
        "url": "http://www.simhash1.com", "title": "计算机应用和软件2",
        "content": "海量网络文本去重系统实验检测,这是一段相似的测试文本的内容。",
        "category": "0", "media": "sina", "imageCount": "4",
    }));
    assert_eq!((second.found.as_str(), second.doc_id), ("content", first.doc_id), "{second:?}");
}

#[test]
fn an_article_that_is_sent_again_gets_the_answer_it_got_before() {
    let harness = Harness::new();
    let article = |nid: &str, url: &str, text: String| json!({"nid": nid, "url": url, "title": "A title of some words", "content": text});
    let first = harness.send(article("n1", "http://a.example/1", prose(1, 120)));
    let again = harness.send(article("n1", "http://a.example/2", prose(2, 120)));
    assert_eq!((again.found, again.doc_id), (Found::Nid, first.doc_id));
    let url = harness.send(article("n2", "http://a.example/1", prose(3, 120)));
    assert_eq!((url.found, url.doc_id), (Found::Url, first.doc_id));
    let other = harness.send(article("n3", "http://a.example/3", prose(4, 120)));
    assert_eq!(other.found, Found::New);
    assert_ne!(other.doc_id, first.doc_id);
}

#[test]
fn an_article_that_is_known_does_not_wait_for_the_writer() {
    let harness = Harness::new();
    let article =
        |nid: &str, text: String| json!({"nid": nid, "title": "Some words", "content": text});
    let first = harness.send(article("n1", prose(1, 120)));
    let ask = |article: serde_json::Value, most: u64| {
        let submission: Submission = serde_json::from_value(article).unwrap();
        let prepared = harness.ingest.prepare(submission).unwrap();
        harness.runtime.block_on(async {
            let most = std::time::Duration::from_millis(most);
            tokio::time::timeout(most, harness.ingest.deliver(vec![prepared])).await
        })
    };
    // Nobody else can write meanwhile.
    let batch = harness.store.begin().unwrap();
    let again = ask(article("n1", prose(2, 120)), 60_000).unwrap().unwrap().remove(0);
    assert_eq!(again, Receipt { found: Found::Nid, ..first.clone() });
    assert!(ask(article("n2", prose(1, 120)), 100).is_err());
    drop(batch);
    let other = harness.send(article("n2", prose(1, 120)));
    assert_eq!((other.found, other.doc_id), (Found::Nid, first.doc_id));
    // What is wrong with an article is told all the same.
    assert_eq!(harness.refusal(json!({"nid": "n1"})), Bad::Empty);
}

#[test]
fn the_most_popular_copy_is_kept_and_an_address_that_is_sent_again_can_become_it() {
    let harness = Harness::new();
    let copy = |nid: &str, host: &str, popularity: u64| json!({"nid": nid, "url": format!("http://{host}.example/"), "title": "One story of many words", "content": prose(5, 200), "media": host, "popularity": popularity.to_string()});
    let first = harness.send(copy("1", "a", 10));
    let second = harness.send(copy("2", "b", 30));
    assert_eq!((second.found, second.canonical), (Found::Key(Key::Exact), true));
    let third = harness.send(copy("3", "c", 20));
    assert_eq!((third.doc_id, third.canonical), (first.doc_id, false));
    let document = harness.document(first.doc_id);
    assert_eq!((document.facts.site.as_str(), document.copies, document.popularity), ("b", 3, 30));
    // The address is known; it is more popular by now.
    let again = harness.send(copy("4", "a", 40));
    assert_eq!((again.found, again.canonical), (Found::Url, true));
    let document = harness.document(first.doc_id);
    assert_eq!((document.facts.site.as_str(), document.copies, document.popularity), ("a", 3, 40));
    // And less popular after that.
    assert!(!harness.send(copy("5", "a", 1)).canonical);
    assert_eq!(harness.document(first.doc_id).facts.site, "b");
}

#[test]
fn an_article_may_be_a_text_alone_or_a_title_alone() {
    let harness = Harness::new();
    let text = harness.send(json!({"nid": 7, "content": prose(6, 100)}));
    let same = harness.send(json!({"nid": 8, "title": null, "content": prose(6, 100)}));
    assert_eq!((same.found, same.doc_id), (Found::Key(Key::Exact), text.doc_id));
    let title = harness.send(json!({"nid": "t", "title": "A headline and nothing else"}));
    assert_eq!(title.found, Found::New);
    let again = harness.send(
        json!({"url": "http://x.example", "title": "A headline and nothing else", "content": " "}),
    );
    assert_eq!((again.found, again.doc_id), (Found::Key(Key::Exact), title.doc_id));
}

#[test]
fn the_limits_are_inclusive() {
    let harness = Harness::new();
    let most = ArticleLimits::default().content_size_max.bytes();
    for (field, most) in [("nid", 2_048), ("title", 8_192), ("category", 2_048), ("content", most)]
    {
        let article = |bytes: usize| {
            let mut article = json!({"nid": "n", "content": "some words of a text"});
            article[field] = "x".repeat(bytes).into();
            article
        };
        assert!(harness.ingest.prepare(serde_json::from_value(article(most)).unwrap()).is_ok());
        assert_eq!(
            harness.refusal(article(most + 1)),
            Bad::TooLong { field, bytes: most + 1, most }
        );
    }
    assert_eq!(harness.refusal(json!({"content": "x"})), Bad::Nameless);
    assert_eq!(harness.refusal(json!({"nid": "x", "title": " ", "content": "\n"})), Bad::Empty);
    assert!(matches!(harness.refusal(json!({"url": "no address", "title": "x"})), Bad::Url(_)));
}

#[test]
fn an_article_of_a_document_that_has_ended_is_new_when_it_is_sent_again() {
    let harness = Harness::new();
    let article = json!({"nid": "n", "url": "http://a.example/", "title": "A story", "content": prose(7, 120)});
    let first = harness.send(article.clone());
    assert_eq!(harness.send(article.clone()).found, Found::Nid);
    harness.clock.advance(std::time::Duration::from_hours(48));
    let mut batch = harness.store.begin().unwrap();
    assert_eq!(clusters::expire(&mut batch, harness.clock.now()).unwrap().documents, 1);
    batch.commit().unwrap();
    check_clean(&harness.store);
    let other = Harness {
        ingest: Ingest::start(
            harness.store.clone(),
            Arc::new(Mutex::new(Index::open(&harness.store, &Config::default()).unwrap())),
            by(&Config::default(), Normalize::default()),
            harness.clock.clone(),
        )
        .unwrap(),
        ..harness
    };
    let again = other.send(article);
    assert_eq!((again.found, again.doc_id), (Found::New, first.doc_id), "of the same words");
}

#[test]
fn exports_and_explanations_know_what_was_sent() {
    let harness = Harness::new();
    let article = |nid: &str, host: &str| json!({"nid": nid, "url": format!("http://{host}.example/p"), "title": "A story", "content": prose(8, 120), "category": "sports", "imageCount": "4"});
    harness.send(article("1", "a"));
    harness.send(article("2", "longer"));
    let out = harness.folder.path().join("out");
    let target = export::Target { format: &JSONL, folder: &out };
    export::export(&harness.store, target, &export::Config::default(), harness.clock.now())
        .unwrap();
    let row = std::fs::read_to_string(out.join("documents.jsonl")).unwrap();
    let row: serde_json::Value = serde_json::from_str(&row).unwrap();
    assert_eq!((&row["category"], &row["images"]), (&json!("sports"), &json!(4)));
    let snapshot = harness.store.snapshot().unwrap();
    let told = |url: &str| explain(&snapshot, &PageUrl::parse(url).unwrap()).unwrap();
    assert_eq!(told("http://a.example/p").state, "stored");
    assert_eq!(told("http://longer.example/p").summary, "a copy of http://a.example/p");
    assert_eq!(told("http://b.example/p").state, "unknown");
}

#[test]
fn documents_stand_in_the_order_of_copies_and_hours_are_counted() {
    let harness = Harness::new();
    let send = |nid: &str, story: u64| {
        harness.send(
            json!({"nid": nid, "title": format!("Story {story}"), "content": prose(story, 150)}),
        )
    };
    for (nid, story) in [("a", 1), ("b", 2), ("c", 2), ("d", 3), ("e", 3), ("f", 3)] {
        send(nid, story);
    }
    harness.clock.advance(std::time::Duration::from_hours(2));
    for (nid, story) in [("g", 2), ("h", 2), ("i", 1)] {
        send(nid, story);
    }
    let snapshot = harness.store.snapshot().unwrap();
    let order: Vec<(u64, u64)> =
        by_copies(&snapshot, None, None).unwrap().map(Result::unwrap).collect();
    assert_eq!(order, [(2, 1), (3, 3), (4, 2)]);
    for (places, rest) in [
        ((None, Some((3, 3))), (2, 1)),
        ((Some((3, 3)), None), (4, 2)),
        ((Some((2, 1)), Some((4, 2))), (3, 3)),
    ] {
        let found = by_copies(&snapshot, places.0, places.1).unwrap().map(Result::unwrap);
        assert_eq!(found.collect::<Vec<_>>(), [rest], "{places:?}");
    }
    let hour = 1_795_262_400_000 / 3_600_000;
    let grown = |since| growth_since(&snapshot, since, 100).unwrap().0;
    assert_eq!(grown(hour), [(1, 1), (2, 3), (3, 2)].into());
    assert_eq!(grown(hour + 1), [(1, 1), (2, 2)].into());
    assert!(!growth_since(&snapshot, hour, 2).unwrap().1, "told that it is cut");
    let arrivals = |hour| {
        let row = snapshot.get(ARRIVALS, hour).unwrap().unwrap();
        (row.documents, row.copies)
    };
    assert_eq!((arrivals(hour), arrivals(hour + 2)), ((3, 6), (0, 3)));
}

#[test]
fn addresses_are_known_by_the_rules_of_the_store() {
    let article = |url: &str, seed: u64| json!({"url": url, "title": "A title of some words", "content": prose(seed, 120)});
    for (sort_parameters, found) in [(true, Found::Nid), (false, Found::New)] {
        let rules = Normalize { sort_parameters, ..Normalize::default() };
        let harness = Harness::with(&Config::default(), rules);
        harness.send(article("http://a.example/?a=1&b=2", 1));
        assert_eq!(harness.send(article("http://a.example/?b=2&a=1", 2)).found, found);
    }
}

#[test]
fn an_nid_that_is_the_address_of_another_article_names_its_own_only() {
    let harness = Harness::new();
    let article = |nid: &str, url: &str, seed: u64| json!({"nid": nid, "url": url, "title": format!("Story {seed} of some words"), "content": prose(seed, 120)});
    // Both say the same, so that they are copies of one document.
    let (one, other) = ("http://a.example/1", "http://a.example/2");
    let named = harness.send(article(one, "", 1));
    let addressed = harness.send(article("x", one, 1));
    assert_eq!((addressed.found, addressed.doc_id), (Found::Key(Key::Exact), named.doc_id));
    assert_eq!(harness.document(named.doc_id).copies, 2);
    // Each says something else: neither is taken for the other, in either order.
    let named = harness.send(article(other, "http://b.example/", 2));
    let addressed = harness.send(article("", other, 3));
    assert_eq!((named.found, addressed.found), (Found::New, Found::New));
    let addressed = harness.send(article("", "http://a.example/3", 4));
    let named = harness.send(article("http://a.example/3", "http://c.example/", 5));
    assert_eq!((named.found, addressed.found), (Found::New, Found::New));
    // Each gets the answer that it got before.
    for (nid, url, receipt) in
        [("http://a.example/3", "", &named), ("", "http://a.example/3", &addressed)]
    {
        let again = harness.send(article(nid, url, 6));
        let before = Receipt { found: Found::Nid, ..receipt.clone() };
        assert_eq!(again, before);
    }
    // The name that is made of such an nid is none that another one can have.
    let made = harness.send(article("nid:http://a.example/3", "", 7));
    assert_eq!(made.found, Found::New);
}

#[test]
fn an_article_whose_copy_has_left_since_is_stored_when_its_address_is_sent_again() {
    let harness = Harness::new();
    let article = |nid: &str, url: &str| json!({"nid": nid, "url": url, "title": "A story of some words", "content": prose(1, 120)});
    let first = harness.send(article("1", "http://a.example/"));
    harness.send(article("2", "http://b.example/"));
    // As when the page of this address is gone.
    let mut batch = harness.store.begin().unwrap();
    let number = batch.get(DOC_IDS, first.doc_id).unwrap().unwrap();
    clusters::leave(&mut batch, number, "http://a.example/", harness.clock.now()).unwrap();
    batch.commit().unwrap();
    assert_eq!(harness.document(first.doc_id).copies, 1);
    let again = harness.send(article("3", "http://a.example/"));
    assert_eq!((again.found, again.doc_id), (Found::Key(Key::Exact), first.doc_id));
    assert_eq!(harness.document(first.doc_id).copies, 2);
}
