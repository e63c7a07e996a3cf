//! The order in which pages come decides nothing: however a crawl goes, it ends with the same
//! documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use uniqcrawl::localweb::Site;
use uniqcrawl::neardup::{Config, Deduplicator, InputDocument};
use uniqcrawl::store::Store;

use crate::support::{Clusters, Web, clusters, page, prose};

const TEXTS: usize = 60;
const SITES: usize = 7;

/// Words of a text of 150 that its versions have changed: the original, up to 15 %.
const CHANGED: [usize; 5] = [0, 2, 5, 12, 22];

/// Share of the pages that may be in other documents, in hundredths.
const ELSEWHERE_MAX: usize = 1;

/// Random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % end
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}

/// One of the versions of a text, on a site that has no other one of them.
struct Version {
    text: usize,
    site: usize,
    path: String,
    title: String,
    words: Vec<String>,
}

impl Version {
    fn differs_in(&self, other: &Self) -> usize {
        self.words.iter().zip(&other.words).filter(|(one, other)| one != other).count()
    }
}

fn versions() -> Vec<Version> {
    let mut chance = Chance(1);
    let mut all = Vec::new();
    for text in 0..TEXTS {
        let original = prose(text as u64 + 1, 150);
        for (number, changed) in CHANGED.into_iter().enumerate() {
            let mut words: Vec<String> = original.split(' ').map(str::to_owned).collect();
            let mut places: Vec<usize> = (0..words.len()).collect();
            chance.shuffle(&mut places);
            for place in &places[..changed] {
                words[*place] = format!("new{}", chance.below(1_000_000));
            }
            let site = (text + number * 3) % SITES;
            let title = prose(text as u64 + 1_000, 5);
            // Copies are often announced otherwise, but not by much.
            let title = if number == 3 { format!("Update: {title}") } else { title };
            let path = format!("/{}", chance.below(1_000_000_000));
            all.push(Version { text, site, path, title, words });
        }
    }
    all
}

/// Pages that are in another document than in the other partition.
fn elsewhere(one: &[BTreeSet<usize>], other: &[BTreeSet<usize>]) -> usize {
    let kept = |one: &[BTreeSet<usize>], other: &[BTreeSet<usize>]| -> usize {
        let most = |set: &BTreeSet<usize>| other.iter().map(|o| o.intersection(set).count()).max();
        one.iter().filter_map(most).sum()
    };
    let pages: usize = one.iter().map(BTreeSet::len).sum();
    pages - kept(one, other).min(kept(other, one))
}

/// No two versions that differ in five words and less are two documents, and no two texts are one.
#[track_caller]
fn assert_true(found: &[BTreeSet<usize>], versions: &[Version], run: &str) {
    let document = |version| found.iter().position(|set| set.contains(&version)).unwrap();
    for (one, version) in versions.iter().enumerate() {
        for (other, second) in versions.iter().enumerate().skip(one + 1) {
            let same = document(one) == document(other);
            if version.text != second.text {
                assert!(!same, "{run}: {one} and {other} are other texts");
            } else if version.differs_in(second) <= 5 {
                assert!(same, "{run}: {one} and {other} differ in a few words");
            }
        }
    }
}

#[test]
fn lines_in_any_order_give_the_same_documents() {
    let versions = versions();
    for titled in [true, false] {
        let mut first: Option<Vec<BTreeSet<usize>>> = None;
        for seed in 0..20 {
            let mut order: Vec<usize> = (0..versions.len()).collect();
            Chance(seed).shuffle(&mut order);
            let mut dedup = Deduplicator::new(Config::default()).unwrap();
            for at in &order {
                let Version { site, path, title, words, .. } = &versions[*at];
                let (url, text) = (format!("http://s{site}.test{path}"), words.join(" "));
                let title = if titled { title.as_str() } else { "" };
                dedup.judge(InputDocument {
                    title,
                    text: &text,
                    url: &url,
                    ..InputDocument::default()
                });
            }
            dedup.settle();
            let mut found: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
            for (number, at) in (0..).zip(&order) {
                found.entry(dedup.fate(number).cluster).or_default().insert(*at);
            }
            let found: Vec<BTreeSet<usize>> = found.into_values().collect();
            assert_true(&found, &versions, &format!("order {seed}, titled {titled}"));
            let first = first.get_or_insert_with(|| found.clone());
            let moved = elsewhere(first, &found);
            assert!(moved * 100 <= versions.len() * ELSEWHERE_MAX, "order {seed}: {moved}");
        }
    }
}

/// A folder with seeds and settings for crawls of a web.
struct Runs {
    folder: tempfile::TempDir,
    web: Web,
    versions: Vec<Version>,
}

impl Runs {
    fn new() -> Self {
        let versions = versions();
        let web = Web::start(SITES, |_| {
            let site = |number: usize| {
                let mine = || versions.iter().filter(|version| version.site == number);
                let links: Vec<&str> = mine().map(|version| version.path.as_str()).collect();
                let front =
                    page(&format!("Front {number}"), &prose(number as u64 + 500, 90), &links);
                mine().fold(Site::new().html("/", front), |site, version| {
                    site.html(&version.path, page(&version.title, &version.words.join(" "), &[]))
                })
            };
            (0..SITES).map(site).collect()
        });
        let folder = tempfile::tempdir().unwrap();
        let mut seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
        let write =
            |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        write("seeds.txt", seeds.join("\n"));
        seeds.reverse();
        write("reversed.txt", seeds.join("\n"));
        write("serial.toml", "[crawl]\nrequests_max = 1\n".to_owned());
        write("parallel.toml", "[frontier]\nconnections_per_host = 4\n".to_owned());
        Self { folder, web, versions }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn start(&self, store: &str, arguments: &[&str], crash: Option<&str>) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command.args(["--allow-private", "--delay", "0ms", "--quiet", "--store", store]);
        command.args(arguments).current_dir(self.path());
        if let Some(crash) = crash {
            command.env("UNIQCRAWL_LOG", "uniqcrawl=trace").env("UNIQCRAWL_CRASH", crash);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Lets a crawl come to its end. Returns its documents.
    #[track_caller]
    fn finish(&self, store: &str, arguments: &[&str]) -> Clusters {
        assert!(self.start(store, arguments, None).wait().unwrap().success(), "{store}");
        let store = Store::open(&self.path().join(store), 1 << 24).unwrap();
        let findings = uniqcrawl::corpus::check::check(&store.snapshot().unwrap()).unwrap();
        assert_eq!(findings.listed, Vec::<String>::new());
        clusters(&store)
    }

    /// The documents as sets of versions.
    fn partition(&self, clusters: &Clusters) -> Vec<BTreeSet<usize>> {
        let url = |version: &Version| self.web.url(version.site, &version.path).to_string();
        let numbers: BTreeMap<String, usize> = self.versions.iter().map(url).zip(0..).collect();
        let sets = clusters.values().map(|copies| {
            copies.iter().filter_map(|address| numbers.get(address).copied()).collect()
        });
        sets.filter(|set: &BTreeSet<usize>| !set.is_empty()).collect()
    }

    #[track_caller]
    fn assert_same(&self, serial: &Clusters, found: &Clusters, run: &str) {
        let (one, other) = (self.partition(serial), self.partition(found));
        assert_eq!(other.iter().map(BTreeSet::len).sum::<usize>(), self.versions.len(), "{run}");
        assert_true(&other, &self.versions, run);
        let moved = elsewhere(&one, &other);
        assert!(moved * 100 <= self.versions.len() * ELSEWHERE_MAX, "{run}: {moved} pages");
        let canonical = |clusters: &Clusters| -> BTreeMap<BTreeSet<String>, String> {
            let rows = clusters.iter();
            rows.map(|(canonical, copies)| (copies.clone(), canonical.clone())).collect()
        };
        let (one, other) = (canonical(serial), canonical(found));
        for (copies, canonical) in &other {
            assert!(one.get(copies).is_none_or(|known| known == canonical), "{run}: {canonical}");
        }
    }
}

#[test]
fn crawls_in_any_order_with_and_without_interruptions_give_the_same_documents() {
    let runs = Runs::new();
    let serial = ["--seeds", "seeds.txt", "--config", "serial.toml"];
    let parallel = ["--seeds", "seeds.txt", "--config", "parallel.toml"];
    let reversed = ["--seeds", "reversed.txt", "--config", "serial.toml"];
    let whole = runs.finish("serial", &serial);
    runs.assert_same(&whole, &whole, "serial");
    runs.assert_same(&whole, &runs.finish("parallel", &parallel), "parallel");
    runs.assert_same(&whole, &runs.finish("reversed", &reversed), "seeds in another order");

    let mut chance = Chance(u64::from(std::process::id()));
    for _ in 0..4 {
        let mut child = runs.start("killed", &parallel, None);
        std::thread::sleep(Duration::from_millis(chance.below(500) as u64 + 30));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    runs.assert_same(&whole, &runs.finish("killed", &parallel), "killed at random");

    for point in ["joined:40", "committed:2", "committing:3", "settled:60"] {
        // A crawl may be done before it comes so far.
        runs.start("crashed", &parallel, Some(point)).wait().unwrap();
    }
    runs.assert_same(&whole, &runs.finish("crashed", &parallel), "killed at points");

    for _ in 0..3 {
        let mut child = runs.start("stopped", &parallel, None);
        std::thread::sleep(Duration::from_millis(chance.below(300) as u64 + 100));
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().is_ok());
        child.wait().unwrap();
    }
    runs.assert_same(&whole, &runs.finish("stopped", &parallel), "interrupted");
}
