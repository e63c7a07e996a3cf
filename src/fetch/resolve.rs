//! Host names to IP addresses, private ones left out: the guard sits where the connection is made,
//! so that no redirect and no second look-up gets around it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::guard::Guard;

/// Time for which an answer is remembered.
const TTL: Duration = Duration::from_mins(1);

/// Names remembered; then the memory starts anew.
const NAMES_MAX: usize = 10_000;

/// Why a name gave no address.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ResolveError {
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    NotFound(String),
}

type Memory = HashMap<String, (Instant, Vec<IpAddr>)>;

/// The system's resolver with a memory, behind the guard.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    guard: Guard,
    memory: Arc<Mutex<Memory>>,
    given: Arc<HashMap<String, Vec<IpAddr>>>,
}

impl Resolver {
    /// Makes a resolver that knows some names, each given as `name=address,address`.
    ///
    /// # Errors
    ///
    /// The text that is not of that form.
    pub(super) fn new(guard: Guard, given: &[String]) -> Result<Self, String> {
        let known: Result<HashMap<_, _>, String> =
            given.iter().map(|text| entry(text).ok_or_else(|| text.clone())).collect();
        Ok(Self { guard, memory: Arc::default(), given: Arc::new(known?) })
    }

    pub(super) async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        if let Some(known) = self.remembered(name) {
            return Ok(known);
        }
        let all = match self.given.get(name) {
            Some(given) => given.clone(),
            None => tokio::net::lookup_host((name, 0))
                .await
                .map_err(|error| ResolveError::NotFound(error.to_string()))?
                .map(|address| address.ip())
                .collect(),
        };
        let mut refused = None;
        let mut open = Vec::new();
        for ip in all {
            match self.guard.check(ip) {
                Ok(()) => open.push(ip),
                Err(why) => refused = Some(why.to_string()),
            }
        }
        match refused {
            Some(why) if open.is_empty() => Err(ResolveError::Refused(why)),
            None if open.is_empty() => Err(ResolveError::NotFound("no address".to_owned())),
            _ => {
                let mut memory = self.memory.lock().expect("no holder of this lock panics");
                if memory.len() >= NAMES_MAX {
                    memory.clear();
                }
                memory.insert(name.to_owned(), (Instant::now(), open.clone()));
                Ok(open)
            }
        }
    }

    /// Returns what was found for a name within the last minute.
    pub(super) fn remembered(&self, name: &str) -> Option<Vec<IpAddr>> {
        let memory = self.memory.lock().expect("no holder of this lock panics");
        let (since, known) = memory.get(name)?;
        (since.elapsed() < TTL).then(|| known.clone())
    }
}

fn entry(text: &str) -> Option<(String, Vec<IpAddr>)> {
    let (name, addresses) = text.split_once('=')?;
    let addresses: Result<Vec<IpAddr>, _> =
        addresses.split(',').map(|address| address.trim().parse()).collect();
    Some((name.trim().to_ascii_lowercase(), addresses.ok()?))
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let found = resolver.look_up(name.as_str()).await?;
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}
