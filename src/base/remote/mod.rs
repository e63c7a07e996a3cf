//! Files in object storage, `s3://`, `gs://` and `az://`: read as a stream or at any place, written
//! in parts.
//!
//! An object appears under its name when all of it is there, and not before. Credentials and the
//! like come from whoever starts the program, by [`set_options`]: nothing here reads the
//! environment, and nothing of them stands in an error or in the log.
//!
//! Calls wait for the network, so that they are for threads, not for async tasks.

#[cfg(feature = "object-store")]
mod objects;

use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::OnceLock;

#[cfg(feature = "object-store")]
pub use objects::{ObjectReader, Objects, Upload};

/// Schemes of object storage.
const SCHEMES: [&str; 7] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// Names of settings begin so, of Amazon S3, Google Cloud Storage and Azure.
const OPTIONS: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// What is wrong with a URL of object storage, or with what lies there.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {detail}")]
pub struct Error {
    /// The URL, without anything secret.
    pub url: String,
    /// What is wrong.
    pub detail: String,
    /// The URL is at fault, and not what lies there.
    pub is_usage: bool,
}

impl Error {
    /// What was written is at fault.
    fn usage(url: &str, detail: impl Into<String>) -> Self {
        Self { url: url.to_owned(), detail: detail.into(), is_usage: true }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

static GIVEN: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Takes the settings of object storage out of variables of the environment, such as
/// `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`. Only the first call counts.
pub fn set_options(variables: impl IntoIterator<Item = (String, String)>) {
    GIVEN.get_or_init(|| {
        let is_one = |name: &str| OPTIONS.iter().any(|start| name.starts_with(start));
        variables.into_iter().filter(|(name, _)| is_one(name)).collect()
    });
}

/// A folder or file: on this machine, or in object storage.
#[derive(Debug, Clone)]
pub enum Location {
    /// On this machine.
    Local(PathBuf),
    /// In object storage.
    #[cfg(feature = "object-store")]
    Remote(Objects),
}

impl Location {
    /// Reads a path or a URL: `corpus`, `file:///data/corpus`, `s3://bucket/corpus`.
    ///
    /// # Errors
    ///
    /// A scheme that is not known, a URL with a password in it, one without a bucket.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Local(PathBuf::from(text)));
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "file" {
            let url = url::Url::parse(text).ok();
            let path = url.and_then(|url| url.to_file_path().ok());
            let wrong = || Error::usage(text, "a URL of a file is `file:///` and its path");
            return Ok(Self::Local(path.ok_or_else(wrong)?));
        }
        if !SCHEMES.contains(&scheme.as_str()) {
            let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !is_scheme || scheme.is_empty() {
                return Ok(Self::Local(PathBuf::from(text)));
            }
            let shown = format!("{scheme}://...");
            return Err(Error::usage(&shown, "the schemes are s3://, gs://, az:// and file://"));
        }
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') && (authority.contains(':') || !scheme.starts_with('a')) {
            let shown = format!("{scheme}://...");
            let detail = "credentials do not belong in a URL: they are read from the environment, \
                such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
            return Err(Error::usage(&shown, detail));
        }
        if authority.is_empty() {
            return Err(Error::usage(text, "it names no bucket"));
        }
        Self::remote(text)
    }

    #[cfg(feature = "object-store")]
    fn remote(text: &str) -> Result<Self, Error> {
        let given = GIVEN.get().map_or(&[][..], Vec::as_slice);
        Objects::open(text, given).map(Self::Remote)
    }

    #[cfg(not(feature = "object-store"))]
    fn remote(text: &str) -> Result<Self, Error> {
        Err(Error::usage(text, "this program was built without the feature `object-store`"))
    }

    /// Returns the path, if it is one of this machine.
    #[must_use]
    pub fn local(&self) -> Option<&std::path::Path> {
        match self {
            Self::Local(path) => Some(path),
            #[cfg(feature = "object-store")]
            Self::Remote(_) => None,
        }
    }

    /// Returns a file or folder below.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.join(name)),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => Self::Remote(objects.child(name)),
        }
    }

    /// Returns it as a path, to be shown.
    #[must_use]
    pub fn to_shown(&self) -> PathBuf {
        match self {
            Self::Local(path) => path.clone(),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => PathBuf::from(objects.to_string()),
        }
    }

    /// Tells whether a file is there.
    ///
    /// # Errors
    ///
    /// What the system or the server says.
    pub fn exists(&self) -> io::Result<bool> {
        match self {
            Self::Local(path) => path.try_exists(),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => Ok(objects.exists()?),
        }
    }

    /// Returns the names of what is in a folder, in order; none if there is no folder.
    ///
    /// # Errors
    ///
    /// What the system or the server says.
    pub fn names(&self) -> io::Result<Vec<String>> {
        match self {
            Self::Local(path) => {
                let mut names = Vec::new();
                match std::fs::read_dir(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    entries => {
                        for entry in entries? {
                            names.push(entry?.file_name().to_string_lossy().into_owned());
                        }
                    }
                }
                names.sort();
                Ok(names)
            }
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => Ok(objects.names()?),
        }
    }

    /// Returns the names of all objects below; of a folder, those in it.
    ///
    /// # Errors
    ///
    /// What the system or the server says.
    pub fn names_below(&self) -> io::Result<Vec<String>> {
        match self {
            Self::Local(_) => self.names(),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => {
                let all = objects.list()?;
                Ok(all.into_iter().map(|(object, _)| object.name().to_owned()).collect())
            }
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// What the system or the server says.
    pub fn remove_file(&self) -> io::Result<()> {
        match self {
            Self::Local(path) => std::fs::remove_file(path),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => Ok(objects.remove()?),
        }
    }

    /// Removes a folder with all that is in it.
    ///
    /// # Errors
    ///
    /// What the system or the server says.
    pub fn remove_folder(&self) -> io::Result<()> {
        match self {
            Self::Local(path) => std::fs::remove_dir_all(path),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => {
                for (object, _) in objects.list()? {
                    object.remove()?;
                }
                Ok(())
            }
        }
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    ///
    /// What the system or the server says.
    pub fn open(&self) -> io::Result<Box<dyn ReadSeek>> {
        Ok(match self {
            Self::Local(path) => Box::new(std::fs::File::open(path)?),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => Box::new(objects.read()?),
        })
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(f),
            #[cfg(feature = "object-store")]
            Self::Remote(objects) => objects.fmt(f),
        }
    }
}

/// What can be read from any place on.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// Opens the file of a path or a URL to read it.
///
/// # Errors
///
/// A URL that is none, and what the system or the server says.
pub fn open_read(text: &str) -> io::Result<Box<dyn ReadSeek>> {
    Location::parse(text)?.open()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_a_file_url_and_what_is_no_place_are_told_apart() {
        let local = |text: &str| match Location::parse(text).unwrap() {
            Location::Local(path) => path,
            #[cfg(feature = "object-store")]
            Location::Remote(objects) => panic!("{objects}"),
        };
        assert_eq!(local("corpus"), PathBuf::from("corpus"));
        assert_eq!(local("file:///data/a%20b"), PathBuf::from("/data/a b"));
        for (text, told) in [
            ("ftp://host/x", "the schemes are"),
            ("s3://key:secret@bucket/x", "credentials do not belong in a URL"),
            ("s3:///x", "no bucket"),
            ("file://host/x", "file:///"),
        ] {
            let error = Location::parse(text).unwrap_err();
            assert!(error.is_usage && error.to_string().contains(told), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
