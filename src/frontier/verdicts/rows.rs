//! What is kept of a feed, and of what a feed says of one host. The order of the fields in `encode`
//! is the stored order.

use redb::ReadableTable;

use crate::store::{BadRow, Decoder, Encoder, Error};

/// A feed that a store has taken in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Feed {
    /// Its checksum.
    pub sum: u128,
    /// Name of its file.
    pub name: String,
    /// Who publishes it.
    pub publisher: String,
    /// When it was made, as it says.
    pub made: String,
    /// Its verdicts.
    pub verdicts: u64,
    /// All of it was taken in.
    pub complete: bool,
    /// It is not believed any more: it was wrong for several hosts, or somebody said so.
    pub lost: bool,
    /// Verdicts that turned out to be right.
    pub held: u64,
    /// Verdicts that turned out to be wrong.
    pub failed: u64,
    /// Hosts for which it is not believed any more.
    pub lost_hosts: u64,
    /// Addresses that are not fetched because of it.
    pub skipped: u64,
    /// Its addresses are hashed.
    pub hashed: bool,
}

impl Feed {
    /// Makes the row.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Encoder::new(1)
            .wide(self.sum)
            .text(&self.name)
            .text(&self.publisher)
            .text(&self.made)
            .number(self.verdicts)
            .number(self.complete)
            .number(self.lost)
            .number(self.held)
            .number(self.failed)
            .number(self.lost_hosts)
            .number(self.skipped)
            .number(self.hashed)
            .finish()
    }

    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Self, BadRow> {
        let mut row = Decoder::new("feed", 1, row)?;
        Ok(Self {
            sum: row.wide()?,
            name: row.text()?.to_owned(),
            publisher: row.text()?.to_owned(),
            made: row.text()?.to_owned(),
            verdicts: row.number()?,
            complete: row.number()? != 0,
            lost: row.number()? != 0,
            held: row.number()?,
            failed: row.number()?,
            lost_hosts: row.number()?,
            skipped: row.number()?,
            hashed: row.number()? != 0,
        })
    }

    /// Returns its name, publisher and date, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} of {}, made {}", self.name, self.publisher, self.made)
    }
}

/// What a feed has been worth for one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeedHost {
    /// Copies that it could have spared, by which the next one to be fetched is told.
    pub turn: u64,
    /// Verdicts that turned out to be right.
    pub held: u64,
    /// Verdicts that turned out to be wrong: it is not believed any more.
    pub failed: u64,
}

/// Key of `feed_hosts`: number of the feed, host key.
#[must_use]
pub fn feed_host_key(feed: u64, host: &str) -> Vec<u8> {
    let mut key = feed.to_be_bytes().to_vec();
    key.extend_from_slice(host.as_bytes());
    key
}

impl FeedHost {
    /// Makes the row.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        Encoder::new(1).number(self.turn).number(self.held).number(self.failed).finish()
    }

    /// Reads what a feed has been worth for a host; none if it was not asked yet.
    pub fn read(
        rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
        feed: u64,
        host: &str,
    ) -> Result<Option<Self>, Error> {
        let Some(row) = rows.get(feed_host_key(feed, host).as_slice())? else { return Ok(None) };
        let mut row = Decoder::new("feed host", 1, row.value())?;
        let (turn, held, failed) = (row.number()?, row.number()?, row.number()?);
        Ok(Some(Self { turn, held, failed }))
    }
}
