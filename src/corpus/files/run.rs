//! The run: read and fingerprint on all cores, judge in the order of the input.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use crate::base::outputs::{MANIFEST, Output, Outputs};
use crate::neardup::{self, Clusterer, Config, Storage as _, Verdict};
use crate::text::features::{ArticleField, ArticleKeys, Fingerprinter, Input};

use super::lines::{Lines, spool};
use super::storage::RunStorage;
use super::work::LineSource;
use super::write::{CLUSTERS, DUPLICATES, KEPT, REJECTED, RejectedLine, line, write};
use super::{DedupReport, Error, Record, Resources, values_of};

/// Bytes of lines that a thread fingerprints at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Lines that a thread fingerprints at a time at most.
const CHUNK_LINES: usize = 256;

/// Where standard input is kept until the end of a run.
const SPOOL: &str = "input.zst";

/// Folder of what is remembered until the end of a run.
const WORK: &str = "work";

/// What was found, in numbers.
const REPORT: &str = "report.json";

/// All files that a run leaves behind.
const OUTPUTS: [&str; 6] = [KEPT, DUPLICATES, CLUSTERS, REJECTED, REPORT, MANIFEST];

/// All that the first reading found.
pub(super) struct FirstPass {
    pub clusterer: Clusterer<RunStorage>,
    pub report: DedupReport,
    duplicates: u64,
    rejected: Output,
}

/// Lines of one file, in order.
struct Chunk {
    file: usize,
    /// Number of the first line, from 1.
    first: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A document ready to be judged.
struct FingerprintedLine {
    id: String,
    keys: ArticleKeys,
    popularity: u64,
}

/// A chunk that was fingerprinted.
struct FingerprintedChunk {
    file: usize,
    first: u64,
    bytes: u64,
    repaired: u64,
    /// Or what is wrong with the line.
    documents: Vec<Result<FingerprintedLine, String>>,
}

/// Finds the duplicates among the documents of `inputs` (`-` is standard input) and writes
/// `kept.jsonl`, `duplicates.jsonl`, `clusters.jsonl`, `rejected.jsonl` and `report.json` into the
/// folder `out`. `progress` is told now and then how many documents were judged and how many of
/// them are duplicates.
///
/// # Errors
///
/// Only where a file or a setting is at fault; a bad line is written to `rejected.jsonl`.
pub fn run(
    inputs: &[PathBuf],
    out: &Path,
    config: &Config,
    resources: Resources,
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
    let mut judged = judge(&files, &mut outputs, config, resources, progress)?;
    judged.report.moved = judged.clusterer.settle()? as u64;
    let mut report = write(&files, &mut outputs, judged)?;
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
    outputs: &mut Outputs,
    config: &Config,
    resources: Resources,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<FirstPass, Error> {
    let fingerprinter =
        Fingerprinter::new(config.features.clone()).map_err(neardup::Error::from)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if resources.threads == 0 { cores } else { resources.threads };
    let resources = Resources { threads, ..resources };
    let storage = RunStorage::new(outputs.folder(WORK), config, resources)?;
    let clusterer = Clusterer::new(storage, config.clone())?;
    let report = DedupReport { features: fingerprinter.name(), ..DedupReport::default() };
    let rejected = outputs.create(REJECTED)?;
    let mut judged = FirstPass { clusterer, report, duplicates: 0, rejected };
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
        let together = judged.clusterer.storage().together();
        let mut chunks = backs.iter().cycle().map_while(|back| back.recv().ok());
        loop {
            let (mut some, mut documents) = (Vec::new(), 0);
            while documents < together
                && let Some(chunk) = chunks.next()
            {
                documents += chunk.documents.len();
                some.push(chunk);
            }
            if some.is_empty() {
                break;
            }
            judged.take(files, some)?;
            progress(judged.report.documents, judged.duplicates);
        }
        reader.join().expect("the reader does not panic")
    })?;
    Ok(judged)
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
                let id = record.id(chunk.first + at as u64);
                let values = values_of(&line, &names);
                let fields: Vec<ArticleField<'_>> = (names.iter().zip(&values))
                    .map(|(name, value)| ArticleField { name, value })
                    .collect();
                let Record { title, text, language, url, .. } = &record;
                let keys = neardup::article_keys(
                    fingerprinter,
                    &Input { title, text, language, url, fields: &fields },
                );
                FingerprintedLine { id, keys, popularity: record.popularity }
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

/// A line as text. Whole lines are checked at once, which is faster than looking for the fault.
fn text_of(line: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// Documents are judged in the order of the input.
impl FirstPass {
    fn take(&mut self, files: &[PathBuf], chunks: Vec<FingerprintedChunk>) -> Result<(), Error> {
        if self.clusterer.looks_up() {
            let documents = chunks.iter().flat_map(|chunk| &chunk.documents).flatten();
            let coming: Vec<&ArticleKeys> = documents.map(|read| &read.keys).collect();
            self.clusterer.storage_mut().look_ahead(&coming)?;
        }
        chunks.into_iter().try_for_each(|chunk| self.take_chunk(files, chunk))
    }

    fn take_chunk(&mut self, files: &[PathBuf], chunk: FingerprintedChunk) -> Result<(), Error> {
        self.report.bytes += chunk.bytes;
        self.report.repaired += chunk.repaired;
        for (at, document) in chunk.documents.into_iter().enumerate() {
            let number = chunk.first + at as u64;
            match document {
                Ok(document) => self.judge(chunk.file, number, document)?,
                Err(detail) => {
                    self.report.rejected += 1;
                    let file = files[chunk.file].display().to_string();
                    let row = RejectedLine { file, line: number, error: &detail };
                    line(&mut self.rejected, &row)?;
                }
            }
        }
        Ok(())
    }

    fn judge(&mut self, file: usize, line: u64, read: FingerprintedLine) -> Result<(), Error> {
        if self.report.documents >= u64::from(u32::MAX - 1) {
            return Err(Error::TooMany);
        }
        let FingerprintedLine { id, keys, popularity } = read;
        self.report.documents += 1;
        self.report.empty += u64::from(keys.text.words == 0);
        let storage = self.clusterer.storage_mut();
        storage.coming(LineSource { file: file as u32, line, id })?;
        let verdict = self.clusterer.judge(keys, popularity)?;
        self.duplicates += u64::from(verdict != Verdict::New);
        Ok(())
    }

    /// Ends the list of lines that are no documents. Returns the rest.
    pub(super) fn close(
        self,
        outputs: &mut Outputs,
    ) -> Result<(Clusterer<RunStorage>, DedupReport), Error> {
        outputs.add(self.rejected)?;
        Ok((self.clusterer, self.report))
    }
}
