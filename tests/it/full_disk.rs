//! A service whose disk is full for a while: it says so, can be read, and goes on by itself.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use uniqcrawl::corpus::tables::SENT;
use uniqcrawl::store::{Store, View as _};

use crate::service::{get, post};
use crate::support::{check_clean, prose};

struct Service {
    process: Child,
    address: SocketAddr,
}

impl Service {
    fn start(folder: &std::path::Path) -> Self {
        let config = "[api]\nlisten = \"127.0.0.1:0\"\n";
        fs::write(folder.join("c.toml"), config).unwrap();
        // A file that may not grow ends a process, unless it does not listen.
        let mut process = Command::new("bash")
            .args(["-c", "trap '' XFSZ; exec \"$0\" serve --store store --config c.toml"])
            .arg(env!("CARGO_BIN_EXE_crawl"))
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().unwrap().parse().unwrap();
        Self { process, address }
    }

    /// Lets no file be longer, which stands in for a full disk: the write fails in the same place.
    fn limit(&self, bytes: Option<u64>) {
        let pid = Pid::from_child(&self.process);
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    }

    fn send(&self, number: u64) -> u16 {
        let article = json!({"nid": format!("n{number}"), "content": prose(number, 2_000)});
        let body = article.to_string();
        post(self.address, "/v1/articles", "application/json", body.as_bytes()).status
    }

    fn metric(&self, name: &str) -> Option<u64> {
        let text = get(self.address, "/metrics").body;
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")))?;
        line.rsplit(' ').next().unwrap().parse().ok()
    }

    #[track_caller]
    fn until(&self, what: &str, status: u16) {
        let end = Instant::now() + Duration::from_mins(1);
        while get(self.address, "/readyz").status != status {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_service_goes_on_by_itself_when_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path());
    let mut stored = Vec::new();
    for round in 0..2u64 {
        for number in round * 1_000..round * 1_000 + 20 {
            assert_eq!(service.send(number), 201);
            stored.push(number);
        }
        service.limit(Some(1 << 16));
        // What still fits into pages that are free is stored.
        let refused =
            (round * 1_000 + 100..round * 1_000 + 900).find(|number| match service.send(*number) {
                201 => {
                    stored.push(*number);
                    false
                }
                status => {
                    assert_eq!(status, 503);
                    true
                }
            });
        let refused = refused.unwrap();
        service.until("it says that nothing can be stored", 503);
        assert_eq!(service.metric("uniqcrawl_store_writable"), Some(0));
        assert_eq!(service.metric("uniqcrawl_store_failures_total"), Some(round + 1));
        // It takes a moment until it is opened to be read.
        let end = Instant::now() + Duration::from_mins(1);
        while get(service.address, "/v1/documents?limit=5").status != 200 {
            assert!(Instant::now() < end, "it can be read");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(service.send(refused), 503, "it is not stored in memory only");
        service.limit(None);
        service.until("it can be written again", 200);
        assert_eq!(service.metric("uniqcrawl_store_writable"), Some(1));
        assert_eq!(service.metric("uniqcrawl_store_mended_total"), Some(round + 1));
        assert_eq!(service.send(refused), 201);
        stored.push(refused);
    }
    let told: Value = get(service.address, "/v1/stats").json();
    assert_eq!(told["documents"], json!(stored.len()));
    drop(service);
    let store = Store::open(&folder.path().join("store"), 1 << 24).unwrap();
    check_clean(&store);
    let snapshot = store.snapshot().unwrap();
    for number in stored {
        assert!(snapshot.has(SENT, &format!("n{number}")).unwrap(), "{number}");
    }
}
