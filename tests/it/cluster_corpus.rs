//! A corpus of many workers does what that of one machine does, whoever races.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::corpus::dedup::{Corpus, Popularity};
use uniqcrawl::corpus::documents::copies_of;
use uniqcrawl::corpus::shared::{SentArticle, SharedCorpus, SharedDocument, SharedOptions};
use uniqcrawl::corpus::tables::DOCUMENTS;
use uniqcrawl::neardup::Config;
use uniqcrawl::store::View as _;
use uniqcrawl::text::features::Fingerprinter;

use crate::cluster::Nodes;
use crate::shelf::{Came, Shelf};
use crate::support::{Clusters, prose};

/// Few documents are expected, so that buckets hold several.
pub(crate) const OPTIONS: SharedOptions =
    SharedOptions { documents: 1_000, span: Duration::from_secs(5) };

pub(crate) fn open(url: &str, texts: &Path, options: SharedOptions) -> SharedCorpus {
    let settings = uniqcrawl::cluster::Settings::parse(url).unwrap();
    SharedCorpus::open(&settings, texts, &Config::default(), options).unwrap()
}

/// All documents of a corpus. Every copy is in one of them, its text can be read, and identifiers
/// and URLs lead to it.
pub(crate) fn documents(corpus: &SharedCorpus) -> Vec<SharedDocument> {
    let mut all = Vec::new();
    corpus
        .each_document(&mut |document| {
            all.push(document);
            Ok(())
        })
        .unwrap();
    let mut seen = BTreeSet::new();
    for SharedDocument { number, document, copies } in &all {
        assert_eq!(document.copies, copies.len() as u64, "{}", document.canonical);
        let text = corpus.text(*number, document.content).unwrap();
        assert!(text.is_some_and(|text| !text.is_empty()), "{}", document.canonical);
        for id in document.merged.iter().chain([&document.id]) {
            assert_eq!(corpus.find(*id).unwrap(), Some(*number));
        }
        for (url, _) in copies {
            assert!(seen.insert(url.clone()), "{url} is in two documents");
            assert_eq!(corpus.find_url(url).unwrap(), Some(*number), "{url}");
        }
    }
    all
}

fn in_clusters(documents: &[SharedDocument]) -> Clusters {
    let with_copies = documents.iter().filter(|one| !one.copies.is_empty());
    with_copies
        .map(|one| {
            let copies = one.copies.iter().map(|(url, _)| url.clone()).collect();
            (one.document.canonical.clone(), copies)
        })
        .collect()
}

/// A prefix that no other case has.
fn prefix(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{name}-{}", NEXT.fetch_add(1, Ordering::SeqCst))
}

/// What both corpora are asked to do.
trait Kept {
    fn corpus(&mut self, work: &mut dyn FnMut(&mut dyn Working));
    fn copies(&self) -> BTreeMap<String, u64>;
    fn clusters(&self) -> Clusters;
    fn look_again(&mut self);
}

/// The port, with one kind of errors.
trait Working {
    fn place(&mut self, page: &Came) -> u64;
    fn revise(&mut self, document: u64, page: &Came);
    fn leave(&mut self, document: u64, url: &str);
    fn retract(&mut self, document: u64, url: &str);
    fn popularity(&mut self, document: u64, url: &str, popularity: Popularity) -> bool;
}

impl<C: Corpus<Error: std::fmt::Debug>> Working for C {
    fn place(&mut self, page: &Came) -> u64 {
        let article = page.article(&Fingerprinter::default());
        Corpus::place(self, &article, 0).unwrap().document
    }

    fn revise(&mut self, document: u64, page: &Came) {
        let article = page.article(&Fingerprinter::default());
        Corpus::revise(self, document, &article, 0).unwrap();
    }

    fn leave(&mut self, document: u64, url: &str) {
        Corpus::leave(self, document, url).unwrap();
    }

    fn retract(&mut self, document: u64, url: &str) {
        Corpus::retract(self, document, url).unwrap();
    }

    fn popularity(&mut self, document: u64, url: &str, popularity: Popularity) -> bool {
        self.set_popularity(document, url, popularity).unwrap()
    }
}

impl Kept for Shelf {
    fn corpus(&mut self, work: &mut dyn FnMut(&mut dyn Working)) {
        let now = self.tick();
        self.write(|batch| work(&mut self.placer(batch, now)));
    }

    fn copies(&self) -> BTreeMap<String, u64> {
        let snapshot = self.crawled.store.snapshot().unwrap();
        let rows = snapshot.rows(DOCUMENTS).unwrap().map(|entry| entry.unwrap().key().unwrap());
        let of = |document| copies_of(&snapshot, document).unwrap().into_iter();
        rows.flat_map(|document| of(document).map(move |(url, _)| (url, document))).collect()
    }

    fn clusters(&self) -> Clusters {
        let snapshot = self.crawled.store.snapshot().unwrap();
        let mut all = Clusters::new();
        for (url, document) in self.copies() {
            let document = snapshot.get(DOCUMENTS, document).unwrap().unwrap();
            all.entry(document.canonical).or_default().insert(url);
        }
        all
    }

    fn look_again(&mut self) {
        let now = self.tick();
        self.write(|batch| self.placer(batch, now).look_due(true)).unwrap();
    }
}

impl Kept for SharedCorpus {
    fn corpus(&mut self, work: &mut dyn FnMut(&mut dyn Working)) {
        work(self);
    }

    fn copies(&self) -> BTreeMap<String, u64> {
        let all = documents(self).into_iter();
        all.flat_map(|one| one.copies.into_iter().map(move |(url, _)| (url, one.number))).collect()
    }

    fn clusters(&self) -> Clusters {
        in_clusters(&documents(self))
    }

    fn look_again(&mut self) {
        SharedCorpus::look_again(self).unwrap();
    }
}

/// What may happen to a corpus.
#[derive(Debug, Clone)]
enum Step {
    Place { text: u8, form: u8, site: u8 },
    Revise { copy: u8, text: u8, form: u8 },
    Leave(u8),
    Retract(u8),
    Links(u8, u8),
    Score(u8, u8),
    LookAgain,
}

fn step(sites: u8) -> impl Strategy<Value = Step> {
    let small = 0..6_u8;
    let copy = 0..40_u8;
    prop_oneof![
        10 => (small.clone(), small.clone(), 0..sites)
            .prop_map(|(text, form, site)| Step::Place { text, form, site }),
        2 => (copy.clone(), small.clone(), small.clone())
            .prop_map(|(copy, text, form)| Step::Revise { copy, text, form }),
        2 => copy.clone().prop_map(Step::Leave),
        1 => copy.clone().prop_map(Step::Retract),
        2 => (copy.clone(), small.clone()).prop_map(|(copy, links)| Step::Links(copy, links)),
        2 => (copy, small).prop_map(|(copy, score)| Step::Score(copy, score)),
        1 => Just(Step::LookAgain),
    ]
}

fn text(text: u8, form: u8) -> String {
    let form = if form < 2 { String::new() } else { format!(" Form {form}.") };
    format!("{}{form}", prose(u64::from(text) + 1, 80))
}

/// Does one step, and says which copies there must be.
fn take(kept: &mut dyn Kept, number: usize, step: &Step, expected: &mut BTreeSet<String>) {
    let held: Vec<(String, u64)> = match step {
        // Which copies there are does not matter.
        Step::Place { .. } | Step::LookAgain => Vec::new(),
        _ => kept.copies().into_iter().collect(),
    };
    let held_at = |at: u8| (!held.is_empty()).then(|| held[usize::from(at) % held.len()].clone());
    match step.clone() {
        Step::Place { text: of, form, site } => {
            let page = Came::new(&format!("http://s{site}/{number}"), "", &text(of, form));
            expected.insert(page.address.clone());
            kept.corpus(&mut |corpus| _ = corpus.place(&page));
        }
        Step::Revise { copy, text: of, form } => {
            let Some((url, document)) = held_at(copy) else { return };
            let page = Came::new(&url, "", &text(of, form));
            kept.corpus(&mut |corpus| corpus.revise(document, &page));
        }
        Step::Leave(copy) => {
            let Some((url, document)) = held_at(copy) else { return };
            expected.remove(&url);
            kept.corpus(&mut |corpus| corpus.leave(document, &url));
        }
        Step::Retract(copy) => {
            let Some((url, document)) = held_at(copy) else { return };
            expected.remove(&url);
            kept.corpus(&mut |corpus| corpus.retract(document, &url));
        }
        Step::Links(copy, links) => {
            let Some((url, document)) = held_at(copy) else { return };
            let popularity = Popularity::Links(links.into());
            kept.corpus(&mut |corpus| _ = corpus.popularity(document, &url, popularity));
        }
        Step::Score(copy, score) => {
            let Some((url, document)) = held_at(copy) else { return };
            let popularity = Popularity::Score(score.into());
            kept.corpus(&mut |corpus| _ = corpus.popularity(document, &url, popularity));
        }
        Step::LookAgain => kept.look_again(),
    }
}

/// Pages of one site often have one title, which is a key of all of them.
#[test]
fn articles_that_come_together_are_placed_as_one_after_the_other_and_do_not_wait_in_line() {
    let page = |number: u64| {
        let url = format!("http://s{}.example/{number}", number % 12);
        Came::new(&url, "One title", &prose(number % 40 + 1, 80))
    };
    // One of them comes twice.
    let pages: Vec<Came> = (0..64).map(page).chain([page(7)]).collect();
    let articles: Vec<_> =
        pages.iter().map(|page| page.article(&Fingerprinter::default())).collect();
    let sent: Vec<_> = articles.iter().map(|article| SentArticle { article, links: 0 }).collect();
    let texts = tempfile::tempdir().unwrap();
    let new = |name: &str| open(&Nodes::shared().url(&prefix(name)), texts.path(), OPTIONS);
    let (mut together, mut apart) = (new("together"), new("apart"));
    let before = together.traffic().round_trips;
    let placed = together.place_all(&sent).unwrap();
    let trips = together.traffic().round_trips - before;
    assert!(trips < 60, "{trips} round trips");
    for (number, article) in articles.iter().enumerate() {
        Corpus::place(&mut apart, article, 0).unwrap();
        let document = together.find_url(&article.address).unwrap();
        assert_eq!(document, Some(placed[number].document), "{}", article.address);
    }
    let all = documents(&together);
    assert_eq!(all.len(), 40);
    assert_eq!(in_clusters(&all), in_clusters(&documents(&apart)));
}

/// Does the same on one machine and in a cluster; all documents must be the same, after every step
/// or in the end.
fn assert_same(steps: &[Step], always: bool) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mut shared = open(&Nodes::shared().url(&prefix("same")), folder.path(), OPTIONS);
    let mut shelf = Shelf::new();
    let clock = Clock::hand(Timestamp(0));
    shared.set_clock(clock.clone());
    let mut expected = [BTreeSet::new(), BTreeSet::new()];
    for (number, step) in steps.iter().enumerate() {
        clock.advance(Duration::from_millis(1));
        take(&mut shared, number, step, &mut expected[0]);
        take(&mut shelf, number, step, &mut expected[1]);
        if always || number + 1 == steps.len() {
            let copies: BTreeSet<String> = shared.copies().into_keys().collect();
            prop_assert_eq!(&copies, &expected[0]);
            prop_assert_eq!(Kept::clusters(&shared), shelf.clusters(), "after {:?}", step);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(15))]

    #[test]
    fn a_corpus_of_many_workers_and_one_of_one_machine_have_the_same_documents(
        steps in prop::collection::vec(step(12), 1..40),
    ) {
        assert_same(&steps, true)?;
    }

    #[test]
    fn so_they_have_where_pages_of_few_sites_stand_in_each_others_way(
        steps in prop::collection::vec(step(5), 1..40),
    ) {
        assert_same(&steps, false)?;
    }
}

#[test]
fn a_text_that_has_to_leave_finds_the_page_that_came_with_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut shared = open(&Nodes::shared().url(&prefix("leaves")), folder.path(), OPTIONS);
    let mut shelf = Shelf::new();
    for (url, form) in [("http://s2/9", 2), ("http://s0/13", 3), ("http://s2/14", 3)] {
        let page = Came::new(url, "", &text(2, form));
        shared.corpus(&mut |corpus| _ = corpus.place(&page));
        shelf.corpus(&mut |corpus| _ = corpus.place(&page));
        assert_eq!(Kept::clusters(&shared), shelf.clusters(), "after {url}");
    }
    let found = shelf.clusters();
    assert_eq!(found["http://s0/13"].len(), 2, "{found:?}");
    assert_eq!(found["http://s2/9"].len(), 1, "{found:?}");
}

#[test]
fn pages_under_one_title_part_at_the_second_look() {
    let folder = tempfile::tempdir().unwrap();
    let mut corpus = open(&Nodes::shared().url(&prefix("parts")), folder.path(), OPTIONS);
    let boilerplate = prose(99, 200);
    let page = |n: u64| format!("{boilerplate} {}", prose(n, 100));
    for n in 0..6 {
        let page = Came::new(&format!("http://site/{n}"), "News of the town", &page(n));
        Working::place(&mut corpus, &page);
    }
    let copy = Came::new("http://copy/3", "News of the town", &page(3));
    Working::place(&mut corpus, &copy);
    let near = Came::new("http://copy/4", "News of the town", &format!("{} More.", page(4)));
    Working::place(&mut corpus, &near);
    assert!(documents(&corpus).len() < 6, "nothing tells the pages apart at first");
    assert!(corpus.look_again().unwrap().moved > 0);
    let found = in_clusters(&documents(&corpus));
    assert_eq!(found.values().map(BTreeSet::len).sum::<usize>(), 8);
    assert_eq!(found.len(), 6);
    for n in [3, 4] {
        let copies = found.values().find(|copies| copies.contains(&format!("http://copy/{n}")));
        let page = format!("http://site/{n}");
        assert!(copies.unwrap().contains(&page), "its copy goes with it: {found:?}");
    }
}

#[test]
fn a_copy_that_says_again_what_it_alone_says_keeps_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut shared = open(&Nodes::shared().url(&prefix("again")), folder.path(), OPTIONS);
    let mut shelf = Shelf::new();
    let steps = [
        Step::Place { text: 1, form: 0, site: 1 },
        Step::Place { text: 1, form: 3, site: 2 },
        Step::Revise { copy: 1, text: 1, form: 3 },
    ];
    let mut expected = [BTreeSet::new(), BTreeSet::new()];
    for (number, step) in steps.iter().enumerate() {
        take(&mut shared, number, step, &mut expected[0]);
        take(&mut shelf, number, step, &mut expected[1]);
    }
    assert_eq!(Kept::clusters(&shared).values().map(BTreeSet::len).sum::<usize>(), 2);
    assert_eq!(Kept::clusters(&shared), shelf.clusters());
}

#[test]
fn an_article_that_is_sent_twice_is_stored_once_and_a_changed_one_is_revised() {
    let folder = tempfile::tempdir().unwrap();
    let url = Nodes::shared().url("twice");
    let mut corpus = open(&url, folder.path(), OPTIONS);
    let page = |text: &str| Came::new("http://a/1", "A title of it", text);
    let first = Working::place(&mut corpus, &page(&prose(1, 80)));
    assert_eq!(Working::place(&mut corpus, &page(&prose(1, 80))), first);
    let near = Came::new("http://b/1", "", &format!("{} More.", prose(1, 80)));
    assert_eq!(Working::place(&mut corpus, &near), first);
    assert_eq!(Working::place(&mut corpus, &near), first);
    // Short texts, and none at all.
    let short = ["http://c/1", "http://d/1"].map(|url| Came::new(url, "", "Three short words"));
    let numbers = short.each_ref().map(|page| Working::place(&mut corpus, page));
    assert_eq!(numbers[0], numbers[1]);
    let all = documents(&corpus);
    assert_eq!(all.iter().map(|one| one.copies.len()).sum::<usize>(), 4);
    // Another worker finds what this one has stored.
    let mut other = open(&url, folder.path(), OPTIONS);
    assert_eq!(Working::place(&mut other, &near), first);
    let moved = Working::place(&mut other, &page(&prose(9, 80)));
    assert_ne!(moved, first);
    let clusters = in_clusters(&documents(&other));
    assert_eq!(clusters["http://a/1"].len() + clusters["http://b/1"].len(), 2);
    let wrong = Config { bands: 20, ..Config::default() };
    let settings = uniqcrawl::cluster::Settings::parse(&url).unwrap();
    let error = SharedCorpus::open(&settings, folder.path(), &wrong, OPTIONS).unwrap_err();
    assert!(error.to_string().contains("keys"), "{error}");
}

/// Articles of which five each are edited copies of one text, on sites of their own, next to each
/// other.
pub(crate) fn racing(texts: u64) -> Vec<Came> {
    let copy = |text: u64, copy: u64| {
        let words = prose(text + 1, 120);
        let edited: Vec<String> =
            words
                .split(' ')
                .enumerate()
                .map(|(at, word)| {
                    if at as u64 % 40 == copy * 7 { format!("new{copy}") } else { word.to_owned() }
                })
                .collect();
        Came::new(&format!("http://site{copy}-{}/{text}", text % 7), "", &edited.join(" "))
    };
    (0..texts).flat_map(|text| (0..5).map(move |n| copy(text, n))).collect()
}

#[test]
fn copies_that_race_become_one_document_whoever_brings_them() {
    const TEXTS: u64 = 30;
    let folder = tempfile::tempdir().unwrap();
    let url = Nodes::shared().url("racing");
    let pages = racing(TEXTS);
    // All begin at the same time, and each copy of a text is placed by another one.
    let barrier = std::sync::Barrier::new(5);
    std::thread::scope(|scope| {
        for worker in 0..5 {
            let (pages, url, barrier) = (&pages, &url, &barrier);
            let folder = folder.path();
            scope.spawn(move || {
                let mut corpus = open(url, folder, OPTIONS);
                for group in pages.chunks(5) {
                    barrier.wait();
                    Working::place(&mut corpus, &group[worker]);
                }
            });
        }
    });
    let corpus = open(&url, folder.path(), OPTIONS);
    corpus.look_again().unwrap();
    let found = in_clusters(&documents(&corpus));
    assert_eq!(found.values().map(BTreeSet::len).sum::<usize>(), pages.len(), "none is lost");
    assert_eq!(found.len() as u64, TEXTS, "no text is two documents");
}
