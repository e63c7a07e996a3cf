//! The index beside a file: a line for each record that can be looked up, in the order of its key
//! (CDXJ, as `cdxj-indexer` writes it and `pywb` reads it).
//!
//! Lines are sorted in bounded memory: what is beyond it waits in files.

use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use std::cmp::Reverse;

use super::draft::Digest;
use super::surt::surt;
use super::{Entry, Error, Kind, Reader, Record};
use crate::base::clock::Timestamp;

/// Bytes of lines that are sorted in memory.
const LINES_BYTES_MAX: usize = 8 << 20;

/// What an index says of a record, but where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexLine {
    pub url: String,
    pub date: Timestamp,
    pub media: String,
    pub status: Option<u16>,
    pub digest: Option<Digest>,
}

impl IndexLine {
    /// Makes the line of a record; none for one that nobody looks up.
    #[must_use]
    pub(crate) fn of(record: &Record) -> Option<Self> {
        if !matches!(record.kind, Kind::Response | Kind::Revisit) {
            return None;
        }
        let url = record.target()?.to_owned();
        let message = super::HttpMessage::parse(record.block.clone());
        let status = Some(message.status);
        let media = message.headers.get("Content-Type").unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let media = if record.kind == Kind::Revisit { "warc/revisit".to_owned() } else { media };
        let digest = record.headers.get("WARC-Payload-Digest").and_then(Digest::parse);
        Some(Self { url, date: record.date()?, media, status, digest })
    }

    /// Writes it, with where the record is.
    #[must_use]
    pub(crate) fn line(&self, file: &str, offset: u64, length: u64) -> String {
        let moment = jiff::Timestamp::from_millisecond(self.date.0).unwrap_or_default();
        let mut facts = serde_json::Map::new();
        let mut put = |name: &str, value: String| facts.insert(name.to_owned(), value.into());
        put("url", self.url.clone());
        if !self.media.is_empty() {
            put("mime", self.media.clone());
        }
        if let Some(status) = self.status {
            put("status", status.to_string());
        }
        if let Some(digest) = self.digest {
            put("digest", digest.to_string());
        }
        put("length", length.to_string());
        put("offset", offset.to_string());
        put("filename", file.to_owned());
        let facts = serde_json::Value::Object(facts);
        format!("{} {} {facts}\n", surt(&self.url), moment.strftime("%Y%m%d%H%M%S"))
    }
}

/// Sorts the lines of one index.
#[derive(Debug)]
pub(crate) struct Sorter {
    /// What the files of lines are called, but for a number.
    base: PathBuf,
    lines: Vec<String>,
    bytes: usize,
    /// Files of sorted lines.
    runs: Vec<PathBuf>,
}

impl Sorter {
    /// Begins an index at `path`.
    pub(crate) fn new(path: &Path) -> Self {
        Self { base: path.to_owned(), lines: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: String) -> io::Result<()> {
        self.bytes += line.len() + size_of::<String>();
        self.lines.push(line);
        if self.bytes > LINES_BYTES_MAX { self.spill() } else { Ok(()) }
    }

    /// Tells whether there is any line.
    pub(crate) fn has_lines(&self) -> bool {
        !self.lines.is_empty() || !self.runs.is_empty()
    }

    fn spill(&mut self) -> io::Result<()> {
        let path = self.run_path(self.runs.len());
        let mut file = BufWriter::new(File::create(&path)?);
        self.runs.push(path);
        self.lines.sort_unstable();
        self.lines.iter().try_for_each(|line| file.write_all(line.as_bytes()))?;
        self.lines.clear();
        self.bytes = 0;
        file.flush()
    }

    fn run_path(&self, number: usize) -> PathBuf {
        let mut path = self.base.clone().into_os_string();
        path.push(format!(".{number}.part"));
        path.into()
    }

    /// Writes all lines in their order, and brings them to the disk.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.lines.sort_unstable();
        let mut partial = self.base.clone().into_os_string();
        partial.push(".part");
        let mut file = BufWriter::new(File::create(&partial)?);
        let mut runs = Vec::new();
        for path in &self.runs {
            runs.push(BufReader::new(File::open(path)?));
        }
        let mut lines = std::mem::take(&mut self.lines).into_iter();
        let mut heap = BinaryHeap::new();
        // The lines in memory are one run more.
        for run in 0..=runs.len() {
            heap.extend(next(&mut runs, &mut lines, run)?.map(|line| Reverse((line, run))));
        }
        while let Some(Reverse((line, run))) = heap.pop() {
            file.write_all(line.as_bytes())?;
            heap.extend(next(&mut runs, &mut lines, run)?.map(|line| Reverse((line, run))));
        }
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&partial, &self.base)
    }
}

fn next(
    runs: &mut [BufReader<File>],
    lines: &mut impl Iterator<Item = String>,
    run: usize,
) -> io::Result<Option<String>> {
    let Some(reader) = runs.get_mut(run) else { return Ok(lines.next()) };
    let mut line = String::new();
    let read = reader.read_line(&mut line)?;
    Ok((read > 0).then_some(line))
}

impl Drop for Sorter {
    fn drop(&mut self) {
        for path in &self.runs {
            drop(fs::remove_file(path));
        }
    }
}

/// Reads a file again, and adds its lines; `name` is what the file is to be called.
pub(crate) fn index_file(path: &Path, name: &str, sorter: &mut Sorter) -> Result<u64, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    // They were in memory when they were written.
    let mut reader = Reader::open(path)?.with_block_max(usize::MAX);
    let mut waiting: Option<(IndexLine, u64)> = None;
    let mut records = 0;
    let end = fs::metadata(path).map_err(io)?.len();
    loop {
        let record = match reader.next()? {
            Some(Entry::Record(record)) => Some(record),
            Some(Entry::Fault(_)) => continue,
            None => None,
        };
        let offset = record.as_ref().map_or(end, |record| record.spot.offset);
        if let Some((line, begin)) = waiting.take() {
            sorter.add(line.line(name, begin, offset - begin)).map_err(io)?;
        }
        let Some(record) = record else { return Ok(records) };
        records += 1;
        waiting = IndexLine::of(&record).map(|line| (line, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_also_when_they_do_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.cdxj");
        let mut sorter = Sorter::new(&path);
        let lines = (0..60_000_u64).map(|n| {
            format!("org,a)/{:020} {}\n", n.wrapping_mul(0x9E37_79B9_7F4A_7C15), "x".repeat(200))
        });
        let mut expected: Vec<String> = lines.collect();
        for line in &expected {
            sorter.add(line.clone()).unwrap();
        }
        assert!(!sorter.runs.is_empty());
        sorter.finish().unwrap();
        expected.sort_unstable();
        assert!(fs::read_to_string(&path).unwrap() == expected.concat());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn a_line_is_that_of_cdxj_indexer() {
        let line = IndexLine {
            url: "http://Example.org/A?b=\"c\"".to_owned(),
            date: Timestamp(1_795_521_600_123),
            media: "text/html".to_owned(),
            status: Some(200),
            digest: Some(Digest::of(&[b""])),
        };
        let expected = "org,example)/a?b=\"c\" 20261124120000 \
            {\"url\":\"http://Example.org/A?b=\\\"c\\\"\",\
            \"mime\":\"text/html\",\"status\":\"200\",\
            \"digest\":\"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\",\
            \"length\":\"7\",\"offset\":\"9\",\"filename\":\"x.warc.gz\"}\n";
        let made = line.line("x.warc.gz", 9, 7);
        let facts = |line: &str| -> serde_json::Value {
            serde_json::from_str(line.splitn(3, ' ').nth(2).unwrap()).unwrap()
        };
        assert_eq!(facts(&made), facts(expected));
        assert_eq!(made.split('{').next(), expected.split('{').next());
    }
}
