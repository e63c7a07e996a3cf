//! `crawl extract`: single pages, and lines of them.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use crate::base::clock::Clock;
use crate::crawl;
use crate::page::{self, BatchOutput, BlockVerdict, Limits, Memory, Moment, Page, Stated};
use crate::urls::PageUrl;
use anyhow::{Context as _, Result};

use super::args::{ExtractArgs, ExtractFormat};
use super::batch::{self, LineAnswer};
use super::exit::{Exit, Usage};
use super::screen;

/// The bytes of a file, or of standard input.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<u8>> {
    let Some(path) = path else {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        return Ok(bytes);
    };
    std::fs::read(path)
        .map_err(|error| Usage(error.to_string()))
        .with_context(|| format!("cannot read {}", path.display()))
}

/// `crawl extract`.
pub(super) fn extract(args: &ExtractArgs, json: bool) -> Result<Exit> {
    let mut out = std::io::stdout().lock();
    if args.feature_names {
        for name in page::feature_names() {
            writeln!(out, "{name}")?;
        }
        return Ok(Exit::Done);
    }
    if args.jsonl {
        drop(out);
        let output = match args.format {
            _ if args.why => BatchOutput::Reasons,
            ExtractFormat::Markdown => BatchOutput::Markdown,
            ExtractFormat::Text | ExtractFormat::Json => BatchOutput::Text,
        };
        let memory = Memory::new(crawl::RunLimits::default().pages_size_max);
        let answer: Arc<LineAnswer> =
            Arc::new(move |line: &str| page::batch_line(line, output, &memory));
        return batch::run(args.threads, &answer);
    }
    let bytes = read(args.file.as_deref())?;
    let url = match &args.url {
        Some(text) => Some(PageUrl::parse(text).map_err(|error| Usage(error.to_string()))?),
        None => None,
    };
    let input = page::RawPage {
        bytes: &bytes,
        content_type: args.content_type.as_deref(),
        url: url.as_ref().map(PageUrl::url),
        fetched: Some(Clock::System.now()),
    };
    let limits = Limits::default();
    let json = json || args.format == ExtractFormat::Json;
    if args.why {
        let (_, found) = page::page_and_why(&input, &limits);
        return if json { screen::json(&found) } else { why(&found.blocks, &mut out) };
    }
    let page = match args.format {
        ExtractFormat::Markdown => page::page_as_markdown(&input, &limits),
        ExtractFormat::Text | ExtractFormat::Json => page::page(&input, &limits),
    };
    if json {
        return screen::json(&described(&page));
    }
    if let Some(what) = page.binary {
        let file = args.file.as_deref();
        let name = file.map_or("the input".to_owned(), |path| path.display().to_string());
        return Err(Usage(format!("{name} is {what} and no page")).into());
    }
    writeln!(out, "{}", screen::text(&page.text))?;
    Ok(Exit::Done)
}

/// Characters of a block that are shown.
const BLOCK_CHARS: usize = 70;

fn why(verdicts: &[BlockVerdict], out: &mut impl std::io::Write) -> Result<Exit> {
    for verdict in verdicts {
        let text: String =
            verdict.text.replace(['\n', '\t'], " ").chars().take(BLOCK_CHARS).collect();
        let word = if verdict.kept { "kept   " } else { "dropped" };
        writeln!(out, "{word} {:3.0} %  {}", verdict.chance * 100.0, screen::shown(&text))?;
        let reasons: Vec<String> =
            verdict.reasons.iter().map(|(about, effect)| format!("{about} {effect:+.1}")).collect();
        if !reasons.is_empty() {
            writeln!(out, "               {}", reasons.join(", "))?;
        }
    }
    Ok(Exit::Done)
}

/// A page with all that is known of it, and where each fact comes from.
fn described(page: &Page) -> serde_json::Value {
    let said = &page.metadata;
    let date = |date: &Option<Stated<Moment>>| {
        date.as_ref().map(|date| {
            serde_json::json!({
                "value": date.value.to_string(),
                "source": date.source,
                "confidence": date.confidence,
            })
        })
    };
    serde_json::json!({
        "title": said.title,
        "authors": said.authors,
        "published": date(&said.published),
        "modified": date(&said.modified),
        "site": said.site,
        "description": said.description,
        "licence": said.licence,
        "keywords": said.keywords,
        "alternates": said.alternates,
        "images": said.images,
        "text": page.text,
        "kind": page.kind,
        "quality": page.quality,
        "language": page.language,
        "binary": page.binary,
        "charset": page.charset.name,
        "charsetSource": page.charset.source.as_str(),
        "charsetOverruled": page.charset.overruled,
        "replacements": page.charset.replacements,
        "charsetQuality": page.charset.quality,
        "canonical": page.canonical,
        "popularity": page.popularity,
        "links": page.links.iter().map(|link| link.url.as_str()).collect::<Vec<_>>(),
    })
}
