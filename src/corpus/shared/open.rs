//! Ways to a corpus that is there, or to one that is begun: what was fixed when it was begun need
//! not be said again.

use std::path::{Path, PathBuf};

use crate::base::clock::Clock;
use crate::cluster::{Engine, Settings};
use crate::neardup::Config;

use super::{Error, SharedCorpus, SharedOptions, fewer_runs};

/// Name of a setting of the cluster.
const TEXTS: &str = "texts";

impl SharedCorpus {
    /// Opens a corpus that is there, to be read: whatever keys it was made with. Its texts are in
    /// the folder `texts`, or in the one that was named when it was begun.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if none was begun under the prefix, [`Error::NoTexts`] if nobody has
    /// named the folder.
    pub fn open_to_read(settings: &Settings, texts: Option<&Path>) -> Result<Self, Error> {
        let mut engine = Engine::connect(settings)?;
        must_be_begun(&mut engine, settings)?;
        let texts = folder(&mut engine, settings, texts)?;
        Self::on(engine, &texts, fewer_runs(&Config::default()), SharedOptions::default())
    }

    /// Opens a corpus that is there, to be changed by the rules of `config`, with which it must
    /// have been made.
    pub fn open_to_change(
        settings: &Settings,
        texts: Option<&Path>,
        config: &Config,
    ) -> Result<Self, Error> {
        let mut engine = Engine::connect(settings)?;
        must_be_begun(&mut engine, settings)?;
        let texts = folder(&mut engine, settings, texts)?;
        let config = fewer_runs(config);
        engine.fix("keys", &config.index_name())?;
        Self::on(engine, &texts, config, SharedOptions::default())
    }

    /// Opens a corpus, or begins it, with its texts in a folder that all workers see, which is
    /// remembered. Room for so many `documents` is made as the first ones come.
    pub fn open_or_begin(
        settings: &Settings,
        texts: Option<&Path>,
        config: &Config,
        documents: Option<u64>,
    ) -> Result<Self, Error> {
        let mut engine = Engine::connect(settings)?;
        let usual = SharedOptions::default();
        let options = SharedOptions { documents: documents.unwrap_or(usual.documents), ..usual };
        let texts = folder(&mut engine, settings, texts)?;
        drop(engine);
        let corpus = Self::open(settings, &texts, config, options)?;
        corpus.engine.borrow_mut().remember(TEXTS, &texts.display().to_string())?;
        Ok(corpus)
    }

    /// Takes the time from another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

/// A corpus that was begun has keys of some settings.
fn must_be_begun(engine: &mut Engine, settings: &Settings) -> Result<(), Error> {
    match engine.setting("keys")? {
        Some(_) => Ok(()),
        None => Err(Error::Missing(settings.prefix.clone())),
    }
}

/// The folder of the texts: that which is named, or was when the corpus was begun.
fn folder(
    engine: &mut Engine,
    settings: &Settings,
    texts: Option<&Path>,
) -> Result<PathBuf, Error> {
    if let Some(texts) = texts {
        // Whoever reads it from the settings may work in another folder.
        let whole = std::path::absolute(texts);
        return Ok(whole.unwrap_or_else(|_| texts.to_owned()));
    }
    let remembered = engine.setting(TEXTS)?.map(PathBuf::from);
    remembered.ok_or_else(|| Error::NoTexts(settings.prefix.clone()))
}
