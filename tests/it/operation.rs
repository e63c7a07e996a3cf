//! What an operator sets: headers, cookies, credentials, proxies, HTTP/2, certificate authorities,
//! logs. Each against a server that notes what it received.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use uniqcrawl::base::units::Time;
use uniqcrawl::config::Config;
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::urls::{PageUrl, ScopeKind};

use crate::servers::{http_proxy, socks_proxy, tls};
use crate::support::{Crawled, Web, config, page, prose};

fn html(seed: u64, links: &[&str]) -> String {
    page(&format!("Page {seed}"), &prose(seed, 80), links)
}

fn address(web: &Web, host: usize) -> SocketAddr {
    web.web.url(host).trim_start_matches("http://").trim_end_matches('/').parse().unwrap()
}

fn seed(text: &str) -> Vec<PageUrl> {
    vec![PageUrl::parse(text).unwrap()]
}

/// Values of a header that a host received, one for each request; empty where it was not sent.
fn received(web: &Web, host: usize, name: &str) -> Vec<(String, String)> {
    let requests = web.web.requests_of(host).into_iter();
    requests.map(|r| (r.target.clone(), r.header(name).unwrap_or("").to_owned())).collect()
}

/// Why these settings cannot be.
fn refused(change: impl FnOnce(&mut Config)) -> String {
    let mut config = config();
    change(&mut config);
    config.settings().fetcher().map(drop).unwrap_err().to_string()
}

#[test]
fn own_headers_go_with_every_request_and_reserved_ones_are_refused() {
    let web = Web::one(Site::new().html("/", html(1, &["/a"])).html("/a", html(2, &[])));
    let mut config = config();
    config.fetch.headers = vec!["X-Purpose: research".to_owned(), "accept: text/html".to_owned()];
    Crawled::new().run(&config, &web.seeds());
    assert_eq!(web.web.requests().len(), 3);
    for request in web.web.requests() {
        assert_eq!(request.header("x-purpose"), Some("research"));
        assert_eq!(request.header("accept"), Some("text/html"));
        assert_eq!(request.headers.iter().filter(|(name, _)| name == "accept").count(), 1);
    }
    for (line, says) in [
        ("Host: hidden", "`Host`"),
        ("connection: hidden", "client's own"),
        ("Transfer-Encoding: hidden", "client's own"),
        ("TE: hidden", "client's own"),
        ("Upgrade: hidden", "client's own"),
        ("Proxy-Authorization: hidden", "client's own"),
        ("Content-Length: 5", "client's own"),
        ("Accept-Encoding: hidden", "client's own"),
        ("If-None-Match: hidden", "client's own"),
        ("Range: hidden", "client's own"),
        ("User-Agent: hidden", "fetch.user_agent"),
        ("Authorization: hidden", "auth.file"),
        ("Cookie: hidden", "auth.file"),
        ("no colon", "has no `:`"),
        ("b d: hidden", "no name"),
        ("X-Bad: hid\u{7}den", "characters"),
    ] {
        let error = refused(|config| config.fetch.headers = vec![line.to_owned()]);
        assert!(error.contains(says) && !error.contains("hidden"), "{line}: {error}");
    }
}

#[test]
fn cookies_go_back_to_the_host_that_set_them_and_only_if_they_are_wanted() {
    let web = Web::start(2, |bases| {
        let other = format!("{}/b", bases[1]);
        let front = Page::html(html(1, &["/a", &other]))
            .header("Set-Cookie", "id=7; HttpOnly")
            .header("Set-Cookie", "deep=8; Path=/deep");
        let first = Site::new().page("/", front).html("/a", html(2, &["/deep/c"]));
        let first = first.html("/deep/c", html(3, &[]));
        vec![first, Site::new().html("/", html(4, &["/b"])).html("/b", html(5, &[]))]
    });
    let mut config = config();
    Crawled::new().run(&config, &web.seeds());
    assert!(received(&web, 0, "cookie").iter().all(|(_, sent)| sent.is_empty()));
    web.web.forget();
    config.fetch.cookies = true;
    Crawled::new().run(&config, &web.seeds());
    let sent: std::collections::BTreeMap<_, _> = received(&web, 0, "cookie").into_iter().collect();
    assert_eq!((sent["/"].as_str(), sent["/a"].as_str()), ("", "id=7"));
    let mut deep: Vec<&str> = sent["/deep/c"].split("; ").collect();
    deep.sort_unstable();
    assert_eq!(deep, ["deep=8", "id=7"]);
    assert!(received(&web, 1, "cookie").iter().all(|(_, sent)| sent.is_empty()));
}

/// Writes a file that only its owner may read, or everybody.
fn secret_file(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Two hosts that want credentials; the first one redirects to the second and to a third.
fn guarded() -> Web {
    Web::start(3, |bases| {
        let (second, third) = (format!("{}/in", bases[1]), format!("{}/in", bases[2]));
        let first = Site::new()
            .html("/", html(1, &["/to-second", "/to-third", "/a"]))
            .html("/a", html(2, &[]))
            .page("/to-second", Page::redirect(302, &second))
            .page("/to-third", Page::redirect(301, &third));
        let site = |n| Site::new().html("/", html(n, &[])).html("/in", html(n + 1, &[]));
        vec![first, site(10), site(20)]
    })
}

const BASIC: &str = "Basic Y3Jhd2xlcjpvcGVuIHNlc2FtZQ==";

#[test]
fn credentials_go_to_their_host_alone_and_are_neither_logged_nor_stored() {
    let web = guarded();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let base = |host| web.web.url(host).trim_end_matches('/').to_owned();
    let file = format!(
        "[\"{}\"]\nuser = \"crawler\"\npassword = \"open sesame\"\n\
         [\"{}\"]\nheader = \"X-Api-Key\"\nvalue = \"swordfish\"\n",
        base(0),
        base(1)
    );
    secret_file(&path.join("auth.toml"), &file, 0o600);
    fs::write(path.join("c.toml"), "[auth]\nfile = \"auth.toml\"\n[crawl]\nscope = \"any\"\n")
        .unwrap();
    fs::write(path.join("s.txt"), web.web.url(0)).unwrap();
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["--seeds", "s.txt", "--config", "c.toml", "--allow-private", "--delay", "0"])
            .current_dir(path)
            .env("UNIQCRAWL_LOG", "trace")
            .output()
            .unwrap()
    };
    let output = run();
    assert!(output.status.success());
    let log = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(log.contains("TRACE") && log.contains("/to-second"), "{log:.500}");
    assert!(!log.contains("credentials: use chmod"), "the file is private");
    let store = fs::read(path.join("store/store.redb")).unwrap();
    for secret in ["open sesame", "swordfish", &BASIC[6..]] {
        assert!(!log.contains(secret), "{secret} is in the log");
        assert!(!store.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret}");
    }
    let all = |host, name, value: &str| {
        let sent = received(&web, host, name);
        assert!(!sent.is_empty() && sent.iter().all(|(_, sent)| sent == value), "{sent:?}");
    };
    all(0, "authorization", BASIC);
    all(0, "x-api-key", "");
    all(1, "authorization", "");
    all(1, "x-api-key", "swordfish");
    all(2, "authorization", "");
    all(2, "x-api-key", "");
    secret_file(&path.join("auth.toml"), &file, 0o644);
    let log = String::from_utf8_lossy(&run().stderr).into_owned();
    assert!(log.contains("auth.toml") && log.contains("credentials: use chmod"), "{log:.500}");
}

#[test]
fn a_bad_file_of_credentials_is_named_without_what_stands_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("auth.toml");
    let read = |text: &str| {
        secret_file(&file, text, 0o600);
        let mut config = config();
        config.auth.file = file.to_str().unwrap().to_owned();
        config.settings().fetcher().map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(read("[\"h.test\"]\nuser = \"a\"\npassword = \"b\"\n"), Ok(()));
    for (text, says) in [
        ("\n[\"h\"]\nuser = hunter2\n", "line 3"),
        ("h = \"hunter2\"\n", "`h`"),
        ("[h]\nuser = \"hunter2\"\n", "`h`: give"),
        ("[h]\nuser = \"a\"\npassword = 77412\n", "`h`: give"),
        ("[h]\nuser = \"a\"\npassword = \"hunter2\"\nheader = \"b\"\n", "`h`: give"),
        ("[h]\nheader = \"a b\"\nvalue = \"hunter2\"\n", "no name"),
        ("[h]\nheader = \"Host\"\nvalue = \"hunter2\"\n", "client's own"),
        ("[h]\nheader = \"X\"\nvalue = \"hunter2\\n\"\n", "characters"),
        ("[\"http://h/path\"]\nuser = \"hunter2\"\npassword = \"\"\n", "no host"),
        ("[\"ftp://h\"]\nuser = \"hunter2\"\npassword = \"\"\n", "no host"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains("auth.toml") && error.contains(says), "{text}: {error}");
        assert!(!error.contains("hunter2") && !error.contains("77412"), "{error}");
    }
    let error = refused(|config| config.auth.file = "nowhere.toml".to_owned());
    assert!(error.contains("nowhere.toml"), "{error}");
}

#[test]
fn a_bare_name_in_the_file_of_credentials_stands_for_https_alone() {
    let web = Web::one(Site::new().html("/", html(1, &[])));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("auth.toml");
    let name = web.web.url(0).trim_start_matches("http://").trim_end_matches('/').to_owned();
    secret_file(&file, &format!("[\"{name}\"]\nuser = \"a\"\npassword = \"b\"\n"), 0o600);
    let mut config = config();
    config.auth.file = file.to_str().unwrap().to_owned();
    Crawled::new().run(&config, &web.seeds());
    assert!(received(&web, 0, "authorization").iter().all(|(_, sent)| sent.is_empty()));
}

/// Settings with the guard on, so that only the proxy may be private.
fn behind(proxies: &[String]) -> Config {
    let mut config = config();
    config.fetch.allow_private = false;
    config.fetch.proxies = proxies.to_vec();
    config.crawl.scope = ScopeKind::Any;
    config.frontier.retries_max = 0;
    config
}

#[test]
fn proxies_take_turns_and_private_targets_are_refused_before_them() {
    let web = Web::one(
        Site::new()
            .html("/", html(1, &["/a", "/b", "http://127.0.0.1:81/x", "http://localhost:81/y"]))
            .html("/a", html(2, &[]))
            .page("/b", Page::redirect(302, "http://169.254.169.254/latest")),
    );
    let (first, second) = (http_proxy(address(&web, 0)), http_proxy(address(&web, 0)));
    // One is named by number, with a password, the other by a name that is private too.
    let config = behind(&[
        format!("http://joe:word@{}", first.address),
        format!("http://localhost:{}", second.address.port()),
    ]);
    let crawled = Crawled::new();
    crawled.run(&config, &seed("http://9.9.9.9/"));
    assert_eq!(crawled.clusters().len(), 2);
    let (one, two) = (first.log(), second.log());
    // The two requests and two robots.txt of the host, and no request for anything private.
    assert_eq!((one.len() + two.len(), one.len().abs_diff(two.len())), (4, 0), "{one:?} {two:?}");
    for line in one.iter().chain(&two) {
        assert!(line.starts_with("GET http://9.9.9.9/"), "{line}");
    }
    assert!(one.iter().all(|line| line.ends_with("Basic am9lOndvcmQ=")), "{one:?}");
    assert!(two.iter().all(|line| line.ends_with("HTTP/1.1")), "{two:?}");
    for url in ["http://127.0.0.1:81/x", "http://localhost:81/y", "http://169.254.169.254/latest"] {
        let known = crawled.explain(&PageUrl::parse(url).unwrap());
        assert_eq!(known.reason, Some("address_refused"), "{url}");
    }
}

#[test]
fn a_socks_proxy_gets_the_address_that_was_checked() {
    let web = Web::one(Site::new().html("/", html(1, &[])));
    let proxy = socks_proxy(address(&web, 0));
    let mut config = behind(&[format!("socks5://{}", proxy.address)]);
    let crawled = Crawled::new();
    crawled.run(&config, &seed("http://9.9.9.9/"));
    assert_eq!(crawled.clusters().len(), 1);
    assert!(!proxy.log().is_empty() && proxy.log().iter().all(|line| line == "1 [9, 9, 9, 9]"));
    // A name is resolved here: the proxy sees a number (1 or 4), never a name (3).
    let before = proxy.log().len();
    let port = address(&web, 0).port();
    crawled.run(&config, &seed(&format!("http://localhost:{port}/")));
    assert_eq!(proxy.log().len(), before, "a private name is refused");
    config.fetch.allow_private = true;
    let crawled = Crawled::new();
    crawled.run(&config, &seed(&format!("http://localhost:{port}/")));
    assert_eq!(crawled.clusters().len(), 1);
    assert!(proxy.log().len() > before);
    assert!(proxy.log().iter().all(|line| !line.starts_with('3')), "{:?}", proxy.log());
}

#[test]
fn a_proxy_that_fails_is_no_licence_and_not_the_host_s_fault() {
    // 407 is a status of 400 to 499, which as an answer for robots.txt would allow everything.
    let asks = Web::one(Site::new().handler(|_| Some(Page::status(407))));
    let proxy = http_proxy(address(&asks, 0));
    for proxy in [format!("http://{}", proxy.address), "http://127.0.0.1:9".to_owned()] {
        let mut config = behind(&[proxy]);
        config.crawl.limits.idle_wait_max = Time::from_millis(50);
        let crawled = Crawled::new();
        let report = crawled.run(&config, &seed("http://9.9.9.9/"));
        assert_eq!((report.pages, report.failed_seeds.len()), (0, 1));
        assert_eq!(report.failed_seeds[0].reason, "robots_unreachable");
    }
    assert!(proxy.log().iter().all(|line| line.starts_with("GET http://9.9.9.9/robots.txt")));
    assert!(!proxy.log().is_empty());
}

#[test]
fn proxies_of_the_environment_are_not_used() {
    let web = Web::one(Site::new().html("/", html(1, &[])));
    let proxy = http_proxy(address(&web, 0));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.txt"), web.web.url(0)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command.args(["--seeds", "s.txt", "--allow-private", "--delay", "0"]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, format!("http://{}", proxy.address));
    }
    let output = command.env_remove("NO_PROXY").current_dir(folder.path()).output().unwrap();
    assert!(output.status.success());
    // robots.txt, the page, the sitemap at the usual place, and the probe for the error page.
    assert_eq!((web.web.requests().len(), proxy.log()), (4, vec![]));
}

#[test]
fn settings_of_proxies_are_checked_and_shown_without_their_passwords() {
    for (proxy, says) in [
        ("socks5h://u:hunter2@h", "socks5h://***@h"),
        ("ftp://h", "use http, https or socks5"),
        ("h", "no URL"),
    ] {
        let error = refused(|config| config.fetch.proxies = vec![proxy.to_owned()]);
        assert!(error.contains(says) && !error.contains("hunter2"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "[fetch]\nproxies = [\"http://u:hunter2@h:1\"]\nheaders = [\"X-Key: hunter2\"]\n";
    fs::write(folder.path().join("c.toml"), text).unwrap();
    let shown = crate::support::crawl(&["config", "--config", "c.toml"], folder.path());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("http://***@h:1") && shown.contains("X-Key: ***"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let bad = "[fetch]\nheaders = [\"Host: x\"]\n";
    fs::write(folder.path().join("c.toml"), bad).unwrap();
    fs::write(folder.path().join("s.txt"), "http://127.0.0.1:9/\n").unwrap();
    let output = crate::support::crawl(&["--seeds", "s.txt", "--config", "c.toml"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("the header `Host`"));
    assert!(!folder.path().join("store").exists(), "no store is made");
}

#[test]
fn http_2_is_spoken_where_it_is_offered_and_wanted_with_authorities_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    let server = tls("127.0.0.1", html(1, &[]), &authority);
    let front = format!("https://{}/", server.address);
    let run = |change: &dyn Fn(&mut Config)| {
        let mut config = config();
        config.fetch.ca_file = authority.to_str().unwrap().to_owned();
        config.frontier.retries_max = 0;
        config.crawl.limits.idle_wait_max = Time::from_millis(50);
        change(&mut config);
        let crawled = Crawled::new();
        crawled.run(&config, &seed(&front));
        crawled.clusters().len()
    };
    assert_eq!(run(&|_| {}), 1);
    assert_eq!(server.log(), ["HTTP/2 /robots.txt", "HTTP/2 /"]);
    assert_eq!(run(&|config| config.fetch.http2 = false), 1);
    assert_eq!(server.log()[2..], ["HTTP/1.1 /robots.txt", "HTTP/1.1 /"]);
    // Nobody else trusts it.
    assert_eq!(run(&|config| config.fetch.ca_file = String::new()), 0);
    assert_eq!(server.log().len(), 4);
    for bad in ["", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        fs::write(folder.path().join("bad.pem"), bad).unwrap();
        let file = folder.path().join("bad.pem").to_str().unwrap().to_owned();
        let error = refused(|config| config.fetch.ca_file = file);
        assert!(error.contains("bad.pem"), "{error}");
    }
}

#[test]
fn https_goes_through_a_tunnel_of_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    let server = tls("9.9.9.9", html(1, &[]), &authority);
    let proxy = http_proxy(server.address);
    let mut config = behind(&[format!("http://{}", proxy.address)]);
    config.fetch.ca_file = authority.to_str().unwrap().to_owned();
    let crawled = Crawled::new();
    crawled.run(&config, &seed("https://9.9.9.9/"));
    assert_eq!(crawled.clusters().len(), 1);
    assert!(proxy.log().iter().all(|line| line.starts_with("CONNECT 9.9.9.9:443 ")));
    assert!(!proxy.log().is_empty());
}
