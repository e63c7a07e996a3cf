//! Similar texts: keywords, candidates, cosine, sentences, and odd questions.

use uniqcrawl::base::units::Size;
use uniqcrawl::corpus::search::{Config, Entry, Search, Updated};
use uniqcrawl::text::Idf;

use crate::support::prose;

/// An index of some texts, which are called 0, 1, ...
fn index(texts: &[&str], config: &Config) -> Search {
    let search = Search::open_at(None, config).unwrap();
    let entries = texts.iter().enumerate().map(|(at, text)| {
        Ok(Entry { id: at.to_string(), text: (*text).to_owned(), ..Entry::default() })
    });
    let updated = search.fill("a test", entries).unwrap();
    assert_eq!(updated, Updated { indexed: texts.len() as u64, all: true, ..Updated::default() });
    search
}

fn ids(search: &Search, query: &str) -> Vec<String> {
    let mut ids: Vec<String> =
        search.text(query, 100).unwrap().into_iter().map(|hit| hit.doc_id).collect();
    ids.sort();
    ids
}

#[track_caller]
fn near(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-6, "{one} is not {other}");
}

#[test]
fn keywords_are_those_of_the_largest_tf_idf() {
    let search = index(&["alpha beta", "alpha gamma", "alpha"], &Config::default());
    let idf = |word: &str| {
        let hash = xxhash_rust::xxh3::xxh3_64(word.as_bytes());
        f64::from(Idf::built_in().of(word, hash))
    };
    // The Chinese table: twice 数据库, once 索引, and the usual word 的 not at all.
    let found = search.keywords("数据库。索引。的。数据库。").unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].word.as_str(), found[1].word.as_str()), ("数据库", "索引"));
    near(f64::from(found[0].weight), 2.0 * idf("数据库"));
    near(f64::from(found[1].weight), idf("索引"));
    // Other words: the median, less what the index knows. Of 3 documents all have alpha, one has
    // beta, none has delta.
    let found = search.keywords("The alpha, the beta and the delta").unwrap();
    let words: Vec<&str> = found.iter().map(|keyword| keyword.word.as_str()).collect();
    assert_eq!(words, ["delta", "beta", "alpha"]);
    assert_eq!(found.iter().map(|keyword| keyword.documents).collect::<Vec<_>>(), [0, 1, 3]);
    let median = idf("delta");
    for (keyword, documents) in found.iter().zip([0.0f64, 1.0, 3.0]) {
        let expected = median * (5.0f64.ln() - (documents + 1.0).ln()) / 5.0f64.ln();
        assert!((f64::from(keyword.weight) - expected).abs() < 1e-4, "{keyword:?} {expected}");
    }
    let many: Vec<String> = (0..30).map(|n| format!("word{n}")).collect();
    assert_eq!(search.keywords(&many.join(" ")).unwrap().len(), 20);
}

#[test]
fn the_cosine_is_that_of_the_counts_of_words() {
    // (2, 1) and (1, 2): 4 / 5. (2, 1) and (1, 0): 2 / sqrt(5).
    let chinese = "数据库。数据库。索引。";
    let search = index(&["red red blue", chinese, "green"], &Config::default());
    let hits = search.text("Blue, red, BLUE!", 5).unwrap();
    assert_eq!((hits.len(), hits[0].doc_id.as_str()), (1, "0"));
    near(hits[0].cosine, 0.8);
    near(search.text("red", 5).unwrap()[0].cosine, 2.0 / 5.0f64.sqrt());
    let hits = search.text("索引！数据库？索引", 5).unwrap();
    assert_eq!((hits.len(), hits[0].doc_id.as_str()), (1, "1"));
    near(hits[0].cosine, 0.8);
    // Traditional characters and full-width forms are the same words; usual words do not count.
    near(search.text("數據庫。數據庫。索引。", 5).unwrap()[0].cosine, 1.0);
    near(search.text("Ｒｅｄ and the red of the blue", 5).unwrap()[0].cosine, 1.0);
    // A word that the document lacks makes the vector longer: 5 / (sqrt(5) sqrt(6)).
    near(search.text("red red blue black", 5).unwrap()[0].cosine, (5.0f64 / 6.0).sqrt());
    assert_eq!(search.text("red", 0).unwrap(), []);
}

#[test]
fn a_candidate_has_six_of_ten_keywords_and_of_fewer_the_same_share() {
    let word = |n: usize| format!("word{n}");
    let first = |n: usize| (0..n).map(word).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = (1..=10).map(first).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let search = index(&texts, &Config::default());
    // Document n has the first n + 1 words.
    assert_eq!(ids(&search, &first(10)), ["5", "6", "7", "8", "9"]);
    // 3 of 5, 1 of 3, 1 of 1: the share is rounded down.
    assert_eq!(ids(&search, &first(5)).len(), 8);
    assert_eq!(ids(&search, &first(3)).len(), 10);
    assert_eq!(ids(&search, &word(9)), ["9"]);
    // Words that no document has are not asked for, but count in the cosine.
    let unknown = format!("{} nothing knows these words here", first(5));
    assert_eq!(ids(&search, &unknown).len(), 8);
    assert!(search.text(&unknown, 1).unwrap()[0].cosine < 0.8);
    let strict = Config { match_min: 10, ..Config::default() };
    assert_eq!(ids(&index(&texts, &strict), &first(10)), ["9"]);
}

#[test]
fn all_keywords_are_asked_for_if_no_document_is_like_the_text() {
    let words = |name: &str, numbers: std::ops::Range<usize>| -> String {
        numbers.map(|n| format!("{name}{n} ")).collect()
    };
    // What was added to the text is heavier than what it had, and stands in other documents.
    let (own, added) = (words("own", 0..12), words("added", 0..8));
    let distant = words("added", 0..6) + &words("other", 0..40);
    let others = [own.as_str(), distant.as_str(), "something else"];
    let query = format!("{own}{added}{added}");
    let search = index(&others, &Config::default());
    let hits = search.text(&query, 10).unwrap();
    assert_eq!(hits.len(), 2, "{hits:?}");
    assert_eq!((hits[0].doc_id.as_str(), hits[0].keywords.len()), ("0", 12));
    near(hits[0].cosine, 12.0 / (12.0f64 * (12.0 + 8.0 * 4.0)).sqrt());
    // Not if that is turned off, or something is like it.
    let found = |config: &Config| ids(&index(&others, config), &query);
    assert_eq!(found(&Config { cosine_enough: 0.0, ..Config::default() }), ["1"]);
    assert_eq!(found(&Config { cosine_enough: 0.2, ..Config::default() }), ["1"]);
}

#[test]
fn of_documents_that_are_equally_alike_the_one_with_the_words_in_their_order_is_first() {
    let search = index(
        &["red green blue yellow black", "black blue red yellow green", "red green blue yellow"],
        &Config::default(),
    );
    let order = |query: &str| -> Vec<String> {
        search.text(query, 10).unwrap().into_iter().map(|hit| hit.doc_id).collect()
    };
    assert_eq!(order("black blue red yellow green"), ["1", "0", "2"]);
    assert_eq!(order("red green blue yellow black"), ["0", "1", "2"]);
    // What is less alike stays behind, in whatever order its words are.
    assert_eq!(order("red green black blue yellow"), ["0", "1", "2"]);
}

#[test]
fn no_more_keywords_are_asked_and_candidates_compared_than_the_settings_say() {
    let long: String = (0..40).map(|n| format!("word{n} ")).collect();
    let texts = vec![long.as_str(); 30];
    let search = index(&texts, &Config::default());
    let hits = search.text(&long, 100).unwrap();
    assert_eq!((hits.len(), hits[0].keywords.len()), (30, 10));
    let few = Config { asked: 4, candidates: 7, sentence_candidates: 3, ..Config::default() };
    let search = index(&texts, &few);
    let hits = search.text(&long, 100).unwrap();
    assert_eq!((hits.len(), hits[0].keywords.len()), (7, 4));
    assert_eq!(search.sentence(&long, 100).unwrap().len(), 3);
    assert_eq!(search.text(&long, 2).unwrap().len(), 2);
    let distant = Config { cosine_min: 0.9, ..Config::default() };
    let search = index(&["red green", "red red red green"], &distant);
    assert_eq!(ids(&search, "red green"), ["0"]);
    // Odd settings do no harm.
    let odd = Config {
        keywords: 0,
        asked: 0,
        match_min: 9,
        memory: Size::from_mib(0),
        ..Config::default()
    };
    assert_eq!(index(&["red"], &odd).text("red", 1).unwrap(), []);
}

#[test]
fn the_best_sentence_is_found_with_its_number_and_document() {
    let chinese = "海量网络文本去重系统。关键词由搜索引擎查询，余弦相似度决定结果！今天天气很好。";
    let english = "Crawlers follow links. Version 3.14 of the engine compares sentences? Fine.";
    let noise = "今天天气预报。搜索引擎公司财务报告。";
    let search = index(&[chinese, english, noise], &Config::default());
    let hits = search.sentence("搜索引擎查询关键词，由余弦相似度决定", 5).unwrap();
    assert_eq!((hits[0].doc_id.as_str(), hits[0].number), ("0", 2));
    assert_eq!(hits[0].sentence, "关键词由搜索引擎查询，余弦相似度决定结果！");
    assert!(hits[0].cosine > 0.9 && hits.iter().skip(1).all(|hit| hit.cosine < 0.6), "{hits:?}");
    let hits = search.sentence("the engine compares sentences", 5).unwrap();
    assert_eq!((hits[0].doc_id.as_str(), hits[0].number), ("1", 2));
    assert_eq!(hits[0].sentence, "Version 3.14 of the engine compares sentences?");
    // (engine, compares, sentences) against those, version, 3 and 14.
    near(hits[0].cosine, 3.0 / (3.0f64.sqrt() * 6.0f64.sqrt()));
}

#[test]
fn words_are_ranked_and_titles_count() {
    let search = Search::open_at(None, &Config::default()).unwrap();
    let entry = |id: &str, title: &str, text: &str| {
        let (id, title, text) = (id.to_owned(), title.to_owned(), text.to_owned());
        Ok(Entry { id, title, text, url: "http://a/".to_owned() })
    };
    let filler = prose(1, 60);
    let all = [
        entry("often", "Nothing", &format!("tea tea tea tea {filler}")),
        entry("once", "Nothing", &format!("tea {filler}")),
        entry("titled", "Tea 茶叶", &format!("water {filler}")),
        entry("neither", "Nothing", &filler),
    ];
    search.fill("words", all.into_iter()).unwrap();
    let found = search.words("Tea", 10).unwrap();
    let order: Vec<&str> = found.iter().map(|hit| hit.doc_id.as_str()).collect();
    assert_eq!(order.len(), 3);
    assert!(order[0] != "once" && order[2] == "once", "{order:?}");
    assert_eq!(found[2].keywords, ["tea"]);
    assert_eq!(search.words("茶叶", 10).unwrap()[0].doc_id, "titled");
    assert_eq!(search.words("tea", 1).unwrap().len(), 1);
    assert_eq!(search.words("the of and", 10).unwrap(), []);
}

#[test]
fn odd_questions_have_empty_answers() {
    let search = index(&["red green blue", "数据库索引"], &Config::default());
    let long = "数据库 red and something else 的 ".repeat(30_000);
    assert!(long.len() > 1_000_000);
    for odd in
        ["", " \n\t", "\0", "。！？…", "the of and 的 了", "zzqx unheard of", "\u{FFFD}\u{200B}"]
    {
        assert_eq!(search.text(odd, 10).unwrap(), [], "{odd:?}");
        assert_eq!(search.sentence(odd, 10).unwrap(), [], "{odd:?}");
        assert_eq!(search.words(odd, 10).unwrap(), [], "{odd:?}");
    }
    assert_eq!(search.text("red\0green", 10).unwrap().len(), 1);
    assert_eq!(search.text(&long, 10).unwrap().len(), 2);
    assert!(!search.sentence(&long, 10).unwrap().is_empty());
    assert_eq!(search.words(&long, usize::MAX).unwrap().len(), 2);
    assert_eq!(search.text(&"x".repeat(1 << 20), 10).unwrap(), []);
    let empty = Search::open_at(None, &Config::default()).unwrap();
    assert!(!empty.is_filled());
    assert_eq!(empty.text("red", 10).unwrap(), []);
    // Texts without a word, and with none but usual ones.
    let bare = index(&["", "\0", "the 的"], &Config::default());
    assert_eq!((bare.documents(), bare.text("the", 10).unwrap().len()), (3, 0));
}
