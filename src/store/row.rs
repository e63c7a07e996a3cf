//! Rows that are declared once: their fields, how these are stored, and since which version.
//!
//! ```text
//! row! {
//!     /// What is known of a kind of URLs.
//!     #[derive(Debug, Clone)]
//!     pub struct Kind: "kind", 1 to 2 {
//!         /// Its pattern.
//!         pub pattern: String = Text;
//!         /// Pages that were read.
//!         pub pages: u64 = Number;
//!         /// Those of them that were new.
//!         pub new: u64 = Number, since 2;
//!     }
//! }
//! ```
//!
//! The fields are stored in their order. A row is written in the newest version and read in any of
//! those named; a field that a row is older than has its default.

use crate::base::clock::Timestamp;

use super::{BadRow, Decoder, Encoder, Renumber};

/// How a field of type `T` is stored.
pub trait Codec<T> {
    /// Says so in the table of formats.
    const SHAPE: &'static str;

    /// Adds the field to a row.
    fn put(field: &T, row: Encoder) -> Encoder;

    /// Reads the field.
    fn take(row: &mut Decoder<'_>) -> Result<T, BadRow>;

    /// Gives the numbers of documents and contents in the field their new numbers. Whoever stores
    /// such numbers, or other fields, says how.
    fn renumber(_: &mut T, _: &mut dyn Renumber) {}
}

/// A number, but for those of documents and contents, which have codecs of their own.
pub struct Number;

/// A number + 1, or 0 for none.
pub struct MaybeNumber;

/// A number that may be below zero.
pub struct Signed;

/// Yes or no.
pub struct Flag;

/// A text with its length.
pub struct Text;

/// Bytes with their length.
pub struct Blob;

/// 8 bytes.
pub struct Fixed;

/// 16 bytes.
pub struct Wide;

/// The number of a variant; of `Option`, 0 for none.
pub struct Code;

/// How many there are, and each in turn.
pub struct List<C>(C);

/// Each in turn, to the end of the row: only for its last field, of which nothing is stored if
/// there are none.
pub struct Rest<C>(C);

/// One after the other.
impl<X, Y, A: Codec<X>, B: Codec<Y>> Codec<(X, Y)> for (A, B) {
    const SHAPE: &'static str = A::SHAPE;

    fn put((x, y): &(X, Y), row: Encoder) -> Encoder {
        B::put(y, A::put(x, row))
    }

    fn take(row: &mut Decoder<'_>) -> Result<(X, Y), BadRow> {
        Ok((A::take(row)?, B::take(row)?))
    }

    fn renumber((x, y): &mut (X, Y), numbers: &mut dyn Renumber) {
        A::renumber(x, numbers);
        B::renumber(y, numbers);
    }
}

/// Fields that several kinds of rows have, in their place.
pub struct Nested;

impl<N: Copy + Into<u64> + TryFrom<u64>> Codec<N> for Number {
    const SHAPE: &'static str = "number";

    fn put(field: &N, row: Encoder) -> Encoder {
        row.number(*field)
    }

    fn take(row: &mut Decoder<'_>) -> Result<N, BadRow> {
        row.narrow()
    }
}

impl Codec<Option<u64>> for MaybeNumber {
    const SHAPE: &'static str = "number + 1, or 0";

    fn put(field: &Option<u64>, row: Encoder) -> Encoder {
        row.number(field.map_or(0, |number| number.saturating_add(1)))
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<u64>, BadRow> {
        Ok(row.number()?.checked_sub(1))
    }
}

impl Codec<i64> for Signed {
    const SHAPE: &'static str = "signed number";

    fn put(field: &i64, row: Encoder) -> Encoder {
        row.keys(*field)
    }

    fn take(row: &mut Decoder<'_>) -> Result<i64, BadRow> {
        row.keys()
    }
}

impl Codec<Timestamp> for Signed {
    const SHAPE: &'static str = "ms since 1970, signed";

    fn put(field: &Timestamp, row: Encoder) -> Encoder {
        row.keys(field.0)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Timestamp, BadRow> {
        row.keys().map(Timestamp)
    }
}

impl Codec<bool> for Flag {
    const SHAPE: &'static str = "0 or 1";

    fn put(field: &bool, row: Encoder) -> Encoder {
        row.number(*field)
    }

    fn take(row: &mut Decoder<'_>) -> Result<bool, BadRow> {
        Ok(row.number()? != 0)
    }
}

impl Codec<String> for Text {
    const SHAPE: &'static str = "text";

    fn put(field: &String, row: Encoder) -> Encoder {
        row.text(field)
    }

    fn take(row: &mut Decoder<'_>) -> Result<String, BadRow> {
        row.text().map(str::to_owned)
    }
}

impl Codec<Vec<u8>> for Blob {
    const SHAPE: &'static str = "bytes";

    fn put(field: &Vec<u8>, row: Encoder) -> Encoder {
        row.bytes(field)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Vec<u8>, BadRow> {
        row.bytes().map(<[u8]>::to_vec)
    }
}

impl Codec<u64> for Fixed {
    const SHAPE: &'static str = "8 bytes";

    fn put(field: &u64, row: Encoder) -> Encoder {
        row.fixed(*field)
    }

    fn take(row: &mut Decoder<'_>) -> Result<u64, BadRow> {
        row.fixed()
    }
}

impl Codec<u128> for Wide {
    const SHAPE: &'static str = "16 bytes";

    fn put(field: &u128, row: Encoder) -> Encoder {
        row.wide(*field)
    }

    fn take(row: &mut Decoder<'_>) -> Result<u128, BadRow> {
        row.wide()
    }
}

/// A type whose variants have numbers in the store.
pub trait Coded: Copy {
    /// Returns the number; not 0 if there may be none.
    fn code(self) -> u64;

    /// Returns the variant of a number.
    fn from_code(code: u64) -> Option<Self>;
}

impl<T: Coded> Codec<T> for Code {
    const SHAPE: &'static str = "code";

    fn put(field: &T, row: Encoder) -> Encoder {
        row.number(field.code())
    }

    fn take(row: &mut Decoder<'_>) -> Result<T, BadRow> {
        let code = row.number()?;
        T::from_code(code).ok_or_else(|| row.bad("a code is unknown"))
    }
}

impl<T: Coded> Codec<Option<T>> for Code {
    const SHAPE: &'static str = "code, or 0";

    fn put(field: &Option<T>, row: Encoder) -> Encoder {
        row.number(field.map_or(0, T::code))
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<T>, BadRow> {
        row.number().map(T::from_code)
    }
}

impl<T, C: Codec<T>> Codec<Vec<T>> for List<C> {
    const SHAPE: &'static str = C::SHAPE;

    fn put(field: &Vec<T>, row: Encoder) -> Encoder {
        field.iter().fold(row.number(field.len() as u64), |row, item| C::put(item, row))
    }

    fn take(row: &mut Decoder<'_>) -> Result<Vec<T>, BadRow> {
        let count = row.number()?;
        // What a damaged row names as length is not asked for as memory.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(C::take(row)?);
        }
        Ok(items)
    }

    fn renumber(field: &mut Vec<T>, numbers: &mut dyn Renumber) {
        for item in field {
            C::renumber(item, numbers);
        }
    }
}

impl<T, C: Codec<T>> Codec<Vec<T>> for Rest<C> {
    const SHAPE: &'static str = C::SHAPE;

    fn put(field: &Vec<T>, row: Encoder) -> Encoder {
        field.iter().fold(row, |row, item| C::put(item, row))
    }

    fn take(row: &mut Decoder<'_>) -> Result<Vec<T>, BadRow> {
        let mut items = Vec::new();
        while !row.is_at_end() {
            items.push(C::take(row)?);
        }
        Ok(items)
    }
}

/// Fields that stand in other rows.
pub trait Part: Sized {
    /// The fields.
    const FIELDS: &'static [Shape];

    /// Adds the fields to a row.
    fn put(&self, row: Encoder) -> Encoder;

    /// Reads the fields.
    fn take(row: &mut Decoder<'_>) -> Result<Self, BadRow>;

    /// Gives the documents and contents that they name their new numbers.
    fn renumber(&mut self, numbers: &mut dyn Renumber);
}

impl<T: Part> Codec<T> for Nested {
    const SHAPE: &'static str = "its fields";

    fn put(field: &T, row: Encoder) -> Encoder {
        field.put(row)
    }

    fn take(row: &mut Decoder<'_>) -> Result<T, BadRow> {
        T::take(row)
    }

    fn renumber(field: &mut T, numbers: &mut dyn Renumber) {
        field.renumber(numbers);
    }
}

/// A field in the table of formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// How it is stored.
    pub stored: &'static str,
    /// The first version of the row that has it; 0 for all.
    pub since: u8,
}

/// What the table of formats says of a kind of rows.
pub trait Format {
    /// Its name.
    const KIND: &'static str;
    /// The version in which it is written.
    const VERSION: u8;
    /// Its fields, in the stored order.
    const FIELDS: &'static [Shape];
}

/// Declares a row, or with `part` instead of a name and versions, fields that stand in other rows.
macro_rules! row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: $kind:literal, $oldest:literal to $newest:literal {
            $(
                $(#[$field_meta:meta])*
                $field_vis:vis $field:ident: $type:ty = $codec:ty $(, since $since:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$field_meta])* $field_vis $field: $type,)* }

        impl $crate::store::Row for $name {
            fn encode(&self) -> std::borrow::Cow<'_, [u8]> {
                let row = $crate::store::Encoder::new($newest);
                $(let row = <$codec as $crate::store::Codec<$type>>::put(&self.$field, row);)*
                std::borrow::Cow::Owned(row.finish())
            }

            fn decode(bytes: &[u8]) -> Result<Self, $crate::store::BadRow> {
                let mut row = $crate::store::Decoder::of($kind, $oldest..=$newest, bytes)?;
                Ok(Self { $($field: $crate::store::row!(@take row, $codec, $type $(, $since)?),)* })
            }

            fn renumber(&mut self, numbers: &mut dyn $crate::store::Renumber) {
                $(<$codec as $crate::store::Codec<$type>>::renumber(&mut self.$field, numbers);)*
            }
        }

        impl $crate::store::Format for $name {
            const KIND: &'static str = $kind;
            const VERSION: u8 = $newest;
            const FIELDS: &'static [$crate::store::Shape] =
                &[$($crate::store::row!(@shape $field, $codec, $type $(, $since)?),)*];
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: part {
            $(
                $(#[$field_meta:meta])*
                $field_vis:vis $field:ident: $type:ty = $codec:ty $(, since $since:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$field_meta])* $field_vis $field: $type,)* }

        impl $crate::store::Part for $name {
            const FIELDS: &'static [$crate::store::Shape] =
                &[$($crate::store::row!(@shape $field, $codec, $type $(, $since)?),)*];

            fn put(&self, row: $crate::store::Encoder) -> $crate::store::Encoder {
                $(let row = <$codec as $crate::store::Codec<$type>>::put(&self.$field, row);)*
                row
            }

            fn take(
                row: &mut $crate::store::Decoder<'_>,
            ) -> Result<Self, $crate::store::BadRow> {
                Ok(Self { $($field: $crate::store::row!(@take row, $codec, $type $(, $since)?),)* })
            }

            fn renumber(&mut self, numbers: &mut dyn $crate::store::Renumber) {
                $(<$codec as $crate::store::Codec<$type>>::renumber(&mut self.$field, numbers);)*
            }
        }
    };
    (@take $row:ident, $codec:ty, $type:ty) => {
        <$codec as $crate::store::Codec<$type>>::take($row.by_ref())?
    };
    (@take $row:ident, $codec:ty, $type:ty, $since:literal) => {
        if $row.version() >= $since {
            <$codec as $crate::store::Codec<$type>>::take($row.by_ref())?
        } else {
            <$type>::default()
        }
    };
    (@shape $field:ident, $codec:ty, $type:ty) => {
        $crate::store::row!(@shape $field, $codec, $type, 0)
    };
    (@shape $field:ident, $codec:ty, $type:ty, $since:literal) => {
        $crate::store::Shape {
            name: stringify!($field),
            stored: <$codec as $crate::store::Codec<$type>>::SHAPE,
            since: $since,
        }
    };
}
pub(crate) use row;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Row;

    row! {
        #[derive(Debug, PartialEq)]
        struct Inner: part {
            weight: i64 = Signed;
        }
    }

    row! {
        #[derive(Debug, PartialEq)]
        struct Outer: "outer", 1 to 2 {
            name: String = Text;
            numbers: Vec<u32> = List<Number>;
            inner: Inner = Nested;
            hash: u128 = Wide;
            late: Option<u64> = MaybeNumber, since 2;
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written_and_so_is_an_older_one() {
        let outer = Outer {
            name: "名".to_owned(),
            numbers: vec![0, 300],
            inner: Inner { weight: -7 },
            hash: u128::MAX - 1,
            late: Some(0),
        };
        let bytes = outer.encode().into_owned();
        let by_hand = Encoder::new(2).text("名").number(2_u64).number(0_u64).number(300_u64);
        let by_hand = by_hand.keys(-7).wide(u128::MAX - 1).number(1_u64).finish();
        assert_eq!(bytes, by_hand);
        assert_eq!(Outer::decode(&bytes).unwrap(), outer);
        let mut old = bytes[..bytes.len() - 1].to_vec();
        old[0] = 1;
        assert_eq!(Outer::decode(&old).unwrap(), Outer { late: None, ..outer });
        assert!(Outer::decode(&bytes[..bytes.len() - 1]).is_err());
        let fields: Vec<_> = Outer::FIELDS.iter().map(|f| (f.name, f.since)).collect();
        assert_eq!(fields, [("name", 0), ("numbers", 0), ("inner", 0), ("hash", 0), ("late", 2)]);
        assert_eq!((Outer::KIND, Outer::VERSION), ("outer", 2));
        assert_eq!(Inner::FIELDS[0].stored, "signed number");
    }
}
