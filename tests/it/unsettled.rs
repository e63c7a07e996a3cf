//! Exports of copies that wait for their second look, and how alike dropped copies are to what is
//! kept.

use std::fs;

use serde_json::Value;
use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::{self, Article, Joined, Match, Place};
use uniqcrawl::corpus::documents::{DocId, Facts};
use uniqcrawl::corpus::export::{
    CSV, Config, JSONL, Summary, Target, Unsettled, dropped_of, export, export_with,
};
use uniqcrawl::corpus::tables::{CONTENTS, DOCUMENTS, UNSURE};
use uniqcrawl::neardup::{self, Key};
use uniqcrawl::store::{Batch, META, Store, Update as _, View as _};
use uniqcrawl::text::features::{Fingerprinter, Input};
use uniqcrawl::web::robots::meta::Terms;

use crate::support::{check_clean, crawl, prose};

/// A store to which articles are added at places that the test chooses.
struct Shelf {
    folder: tempfile::TempDir,
    store: Store,
    fingerprinter: Fingerprinter,
    time: i64,
}

/// What an export wrote.
struct Exported {
    summary: Summary,
    documents: Vec<Value>,
    duplicates: Vec<Value>,
    withheld: Vec<Value>,
}

impl Shelf {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap();
        Self { folder, store, fingerprinter: Fingerprinter::default(), time: 0 }
    }

    fn write<T>(&self, work: impl FnOnce(&mut Batch) -> T) -> T {
        let mut batch = self.store.begin().unwrap();
        let result = work(&mut batch);
        batch.commit().unwrap();
        check_clean(&self.store);
        result
    }

    fn article(&self, url: &str, title: &str, text: &str) -> Article {
        let input = Input { title, text, url, ..Input::default() };
        Article {
            address: url.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            language: String::new(),
            facts: Facts::default(),
            left_out: 0,
            score: None,
            terms: Terms::default(),
            declared: String::new(),
            keys: neardup::article_keys(&self.fingerprinter, &input),
        }
    }

    fn put(&mut self, article: &Article, place: &Place) -> Joined {
        self.time += 1;
        let now = Timestamp(self.time * 1000);
        self.write(|snapshot| clusters::join(snapshot, article, place, 0, now).unwrap())
    }

    fn add(&mut self, url: &str, text: &str, place: &Place) -> Joined {
        let article = self.article(url, "", text);
        self.put(&article, place)
    }

    /// Notes that all matches so far have had their second look.
    fn settle(&self) {
        self.write(|snapshot| {
            let newest = clusters::newest(snapshot).unwrap().to_be_bytes();
            snapshot.put(META, "settled", &newest.to_vec()).unwrap();
        });
    }

    fn export(&self, unsettled: Unsettled) -> Exported {
        let folder = tempfile::tempdir().unwrap();
        let form = Target { format: &JSONL, folder: folder.path() };
        let (store, config) = (&self.store, Config::default());
        let summary = export_with(store, form, &config, Timestamp(0), unsettled).unwrap();
        let rows = |name: &str| -> Vec<Value> {
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let (documents, duplicates) = (rows("documents.jsonl"), rows("duplicates.jsonl"));
        Exported { summary, documents, duplicates, withheld: rows("withheld.jsonl") }
    }
}

fn near(document: u64, sure: bool) -> Place {
    let (key, distance, similarity) = (Key::Near, 3, 0.5);
    Place::Tree(Match { document, same: None, key, distance, similarity, sure })
}

fn equal(document: u64, content: u64) -> Place {
    let (key, distance, similarity) = (Key::Exact, 0, 1.0);
    let same = Some(content);
    Place::Tree(Match { document, same, key, distance, similarity, sure: true })
}

fn urls(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["url"].as_str().unwrap()).collect()
}

#[test]
fn a_copy_that_waits_for_its_second_look_is_exported_and_marked_until_it_had_it() {
    let mut shelf = Shelf::new();
    let first = shelf.add("http://a/long-address", &prose(1, 80), &Place::New);
    let document = first.document;
    shelf.add("http://b/sure-address", &prose(2, 80), &near(document, true));
    // The shortest address, which makes it the canonical copy.
    let unsure = shelf.add("http://c", &prose(3, 80), &near(document, false));
    let content = unsure.content.unwrap();
    shelf.add("http://d/equal", &prose(3, 80), &equal(document, content));

    let found = shelf.export(Unsettled::Apart);
    assert_eq!(urls(&found.documents), ["http://a/long-address", "http://c"]);
    let (kept, apart) = (&found.documents[0], &found.documents[1]);
    assert!(kept.get("unsettled").is_none() && kept.get("unsettledWith").is_none(), "{kept}");
    assert_eq!((&kept["copies"], &apart["copies"]), (&2.into(), &2.into()));
    assert_eq!((&apart["unsettled"], &apart["unsettledWith"]), (&true.into(), &kept["docId"]));
    assert_eq!(kept["docId"], first.id.to_string());
    assert_eq!(apart["text"], prose(3, 80));
    assert_eq!((&apart["firstSeen"], &apart["lastSeen"]), (&seen(3), &seen(4)));
    assert_eq!((&kept["firstSeen"], &kept["lastSeen"]), (&seen(1), &seen(2)));
    assert_eq!(urls(&found.duplicates), ["http://b/sure-address", "http://d/equal"]);
    assert_eq!(found.duplicates[1]["docId"], apart["docId"]);
    assert_eq!(found.duplicates[1]["canonical"], "http://c");
    let Summary { documents, duplicates, unsettled, .. } = found.summary;
    assert_eq!((documents, duplicates, unsettled), (2, 2, 1));

    let trusted = shelf.export(Unsettled::Trusted);
    assert_eq!(urls(&trusted.documents), ["http://c"]);
    assert_eq!((trusted.duplicates.len(), trusted.summary.unsettled), (3, 0));
    assert!(trusted.documents[0].get("unsettled").is_none());

    // When it has moved out it is what it was said to be, but for the mark.
    let own = apart.clone();
    shelf.write(|snapshot| {
        clusters::replace(snapshot, content, &Place::New, Timestamp(9)).unwrap().unwrap();
        clusters::recount(snapshot, document, Timestamp(9)).unwrap();
    });
    let moved = shelf.export(Unsettled::Apart);
    let mut expected = own;
    expected.as_object_mut().unwrap().retain(|key, _| !key.starts_with("unsettled"));
    assert_eq!(moved.documents, [kept.clone(), expected]);
    assert_eq!(moved.duplicates, found.duplicates);
    assert_eq!(moved.summary.unsettled, 0);
}

/// The moment of the article of this number.
fn seen(number: i64) -> Value {
    Timestamp(number * 1000).to_string().into()
}

#[test]
fn a_joint_that_had_its_second_look_is_a_copy_though_it_is_not_sure() {
    let mut shelf = Shelf::new();
    let document = shelf.add("http://a", &prose(1, 80), &Place::New).document;
    shelf.add("http://b/1", &prose(2, 80), &near(document, false));
    assert_eq!(shelf.export(Unsettled::Apart).summary.unsettled, 1);
    shelf.settle();
    shelf.add("http://b/2", &prose(3, 80), &near(document, false));
    let found = shelf.export(Unsettled::Apart);
    assert_eq!(urls(&found.documents), ["http://a", "http://b/2"]);
    assert_eq!(urls(&found.duplicates), ["http://b/1"]);
    shelf.settle();
    assert_eq!(shelf.export(Unsettled::Apart).summary.unsettled, 0);
}

#[test]
fn the_text_at_the_root_of_a_tree_is_never_unsettled() {
    let mut shelf = Shelf::new();
    let root = shelf.add("http://a", &prose(1, 80), &Place::New);
    let content = root.content.unwrap();
    // A tree that has pages of its site has refused it.
    shelf.write(|snapshot| snapshot.put(UNSURE, content, &"http://a".to_owned()).unwrap());
    assert_eq!(shelf.export(Unsettled::Apart).summary.unsettled, 0);
    // It had its only copy there, and what is left hangs on it.
    shelf.add("http://b", &prose(2, 80), &near(root.document, false));
    shelf.add("http://b/long", &prose(3, 80), &near(root.document, false));
    shelf.write(|snapshot| {
        clusters::leave(snapshot, root.document, "http://a", Timestamp(9)).unwrap();
    });
    let found = shelf.export(Unsettled::Apart);
    assert_eq!(
        urls(&found.documents),
        ["http://b", "http://b/long"],
        "no document is without copies"
    );
    assert_eq!(found.documents[0]["docId"], root.id.to_string());
    assert_eq!(found.documents[1]["unsettledWith"], root.id.to_string());
    assert_eq!(found.summary.unsettled, 1);
}

#[test]
fn terms_of_pages_hold_for_unsettled_copies_too() {
    let mut shelf = Shelf::new();
    let document = shelf.add("http://a", &prose(1, 80), &Place::New).document;
    let mut forbidden = shelf.article("http://b", "One", &prose(2, 80));
    forbidden.terms.noai = true;
    shelf.put(&forbidden, &near(document, false));
    let found = shelf.export(Unsettled::Apart);
    assert_eq!(
        (urls(&found.documents), urls(&found.withheld)),
        (vec!["http://a"], vec!["http://b"])
    );
    let id = DocId::of("http://b", "One", forbidden.keys.text.hash).to_string();
    assert_eq!(found.withheld[0]["docId"], id);
    assert_eq!(found.duplicates, Vec::<Value>::new());
}

#[test]
fn csv_has_the_mark_in_two_columns_and_the_command_counts_them() {
    let mut shelf = Shelf::new();
    let document = shelf.add("http://a", &prose(1, 80), &Place::New);
    shelf.add("http://b/near", &prose(2, 80), &near(document.document, false));
    let folder = tempfile::tempdir().unwrap();
    let form = Target { format: &CSV, folder: folder.path() };
    export(&shelf.store, form, &Config::default(), Timestamp(0)).unwrap();
    let mut csv = csv::Reader::from_path(folder.path().join("documents.csv")).unwrap();
    let headers = csv.headers().unwrap().clone();
    assert_eq!((&headers[0], &headers[headers.len() - 2]), ("docId", "unsettled"));
    assert_eq!(&headers[headers.len() - 1], "unsettledWith");
    let marks: Vec<(String, String)> = csv
        .records()
        .map(|row| {
            let row = row.unwrap();
            (row[row.len() - 2].to_owned(), row[row.len() - 1].to_owned())
        })
        .collect();
    let id = document.id.to_string();
    assert_eq!(marks, [("false".to_owned(), String::new()), ("true".to_owned(), id)]);

    let Shelf { folder: stored, store, .. } = shelf;
    drop(store);
    let store = stored.path().to_str().unwrap();
    let told = |more: &[&str]| {
        let arguments = [&["export", "--store", store, "--out", "out", "--json"], more].concat();
        let output = crawl(&arguments, folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!((&told(&[])["documents"], &told(&[])["unsettled"]), (&2.into(), &1.into()));
    let trusted = told(&["--trust-unsettled"]);
    assert_eq!((&trusted["documents"], &trusted["unsettled"]), (&1.into(), &0.into()));
    let output = crawl(&["export", "--store", store, "--out", "out"], folder.path());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("1 of them may turn out to be copies of others"), "{said}");
}

#[test]
fn a_dropped_copy_tells_how_alike_it_is_to_the_copy_that_is_kept() {
    let mut shelf = Shelf::new();
    let root = shelf.add("http://root/long-address", &prose(1, 200), &Place::New);
    let edited = format!("{} {}", prose(1, 200), prose(2, 100));
    // The shortest address takes over.
    shelf.add("http://b", &edited, &near(root.document, true));
    shelf.add("http://c/equal", &edited, &equal(root.document, 2));
    let found = shelf.export(Unsettled::Apart);
    assert_eq!(urls(&found.documents), ["http://b"]);
    assert_eq!(urls(&found.duplicates), ["http://c/equal", "http://root/long-address"]);

    let snapshot = shelf.store.snapshot().unwrap();
    let text = |content| snapshot.get(CONTENTS, content).unwrap().unwrap();
    let (root_text, kept_text) = (text(1), text(2));
    let similarity = f64::from(root_text.sketch.similarity(&kept_text.sketch));
    assert!((0.5..0.9).contains(&similarity), "{similarity}");
    let distance = root_text.fingerprint.distance(kept_text.fingerprint);
    let (equal, first) = (&found.duplicates[0], &found.duplicates[1]);
    assert_eq!((&equal["similarity"], &equal["distance"]), (&1.0.into(), &0.into()));
    assert_eq!(equal["rootSimilarity"], 1.0, "its text was there");
    // It was the first: what is stored of its match would call it equal to what is kept.
    assert_eq!((&first["reason"], &first["rootSimilarity"]), (&"first".into(), &1.0.into()));
    let told = first["similarity"].as_f64().unwrap();
    assert!((told - similarity).abs() < 0.000_6, "{told}, not {similarity}");
    assert_eq!((&first["distance"], distance > 0), (&distance.into(), true));

    let document = snapshot.get(DOCUMENTS, root.document).unwrap().unwrap();
    let dropped = dropped_of(&snapshot, root.document, &document).unwrap();
    assert!((dropped[1].similarity - told).abs() < 1e-9, "inspected as exported");
}
