//! A node that is asked over TLS, by an account that may do no more than it must.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::generate_simple_self_signed;
use redis::{Client, Connection, TlsCertificates, cmd};
use uniqcrawl::cluster::{Engine, Error, Secret, Settings};
use uniqcrawl::corpus::dedup::Corpus as _;
use uniqcrawl::corpus::shared::SharedCorpus;
use uniqcrawl::neardup::Config;
use uniqcrawl::text::features::Fingerprinter;

use crate::cluster_corpus::{OPTIONS, documents};
use crate::shelf::Came;
use crate::support::prose;

/// A cluster of one node. It ends with the test.
struct Node {
    server: Child,
    port: u16,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Node {
    fn start(folder: &Path) -> Self {
        let made = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        fs::write(folder.join("cert"), made.cert.pem()).unwrap();
        fs::write(folder.join("key"), made.signing_key.serialize_pem()).unwrap();
        let port = 14_000 + (std::process::id() % 900) as u16;
        let server = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let server = Command::new(server)
            .args(["--bind", "127.0.0.1", "--port", "0", "--tls-port", &port.to_string()])
            .args([
                "--tls-cert-file",
                "cert",
                "--tls-key-file",
                "key",
                "--tls-ca-cert-file",
                "cert",
            ])
            .args(["--tls-auth-clients", "no", "--cluster-enabled", "yes", "--tls-cluster", "yes"])
            .args(["--save", "", "--user", "default", "on", ">hidden", "~*", "+@all"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { server, port }
    }

    fn url(&self, scheme: &str, account: &str) -> String {
        format!("{scheme}://{account}127.0.0.1:{}/tls", self.port)
    }

    fn connection(&self, folder: &Path) -> Connection {
        let root_cert = Some(fs::read(folder.join("cert")).unwrap());
        let url = format!("rediss://:hidden@127.0.0.1:{}", self.port);
        let client = Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert });
        let begun = Instant::now();
        loop {
            match client.as_ref().unwrap().get_connection() {
                Ok(connection) => return connection,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(10), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_cluster_is_asked_over_tls_by_an_account_that_may_do_little() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::start(folder.path());
    let mut connection = node.connection(folder.path());
    cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16_383).exec(&mut connection).unwrap();
    // What the guide names, and nothing else.
    cmd("ACL")
        .arg(&["SETUSER", "worker", "on", ">s@cret", "~tls:*", "+@read", "+@write"])
        .arg(&["+@scripting", "+info", "+cluster", "+time", "+ping"])
        .exec(&mut connection)
        .unwrap();
    let settings = |url: &str| {
        let mut settings = Settings::parse(url).unwrap();
        (settings.authority, settings.timeout) =
            (Some(folder.path().join("cert")), Duration::from_secs(2));
        settings
    };
    fs::write(folder.path().join("password"), "s@cret\n").unwrap();
    let mut good = settings(&node.url("rediss", "worker@"));
    good.password = Secret::read(&folder.path().join("password")).unwrap();
    let begun = Instant::now();
    let mut corpus = loop {
        match SharedCorpus::open(&good, folder.path(), &Config::default(), OPTIONS) {
            Ok(corpus) => break corpus,
            // The node has just got its slots.
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(10), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    for (url, text) in [("http://a/", prose(1, 60)), ("http://b/", prose(1, 60))] {
        let article = Came::new(url, "", &text).article(&Fingerprinter::default());
        corpus.place(&article, 1).unwrap();
    }
    corpus.look_again().unwrap();
    assert_eq!(documents(&corpus)[0].copies.len(), 2);
    let fails = |settings: &Settings| Engine::connect(settings).unwrap_err();
    let error = fails(&settings(&node.url("rediss", "worker:wrong@")));
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    // An authority that is not known, and none at all.
    let mut unknown = settings(&node.url("rediss", "worker:s%40cret@"));
    unknown.authority = None;
    for settings in [unknown, settings(&node.url("redis", "worker:s%40cret@"))] {
        let error = fails(&settings);
        assert!(!format!("{error} {error:?}").contains("cret"), "{error:?}");
        assert!(matches!(error, Error::Unreachable(_) | Error::Failed(_)), "{error:?}");
    }
    let mut missing = settings(&node.url("rediss", "worker:s%40cret@"));
    missing.authority = Some(folder.path().join("missing"));
    assert!(fails(&missing).to_string().contains("missing"));
}
