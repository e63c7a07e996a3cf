//! The judge against a plain model: every document is compared with every other, key by key.

use uniqcrawl::dedup::{Config, Deduplicator, Document};

use crate::support::prose;

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
        dedup.judge(Document { url: &url, title: &title, text: &edited, ..Document::default() });
    }
    assert!(dedup.settle() > 0, "something moves");
    assert_eq!(dedup.settle(), 0, "it would have moved to what came of another move");
}
