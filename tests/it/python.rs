//! Python with packages of others, for tests that need them: made once, in the cache of the user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the Python of an environment with the packages of a file, which is made if it is not
/// there yet. It is made anew when the file changes.
pub(crate) fn venv(name: &str, requirements: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(requirements);
    let text = fs::read(&file).unwrap();
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let cache = cache.unwrap_or_else(std::env::temp_dir).join("uniqcrawl-tests");
    fs::create_dir_all(&cache).unwrap();
    // Tests of several processes may want it at the same time.
    let lock = fs::File::create(cache.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let folder = cache.join(format!("{name}-{:016x}", xxhash_rust::xxh3::xxh3_64(&text)));
    let (python, done) = (folder.join("bin/python"), folder.join("done"));
    if !done.exists() {
        let _ = fs::remove_dir_all(&folder);
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        run(Command::new(&python).args(pip).arg(&file));
        fs::write(done, "").unwrap();
    }
    python
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; the tests need python3 with its module venv: see tests/run")
    });
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
}
