//! Articles that are sent: identifiers, order of the look-ups, durability.

use std::sync::{Arc, Mutex};

use serde_json::json;
use uniqcrawl::clock::{Clock, Timestamp};
use uniqcrawl::dedup::{self, Config};
use uniqcrawl::intake::{Found, Intake, Limits, Receipt, Submission};
use uniqcrawl::store::Store;

use crate::support::{check_clean, prose};

struct Desk {
    _folder: tempfile::TempDir,
    store: Arc<Store>,
    intake: Intake,
    runtime: tokio::runtime::Runtime,
}

impl Desk {
    fn new() -> Self {
        Self::with(&Config::default())
    }

    fn with(config: &Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open_or_create(folder.path(), 16 << 20).unwrap());
        let finder = Arc::new(Mutex::new(dedup::load(&store, config).unwrap()));
        let clock = Clock::hand(Timestamp(1_795_262_400_000));
        let intake =
            Intake::start(store.clone(), finder, config, Limits::default(), clock).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self { _folder: folder, store, intake, runtime }
    }

    fn send(&self, article: serde_json::Value) -> Receipt {
        let submission: Submission = serde_json::from_value(article).unwrap();
        let prepared = self.intake.prepare(submission).unwrap();
        let receipts = self.runtime.block_on(self.intake.deliver(vec![prepared])).unwrap();
        check_clean(&self.store);
        receipts.into_iter().next().unwrap()
    }
}

#[test]
fn the_two_articles_of_the_paper_are_one_document() {
    let desk = Desk::new();
    let first = desk.send(json!({
        "url": "http://www.simhash.com", "title": "计算机应用与软件",
        "content": "海量网络文本去重系统实验测试,这是一段测试文本的内容。",
        "category": "0", "media": "sina", "imageCount": "4",
    }));
    assert_eq!(first.found, Found::New);
    let second = desk.send(json!({
        "url": "http://www.simhash1.com", "title": "计算机应用和软件2",
        "content": "海量网络文本去重系统实验检测,这是一段相似的测试文本的内容。",
        "category": "0", "media": "sina", "imageCount": "4",
    }));
    assert_eq!((second.found.as_str(), second.doc_id), ("content", first.doc_id), "{second:?}");
}

#[test]
fn an_article_that_is_sent_again_gets_the_answer_it_got_before() {
    let desk = Desk::new();
    let article = |nid: &str, url: &str, text: String| json!({"nid": nid, "url": url, "title": "A title of some words", "content": text});
    let first = desk.send(article("n1", "http://a.example/1", prose(1, 120)));
    let again = desk.send(article("n1", "http://a.example/2", prose(2, 120)));
    assert_eq!((again.found, again.doc_id), (Found::Nid, first.doc_id));
    let url = desk.send(article("n2", "http://a.example/1", prose(3, 120)));
    assert_eq!((url.found, url.doc_id), (Found::Url, first.doc_id));
    let other = desk.send(article("n3", "http://a.example/3", prose(4, 120)));
    assert_eq!(other.found, Found::New);
    assert_ne!(other.doc_id, first.doc_id);
}
