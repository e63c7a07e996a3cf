//! Pairs of characters where the dictionary does not serve, and a dictionary of the operator.

use std::fs;
use std::path::Path;

use uniqcrawl::text::features::lecture::string_hash;
use uniqcrawl::text::features::{
    Config, EnumHash, Enumeration, Extractor, Fingerprinter, HanFallback,
};

use crate::support::crawl;

const NEWS: &str = "昨天上午，市交通部门召开新闻发布会，介绍新建跨海大桥的工程进展情况。负责人表示，\
    目前主塔已经全部完成，预计明年年底可以正式通车。大桥开通以后，从市中心到国际机场的时间将缩短\
    一半，沿线居民的出行条件会得到明显改善。记者了解到，为了保护海洋环境，施工单位采用了多种先进\
    技术，并且邀请大学的专家进行长期监测。许多市民在网络上留言，希望政府同时增加公共汽车线路，\
    方便老年人和学生乘坐。专家认为，交通建设应当与城市发展规划相结合，避免重复投资。";

const OLD: &str = "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。寒来暑往，秋收冬藏。闰余成岁，律吕调阳。\
    云腾致雨，露结为霜。金生丽水，玉出昆冈。剑号巨阙，珠称夜光。果珍李柰，菜重芥姜。海咸河淡，\
    鳞潜羽翔。龙师火帝，鸟官人皇。始制文字，乃服衣裳。推位让国，有虞陶唐。吊民伐罪，周发殷汤。\
    坐朝问道，垂拱平章。爱育黎首，臣伏戎羌。遐迩一体，率宾归王。鸣凤在竹，白驹食场。化被草木，\
    赖及万方。盖此身发，四大五常。恭惟鞠养，岂敢毁伤。女慕贞洁，男效才良。知过必改，得能莫忘。";

/// A spell in Sanskrit, by sound.
const SPELL: &str = "南无喝啰怛那哆啰夜耶，南无阿唎耶，婆卢羯帝烁钵啰耶，菩提萨埵婆耶，摩诃萨埵婆耶，\
    摩诃迦卢尼迦耶，唵，萨皤啰罚曳，数怛那怛写，南无悉吉栗埵伊蒙阿唎耶，婆卢吉帝室佛啰楞驮婆，\
    南无那啰谨墀，醯利摩诃皤哆沙咩，萨婆阿他豆输朋，阿逝孕，萨婆萨哆那摩婆萨哆，那摩婆伽，摩罚特豆，\
    怛侄他，唵，阿婆卢醯，卢迦帝，迦罗帝，夷醯唎，摩诃菩提萨埵，萨婆萨婆，摩啰摩啰，摩醯摩醯唎驮孕，\
    俱卢俱卢羯蒙，度卢度卢罚阇耶帝，摩诃罚阇耶帝，陀啰陀啰，地唎尼，室佛啰耶，遮啰遮啰，摩么罚摩啰";

const WORD_BASED: [Extractor; 5] = [
    Extractor::Tfidf,
    Extractor::LogTfidf,
    Extractor::Levels,
    Extractor::WordShingles,
    Extractor::LongestSentence,
];

fn fingerprinter(extractor: Extractor, han_fallback: HanFallback) -> Fingerprinter {
    Fingerprinter::new(Config { extractor, han_fallback, ..Config::default() }).unwrap()
}

fn names(fingerprinter: &Fingerprinter, text: &str) -> Vec<String> {
    fingerprinter.features(text).into_iter().map(|feature| feature.text).collect()
}

/// A text without blanks or marks: one sentence.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// 300 characters that follow each other by chance, from a row of the block.
fn chance(from: u32, of: u64) -> String {
    let mut state = 7u64;
    let chars = (0..300).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from_u32(from + ((state >> 33) % of) as u32).unwrap()
    });
    chars.collect()
}

#[test]
fn pairs_stand_for_words_where_the_dictionary_does_not_serve() {
    for extractor in WORD_BASED {
        let [auto, never, always] = [HanFallback::Auto, HanFallback::Never, HanFallback::Always]
            .map(|fallback| fingerprinter(extractor, fallback));
        for old in [bare(SPELL), chance(0x4E00, 20_000), chance(0x3400, 6_000)] {
            assert!(auto.features(&old) == always.features(&old), "{extractor}: {old}");
            assert!(auto.features(&old) != never.features(&old), "{extractor}: {old}");
        }
        assert_eq!(auto.features(NEWS), never.features(NEWS), "{extractor}");
        assert_ne!(auto.features(NEWS), always.features(NEWS), "{extractor}");
    }
    let found =
        fingerprinter(Extractor::Tfidf, HanFallback::Auto).features(&format!("{SPELL} harbour"));
    let weight = |text: &str| found.iter().find(|found| found.text == text).map(|f| f.weight);
    assert!(weight("迦卢").is_some() && weight("卢尼").is_some(), "{found:?}");
    assert_eq!(weight("harbour"), weight("卢尼"), "a pair is as rare as an unknown word");
    assert_eq!(weight("耶唵"), None, "a pair does not reach over a mark");
    let hash = found.iter().find(|found| found.text == "卢尼").unwrap().hash;
    assert_eq!(hash, string_hash("卢尼"), "the hash of the lecture");
    let runs = names(&fingerprinter(Extractor::WordShingles, HanFallback::Auto), SPELL);
    assert!(runs.contains(&"摩诃迦卢".to_owned()), "three pairs are four characters: {runs:?}");
}

#[test]
fn traditional_characters_that_are_not_simplified_are_told_apart_by_pairs() {
    let text = "憂鬱臺灣烏龜體驗過國際機場歡迎儀式聽說讀寫學習電腦網際網路環境優劣關係複雜";
    let config = Config { simplify: false, ..Config::default() };
    let strict = Fingerprinter::new(config).unwrap();
    let text = text.repeat(3);
    let found = strict.features(&text);
    assert!(found.iter().any(|feature| feature.text == "際網"), "{found:?}");
    let mut hashes: Vec<u64> = found.iter().map(|feature| feature.hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), found.len(), "each pair has a hash of its own");
}

#[test]
fn titles_and_short_texts_keep_their_words() {
    let (auto, never) = (
        fingerprinter(Extractor::Tfidf, HanFallback::Auto),
        fingerprinter(Extractor::Tfidf, HanFallback::Never),
    );
    for title in ["王翦与项燕", "我和你说的那个人走了", "去重"] {
        assert_eq!(auto.features(title), never.features(title), "{title}");
    }
}

/// A spell and old verse after news, clause by clause, from none to most of the text.
#[test]
fn a_copy_with_an_edit_is_near_wherever_the_text_lies() {
    let clauses: Vec<&str> = SPELL.split('，').chain(OLD.split('，')).collect();
    let texts = (0..=clauses.len()).map(|n| format!("{NEWS}{}", clauses[..n].join("，")));
    let texts: Vec<String> = texts.collect();
    let (auto, words, pairs) = (
        fingerprinter(Extractor::Tfidf, HanFallback::Auto),
        fingerprinter(Extractor::Tfidf, HanFallback::Never),
        fingerprinter(Extractor::Tfidf, HanFallback::Always),
    );
    let print =
        |fingerprinter: &Fingerprinter, text: &str| fingerprinter.text_keys(text, "").fingerprint;
    let both = |text: &&String| {
        let found = print(&auto, text);
        found != print(&words, text) && found != print(&pairs, text)
    };
    assert!(texts.iter().filter(both).count() > 2, "some lie between");
    let near = |fingerprinter: &Fingerprinter| {
        let steps = texts.windows(2);
        steps
            .map(|pair| print(fingerprinter, &pair[0]).distance(print(fingerprinter, &pair[1])))
            .max()
            .unwrap()
    };
    // What a border between words and pairs would make of one clause more.
    let apart = texts.iter().map(|text| print(&words, text).distance(print(&pairs, text))).min();
    let steps = [near(&auto), near(&words), near(&pairs)];
    assert!(apart.unwrap() > 20 && steps[0] <= 16, "{apart:?}, bits of a step: {steps:?}");
}

#[test]
fn what_moves_fingerprints_is_in_the_name() {
    let plain = Config::default();
    let category = |values: &[&str], weight, hash| Enumeration {
        field: "category".to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        weight,
        hash,
    };
    let enums = |one| Config { enums: vec![one], ..Config::default() };
    let configs = [
        plain.clone(),
        Config { han_fallback: HanFallback::Never, ..plain.clone() },
        Config { han_fallback: HanFallback::Always, ..plain.clone() },
        Config { language_weight: 2.0, ..plain.clone() },
        enums(category(&["news", "sport"], 1.0, EnumHash::Lecture)),
        enums(category(&["sport", "news"], 1.0, EnumHash::Lecture)),
        enums(category(&["news", "sport"], 2.0, EnumHash::Lecture)),
        enums(category(&["news", "sport"], 1.0, EnumHash::Mixed)),
    ];
    let mut names: Vec<String> =
        configs.into_iter().map(|config| Fingerprinter::new(config).unwrap().name()).collect();
    assert_eq!(names[0], "tfidf, top 256, version 2");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 8, "{names:?}");
}

fn put(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn words_of_a_dictionary_are_cut_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = "韩玉展览会在云山雾罩阁举行，参观云山雾罩阁的人很多。";
    let file = "\u{FEFF}雲山霧罩閣 n\n\n韩玉 5\r\n璟堃珣 3 nz\niphone手机\n参观 0\n";
    let dictionary_file = put(folder.path(), "words.txt", file);
    let with = Config { dictionary_file, ..Config::default() };
    let (with, without) = (Fingerprinter::new(with).unwrap(), Fingerprinter::default());
    let (own, plain) = (names(&with, text), names(&without, text));
    let has = |names: &[String], word: &str| names.iter().any(|name| name == word);
    assert!(has(&own, "云山雾罩阁") && !has(&plain, "云山雾罩阁"), "{own:?}, {plain:?}");
    assert!(has(&plain, "参观") && !has(&own, "参观"), "a frequency of 0 removes a word: {own:?}");
    assert!(with.name().contains("dictionary") && with.name() != without.name());
    let clone = with.clone();
    assert_eq!(names(&clone, text), own);
    // A text full of them is one that the dictionary serves.
    let many = "璟堃珣".repeat(60);
    assert_eq!(names(&with, &many), ["璟堃珣"]);
    assert!(has(&names(&without, &many), "璟堃") && has(&names(&without, &many), "珣璟"));
}

#[test]
fn a_line_that_is_no_word_of_a_dictionary_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |bytes: &[u8], says: &[&str]| {
        let path = folder.path().join("bad.txt");
        fs::write(&path, bytes).unwrap();
        let dictionary_file = path.to_str().unwrap().to_owned();
        let error =
            Fingerprinter::new(Config { dictionary_file, ..Config::default() }).unwrap_err();
        for word in says.iter().chain(&["bad.txt"]) {
            assert!(error.to_string().contains(word), "{error}");
        }
    };
    fails("韩玉 5\n鉴赏会 x3 n\n".as_bytes(), &["line 2", "frequency"]);
    fails("韩玉 -5\n".as_bytes(), &["line 1", "frequency"]);
    fails("韩玉 1000000001\n".as_bytes(), &["line 1", "frequency"]);
    fails("\n\n韩玉 5 n n\n".as_bytes(), &["line 3", "more than"]);
    fails(b"\xBA\xAB\n", &["line 1", "UTF-8"]);
    let missing = Config { dictionary_file: "no/such.txt".to_owned(), ..Config::default() };
    assert!(Fingerprinter::new(missing).unwrap_err().to_string().contains("no/such.txt"));
}

#[test]
fn document_frequencies_are_counted_by_the_words_of_the_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put(path, "words.txt", "云山雾罩阁\n");
    put(path, "c.toml", "[dedup.features]\ndictionary_file = \"words.txt\"\n");
    put(path, "in.jsonl", "{\"text\":\"参观云山雾罩阁的人很多\"}\n".repeat(2).as_str());
    let table = |arguments: &[&str]| {
        let all = [&["idf", "in.jsonl", "--out", "t.idf"], arguments].concat();
        let out = crawl(&all, path);
        assert!(out.status.success(), "{out:?}");
        fs::read_to_string(path.join("t.idf")).unwrap()
    };
    assert!(!table(&[]).contains("云山雾罩阁"));
    assert!(table(&["--config", "c.toml"]).contains("云山雾罩阁\t2"));
}
