//! The judge over a store.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::corpus::clusters::{self, Place, equal};
use crate::corpus::documents::{Content, Copy, Document};
use crate::corpus::index::{Index, POSTINGS, lock};
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS};
use crate::neardup::{
    Config, Judgement, Key, KnownText, KnownTree, Mate, Question, SiteRelation, Trees, is_its_text,
    judge, loose_leaves, site_allows, texts_of,
};
use crate::store::{BadRow, Batch, Error, Store, View};
use crate::text::features::{ArticleKeys, TextKeys};
use crate::text::sketch::Sketch;

use super::Error as DedupError;
use super::lookup::Lookup;

/// Pages of a document on one site that are asked, before the URL of the article and after it,
/// under each of both schemes.
const MATES_MAX: usize = 4;

/// What the judge says of an article, for a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Where it belongs.
    pub place: Place,
    /// Further documents that would surely take it, so that all are one.
    pub also: Vec<u64>,
    /// Further documents that would take it less surely: they and its own may be one.
    pub perhaps: Vec<u64>,
    /// Contents that cannot stay where they are: in its document beside it, or, if they are its
    /// very text, in that of another page of its site.
    pub evicts: Vec<u64>,
    /// A document that would take it has other pages of its site, which may turn out to belong
    /// elsewhere.
    pub refused: bool,
    /// Another text of its site is as good as equal.
    pub repeats: bool,
}

/// Finds the place of an article among the stored ones. Reads only.
pub fn judge_stored<V: View>(
    batch: &V,
    index: &impl Lookup<V>,
    question: &Question<'_>,
    config: &Config,
) -> Result<Judged, Error> {
    let mut judged = Judged {
        place: Place::New,
        also: Vec::new(),
        perhaps: Vec::new(),
        evicts: Vec::new(),
        refused: false,
        repeats: false,
    };
    if question.keys.text.words == 0 {
        return Ok(judged);
    }
    let trees = StoredTrees(batch);
    let mut best: Option<(SiteRelation, u64, u64)> = None;
    let mut refused = None;
    for (content, row) in equal_contents(batch, index, question.keys.text.hash)? {
        let document = row.document;
        if question.leaves == Some(document) {
            continue;
        }
        let mates = trees.mates(document, question)?;
        let allowed = site_allows(question, &mates, config);
        if allowed > best.map(|(allowed, ..)| allowed) {
            best = allowed.map(|allowed| (allowed, content, document));
        }
        if allowed.is_none() && refused.is_none() && is_its_text(question, &row.keys(), &mates) {
            let root = must_read_document(batch, document)?.root;
            let stays = must_read(batch, root)?.site == question.keys.standing.site
                || mates.iter().any(|mate| mate.content == root);
            refused = Some(if stays {
                (None, vec![content])
            } else {
                (Some((content, document)), texts_of(&mates))
            });
        }
    }
    let found = best.map(|(_, content, document)| (Some((content, document)), Vec::new()));
    let (found, evicts) = found.or(refused).unwrap_or_default();
    let Some((content, document)) = found else {
        let mut judged = judge_near(batch, index, question, config)?;
        // What has to leave by itself makes nothing else leave.
        if question.content.is_none() {
            judged.evicts.splice(..0, evicts);
        }
        return Ok(judged);
    };
    judged.evicts = evicts;
    let (same, key, sure) = (Some(content), Key::Exact, true);
    let (distance, similarity) = (0, 1.0);
    let matched = clusters::Match { document, same, key, distance, similarity, sure };
    judged.place = Place::Tree(matched);
    Ok(judged)
}

/// Returns the contents that have a text of this hash, older ones first; of very many some.
pub fn equal_contents<V: View>(
    view: &V,
    index: &impl Lookup<V>,
    hash: u128,
) -> Result<Vec<(u64, Content)>, Error> {
    equal::contents(view, index.equal_texts(view, hash)?, hash)
}

/// Finds the place of a content that is stored already, as if it came only now.
pub(super) fn judge_near<V: View>(
    batch: &V,
    index: &impl Lookup<V>,
    question: &Question<'_>,
    config: &Config,
) -> Result<Judged, Error> {
    let mut candidates = index.candidates(batch, question.keys)?;
    candidates.retain(|candidate| Some(candidate.content) != question.content);
    let Judgement { matched, also, perhaps, refused, repeats } =
        judge(&StoredTrees(batch), &candidates, question, config)?;
    let mut evicts = Vec::new();
    let place = matched.map_or(Place::New, |matched| {
        evicts = matched.evicts;
        Place::Tree(clusters::Match {
            document: matched.document,
            same: None,
            key: matched.key,
            distance: matched.distance,
            similarity: matched.likeness.similarity,
            sure: matched.sure,
        })
    });
    Ok(Judged { place, also, perhaps, evicts, refused, repeats })
}

/// Tells whether a page of one document may be a page of another one, for all that is known of its
/// site.
pub(super) fn page_is_allowed(
    batch: &impl View,
    page: &Question<'_>,
    document: u64,
    config: &Config,
) -> Result<bool, Error> {
    let trees = StoredTrees(batch);
    let mates = trees.mates(document, page)?;
    Ok(site_allows(page, &mates, config).is_some())
}

/// Returns for each of some contents whether it hangs on its tree by boilerplate alone.
pub(super) fn loose_contents(batch: &impl View, contents: &[u64]) -> Result<Vec<bool>, Error> {
    let mut trees: BTreeMap<u64, Vec<(usize, Content)>> = BTreeMap::new();
    for (at, content) in contents.iter().enumerate() {
        let row = must_read(batch, *content)?;
        trees.entry(row.document).or_default().push((at, row));
    }
    let mut all = vec![false; contents.len()];
    for (document, leaves) in trees {
        let root = must_read(batch, must_read_document(batch, document)?.root)?;
        let all_leaves: Vec<(&Sketch, bool)> = leaves
            .iter()
            .map(|(_, leaf)| (&leaf.sketch, leaf.site != 0 && leaf.site == root.site))
            .collect();
        for ((at, _), loose) in leaves.iter().zip(loose_leaves(&root.sketch, &all_leaves)) {
            all[*at] = loose;
        }
    }
    Ok(all)
}

/// Makes an index that is shared by several writers ready for the next one, whose turn it is and
/// who has not begun to write: if the last writer failed, or died, the index is read again, so that
/// it names no content that the store does not have.
fn catch_up(store: &Store, index: &Mutex<Index>, config: &Config) -> Result<(), DedupError> {
    if lock(index).is_ahead() {
        let fresh = Index::open(store, config)?;
        *lock(index) = fresh;
    }
    Ok(())
}

/// Starts the batch of a writer whose turn it is, on an index that names what the store has. The
/// batch does its share of the work that is due in the index; when it is committed, the index knows
/// that what it was given since is on the disk.
pub fn begin(
    store: &Store,
    index: &Arc<Mutex<Index>>,
    config: &Config,
) -> Result<Batch, DedupError> {
    catch_up(store, index, config)?;
    let mut batch = store.begin()?;
    let merged = index.clone();
    batch.before_commit(move |batch| lock(&merged).merge_some(batch));
    let index = index.clone();
    batch.after_commit(move || lock(&index).committed());
    Ok(batch)
}

/// Puts all of the index into the store, when nothing more is to come for a while: nothing of it
/// has to be made again when the store is opened.
pub fn settle(store: &Store, index: &Arc<Mutex<Index>>, config: &Config) -> Result<(), DedupError> {
    let _turn = store.turn();
    let mut batch = begin(store, index, config)?;
    lock(index).flush(&mut batch)?;
    Ok(batch.commit()?)
}

/// Postings that are read for one commit where many segments become one.
const MERGED_AT_A_TIME: u64 = 1 << 20;

/// Does the same behind so many articles that came at once. Segments that are to become one by then
/// do so, as long as that is no more to read than these articles had: each look-up asks all of
/// them, and what comes one by one would have them become one much later.
pub fn settle_after(
    store: &Store,
    index: &Arc<Mutex<Index>>,
    config: &Config,
    articles: u64,
) -> Result<(), DedupError> {
    settle(store, index, config)?;
    let mut left = articles * POSTINGS;
    while left > 0 && lock(index).has_merges() {
        let some = left.min(MERGED_AT_A_TIME);
        let _turn = store.turn();
        let batch = begin(store, index, config)?;
        lock(index).hurry(some);
        batch.commit()?;
        left -= some;
    }
    Ok(())
}

struct StoredTrees<'a, V>(&'a V);

impl<V: View> Trees for StoredTrees<'_, V> {
    type Error = Error;

    fn text(&self, content: u64) -> Result<Option<KnownText<'_>>, Error> {
        let row = self.0.get(CONTENTS, content)?;
        Ok(row.map(|row| {
            let document = row.document;
            KnownText { content, document, keys: Cow::Owned(row.keys()) }
        }))
    }

    fn tree<'a>(&'a self, text: KnownText<'a>) -> Result<KnownTree<'a>, Error> {
        let row = must_read_document(self.0, text.document)?;
        let read = |content| Ok::<_, Error>(Cow::Owned(must_read(self.0, content)?.keys()));
        let canonical = if row.content == row.root { None } else { Some(read(row.content)?) };
        // Most trees are their root.
        let (root, leaf) = if row.root == text.content {
            (text.keys, None)
        } else {
            (read(row.root)?, Some(text.keys))
        };
        Ok(KnownTree {
            document: text.document,
            root_content: row.root,
            root,
            canonical,
            leaf,
            copies: row.copies,
            first_arrival: row.first_arrival,
        })
    }

    fn mates(&self, document: u64, question: &Question<'_>) -> Result<Vec<Mate<'_>>, Error> {
        let Some((scheme, rest)) = question.address.split_once("://") else {
            return Ok(Vec::new());
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let mut mates = Vec::new();
        for other in ["http", "https"] {
            let site = format!("{other}://{host}");
            let like = format!("{other}{}", &question.address[scheme.len()..]);
            for (address, copy) in neighbours(self.0, document, &site, &like)? {
                let itself = Some(copy.content) == question.content || address == question.address;
                if !itself {
                    mates.push(mate(self.0, &address, &copy)?);
                }
            }
        }
        Ok(mates)
    }
}

/// Copies of a document on the host of `site` that stand next to a URL there.
fn neighbours(
    batch: &impl View,
    document: u64,
    site: &str,
    address: &str,
) -> Result<Vec<(String, Copy)>, Error> {
    // `0` is the character after `/`.
    let (first, end) = (format!("{site}/"), format!("{site}0"));
    let (first, end) = (first.as_str(), end.as_str());
    let at = address.clamp(first, end);
    let before = batch.range(COPIES, (document, first)..(document, at))?.rev().take(MATES_MAX);
    let after = batch.range(COPIES, (document, at)..(document, end))?.take(MATES_MAX);
    let mut found = Vec::new();
    for entry in before.chain(after) {
        let entry = entry?;
        let (_, address) = entry.key()?;
        found.push((address.to_owned(), entry.row()?));
    }
    Ok(found)
}

fn mate<'a>(batch: &impl View, address: &str, copy: &Copy) -> Result<Mate<'a>, Error> {
    let text: TextKeys = must_read(batch, copy.content)?.keys().text;
    let content = copy.content;
    Ok(Mate { content, standing: copy.standing(address), text: Cow::Owned(text) })
}

fn must_read_document(batch: &impl View, document: u64) -> Result<Document, Error> {
    let missing = BadRow { kind: "document", detail: "a content names one that is missing" };
    Ok(batch.get(DOCUMENTS, document)?.ok_or(missing)?)
}

pub(super) fn must_read(batch: &impl View, content: u64) -> Result<Content, Error> {
    let missing = BadRow { kind: "content", detail: "the index names one that is missing" };
    Ok(batch.get(CONTENTS, content)?.ok_or(missing)?)
}

/// The keys of a content, with what a page that carries it says of itself.
#[must_use]
pub fn keys_at(content: Content, address: &str, copy: &Copy) -> ArticleKeys {
    ArticleKeys { standing: copy.standing(address), ..content.keys() }
}
