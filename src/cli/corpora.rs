//! What commands that read files of documents share: inputs, names of fields, filters, progress.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::base::units::Size;
use crate::config::memory;
use crate::corpus::files::{FieldNames, InputOptions, KeptFormat, Position, Reasons};
use crate::text::quality::{Config, Personal, Rule};

use super::place::SharedStoreArg;
use super::screen::number;

/// What is read.
#[derive(Debug, ClapArgs)]
pub(crate) struct InputArgs {
    /// Files, folders with all below them, or s3://, gs:// and az:// URLs (a folder ends with `/`):
    /// JSON lines (plain, gzip, zstd), Parquet, WARC and WET, HTML, text, told by their content;
    /// `-` for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub files: Vec<PathBuf>,
    /// Field or column of the text; found by itself where there is one candidate
    #[arg(long, value_name = "NAME")]
    pub text_field: Option<String>,
    /// Field of the title
    #[arg(long, value_name = "NAME")]
    pub title_field: Option<String>,
    /// Field of the identifier
    #[arg(long, value_name = "NAME")]
    pub id_field: Option<String>,
    /// Field of the URL
    #[arg(long, value_name = "NAME")]
    pub url_field: Option<String>,
    /// Field of the popularity: of several copies, the most popular one is kept
    #[arg(long, value_name = "NAME")]
    pub popularity_field: Option<String>,
    /// Field of the date of publication
    #[arg(long, value_name = "NAME")]
    pub date_field: Option<String>,
    /// Read what is not UTF-8 with replacement characters, instead of rejecting it
    #[arg(long)]
    pub repair_utf8: bool,
    /// Threads that read documents; 0 for one per core. The result is the same for any number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

impl InputArgs {
    /// Returns how documents are read.
    pub(super) fn options(&self) -> InputOptions {
        InputOptions {
            fields: FieldNames {
                text: self.text_field.clone(),
                title: self.title_field.clone(),
                id: self.id_field.clone(),
                url: self.url_field.clone(),
                popularity: self.popularity_field.clone(),
                date: self.date_field.clone(),
            },
            repair_utf8: self.repair_utf8,
            ..InputOptions::default()
        }
    }
}

/// Which texts are kept out; they win over the section `filters` of the settings file.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Keep out what these published rules keep out
    #[arg(long = "filter", value_name = "RULE", value_delimiter = ',', value_enum)]
    pub rules: Vec<RuleArg>,
    /// Keep only these languages (ISO 639-1)
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub languages: Vec<String>,
    /// Least certainty of the language, 0 to 1 [default: 0.65]
    #[arg(long, value_name = "SHARE")]
    pub min_certainty: Option<f32>,
    /// Least share of a text that is in these languages, 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub min_language_share: Option<f32>,
    /// Least words of a text
    #[arg(long, value_name = "N")]
    pub min_words: Option<usize>,
    /// Most words of a text
    #[arg(long, value_name = "N")]
    pub max_words: Option<usize>,
    /// Least characters of a text
    #[arg(long, value_name = "N")]
    pub min_chars: Option<usize>,
    /// Most characters of a text
    #[arg(long, value_name = "N")]
    pub max_chars: Option<usize>,
    /// Keep out texts with words of this file, one a line
    #[arg(long, value_name = "FILE")]
    pub blocked_words: Option<PathBuf>,
    /// Replace personal data by made-up data of its kind
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_enum)]
    pub mask: Vec<MaskArg>,
}

impl FilterArgs {
    /// Lays the flags over the settings.
    pub(super) fn over(&self, config: &mut Config) -> Result<()> {
        if !self.rules.is_empty() {
            config.rules = self.rules.iter().map(|rule| (*rule).into()).collect();
        }
        if !self.languages.is_empty() {
            config.languages.clone_from(&self.languages);
        }
        if !self.mask.is_empty() {
            config.mask = self.mask.iter().map(|kind| (*kind).into()).collect();
        }
        let set = |to: &mut usize, from: Option<usize>| *to = from.unwrap_or(*to);
        set(&mut config.words_min, self.min_words);
        set(&mut config.words_max, self.max_words);
        set(&mut config.chars_min, self.min_chars);
        set(&mut config.chars_max, self.max_chars);
        if let Some(certainty) = self.min_certainty {
            config.language_certainty_min = certainty;
        }
        if let Some(share) = self.min_language_share {
            config.language_share_min = share;
        }
        if let Some(path) = &self.blocked_words {
            config.blocked_words_file = path.display().to_string();
        }
        config.check().map_err(|detail| super::exit::Usage(detail).into())
    }
}

/// A published rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleArg {
    /// Lines and paragraphs that a text repeats
    RepeatedLines,
    /// The same, and runs of words: Gopher's rules of repetition
    GopherRepetition,
    /// Gopher's rules of quality
    GopherQuality,
    /// C4's rules; lines that are no sentences go
    C4,
    /// FineWeb's rules
    Fineweb,
}

impl From<RuleArg> for Rule {
    fn from(arg: RuleArg) -> Self {
        match arg {
            RuleArg::RepeatedLines => Self::RepeatedLines,
            RuleArg::GopherRepetition => Self::GopherRepetition,
            RuleArg::GopherQuality => Self::GopherQuality,
            RuleArg::C4 => Self::C4,
            RuleArg::Fineweb => Self::Fineweb,
        }
    }
}

/// A kind of personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MaskArg {
    /// Mail addresses
    Mail,
    /// Public IP addresses
    Ip,
    /// Telephone numbers
    Phone,
}

impl From<MaskArg> for Personal {
    fn from(arg: MaskArg) -> Self {
        match arg {
            MaskArg::Mail => Self::Mail,
            MaskArg::Ip => Self::Ip,
            MaskArg::Phone => Self::Phone,
        }
    }
}

/// In what form documents are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeptArg {
    /// Lines of JSON
    Jsonl,
    /// A table, of tables with the same columns
    Parquet,
}

impl From<KeptArg> for KeptFormat {
    fn from(arg: KeptArg) -> Self {
        match arg {
            KeptArg::Jsonl => Self::Lines,
            KeptArg::Parquet => Self::Parquet,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub store: SharedStoreArg,
    /// Documents that are expected at least in a cluster that is begun: keys of so many have room
    /// as the first ones come, others as they come [default: 1]
    #[arg(long, value_name = "N")]
    pub documents: Option<u64>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Settings file, of which the sections `dedup`, `urls`, `filters` and `store` are used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Memory to take: `512 MiB`, `2 GB`; 0 for an eighth of the machine's, 256 MiB to 1 GiB
    #[arg(long, value_name = "SIZE", value_parser = memory::parse)]
    pub memory: Option<Size>,
}

/// A line that shows how far a command has come, with the time that is left.
pub(super) struct ReadingBar(ProgressBar);

impl ReadingBar {
    /// Starts one, on a terminal.
    pub(super) fn start(quiet: bool) -> Result<Self> {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}")?);
        bar.enable_steady_tick(Duration::from_millis(200));
        Ok(Self(bar))
    }

    /// Shows how much was read, and what was found.
    pub(super) fn show(&self, position: Position, found: &str) {
        let Position { read, of } = position;
        let share = read as f64 / of.max(1) as f64;
        let elapsed = self.0.elapsed().as_secs_f64();
        // Of the first moments nothing can be told.
        let left = if share > 0.01 && share < 1.0 && elapsed > 2.0 {
            format!(", {} left", time(elapsed * (1.0 - share) / share))
        } else {
            String::new()
        };
        self.0.set_message(format!("{:.0} % read, {found}{left}", share * 100.0));
    }

    /// Ends it.
    pub(super) fn end(self) {
        self.0.finish_and_clear();
    }
}

/// Seconds in the unit that fits.
fn time(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Counts of records that are no documents, by reason, for a screen.
pub(super) fn reasons(reasons: &Reasons) -> Vec<(String, String)> {
    let Reasons { rejected, filtered, skipped } = reasons;
    let lists = [("rejected", rejected), ("filtered", filtered), ("skipped", skipped)];
    let all = lists.into_iter().flat_map(|(what, counts)| {
        counts.iter().map(move |(reason, count)| (format!("{what}: {reason}"), number(*count)))
    });
    all.collect()
}
