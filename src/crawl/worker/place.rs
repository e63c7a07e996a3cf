//! Folders that workers share: those of texts, and those of the stores of shards, since whoever
//! takes a shard needs the store that it had.
//!
//! A folder tells by a number of its own that it is the same one, wherever it is mounted. The first
//! worker of a crawl names it in the cluster, and others have the same folder; or all of them back
//! their shards up. Otherwise a shard that is handed over would begin with an empty store, and what
//! waited in its queues would be lost until it is found again.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::Path;

use crate::base::remote::Location;
use crate::cluster::Engine;

use super::{WorkerError, WorkerPlan};

/// Name of the file with the number of a folder.
const NUMBER: &str = "place";

/// Names of settings of the cluster.
const STORES: &str = "stores";
const BACKUPS: &str = "backups";
const TEXTS: &str = "texts_place";

/// Has all workers of a crawl find the texts of each other.
fn fix_texts(engine: &mut Engine, plan: &WorkerPlan) -> Result<(), WorkerError> {
    let place =
        plan.texts.to_str().map_or(Ok(Location::Local(plan.texts.clone())), Location::parse);
    let Ok(Location::Local(texts)) = place else { return Ok(()) };
    let unusable = |source| WorkerError::Folder { folder: texts.clone(), source };
    if engine.setting(TEXTS)?.is_none() {
        let number = number(&texts).map_err(unusable)?;
        let folder = std::path::absolute(&texts).unwrap_or_else(|_| texts.clone());
        engine.remember(TEXTS, &format!("{number} {}:{}", plan.host, folder.display()))?;
    }
    let named = engine.setting(TEXTS)?.unwrap_or_default();
    let (first, place) = named.split_once(' ').unwrap_or((&named, ""));
    if known(&texts).map_err(unusable)?.is_some_and(|own| own == first) {
        return Ok(());
    }
    Err(WorkerError::Texts { place: place.to_owned(), folder: texts })
}

/// Has all workers of a crawl find the texts and the stores of each other, or their backups. Of a
/// worker that is refused nothing is left.
pub(super) fn fix(engine: &mut Engine, plan: &WorkerPlan) -> Result<(), WorkerError> {
    fix_texts(engine, plan)?;
    let unusable = |source| WorkerError::Folder { folder: plan.folder.clone(), source };
    let folder = std::path::absolute(&plan.folder).unwrap_or_else(|_| plan.folder.clone());
    let here = format!("{}:{}", plan.host, folder.display());
    if plan.stores_lost {
        let number = number(&plan.folder).map_err(unusable)?;
        engine.set(STORES, &format!("{number} {here}"))?;
    } else if engine.setting(STORES)?.is_none() {
        let number = number(&plan.folder).map_err(unusable)?;
        engine.remember(STORES, &format!("{number} {here}"))?;
    }
    let stores = engine.setting(STORES)?.unwrap_or_default();
    let (first, place) = stores.split_once(' ').unwrap_or((&stores, ""));
    let is_first = known(&plan.folder).map_err(unusable)?.is_some_and(|own| own == first);
    let backs_up = !plan.config.backup.is_empty();
    let is_backed_up = engine.setting(BACKUPS)?.is_some();
    if !(is_first || is_backed_up && backs_up) {
        let (folder, place) = (plan.folder.clone(), place.to_owned());
        return Err(if place == here {
            WorkerError::StoresGone { place }
        } else {
            WorkerError::Stores { folder, place, is_backed_up }
        });
    }
    number(&plan.folder).map_err(unusable)?;
    if backs_up {
        engine.remember(BACKUPS, &plan.config.backup)?;
    }
    Ok(())
}

/// Returns the number of a folder; none if it has none.
fn known(folder: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(folder.join(NUMBER)) {
        Ok(number) => Ok(Some(number.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the number of a folder, which is drawn if it has none.
fn number(folder: &Path) -> io::Result<String> {
    if let Some(number) = known(folder)? {
        return Ok(number);
    }
    fs::create_dir_all(folder)?;
    let path = folder.join(NUMBER);
    let drawn = format!("{:016x}", RandomState::new().build_hasher().finish());
    // Whoever is first names it; nobody sees half of it.
    let whole = folder.join(format!("{NUMBER}.{drawn}"));
    let mut file = File::create_new(&whole)?;
    file.write_all(drawn.as_bytes())?;
    file.sync_all()?;
    match fs::hard_link(&whole, &path) {
        // Some volumes have no links.
        Err(_) if !path.exists() => fs::rename(&whole, &path)?,
        _ => fs::remove_file(&whole)?,
    }
    Ok(known(folder)?.unwrap_or(drawn))
}
