//! Texts of the store: in pieces, and whole again.

use redb::{ReadableDatabase as _, ReadableTableMetadata as _, TableDefinition};
use uniqcrawl::corpus::check::check;
use uniqcrawl::corpus::documents::{read_body, remove_body, write_body};
use uniqcrawl::corpus::tables::{BODIES, BODY_PARTS};
use uniqcrawl::store::{Batch, Store, Update as _, View as _};

/// Text that cannot be made much shorter.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed;
    let letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + (state >> 33) as u8 % 90)
    };
    std::iter::repeat_with(letter).take(bytes).collect()
}

fn in_store<T>(work: impl FnOnce(&mut Batch) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    let mut batch = store.begin().unwrap();
    work(&mut batch)
}

fn parts(batch: &Batch) -> Vec<(u64, u32)> {
    batch.rows(BODY_PARTS).unwrap().map(|row| row.unwrap().key().unwrap()).collect()
}

#[test]
fn a_text_is_read_as_it_was_written_however_long_it_is() {
    in_store(|batch| {
        let lengths = [0, 1, 480, 485, 490, 500, 980, 2_000, 4_000, 4_096, 20_000, 400_000];
        for (content, length) in (1..).zip(lengths) {
            write_body(batch, content, &noise(content, length), None).unwrap();
        }
        for (content, length) in (1..).zip(lengths) {
            let text = read_body(batch, content).unwrap();
            assert_eq!(text, Some(noise(content, length)), "{length}");
        }
        assert!(parts(batch).len() > 500, "{}", parts(batch).len());
        for row in batch.rows(BODIES).unwrap() {
            assert!(row.unwrap().bytes().len() <= 490);
        }
    });
}

#[test]
fn a_text_that_is_written_again_or_removed_leaves_no_piece_behind() {
    in_store(|batch| {
        for content in 1..4 {
            write_body(batch, content, &noise(content, 9_000), None).unwrap();
        }
        let others = parts(batch).into_iter().filter(|part| part.0 != 2).collect::<Vec<_>>();
        write_body(batch, 2, "short", None).unwrap();
        assert_eq!((parts(batch), read_body(batch, 2).unwrap()), (others, Some("short".into())));
        remove_body(batch, 1).unwrap();
        assert_eq!(read_body(batch, 1).unwrap(), None);
        assert!(parts(batch).iter().all(|part| part.0 == 3));
        assert_eq!(read_body(batch, 3).unwrap(), Some(noise(3, 9_000)));
    });
}

#[test]
fn a_piece_that_is_missing_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 16 << 20).unwrap();
    let mut batch = store.begin().unwrap();
    write_body(&mut batch, 1, &noise(1, 9_000), None).unwrap();
    let last = parts(&batch).last().unwrap().1;
    for missing in 1..=last {
        let was = batch.take(BODY_PARTS, (1, missing)).unwrap().unwrap();
        assert!(read_body(&batch, 1).is_err(), "{missing}");
        batch.put(BODY_PARTS, (1, missing), &was).unwrap();
    }
    batch.remove(BODY_PARTS, (1, last)).unwrap();
    batch.put(BODY_PARTS, (9, 1), &vec![7]).unwrap();
    batch.commit().unwrap();
    let listed = check(&store.snapshot().unwrap()).unwrap().listed;
    for told in ["bodies, row 1", "body_parts, row 9 1: content 9 has no text"] {
        assert!(listed.iter().any(|line| line.contains(told)), "{told}: {listed:?}");
    }
}

/// A row that is a little longer than a page of the store would take two.
#[test]
fn texts_fill_the_pages_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 64 << 20).unwrap();
    let mut batch = store.begin().unwrap();
    let (count, length) = (4_000, 4_300);
    for content in 1..=count {
        write_body(&mut batch, content, &noise(content, length), None).unwrap();
    }
    batch.commit().unwrap();
    drop(store);
    let db = redb::Database::open(folder.path().join("store.redb")).unwrap();
    let txn = db.begin_read().unwrap();
    let firsts = txn.open_table(TableDefinition::<u64, &[u8]>::new("bodies")).unwrap();
    let parts = txn.open_table(TableDefinition::<&[u8], &[u8]>::new("body_parts")).unwrap();
    let stats = [firsts.stats().unwrap(), parts.stats().unwrap()];
    let bytes: u64 = stats.iter().map(|stats| stats.leaf_pages() * 4_096).sum();
    assert!(bytes < count * 4_800, "{} bytes each: {stats:?}", bytes / count);
}
