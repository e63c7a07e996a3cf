//! Credentials by host, from a file of their own: never logged, never stored, never sent to
//! another host.
//!
//! ```toml
//! ["example.org"]                 # https://example.org, and nothing else
//! user = "crawler"
//! password = "..."
//!
//! ["http://127.0.0.1:8080"]       # without TLS only where the scheme says so
//! header = "X-Api-Key"
//! value = "..."
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use reqwest::RequestBuilder;
use reqwest::header::{HeaderName, HeaderValue};
use toml::{Table, Value};

use super::{Error, own_headers};
use crate::urls::{HostKey, PageUrl};

/// Settings of credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct AuthConfig {
    /// The file of credentials; empty for none.
    pub file: String,
}

/// What proves to one host who we are. It has no `Debug` that shows it.
#[derive(Clone)]
enum Credential {
    Basic { user: String, password: String },
    Header(HeaderName, HeaderValue),
}

/// The credentials of all hosts.
#[derive(Clone, Default)]
pub struct Auth(BTreeMap<HostKey, Credential>);

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Auth {
    /// Reads the file that the settings name, if they name one.
    ///
    /// # Errors
    ///
    /// Names the file, and the host or the line. What stands in the file is never told.
    pub fn read(config: &AuthConfig) -> Result<Self, Error> {
        if config.file.is_empty() {
            return Ok(Self::default());
        }
        let path = Path::new(&config.file);
        let bad = |detail: String| Error::File { path: path.to_owned(), detail };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        warn_of_readers(path);
        // The parser's own message shows the line, and so the secret.
        let table: Table = toml::from_str(&text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            bad(format!("line {} is not TOML", before.matches('\n').count() + 1))
        })?;
        let mut all = BTreeMap::new();
        for (host, entry) in &table {
            let named = |why: &str| bad(format!("`{host}`: {why}"));
            let key = host_key(host).ok_or_else(|| named("this is no host"))?;
            all.insert(key, credential(entry).map_err(named)?);
        }
        Ok(Self(all))
    }

    /// Adds what the host of `url` asks for, if it is known.
    pub(super) fn sign(&self, request: RequestBuilder, url: &PageUrl) -> RequestBuilder {
        match self.0.get(&url.host_key()) {
            None => request,
            Some(Credential::Basic { user, password }) => request.basic_auth(user, Some(password)),
            Some(Credential::Header(name, value)) => request.header(name, value),
        }
    }
}

/// A bare name stands for `https`: a password must not travel in the clear by accident.
fn host_key(text: &str) -> Option<HostKey> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let url = PageUrl::parse(&whole).ok()?;
    (url.path_and_query() == "/" && !whole.contains('@')).then(|| url.host_key())
}

fn credential(entry: &Value) -> Result<Credential, &'static str> {
    let entry = entry.as_table().ok_or("it has neither `user` nor `header`")?;
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let pair = match entry.len() {
        2 => (text("user"), text("password"), text("header"), text("value")),
        _ => (None, None, None, None),
    };
    match pair {
        (Some(user), Some(password), None, None) => Ok(Credential::Basic { user, password }),
        (None, None, Some(header), Some(value)) => {
            let name = HeaderName::from_bytes(header.as_bytes());
            let name = name.map_err(|_| "`header` is no name of a header")?;
            if let Some(why) = own_headers::reserved(&name) {
                return Err(why);
            }
            let value = HeaderValue::from_str(&value);
            let mut value = value.map_err(|_| "`value` has characters that no header may have")?;
            value.set_sensitive(true);
            Ok(Credential::Header(name, value))
        }
        _ => Err("give `user` and `password`, or `header` and `value`, as texts"),
    }
}

/// Says so if others than the owner may read the file.
fn warn_of_readers(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).map(|data| data.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o077 != 0) {
            let file = path.display();
            tracing::warn!(%file, "others may read this file of credentials: use chmod 600");
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}
