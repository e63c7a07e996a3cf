//! Judging one article among those that are known.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Key;
use crate::text::features::{ArticleKeys, TextKeys};
use crate::text::sketch::{SLOTS, Sketch};

use super::chance::{Resemblance, Sieve};
use super::known::{KnownTree, Mate, Question, Trees};
use super::site::{self, SiteNames};
use super::{Bond, Candidate, Config, Likeness};

/// Similarity from which a tree counts when it is asked what is commonplace: far above chance.
pub(super) const RELATED: f32 = 0.08;

/// What a tree shares with another tree tells against it if it is at least this share of what it
/// shares with the article.
const COMMONPLACE_SHARE_MIN: f32 = 0.4;

/// How much more like a text an article must be than another page of its site to take its place.
const BETTER_BY: f32 = 0.03;

/// Slots that must be left when the commonplace ones are out.
const OWN_SLOTS_MIN: usize = 24;

/// How an article would hang on a tree, as the judge sees it.
///
/// An equal text has one as well, without the judge being asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attachment {
    /// Number of the document.
    pub document: u64,
    /// By which key it was found.
    pub key: Key,
    /// Bits between its fingerprint and that of the root.
    pub distance: u32,
    /// How alike it is to the text that confirms it, commonplaces left out.
    pub likeness: Likeness,
    /// It would be the same whatever else is known. Other matches deserve a second look when more
    /// documents of their kind are known.
    pub sure: bool,
    /// Contents that cannot stay in its document beside it: pages of its site that resemble the
    /// others less than it does.
    pub evicts: Vec<u64>,
}

/// What the judge says of an article.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Judgement {
    /// How it would hang on the tree that takes it; none if it is a document of its own.
    pub matched: Option<Attachment>,
    /// Further documents that would surely take it, so that all are one.
    pub also: Vec<u64>,
    /// Further documents that would take it less surely: they and its own may be one.
    pub perhaps: Vec<u64>,
    /// A tree that would take it has other pages of its site, which may turn out to belong
    /// elsewhere.
    pub refused: bool,
    /// Another text of its site is as good as equal, whatever the site calls them: nobody would
    /// miss more of its kind.
    pub repeats: bool,
}

/// Returns the tree that takes an article, among those of the `candidates` which confirm it; none
/// if it is a document of its own.
///
/// A tree that has pages of the article's site takes it only if one of these does: what other sites
/// have made of a text tells nothing about two pages of one site. Otherwise its root confirms it,
/// or its canonical copy, or any other copy that is much alike
/// ([`Rule::leaf_similarity_min`](super::Rule::leaf_similarity_min)).
///
/// A tree that is as alike to other trees as to the article shares with it only what all of them
/// share: boilerplate of a site, or a quotation. That is left out before the rule is asked, unless
/// the texts are as good as equal ([`Rule::sure_min`](super::Rule::sure_min)).
///
/// Where several trees would take it, the most alike does; if they are as alike, as far as sketches
/// tell, the one with most copies, then the oldest, then the one with the smaller root fingerprint.
pub(crate) fn judge<T: Trees>(
    trees: &T,
    candidates: &[Candidate],
    question: &Question<'_>,
    config: &Config,
) -> Result<Judgement, T::Error> {
    let case = Case::gather(trees, candidates, question, config)?;
    let repeats = case.own_site >= config.rule.site_sure_min;
    let mut judgement = Judgement { repeats, ..Judgement::default() };
    let mut takers = Vec::new();
    // Pages that have to leave a document hold one another there as long as each is asked alone.
    let stays = |tree: &&Related<'_>| question.leaves != Some(tree.tree.document);
    for tree in case.related.iter().filter(stays) {
        let matched = match case.matched(trees, tree)? {
            TreeAnswer::Takes(matched) => matched,
            TreeAnswer::Refuses => {
                judgement.refused = true;
                continue;
            }
            TreeAnswer::Unlike => continue,
        };
        let alike = if config.rule.confirm { matched.likeness.similarity } else { 0.0 };
        let KnownTree { copies, first_arrival, root, .. } = &tree.tree;
        let order = (Reverse(in_slots(alike)), Reverse(*copies), *first_arrival);
        takers.push(((order, root.text.fingerprint), matched));
    }
    takers.sort_by_key(|(order, _)| *order);
    let mut takers = takers.into_iter().map(|(_, matched)| matched);
    judgement.matched = takers.next();
    if config.rule.confirm {
        let best = judgement.matched.as_ref().is_some_and(|best| best.is_strong(config));
        for matched in takers.filter(|matched| matched.evicts.is_empty()) {
            let strong = best && matched.is_strong(config);
            let to = if strong { &mut judgement.also } else { &mut judgement.perhaps };
            to.push(matched.document);
        }
    }
    Ok(judgement)
}

/// Returns the candidates whose texts are likely looked up.
#[cfg(feature = "cluster")]
pub(crate) fn looked_up(candidates: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    let mut by_chance = 0;
    candidates.iter().filter(move |candidate| {
        by_chance += usize::from(candidate.weak);
        !candidate.weak || by_chance <= super::chance::CHANCE_MAX
    })
}

/// Leaves of candidates those that the judge reads, where `compare` tells how alike one that was
/// found by weak keys looks; none if it is not there. The judge comes to the same.
pub(crate) fn sift<E>(
    candidates: &mut Vec<Candidate>,
    mut sieve: Sieve,
    mut compare: impl FnMut(u64) -> Result<Option<Resemblance>, E>,
) -> Result<(), E> {
    let mut told = Ok(());
    candidates.retain(|candidate| {
        if !candidate.weak {
            return true;
        }
        if sieve.is_done() || told.is_err() {
            return false;
        }
        match compare(candidate.content) {
            Ok(resemblance) => sieve.lets_through(resemblance),
            Err(error) => {
                told = Err(error);
                false
            }
        }
    });
    told
}

/// Tells how well an article may be a page of a document for all that is known of its site: none if
/// it may not. If the document has pages there (`mates`), they must take it. Says nothing about
/// other sites.
#[must_use]
pub(crate) fn site_allows(
    question: &Question<'_>,
    mates: &[Mate<'_>],
    config: &Config,
) -> Option<SiteRelation> {
    let names = SiteNames::of(question.keys);
    let case = Case { question, config, names, related: Vec::new(), own_site: 0.0 };
    if mates.is_empty() || !config.rule.confirm {
        return Some(SiteRelation::Unknown);
    }
    case.with_mates(0, mates).map(|confirmed| match confirmed.bond {
        Bond::Unclear | Bond::Apart => SiteRelation::Apart,
        _ => SiteRelation::Kin,
    })
}

/// Tells whether the very text of an article, which another site has, is plainly its text and not
/// that of the pages of its site in one document with it.
#[must_use]
pub(crate) fn is_its_text(question: &Question<'_>, same: &ArticleKeys, mates: &[Mate<'_>]) -> bool {
    let alike = |mate: &Mate<'_>| mate.text.sketch.similarity(&same.text.sketch);
    same.standing.site != question.keys.standing.site
        && mates.iter().all(|mate| alike(mate) + BETTER_BY <= 1.0)
}

/// Returns the contents of pages, each once, in the order in which they first came: they are looked
/// at in that order however the pages are kept, and the first one may change the place of the next.
#[must_use]
pub(crate) fn texts_of(mates: &[Mate<'_>]) -> Vec<u64> {
    let contents: BTreeSet<u64> = mates.iter().map(|mate| mate.content).collect();
    contents.into_iter().collect()
}

/// How well an article may be a page of a document for all that is known of its site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SiteRelation {
    /// The site calls it otherwise, and all that can be seen is alike.
    Apart,
    /// The document has no page there.
    Unknown,
    /// The site calls it the same as a page of the document.
    Kin,
}

impl Attachment {
    /// That of a text which a document has.
    pub(super) fn exact(document: u64) -> Self {
        let (key, likeness) = (Key::Exact, Likeness::EXACT);
        Self { document, key, distance: 0, likeness, sure: true, evicts: Vec::new() }
    }

    /// Texts so alike to two others leave no doubt that these are one as well.
    fn is_strong(&self, config: &Config) -> bool {
        self.evicts.is_empty() && self.likeness.similarity >= config.rule.leaf_similarity_min
    }
}

/// A similarity in slots of a sketch, as far as it is told.
fn in_slots(similarity: f32) -> u32 {
    #[expect(clippy::cast_sign_loss, reason = "a share is not below zero")]
    let slots = (similarity * SLOTS as f32).round() as u32;
    slots
}

/// An article with all that is known of its kind.
struct Case<'a> {
    question: &'a Question<'a>,
    config: &'a Config,
    /// What the names of pages of its site are worth.
    names: SiteNames,
    related: Vec<Related<'a>>,
    /// Similarity to the text of its site that is most like it.
    own_site: f32,
}

/// A tree that may take the article.
struct Related<'a> {
    tree: KnownTree<'a>,
    candidate: Candidate,
    /// Similarity of the whole text to that of the root.
    similarity: f32,
    /// The same for the most similar leaf among the candidates.
    leaf_similarity: f32,
}

/// What a tree says to an article.
enum TreeAnswer {
    Takes(Attachment),
    /// It has other pages of the article's site.
    Refuses,
    Unlike,
}

/// What confirms an article.
struct Confirmed {
    bond: Bond,
    likeness: Likeness,
    sure: bool,
}

/// A text with which the article is compared.
#[derive(Clone, Copy)]
struct Pillar<'a> {
    document: u64,
    text: &'a TextKeys,
    similarity: f32,
    bond: Bond,
}

impl<'a> Case<'a> {
    /// Looks the trees of the candidates up.
    fn gather<T: Trees>(
        trees: &'a T,
        candidates: &[Candidate],
        question: &'a Question<'a>,
        config: &'a Config,
    ) -> Result<Self, T::Error> {
        let sketch = &question.keys.text.sketch;
        let mut names = SiteNames::of(question.keys);
        let (site, mut own_site) = (question.keys.standing.site, 0_f32);
        let mut related: Vec<Related<'_>> = Vec::new();
        let contents_max = config.contents_max();
        let (mut looked_up, mut sieve) = (0, Sieve::of(config));
        for candidate in candidates {
            if looked_up == contents_max || related.len() >= config.candidates_max {
                break;
            }
            if candidate.weak && sieve.is_done() {
                continue;
            }
            let Some(text) = trees.text(candidate.content)? else { continue };
            if candidate.weak {
                let (article, rule) = (&question.keys.text, &config.rule);
                let resemblance = Resemblance::of_texts(article, &text.keys.text, rule);
                if !sieve.lets_through(Some(resemblance)) {
                    continue;
                }
            }
            looked_up += 1;
            let similarity = sketch.similarity(&text.keys.text.sketch);
            names.note(&text, similarity);
            if site != 0 && text.keys.standing.site == site {
                own_site = own_site.max(similarity);
            }
            let known = related.iter_mut().find(|other| other.tree.document == text.document);
            if let Some(known) = known {
                known.candidate.titled |= candidate.titled;
                known.candidate.key = known.candidate.key.min(candidate.key);
                let is_root = candidate.content == known.tree.root_content;
                if !is_root && similarity > known.leaf_similarity {
                    (known.leaf_similarity, known.tree.leaf) = (similarity, Some(text.keys));
                }
            } else {
                let tree = trees.tree(text)?;
                let leaf_similarity = if tree.leaf.is_some() { similarity } else { 0.0 };
                let similarity = sketch.similarity(&tree.root.text.sketch);
                let candidate = *candidate;
                related.push(Related { tree, candidate, similarity, leaf_similarity });
            }
        }
        Ok(Self { question, config, names, related, own_site })
    }

    fn mine(&self) -> &TextKeys {
        &self.question.keys.text
    }

    /// Returns how the article would hang on a tree.
    fn matched<T: Trees>(&self, trees: &T, related: &Related<'_>) -> Result<TreeAnswer, T::Error> {
        let tree = &related.tree;
        let mut evicts = Vec::new();
        let confirmed = if !self.config.rule.confirm {
            let (mine, root) = (self.mine(), &tree.root.text);
            let likeness = Likeness::of(related.similarity, mine.shingles, root.shingles);
            Some(Confirmed { bond: Bond::Unknown { titled: false }, likeness, sure: true })
        } else if !self.may_take(related) {
            None
        } else {
            let mates = self.mates(trees, related)?;
            if mates.is_empty() {
                self.with_pillars(related)
            } else if let Some(confirmed) = self.with_mates(tree.document, &mates) {
                Some(confirmed)
            } else if tree.root.standing.site == self.question.keys.standing.site {
                None
            } else {
                // Its root is of another site, where it is a copy unless the site says otherwise.
                let confirmed = self.with_pillars(related);
                if confirmed.is_some() && !self.is_better(&tree.root, &mates) {
                    return Ok(TreeAnswer::Refuses);
                }
                evicts = texts_of(&mates);
                confirmed
            }
        };
        let Some(Confirmed { likeness, sure, .. }) = confirmed else {
            return Ok(TreeAnswer::Unlike);
        };
        Ok(TreeAnswer::Takes(Attachment {
            document: tree.document,
            key: related.candidate.key,
            distance: self.mine().fingerprint.distance(tree.root.text.fingerprint),
            likeness,
            sure,
            evicts,
        }))
    }

    /// Tells whether the article is plainly more like a text of another site than the pages of its
    /// own site that hang there.
    fn is_better(&self, root: &ArticleKeys, mates: &[Mate<'_>]) -> bool {
        let sketch = &root.text.sketch;
        let mine = self.mine().sketch.similarity(sketch);
        mates.iter().all(|mate| mate.text.sketch.similarity(sketch) + BETTER_BY <= mine)
    }

    /// Tells whether anything that the tree has shown so far could take the article, before its
    /// pages are looked up.
    fn may_take(&self, related: &Related<'_>) -> bool {
        let (mine, tree, rule) = (self.mine(), &related.tree, &self.config.rule);
        let texts = [Some(&tree.root), tree.canonical.as_ref(), tree.leaf.as_ref()];
        texts.into_iter().flatten().any(|text| {
            let similarity = mine.sketch.similarity(&text.text.sketch);
            let whole = Likeness::of(similarity, mine.shingles, text.text.shingles);
            // The most lenient of all bonds.
            rule.same(whole, Bond::Abroad { titled: true }) || rule.same(whole, Bond::Kin)
        })
    }

    /// The pages of a tree on the site of the article.
    fn mates<'t, T: Trees>(
        &self,
        trees: &'t T,
        related: &Related<'_>,
    ) -> Result<Vec<Mate<'t>>, T::Error> {
        let (mine, tree) = (self.question.keys, &related.tree);
        let site = mine.standing.site;
        if site == 0 || (tree.copies == 1 && tree.root.standing.site != site) {
            return Ok(Vec::new());
        }
        trees.mates(tree.document, self.question)
    }

    /// Asks the root of a tree of other sites, its canonical copy, and the leaf that is most alike.
    fn with_pillars(&self, related: &Related<'_>) -> Option<Confirmed> {
        let tree = &related.tree;
        let (document, titled) = (tree.document, related.candidate.titled);
        let bond =
            |other: &ArticleKeys| match (self.question.keys.standing.site, other.standing.site) {
                (0, _) | (_, 0) => Bond::Unknown { titled },
                (one, other) if one == other => Bond::Unknown { titled },
                _ => Bond::Abroad { titled },
            };
        let root = Some((&tree.root, related.similarity));
        let similarity = |text: &ArticleKeys| self.mine().sketch.similarity(&text.text.sketch);
        let canonical = tree.canonical.as_ref().map(|text| (text, similarity(text)));
        let leaf = tree.leaf.as_ref().map(|leaf| (leaf, related.leaf_similarity));
        let leaf = leaf.filter(|(_, alike)| *alike >= self.config.rule.leaf_similarity_min);
        // Two loose leaves that are copies of each other must not hold each other there.
        let wary = self.question.wary == Some(document);
        let (canonical, leaf) = if wary { (None, None) } else { (canonical, leaf) };
        [root, canonical, leaf].into_iter().flatten().find_map(|(text, similarity)| {
            self.confirm(Pillar { document, text: &text.text, similarity, bond: bond(text) })
        })
    }

    /// Asks the pages of the same site: one that the site calls the same is enough; of others,
    /// which may differ by a little from one to the next, all must take it.
    fn with_mates(&self, document: u64, mates: &[Mate<'_>]) -> Option<Confirmed> {
        let mut all = Vec::new();
        let mut missed = false;
        for mate in mates {
            match self.with_mate(document, mate) {
                Some(confirmed) => all.push(confirmed),
                None => missed = true,
            }
        }
        all.retain(|confirmed| confirmed.bond != Bond::Unclear || !missed);
        let order = |confirmed: &Confirmed| {
            (
                !matches!(confirmed.bond, Bond::Unclear | Bond::Apart),
                in_slots(confirmed.likeness.similarity),
            )
        };
        all.into_iter().max_by_key(order)
    }

    /// Asks a page of the same site.
    fn with_mate(&self, document: u64, mate: &Mate<'_>) -> Option<Confirmed> {
        let mine = self.question.keys;
        let similarity = mine.text.sketch.similarity(&mate.text.sketch);
        let bond = self.names.bond(&mine.standing, &mate.standing, similarity);
        if !site::is_borne_out(bond, mine, mate, &self.config.rule) {
            return None;
        }
        if mine.text.hash == mate.text.hash {
            return Some(Confirmed { bond, likeness: Likeness::EXACT, sure: true });
        }
        self.confirm(Pillar { document, text: &mate.text, similarity, bond })
    }

    fn confirm(&self, pillar: Pillar<'_>) -> Option<Confirmed> {
        let (mine, rule) = (self.mine(), &self.config.rule);
        let Pillar { text, similarity, bond, .. } = pillar;
        let whole = Likeness::of(similarity, mine.shingles, text.shingles);
        let sure = rule.sure(similarity, bond);
        // What is left out makes texts less alike, never more.
        if !rule.same(whole, bond) {
            return None;
        }
        if sure {
            let sure = similarity >= rule.certain_min;
            return Some(Confirmed { bond, likeness: whole, sure });
        }
        let likeness = self.without_commonplaces(pillar);
        let same = rule.rest_is_same(likeness, bond) || rule.copied(similarity, bond);
        same.then_some(Confirmed { bond, likeness, sure: false })
    }

    /// Marks the slots of the article that are its own: no other tree has them that is nearly as
    /// alike to the pillar as the article is.
    ///
    /// Pages of different sites that resemble each other are likely copies: there, what the pillar
    /// alone has is what tells. Where it is as another tree is, an edited copy differs from both.
    fn own_slots(&self, pillar: Pillar<'_>) -> [bool; SLOTS] {
        let Pillar { document, text, similarity, bond } = pillar;
        let least = (COMMONPLACE_SHARE_MIN * similarity).max(RELATED);
        let two_sites = matches!(bond, Bond::Abroad { .. });
        let mut own = [true; SLOTS];
        for other in self.related.iter().filter(|other| other.similarity >= RELATED) {
            if self.question.content == Some(other.tree.root_content) {
                // The article itself, judged again.
                continue;
            }
            let itself = other.tree.document == document;
            let sketch: &Sketch = &other.tree.root.text.sketch;
            let counts = if itself {
                self.question.wary == Some(document)
            } else {
                sketch.similarity(&text.sketch) >= least
            };
            if counts {
                sketch.unmark_equal(&self.mine().sketch, &mut own);
                if two_sites && !itself {
                    sketch.unmark_equal(&text.sketch, &mut own);
                }
            }
        }
        own
    }

    fn without_commonplaces(&self, pillar: Pillar<'_>) -> Likeness {
        let (mine, text) = (self.mine(), pillar.text);
        let own = self.own_slots(pillar);
        let count = own.iter().filter(|own| **own).count();
        if count == SLOTS {
            return Likeness::of(pillar.similarity, mine.shingles, text.shingles);
        }
        if count < OWN_SLOTS_MIN {
            return Likeness::of(0.0, mine.shingles, text.shingles);
        }
        let similarity = mine.sketch.similarity_in(&text.sketch, &own);
        let common = mine.shingles as f32 * (SLOTS - count) as f32 / SLOTS as f32;
        #[expect(clippy::cast_sign_loss, reason = "a count of shingles is not below zero")]
        let rest = |shingles: u32| (shingles as f32 - common).max(1.0) as u32;
        Likeness::of(similarity, rest(mine.shingles), rest(text.shingles))
    }
}
