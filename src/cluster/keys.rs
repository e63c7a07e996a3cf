//! Names of keys, and in which partition each lies.
//!
//! A partition is a tag of slots: what lies in it is changed in one step. There are always as many,
//! spread evenly over all slots, so that a cluster of up to as many primaries has some on each.

use std::sync::LazyLock;

use redis::{Cmd, Value, cmd};

use super::{Engine, Error};

/// Partitions.
pub const PARTITIONS: u64 = 1_024;

/// Slots of a cluster.
pub(super) const SLOTS: u64 = 16_384;

/// Documents of one hash: more cost more to find, fewer more memory for the name of the hash.
const TOGETHER: u64 = 64;

/// How many partitions are between a document and the next one, so that those of a worker that come
/// together lie on all nodes. It is odd: each partition has its turn.
const STEP: u64 = 395;

/// The largest number of a document: it takes 5 bytes.
pub const NUMBER_MAX: u64 = (1 << 40) - 1;

/// Bits of a key that must be equal: 10 choose the partition, 6 the field, 24 are kept.
const KEY_BITS: u32 = 40;

/// Bits of a key that choose the field in a hash of postings.
const FIELD_BITS: u32 = 6;

/// Entries of a hash of postings, about: few need much memory for names, many much time.
const ENTRIES: u64 = 512;

/// Steps of one call at most: meanwhile a node answers nobody else.
const STEPS_MAX: usize = 256;

/// A kind of postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Fingerprints, of which the first 16 bits choose the field.
    Near(u8),
    /// Keys of 40 bits that must be equal.
    Equal(u8),
}

impl Table {
    /// The start of the names of its hashes, 3 bytes.
    pub(super) fn kind(self) -> [u8; 3] {
        let (letter, number) = match self {
            Self::Near(number) => (b'n', number),
            Self::Equal(number) => (b'e', number),
        };
        let digit = |at: u8| char::from_digit(at.into(), 16).unwrap_or('0') as u8;
        [letter, digit(number >> 4), digit(number & 15)]
    }
}

/// How many hashes the postings of a kind have: as many as documents have come, or are expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Documents that are expected at least: hashes for so many are made as the first ones come,
    /// the others as more come.
    pub documents: u64,
    /// Fingerprints are near by more than 3 bits, so that more must be read to find them.
    pub is_wide: bool,
}

impl Buckets {
    /// Hashes in a partition when the document of such a number comes, which has about so many
    /// keys of the kind.
    pub(super) fn hashes(&self, document: u64, each: u64) -> u32 {
        let postings = document.max(self.documents).saturating_mul(each) / PARTITIONS;
        (postings / ENTRIES + 1).min(0xFF_FFFF) as u32
    }
}

/// Where the entries of a key lie, and what is kept of it there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub partition: u64,
    pub field: u8,
    pub rest: Vec<u8>,
}

impl Place {
    pub(super) fn of(table: Table, key: u64) -> Self {
        match table {
            Table::Near(_) => {
                // An odd factor takes each of the first bits to other ones, none to the same.
                let first = ((key >> 48) as u16).wrapping_mul(0x9E37);
                let partition = u64::from(first >> FIELD_BITS);
                Self { partition, field: first as u8 & 63, rest: key.to_be_bytes()[2..].to_vec() }
            }
            Table::Equal(_) => {
                let key = key & (u64::MAX >> (u64::BITS - KEY_BITS));
                let field = (key >> 24) as u8 & 63;
                Self { partition: key >> 30, field, rest: key.to_be_bytes()[5..].to_vec() }
            }
        }
    }

    /// Takes the key of an entry back: all of it, or the first 64 bits of a fingerprint.
    pub(super) fn key(table: Table, partition: u64, field: u8, rest: &[u8]) -> u64 {
        let rest = rest.iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
        match table {
            Table::Near(_) => {
                let first = (partition as u16) << FIELD_BITS | u16::from(field);
                u64::from(first.wrapping_mul(INVERSE)) << 48 | rest
            }
            Table::Equal(_) => partition << 30 | u64::from(field) << 24 | rest,
        }
    }
}

/// What undoes the factor of the first bits of a fingerprint.
const INVERSE: u16 = inverse(0x9E37);

const fn inverse(factor: u16) -> u16 {
    // Each step doubles the bits that are right.
    let (mut found, mut steps) = (factor, 0);
    while steps < 4 {
        found = found.wrapping_mul(2_u16.wrapping_sub(factor.wrapping_mul(found)));
        steps += 1;
    }
    found
}

/// Tags, each in the middle of equally many slots.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut tags = vec![None; PARTITIONS as usize];
    let mut missing = tags.len();
    for number in 0_u32.. {
        if missing == 0 {
            break;
        }
        let tag = format!("{number:x}");
        let at = (u64::from(crc16(tag.as_bytes())) % SLOTS * PARTITIONS / SLOTS) as usize;
        if tags[at].is_none() {
            tags[at] = Some(tag);
            missing -= 1;
        }
    }
    tags.into_iter().flatten().collect()
});

/// The checksum that gives a tag its slot (CRC-16/XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 }
        })
    })
}

/// The slot of a partition.
pub(super) fn slot_of(partition: u64) -> u16 {
    crc16(TAGS[partition as usize].as_bytes()) % SLOTS as u16
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
        let partition = number.wrapping_mul(STEP) % PARTITIONS;
        Self { partition, hash: Self::hash(Self::hash_of(number)), field }
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
        Some(Self::number_at(partition, hash, field))
    }

    /// Does the same for the number of a field.
    pub(super) fn number_at(partition: u64, hash: u64, field: u64) -> u64 {
        let rest = partition * u64::from(inverse(STEP as u16)) % PARTITIONS;
        (hash * TOGETHER + field) * PARTITIONS + rest
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

fn call(function: &str, base: String) -> Cmd {
    let mut call = cmd("FCALL");
    call.arg(format!("uniqcrawl_3_{function}")).arg(1).arg(base);
    call
}

impl Engine {
    /// Returns the start of all names of a partition, for whoever looks at keys.
    #[must_use]
    pub fn base(&self, partition: u64) -> String {
        format!("{}:{{{}}}", self.prefix(), TAGS[partition as usize])
    }

    /// Returns the start of all names of a shard. Those beyond the number of partitions share
    /// these, and have their number behind the tag.
    #[must_use]
    pub fn base_of(&self, shard: u32) -> String {
        let base = self.base(u64::from(shard) % PARTITIONS);
        if u64::from(shard) < PARTITIONS { base } else { format!("{base}{shard}:") }
    }

    /// The call of a function on a partition.
    pub(super) fn function(&self, name: &str, partition: u64) -> Cmd {
        call(name, self.base(partition))
    }

    /// The call of a function on a shard.
    pub(super) fn function_of(&self, name: &str, shard: u32) -> Cmd {
        call(name, self.base_of(shard))
    }

    /// Calls a function for many steps, those of the partitions of one node together; returns the
    /// answers in the order of the steps. `first` are arguments before all of them.
    #[expect(clippy::needless_pass_by_value, reason = "they are made for one call")]
    pub(super) fn steps(
        &mut self,
        function: &str,
        first: &[Vec<u8>],
        steps: Vec<Step>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        // Slots that move meanwhile are asked where they are by then.
        for _ in 0..MOVES_MAX {
            match self.steps_once(function, first, &steps) {
                Err(Error::Moved(_)) => self.forget_owners(),
                other => return other,
            }
        }
        self.steps_once(function, first, &steps)
    }

    fn steps_once(
        &mut self,
        function: &str,
        first: &[Vec<u8>],
        steps: &[Step],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let owners = self.owners()?;
        let mut order: Vec<usize> = (0..steps.len()).collect();
        order.sort_by_key(|at| {
            let partition = steps[*at].partition;
            (owners[partition as usize], partition)
        });
        let owner = |at: &usize| owners[steps[*at].partition as usize];
        let (mut commands, mut asked) = (Vec::new(), Vec::new());
        for of_node in order.chunk_by(|one, next| owner(one) == owner(next)) {
            for together in of_node.chunks(STEPS_MAX) {
                commands.push(self.call(function, first, steps, together));
                asked.push(together);
            }
        }
        let answers = self.ask(&commands)?;
        let mut all = vec![Vec::new(); steps.len()];
        for (together, answer) in asked.into_iter().zip(answers) {
            let Value::Array(found) = answer else {
                return Err(Error::Odd(format!("{function} gave no answers")));
            };
            if found.len() != together.len() {
                return Err(Error::Odd(format!("{function} gave {} answers", found.len())));
            }
            for (at, found) in together.iter().zip(found) {
                if let Value::BulkString(bytes) = found {
                    all[*at] = bytes;
                }
            }
        }
        Ok(all)
    }

    /// The call of a function for some steps of one node, in the order of their partitions.
    fn call(&self, function: &str, first: &[Vec<u8>], steps: &[Step], together: &[usize]) -> Cmd {
        let mut call = self.function(function, steps[together[0]].partition);
        for argument in first {
            call.arg(argument.as_slice());
        }
        let partition = |at: &usize| steps[*at].partition;
        for of_one in together.chunk_by(|one, next| partition(one) == partition(next)) {
            call.arg(self.base(partition(&of_one[0]))).arg(of_one.len());
            for argument in of_one.iter().flat_map(|at| &steps[*at].arguments) {
                call.arg(argument.as_slice());
            }
        }
        call
    }
}

/// Times that steps are asked anew because slots have moved.
const MOVES_MAX: usize = 20;

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
    fn what_is_kept_of_a_key_and_where_it_lies_tell_it_whole() {
        let keys = [0, 1, 0xAB_CDEF_0123, 0xFF_FFFF_FFFF].into_iter();
        for key in keys.chain((0..KEY_BITS).map(|bit| 1 << bit)) {
            let Place { partition, field, rest } = Place::of(Table::Equal(5), key);
            assert!(partition < PARTITIONS && field < 64);
            assert_eq!(rest.len(), 3);
            assert_eq!(Place::key(Table::Equal(5), partition, field, &rest), key);
        }
        for key in (0..64).map(|bit| 0x1234_5678_9ABC_DEF0 ^ 1 << bit) {
            let Place { partition, field, rest } = Place::of(Table::Near(5), key);
            assert!(partition < PARTITIONS && field < 64);
            assert_eq!(rest.len(), 6);
            assert_eq!(Place::key(Table::Near(5), partition, field, &rest), key);
        }
        assert_eq!(Table::Equal(0xFD).kind(), *b"efd");
    }

    #[test]
    fn hashes_become_more_as_documents_come() {
        let few = Buckets { documents: 1, is_wide: false };
        assert_eq!([few.hashes(1, 20), few.hashes(26_215, 20)], [1, 2]);
        assert_eq!(Buckets { documents: 26_215, is_wide: false }.hashes(1, 20), 2);
        assert_eq!(few.hashes(NUMBER_MAX, 1_000), 0xFF_FFFF);
    }

    #[test]
    fn every_partition_has_its_share_of_the_slots() {
        assert_eq!(crc16(b"123456789"), 0x31C3, "as the specification of the cluster has it");
        for partition in partitions() {
            let slot = u64::from(slot_of(partition));
            assert_eq!(slot * PARTITIONS / SLOTS, partition);
        }
    }
}
