//! The page beside an export that says what is in it: for people, and for programs that read its
//! head.

use std::fmt::Write as _;

use super::tally::{Tally, top};
use super::walk::List;
use super::{ExportPlan, Unsettled};
use crate::base::clock::Timestamp;

/// Name of the page.
pub(super) const NAME: &str = "README.md";

/// By this line an export knows its own page.
pub(super) const MARK: &str = "<!-- written by `crawl export` -->";

/// Languages and hosts that are listed.
const LISTED_MAX: usize = 20;

/// Languages that the head names.
const LANGUAGES_MAX: usize = 50;

/// What the page tells of.
pub(super) struct Facts<'a> {
    pub plan: &'a ExportPlan,
    /// Number of the store.
    pub store: Option<u64>,
    pub counts: &'a Tally,
    /// The files.
    pub names: &'a [String],
}

/// Writes the page.
pub(super) fn card(facts: &Facts<'_>) -> String {
    let mut page = String::new();
    let written = head(&mut page, facts).and_then(|()| body(&mut page, facts));
    written.expect("writing to a string cannot fail");
    page
}

/// A language that is one: two letters, or three.
fn is_language(name: &str) -> bool {
    (2..=3).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// The head that the data sets of Hugging Face have.
///
/// Source: <https://huggingface.co/docs/hub/datasets-manual-configuration>.
fn head(page: &mut String, facts: &Facts<'_>) -> std::fmt::Result {
    page.push_str("---\nlicense: unknown\n");
    let (languages, _) = top(&facts.counts.languages, LANGUAGES_MAX);
    let languages: Vec<&str> =
        languages.into_iter().map(|(name, _)| name).filter(|name| is_language(name)).collect();
    if !languages.is_empty() {
        writeln!(page, "language:\n- {}", languages.join("\n- "))?;
    }
    let format = facts.plan.format;
    if !format.is_markdown {
        let ending = format.file_ending(format.compression(facts.plan.compression));
        page.push_str("configs:\n");
        for list in [List::Documents, List::Duplicates] {
            // Of dropped copies, those in the format of the documents if there are such.
            let name = list.as_str();
            let is_one = |file: &&String| file.starts_with(name);
            let same = facts.names.iter().filter(is_one).find(|file| file.ends_with(&ending));
            let Some(file) = same.or_else(|| facts.names.iter().find(is_one)) else { continue };
            let ending = file.split_once('.').map_or("", |(_, ending)| ending);
            let number = if facts.plan.shard.is_some() { "-*" } else { "" };
            writeln!(page, "- config_name: {name}\n  data_files: \"{name}{number}.{ending}\"")?;
            if list == List::Documents {
                page.push_str("  default: true\n");
            }
        }
    }
    page.push_str("---\n\n");
    Ok(())
}

fn day(time: i64) -> String {
    Timestamp(time).to_string().chars().take(10).collect()
}

fn body(page: &mut String, facts: &Facts<'_>) -> std::fmt::Result {
    let Facts { plan, store, counts, .. } = facts;
    writeln!(page, "{MARK}\n\n# Deduplicated web corpus\n")?;
    writeln!(
        page,
        "{} documents, each once, and {} copies of them that are not here.\n",
        counts.documents, counts.duplicates
    )?;
    writeln!(page, "| | |\n|---|---|")?;
    writeln!(page, "| made by | {} |", super::PROGRAM)?;
    if let (Some(number), Some(newest)) = (store, counts.newest) {
        let newest = Timestamp(newest);
        writeln!(page, "| store | {number}, as it was when the newest copy came, {newest} |")?;
    }
    if let Some((first, last)) = counts.seen {
        writeln!(page, "| first copies came | {} to {} |", day(first), day(last))?;
    }
    if let Some((first, last)) = counts.published {
        writeln!(page, "| published, as pages say | {} to {} |", day(first), day(last))?;
    }
    if let Some(filter) = &plan.filter {
        let shown = filter.to_string().replace('|', "\\|").replace(['\n', '\r'], " ");
        writeln!(page, "| only | `{shown}` ({} other documents) |", counts.filtered)?;
    }
    if let Some(filters) = plan.filters.named()
        && !filters.is_empty()
    {
        let shown = filters.iter().map(|(name, value)| format!("{name} {value}"));
        writeln!(page, "| filters | {} |", shown.collect::<Vec<_>>().join("; "))?;
    }
    writeln!(page, "| fields | {} |\n", plan.fields.names().join(", "))?;
    writeln!(page, "## Files\n")?;
    writeln!(page, "- `documents`: the documents, in the order in which they came")?;
    writeln!(
        page,
        "- `duplicates`: every copy that was dropped, the `docId` of its document, why"
    )?;
    writeln!(page, "- `withheld`: documents that their pages, or filters, keep out, and why")?;
    writeln!(page, "- `manifest.json`: lengths, checksums (XXH3, 128 bits), settings, counts\n")?;
    table(page, "Language", &counts.languages, 0)?;
    table(page, "Host", &counts.hosts, counts.other_hosts)?;
    filters(page, counts)?;
    licence(page, facts)?;
    judged(page, plan.unsettled, counts)
}

fn table(
    page: &mut String,
    name: &str,
    counts: &std::collections::BTreeMap<String, u64>,
    others: u64,
) -> std::fmt::Result {
    let (listed, rest) = top(counts, LISTED_MAX);
    writeln!(page, "## {name}s\n\n| {name} | Documents |\n|---|--:|")?;
    for (value, count) in listed {
        let value = if value.is_empty() { "not known" } else { value };
        writeln!(page, "| {} | {count} |", value.replace('|', "\\|"))?;
    }
    if rest + others > 0 {
        writeln!(page, "| others | {} |", rest + others)?;
    }
    page.push('\n');
    Ok(())
}

fn filters(page: &mut String, counts: &Tally) -> std::fmt::Result {
    if counts.filtered_by.is_empty() && counts.masked == 0 {
        return Ok(());
    }
    writeln!(page, "## Filters\n")?;
    for (reason, count) in &counts.filtered_by {
        writeln!(page, "- {count} documents are not here: {reason}")?;
    }
    if counts.masked > 0 {
        let masked = counts.masked;
        writeln!(page, "- {masked} pieces of personal data are replaced by made-up ones")?;
    }
    page.push('\n');
    Ok(())
}

fn licence(page: &mut String, facts: &Facts<'_>) -> std::fmt::Result {
    let Facts { plan, counts, .. } = facts;
    writeln!(page, "## Licence and terms\n")?;
    writeln!(
        page,
        "The texts belong to those who published them; their licences are not known. \
        Rights are to be cleared by whoever uses them.\n"
    )?;
    let honour = &plan.config.honour;
    let honoured = [
        (honour.noarchive, "noarchive"),
        (honour.noai, "noai"),
        (honour.tdm_reservation, "tdm-reservation"),
        (honour.unavailable_after, "unavailable_after"),
    ];
    let honoured: Vec<&str> =
        honoured.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name).collect();
    if honoured.is_empty() {
        writeln!(page, "What pages ask of those who use their text was not honoured.\n")?;
    } else {
        writeln!(page, "What pages ask is honoured: {}.\n", honoured.join(", "))?;
    }
    for (reason, count) in &counts.withheld {
        let what =
            if reason == "noarchive" { "are here without their text" } else { "are not here" };
        writeln!(page, "- {count} documents {what}: {reason}")?;
    }
    for (field, count) in &counts.missing {
        writeln!(
            page,
            "- {count} documents have no `{field}`: it was not kept when they were read"
        )?;
    }
    if !counts.withheld.is_empty() || !counts.missing.is_empty() {
        page.push('\n');
    }
    Ok(())
}

fn judged(page: &mut String, unsettled: Unsettled, counts: &Tally) -> std::fmt::Result {
    writeln!(page, "## How duplicates were judged\n")?;
    writeln!(
        page,
        "Two pages are one document if their normalised texts are equal, or if they share \
        a key (fingerprints of title and text within some bits, long sentences, bands of a sketch) \
        and the comparison of their sketches confirms it. Of each document the most popular copy \
        is here. `reason` is the key by which a copy was found, `similarity` the estimated share \
        of text that it has in common with the copy that is here, `distance` the bits between the \
        fingerprints. \
        URLs with the reason `skipped_by_rule` or `skipped_by_feed` were not fetched."
    )?;
    if unsettled == Unsettled::Apart && counts.unsettled > 0 {
        writeln!(
            page,
            "\n{} documents may turn out to be copies of others: they are marked \
            `unsettled`.",
            counts.unsettled
        )?;
    }
    Ok(())
}
