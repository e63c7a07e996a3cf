//! The main text of pages: what is kept of articles, forums and shops, as text and as Markdown.

use uniqcrawl::page::{Limits, Page, PageKind, RawPage, page, page_and_why, page_as_markdown};
use url::Url;

const WALK: &str = "They left the village before sunrise, when the bakery had just lit its ovens, \
                    and walked along the river until the bridge came into sight.";
const RIVER: &str = "The river had risen during the night, so the path was under water, and they \
                     had to climb the slope, which took them the better part of an hour.";
const NOON: &str = "At noon they rested in the shade of a chapel, shared bread and cheese, and \
                    talked about the years in which nobody had dared to cross the pass.";

fn with<T>(html: &str, read: impl Fn(&RawPage<'_>, &Limits) -> T) -> T {
    at("http://h/walks/2024/river.html", html, read)
}

fn at<T>(url: &str, html: &str, read: impl Fn(&RawPage<'_>, &Limits) -> T) -> T {
    let url = Url::parse(url).unwrap();
    let input = RawPage { bytes: html.as_bytes(), url: Some(&url), ..RawPage::default() };
    read(&input, &Limits::default())
}

fn read(html: &str) -> Page {
    with(html, page)
}

/// An article between what usually stands around one.
fn around(article: &str) -> String {
    format!(
        "<html><head><title>A walk along the river - Walks</title></head><body>\
         <header><a href=/>Walks</a><nav><ul><li><a href=/news>News</a></li>\
         <li><a href=/maps>Maps</a></li><li><a href=/shop>Shop</a></li></ul></nav></header>\
         <main><article class=post><h1>A walk along the river</h1>{article}</article></main>\
         <aside class=sidebar><h3>Most read</h3><ul><li><a href=/1>Ten huts to stay in</a></li>\
         <li><a href=/2>What to pack</a></li><li><a href=/3>Maps compared</a></li></ul></aside>\
         <div class=newsletter><p>Subscribe to our newsletter and never miss a walk.</p></div>\
         <footer><p>Copyright 2024 Walks. All rights reserved.</p>\
         <a href=/imprint>Imprint</a></footer></body></html>"
    )
}

#[track_caller]
fn holds(text: &str, kept: &[&str], dropped: &[&str]) {
    for part in kept {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    for part in dropped {
        assert!(!text.contains(part), "`{part}` is in:\n{text}");
    }
}

const AROUND: [&str; 6] =
    ["Maps", "Most read", "What to pack", "Subscribe", "Copyright", "Imprint"];

#[test]
fn markdown_keeps_the_structure_of_an_article() {
    let html = around(&format!(
        "<p>{WALK} It was <b>cold</b>, and a <a href='/r'>rescue <i>team</i></a> was on duty.</p>\
         <h2>The river *rises*</h2><p>{RIVER}</p>\
         <ul><li>bread and cheese for two days, as there is no hut</li>\
         <li>a rope of thirty metres, for the crossing<ol start=4><li>check the knots first</li>\
         <li>then the anchor on the far side</li></ol></li></ul>\
         <p>{NOON}</p><blockquote><p>{RIVER}</p></blockquote>\
         <p>The planner computes the time as follows, with the distance in metres:</p>\
         <pre><code>fn time(metres: u32) -&gt; u32 {{\n    metres / 70\n}}</code></pre>\
         <p>{WALK}</p>\
         <table><tr><th>Stage of the walk</th><th>Hours on foot</th></tr>\
         <tr><td>Village to the bridge | ford</td><td>2 and a half</td></tr></table>\
         <p>{NOON}</p>"
    ));
    let text = with(&html, page_as_markdown).text;
    let expected = format!(
        "# A walk along the river\n\n\
         {WALK} It was **cold**, and a [rescue *team*](http://h/r) was on duty.\n\n\
         ## The river \\*rises\\*\n\n{RIVER}\n\n\
         - bread and cheese for two days, as there is no hut\n\
         - a rope of thirty metres, for the crossing\n  4. check the knots first\n  \
         5. then the anchor on the far side\n\n\
         {NOON}\n\n> {RIVER}\n\n\
         The planner computes the time as follows, with the distance in metres:\n\n\
         ```\nfn time(metres: u32) -> u32 {{\n    metres / 70\n}}\n```\n\n\
         {WALK}\n\n\
         | Stage of the walk | Hours on foot |\n| --- | --- |\n\
         | Village to the bridge \\| ford | 2 and a half |\n\n{NOON}"
    );
    assert_eq!(text, expected);
}

#[test]
fn an_article_is_kept_and_what_stands_around_it_is_not() {
    let html = around(&format!("<p>{WALK}</p><h2>Noon</h2><p>{RIVER}</p><p>{NOON}</p>"));
    let found = read(&html);
    holds(&found.text, &[WALK, RIVER, NOON, "\nNoon\n"], &AROUND);
    assert_eq!(found.kind, PageKind::Article);
    assert!(found.quality > 0.7, "{}", found.quality);
}

#[test]
fn chinese_paragraphs_apart_by_line_breaks_are_kept() {
    let first =
        "　　本报讯（记者 王小明）昨日上午，市图书馆新馆正式开放，吸引了大批读者前来参观、借阅。";
    let second =
        "　　据介绍，新馆总面积约两万平方米，藏书一百二十万册，设有儿童阅览室、自习室和报告厅。";
    let third = "　　馆长表示，今后将每周举办讲座，欢迎市民报名参加；夜间开放时间延长至二十二时。";
    let html = format!(
        "<html><head><title>市图书馆新馆开放_城市新闻</title></head><body>\
         <div id=daohang><a href=/>首页</a> | <a href=/n>新闻</a> | <a href=/s>体育</a></div>\
         <table width=960><tr><td><h1>市图书馆新馆开放</h1>\
         <div id=zhengwen>{first}<br><br>{second}<br><br>{third}</div>\
         <div class=xiangguan>相关新闻<ul><li><a href=/1>公园扩建工程启动</a></li>\
         <li><a href=/2>地铁三号线通车</a></li><li><a href=/3>老城改造方案公布</a></li></ul></div>\
         </td><td><div class=tuijian><a href=/4>热点排行</a></div></td></tr></table>\
         <div class=banquan>版权所有 城市新闻网 京ICP备00000000号</div></body></html>"
    );
    let lines = [first, second, third].map(|line| line.trim_start_matches('　'));
    holds(&read(&html).text, &lines, &["相关新闻", "地铁", "热点", "版权所有", "首页"]);
}

#[test]
fn the_posts_of_a_forum_are_kept() {
    let posts: String = [WALK, RIVER, NOON, WALK, RIVER]
        .iter()
        .enumerate()
        .map(|(n, text)| {
            format!(
                "<div class=post id=p{n}><div class=author><a href=/u/{n}>walker{n}</a></div>\
                 <div class='post-body message'><p>Number {n}: {text}</p></div></div>"
            )
        })
        .collect();
    let html = format!(
        "<html><head><title>River path flooded? - Walking forum</title></head><body>\
         <nav><a href=/>Forum</a><a href=/new>New posts</a><a href=/login>Log in</a></nav>\
         <h1>River path flooded?</h1><div class=thread>{posts}</div>\
         <footer>Powered by a forum software. <a href=/terms>Terms</a></footer></body></html>"
    );
    let found = at("http://h/forum/viewtopic?t=7", &html, page);
    holds(&found.text, &["Number 0", "Number 2", "Number 4"], &["New posts", "Powered by"]);
    assert_eq!(found.kind, PageKind::Forum);
}

#[test]
fn text_for_browsers_without_scripts_is_read() {
    let html = format!(
        "<html><head><title>A thread</title></head><body><div id=app></div>\
         <noscript><div class=crawler-post><p>{WALK}</p><p>{RIVER}</p></div></noscript></body>"
    );
    holds(&read(&html).text, &[WALK, RIVER], &["<p>"]);
}

#[test]
fn a_page_built_by_scripts_gives_its_structured_data_or_its_description() {
    let body = format!("<p>{WALK}</p><p>{RIVER} \\\"Go!\\\"</p>");
    let html = format!(
        "<html><head><script type=application/ld+json>{{\"@type\":\"NewsArticle\",\
         \"articleBody\":\"{body}\"}}</script></head><body><div id=root>Loading</div></body>"
    );
    assert_eq!(read(&html).text, format!("{WALK}\n{RIVER} \"Go!\""));
    let html = format!(
        "<head><meta name=description content='{WALK}'></head><body><div id=root></div></body>"
    );
    assert_eq!(read(&html).text, WALK);
}

#[test]
fn every_block_has_a_verdict_and_the_kept_ones_are_the_text() {
    let html = around(&format!("<p>{WALK}</p><p>{RIVER}</p><p>{NOON}</p>"));
    let (page, why) = with(&html, page_and_why);
    let kept: Vec<&str> =
        why.blocks.iter().filter(|block| block.kept).map(|block| block.text.as_str()).collect();
    assert_eq!(kept.join("\n"), page.text);
    let words = |text: &str| text.split_whitespace().count();
    let blocks: usize = why.blocks.iter().map(|block| words(&block.text)).sum();
    let visible = "Walks News Maps Shop A walk along the river Most read Ten huts to stay in What to \
                   pack Maps compared Subscribe to our newsletter and never miss a walk. Copyright \
                   2024 Walks. All rights reserved. Imprint";
    assert_eq!(blocks, words(visible) + words(WALK) + words(RIVER) + words(NOON));
    for block in &why.blocks {
        assert!((0.0..=1.0).contains(&block.chance) && !block.reasons.is_empty(), "{block:?}");
    }
}

#[test]
fn scripts_and_fields_inside_a_text_are_no_part_of_it() {
    let html = around(&format!(
        "<p>{WALK}</p><p>They <script>var hidden = 1;</script>paid<select><option>hidden</select> \
         for it at noon, and went on.</p><pre>first line\n<script>hidden()</script>last line</pre>\
         <p>{RIVER}</p><p>{NOON}</p>"
    ));
    for text in [read(&html).text, with(&html, page_as_markdown).text] {
        holds(&text, &["They paid for it at noon", "first line", "last line"], &["hidden"]);
    }
}
