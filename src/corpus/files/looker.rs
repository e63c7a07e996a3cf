//! Documents that are looked up, by several threads, while those before them are judged.

use std::collections::HashMap;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::base::threads::each_of;
use crate::corpus::documents::Content;
use crate::corpus::index::{LookedAhead, OlderContents};
use crate::store::{self, Store};
use crate::text::features::ArticleKeys;

use super::glimpses::GlimpsesUntil;
use super::records::Rows;

/// Texts that were compared lately. A key has its oldest texts, so that those that many others
/// share one with by chance are compared again and again.
pub(super) type TextCache = Cache<u32, Arc<ArticleKeys>>;

/// The keys of some texts, by their numbers.
pub(super) type Texts = HashMap<u32, Arc<ArticleKeys>>;

/// Looks up documents among those of the last commit.
pub(super) struct Looker {
    pub store: Arc<Store>,
    pub older: OlderContents,
    pub glimpses: GlimpsesUntil,
    pub texts: Rows<Content>,
    pub reader: TextReader,
}

/// Reads texts.
#[derive(Clone)]
pub(super) struct TextReader {
    pub cache: Arc<TextCache>,
    /// So many at a time, at most.
    pub most: usize,
    pub threads: usize,
}

/// What was found for documents.
pub(super) struct FoundAhead {
    /// For each of them, in order.
    pub found: Vec<LookedAhead>,
    /// Texts that the judge likely reads.
    pub texts: Texts,
}

impl Looker {
    /// Looks documents up.
    pub(super) fn look_up(&self, coming: &[&ArticleKeys]) -> Result<FoundAhead, store::Error> {
        let (glimpses, threads) = (&self.glimpses, self.reader.threads);
        let view = self.store.snapshot()?;
        let found = self.older.look_up(&view, coming, threads, |keys, content| {
            glimpses.compare(&keys.text, content).map(Some)
        })?;
        let likely = found.iter().flat_map(LookedAhead::likely).collect();
        let texts = self.reader.read(&self.texts, likely)?;
        Ok(FoundAhead { found, texts })
    }
}

impl FoundAhead {
    /// Returns the memory that what was found takes, and took when it was looked up, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.found.iter().map(LookedAhead::memory).sum()
    }
}

impl TextReader {
    /// Reads texts.
    pub(super) fn read(
        &self,
        texts: &Rows<Content>,
        mut contents: Vec<u64>,
    ) -> Result<Texts, store::Error> {
        contents.sort_unstable();
        contents.dedup();
        contents.truncate(self.most);
        let read = each_of(&contents, self.threads, |content| {
            let number = *content as u32;
            let keys = match self.cache.get(&number) {
                Some(known) => known,
                None => Arc::new(texts.get(*content)?.keys()),
            };
            Ok::<_, store::Error>((number, keys))
        })?;
        Ok(read.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::LineStorage;
    use crate::neardup::{
        Config, JudgedPage, Key, LineStanding, Storage as _, TextPlace, article_keys,
    };
    use crate::text::features::{ArticleKeys, Fingerprinter, Input};

    /// Those of a text in which some words are others.
    fn keys(name: &str, others: usize) -> ArticleKeys {
        let number = |word: usize| if word < others { 900 + word } else { word };
        let words = (0..80).map(|word| format!("{name}{}", number(word)));
        let text = &words.collect::<Vec<_>>().join(" ");
        article_keys(&Fingerprinter::default(), &Input { text, ..Input::default() })
    }

    #[test]
    fn what_changes_while_a_document_is_looked_up_is_known_at_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        let mut storage = LineStorage::begin(work, &Config::default(), 1 << 20, 2).unwrap();
        let place =
            |tree| TextPlace { tree, first: 0, key: Key::Near, distance: 3, similarity: 0.5 };
        let page = JudgedPage {
            content: 0,
            popularity: 0,
            standing: LineStanding { site: 0, edition: 0, form: 0, name: 0, title: 0, heading: 0 },
        };
        let mut number = 0;
        let mut add = |storage: &mut LineStorage, keys: ArticleKeys| {
            storage.add_text(number, place(number), keys).unwrap();
            number += 1;
            number - 1
        };
        let one = add(&mut storage, keys("word", 0));
        // So many that the first ones were committed and are no longer the newest.
        for own in 0..2_100 {
            add(&mut storage, keys(&format!("other{own}x"), 0));
        }
        let looker = storage.looker().unwrap();
        let two = add(&mut storage, keys("word", 1));
        let asked = [keys("word", 2), keys("word", 1)];
        let found = looker.look_up(&asked.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(found.texts.keys().collect::<Vec<_>>(), [&one]);
        storage.put_place(one, place(7)).unwrap();
        storage.take_found(found);
        let candidates = |storage: &LineStorage, at: usize| {
            let candidates = storage.candidates(&asked[at]).unwrap();
            let mut contents: Vec<u64> = candidates.iter().map(|one| one.content).collect();
            contents.sort_unstable();
            contents
        };
        assert_eq!(candidates(&storage, 0), [one, two].map(u64::from));
        let three = add(&mut storage, asked[0].clone());
        storage.add_page(0, page).unwrap();
        assert_eq!(candidates(&storage, 1), [one, two, three].map(u64::from));
        assert_eq!(storage.equal_texts(asked[1].text.hash).unwrap(), [two]);
        let trees = [one, two].map(|content| storage.text(content).unwrap().tree);
        assert_eq!(trees, [7, two], "it has moved meanwhile");
    }
}
