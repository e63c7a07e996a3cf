//! A page through all that a fingerprinter does with it, with the time of each stage.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::iter::Sum;
use std::time::Duration;

use uniqcrawl::base::clock;
use uniqcrawl::corpus::clusters::Article;
use uniqcrawl::corpus::documents::Facts;
use uniqcrawl::neardup::article_keys_in_stages;
use uniqcrawl::page::{Limits, RawPage, page_in_stages};
use uniqcrawl::text::features::{Config, Fingerprinter, Input};
use uniqcrawl::web::robots::meta::Terms;

/// How long this thread has run on a processor.
pub fn now() -> Duration {
    clock::thread_time()
}

/// The stages of all pages.
pub struct Stages<'a> {
    pages: &'a [Vec<u8>],
    fingerprinter: Fingerprinter,
    names: Vec<&'static str>,
    /// The times of each stage of each page, one of each round.
    times: Vec<Vec<Vec<Duration>>>,
    /// Whether digests are wanted.
    digest: bool,
    /// A hash of all that was made of each page.
    digests: Vec<u64>,
}

/// The time of each stage of one page; a stage that comes again is added up.
#[derive(Default)]
struct Watch {
    last: Duration,
    stages: Vec<(&'static str, Duration)>,
}

impl Watch {
    fn ended(&mut self, name: &'static str) {
        let now = now();
        let time = now.saturating_sub(self.last);
        match self.stages.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += time,
            None => self.stages.push((name, time)),
        }
        // What the watch itself takes is no part of the next stage.
        self.skip();
    }

    /// What was done since the last stage is none.
    fn skip(&mut self) {
        self.last = now();
    }
}

impl<'a> Stages<'a> {
    /// Prepares for pages, of which digests may be wanted.
    pub fn new(pages: &'a [Vec<u8>], digest: bool) -> Self {
        let fingerprinter = Fingerprinter::new(Config::default()).expect("the default settings");
        let times = vec![Vec::new(); pages.len()];
        Self { pages, fingerprinter, names: Vec::new(), times, digest, digests: Vec::new() }
    }

    /// Takes all pages through all stages once.
    pub fn round(&mut self) -> Vec<Article> {
        let mut articles = Vec::with_capacity(self.pages.len());
        for (at, page) in self.pages.iter().enumerate() {
            let mut watch = Watch { last: now(), ..Watch::default() };
            let (article, others) = article(&self.fingerprinter, at, page, &mut watch, self.digest);
            if self.digest {
                let mut hasher = DefaultHasher::new();
                format!("{article:?} {others}").hash(&mut hasher);
                self.digests.push(hasher.finish());
            }
            articles.push(article);
            let times = &mut self.times[at];
            for (name, time) in watch.stages {
                let known = self.names.iter().position(|other| *other == name);
                let stage = known.unwrap_or_else(|| {
                    self.names.push(name);
                    self.names.len() - 1
                });
                times.resize_with(times.len().max(stage + 1), Vec::new);
                times[stage].push(time);
            }
        }
        articles
    }

    /// Returns a hash of all that was made of each page: the same of two builds that differ in time
    /// alone.
    pub fn digests(&self) -> &[u64] {
        &self.digests
    }

    /// Returns the time of each stage of all pages: of each the median of all rounds, and the
    /// least.
    pub fn times(&mut self) -> Vec<(&'static str, Taken)> {
        let mut of = |stage: usize| {
            let times = self.times.iter_mut().filter_map(|times| times.get_mut(stage));
            times.map(|times| Taken::of(times)).sum()
        };
        self.names.iter().enumerate().map(|(stage, name)| (*name, of(stage))).collect()
    }
}

/// How long something took when it was done several times.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    pub median: Duration,
    pub least: Duration,
}

impl Taken {
    /// Of some times; nothing of none.
    pub fn of(times: &mut [Duration]) -> Self {
        times.sort_unstable();
        let least = times.first().copied().unwrap_or_default();
        Self { median: times.get(times.len() / 2).copied().unwrap_or_default(), least }
    }
}

impl Sum for Taken {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            median: sum.median + one.median,
            least: sum.least + one.least,
        })
    }
}

fn article(
    made_by: &Fingerprinter,
    at: usize,
    bytes: &[u8],
    watch: &mut Watch,
    digest: bool,
) -> (Article, String) {
    let address = format!("http://www.example.org/p/{at}");
    let url = address.parse().expect("a URL");
    let (limits, _) = Limits::default().for_page(bytes);
    watch.ended("memory to be taken");
    let input = RawPage { bytes, content_type: Some("text/html"), url: Some(&url), fetched: None };
    let none = HashSet::<u64>::new();
    let (mut page, blocks) = page_in_stages(&input, &limits, &none, &mut |name| watch.ended(name));
    watch.ended("rest of the page");
    let others = if digest { format!("{page:?} {blocks:?}") } else { String::new() };
    watch.skip();
    let shown = page.shown.take();
    let language = page.language.unwrap_or_default();
    let (title, text) = (&page.title, &page.text);
    let input = Input { title, text, language: &language, url: &address, fields: &[] };
    let mut keys = article_keys_in_stages(made_by, &input, &mut |name| watch.ended(name));
    watch.ended("hash of the text");
    keys.standing.shown = shown;
    let article = Article {
        address,
        title: page.title,
        text: page.text,
        language,
        facts: Facts::default(),
        left_out: 0,
        score: None,
        terms: Terms::default(),
        declared: String::new(),
        keys,
    };
    (article, others)
}
