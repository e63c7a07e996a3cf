//! The docId service of the first paper on Redis: its three look-ups, and what it notes of a new
//! article. `redis-doc-id load FILE REDIS EQUAL NEAR` stores articles in two databases, without any
//! look-up; `redis-doc-id serve PORT REDIS DATABASE equal|near` answers.
//!
//! `equal` asks for equal fingerprints, as the paper's keys do; `near` has the four tables that its
//! threshold of three bits needs. Texts are not kept: the paper stores them elsewhere, later. A
//! known address costs one look-up, and no hash is computed before that; what Redis is asked at a
//! time is asked in one pipeline.

use std::io::{BufRead, BufReader};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisResult, pipe};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use uniqcrawl::text::features::Fingerprinter;
use uniqcrawl::text::simhash::Fingerprint;
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Largest distance of copies, in bits.
const K: u32 = 3;

/// Commands of one pipeline while articles are loaded.
const LOAD_COMMANDS: usize = 8_000;

/// How long Redis may take.
const ANSWER_TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Article {
    nid: String,
    url: String,
    title: String,
    content: String,
}

/// Fields and order as in the paper.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    filter_reason: &'a str,
    doc_id: &'a str,
    filter_status: &'a str,
    status: &'a str,
}

struct Prints {
    title: Fingerprint,
    content: Fingerprint,
}

fn prints(fingerprinter: &Fingerprinter, article: &Article) -> Prints {
    let print = |text: &str| {
        let features = fingerprinter.features(text);
        Fingerprint::of(features.into_iter().map(|feature| (feature.hash, feature.weight)))
    };
    Prints { title: print(&article.title), content: print(&article.content) }
}

/// Two halves of 64 bits, as the paper prints it.
fn doc_id(article: &Article) -> String {
    let rest = format!("{}\n{}", article.title, article.content);
    format!("{:016x}-{:016x}", xxh3_64(article.url.as_bytes()), xxh3_64(rest.as_bytes()))
}

/// The keys of the four tables: table and 16 bits.
fn tables(kind: &str, print: Fingerprint) -> [String; 4] {
    [0, 16, 32, 48].map(|shift| format!("{kind}{shift}:{:04x}", (print.0 >> shift) & 0xffff))
}

/// Notes a new article: its address, its keys, its nid.
fn note(all: &mut Pipeline, article: &Article, prints: &Prints, near: bool) {
    let id = doc_id(article);
    all.set(format!("URL_INDEX{}", article.url), &id).ignore();
    all.set(format!("NID{}", article.nid), &id).ignore();
    for (kind, print) in [("TITLE_INDEX", prints.title), ("CONTENT_INDEX", prints.content)] {
        if near {
            let member = [print.0.to_be_bytes().as_slice(), id.as_bytes()].concat();
            for table in tables(kind, print) {
                all.sadd(table, &member).ignore();
            }
        } else {
            all.set(format!("{kind}{:016x}", print.0), &id).ignore();
        }
    }
}

struct Service {
    connections: Vec<MultiplexedConnection>,
    fingerprinter: Fingerprinter,
    near: bool,
}

impl Service {
    async fn judge(&self, article: &Article) -> RedisResult<(String, &'static str)> {
        let at = xxh3_64(article.nid.as_bytes()) as usize % self.connections.len();
        let mut redis = self.connections[at].clone();
        let known: Option<String> = redis::cmd("GET")
            .arg(format!("URL_INDEX{}", article.url))
            .query_async(&mut redis)
            .await?;
        if let Some(id) = known {
            return Ok((id, "url"));
        }
        let prints = prints(&self.fingerprinter, article);
        let found = if self.near {
            self.nearest(&mut redis, &prints).await?
        } else {
            let keys = [
                format!("TITLE_INDEX{:016x}", prints.title.0),
                format!("CONTENT_INDEX{:016x}", prints.content.0),
            ];
            let both: [Option<String>; 2] =
                redis::cmd("MGET").arg(&keys).query_async(&mut redis).await?;
            let [title, content] = both;
            title.map(|id| (id, "title")).or(content.map(|id| (id, "content")))
        };
        let mut all = pipe();
        if let Some((id, by)) = found {
            // A row for every request, and no new keys after a hit.
            all.set(format!("NID{}", article.nid), &id).ignore();
            all.query_async::<()>(&mut redis).await?;
            return Ok((id, by));
        }
        note(&mut all, article, &prints, self.near);
        all.query_async::<()>(&mut redis).await?;
        Ok((doc_id(article), "new"))
    }

    async fn nearest(
        &self,
        redis: &mut MultiplexedConnection,
        prints: &Prints,
    ) -> RedisResult<Option<(String, &'static str)>> {
        let kinds = [("TITLE_INDEX", prints.title), ("CONTENT_INDEX", prints.content)];
        let mut all = pipe();
        for (kind, print) in kinds {
            for table in tables(kind, print) {
                all.smembers(table);
            }
        }
        let sets: Vec<Vec<Vec<u8>>> = all.query_async(redis).await?;
        for (at, (kind, print)) in kinds.into_iter().enumerate() {
            let members = sets[at * 4..at * 4 + 4].iter().flatten();
            let near = members.filter_map(|member| {
                let (own, id) = member.split_first_chunk::<8>()?;
                Some((Fingerprint(u64::from_be_bytes(*own)).distance(print), id))
            });
            let best = near.filter(|(distance, _)| *distance <= K).min_by_key(|near| near.0);
            if let Some((_, id)) = best {
                let by = if kind == "TITLE_INDEX" { "title" } else { "content" };
                return Ok(Some((String::from_utf8_lossy(id).into_owned(), by)));
            }
        }
        Ok(None)
    }
}

async fn ask(State(service): State<Arc<Service>>, body: Bytes) -> Response {
    let article: Article = match serde_json::from_slice(&body) {
        Ok(article) => article,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    match service.judge(&article).await {
        Ok((id, by)) => {
            let (reason, filter_status) = match by {
                "new" => ("docId_filter good news".to_owned(), "good"),
                by => (format!("docId_filter {by} duplicate"), "duplicate"),
            };
            let answer =
                Answer { filter_reason: &reason, doc_id: &id, filter_status, status: "success" };
            let text = serde_json::to_string(&answer).expect("texts have a form in JSON");
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

type Failure = Box<dyn std::error::Error>;

async fn serve(port: u16, client: Client, near: bool) -> Result<(), Failure> {
    let mut connections = Vec::new();
    // An answer that comes late is an answer.
    let patient = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_TIME));
    for _ in 0..4 {
        connections.push(client.get_multiplexed_async_connection_with_config(&patient).await?);
    }
    let service = Arc::new(Service { connections, fingerprinter: Fingerprinter::default(), near });
    let router = Router::new().route("/docId/getDocId", post(ask)).with_state(service);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}

/// Stores the articles of a file in the databases `equal` and `near` of one server.
fn load(file: &str, redis: &str, databases: [&str; 2]) -> Result<(), Failure> {
    let (fingerprinter, mut lines) =
        (Fingerprinter::default(), BufReader::new(std::fs::File::open(file)?).lines());
    let mut connections = Vec::new();
    for database in databases {
        connections.push(Client::open(format!("{redis}/{database}"))?.get_connection()?);
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    loop {
        let lines: Vec<String> = lines.by_ref().take(4_000).collect::<Result<_, _>>()?;
        if lines.is_empty() {
            return Ok(());
        }
        let keys: Vec<(Article, Prints)> = thread::scope(|scope| {
            let hands: Vec<_> = lines
                .chunks(lines.len().div_ceil(cores))
                .map(|lines| {
                    let fingerprinter = &fingerprinter;
                    scope.spawn(move || {
                        let articles = lines.iter().map(|line| {
                            let article: Article = serde_json::from_str(line)?;
                            let prints = prints(fingerprinter, &article);
                            Ok((article, prints))
                        });
                        articles.collect::<Result<Vec<_>, serde_json::Error>>()
                    })
                })
                .collect();
            let mut all = Vec::new();
            for hand in hands {
                all.extend(hand.join().map_err(|_| "a thread has panicked")??);
            }
            Ok::<_, Failure>(all)
        })?;
        for (at, connection) in connections.iter_mut().enumerate() {
            let mut all = pipe();
            for (article, prints) in &keys {
                note(&mut all, article, prints, at == 1);
                if all.len() >= LOAD_COMMANDS {
                    all.query::<()>(connection)?;
                    all.clear();
                }
            }
            if !all.is_empty() {
                all.query::<()>(connection)?;
            }
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["load", file, redis, equal, near] => load(file, redis, [equal, near]),
        ["serve", port, redis, database, kind @ ("equal" | "near")] => {
            let serve = async {
                let client = Client::open(format!("{redis}/{database}"))?;
                serve(port.parse()?, client, *kind == "near").await
            };
            tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .map_err(Failure::from)
                .and_then(|runtime| runtime.block_on(serve))
        }
        _ => {
            eprintln!("usage: redis-doc-id load FILE REDIS EQUAL NEAR");
            eprintln!("       redis-doc-id serve PORT REDIS DATABASE equal|near");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = result {
        eprintln!("redis-doc-id: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
