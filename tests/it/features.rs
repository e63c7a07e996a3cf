//! Feature extractors, and what moves a fingerprint.

use std::fs;

use proptest::prelude::*;
use uniqcrawl::text::features::{Config, Extractor, Fingerprinter, site_of};
use uniqcrawl::text::{DocumentFrequencies, Tokens, normalize, words};

use crate::support::prose;

fn fingerprinter(extractor: Extractor) -> Fingerprinter {
    Fingerprinter::new(Config { extractor, ..Config::default() }).unwrap()
}

fn features(extractor: Extractor, text: &str) -> Vec<(String, f32)> {
    let features = fingerprinter(extractor).features(text);
    let mut all: Vec<(String, f32)> =
        features.into_iter().map(|feature| (feature.text, feature.weight)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn names(extractor: Extractor, text: &str) -> Vec<String> {
    features(extractor, text).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn levels_are_counts_up_to_the_highest() {
    let text = format!("{} tide tide quay", "harbour ".repeat(9));
    let expected = [("harbour", 5.0), ("tide", 2.0), ("quay", 1.0)];
    let expected: Vec<(String, f32)> =
        expected.into_iter().map(|(word, weight)| (word.to_owned(), weight)).collect();
    assert_eq!(features(Extractor::Levels, &text), expected);
}

#[test]
fn rare_words_weigh_more_and_the_logarithm_tames_counts() {
    let weight = |extractor, text: &str| features(extractor, text)[0].1;
    let (once, often) = ("harbour", "harbour ".repeat(8));
    let ratio = weight(Extractor::Tfidf, &often) / weight(Extractor::Tfidf, once);
    assert!((ratio - 8.0).abs() < 1e-4, "{ratio}");
    let ratio = weight(Extractor::LogTfidf, &often) / weight(Extractor::LogTfidf, once);
    assert!((ratio - (1.0 + 8f32.ln())).abs() < 1e-4, "{ratio}");
    assert!(names(Extractor::Tfidf, "the of and").is_empty(), "usual words tell nothing");
}

#[test]
fn shingles_run_over_words_or_characters() {
    let expected = ["one two, three", "two, three four"];
    assert_eq!(names(Extractor::WordShingles, "One two, three four"), expected);
    assert_eq!(names(Extractor::WordShingles, "one"), ["one"]);
    assert_eq!(names(Extractor::CharShingles, "a b-cd e"), ["a b-cd", "b-cd e"]);
    assert_eq!(names(Extractor::CharShingles, "网页去重系"), ["网页去重", "页去重系"]);
}

#[test]
fn the_longest_sentence_alone_decides() {
    let fingerprinter = fingerprinter(Extractor::LongestSentence);
    let print = |text: &str| fingerprinter.text_keys(text, "").fingerprint;
    let longest = "渔港的灯塔在夜里亮起来了而船还在海上等着天亮";
    assert_eq!(print(&format!("新闻。{longest}。完")), print(&format!("{longest}！别的话")));
    assert_ne!(print(longest), print("别的话"));
}

#[test]
fn chinese_needs_no_dictionary_with_the_hash_of_the_lecture() {
    let mut pairs = names(Extractor::LectureChars, "网页去重 system 的");
    pairs.sort();
    assert_eq!(pairs, ["system", "去重", "的", "网页", "页去"]);
    let text = "海量网络文本去重系统";
    let (lecture, words) =
        (fingerprinter(Extractor::LectureChars), fingerprinter(Extractor::Tfidf));
    assert_ne!(lecture.text_keys(text, "").fingerprint, words.text_keys(text, "").fingerprint);
}

#[test]
fn every_extractor_keeps_edited_texts_near_and_others_far() {
    let text = prose(1, 400);
    let edited = text.replacen("ba", "bo", 4);
    for extractor in Extractor::ALL {
        assert_eq!(extractor.to_string().parse::<Extractor>().unwrap(), extractor);
        if extractor == Extractor::Enum {
            continue;
        }
        let fingerprinter = fingerprinter(extractor);
        let print = |text: &str| fingerprinter.text_keys(text, "").fingerprint;
        let near = print(&text).distance(print(&edited));
        let far = print(&text).distance(print(&prose(2, 400)));
        assert!(near < far && far > 15, "{extractor}: {near} and {far} bits");
    }
    assert!("words".parse::<Extractor>().unwrap_err().to_string().contains("`words`"));
}

#[test]
fn the_language_is_one_more_feature_if_it_has_a_weight() {
    let config = Config { language_weight: 500.0, ..Config::default() };
    let (plain, weighted) = (Fingerprinter::default(), Fingerprinter::new(config).unwrap());
    let text = prose(1, 60);
    assert_eq!(plain.text_keys(&text, "en").fingerprint, plain.text_keys(&text, "zh").fingerprint);
    assert_ne!(
        weighted.text_keys(&text, "en").fingerprint,
        weighted.text_keys(&text, "zh").fingerprint
    );
    assert_ne!(plain.name(), weighted.name());
    let print = |language: &str| weighted.text_keys(&text, language).fingerprint;
    assert_eq!(print(""), print("xx"), "all others are one value");
    assert_ne!(print(""), print("en"), "and that is not the first of the list");
}

#[test]
fn the_heaviest_features_vote() {
    let config = Config { extractor: Extractor::Levels, words_max: 2, ..Config::default() };
    let fingerprinter = Fingerprinter::new(config).unwrap();
    let features = fingerprinter.features("quay tide tide harbour harbour harbour boat");
    let found: Vec<&str> = features.iter().map(|feature| feature.text.as_str()).collect();
    assert_eq!(found, ["harbour", "tide"]);
    assert!(fingerprinter.name().contains("top 2"), "{}", fingerprinter.name());
}

#[test]
fn a_title_of_one_word_tells_nothing() {
    let title = |title: &str| Fingerprinter::default().article_keys(title, "", "").title;
    assert_eq!((title(""), title("Home")), (None, None));
    assert!(title("Harbour bridge").is_some());
}

#[test]
fn a_site_is_a_host() {
    let same =
        ["https://a.example/x", "http://A.example", "https://a.example?q", "x://a.example#y"];
    for address in same {
        assert_eq!(site_of(address), site_of("https://a.example/"), "{address}");
    }
    assert_ne!(site_of("https://a.example/"), site_of("https://b.example/"));
    assert_eq!((site_of("a.example/x"), site_of("https:///x"), site_of("")), (0, 0, 0));
}

#[test]
fn forms_of_one_text_have_one_signature() {
    let fingerprinter = Fingerprinter::default();
    let plain = fingerprinter.text_keys("網頁去重系統 Ｈａｒｂｏｕｒ bridge", "");
    let other = fingerprinter.text_keys("网页去重系统\n\nHARBOUR\u{200B}   bridge ", "");
    assert_eq!((plain.hash, plain.fingerprint), (other.hash, other.fingerprint));
    assert_eq!((plain.sketch, plain.shingles), (other.sketch, other.shingles));
    let config = Config { simplify: false, ..Config::default() };
    let strict = Fingerprinter::new(config).unwrap();
    assert_ne!(strict.text_keys("網頁", ""), strict.text_keys("网页", ""));
    assert_ne!(strict.name(), fingerprinter.name());
}

#[test]
fn settings_that_cannot_be_are_named() {
    let fails = |config: Config| Fingerprinter::new(config).unwrap_err().to_string();
    let zero = Config { words_max: 0, ..Config::default() };
    assert!(fails(zero).contains("words_max is 0"));
    let weight = Config { language_weight: f32::NAN, ..Config::default() };
    assert!(fails(weight).contains("language_weight"));
    let idf = Config { idf_file: "no/such.idf".to_owned(), ..Config::default() };
    assert!(fails(idf).contains("no/such.idf"));
}

#[test]
fn a_trained_table_weighs_words_by_their_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("corpus.idf");
    let mut frequencies = DocumentFrequencies::default();
    for n in 0..50 {
        frequencies.add(&format!("harbour harbour {} word{n}", if n < 5 { "tide" } else { "" }));
    }
    assert_eq!(frequencies.counts(), (50, 52));
    std::fs::write(&path, frequencies.table(2)).unwrap();
    let table = fs::read_to_string(&path).unwrap();
    assert_eq!(table, "uniqcrawl idf 1 documents 50\nharbour\t50\ntide\t5\n", "commonest first");
    let idf_file = path.to_str().unwrap().to_owned();
    let fingerprinter = Fingerprinter::new(Config { idf_file, ..Config::default() }).unwrap();
    let weights = fingerprinter.features("harbour tide unheard");
    let weight = |word: &str| weights.iter().find(|f| f.text == word).map(|f| f.weight);
    // In all documents: ln(50 / 51) is below zero, so that it says nothing.
    assert_eq!(weight("harbour"), None);
    assert!((weight("tide").unwrap() - (50f32 / 6.0).ln()).abs() < 1e-5);
    assert!(weight("unheard").is_some(), "an unknown word has the median");
    assert_ne!(fingerprinter.name(), Fingerprinter::default().name());
    for (text, detail) in [("", "line 1"), ("uniqcrawl idf 1 documents 5\nno tab", "line 2")] {
        fs::write(&path, text).unwrap();
        let config = fingerprinter.config().clone();
        assert!(Fingerprinter::new(config).unwrap_err().to_string().contains(detail));
    }
}

#[test]
fn scripts_without_blanks_are_cut_into_words_or_runs() {
    assert_eq!(words("网页去重 system"), ["网页", "去", "重", "system"]);
    assert_eq!(words("ประเทศ"), ["ประ", "ระเ", "ะเท", "เทศ"]);
    assert_eq!(words("カタ"), ["カタ"]);
    assert_eq!(words("यह किताब है।वह भी"), ["यह", "किताब", "है", "वह", "भी"]);
    assert_eq!(words("naïve café-bar 3.14"), ["naïve", "café", "bar", "3", "14"]);
}

/// Splits a text where a sentence ends, as plainly as it can be said.
fn sentences(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        found.last_mut().unwrap().push(c);
        let ends = match c {
            '\n' | '。' | '！' | '？' | '；' | '…' | '।' | '॥' | '؟' | '۔' | '｡' => {
                true
            }
            '.' | '!' | '?' | ';' => {
                rest.peek().is_none_or(|next| next.is_ascii_whitespace() || !next.is_ascii())
            }
            _ => false,
        };
        if ends {
            found.push(String::new());
        }
    }
    found
}

#[test]
fn marks_end_a_sentence_and_points_inside_a_number_do_not() {
    let text = normalize("Pi is 3.14. Is it? See example.com; or not\n海量文本。去重！");
    let tokens = Tokens::of(&text);
    let found: Vec<&str> = tokens.sentences().map(|sentence| tokens.stretch(sentence)).collect();
    // The line break is a blank in the normal form, and ends nothing any more.
    assert_eq!(found, ["pi is 3.14", "is it", "see example.com", "or not 海量文本", "去重"]);
    assert_eq!(Tokens::of("one\ntwo").sentences().count(), 2);
    assert_eq!(Tokens::of("यह किताब है। वह भी॥ फिर").sentences().count(), 3);
}

proptest! {
    #[test]
    fn tokens_cover_the_letters_and_sentences_the_tokens(text in "[a-c .!?;\n中文。！？；…।؟۔かな한é-]{0,60}") {
        let text = normalize(&text);
        let tokens = Tokens::of(&text);
        let found: String = tokens.all.iter().map(|token| tokens.text_of(token)).collect();
        let letters: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
        prop_assert_eq!(found, letters);
        let of_sentences: usize = tokens.sentences().map(<[_]>::len).sum();
        prop_assert_eq!(of_sentences, tokens.all.len());
        prop_assert!(tokens.sentences().all(|sentence| !sentence.is_empty()));
        // The sentences of the text are the same ones, but for those without letters.
        let plain = sentences(&text).into_iter().map(|sentence| {
            sentence.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
        });
        let plain: Vec<String> = plain.filter(|sentence| !sentence.is_empty()).collect();
        let found: Vec<&str> = tokens.sentences().map(|all| tokens.stretch(all)).collect();
        prop_assert_eq!(plain, found);
    }
}
