//! The second look: matches that were less than certain, now that more documents are known.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::second_look::{LOOKS_MAX, loose_leaves};
use super::super::storage::{Storage, TextPlace};
use super::super::{Attachment, Candidate, Judgement, Key, Question};
use super::Clusterer;
use crate::text::sketch::Sketch;

/// Trees that change while texts are looked at again.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Those of this pass; none are noted before the first.
    now: Option<HashSet<u32>>,
    before: HashSet<u32>,
}

impl Changed {
    /// Notes a tree.
    pub(super) fn note(&mut self, tree: u32) {
        if let Some(now) = &mut self.now {
            now.insert(tree);
        }
    }

    fn begin_pass(&mut self) {
        self.before = self.now.replace(HashSet::new()).unwrap_or_default();
    }

    fn has(&self, tree: u32) -> bool {
        self.before.contains(&tree) || self.now.as_ref().is_some_and(|now| now.contains(&tree))
    }
}

impl<S: Storage> Clusterer<S> {
    /// Looks again at every match that was less than certain. Returns how many texts moved to
    /// another cluster or became one of their own, and trees that became part of another one.
    pub(crate) fn settle(&mut self) -> Result<usize, S::Error> {
        let mut all = 0;
        let mut unite = Vec::new();
        self.note_once();
        // What moves may be a better place for what was looked at before.
        for pass in 0..LOOKS_MAX {
            let moved = self.look_again(pass == 0, &mut unite)?;
            all += moved;
            if moved == 0 && unite.is_empty() {
                break;
            }
        }
        self.changed = Changed::default();
        debug_assert_eq!(self.counted()?, self.documents, "each document is in one cluster");
        Ok(all)
    }

    /// Each unsure text is looked at once in a pass, however many others told of it.
    fn note_once(&mut self) {
        let mut noted = HashSet::new();
        self.unsure.retain(|content| noted.insert(*content));
    }

    /// `apart`: trees on which leaves are loose are taken apart. Once is enough: their leaves may
    /// form another one, which again would be. From then on, texts are looked at again whose trees,
    /// or those of texts that share a key with them, have changed: all others stay where they are.
    ///
    /// `unite`: texts and trees that would surely take them, as the last pass has found them.
    fn look_again(
        &mut self,
        apart: bool,
        unite: &mut Vec<(u32, Vec<u64>)>,
    ) -> Result<usize, S::Error> {
        let mut moved = 0;
        self.changed.begin_pass();
        let unsure = std::mem::take(&mut self.unsure);
        let loose = if apart { self.loose(&unsure)? } else { vec![false; unsure.len()] };
        let mut before: HashMap<u32, Vec<u64>> = unite.drain(..).collect();
        // No others are looked up meanwhile, which have as much memory.
        let together = self.storage.together();
        for (contents, loose) in unsure.chunks(together).zip(loose.chunks(together)) {
            // No text is added by now, so that these are the same whatever moves.
            let found = self.storage.candidates_of(contents)?;
            for ((content, loose), found) in contents.iter().zip(loose).zip(found) {
                let tree = self.storage.place(*content)?.tree;
                if !apart && !self.is_changed(tree, &found)? {
                    self.unsure.push(*content);
                    // The trees may have changed when all have been looked at.
                    unite.extend(before.remove_entry(content));
                    continue;
                }
                if *loose {
                    // The next time it is asked in another way.
                    self.changed.note(tree);
                }
                let wary = loose.then_some(u64::from(tree));
                let (changed, also) = self.look_at(*content, None, wary, Some(found))?;
                moved += usize::from(changed);
                if !also.is_empty() {
                    unite.push((*content, also));
                }
            }
        }
        for (content, also) in &*unite {
            moved += self.unite(self.storage.place(*content)?.tree, also)?;
        }
        Ok(moved)
    }

    fn is_changed(&self, tree: u32, found: &[Candidate]) -> Result<bool, S::Error> {
        if self.changed.has(tree) {
            return Ok(true);
        }
        for candidate in found {
            if self.changed.has(self.storage.place(candidate.content as u32)?.tree) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks for another place for a text. Returns whether it has moved, and further trees that
    /// would surely take it.
    ///
    /// It is judged where `page` stands, which cannot stay with the others, so that it has to leave
    /// its tree; of the first page that carries it if that is none. `found` are the contents that
    /// share a key with it, if they were looked up before.
    fn look_at(
        &mut self,
        content: u32,
        page: Option<u32>,
        wary: Option<u64>,
        found: Option<Vec<Candidate>>,
    ) -> Result<(bool, Vec<u64>), S::Error> {
        let TextPlace { tree, first, key, .. } = self.storage.place(content)?;
        let is_root = self.storage.tree(tree)?.root == content;
        let mut keys = self.storage.text(content)?.keys.into_owned();
        keys.standing = self.storage.page(page.unwrap_or(first))?.standing();
        let question = Question {
            content: Some(u64::from(content)),
            wary,
            leaves: page.map(|_| u64::from(tree)),
            ..Question::new(&keys, "")
        };
        // Very many may resemble it: its very text is found whatever their number, and followed.
        let asks = page.is_some() || key == Key::Exact;
        let same = if asks { self.equal(&question)?.0 } else { None };
        let Judgement { matched, mut also, refused, .. } = if let Some(same) = same {
            let tree = self.storage.place(same)?.tree;
            Judgement { matched: Some(Attachment::exact(tree.into())), ..Judgement::default() }
        } else {
            let found = found.map_or_else(|| self.storage.candidates(&keys), Ok)?;
            self.find(&question, found)?
        };
        // What is in the way of another text may be in its turn: that goes on at the next look.
        let matched = matched.filter(|matched| matched.evicts.is_empty());
        if refused || matched.as_ref().is_some_and(|matched| !matched.sure) {
            self.unsure.push(content);
        }
        if is_root {
            also.extend(matched.map(|matched| matched.document));
            also.retain(|other| *other != u64::from(tree));
            return Ok((false, also));
        }
        let fits = match &matched {
            Some(matched) => self.may_move(content, matched.document as u32)?,
            None => true,
        };
        let moves = matched.as_ref().is_none_or(|matched| matched.document != u64::from(tree));
        let moves = moves && (fits || page.is_some());
        if moves {
            let place = match matched.filter(|_| fits) {
                Some(matched) => TextPlace::leaf(first, &matched),
                None => self.plant(first, content)?,
            };
            self.storage.put_place(content, place)?;
            self.recount(tree)?;
        }
        Ok((moves, also))
    }

    /// Looks for another place for texts that cannot stay beside a page of a site.
    pub(super) fn evict(&mut self, contents: &[u64], site: u64) -> Result<(), S::Error> {
        for content in contents {
            let content = *content as u32;
            let first = self.storage.place(content)?.first;
            let page = self.carrier_on(content, site)?.unwrap_or(first);
            let (_, also) = self.look_at(content, Some(page), None, None)?;
            self.unite(self.storage.place(content)?.tree, &also)?;
        }
        Ok(())
    }

    /// Notes trees of which one and that of a new article may be one: a page that is alone may have
    /// come before what it is a copy of.
    pub(super) fn doubt(&mut self, perhaps: &[u64]) -> Result<(), S::Error> {
        for tree in perhaps {
            let tree = self.storage.tree(*tree as u32)?;
            if tree.cluster.copies == 1 {
                self.unsure.push(tree.root);
            }
        }
        Ok(())
    }

    /// Tells for each unsure content whether it hangs on its tree by boilerplate alone.
    fn loose(&self, unsure: &[u32]) -> Result<Vec<bool>, S::Error> {
        let mut leaves: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, content) in unsure.iter().enumerate() {
            leaves.entry(self.storage.place(*content)?.tree).or_default().push(at);
        }
        let mut all = vec![false; unsure.len()];
        for (tree, leaves) in leaves {
            let root = self.storage.text(self.storage.tree(tree)?.root)?.keys;
            let site = root.standing.site;
            let keys = leaves.iter().map(|at| Ok(self.storage.text(unsure[*at])?.keys));
            let keys = keys.collect::<Result<Vec<_>, _>>()?;
            let sketches: Vec<(&Sketch, bool)> = keys
                .iter()
                .map(|leaf| (&leaf.text.sketch, site != 0 && leaf.standing.site == site))
                .collect();
            for (at, loose) in leaves.iter().zip(loose_leaves(&root.text.sketch, &sketches)) {
                all[*at] = loose;
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::{Config, Membership, MemoryStorage, article_keys};
    use super::*;
    use crate::text::features::{ArticleKeys, Fingerprinter, Input};

    #[test]
    fn a_tree_that_changes_is_noted_for_this_pass_and_the_next() {
        let mut changed = Changed::default();
        changed.note(1);
        assert!(!changed.has(1), "nobody looks yet");
        changed.begin_pass();
        changed.note(2);
        let had = |changed: &Changed| [1, 2, 3].map(|tree| changed.has(tree));
        assert_eq!(had(&changed), [false, true, false]);
        changed.begin_pass();
        changed.note(3);
        assert_eq!(had(&changed), [false, true, true]);
        changed.begin_pass();
        assert_eq!(had(&changed), [false, false, true]);
    }

    /// A document.
    #[derive(Debug)]
    struct Made {
        site: u8,
        title: u8,
        /// Parts of the text that others have as well.
        parts: [u8; 3],
        /// Words of its own.
        own: u8,
    }

    fn made() -> impl Strategy<Value = Made> {
        let all = (0u8..6, 0u8..8, [0u8..6, 0..6, 0..6], 0u8..60);
        all.prop_map(|(site, title, parts, own)| Made { site, title, parts, own })
    }

    fn keys(number: usize, made: &Made) -> ArticleKeys {
        let Made { site, title, parts, own } = *made;
        let part = |part: u8| (0..25).map(move |word| format!("p{part}w{word}"));
        let own = (0..usize::from(own)).map(|word| format!("d{number}w{word}"));
        let words: Vec<String> = parts.into_iter().flat_map(part).chain(own).collect();
        let (text, url) = (words.join(" "), format!("http://site{site}.example/{number}"));
        let title = if title < 4 { format!("Some title of part {title}") } else { String::new() };
        let input = Input { text: &text, title: &title, url: &url, ..Input::default() };
        article_keys(&Fingerprinter::default(), &input)
    }

    fn judged(made: &[Made]) -> Clusterer<MemoryStorage> {
        let config = Config::default();
        let mut all = Clusterer::new(MemoryStorage::new(&config).unwrap(), config).unwrap();
        for (number, made) in made.iter().enumerate() {
            let Ok(_) = all.judge(keys(number, made), 0);
        }
        all
    }

    fn fates(all: &Clusterer<MemoryStorage>) -> Vec<Membership> {
        (0..all.documents()).map(|number| all.fate(number).unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        #[test]
        fn texts_that_are_not_looked_at_again_would_stay_where_they_are(
            made in prop::collection::vec(made(), 10..90),
        ) {
            let (mut some, mut each) = (judged(&made), judged(&made));
            let Ok(moved) = some.settle();
            let (mut moved_each, mut unite) = (0, Vec::new());
            each.note_once();
            for pass in 0..LOOKS_MAX {
                let Ok(moved) = each.look_again(pass == 0, &mut unite);
                moved_each += moved;
                if moved == 0 && unite.is_empty() {
                    break;
                }
                // As if all had changed.
                (0..each.clusters()).for_each(|tree| each.changed.note(tree));
            }
            let looked_at: HashSet<u32> = some.unsure.iter().copied().collect();
            prop_assert_eq!(looked_at.len(), some.unsure.len(), "each once a pass");
            prop_assert_eq!(moved, moved_each);
            prop_assert_eq!(fates(&some), fates(&each));
        }
    }
}
