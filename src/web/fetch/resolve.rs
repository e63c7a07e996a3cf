//! Host names to IP addresses, private ones left out: the guard sits where the connection is made,
//! so that no redirect and no second look-up gets around it.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::guard::{self, AddressGuard};
use super::{Config, Error};
use crate::base::system;

/// Why a name gave no address.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ResolveError {
    #[error(transparent)]
    Refused(guard::Refused),
    #[error("{0}")]
    NotFound(String),
    /// The system's resolver could not ask for want of open files.
    #[error("{0}")]
    Exhausted(String),
}

/// The system's resolver with a memory, behind the guard.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    guard: AddressGuard,
    /// Names of proxies, which may be private: the operator chose them.
    proxies: Arc<BTreeSet<String>>,
    memory: Arc<Mutex<DnsCache>>,
    /// Names that nobody need be asked for.
    given: Arc<HashMap<String, Vec<IpAddr>>>,
}

impl Resolver {
    pub(super) fn new(config: &Config, proxies: BTreeSet<String>) -> Result<Self, Error> {
        let memory = DnsCache {
            ttl: config.dns_ttl.duration(),
            names_max: config.dns_names_max,
            known: HashMap::new(),
        };
        let bad = |text: &String| Error::Resolve(text.clone());
        let given = config.resolve.iter().map(|text| entry(text).ok_or_else(|| bad(text)));
        Ok(Self {
            guard: AddressGuard { allow_private: config.allow_private },
            proxies: Arc::new(proxies),
            memory: Arc::new(Mutex::new(memory)),
            given: Arc::new(given.collect::<Result<_, _>>()?),
        })
    }

    /// Returns the addresses of a name that may be contacted.
    pub(super) async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        self.look_up_with(self.guard, name).await
    }

    async fn look_up_with(
        &self,
        guard: AddressGuard,
        name: &str,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let all = if let Some(known) = self.remembered(name) {
            known
        } else {
            let found =
                tokio::net::lookup_host((name, 0)).await.map_err(|error| not_found(&error))?;
            let all: Vec<IpAddr> = found.map(|address| address.ip()).collect();
            self.lock().insert(name, all.clone(), Instant::now());
            all
        };
        let mut refused: Vec<guard::Refused> = Vec::new();
        let mut open = Vec::new();
        for ip in all {
            match guard.check(ip) {
                Ok(()) => open.push(ip),
                Err(why) => refused.push(why),
            }
        }
        // A private one is told first: there the operator has a choice.
        refused.sort_by_key(|refused| matches!(refused.class, guard::AddressClass::Never(_)));
        match refused.first() {
            _ if !open.is_empty() => Ok(open),
            Some(why) => Err(ResolveError::Refused(*why)),
            None => Err(ResolveError::NotFound("no address".to_owned())),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DnsCache> {
        self.memory.lock().expect("no holder of this lock panics")
    }

    /// Returns what is known of a name without asking anybody, refused addresses among it.
    pub(super) fn remembered(&self, name: &str) -> Option<Vec<IpAddr>> {
        self.given.get(name).cloned().or_else(|| self.lock().get(name, Instant::now()))
    }
}

/// The resolver of the system does not tell a name that is unknown from files that it may not open.
fn not_found(error: &io::Error) -> ResolveError {
    if system::is_exhausted(error) {
        return ResolveError::Exhausted(error.to_string());
    }
    match system::no_file_left() {
        Some(own) => ResolveError::Exhausted(own.to_string()),
        None => ResolveError::NotFound(error.to_string()),
    }
}

fn entry(text: &str) -> Option<(String, Vec<IpAddr>)> {
    let (name, addresses) = text.split_once('=')?;
    let addresses = Some(addresses.trim()).filter(|addresses| !addresses.is_empty());
    let each = addresses.into_iter().flat_map(|addresses| addresses.split(','));
    let addresses: Result<Vec<IpAddr>, _> = each.map(|address| address.trim().parse()).collect();
    Some((name.trim().to_ascii_lowercase(), addresses.ok()?))
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let mut guard = resolver.guard;
            // Where a proxy is used, targets were checked before they came here.
            guard.allow_private |= resolver.proxies.contains(name.as_str());
            let found = resolver.look_up_with(guard, name.as_str()).await?;
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

/// Answers of the system's resolver. What is not found is asked for again each time.
#[derive(Debug)]
struct DnsCache {
    ttl: Duration,
    names_max: usize,
    known: HashMap<String, (Instant, Vec<IpAddr>)>,
}

impl DnsCache {
    fn get(&self, name: &str, now: Instant) -> Option<Vec<IpAddr>> {
        let (since, known) = self.known.get(name)?;
        (now.saturating_duration_since(*since) < self.ttl).then(|| known.clone())
    }

    fn insert(&mut self, name: &str, found: Vec<IpAddr>, now: Instant) {
        if self.ttl.is_zero() || self.names_max == 0 {
            return;
        }
        if self.known.len() >= self.names_max && !self.known.contains_key(name) {
            let ttl = self.ttl;
            self.known.retain(|_, (since, _)| now.saturating_duration_since(*since) < ttl);
            if self.known.len() >= self.names_max {
                self.known.clear();
            }
        }
        self.known.insert(name.to_owned(), (now, found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_remembered_for_their_time_and_within_their_number() {
        let second = Duration::from_secs(1);
        let mut memory = DnsCache { ttl: second, names_max: 2, known: HashMap::new() };
        let (now, ip) = (Instant::now(), vec![IpAddr::from([9, 9, 9, 9])]);
        memory.insert("a", ip.clone(), now);
        assert_eq!(memory.get("a", now + Duration::from_millis(999)), Some(ip.clone()));
        assert_eq!(memory.get("a", now + second), None);
        assert_eq!(memory.get("b", now), None);
        memory.insert("b", ip.clone(), now + second);
        memory.insert("c", ip.clone(), now + second);
        // The first one was over; the others stay.
        let names = |memory: &DnsCache| {
            let mut names: Vec<String> = memory.known.keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(names(&memory), ["b", "c"]);
        memory.insert("d", ip.clone(), now + second);
        assert_eq!(names(&memory), ["d"]);
        let mut none = DnsCache { ttl: Duration::ZERO, names_max: 2, known: HashMap::new() };
        none.insert("a", ip, now);
        assert!(none.known.is_empty());
    }

    #[tokio::test]
    async fn a_name_is_asked_for_once_and_the_guard_each_time() {
        let config = Config { allow_private: true, ..Config::default() };
        let resolver = Resolver::new(&config, BTreeSet::new()).unwrap();
        let ip = IpAddr::from([127, 0, 0, 9]);
        // No system knows this name: an answer can only come from the memory.
        resolver.lock().insert("remembered.invalid", vec![ip], Instant::now());
        assert_eq!(resolver.look_up("remembered.invalid").await.unwrap(), [ip]);
        let strict = AddressGuard { allow_private: false };
        let refused = resolver.look_up_with(strict, "remembered.invalid").await;
        assert!(matches!(refused, Err(ResolveError::Refused(_))), "{refused:?}");
        let unknown = resolver.look_up("never.invalid").await;
        assert!(matches!(unknown, Err(ResolveError::NotFound(_))), "{unknown:?}");
    }
}
