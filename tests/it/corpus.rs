//! Duplicates in files of JSON lines.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uniqcrawl::corpus::files::{self, DedupReport, Options, Progress, Resources};
use uniqcrawl::neardup::{Config, Preset};

use crate::support::prose;

pub(crate) fn write(folder: &Path, name: &str, lines: &[Value]) -> PathBuf {
    let path = folder.join(name);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).unwrap();
    path
}

fn run(inputs: &[PathBuf], out: &Path, threads: usize) -> DedupReport {
    let resources = Resources { threads, ..Resources::default() };
    let options = Options { resources, ..Options::default() };
    files::run(inputs, out, &Config::default(), &options, &mut |_| {}).unwrap()
}

/// One thread, and memory enough.
fn one_thread() -> Options {
    let resources = Resources { threads: 1, ..Resources::default() };
    Options { resources, ..Options::default() }
}

fn rows(out: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(out.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

/// Every file but the report, whose times differ.
fn files(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(out).unwrap().map(|entry| entry.unwrap());
    let all = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    all.filter(|(name, _)| !matches!(name.as_str(), "report.json" | "manifest.json")).collect()
}

/// 300 documents, of which every third is an edited copy of the one before it.
fn documents() -> Vec<Value> {
    let mut lines = Vec::new();
    for n in 0..100u64 {
        let text = prose(n + 1, 40 + (n as usize % 5) * 60);
        lines.push(json!({"id": format!("{n}"), "text": text}));
        lines.push(json!({"id": format!("{n}x"), "text": format!("{text} One more line of it.")}));
        lines.push(json!({"id": n * 1000 + 7, "text": format!("short {n}")}));
    }
    lines
}

#[test]
fn copies_are_found_and_the_most_popular_is_kept_as_it_stood() {
    let folder = tempfile::tempdir().unwrap();
    let text = prose(1, 80);
    let line = r#"{"extra": [1, {"a": null}],  "id":"b", "popularity": 2.5, "text": "#;
    let best = format!("{line}{}}}", json!(format!("{text} And so on.")));
    let input = folder.path().join("in.jsonl");
    let first = json!({"id": "a", "text": text, "popularity": 2});
    let other = json!({"id": "c", "text": prose(2, 80), "title": null});
    fs::write(&input, format!("{first}\n{best}\r\n\n{other}")).unwrap();
    let out = folder.path().join("out");
    let report = run(&[input], &out, 1);
    assert_eq!((report.documents, report.kept, report.clusters, report.rejected), (3, 2, 1, 1));
    let kept = fs::read_to_string(out.join("kept.jsonl")).unwrap();
    assert_eq!(kept.lines().collect::<Vec<_>>(), [best.as_str(), &other.to_string()]);
    let dropped = rows(&out, "duplicates.jsonl");
    assert_eq!((&dropped[0]["id"], &dropped[0]["duplicateOf"]), (&json!("a"), &json!("b")));
    assert_eq!((report.takeovers, &dropped[0]["key"]), (1, &json!("first")));
    assert_eq!(rows(&out, "clusters.jsonl")[0]["members"], json!(["a", "b"]));
    assert_eq!(rows(&out, "rejected.jsonl")[0]["line"], json!(3));
    assert!(out.join("report.json").exists());
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "in.jsonl", &documents());
    let mut results = Vec::new();
    for threads in [1, 2, 7] {
        let out = folder.path().join(threads.to_string());
        let report = run(std::slice::from_ref(&input), &out, threads);
        assert_eq!((report.documents, report.kept), (300, 200));
        results.push(files(&out));
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[test]
fn packed_files_and_several_files_are_read_as_one_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let lines = documents();
    let (first, second) = lines.split_at(150);
    let pack = |name: &str, lines: &[Value], gzip: bool| {
        let plain = fs::read(write(folder.path(), "plain", lines)).unwrap();
        let path = folder.path().join(name);
        let packed = if gzip {
            // Two members, as `cat a.gz b.gz` makes them.
            let (one, other) = plain.split_at(1000);
            let mut all = Vec::new();
            for part in [one, other] {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::GzEncoder::new(&mut all, level);
                encoder.write_all(part).unwrap();
                encoder.finish().unwrap();
            }
            all
        } else {
            zstd::bulk::compress(&plain, 1).unwrap()
        };
        fs::write(&path, packed).unwrap();
        path
    };
    let parts = [pack("a.gz", first, true), pack("b.zst", second, false)];
    let whole = write(folder.path(), "whole", &lines);
    run(&parts, &folder.path().join("parts"), 2);
    run(&[whole], &folder.path().join("one"), 2);
    assert_eq!(files(&folder.path().join("parts")), files(&folder.path().join("one")));
}

#[test]
fn files_of_any_number_of_lines_are_judged_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<Value> =
        (0..1100u64).map(|n| json!({"id": n, "text": prose(n % 700, 30)})).collect();
    let whole = write(folder.path(), "whole", &lines);
    run(&[whole], &folder.path().join("one"), 1);
    // Files that end where a thread's share of lines ends, and empty ones.
    let mut rest = lines.as_slice();
    let mut parts = Vec::new();
    for (at, count) in [0, 256, 256, 0, 512, 1, 75].into_iter().enumerate() {
        let (part, after) = rest.split_at(count);
        parts.push(write(folder.path(), &at.to_string(), part));
        rest = after;
    }
    assert!(rest.is_empty());
    for threads in [1, 2, 7] {
        let out = folder.path().join(format!("out{threads}"));
        assert_eq!(run(&parts, &out, threads).kept, 700);
        assert_eq!(files(&out), files(&folder.path().join("one")));
    }
}

#[test]
fn an_input_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let whole = write(folder.path(), "in.jsonl", &documents());
    let out = folder.path().join("out");
    run(&[whole], &out, 1);
    let mut names: Vec<String> = files(&out).into_keys().collect();
    assert_eq!(names, ["clusters.jsonl", "duplicates.jsonl", "kept.jsonl", "rejected.jsonl"]);
    names.extend(["report.json", "manifest.json"].map(str::to_owned));
    names.extend(names.clone().iter().map(|name| format!("{name}.partial")));
    names.extend(["input.zst.partial", "documents.zst.partial"].map(str::to_owned));
    for name in names {
        let folder = tempfile::tempdir().unwrap();
        let other = write(folder.path(), "other.jsonl", &documents());
        let input = write(folder.path(), &name, &documents());
        let before = fs::read(&input).unwrap();
        let inputs = [other, folder.path().join(".").join(&name)];
        let config = Config::default();
        let error =
            files::run(&inputs, folder.path(), &config, &one_thread(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("would be overwritten"), "{error}");
        assert_eq!(fs::read(&input).unwrap(), before, "{name}");
    }
}

/// Pages of some sites with a frame each, edited and equal copies of earlier ones, and identifiers
/// that come twice.
pub(crate) fn pages_of_sites(count: u64) -> Vec<Value> {
    let page = |n: u64| {
        let mut random = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
        let mut below = |end: u64| {
            random = random.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
            (random >> 33) % end
        };
        let origin = if n > 10 && below(3) == 0 { n - 1 - below(n.min(200) - 1) } else { n };
        let mut text = prose(origin + 1, 30 + (origin as usize * 7) % 90);
        match below(6) {
            0 => text = format!("{text} One more line of number {n}."),
            1 => text = format!("{} {text}", prose(50_000 + n % 3, 40)),
            2 => text = text.replacen("e ", "a ", 4),
            // A part of one text behind the whole of another one: it hangs on whichever came first.
            3 => text = format!("{text} {}", prose(1 + below(n), 30 + below(60) as usize)),
            _ => {}
        }
        let site = below(5);
        json!({
            "id": format!("{}", n - u64::from(below(50) == 0)), "popularity": below(4),
            "url": format!("http://site{site}.example/{}", below(2_000)),
            "title": if below(4) == 0 { "News of the day".to_owned() } else { prose(origin + 9, 5) },
            "text": if below(40) == 0 { String::new() } else { text },
        })
    };
    (0..count).map(page).collect()
}

#[test]
fn what_has_no_room_in_memory_goes_to_the_disk_and_nothing_else_changes() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "in.jsonl", &pages_of_sites(1_200));
    for preset in [Preset::Balanced, Preset::Seeds, Preset::Loose] {
        let run = |memory: usize, name: &str| {
            let out = folder.path().join(format!("{preset}-{name}"));
            // A run that was killed has left something behind.
            fs::create_dir_all(out.join("work.partial/store.redb")).unwrap();
            let resources = Resources { threads: 2, memory };
            let options = Options { resources, ..Options::default() };
            let config = preset.config();
            let inputs = std::slice::from_ref(&input);
            let report = files::run(inputs, &out, &config, &options, &mut |_| {}).unwrap();
            (files(&out), report)
        };
        let (in_memory, expected) = run(1 << 30, "memory");
        let (on_disk, mut report) = run(1, "disk");
        assert!(in_memory == on_disk, "{preset}");
        (report.seconds, report.documents_per_second) =
            (expected.seconds, expected.documents_per_second);
        report.index_bytes = expected.index_bytes;
        assert_eq!(report, expected, "{preset}");
        assert!(report.equal_ids > 10 && report.clusters > 50, "{report:?}");
        assert!(preset == Preset::Seeds || report.moved > 0, "{report:?}");
    }
}

#[test]
fn an_input_that_changes_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let lines = documents();
    let mut other = lines.clone();
    other[5]["id"] = json!("another one");
    let fewer = lines[..lines.len() - 1].to_vec();
    let more = [&lines[..], &lines[..1]].concat();
    for changed in [other, fewer, more] {
        let input = write(folder.path(), "in.jsonl", &lines);
        let mut change = |_: &Progress| drop(write(folder.path(), "in.jsonl", &changed));
        let error =
            files::run(&[input], &out, &Config::default(), &one_thread(), &mut change).unwrap_err();
        assert!(error.to_string().contains("in.jsonl was changed"), "{error}");
        assert!(!out.join("kept.jsonl").exists());
    }
}

#[test]
fn popularity_counts_in_thousandths_and_the_first_of_equal_copies_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let line = |id: &str, popularity: f64| json!({"id": id, "text": prose(1, 80), "popularity": popularity});
    let kept = |lines: &[Value]| {
        let input = write(folder.path(), "in.jsonl", lines);
        let out = folder.path().join("out");
        run(&[input], &out, 1);
        rows(&out, "kept.jsonl")[0]["id"].clone()
    };
    assert_eq!(kept(&[line("a", 0.001), line("b", 0.002)]), json!("b"));
    assert_eq!(kept(&[line("a", 0.5), line("b", 0.5), line("c", -3.0)]), json!("a"));
}

#[test]
fn a_dropped_copy_says_how_it_was_found_and_how_alike_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = prose(1, 80);
    let near = format!("{text} One more.");
    let lines = [("a", text.as_str()), ("b", &near), ("c", &text), ("d", &near)]
        .map(|(id, text)| json!({"id": id, "text": text}));
    let input = write(folder.path(), "in.jsonl", &lines);
    let out = folder.path().join("out");
    let report = run(&[input], &out, 1);
    assert_eq!((report.kept, report.takeovers, report.largest_cluster), (1, 0, 4));
    let dropped = rows(&out, "duplicates.jsonl");
    assert_eq!(ids(&dropped), ["b", "c", "d"]);
    let alike = dropped[0]["similarity"].as_f64().unwrap();
    let thousandths = alike * 1000.0;
    assert!(alike > 0.9 && alike < 1.0 && (thousandths - thousandths.round()).abs() < 1e-9);
    let fingerprinter = uniqcrawl::text::features::Fingerprinter::default();
    let [one, other] = [&text, &near].map(|text| fingerprinter.text_keys(text, ""));
    assert!((alike - f64::from(one.sketch.similarity(&other.sketch))).abs() <= 0.0005);
    assert_eq!(dropped[0]["distance"], json!(one.fingerprint.distance(other.fingerprint)));
    assert_eq!(
        (&dropped[1]["key"], &dropped[1]["similarity"]),
        (&json!("exact_content"), &json!(1.0))
    );
    assert_eq!(
        (&dropped[2]["key"], &dropped[2]["similarity"]),
        (&json!("exact_content"), &json!(alike))
    );
}

#[test]
fn bad_lines_are_named_and_lose_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    let long = format!("\"{}\"\n", "x".repeat(100_000));
    let mut bytes = b"not json\n{\"id\":1}\n[]\n{\"text\":5}\n{\"text\":\"unfinished\n".to_vec();
    bytes.extend_from_slice(long.as_bytes());
    bytes.extend_from_slice(b"{\"id\":\"bad bytes\",\"text\":\"caf\xe9 au lait\"}\n");
    bytes.extend_from_slice("{\"text\":\"\"}\n{\"text\":\"\"}\n{\"text\":null}\n".as_bytes());
    bytes.extend_from_slice(
        b"{\"id\":\"same\",\"text\":\"one\"}\n{\"id\":\"same\",\"text\":\"two\"}\n",
    );
    fs::write(&input, bytes).unwrap();
    let out = folder.path().join("out");
    let report = run(&[input], &out, 2);
    assert_eq!((report.documents, report.rejected, report.repaired), (5, 7, 0));
    assert_eq!((report.empty, report.equal_ids, report.kept), (3, 1, 5));
    let lines: Vec<u64> =
        rows(&out, "rejected.jsonl").iter().map(|row| row["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5, 6, 7]);
    let reasons: Vec<(&str, u64)> =
        report.reasons.rejected.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    assert_eq!(reasons, [("bad_field", 3), ("bad_json", 2), ("invalid_utf8", 1), ("no_text", 1)]);
    let detail = rows(&out, "rejected.jsonl")[1]["error"].as_str().unwrap().to_owned();
    assert!(detail.contains("missing field `text`"), "{detail}");
    let size = fs::metadata(out.join("rejected.jsonl")).unwrap().len();
    assert!(size < 4_000, "texts are not copied into the list of bad lines: {size} bytes");
}

#[test]
fn a_bad_line_is_left_out_of_its_own_file_only() {
    let folder = tempfile::tempdir().unwrap();
    let line = |n: u64| json!({"id": format!("{n}"), "text": prose(n, 30)});
    let first = write(folder.path(), "first", &[line(1), line(2)]);
    let second = write(folder.path(), "second", &[line(3), json!(5), line(4)]);
    let out = folder.path().join("out");
    let report = run(&[first, second], &out, 2);
    assert_eq!((report.documents, report.rejected), (4, 1));
    assert_eq!(ids(&rows(&out, "kept.jsonl")), ["1", "2", "3", "4"]);
    let rejected = rows(&out, "rejected.jsonl");
    assert!(rejected[0]["file"].as_str().unwrap().ends_with("second"));
}

#[test]
fn odd_texts_are_judged_in_bounded_time() {
    let folder = tempfile::tempdir().unwrap();
    let long = "word ".repeat(2 << 20);
    let input = write(
        folder.path(),
        "in",
        &[
            json!({"id": "one character", "text": "a".repeat(5 << 20)}),
            json!({"id": "again", "text": "a".repeat(5 << 20)}),
            json!({"id": "one word", "text": long}),
            json!({"id": "a word more", "text": format!("{long} other")}),
            json!({"id": "one Hanzi", "text": "的".repeat(1 << 20)}),
            json!({"id": "mixed", "text": "中文 and English и русский と日本語 ".repeat(2000)}),
            json!({"id": "single", "text": "word"}),
            json!({"id": "marks", "text": "\u{301}".repeat(100_000)}),
            json!({"id": "signs", "text": "!?.;:…。".repeat(100_000)}),
        ],
    );
    let started = std::time::Instant::now();
    let report = run(&[input], &folder.path().join("out"), 2);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert_eq!((report.documents, report.duplicates["exact_content"]), (9, 1));
    assert_eq!(ids(&rows(&folder.path().join("out"), "kept.jsonl"))[0], "one character");
}

#[test]
fn what_is_wrong_with_files_and_settings_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let missing = folder.path().join("missing.jsonl");
    let config = Config::default();
    let fails = |inputs: &[PathBuf], out: &Path, config: &Config| {
        files::run(inputs, out, config, &one_thread(), &mut |_| {}).unwrap_err().to_string()
    };
    assert!(fails(std::slice::from_ref(&missing), &out, &config).contains("missing.jsonl"));
    let input = write(folder.path(), "in.jsonl", &documents());
    let cut = folder.path().join("cut.gz");
    fs::write(&cut, [0x1F, 0x8B, 8, 0, 1]).unwrap();
    assert!(fails(&[cut], &out, &config).contains("cut.gz"));
    assert!(fails(std::slice::from_ref(&input), &input, &config).contains("in.jsonl"));
    let far = Config { k: 12, ..Config::default() };
    let error = fails(std::slice::from_ref(&input), &out, &far);
    assert!(error.contains("rotated") && error.contains("12") && error.contains("11"), "{error}");
    let bands = Config { bands: 100, band_rows: 3, ..Config::default() };
    assert!(fails(&[input], &out, &bands).contains("256 slots"));
}

/// Pages of some sites, each with as much boilerplate as `times` its own text.
fn sites(times: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    for site in 0..4u64 {
        let boilerplate = prose(5_000 + site, 80 * times);
        for page in 0..25 {
            let text = format!("{boilerplate} {}", prose(site * 100 + page, 80));
            lines.push(json!({"id": format!("{site}/{page}"), "text": text}));
        }
    }
    lines
}

#[test]
fn boilerplate_of_a_site_does_not_join_its_pages() {
    for times in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = sites(times);
        // A page at another address of the site, with another notice at its end.
        let copy = format!("{} Printed at nine.", lines[30]["text"].as_str().unwrap());
        lines.push(json!({"id": "copy", "text": copy}));
        let input = write(folder.path(), "in.jsonl", &lines);
        let out = folder.path().join("out");
        let report = run(&[input], &out, 2);
        assert_eq!((report.documents, report.kept), (101, 100), "{times} times");
        assert_eq!(rows(&out, "clusters.jsonl")[0]["members"], json!(["1/5", "copy"]));
    }
}

#[test]
fn products_of_a_shop_are_not_one_though_nearly_all_of_each_page_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let boilerplate = prose(9_000, 450);
    let mut lines = Vec::new();
    for n in 0..60u64 {
        let text = format!("{boilerplate} {}", prose(n, 50));
        lines.push(
            json!({"id": format!("{n}"), "url": format!("https://shop.example/{n}"), "text": text}),
        );
    }
    let text = format!("{} Printed.", lines[7]["text"].as_str().unwrap());
    lines.push(json!({"id": "copy", "url": "https://shop.example/print/7", "text": text}));
    let input = write(folder.path(), "in.jsonl", &lines);
    let out = folder.path().join("out");
    let report = run(&[input], &out, 2);
    assert_eq!((report.documents, report.kept), (61, 60));
    assert_eq!(rows(&out, "clusters.jsonl")[0]["members"], json!(["7", "copy"]));
}

#[test]
fn the_presets_join_more_and_more() {
    let folder = tempfile::tempdir().unwrap();
    let text = prose(3, 300);
    let words: Vec<&str> = text.split(' ').collect();
    // Every n-th word is another one, not the same in both: else one would be found by the other.
    let edited = |nth: usize| -> String {
        let words = words.iter().enumerate();
        let words =
            words.map(
                |(at, word)| {
                    if at % nth == 0 { format!("x{nth}y{at}") } else { (*word).to_owned() }
                },
            );
        words.collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<Value> =
        [("original", text.clone()), ("eighth", edited(8)), ("fourth", edited(4))]
            .into_iter()
            .map(|(id, text)| json!({"id": id, "url": format!("http://{id}.test/"), "text": text}))
            .collect();
    let input = write(folder.path(), "in.jsonl", &lines);
    let kept = |preset: Preset| {
        let out = folder.path().join(preset.to_string());
        let inputs = std::slice::from_ref(&input);
        files::run(inputs, &out, &preset.config(), &one_thread(), &mut |_| {}).unwrap();
        ids(&rows(&out, "kept.jsonl")).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(kept(Preset::Strict).len(), 3);
    assert_eq!(kept(Preset::Balanced), ["original", "fourth"]);
    assert_eq!(kept(Preset::Loose), ["original"]);
}
