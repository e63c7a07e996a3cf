//! Ways to a corpus that is there, or to one that is begun: what was fixed when it was begun need
//! not be said again.

use std::path::Path;

use crate::base::folder::{self, number, whereabouts};
use crate::base::remote::Location;
use crate::base::system;
use crate::cluster::{Engine, Settings};
use crate::neardup::Config;
use crate::store;

use super::{Error, FORMAT, SharedCorpus, SharedOptions, own_config};

/// Names of settings of the cluster.
const DOCUMENTS: &str = "documents";
const TEXTS: &str = "texts";
const TEXTS_PLACE: &str = "texts_place";

impl SharedCorpus {
    /// Opens a corpus that is there, to be read: whatever keys it was made with. Its texts are in
    /// the folder or object storage `texts`, or where they were said to be when it was begun.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if none was begun under the prefix, [`Error::NoTexts`] if nobody has
    /// said where its texts are.
    pub fn open_to_read(settings: &Settings, texts: Option<&Path>) -> Result<Self, Error> {
        let mut engine = Engine::connect(settings)?;
        let options = known(&mut engine)?.ok_or_else(|| missing(settings))?;
        let texts = place(&mut engine, settings, texts)?;
        Self::on(engine, &texts, own_config(&Config::default()), options)
    }

    /// Opens a corpus that is there, to be changed by the rules of `config`, with which it must
    /// have been made.
    pub fn open_to_change(
        settings: &Settings,
        texts: Option<&Path>,
        config: &Config,
    ) -> Result<Self, Error> {
        let mut engine = Engine::connect(settings)?;
        let options = known(&mut engine)?.ok_or_else(|| missing(settings))?;
        let texts = place(&mut engine, settings, texts)?;
        let config = own_config(config);
        engine.fix("keys", &config.index_name())?;
        Self::on(engine, &texts, config, options)
    }

    /// Opens a corpus, or begins it for so many documents at least, with its
    /// texts in a folder that all workers see, or in object storage, which is remembered.
    pub fn open_or_begin(
        settings: &Settings,
        texts: Option<&Path>,
        config: &Config,
        documents: Option<u64>,
    ) -> Result<Self, Error> {
        let mut engine = Engine::connect(settings)?;
        let found = known(&mut engine)?;
        let options = found.unwrap_or_else(|| {
            let usual = SharedOptions::default();
            SharedOptions { documents: documents.unwrap_or(usual.documents), ..usual }
        });
        let texts = place(&mut engine, settings, texts)?;
        let config = own_config(config);
        engine.fix("format", FORMAT)?;
        engine.fix("keys", &config.index_name())?;
        fix(&mut engine, &texts)?;
        let corpus = Self::on(engine, &texts, config, options)?;
        {
            let engine = &mut *corpus.engine.borrow_mut();
            engine.remember(TEXTS, &texts.to_string())?;
            engine.remember(DOCUMENTS, &options.documents.to_string())?;
        }
        Ok(corpus)
    }
}

/// Has all who write texts of a corpus find those of each other: the first one names the folder in
/// the cluster, and that of others must be the same one. Of who is refused nothing is left.
///
/// # Errors
///
/// [`Error::OtherTexts`].
pub fn fix_texts(engine: &mut Engine, texts: &Path) -> Result<(), Error> {
    fix(engine, &location(texts)?)
}

fn fix(engine: &mut Engine, texts: &Location) -> Result<(), Error> {
    let Location::Local(texts) = texts else { return Ok(()) };
    let unusable = |source| Error::Store(store::Error::Io { path: texts.clone(), source });
    if engine.setting(TEXTS_PLACE)?.is_none() {
        let number = number(texts).map_err(unusable)?;
        let here = whereabouts(&system::host_name(), texts);
        engine.remember(TEXTS_PLACE, &format!("{number} {here}"))?;
    }
    let named = engine.setting(TEXTS_PLACE)?.unwrap_or_default();
    let (first, place) = named.split_once(' ').unwrap_or((&named, ""));
    if folder::known(texts).map_err(unusable)?.is_some_and(|own| own == first) {
        return Ok(());
    }
    Err(Error::OtherTexts { folder: texts.clone(), place: place.to_owned() })
}

/// What a corpus was begun with; none if it was not begun.
fn known(engine: &mut Engine) -> Result<Option<SharedOptions>, Error> {
    if engine.setting("format")?.is_none() {
        return Ok(None);
    }
    engine.fix("format", FORMAT)?;
    let usual = SharedOptions::default();
    let documents = engine.setting(DOCUMENTS)?;
    let documents = documents.and_then(|documents| documents.parse().ok());
    Ok(Some(SharedOptions { documents: documents.unwrap_or(usual.documents), ..usual }))
}

fn missing(settings: &Settings) -> Error {
    Error::Missing(settings.prefix.clone())
}

/// The place of the texts: that which is named, or was when the corpus was begun.
fn place(
    engine: &mut Engine,
    settings: &Settings,
    texts: Option<&Path>,
) -> Result<Location, Error> {
    if let Some(texts) = texts {
        return location(texts);
    }
    let remembered = engine.setting(TEXTS)?;
    let remembered = remembered.ok_or_else(|| Error::NoTexts(settings.prefix.clone()))?;
    Ok(Location::parse(&remembered)?)
}

/// A folder, or a URL of object storage.
pub(super) fn location(texts: &Path) -> Result<Location, Error> {
    let place = match texts.to_str() {
        Some(text) => Location::parse(text)?,
        None => Location::Local(texts.to_owned()),
    };
    // Whoever reads it from the settings may work in another folder.
    let whole = place.local().and_then(|path| std::path::absolute(path).ok());
    Ok(whole.map_or(place, Location::Local))
}
