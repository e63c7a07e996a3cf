//! The files that a run writes.

use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use crate::base::outputs::{Output, Outputs};
use crate::neardup::{Cluster, Clusterer, Key, Membership};

use super::lines::Lines;
use super::run::FirstPass;
use super::storage::RunStorage;
use super::{DedupReport, Error, Record};

/// The lines that are kept.
pub(super) const KEPT: &str = "kept.jsonl";

/// The others, each with the one that is kept in its place.
pub(super) const DUPLICATES: &str = "duplicates.jsonl";

/// The members of each cluster of two or more.
pub(super) const CLUSTERS: &str = "clusters.jsonl";

/// Lines that are no documents.
pub(super) const REJECTED: &str = "rejected.jsonl";

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

/// A line of `rejected.jsonl`.
#[derive(Serialize)]
pub(super) struct RejectedLine<'a> {
    pub file: String,
    pub line: u64,
    pub error: &'a str,
}

/// Writes what was found, and counts it.
pub(super) fn write(
    files: &[PathBuf],
    outputs: &mut Outputs,
    judged: FirstPass,
) -> Result<DedupReport, Error> {
    let (clusterer, mut report) = judged.close(outputs)?;
    documents(files, outputs, &clusterer, &mut report)?;
    clusters(outputs, &clusterer, &mut report)?;
    report.equal_ids = clusterer.storage().equal_ids()?;
    report.index_bytes = (clusterer.storage().index_bytes() + clusterer.class_bytes()) as u64;
    Ok(report)
}

/// Copies the lines of the canonical documents as they stand, and lists the others.
fn documents(
    files: &[PathBuf],
    outputs: &mut Outputs,
    clusterer: &Clusterer<RunStorage>,
    report: &mut DedupReport,
) -> Result<(), Error> {
    let (mut kept, mut dropped) = (outputs.create(KEPT)?, outputs.create(DUPLICATES)?);
    let changed = |path: &PathBuf| Error::Changed(path.clone());
    let (mut document, mut lines_read) = (0, 0);
    let mut line_bytes = Vec::new();
    for (at, path) in files.iter().enumerate() {
        let mut lines = Lines::open(path)?;
        let mut number = 0;
        while lines.next(&mut line_bytes)? {
            number += 1;
            lines_read += 1;
            if document == clusterer.documents() {
                continue;
            }
            let known = clusterer.storage().line(document)?;
            if (known.file as usize, known.line) != (at, number) {
                continue;
            }
            let fate = clusterer.fate(document)?;
            if fate.key != Key::First {
                *report.duplicates.entry(fate.key.as_str()).or_default() += 1;
            }
            let cluster = clusterer.cluster(fate.cluster)?;
            if cluster.canonical == document {
                let is_same = Record::parse(&String::from_utf8_lossy(&line_bytes))
                    .is_ok_and(|record| *record.id(number) == known.id);
                if !is_same {
                    return Err(changed(path));
                }
                bytes(&mut kept, &line_bytes)?;
            } else {
                let of = clusterer.storage().line(cluster.canonical)?;
                line(&mut dropped, &DuplicateLine::of(&known.id, &of.id, fate))?;
            }
            document += 1;
        }
    }
    let is_whole =
        document == clusterer.documents() && lines_read == report.documents + report.rejected;
    if let Some(path) = files.last().filter(|_| !is_whole) {
        return Err(changed(path));
    }
    outputs.add(kept)?;
    Ok(outputs.add(dropped)?)
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

fn bytes(file: &mut Output, line: &[u8]) -> Result<(), Error> {
    let written = file.write_all(line).and_then(|()| file.write_all(b"\n"));
    written.map_err(Error::io(file.path()))
}
