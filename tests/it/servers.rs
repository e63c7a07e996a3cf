//! Servers that the small web does not have: proxies, and TLS with HTTP/1.1 or HTTP/2.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// What a server noted, one text for each thing.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// A server on loopback that notes what it is asked.
pub(crate) struct Server {
    _runtime: Runtime,
    pub address: SocketAddr,
    log: Log,
}

impl Server {
    fn start<F>(serve: impl Fn(TcpStream, Log) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = Runtime::new().unwrap();
        let log = Log::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let noted = log.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, noted.clone()));
            }
        });
        Self { _runtime: runtime, address, log }
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

fn note(log: &Log, text: impl Into<String>) {
    log.lock().unwrap().push(text.into());
}

async fn head_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// A proxy that sends everything to `upstream`, whatever was asked for, and notes the first line of
/// each request with its `Proxy-Authorization`.
pub(crate) fn http_proxy(upstream: SocketAddr) -> Server {
    Server::start(move |mut stream, log| async move {
        while let Some(head) = head_of(&mut stream).await {
            let (first, rest) = head.split_once("\r\n").unwrap();
            let auth = rest.lines().find(|l| l.to_lowercase().starts_with("proxy-authorization:"));
            let line = [Some(first), auth].into_iter().flatten().collect::<Vec<_>>().join(" | ");
            note(&log, line);
            let mut other = TcpStream::connect(upstream).await.unwrap();
            if first.starts_with("CONNECT ") {
                stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut other).await;
                return;
            }
            let url = first.split(' ').nth(1).unwrap();
            let path = format!("/{}", url.splitn(4, '/').nth(3).unwrap_or(""));
            let asked = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{rest}");
            other.write_all(asked.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            other.read_to_end(&mut answer).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        }
    })
}

/// A SOCKS5 proxy that sends everything to `upstream` and notes the kind of each address (1 IPv4,
/// 3 name) with the address.
pub(crate) fn socks_proxy(upstream: SocketAddr) -> Server {
    Server::start(move |mut stream, log| async move {
        let mut hello = [0; 2];
        stream.read_exact(&mut hello).await.unwrap();
        let mut methods = vec![0; usize::from(hello[1])];
        stream.read_exact(&mut methods).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut asked = [0; 4];
        stream.read_exact(&mut asked).await.unwrap();
        let length = match asked[3] {
            1 => 4,
            3 => usize::from(stream.read_u8().await.unwrap()),
            _ => 16,
        };
        let mut address = vec![0; length + 2];
        stream.read_exact(&mut address).await.unwrap();
        note(&log, format!("{} {:?}", asked[3], &address[..length]));
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut other = TcpStream::connect(upstream).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut other).await;
    })
}

/// A server with TLS for the IP address `ip`, which notes the version and the path of each request
/// and answers all with `page`. The file `authority` gets the certificate to be trusted.
pub(crate) fn tls(ip: &str, page: String, authority: &Path) -> Server {
    tls_with(ip, page, authority, None)
}

/// The same with a header `X-Long` of this value.
pub(crate) fn tls_with(ip: &str, page: String, authority: &Path, long: Option<String>) -> Server {
    let key = KeyPair::generate().unwrap();
    let mut root = CertificateParams::new(Vec::new()).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_certificate = root.self_signed(&key).unwrap();
    std::fs::write(authority, root_certificate.pem()).unwrap();
    let issuer = Issuer::new(root, key);
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![ip.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&leaf_key, &issuer).unwrap();
    let leaf_key = PrivateKeyDer::try_from(leaf_key.serialize_der()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], leaf_key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (page, long) = (Arc::new(page), Arc::new(long.unwrap_or_default()));
    Server::start(move |stream, log| {
        let (acceptor, page, long) = (acceptor.clone(), page.clone(), long.clone());
        async move {
            // A client that does not trust us goes away here.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => two(stream, &log, &page, &long).await,
                _ => one(stream, &log, &page).await,
            }
        }
    })
}

type Tls = tokio_rustls::server::TlsStream<TcpStream>;

/// The page and its type, or 404 for a robots.txt.
fn answer(path: &str, page: &str) -> (u16, String) {
    if path == "/robots.txt" { (404, String::new()) } else { (200, page.to_owned()) }
}

async fn one(mut stream: Tls, log: &Log, page: &str) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            head.push(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let path = head.split(' ').nth(1).unwrap();
        note(log, format!("HTTP/1.1 {path}"));
        let (status, body) = answer(path, page);
        let answer = format!(
            "HTTP/1.1 {status} S\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

async fn two(stream: Tls, log: &Log, page: &str, filler: &str) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        note(log, format!("HTTP/2 {path}"));
        let (status, body) = answer(&path, page);
        let head = http::Response::builder().status(status).header("content-type", "text/html");
        let head = head.header("x-long", filler);
        let mut send = respond.send_response(head.body(()).unwrap(), false).unwrap();
        send.send_data(body.into(), true).unwrap();
    }
}
