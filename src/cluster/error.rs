//! Why the cluster cannot be used: which node says so, and the way out.

use std::path::PathBuf;

/// What stops the program at the cluster.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What names the cluster cannot be read. Never shows what was given: it may hold a password.
    #[error("the cluster is not named rightly: {0}: write redis://HOST:PORT or rediss://HOST:PORT")]
    Url(&'static str),
    /// The file of the password, or of the authority, cannot be read.
    #[error("cannot read {}: {detail}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        detail: String,
    },
    /// No node can be reached.
    #[error("no node of the cluster answers ({0}): start the cluster, or name other nodes")]
    Unreachable(String),
    /// A node does not let us in.
    #[error(
        "{node} refuses user `{user}`: {detail}: give user and password of an account that has \
         `~{prefix}:* +@read +@write +@scripting +info +cluster +time +ping`"
    )]
    Refused {
        /// The node.
        node: String,
        /// The user.
        user: String,
        /// The prefix of the keys.
        prefix: String,
        /// What the node says.
        detail: String,
    },
    /// A node is a server by itself.
    #[error("{0} is no node of a cluster: start it with `cluster-enabled yes` and join the nodes")]
    NoCluster(String),
    /// A node is too old.
    #[error("{node} has version {found}: 7.0 or newer is needed, for functions")]
    OldVersion {
        /// The node.
        node: String,
        /// Its version.
        found: String,
    },
    /// Slots are not served.
    #[error(
        "the cluster is down ({0}): nothing that was stored is lost; see `redis-cli CLUSTER INFO`, \
         and run again when its state is ok"
    )]
    Down(String),
    /// A node may not take more memory.
    #[error(
        "a node of the cluster is full ({0}): nothing that was stored is lost; raise `maxmemory` \
         or add nodes, and run again"
    )]
    Full(String),
    /// What was fixed when the crawl was begun on this cluster differs.
    #[error(
        "the crawl `{prefix}` was made with {name} = {stored}, not {given}: use another prefix"
    )]
    Setting {
        /// The prefix of its keys.
        prefix: String,
        /// Name of the setting.
        name: &'static str,
        /// What it was made with.
        stored: String,
        /// What was given.
        given: String,
    },
    /// Slots have moved to other nodes again and again.
    #[error(
        "slots of the cluster move all the time ({0}): run again when no slots are moved, see \
         `redis-cli --cluster check`"
    )]
    Moved(String),
    /// The answer to a command makes no sense.
    #[error("the cluster answers what it should not: {0}")]
    Odd(String),
    /// Anything else.
    #[error("the cluster failed: {0}")]
    Failed(String),
}

impl Error {
    /// Sorts what a command failed with.
    pub(super) fn of(error: &redis::RedisError) -> Self {
        let text = error.to_string();
        match error.code() {
            Some("CLUSTERDOWN" | "MASTERDOWN" | "LOADING" | "TRYAGAIN") => Self::Down(text),
            _ if text.contains("non local key") => Self::Moved(text),
            Some("OOM") => Self::Full(text),
            // Of many commands, the text alone tells.
            _ if text.contains("OOM") && text.contains("maxmemory") => Self::Full(text),
            _ if error.is_io_error() || error.is_connection_dropped() => Self::Unreachable(text),
            _ => Self::Failed(text),
        }
    }
}
