//! A service for one test, and a client that sends any bytes.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::service::{self, Service, ServiceSettings};
use uniqcrawl::store::Store;

use crate::support::{check_clean, prose};

/// A service on loopback in this process.
pub(crate) struct Server {
    pub folder: tempfile::TempDir,
    pub address: SocketAddr,
    pub store: Arc<Store>,
    pub clock: Clock,
    runtime: Option<Runtime>,
    pub stop: Option<oneshot::Sender<()>>,
    ended: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServiceSettings)) -> Self {
        Self::at(tempfile::tempdir().unwrap(), change)
    }

    /// Another service on the store of this one, which ends.
    pub(crate) fn again(mut self, change: impl FnOnce(&mut ServiceSettings)) -> Self {
        self.stop();
        let other = tempfile::tempdir().unwrap();
        let empty = Arc::new(Store::open_or_create(other.path(), 1 << 20).unwrap());
        let store = std::mem::replace(&mut self.store, empty);
        assert!(service::close(store, Duration::from_secs(20)), "nothing holds the store");
        Self::at(std::mem::replace(&mut self.folder, other), change)
    }

    fn at(folder: tempfile::TempDir, change: impl FnOnce(&mut ServiceSettings)) -> Self {
        let store = Arc::new(Store::open_or_create_as(folder.path(), 16 << 20, 0).unwrap());
        let clock = Clock::hand(Timestamp(1_795_262_400_000));
        let mut settings = ServiceSettings { clock: clock.clone(), ..ServiceSettings::default() };
        settings.api.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        change(&mut settings);
        let service = Service::start(store.clone(), &settings).unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind(settings.api.listen));
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, asked) = oneshot::channel::<()>();
        let ended = runtime.spawn(service::serve(listener, service, async {
            let _ = asked.await;
        }));
        let (runtime, stop, ended) = (Some(runtime), Some(stop), Some(ended));
        Self { folder, address, store, clock, runtime, stop, ended }
    }

    /// Stops the service and waits for its end.
    pub(crate) fn stop(&mut self) {
        if let (Some(runtime), Some(ended)) = (self.runtime.take(), self.ended.take()) {
            drop(self.stop.take());
            runtime.block_on(ended).unwrap();
            runtime.shutdown_timeout(Duration::from_secs(20));
        }
    }

    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        raw(self.address, request)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        get(self.address, path)
    }

    #[track_caller]
    pub(crate) fn rows(&self, path: &str) -> Vec<Value> {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()["rows"].as_array().unwrap().clone()
    }

    pub(crate) fn post(&self, path: &str, kind: &str, body: &[u8]) -> Answer {
        post(self.address, path, kind, body)
    }

    #[track_caller]
    pub(crate) fn send(&self, article: &Value) -> Value {
        let answer = self.post("/v1/articles", "application/json", article.to_string().as_bytes());
        assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
        answer.json()
    }

    /// It answers, and its store is sound.
    #[track_caller]
    pub(crate) fn lives(&self) {
        assert_eq!(self.get("/readyz").status, 200);
        check_clean(&self.store);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// It is a problem with this status and code.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)));
        let told: Value = serde_json::from_str(service::openapi()).unwrap();
        let codes = &told["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
        assert!(codes.as_array().unwrap().contains(&json!(code)), "{code} is not described");
    }

    /// It is a failure in the form of the paper.
    #[track_caller]
    pub(crate) fn failed(&self, status: u16, why: &str) {
        assert_eq!(self.status, status, "{}", self.body);
        let answer = self.json();
        let fields: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["docId", "filterReason", "filterStatus", "status"]);
        assert_eq!(answer["status"], "failed");
        let reason = answer["filterReason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream
}

/// Sends bytes and reads to the end.
pub(crate) fn raw(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = connect(address);
    // The server may have answered and closed before all is sent.
    let _ = stream.write_all(request);
    read(&mut stream)
}

pub(crate) fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let split = split.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&bytes)));
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let headers: BTreeMap<String, String> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut rest = &bytes[split + 4..];
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
            let size = std::str::from_utf8(&rest[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            body.extend_from_slice(&rest[end + 2..end + 2 + size]);
            rest = &rest[end + 4 + size..];
        }
    } else {
        body.extend_from_slice(rest);
    }
    Answer { status, headers, body: String::from_utf8(body).unwrap() }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    raw(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    )
}

pub(crate) fn request(address: SocketAddr, path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn post(address: SocketAddr, path: &str, kind: &str, body: &[u8]) -> Answer {
    raw(address, &request(address, path, kind, body))
}

pub(crate) fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut all, byte| {
        write!(all, "%{byte:02X}").unwrap();
        all
    })
}

pub(crate) fn article(nid: &str, story: u64, host: &str) -> Value {
    json!({
        "nid": nid, "url": format!("http://{host}.example/{nid}"),
        "title": format!("Story {story} of some words"), "content": prose(story, 150), "media": host,
    })
}
