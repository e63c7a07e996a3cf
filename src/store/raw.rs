//! Rows as bytes in order: what typed tables need of the database.
//!
//! In: the name of a table and the bytes of a key. Out: the bytes of its row. The file gives each
//! table its own types of keys and values; here they become bytes whose order is the same.

use std::ops::{Bound, Deref};

use redb::{AccessGuard, ReadOnlyTable, ReadableTable, ReadableTableMetadata as _, Table, Value};

use super::{BadRow, Error, Name};

/// Bytes of a key or row, held in the page where they lie.
pub struct Bytes<'a>(HeldTable<'a>);

enum HeldTable<'a> {
    Slice(AccessGuard<'a, &'static [u8]>),
    Text(AccessGuard<'a, &'static str>),
    Short([u8; SHORT], usize),
    Owned(Vec<u8>),
}

/// Bytes of the longest key of numbers.
const SHORT: usize = 24;

impl Bytes<'_> {
    /// Holds bytes that lie in no page of the file.
    #[must_use]
    pub fn owned(bytes: Vec<u8>) -> Self {
        Self(HeldTable::Owned(bytes))
    }

    fn short<const N: usize>(bytes: [u8; N]) -> Self {
        let mut short = [0; SHORT];
        short[..N].copy_from_slice(&bytes);
        Self(HeldTable::Short(short, N))
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            HeldTable::Slice(guard) => guard.value(),
            HeldTable::Text(guard) => guard.value().as_bytes(),
            HeldTable::Short(bytes, length) => &bytes[..*length],
            HeldTable::Owned(bytes) => bytes,
        }
    }
}

/// A type of keys or values of the file.
pub(super) trait Stored: Value + Sized + 'static {
    /// Reads a key or value; the missing end of a number is zeros, so that the start of a key is a
    /// bound of a range.
    fn read(bytes: &[u8]) -> Result<Self::SelfType<'_>, BadRow>;

    fn hold(guard: AccessGuard<'_, Self>) -> Bytes<'_>;
}

impl Stored for &'static [u8] {
    fn read(bytes: &[u8]) -> Result<Self::SelfType<'_>, BadRow> {
        Ok(bytes)
    }

    fn hold(guard: AccessGuard<'_, Self>) -> Bytes<'_> {
        Bytes(HeldTable::Slice(guard))
    }
}

impl Stored for &'static str {
    fn read(bytes: &[u8]) -> Result<Self::SelfType<'_>, BadRow> {
        let bad = BadRow { kind: "text", detail: "it is not UTF-8" };
        std::str::from_utf8(bytes).map_err(|_| bad)
    }

    fn hold(guard: AccessGuard<'_, Self>) -> Bytes<'_> {
        Bytes(HeldTable::Text(guard))
    }
}

impl Stored for () {
    fn read(_: &[u8]) -> Result<Self::SelfType<'_>, BadRow> {
        Ok(())
    }

    fn hold(_: AccessGuard<'_, Self>) -> Bytes<'_> {
        Bytes::short([])
    }
}

macro_rules! stored_numbers {
    ($($number:ty),*) => {$(
        impl Stored for $number {
            fn read(bytes: &[u8]) -> Result<Self::SelfType<'_>, BadRow> {
                Ok(<$number>::from_be_bytes(padded(bytes)?))
            }

            fn hold(guard: AccessGuard<'_, Self>) -> Bytes<'_> {
                Bytes::short(guard.value().to_be_bytes())
            }
        }
    )*};
}
stored_numbers!(u32, u64, u128);

impl Stored for (u128, u64) {
    fn read(bytes: &[u8]) -> Result<Self::SelfType<'_>, BadRow> {
        let (high, low) = bytes.split_at(bytes.len().min(16));
        Ok((u128::read(high)?, u64::read(low)?))
    }

    fn hold(guard: AccessGuard<'_, Self>) -> Bytes<'_> {
        let (high, low) = guard.value();
        let mut bytes = [0; SHORT];
        bytes[..16].copy_from_slice(&high.to_be_bytes());
        bytes[16..].copy_from_slice(&low.to_be_bytes());
        Bytes::short(bytes)
    }
}

fn padded<const N: usize>(bytes: &[u8]) -> Result<[u8; N], BadRow> {
    let bad = BadRow { kind: "number", detail: "it has too many bytes" };
    let mut padded = [0; N];
    padded.get_mut(..bytes.len()).ok_or(bad)?.copy_from_slice(bytes);
    Ok(padded)
}

/// The end of a range of keys.
pub type End<'a> = Bound<&'a [u8]>;

/// Keys and rows of a range, in the order of the keys.
pub type RawRows<'a> =
    Box<dyn DoubleEndedIterator<Item = Result<(Bytes<'a>, Bytes<'a>), Error>> + 'a>;

/// What can be asked of the bytes of one state of a store.
pub trait Reading {
    /// Returns the row of a key.
    fn raw_get(&self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error>;

    /// Returns the rows of a range of keys.
    fn raw_range(&self, table: Name, from: End<'_>, to: End<'_>) -> Result<RawRows<'_>, Error>;

    /// Returns the number of rows of a table.
    fn rows_of(&self, table: Name) -> Result<u64, Error>;
}

/// What lends a state can be asked like the state itself, also where its type is not known.
impl<R: Reading + ?Sized> Reading for &R {
    fn raw_get(&self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        (**self).raw_get(table, key)
    }

    fn raw_range(&self, table: Name, from: End<'_>, to: End<'_>) -> Result<RawRows<'_>, Error> {
        (**self).raw_range(table, from, to)
    }

    fn rows_of(&self, table: Name) -> Result<u64, Error> {
        (**self).rows_of(table)
    }
}

/// What can be done to the bytes of a store.
pub trait Writing: Reading {
    /// Writes the row of a key. Returns the one that was there.
    fn raw_put(&mut self, table: Name, key: &[u8], row: &[u8]) -> Result<Option<Bytes<'_>>, Error>;

    /// Removes the row of a key. Returns it if it was there.
    fn raw_remove(&mut self, table: Name, key: &[u8]) -> Result<Option<Bytes<'_>>, Error>;

    /// Removes all rows of a range of keys.
    fn raw_clear(&mut self, table: Name, from: End<'_>, to: End<'_>) -> Result<(), Error>;
}

/// A table of the file, whatever its types are.
pub(super) trait RawTable {
    fn raw_get(&self, key: &[u8]) -> Result<Option<Bytes<'_>>, Error>;
    fn raw_range(&self, from: End<'_>, to: End<'_>) -> Result<RawRows<'_>, Error>;
    fn raw_len(&self) -> Result<u64, Error>;
}

macro_rules! raw_tables {
    ($($table:ty),*) => {$(
        impl<K: Stored + redb::Key, V: Stored> RawTable for $table {
            fn raw_get(&self, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
                Ok(ReadableTable::get(self, K::read(key)?)?.map(V::hold))
            }

            fn raw_range(&self, from: End<'_>, to: End<'_>) -> Result<RawRows<'_>, Error> {
                let range = (end::<K>(from)?, end::<K>(to)?);
                let rows = ReadableTable::range::<K::SelfType<'_>>(self, range)?;
                Ok(Box::new(rows.map(|row| {
                    let (key, row) = row?;
                    Ok((K::hold(key), V::hold(row)))
                })))
            }

            fn raw_len(&self) -> Result<u64, Error> {
                Ok(self.len()?)
            }
        }
    )*};
}
raw_tables!(Table<'_, K, V>, ReadOnlyTable<K, V>);

fn end<K: Stored>(end: End<'_>) -> Result<Bound<K::SelfType<'_>>, BadRow> {
    Ok(match end {
        Bound::Included(key) => Bound::Included(K::read(key)?),
        Bound::Excluded(key) => Bound::Excluded(K::read(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

pub(super) trait RawTableMut: RawTable {
    fn raw_put(&mut self, key: &[u8], row: &[u8]) -> Result<Option<Bytes<'_>>, Error>;
    fn raw_remove(&mut self, key: &[u8]) -> Result<Option<Bytes<'_>>, Error>;
    fn raw_clear(&mut self, from: End<'_>, to: End<'_>) -> Result<(), Error>;
}

impl<K: Stored + redb::Key, V: Stored> RawTableMut for Table<'_, K, V> {
    fn raw_put(&mut self, key: &[u8], row: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        Ok(self.insert(K::read(key)?, V::read(row)?)?.map(V::hold))
    }

    fn raw_remove(&mut self, key: &[u8]) -> Result<Option<Bytes<'_>>, Error> {
        Ok(Table::remove(self, K::read(key)?)?.map(V::hold))
    }

    fn raw_clear(&mut self, from: End<'_>, to: End<'_>) -> Result<(), Error> {
        let range = (end::<K>(from)?, end::<K>(to)?);
        Ok(self.retain_in::<K::SelfType<'_>, _>(range, |_, _| false)?)
    }
}
