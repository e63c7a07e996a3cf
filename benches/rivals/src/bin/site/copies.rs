//! The site of known copies: which page is a copy of which, with which edits, and which pages only
//! share a notice.
//!
//! Of ten pages, one is a copy of another one (in turn by each [`Edit`]), one belongs to a series
//! whose pages share a notice, and eight are articles. One in ten articles has a copy.

use std::fmt::Write as _;
use std::thread;

use uniqcrawl::base::threads::each_part;

use super::language::{Random, Sentence, Vocabulary, Writer, joined};
use super::layout::{Frame, Link, Shown};

/// What was done to an article to make its copy. All have a date and an author of their own, and
/// the frame of the host on which they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Nothing else.
    Frame,
    /// So many words in a hundred are others.
    Words(usize),
    /// One sentence in ten is left out, and as many are added.
    Sentences,
    /// The paragraphs come in another order.
    Order,
    /// The last 40 % of the paragraphs are left out.
    Cut,
    /// Another title, and 5 % of the words.
    Title,
    /// A note before, an advertisement in the middle, and 2 % of the words.
    Note,
    /// Title, note, sentences, and 5 % of the words.
    Mixed,
}

pub const EDITS: [Edit; 10] = [
    Edit::Frame,
    Edit::Words(2),
    Edit::Sentences,
    Edit::Words(10),
    Edit::Order,
    Edit::Words(25),
    Edit::Cut,
    Edit::Title,
    Edit::Note,
    Edit::Mixed,
];

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Article,
    Copy {
        original: u64,
        edit: Edit,
    },
    /// One of a series; `long` if three quarters of its text are the notice, otherwise a half.
    Series {
        series: u64,
        long: bool,
    },
}

/// Pages of one series, about.
const SERIES_PAGES: u64 = 25;

/// Pages of which one is a copy.
const TEN: u64 = 10;

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

pub struct Site {
    pages: u64,
    hosts: Vec<String>,
    vocabulary: Vocabulary,
    frames: Vec<Frame>,
    /// Of each page, for the links to it.
    titles: Vec<String>,
}

/// Title, author and date, and text.
struct Article {
    title: String,
    byline: String,
    paragraphs: Vec<Vec<Sentence>>,
}

impl Site {
    /// `hosts` are base URLs without a slash at the end.
    pub fn new(pages: u64, hosts: Vec<String>, vocabulary: Vocabulary) -> Self {
        let frames = (0..hosts.len()).map(|host| Frame::new(host, &vocabulary)).collect();
        let mut site = Self { pages, hosts, vocabulary, frames, titles: Vec::new() };
        site.titles = site.each(|number| site.title(number));
        site
    }

    /// What `make` says of each page, in their order; made on all cores.
    pub fn each<T: Send>(&self, make: impl Fn(u64) -> T + Sync) -> Vec<T> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        each_part(0..self.pages as usize, threads, |number| make(number as u64))
    }

    /// The host on which a page stands; pages of a host are every n-th ones.
    pub fn host(&self, number: u64) -> usize {
        (number % self.hosts.len() as u64) as usize
    }

    pub fn url(&self, number: u64) -> String {
        format!("{}/p/{number}", self.hosts[self.host(number)])
    }

    pub fn kind(&self, number: u64) -> Kind {
        let (ten, tens) = (number / TEN, self.pages / TEN);
        let hosts = self.hosts.len() as u64;
        match number % TEN {
            7 if ten < tens => {
                // A step without a common divisor meets each article once.
                let step = (7919..).find(|step| common_divisor(*step, tens) == 1).unwrap_or(1);
                let original = (ten * step + 3) % tens * TEN + 1;
                Kind::Copy { original, edit: EDITS[ten as usize % EDITS.len()] }
            }
            3 => {
                let each = (tens / SERIES_PAGES / hosts).max(1);
                let series = number % hosts + hosts * (ten / hosts % each);
                Kind::Series { series, long: series / hosts % 2 == 1 }
            }
            _ => Kind::Article,
        }
    }

    fn writer(&self, number: u64) -> Writer<'_> {
        Writer::new(&self.vocabulary, number)
    }

    /// The article that a page is, without what was done to it.
    fn article(&self, number: u64) -> Article {
        let mut writer = self.writer(number);
        let (title, byline) = (writer.title(), writer.byline());
        let count = 5 + writer.random.below(9);
        Article { title, byline, paragraphs: (0..count).map(|_| writer.paragraph()).collect() }
    }

    /// The beginning of an article, and the notice of its series.
    fn of_series(&self, number: u64, series: u64, long: bool) -> Article {
        let names: Vec<&str> = self.vocabulary.language.series.trim().lines().collect();
        let mut article = self.article(number);
        let mut writer = self.writer((1 << 40) + series);
        let name = names[series as usize % names.len()];
        article.title = format!("{name}: {}", article.title);
        let (own, notice) = if long { (2, 6) } else { (4, 4) };
        article.paragraphs.truncate(own);
        article.paragraphs.extend((0..notice).map(|_| writer.paragraph()));
        article
    }

    fn copy(&self, number: u64, original: u64, edit: Edit) -> Article {
        let mut article = self.article(original);
        let mut writer = self.writer((1 << 41) + number);
        article.byline = writer.byline();
        let paragraphs = &mut article.paragraphs;
        match edit {
            Edit::Frame => {}
            Edit::Words(share) => change_words(paragraphs, share, &mut writer),
            Edit::Sentences => change_sentences(paragraphs, &mut writer),
            Edit::Order => reorder(paragraphs, &mut writer.random),
            Edit::Cut => paragraphs.truncate((paragraphs.len() * 3).div_ceil(5)),
            Edit::Title => change_words(paragraphs, 5, &mut writer),
            Edit::Note => change_words(paragraphs, 2, &mut writer),
            Edit::Mixed => {
                change_sentences(paragraphs, &mut writer);
                change_words(paragraphs, 5, &mut writer);
            }
        }
        if matches!(edit, Edit::Title | Edit::Mixed) {
            article.title = writer.title();
        }
        if matches!(edit, Edit::Note | Edit::Mixed) {
            paragraphs.insert(0, vec![writer.sentence(), writer.sentence()]);
            let appeal = vec![vec![self.vocabulary.language.appeal.to_owned()]];
            paragraphs.insert(paragraphs.len() / 2, appeal);
        }
        article
    }

    fn shown(&self, number: u64) -> Article {
        match self.kind(number) {
            Kind::Article => self.article(number),
            Kind::Copy { original, edit } => self.copy(number, original, edit),
            Kind::Series { series, long } => self.of_series(number, series, long),
        }
    }

    fn title(&self, number: u64) -> String {
        match self.kind(number) {
            Kind::Article => self.writer(number).title(),
            _ => self.shown(number).title,
        }
    }

    /// Pages of the same host that a page links to: two children in a tree, so that each page is
    /// reached, and others.
    fn linked(&self, number: u64, count: u64) -> Vec<u64> {
        let hosts = self.hosts.len() as u64;
        let (host, at) = (number % hosts, number / hosts);
        let all = (self.pages - host).div_ceil(hosts);
        let mut random = Random::new((1 << 42) + number);
        let others = (2..count).map(|_| random.below(all as usize) as u64);
        let places = [at * 2 + 1, at * 2 + 2].into_iter().chain(others);
        places.filter(|place| *place < all).map(|place| place * hosts + host).collect()
    }

    fn links(&self, pages: &[u64]) -> Vec<Link> {
        let title = |page: u64| self.titles[page as usize].clone();
        pages.iter().map(|page| Link { href: format!("/p/{page}"), text: title(*page) }).collect()
    }

    pub fn html(&self, number: u64) -> String {
        let article = self.shown(number);
        let linked = self.links(&self.linked(number, 20));
        let language = self.vocabulary.language;
        let paragraphs = article.paragraphs.iter().map(|sentences| {
            let sentences: Vec<String> =
                sentences.iter().map(|words| joined(language, words)).collect();
            sentences.join(language.between)
        });
        let shown = Shown {
            title: &article.title,
            byline: &article.byline,
            paragraphs: paragraphs.collect(),
            related: &linked[..linked.len().min(12)],
            most_read: &linked[linked.len().min(12)..],
        };
        self.frames[self.host(number)].page(&shown, language)
    }

    /// The front page of a host: no more than a way to its first page.
    pub fn front(&self, host: usize) -> String {
        let first = host as u64;
        self.frames[host].front(&self.links(&[first]), self.vocabulary.language)
    }

    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// A line of JSON for each page: its URL, what it is, and of which page it is a copy.
    pub fn truth(&self) -> String {
        let mut lines = String::new();
        for number in 0..self.pages {
            let url = self.url(number);
            let (kind, rest) = match self.kind(number) {
                Kind::Article => ("article".to_owned(), String::new()),
                Kind::Series { series, long } => {
                    let kind = if long { "series-long" } else { "series-half" };
                    (kind.to_owned(), format!(", \"series\": {series}"))
                }
                Kind::Copy { original, edit } => {
                    (edit.name(), format!(", \"original\": \"{}\"", self.url(original)))
                }
            };
            writeln!(lines, "{{\"url\": \"{url}\", \"kind\": \"{kind}\"{rest}}}")
                .expect("a string");
        }
        lines
    }
}

impl Edit {
    fn name(self) -> String {
        match self {
            Self::Words(share) => format!("words{share}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

fn change_words(paragraphs: &mut [Vec<Sentence>], share: usize, writer: &mut Writer) {
    let words = paragraphs.iter_mut().flatten().flatten();
    for word in words.filter(|word| word.chars().any(char::is_alphanumeric)) {
        if writer.random.percent(share) {
            *word = writer.foreign_word();
        }
    }
}

/// Leaves out one sentence in ten, one at least, and adds as many.
fn change_sentences(paragraphs: &mut Vec<Vec<Sentence>>, writer: &mut Writer) {
    let count: usize = paragraphs.iter().map(Vec::len).sum();
    for _ in 0..count.div_ceil(10) {
        let at = writer.random.below(paragraphs.len());
        let place = writer.random.below(paragraphs[at].len());
        paragraphs[at].remove(place);
        if paragraphs[at].is_empty() {
            paragraphs.remove(at);
        }
        let at = writer.random.below(paragraphs.len());
        let place = writer.random.below(paragraphs[at].len() + 1);
        let sentence = writer.sentence();
        paragraphs[at].insert(place, sentence);
    }
}

/// No paragraph but by chance is where it was.
fn reorder(paragraphs: &mut [Vec<Sentence>], random: &mut Random) {
    random.shuffle(paragraphs);
    paragraphs.rotate_left(1);
}
