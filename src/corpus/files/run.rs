//! The run: read and fingerprint on all cores, judge in the order of the input.

use std::fs;
use std::io::{Read as _, Write as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use xxhash_rust::xxh3::Xxh3;

use crate::base::outputs::{LOCK, MANIFEST, Output, Outputs};
use crate::base::remote::Location;
use crate::neardup::{self, Clusterer, Config, Storage as _, Verdict};
use crate::text::features::{ArticleField, ArticleKeys, Fingerprinter, Input};
use crate::text::quality::Filters;

use super::input::{
    CHUNK_BYTES, Chunk, Columns, DocumentReader, Fault, InputOptions, Kind, Source, Sources,
};
use super::journal::{FingerprintedLine, JOURNAL, Journal, Step};
use super::looker::{FoundAhead, Looker};
use super::pipeline::{Shares, ordered, threads};
use super::prepare::{Fate, FilteredLine, Passed, Prepared, RejectedLine, count, prepare};
use super::spool::{Spool, SpoolReader, named};
use super::storage::RunStorage;
use super::together::{Most, gather};
use super::work::LineSource;
use super::write::{
    CLUSTERS, DUPLICATES, FILTERED, KEPT, KEPT_TABLE, REJECTED, check_format, line, write,
};
use super::{DedupReport, Error, KeptFormat, Options, Progress, Resources};

/// Where standard input is kept until the end of a run.
const INPUT: &str = "input.zst";

/// Lines that were made of documents, until it is known which are kept.
const MADE: &str = "documents.zst";

/// Folder of what is remembered until the end of a run.
const WORK: &str = "work";

/// Of the memory of a run, one part of so many is that of chunks that wait to be judged.
const MADE_PART: usize = 24;

/// What such a chunk takes about.
const MADE_BYTES: usize = 2 * CHUNK_BYTES;

/// Chunks that wait for each thread at most.
const MADE_MAX: usize = 64;

/// Bytes at the start of an input by which it is known again.
const START_BYTES: u64 = 64 << 10;

/// What was found, in numbers.
const REPORT: &str = "report.json";

/// All files that a run leaves behind.
const OUTPUTS: [&str; 8] =
    [KEPT, KEPT_TABLE, DUPLICATES, CLUSTERS, REJECTED, FILTERED, REPORT, MANIFEST];

/// All that the first reading found.
struct FirstPass<'s> {
    clusterer: Clusterer<RunStorage>,
    report: DedupReport,
    sources: &'s Sources,
    duplicates: u64,
    rejected: Output,
    /// The first record that was rejected, with its file and number.
    first_fault: Option<String>,
    filtered: Option<Output>,
    made: Spool,
    /// Records of each source.
    records: Vec<u64>,
    journal: Journal,
    memory: usize,
}

/// What is left of it when its lists are written.
pub(super) struct Judged<'s> {
    pub(super) clusterer: Clusterer<RunStorage>,
    pub(super) report: DedupReport,
    pub(super) sources: &'s Sources,
    /// The lines of documents that are not kept as they were read.
    pub(super) made: Option<SpoolReader>,
    /// Lines are kept in another form than that in which they were read.
    pub(super) is_changed: bool,
    pub(super) format: KeptFormat,
    /// Records of each source.
    pub(super) records: Vec<u64>,
}

/// Tells whether the lines of a source are made, and not copied.
pub(super) fn is_made(kind: Kind, is_changed: bool) -> bool {
    is_changed || matches!(kind, Kind::Warc | Kind::Page | Kind::Text)
}

/// Finds the duplicates among the documents of `inputs` (`-` is standard input) and writes
/// `kept.jsonl` (or `kept.parquet`), `duplicates.jsonl`, `clusters.jsonl`, `rejected.jsonl` and
/// `report.json` into the folder `out`, and `filtered.jsonl` if there are filters. `progress` is
/// told now and then how far it has come.
///
/// A run that was killed, or failed for something that may go away, such as a full disk, is gone on
/// with by the same call: what was read is not read again, and the result is that of a run that was
/// not interrupted.
///
/// # Errors
///
/// Only where a file or a setting is at fault, or nothing can be used; a bad line is written to
/// `rejected.jsonl`.
pub fn run(
    inputs: &[PathBuf],
    out: &Path,
    config: &Config,
    options: &Options,
    progress: &mut dyn FnMut(&Progress),
) -> Result<DedupReport, Error> {
    let mut outputs = Outputs::begin(out)?;
    let journal = outputs.folder(JOURNAL);
    let done = run_into(&mut outputs, inputs, out, Settings { config, options }, progress)
        .and_then(|report| outputs.publish().map(|()| report).map_err(Error::from));
    if done.as_ref().err().is_none_or(|error| !error.may_pass()) {
        Journal::remove(&journal);
    }
    done
}

/// How a run judges and reads.
#[derive(Clone, Copy)]
struct Settings<'s> {
    config: &'s Config,
    options: &'s Options,
}

/// Does all but giving the files their names.
fn run_into(
    outputs: &mut Outputs,
    inputs: &[PathBuf],
    out: &Path,
    settings: Settings<'_>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<DedupReport, Error> {
    let (clock, Settings { config, options }) = (Instant::now(), settings);
    refuse_own_files(inputs.iter().map(PathBuf::as_path), out)?;
    let filters = Filters::new(options.filters.clone())?;
    let fingerprinter =
        Fingerprinter::new(config.features.clone()).map_err(neardup::Error::from)?;
    let named = named(inputs, &outputs.temporary(INPUT))?;
    let is_changed = filters.changes_texts() || options.input.repair_utf8;
    let columns = if is_changed { Columns::All } else { Columns::Needed };
    let input = InputOptions { columns, ..options.input.clone() };
    let extra = fingerprinter.fields().map(str::to_owned).collect();
    let sources = Sources::open(&named, input, extra)?;
    refuse_own_sources(&sources, inputs, out)?;
    check_format(&sources, options.format, is_changed)?;
    let head = head_of(&sources, settings, &fingerprinter.name())?;
    let mut first = FirstPass::begin(&sources, outputs, settings, head, &filters)?;
    first.replay(progress)?;
    let (shares, done) = (shares(options.resources), first.records.clone());
    let from = done.iter().rposition(|records| *records > 0).unwrap_or(0);
    let reader = DocumentReader::new(&sources, fingerprinter.fields().collect());
    let work = |chunk: Chunk| {
        if chunk.last() <= done[chunk.source] {
            return Step::nothing(chunk.source, chunk.first);
        }
        Step::new(prepare(&sources, &reader, &filters, chunk, |passed| {
            Ok(fingerprint(&fingerprinter, passed, is_changed))
        }))
    };
    let mut first = ordered(&sources, from, shares, work, |steps| {
        first.judge(steps, progress)?;
        Ok::<_, Error>(first)
    })?;
    first.refuse_nothing()?;
    first.report.moved = first.clusterer.settle()? as u64;
    first.report.features = fingerprinter.name();
    let judged = first.close(outputs, is_changed, options.format)?;
    let mut report = write(outputs, judged)?;
    report.seconds = clock.elapsed().as_secs_f64();
    report.documents_per_second = report.documents as f64 / report.seconds.max(1e-9);
    let text = serde_json::to_string_pretty(&report).expect("a report has a form in JSON");
    let mut file = outputs.create(REPORT)?;
    file.write_all((text + "\n").as_bytes()).map_err(Error::io(file.path()))?;
    outputs.add(file)?;
    outputs.replace(stale(options.format, &filters));
    Ok(report)
}

/// Documents are judged many at a time, and by one thread: those that come next are fingerprinted
/// meanwhile, as many as fit into a part of the memory.
fn shares(of: Resources) -> Shares {
    let threads = threads(of.threads);
    let room = of.memory / MADE_PART / MADE_BYTES / threads;
    Shares { threads, made: room.clamp(Shares::of(threads).made, MADE_MAX) }
}

/// Files that a run before may have left and that this one does not write.
fn stale(format: KeptFormat, filters: &Filters) -> impl Iterator<Item = String> {
    let other = if format == KeptFormat::Parquet { KEPT } else { KEPT_TABLE };
    let unfiltered = (!filters.is_on()).then_some(FILTERED);
    [Some(other), unfiltered].into_iter().flatten().map(str::to_owned)
}

/// A hash of all that decides what is read, and what becomes of it.
fn head_of(sources: &Sources, settings: Settings<'_>, features: &str) -> Result<u128, Error> {
    let Settings { config, options: Options { input, filters, format, .. } } = settings;
    let mut hash = Xxh3::new();
    let program = env!("CARGO_PKG_VERSION");
    hash.update(
        format!("{program} {features} {config:?} {input:?} {filters:?} {format:?}").as_bytes(),
    );
    if !filters.blocked_words_file.is_empty() {
        let path = Path::new(&filters.blocked_words_file);
        hash.update(&fs::read(path).map_err(Error::io(path))?);
    }
    for source in sources.all() {
        let failed = |error| Error::Read { file: source.name.clone(), source: error };
        let Source { name, id, kind, bytes, .. } = source;
        hash.update(format!("{name} {id} {kind:?} {bytes}").as_bytes());
        let mut start = Vec::new();
        source
            .location
            .open()
            .map_err(failed)?
            .take(START_BYTES)
            .read_to_end(&mut start)
            .map_err(failed)?;
        hash.update(&start);
        // A pipe was copied a moment ago.
        if let Location::Local(path) = &source.location
            && path.display().to_string().starts_with(name.trim_end_matches('/'))
        {
            let changed = fs::metadata(path).and_then(|meta| meta.modified()).map_err(failed)?;
            hash.update(format!("{changed:?}").as_bytes());
        }
    }
    Ok(hash.digest128())
}

/// Refuses an input that the run itself would write: reading it again would be too late.
fn refuse_own_files<'p>(inputs: impl Iterator<Item = &'p Path>, out: &Path) -> Result<(), Error> {
    let partial = [&OUTPUTS[..], &[INPUT, MADE, JOURNAL, LOCK]].concat();
    let partial = partial.into_iter().map(|name| format!("{name}.partial"));
    let names = OUTPUTS.into_iter().map(str::to_owned).chain(partial);
    let ours: Vec<PathBuf> = names.filter_map(|name| out.join(name).canonicalize().ok()).collect();
    let overwritten = |file: &&Path| file.canonicalize().is_ok_and(|file| ours.contains(&file));
    let mut inputs = inputs;
    let found = inputs.find(overwritten);
    found.map_or(Ok(()), |file| Err(Error::Overwrites(file.to_owned())))
}

/// The same of the files in folders. Standard input, which was copied there, is none of them.
fn refuse_own_sources(sources: &Sources, inputs: &[PathBuf], out: &Path) -> Result<(), Error> {
    let local = sources.all().iter().filter_map(|source| match &source.location {
        Location::Local(path) => Some((source, path.as_path())),
        #[cfg(feature = "object-store")]
        Location::Remote(_) => None,
    });
    let named = |name: &str| inputs.iter().any(|input| input.display().to_string() == name);
    refuse_own_files(local.filter(|(source, _)| !named(&source.name)).map(|(_, path)| path), out)
}

fn fingerprint(
    fingerprinter: &Fingerprinter,
    passed: &Passed<'_>,
    is_changed: bool,
) -> FingerprintedLine {
    let Passed { source, number, document, masked, .. } = passed;
    let (text, values) = (passed.text(), &document.values);
    let fields: Vec<ArticleField<'_>> = (fingerprinter.fields().zip(values))
        .map(|(name, value)| ArticleField { name, value })
        .collect();
    let (title, language, url) = (&*document.title, &*document.language, &*document.url);
    let keys = neardup::article_keys(
        fingerprinter,
        &Input { title, text, language, url, fields: &fields },
    );
    let made = is_made(source.kind, is_changed);
    FingerprintedLine {
        id: document.id_or(*number),
        keys,
        popularity: document.popularity.unwrap_or_default(),
        made: made.then(|| document.line_with(source, *number, text)),
        masked: *masked,
        repaired: document.repaired,
    }
}

/// Documents that were read and fingerprinted.
type Chunked = Prepared<FingerprintedLine>;

/// Returns the keys of all documents of some chunks.
fn keys_of(chunks: &[Chunked]) -> Vec<&ArticleKeys> {
    chunks.iter().flat_map(Prepared::documents).map(|read| &read.keys).collect()
}

/// Documents are judged in the order of the input.
impl<'s> FirstPass<'s> {
    fn begin(
        sources: &'s Sources,
        outputs: &mut Outputs,
        settings: Settings<'_>,
        head: u128,
        filters: &Filters,
    ) -> Result<Self, Error> {
        let Settings { config, options } = settings;
        let threads = threads(options.resources.threads);
        let resources = Resources { threads, ..options.resources };
        let storage = RunStorage::new(outputs.folder(WORK), config, resources)?;
        let filtered = if filters.is_on() { Some(outputs.create(FILTERED)?) } else { None };
        Ok(Self {
            clusterer: Clusterer::new(storage, config.clone())?,
            report: DedupReport::default(),
            sources,
            duplicates: 0,
            rejected: outputs.create(REJECTED)?,
            first_fault: None,
            filtered,
            made: Spool::new(outputs.temporary(MADE)),
            records: vec![0; sources.all().len()],
            journal: Journal::new(outputs.folder(JOURNAL), head),
            memory: resources.memory,
        })
    }

    /// Judges again what a run has read that was interrupted.
    fn replay(&mut self, progress: &mut dyn FnMut(&Progress)) -> Result<(), Error> {
        let Some(mut replay) = self.journal.replay() else { return Ok(()) };
        self.judge(&mut replay, progress)?;
        self.journal.go_on(replay.end());
        let records: u64 = self.records.iter().sum();
        tracing::info!(records, "going on behind what was read");
        Ok(())
    }

    fn judge(
        &mut self,
        steps: &mut dyn Iterator<Item = Step>,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<(), Error> {
        let (mut some, mut found) = (self.gather(steps), None);
        while !some.is_empty() {
            let next = self.gather(steps);
            self.take_found(&some, found)?;
            found = self.take_and_look_up(some, &next)?;
            some = next;
            progress(&Progress {
                documents: self.report.documents,
                duplicates: self.duplicates,
                position: self.sources.position(),
            });
        }
        Ok(())
    }

    /// Takes the next chunks, whose documents are looked up together.
    fn gather(&mut self, steps: &mut dyn Iterator<Item = Step>) -> Vec<Chunked> {
        let together = self.clusterer.storage().together();
        let most = Most::of(together, self.memory);
        let mut chunks = steps.map(|step| {
            self.journal.push(&step);
            step.chunk
        });
        gather(&mut chunks, most, |line| line.made.as_ref().map_or(0, String::len))
    }

    /// Takes what was found for the documents of the next chunks; looks them up if they came before
    /// that was worth a thread.
    fn take_found(&mut self, next: &[Chunked], mut found: Option<FoundAhead>) -> Result<(), Error> {
        if found.is_none() {
            found = self.looker()?.map(|looker| looker.look_up(&keys_of(next))).transpose()?;
        }
        if let Some(found) = found {
            self.clusterer.storage_mut().take_found(found);
        }
        Ok(())
    }

    fn looker(&mut self) -> Result<Option<Looker>, Error> {
        if self.clusterer.looks_up() { self.clusterer.storage_mut().looker() } else { Ok(None) }
    }

    /// Judges the documents of some chunks, and looks up those of the next meanwhile.
    fn take_and_look_up(
        &mut self,
        some: Vec<Chunked>,
        next: &[Chunked],
    ) -> Result<Option<FoundAhead>, Error> {
        let looker = if next.is_empty() { None } else { self.looker()? };
        thread::scope(|scope| {
            let looks = looker.map(|looker| scope.spawn(move || looker.look_up(&keys_of(next))));
            let taken = some.into_iter().try_for_each(|chunk| self.take_chunk(chunk));
            let found =
                looks.map(|looks| looks.join().unwrap_or_else(|panic| resume_unwind(panic)));
            taken?;
            Ok(found.transpose()?)
        })
    }

    fn take_chunk(&mut self, chunk: Chunked) -> Result<(), Error> {
        if !chunk.fates.is_empty() && chunk.first <= self.records[chunk.source] {
            return Err(Error::Changed(self.sources.all()[chunk.source].name.clone().into()));
        }
        self.report.bytes += chunk.bytes;
        self.records[chunk.source] += chunk.fates.len() as u64;
        for (fate, number) in chunk.fates.into_iter().zip(chunk.first..) {
            match fate {
                Fate::Document(document) => self.document(chunk.source, number, document)?,
                Fate::Rejected(fault) => self.reject(chunk.source, number, &fault)?,
                Fate::Filtered { id, reason } => {
                    self.report.filtered += 1;
                    count(&mut self.report.reasons.filtered, &reason);
                    let source = &self.sources.all()[chunk.source];
                    if let Some(file) = &mut self.filtered {
                        line(file, &FilteredLine::of(source, number, &id, &reason))?;
                    }
                }
                Fate::Skipped(reason) => count(&mut self.report.reasons.skipped, &reason),
            }
        }
        Ok(())
    }

    fn reject(&mut self, source: usize, number: u64, fault: &Fault) -> Result<(), Error> {
        let source = &self.sources.all()[source];
        self.report.rejected += 1;
        count(&mut self.report.reasons.rejected, &fault.reason);
        let told = || format!("{}, record {number}: {}", source.name, fault.detail);
        self.first_fault.get_or_insert_with(told);
        line(&mut self.rejected, &RejectedLine::of(source, number, fault))
    }

    fn document(&mut self, file: usize, line: u64, read: FingerprintedLine) -> Result<(), Error> {
        if self.report.documents >= u64::from(u32::MAX - 1) {
            return Err(Error::TooMany);
        }
        let FingerprintedLine { id, keys, popularity, made, masked, repaired } = read;
        let report = &mut self.report;
        report.documents += 1;
        report.empty += u64::from(keys.text.words == 0);
        report.masked += masked;
        report.repaired += u64::from(repaired);
        if let Some(made) = made {
            self.made.push(&made)?;
        }
        let storage = self.clusterer.storage_mut();
        storage.coming(LineSource { file: file as u32, line, id })?;
        let verdict = self.clusterer.judge(keys, popularity)?;
        self.duplicates += u64::from(verdict != Verdict::New);
        Ok(())
    }

    /// Refuses input of which nothing can be used.
    fn refuse_nothing(&self) -> Result<(), Error> {
        let DedupReport { documents, filtered, rejected, .. } = &self.report;
        match &self.first_fault {
            Some(first) if documents + filtered == 0 => {
                Err(Error::Nothing { rejected: *rejected, first: first.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Ends the lists of the first reading.
    fn close(
        self,
        outputs: &mut Outputs,
        is_changed: bool,
        format: KeptFormat,
    ) -> Result<Judged<'s>, Error> {
        outputs.add(self.rejected)?;
        if let Some(filtered) = self.filtered {
            outputs.add(filtered)?;
        }
        let Self { clusterer, report, sources, made, records, .. } = self;
        let made = made.read()?;
        Ok(Judged { clusterer, report, sources, made, is_changed, format, records })
    }
}
