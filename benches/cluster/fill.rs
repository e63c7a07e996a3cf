//! Documents of made keys, written as they lie: what many real ones would take, in minutes.
//!
//! Their rows lead to no record, so that they are taken for articles that came to nothing.

use redis::cluster::{ClusterClient, ClusterConnection, ClusterPipeline};
use redis::cmd;
use uniqcrawl::cluster::{Engine, PARTITIONS, Settings};

use crate::made::Words;
use crate::nodes::port;
use crate::work::Task;

/// Keys of a document, by the kind of postings.
const EQUAL: [(&str, u64); 5] = [("e41", 1), ("e44", 8), ("e45", 21), ("efd", 1), ("efe", 1)];

/// Kinds of rotated fingerprints.
const NEAR: u64 = 8;

/// How many keys of the kind are expected, as the corpus says it: 8 for all that are no bands.
fn each(kind: &str) -> u64 {
    match kind {
        "e44" => 8,
        "e45" => 21,
        _ => 1,
    }
}

struct Filler {
    connection: ClusterConnection,
    random: Words,
    pipeline: ClusterPipeline,
    bytes: usize,
}

impl Filler {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.random.next() >> 24) as u8).collect()
    }

    fn put(&mut self, command: redis::Cmd, bytes: usize) {
        self.pipeline.add_command(command);
        self.bytes += bytes;
        if self.bytes > 8 << 20 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let pipeline = std::mem::take(&mut self.pipeline);
        let _: Vec<redis::Value> = pipeline.query(&mut self.connection).unwrap();
        self.bytes = 0;
    }

    /// A hash of postings: 64 fields with about as many entries each.
    fn hash(&mut self, name: &str, entries: f64, entry: &mut dyn FnMut(&mut Words) -> Vec<u8>) {
        let mut put = cmd("HSET");
        put.arg(name);
        let mut bytes = 0;
        let mut is_empty = true;
        for field in 0..64_u8 {
            // Whole numbers whose mean is what is wanted.
            let chance = (self.random.next() % 1_000) as f64 / 1_000.0;
            let count = (entries / 64.0 + chance).floor();
            let mut all = Vec::new();
            let mut made = 0.0;
            while made < count {
                all.extend(entry(&mut self.random));
                made += 1.0;
            }
            if !all.is_empty() {
                is_empty = false;
                bytes += all.len();
                put.arg(&[field][..]).arg(all);
            }
        }
        if !is_empty {
            self.put(put, bytes);
        }
    }

    fn documents(&mut self, base: &str, documents: u64) {
        let each = documents / PARTITIONS;
        for hash in 0..each.div_ceil(64) {
            let mut put = cmd("HSET");
            put.arg(format!("{base}d{hash:x}"));
            for field in 0..64.min(each - hash * 64) {
                let mut row = b"g".to_vec();
                row.extend(self.bytes(33));
                put.arg(format!("{field:x}")).arg(row);
            }
            self.put(put, 64 * 40);
        }
    }

    fn partition(&mut self, base: &str, documents: u64) {
        self.documents(base, documents);
        let number = move |random: &mut Words| {
            let number = 1 + random.next() % documents;
            number.to_be_bytes()[3..].to_vec()
        };
        let share = documents as f64 / PARTITIONS as f64;
        let mut counts = Vec::new();
        for (kind, keys) in EQUAL {
            let count = documents * each(kind) / PARTITIONS / 512 + 1;
            counts.extend_from_slice(kind.as_bytes());
            counts.extend_from_slice(&(count as u32).to_be_bytes()[1..]);
            for at in 0..count {
                let name =
                    if at == 0 { format!("{base}{kind}") } else { format!("{base}{kind}:{at}") };
                let level = 1_u64 << count.ilog2();
                let is_split = at >= level || at < count - level;
                // Those that were split have half as much as the others.
                let entries = share * keys as f64 / level as f64 / if is_split { 2.0 } else { 1.0 };
                let modulus = if is_split { level * 2 } else { level };
                self.hash(&name, entries, &mut |random| {
                    let key = random.next() >> 40;
                    let key = key / modulus * modulus + at;
                    let mut entry = key.to_be_bytes()[5..].to_vec();
                    entry.extend(number(random));
                    entry
                });
            }
        }
        let mut set = cmd("SET");
        set.arg(format!("{base}b")).arg(counts);
        self.put(set, 64);
        for table in 0..NEAR {
            let near = &mut |random: &mut Words| {
                let mut entry = random.next().to_be_bytes()[..6].to_vec();
                entry.extend(number(random));
                entry
            };
            let name = format!("{base}n{table:02x}");
            self.hash(&name, share.min(64.0 * 64.0), near);
            let more = share / 64.0 - 64.0;
            for field in 0..64 {
                let mut string = Vec::new();
                let mut made = 0.0;
                while made < more {
                    string.extend(near(&mut self.random));
                    made += 1.0;
                }
                if !string.is_empty() {
                    let mut append = cmd("SET");
                    let bytes = string.len();
                    append.arg(format!("{name}:{field}")).arg(string);
                    self.put(append, bytes);
                }
            }
        }
    }
}

/// Has the corpus of a task hold so many documents.
pub(crate) fn fill(task: &Task, documents: u64) {
    let url = format!("redis://127.0.0.1:{}/{}", port(), task.prefix);
    let mut engine = Engine::connect(&Settings::parse(&url).unwrap()).unwrap();
    engine.numbers(documents).unwrap();
    let client = ClusterClient::new(vec![format!("redis://127.0.0.1:{}", port())]).unwrap();
    let (random, pipeline) = (Words(88_172_645_463_325_252), ClusterPipeline::with_capacity(64));
    let connection = client.get_connection().unwrap();
    let mut filler = Filler { connection, random, pipeline, bytes: 0 };
    for partition in 0..PARTITIONS {
        filler.partition(&engine.base(partition), documents);
    }
    filler.flush();
}
