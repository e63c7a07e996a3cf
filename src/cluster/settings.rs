//! Where the cluster is, and who asks.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::Error;

/// A password: it is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a password.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// Reads it from a file, without the end of its line.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path)
            .map_err(|error| Error::File { path: path.to_owned(), detail: error.to_string() })?;
        Ok(Self(text.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns what must be sent, and nowhere else shown.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where the cluster is, and under which names a crawl keeps its keys there.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Nodes that are asked first: the others are learned from them.
    pub nodes: Vec<Node>,
    /// They are asked over TLS.
    pub tls: bool,
    /// The authority that has signed their certificates, as PEM; those of the system without it.
    pub authority: Option<PathBuf>,
    /// The user; empty for the default one.
    pub user: String,
    /// Its password; empty for none.
    pub password: Secret,
    /// What all names of keys begin with, so that several crawls may share a cluster.
    pub prefix: String,
    /// Longest wait for a connection, and for the answer to a command.
    pub timeout: Duration,
    /// Longest time for which a command is tried again while nodes fail over.
    pub patience: Duration,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The prefix of keys where none is named.
pub const PREFIX: &str = "crawl";

impl Settings {
    /// Reads `redis://[USER[:PASSWORD]@]HOST:PORT[,HOST:PORT...][/PREFIX]`, or `rediss://` for TLS.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and shows nothing of the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").ok_or(Error::Url("it has no scheme"))?;
        let tls = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err(Error::Url("its scheme is neither redis nor rediss")),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let mut nodes = Vec::new();
        for host in hosts.split(',') {
            let url = Url::parse(&format!("redis://{host}"))
                .map_err(|_| Error::Url("a host or port cannot be"))?;
            let name = url.host_str().filter(|name| !name.is_empty());
            let name = name.ok_or(Error::Url("a host is missing"))?;
            nodes.push(Node { host: name.to_owned(), port: url.port().unwrap_or(6379) });
        }
        let of_account = Url::parse(&format!("redis://{account}@host"))
            .map_err(|_| Error::Url("user or password must be percent-encoded"))?;
        let prefix = if path.is_empty() { PREFIX } else { path };
        if prefix.len() > 64 || prefix.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            return Err(Error::Url("a prefix has up to 64 letters, digits and `-`"));
        }
        Ok(Self {
            nodes,
            tls,
            authority: None,
            user: decoded(of_account.username())?,
            password: Secret(decoded(of_account.password().unwrap_or_default())?),
            prefix: prefix.to_owned(),
            timeout: Duration::from_secs(5),
            patience: Duration::from_secs(30),
        })
    }
}

/// Undoes the percent-encoding of a user or password.
fn decoded(text: &str) -> Result<String, Error> {
    let wrong = || Error::Url("user or password must be percent-encoded");
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first == b'%' {
            let (digits, others) = rest.split_at_checked(2).ok_or_else(wrong)?;
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
            rest = others;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_by_some_of_its_nodes_an_account_and_a_prefix() {
        let all =
            Settings::parse("rediss://me:s%40cret%2F@a.example:7000,[::1]:7001/news-1").unwrap();
        let nodes: Vec<String> = all.nodes.iter().map(Node::to_string).collect();
        assert_eq!(nodes, ["a.example:7000", "[::1]:7001"]);
        assert_eq!((all.tls, all.user.as_str(), all.prefix.as_str()), (true, "me", "news-1"));
        assert_eq!(all.password.reveal(), "s@cret/");
        let least = Settings::parse("redis://127.0.0.1").unwrap();
        assert_eq!(least.nodes, [Node { host: "127.0.0.1".to_owned(), port: 6379 }]);
        assert_eq!((least.tls, least.user.as_str(), least.prefix.as_str()), (false, "", PREFIX));
        assert_eq!(Settings::parse("redis://:word@h").unwrap().password.reveal(), "word");
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        let all = Settings::parse("redis://me:hidden@h:1").unwrap();
        assert!(!format!("{all:?}").contains("hidden"));
        for wrong in [
            "hidden",
            "http://me:hidden@h:1",
            "redis://me:hidden@",
            "redis://me:hidden@h:port",
            "redis://me:hidden%2@h:1",
            "redis://me:hidden@h:1/a prefix",
            "redis://me:hidden@h:1/a/b",
        ] {
            let error = Settings::parse(wrong).unwrap_err();
            assert!(matches!(error, Error::Url(_)), "{error}");
            assert!(!format!("{error} {error:?}").contains("hidden"), "{error}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "hidden\n").unwrap();
        assert_eq!(Secret::read(file.path()).unwrap(), Secret::new("hidden"));
        let missing = Secret::read(Path::new("/missing/file")).unwrap_err().to_string();
        assert!(missing.contains("/missing/file"), "{missing}");
    }
}
