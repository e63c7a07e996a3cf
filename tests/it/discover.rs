//! Sitemaps and feeds as they come: what is read of each form, and where reading ends.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use uniqcrawl::base::units::Size;
use uniqcrawl::web::discover::{
    AddressList, Config, ListCut, ListFault, ListKind, NotAList, may_be_list, read,
};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn urlset(urls: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let urls: String =
        urls.into_iter().map(|url| format!("<url><loc>{}</loc></url>\n", url.as_ref())).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{urls}</urlset>\n"
    )
}

fn list(bytes: &[u8], config: &Config) -> Result<AddressList, NotAList> {
    read(bytes, bytes.len(), config, 200)
}

#[track_caller]
fn check(text: &str, kind: ListKind, entries: &[&str]) -> AddressList {
    let list = list(text.as_bytes(), &Config::default()).unwrap();
    assert_eq!((list.kind, list.entries.as_slice(), list.cut), (kind, &*owned(entries), None));
    list
}

fn owned(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

fn faults(list: &AddressList) -> Vec<(ListFault, u64)> {
    list.faults.counts().collect()
}

/// A sitemap of a thousand entries, one of which is changed.
fn thousand(change: impl Fn(usize, String) -> String) -> String {
    let entry = |n| format!("<url><loc>http://h/{n}</loc><lastmod>2026-01-01</lastmod></url>\n");
    let entries: String = (0..1_000).map(|n| change(n, entry(n))).collect();
    format!("<?xml version='1.0'?><urlset>{entries}</urlset>")
}

#[test]
fn a_fault_of_one_entry_loses_no_other_and_is_counted() {
    let only = |at: usize, from: &'static str, to: &'static str| {
        thousand(move |n, entry| if n == at { entry.replace(from, to) } else { entry })
    };
    let each =
        |from: &'static str, to: &'static str| thousand(move |_, entry| entry.replace(from, to));
    let (stray, open) = (ListFault::StrayEnd, ListFault::Unclosed);
    for (text, entries, bad, expected) in [
        (only(1, "</url>", "</url></url>"), 1_000, 0, (stray, 1)),
        (only(5, "</url>", "</url></urlset>"), 1_000, 0, (stray, 1)),
        (only(5, "<url>", ""), 1_000, 0, (ListFault::Misplaced, 1)),
        (each("</lastmod>", ""), 1_000, 0, (open, 1_000)),
        (each("</url>", ""), 1_000, 0, (open, 1_000)),
        (each("</loc>", ""), 1_000, 0, (open, 1_000)),
        (only(7, "</loc>", "</lok>"), 1_000, 0, (stray, 1)),
        (each("<loc>", "<loc><url>"), 1_000, 0, (ListFault::Misplaced, 1_000)),
        (each("<loc>", ""), 1_000, 0, (ListFault::Misplaced, 1_000)),
        (only(9, "http://h/", "http://h/&i;"), 999, 1, (ListFault::Entity, 1)),
        (only(9, "http://h/9", "http://h/?a<b"), 999, 1, (open, 2)),
        (only(9, "<url>", "<!x><url>"), 1_000, 0, (ListFault::Markup, 1)),
    ] {
        let list = list(text.as_bytes(), &Config::default()).unwrap();
        let entry = &text[..text.len().min(300)];
        assert_eq!((list.entries.len(), list.bad, list.cut), (entries, bad, None), "{entry}");
        assert!(faults(&list).contains(&expected), "{expected:?}: {:?} in {entry}", faults(&list));
    }
    let whole = list(thousand(|_, entry| entry).as_bytes(), &Config::default()).unwrap();
    assert_eq!((whole.entries.len(), faults(&whole)), (1_000, vec![]));
}

#[test]
fn addresses_in_the_wrong_place_are_found() {
    let nested = "<urlset><url><loc><url>http://h/a</url></loc></url></urlset>";
    let list = check(nested, ListKind::Set, &["http://h/a"]);
    assert_eq!(faults(&list), [(ListFault::Misplaced, 1)]);
    let bare = "<sitemapindex><sitemap>http://h/1.xml</sitemap><sitemap>\n http://h/2.xml\n\
                </sitemap><sitemap>no</sitemap></sitemapindex>";
    let list = check(bare, ListKind::Index, &["http://h/1.xml", "http://h/2.xml"]);
    assert_eq!((list.bad, faults(&list)), (1, vec![(ListFault::Misplaced, 2)]));
    // What belongs to images and videos is no entry.
    let video = "<urlset><url><loc>http://h/a</loc><v:video><v:url>http://h/v</v:url></v:video>\
                 <lastmod>2026</lastmod></url></urlset>";
    assert_eq!(faults(&check(video, ListKind::Set, &["http://h/a"])), []);
}

#[test]
fn entities_of_html_are_known_and_bare_ampersands_stand_for_themselves() {
    let text = "<urlset><url><loc>http://h/caf&eacute;?a=1&b=2&amp;c=3&#x26;d</loc>\
        <xhtml:link rel='alternate' href='http://h/de?a=1&b=2&amp;c=3'/>\
        <xhtml:link rel='alternate' href='http://h/de?a=&nobody;'/></url></urlset>";
    check(text, ListKind::Set, &["http://h/café?a=1&b=2&c=3&d", "http://h/de?a=1&b=2&c=3"]);
}

#[test]
fn html_in_a_feed_loses_no_item() {
    let item = |n| {
        format!(
            "<item><title>A&nbsp;B</title><description>a<br>b<br>c<img src='x'><p>d<p>e<b>f\
             </description><link>http://h/{n}</link><guid>x</guid></item>"
        )
    };
    let items: String = (0..10).map(item).collect();
    let rss = format!("<rss><channel><image><url>http://h/i</url></image>{items}</channel></rss>");
    let list = list(rss.as_bytes(), &Config::default()).unwrap();
    assert_eq!((list.entries.len(), list.bad, list.cut), (10, 0, None));
    // Two breaks and an image, two paragraphs and a bold word in each.
    assert_eq!(faults(&list), [(ListFault::Unclosed, 60)]);
    let entry = |n| format!("<entry><summary>a<br>b</summary><link href='/{n}'/></entry>");
    let entries: String = (0..100).map(entry).collect();
    let atom = format!("<feed>{entries}</feed>");
    let atom = read(atom.as_bytes(), atom.len(), &Config::default(), 200).unwrap();
    assert_eq!(atom.entries.len(), 100);
}

#[test]
fn a_json_feed_that_breaks_off_or_has_odd_items_gives_the_others() {
    let start = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[";
    let odd =
        format!("{start}{{\"url\":\"http://h/a\"}},5,{{\"url\":6}},{{\"url\":\"http://h/b\"}}]}}");
    assert_eq!(check(&odd, ListKind::Json, &["http://h/a", "http://h/b"]).bad, 2);
    let cut = list(&odd.as_bytes()[..odd.len() - 12], &Config::default()).unwrap();
    assert_eq!(
        (cut.entries.as_slice(), cut.cut),
        (&*owned(&["http://h/a"]), Some(ListCut::Syntax))
    );
}

#[test]
fn a_list_in_plain_text_is_read_whatever_its_first_line_is() {
    let list = check(
        "h/a\n# all\nhttp://h/b\nhttp://h/c\n",
        ListKind::Text,
        &["http://h/b", "http://h/c"],
    );
    assert_eq!(list.bad, 2);
}

#[test]
fn every_form_of_a_sitemap_is_read() {
    check(&urlset(["http://h/a", "http://h/b"]), ListKind::Set, &["http://h/a", "http://h/b"]);
    let index = "<sitemapindex><sitemap><loc> http://h/1.xml\n</loc><lastmod>x</lastmod></sitemap>\
                 <sitemap><loc><![CDATA[http://h/2.xml]]></loc></sitemap></sitemapindex>";
    check(index, ListKind::Index, &["http://h/1.xml", "http://h/2.xml"]);
    check("http://h/a\r\n\n HTTPS://h/b \n", ListKind::Text, &["http://h/a", "HTTPS://h/b"]);
    check("\u{FEFF}http://h/a\n", ListKind::Text, &["http://h/a"]);
    let prefixed = "\u{FEFF} <!-- c --><!DOCTYPE x [<!ENTITY e \"no\">]><s:urlset xmlns:s='x'>\
                    <s:url><s:loc>http://h/?a=1&amp;b=&#50;&c=3</s:loc></s:url></s:urlset>junk<<";
    check(prefixed, ListKind::Set, &["http://h/?a=1&b=2&c=3"]);
}

#[test]
fn only_addresses_of_entries_count() {
    let images = "<urlset><url><loc>http://h/a</loc><lastmod>2999-99-99</lastmod>\
        <image:image><image:loc>http://h/i.png</image:loc></image:image>\
        <xhtml:link rel='alternate' hreflang='de' href='http://h/de/a'/>\
        <xhtml:link rel='alternate' hreflang='en' href='http://h/a'/></url>\
        <url><lastmod>tomorrow</lastmod></url><url><loc/></url></urlset>";
    let list = check(images, ListKind::Set, &["http://h/a", "http://h/de/a"]);
    assert_eq!(list.bad, 2, "two entries have no address");
    let most = "x".repeat(4_096 - "http://h/".len());
    let (fits, long) = (format!("http://h/{most}"), format!("http://h/{most}x"));
    assert_eq!(check(&urlset([&fits, &long]), ListKind::Set, &[&fits]).bad, 1);
    let text = format!("{fits}\n{long}\n# no\nhttp://h/b\n");
    assert_eq!(check(&text, ListKind::Text, &[&fits, "http://h/b"]).bad, 2);
}

#[test]
fn entities_are_never_expanded() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"http://h/\"><!ENTITY b \"&a;&a;&a;&a;\">]>\
                <urlset><url><loc>http://h/&b;</loc></url></urlset>";
    let list = check(bomb, ListKind::Set, &[]);
    assert_eq!((list.bad, faults(&list)), (1, vec![(ListFault::Entity, 1)]));
}

#[test]
fn what_is_no_list_is_told() {
    let config = Config::default();
    for text in [
        "",
        " \n",
        "User-agent: *\nDisallow: /\nSitemap: http://h/robots.txt\n",
        "<html><body><a href='http://h/'>x</a></body></html>",
        "<!DOCTYPE html><title>404</title>",
        "{\"version\": \"1\", \"items\": [{\"url\": \"http://h/\"}]}",
        "{",
        "<urlset",
    ] {
        assert_eq!(list(text.as_bytes(), &config), Err(NotAList::Other), "{text}");
    }
    assert!(may_be_list(None, b"\xEF\xBB\xBF <?xml version='1.0'?>"));
    assert!(may_be_list(Some("Application/RSS+xml; charset=x"), b"x"));
    assert!(!may_be_list(Some("text/html"), b"<!doctype html><rss>"));
}

#[test]
fn gzip_is_told_by_its_bytes_once_and_twice() {
    let (text, config) = (urlset(["http://h/a"]), Config::default());
    let packed = gzip(text.as_bytes());
    for raw in [packed.clone(), gzip(&packed)] {
        assert_eq!(list(&raw, &config).unwrap().entries, ["http://h/a"]);
    }
    let thrice = gzip(&gzip(&packed));
    assert_eq!(list(&thrice, &config), Err(NotAList::Other));
    let mut members = gzip(&text.as_bytes()[..70]);
    members.extend(gzip(&text.as_bytes()[70..]));
    members.extend([0; 50]);
    assert_eq!(list(&members, &config).unwrap().cut, None);
}

#[test]
fn other_encodings_are_read() {
    let config = Config::default();
    let text = urlset(["http://h/é"]);
    let utf16: Vec<u8> =
        [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    assert_eq!(list(&utf16, &config).unwrap().entries, ["http://h/é"]);
    let bare: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(list(&bare, &config).unwrap().entries, ["http://h/é"]);
    let latin = text.replace("UTF-8", "ISO-8859-1");
    let latin = encoding_rs::WINDOWS_1252.encode(&latin).0.into_owned();
    assert_eq!(list(&latin, &config).unwrap().entries, ["http://h/é"]);
}

#[test]
fn what_was_read_before_a_fault_counts() {
    let config = Config::default();
    let whole = urlset(["http://h/a", "http://h/b", "http://h/c"]);
    let at = whole.find("h/c").unwrap();
    let broken = list(&whole.as_bytes()[..at], &config).unwrap();
    assert_eq!(
        (broken.entries, broken.cut),
        (owned(&["http://h/a", "http://h/b"]), Some(ListCut::Syntax))
    );
    let faulty = whole.replace("<url><loc>http://h/c", "<url><loc attr=\"<!-->http://h/c");
    assert_eq!(list(faulty.as_bytes(), &config).unwrap().entries, ["http://h/a", "http://h/b"]);
    // End tags that are wrong or missing lose nothing.
    let wrong = whole.replace("b</loc>", "b</lok>").replace("a</loc></url>", "a</loc>");
    assert_eq!(list(wrong.as_bytes(), &config).unwrap().entries.len(), 3);
    let many: Vec<String> = (0..3_000_u64).map(|n| format!("http://h/{}", n * n * 7_919)).collect();
    let packed = gzip(urlset(&many).as_bytes());
    let cut = list(&packed[..packed.len() / 2], &config).unwrap();
    assert_eq!(cut.cut, Some(ListCut::Broken));
    assert!(cut.entries.len() > 500 && cut.entries.len() < 2_500, "{}", cut.entries.len());
    assert_eq!(cut.entries, many[..cut.entries.len()]);
}

#[test]
fn entries_bytes_and_nesting_have_limits_on_both_sides() {
    let urls: Vec<String> = (0..50_001).map(|n| format!("http://h/{n}")).collect();
    let config = Config::default();
    let fits = list(urlset(&urls[..50_000]).as_bytes(), &config).unwrap();
    assert_eq!((fits.entries.len(), fits.cut), (50_000, None));
    let over = list(urlset(&urls).as_bytes(), &config).unwrap();
    assert_eq!((over.entries.len(), over.cut), (50_000, Some(ListCut::Entries)));
    let lines = urls.join("\n");
    let over = list(lines.as_bytes(), &config).unwrap();
    assert_eq!((over.entries.len(), over.cut), (50_000, Some(ListCut::Entries)));

    let text = urlset(&urls[..100]);
    let text = text.trim_end();
    for raw in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
        let exact = Config { size_max: Size::from_bytes(text.len() as u64), ..config.clone() };
        assert_eq!(list(&raw, &exact).unwrap().cut, None);
        let less = Config { size_max: Size::from_bytes((text.len() - 1) as u64), ..config.clone() };
        assert_eq!(list(&raw, &less).unwrap().cut, Some(ListCut::Bytes));
        let half = Config { size_max: Size::from_bytes((text.len() / 2) as u64), ..config.clone() };
        let half = list(&raw, &half).unwrap();
        assert!(half.entries.len() > 30 && half.entries.len() < 60);
    }

    let nested = |depth: usize| {
        let (open, close) = ("<x>".repeat(depth - 1), "</x>".repeat(depth - 1));
        let text = format!("<urlset><url><loc>http://h/a</loc></url>{open}{close}</urlset>");
        list(text.as_bytes(), &config).unwrap()
    };
    assert_eq!((faults(&nested(64)), nested(64).entries.len()), (vec![], 1));
    let deep = nested(10_000);
    assert_eq!((deep.cut, deep.entries.len()), (None, 1));
    assert!(faults(&deep).contains(&(ListFault::Markup, 9_936)), "{:?}", faults(&deep));
}

#[test]
fn a_bomb_is_refused_and_a_list_that_packs_well_is_not() {
    let config = Config::default();
    let bomb = gzip(format!("<urlset><!--{}", "a".repeat(8 << 20)).as_bytes());
    assert_eq!(list(&bomb, &config), Err(NotAList::Bomb));
    // Nothing comes out of a packed row of packed nothings, but it is counted on the way.
    let empty = gzip(&gzip(b"").repeat(1 << 19));
    assert_eq!(list(&empty, &config), Err(NotAList::Bomb));
    let urls = (0..5_000).map(|n| format!("http://h/{}{n}", "long/".repeat(30)));
    let packed = gzip(urlset(urls).as_bytes());
    assert_eq!(list(&packed, &config).unwrap().entries.len(), 5_000);
}

#[test]
fn every_form_of_a_feed_is_read() {
    let rss = "<?xml version='1.0'?><rss version='2.0'><channel><link>http://h/</link>\
        <atom:link rel='self' href='http://h/feed'/><image><link>http://h/logo</link></image>\
        <item><title>A &amp; B</title><link>http://h/a?x=1&amp;y=2</link><guid>http://h/?p=1</guid></item>\
        <item><guid isPermaLink='true'>http://h/b</guid><description>&lt;p&gt;&nbsp;</description></item>\
        <item><link/><guid>http://h/c</guid></item>\
        <item><guid isPermaLink='false'>http://h/no</guid></item>\
        <item><guid>tag:h,2020</guid></item></channel></rss>";
    let list = check(rss, ListKind::Rss, &["http://h/a?x=1&y=2", "http://h/b", "http://h/c"]);
    assert_eq!(list.bad, 2);
    let rdf = "<rdf:RDF xmlns='x'><channel rdf:about='http://h/'><link>http://h/</link></channel>\
        <item rdf:about='http://h/a'><link>http://h/a</link></item>\
        <item rdf:about='http://h/b'><title>b</title></item></rdf:RDF>";
    check(rdf, ListKind::Rss, &["http://h/a", "http://h/b"]);
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://h/'/>\
        <entry><link href='/a'/><link rel='edit' href='http://h/edit'/></entry>\
        <entry><link rel='alternate' type='text/html' href='http://h/b?x&amp;y'/>\
        <source><link href='http://other/'/></source></entry>\
        <entry><id>tag:1</id></entry></feed>";
    let list = check(atom, ListKind::Atom, &["/a", "http://h/b?x&y"]);
    assert_eq!(list.bad, 1);
    let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[\
        {\"id\":\"1\",\"url\":\"http://h/a\",\"content_html\":\"<p>\"},{\"id\":\"2\"}]}";
    assert_eq!(check(json, ListKind::Json, &["http://h/a"]).bad, 1);
}
