//! Pages that say something else at a further visit, have moved or are gone, and their clusters.

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::documents::Document;
use uniqcrawl::corpus::tables::{CONTENTS, DOC_IDS, DOCUMENTS};
use uniqcrawl::localweb::{Body, Page};
use uniqcrawl::store::View as _;

use crate::lab::{HOUR_MS, Lab, cluster, story};
use crate::support::{page, prose};

#[test]
fn a_new_date_or_advert_is_no_change_and_is_not_judged() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b"]));
    let text = prose(2, 300);
    let dated = |date: &str, advert: &str| {
        let html = page("A story", &format!("Printed on {date}. {text}"), &[]);
        html.replace("</body>", &format!("<div class=\"ad\">{advert}</div></body>"))
    };
    lab.html(0, "/a", dated("1 May 2026", "Buy tea"));
    lab.html(0, "/b", page("Another", &text, &[]));
    lab.run();
    let before = (lab.document(0, "/a"), lab.address(0, "/a").state);
    lab.html(0, "/a", dated("2 June 2026", "Buy coffee today and get a cup"));
    let report = lab.much_later();
    assert_eq!((report.revisits.unchanged, report.revisits.changed), (3, 0));
    assert_eq!((report.new, report.duplicates_total()), (0, 0));
    assert_eq!((lab.document(0, "/a"), lab.address(0, "/a").state), before);
    assert_eq!(lab.address(0, "/a").revisit.changes, 0);
}

#[test]
fn a_page_with_the_same_text_may_say_other_things_of_itself() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", story(2));
    lab.run();
    assert_eq!(lab.exported().len(), 2);
    let reserved = "<meta name=\"robots\" content=\"noai\"><title>";
    lab.html(0, "/a", story(2).replace("Story", "Other").replace("<title>", reserved));
    assert_eq!(lab.next_day().revisits.unchanged, 2);
    assert!(lab.document(0, "/a").title.starts_with("Other"), "{}", lab.document(0, "/a").title);
    assert_eq!(lab.exported().len(), 1, "what the page asks for now counts");
}

#[test]
fn a_changed_page_without_copies_keeps_its_identifier_and_leaves_nothing_behind() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", story(2));
    lab.run();
    let before = lab.document(0, "/a");
    assert_eq!(lab.told.lock().unwrap().len(), 2);
    for seed in 3..6 {
        lab.html(0, "/a", story(seed));
        let report = lab.next_day();
        assert_eq!((report.revisits.changed, report.documents, report.copies), (1, 2, 2));
    }
    assert_eq!(lab.document(0, "/a").id, before.id);
    assert_eq!(lab.told.lock().unwrap().len(), 2, "a document that follows its page is not new");
    assert!(lab.exported()[lab.url(0, "/a").as_str()].contains(&prose(5, 120)[..200]));
    let snapshot = lab.crawled.store.snapshot().unwrap();
    let contents = snapshot.len(CONTENTS).unwrap();
    assert_eq!(contents, 2, "texts that no page carries are gone");
}

#[test]
fn a_canonical_copy_that_says_something_else_parts_from_its_cluster() {
    let lab = Lab::new(3);
    cluster(&lab);
    lab.run();
    let whole = lab.document(0, "/story");
    assert_eq!((whole.copies, whole.canonical.as_str()), (3, lab.url(0, "/story").as_str()));

    lab.html(0, "/story", page("The price of tea", &prose(9, 200), &[]));
    lab.told.lock().unwrap().clear();
    let report = lab.next_day();
    assert_eq!((report.revisits.changed, report.new), (1, 1));
    assert_eq!(*lab.told.lock().unwrap(), [lab.url(0, "/story").as_str()], "it is told as new");
    let (apart, rest) = (lab.document(0, "/story"), lab.document(1, "/story"));
    assert_ne!(apart.id, rest.id);
    assert_eq!((rest.id, rest.copies), (whole.id, 2), "the cluster keeps its identifier");
    assert_eq!(rest.canonical, lab.url(1, "/story").as_str());
    let exported = lab.exported();
    assert!(exported[&rest.canonical].contains("Printed in town 1"));
    assert!(exported[&apart.canonical].contains(&prose(9, 200)[..200]));

    // And it comes back.
    cluster(&lab);
    let report = lab.much_later();
    assert_eq!(report.revisits.changed, 1);
    let back = lab.document(0, "/story");
    assert_eq!((back.id, back.copies), (whole.id, 3));
    assert_eq!(back.canonical, lab.url(0, "/story").as_str());
    assert_eq!(report.revisits.documents_gone, 1, "nothing carries what it said in between");
    assert!(!lab.exported().values().any(|text| text.contains(&prose(9, 200)[..200])));
}

#[test]
fn a_changed_copy_that_is_still_like_its_cluster_stays() {
    let lab = Lab::new(3);
    cluster(&lab);
    lab.run();
    let before = lab.document(0, "/story");
    let more = format!("{} {}", prose(7, 200), prose(70, 70));
    lab.html(0, "/story", page("A story of the sea", &more, &[]));
    lab.html(2, "/story", page("A story of the sea", &format!("{more} {}", prose(71, 20)), &[]));
    let report = lab.much_later();
    assert_eq!((report.revisits.changed, report.new), (2, 0));
    let after = lab.document(0, "/story");
    assert_eq!((after.id, after.copies, &after.canonical), (before.id, 3, &before.canonical));
    assert!(lab.exported()[&after.canonical].contains(&prose(70, 70)[..200]), "its text is new");
}

#[test]
fn a_text_that_was_removed_is_no_candidate_for_those_that_come_after_it() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", story(2));
    lab.run();
    lab.html(0, "/a", story(3));
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/late"]));
    let near = format!("{} Printed at nine.", prose(2, 120));
    lab.html(0, "/late", page("Story 2", &near, &[]));
    let report = lab.next_day();
    assert_eq!((report.revisits.changed, report.documents, report.copies), (2, 3, 3));
    assert_eq!(lab.document(0, "/late").copies, 1);
}

#[test]
fn a_changed_page_joins_the_document_that_has_its_text() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/other"]));
    lab.html(0, "/a", story(2));
    lab.html(0, "/other", story(3));
    lab.run();
    lab.html(0, "/other", story(2));
    let report = lab.next_day();
    assert_eq!((report.revisits.changed, report.revisits.documents_gone), (1, 1));
    assert_eq!(report.duplicates["exact_content"], 1);
    assert_eq!(lab.document(0, "/other").copies, 2);
    assert_eq!(lab.exported().len(), 2);
}

#[test]
fn a_page_is_gone_after_two_404s_and_its_cluster_elects_another_copy() {
    let lab = Lab::new(3);
    cluster(&lab);
    lab.run();
    let whole = lab.document(0, "/story");
    lab.remove(0, "/story");
    let report = lab.next_day();
    assert_eq!((report.revisits.missing, report.revisits.gone), (1, 0));
    assert_eq!(lab.document(0, "/story"), whole, "one error changes nothing");

    let report = lab.next_day();
    assert_eq!((report.revisits.missing, report.revisits.gone), (0, 1));
    let explained = lab.crawled.explain(&lab.url(0, "/story"));
    assert_eq!((explained.state, explained.reason), ("refused", Some("gone")));
    assert_eq!(report.refused["gone"], 1);
    let rest = lab.document(1, "/story");
    assert_eq!((rest.id, rest.copies), (whole.id, 2));
    assert_eq!(rest.canonical, lab.url(1, "/story").as_str());
    let text = &lab.exported()[&rest.canonical];
    assert!(text.contains("Printed in town 1"), "the next best copy tells the text: {text}");

    // The copy that stands for the cluster is looked at soon, for it may be gone as well.
    let heir = lab.address(1, "/story").revisit;
    assert_eq!(heir.due, lab.clock.now().after(std::time::Duration::from_hours(1)));

    // It is asked again only rarely, and comes back if it is there.
    assert_eq!(lab.address(0, "/story").revisit.interval_ms, 720 * HOUR_MS);
    lab.next_day();
    assert_eq!(lab.web.web.targets(0).get("/story"), None);
    cluster(&lab);
    lab.much_later();
    assert_eq!(lab.document(0, "/story").copies, 3);
    assert_eq!(lab.document(0, "/story").canonical, lab.url(0, "/story").as_str());
}

#[test]
fn a_document_without_copies_is_gone_and_left_out_until_a_page_carries_it_again() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b"]));
    lab.html(0, "/a", story(2));
    lab.html(0, "/b", story(3));
    lab.run();
    let id = lab.document(0, "/a").id;
    lab.put(0, "/a", Page::status(410));
    lab.next_day();
    assert_eq!(lab.exported().len(), 3);
    assert_eq!(lab.next_day().revisits.documents_gone, 1);
    assert_eq!(lab.exported().len(), 2);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a", "/b", "/copy"]));
    lab.html(0, "/copy", story(2));
    lab.next_day();
    let back = lab.document(0, "/copy");
    assert_eq!((back.id, back.copies, back.gone), (id, 1, Timestamp(0)));
    assert_eq!(back.canonical, lab.url(0, "/copy").as_str());
    assert_eq!(lab.exported().len(), 3);
}

#[test]
fn errors_change_nothing_however_often_they_come() {
    let lab = Lab::new(1);
    let links = ["/500", "/403", "/close", "/empty"];
    lab.html(0, "/", page("Front", &prose(1, 80), &links));
    for (seed, path) in links.iter().enumerate() {
        lab.html(0, path, story(seed as u64 + 2));
    }
    lab.run();
    let before: Vec<Document> = links.iter().map(|path| lab.document(0, path)).collect();
    lab.put(0, "/500", Page::status(500));
    lab.put(0, "/403", Page::status(403));
    lab.put(0, "/close", Page::body(Body::Close));
    lab.html(0, "/empty", page("", "", &[]));
    for _ in 0..3 {
        let report = lab.much_later();
        assert_eq!(report.revisits.failed, 3);
        // A page without text is like one that is not there: an error may be behind it, once.
        lab.html(0, "/empty", story(5));
        for (path, was) in links.iter().zip(&before) {
            assert_eq!(&lab.document(0, path), was, "{path}");
        }
    }
    let facts = format!("{:?}", lab.crawled.explain(&lab.url(0, "/403")).facts);
    assert!(facts.contains("last visit failed"), "{facts}");
}

#[test]
fn a_page_that_moved_takes_its_document_along() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/old"]));
    lab.html(0, "/old", story(2));
    lab.run();
    let id = lab.document(0, "/old").id;
    lab.put(0, "/old", Page::redirect(301, "/new"));
    lab.html(0, "/new", story(2));
    // While the redirect may be an error, both addresses carry it.
    lab.next_day();
    assert_eq!((lab.document(0, "/new").id, lab.document(0, "/new").copies), (id, 2));
    let report = lab.next_day();
    assert_eq!(report.revisits.documents_gone, 0);
    assert_eq!((lab.document(0, "/new").id, lab.document(0, "/new").copies), (id, 1));
    assert_eq!(lab.crawled.explain(&lab.url(0, "/old")).state, "redirect");
    assert_eq!(lab.document(0, "/new").canonical, lab.url(0, "/new").as_str());
}

#[test]
fn a_page_that_asks_not_to_be_indexed_leaves_at_once() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", story(2));
    lab.run();
    let asks = "<meta name=\"robots\" content=\"noindex\"><title>";
    lab.html(0, "/a", story(2).replace("<title>", asks));
    assert_eq!(lab.next_day().revisits.documents_gone, 1);
    assert_eq!(lab.crawled.explain(&lab.url(0, "/a")).reason, Some("noindex"));
    assert_eq!(lab.exported().len(), 1);
}

#[test]
fn what_robots_txt_forbids_since_is_kept_and_not_asked_for() {
    let lab = Lab::new(1);
    lab.html(0, "/", page("Front", &prose(1, 80), &["/a"]));
    lab.html(0, "/a", story(2));
    lab.run();
    lab.put(0, "/robots.txt", Page::bytes("text/plain", "User-agent: *\nDisallow: /a\n"));
    lab.next_day();
    lab.next_day();
    assert_eq!(lab.requests("/a").len(), 0);
    let explained = lab.crawled.explain(&lab.url(0, "/a"));
    assert_eq!(explained.state, "stored");
    assert!(format!("{:?}", explained.facts).contains("robots.txt of the host disallows it"));
}

#[test]
fn a_document_whose_last_copy_was_no_root_is_gone_with_a_text() {
    let lab = Lab::new(3);
    cluster(&lab);
    lab.run();
    let whole = lab.document(0, "/story");
    // The copies go one after the other; the text of the root is the one that is kept.
    for host in 0..3 {
        lab.remove(host, "/story");
        lab.much_later();
        lab.much_later();
    }
    assert_eq!(lab.crawled.clusters()[&lab.url(2, "/story").to_string()].len(), 0);
    let snapshot = lab.crawled.store.snapshot().unwrap();
    let number = snapshot.get(DOC_IDS, whole.id).unwrap().unwrap();
    let gone = snapshot.get(DOCUMENTS, number).unwrap().unwrap();
    assert!(gone.gone.0 > 0 && gone.content == gone.root, "{gone:?}");
}
