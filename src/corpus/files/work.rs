//! What a run remembers of the documents it has read: plain files, and a store of lists, in a
//! folder of their own beside its output, which goes when the run ends.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::clock::Timestamp;
use crate::base::threads::each_of;
use crate::corpus::documents::Content;
use crate::corpus::index::{self, Index, LookedAhead, Sizes};
use crate::corpus::tables::{LINE_CANDIDATES, LINE_LISTS};
use crate::neardup::segment::bytes_of_pages;
use crate::neardup::{
    Candidate, Config, JudgedPage, JudgedText, JudgedTree, LineStanding, PageList, Storage,
    TextPlace,
};
use crate::store::{self, Batch, Store, Update as _, View as _};
use crate::text::features::ArticleKeys;

use super::Error;
use super::glimpses::Glimpses;
use super::looker::{FoundAhead, Looker, TextCache, TextReader, Texts};
use super::records::{Records, Rows};
use super::rows::{
    PLACE_BYTES, StoredCandidates, StoredLine, TREE_BYTES, place_bytes, place_of, tree_bytes,
    tree_of,
};
use super::together::{together, together_first};

/// Of the memory of a run, one part of so many is the page cache of its store. The index has three
/// times as much ([`Index`]), the newest texts, which are asked in memory, as much, those before
/// them that are not written yet as well, and so have texts that were compared lately. The rest is
/// that of all other things.
const PART: usize = 16;

/// The least of a part: with less, most of the time goes into merging.
const PART_BYTES_MIN: usize = 4 << 20;

/// The least memory for hashes of identifiers.
const IDS_BYTES_MIN: usize = 8 << 10;

/// Memory of the newest texts, for each: their keys, and the postings that they become.
pub(super) const NEWEST_BYTES: usize = 2_400;

/// Memory of a text in the cache: its keys, with a sketch, and what the cache needs of its own.
const TEXT_BYTES: usize = 1_000;

/// Blocks that a step of a merge reads or writes: nobody waits for it.
const STEP: usize = 8;

/// Bytes of a block: so many documents are looked up together that nearly all blocks are read.
const BLOCK_BYTES: usize = bytes_of_pages(4);

/// Texts and documents of a transaction at most, and the memory that one takes until then.
const COMMIT_ROWS_MAX: usize = 1 << 15;
const COMMIT_ROW_BYTES: usize = 24 << 10;

/// A line of the input, until it is judged.
#[derive(Debug, Clone, Default)]
pub(super) struct LineSource {
    /// Number of its file, from 0.
    pub file: u32,
    /// Number of the line, from 1.
    pub line: u64,
    /// Its identifier.
    pub id: String,
}

/// The documents of a run, on the disk.
pub(super) struct LineStorage {
    /// Until it is dropped.
    batch: Option<Batch>,
    index: Index,
    store: Arc<Store>,
    reader: TextReader,
    /// Texts that are likely needed by those that were looked up together.
    loaded: Texts,
    memory: usize,
    together: usize,
    /// Others are being looked up, among those of the last commit.
    looks: bool,
    /// Lines of documents that are still to be added.
    coming: VecDeque<LineSource>,
    /// The lines of all documents.
    lines: Rows<StoredLine>,
    /// The hashes of their identifiers.
    ids: Records<8>,
    texts: Rows<Content>,
    /// Glimpses of all texts.
    glimpses: Glimpses,
    /// Where texts hang.
    places: Records<PLACE_BYTES>,
    trees: Records<TREE_BYTES>,
    /// What was found for documents that are still to be added, before the next commit.
    ahead: VecDeque<LookedAhead>,
    /// Texts were looked up again: what was found is true until another one comes.
    looked_again: bool,
    /// Texts and documents since the last commit.
    pending: usize,
    pending_max: usize,
    threads: usize,
    folder: WorkFolder,
}

/// A folder that is there as long as this is.
struct WorkFolder(PathBuf);

impl Drop for WorkFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

impl LineStorage {
    /// Makes an empty one in `folder`, which is not there. It takes about `memory` bytes of memory,
    /// and looks up texts that are known with `threads` threads.
    pub(super) fn begin(
        folder: PathBuf,
        config: &Config,
        memory: usize,
        threads: usize,
    ) -> Result<Self, Error> {
        let folder = WorkFolder(folder);
        let part = (memory / PART).max(PART_BYTES_MIN);
        let store = Arc::new(Store::open_or_create(&folder.0, part)?);
        let lines = Rows::create(&folder.0, "lines")?;
        let ids = Records::create(&folder.0, "ids")?;
        let texts = Rows::create(&folder.0, "texts")?;
        let glimpses = Glimpses::create(&folder.0, config)?;
        let places = Records::create(&folder.0, "places")?;
        let trees = Records::create(&folder.0, "trees")?;
        let tail = (part / NEWEST_BYTES) as u64;
        let sizes = Sizes { tail, step: STEP, block_bytes: BLOCK_BYTES, more_filters: 0 };
        let index = Index::of_run(&store, config, sizes, folder.0.clone());
        let index = index.map_err(|error| match error {
            index::Error::Settings(error) => Error::Dedup(error),
            index::Error::Store(error) => Error::Work(error),
        })?;
        let (batch, coming) = (Some(store.begin()?), VecDeque::new());
        let most = part / TEXT_BYTES;
        let cache = Arc::new(TextCache::new(most / 4));
        let pending_max = (memory / COMMIT_ROW_BYTES).clamp(1 << 10, COMMIT_ROWS_MAX);
        let (ahead, pending, looked_again) = (VecDeque::new(), 0, false);
        Ok(Self {
            batch,
            index,
            store,
            reader: TextReader { cache, most, threads },
            loaded: Texts::new(),
            memory,
            together: together_first(memory),
            looks: false,
            coming,
            lines,
            ids,
            texts,
            glimpses,
            places,
            trees,
            ahead,
            looked_again,
            pending,
            pending_max,
            threads,
            folder,
        })
    }

    /// Names the lines of the documents that come next.
    pub(super) fn coming(&mut self, lines: impl IntoIterator<Item = LineSource>) {
        self.coming.extend(lines);
    }

    /// Returns what looks up documents that are to be added behind the next ones, while these are.
    pub(super) fn looker(&mut self) -> Result<Looker, store::Error> {
        if self.pending >= self.pending_max {
            self.commit()?;
        }
        self.looks = true;
        let (store, reader) = (Arc::clone(&self.store), self.reader.clone());
        let (glimpses, texts) = (self.glimpses.until_now(), self.texts.clone());
        Ok(Looker { store, older: self.index.older(), glimpses, texts, reader })
    }

    /// Takes what was found for the documents that are to be added next.
    pub(super) fn take_found(&mut self, found: FoundAhead) {
        self.looks = false;
        self.together = together(self.memory, found.bytes() / found.found.len().max(1));
        self.ahead = found.found.into();
        self.loaded = found.texts;
    }

    /// Looks up texts that are known, with all threads, and remembers what was found.
    fn look_again(&mut self, contents: &[u32]) -> Result<Vec<StoredCandidates>, store::Error> {
        if self.pending > 0 && !contents.is_empty() {
            self.commit()?;
        }
        let texts = &self.texts;
        let keys = each_of(contents, self.threads, |content| {
            Ok::<_, store::Error>(texts.get(u64::from(*content))?.keys())
        })?;
        let asked: Vec<&ArticleKeys> = keys.iter().collect();
        let glimpses = &self.glimpses;
        let found =
            self.index.candidates_of(&self.store, &asked, self.threads, |keys, found| {
                let sifted = glimpses.sifted(found, &keys.text, |_| None)?;
                Ok(StoredCandidates::from(&*sifted))
            })?;
        for (content, found) in contents.iter().zip(&found) {
            self.batch_mut().put(LINE_CANDIDATES, *content, found)?;
        }
        self.looked_again |= !contents.is_empty();
        Ok(found)
    }

    /// Now and then brings to the disk what was written, and has the index do its share of merging.
    fn rest(&mut self) -> Result<(), store::Error> {
        if self.pending >= self.pending_max && self.ahead.is_empty() && !self.looks {
            self.commit()?;
        }
        self.pending += 1;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), store::Error> {
        debug_assert!(!self.looks, "what is looked up is true until the next commit");
        self.pending = 0;
        if let Some(mut batch) = self.batch.take() {
            self.index.merge_some(&mut batch)?;
            batch.commit()?;
            self.index.committed();
        }
        self.batch = Some(self.store.begin()?);
        tracing::trace!(folder = %self.path().display(), "committed");
        Ok(())
    }

    /// Returns the folder.
    fn path(&self) -> &Path {
        &self.folder.0
    }

    fn batch(&self) -> &Batch {
        self.batch.as_ref().expect("a transaction is open between two calls")
    }

    fn batch_mut(&mut self) -> &mut Batch {
        self.batch.as_mut().expect("a transaction is open between two calls")
    }

    /// Returns a document.
    pub(super) fn line(&self, document: u32) -> Result<StoredLine, store::Error> {
        self.lines.get(document.into())
    }

    fn content(&self, content: u32) -> Result<Content, store::Error> {
        self.texts.get(content.into())
    }

    /// Returns how many documents have an identifier that an earlier one has.
    ///
    /// Hashes are sorted in memory, as many at a time as fit into a sixteenth of `memory`.
    pub(super) fn equal_ids(&self, memory: usize) -> Result<u64, store::Error> {
        let documents = self.ids.len();
        let room = (memory / PART).max(IDS_BYTES_MIN) as u64;
        let parts = (documents * size_of::<u64>() as u64).div_ceil(room);
        let mut equal = 0;
        for part in 0..parts {
            let mut hashes = Vec::new();
            self.ids.for_each(|hash| {
                let hash = u64::from_be_bytes(*hash);
                if hash % parts == part {
                    hashes.push(hash);
                }
            })?;
            let all = hashes.len();
            hashes.sort_unstable();
            hashes.dedup();
            equal += (all - hashes.len()) as u64;
        }
        Ok(equal)
    }

    /// Returns the memory of the index, in bytes.
    pub(super) fn index_bytes(&self) -> usize {
        self.index.bytes()
    }
}

impl Storage for LineStorage {
    type Error = store::Error;

    fn candidates(&self, keys: &ArticleKeys) -> Result<Vec<Candidate>, store::Error> {
        let ahead = self.ahead.front().and_then(|it| {
            let found = self.index.candidates_after(it, keys)?;
            Some((found, it))
        });
        let (found, ahead) = match ahead {
            Some((found, ahead)) => (found, Some(ahead)),
            None => (self.index.candidates(self.batch(), keys)?, None),
        };
        let known = |content| ahead.and_then(|ahead| ahead.resemblance(content));
        self.glimpses.sifted(found, &keys.text, known)
    }

    fn together(&self) -> usize {
        self.together
    }

    fn candidates_of(&mut self, contents: &[u32]) -> Result<Vec<Vec<Candidate>>, store::Error> {
        let known = |content: &u32| self.batch().get(LINE_CANDIDATES, *content);
        let known = contents.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        let pairs = contents.iter().zip(&known);
        let unknown: Vec<u32> =
            pairs.filter(|(_, known)| known.is_none()).map(|(content, _)| *content).collect();
        let mut found = self.look_again(&unknown)?.into_iter();
        let each = known.into_iter().map(|known| known.map_or_else(|| found.next(), Some));
        let found: Vec<Vec<Candidate>> = each.flatten().map(Vec::from).collect();
        let likely = found.iter().flatten();
        let likely = likely.map(|candidate| candidate.content).collect();
        self.loaded = self.reader.read(&self.texts, likely)?;
        Ok(found)
    }

    fn equal_texts(&self, hash: u128) -> Result<Vec<u32>, store::Error> {
        let ahead = self.ahead.front().and_then(|it| self.index.equal_texts_after(it, hash));
        let mut equal = Vec::new();
        for content in ahead.map_or_else(|| self.index.equal_texts(self.batch(), hash), Ok)? {
            let content = content as u32;
            if self.content(content)?.hash == hash {
                equal.push(content);
            }
        }
        Ok(equal)
    }

    fn text(&self, content: u32) -> Result<JudgedText<'_>, store::Error> {
        let tree = self.place(content)?.tree;
        if let Some(keys) = self.loaded.get(&content) {
            return Ok(JudgedText { tree, keys: Cow::Borrowed(keys) });
        }
        let read = || Ok::<_, store::Error>(Arc::new(self.content(content)?.keys()));
        let keys = self.reader.cache.get_or_insert_with(&content, read)?;
        Ok(JudgedText { tree, keys: Cow::Owned(ArticleKeys::clone(&keys)) })
    }

    fn place(&self, content: u32) -> Result<TextPlace, store::Error> {
        Ok(place_of(&self.places.get(content.into())?)?)
    }

    fn put_place(&mut self, content: u32, place: TextPlace) -> Result<(), store::Error> {
        self.places.put(content.into(), &place_bytes(&place))
    }

    fn add_text(
        &mut self,
        content: u32,
        place: TextPlace,
        keys: ArticleKeys,
    ) -> Result<(), store::Error> {
        self.rest()?;
        let number = u64::from(content);
        let batch = self.batch.as_mut().expect("a transaction is open between two calls");
        if std::mem::take(&mut self.looked_again) {
            batch.clear(LINE_CANDIDATES, ..)?;
        }
        self.index.insert(batch, number, &keys);
        self.glimpses.push(&keys.text)?;
        self.places.put(number, &place_bytes(&place))?;
        // Its place says of which tree it is.
        self.texts.push(&Content::first(0, &keys, Timestamp::default()))
    }

    fn tree(&self, tree: u32) -> Result<JudgedTree, store::Error> {
        Ok(tree_of(&self.trees.get(tree.into())?))
    }

    fn put_tree(&mut self, tree: u32, row: JudgedTree) -> Result<(), store::Error> {
        self.trees.put(tree.into(), &tree_bytes(&row))
    }

    fn page(&self, document: u32) -> Result<JudgedPage, store::Error> {
        Ok(self.line(document)?.page())
    }

    fn add_page(&mut self, document: u32, page: JudgedPage) -> Result<(), store::Error> {
        self.rest()?;
        let LineSource { file, line, id } = self.coming.pop_front().unwrap_or_default();
        self.ahead.pop_front();
        let JudgedPage { content, popularity, standing } = page;
        let LineStanding { site, edition, form, name, title, heading } = standing;
        let row = StoredLine {
            file,
            line,
            id,
            content,
            popularity,
            site,
            edition,
            form,
            name,
            title,
            heading,
        };
        debug_assert_eq!(self.lines.len(), u64::from(document), "they come in their order");
        self.ids.push(&xxh3_64(row.id.as_bytes()).to_be_bytes())?;
        self.lines.push(&row)
    }

    fn listed(&self, list: PageList, limit: usize) -> Result<Vec<u32>, store::Error> {
        let rows = self.batch().under(LINE_LISTS, (list.tree, list.site))?;
        rows.take(limit).map(|row| Ok(row?.row()?)).collect()
    }

    fn add_listed(&mut self, list: PageList, at: u32, document: u32) -> Result<(), store::Error> {
        self.batch_mut().put(LINE_LISTS, ((list.tree, list.site), at), &document)
    }

    fn clear_list(&mut self, list: PageList) -> Result<(), store::Error> {
        let list = (list.tree, list.site);
        self.batch_mut().clear(LINE_LISTS, (list, 0)..=(list, u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neardup::{Key, article_keys};
    use crate::text::features::{Fingerprinter, Input};

    #[test]
    fn a_text_that_moves_is_of_its_new_tree_wherever_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        let mut storage = LineStorage::begin(work.clone(), &Config::default(), 1 << 20, 2).unwrap();
        let keys = article_keys(&Fingerprinter::default(), &Input::default());
        let place =
            |tree, first| TextPlace { tree, first, key: Key::Near, distance: 3, similarity: 0.123 };
        for content in 0..3 {
            storage.add_text(content, place(content, 7), keys.clone()).unwrap();
        }
        // It is known in memory as well.
        assert_eq!(storage.text(1).unwrap().tree, 1);
        storage.put_place(1, place(5, 7)).unwrap();
        let trees = [0, 1, 2].map(|content| storage.text(content).unwrap().tree);
        assert_eq!(trees, [0, 5, 2]);
        assert_eq!(storage.place(1).unwrap(), place(5, 7));
        drop(storage);
        assert!(!work.exists());
    }

    #[test]
    fn what_was_found_is_forgotten_when_a_text_comes_and_no_text_is_read_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        let mut storage = LineStorage::begin(work, &Config::default(), 1 << 20, 2).unwrap();
        let text = (0..80).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
        let input = Input { text: &text, ..Input::default() };
        let keys = article_keys(&Fingerprinter::default(), &input);
        let place =
            |tree| TextPlace { tree, first: 0, key: Key::Near, distance: 3, similarity: 0.123 };
        let found = |storage: &mut LineStorage| {
            let found = storage.candidates_of(&[0, 1]).unwrap();
            let contents = found[0].iter().map(|one| one.content).collect::<Vec<_>>();
            assert_eq!(found[0], found[1]);
            contents
        };
        (0..2).for_each(|content| storage.add_text(content, place(content), keys.clone()).unwrap());
        assert_eq!(found(&mut storage), [0, 1]);
        // The second time it is read from what was kept, and the texts that go with it are as now.
        storage.put_place(1, place(5)).unwrap();
        assert_eq!(found(&mut storage), [0, 1]);
        assert_eq!([0, 1].map(|content| storage.text(content).unwrap().tree), [0, 5]);
        storage.add_text(2, place(2), keys.clone()).unwrap();
        assert_eq!(found(&mut storage), [0, 1, 2]);
        assert_eq!([0, 1, 2].map(|content| storage.text(content).unwrap().tree), [0, 5, 2]);
    }

    #[test]
    fn a_list_has_its_documents_in_the_order_in_which_they_came_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        let mut storage = LineStorage::begin(work, &Config::default(), 1 << 20, 2).unwrap();
        let (one, other) = (PageList { tree: 1, site: 0 }, PageList { tree: 1, site: 9 });
        for (at, document) in (0..).zip([900, 3, 70_000]) {
            storage.add_listed(one, at, document).unwrap();
            storage.add_listed(other, at, document + 1).unwrap();
        }
        storage.clear_list(other).unwrap();
        assert_eq!(storage.listed(one, usize::MAX).unwrap(), [900, 3, 70_000]);
        assert_eq!(storage.listed(one, 2).unwrap(), [900, 3]);
        assert_eq!(storage.listed(other, 2).unwrap(), [0_u32; 0]);
    }
}
