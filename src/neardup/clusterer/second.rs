//! The second look: matches that were less than certain, now that more documents are known.

use std::collections::{BTreeMap, HashSet};

use super::super::second_look::{LOOKS_MAX, loose_leaves};
use super::super::storage::{Storage, TextPlace};
use super::super::{Candidate, Judgement, Question};
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
    /// another cluster or became one of their own.
    pub(crate) fn settle(&mut self) -> Result<usize, S::Error> {
        let mut all = 0;
        // What moves may be a better place for what was looked at before.
        for pass in 0..LOOKS_MAX {
            let moved = self.look_again(pass == 0)?;
            all += moved;
            if moved == 0 {
                break;
            }
        }
        self.changed = Changed::default();
        debug_assert_eq!(self.counted()?, self.documents, "each document is in one cluster");
        Ok(all)
    }

    /// `apart`: trees on which leaves are loose are taken apart. Once is enough: their leaves may
    /// form another one, which again would be. From then on, texts are looked at again whose trees,
    /// or those of texts that share a key with them, have changed: all others stay where they are.
    fn look_again(&mut self, apart: bool) -> Result<usize, S::Error> {
        let mut moved = 0;
        self.changed.begin_pass();
        let unsure = std::mem::take(&mut self.unsure);
        let loose = if apart { self.loose(&unsure)? } else { vec![false; unsure.len()] };
        let mut unite = Vec::new();
        let together = self.storage.together();
        for (contents, loose) in unsure.chunks(together).zip(loose.chunks(together)) {
            // No text is added by now, so that these are the same whatever moves.
            let found = self.storage.candidates_of(contents)?;
            for ((content, loose), found) in contents.iter().zip(loose).zip(found) {
                let tree = self.storage.place(*content)?.tree;
                if !apart && !self.is_changed(tree, &found)? {
                    self.unsure.push(*content);
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
        for (content, also) in unite {
            moved += also.len();
            self.unite(self.storage.place(content)?.tree, &also)?;
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
    /// It is judged where `page` stands, which cannot stay with the others; of the first page that
    /// carries it if that is none. `found` are the contents that share a key with it, if they were
    /// looked up before.
    fn look_at(
        &mut self,
        content: u32,
        page: Option<u32>,
        wary: Option<u64>,
        found: Option<Vec<Candidate>>,
    ) -> Result<(bool, Vec<u64>), S::Error> {
        let TextPlace { tree, first, .. } = self.storage.place(content)?;
        let is_root = self.storage.tree(tree)?.root == content;
        let mut keys = self.storage.text(content)?.keys.into_owned();
        keys.standing = self.storage.page(page.unwrap_or(first))?.standing();
        let question =
            Question { content: Some(u64::from(content)), wary, ..Question::new(&keys, "") };
        let found = found.map_or_else(|| self.storage.candidates(&keys), Ok)?;
        let Judgement { matched, mut also, refused, .. } = self.find(&question, found)?;
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

    /// Looks for another place for texts whose pages on a site are in the way of another one.
    pub(super) fn evict(&mut self, contents: &[u64], site: u64) -> Result<(), S::Error> {
        for content in contents {
            let content = *content as u32;
            let page = self.carrier_on(content, site)?;
            let (_, also) = self.look_at(content, page, None, None)?;
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
