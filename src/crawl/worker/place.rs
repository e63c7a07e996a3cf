//! The folder of the stores of shards: whoever takes a shard needs the store that it had.
//!
//! A folder tells by a number of its own that it is the same one, wherever it is mounted. The first
//! worker of a crawl names it in the cluster; others have the same folder, or all of them back
//! their shards up. Otherwise a shard that is handed over would begin with an empty store, and what
//! waited in its queues would be lost until it is found again.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::cluster::Engine;

use super::{WorkerError, WorkerPlan};

/// Name of the file with the number of a folder.
const NUMBER: &str = "place";

/// Names of settings of the cluster.
const STORES: &str = "stores";
const BACKUPS: &str = "backups";

/// Has all workers of a crawl find the stores of each other, or their backups.
pub(super) fn fix(engine: &mut Engine, plan: &WorkerPlan) -> Result<(), WorkerError> {
    let number = number(&plan.folder)
        .map_err(|source| WorkerError::Folder { folder: plan.folder.clone(), source })?;
    let folder = std::path::absolute(&plan.folder).unwrap_or_else(|_| plan.folder.clone());
    let own = format!("{number} {}:{}", plan.host, folder.display());
    if plan.stores_lost {
        engine.set(STORES, &own)?;
    }
    engine.remember(STORES, &own)?;
    let stores = engine.setting(STORES)?.unwrap_or_default();
    let (first, place) = stores.split_once(' ').unwrap_or((&stores, ""));
    let backs_up = !plan.config.backup.is_empty();
    let is_backed_up = engine.setting(BACKUPS)?.is_some();
    if first != number && !(is_backed_up && backs_up) {
        let (folder, place) = (plan.folder.clone(), place.to_owned());
        return Err(WorkerError::Stores { folder, place, is_backed_up });
    }
    if backs_up {
        engine.remember(BACKUPS, &plan.config.backup)?;
    }
    Ok(())
}

/// Returns the number of a folder, which is drawn when it is asked for first.
fn number(folder: &Path) -> std::io::Result<String> {
    fs::create_dir_all(folder)?;
    let path = folder.join(NUMBER);
    let drawn = format!("{:016x}", RandomState::new().build_hasher().finish());
    // Whoever is first names it; nobody sees half of it.
    let whole = folder.join(format!("{NUMBER}.{drawn}"));
    let mut file = File::create_new(&whole)?;
    file.write_all(drawn.as_bytes())?;
    file.sync_all()?;
    let named = fs::hard_link(&whole, &path);
    fs::remove_file(&whole)?;
    match named {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    Ok(fs::read_to_string(&path)?.trim().to_owned())
}
