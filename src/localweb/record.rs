//! What the hosts of a small web were asked, and when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Requests that are recorded at most, so that a long run does not fill the memory.
const RECORDED_MAX: usize = 2_000_000;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// Number of the host, in the order of [`LocalWeb::start`](super::LocalWeb::start).
    pub host: usize,
    /// Method.
    pub method: String,
    /// Path with query, as it came.
    pub target: String,
    /// Header lines: lower-case name and value.
    pub headers: Vec<(String, String)>,
    /// When the request was complete.
    pub started: Instant,
    /// When the last bytes of the answer were about to be sent, or the client was gone. Equal to
    /// `started` while the answer goes on, later than it afterwards.
    pub finished: Instant,
}

impl SeenRequest {
    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// None while the answer goes on.
    fn end(&self) -> Option<Instant> {
        (self.finished > self.started).then_some(self.finished)
    }
}

/// The requests of all hosts, shared by all connections.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestLog(Arc<Mutex<LogEntries>>);

#[derive(Debug, Default)]
struct LogEntries {
    requests: Vec<SeenRequest>,
    /// Entries before the first one of `requests`, so that numbers stay true after a forget.
    forgotten: usize,
    stopped: bool,
}

impl RequestLog {
    fn lock(&self) -> MutexGuard<'_, LogEntries> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Notes a request that has come, and returns its number: an answer that never ends is seen
    /// too. None if nothing is recorded, or nothing any more.
    pub(super) fn begin(&self, request: &SeenRequest) -> Option<usize> {
        let mut entries = self.lock();
        if entries.stopped || entries.requests.len() >= RECORDED_MAX {
            return None;
        }
        entries.requests.push(request.clone());
        Some(entries.forgotten + entries.requests.len() - 1)
    }

    /// Notes that a request is answered. One that was forgotten meanwhile stays so.
    pub(super) fn end(&self, entry: Option<usize>) {
        let Some(entry) = entry else { return };
        let mut entries = self.lock();
        let at = entry.checked_sub(entries.forgotten);
        if let Some(request) = at.and_then(|at| entries.requests.get_mut(at)) {
            // A coarse clock must not make an answered request look open.
            request.finished = Instant::now().max(request.started + Duration::from_nanos(1));
        }
    }

    pub(super) fn requests(&self, wanted: impl Fn(&SeenRequest) -> bool) -> Vec<SeenRequest> {
        self.lock().requests.iter().filter(|request| wanted(request)).cloned().collect()
    }

    pub(super) fn forget(&self) {
        let mut entries = self.lock();
        entries.forgotten += entries.requests.len();
        entries.requests.clear();
    }

    pub(super) fn stop(&self) {
        self.lock().stopped = true;
    }

    pub(super) fn targets(&self, host: usize) -> BTreeMap<String, usize> {
        let mut targets = BTreeMap::new();
        for request in self.requests(|request| request.host == host) {
            *targets.entry(request.target).or_default() += 1;
        }
        targets
    }
}

/// Returns the shortest time from the end of an answer to the start of the next request: zero if
/// the answer still goes on.
pub(super) fn least_gap(mut requests: Vec<SeenRequest>) -> Option<Duration> {
    requests.sort_by_key(|request| request.started);
    let gap = |earlier: &SeenRequest, later: &SeenRequest| {
        let end = earlier.end();
        end.map_or(Duration::ZERO, |end| later.started.saturating_duration_since(end))
    };
    requests.windows(2).map(|pair| gap(&pair[0], &pair[1])).min()
}

/// Returns how many requests were open at the same time at most.
pub(super) fn most_at_once(requests: &[SeenRequest]) -> usize {
    let starts = requests.iter().map(|request| (request.started, 1));
    let ends = requests.iter().filter_map(|request| Some((request.end()?, -1)));
    let mut moments: Vec<(Instant, i32)> = starts.chain(ends).collect();
    // An end comes before a start at the same moment: these two were never open together.
    moments.sort_unstable();
    let open = moments.iter().scan(0, |open, (_, step)| {
        *open += step;
        Some(*open)
    });
    open.max().and_then(|most| usize::try_from(most).ok()).unwrap_or(0)
}
