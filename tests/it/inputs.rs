//! Inputs of `crawl dedup`: JSON lines, Parquet, WARC, pages and texts, whole and broken; filters.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::support::{crawl, page, prose};

/// Exit code, what was printed, and errors.
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

fn dedup(folder: &Path, arguments: &[&str]) -> Told {
    let done = crawl(&[&["dedup"], arguments].concat(), folder);
    Told {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

/// Runs, and returns the report.
#[track_caller]
fn report(folder: &Path, arguments: &[&str]) -> Value {
    let told = dedup(folder, &[arguments, &["--out", "out", "--json"]].concat());
    assert_eq!(told.code, Some(0), "{}", told.err);
    serde_json::from_str(&told.out).unwrap()
}

fn rows(folder: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("out").join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Sixty documents, of which every third is an edited copy of the one before it.
fn documents() -> Vec<(String, String)> {
    let one = |n: u64| {
        let text = prose(n / 3 * 3 + u64::from(n.is_multiple_of(3)) + 1, 60);
        let text = if n % 3 == 2 { format!("{text} One more line.") } else { text };
        (format!("d{n}"), text)
    };
    (0..60).map(one).collect()
}

fn lines(field: &str) -> String {
    let line = |(id, text): (String, String)| format!("{}\n", json!({"id": id, field: text}));
    documents().into_iter().map(line).collect()
}

fn table(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter(columns.iter().map(|(name, array)| (*name, array.clone()))).unwrap()
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// The documents as a table, with a column that no document needs.
fn documents_table(field: &str) -> RecordBatch {
    let all = documents();
    let numbers = Int64Array::from_iter_values((0_i64..).take(all.len()));
    let mut tags = ListBuilder::new(StringBuilder::new());
    for _ in &all {
        tags.append_value([Some("a"), Some("b")]);
    }
    table(&[
        ("id", texts(all.iter().map(|(id, _)| id.clone()))),
        ("n", Arc::new(numbers)),
        ("tags", Arc::new(tags.finish())),
        (field, texts(all.iter().map(|(_, text)| text.clone()))),
    ])
}

fn write_table(path: &Path, batch: &RecordBatch, compression: Compression, group: usize) {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(group))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn a_text_is_found_under_another_name_and_a_hint_tells_where_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("a.jsonl"), lines("content")).unwrap();
    assert_eq!(report(path, &["a.jsonl"])["documents"], 60);
    fs::write(path.join("b.jsonl"), "{\"id\":1,\"a\":\"x\",\"b\":\"y\"}\n").unwrap();
    let told = dedup(path, &["b.jsonl", "--out", "other"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("b.jsonl") && told.err.contains("it has: a, b, id"), "{}", told.err);
    assert!(told.err.contains("--text-field"), "{}", told.err);
    let named = report(path, &["b.jsonl", "--text-field", "a"]);
    assert_eq!((&named["documents"], &named["kept"]), (&json!(1), &json!(1)));
    let told = dedup(path, &["a.jsonl", "--title-field", "headline", "--out", "other"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("no field `headline`") && told.err.contains("--title-field"));
    assert!(!path.join("other/kept.jsonl").exists());
}

#[test]
fn nothing_usable_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("words.jsonl"), "no\nlines of\nJSON\n").unwrap();
    let told = dedup(path, &["words.jsonl", "--out", "out"]);
    assert_eq!(told.code, Some(2), "{}", told.err);
    assert!(told.err.contains("nothing can be used: 3 records"), "{}", told.err);
    assert!(!path.join("out/kept.jsonl").exists());
    fs::write(path.join("list.json"), "[{\"text\": \"a\"}]").unwrap();
    let told = dedup(path, &["list.json", "--out", "out"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("one JSON list"), "{}", told.err);
    // A shard without a document is none of these.
    fs::write(path.join("empty.jsonl"), "").unwrap();
    assert_eq!(report(path, &["empty.jsonl"])["documents"], 0);
}

#[test]
fn the_same_documents_in_any_form_are_judged_alike_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text = lines("text");
    fs::write(path.join("plain.jsonl"), &text).unwrap();
    let expected = report(path, &["plain.jsonl"]);
    assert_eq!((&expected["documents"], &expected["kept"]), (&json!(60), &json!(40)));
    let (kept, dropped) = (ids(&rows(path, "kept.jsonl")), rows(path, "duplicates.jsonl"));
    // Two members, two frames; names do not count.
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    let packed = [gzip(first), gzip(second)].concat();
    fs::write(path.join("members"), packed).unwrap();
    let frames = [first, second].map(|part| zstd::encode_all(part, 1).unwrap()).concat();
    fs::write(path.join("frames.txt"), frames).unwrap();
    let mut names = vec!["members".to_owned(), "frames.txt".to_owned()];
    for (name, compression) in [
        ("none", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("brotli", Compression::BROTLI(BrotliLevel::default())),
        ("lz4", Compression::LZ4_RAW),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
    ] {
        let name = format!("{name}.data");
        write_table(&path.join(&name), &documents_table("body"), compression, 7);
        names.push(name);
    }
    for name in names {
        let found = report(path, &[&name]);
        assert_eq!(found["documents"], 60, "{name}");
        assert_eq!(ids(&rows(path, "kept.jsonl")), kept, "{name}");
        assert_eq!(rows(path, "duplicates.jsonl"), dropped, "{name}");
    }
    // All columns of a row are kept, as lines or as a table.
    assert_eq!(rows(path, "kept.jsonl")[0]["tags"], json!(["a", "b"]));
    report(path, &["zstd.data", "none.data", "--format", "parquet"]);
    assert!(!path.join("out/kept.jsonl").exists());
    let file = File::open(path.join("out/kept.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(reader.schema().fields(), documents_table("body").schema().fields());
    let rows: usize = reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 40);
    let told = dedup(path, &["plain.jsonl", "--format", "parquet", "--out", "other"]);
    assert_eq!(told.code, Some(2), "{}", told.err);
}

#[test]
fn standard_input_may_be_any_of_them_and_standard_output_has_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = |bytes: &[u8]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["dedup", "-", "--out", "-"])
            .current_dir(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let kept = run(lines("text").as_bytes());
    assert_eq!(kept.lines().count(), 40);
    assert!(lines("text").contains(kept.lines().last().unwrap()), "lines are kept as they are");
    assert_eq!(run(&gzip(lines("text").as_bytes())), kept);
    write_table(&path.join("t"), &documents_table("text"), Compression::SNAPPY, 100);
    assert_eq!(run(&fs::read(path.join("t")).unwrap()).lines().count(), 40);
    assert_eq!(fs::read_dir(path).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn what_stands_before_damage_is_used_and_the_damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let line = |n: u64| format!("{}\n", json!({"id": n, "text": prose(n + 1, 120)}));
    let text: String = (0..400).map(line).collect();
    fs::write(path.join("whole.jsonl"), lines("text")).unwrap();
    let cut = |bytes: &[u8]| bytes[..bytes.len() * 2 / 3].to_vec();
    fs::write(path.join("cut.gz"), cut(&gzip(text.as_bytes()))).unwrap();
    fs::write(path.join("cut.zst"), cut(&zstd::encode_all(text.as_bytes(), 1).unwrap())).unwrap();
    for name in ["cut.gz", "cut.zst"] {
        let found = report(path, &[name, "whole.jsonl"]);
        let documents = found["documents"].as_u64().unwrap();
        assert!(documents > 60 + 100 && documents < 60 + 400, "{name}: {documents}");
        assert_eq!(found["rejectedBy"], json!({"damaged": 1}), "{name}");
        let told = &rows(path, "rejected.jsonl")[0];
        assert_eq!(told["file"], name);
        assert_eq!(told["line"].as_u64().unwrap(), documents - 60 + 1);
        assert!(told["error"].as_str().unwrap().contains("cut short"), "{told}");
    }
    write_table(&path.join("t.parquet"), &documents_table("text"), Compression::SNAPPY, 20);
    let whole = fs::read(path.join("t.parquet")).unwrap();
    fs::write(path.join("cut.parquet"), cut(&whole)).unwrap();
    let told = dedup(path, &["cut.parquet", "--out", "other"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("footer") && told.err.contains("cut short"), "{}", told.err);
    let found = report(path, &["cut.parquet", "whole.jsonl"]);
    assert_eq!((&found["documents"], &found["rejectedBy"]), (&json!(60), &json!({"damaged": 1})));
}

#[test]
fn a_damaged_page_of_a_table_loses_its_rows_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_table(&path.join("t.parquet"), &documents_table("text"), Compression::SNAPPY, 20);
    let mut bytes = fs::read(path.join("t.parquet")).unwrap();
    let file = File::open(path.join("t.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let column = reader.metadata().row_group(1).column(3);
    let (start, length) = column.byte_range();
    // All of the texts of the second group.
    bytes[start as usize..(start + length) as usize].fill(0xFF);
    fs::write(path.join("t.parquet"), bytes).unwrap();
    let found = report(path, &["t.parquet"]);
    assert_eq!(found["documents"], 40);
    let rejected = rows(path, "rejected.jsonl");
    assert!(rejected.iter().all(|row| row["reason"] == "damaged"), "{rejected:?}");
    assert_eq!(rejected[0]["row"], 21);
    assert_eq!(rows(path, "kept.jsonl").last().unwrap()["id"], "d58");
}

#[test]
fn values_of_tables_that_are_no_texts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a sentence"), Some("another one")]);
    let nested =
        table(&[("id", texts(["a".to_owned()].into_iter())), ("text", Arc::new(list.finish()))]);
    write_table(&path.join("nested"), &nested, Compression::SNAPPY, 9);
    let told = dedup(path, &["nested", "--out", "out"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("`text` is a list"), "{}", told.err);
    let nulls = StringArray::from(vec![Some("one text"), None, Some("another text")]);
    write_table(&path.join("nulls"), &table(&[("text", Arc::new(nulls))]), Compression::SNAPPY, 9);
    let found = report(path, &["nulls"]);
    assert_eq!((&found["documents"], &found["rejectedBy"]), (&json!(2), &json!({"no_text": 1})));
    assert_eq!(rows(path, "rejected.jsonl")[0]["row"], 2);
}

#[test]
fn bad_records_are_counted_by_reason_and_lose_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut file = File::create(path.join("in.jsonl")).unwrap();
    file.write_all(b"{\"id\":\"a\",\"text\":\"one\"}\n{\"id\":\"b\",\"text\":\"caf\xe9\"}\n")
        .unwrap();
    file.write_all(b"{\"id\":\"c\",\"text\":\"").unwrap();
    // A record far beyond any document.
    let block = vec![b'x'; 1 << 20];
    (0..70).for_each(|_| file.write_all(&block).unwrap());
    file.write_all(
        b"\"}\n{\"id\":\"d\"}\n{\"id\":\"e\",\"text\":7}\n{\"id\":\"a\",\"text\":\"two\"}\n",
    )
    .unwrap();
    drop(file);
    let found = report(path, &["in.jsonl"]);
    let expected = json!({"bad_field": 1, "invalid_utf8": 1, "no_text": 1, "too_large": 1});
    assert_eq!(found["rejectedBy"], expected);
    assert_eq!((&found["documents"], &found["equalIds"]), (&json!(2), &json!(1)));
    let lines: Vec<u64> =
        rows(path, "rejected.jsonl").iter().map(|row| row["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [2, 3, 4, 5]);
    let found = report(path, &["in.jsonl", "--repair-utf8"]);
    assert_eq!((&found["documents"], &found["repaired"]), (&json!(3), &json!(1)));
    assert_eq!(rows(path, "kept.jsonl")[1]["text"], "caf\u{FFFD}");
}

#[test]
fn a_folder_of_pages_texts_and_lines_is_read_with_all_below_it_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join("in/b/deep")).unwrap();
    fs::create_dir_all(path.join("in/.hidden")).unwrap();
    fs::write(path.join("in/.hidden/x.txt"), "hidden").unwrap();
    fs::write(path.join("in/_SUCCESS"), "").unwrap();
    fs::write(path.join("in/z.jsonl"), "{\"id\":\"line\",\"text\":\"of a file of lines\"}\n")
        .unwrap();
    fs::write(path.join("in/a.html"), page("A page", &prose(1, 80), &[])).unwrap();
    fs::write(path.join("in/b/copy.htm"), page("A page", &prose(1, 80), &[])).unwrap();
    fs::write(path.join("in/b/deep/note.txt"), "A note of some words.").unwrap();
    fs::write(path.join("in/b/bad.txt"), b"caf\xe9").unwrap();
    fs::write(path.join("in/b/image.png"), b"\x89PNG\r\n\x1a\n\0\0").unwrap();
    let found = report(path, &["in"]);
    assert_eq!((&found["documents"], &found["kept"]), (&json!(4), &json!(3)));
    assert_eq!(found["rejectedBy"], json!({"invalid_utf8": 1, "unknown_kind": 1}));
    let kept = rows(path, "kept.jsonl");
    assert_eq!(ids(&kept), ["in/a.html", "in/b/deep/note.txt", "line"]);
    assert_eq!(kept[0]["title"], "A page");
    let text = kept[0]["text"].as_str().unwrap();
    assert!(text.contains(&prose(1, 80)[..60]) && !text.contains('<'), "the main text: {text}");
    assert_eq!(rows(path, "duplicates.jsonl")[0]["id"], "in/b/copy.htm");
}

/// A record of a WARC file.
fn record(kind: &str, url: &str, media: &str, block: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{kind}-{url}>\r\n\
        WARC-Target-URI: {url}\r\nWARC-Date: 2026-11-24T10:00:00Z\r\nContent-Type: {media}\r\n\
        Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

#[test]
fn answers_and_texts_of_warc_files_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let http = "application/http; msgtype=response";
    let answer = |status: &str, media: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Type: {media}\r\n\r\n{body}")
    };
    let html = page("Bridges", &prose(3, 90), &[]);
    let url = |name: &str| format!("http://site.example/{name}");
    let warc = [
        record("warcinfo", "urn:x", "application/warc-fields", "software: test\r\n"),
        record(
            "request",
            &url("a"),
            "application/http; msgtype=request",
            "GET /a HTTP/1.1\r\n\r\n",
        ),
        record("response", &url("a"), http, &answer("200 OK", "text/html", &html)),
        record("response", &url("gone"), http, &answer("404 Not Found", "text/html", &html)),
        record("response", &url("image"), http, &answer("200 OK", "image/png", "png")),
        record("conversion", &url("text"), "text/plain", &prose(4, 60)),
    ];
    let whole = warc.concat();
    let cut = &whole[..whole.len() - 100];
    let packed: Vec<u8> = warc.iter().flat_map(|record| gzip(record.as_bytes())).collect();
    for (name, bytes) in [("plain.warc", whole.as_bytes()), ("packed.warc.gz", &packed)] {
        fs::write(path.join(name), bytes).unwrap();
        let found = report(path, &[name]);
        assert_eq!(found["documents"], 2, "{name}: {found}");
        let skipped = json!({"media_type": 1, "request": 1, "status": 1, "warcinfo": 1});
        assert_eq!(found["skippedBy"], skipped, "{name}");
        let kept = rows(path, "kept.jsonl");
        assert_eq!(kept[0]["url"], url("a"));
        assert_eq!(
            (&kept[0]["title"], &kept[1]["text"]),
            (&json!("Bridges"), &json!(prose(4, 60)))
        );
    }
    fs::write(path.join("cut.warc"), cut).unwrap();
    let found = report(path, &["cut.warc"]);
    assert_eq!((&found["documents"], &found["rejectedBy"]), (&json!(1), &json!({"cut_short": 1})));
    assert!(rows(path, "rejected.jsonl")[0]["offset"].as_u64().unwrap() > 0);
}

#[test]
fn filters_keep_documents_out_with_a_counted_reason_and_change_only_texts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let sentences = "The bridge opens today. The mayor is there. Write to me@site.org now. \
        Cars may pass at nine. All are glad of it.";
    let all = [
        json!({"id": "menu", "n": 1, "text": "Home\nAbout\nContact"}),
        json!({"id": "good", "z": [1, {"text": "as it is"}], "text": format!("Menu | Home\n{sentences}"), "a": null}),
        json!({"id": "lorem", "text": format!("Lorem ipsum dolor sit amet. {sentences}")}),
    ];
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path.join("in.jsonl"), text).unwrap();
    assert_eq!(report(path, &["in.jsonl"])["documents"], 3);
    assert!(!path.join("out/filtered.jsonl").exists(), "off by default");
    let flags = ["in.jsonl", "--filter", "c4", "--mask", "mail"];
    let found = report(path, &flags);
    let expected = json!({"lorem_ipsum": 1, "too_few_sentences": 1});
    assert_eq!((&found["filteredBy"], &found["masked"]), (&expected, &json!(1)));
    let filtered: BTreeMap<String, String> = rows(path, "filtered.jsonl")
        .iter()
        .map(|row| (row["id"].as_str().unwrap().into(), row["reason"].as_str().unwrap().into()))
        .collect();
    assert_eq!(filtered["menu"], "too_few_sentences");
    assert_eq!(filtered["lorem"], "lorem_ipsum");
    let mut expected = all[1].clone();
    expected["text"] = json!(sentences.replace("me@site.org", "email@example.com"));
    assert_eq!(rows(path, "kept.jsonl"), [expected]);
    let settings = "[filters]\nrules = [\"c4\"]\nlanguages = [\"zh\"]\n";
    fs::write(path.join("s.toml"), settings).unwrap();
    let found = report(path, &["in.jsonl", "--config", "s.toml"]);
    assert_eq!(found["filteredBy"], json!({"language": 3}));
    let told = dedup(path, &["in.jsonl", "--languages", "english", "--out", "o"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("two letters"), "{}", told.err);
    let told = dedup(path, &["in.jsonl", "--blocked-words", "none.txt", "--out", "o"]);
    assert_eq!(told.code, Some(2));
    assert!(told.err.contains("none.txt"), "{}", told.err);
}
