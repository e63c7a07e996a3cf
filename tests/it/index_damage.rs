//! What is wrong with the index of a store, as `crawl check` tells it.

use uniqcrawl::corpus::index;
use uniqcrawl::corpus::tables::NEAR;
use uniqcrawl::neardup::segment::{BlockId, Filter, Posting};
use uniqcrawl::store::{Update as _, View as _};

use crate::index::{Indexed, SMALL};

#[test]
fn a_damaged_index_is_found() {
    let flushed = || {
        let mut indexed = Indexed::new(SMALL);
        indexed.write(40, &[], true);
        indexed.flush();
        indexed.check();
        indexed
    };
    let faults = |indexed: &Indexed| index::faults(&indexed.store.snapshot().unwrap()).unwrap();
    let block = |table: u8| {
        let indexed = flushed();
        let snapshot = indexed.store.snapshot().unwrap();
        let mut rows = snapshot.rows(NEAR).unwrap().map(|row| {
            let row = row.unwrap();
            (row.key().unwrap(), row.bytes().to_vec())
        });
        let found = rows.find(|(id, _)| id.table == table).unwrap();
        drop(rows);
        (indexed, found)
    };
    let (indexed, (id, _)) = block(2);
    let mut batch = indexed.store.begin().unwrap();
    batch.remove(NEAR, id).unwrap();
    batch.commit().unwrap();
    assert!(!faults(&indexed).is_empty(), "a block is missing");

    let (indexed, (id, mut bytes)) = block(1);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let mut batch = indexed.store.begin().unwrap();
    batch.put(NEAR, id, &bytes).unwrap();
    batch.commit().unwrap();
    let found = faults(&indexed);
    assert!(found.iter().any(|(_, what)| what.contains("other rotations")), "{found:?}");

    let (indexed, (id, _)) = block(2);
    let mut batch = indexed.store.begin().unwrap();
    batch.put(NEAR, BlockId::filter(2, id.segment, 0), &Filter::of(&[]).bytes()).unwrap();
    batch.commit().unwrap();
    let found = faults(&indexed);
    assert!(found.iter().any(|(_, what)| what.contains("keeps out")), "{found:?}");

    let (indexed, (id, bytes)) = block(0);
    let elsewhere = BlockId { first: Posting { key: id.first.key ^ 1, ..id.first }, ..id };
    let mut batch = indexed.store.begin().unwrap();
    batch.remove(NEAR, id).unwrap();
    batch.put(NEAR, elsewhere, &bytes).unwrap();
    batch.commit().unwrap();
    let found = faults(&indexed);
    assert!(found.iter().any(|(_, what)| what.contains("begins with another")), "{found:?}");
}
