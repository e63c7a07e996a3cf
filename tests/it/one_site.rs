//! Pages of one site, which are one document only if the site calls them the same, and their copies
//! on other sites.

use uniqcrawl::base::clock::Timestamp;
use uniqcrawl::corpus::clusters;
use uniqcrawl::corpus::dedup::Corpus as _;
use uniqcrawl::neardup::{Config, Deduplicator};
use uniqcrawl::text::features::Fingerprinter;
use uniqcrawl::text::sketch::ShownSketch;

use crate::shelf::{Came, Shelf};
use crate::support::prose;

/// Documents by the order in which they first appear.
fn numbered<T: PartialEq + Copy>(documents: impl IntoIterator<Item = T>) -> Vec<usize> {
    let mut seen: Vec<T> = Vec::new();
    let number = |document: T| {
        let known = seen.iter().position(|other| *other == document);
        known.unwrap_or_else(|| {
            seen.push(document);
            seen.len() - 1
        })
    };
    documents.into_iter().map(number).collect()
}

fn shelf(pages: &[Came]) -> Shelf {
    let mut shelf = Shelf::new();
    for page in pages {
        shelf.put(page);
    }
    shelf
}

/// Which pages are one document, in a store.
fn stored(pages: &[Came]) -> Vec<usize> {
    numbered(shelf(pages).documents_of(pages))
}

fn judged(pages: &[Came]) -> Deduplicator {
    let mut dedup = Deduplicator::new(Config::default()).unwrap();
    let fingerprinter = Fingerprinter::default();
    for page in pages {
        dedup.judge_keys(page.keys(&fingerprinter), page.popularity);
    }
    dedup
}

fn fates(dedup: &Deduplicator) -> Vec<usize> {
    numbered((0..dedup.len() as u32).map(|page| dedup.fate(page).cluster))
}

/// The same in memory, where it is not known which page names another one or is doubtful.
fn in_memory(pages: &[Came]) -> Vec<usize> {
    fates(&judged(pages))
}

/// Asserts which pages are one document, for a store and for a corpus of lines.
#[track_caller]
fn check(pages: &[Came], documents: &[usize]) {
    assert_eq!(stored(pages), documents, "in a store");
    assert_eq!(in_memory(pages), documents, "in memory");
}

/// A page of the site that most tests are about.
fn page(path: &str, title: &str, text: &str) -> Came {
    Came::new(&format!("http://one.test/{path}"), title, text)
}

/// A text in which the first so many words of every hundred are others.
fn edited(text: &str, of_hundred: usize) -> String {
    let words = text.split(' ').enumerate();
    let words =
        words.map(
            |(at, word)| {
                if at * 37 % 100 < of_hundred { format!("w{at}") } else { word.to_owned() }
            },
        );
    words.collect::<Vec<_>>().join(" ")
}

/// What a page shows, of which so many of a hundred parts are its own.
fn shown(own: u64, of_hundred: u64) -> ShownSketch {
    let part = |part: u64| if part % 100 < of_hundred { part + own * 1_000_000 } else { part };
    ShownSketch::of((0..2_000).map(part))
}

#[test]
fn pages_with_other_titles_are_two_documents_however_alike() {
    let text = prose(1, 300);
    let with = |name: &str| text.replace("ba", name);
    let added = format!("{text} {}", prose(2, 40));
    for other in [
        text.replacen(' ', " 17 ", 1),
        with("lo"),
        edited(&text, 25),
        added,
        format!("{text} more"),
    ] {
        check(
            &[page("a", "The tides of May", &text), page("b", "A walk in winter", &other)],
            &[0, 1],
        );
    }
}

#[test]
fn editions_that_are_in_the_way_of_a_better_page_leave_together() {
    let text = prose(1, 300);
    let copy = Came::new("http://two.test/copy", "Another title", &text);
    let tides = |edition: &str, note: &str| {
        let text = format!("{} {note}", edited(&text, 15));
        page(&format!("{edition}/tides"), "The tides of May", &text)
    };
    let (old, new) = (tides("v1", "An old note."), tides("v2", "A new note, of this year."));
    let walk = page("walk", "A walk in winter", &edited(&text, 2));
    check(&[copy.clone(), old.clone()], &[0, 0]);
    check(&[copy.clone(), old.clone(), walk.clone()], &[0, 1, 0]);
    check(&[copy.clone(), old.clone(), new.clone(), walk.clone()], &[0, 1, 1, 0]);
    check(&[copy, walk, old, new], &[0, 0, 1, 1]);
}

#[test]
fn a_page_that_comes_behind_its_copy_joins_no_other_page_of_its_site() {
    let text = prose(1, 300);
    let pages = [
        page("tides", "The tides of May", &edited(&text, 15)),
        Came::new("http://two.test/copy", "Another title", &text),
        page("walk", "A walk in winter", &text),
    ];
    check(&pages[..2], &[0, 0]);
    check(&pages, &[0, 1, 1]);
}

#[test]
fn a_root_that_another_page_of_the_site_has_is_in_nobodys_way() {
    let (root, leaf) = (prose(1, 300), edited(&prose(1, 300), 15));
    let pages = [
        Came::new("http://two.test/root", "A root", &root),
        page("tides", "The tides of May", &root),
        Came::new("http://three.test/leaf", "A leaf", &leaf),
        page("walk", "A walk in winter", &leaf),
    ];
    check(&pages[..3], &[0, 0, 0]);
    check(&pages, &[0, 0, 1, 1]);
}

#[test]
fn texts_that_are_packed_against_one_that_leaves_stay_readable() {
    let text = prose(1, 300);
    let mut shelf = Shelf::new();
    let tides = shelf.put(&page("tides", "The tides of May", &prose(5, 300)));
    let copy = Came::new("http://two.test/copy", "Another title", &text);
    let was = shelf.put(&copy);
    assert_eq!(shelf.put(&Came::new("http://three.test/edited", "", &edited(&text, 5))), was);
    shelf.write(|batch| clusters::merge(batch, was, tides, Timestamp(9)).unwrap());
    // It takes its copy with it, of which nothing is left then.
    let walk = shelf.put(&page("walk", "A walk in winter", &text));
    assert_ne!(walk, tides);
    let left = shelf.write(|batch| {
        shelf.placer(batch, Timestamp(10)).leave(walk, "http://two.test/copy").unwrap()
    });
    assert_eq!(left.contents.len(), 1, "the text is put down");
}

#[test]
fn a_page_that_was_the_last_to_carry_its_text_is_called_otherwise() {
    let text = prose(1, 300);
    let mut shelf = Shelf::new();
    let tides = shelf.put(&page("v1/tides", "The tides of May", &edited(&text, 15)));
    assert_eq!(shelf.put(&Came::new("http://two.test/copy", "Another title", &text)), tides);
    assert_eq!(shelf.put(&page("v2/tides", "The tides of May", &text)), tides);
    shelf.write(|batch| {
        shelf.placer(batch, Timestamp(9)).leave(tides, "http://two.test/copy").unwrap()
    });
    let walk = page("v2/tides", "A walk in winter", &text);
    let article = walk.article(&Fingerprinter::default());
    let (placed, _) =
        shelf.write(|batch| shelf.placer(batch, Timestamp(10)).revise(tides, &article, 0).unwrap());
    assert_ne!(placed.document, tides);
}

#[test]
fn a_copy_finds_its_page_among_very_many_that_resemble_it() {
    let text = prose(1, 300);
    let alike = |n: usize| {
        let text = format!("{text} Part {n} of all, {}", prose(100 + n as u64, 12));
        page(&format!("part/{n}"), &format!("Part of all, number {n}"), &text)
    };
    let mut pages: Vec<Came> = (0..100).map(alike).collect();
    let walk = page("walk", "A walk in winter", &format!("{text} {}", prose(9, 12)));
    pages.push(Came { address: "http://two.test/copy".to_owned(), ..walk.clone() });
    pages.push(walk);
    let shelf = shelf(&pages);
    shelf.look_again();
    let mut dedup = judged(&pages);
    dedup.settle();
    for found in [numbered(shelf.documents_of(&pages)), fates(&dedup)] {
        assert_eq!(found[100], found[101], "the copy is one document with its page");
        assert_eq!(found.iter().filter(|document| **document == found[101]).count(), 2);
    }
}

#[test]
fn pages_that_differ_in_a_number_alone_are_as_many_documents_as_there_are() {
    let text = prose(1, 300);
    let number = |n: usize| {
        let text = format!("Lot {n} of the sale. {text} The lot {n} is sold on day {n}.");
        page(&format!("lot/{n}"), &format!("Lot number {n} of the sale"), &text)
    };
    check(&(0..8).map(number).collect::<Vec<_>>(), &[0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn equal_texts_under_other_titles_are_one_document_if_they_are_long() {
    let pair = |words| {
        let text = prose(1, words);
        [page("a", "The tides of May", &text), page("b", "A walk in winter", &text)]
    };
    check(&pair(50), &[0, 0]);
    check(&pair(49), &[0, 1]);
    let text = prose(1, 49);
    let titled = [page("a", "The tides of May", &text), page("b", "The tides of May", &text)];
    check(&titled, &[0, 0]);
}

#[test]
fn equal_texts_under_other_titles_are_two_documents_if_they_are_doubtful() {
    let text = prose(1, 200);
    let doubtful = Came { doubtful: true, ..page("b", "A walk in winter", &text) };
    assert_eq!(stored(&[page("a", "The tides of May", &text), doubtful.clone()]), [0, 1]);
    assert_eq!(stored(&[doubtful, page("a", "The tides of May", &text)]), [0, 1]);
}

#[test]
fn equal_texts_under_other_titles_are_two_documents_if_the_pages_show_other_things() {
    let text = prose(1, 200);
    let pair = |of_hundred| {
        [("a", "The tides of May", 1), ("b", "A walk in winter", 2)].map(|(path, title, own)| {
            Came { shown: Some(shown(own, of_hundred)), ..page(path, title, &text) }
        })
    };
    assert_eq!(stored(&pair(5)), [0, 0]);
    assert_eq!(stored(&pair(30)), [0, 1]);
}

#[test]
fn short_texts_under_one_title_are_two_documents_if_the_pages_show_other_things() {
    let pair = |words, of_hundred| {
        [("a", 1), ("b", 2)].map(|(path, own)| {
            let shown = Some(shown(own, of_hundred));
            Came { shown, ..page(path, "The tides of May", &prose(1, words)) }
        })
    };
    assert_eq!(stored(&pair(40, 30)), [0, 0]);
    assert_eq!(stored(&pair(40, 80)), [0, 1]);
    assert_eq!(stored(&pair(60, 80)), [0, 0], "it is long enough to speak for itself");
}

#[test]
fn editions_of_a_page_are_one_document() {
    let text = prose(1, 300);
    for [one, other] in [
        ["en/guide.html", "de/guide.html"],
        ["docs/15/guide.html", "docs/16/guide.html"],
        ["v1.2/guide.html", "latest/guide.html"],
        ["amd64/guide.html", "arm64/guide.html"],
        ["guide.html?print=1", "guide.html"],
    ] {
        let pages = |title: &str| [page(one, "", &text), page(other, title, &edited(&text, 20))];
        check(&pages(""), &[0, 0]);
        check(&pages("The guide to the tides"), &[0, 0]);
    }
    check(&[page("item/15/a", "", &text), page("item/16/a", "", &edited(&text, 20))], &[0, 1]);
}

#[test]
fn pages_of_equal_titles_are_one_document_if_the_texts_are_alike() {
    let text = prose(1, 300);
    let pair = |text: &str, other: &str| {
        [page("a", "The tides of May", text), page("b", "The tides of May", other)]
    };
    check(&pair(&text, &edited(&text, 20)), &[0, 0]);
    check(&pair(&text, &edited(&text, 60)), &[0, 1]);
}

#[test]
fn an_edition_with_another_title_needs_more_than_one_with_the_same() {
    let text = prose(1, 300);
    let pair = |title: &str, of_hundred| {
        let other = edited(&text, of_hundred);
        [page("en/a", "The tides of May", &text), page("de/a", title, &other)]
    };
    check(&pair("Die Gezeiten im Mai", 8), &[0, 0]);
    check(&pair("Die Gezeiten im Mai", 22), &[0, 1]);
    check(&pair("The tides of May", 22), &[0, 0]);
}

#[test]
fn a_title_that_four_pages_have_proves_nothing() {
    let text = prose(1, 300);
    // Each is much like the first, and nothing else tells them apart.
    let number = |n: usize| page(&format!("day/d{n}"), "The tides of today", &edited(&text, 4 * n));
    let pages: Vec<Came> = (0..5).map(number).collect();
    check(&pages[..3], &[0, 0, 0]);
    check(&pages[..4], &[0, 0, 0, 1]);
}

#[test]
fn a_page_that_names_another_one_as_canonical_is_a_copy_of_it() {
    let text = prose(1, 300);
    let named = |declared: &str| {
        let other = page("b", "A walk in winter", &edited(&text, 15));
        [page("a", "The tides of May", &text), Came { declared: declared.to_owned(), ..other }]
    };
    assert_eq!(stored(&named("http://one.test/a")), [0, 0]);
    assert_eq!(stored(&named("http://one.test/c")), [0, 1]);
    let [first, second] = named("http://one.test/a");
    assert_eq!(stored(&[second, first]), [0, 0]);
    let unlike = page("b", "A walk in winter", &prose(2, 300));
    let unlike = Came { declared: "http://one.test/a".to_owned(), ..unlike };
    assert_eq!(stored(&[page("a", "The tides of May", &text), unlike]), [0, 1]);
}

/// All orders of four things.
fn orders() -> Vec<[usize; 4]> {
    let mut orders = Vec::new();
    for code in 0..256 {
        let order = [code % 4, code / 4 % 4, code / 16 % 4, code / 64];
        if (0..4).all(|one| order.contains(&one)) {
            orders.push(order);
        }
    }
    assert_eq!(orders.len(), 24);
    orders
}

#[test]
fn each_of_two_pages_that_are_alike_finds_its_mirror_in_any_order_of_arrival() {
    let text = prose(1, 300);
    for (of_hundred, notice) in
        [(6, ""), (15, ""), (6, " Printed in town at nine."), (15, " Printed in town at nine.")]
    {
        let other = edited(&text, of_hundred);
        let mirror = |path: &str, title: &str, text: &str| {
            Came::new(&format!("http://two.test/{path}"), title, &format!("{text}{notice}"))
        };
        let pages = [
            page("p", "The tides of May", &text),
            mirror("m", "The tides of May", &text),
            page("p2", "The tides of June", &other),
            mirror("m2", "The tides of June", &other),
        ];
        for order in orders() {
            let came: Vec<Came> = order.iter().map(|page| pages[*page].clone()).collect();
            let wanted = numbered(order.iter().map(|page| page / 2));
            assert_eq!(stored(&came), wanted, "{of_hundred} {notice} {order:?} in a store");
            assert_eq!(in_memory(&came), wanted, "{of_hundred} {notice} {order:?} in memory");
        }
    }
}

#[test]
fn a_document_never_has_two_different_pages_of_a_site() {
    let text = prose(1, 300);
    // Copies of one text on many sites, among them three pages of one site that it calls
    // differently.
    for seed in 0..12_u64 {
        let mut pages: Vec<Came> = (0..6_u64)
            .map(|n| {
                let text = edited(&text, (n * 5 + seed) as usize % 25);
                Came::new(&format!("http://s{n}.test/{seed}"), "", &text)
            })
            .collect();
        for n in 0..3_u64 {
            let title = ["The tides of May", "A walk in winter", "Boats and their names"];
            let at = (seed * 7 + n * 3) as usize % pages.len();
            let text = edited(&text, (n * 4 + seed) as usize % 20);
            pages.insert(at, page(&format!("p{n}"), title[n as usize], &text));
        }
        for found in [stored(&pages), in_memory(&pages)] {
            let of_site = (0..pages.len()).filter(|at| pages[*at].address.contains("one.test"));
            let mut documents: Vec<usize> = of_site.map(|at| found[at]).collect();
            documents.sort_unstable();
            documents.dedup();
            assert_eq!(documents.len(), 3, "{seed}: {found:?}");
        }
    }
}

#[test]
fn a_store_and_a_corpus_of_lines_say_the_same_of_the_same_pages() {
    for seed in 0..40_u64 {
        let pages: Vec<Came> = (0..20_u64)
            .map(|n| {
                let chance = (n + 1).wrapping_mul(seed * 2 + 0x9E37_79B9_7F4A_7C15).rotate_left(29);
                let (site, text) = (chance % 4, prose(chance / 4 % 3 + 1, 120));
                let title =
                    ["", "The tides of May", "A walk in winter"][(chance / 12 % 3) as usize];
                let folder = ["en", "de", "rt4", "rt5"][(chance / 36 % 4) as usize];
                let text = edited(&text, (chance / 144 % 5) as usize * 7);
                // The first one is canonical: addresses of equal popularity would decide in a store
                // alone.
                let address = format!("http://s{site}.test/{folder}/{n}");
                Came { popularity: 100 - n, ..Came::new(&address, title, &text) }
            })
            .collect();
        assert_eq!(stored(&pages), in_memory(&pages), "{seed}");
    }
}
