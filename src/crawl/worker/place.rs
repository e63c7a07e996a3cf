//! Folders of the stores of shards, which workers share: whoever takes a shard needs the store that
//! it had.
//!
//! A folder tells by a number of its own that it is the same one, wherever it is mounted. The first
//! worker of a crawl names it in the cluster, and others have the same folder; or all of them back
//! their shards up. Otherwise a shard that is handed over would begin with an empty store, and what
//! waited in its queues would be lost until it is found again.

use crate::base::folder::{known, number, whereabouts};
use crate::cluster::Engine;
use crate::corpus::shared;

use super::{WorkerError, WorkerPlan};

/// Names of settings of the cluster.
const STORES: &str = "stores";
const BACKUPS: &str = "backups";

/// Has all workers of a crawl find the texts and the stores of each other, or their backups. Of a
/// worker that is refused nothing is left.
pub(super) fn fix(engine: &mut Engine, plan: &WorkerPlan) -> Result<(), WorkerError> {
    shared::fix_texts(engine, &plan.texts)?;
    let unusable = |source| WorkerError::Folder { folder: plan.folder.clone(), source };
    let here = whereabouts(&plan.host, &plan.folder);
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
