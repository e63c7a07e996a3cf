//! The frames of the hosts: menu, lists of other pages, notices and footer around a text, in three
//! kinds of markup.

use std::fmt::Write as _;

use super::language::{Language, Vocabulary, Writer, joined};

/// A link to another page.
pub struct Link {
    pub href: String,
    pub text: String,
}

/// What is shown in a frame.
pub struct Shown<'a> {
    pub title: &'a str,
    pub byline: &'a str,
    pub paragraphs: Vec<String>,
    pub related: &'a [Link],
    pub most_read: &'a [Link],
}

/// The frame of one host.
pub struct Frame {
    host: usize,
    name: String,
    menu: String,
    footer: String,
    cookies: String,
}

fn list(links: &[Link]) -> String {
    let mut list = String::from("<ul>\n");
    for Link { href, text } in links {
        writeln!(list, "<li><a href=\"{href}\">{text}</a></li>").expect("a string");
    }
    list + "</ul>"
}

impl Frame {
    pub fn new(host: usize, vocabulary: &Vocabulary) -> Self {
        let language = vocabulary.language;
        let names: Vec<&str> = language.sites.trim().lines().collect();
        let mut writer = Writer::new(vocabulary, (1 << 43) + host as u64);
        let mut sentences = |count: usize| {
            let sentences = (0..count).map(|_| joined(language, &writer.sentence()));
            sentences.collect::<Vec<_>>().join(language.between)
        };
        let menu = language.menu.split_whitespace().enumerate();
        let menu = menu.map(|(at, word)| Link { href: format!("/#s{at}"), text: word.to_owned() });
        let menu: Vec<Link> = menu.collect();
        Self {
            host,
            name: names[host % names.len()].to_owned(),
            menu: list(&menu),
            footer: format!("{} {}", sentences(4), language.rights),
            cookies: sentences(2),
        }
    }

    fn head(&self, title: &str, language: &Language) -> String {
        let (code, name) = (language.code, &self.name);
        format!(
            "<!DOCTYPE html>\n<html lang=\"{code}\"><head><meta charset=\"utf-8\">\
             <title>{title} | {name}</title>\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <link rel=\"stylesheet\" href=\"/style.css\"><script>var page = {{kind: 'story'}};</script>\n\
             </head>"
        )
    }

    pub fn front(&self, links: &[Link], language: &Language) -> String {
        let (head, menu, links) = (self.head(&self.name, language), &self.menu, list(links));
        format!("{head}<body><nav>{menu}</nav><h1>{}</h1>{links}</body></html>\n", self.name)
    }

    pub fn page(&self, shown: &Shown, language: &Language) -> String {
        let head = self.head(shown.title, language);
        let text = format!("<p>{}</p>", shown.paragraphs.join("</p>\n<p>"));
        let Shown { title, byline, .. } = shown;
        let Self { name, menu, footer, cookies, .. } = self;
        let (more, most) = (language.related, language.most_read);
        let (related, most_read) = (list(shown.related), list(shown.most_read));
        let appeal = language.appeal;
        match self.host % 3 {
            0 => format!(
                "{head}<body><header><a href=\"/\">{name}</a><nav>{menu}</nav></header>\n\
                 <main><article><h1>{title}</h1>\n<p class=\"byline\">{byline}</p>\n{text}\n\
                 </article><aside><h2>{most}</h2>{most_read}</aside></main>\n\
                 <section class=\"related\"><h2>{more}</h2>{related}</section>\n\
                 <div class=\"newsletter\"><p>{appeal}</p></div>\n\
                 <footer><p>{footer}</p></footer><div id=\"cookies\"><p>{cookies}</p></div></body></html>\n"
            ),
            1 => format!(
                "{head}<body><div id=\"top\"><div class=\"logo\">{name}</div>\
                 <div class=\"menu\">{menu}</div></div>\n<div id=\"wrap\"><div class=\"sidebar\">\
                 <h3>{most}</h3>{most_read}<div class=\"box\">{appeal}</div></div>\n\
                 <div class=\"content\"><h1>{title}</h1><div class=\"meta\">{byline}</div>\n\
                 <div class=\"text\">{text}</div></div>\n<div class=\"more\"><h3>{more}</h3>{related}</div>\
                 </div>\n<div id=\"footer\">{footer}<br>{cookies}</div></body></html>\n"
            ),
            _ => format!(
                "{head}<body class=\"post\"><div class=\"banner\"><p>{cookies}</p></div>\n\
                 <h2 class=\"site\"><a href=\"/\">{name}</a></h2>{menu}\n\
                 <div class=\"entry\"><h2 class=\"entry-title\">{title}</h2>\n\
                 <span class=\"date\">{byline}</span><div class=\"entry-content\">\n{text}\n</div>\
                 <div class=\"share\"><a href=\"/#mail\">Mail</a> <a href=\"/#print\">Print</a></div></div>\n\
                 <div class=\"widget\"><h4>{more}</h4>{related}</div>\n\
                 <div class=\"widget\"><h4>{most}</h4>{most_read}</div>\n\
                 <div class=\"widget\">{appeal}</div><div class=\"colophon\">{footer}</div></body></html>\n"
            ),
        }
    }
}
