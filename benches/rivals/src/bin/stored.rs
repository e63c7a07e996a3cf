//! The durable index of fingerprints: insertions a second in commits of 10,000, bytes written for
//! each, and the time to open it again. Folds as a crawl does: at each opening, of which there are
//! as many as the number of entries doubles. Usage: stored N FOLDER

use std::fs;
use std::path::Path;
use std::time::Instant;

use uniqcrawl::corpus::keys;
use uniqcrawl::neardup::index::layout::{LayoutKind, build};
use uniqcrawl::neardup::{Change, Field};
use uniqcrawl::store::Store;
use uniqcrawl::text::simhash::Fingerprint;

const BATCH: u32 = 10_000;

/// Bytes that this process has handed to the disk.
fn written() -> u64 {
    let text = fs::read_to_string("/proc/self/io").expect("this runs on Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|count| count.parse().ok()).expect("the kernel counts them")
}

fn print(number: u32) -> Fingerprint {
    let mut bits = u64::from(number).wrapping_add(0x9E37_79B9_7F4A_7C15);
    for _ in 0..3 {
        bits ^= bits >> 31;
        bits = bits.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    Fingerprint(bits ^ bits >> 29)
}

/// Opens the store as a crawl does: reads all entries, folds the log if it is due.
fn open(folder: &Path) -> (Store, usize, f64, f64) {
    let started = Instant::now();
    let store = Store::open_or_create(folder, 256 << 20).expect("a store");
    let snapshot = store.snapshot().expect("tables");
    let mut entries = keys::load(&snapshot).expect("sound rows");
    let mut index = build(LayoutKind::Rotated, 3).expect("k fits");
    let narrow = |(print, content): &(Fingerprint, u64)| (*print, *content as u32);
    index.insert_all(&entries.contents.iter().map(narrow).collect::<Vec<_>>());
    let opened = started.elapsed().as_secs_f64();
    drop(snapshot);
    let started = Instant::now();
    if entries.is_fold_due() {
        let mut batch = store.begin().expect("one writer");
        keys::fold(&mut batch, &mut entries).expect("room");
        batch.commit().expect("room");
    }
    (store, index.len(), opened, started.elapsed().as_secs_f64())
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u32 = arguments.next().and_then(|n| n.parse().ok()).expect("stored N FOLDER");
    let folder = arguments.next().expect("stored N FOLDER");
    let folder = Path::new(&folder);
    let before = written();
    let (mut inserting, mut folding) = (0.0, 0.0);
    let (mut next, mut goal) = (0, BATCH * 10);
    while next < count {
        let (store, _, _, folded) = open(folder);
        folding += folded;
        let started = Instant::now();
        while next < goal.min(count) {
            let changes = (next..(next + BATCH).min(count)).map(|content| Change {
                field: Field::Content,
                fingerprint: print(content),
                content: content.into(),
                removed: false,
            });
            let mut batch = store.begin().expect("one writer");
            keys::append(&mut batch, changes);
            batch.commit().expect("room");
            next += BATCH;
        }
        inserting += started.elapsed().as_secs_f64();
        goal *= 2;
    }
    let bytes = (written() - before) as f64 / f64::from(count);
    let rate = f64::from(count) / inserting;
    let with_folds = f64::from(count) / (inserting + folding);
    println!("{rate:.0} insertions/s, {with_folds:.0} with folding, {bytes:.0} bytes written each");
    let (store, log, first, folded) = open(folder);
    drop(store);
    let (store, batch, second, _) = open(folder);
    assert_eq!((log, batch), (count as usize, count as usize), "nothing is lost");
    println!("reopened in {first:.2} s with the last part in the log (folded in {folded:.2} s),");
    println!("in {second:.2} s from the rotated batch; index built, {batch} entries");
    let size = fs::metadata(store.path()).expect("the file").len();
    println!("file: {:.0} bytes an entry", size as f64 / f64::from(count));
}
