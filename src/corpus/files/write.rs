//! The files that a run writes.

use std::io::Write as _;
use std::sync::Arc;

use serde::Serialize;

use crate::base::outputs::{Output, Outputs};
use crate::neardup::{Cluster, Clusterer, Key, Membership};

use super::input::{Kind, LineRead, Lines, Record, Source, Sources};
use super::kept::KeptFile;
use super::run::{Judged, is_made};
use super::spool::SpoolReader;
use super::storage::RunStorage;
use super::{DedupReport, Error, KeptFormat};

/// The lines that are kept.
pub(super) const KEPT: &str = "kept.jsonl";

/// The rows that are kept.
pub(super) const KEPT_TABLE: &str = "kept.parquet";

/// The others, each with the one that is kept in its place.
pub(super) const DUPLICATES: &str = "duplicates.jsonl";

/// The members of each cluster of two or more.
pub(super) const CLUSTERS: &str = "clusters.jsonl";

/// Lines that are no documents.
pub(super) const REJECTED: &str = "rejected.jsonl";

/// Documents that filters keep out.
pub(super) const FILTERED: &str = "filtered.jsonl";

/// A line of `duplicates.jsonl`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DuplicateLine<'a> {
    id: &'a str,
    /// Identifier of the document that is kept in its place.
    duplicate_of: &'a str,
    cluster: u32,
    key: &'static str,
    distance: u8,
    similarity: f64,
}

/// A line of `clusters.jsonl`.
#[derive(Serialize)]
struct ClusterLine {
    cluster: u32,
    canonical: String,
    size: usize,
    members: Vec<String>,
}

/// Refuses a table of documents that do not all come out of tables of one kind, unchanged.
pub(super) fn check_format(
    sources: &Sources,
    format: KeptFormat,
    is_changed: bool,
) -> Result<(), Error> {
    if format == KeptFormat::Lines {
        return Ok(());
    }
    let other = sources.all().iter().find(|source| source.kind != Kind::Parquet);
    if let Some(other) = other {
        let detail = format!("{} is none", other.name);
        return Err(Error::Format { detail });
    }
    if is_changed {
        let detail = "filters that change texts, and --repair-utf8, write lines".to_owned();
        return Err(Error::Format { detail });
    }
    Ok(())
}

/// Writes what was found, and counts it.
pub(super) fn write(outputs: &mut Outputs, judged: Judged<'_>) -> Result<DedupReport, Error> {
    let mut copying = Copying::begin(outputs, judged)?;
    for at in 0..copying.judged.sources.all().len() {
        copying.source(at)?;
    }
    let Copying { kept, dropped, document, judged } = copying;
    let Judged { clusterer, mut report, sources, .. } = judged;
    if let Some(source) = sources.all().last().filter(|_| document != clusterer.documents()) {
        return Err(changed(source));
    }
    kept.close(outputs)?;
    outputs.add(dropped)?;
    clusters(outputs, &clusterer, &mut report)?;
    report.equal_ids = clusterer.storage().equal_ids()?;
    report.index_bytes = (clusterer.storage().index_bytes() + clusterer.class_bytes()) as u64;
    Ok(report)
}

fn changed(source: &Source) -> Error {
    Error::Changed(source.name.clone().into())
}

/// Copies the canonical documents as they stand, and lists the others.
struct Copying<'s> {
    kept: KeptFile,
    dropped: Output,
    /// The next document.
    document: u32,
    judged: Judged<'s>,
}

impl<'s> Copying<'s> {
    fn begin(outputs: &mut Outputs, judged: Judged<'s>) -> Result<Self, Error> {
        let kept = match judged.format {
            KeptFormat::Lines => KeptFile::Lines(Box::new(outputs.create(KEPT)?)),
            KeptFormat::Parquet => KeptFile::table(outputs.create(KEPT_TABLE)?),
        };
        Ok(Self { kept, dropped: outputs.create(DUPLICATES)?, document: 0, judged })
    }

    fn source(&mut self, at: usize) -> Result<(), Error> {
        let source = &self.judged.sources.all()[at];
        if is_made(source.kind, self.judged.is_changed) {
            return self.made(at);
        }
        match source.kind {
            Kind::Lines => self.lines(at, source),
            #[cfg(feature = "parquet")]
            Kind::Parquet => self.rows(at, source),
            _ => Ok(()),
        }
    }

    /// The number of the record of the next document, if that is of a source, with its identifier.
    fn next(&self, at: usize) -> Result<Option<NextDocument>, Error> {
        if self.document == self.judged.clusterer.documents() {
            return Ok(None);
        }
        let known = self.judged.clusterer.storage().line(self.document)?;
        let is_here = known.file as usize == at;
        Ok(is_here.then_some(NextDocument { number: known.line, id: known.id }))
    }

    /// Settles the next document: lists it, or tells that it is to be kept.
    fn settle(&mut self, id: &str) -> Result<bool, Error> {
        let clusterer = &self.judged.clusterer;
        let fate = clusterer.fate(self.document)?;
        if fate.key != Key::First {
            *self.judged.report.duplicates.entry(fate.key.as_str()).or_default() += 1;
        }
        let cluster = clusterer.cluster(fate.cluster)?;
        let is_kept = cluster.canonical == self.document;
        if !is_kept {
            let of = clusterer.storage().line(cluster.canonical)?;
            line(&mut self.dropped, &DuplicateLine::of(id, &of.id, fate))?;
        }
        self.document += 1;
        Ok(is_kept)
    }

    fn made(&mut self, at: usize) -> Result<(), Error> {
        while let Some(next) = self.next(at)? {
            let is_kept = self.settle(&next.id)?;
            let made = self.judged.made.as_mut().map(SpoolReader::next).transpose()?;
            if let Some(line) = made.filter(|_| is_kept) {
                self.kept.line(line)?;
            }
        }
        Ok(())
    }

    fn lines(&mut self, at: usize, source: &Source) -> Result<(), Error> {
        let failed = |error| Error::Read { file: source.name.clone(), source: error };
        let mut lines = Lines::open_counted(&source.location, Arc::default()).map_err(failed)?;
        let (mut bytes, mut number, mut next) = (Vec::new(), 0, self.next(at)?);
        let mut records = 0;
        loop {
            let is_line = match lines.read(&mut bytes)? {
                LineRead::Line => true,
                LineRead::Fault(fault) if fault.reason != "damaged" => false,
                LineRead::Fault(_) => {
                    records += 1;
                    break;
                }
                LineRead::End => break,
            };
            number += 1;
            records += 1;
            let Some(known) = next.take_if(|next| is_line && next.number == number) else {
                continue;
            };
            if self.settle(&known.id)? {
                let is_same = std::str::from_utf8(&bytes).is_ok_and(|line| {
                    Record::read(line, &source.fields)
                        .is_ok_and(|record| record.id(number) == known.id)
                });
                if !is_same {
                    return Err(changed(source));
                }
                self.kept.line(&bytes)?;
            }
            next = self.next(at)?;
        }
        if next.is_some() || records != self.judged.records[at] {
            return Err(changed(source));
        }
        Ok(())
    }

    #[cfg(feature = "parquet")]
    fn rows(&mut self, at: usize, source: &Source) -> Result<(), Error> {
        use super::input::parquet::{Table, TableError, TableFault};
        let fault = |fault: TableFault| match fault {
            TableFault::Io(error) => Error::Read { file: source.name.clone(), source: error },
            TableFault::Damage(_) => changed(source),
        };
        let Some(mut next) = self.next(at)? else { return Ok(()) };
        let plain = self.judged.format == KeptFormat::Lines;
        let table = Table::open(&source.location, Arc::default(), plain).map_err(fault)?;
        self.kept.begin(&source.name, table.schema())?;
        let mut first = 1;
        for (group, rows) in table.groups().into_iter().enumerate() {
            let end = first + rows as u64;
            let (mut chosen, mut more) = (Vec::new(), true);
            while more && next.number < end {
                if self.settle(&next.id)? {
                    chosen.push((next.number - first) as usize);
                }
                match self.next(at)? {
                    Some(found) => next = found,
                    None => more = false,
                }
            }
            if !chosen.is_empty() {
                let kept = &mut self.kept;
                let copied =
                    table.selected(group, &chosen, source.fields.all(), |batch| kept.rows(batch));
                copied.map_err(|error| match error {
                    TableError::Table(table) => fault(table),
                    TableError::Error(error) => error,
                })?;
            }
            first = end;
            if !more {
                return Ok(());
            }
        }
        Err(changed(source))
    }
}

/// A document of a source.
struct NextDocument {
    number: u64,
    id: String,
}

impl<'a> DuplicateLine<'a> {
    fn of(id: &'a str, duplicate_of: &'a str, fate: Membership) -> Self {
        let Membership { cluster, key, distance, similarity } = fate;
        let similarity = (f64::from(similarity) * 1000.0).round() / 1000.0;
        Self { id, duplicate_of, cluster, key: key.as_str(), distance, similarity }
    }
}

/// Lists the members of each cluster of two or more.
fn clusters(
    outputs: &mut Outputs,
    clusterer: &Clusterer<RunStorage>,
    report: &mut DedupReport,
) -> Result<(), Error> {
    let mut file = outputs.create(CLUSTERS)?;
    for cluster in 0..clusterer.clusters() {
        let Cluster { first, canonical, copies } = clusterer.cluster(cluster)?;
        report.kept += u64::from(copies > 0);
        report.largest_cluster = report.largest_cluster.max(u64::from(copies));
        if copies < 2 {
            continue;
        }
        report.clusters += 1;
        report.takeovers += u64::from(canonical != first);
        let id = |number| Ok::<_, Error>(clusterer.storage().line(number)?.id);
        let mut members = clusterer.members(cluster)?;
        members.sort_unstable();
        let members = members.into_iter().map(id).collect::<Result<Vec<_>, _>>()?;
        let (canonical, size) = (id(canonical)?, members.len());
        line(&mut file, &ClusterLine { cluster, canonical, size, members })?;
    }
    Ok(outputs.add(file)?)
}

pub(super) fn line(file: &mut Output, value: &impl Serialize) -> Result<(), Error> {
    let line = serde_json::to_vec(value).expect("it has a form in JSON");
    bytes(file, &line)
}

pub(super) fn bytes(file: &mut Output, line: &[u8]) -> Result<(), Error> {
    let written = file.write_all(line).and_then(|()| file.write_all(b"\n"));
    written.map_err(Error::io(file.path()))
}
