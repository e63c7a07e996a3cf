//! The web of `crawl demo`: ten small hosts with what a crawler meets outside — mirrors, edited
//! copies, Chinese pages in two encodings, a trap, a slow host, rules.
//!
//! All texts are made from word lists by a seeded generator: the same on every machine.

#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use encoding_rs::GBK;

use super::{Page, Site};
use words::WordStream;

/// Hosts of the demo web.
pub const HOSTS: usize = 10;

/// What each host is, in order.
pub const NAMES: [&str; HOSTS] = [
    "portal",
    "news",
    "exact mirror",
    "edited copies",
    "Chinese news",
    "Chinese reprints (GBK)",
    "documentation",
    "trap",
    "slow host",
    "rules",
];

const NEWS: u64 = 30;
const EDITED: u64 = 20;
const CHINESE: u64 = 25;
const REPRINTS: u64 = 20;
const MANUAL: u64 = 25;
const SLOW: u64 = 4;

/// What a perfect crawl of the demo web finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// Distinct articles: every text of its own, whatever the number of copies.
    pub articles: u64,
    /// Pairs of host and path: a copy, and the article it is a copy of.
    pub copies: Vec<((usize, String), (usize, String))>,
}

/// Returns what a perfect crawl finds.
#[must_use]
pub fn truth() -> Truth {
    let copies = |from: usize, to: usize, count: u64, name: &str| {
        let name = name.to_owned();
        (1..=count).map(move |n| ((from, format!("/{name}/{n}")), (to, format!("/{name}/{n}"))))
    };
    let mut all: Vec<_> = copies(2, 1, NEWS, "story").collect();
    all.extend(copies(3, 1, EDITED, "story"));
    all.extend(copies(5, 4, REPRINTS, "xinwen"));
    // The portal has a page about itself, the host with the trap has three articles, that with
    // rules has two that may be fetched.
    Truth { articles: NEWS + CHINESE + MANUAL + SLOW + 1 + 3 + 2, copies: all }
}

/// Makes the sites, given the base URL of each host.
#[must_use]
pub fn sites(bases: &[String]) -> Vec<Site> {
    vec![
        portal(bases),
        news(),
        news(),
        edited(),
        chinese(),
        reprints(),
        manual(),
        trap(),
        slow(),
        rules(),
    ]
}

fn layout(title: &str, site: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>{title} | {site}</title></head><body>\
         <nav><a href=\"/\">Home</a> <a href=\"/about\">About {site}</a></nav>\n\
         <main>{body}</main>\n<footer>Copyright {site}. All rights reserved.</footer>\n"
    )
}

fn article(title: &str, paragraphs: &[String]) -> String {
    format!("<article><h1>{title}</h1>\n<p>{}</p></article>", paragraphs.join("</p>\n<p>"))
}

fn list(links: impl Iterator<Item = (String, String)>) -> String {
    let items: Vec<String> =
        links.map(|(href, text)| format!("<li><a href=\"{href}\">{text}</a></li>")).collect();
    format!("<ul>\n{}</ul>", items.join("\n"))
}

/// Links to the other hosts, most of them to the news host and its best stories.
fn portal(bases: &[String]) -> Site {
    let fronts = bases.iter().zip(NAMES).skip(1);
    let fronts = list(fronts.map(|(base, name)| (format!("{base}/"), name.to_owned())));
    let stories = list((1..=10).map(|n| (format!("{}/story/{n}", bases[1]), english_title(n))));
    let intro = WordStream::new(900).paragraph(60);
    let body = format!("<h1>Portal</h1><p>{intro}</p>{fronts}<h2>Stories</h2>{stories}");
    Site::new().html("/", layout("Portal", "Portal", &body)).html(
        "/about",
        layout("About", "Portal", &article("About us", &[WordStream::new(901).paragraph(70)])),
    )
}

fn english_title(n: u64) -> String {
    WordStream::new(n).title()
}

fn english_story(n: u64) -> Vec<String> {
    let mut words = WordStream::new(1000 + n);
    (0..4).map(|_| words.paragraph(55)).collect()
}

/// Links are relative, so that a mirror has the very same bytes.
fn news() -> Site {
    let links = list((1..=NEWS).map(|n| (format!("/story/{n}"), english_title(n))));
    let front =
        format!("<h1>The Daily Lantern</h1><p>{}</p>{links}", WordStream::new(902).paragraph(50));
    let site = Site::new().html("/", layout("News", "The Daily Lantern", &front));
    (1..=NEWS).fold(site, |site, n| {
        let title = english_title(n);
        let body = article(&title, &english_story(n));
        site.html(&format!("/story/{n}"), layout(&title, "The Daily Lantern", &body))
    })
}

/// Copies with another title, a time stamp, an advertisement and a few words changed.
fn edited() -> Site {
    let links = list((1..=EDITED).map(|n| (format!("/story/{n}"), format!("Re: {n}"))));
    let front = format!("<h1>Copy Desk</h1><p>{}</p>{links}", WordStream::new(903).paragraph(50));
    let site = Site::new().html("/", layout("Copies", "Copy Desk", &front));
    (1..=EDITED).fold(site, |site, n| {
        let title = format!("Seen elsewhere: {}", english_title(n));
        let mut text: Vec<String> =
            english_story(n).iter().map(|text| change_words(text, 40)).collect();
        text.insert(0, format!("Updated 2026-11-{:02} 08:{:02}.", n % 28 + 1, n % 60));
        text.push("Subscribe to our letter and never miss a story again.".to_owned());
        let body = article(&title, &text);
        site.html(&format!("/story/{n}"), layout(&title, "Copy Desk", &body))
    })
}

/// Changes one word in `every`.
fn change_words(text: &str, every: usize) -> String {
    let words = text.split(' ').enumerate();
    let changed =
        words.map(|(at, word)| if at % every == every - 1 { "indeed" } else { word }.to_owned());
    changed.collect::<Vec<_>>().join(" ")
}

fn chinese_story(n: u64) -> (String, Vec<String>) {
    let mut words = WordStream::new(5000 + n);
    (words.chinese_title(), (0..4).map(|_| words.chinese_paragraph(5)).collect())
}

fn chinese_layout(charset: &str, title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"zh\"><head><meta charset=\"{charset}\">\
         <title>{title}_灯塔新闻</title></head><body><div class=\"nav\"><a href=\"/\">首页</a></div>\
         <div class=\"content\">{body}</div><div class=\"footer\">版权所有 灯塔新闻</div></body></html>"
    )
}

fn chinese() -> Site {
    let links = list((1..=CHINESE).map(|n| (format!("/xinwen/{n}"), chinese_story(n).0)));
    let front =
        format!("<h1>灯塔新闻</h1><p>{}</p>{links}", WordStream::new(904).chinese_paragraph(4));
    let site = Site::new().html("/", chinese_layout("utf-8", "首页", &front));
    (1..=CHINESE).fold(site, |site, n| {
        let (title, text) = chinese_story(n);
        let body = article(&title, &text);
        site.html(&format!("/xinwen/{n}"), chinese_layout("utf-8", &title, &body))
    })
}

/// Reprints in GBK that call themselves GB2312, with a line before and after.
fn reprints() -> Site {
    let page = |html: String| Page::bytes("text/html", GBK.encode(&html).0.into_owned());
    let links = list((1..=REPRINTS).map(|n| (format!("/xinwen/{n}"), format!("转载第{n}篇"))));
    let front = format!("<h1>转载</h1><p>{}</p>{links}", WordStream::new(905).chinese_paragraph(4));
    let site = Site::new().page("/", page(chinese_layout("gb2312", "转载", &front)));
    (1..=REPRINTS).fold(site, |site, n| {
        let (title, mut text) = chinese_story(n);
        text.insert(0, format!("本报讯 2026年11月{}日", n % 28 + 1));
        text.push("（责任编辑：灯塔）".to_owned());
        let html = chinese_layout("gb2312", &title, &article(&title, &text));
        site.page(&format!("/xinwen/{n}"), page(html))
    })
}

/// Pages that share a long notice and are not copies of each other.
fn manual() -> Site {
    let notice = WordStream::new(906).paragraph(60);
    let links = list((1..=MANUAL).map(|n| (format!("/page/{n}"), format!("Chapter {n}"))));
    let front = format!("<h1>Manual</h1><p>{}</p>{links}", WordStream::new(907).paragraph(50));
    let site = Site::new().html("/", layout("Manual", "Manual", &front));
    (1..=MANUAL).fold(site, |site, n| {
        let mut words = WordStream::new(7000 + n);
        let mut text: Vec<String> = (0..3).map(|_| words.paragraph(50)).collect();
        text.push(notice.clone());
        let body = article(&format!("Chapter {n}"), &text);
        site.html(&format!("/page/{n}"), layout(&format!("Chapter {n}"), "Manual", &body))
    })
}

/// A calendar without end, and links that grow.
fn trap() -> Site {
    let links = list((1..=3).map(|n| (format!("/note/{n}"), format!("Note {n}"))));
    let front = format!(
        "<h1>Calendar</h1><p>{}</p>{links}\
         <a href=\"/month/1\">Months</a> <a href=\"deep/\">Deep</a>",
        WordStream::new(908).paragraph(50)
    );
    let site = Site::new().html("/", layout("Calendar", "Calendar", &front));
    let site = (1..=3).fold(site, |site, n| {
        let text = [WordStream::new(8000 + n).paragraph(90)];
        site.html(&format!("/note/{n}"), layout("Note", "Calendar", &article("Note", &text)))
    });
    site.handler(|request| {
        if let Some(month) = request.target.strip_prefix("/month/") {
            let next = month.parse::<u64>().ok()? + 1;
            let body = format!(
                "<h1>Month</h1><p>No events are planned for this month.</p>\
                 <a href=\"/month/{next}\">next month</a>"
            );
            return Some(Page::html(layout("Month", "Calendar", &body)));
        }
        let body = "<p>Nothing but the way down.</p><a href=\"deep/\">deeper</a>";
        request.target.ends_with("/deep/").then(|| Page::html(layout("Deep", "Calendar", body)))
    })
}

fn slow() -> Site {
    let links = list((1..=SLOW).map(|n| (format!("/slow/{n}"), format!("Slow {n}"))));
    let front = format!("<h1>Slow</h1><p>{}</p>{links}", WordStream::new(909).paragraph(50));
    let wait = Duration::from_millis(300);
    let page = |body: &str| Page::html(layout("Slow", "Slow", body)).after(wait);
    let site = Site::new().page("/", page(&front));
    (1..=SLOW).fold(site, |site, n| {
        let text = [WordStream::new(9000 + n).paragraph(90)];
        site.page(&format!("/slow/{n}"), page(&article(&format!("Slow {n}"), &text)))
    })
}

fn rules() -> Site {
    let text = |seed| [WordStream::new(seed).paragraph(90)];
    let front = format!(
        "<h1>Rules</h1><p>{}</p><a href=\"/open\">open</a> <a href=\"/private/secret\">secret</a> \
         <a href=\"/noindex\">noindex</a> <a href=\"/gone\">gone</a> \
         <a href=\"/moved/1\">moved</a>",
        WordStream::new(910).paragraph(50)
    );
    let noindex = "<html><head><meta name=\"robots\" content=\"noindex\"><title>No</title></head>\
        <body><p>Read me, but do not keep me.</p></body></html>";
    Site::new()
        .robots("User-agent: *\nDisallow: /private/\nCrawl-delay: 0.1\n")
        .html("/", layout("Rules", "Rules", &front))
        .html("/open", layout("Open", "Rules", &article("Open", &text(911))))
        .html("/private/secret", layout("Secret", "Rules", &article("Secret", &text(912))))
        .html("/noindex", noindex)
        .page("/moved/1", Page::redirect(301, "/moved/2"))
        .page("/moved/2", Page::redirect(302, "/target"))
        .html("/target", layout("Target", "Rules", &article("Target", &text(913))))
}
