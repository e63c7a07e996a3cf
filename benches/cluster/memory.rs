//! What the keys of a corpus take in the nodes, by kind.

use std::collections::BTreeMap;

use redis::{Connection, cmd};

use crate::nodes::primaries;

/// Keys of a kind.
#[derive(Debug, Default)]
struct Kind {
    keys: u64,
    bytes: u64,
}

/// Words for the kinds of keys, by what stands behind the tag of the slot.
fn kind_of(name: &str) -> &str {
    let rest = name.split_once('}').map_or("", |(_, rest)| rest);
    match rest.as_bytes() {
        [b'd', b'u', b'e', ..] => "due",
        [b'd', ..] => "documents",
        [b'n', ..] => "fingerprints",
        [b'e', b'f', b'd', ..] => "identifiers",
        [b'e', b'f', b'e', ..] => "URLs",
        [b'e', b'4', b'1', ..] => "whole texts",
        [b'e', b'4', b'4', ..] => "sentences",
        [b'e', b'4', b'5', ..] => "bands of the sketch",
        [b'b', ..] => "numbers of hashes",
        [b't', ..] => "changes",
        _ => "others",
    }
}

/// Prints bytes a document by kind of key.
pub(crate) fn report(documents: u64) {
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    for connection in &mut primaries() {
        walk(connection, &mut kinds);
    }
    for (name, Kind { keys, bytes }) in &kinds {
        let each = *bytes as f64 / documents as f64;
        println!("  {name}: {keys} keys, {each:.1} bytes a document");
    }
    let all: u64 = kinds.values().map(|kind| kind.bytes).sum();
    println!("  all keys: {:.1} bytes a document", all as f64 / documents as f64);
}

fn walk(connection: &mut Connection, kinds: &mut BTreeMap<String, Kind>) {
    let mut cursor = 0_u64;
    loop {
        let (next, names): (u64, Vec<String>) = cmd("SCAN")
            .arg(cursor)
            .arg("MATCH")
            .arg("bench:*")
            .arg("COUNT")
            .arg(1_000)
            .query(connection)
            .unwrap();
        let mut asked = redis::pipe();
        for name in &names {
            asked.cmd("MEMORY").arg("USAGE").arg(name).arg("SAMPLES").arg(0);
        }
        let sizes: Vec<Option<u64>> = asked.query(connection).unwrap();
        for (name, size) in names.iter().zip(sizes) {
            let kind = kinds.entry(kind_of(name).to_owned()).or_default();
            kind.keys += 1;
            kind.bytes += size.unwrap_or(0);
        }
        cursor = next;
        if cursor == 0 {
            return;
        }
    }
}
