//! robots.txt: groups, patterns, defects of the lexer that must not show, and the large data sets.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::web::robots::meta::Directives;
use uniqcrawl::web::robots::{BYTES_MIN, Options, RobotsRules, batch_line};

const GOOGLE: Options = Options { google_extras: true, bytes_max: BYTES_MIN };
const STRICT: Options = Options { google_extras: false, ..GOOGLE };

#[track_caller]
fn check(file: &[u8], agent: &str, allowed: &[&str], disallowed: &[&str]) {
    for options in [GOOGLE, STRICT] {
        let rules = RobotsRules::parse(file, &options);
        for path in allowed {
            assert!(rules.verdict(agent, path).allowed, "{path} must be allowed ({options:?})");
        }
        for path in disallowed {
            assert!(!rules.verdict(agent, path).allowed, "{path} must not be ({options:?})");
        }
    }
}

#[test]
fn the_longest_rule_wins_and_allow_wins_ties() {
    check(
        b"User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /t\nDisallow: /t",
        "x",
        &["/", "/a/b", "/a/b/x", "/t/1"],
        &["/a", "/a/x", "/ab", "/a/b/c/d"],
    );
}

#[test]
fn groups_of_one_agent_are_joined_and_do_not_inherit_from_everybody() {
    let file = b"User-agent: *\nDisallow: /all\n\nUser-agent: bot\nDisallow: /one\n\n\
        User-agent: other\nUser-agent: BOT/2.0\nDisallow: /two\n";
    check(file, "Bot", &["/all"], &["/one", "/two"]);
    check(file, "other", &["/all", "/one"], &["/two"]);
    check(file, "third", &["/one", "/two"], &["/all"]);
}

#[test]
fn rules_before_any_agent_and_other_records_change_nothing() {
    let file = b"Disallow: /early\nUser-agent: a\nCrawl-delay: 5\nSitemap: http://h/s.xml\n\
        User-agent: b\nHost: h\nDisallow: /x\n";
    check(file, "a", &["/early"], &["/x"]);
    check(file, "b", &["/early"], &["/x"]);
}

#[test]
fn tokens_are_cut_at_the_first_character_that_cannot_be_in_one() {
    let file = b"User-agent: Bot*\nDisallow: /one\n\nUser-agent: bot/1.2 (+http://h)\n\
        Disallow: /two\n\nUser-agent: *foo\nDisallow: /three\n\nUser-agent: * all\n\
        Disallow: /four\n";
    check(file, "bot", &["/three", "/four"], &["/one", "/two"]);
    check(file, "BOT", &["/three", "/four"], &["/one", "/two"]);
    check(file, "other", &["/one", "/two", "/three"], &["/four"]);
    check(b"User-agent: bot\nDisallow: /x\n", "other", &["/x"], &[]);
}

#[test]
fn neither_blank_lines_nor_unknown_records_end_a_group() {
    let file = b"User-agent: a\n\n\nUser-agent: b\nContent-Signal: ai-train=no\n\n\
        Clean-param: ref /x\nUser-agent: c\nHost: h\n\nDisallow: /x\n\nDisallow: /y\n";
    for agent in ["a", "b", "c"] {
        check(file, agent, &["/z"], &["/x", "/y"]);
    }
}

#[test]
fn paths_match_by_octets_from_the_first_one_with_their_query() {
    let file = b"User-agent: *\nDisallow:\nDisallow: /Case\nDisallow: /q?a=1\nDisallow: bare\n\
        Disallow: /%62%61%7A\nDisallow: /a%2Fb\nDisallow: /s%2at\nDisallow: /d%24\n";
    check(
        file,
        "a",
        &["/case", "/q?b=1&a=1", "/bare", "/x/Case", "/a/b", "/sxt", "/s", "/d"],
        &["/Case/x", "/q?a=12", "/%62%61%7A", "/a%2Fb", "/s%2At", "/d%24x"],
    );
    // Paths in normal form, as a crawl has them, meet patterns in normal form.
    let ours = RobotsRules::parse(file, &GOOGLE).for_agent("a");
    assert!(!ours.allowed("/baz") && !ours.allowed("/a%2Fb") && ours.allowed("/a/b"));
    check(
        b"User-agent: *\nDisallow: /fish*\nDisallow: /x**y\nDisallow: /e*$\n",
        "a",
        &["/Fish", "/fis", "/x"],
        &["/fish", "/fishes/1", "/xy", "/x1y2", "/e", "/elf"],
    );
}

#[test]
fn a_bad_line_takes_no_other_with_it() {
    let file =
        b"\0\0\nUser-agent: *\n<html><body>\nDisallow: /a\0b\n: :\nDisallow /c d e\n\xFF\xFE\n\
        \r\n\rDisallow: /e\r\nAllow\nDisallow: /f\r";
    check(file, "a", &["/g", "/"], &["/a", "/e", "/f"]);
}

#[test]
fn byte_order_marks_line_ends_and_comments_are_read_over() {
    let disallowed = &["/x"][..];
    check(b"\xEF\xBB\xBFUser-agent: *\nDisallow: /x", "a", &["/y"], disallowed);
    check(b"User-agent: *\rDisallow: /x # why\r", "a", &["/y"], disallowed);
    check(b"User-agent : *\r\n\r\n  disallow:/x\r\n", "a", &["/y"], disallowed);
    let utf16: Vec<u8> =
        "\u{FEFF}User-agent: *\nDisallow: /x".encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(&utf16, "a", &["/y"], disallowed);
}

#[test]
fn an_indented_rule_without_a_colon_counts_where_google_reads_it() {
    let file = b"User-agent: *\n disallow /y\n\t\x0B Disallow\t/z  # why\n allow /y/a b\n";
    let google = RobotsRules::parse(file, &GOOGLE);
    for path in ["/y", "/y/a", "/z/1"] {
        assert!(!google.verdict("a", path).allowed, "{path}");
    }
    assert_eq!(google.verdict("a", "/y").rule.unwrap().line, 2);
    assert!(
        google.verdict("a", "/x").allowed
            && RobotsRules::parse(file, &STRICT).verdict("a", "/y").allowed
    );
}

#[test]
fn a_mark_of_utf16_is_believed_before_utf16_only() {
    let plain = b"User-agent: *\n# a\0b\0\0c\nDisallow: /x\n";
    let chinese = "# 一丁七丈三上下不与丐丑专且世丘丙业丛东丝\n".repeat(9);
    let wide: Vec<u16> = format!("{chinese}User-agent: *\nDisallow: /x\n").encode_utf16().collect();
    let little: Vec<u8> = wide.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = wide.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    for (mark, rest) in [
        (b"\xFF\xFE", &plain[..]),
        (b"\xFE\xFF", &plain[..]),
        (b"\xFF\xFE", &little[..]),
        (b"\xFE\xFF", &big[..]),
    ] {
        check(&[mark, rest].concat(), "a", &["/y"], &["/x"]);
    }
}

#[test]
fn wildcards_match_as_the_standard_says() {
    let file = b"User-agent: *\nDisallow: /*ab\nDisallow: /x*bc$\nDisallow: /*?*key=\n\
        Disallow: /*.php$\nDisallow: /p$q\n";
    check(
        file,
        "a",
        &["/a.b", "/xbcd", "/y?kex", "/n.php?x", "/p", "/p$"],
        &["/aab", "/ab", "/xbbc", "/x/bc", "/xyz?xyzkey=1", "/n.php", "/d/n.php", "/p$q"],
    );
}

#[test]
fn non_ascii_paths_match_their_escapes() {
    let file = "User-agent: *\nDisallow: /目录/\nDisallow: /caf\u{e9}\n".as_bytes();
    check(file, "a", &["/x"], &["/%E7%9B%AE%E5%BD%95/1", "/caf%C3%A9"]);
    check(b"User-agent: *\nDisallow: /caf\xE9\n", "a", &["/caf%C3%A9"], &["/caf%E9"]);
}

#[test]
fn a_crawler_meets_escapes_in_normal_form() {
    let rules =
        RobotsRules::parse(b"User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /a%3cd\n", &GOOGLE);
    let rules = rules.for_agent("uniqcrawl");
    assert!(!rules.allowed("/~joe/x"));
    assert!(!rules.allowed("/a%3Cd"));
    assert!(rules.allowed("/robots.txt"));
}

#[test]
fn googles_extras_are_read_only_where_they_are_wanted() {
    let file = b"useragent: *\ndissallow /x\nAllow: /y/index.html\nDisallow: /y\n";
    let google = RobotsRules::parse(file, &GOOGLE);
    assert!(!google.verdict("a", "/x").allowed);
    assert!(google.verdict("a", "/y/").allowed);
    assert!(RobotsRules::parse(file, &STRICT).verdict("a", "/x").allowed);
}

#[test]
fn long_lines_of_many_bytes_do_no_harm() {
    let comment = format!("# {}\nUser-agent: *\nDisallow: /x\n", "é".repeat(20_000));
    check(comment.as_bytes(), "a", &["/y"], &["/x"]);
    let long = format!("User-agent: *\nDisallow: /{}\nDisallow: /x\n", "中".repeat(9_000));
    check(long.as_bytes(), "a", &["/y"], &["/x"]);
}

#[test]
fn a_huge_file_is_cut_at_the_end_of_a_line() {
    let mut file = b"User-agent: *\nDisallow: /first\n".to_vec();
    while file.len() < 500 << 10 {
        file.extend_from_slice(b"Disallow: /abcdefghijklmnopqrstuvwxyz\n");
    }
    let inside = file.len() - 60;
    file.truncate(inside);
    file.extend_from_slice(b"\nDisallow: /longpath/that/is/cut/here/by/the/limit/of/bytes\n");
    let rules = RobotsRules::parse(&file, &GOOGLE);
    assert!(!rules.verdict("a", "/first").allowed);
    assert!(rules.verdict("a", "/longpath/").allowed, "half a pattern must not be used");
}

#[test]
fn a_line_holds_that_ends_at_the_limit_and_what_is_cut_is_told() {
    let file = b"User-agent: *\r\nDisallow: /a\nDisallow: /bcd";
    for (bytes_max, holds, is_cut) in [
        (file.len() + 1, 2, false),
        (file.len(), 2, false),
        (file.len() - 1, 1, true),
        (28, 1, true),
        (27, 1, true),
        (26, 0, true),
        (0, 0, true),
    ] {
        let rules = RobotsRules::parse(file, &Options { bytes_max, ..GOOGLE });
        let held = ["/a", "/bcd"].into_iter().filter(|path| !rules.verdict("x", path).allowed);
        let cut = is_cut.then_some(bytes_max);
        assert_eq!((held.count(), rules.cut()), (holds, cut), "{bytes_max}");
        // Half a pattern is never used.
        assert!(rules.verdict("x", "/b").allowed && rules.verdict("x", "/").allowed);
    }
}

#[test]
fn crawl_delay_is_read_in_all_its_forms() {
    let delay = |value: &str| {
        let file = format!("User-agent: *\nCrawl-delay: {value}\nDisallow: /x\n");
        RobotsRules::parse(file.as_bytes(), &GOOGLE).for_agent("a").crawl_delay()
    };
    assert_eq!(delay("5"), Some(Duration::from_secs(5)));
    assert_eq!(delay("0.5"), Some(Duration::from_millis(500)));
    assert_eq!(delay("10s"), Some(Duration::from_secs(10)));
    assert_eq!(delay("0"), Some(Duration::ZERO));
    assert_eq!(delay(".5"), Some(Duration::from_millis(500)));
    for huge in ["1e99", "99999999999999999999999"] {
        assert_eq!(delay(huge), Some(Duration::MAX), "what is huge is no reason to be quick");
    }
    for bad in ["-1", "soon", "", "NaN", "inf", "-1e99"] {
        assert_eq!(delay(bad), None, "{bad}");
    }
    let two = b"User-agent: *\nCrawl-delay: 2\nCrawl-delay: 7\nUser-agent: b\nCrawl-delay: 1\n";
    assert_eq!(
        RobotsRules::parse(two, &GOOGLE).for_agent("a").crawl_delay(),
        Some(Duration::from_secs(7))
    );
}

#[test]
fn the_deciding_line_and_the_sitemaps_are_told() {
    let file = b"Sitemap: https://h/a.xml\nUser-agent: *\n# why\nDisallow: /x\n";
    let rules = RobotsRules::parse(file, &GOOGLE);
    let rule = rules.verdict("a", "https://h/x/1#f").rule.expect("a rule matches");
    assert_eq!((rule.line, rule.text.as_str()), (4, "Disallow: /x"));
    assert_eq!(rules.sitemaps(), ["https://h/a.xml"]);
}

#[test]
fn a_hostile_pattern_costs_no_more_than_reading_it() {
    let file = format!("User-agent: *\nDisallow: /{}b\n", "*a".repeat(800));
    let rules = RobotsRules::parse(file.as_bytes(), &GOOGLE).for_agent("x");
    let path = format!("/{}", "a".repeat(800));
    let started = std::time::Instant::now();
    for _ in 0..100 {
        assert!(rules.allowed(&path));
    }
    // A hundred checks: the naive matcher takes 43 seconds for one.
    assert!(started.elapsed() < Duration::from_secs(40));
}

#[test]
fn page_directives_are_read_for_us_and_for_everybody() {
    let header = |value: &str| Directives::from_header(value, "uniqcrawl");
    assert!(header("noindex, nofollow").noindex && header("NONE").nofollow);
    assert!(header("uniqcrawl: noindex").noindex);
    assert!(!header("otherbot: noindex").noindex);
    assert!(header("max-snippet: 5, noarchive").noarchive);
    assert!(Directives::from_meta("ROBOTS", "noindex", "uniqcrawl").noindex);
    assert!(Directives::from_meta("uniqcrawl", "nofollow", "uniqcrawl").nofollow);
    assert_eq!(Directives::from_meta("otherbot", "none", "uniqcrawl"), Directives::default());
}

#[test]
fn terms_of_use_are_read_from_meta_elements_and_headers() {
    let meta = |content: &str| Directives::from_meta("robots", content, "uniqcrawl");
    assert!(meta("noai, noimageai").noai && !meta("noimageai").noai);
    assert!(meta("nocache").terms().noarchive);
    assert!(Directives::from_meta("TDM-Reservation", " 1 ", "uniqcrawl").tdm_reserved);
    assert!(!Directives::from_reservation("0").tdm_reserved);
    let before = Timestamp(1_800_000_000_000);
    for text in [
        "unavailable_after: 25 Jun 2027 15:00:00 GMT",
        "noarchive, unavailable_after: Fri, 25 Jun 2027 15:00:00 GMT, nofollow",
        "unavailable_after: 25-Jun-2027 15:00:00 GMT",
        "Unavailable_After:2027-06-25T15:00:00Z",
    ] {
        let found = meta(text).unavailable_after.unwrap();
        assert_eq!(found.to_string(), "2027-06-25T15:00:00Z", "{text}");
    }
    assert_eq!(
        meta("unavailable_after: 2027-06-25").unavailable_after.unwrap().to_string(),
        "2027-06-25T00:00:00Z"
    );
    assert_eq!(meta("unavailable_after: soon").unavailable_after, None);
    let header = Directives::from_header("unavailable_after: 25 Jun 2027 15:00:00 GMT", "x");
    assert!(header.forbids_storing(Timestamp(i64::MAX)) && !header.forbids_storing(before));
    let both = header.merge(&meta("unavailable_after: 2027-01-01"));
    assert_eq!(both.unavailable_after.unwrap().to_string(), "2027-01-01T00:00:00Z");
}

#[test]
fn bad_lines_of_a_batch_name_what_is_wrong() {
    assert_eq!(
        batch_line(r#"{"robots_base64":"VXNlci1hZ2VudDogKgpEaXNhbGxvdzogL3g=","checks":[["a","/x"],["a","/y",true]]}"#, &GOOGLE).map(|answer| answer.checks).ok(),
        Some("01".to_owned())
    );
    let fails = |line: &str| batch_line(line, &GOOGLE).map_err(|e| e.to_string()).unwrap_err();
    assert!(fails("{").contains("checks"));
    assert!(fails(r#"{"robots_base64":"!","checks":[]}"#).contains("base64"));
    assert!(fails(r#"{"robots_base64":"","checks":[["a"]]}"#).contains("check 0"));
}

/// The plain model: tries every length for every star.
fn model(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => true,
        [b'$'] => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|skip| model(rest, &path[skip..])),
        [first, rest @ ..] => path.first() == Some(first) && model(rest, &path[1..]),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
        let rules = RobotsRules::parse(&body, &GOOGLE);
        prop_assert!(rules.for_agent("a").allowed("/robots.txt"));
        prop_assert_eq!(rules.verdict("a", "/x?y"), rules.verdict("A", "/x?y#z"));
    }

    #[test]
    fn patterns_match_like_the_plain_model(
        pattern in "/[ab*$]{0,7}", path in "/[ab$]{0,9}"
    ) {
        let file = format!("User-agent: *\nDisallow: {pattern}\n");
        let verdict = RobotsRules::parse(file.as_bytes(), &GOOGLE).verdict("x", &path);
        prop_assert_eq!(!verdict.allowed, model(pattern.as_bytes(), path.as_bytes()));
    }
}

/// The large sets are third-party files outside this repository: set `UNIQCRAWL_SHARED` to the
/// folder that has `data/robots`. Without it the two tests below have nothing to read and say so.
fn shared(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("UNIQCRAWL_SHARED")?;
    Some(PathBuf::from(folder).join("data/robots").join(name))
}

#[test]
fn all_expectations_of_the_specification_test_hold() {
    let Some(path) = shared("spec_400.jsonl") else {
        eprintln!("UNIQCRAWL_SHARED is not set: the specification test was not read");
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let checks = serde_json::json!([[case["agent"], case["url"]]]);
        let asked = serde_json::json!({"robots_base64": case["robots_base64"], "checks": checks});
        let answer = batch_line(&asked.to_string(), &GOOGLE).unwrap().checks;
        if (answer == "1") != case["allowed"].as_bool().unwrap() {
            wrong.push(line.to_owned());
        }
    }
    assert_eq!(text.lines().count(), 400);
    assert!(wrong.is_empty(), "{} wrong, such as {}", wrong.len(), wrong[0]);
}

#[test]
fn all_checks_on_real_files_agree_with_the_reference() {
    let Some(path) = shared("real_dev.jsonl.gz") else {
        eprintln!("UNIQCRAWL_SHARED is not set: the real files were not read");
        return;
    };
    let mut text = String::new();
    let file = BufReader::new(std::fs::File::open(path).unwrap());
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    let (mut checks, mut wrong) = (0, Vec::new());
    for line in text.as_bytes().lines() {
        let line = line.unwrap();
        let case: serde_json::Value = serde_json::from_str(&line).unwrap();
        let answer = batch_line(&line, &GOOGLE).unwrap().checks;
        for (check, answer) in case["checks"].as_array().unwrap().iter().zip(answer.chars()) {
            checks += 1;
            if check[2].as_bool().unwrap_or(check[2] == 1) != (answer == '1') {
                wrong.push(format!("{check} in {}", case["robots_base64"]));
            }
        }
    }
    assert_eq!(checks, 63_158);
    assert!(wrong.is_empty(), "{} wrong, such as {:.600}", wrong.len(), wrong[0]);
}
