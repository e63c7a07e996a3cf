//! The index of the search in step with its store, and `crawl search`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters::{self, Article, Match, Place};
use uniqcrawl::corpus::documents::{Document, Facts, read_body};
use uniqcrawl::corpus::search::{Config, Error, Search, Updated};
use uniqcrawl::corpus::tables::{DOCUMENTS, SEARCH_CHANGES};
use uniqcrawl::neardup::Key;
use uniqcrawl::store::{Batch, META, Store, Update as _, View as _};
use uniqcrawl::text::features::Fingerprinter;
use uniqcrawl::web::robots::meta::Terms;

use crate::lab::{Lab, story};
use crate::support::{crawl, page, prose};

/// Every document of a store that is shown, as it must be found: its address and its text.
fn shown(store: &Store) -> Vec<(Document, String)> {
    let snapshot = store.snapshot().unwrap();
    let all = snapshot.rows(DOCUMENTS).unwrap().map(|entry| entry.unwrap().row().unwrap());
    let there = all.filter(|document| document.gone.0 == 0);
    let text_of = |document: &Document| read_body(&snapshot, document.content).unwrap().unwrap();
    there.map(|document| (document.clone(), text_of(&document))).collect()
}

/// Looks for every document of the store by its own text, and for nothing else.
#[track_caller]
pub(crate) fn assert_in_step(search: &Search, store: &Store) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for (document, text) in shown(store) {
        let hits = search.text(&text, 20).unwrap();
        let id = document.id.to_string();
        let hit = hits.iter().find(|hit| hit.doc_id == id);
        let hit = hit.unwrap_or_else(|| panic!("{} is not found", document.canonical));
        assert!(hit.cosine > 0.999_999, "{} is found by another text", document.canonical);
        assert_eq!((&hit.url, &hit.title), (&document.canonical, &document.title));
        found.push((id, hit.url.clone(), format!("{:.6}", hit.cosine)));
    }
    assert_eq!(search.documents(), found.len() as u64, "documents that are gone are in the index");
    assert_eq!(store.snapshot().unwrap().len(SEARCH_CHANGES).unwrap(), 0);
    found
}

fn folder_of(store: &Store) -> &Path {
    store.path().parent().unwrap()
}

#[test]
fn the_index_follows_crawls_changes_and_pages_that_go() {
    let lab = Lab::new(2);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b", "/c"]));
    lab.html(1, "/", page("Other", &prose(2, 80), &["/copy"]));
    lab.html(0, "/a", story(10));
    lab.html(0, "/b", story(11));
    lab.html(0, "/c", story(12));
    lab.html(1, "/copy", story(10));
    lab.run();
    let store = &lab.crawled.store;
    let search = Search::open(folder_of(store), &Config::default()).unwrap();
    assert_eq!(
        search.update(store).unwrap(),
        Updated { indexed: 5, all: true, ..Updated::default() }
    );
    assert_in_step(&search, store);
    assert_eq!(search.update(store).unwrap(), Updated::default(), "nothing has changed");

    // One page changes, one is new, one is gone for good, one copy of two goes.
    lab.html(0, "/b", story(20));
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b", "/c", "/d"]));
    lab.html(0, "/d", story(13));
    lab.remove(0, "/c");
    lab.remove(1, "/copy");
    lab.much_later();
    lab.much_later();
    let updated = search.update(store).unwrap();
    assert!(!updated.all && updated.indexed >= 2 && updated.removed == 1, "{updated:?}");
    let followed = assert_in_step(&search, store);
    let rebuilt = search.rebuild(store).unwrap();
    assert_eq!((rebuilt.all, rebuilt.indexed), (true, followed.len() as u64));
    assert_eq!(assert_in_step(&search, store), followed, "anew or step by step is the same");
}

pub(crate) fn article(address: &str, text: &str) -> Article {
    Article {
        address: address.to_owned(),
        title: format!("Title of {address}"),
        text: text.to_owned(),
        language: String::new(),
        facts: Facts::default(),
        left_out: 0,
        score: None,
        declared: String::new(),
        terms: Terms::default(),
        keys: Fingerprinter::default().article_keys("", text, ""),
    }
}

/// Stores an article as the committer does.
fn add(store: &Store, address: &str, text: &str, links: u64, place: &Place) -> u64 {
    let (article, now) = (article(address, text), Timestamp(links.cast_signed()));
    write(store, |snapshot| clusters::join(snapshot, &article, place, links, now).unwrap().document)
}

fn write<T>(store: &Store, work: impl FnOnce(&mut Batch) -> T) -> T {
    let mut batch = store.begin().unwrap();
    let result = work(&mut batch);
    batch.commit().unwrap();
    let findings = uniqcrawl::corpus::check::check(&store.snapshot().unwrap()).unwrap();
    let of_search = |fault: &&String| fault.contains("search");
    assert_eq!(findings.listed.iter().find(of_search), None);
    result
}

fn under(document: u64) -> Place {
    let (key, same) = (Key::Shingles, None);
    Place::Tree(Match { document, same, key, distance: 1, similarity: 0.9, sure: true })
}

#[test]
fn the_index_follows_takeovers_merges_and_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap();
    let search = Search::open(folder.path(), &Config::default()).unwrap();
    let one = add(&store, "http://a/1", &prose(1, 60), 1, &Place::New);
    let two = add(&store, "http://a/2", &prose(2, 60), 2, &Place::New);
    let three = add(&store, "http://a/3", &prose(3, 60), 3, &Place::New);
    assert_eq!(search.update(&store).unwrap().indexed, 3);
    assert_in_step(&search, &store);
    let step = |indexed: u64, removed: u64| {
        let updated = search.update(&store).unwrap();
        assert_eq!(updated, Updated { indexed, removed, ..Updated::default() });
        assert_in_step(&search, &store)
    };
    // A copy of no account changes nothing; a more popular one takes over with its own text.
    add(&store, "http://long-name/1", &prose(4, 60), 0, &under(one));
    step(0, 0);
    add(&store, "http://b/1", &prose(5, 60), 9, &under(one));
    assert!(step(1, 0).iter().any(|(_, url, _)| url == "http://b/1"));
    // An old copy becomes popular.
    write(&store, |snapshot| {
        clusters::set_links(snapshot, one, "http://a/1", 20, Timestamp(9)).unwrap()
    });
    assert!(step(1, 0).iter().any(|(_, url, _)| url == "http://a/1"));
    write(&store, |snapshot| clusters::merge(snapshot, two, one, Timestamp(10)).unwrap());
    assert_eq!(step(0, 1).len(), 2);
    write(&store, |snapshot| {
        clusters::leave(snapshot, three, "http://a/3", Timestamp(11)).unwrap()
    });
    assert_eq!(step(0, 1).len(), 1, "a document that is gone is not found");
    write(&store, |snapshot| clusters::expire(snapshot, Timestamp(99)).unwrap());
    assert_eq!(step(0, 2), []);
}

/// What the store notes of its index.
fn rewind(store: &Store, update: u64, changes: &[(u64, u64)]) {
    write(store, |snapshot| {
        snapshot.put(META, "search_update", &update.to_be_bytes().to_vec()).unwrap();
        for (number, shown) in changes {
            snapshot.put(SEARCH_CHANGES, *number, shown).unwrap();
        }
    });
}

#[test]
fn a_crash_between_the_two_commits_is_made_good() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap();
    let search = Search::open(folder.path(), &Config::default()).unwrap();
    add(&store, "http://a/1", &prose(1, 60), 1, &Place::New);
    search.update(&store).unwrap();
    add(&store, "http://a/2", &prose(2, 60), 2, &Place::New);
    let pending: Vec<(u64, u64)> = {
        let snapshot = store.snapshot().unwrap();
        let rows = snapshot.rows(SEARCH_CHANGES).unwrap().map(Result::unwrap);
        rows.map(|entry| (entry.key().unwrap(), entry.row().unwrap())).collect()
    };
    assert_eq!(pending.len(), 1);
    search.update(&store).unwrap();
    drop(search);
    // As if the second commit had never been: the rows are still there, and the number is the old.
    rewind(&store, 1, &pending);
    let search = Search::open(folder.path(), &Config::default()).unwrap();
    let updated = search.update(&store).unwrap();
    assert_eq!(updated, Updated { indexed: 1, ..Updated::default() });
    assert_in_step(&search, &store);
    // A store that was set back, or an index of another one, does not fit.
    rewind(&store, 7, &[]);
    assert!(search.update(&store).unwrap().all);
    assert_in_step(&search, &store);
    rewind(&store, 1, &[]);
    assert!(search.update(&store).unwrap().all);
    assert_in_step(&search, &store);
}

#[test]
fn a_long_update_is_made_in_parts_and_no_document_waits_behind_others_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap();
    let search = Search::open(folder.path(), &Config::default()).unwrap();
    search.update(&store).unwrap();
    let numbers: Vec<u64> = (0..7)
        .map(|n| add(&store, &format!("http://a/{n}"), &prose(n + 1, 60), 1, &Place::New))
        .collect();
    let touch = |number: &u64| {
        write(&store, |snapshot| {
            let shown = snapshot.get(DOCUMENTS, *number).unwrap().unwrap().shown();
            snapshot.put(SEARCH_CHANGES, *number, &shown)
        })
        .unwrap();
    };
    let waiting = || -> Vec<u64> {
        let rows = store.snapshot().unwrap();
        rows.rows(SEARCH_CHANGES).unwrap().map(|entry| entry.unwrap().key().unwrap()).collect()
    };
    // Those in front change all the time.
    for turn in 0..3 {
        let updated = search.update_part(&store, 3).unwrap();
        assert_eq!((updated.indexed, updated.more), (3, turn < 2), "{turn}");
        numbers[..2].iter().for_each(touch);
    }
    assert_eq!(waiting(), numbers[..2]);
    assert!(!search.update_part(&store, 3).unwrap().more);
    assert_in_step(&search, &store);
    numbers.iter().for_each(touch);
    assert_eq!(search.update(&store).unwrap().indexed, 7);
    assert!(waiting().is_empty());
    assert_in_step(&search, &store);
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn a_folder_that_is_lost_damaged_old_or_of_another_version_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap();
    let (place, old) = (folder.path().join("search"), folder.path().join("old"));
    let open = || Search::open(folder.path(), &Config::default()).unwrap();
    for n in 0..5 {
        add(&store, &format!("http://a/{n}"), &prose(n, 60), n, &Place::New);
    }
    open().update(&store).unwrap();
    copy_files(&place, &old);
    let damages: [(&str, &dyn Fn()); 6] = [
        ("lost", &|| fs::remove_dir_all(&place).unwrap()),
        ("no list of segments", &|| fs::remove_file(place.join("meta.json")).unwrap()),
        ("garbage", &|| fs::write(place.join("meta.json"), "{\"segments\": 7").unwrap()),
        ("version", &|| fs::write(place.join("uniqcrawl-search"), "0").unwrap()),
        ("cut", &|| {
            for entry in fs::read_dir(&place).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "store" || ending == "term") {
                    let file = fs::File::options().write(true).open(path).unwrap();
                    file.set_len(20).unwrap();
                }
            }
        }),
        ("a segment missing", &|| {
            for entry in fs::read_dir(&place).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "idx") {
                    fs::remove_file(path).unwrap();
                }
            }
        }),
    ];
    for (name, damage) in damages {
        damage();
        let search = open();
        assert_eq!(search.made_anew().is_some(), name != "lost", "{name}");
        let updated = search.update(&store).unwrap();
        assert_eq!(updated, Updated { indexed: 5, all: true, ..Updated::default() }, "{name}");
        assert_in_step(&search, &store);
        assert_eq!(open().made_anew(), None, "{name}");
    }
    // An older index that was put back is whole, but not of this state.
    add(&store, "http://a/9", &prose(9, 60), 9, &Place::New);
    open().update(&store).unwrap();
    fs::remove_dir_all(&place).unwrap();
    fs::rename(&old, &place).unwrap();
    let search = open();
    assert!(search.update(&store).unwrap().all);
    assert_in_step(&search, &store);
}

#[test]
fn a_folder_of_something_else_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let refused = Search::open_at(Some(folder.path()), &Config::default());
    assert!(matches!(refused, Err(Error::Foreign(_))), "{refused:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let output = crawl(&["search", "--index", ".", "words"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(folder.path().join("thesis.txt").exists());
}

#[test]
fn readers_are_answered_while_the_index_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap();
    let search = Search::open(folder.path(), &Config::default()).unwrap();
    let first = prose(1, 60);
    add(&store, "http://a/1", &first, 1, &Place::New);
    search.update(&store).unwrap();
    let done = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut answers = 0u64;
                    while !done.load(Ordering::Relaxed) || answers == 0 {
                        assert_eq!(search.text(&first, 1).unwrap()[0].url, "http://a/1");
                        assert!(search.sentence(&first, 1).unwrap()[0].cosine > 0.0);
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        for n in 2..10 {
            add(&store, &format!("http://a/{n}"), &prose(n, 60), n, &Place::New);
            if n % 4 == 0 { search.rebuild(&store) } else { search.update(&store) }.unwrap();
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).min()
    });
    assert!(answers > Some(0));
    assert_in_step(&search, &store);
}

/// A corpus of JSON lines with one line that is none.
fn corpus(folder: &Path, documents: u64) {
    let mut lines = String::from("no document\n");
    for n in 0..documents {
        let text = prose(n, 60);
        let line =
            serde_json::json!({"id": format!("d{n}"), "title": format!("T{n}"), "text": text});
        writeln!(lines, "{line}").unwrap();
    }
    fs::write(folder.join("corpus.jsonl"), lines).unwrap();
}

fn answers(folder: &Path, arguments: &[&str], input: &str) -> Vec<serde_json::Value> {
    use std::io::Write as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn files_are_searched_without_a_store_and_their_index_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    corpus(path, 30);
    let plain = ["search", "--corpus", "corpus.jsonl", "--json", "-n", "1", &prose(7, 60)];
    let output = crawl(&plain, path);
    let hits: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&hits[0]["docId"], &hits[0]["title"]), (&"d7".into(), &"T7".into()));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("1 lines are no document"), "{words}");
    assert!(!path.join("store").exists());

    let lines: String = (0..30)
        .map(|n| format!("{}\n", serde_json::json!({"id": n, "text": prose(n, 60)})))
        .collect();
    let lines = format!("{lines}broken\n{{\"id\": 99, \"text\": \"\"}}\n");
    let ask = ["search", "--corpus", "corpus.jsonl", "--index", "kept", "--jsonl", "-n", "1"];
    let found = answers(path, &ask, &lines);
    assert_eq!(found.len(), 32);
    for (n, answer) in found.iter().take(30).enumerate() {
        assert_eq!(answer["id"], n);
        assert_eq!(answer["hits"][0]["docId"], format!("d{n}"));
    }
    assert!(found[30]["error"].is_string() && found[30]["id"].is_null());
    assert_eq!(found[31], serde_json::json!({"id": 99, "hits": []}));
    // The index is used as it is, with the files and without them, until they change.
    let made = || fs::metadata(path.join("kept/meta.json")).unwrap().modified().unwrap();
    let before = made();
    assert_eq!(answers(path, &ask, &lines), found);
    let kept = ["search", "--index", "kept", "--jsonl", "-n", "1"];
    assert_eq!(answers(path, &kept, &lines), found);
    assert_eq!(made(), before);
    corpus(path, 31);
    let more = format!("{}\n", serde_json::json!({"id": 1, "text": prose(30, 60)}));
    assert_eq!(answers(path, &ask, &more)[0]["hits"][0]["docId"], "d30");
}

#[test]
fn a_store_is_searched_from_the_command_line() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b"]));
    let tale = format!(
        "{}. The lighthouse index_updater counts the ships at dawn. {}",
        prose(2, 90),
        prose(3, 9)
    );
    lab.html(0, "/a", page("A tale", &tale, &[]));
    lab.html(0, "/b", page("A tale", &tale, &[]));
    lab.run();
    let path = folder_of(&lab.crawled.store).to_owned();
    let store = path.to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let mut all = vec!["search", "--store", &store];
        all.extend(arguments);
        let output = crawl(&all, &path);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    };
    // This process has the store open: the index cannot be made, and there is none yet.
    let (code, text) = run(&["ships"]);
    assert!(code == Some(1) && text.contains("in use"), "{text}");
    // What this process may be about to make is left to it.
    fs::create_dir_all(path.join("search")).unwrap();
    fs::write(path.join("search/x"), "").unwrap();
    assert!(run(&["ships"]).1.contains("no index yet") && path.join("search/x").exists());
    let search = Search::open(&path, &Config::default()).unwrap();
    search.update(&lab.crawled.store).unwrap();
    let (code, text) = run(&["--words", "lighthouse"]);
    assert!(code == Some(0) && text.contains("in use") && text.contains("A tale"), "{text}");
    drop(search);
    let keep = lab.crawled;
    let copy = tempfile::tempdir().unwrap();
    fs::copy(path.join("store.redb"), copy.path().join("store.redb")).unwrap();
    drop(keep);

    let store = copy.path().to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let mut all = vec!["search", "--store", &store];
        all.extend(arguments);
        let output = crawl(&all, copy.path());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let (code, text) = run(&["--no-update", "ships"]);
    assert!(code == Some(2) && text.contains("no index yet"), "{text}");
    let (code, text) =
        run(&["--sentence", "--json", "a", "lighthouse", "index_updater", "counts ships"]);
    assert_eq!(code, Some(0), "{text}");
    let hits: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(hits[0]["sentence"], "The lighthouse index_updater counts the ships at dawn.");
    assert_eq!((&hits[0]["copies"], &hits[0]["title"]), (&2.into(), &"A tale".into()));
    let (_, text) = run(&[&tale]);
    assert!(text.contains("  2 copies\n") && text.contains("keywords: "), "{text}");
    assert!(text.starts_with("0.99"), "{text}");
    let (_, text) = run(&["--min-cosine", "0.99", "lighthouse index_updater"]);
    assert!(text.contains("nothing like it in 2 documents"), "{text}");
    let (code, text) = run(&["--rebuild"]);
    assert!(code == Some(0) && text.contains("2 documents in the index, 2 made anew"), "{text}");
    fs::write(copy.path().join("search/meta.json"), "x").unwrap();
    let (code, text) = run(&["--words", "lighthouse"]);
    assert!(code == Some(0) && text.contains("made anew") && text.contains("A tale"), "{text}");
    fs::write(copy.path().join("q.txt"), &tale).unwrap();
    let file = copy.path().join("q.txt").to_str().unwrap().to_owned();
    assert!(run(&["--no-update", "--file", &file]).1.starts_with("0.99"));
    for bad in
        [&["--min-cosine", "2", "x"][..], &[], &["--file", "none"], &["--words", "--sentence", "x"]]
    {
        assert_eq!(run(bad).0, Some(2), "{bad:?}");
    }
}

#[test]
fn an_update_that_is_killed_again_and_again_ends_like_one_that_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut moment = std::process::id();
    let mut made = 0;
    for round in 0..8u64 {
        {
            let store = Store::open_or_create_as(path, 16 << 20, 0).unwrap();
            let mut batch = store.begin().unwrap();
            for _ in 0..40 {
                made += 1;
                let article = article(&format!("http://a/{made}"), &prose(made, 60));
                clusters::join(&mut batch, &article, &Place::New, 1, Timestamp(1)).unwrap();
            }
            if let Some(number) = (round * 40).checked_sub(1) {
                let gone = format!("http://a/{number}");
                clusters::leave(&mut batch, number, &gone, Timestamp(2)).unwrap();
            }
            batch.commit().unwrap();
        }
        moment = moment.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["search", "--store", ".", "--words", "ba1"])
            .current_dir(path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(u64::from(moment >> 16) % 120));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let store = Store::open(path, 16 << 20).unwrap();
    let search = Search::open(path, &Config::default()).unwrap();
    search.update(&store).unwrap();
    assert_eq!(search.documents(), 8 * 40 - 7);
    let stepwise = assert_in_step(&search, &store);
    search.rebuild(&store).unwrap();
    assert_eq!(assert_in_step(&search, &store), stepwise);
}
