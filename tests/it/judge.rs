//! The judge against a plain model: every document is compared with every other, key by key.

use proptest::prelude::*;
use uniqcrawl::dedup::{Bond, Config, Deduplicator, Document, Likeness, Preset, Sites, Verdict};
use uniqcrawl::documents::Key;
use uniqcrawl::features::{Signed, Signer, site_of};
use uniqcrawl::sketch::SLOTS;

use crate::support::prose;

/// One distinct text with the number of its tree.
struct Node {
    signed: Signed,
    tree: usize,
}

struct Tree {
    root: Signed,
    first: u32,
    copies: u32,
}

struct Model {
    config: Config,
    nodes: Vec<Node>,
    trees: Vec<Tree>,
    judged: u32,
}

fn shares(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|key| other.contains(key))
}

impl Model {
    /// The first key in the order of keys that two texts share.
    fn key(&self, one: &Signed, other: &Signed) -> Option<Key> {
        let config = &self.config;
        let least = config.rule.words_min;
        if one.text.words < least || other.text.words < least {
            return None;
        }
        let bands = |signed: &Signed| -> Vec<u32> {
            signed.text.sketch.bands(config.bands, config.band_rows).collect()
        };
        let titles = one.title.zip(other.title).is_some_and(|(a, b)| a.distance(b) <= 3);
        if titles && config.titles {
            Some(Key::Title)
        } else if one.text.fingerprint.distance(other.text.fingerprint) <= config.k {
            Some(Key::Near)
        } else if config.sentences && shares(&one.text.sentences, &other.text.sentences) {
            Some(Key::Sentence)
        } else {
            shares(&bands(one), &bands(other)).then_some(Key::Shingles)
        }
    }

    fn add(&mut self, signed: Signed) -> Option<(u32, Key)> {
        let number = self.judged;
        self.judged += 1;
        let found = self.place(&signed);
        if let Some((tree, key)) = found {
            self.trees[tree].copies += 1;
            if key != Key::Exact {
                self.nodes.push(Node { signed, tree });
            }
            return Some((self.trees[tree].first, key));
        }
        let tree = self.trees.len();
        self.trees.push(Tree { root: signed.clone(), first: number, copies: 1 });
        self.nodes.push(Node { signed, tree });
        None
    }

    fn place(&self, signed: &Signed) -> Option<(usize, Key)> {
        if signed.text.words == 0 {
            return None;
        }
        if let Some(node) = self.nodes.iter().find(|node| node.signed.text.hash == signed.text.hash)
        {
            return Some((node.tree, Key::Exact));
        }
        let mut keys: Vec<Vec<Key>> = vec![Vec::new(); self.trees.len()];
        for node in &self.nodes {
            keys[node.tree].extend(self.key(signed, &node.signed));
        }
        let found: Vec<usize> =
            (0..self.trees.len()).filter(|tree| !keys[*tree].is_empty()).collect();
        let takes = found.iter().filter_map(|tree| {
            let titled = keys[*tree].contains(&Key::Title);
            let alike = self.alike(signed, *tree, &found, titled)?;
            let Tree { root, first, copies } = &self.trees[*tree];
            let tenth = ((alike * 10.0) as i32).min(9);
            let order = (-tenth, u32::MAX - copies, *first, root.text.fingerprint);
            Some((order, (*tree, *keys[*tree].iter().min().unwrap())))
        });
        takes.min_by_key(|(order, _)| *order).map(|(_, place)| place)
    }

    /// Similarity to a tree that would take the text.
    fn alike(&self, signed: &Signed, tree: usize, found: &[usize], titled: bool) -> Option<f32> {
        let (rule, mine) = (&self.config.rule, &signed.text);
        let its = &self.trees[tree].root.text;
        let similarity = mine.sketch.similarity(&its.sketch);
        let (one, other) = (signed.site, self.trees[tree].root.site);
        let sites = match one == other {
            _ if one == 0 || other == 0 => Sites::Unknown,
            true => Sites::One,
            false => Sites::Two,
        };
        let sure_min = if sites == Sites::One { rule.site_sure_min } else { rule.sure_min };
        let abroad = sites == Sites::Two;
        let bond = Bond { titled, sites };
        if !rule.confirm || similarity >= sure_min {
            return Some(if rule.confirm { similarity } else { 0.0 });
        }
        if !rule.same(Likeness::of(similarity, mine.shingles, its.shingles), bond) {
            return None;
        }
        let mut own = [true; SLOTS];
        for other in found.iter().filter(|other| **other != tree) {
            let other = &self.trees[*other].root.text.sketch;
            let related = mine.sketch.similarity(other) >= 0.08;
            if related && other.similarity(&its.sketch) >= (0.4 * similarity).max(0.08) {
                for (at, own) in own.iter_mut().enumerate() {
                    *own &= other.0[at] != mine.sketch.0[at]
                        && (!abroad || other.0[at] != its.sketch.0[at]);
                }
            }
        }
        let count = own.iter().filter(|own| **own).count();
        let likeness = if count == SLOTS {
            Likeness::of(similarity, mine.shingles, its.shingles)
        } else if count < 24 {
            Likeness::of(0.0, mine.shingles, its.shingles)
        } else {
            let common = mine.shingles as f32 * (SLOTS - count) as f32 / SLOTS as f32;
            #[expect(clippy::cast_sign_loss, reason = "at least one")]
            let rest = |shingles: u32| (shingles as f32 - common).max(1.0) as u32;
            let similarity = mine.sketch.similarity_in(&its.sketch, &own);
            Likeness::of(similarity, rest(mine.shingles), rest(its.shingles))
        };
        let copied = titled && abroad && similarity >= rule.titled_sure_min;
        (copied || rule.same(likeness, bond)).then_some(likeness.similarity)
    }
}

/// Documents that are made of a few pieces each, so that some are alike in every way.
fn documents() -> impl Strategy<Value = Vec<(Vec<u64>, u64, u64)>> {
    let pieces = prop::collection::vec(0u64..14, 0..6);
    prop::collection::vec((pieces, 0u64..6, 0u64..4), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn it_decides_as_the_plain_model(documents in documents(), preset in 0usize..4) {
        let config = Preset::ALL[preset].config();
        let mut dedup = Deduplicator::new(config.clone()).unwrap();
        let signer = Signer::new(config.features.clone()).unwrap();
        let mut model = Model { config, nodes: Vec::new(), trees: Vec::new(), judged: 0 };
        for (pieces, title, site) in &documents {
            let text: Vec<String> =
                pieces.iter().map(|piece| prose(*piece + 1, 8 + 9 * (*piece as usize % 4))).collect();
            let text = text.join(" ");
            let title = prose(*title + 50, 4);
            let url = if *site == 0 { String::new() } else { format!("http://{site}.test/") };
            let document = Document { url: &url, title: &title, text: &text, ..Document::default() };
            let found = match dedup.judge(document) {
                Verdict::New => None,
                Verdict::Duplicate { first, key, .. } => Some((first, key)),
            };
            let mut signed = signer.sign_article(&title, &text, "");
            signed.site = site_of(&url);
            prop_assert_eq!(found, model.add(signed));
        }
        prop_assert_eq!(dedup.len(), documents.len());
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
        dedup.judge(Document { url: &url, title: &title, text: &edited, ..Document::default() });
    }
    assert!(dedup.settle() > 0, "something moves");
    assert_eq!(dedup.settle(), 0, "it would have moved to what came of another move");
}
