//! Folders that several processes share: each has a number of its own, by which they tell that it
//! is the same one wherever it is mounted.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::Path;

/// Name of the file with the number of a folder.
const NUMBER: &str = "place";

/// Returns the number of a folder; none if it has none.
pub(crate) fn known(folder: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(folder.join(NUMBER)) {
        Ok(number) => Ok(Some(number.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the number of a folder, which is drawn if it has none.
pub(crate) fn number(folder: &Path) -> io::Result<String> {
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

/// Tells where a folder is: `HOST:PATH`.
pub(crate) fn whereabouts(host: &str, folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    format!("{host}:{}", folder.display())
}
