//! A plain model of the judge: every document is compared with every other, key by key, and nothing
//! is counted that can be looked up.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use uniqcrawl::neardup::{Bond, Config, Key, Likeness, Rule};
use uniqcrawl::text::features::ArticleKeys;
use uniqcrawl::text::sketch::SLOTS;

/// Folders, with what is left of them when editions are out, and without numbers.
pub(crate) const FOLDERS: [(&str, &str, &str); 5] = [
    ("", "", ""),
    ("/de", "", ""),
    ("/v2", "", ""),
    ("/rt4", "/rt4", "/rt"),
    ("/rt5", "/rt5", "/rt"),
];

/// Titles, with what they say if that is two words, and without the number of a chapter.
pub(crate) const TITLES: [(&str, &str, &str); 6] = [
    ("", "", ""),
    ("Home", "", ""),
    ("The Harbour Tale", "the harbour tale", "the harbour tale"),
    ("1. The Harbour Tale", "1. the harbour tale", "the harbour tale"),
    ("2. The Harbour Tale", "2. the harbour tale", "the harbour tale"),
    ("Tides of Winter", "tides of winter", "tides of winter"),
];

/// Where a page stands: site (0 is not known), folder, page, title.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub site: u64,
    pub folder: usize,
    pub page: u64,
    pub title: usize,
}

impl Place {
    pub(crate) fn url(&self) -> String {
        let Self { site, folder, page, .. } = self;
        let folder = FOLDERS[*folder].0;
        if *site == 0 { String::new() } else { format!("http://{site}.test{folder}/p{page}.html") }
    }

    fn edition(&self) -> (u64, &str, u64) {
        (self.site, FOLDERS[self.folder].1, self.page)
    }

    fn has(
        &self,
        other: &Self,
        of: impl Fn(&(&'static str, &'static str, &'static str)) -> &'static str,
    ) -> bool {
        let (one, other) = (of(&TITLES[self.title]), of(&TITLES[other.title]));
        !one.is_empty() && one == other
    }
}

#[derive(Clone)]
pub(crate) struct Text {
    keys: ArticleKeys,
    place: Place,
    pub tree: usize,
}

pub(crate) struct Page {
    pub text: usize,
    pub place: Place,
    popularity: u64,
}

pub(crate) struct Model {
    config: Config,
    pub texts: Vec<Text>,
    pub pages: Vec<Page>,
    /// The text at the root of each tree.
    roots: Vec<usize>,
}

/// An article that is judged, and its text if that is known.
struct Asked<'a> {
    keys: &'a ArticleKeys,
    place: Place,
    text: Option<usize>,
    leaves: Option<usize>,
}

/// A tree that may take it.
struct Related {
    tree: usize,
    key: Key,
    titled: bool,
    leaf: Option<usize>,
}

/// How it would hang on a tree.
struct Match {
    tree: usize,
    key: Key,
    similarity: f32,
    evicts: Vec<usize>,
}

/// What the names of its site are worth.
struct Names {
    titles: usize,
    documents: usize,
}

/// A text that may confirm it.
struct Pillar {
    tree: usize,
    text: usize,
    bond: Bond,
}

fn shared<T: PartialEq>(one: &[T], other: &[T]) -> u32 {
    one.iter().map(|key| other.iter().filter(|other| *other == key).count() as u32).sum()
}

fn slots(similarity: f32) -> i32 {
    (similarity * SLOTS as f32).round() as i32
}

impl Asked<'_> {
    fn alike(&self, other: &Text) -> f32 {
        self.keys.text.sketch.similarity(&other.keys.text.sketch)
    }
}

impl Model {
    pub(crate) fn new(config: Config) -> Self {
        Self { config, texts: Vec::new(), pages: Vec::new(), roots: Vec::new() }
    }

    fn rule(&self) -> &Rule {
        &self.config.rule
    }

    /// The keys that two texts share, and how much they say.
    fn keys(&self, one: &ArticleKeys, other: &ArticleKeys) -> (Vec<Key>, u32) {
        let config = &self.config;
        let (mut keys, mut votes) = (Vec::new(), 0);
        if one.text.words.min(other.text.words) < config.rule.words_min {
            return (keys, votes);
        }
        let mut add = |key, more| {
            if more > 0 {
                keys.push(key);
                votes += more;
            }
        };
        let bands = |keys: &ArticleKeys| -> Vec<u64> {
            keys.text.sketch.bands(config.bands, config.band_rows).collect()
        };
        let titles = one.title.zip(other.title).is_some_and(|(a, b)| a.distance(b) <= 3);
        add(Key::Title, 2 * u32::from(titles && config.titles));
        let near = one.text.fingerprint.distance(other.text.fingerprint) <= config.k;
        add(Key::Near, 6 * u32::from(near));
        if config.sentences {
            add(Key::Sentence, 3 * shared(&one.text.sentences, &other.text.sentences));
        }
        add(Key::Shingles, shared(&bands(one), &bands(other)));
        let tails = one.text.sketch.slots.iter().zip(&*other.text.sketch.slots).skip(SLOTS / 2);
        if keys == [Key::Shingles] && tails.filter(|(one, other)| one == other).count() < 10 {
            keys.clear();
        }
        (keys, votes)
    }

    /// Texts that share a key with an article, those for which most speaks first.
    fn candidates(&self, asked: &Asked<'_>) -> Vec<(usize, Vec<Key>)> {
        let texts = (0..self.texts.len()).filter(|text| asked.text != Some(*text));
        let found = texts.map(|text| (text, self.keys(asked.keys, &self.texts[text].keys)));
        let mut found: Vec<_> = found.filter(|(_, (keys, _))| !keys.is_empty()).collect();
        found.sort_by_key(|(_, (_, votes))| Reverse(*votes));
        found.into_iter().map(|(text, (keys, _))| (text, keys)).collect()
    }

    fn pages(&self, tree: usize) -> impl Iterator<Item = usize> {
        (0..self.pages.len()).filter(move |page| self.texts[self.pages[*page].text].tree == tree)
    }

    fn copies(&self, tree: usize) -> usize {
        self.pages(tree).count()
    }

    fn first(&self, tree: usize) -> usize {
        self.pages(tree).next().unwrap()
    }

    /// The text of the most popular page; of several, of the first.
    fn canonical(&self, tree: usize) -> usize {
        let order = |page: &usize| (Reverse(self.pages[*page].popularity), *page);
        self.pages[self.pages(tree).min_by_key(order).unwrap()].text
    }

    /// Pages of a tree on the site of an article.
    fn mates(&self, asked: &Asked<'_>, tree: usize) -> Vec<usize> {
        let site = asked.place.site;
        let is_mate = |page: &Page| page.place.site == site && asked.text != Some(page.text);
        self.pages(tree).filter(|page| site != 0 && is_mate(&self.pages[*page])).collect()
    }

    fn names(&self, asked: &Asked<'_>, candidates: &[(usize, Vec<Key>)]) -> Names {
        let (mut titles, mut documents) =
            (BTreeSet::from([asked.place.edition()]), BTreeSet::new());
        for (text, _) in candidates {
            let text = &self.texts[*text];
            if asked.place.site == 0 || text.place.site != asked.place.site {
                continue;
            }
            if text.keys.title == asked.keys.title {
                titles.insert(text.place.edition());
            }
            if text.place.edition() == asked.place.edition() && asked.alike(text) >= 0.08 {
                documents.insert(text.tree);
            }
        }
        Names { titles: titles.len(), documents: documents.len() }
    }

    /// What confirms an article, and how alike it is without commonplaces.
    fn confirm(&self, asked: &Asked<'_>, related: &[Related], pillar: &Pillar) -> Option<f32> {
        let (rule, mine, its) = (self.rule(), &asked.keys.text, &self.texts[pillar.text].keys.text);
        let similarity = mine.sketch.similarity(&its.sketch);
        let whole = Likeness::of(similarity, mine.shingles, its.shingles);
        if !rule.same(whole, pillar.bond) || rule.sure(similarity, pillar.bond) {
            return rule.same(whole, pillar.bond).then_some(similarity);
        }
        let two_sites = matches!(pillar.bond, Bond::Abroad { .. });
        let mut own = [true; SLOTS];
        for other in related.iter().filter(|other| other.tree != pillar.tree) {
            if asked.text == Some(self.roots[other.tree]) {
                continue;
            }
            let root = &self.texts[self.roots[other.tree]];
            let other = &root.keys.text.sketch;
            let least = (0.4 * similarity).max(0.08);
            if asked.alike(root) >= 0.08 && other.similarity(&its.sketch) >= least {
                for (at, own) in own.iter_mut().enumerate() {
                    *own &= other.slots[at] != mine.sketch.slots[at]
                        && (!two_sites || other.slots[at] != its.sketch.slots[at]);
                }
            }
        }
        let count = own.iter().filter(|own| **own).count();
        let likeness = if count == SLOTS {
            whole
        } else if count < 24 {
            Likeness::of(0.0, mine.shingles, its.shingles)
        } else {
            let common = mine.shingles as f32 * (SLOTS - count) as f32 / SLOTS as f32;
            #[expect(clippy::cast_sign_loss, reason = "at least one")]
            let rest = |shingles: u32| (shingles as f32 - common).max(1.0) as u32;
            let similarity = mine.sketch.similarity_in(&its.sketch, &own);
            Likeness::of(similarity, rest(mine.shingles), rest(its.shingles))
        };
        let same = rule.rest_is_same(likeness, pillar.bond);
        (same || rule.copied(similarity, pillar.bond)).then_some(likeness.similarity)
    }

    /// The pages of its site: how alike it is to one that takes it.
    fn by_mates(
        &self,
        asked: &Asked<'_>,
        (names, related): (&Names, &[Related]),
        (tree, mates): (usize, &[usize]),
    ) -> Option<(Bond, f32)> {
        let answers = mates.iter().map(|mate| {
            let Page { text, place, .. } = self.pages[*mate];
            let (mine, its) = (&asked.keys.text, &self.texts[text].keys.text);
            let similarity = mine.sketch.similarity(&its.sketch);
            let bond = bond(names, &asked.place, &place, similarity);
            let equal = mine.hash == its.hash;
            let long = mine.words.min(its.words) >= self.rule().site_words_min;
            let borne_out = match bond {
                Bond::Apart => long && equal,
                Bond::Unclear => long,
                _ => true,
            };
            let alike = match equal {
                _ if !borne_out => None,
                true => Some(1.0),
                false => self.confirm(asked, related, &Pillar { tree, text, bond }),
            };
            (bond, alike)
        });
        let answers: Vec<(Bond, Option<f32>)> = answers.collect();
        let all = answers.iter().all(|(_, alike)| alike.is_some());
        let yes = answers.into_iter().filter_map(|(bond, alike)| Some((bond, alike?)));
        let yes = yes.filter(|(bond, _)| all || *bond != Bond::Unclear);
        yes.max_by_key(|(bond, alike)| (is_kin(*bond), slots(*alike)))
    }

    /// Root, canonical copy and the leaf that is most alike.
    fn by_pillars(&self, asked: &Asked<'_>, related: &[Related], tree: &Related) -> Option<f32> {
        let canonical = self.canonical(tree.tree);
        let leaf = tree
            .leaf
            .filter(|leaf| asked.alike(&self.texts[*leaf]) >= self.rule().leaf_similarity_min);
        let pillars = [Some(self.roots[tree.tree]), Some(canonical), leaf];
        pillars.into_iter().flatten().find_map(|text| {
            let (one, other) = (asked.place.site, self.texts[text].place.site);
            let titled = tree.titled;
            let bond = if one == 0 || other == 0 || one == other {
                Bond::Unknown { titled }
            } else {
                Bond::Abroad { titled }
            };
            self.confirm(asked, related, &Pillar { tree: tree.tree, text, bond })
        })
    }

    fn matched(
        &self,
        asked: &Asked<'_>,
        names: &Names,
        related: &[Related],
        tree: &Related,
    ) -> Option<Match> {
        let (rule, mine, root) = (self.rule(), &asked.keys.text, self.roots[tree.tree]);
        let found =
            |similarity, evicts| Some(Match { tree: tree.tree, key: tree.key, similarity, evicts });
        if !rule.confirm {
            return found(0.0, Vec::new());
        }
        let shown = [Some(root), Some(self.canonical(tree.tree)), tree.leaf];
        let may = shown.into_iter().flatten().any(|text| {
            let text = &self.texts[text];
            let whole = Likeness::of(asked.alike(text), mine.shingles, text.keys.text.shingles);
            rule.same(whole, Bond::Abroad { titled: true }) || rule.same(whole, Bond::Kin)
        });
        if !may {
            return None;
        }
        let mates = self.mates(asked, tree.tree);
        if mates.is_empty() {
            return found(self.by_pillars(asked, related, tree)?, Vec::new());
        }
        if let Some((_, alike)) = self.by_mates(asked, (names, related), (tree.tree, &mates)) {
            return found(alike, Vec::new());
        }
        let root = &self.texts[root];
        let alike = self.by_pillars(asked, related, tree)?;
        let texts = mates.iter().map(|mate| self.pages[*mate].text);
        let worse = |text: usize| {
            let sketch = &self.texts[text].keys.text.sketch;
            sketch.similarity(&root.keys.text.sketch) + 0.03 <= asked.alike(root)
        };
        let takes = root.place.site != asked.place.site && texts.clone().all(worse);
        if takes { found(alike, distinct(texts)) } else { None }
    }

    /// The trees that take an article, the best one first.
    fn judge(&self, asked: &Asked<'_>) -> Vec<Match> {
        let candidates = self.candidates(asked);
        let names = self.names(asked, &candidates);
        let mut related: Vec<Related> = Vec::new();
        for (text, keys) in &candidates {
            let tree = self.texts[*text].tree;
            if related.iter().all(|other| other.tree != tree) {
                let key = keys[0];
                related.push(Related { tree, key, titled: false, leaf: None });
            }
            let known = related.iter_mut().find(|other| other.tree == tree).unwrap();
            known.key = known.key.min(keys[0]);
            known.titled |= keys[0] == Key::Title;
            let alike = |text: &usize| asked.alike(&self.texts[*text]);
            if *text != self.roots[tree] && known.leaf.is_none_or(|leaf| alike(&leaf) < alike(text))
            {
                known.leaf = Some(*text);
            }
        }
        let takes = related.iter().filter(|tree| asked.leaves != Some(tree.tree));
        let matches = takes.filter_map(|tree| self.matched(asked, &names, &related, tree));
        let mut matches: Vec<Match> = matches.collect();
        matches.sort_by_key(|matched| {
            let root = self.texts[self.roots[matched.tree]].keys.text.fingerprint;
            let (copies, first) = (self.copies(matched.tree), self.first(matched.tree));
            (Reverse(slots(matched.similarity)), Reverse(copies), first, root)
        });
        matches
    }

    /// Further trees that surely take what the first one surely takes.
    fn also(&self, matches: &[Match]) -> Vec<usize> {
        let rule = self.rule();
        let strong = |one: &&Match| {
            rule.confirm && one.evicts.is_empty() && one.similarity >= rule.leaf_similarity_min
        };
        let best = matches.first().is_some_and(|matched| strong(&matched));
        let also = matches.iter().skip(1).filter(|matched| best && strong(matched));
        also.map(|matched| matched.tree).collect()
    }

    /// How well a page may be one of a tree for all that its site says: none if it may not.
    fn allows(&self, asked: &Asked<'_>, tree: usize, mates: &[usize]) -> Option<u8> {
        if mates.is_empty() || !self.rule().confirm {
            return Some(1);
        }
        let (bond, _) = self.by_mates(asked, (&self.names(asked, &[]), &[]), (tree, mates))?;
        Some(2 * u8::from(is_kin(bond)))
    }

    /// A text that is equal, and others that cannot stay beside the page.
    fn equal(&self, asked: &Asked<'_>) -> (Option<usize>, Vec<usize>) {
        let (mut best, mut instead) = (None, None);
        for (number, text) in self.texts.iter().enumerate() {
            let equal = text.keys.text.hash == asked.keys.text.hash;
            if !equal || asked.keys.text.words == 0 || asked.leaves == Some(text.tree) {
                continue;
            }
            let mates = self.mates(asked, text.tree);
            let allowed = self.allows(asked, text.tree, &mates);
            if allowed > best.map(|(allowed, _)| allowed) {
                best = allowed.map(|allowed| (allowed, number));
            }
            let others = distinct(mates.iter().map(|mate| self.pages[*mate].text));
            let alike = |other: &usize| asked.alike(&self.texts[*other]);
            let worse = others.iter().all(|other| alike(other) + 0.03 <= 1.0);
            if allowed.is_none() && worse && text.place.site != asked.place.site {
                let root = self.roots[text.tree];
                let stays = self.texts[root].place.site == asked.place.site;
                instead.get_or_insert(if stays || others.contains(&root) {
                    (None, vec![number])
                } else {
                    (Some(number), others)
                });
            }
        }
        best.map(|(_, text)| (Some(text), Vec::new())).or(instead).unwrap_or_default()
    }

    pub(crate) fn add(
        &mut self,
        keys: ArticleKeys,
        place: Place,
        popularity: u64,
    ) -> Option<(usize, Key)> {
        let asked = Asked { keys: &keys, place, text: None, leaves: None };
        let (same, mut evicts) = self.equal(&asked);
        if let Some(text) = same {
            self.pages.push(Page { text, place, popularity });
            self.evict(&evicts, place.site);
            return Some((self.first(self.texts[text].tree), Key::Exact));
        }
        let takers = self.judge(&asked);
        let (text, also) = (self.texts.len(), self.also(&takers));
        self.pages.push(Page { text, place, popularity });
        let Some(Match { tree, key, evicts: others, .. }) = takers.into_iter().next() else {
            self.texts.push(Text { keys, place, tree: self.roots.len() });
            self.roots.push(text);
            self.evict(&evicts, place.site);
            return None;
        };
        self.texts.push(Text { keys, place, tree });
        evicts.extend(others);
        self.evict(&evicts, place.site);
        let tree = self.texts[text].tree;
        let tree = also.into_iter().fold(tree, |tree, other| self.unite(tree, other));
        Some((self.first(tree), key))
    }

    /// Texts that cannot stay where they are look for another place.
    fn evict(&mut self, texts: &[usize], site: u64) {
        for text in texts {
            let Text { keys, tree, .. } = self.texts[*text].clone();
            let carries = |page: &&Page| page.text == *text;
            let here = |page: &&Page| carries(page) && page.place.site == site;
            let page = self.pages.iter().find(here);
            let place = page.or_else(|| self.pages.iter().find(carries)).unwrap().place;
            let asked = Asked { keys: &keys, place, text: Some(*text), leaves: Some(tree) };
            let exact = |same: usize| {
                let (tree, key, evicts) = (self.texts[same].tree, Key::Exact, Vec::new());
                vec![Match { tree, key, similarity: 1.0, evicts }]
            };
            let takers = self.equal(&asked).0.map_or_else(|| self.judge(&asked), exact);
            let also = self.also(&takers);
            assert_ne!(self.roots[tree], *text, "a root is in nobody's way");
            let matched = takers.first().filter(|matched| {
                let mut pages = self.pages.iter().filter(carries);
                matched.evicts.is_empty() && pages.all(|page| self.fits(page, matched.tree))
            });
            let tree = matched.map_or(self.roots.len(), |matched| matched.tree);
            self.texts[*text].tree = tree;
            if tree == self.roots.len() {
                self.roots.push(*text);
            }
            also.into_iter().fold(tree, |tree, other| self.unite(tree, other));
        }
    }

    /// Tells whether a page may be one of a tree for all that is known of its site.
    fn fits(&self, page: &Page, tree: usize) -> bool {
        let keys = &self.texts[page.text].keys;
        let asked = Asked { keys, place: page.place, text: Some(page.text), leaves: None };
        self.allows(&asked, tree, &self.mates(&asked, tree)).is_some()
    }

    /// Makes two trees one if no page of the smaller one is another page of a site.
    fn unite(&mut self, one: usize, other: usize) -> usize {
        let rank = |tree: usize| (self.copies(tree), Reverse(self.first(tree)));
        let (large, small) = if rank(one) >= rank(other) { (one, other) } else { (other, one) };
        let may = self.pages(small).all(|page| self.fits(&self.pages[page], large));
        if !may || small == large {
            return one;
        }
        for text in self.texts.iter_mut().filter(|text| text.tree == small) {
            text.tree = large;
        }
        large
    }
}

/// Texts, each once, in the order in which they first came.
fn distinct(texts: impl Iterator<Item = usize>) -> Vec<usize> {
    texts.collect::<BTreeSet<usize>>().into_iter().collect()
}

/// What one site calls two of its pages.
fn bond(names: &Names, one: &Place, other: &Place, similarity: f32) -> Bond {
    let rare = names.titles < 4;
    let edition = one.edition() == other.edition() && (names.documents < 4 || similarity >= 0.9);
    let untitled = [one, other].iter().filter(|place| place.title == 0).count();
    let retitled = untitled == 0 && one.title != other.title;
    let form = FOLDERS[one.folder].2 == FOLDERS[other.folder].2 && one.page == other.page;
    if edition && !retitled {
        Bond::Issue
    } else if rare && one.has(other, |title| title.1) {
        Bond::Kin
    } else if edition || (rare && form && one.has(other, |title| title.0)) {
        Bond::Edition
    } else if untitled == 2 || one.has(other, |title| title.2) {
        Bond::Unclear
    } else {
        Bond::Apart
    }
}

fn is_kin(bond: Bond) -> bool {
    !matches!(bond, Bond::Unclear | Bond::Apart)
}
