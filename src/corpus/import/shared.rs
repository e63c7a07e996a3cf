//! Files of documents into a cluster, by any number of processes at a time.
//!
//! What an earlier run has stored is found by its URL, or by its name: a run that was killed is
//! begun again, and nothing comes twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::corpus::clusters::Place;
use crate::corpus::dedup::{self, Corpus as _, Popularity};
use crate::corpus::files::input::{Columns, DocumentReader, InputOptions, Sources};
use crate::corpus::files::pipeline::{Shares, ordered, threads};
use crate::corpus::files::prepare::{Prepared, count, prepare};
use crate::corpus::files::spool::named;
use crate::corpus::files::{self, Error as FilesError};
use crate::corpus::shared::{SentArticle, SharedCorpus};
use crate::neardup;
use crate::text::features::Fingerprinter;
use crate::text::quality::Filters;

use super::lists::Lists;
use super::{
    Copied, Error, INPUT, ImportOptions, ImportProgress, ImportReport, Incoming, incoming,
};

/// Documents that are placed together: few round trips for all.
const TOGETHER: usize = 64;

/// Takes the documents of `inputs` (`-` is standard input) into a cluster. What is no document is
/// listed in the [own folder](SharedCorpus::own_folder) of this process, in `import-rejected.jsonl`
/// and `import-filtered.jsonl`.
///
/// # Errors
///
/// If a file, a setting or the cluster is at fault, or nothing can be used. What was stored stays.
pub fn import_shared(
    corpus: &mut SharedCorpus,
    inputs: &[PathBuf],
    options: &ImportOptions,
    progress: &mut dyn FnMut(&ImportProgress),
) -> Result<ImportReport, Error> {
    let began = Instant::now();
    let filters = Filters::new(options.filters.clone()).map_err(files::Error::from)?;
    let fingerprinter = Fingerprinter::for_articles(options.dedup.features.clone());
    let fingerprinter =
        fingerprinter.map_err(|error| dedup::Error::Settings(neardup::Error::from(error)))?;
    let folder = corpus.own_folder();
    fs::create_dir_all(&folder).map_err(FilesError::io(&folder))?;
    let copy = Copied(folder.join(INPUT));
    let named = named(inputs, &copy.0)?;
    let input = InputOptions { columns: Columns::Needed, ..options.input.clone() };
    let sources = Sources::open(&named, input, vec!["category".to_owned()])?;
    let reader = DocumentReader::new(&sources, vec!["category"]);
    let work = |chunk| {
        prepare(&sources, &reader, &filters, chunk, |passed| {
            incoming(passed, &fingerprinter, &options.urls)
        })
    };
    let mut importer = SharedImporter {
        corpus,
        sources: &sources,
        report: ImportReport { inputs: sources.all().len() as u64, ..ImportReport::default() },
        pending: Vec::new(),
        lists: Lists::begin(&folder),
    };
    ordered(&sources, 0, Shares::of(threads(options.threads)), work, |chunks| {
        importer.take(chunks, progress)
    })?;
    let mut report = importer.end()?;
    report.seconds = began.elapsed().as_secs_f64();
    report.documents_per_second = report.came as f64 / report.seconds.max(1e-9);
    Ok(report)
}

/// Stores what comes.
struct SharedImporter<'i> {
    corpus: &'i mut SharedCorpus,
    sources: &'i Sources,
    report: ImportReport,
    pending: Vec<Incoming>,
    lists: Lists,
}

impl SharedImporter<'_> {
    fn take(
        &mut self,
        chunks: &mut dyn Iterator<Item = Prepared<Incoming>>,
        progress: &mut dyn FnMut(&ImportProgress),
    ) -> Result<(), Error> {
        for chunk in chunks {
            self.chunk(chunk)?;
            let position = self.sources.position();
            let (documents, new) = (self.report.came, self.report.new);
            progress(&ImportProgress { documents, new, position });
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: Prepared<Incoming>) -> Result<(), Error> {
        let source = &self.sources.all()[chunk.source];
        self.report.bytes += chunk.bytes;
        for (fate, number) in chunk.fates.into_iter().zip(chunk.first..) {
            let document = self.lists.take(fate, source, number, &mut self.report)?;
            self.pending.extend(document);
            if self.pending.len() >= TOGETHER {
                self.place()?;
            }
        }
        Ok(())
    }

    /// Stores what is pending: what is known by its URL is left as it is.
    fn place(&mut self) -> Result<(), Error> {
        let pending = std::mem::take(&mut self.pending);
        self.report.came += pending.len() as u64;
        let urls: Vec<&str> = pending.iter().map(|one| one.article.address.as_str()).collect();
        let found = self.corpus.find_urls(&urls)?;
        let (mut new, mut again, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (one, document) in pending.iter().zip(found) {
            match document {
                None if seen.insert(&one.article.address) => new.push(one),
                document => again.push((one, document)),
            }
        }
        let sent: Vec<SentArticle<'_>> =
            new.iter().map(|one| SentArticle { article: &one.article, links: 0 }).collect();
        let placed = self.corpus.place_all(&sent)?;
        for (one, document) in again {
            self.report.known += 1;
            if let Some(score) = one.article.score {
                // One that came twice at once was placed above.
                let document = document.unwrap_or_default();
                let score = Popularity::Score(score);
                self.corpus.set_popularity(document, &one.article.address, score)?;
            }
        }
        let report = &mut self.report;
        for (one, placed) in new.iter().zip(&placed) {
            report.documents += 1;
            report.bad_urls += u64::from(one.bad_url);
            report.masked += one.masked;
            report.repaired += u64::from(one.repaired);
            match &placed.judged.place {
                Place::New => report.new += 1,
                Place::Tree(matched) => count(&mut report.duplicates, matched.key.as_str()),
            }
        }
        Ok(())
    }

    /// Stores the last ones, and looks again at all matches that are unsure.
    fn end(mut self) -> Result<ImportReport, Error> {
        self.place()?;
        self.lists.end()?;
        let report = self.report;
        self.lists.must_be_of_use(&report)?;
        self.corpus.look_again()?;
        Ok(report)
    }
}
