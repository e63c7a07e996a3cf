//! The run: read and fingerprint on all cores, judge in the order of the input.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::outputs::{MANIFEST, Outputs};
use crate::neardup::Key;
use crate::neardup::{self, Cluster, Config, Deduplicator, Verdict};
use crate::text::features::{ArticleField, ArticleKeys, Fingerprinter, Input};

use super::lines::{Lines, spool};
use super::write::{CLUSTERS, DUPLICATES, KEPT, REJECTED, write};
use super::{DedupReport, Error, Record, values_of};

/// Bytes of lines that a thread fingerprints at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Lines that a thread fingerprints at a time at most.
const CHUNK_LINES: usize = 256;

/// Where standard input is kept until the end of a run.
const SPOOL: &str = "input.zst";

/// What was found, in numbers.
const REPORT: &str = "report.json";

/// All files that a run leaves behind.
const OUTPUTS: [&str; 6] = [KEPT, DUPLICATES, CLUSTERS, REJECTED, REPORT, MANIFEST];

/// A line that is no document.
#[derive(Debug)]
pub(super) struct Rejected {
    pub file: usize,
    pub line: u64,
    pub detail: String,
}

/// All that the first reading found.
pub(super) struct FirstPass {
    pub dedup: Deduplicator,
    pub clusters: Vec<Cluster>,
    pub ids: Vec<Box<str>>,
    pub rejected: Vec<Rejected>,
}

/// Lines of one file, in order.
struct Chunk {
    file: usize,
    /// Number of the first line, from 1.
    first: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A document ready to be judged, or what is wrong with its line.
type ReadDocument = Result<(Box<str>, ArticleKeys, u64), String>;

/// A chunk that was fingerprinted.
struct FingerprintedChunk {
    file: usize,
    first: u64,
    bytes: u64,
    repaired: u64,
    documents: Vec<ReadDocument>,
}

/// Finds the duplicates among the documents of `inputs` (`-` is standard input) and writes
/// `kept.jsonl`, `duplicates.jsonl`, `clusters.jsonl`, `rejected.jsonl` and `report.json` into the
/// folder `out`. `threads` fingerprint; 0 is one for each core. `progress` is told now and then how
/// many documents were judged and how many of them are duplicates.
///
/// # Errors
///
/// Only where a file or a setting is at fault; a bad line is written to `rejected.jsonl`.
pub fn run(
    inputs: &[PathBuf],
    out: &Path,
    config: &Config,
    threads: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<DedupReport, Error> {
    let clock = Instant::now();
    let mut outputs = Outputs::begin(out)?;
    refuse_own_files(inputs, out)?;
    let mut files = inputs.to_vec();
    let mut piped = files.iter_mut().filter(|file| !file.is_file() && !file.is_dir());
    if let Some(file) = piped.next() {
        if let Some(second) = piped.next() {
            return Err(Error::TwoPipes(second.clone()));
        }
        let spooled = outputs.temporary(SPOOL);
        spool(file, &spooled)?;
        *file = spooled;
    }
    let (judged, mut report) = judge(&files, config, threads, progress)?;
    write(&files, &mut outputs, &judged)?;
    report.seconds = clock.elapsed().as_secs_f64();
    report.documents_per_second = report.documents as f64 / report.seconds.max(1e-9);
    let text = serde_json::to_string_pretty(&report).expect("a report has a form in JSON");
    let mut file = outputs.create(REPORT)?;
    file.write_all((text + "\n").as_bytes()).map_err(Error::io(file.path()))?;
    outputs.add(file)?;
    outputs.publish()?;
    Ok(report)
}

/// Refuses an input that the run itself would write: reading it again would be too late.
fn refuse_own_files(inputs: &[PathBuf], out: &Path) -> Result<(), Error> {
    let partial = OUTPUTS.map(|name| format!("{name}.partial"));
    let spooled = format!("{SPOOL}.partial");
    let names = partial.iter().map(String::as_str).chain([spooled.as_str()]);
    let names = OUTPUTS.into_iter().chain(names);
    let ours: Vec<PathBuf> = names.filter_map(|name| out.join(name).canonicalize().ok()).collect();
    let overwritten = |file: &&PathBuf| file.canonicalize().is_ok_and(|file| ours.contains(&file));
    inputs.iter().find(overwritten).map_or(Ok(()), |file| Err(Error::Overwrites(file.clone())))
}

fn judge(
    files: &[PathBuf],
    config: &Config,
    threads: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(FirstPass, DedupReport), Error> {
    let dedup = Deduplicator::new(config.clone())?;
    let fingerprinter = dedup.fingerprinter().clone();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores } else { threads };
    let (judged, report) = (FirstPass::new(dedup), DedupReport::default());
    let mut committer = InputJudge { judged, report, seen: HashSet::new(), duplicates: 0 };
    committer.report.features = fingerprinter.name();
    thread::scope(|scope| {
        // Each thread has its own pair of channels and gets every n-th chunk, so that the chunks
        // are taken back in the order in which they were read.
        let mut hands = Vec::new();
        let mut backs = Vec::new();
        for _ in 0..threads {
            let (hand, chunks) = sync_channel::<Chunk>(2);
            let (done, back) = sync_channel::<FingerprintedChunk>(2);
            let fingerprinter = &fingerprinter;
            scope.spawn(move || fingerprint(fingerprinter, &chunks, &done));
            hands.push(hand);
            backs.push(back);
        }
        let reader = scope.spawn(move || read(files, &hands));
        'all: loop {
            for back in &backs {
                let Ok(chunk) = back.recv() else { break 'all };
                committer.take(chunk)?;
                progress(committer.report.documents, committer.duplicates);
            }
        }
        reader.join().expect("the reader does not panic")
    })?;
    committer.close();
    Ok((committer.judged, committer.report))
}

fn read(files: &[PathBuf], hands: &[SyncSender<Chunk>]) -> Result<(), Error> {
    let mut turns = hands.iter().cycle();
    let mut line = Vec::new();
    for (file, path) in files.iter().enumerate() {
        let mut lines = Lines::open(path)?;
        let mut number = 0;
        let mut more = true;
        while more {
            let first = number + 1;
            let mut chunk = Chunk { file, first, bytes: Vec::new(), ends: Vec::new() };
            while chunk.bytes.len() < CHUNK_BYTES && chunk.ends.len() < CHUNK_LINES {
                more = lines.next(&mut line)?;
                if !more {
                    break;
                }
                number += 1;
                chunk.bytes.extend_from_slice(&line);
                chunk.ends.push(chunk.bytes.len());
            }
            if chunk.ends.is_empty() {
                break;
            }
            let hand = turns.next().expect("there is at least one thread");
            if hand.send(chunk).is_err() {
                // The judge has given up; it knows why.
                return Ok(());
            }
        }
    }
    Ok(())
}

fn fingerprint(
    fingerprinter: &Fingerprinter,
    chunks: &Receiver<Chunk>,
    done: &SyncSender<FingerprintedChunk>,
) {
    let names: Vec<&str> = fingerprinter.fields().collect();
    while let Ok(chunk) = chunks.recv() {
        let mut documents = Vec::with_capacity(chunk.ends.len());
        let mut repaired = 0;
        let mut start = 0;
        for (at, end) in chunk.ends.iter().enumerate() {
            let line = text_of(&chunk.bytes[start..*end]);
            repaired += u64::from(matches!(line, Cow::Owned(_)));
            documents.push(Record::parse(&line).map(|record| {
                let id = record.id(chunk.first + at as u64).into_boxed_str();
                let values = values_of(&line, &names);
                let fields: Vec<ArticleField<'_>> = (names.iter().zip(&values))
                    .map(|(name, value)| ArticleField { name, value })
                    .collect();
                let Record { title, text, language, url, .. } = &record;
                let keys = neardup::article_keys(
                    fingerprinter,
                    &Input { title, text, language, url, fields: &fields },
                );
                (id, keys, record.popularity)
            }));
            start = *end;
        }
        let bytes = chunk.bytes.len() as u64;
        let answer =
            FingerprintedChunk { file: chunk.file, first: chunk.first, bytes, repaired, documents };
        if done.send(answer).is_err() {
            return;
        }
    }
}

impl FirstPass {
    fn new(dedup: Deduplicator) -> Self {
        Self { dedup, clusters: Vec::new(), ids: Vec::new(), rejected: Vec::new() }
    }
}

/// A line as text. Whole lines are checked at once, which is faster than looking for the fault.
fn text_of(line: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// Judges the documents in the order of the input.
struct InputJudge {
    judged: FirstPass,
    report: DedupReport,
    /// Hashes of all identifiers.
    seen: HashSet<u64>,
    duplicates: u64,
}

impl InputJudge {
    fn take(&mut self, chunk: FingerprintedChunk) -> Result<(), Error> {
        self.report.bytes += chunk.bytes;
        self.report.repaired += chunk.repaired;
        for (at, document) in chunk.documents.into_iter().enumerate() {
            let line = chunk.first + at as u64;
            match document {
                Ok((id, keys, popularity)) => self.judge(id, keys, popularity)?,
                Err(detail) => {
                    self.judged.rejected.push(Rejected { file: chunk.file, line, detail });
                }
            }
        }
        Ok(())
    }

    fn judge(&mut self, id: Box<str>, keys: ArticleKeys, popularity: u64) -> Result<(), Error> {
        if self.report.documents >= u64::from(u32::MAX - 1) {
            return Err(Error::TooMany);
        }
        self.report.documents += 1;
        self.report.empty += u64::from(keys.text.words == 0);
        self.report.equal_ids += u64::from(!self.seen.insert(xxh3_64(id.as_bytes())));
        self.judged.ids.push(id);
        let verdict = self.judged.dedup.judge_keys(keys, popularity);
        self.duplicates += u64::from(verdict != Verdict::New);
        Ok(())
    }

    fn close(&mut self) {
        let Self { judged, report, .. } = self;
        report.moved = judged.dedup.settle() as u64;
        judged.clusters = judged.dedup.clusters().collect();
        let sizes = || judged.clusters.iter().map(|cluster| u64::from(cluster.copies));
        report.kept = sizes().filter(|size| *size > 0).count() as u64;
        report.clusters = sizes().filter(|size| *size > 1).count() as u64;
        report.largest_cluster = sizes().max().unwrap_or(0);
        report.takeovers =
            judged.clusters.iter().filter(|cluster| cluster.canonical != cluster.first).count()
                as u64;
        report.rejected = judged.rejected.len() as u64;
        report.index_bytes = judged.dedup.index_bytes() as u64;
        for number in 0..judged.ids.len() as u32 {
            let key = judged.dedup.fate(number).key;
            if key != Key::First {
                *report.duplicates.entry(key.as_str()).or_default() += 1;
            }
        }
    }
}
