//! Judging and joining articles: which are one document, and which copy of it is kept.

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::{self, Article, Joined, Place};
use uniqcrawl::corpus::dedup;
use uniqcrawl::corpus::documents::{DocId, Facts, copies_of, read_body};
use uniqcrawl::corpus::index::Index;
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::neardup::{self, Key};
use uniqcrawl::neardup::{Config, Deduplicator, Finder, InputDocument, Question, Verdict};
use uniqcrawl::store::View as _;
use uniqcrawl::text::features::{Fingerprinter, Input};
use uniqcrawl::text::simhash::Fingerprint;
use uniqcrawl::web::robots::meta::Terms;

use crate::shelf::SMALL;
use crate::support::{Crawled, prose};

/// A store under judgement, one article after the other.
struct Judge {
    crawled: Crawled,
    config: Config,
    index: Index,
    fingerprinter: Fingerprinter,
    time: i64,
}

impl Judge {
    fn new() -> Self {
        Self::with(Config::default())
    }

    /// Finds candidates by their fingerprints only.
    fn by_fingerprints() -> Self {
        Self::with(Config { sentences: false, bands: 0, ..Config::default() })
    }

    fn with(config: Config) -> Self {
        let crawled = Crawled::new();
        let index = Index::open_with(&crawled.store, &config, SMALL).unwrap();
        Self { crawled, config, index, fingerprinter: Fingerprinter::default(), time: 0 }
    }

    fn article(&self, address: &str, title: &str, text: &str) -> Article {
        Article {
            address: address.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            language: String::new(),
            facts: Facts::default(),
            left_out: 0,
            score: None,
            terms: Terms::default(),
            declared: String::new(),
            keys: neardup::article_keys(
                &self.fingerprinter,
                &Input { title, text, url: address, ..Input::default() },
            ),
        }
    }

    fn add(&mut self, article: &Article, links: u64) -> (Place, Joined) {
        self.time += 1;
        let mut batch = self.crawled.store.begin().unwrap();
        let question = Question::new(&article.keys, &article.address);
        let judged = dedup::judge_stored(&batch, &self.index, &question, &self.config).unwrap();
        let place = judged.place;
        let now = Timestamp(self.time);
        let joined = clusters::join(&mut batch, article, &place, links, now).unwrap();
        if let Some(content) = joined.content {
            self.index.insert(&mut batch, content, &article.keys);
        }
        self.index.merge_some(&mut batch).unwrap();
        batch.commit().unwrap();
        self.index.committed();

        (place, joined)
    }

    fn key(&mut self, address: &str, title: &str, text: &str) -> Option<Key> {
        let article = self.article(address, title, text);
        match self.add(&article, 0).0 {
            Place::New => None,
            Place::Tree(matched) => Some(matched.key),
        }
    }
}

#[test]
fn the_same_text_in_another_form_is_an_exact_copy() {
    let mut judge = Judge::new();
    let text = prose(1, 60);
    assert_eq!(judge.key("a", "One", &text), None);
    let form = text.to_uppercase().replace(' ', "\u{3000}\n");
    assert_eq!(judge.key("b", "Two", &form), Some(Key::Exact));
    assert_eq!(judge.key("c", "Three", &prose(2, 60)), None);
}

#[test]
fn a_near_title_joins_only_texts_that_are_alike() {
    let mut judge = Judge::new();
    let text = prose(1, 200);
    judge.key("a", "The harbour bridge opens", &text);
    assert_eq!(judge.key("b", "The harbour bridge opens", &prose(2, 200)), None);
    let close = format!("Updated today at nine. {text} Read more in our paper.");
    assert_eq!(judge.key("c", "The harbour bridge opens", &close), Some(Key::Title));
}

#[test]
fn a_text_that_is_unlike_the_first_copy_is_one_more_if_any_copy_is_much_like_it() {
    let text = prose(1, 300);
    let words: Vec<&str> = text.split(' ').collect();
    // The first so many words of each fifty are others.
    let edited = |others: usize| -> String {
        let words = words.iter().enumerate();
        let words = words.map(
            |(at, word)| {
                if at % 50 < others { format!("x{at}") } else { (*word).to_owned() }
            },
        );
        words.collect::<Vec<_>>().join(" ")
    };
    let found = |steps: &[usize]| -> Vec<bool> {
        let mut judge = Judge::new();
        let mut add = |others| {
            let article = judge.article(&format!("http://{others}.test/"), "", &edited(others));
            judge.add(&article, 0).1.document == 1
        };
        steps.iter().map(|others| add(*others)).collect()
    };
    assert_eq!(found(&[0, 24]), [true, false]);
    assert_eq!(found(&[0, 15, 24]), [true, true, true]);
    assert_eq!(found(&[0, 15, 34]), [true, true, false], "it is much less like any copy");
}

#[test]
fn chinese_copies_with_small_edits_are_one_document() {
    let text = "海量网络文本去重系统把重复的文章找出来，只保留热度最高的一份。系统先计算标题和正文的指纹，\
        再在四张表里查找汉明距离不超过三的指纹，最后用正文的词组确认它们确实相同。这样既不会丢掉原创文章，\
        也不会把同一篇文章保存很多遍。编辑常常只改动标题、时间或者广告，正文几乎不变。"
        .repeat(2);
    let mut judge = Judge::new();
    assert_eq!(judge.key("a", "网页去重系统上线", &text), None);
    let reprint = format!("本报讯 2026年11月21日 {text}（责任编辑：王）");
    let key = judge.key("b", "网页去重系统上线", &reprint);
    assert_eq!(key, Some(Key::Title));
    assert_eq!(judge.key("c", "渔港的灯塔", &"渔港的灯塔在夜里亮起来了。".repeat(9)), None);
}

#[test]
fn short_texts_are_copies_only_if_they_are_equal() {
    let mut judge = Judge::new();
    assert_eq!(judge.key("a", "Home", "Welcome to our page"), None);
    assert_eq!(judge.key("b", "Home", "Welcome to our pages"), None);
    assert_eq!(judge.key("c", "Home", "welcome to our page"), Some(Key::Exact));
}

#[test]
fn an_accident_of_the_fingerprint_joins_nothing() {
    let mut judge = Judge::new();
    let mut first = judge.article("a", "A", &prose(1, 100));
    let mut second = judge.article("b", "B", &prose(2, 100));
    (first.keys.text.fingerprint, second.keys.text.fingerprint) = (Fingerprint(7), Fingerprint(7));
    judge.add(&first, 0);
    assert_eq!(judge.add(&second, 0).0, Place::New);
}

#[test]
fn the_tree_with_most_copies_takes_a_text_that_two_would_take() {
    let mut judge = Judge::by_fingerprints();
    let text = prose(1, 100);
    // Alike enough for a sketch, and five bits apart: two trees, with the third between them.
    let article = |judge: &Judge, address: &str, add: &str, bits: u64| {
        let mut article = judge.article(address, "", &format!("{text} {add}"));
        article.keys.text.fingerprint = Fingerprint(bits);
        article
    };
    let old = article(&judge, "old", "uno", 0b0_0000);
    let large = article(&judge, "large", "due", 0b1_1111);
    let old = judge.add(&old, 0).1.document;
    let large = judge.add(&large, 0).1.document;
    assert_ne!(old, large);
    let copy = article(&judge, "copy", "due", 0b1_1111);
    assert_eq!(judge.add(&copy, 0).1.document, large);
    let between = article(&judge, "between", "tre", 0b0_0111);
    assert_eq!(judge.add(&between, 0).1.document, large);
}

#[test]
fn the_older_tree_takes_a_text_if_both_have_as_many_copies() {
    let mut judge = Judge::by_fingerprints();
    let text = prose(1, 100);
    let mut documents = Vec::new();
    for (address, bits) in [("old", 0b1_1111), ("new", 0b0_0000), ("between", 0b0_0111)] {
        let mut article = judge.article(address, "", &format!("{text} {address}"));
        article.keys.text.fingerprint = Fingerprint(bits);
        documents.push(judge.add(&article, 0).1.document);
    }
    assert_eq!(documents[2], documents[0]);
}

#[test]
fn the_most_popular_copy_is_kept_and_may_come_later() {
    let mut judge = Judge::new();
    let text = prose(1, 80);
    let first = judge.article("http://a/first", "One", &text);
    let (_, first) = judge.add(&first, 1);
    let mut scored = judge.article("http://b/second", "Two", &text);
    scored.score = Some(50);
    let (_, second) = judge.add(&scored, 0);
    assert_eq!((second.document, second.canonical), (first.document, true));
    let (_, third) = judge.add(&judge.article("http://c/third", "Three", &text), 20);
    assert!(!third.canonical);

    let mut batch = judge.crawled.store.begin().unwrap();
    let number = first.document;
    assert!(!clusters::set_links(&mut batch, number, "http://a/first", 49, Timestamp(9)).unwrap());
    assert!(clusters::set_links(&mut batch, number, "http://c/third", 51, Timestamp(9)).unwrap());
    assert!(
        !clusters::set_links(&mut batch, number, "http://b/second", 99, Timestamp(9)).unwrap(),
        "scored"
    );
    let document = batch.get(DOCUMENTS, number).unwrap().unwrap();
    assert_eq!((document.canonical.as_str(), document.title.as_str()), ("http://c/third", "Three"));
    assert_eq!(document.id, DocId::of("http://a/first", "One", scored.keys.text.hash));
    assert_eq!(copies_of(&batch, number).unwrap().len(), 3);
}

#[test]
fn the_text_of_every_near_copy_can_be_read_back() {
    let mut judge = Judge::new();
    let text = prose(1, 300);
    judge.add(&judge.article("a", "One two", &text), 0);
    let near = format!("{text} And one line more.");
    let mut article = judge.article("b", "One two", &near);
    article.score = Some(9);
    let (place, joined) = judge.add(&article, 0);
    assert!(matches!(place, Place::Tree(_)) && joined.canonical);
    let snapshot = judge.crawled.store.snapshot().unwrap();
    let document = snapshot.get(DOCUMENTS, joined.document).unwrap().unwrap();
    assert_eq!(read_body(&snapshot, document.content).unwrap(), Some(near));
    assert_eq!(read_body(&snapshot, document.root).unwrap(), Some(text));
}

#[test]
fn the_rule_holds_for_texts_that_are_surely_one_too() {
    let text = prose(1, 300);
    let edited = format!("{text} {}", prose(2, 20));
    let joined = |similarity_min: f32| {
        let mut config = Config::default();
        (config.rule.similarity_min, config.rule.containment_min) = (similarity_min, 1.0);
        let mut dedup = Deduplicator::new(config.clone()).unwrap();
        let document = |text| InputDocument { text, ..InputDocument::default() };
        dedup.judge(document(&text));
        let same = dedup.judge(document(&edited)) != Verdict::New;
        let compared = dedup::compare(&config, document(&text), document(&edited)).unwrap();
        assert_eq!(same, compared.same, "{compared:?}");
        assert!(compared.similarity > config.rule.sure_min, "{compared:?}");
        same
    };
    assert!(joined(0.45) && !joined(0.99));
}

#[test]
fn settings_of_any_size_are_refused_or_taken_and_never_overflow() {
    let bands = Config { bands: usize::MAX / 4 + 1, band_rows: 4, ..Config::default() };
    assert!(bands.check().unwrap_err().to_string().contains("256 slots"));
    let all = Config { candidates_max: usize::MAX, ..Config::default() };
    let mut dedup = Deduplicator::new(all).unwrap();
    let text = prose(1, 60);
    dedup.judge(InputDocument { text: &text, ..InputDocument::default() });
    let near = format!("{text} More.");
    let verdict = dedup.judge(InputDocument { text: &near, ..InputDocument::default() });
    assert!(matches!(verdict, Verdict::Duplicate { .. }));
}

#[test]
fn titles_are_near_within_three_bits_whatever_texts_are() {
    for k in [3, 8] {
        let config = Config { k, ..Config::default() };
        let mut finder = Finder::new(&config).unwrap();
        let keys = |text, title| {
            let mut keys = Fingerprinter::default().article_keys("", &prose(text, 60), "");
            keys.title = Some(Fingerprint(title));
            keys
        };
        finder.insert(5, &keys(1, 0));
        let titled = |bits| finder.keys_of(5, &keys(2, bits)).contains(&Key::Title);
        assert!(titled(0) && titled(0b111) && !titled(0b1111), "within {k}");
    }
}
