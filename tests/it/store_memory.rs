//! Memory of the commands that work on a store as a whole: it has a bound, which the size of the
//! store does not move.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

use uniqcrawl::store::{META, Store, Update as _};

use crate::memory::peak;

const MIB: u64 = 1 << 20;

/// Rows of noise, of 2 KiB each.
const ROWS: u64 = 140_000;

/// What the guide says: the page cache of 128 MiB, and 192 MiB for all else.
const MOST: u64 = 320 * MIB;

/// Makes a store of more bytes than the bound, none of which can be packed.
fn make(folder: &Path) {
    let store = Store::open_or_create(folder, 16 << 20).unwrap();
    for first in (0..ROWS).step_by(10_000) {
        let mut batch = store.begin().unwrap();
        let (mut state, mut noise) = (first, vec![0_u8; 2_048]);
        for number in first..(first + 10_000).min(ROWS) {
            for byte in &mut noise {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number);
                *byte = b'a' + (state >> 60) as u8;
            }
            batch.put(META, format!("noise {number:08}").as_str(), &noise).unwrap();
        }
        batch.commit().unwrap();
    }
}

#[test]
fn a_backup_and_all_that_is_made_of_it_stay_below_a_bound_that_the_store_is_above() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    make(&path.join("s"));
    let size = std::fs::metadata(path.join("s/store.redb")).unwrap().len();
    assert!(size > MOST, "{size}");
    for command in [
        &["store", "backup", "--store", "s", "--to", "b"][..],
        &["store", "backup", "--store", "s", "--to", "b", "--verify"],
        &["store", "verify", "b"],
        &["store", "restore", "--from", "b", "--store", "r"],
        &["store", "compact", "--store", "r"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(command)
            .current_dir(path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let most = peak(&mut child);
        assert!(child.wait().unwrap().success(), "{command:?}");
        assert!(most < MOST, "{command:?}: {} MiB", most / MIB);
    }
}
