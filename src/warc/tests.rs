//! Files as they should be, and as they are.

use std::io::{Cursor, Read, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::web::fetch::decode::DecodeLimits;

const LIMITS: DecodeLimits =
    DecodeLimits { bytes_max: 1 << 20, ratio_max: 200, ratio_grace_bytes: 1 << 20 };

fn record(kind: &str, target: &str, block: &[u8]) -> Vec<u8> {
    let media = match kind {
        "response" | "request" | "revisit" => "application/http; msgtype=response",
        _ => "text/plain",
    };
    let mut bytes = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {target}\r\n\
         WARC-Date: 2026-11-24T12:00:00.123Z\r\nWARC-Record-ID: <urn:uuid:1>\r\n\
         Content-Type: {media}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    )
    .into_bytes();
    bytes.extend_from_slice(block);
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

fn page(number: usize) -> Vec<u8> {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>Page {number}");
    record("response", &format!("http://a.org/{number}"), text.as_bytes())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

/// Gives few bytes at a time.
struct Dribble(Cursor<Vec<u8>>, usize);

impl Read for Dribble {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(self.1);
        self.0.read(&mut out[..most])
    }
}

fn try_read(bytes: &[u8], piece: usize, block_max: usize) -> Result<Vec<Entry>, Error> {
    let stream = Box::new(Dribble(Cursor::new(bytes.to_vec()), piece));
    let mut reader = Reader::new(Path::new("some.warc"), stream)?.with_block_max(block_max);
    let mut entries = Vec::new();
    while let Some(entry) = reader.next()? {
        entries.push(entry);
        assert!(entries.len() < 1_000, "it ends");
    }
    Ok(entries)
}

/// What a file has, in short: targets of records, names of faults.
fn short(entries: &[Entry]) -> Vec<String> {
    let short = entries.iter().map(|entry| match entry {
        Entry::Record(record) => record.target().unwrap_or("-").to_owned(),
        Entry::Fault(fault) => fault.kind.name().to_owned(),
    });
    short.collect()
}

/// Reads a file in pieces of several sizes, from a stream and from the disk, to the same end.
fn read(bytes: &[u8]) -> Vec<Entry> {
    let whole = try_read(bytes, usize::MAX, BLOCK_BYTES_MAX).unwrap();
    for piece in [1, 7, 4_096] {
        assert_eq!(try_read(bytes, piece, BLOCK_BYTES_MAX).unwrap(), whole, "{piece}");
    }
    whole
}

fn read_from_disk(bytes: &[u8]) -> Vec<Entry> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.warc");
    std::fs::write(&path, bytes).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

fn pages(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("http://a.org/{number}")).collect()
}

#[test]
fn records_are_read_however_they_are_packed() {
    let each: Vec<Vec<u8>> = (0..5).map(page).collect();
    let plain = each.concat();
    let by_record = |pack: fn(&[u8]) -> Vec<u8>| -> Vec<u8> {
        each.iter().flat_map(|record| pack(record)).collect()
    };
    let parts: Vec<u8> = plain.chunks(33).flat_map(gzip).collect();
    for (name, bytes) in [
        ("plain", plain.clone()),
        ("gzip by record", by_record(gzip)),
        ("gzip in one", gzip(&plain)),
        ("gzip in parts", parts),
        ("zstd by record", by_record(zstd)),
        ("zstd in one", zstd(&plain)),
    ] {
        let entries = read(&bytes);
        assert_eq!(short(&entries), pages(0..5), "{name}");
        let Entry::Record(third) = &entries[2] else { panic!("{name}") };
        assert!(third.block.ends_with(b"<p>Page 2"), "{name}");
        assert_eq!(third.date(), Some(Timestamp(1_795_521_600_123)));
        let payload = third.clone().into_payload(&LIMITS).unwrap();
        assert_eq!((payload.status, &payload.bytes[..]), (Some(200), &b"<p>Page 2"[..]));
    }
    let entries = read(&by_record(gzip));
    let spots: Vec<u64> = entries
        .iter()
        .map(|entry| match entry {
            Entry::Record(record) => record.spot.offset,
            Entry::Fault(fault) => panic!("{fault}"),
        })
        .collect();
    let mut expected = 0;
    for (spot, record) in spots.iter().zip(&each) {
        assert_eq!(*spot, expected);
        expected += gzip(record).len() as u64;
    }
}

#[test]
fn a_dictionary_at_the_start_of_a_zstd_file_is_used() {
    let samples: Vec<Vec<u8>> = (0..200).map(page).collect();
    // Of raw content, as any bytes are.
    let dictionary = samples[100..].concat();
    let mut packer = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    let records: Vec<u8> =
        samples[..9].iter().flat_map(|record| packer.compress(record).unwrap()).collect();
    for frame in [dictionary.clone(), zstd(&dictionary)] {
        let mut bytes = vec![0x5D, 0x2A, 0x4D, 0x18];
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend(&frame);
        bytes.extend(&records);
        assert_eq!(short(&read(&bytes)), pages(0..9));
    }
    // Without it, nothing can be unpacked, and each record says so.
    assert_eq!(short(&read(&records)), vec!["corrupt"; 9]);
}

#[test]
fn what_is_no_record_is_told_once_and_passed_over() {
    let mut bytes = page(0);
    bytes.extend(b"some bytes\nthat nobody knows\r\n\r\n");
    bytes.extend(page(1));
    let entries = read(&bytes);
    assert_eq!(short(&entries), ["http://a.org/0", "stray_bytes", "http://a.org/1"]);
    let Entry::Fault(fault) = &entries[1] else { panic!() };
    assert_eq!(fault.spot, Spot { offset: page(0).len() as u64, inside: 0 });
    assert_eq!(fault.kind, FaultKind::Stray { bytes: 30 });
    // At the start and at the end.
    let bytes = [b"junk\r\n".to_vec(), page(0), b"junk".to_vec()].concat();
    assert_eq!(short(&read(&bytes)), ["stray_bytes", "http://a.org/0", "stray_bytes"]);
    // Empty lines are none.
    let bytes = [b"\r\n\n".to_vec(), page(0), b"\n\n\r\n".to_vec(), page(1)].concat();
    assert_eq!(short(&read(&bytes)), pages(0..2));
}

#[test]
fn a_wrong_length_is_told_and_the_next_record_is_not_lost() {
    let wrong = |length: i64| {
        let text = String::from_utf8(page(7)).unwrap();
        let right = text.split("Content-Length: ").nth(1).unwrap().split('\r').next().unwrap();
        let stated = right.parse::<i64>().unwrap() + length;
        let named = format!("Content-Length: {right}");
        text.replace(&named, &format!("Content-Length: {stated}")).into_bytes()
    };
    for (stated, plain, packed) in [
        (5, &["wrong_length"][..], &["wrong_length"][..]),
        (40, &["wrong_length"], &["wrong_length"]),
        (90_000, &["wrong_length"], &["wrong_length"]),
        (-3, &["stray_bytes"], &["stray_bytes"]),
    ] {
        let all = [page(0), wrong(stated), page(1), page(2)];
        let expected = |fault: &[&str]| -> Vec<String> {
            let mut list = vec!["http://a.org/0", "http://a.org/7"];
            list.extend(fault);
            list.extend(["http://a.org/1", "http://a.org/2"]);
            list.into_iter().map(str::to_owned).collect()
        };
        assert_eq!(short(&read(&all.concat())), expected(plain), "{stated}");
        let members: Vec<u8> = all.iter().flat_map(|record| gzip(record)).collect();
        assert_eq!(short(&read(&members)), expected(packed), "{stated} packed");
        let entries = read(&all.concat());
        let Entry::Record(salvaged) = &entries[1] else { panic!() };
        assert_eq!(salvaged.block.ends_with(b"<p>Page 7"), stated > 0);
    }
    let text = String::from_utf8(page(7)).unwrap();
    for bad in ["Content-Length: -1", "Content-Length: many", "X-Length: 3"] {
        let length = text.split("\r\n").find(|line| line.starts_with("Content-Length")).unwrap();
        let bytes = [page(0), text.replace(length, bad).into_bytes(), page(1)].concat();
        let entries = read(&bytes);
        assert_eq!(short(&entries), ["http://a.org/0", "no_length", "http://a.org/1"], "{bad}");
        assert!(entries[1].to_owned().to_string().contains("http://a.org/7"));
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Record(record) => f.write_str(record.target().unwrap_or("-")),
            Self::Fault(fault) => write!(f, "{fault}"),
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_keeps_the_records_before() {
    let each: Vec<Vec<u8>> = (0..3).map(page).collect();
    for pack in [|bytes: &[u8]| bytes.to_vec(), gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let packed: Vec<Vec<u8>> = each.iter().map(|record| pack(record)).collect();
        let whole = packed[0].len() + packed[1].len();
        let last = packed[2].len();
        for cut in 1..last - 4 {
            let bytes = &packed.concat()[..whole + cut];
            let entries = try_read(bytes, 4_096, BLOCK_BYTES_MAX).unwrap();
            assert_eq!(short(&entries[..2]), pages(0..2), "{cut}");
            let faults = short(&entries[2..]);
            let [fault] = &faults[..] else { panic!("{cut}: {faults:?}") };
            assert!(["cut_short", "corrupt", "stray_bytes"].contains(&fault.as_str()), "{fault}");
        }
    }
}

#[test]
fn a_packed_record_that_is_broken_costs_no_other() {
    let noise: String = (0..4_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    let large = record("response", "http://a.org/large", noise.as_bytes());
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let (first, large, last) = (pack(&page(0)), pack(&large), pack(&page(1)));
        for at in (12..large.len() - 1).step_by(97) {
            let mut broken = large.clone();
            broken[at] ^= 0x55;
            let bytes = [first.clone(), broken, last.clone()].concat();
            for entries in
                [try_read(&bytes, 4_096, BLOCK_BYTES_MAX).unwrap(), read_from_disk(&bytes)]
            {
                let found = short(&entries);
                assert_eq!(found.first().unwrap(), "http://a.org/0");
                // zstd without a checksum may not notice.
                let noticed = found.iter().any(|name| !name.starts_with("http"));
                let same = found.len() == 3 && found[1] == "http://a.org/large";
                assert!(noticed || same, "{at}: {found:?}");
            }
            // A file can go back to where the broken part begins.
            assert_eq!(short(&read_from_disk(&bytes)).last().unwrap(), "http://a.org/1", "{at}");
        }
    }
}

#[test]
fn a_record_that_is_too_large_is_passed_over() {
    let large = record("response", "http://a.org/large", &vec![b'x'; 300_000]);
    for pack in [|bytes: &[u8]| bytes.to_vec(), gzip as fn(&[u8]) -> Vec<u8>] {
        let bytes = [pack(&page(0)), pack(&large), pack(&page(1))].concat();
        let entries = try_read(&bytes, 4_096, 200_000).unwrap();
        assert_eq!(short(&entries), ["http://a.org/0", "too_large", "http://a.org/1"]);
        let Entry::Fault(fault) = &entries[1] else { panic!() };
        assert_eq!(fault.kind, FaultKind::TooLarge { bytes: 300_000 });
        assert_eq!(fault.target.as_deref(), Some("http://a.org/large"));
        assert_eq!(short(&try_read(&bytes, 4_096, 300_000).unwrap())[1], "http://a.org/large");
    }
}

#[test]
fn a_header_without_end_is_told() {
    let long = format!("WARC/1.0\r\nX: {}\r\n\r\n", "x".repeat(reader::HEADER_BYTES_MAX));
    let bytes = [page(0), long.into_bytes(), page(1)].concat();
    assert_eq!(short(&read_from_disk(&bytes)), ["http://a.org/0", "open_header", "http://a.org/1"]);
    let open: Vec<u8> = [gzip(b"WARC/1.0\r\nX: y"), gzip(&page(1))].concat();
    assert_eq!(short(&read(&open)), ["open_header", "http://a.org/1"]);
}

#[test]
fn a_file_that_is_something_else_is_refused() {
    for (bytes, hint) in [
        (b"{\"text\": \"a\"}\n".to_vec(), "no record"),
        (b"filedesc://some.arc 0.0.0.0 2008 text/plain 76\n".to_vec(), "ARC"),
        (gzip(b"some text"), "no record"),
        (zstd(b"some text"), "no record"),
    ] {
        let error = try_read(&bytes, 4_096, BLOCK_BYTES_MAX).unwrap_err().to_string();
        assert!(error.contains("some.warc is no WARC file") && error.contains(hint), "{error}");
    }
    assert_eq!(try_read(b"", 1, BLOCK_BYTES_MAX).unwrap(), []);
    assert_eq!(try_read(&gzip(b""), 1, BLOCK_BYTES_MAX).unwrap(), []);
    let error = Reader::open(Path::new("/no/such.warc")).unwrap_err().to_string();
    assert!(error.contains("/no/such.warc"), "{error}");
}

#[test]
fn headers_are_read_as_old_tools_write_them() {
    let text = "WARC/1.0\nwarc-type:resource\nWARC-TARGET-URI: <http://a.org/x>\n\
        X-Long: a\n  b\nno header\nContent-Type: text/plain\nContent-Length: 2\n\nhi\n\n";
    let entries = read(text.as_bytes());
    let [Entry::Record(record)] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((record.kind, record.target()), (Kind::Resource, Some("http://a.org/x")));
    assert_eq!(record.headers.get("x-long"), Some("a b"));
    assert_eq!(record.clone().into_payload(&LIMITS).unwrap().bytes, b"hi");
}

#[track_caller]
fn payload(http: &[u8]) -> Result<Payload, PayloadFault> {
    let entries = read(&record("response", "http://a.org/", http));
    let [Entry::Record(record)] = &entries[..] else { panic!("{entries:?}") };
    record.clone().into_payload(&LIMITS)
}

fn http(headers: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").as_bytes(), body].concat()
}

#[test]
fn codings_of_answers_are_undone() {
    let text = b"a text that is long enough to be packed, to be packed, to be packed";
    let chunks = b"5;x=y\r\na tex\r\n3E\r\nt that is long enough to be packed, to be packed, \
        to be packed\r\n0\r\nTrailer: x\r\n\r\n";
    for (headers, body) in [
        ("X: y", text.to_vec()),
        ("Transfer-Encoding: chunked", chunks.to_vec()),
        // Undone by whoever wrote the file.
        ("Transfer-Encoding: chunked", text.to_vec()),
        ("Content-Encoding: gzip", gzip(text)),
        ("Content-Encoding: gzip", text.to_vec()),
        ("Content-Encoding: zstd", zstd(text)),
        ("Content-Encoding: zstd", text.to_vec()),
    ] {
        let payload = payload(&http(headers, &body)).unwrap();
        assert_eq!((&payload.bytes[..], payload.cut), (&text[..], false), "{headers}");
    }
    let packed = gzip(text);
    let chunked =
        [format!("{:x}\r\n", packed.len()).as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat();
    let both = "Transfer-Encoding: chunked\r\nContent-Encoding: gzip";
    assert_eq!(payload(&http(both, &chunked)).unwrap().bytes, text);
    // What broke off is told.
    let cut = payload(&http("Transfer-Encoding: chunked", &chunks[..40])).unwrap();
    assert!(cut.cut && text.starts_with(&cut.bytes) && !cut.bytes.is_empty());
    let cut = payload(&http("Content-Encoding: gzip", &packed[..packed.len() - 9])).unwrap();
    assert!(cut.cut && text.starts_with(&cut.bytes));
    let bomb = payload(&http("Content-Encoding: gzip", &gzip(&vec![0; 4 << 20]))).unwrap_err();
    assert_eq!(bomb.name(), "bomb");
    let bad = payload(&http("Content-Encoding: br", b"\x91\x02\x03\x04not brotli")).unwrap_err();
    assert_eq!(bad.name(), "bad_encoding");
}

#[test]
fn an_answer_without_a_head_is_all_body() {
    let bare = payload(b"<html><p>From long ago.").unwrap();
    assert_eq!((bare.status, &bare.bytes[..]), (Some(200), &b"<html><p>From long ago."[..]));
    let empty = payload(b"").unwrap();
    assert_eq!((empty.status, empty.bytes.len()), (Some(200), 0));
    let bare = payload(b"HTTP/1.0 404 Not Found").unwrap();
    assert_eq!((bare.status, bare.bytes.len()), (Some(404), 0));
}

#[test]
fn what_carries_nothing_says_why() {
    for kind in ["request", "metadata", "warcinfo", "revisit", "continuation", "strange"] {
        let entries = read(&record(kind, "http://a.org/", b"some: thing\r\n"));
        let [Entry::Record(record)] = &entries[..] else { panic!("{entries:?}") };
        let fault = record.clone().into_payload(&LIMITS).unwrap_err();
        assert_eq!(fault, PayloadFault::NoPayload, "{kind}");
    }
    for target in ["", " "] {
        let entries = read(&record("response", target, b"HTTP/1.1 200 OK\r\n\r\n"));
        let [Entry::Record(record)] = &entries[..] else { panic!("{entries:?}") };
        let fault = record.clone().into_payload(&LIMITS).unwrap_err();
        assert_eq!(fault, PayloadFault::NoTarget);
    }
    let text = record("conversion", "http://a.org/", b"The text of a page.");
    let entries = read(&text);
    let [Entry::Record(record)] = &entries[..] else { panic!("{entries:?}") };
    let payload = record.clone().into_payload(&LIMITS).unwrap();
    assert_eq!((payload.status, payload.content_type.as_deref()), (None, Some("text/plain")));
    assert_eq!(payload.bytes, b"The text of a page.");
}
