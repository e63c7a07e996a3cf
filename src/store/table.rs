//! Typed tables: what lies in a table is said once, by the module that owns its rows.
//!
//! ```text
//! const COPIES: Table<(u64, &str), Copy> = Table::new(Name::Copies);
//!
//! let copy = view.get(COPIES, (document, url))?;
//! batch.put(COPIES, (document, url), &copy)?;
//! for entry in view.under(COPIES, document)? {
//!     let entry = entry?;
//!     let ((_, url), copy) = (entry.key()?, entry.row()?);
//! }
//! ```

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::base::clock::Timestamp;

use super::raw::{Bytes, RawRows, Reading, Writing};
use super::{BadRow, Error, Name, Renumber};

/// A table with keys of type `K` and rows of type `R`.
pub struct Table<K, R> {
    name: Name,
    types: PhantomData<fn() -> (K, R)>,
}

impl<K, R> Clone for Table<K, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, R> Copy for Table<K, R> {}

impl<K, R> Table<K, R> {
    /// Says what lies in the table `name`.
    #[must_use]
    pub const fn new(name: Name) -> Self {
        Self { name, types: PhantomData }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> Name {
        self.name
    }
}

/// A type of keys. The order of its bytes is the order of the keys.
pub trait Key {
    /// A key as it is asked for.
    type Ref<'a>: Copy;

    /// Returns the bytes of a key.
    fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]>;

    /// Reads a key.
    fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow>;

    /// Returns a key with new numbers of documents and contents. Keys that have such numbers, or
    /// other keys, say how.
    fn renumber<'a>(key: Self::Ref<'a>, _: &mut dyn Renumber) -> Self::Ref<'a> {
        key
    }
}

/// A key of always as many bytes, which may have another one behind it.
pub trait FixedKey: Key {
    /// Its bytes.
    const SIZE: usize;
}

impl Key for &'static str {
    type Ref<'a> = &'a str;

    fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
        Cow::Borrowed(key.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
        let bad = BadRow { kind: "key", detail: "it is not UTF-8" };
        std::str::from_utf8(bytes).map_err(|_| bad)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Key for $number {
            type Ref<'a> = $number;

            fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
                Cow::Owned(key.to_be_bytes().to_vec())
            }

            fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
                let bad = BadRow { kind: "key", detail: "its length is not that of its number" };
                Ok(<$number>::from_be_bytes(bytes.try_into().map_err(|_| bad)?))
            }
        }

        impl FixedKey for $number {
            const SIZE: usize = size_of::<$number>();
        }
    )*};
}
numbers!(u8, u16, u32, u64, u128);

impl Key for Timestamp {
    type Ref<'a> = Self;

    fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
        Cow::Owned(key.0.max(0).to_be_bytes().to_vec())
    }

    fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
        Ok(Self(<u64 as Key>::decode(bytes)?.cast_signed()))
    }
}

impl FixedKey for Timestamp {
    const SIZE: usize = 8;
}

impl<A: FixedKey, B: Key> Key for (A, B) {
    type Ref<'a> = (A::Ref<'a>, B::Ref<'a>);

    fn encode((first, second): Self::Ref<'_>) -> Cow<'_, [u8]> {
        let mut bytes = A::encode(first).into_owned();
        bytes.extend_from_slice(&B::encode(second));
        Cow::Owned(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
        let bad = BadRow { kind: "key", detail: "it is cut short" };
        let (first, second) = bytes.split_at_checked(A::SIZE).ok_or(bad)?;
        Ok((A::decode(first)?, B::decode(second)?))
    }

    fn renumber<'a>((first, second): Self::Ref<'a>, numbers: &mut dyn Renumber) -> Self::Ref<'a> {
        let first = A::renumber(first, numbers);
        (first, B::renumber(second, numbers))
    }
}

impl<A: FixedKey, B: FixedKey> FixedKey for (A, B) {
    const SIZE: usize = A::SIZE + B::SIZE;
}

/// A last part of keys that some have and some lack; those that lack it stand first.
impl<K: Key> Key for Option<K> {
    type Ref<'a> = Option<K::Ref<'a>>;

    fn encode(key: Self::Ref<'_>) -> Cow<'_, [u8]> {
        key.map_or(Cow::Borrowed(&[]), K::encode)
    }

    fn decode(bytes: &[u8]) -> Result<Self::Ref<'_>, BadRow> {
        if bytes.is_empty() { Ok(None) } else { K::decode(bytes).map(Some) }
    }

    fn renumber<'a>(key: Self::Ref<'a>, numbers: &mut dyn Renumber) -> Self::Ref<'a> {
        key.map(|key| K::renumber(key, numbers))
    }
}

/// What lies in a table under a key.
pub trait Row: Sized {
    /// Returns the bytes of the row.
    fn encode(&self) -> Cow<'_, [u8]>;

    /// Reads a row.
    fn decode(bytes: &[u8]) -> Result<Self, BadRow>;

    /// Gives the documents and contents that the row names their new numbers.
    fn renumber(&mut self, numbers: &mut dyn Renumber);
}

/// What a table says of its rows: a type of rows, or what kind of number they are.
pub trait TableRow {
    /// A row as it is read and written.
    type Value: Row;

    /// Gives the documents and contents that a row names their new numbers.
    fn renumber(row: &mut Self::Value, numbers: &mut dyn Renumber);
}

impl<R: Row> TableRow for R {
    type Value = R;

    fn renumber(row: &mut R, numbers: &mut dyn Renumber) {
        row.renumber(numbers);
    }
}

impl Row for () {
    fn encode(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&[])
    }

    fn decode(_: &[u8]) -> Result<Self, BadRow> {
        Ok(())
    }

    fn renumber(&mut self, _: &mut dyn Renumber) {}
}

impl Row for String {
    fn encode(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadRow> {
        let bad = BadRow { kind: "text", detail: "it is not UTF-8" };
        String::from_utf8(bytes.to_vec()).map_err(|_| bad)
    }

    fn renumber(&mut self, _: &mut dyn Renumber) {}
}

impl Row for Vec<u8> {
    fn encode(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self)
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadRow> {
        Ok(bytes.to_vec())
    }

    fn renumber(&mut self, _: &mut dyn Renumber) {}
}

macro_rules! number_rows {
    ($($number:ty),*) => {$(
        impl Row for $number {
            fn encode(&self) -> Cow<'_, [u8]> {
                Cow::Owned(self.to_be_bytes().to_vec())
            }

            fn decode(bytes: &[u8]) -> Result<Self, BadRow> {
                <Self as Key>::decode(bytes)
            }

            fn renumber(&mut self, _: &mut dyn Renumber) {}
        }
    )*};
}
number_rows!(u32, u64);

/// One key of a table with its row.
pub struct Entry<'a, K, R> {
    key: Bytes<'a>,
    row: Bytes<'a>,
    types: PhantomData<fn() -> (K, R)>,
}

impl<K: Key, R: TableRow> Entry<'_, K, R> {
    /// Reads the key.
    pub fn key(&self) -> Result<K::Ref<'_>, BadRow> {
        K::decode(&self.key)
    }

    /// Reads the row.
    pub fn row(&self) -> Result<R::Value, BadRow> {
        R::Value::decode(&self.row)
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub fn key_bytes(&self) -> &[u8] {
        &self.key
    }

    /// Returns the bytes of the row.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.row
    }
}

/// The entries of a range, in the order of their keys.
pub struct Rows<'a, K, R> {
    rows: RawRows<'a>,
    types: PhantomData<fn() -> (K, R)>,
}

impl<'a, K, R> Rows<'a, K, R> {
    fn new(rows: RawRows<'a>) -> Self {
        Self { rows, types: PhantomData }
    }
}

impl<'a, K, R> Iterator for Rows<'a, K, R> {
    type Item = Result<Entry<'a, K, R>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.rows.next()?.map(|(key, row)| Entry { key, row, types: PhantomData }))
    }
}

impl<K, R> DoubleEndedIterator for Rows<'_, K, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.rows.next_back()?.map(|(key, row)| Entry { key, row, types: PhantomData }))
    }
}

/// One state of the store, to be asked: a batch sees its own writes, a snapshot what was committed.
pub trait View: Reading {
    /// Returns the row of a key.
    fn get<K: Key, R: TableRow>(
        &self,
        table: Table<K, R>,
        key: K::Ref<'_>,
    ) -> Result<Option<R::Value>, Error> {
        let row = self.raw_get(table.name, &K::encode(key))?;
        Ok(row.map(|row| R::Value::decode(&row)).transpose()?)
    }

    /// Returns the bytes of the row of a key, where they lie.
    fn bytes<K: Key, R>(
        &self,
        table: Table<K, R>,
        key: K::Ref<'_>,
    ) -> Result<Option<Bytes<'_>>, Error> {
        self.raw_get(table.name, &K::encode(key))
    }

    /// Tells whether there is a row of a key.
    fn has<K: Key, R>(&self, table: Table<K, R>, key: K::Ref<'_>) -> Result<bool, Error> {
        Ok(self.bytes(table, key)?.is_some())
    }

    /// Returns all rows.
    fn rows<K: Key, R>(&self, table: Table<K, R>) -> Result<Rows<'_, K, R>, Error> {
        Ok(Rows::new(self.raw_range(table.name, Bound::Unbounded, Bound::Unbounded)?))
    }

    /// Returns the rows of a range of keys.
    fn range<'k, K: Key, R>(
        &self,
        table: Table<K, R>,
        range: impl RangeBounds<K::Ref<'k>>,
    ) -> Result<Rows<'_, K, R>, Error> {
        let from = range.start_bound().map(|key| K::encode(*key));
        let to = range.end_bound().map(|key| K::encode(*key));
        Ok(Rows::new(self.raw_range(table.name, end(&from), end(&to))?))
    }

    /// Returns the rows whose keys begin with `first`.
    fn under<A: FixedKey, B: Key, R>(
        &self,
        table: Table<(A, B), R>,
        first: A::Ref<'_>,
    ) -> Result<Rows<'_, (A, B), R>, Error> {
        let from = A::encode(first);
        let to = next(&from);
        let to = to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        Ok(Rows::new(self.raw_range(table.name, Bound::Included(&from), to)?))
    }

    /// Returns the first row.
    fn first<K: Key, R>(&self, table: Table<K, R>) -> Result<Option<Entry<'_, K, R>>, Error> {
        self.rows(table)?.next().transpose()
    }

    /// Returns the last row.
    fn last<K: Key, R>(&self, table: Table<K, R>) -> Result<Option<Entry<'_, K, R>>, Error> {
        self.rows(table)?.next_back().transpose()
    }

    /// Returns the number of rows.
    fn len<K, R>(&self, table: Table<K, R>) -> Result<u64, Error> {
        self.rows_of(table.name)
    }
}

impl<T: Reading + ?Sized> View for T {}

/// A view whose writes are kept together, or not at all.
pub trait Update: View + Writing {
    /// Writes the row of a key.
    fn put<K: Key, R: TableRow>(
        &mut self,
        table: Table<K, R>,
        key: K::Ref<'_>,
        row: &R::Value,
    ) -> Result<(), Error> {
        self.raw_put(table.name, &K::encode(key), &row.encode())?;
        Ok(())
    }

    /// Writes the row of a key. Returns the one that was there.
    fn replace<K: Key, R: TableRow>(
        &mut self,
        table: Table<K, R>,
        key: K::Ref<'_>,
        row: &R::Value,
    ) -> Result<Option<R::Value>, Error> {
        let was = self.raw_put(table.name, &K::encode(key), &row.encode())?;
        Ok(was.map(|was| R::Value::decode(&was)).transpose()?)
    }

    /// Removes the row of a key. Returns whether there was one.
    fn remove<K: Key, R>(&mut self, table: Table<K, R>, key: K::Ref<'_>) -> Result<bool, Error> {
        Ok(self.raw_remove(table.name, &K::encode(key))?.is_some())
    }

    /// Removes the row of a key. Returns it if it was there.
    fn take<K: Key, R: TableRow>(
        &mut self,
        table: Table<K, R>,
        key: K::Ref<'_>,
    ) -> Result<Option<R::Value>, Error> {
        let was = self.raw_remove(table.name, &K::encode(key))?;
        Ok(was.map(|was| R::Value::decode(&was)).transpose()?)
    }

    /// Removes the rows of a range of keys.
    fn clear<'k, K: Key, R>(
        &mut self,
        table: Table<K, R>,
        range: impl RangeBounds<K::Ref<'k>>,
    ) -> Result<(), Error> {
        let from = range.start_bound().map(|key| K::encode(*key));
        let to = range.end_bound().map(|key| K::encode(*key));
        self.raw_clear(table.name, end(&from), end(&to))
    }
}

impl<T: Writing + ?Sized> Update for T {}

fn end<'a>(bound: &'a Bound<Cow<'_, [u8]>>) -> Bound<&'a [u8]> {
    bound.as_ref().map(|key| &**key)
}

/// Returns the first key behind all that begin with `bytes`; none if there can be none.
fn next(bytes: &[u8]) -> Option<Vec<u8>> {
    let last = bytes.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut next = bytes[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    const PAIRS: Table<(u32, u64), u64> = Table::new(Name::Patterns);

    #[test]
    fn the_rows_under_a_key_are_all_that_begin_with_it_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(folder.path(), 1 << 20).unwrap();
        let mut batch = store.begin().unwrap();
        let firsts = [0, 1, 255, 256, 0xFFFF, 0x1_0000, u32::MAX - 1, u32::MAX];
        for (at, first) in firsts.into_iter().enumerate() {
            for second in [0, u64::MAX] {
                batch.put(PAIRS, (first, second), &(at as u64)).unwrap();
            }
        }
        for (at, first) in firsts.into_iter().enumerate() {
            let rows = batch.under(PAIRS, first).unwrap().map(|entry| {
                let entry = entry.unwrap();
                (entry.key().unwrap(), entry.row().unwrap())
            });
            let wanted = [0, u64::MAX].map(|second| ((first, second), at as u64));
            assert_eq!(rows.collect::<Vec<_>>(), wanted);
        }
        batch.clear(PAIRS, (1, 0)..(256, 0)).unwrap();
        let left = batch.rows(PAIRS).unwrap().map(|entry| entry.unwrap().key().unwrap().0);
        let mut left: Vec<u32> = left.collect();
        left.dedup();
        assert_eq!(left, [0, 256, 0xFFFF, 0x1_0000, u32::MAX - 1, u32::MAX]);
        assert_eq!(batch.take(PAIRS, (256, 0)).unwrap(), Some(3));
        assert_eq!(batch.len(PAIRS).unwrap(), 11);
    }
}
