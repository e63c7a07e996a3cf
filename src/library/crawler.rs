//! A crawl as a program starts, follows and stops it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::units::Time;
use crate::config::{Config, Sourced};
use crate::crawl::{self, Context, OnDocument, Report, Stop};
use crate::store::Store;
use crate::urls::{PageUrl, Typed};

use super::{CrawledDocument, LibraryError, open_store};

/// A crawl that can be run.
///
/// ```no_run
/// use uniqcrawl::Crawler;
///
/// let mut crawler = Crawler::builder()
///     .seed("https://example.org/")
///     .store("store")
///     .max_pages(1_000)
///     .on_document(|document| println!("{} {}", document.doc_id, document.title))
///     .build()?;
/// let summary = crawler.run()?;
/// println!("{} documents, {} copies", summary.documents, summary.copies);
/// # Ok::<(), uniqcrawl::LibraryError>(())
/// ```
#[derive(Debug)]
pub struct Crawler {
    config: Config,
    store: Store,
    seeds: Vec<PageUrl>,
    context: Context,
}

/// What a crawl is to be. Everything that is polite is on by default, as for the command.
#[derive(Debug)]
pub struct CrawlerBuilder {
    sourced: Sourced,
    folder: PathBuf,
    seeds: Vec<String>,
    on_document: Option<OnDocument>,
    /// The first thing that was wrong, told by `build`.
    wrong: Option<LibraryError>,
}

/// Stops a crawl from another thread.
#[derive(Debug, Clone)]
pub struct StopHandle(Stop);

/// What a run has done, and what its store has by now.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CrawlSummary {
    /// Pages that were read in this run.
    pub pages: u64,
    /// New documents of this run.
    pub new: u64,
    /// Pages of this run that were copies.
    pub duplicates: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Documents in the store.
    pub documents: u64,
    /// Their copies, the canonical ones among them.
    pub copies: u64,
    /// URLs that are queued for the next run.
    pub queued: u64,
    /// Seeds that could not be crawled, each with the reason.
    pub failed_seeds: Vec<(String, String)>,
}

impl Crawler {
    /// Begins to describe a crawl: into the folder `store`, at the pace of the default settings.
    #[must_use]
    pub fn builder() -> CrawlerBuilder {
        CrawlerBuilder {
            sourced: Sourced::default(),
            folder: PathBuf::from("store"),
            seeds: Vec::new(),
            on_document: None,
            wrong: None,
        }
    }

    /// Returns what stops the crawl from another thread.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.context.stop.clone())
    }

    /// Crawls until nothing is left to fetch or a limit is met, and returns what was done. On a
    /// store that was used before, it goes on where that stopped, also after a kill.
    ///
    /// It blocks and has threads of its own: from async code, call it where blocking is allowed.
    pub fn run(&mut self) -> Result<CrawlSummary, LibraryError> {
        let report = crawl::run(&self.store, &self.config.settings(), &self.seeds, &self.context);
        let report = report.map_err(|error| LibraryError::Crawl(Box::new(error)))?;
        Ok(CrawlSummary::of(&report))
    }
}

impl StopHandle {
    /// Lets requests under way end, commits, and ends the run. Asked once more, it commits at once.
    pub fn stop(&self) {
        let _times = self.0.ask();
    }
}

impl CrawlSummary {
    fn of(report: &Report) -> Self {
        let seeds = report.failed_seeds.iter();
        Self {
            pages: report.pages,
            new: report.new,
            duplicates: report.duplicates_total(),
            seconds: report.seconds,
            documents: report.documents,
            copies: report.copies,
            queued: report.queued,
            failed_seeds: seeds.map(|seed| (seed.url.clone(), seed.why.to_owned())).collect(),
        }
    }
}

impl CrawlerBuilder {
    /// Adds a URL to start from; `https://` may be left out.
    #[must_use]
    pub fn seed(mut self, url: impl Into<String>) -> Self {
        self.seeds.push(url.into());
        self
    }

    /// Puts the store into a folder, which is made if it is not there.
    #[must_use]
    pub fn store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Visits at most so many pages in a run; 0 for no limit.
    #[must_use]
    pub fn max_pages(mut self, pages: u64) -> Self {
        self.sourced.config.crawl.limits.pages_max = pages;
        self
    }

    /// Sets the delay between the end of a host's answer and the next request to it.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.sourced.config.frontier.delay = Time::from_millis(millis);
        self
    }

    /// Names the URL or mailbox at which webmasters can reach you.
    #[must_use]
    pub fn contact(mut self, contact: impl Into<String>) -> Self {
        self.sourced.config.fetch.contact = contact.into();
        self
    }

    /// Lets private and loopback IP addresses be contacted.
    #[must_use]
    pub fn allow_private(mut self, allow: bool) -> Self {
        self.sourced.config.fetch.allow_private = allow;
        self
    }

    /// Reads settings over those so far: TOML with the keys of `config/crawl.toml`.
    ///
    /// ```
    /// use uniqcrawl::Crawler;
    ///
    /// let crawl = Crawler::builder().settings("frontier.retries_max = 5\nurls.drop_www = true");
    /// # let _ = crawl;
    /// ```
    #[must_use]
    pub fn settings(mut self, toml: &str) -> Self {
        let table = toml::from_str::<toml::Table>(toml).map_err(LibraryError::settings);
        let read = table.and_then(|table| {
            let faulty = |(key, why): (String, String)| {
                LibraryError::Settings(format!("`{key}`: {why}").into())
            };
            self.sourced.overlay(&table).map_err(faulty)
        });
        self.note(read);
        self
    }

    /// Reads a file of settings over those so far.
    #[must_use]
    pub fn settings_file(mut self, path: impl AsRef<Path>) -> Self {
        let text = std::fs::read_to_string(path.as_ref()).map_err(|error| {
            let why = format!("cannot read {}: {error}", path.as_ref().display());
            LibraryError::Settings(why.into())
        });
        match text {
            Ok(text) => self.settings(&text),
            Err(error) => {
                self.note(Err(error));
                self
            }
        }
    }

    /// Has each new document told, in the order in which they were stored, when it is on the disk.
    ///
    /// The callback holds up the crawl while it runs. A document may turn out to be a copy of
    /// another one when more is known, and a process that is killed tells nothing any more of what
    /// it has just stored: [`StoreReader`](crate::StoreReader) has the truth.
    #[must_use]
    pub fn on_document(mut self, mut tell: impl FnMut(CrawledDocument) + Send + 'static) -> Self {
        self.on_document = Some(OnDocument::new(move |new| tell(new.into())));
        self
    }

    /// Checks everything and opens the store, or makes it.
    ///
    /// # Errors
    ///
    /// The first setting or seed that cannot be, and why the store cannot be opened.
    pub fn build(self) -> Result<Crawler, LibraryError> {
        let Self { sourced, folder, seeds, on_document, wrong } = self;
        wrong.map_or(Ok(()), Err)?;
        let config = sourced.config;
        if seeds.is_empty() {
            return Err(LibraryError::NoSeed);
        }
        let seed = |text: &String| {
            let typed = Typed::parse(text, &config.urls);
            Ok(typed.map_err(|error| LibraryError::Seed(Box::new(error)))?.url)
        };
        let seeds = seeds.iter().map(seed).collect::<Result<_, LibraryError>>()?;
        let store = open_store(&config, &folder)?;
        let context = Context { on_document, ..Context::default() };
        Ok(Crawler { config, store, seeds, context })
    }

    fn note(&mut self, result: Result<(), LibraryError>) {
        if let Err(error) = result {
            self.wrong.get_or_insert(error);
        }
    }
}
