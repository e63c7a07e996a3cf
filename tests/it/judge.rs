//! The judge against a plain model, and the second look.

use proptest::prelude::*;
use uniqcrawl::neardup::{Config, Deduplicator, InputDocument, Preset, Verdict};
use uniqcrawl::text::features::{Input, Signer};

use crate::plain_judge::{FOLDERS, Model, Place, TITLES};
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn it_decides_as_the_plain_model(documents in documents(), preset in 1usize..4) {
        let config = Preset::ALL[preset].config();
        let mut dedup = Deduplicator::new(config.clone()).unwrap();
        let signer = Signer::new(config.features.clone()).unwrap();
        let mut model = Model::new(config);
        for (pieces, mut place, popularity) in documents {
            let text: Vec<String> =
                pieces.iter().map(|piece| prose(*piece + 1, 8 + 9 * (*piece as usize % 4))).collect();
            let text = text.join(" ");
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
            prop_assert_eq!(found, model.add(signer.sign_input(&input), place, popularity));
            let found = (0..model.pages.len()).map(|page| dedup.fate(page as u32).cluster as usize);
            let wanted = model.pages.iter().map(|page| model.texts[page.text].tree);
            prop_assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        }
    }
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
