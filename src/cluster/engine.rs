//! A connection to the cluster: commands go to the nodes of their keys, many at a time, and are
//! sent again while nodes fail over.
//!
//! Every command that is sent here may be sent twice: when its answer is lost, nobody knows whether
//! it was done.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::cluster::{ClusterClient, ClusterConnection, ClusterPipeline};
use redis::cluster_routing::{
    MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo, SingleNodeRoutingInfo,
};
use redis::{
    Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo,
    TlsCertificates, Value, cmd,
};

use super::keys::{partitions, slot_of};
use super::{Error, Node, Settings};

/// The functions that the cluster runs for us.
const LIBRARY: &str = include_str!("library.lua");

/// Commands that are sent together at most, so that no node has to keep too many answers.
const TOGETHER: usize = 4_096;

/// Wait before a command is sent again; twice as long each time.
const WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What went to the cluster and came back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Times that was waited for answers.
    pub round_trips: u64,
    /// Commands.
    pub commands: u64,
    /// Bytes of commands.
    pub sent: u64,
    /// Bytes of answers, without those of the protocol.
    pub received: u64,
    /// Times that commands were sent again.
    pub repeated: u64,
}

/// A connection to the cluster.
pub struct Engine {
    settings: Settings,
    client: ClusterClient,
    /// None after a failure: what a node has not answered yet must not be taken for another answer.
    connection: Option<ClusterConnection>,
    traffic: Traffic,
    /// What it announces has this behind it: no two engines have the same.
    name: u64,
    /// The last number that it was given.
    pub(super) last_number: u64,
    /// For each partition the number of its node; none if that must be asked.
    owners: Option<Arc<[u32]>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Engine {
    /// Connects, and gives the cluster the functions that it lacks.
    ///
    /// # Errors
    ///
    /// Names the node that cannot be used, and the way out.
    pub fn connect(settings: &Settings) -> Result<Self, Error> {
        let infos = infos(settings)?;
        check(settings, &infos)?;
        let mut builder = ClusterClient::builder(infos)
            .connection_timeout(settings.timeout)
            .response_timeout(settings.timeout)
            .retries(0);
        if let Some(path) = &settings.authority {
            builder = builder.certs(certificates(path)?);
        }
        let client = builder.build().map_err(|error| Error::of(&error))?;
        let mut engine = Self {
            settings: settings.clone(),
            client,
            connection: None,
            traffic: Traffic::default(),
            // Keyed by the random numbers of the system.
            name: RandomState::new().build_hasher().finish(),
            last_number: 0,
            owners: None,
        };
        engine.load()?;
        Ok(engine)
    }

    /// Returns what went to the cluster and came back.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Returns what all names of keys begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.settings.prefix
    }

    /// Gives all primaries the functions.
    fn load(&mut self) -> Result<(), Error> {
        let mut load = cmd("FUNCTION");
        load.arg("LOAD").arg("REPLACE").arg(LIBRARY);
        self.patiently(|engine| {
            let all = MultipleNodeRoutingInfo::AllMasters;
            let routing = RoutingInfo::MultiNode((all, Some(ResponsePolicy::AllSucceeded)));
            engine.connection()?.route_command(&load, routing).map(drop)
        })
    }

    /// What tells its announcements from those of others.
    pub(super) fn name(&self) -> Vec<u8> {
        format!("{:x}", self.name).into_bytes()
    }

    /// For each partition the number of the node that has it: what is asked of one node goes
    /// there together.
    pub(super) fn owners(&mut self) -> Result<Arc<[u32]>, Error> {
        if let Some(owners) = &self.owners {
            return Ok(Arc::clone(owners));
        }
        let mut slots = cmd("CLUSTER");
        slots.arg("SLOTS");
        let told = self.patiently(|engine| {
            let routing = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
            engine.connection()?.route_command(&slots, routing)
        })?;
        let mut owners: Vec<u32> = Vec::new();
        for partition in partitions() {
            let owner = range_of(&told, slot_of(partition));
            // What no node serves is asked by itself, and found missing.
            owners.push(owner.unwrap_or(u32::MAX - partition as u32));
        }
        let owners: Arc<[u32]> = owners.into();
        self.owners = Some(Arc::clone(&owners));
        Ok(owners)
    }

    /// Has the nodes of all partitions asked for again.
    pub(super) fn forget_owners(&mut self) {
        tracing::warn!("slots have moved");
        self.owners = None;
        sleep(WAIT);
    }

    /// Sends commands, each to the node of its key, and returns the answers in their order.
    pub fn ask(&mut self, commands: &[Cmd]) -> Result<Vec<Value>, Error> {
        let mut answers = Vec::with_capacity(commands.len());
        for together in commands.chunks(TOGETHER) {
            let mut pipeline = ClusterPipeline::with_capacity(together.len());
            for command in together {
                self.traffic.sent += command.get_packed_command().len() as u64;
                pipeline.add_command(command.clone());
            }
            self.traffic.commands += together.len() as u64;
            let found: Vec<Value> =
                self.patiently(|engine| pipeline.query(engine.connection()?))?;
            self.traffic.round_trips += 1;
            self.traffic.received += found.iter().map(bytes_of).sum::<u64>();
            answers.extend(found);
        }
        Ok(answers)
    }

    /// Sends one command.
    pub fn ask_one(&mut self, command: Cmd) -> Result<Value, Error> {
        Ok(self.ask(&[command])?.pop().unwrap_or(Value::Nil))
    }

    pub(super) fn connection(&mut self) -> Result<&mut ClusterConnection, redis::RedisError> {
        if self.connection.is_none() {
            let connection = self.client.get_connection()?;
            connection.set_read_timeout(Some(self.settings.timeout))?;
            connection.set_write_timeout(Some(self.settings.timeout))?;
            self.connection = Some(connection);
        }
        Ok(self.connection.as_mut().expect("it was made above"))
    }

    /// Does something again and again while the cluster may come back.
    pub(super) fn patiently<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, redis::RedisError>,
    ) -> Result<T, Error> {
        let (begun, mut wait) = (Instant::now(), WAIT);
        loop {
            let error = match work(self) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            self.connection = None;
            let lacks = error.to_string().contains("Function not found");
            let told = Error::of(&error);
            if let Error::Moved(_) = told {
                return Err(told);
            }
            let passes = lacks || matches!(told, Error::Down(_) | Error::Unreachable(_));
            if !passes && !error.is_cluster_error() {
                return Err(told);
            }
            if begun.elapsed() + wait > self.settings.patience {
                return Err(told);
            }
            tracing::warn!(%error, "the cluster is asked again");
            self.traffic.repeated += 1;
            sleep(wait);
            wait = (wait * 2).min(WAIT_MAX);
            if lacks {
                self.load_again();
            }
        }
    }

    /// A node that joined, or lost its data, may not have the functions.
    fn load_again(&mut self) {
        let mut load = cmd("FUNCTION");
        load.arg("LOAD").arg("REPLACE").arg(LIBRARY);
        let all = MultipleNodeRoutingInfo::AllMasters;
        let routing = RoutingInfo::MultiNode((all, Some(ResponsePolicy::AllSucceeded)));
        let loaded = self.connection().and_then(|c| c.route_command(&load, routing));
        if let Err(error) = loaded {
            // Whoever needs them asks again.
            tracing::warn!(%error, "functions cannot be loaded");
            self.connection = None;
        }
    }
}

/// Which of the ranges of slots that a node told of has a slot: the first one of the same node.
fn range_of(told: &Value, slot: u16) -> Option<u32> {
    let Value::Array(ranges) = told else { return None };
    let parts = |range: &Value| match range {
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(from), Value::Int(to), Value::Array(node), ..] => {
                Some((*from, *to, node.get(2).cloned()))
            }
            _ => None,
        },
        _ => None,
    };
    let slot = i64::from(slot);
    let node = ranges.iter().filter_map(parts).find(|(from, to, _)| (*from..=*to).contains(&slot));
    let node = node?.2?;
    let first =
        ranges.iter().position(|range| parts(range).is_some_and(|p| p.2.as_ref() == Some(&node)));
    first.map(|at| at as u32)
}

/// Bytes of an answer.
fn bytes_of(value: &Value) -> u64 {
    match value {
        Value::BulkString(bytes) => bytes.len() as u64,
        Value::Array(all) => all.iter().map(bytes_of).sum(),
        _ => 1,
    }
}

fn certificates(path: &Path) -> Result<TlsCertificates, Error> {
    let read = std::fs::read(path);
    let root_cert = Some(
        read.map_err(|error| Error::File { path: path.to_owned(), detail: error.to_string() })?,
    );
    Ok(TlsCertificates { client_tls: None, root_cert })
}

fn infos(settings: &Settings) -> Result<Vec<ConnectionInfo>, Error> {
    let mut account = RedisConnectionInfo::default();
    if !settings.user.is_empty() {
        account = account.set_username(&settings.user);
    }
    if !settings.password.reveal().is_empty() {
        account = account.set_password(settings.password.reveal());
    }
    let info = |Node { host, port }: &Node| {
        let host = host.trim_matches(['[', ']']).to_owned();
        let at = if settings.tls {
            ConnectionAddr::TcpTls { host, port: *port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, *port)
        };
        let info = at.into_connection_info().map_err(|error| Error::of(&error))?;
        Ok(info.set_redis_settings(account.clone()))
    };
    settings.nodes.iter().map(info).collect()
}

/// Asks the named nodes, one after the other, whether they can be used, until one can.
fn check(settings: &Settings, infos: &[ConnectionInfo]) -> Result<(), Error> {
    let mut unreachable = Vec::new();
    for (node, info) in settings.nodes.iter().zip(infos) {
        match check_node(settings, node, info) {
            Err(Error::Unreachable(detail)) => unreachable.push(format!("{node}: {detail}")),
            other => return other,
        }
    }
    Err(Error::Unreachable(unreachable.join("; ")))
}

fn check_node(settings: &Settings, node: &Node, info: &ConnectionInfo) -> Result<(), Error> {
    let failed = |error: redis::RedisError| {
        let code = error.code().unwrap_or_default().to_owned();
        let denied = error.kind() == redis::ErrorKind::AuthenticationFailed
            || ["NOAUTH", "WRONGPASS", "NOPERM"].contains(&code.as_str());
        if denied {
            let user = if settings.user.is_empty() { "default" } else { &settings.user };
            let (user, prefix) = (user.to_owned(), settings.prefix.clone());
            return Error::Refused {
                node: node.to_string(),
                user,
                prefix,
                detail: error.to_string(),
            };
        }
        Error::of(&error)
    };
    let client = match &settings.authority {
        Some(path) => Client::build_with_tls(info.clone(), certificates(path)?),
        None => Client::open(info.clone()),
    };
    let mut connection =
        client.and_then(|c| c.get_connection_with_timeout(settings.timeout)).map_err(failed)?;
    connection.set_read_timeout(Some(settings.timeout)).map_err(failed)?;
    let told: String = cmd("INFO").arg("everything").query(&mut connection).map_err(failed)?;
    let field = |name: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    };
    let found = field("redis_version");
    let major = found.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < 7) {
        return Err(Error::OldVersion { node: node.to_string(), found });
    }
    if field("cluster_enabled") != "1" {
        return Err(Error::NoCluster(node.to_string()));
    }
    let state: String = cmd("CLUSTER").arg("INFO").query(&mut connection).map_err(failed)?;
    if !state.contains("cluster_state:ok") {
        let line = state.lines().find(|line| line.starts_with("cluster_slots_ok"));
        let served = line.unwrap_or_default().trim().to_owned();
        return Err(Error::Down(format!("{node} says cluster_state:fail, {served} of 16384")));
    }
    Ok(())
}
