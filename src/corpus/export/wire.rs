//! An export as one stream: a list in a format, or all lists in lines of JSON, of which another
//! process makes files.
//!
//! ```text
//! {"export":{"program":"uniqcrawl 0.1.0","store":{...},"fields":["docId","url",...]}}
//! {"documents":{...}}
//! {"duplicates":{...}}
//! {"withheld":{...}}
//! {"whole":1}
//! {"end":{"documents":1,...}}
//! ```

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::form::{DocumentWriter, Manner};
use super::stream::{Compression, Raw, Stream};
use super::tally::Tally;
use super::value::Record;
use super::walk::{List, Sink};
use super::{Error, ExportPlan, StoreState};

/// Bytes of a line at most: those of the longest text, escaped, several times.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireHead {
    pub program: String,
    pub store: StoreState,
    pub fields: Vec<String>,
}

/// One list, in the format of the plan.
pub(super) struct OneList {
    list: List,
    writer: Box<dyn DocumentWriter>,
}

impl OneList {
    pub(super) fn begin(
        plan: &ExportPlan,
        list: List,
        to: impl Write + Send + 'static,
    ) -> Result<Self, Error> {
        let compression = plan.format.compression(plan.compression);
        let columns = list.columns(plan);
        let manner = Manner { columns, compression, config: plan.config.clone() };
        let writer = plan.format.begin(Raw::to(to), &manner).map_err(Error::Stream)?;
        Ok(Self { list, writer })
    }

    pub(super) fn end(self) -> Result<(), Error> {
        self.writer.end().and_then(Stream::end).map(drop).map_err(Error::Stream)
    }
}

impl Sink for OneList {
    fn take(&mut self, list: List, record: Record) -> Result<(), Error> {
        if list == self.list {
            self.writer.write(&record).map_err(Error::Stream)?;
        }
        Ok(())
    }

    fn pause(&mut self, _: u64, _: &mut Tally) -> Result<(), Error> {
        Ok(())
    }
}

/// All lists.
pub(super) struct AllLists(Stream);

impl AllLists {
    pub(super) fn begin(
        plan: &ExportPlan,
        store: &StoreState,
        to: impl Write + Send + 'static,
    ) -> Result<Self, Error> {
        let compression = plan.compression.unwrap_or(Compression::None);
        let stream = Stream::new(Raw::to(to), compression).map_err(Error::Stream)?;
        let head = WireHead {
            program: super::PROGRAM.to_owned(),
            store: store.clone(),
            fields: plan.fields.names().into_iter().map(str::to_owned).collect(),
        };
        let mut all = Self(stream);
        all.line("export", &head)?;
        Ok(all)
    }

    fn line(&mut self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let mut line = || {
            write!(self.0, "{{\"{name}\":")?;
            serde_json::to_writer(&mut self.0, value)?;
            self.0.write_all(b"}\n")
        };
        line().map_err(Error::Stream)
    }

    pub(super) fn end(mut self, tally: &Tally) -> Result<(), Error> {
        self.line("end", tally)?;
        self.0.end().map(drop).map_err(Error::Stream)
    }
}

impl Sink for AllLists {
    fn take(&mut self, list: List, record: Record) -> Result<(), Error> {
        self.line(list.as_str(), &record)
    }

    /// Whoever reads ends its shards in the same places.
    fn pause(&mut self, after: u64, _: &mut Tally) -> Result<(), Error> {
        self.line("whole", &after)
    }
}

/// Reads the first line of a stream of all lists.
pub(super) fn read_head(from: &mut impl BufRead) -> Result<WireHead, Error> {
    let (name, value) = next(from)?;
    let head = if name == "export" { serde_json::from_value(value).ok() } else { None };
    head.ok_or(Error::BadStream("it does not begin like one"))
}

/// Gives what a stream of all lists says to a sink. Returns the counts of its last line.
pub(super) fn read(
    plan: &ExportPlan,
    from: &mut impl BufRead,
    sink: &mut dyn Sink,
) -> Result<Tally, Error> {
    let mut none = Tally::default();
    loop {
        let (name, value) = next(from)?;
        if name == "end" {
            let tally = serde_json::from_value(value).ok();
            return tally.ok_or(Error::BadStream("its last line is odd"));
        }
        if name == "whole" {
            sink.pause(value.as_u64().unwrap_or_default(), &mut none)?;
            continue;
        }
        let list = List::ALL.into_iter().find(|list| list.as_str() == name);
        let list = list.ok_or(Error::BadStream("a line is of no list"))?;
        let record = Record::read(&list.columns(plan), value);
        sink.take(list, record.ok_or(Error::BadStream("a line has other fields"))?)?;
    }
}

/// Reads a line: its only name, and the value.
fn next(from: &mut impl BufRead) -> Result<(String, Json), Error> {
    let mut line = Vec::new();
    let read = io::Read::take(&mut *from, LINE_BYTES_MAX).read_until(b'\n', &mut line);
    read.map_err(Error::Stream)?;
    if line.last() != Some(&b'\n') {
        return Err(Error::BadStream("it was cut off before its end"));
    }
    let object: Option<serde_json::Map<String, Json>> = serde_json::from_slice(&line).ok();
    let only = object.and_then(|object| object.into_iter().next());
    only.ok_or(Error::BadStream("a line is no JSON"))
}
