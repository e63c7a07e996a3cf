//! What is kept of a feed, and of what a feed says of one host and of a URL.

use std::borrow::Cow;

use crate::store::{BadRow, Decoder, Encoder, Flag, Number, Renumber, Row, Text, Wide, row};

row! {
    /// A feed that a store has taken in.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Feed: "feed", 1 to 1 {
        /// Its checksum.
        pub sum: u128 = Wide;
        /// Name of its file.
        pub name: String = Text;
        /// Who publishes it.
        pub publisher: String = Text;
        /// When it was made, as it says.
        pub made: String = Text;
        /// Its duplicates.
        pub duplicates: u64 = Number;
        /// All of it was taken in.
        pub complete: bool = Flag;
        /// It is not believed any more: it was wrong for several hosts, or somebody said so.
        pub lost: bool = Flag;
        /// Duplicates that turned out to be right.
        pub held: u64 = Number;
        /// Duplicates that turned out to be wrong.
        pub failed: u64 = Number;
        /// Hosts for which it is not believed any more.
        pub lost_hosts: u64 = Number;
        /// URLs that are not fetched because of it.
        pub skipped: u64 = Number;
        /// Its URLs are hashed.
        pub hashed: bool = Flag;
    }
}

impl Feed {
    /// Returns its name, publisher and date, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} of {}, made {}", self.name, self.publisher, self.made)
    }
}

row! {
    /// What a feed has been worth for one host.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct FeedHost: "feed host", 1 to 1 {
        /// Copies that it could have spared, by which the next one to be fetched is told.
        pub turn: u64 = Number;
        /// Duplicates that turned out to be right.
        pub held: u64 = Number;
        /// Duplicates that turned out to be wrong: it is not believed any more.
        pub failed: u64 = Number;
    }
}

/// What a feed says of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is a copy.
    Copy {
        /// Hash of the canonical URL.
        of: u128,
        /// Day on which the publisher last visited the copy, since 1970.
        day: u64,
    },
    /// It is the canonical URL of a document.
    Canonical {
        /// Identifier of the document.
        doc_id: u128,
    },
}

/// By hand, because the version of the row tells a copy (1) from a canonical URL (2).
impl Row for Role {
    fn encode(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match *self {
            Self::Copy { of, day } => Encoder::new(1).wide(of).number(day).finish(),
            Self::Canonical { doc_id } => Encoder::new(2).wide(doc_id).finish(),
        })
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::of("verdict", 1..=2, bytes)?;
        Ok(match row.version() {
            1 => Self::Copy { of: row.wide()?, day: row.number()? },
            _ => Self::Canonical { doc_id: row.wide()? },
        })
    }

    fn renumber(&mut self, _: &mut dyn Renumber) {}
}
