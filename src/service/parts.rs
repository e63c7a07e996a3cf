//! The search of a service on a cluster: the parts of the index that it keeps, each by a thread of
//! its own, and the services that keep others. All are asked at a time, in two steps: how common
//! the words of the question are in each part, and by the sum of these figures for candidates,
//! whose scores so are those of one index.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use axum::http::{StatusCode, header};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::index_updater::give_way;
use super::problem::Problem;
use super::shared::ClusterPlace;
use super::{Config as ApiConfig, Error};
use crate::corpus::export::ExportPart;
use crate::corpus::search::{self, Candidate, Config, Figures, Mode, Question, Round, at_once};
use crate::corpus::shared::{SharedCorpus, SharedIndex};
use crate::web::fetch;

/// A look at all versions rests so many times as long as it took.
const REST: u32 = 9;

/// The path at which a service asks another one.
pub(super) const PATH: &str = "/v1/search/part";

/// Most bytes of the answer of a peer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Where the index of a service on a cluster is.
#[derive(Debug, Clone, Default)]
pub struct SearchPlace {
    /// The folder of the parts that it keeps; none if it keeps none.
    pub folder: Option<PathBuf>,
    /// These parts.
    pub parts: Vec<ExportPart>,
    /// URLs of services that keep others.
    pub peers: Vec<String>,
}

/// What a service asks another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartQuestion {
    pub text: String,
    mode: Mode,
    n: usize,
    /// Without it, figures are asked for.
    find: Option<Find>,
}

/// The second step.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    parts: Vec<String>,
    figures: Figures,
    round: Round,
}

/// What it answers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PartAnswer {
    corpus: String,
    figures: BTreeMap<String, Figures>,
    candidates: Vec<Candidate>,
}

/// What all parts that could be asked have found.
pub(super) struct AskedParts {
    pub found: Vec<Candidate>,
    pub documents: u64,
    /// Parts that nobody has answered for.
    pub missing: Vec<String>,
    /// Peers that did not answer, and why.
    pub unanswered: BTreeMap<String, String>,
}

/// The parts of an index that this service can ask.
pub(super) struct SearchParts {
    corpus: String,
    config: Config,
    own: Vec<Arc<SharedIndex>>,
    peers: Vec<Url>,
    client: reqwest::Client,
    token: Option<String>,
    /// Their end ends the threads.
    _stop: Vec<Sender<()>>,
}

impl Drop for SearchParts {
    fn drop(&mut self) {
        for index in &self.own {
            index.search.stop();
        }
    }
}

impl SearchParts {
    /// Opens the parts, and begins to keep them up to date; none if there is nothing to ask.
    pub(super) fn start(
        place: &ClusterPlace,
        config: &Config,
        api: &ApiConfig,
    ) -> Result<Option<Self>, Error> {
        let SearchPlace { folder, parts, peers } = &place.search;
        if folder.is_none() && peers.is_empty() {
            return Ok(None);
        }
        let open = || SharedCorpus::open_to_read(&place.settings, place.texts.as_deref());
        let corpus = open()?;
        let (mut own, mut stop) = (Vec::new(), Vec::new());
        for (folder, part) in
            folder.iter().flat_map(|folder| parts.iter().map(move |p| (folder, p)))
        {
            let index = SharedIndex::open(&corpus, folder, *part, config)?;
            index.check()?;
            own.push(Arc::new(index));
        }
        for index in own.iter().cloned() {
            let (end, told) = channel();
            let (place, interval) = (place.clone(), api.search_interval());
            let name = format!("search-{}", index.part);
            let work = move || keep(&place, &index, &told, interval);
            thread::Builder::new().name(name).spawn(work).map_err(Error::Thread)?;
            stop.push(end);
        }
        let peers = peers.iter().map(|peer| peer_of(peer)).collect::<Result<Vec<_>, _>>()?;
        let tls = fetch::tls(&fetch::Config::default())
            .map_err(|error| Error::Peer { peer: "https".to_owned(), detail: error.to_string() })?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .timeout(config.peer_time.duration())
            .build()
            .map_err(|error| Error::Peer { peer: "all".to_owned(), detail: error.to_string() })?;
        let token = std::fs::read_to_string(&api.token_file).ok();
        let token = token.map(|token| token.trim().to_owned());
        let (corpus, config) = (corpus.identity()?, config.clone());
        Ok(Some(Self { corpus, config, own, peers, client, token, _stop: stop }))
    }

    /// Own parts that have once seen all of the corpus.
    fn ready(&self) -> Vec<&SharedIndex> {
        let all = self.own.iter().map(|index| &**index);
        all.filter(|index| index.search.has_followed()).collect()
    }

    /// Answers another service, by the parts that are kept here.
    pub(super) fn answer(&self, asked: &PartQuestion) -> Result<PartAnswer, Problem> {
        let question = Question::new(asked.mode, &asked.text, asked.n);
        let mut answer = PartAnswer { corpus: self.corpus.clone(), ..PartAnswer::default() };
        let Some(find) = &asked.find else {
            answer.figures = figures(&self.ready(), &question)?;
            return Ok(answer);
        };
        if !find.figures.fits(&question) {
            let detail = "the figures are of other words: both services need the same version";
            return Err(Problem::bad("bad_field", detail));
        }
        let mut parts = self.ready();
        parts.retain(|index| find.parts.contains(&index.part.to_string()));
        if parts.len() != find.parts.len() {
            let detail = "a part that was asked for is not kept here any more";
            return Err(Problem::new(StatusCode::CONFLICT, "part_not_here", detail));
        }
        answer.candidates = candidates(&parts, &question, &find.figures, find.round)?;
        Ok(answer)
    }

    /// Asks all parts.
    pub(super) fn ask(&self, text: &str, mode: Mode, n: usize) -> Result<AskedParts, Problem> {
        let question = Question::new(mode, text, n);
        let own = self.ready();
        let mut asked = PartQuestion { text: text.to_owned(), mode, n, find: None };
        let sent = self.peers.iter().map(|peer| self.send(peer, &asked));
        let sent: Vec<_> = sent.collect();
        let mut held =
            Held { parts: figures(&own, &question)?, of: 0, unanswered: BTreeMap::new() };
        held.of = self.own.first().map_or(0, |index| index.part.of());
        let mut others: Vec<(usize, Vec<String>)> = Vec::new();
        for (at, sent) in sent.into_iter().enumerate() {
            match wait(sent).and_then(|answer| held.take(answer, &self.corpus, &question)) {
                Ok(parts) if parts.is_empty() => {}
                Ok(parts) => others.push((at, parts)),
                Err(why) => drop(held.unanswered.insert(self.name(at), why)),
            }
        }
        if held.parts.is_empty() {
            let detail = "no part of the index can be asked: each is being made, or its service \
                          does not answer";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "search_not_ready", detail));
        }
        let mut sum = Figures::default();
        for own in held.parts.values() {
            sum.add(own);
        }
        let found = search::answer(&question, &sum, &self.config, |round| {
            let mut sent = Vec::new();
            for (at, parts) in &others {
                let (parts, figures) = (parts.clone(), sum.clone());
                asked.find = Some(Find { parts, figures, round });
                sent.push(self.send(&self.peers[*at], &asked));
            }
            let mut found = candidates(&own, &question, &sum, round)?;
            let mut lost = Vec::new();
            for ((at, parts), sent) in others.iter().zip(sent) {
                match wait(sent) {
                    Ok(answer) => found.extend(answer.candidates),
                    Err(why) => {
                        held.unanswered.insert(self.name(*at), why);
                        held.parts.retain(|part, _| !parts.contains(part));
                        lost.push(*at);
                    }
                }
            }
            others.retain(|(at, _)| !lost.contains(at));
            Ok::<_, Problem>(found)
        })?;
        let documents = held.parts.values().map(|figures| figures.documents).sum();
        let all = (1..=held.of).map(|number| format!("{number}/{}", held.of));
        let missing = all.filter(|part| !held.parts.contains_key(part)).collect();
        Ok(AskedParts { found, documents, missing, unanswered: held.unanswered })
    }

    /// How a peer is named in answers.
    fn name(&self, peer: usize) -> String {
        self.peers[peer].origin().ascii_serialization()
    }

    /// Asks a peer, beside all else.
    fn send(&self, peer: &Url, asked: &PartQuestion) -> JoinHandle<Result<PartAnswer, String>> {
        let body = serde_json::to_vec(asked).unwrap_or_default();
        let request = self.client.post(peer.clone()).body(body);
        let mut request = request.header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        Handle::current().spawn(async move {
            let why = |error: reqwest::Error| {
                if error.is_timeout() {
                    return "it gave no answer in time".to_owned();
                }
                if error.is_connect() { "it cannot be reached".to_owned() } else { cause(&error) }
            };
            let mut answer = request.send().await.map_err(why)?;
            let status = answer.status();
            if !status.is_success() {
                return Err(format!("it answered {}", status.as_u16()));
            }
            let mut bytes = Vec::new();
            while let Some(more) = answer.chunk().await.map_err(why)? {
                bytes.extend_from_slice(&more);
                if bytes.len() > ANSWER_BYTES_MAX {
                    return Err(format!("its answer has more than {ANSWER_BYTES_MAX} bytes"));
                }
            }
            let odd = |_| "its answer is none of this version of the program".to_owned();
            serde_json::from_slice(&bytes).map_err(odd)
        })
    }
}

/// What is wrong, without the URL.
fn cause(error: &reqwest::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| "its answer broke off".to_owned())
}

fn wait(sent: JoinHandle<Result<PartAnswer, String>>) -> Result<PartAnswer, String> {
    Handle::current().block_on(sent).unwrap_or_else(|error| Err(error.to_string()))
}

/// The parts that somebody keeps, with their figures.
struct Held {
    parts: BTreeMap<String, Figures>,
    /// How many there are in all; 0 if that is not known.
    of: u64,
    unanswered: BTreeMap<String, String>,
}

impl Held {
    /// Takes in what a peer keeps and nobody else does; returns these parts.
    fn take(
        &mut self,
        answer: PartAnswer,
        corpus: &str,
        question: &Question,
    ) -> Result<Vec<String>, String> {
        if answer.corpus != corpus {
            return Err("it serves another corpus".to_owned());
        }
        let mut taken = Vec::new();
        for (name, figures) in answer.figures {
            let part: ExportPart = name.parse()?;
            self.of = if self.of == 0 { part.of() } else { self.of };
            if part.of() != self.of {
                return Err(format!("it keeps part {name}, and others one of {}", self.of));
            }
            if !figures.fits(question) {
                return Err("it is of another version of this program".to_owned());
            }
            if !self.parts.contains_key(&name) {
                self.parts.insert(name.clone(), figures);
                taken.push(name);
            }
        }
        Ok(taken)
    }
}

fn figures(
    parts: &[&SharedIndex],
    question: &Question,
) -> Result<BTreeMap<String, Figures>, search::Error> {
    let all = at_once(parts, |index| Ok((index.part.to_string(), index.search.figures(question)?)));
    Ok(all?.into_iter().collect())
}

fn candidates(
    parts: &[&SharedIndex],
    question: &Question,
    figures: &Figures,
    round: Round,
) -> Result<Vec<Candidate>, search::Error> {
    let found = at_once(parts, |index| index.search.find(question, figures, round))?;
    Ok(found.into_iter().flatten().collect())
}

/// Reads the URL of a peer.
fn peer_of(text: &str) -> Result<Url, Error> {
    let wrong = |detail: &str| Error::Peer { peer: text.to_owned(), detail: detail.to_owned() };
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| wrong("write http://HOST:PORT"))?;
    if !url.username().is_empty() || url.password().is_some() {
        let detail =
            "the token does not belong in a URL: peers are asked with that of `token_file`";
        return Err(Error::Peer { peer: "...".to_owned(), detail: detail.to_owned() });
    }
    url.join(PATH).map_err(|_| wrong("write http://HOST:PORT"))
}

/// Keeps a part up to date until it is told to end.
fn keep(place: &ClusterPlace, index: &SharedIndex, told: &Receiver<()>, interval: Duration) {
    give_way();
    let (mut corpus, mut complaint) = (None, String::new());
    loop {
        let began = Instant::now();
        let opened = match corpus.take() {
            Some(corpus) => Ok(corpus),
            None => SharedCorpus::open_to_read(&place.settings, place.texts.as_deref()),
        };
        let followed = opened.map_err(search::Error::from).and_then(|opened| {
            let followed = index.follow(&opened)?;
            corpus = Some(opened);
            Ok(followed)
        });
        match followed {
            Ok(_) => complaint.clear(),
            Err(search::Error::Stopped) => return,
            Err(error) if complaint == error.to_string() => {}
            Err(error) => {
                complaint = error.to_string();
                let part = index.part.to_string();
                tracing::warn!(part, complaint, "the index of the search is not up to date");
            }
        }
        let rest = interval.max(began.elapsed().saturating_mul(REST));
        if told.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
