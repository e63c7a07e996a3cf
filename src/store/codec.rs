//! Rows as bytes: a version byte, then fields in a fixed order.
//!
//! Numbers are LEB128 varints (fingerprinted ones zigzag), byte strings have their length before
//! them, fixed-width hashes are big-endian.

use std::ops::RangeInclusive;

/// A stored row that cannot be read: the store is damaged or was written by other code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored {kind} row cannot be read: {detail}")]
pub struct BadRow {
    /// What the row should be.
    pub kind: &'static str,
    /// What is wrong with it.
    pub detail: &'static str,
}

/// Writes one row.
#[derive(Debug)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    /// Starts a row of the given version.
    #[must_use]
    pub fn new(version: u8) -> Self {
        Self(vec![version])
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, number: impl Into<u64>) -> Self {
        let mut rest = number.into();
        while rest >= 0x80 {
            self.0.push((rest & 0x7F) as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
        self
    }

    /// Adds a number that may be below zero.
    #[must_use]
    pub fn keys(self, number: i64) -> Self {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned())
    }

    /// Adds a byte string with its length.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let mut row = self.number(bytes.len() as u64);
        row.0.extend_from_slice(bytes);
        row
    }

    /// Adds a text with its length.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds 16 bytes.
    #[must_use]
    pub fn wide(mut self, number: u128) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Adds 8 bytes.
    #[must_use]
    pub fn fixed(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Returns the row.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads one row, field by field in the order in which it was written.
#[derive(Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    kind: &'static str,
    version: u8,
}

impl<'a> Decoder<'a> {
    /// Starts to read a row, which must be of the given version.
    pub fn new(kind: &'static str, version: u8, row: &'a [u8]) -> Result<Self, BadRow> {
        Self::of(kind, version..=version, row)
    }

    /// Starts to read a row of any of some versions.
    pub fn of(
        kind: &'static str,
        versions: RangeInclusive<u8>,
        row: &'a [u8],
    ) -> Result<Self, BadRow> {
        match row.split_first() {
            Some((version, rest)) if versions.contains(version) => {
                Ok(Self { rest, kind, version: *version })
            }
            Some(_) => Err(BadRow { kind, detail: "its version is unknown" }),
            None => Err(BadRow { kind, detail: "it is empty" }),
        }
    }

    /// Lends the rest of the row.
    pub fn by_ref(&mut self) -> &mut Self {
        self
    }

    /// Returns the version of the row.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Tells whether all of it has been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a number.
    pub fn number(&mut self) -> Result<u64, BadRow> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take::<1>()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.bad("a number is too long"))
    }

    /// Reads a number into a narrower type.
    pub fn narrow<N: TryFrom<u64>>(&mut self) -> Result<N, BadRow> {
        let number = self.number()?;
        N::try_from(number).map_err(|_| self.bad("a number is too large"))
    }

    /// Reads a number that may be below zero.
    pub fn keys(&mut self) -> Result<i64, BadRow> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    /// Reads a byte string.
    pub fn bytes(&mut self) -> Result<&'a [u8], BadRow> {
        let length: usize = self.narrow()?;
        let Some((bytes, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.bad("it is cut short"));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a text.
    pub fn text(&mut self) -> Result<&'a str, BadRow> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.bad("a text is not UTF-8"))
    }

    /// Reads 16 bytes.
    pub fn wide(&mut self) -> Result<u128, BadRow> {
        Ok(u128::from_be_bytes(self.take()?))
    }

    /// Reads 8 bytes.
    pub fn fixed(&mut self) -> Result<u64, BadRow> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// Makes the error for a field whose value makes no sense.
    #[must_use]
    pub fn bad(&self, detail: &'static str) -> BadRow {
        BadRow { kind: self.kind, detail }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadRow> {
        let Some((bytes, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.bad("it is cut short"));
        };
        self.rest = rest;
        Ok(*bytes)
    }
}
