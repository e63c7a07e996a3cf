//! The files that a run writes.

use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use crate::base::outputs::{Output, Outputs};
use crate::neardup::Membership;

use super::lines::Lines;
use super::run::FirstPass;
use super::{Error, Record};

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
struct ClusterLine<'a> {
    cluster: u32,
    canonical: &'a str,
    size: usize,
    members: Vec<&'a str>,
}

/// A line of `rejected.jsonl`.
#[derive(Serialize)]
struct RejectedLine<'a> {
    file: String,
    line: u64,
    error: &'a str,
}

pub(super) fn write(
    files: &[PathBuf],
    outputs: &mut Outputs,
    judged: &FirstPass,
) -> Result<(), Error> {
    let id = |number: u32| &*judged.ids[number as usize];
    kept(files, outputs, judged)?;
    let mut file = outputs.create(DUPLICATES)?;
    for number in 0..judged.ids.len() as u32 {
        let Membership { cluster, key, distance, similarity } = judged.dedup.fate(number);
        let canonical = judged.clusters[cluster as usize].canonical;
        if canonical == number {
            continue;
        }
        let (id, duplicate_of) = (id(number), id(canonical));
        let similarity = (f64::from(similarity) * 1000.0).round() / 1000.0;
        let key = key.as_str();
        line(&mut file, &DuplicateLine { id, duplicate_of, cluster, key, distance, similarity })?;
    }
    outputs.add(file)?;
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); judged.clusters.len()];
    for number in 0..judged.ids.len() as u32 {
        let cluster = judged.dedup.fate(number).cluster as usize;
        if judged.clusters[cluster].copies > 1 {
            members[cluster].push(number);
        }
    }
    let mut file = outputs.create(CLUSTERS)?;
    for (cluster, members) in members.iter().enumerate().filter(|(_, all)| !all.is_empty()) {
        let canonical = id(judged.clusters[cluster].canonical);
        let members: Vec<&str> = members.iter().map(|number| id(*number)).collect();
        let (cluster, size) = (cluster as u32, members.len());
        line(&mut file, &ClusterLine { cluster, canonical, size, members })?;
    }
    outputs.add(file)?;
    let mut file = outputs.create(REJECTED)?;
    for bad in &judged.rejected {
        let path = files[bad.file].display().to_string();
        line(&mut file, &RejectedLine { file: path, line: bad.line, error: &bad.detail })?;
    }
    outputs.add(file)?;
    Ok(())
}

/// Copies the lines of the canonical documents as they stand.
fn kept(files: &[PathBuf], outputs: &mut Outputs, judged: &FirstPass) -> Result<(), Error> {
    let mut file = outputs.create(KEPT)?;
    let mut rejected = judged.rejected.iter().peekable();
    let mut documents = 0..judged.ids.len() as u32;
    let mut line = Vec::new();
    for (at, path) in files.iter().enumerate() {
        let mut lines = Lines::open(path)?;
        let mut number = 0;
        while lines.next(&mut line)? {
            number += 1;
            if rejected.next_if(|bad| bad.file == at && bad.line == number).is_some() {
                continue;
            }
            let document = documents.next().ok_or_else(|| Error::Changed(path.clone()))?;
            let cluster = judged.dedup.fate(document).cluster as usize;
            if judged.clusters[cluster].canonical == document {
                let same = Record::parse(&String::from_utf8_lossy(&line))
                    .is_ok_and(|record| *record.id(number) == *judged.ids[document as usize]);
                if !same {
                    return Err(Error::Changed(path.clone()));
                }
                bytes(&mut file, &line)?;
            }
        }
    }
    if let (Some(_), Some(path)) = (documents.next(), files.last()) {
        return Err(Error::Changed(path.clone()));
    }
    Ok(outputs.add(file)?)
}

fn line(file: &mut Output, value: &impl Serialize) -> Result<(), Error> {
    let line = serde_json::to_vec(value).expect("it has a form in JSON");
    bytes(file, &line)
}

fn bytes(file: &mut Output, line: &[u8]) -> Result<(), Error> {
    let written = file.write_all(line).and_then(|()| file.write_all(b"\n"));
    written.map_err(Error::io(file.path()))
}
