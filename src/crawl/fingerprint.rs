//! Fingerprinting: an answer becomes an article with its links, or a settlement. Pure CPU work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use async_channel::Receiver;

use crate::base::clock::Timestamp;
use crate::corpus::boilerplate::KnownBlocks;
use crate::corpus::clusters::Article;
use crate::corpus::documents::{
    Facts, Keep, KeptHeaders, KeptImage, KeptLink, KeptPage, PageDetails,
};
use crate::corpus::index::LookedAhead;
use crate::frontier::{Lease, Listed, PageCut, Purpose, Reason, RobotsAnswer, Settlement};
use crate::neardup;
use crate::page::{self, Extras, LinkText, Metadata, Moment, Stated, Wanted};
use crate::text::features::{ArticleField, Fingerprinter, Input, Standing};
use crate::urls::{Normalize, PageUrl};
use crate::web::fetch::decode::DecodeError;
use crate::web::fetch::http_date::{http_date, retry_after};
use crate::web::fetch::{Failure, Response, canonical_link};
use crate::web::robots::meta::Directives;

use super::archive::PackedVisit;
use super::looker::OnItsWay;
use super::memory::{HeldBody, HeldMemory, Shared};
use super::visitor::{Visit, VisitAnswer};
use super::{Settings, lists};

/// What a visit has yielded.
#[derive(Debug)]
pub(super) enum Yield {
    /// A page.
    Page(Box<ReadPage>),
    /// A sitemap or feed.
    List(Box<Listed>),
    /// Nothing to judge.
    Settled(Settlement),
    /// Nothing was sent, for want of something of this machine: what the system says.
    Unsent(String),
    /// Nothing was sent, because it was somebody else's turn, for so long at least.
    Later(Duration),
}

/// A page that was read: the article, and what else it says.
#[derive(Debug)]
pub(super) struct ReadPage {
    pub article: Article,
    pub links: Vec<(PageUrl, bool)>,
    /// Feeds that it links to, and whether they are marked nofollow.
    pub feeds: Vec<(PageUrl, bool)>,
    /// Links beyond the limit of a page.
    pub links_beyond: u64,
    pub noindex: bool,
    /// Hashes of the blocks of its main text.
    pub blocks: Vec<u64>,
    /// The article with what was left out of its text, if anything was.
    pub whole: Option<Box<Article>>,
    /// Hashes of those that were left out.
    pub left_out: Vec<u64>,
    /// Why only its start was read, if that is so.
    pub cut: Option<PageCut>,
    /// What is kept of it beside its text.
    pub kept: Option<Box<KeptPage>>,
    /// Hash of its main text without digits, if it is too short to be compared with others.
    pub said: Option<u64>,
    /// What is like it among the contents of the last commit, if that was asked.
    pub ahead: Option<LookedAhead>,
}

/// What fingerprinters share.
#[derive(Debug, Clone, Copy)]
pub(super) struct With<'a> {
    pub settings: &'a Settings,
    pub fingerprinter: &'a Fingerprinter,
    pub known: &'a KnownBlocks,
    pub memory: &'a Shared,
}

/// What those share who work for several crawls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common<'a> {
    pub settings: &'a Settings,
    pub fingerprinter: &'a Fingerprinter,
    pub memory: &'a Shared,
}

/// Fingerprints visits until none can come any more. Pages are looked up before the committer of
/// their crawl gets them.
pub(super) fn run(
    visits: &Receiver<Visit<VisitAnswer>>,
    read: &SyncSender<OnItsWay>,
    common: Common<'_>,
) {
    let Common { settings, fingerprinter, memory } = common;
    while let Ok(visit) = visits.recv_blocking() {
        let Some(home) = visit.way.home.clone() else { continue };
        let with = With { settings, fingerprinter, known: &home.known, memory };
        let visit = fingerprinted(visit, with);
        if !matches!(visit.outcome, Yield::Page(_)) {
            home.deliver(visit);
        } else if read.send((home, visit)).is_err() {
            return;
        }
    }
}

/// Fingerprints a visit.
pub(super) fn fingerprinted(mut visit: Visit<VisitAnswer>, with: With<'_>) -> Visit<Yield> {
    if let Some(exchange) = visit.held.exchange.take() {
        let take = |bytes| with.memory.records.take(bytes);
        let compression = with.settings.warc.compress;
        visit.held.packed = Some(PackedVisit::of(&visit, &exchange, compression, take));
    }
    let Visit { lease, outcome: answer, mut told, mut held, way } = visit;
    let finished = told.finished;
    // A page that breaks the reader is the outcome of that page, not the end of the crawl.
    let outcome =
        catch_unwind(AssertUnwindSafe(|| read(&lease, answer, finished, with, &mut held)));
    let outcome = outcome.unwrap_or_else(|_| {
        tracing::error!(url = %lease.url, "the reader failed on this page");
        Yield::Settled(Settlement::Refused(Reason::Unreadable))
    });
    tracing::trace!(url = %lease.url, "fingerprinted");
    held.shrink(&outcome);
    if let Some(packed) = &mut held.packed {
        packed.note(&outcome);
    }
    if let Yield::Page(page) = &outcome {
        told.cut = page.cut;
        told.links_beyond = Some(page.links_beyond);
    }
    Visit { lease, outcome, told, held, way }
}

fn read(
    lease: &Lease,
    answer: VisitAnswer,
    finished: Timestamp,
    with: With<'_>,
    held: &mut HeldMemory,
) -> Yield {
    let settings = with.settings;
    let mut response = match answer {
        VisitAnswer::Response(Ok(response)) => response,
        VisitAnswer::Later(wait) => return Yield::Later(wait),
        VisitAnswer::Address(Ok(address)) => return Yield::Settled(Settlement::LookedUp(address)),
        VisitAnswer::Response(Err(failure)) | VisitAnswer::Address(Err(failure)) => {
            return failed(failure);
        }
    };
    if let Purpose::Robots { .. } = lease.purpose {
        return Yield::Settled(match response.status {
            429 | 503 => Settlement::Busy(asked_wait(&response, finished)),
            _ => Settlement::Robots(robots_answer(lease, &mut response, with)),
        });
    }
    match response.status {
        200..=299 if lease.purpose == Purpose::Sitemap => lists::sitemap(lease, &response, with),
        200 | 203 if response.has_body => page(lease, &mut response, finished, with, held),
        200 | 203 => Yield::Settled(Settlement::Refused(Reason::NotAPage)),
        202 => Yield::Settled(Settlement::Refused(Reason::NotReady)),
        204 | 205 => Yield::Settled(Settlement::Refused(Reason::NoContent)),
        206 => Yield::Settled(Settlement::Refused(Reason::PartialContent)),
        304 if !lease.validators.is_empty() => Yield::Settled(Settlement::Unmodified),
        300..=303 | 307 | 308 => Yield::Settled(match target(lease, &response, settings) {
            Some(target) => Settlement::Redirect(target),
            // A list to choose from need not name its first choice.
            None if response.status == 300 => Settlement::Refused(Reason::OtherStatus),
            None => Settlement::Refused(Reason::BadRedirect),
        }),
        429 | 503 => Yield::Settled(Settlement::Busy(asked_wait(&response, finished))),
        408 | 500..=599 => {
            Yield::Settled(Settlement::Failed { reason: Reason::HttpError, again: true })
        }
        400..=499 => Yield::Settled(Settlement::Refused(Reason::HttpError)),
        _ => Yield::Settled(Settlement::Refused(Reason::OtherStatus)),
    }
}

fn failed(failure: Failure) -> Yield {
    let (reason, again) = match failure {
        Failure::Refused(_) | Failure::Private(_) => (Reason::AddressRefused, false),
        Failure::Dns(_) => (Reason::Dns, true),
        Failure::Connect(_) => (Reason::Connect, true),
        Failure::Proxy(_) => (Reason::Proxy, true),
        Failure::Tls(_) => (Reason::Tls, true),
        Failure::Timeout(_) => (Reason::Timeout, true),
        Failure::BadResponse(_) => (Reason::BadResponse, true),
        Failure::Exhausted(want) => return Yield::Unsent(want),
        Failure::Panicked => (Reason::Unreadable, false),
    };
    Yield::Settled(Settlement::Failed { reason, again })
}

/// What the status of a robots.txt means. Source: RFC 9309, 2.3.1. A busy server is none of these.
fn robots_answer(lease: &Lease, response: &mut Response, with: With<'_>) -> RobotsAnswer {
    let settings = with.settings;
    match response.status {
        200..=299 => match with.memory.body(response, settings) {
            Ok(HeldBody { mut bytes, .. }) => {
                // One byte more than counts tells that it is longer.
                bytes.truncate(settings.frontier.robots_size_max.bytes().saturating_add(1));
                RobotsAnswer::Rules(bytes, fresh_for(&response.cache_control))
            }
            Err(_) => RobotsAnswer::Unreachable(Reason::BadEncoding),
        },
        300..=399 => match target(lease, response, settings) {
            Some(target) => RobotsAnswer::Redirect(target),
            // A hop that cannot be followed is no licence.
            None => RobotsAnswer::Unreachable(Reason::BadRedirect),
        },
        400..=499 => RobotsAnswer::None,
        _ => RobotsAnswer::Unreachable(Reason::HttpError),
    }
}

/// Reads the age that `Cache-Control` allows; none if it names none. Source: RFC 9111, 5.2.2.
fn fresh_for(cache_control: &str) -> Option<Duration> {
    let directives = cache_control.split(',').map(|part| part.trim().to_ascii_lowercase());
    let age = |directive: String| match directive.split_once('=') {
        None if matches!(directive.as_str(), "no-cache" | "no-store") => Some(0),
        Some(("max-age", seconds)) => seconds.trim_matches('"').parse().ok(),
        _ => None,
    };
    directives.filter_map(age).min().map(Duration::from_secs)
}

fn target(lease: &Lease, response: &Response, settings: &Settings) -> Option<PageUrl> {
    let location = response.location.as_deref()?;
    let target = lease.url.join(location, &settings.normalize).ok()?;
    if target != lease.url {
        return Some(target);
    }
    // The server insists on what a rule takes away, such as a session. The normal form would be a
    // redirect to itself, and the page would be lost; `redirects_max` bounds the way.
    lease.url.join(location, Normalize::none()).ok()
}

/// A date is one of the server's clock: it tells how long to wait whatever ours shows.
fn asked_wait(response: &Response, now: Timestamp) -> Option<Duration> {
    let sent = response.date.as_deref().and_then(|date| http_date(date, now));
    retry_after(response.retry_after.as_deref()?, sent.unwrap_or(now))
}

/// A page that was read, before it becomes an article.
struct FoundPage {
    found: page::Page,
    blocks: page::Blocks,
    left_out: Vec<u64>,
    kept: Option<Box<KeptPage>>,
    cut: Option<PageCut>,
}

/// Unpacks and reads a page; or tells what it is instead.
fn found(
    lease: &Lease,
    response: &mut Response,
    finished: Timestamp,
    with: With<'_>,
    held: &mut HeldMemory,
) -> Result<FoundPage, Yield> {
    let With { settings, known, memory, .. } = with;
    let body = memory.body(response, settings).map_err(|error| packed(&error))?;
    let (limits, taken) = memory.page(&body.bytes, &settings.extract);
    held.page = Some(taken);
    if let Some(yielded) = lists::page(lease, response, &body.bytes, settings) {
        return Err(yielded);
    }
    let input = page::RawPage {
        bytes: &body.bytes,
        content_type: response.content_type.as_deref(),
        url: Some(lease.url.url()),
        fetched: Some(finished),
    };
    let (repeated, keep) = (known.of(lease.host), &settings.keep.keep);
    let (mut found, blocks, extras) =
        page::page_with_extras(&input, &limits, &repeated, wanted(keep));
    if found.binary.is_some() {
        return Err(Yield::Settled(Settlement::Refused(Reason::Binary)));
    }
    let cut = cut(body.cut, &found);
    drop(body);
    let kept = kept(&mut found, extras, response, finished, keep);
    let mut left_out = Vec::new();
    if blocks.whole.is_some() {
        left_out.extend(blocks.keys.iter().filter(|block| repeated.contains(block)));
    }
    Ok(FoundPage { found, blocks, left_out, kept, cut })
}

fn page(
    lease: &Lease,
    response: &mut Response,
    finished: Timestamp,
    with: With<'_>,
    held: &mut HeldMemory,
) -> Yield {
    let With { settings, fingerprinter, .. } = with;
    let FoundPage { found, blocks, left_out, kept, cut } =
        match self::found(lease, response, finished, with, held) {
            Ok(found) => found,
            Err(yielded) => return yielded,
        };
    let directives = directives(&found, response, &settings.frontier.agent);
    let declared = declared(lease, &found, response, &settings.normalize);
    let links_beyond = found.links_beyond;
    let (feeds, links) = found.links.into_iter().partition(|link| link.feed);
    let [links, feeds] = [links, feeds].map(|some| urls(some, directives.nofollow, settings));
    let language = found.language.unwrap_or_default();
    let address = lease.url.as_str().to_owned();
    let media = found.metadata.site.as_deref().unwrap_or_default();
    let fields = [ArticleField { name: "media", value: media }];
    let (title, url) = (&found.title, &address);
    let keys_of = |text: &str| {
        let input = Input { title, text, language: &language, url, fields: &fields };
        let mut keys = neardup::article_keys(fingerprinter, &input);
        keys.standing = Standing {
            shown: found.shown.clone(),
            doubtful: found.quality < settings.dedup.rule.site_quality_min || blocks.left_out > 0,
            quality: Some(thousandths(found.quality)),
            ..Standing::of(url, title, &declared)
        };
        keys
    };
    let (keys, whole) = (keys_of(&found.text), blocks.whole.map(|text| (keys_of(&text), text)));
    let article = Article {
        keys,
        address,
        title: found.title,
        text: found.text,
        language,
        facts: facts(found.metadata),
        left_out: blocks.left_out,
        score: found.popularity,
        terms: directives.terms(),
        declared,
    };
    let words = whole.as_ref().map_or(&article.keys, |(keys, _)| keys).text.words;
    let short = words < settings.dedup.rule.words_min;
    Yield::Page(Box::new(ReadPage {
        noindex: settings.limits.obey_noindex && directives.forbids_storing(finished),
        said: short.then(|| without_digits(&article.text)),
        whole: whole
            .map(|(keys, text)| Box::new(Article { keys, text, left_out: 0, ..article.clone() })),
        ahead: None,
        blocks: blocks.keys,
        left_out,
        kept,
        article,
        links,
        feeds,
        links_beyond,
        cut,
    }))
}

#[expect(clippy::cast_sign_loss, reason = "clamped to zero and above")]
fn thousandths(part: f32) -> u16 {
    (part.clamp(0.0, 1.0) * 1000.0).round() as u16
}

/// What has to be made of pages so that it can be kept.
fn wanted(keep: &[Keep]) -> Wanted {
    Wanted { markdown: keep.contains(&Keep::Markdown), links: keep.contains(&Keep::Links) }
}

/// What is kept of a page beside its text.
fn kept(
    found: &mut page::Page,
    extras: Extras,
    response: &Response,
    fetched: Timestamp,
    keep: &[Keep],
) -> Option<Box<KeptPage>> {
    if keep.is_empty() {
        return None;
    }
    let links = extras.links.into_iter().map(|LinkText { url, text, nofollow }| KeptLink {
        url: url.into(),
        text,
        nofollow,
    });
    let mut details =
        PageDetails { markdown: extras.markdown, links: links.collect(), images: Vec::new() };
    if keep.contains(&Keep::Images) {
        let images = std::mem::take(&mut found.metadata.images).into_iter();
        details.images = images
            .map(|image| KeptImage {
                url: image.url,
                alt: image.alt.unwrap_or_default(),
                width: image.width.map(u64::from),
                height: image.height.map(u64::from),
            })
            .collect();
    }
    let (mut status, mut headers) = (0, KeptHeaders::default());
    if keep.contains(&Keep::Headers) {
        let own = |header: &Option<String>| header.clone().unwrap_or_default();
        status = response.status;
        headers = KeptHeaders {
            content_type: own(&response.content_type),
            last_modified: own(&response.last_modified),
            etag: own(&response.etag),
            content_language: response.content_language.clone(),
        };
    }
    Some(Box::new(KeptPage::new(keep, fetched, status, headers, &details)))
}

/// The URLs of links, and whether they are marked nofollow.
fn urls(links: Vec<page::Link>, nofollow: bool, settings: &Settings) -> Vec<(PageUrl, bool)> {
    let urls = links.into_iter().filter_map(|link| {
        let url = PageUrl::from_url(link.url, &settings.normalize).ok()?;
        Some((url, link.nofollow || nofollow))
    });
    urls.collect()
}

/// What becomes of a page that cannot be unpacked.
fn packed(error: &DecodeError) -> Yield {
    let is_bomb = matches!(error, DecodeError::Bomb { .. });
    let reason = if is_bomb { Reason::Bomb } else { Reason::BadEncoding };
    Yield::Settled(Settlement::Refused(reason))
}

/// Why only the start of a page was read, if that is so.
fn cut(broke_off: bool, page: &page::Page) -> Option<PageCut> {
    match page.cut {
        Some(page::Cut::Tree) => Some(PageCut::Tree),
        _ if broke_off => Some(PageCut::Body),
        Some(page::Cut::Input) => Some(PageCut::Input),
        None => None,
    }
}

/// Hash of a text that is the same for texts which differ in numbers only.
fn without_digits(text: &str) -> u64 {
    let rest: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    xxhash_rust::xxh3::xxh3_64(rest.as_bytes())
}

/// The URL that a page names as canonical, in its head or else in a header; empty for none, its
/// own, or one that is no web URL.
fn declared(lease: &Lease, page: &page::Page, response: &Response, rules: &Normalize) -> String {
    let in_header = || response.links.iter().find_map(|value| canonical_link(value));
    let Some(named) = page.canonical.as_deref().or_else(in_header) else { return String::new() };
    let named = lease.url.join(named, rules).ok().filter(|named| *named != lease.url);
    named.map_or(String::new(), |named| named.as_str().to_owned())
}

fn facts(said: Metadata) -> Facts {
    let date = |stated: Option<Stated<Moment>>| {
        stated.map(|stated| stated.value.to_string()).unwrap_or_default()
    };
    Facts {
        author: said.byline(),
        published: date(said.published),
        modified: date(said.modified),
        site: said.site.unwrap_or_default(),
        description: said.description.unwrap_or_default(),
        ..Facts::default()
    }
}

fn directives(page: &page::Page, response: &Response, agent: &str) -> Directives {
    let mut all = Directives::default();
    for (name, content) in &page.meta_robots {
        all = all.merge(&Directives::from_meta(name, content, agent));
    }
    for tag in &response.robots_tags {
        all = all.merge(&Directives::from_header(tag, agent));
    }
    if let Some(value) = &response.tdm_reservation {
        all = all.merge(&Directives::from_reservation(value));
    }
    all
}
