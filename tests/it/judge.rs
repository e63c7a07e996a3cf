//! The judge against a plain model, and the second look.

use proptest::prelude::*;
use uniqcrawl::neardup::{self, Config, Deduplicator, InputDocument, Preset, Verdict};
use uniqcrawl::text::features::{Fingerprinter, Input};

use crate::plain_judge::{FOLDERS, Model, Place, TITLES};
use crate::shelf::{Came, Shelf};
use crate::support::prose;

/// Pages of one site that a document is asked for; there are no more of a site in a test.
const PAGES_OF_A_SITE: usize = 8;

/// Documents that are made of a few pieces each, so that some are alike in every way.
fn documents() -> impl Strategy<Value = Vec<(Vec<u64>, Place, u64)>> {
    let pieces = prop::collection::vec(0u64..9, 0..7);
    let place = (0u64..4, 0..FOLDERS.len(), 0u64..4, 0..TITLES.len());
    let place = place.prop_map(|(site, folder, page, title)| Place { site, folder, page, title });
    prop::collection::vec((pieces, place, 0u64..3), 1..30)
}

fn text_of(pieces: &[u64]) -> String {
    let text = pieces.iter().map(|piece| prose(*piece + 1, 8 + 9 * (*piece as usize % 4)));
    text.collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn it_decides_as_the_plain_model(documents in documents(), preset in 1usize..4) {
        let config = Preset::ALL[preset].config();
        let mut dedup = Deduplicator::new(config.clone()).unwrap();
        let fingerprinter = Fingerprinter::new(config.features.clone()).unwrap();
        let mut model = Model::new(config);
        for (pieces, mut place, popularity) in documents {
            let text = text_of(&pieces);
            let of_site = model.pages.iter().filter(|page| page.place.site == place.site);
            if of_site.count() >= PAGES_OF_A_SITE {
                place.site = 0;
            }
            let (url, title) = (place.url(), TITLES[place.title].0);
            let document =
                InputDocument { url: &url, title, text: &text, popularity, ..InputDocument::default() };
            let found = match dedup.judge(document) {
                Verdict::New => None,
                Verdict::Duplicate { first, key, .. } => Some((first as usize, key)),
            };
            let input = Input { title, text: &text, url: &url, ..Input::default() };
            prop_assert_eq!(found, model.add(neardup::article_keys(&fingerprinter, &input), place, popularity));
            let found = (0..model.pages.len()).map(|page| dedup.fate(page as u32).cluster as usize);
            let wanted = model.pages.iter().map(|page| model.texts[page.text].tree);
            prop_assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        }
    }
}

/// Puts documents into a store, which must tell of each the document that has it.
fn check_told(documents: impl IntoIterator<Item = (Vec<u64>, Place, u64)>, preset: Preset) {
    let mut shelf = Shelf::with(preset.config());
    let mut pages: Vec<Came> = Vec::new();
    for (pieces, place, popularity) in documents {
        // Each page has an address of its own; those of no site are named by an identifier.
        let number = pages.len();
        let url = if place.site == 0 { number.to_string() } else { place.url() };
        let page = Came { popularity, ..Came::new(&url, TITLES[place.title].0, &text_of(&pieces)) };
        if pages.iter().any(|other| other.address == page.address) {
            continue;
        }
        let told = shelf.put(&page);
        pages.push(page);
        assert_eq!(shelf.documents_of(&pages)[number], told, "{number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_store_tells_of_each_page_the_document_that_has_it(
        documents in documents(),
        preset in 1usize..4,
    ) {
        check_told(documents, Preset::ALL[preset]);
    }
}

/// The last one is stored in a document that becomes part of another one when a page of its site
/// has to leave it.
#[test]
fn a_document_that_is_merged_while_a_page_comes_is_not_told() {
    let pages: [(&[u64], u64, u64); 7] = [
        (&[6, 2, 3], 0, 0),
        (&[3, 1, 5], 0, 0),
        (&[3], 1, 0),
        (&[5, 3], 2, 0),
        (&[3, 3], 0, 0),
        (&[5, 1], 3, 0),
        (&[3, 3], 1, 1),
    ];
    let documents = pages.map(|(pieces, site, page)| {
        (pieces.to_vec(), Place { site, folder: 0, page, title: 0 }, 0)
    });
    check_told(documents, Preset::Strict);
}

/// Site, story, and whether the boilerplate of the site stands before it; found by chance.
const PAGES: [(u64, u64, bool); 38] = {
    let mut pages = [(0, 0, false); 38];
    pages[0] = (0, 11, false);
    pages[1] = (2, 0, false);
    pages[2] = (0, 11, true);
    pages[16] = (1, 11, false);
    pages[17] = (0, 11, false);
    pages[33] = (2, 6, true);
    pages[34] = (0, 5, false);
    pages[35] = (2, 1, true);
    pages[36] = (0, 10, false);
    pages[37] = (0, 11, false);
    pages
};

#[test]
fn the_second_look_goes_on_while_a_better_place_appears() {
    let mut dedup = Deduplicator::new(Config::default()).unwrap();
    for (number, (site, story, own)) in PAGES.into_iter().enumerate() {
        let text = prose(story, 30 + 12 * (story as usize % 5));
        let text = if own { format!("{} {text}", prose(site + 500, 60)) } else { text };
        let edited = text.replacen(' ', &format!(" w{number} "), 3);
        let (url, title) = (format!("http://{site}.test/{number}"), prose(story % 4 + 50, 4));
        dedup.judge(InputDocument {
            url: &url,
            title: &title,
            text: &edited,
            ..InputDocument::default()
        });
    }
    assert!(dedup.settle() > 0, "something moves");
    assert_eq!(dedup.settle(), 0, "it would have moved to what came of another move");
}
