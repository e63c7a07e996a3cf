//! Names of keys, and in which partition each lies.
//!
//! A partition is a tag of slots: what lies in it is changed in one step. There are always as many,
//! so that a cluster of up to as many primaries has some on each.

use redis::{Cmd, Value, cmd};

use super::{Engine, Error};

/// Partitions.
const PARTITIONS: u64 = 1_024;

/// Documents of one hash: more cost more to find, fewer more memory for the name of the hash.
const TOGETHER: u64 = 16;

/// The largest number of a document: it takes 5 bytes.
pub const NUMBER_MAX: u64 = (1 << 40) - 1;

/// Bits of a key that must be equal.
const KEY_BITS: u32 = 40;

/// Entries of a bucket, about.
const BUCKET: u64 = 64;

/// A kind of postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Fingerprints, of which the first 16 bits choose the bucket.
    Near(u8),
    /// Keys of 40 bits that must be equal.
    Equal(u8),
}

/// How many buckets the keys of a kind have: fixed when a crawl is begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Documents that are expected. With ten times as many, a look-up reads ten times as much.
    pub documents: u64,
}

impl Buckets {
    /// Bits of a key that choose its bucket. `each` is how many keys of the kind a document has.
    fn bits(&self, each: u64) -> u32 {
        (self.documents.saturating_mul(each) / BUCKET).max(1).ilog2().clamp(8, 32)
    }

    /// Returns where the entries of a key lie, and what is kept of it there.
    pub(super) fn place(&self, table: Table, key: u64, each: u64) -> Place {
        let (name, bucket, rest) = match table {
            Table::Near(number) => {
                let bucket = key >> 48;
                (format!("n{number:x}:{bucket:x}"), bucket, key.to_be_bytes()[2..].to_vec())
            }
            Table::Equal(number) => {
                let left = KEY_BITS - self.bits(each);
                let key = key & (u64::MAX >> (u64::BITS - KEY_BITS));
                let bytes = left.div_ceil(8) as usize;
                let rest = (key & ((1 << left) - 1)).to_be_bytes()[8 - bytes..].to_vec();
                (format!("e{number:x}:{:x}", key >> left), key >> left, rest)
            }
        };
        let number = match table {
            Table::Near(number) => u64::from(number),
            Table::Equal(number) => 256 + u64::from(number),
        };
        let spread = (bucket << 9 | number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Place { partition: spread >> (u64::BITS - PARTITIONS.ilog2()), name, rest }
    }
}

/// Where entries lie.
pub(super) struct Place {
    pub partition: u64,
    pub name: String,
    pub rest: Vec<u8>,
}

/// Where a document lies: partition, hash, and field.
pub(super) struct DocumentPlace {
    pub partition: u64,
    pub hash: String,
    pub field: String,
}

impl DocumentPlace {
    pub(super) fn of(number: u64) -> Self {
        let field = format!("{:x}", number / PARTITIONS % TOGETHER);
        Self { partition: number % PARTITIONS, hash: Self::hash(Self::hash_of(number)), field }
    }

    /// The number of the hash in which a document lies.
    pub(super) fn hash_of(number: u64) -> u64 {
        number / PARTITIONS / TOGETHER
    }

    /// The name of a hash.
    pub(super) fn hash(number: u64) -> String {
        format!("d{number:x}")
    }

    /// Takes back the number of a document.
    pub(super) fn number(partition: u64, hash: u64, field: &[u8]) -> Option<u64> {
        let field = u64::from_str_radix(std::str::from_utf8(field).ok()?, 16).ok()?;
        Some((hash * TOGETHER + field) * PARTITIONS + partition)
    }
}

/// All partitions.
pub(super) fn partitions() -> std::ops::Range<u64> {
    0..PARTITIONS
}

/// The partition of something that has no number.
pub(super) fn partition_of(hash: u64) -> u64 {
    hash % PARTITIONS
}

impl Engine {
    /// The start of all names of a partition.
    pub(super) fn base(&self, partition: u64) -> String {
        format!("{}:{{{partition:03x}}}", self.prefix())
    }

    /// The call of a function on a partition.
    pub(super) fn function(&self, name: &str, partition: u64) -> Cmd {
        let mut call = cmd("FCALL");
        call.arg(format!("uniqcrawl_1_{name}")).arg(1).arg(self.base(partition));
        call
    }

    /// Calls a function for many steps, once for each partition; returns the answers in the order
    /// of the steps. `first` are arguments before all of them.
    pub(super) fn steps(
        &mut self,
        function: &str,
        first: &[Vec<u8>],
        steps: Vec<Step>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let count = steps.len();
        let mut order: Vec<(u64, usize, Vec<Vec<u8>>)> = steps
            .into_iter()
            .enumerate()
            .map(|(at, step)| (step.partition, at, step.arguments))
            .collect();
        order.sort_unstable_by_key(|(partition, at, _)| (*partition, *at));
        let mut commands = Vec::new();
        for steps in order.chunk_by(|one, next| one.0 == next.0) {
            let mut call = self.function(function, steps[0].0);
            for argument in first {
                call.arg(argument.as_slice());
            }
            for (_, _, arguments) in steps {
                for argument in arguments {
                    call.arg(argument.as_slice());
                }
            }
            commands.push(call);
        }
        let answers = self.ask(&commands)?;
        let mut all = vec![Vec::new(); count];
        let chunks = order.chunk_by(|one, next| one.0 == next.0);
        for (steps, answer) in chunks.zip(answers) {
            let Value::Array(found) = answer else { continue };
            if found.len() != steps.len() {
                return Err(Error::Odd(format!("{function} gave {} answers", found.len())));
            }
            for ((_, at, _), found) in steps.iter().zip(found) {
                if let Value::BulkString(bytes) = found {
                    all[*at] = bytes;
                }
            }
        }
        Ok(all)
    }
}

/// One of many steps of a function.
pub(super) struct Step {
    pub partition: u64,
    pub arguments: Vec<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_found_again_by_its_place() {
        for number in [0, 1, 1_023, 1_024, 16_383, 16_384, 123_456_789, NUMBER_MAX] {
            let place = DocumentPlace::of(number);
            let hash = DocumentPlace::hash_of(number);
            let found = DocumentPlace::number(place.partition, hash, place.field.as_bytes());
            assert_eq!((found, place.hash), (Some(number), format!("d{hash:x}")));
        }
    }

    #[test]
    fn what_is_kept_of_a_key_and_its_bucket_tell_it_whole() {
        for documents in [1, 1_000_000, 1_000_000_000] {
            let buckets = Buckets { documents };
            let mut seen = std::collections::BTreeSet::new();
            for bit in 0..KEY_BITS {
                let place = buckets.place(Table::Equal(5), 1 << bit, 42);
                assert!(seen.insert((place.name, place.rest)), "{documents} {bit}");
            }
            assert_eq!(seen.len(), 40);
        }
        let few = Buckets { documents: 1 }.place(Table::Equal(5), 0xFF_FFFF_FFFF, 1);
        assert_eq!((few.name.as_str(), few.rest.len()), ("e5:ff", 4));
        let many = Buckets { documents: 1_000_000_000 }.place(Table::Equal(5), 0xFF_FFFF_FFFF, 42);
        assert_eq!(many.rest.len(), 2);
        let near = Buckets { documents: 1 }.place(Table::Near(3), u64::MAX - 1, 1);
        assert_eq!(
            (near.name.as_str(), near.rest.as_slice()),
            ("n3:ffff", &[255, 255, 255, 255, 255, 254][..])
        );
    }
}
