//! Six nodes on loopback, which are stopped at the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use redis::Connection;

/// The port of the first node: `NODES_PORT`, or 18800.
pub(crate) fn port() -> u16 {
    std::env::var("NODES_PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(18_800)
}

/// Six nodes.
pub(crate) struct Nodes(PathBuf);

/// Memory in bytes, and processor time in microseconds, of all primaries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub memory: u64,
    pub micros: u64,
}

impl Nodes {
    /// Starts them: three primaries with a replica each, or six primaries.
    pub(crate) fn start(folder: &Path, replicas: bool, timeout_ms: u64) -> Self {
        let nodes = Self(folder.join("nodes"));
        let replicas = if replicas { "1" } else { "0" };
        let timeout = timeout_ms.to_string();
        let done = nodes.run(&["start"], &[("REPLICAS", replicas), ("NODE_TIMEOUT_MS", &timeout)]);
        assert!(done, "the nodes do not start");
        nodes
    }

    fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> bool {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/nodes");
        Command::new(script)
            .arg(words[0])
            .arg(&self.0)
            .arg(port().to_string())
            .args(&words[1..])
            .env("PARENT", std::process::id().to_string())
            .env("APPENDFSYNC", "off")
            .env("MAXMEMORY", "16gb")
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    }

    /// Does something to a node: kill, pause, resume, revive.
    pub(crate) fn node(&self, command: &str, node: usize) {
        let variables = [("NODE_TIMEOUT_MS", "1500")];
        assert!(self.run(&[command, &node.to_string()], &variables), "{command} {node}");
    }

    /// Tells whether all nodes agree that every slot is served, by replicas as well.
    pub(crate) fn is_whole(&self) -> bool {
        self.run(&["status"], &[])
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.run(&["stop"], &[]);
    }
}

/// Asks a node.
pub(crate) fn connection(node: usize) -> Connection {
    let url = format!("redis://127.0.0.1:{}", port() + node as u16);
    redis::Client::open(url).unwrap().get_connection().unwrap()
}

fn field(told: &str, name: &str) -> String {
    let line = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn info(connection: &mut Connection) -> String {
    redis::cmd("INFO").arg("everything").query(connection).unwrap()
}

/// Tells whether a node is a primary.
pub(crate) fn is_primary(node: usize) -> bool {
    field(&info(&mut connection(node)), "role") == "master"
}

/// Connections to all primaries.
pub(crate) fn primaries() -> Vec<Connection> {
    (0..6).filter(|node| is_primary(*node)).map(connection).collect()
}

impl Used {
    /// Asks all primaries. Memory is all that they use, but for buffers of clients and replicas.
    pub(crate) fn now() -> Self {
        let mut sums = Self::default();
        for connection in &mut primaries() {
            let told = info(connection);
            let number = |name: &str| field(&told, name).parse::<u64>().unwrap_or(0);
            let buffers = ["mem_clients_normal", "mem_clients_slaves", "mem_replication_backlog"];
            let buffers: u64 = buffers.into_iter().map(number).sum();
            sums.memory += number("used_memory").saturating_sub(buffers);
            let seconds = |name: &str| field(&told, name).parse::<f64>().unwrap();
            let all = seconds("used_cpu_user") + seconds("used_cpu_sys");
            #[expect(clippy::cast_sign_loss, reason = "time that was used")]
            let micros = (all * 1e6) as u64;
            sums.micros += micros;
        }
        sums
    }
}
