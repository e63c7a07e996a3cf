//! Exports to object storage, against a server that speaks S3: whole, unreachable, and broken in the
//! middle.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use uniqcrawl::base::remote::{self, Location};

use crate::export::{crawled, export};
use crate::python::venv;

const SECRET: &str = "top-secret-key-of-the-test";

/// The server, and before it one that refuses some requests.
pub(crate) struct Storage {
    child: Child,
    behind: SocketAddr,
    address: SocketAddr,
    pub(crate) refuse: Arc<Refuse>,
}

/// Which requests are refused: those that have this in their first line, from the n-th on.
#[derive(Default)]
pub(crate) struct Refuse {
    what: std::sync::Mutex<&'static str>,
    from: AtomicUsize,
    seen: AtomicUsize,
}

impl Refuse {
    pub(crate) fn set(&self, what: &'static str, from: usize) {
        *self.what.lock().unwrap() = what;
        self.from.store(from, Ordering::SeqCst);
        self.seen.store(0, Ordering::SeqCst);
    }

    fn is_refused(&self, line: &str) -> bool {
        let what = *self.what.lock().unwrap();
        if what.is_empty() || !line.contains(what) {
            return false;
        }
        self.seen.fetch_add(1, Ordering::SeqCst) + 1 >= self.from.load(Ordering::SeqCst)
    }
}

impl Storage {
    pub(crate) fn start() -> Self {
        let python = venv("s3", "tests/s3/requirements.txt");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let behind = SocketAddr::from(([127, 0, 0, 1], port));
        let child = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_mins(1);
        while TcpStream::connect(behind).is_err() {
            assert!(Instant::now() < end, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let refuse = Arc::new(Refuse::default());
        let shared = refuse.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, refuse) = (stream.unwrap(), shared.clone());
                std::thread::spawn(move || pass_on(stream, behind, &refuse));
            }
        });
        let storage = Self { child, behind, address, refuse };
        storage.ask("PUT", "/bucket");
        storage
    }

    /// Asks the server itself.
    pub(crate) fn ask(&self, method: &str, target: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.behind).unwrap();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 0\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20261124/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n",
            self.behind
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let split = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        answer.split_off(split + 4)
    }

    /// Names of all objects.
    pub(crate) fn names(&self) -> Vec<String> {
        let list = String::from_utf8(self.ask("GET", "/bucket?list-type=2")).unwrap();
        let names = list.split("<Key>").skip(1);
        names.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }

    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    pub(crate) fn run(&self, folder: &Path, arguments: &[&str]) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(arguments)
            .current_dir(folder)
            .envs(self.variables())
            .env("UNIQCRAWL_LOG", "trace")
            .output()
            .unwrap();
        let told = [&output.stdout[..], &output.stderr].concat();
        assert!(!String::from_utf8_lossy(&told).contains(SECRET), "a secret is logged");
        output
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes the request of a connection on.
fn pass_on(mut client: TcpStream, behind: SocketAddr, refuse: &Refuse) {
    let Some((head, body)) = message(&mut client) else { return };
    let line = head.lines().next().unwrap_or_default().to_owned();
    let answer = if refuse.is_refused(&line) {
        b"HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            .to_vec()
    } else {
        let mut server = TcpStream::connect(behind).unwrap();
        // One request a connection, so that the end of its answer is seen.
        let head = head.trim_end().replace("connection: ", "x-connection: ");
        let sent = format!("{head}\r\nConnection: close\r\n\r\n");
        server.write_all(sent.as_bytes()).unwrap();
        server.write_all(&body).unwrap();
        let mut answer = Vec::new();
        let _ = server.read_to_end(&mut answer);
        answer
    };
    let _ = client.write_all(&answer);
}

fn message(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let split = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    };
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
    let mut body = bytes.split_off(split + 4);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
    });
    while body.len() < length.unwrap_or(0) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => body.extend_from_slice(&buffer[..read]),
        }
    }
    Some((head, body))
}

#[test]
fn an_export_to_object_storage_is_that_to_a_folder_and_a_broken_one_leaves_no_set() {
    let storage = Storage::start();
    let (_web, folder) = crawled(8, &[]);
    let folder = folder.path();
    let how = ["--format", "parquet", "--shard-size", "4"];
    export(folder, &[&["--out", "own"][..], &how].concat());
    let run = |out: &'static str| {
        storage.run(folder, &[&["export", "--quiet", "--out", out][..], &how].concat())
    };
    let done = run("s3://bucket/corpora/one");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut own: Vec<String> = std::fs::read_dir(folder.join("own"))
        .unwrap()
        .map(|entry| format!("corpora/one/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    own.sort();
    assert_eq!(storage.names(), own);
    for name in &own {
        let local = folder.join("own").join(name.rsplit('/').next().unwrap());
        let (found, own) =
            (storage.ask("GET", &format!("/bucket/{name}")), std::fs::read(local).unwrap());
        assert!(found == own, "{name}: {} and {} bytes", found.len(), own.len());
    }
    // Again, with fewer files: those of the set before go.
    let done = storage.run(folder, &["export", "--out", "s3://bucket/corpora/one"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(storage.names().len(), 5, "{:?}", storage.names());
    // A folder of somebody else.
    storage.ask("PUT", "/bucket/mine/notes.txt");
    let done = run("s3://bucket/mine");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{told}");
    assert!(
        told.contains("s3://bucket/mine has files that are not of an export: notes.txt"),
        "{told}"
    );
    // The third file cannot be written.
    let before = storage.names();
    storage.refuse.set("PUT /bucket/broken/", 3);
    let done = run("s3://bucket/broken");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{told}");
    let last = told.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(last.contains("cannot write s3://bucket/broken/") && last.contains("500"), "{last}");
    assert_eq!(storage.names(), before, "no file without a set is left");
    storage.refuse.set("", 0);
    // No such bucket, and no server.
    let done = run("s3://no-such-bucket/x");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("error: s3://no-such-bucket/x: "), "{}", &told[told.len() - 500..]);
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(["export", "--out", "s3://bucket/x"])
        .current_dir(folder)
        .envs(storage.variables())
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("s3://bucket/x: ") && !told.contains(SECRET), "{told}");
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());

    large(&storage);
}

/// Objects of several parts, of which the third cannot be written, or all can; and what is read.
fn large(storage: &Storage) {
    remote::set_options(storage.variables().map(|(name, value)| (name.to_owned(), value)));
    let Location::Remote(bucket) = Location::parse("s3://bucket/large").unwrap() else {
        panic!("it is no path");
    };
    let bytes: Vec<u8> = (0..20u32 << 20).map(|n| (n ^ n >> 9) as u8).collect();
    storage.refuse.set("partNumber=3&", 1);
    let mut upload = bucket.child("broken").write();
    let failed = upload.write_all(&bytes).map_err(|error| error.to_string());
    let failed = failed.and_then(|()| upload.finish().map_err(|error| error.to_string()));
    let told = failed.unwrap_err();
    assert!(told.contains("s3://bucket/large/broken") && told.contains("500"), "{told}");
    storage.refuse.set("", 0);
    let parts = String::from_utf8(storage.ask("GET", "/bucket?uploads")).unwrap();
    assert!(!parts.contains("<Upload>"), "no part is left: {parts}");
    assert!(!storage.names().contains(&"large/broken".to_owned()));

    let mut upload = bucket.child("whole").write();
    upload.write_all(&bytes).unwrap();
    upload.finish().unwrap();
    let mut read = remote::open_read("s3://bucket/large/whole").unwrap();
    let mut found = Vec::new();
    read.read_to_end(&mut found).unwrap();
    assert!(found == bytes);
    read.seek(SeekFrom::End(-5)).unwrap();
    let mut end = [0; 5];
    read.read_exact(&mut end).unwrap();
    assert_eq!(end, bytes[bytes.len() - 5..]);
    let listed = bucket.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].0.to_string().as_str(), listed[0].1),
        ("s3://bucket/large/whole", 20 << 20)
    );
    // What changes while it is read is not read as if it were one.
    let mut read = remote::open_read("s3://bucket/large/whole").unwrap();
    let mut start = [0; 10];
    read.read_exact(&mut start).unwrap();
    let mut upload = bucket.child("whole").write();
    upload.write_all(&bytes[1..]).unwrap();
    upload.finish().unwrap();
    read.seek(SeekFrom::Start(17 << 20)).unwrap();
    assert!(read.read_exact(&mut start).is_err());
    let error = remote::open_read("s3://bucket/large/none").err().unwrap().to_string();
    assert!(error.contains("s3://bucket/large/none: there is no such object"), "{error}");
}

#[test]
fn a_store_is_backed_up_to_object_storage_and_back_and_one_that_breaks_off_leaves_the_one_before() {
    let storage = Storage::start();
    let (_web, folder) = crawled(3, &["--store", "store"]);
    let backup = ["store", "backup", "--json", "--store", "store", "--to", "s3://bucket/b"];
    let first = storage.run(folder.path(), &backup);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let again: serde_json::Value =
        serde_json::from_slice(&storage.run(folder.path(), &backup).stdout).unwrap();
    assert_eq!(again["newChunks"], 0, "{again}");
    let lists = || storage.names().iter().filter(|name| name.contains("backups/")).count();
    assert_eq!(lists(), 2);
    storage.refuse.set("PUT", 1);
    assert!(!storage.run(folder.path(), &backup).status.success());
    storage.refuse.set("", 0);
    assert_eq!(lists(), 2);
    let restore = ["store", "restore", "--from", "s3://bucket/b", "--store", "back"];
    let restored = storage.run(folder.path(), &restore);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let nothing = ["store", "verify", "s3://bucket/none"];
    let told = storage.run(folder.path(), &nothing);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("there is no backup in s3://bucket/none"), "{told}");
}
