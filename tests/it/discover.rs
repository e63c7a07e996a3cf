//! Sitemaps and feeds as they come: what is read of each form, and where reading ends.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use uniqcrawl::discover::{Config, Cut, Kind, List, NotAList, may_be_list, read};
use uniqcrawl::units::Size;

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

fn list(bytes: &[u8], config: &Config) -> Result<List, NotAList> {
    read(bytes, bytes.len(), config, 200)
}

#[track_caller]
fn check(text: &str, kind: Kind, entries: &[&str]) -> List {
    let list = list(text.as_bytes(), &Config::default()).unwrap();
    assert_eq!((list.kind, list.entries.as_slice(), list.cut), (kind, &*owned(entries), None));
    list
}

fn owned(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

#[test]
fn every_form_of_a_sitemap_is_read() {
    check(&urlset(["http://h/a", "http://h/b"]), Kind::Set, &["http://h/a", "http://h/b"]);
    let index = "<sitemapindex><sitemap><loc> http://h/1.xml\n</loc><lastmod>x</lastmod></sitemap>\
                 <sitemap><loc><![CDATA[http://h/2.xml]]></loc></sitemap></sitemapindex>";
    check(index, Kind::Index, &["http://h/1.xml", "http://h/2.xml"]);
    check("http://h/a\r\n\n HTTPS://h/b \n", Kind::Text, &["http://h/a", "HTTPS://h/b"]);
    check("\u{FEFF}http://h/a\n", Kind::Text, &["http://h/a"]);
    let prefixed = "\u{FEFF} <!-- c --><!DOCTYPE x [<!ENTITY e \"no\">]><s:urlset xmlns:s='x'>\
                    <s:url><s:loc>http://h/?a=1&amp;b=&#50;&c=3</s:loc></s:url></s:urlset>junk<<";
    check(prefixed, Kind::Set, &["http://h/?a=1&b=2&c=3"]);
}

#[test]
fn only_addresses_of_entries_count() {
    let images = "<urlset><url><loc>http://h/a</loc><lastmod>2999-99-99</lastmod>\
        <image:image><image:loc>http://h/i.png</image:loc></image:image>\
        <xhtml:link rel='alternate' hreflang='de' href='http://h/de/a'/>\
        <xhtml:link rel='alternate' hreflang='en' href='http://h/a'/></url>\
        <url><lastmod>tomorrow</lastmod></url><url><loc/></url></urlset>";
    let list = check(images, Kind::Set, &["http://h/a", "http://h/de/a"]);
    assert_eq!(list.bad, 2, "two entries have no address");
    let most = "x".repeat(4_096 - "http://h/".len());
    let (fits, long) = (format!("http://h/{most}"), format!("http://h/{most}x"));
    assert_eq!(check(&urlset([&fits, &long]), Kind::Set, &[&fits]).bad, 1);
    let text = format!("{fits}\n{long}\n# no\nhttp://h/b\n");
    assert_eq!(check(&text, Kind::Text, &[&fits, "http://h/b"]).bad, 2);
}

#[test]
fn entities_are_never_expanded() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"http://h/\"><!ENTITY b \"&a;&a;&a;&a;\">]>\
                <urlset><url><loc>http://h/&b;</loc></url></urlset>";
    check(bomb, Kind::Set, &["http://h/&b;"]);
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
        (owned(&["http://h/a", "http://h/b"]), Some(Cut::Syntax))
    );
    let faulty = whole.replace("<url><loc>http://h/c", "<url><loc attr=\"<!-->http://h/c");
    assert_eq!(list(faulty.as_bytes(), &config).unwrap().entries, ["http://h/a", "http://h/b"]);
    // End tags that are wrong or missing lose nothing.
    let wrong = whole.replace("b</loc>", "b</lok>").replace("a</loc></url>", "a</loc>");
    assert_eq!(list(wrong.as_bytes(), &config).unwrap().entries.len(), 3);
    let many: Vec<String> = (0..3_000_u64).map(|n| format!("http://h/{}", n * n * 7_919)).collect();
    let packed = gzip(urlset(&many).as_bytes());
    let cut = list(&packed[..packed.len() / 2], &config).unwrap();
    assert_eq!(cut.cut, Some(Cut::Broken));
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
    assert_eq!((over.entries.len(), over.cut), (50_000, Some(Cut::Entries)));
    let lines = urls.join("\n");
    let over = list(lines.as_bytes(), &config).unwrap();
    assert_eq!((over.entries.len(), over.cut), (50_000, Some(Cut::Entries)));

    let text = urlset(&urls[..100]);
    let text = text.trim_end();
    for raw in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
        let exact = Config { size_max: Size::from_bytes(text.len() as u64), ..config.clone() };
        assert_eq!(list(&raw, &exact).unwrap().cut, None);
        let less = Config { size_max: Size::from_bytes((text.len() - 1) as u64), ..config.clone() };
        assert_eq!(list(&raw, &less).unwrap().cut, Some(Cut::Bytes));
        let half = Config { size_max: Size::from_bytes((text.len() / 2) as u64), ..config.clone() };
        let half = list(&raw, &half).unwrap();
        assert!(half.entries.len() > 30 && half.entries.len() < 60);
    }

    let nested = |depth: usize| {
        let (open, close) = ("<x>".repeat(depth - 1), "</x>".repeat(depth - 1));
        let text = format!("<urlset><url><loc>http://h/a</loc></url>{open}{close}</urlset>");
        list(text.as_bytes(), &config).unwrap()
    };
    assert_eq!(nested(64).cut, None);
    assert_eq!((nested(65).cut, nested(65).entries.len()), (Some(Cut::Nested), 1));
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
    let list = check(rss, Kind::Rss, &["http://h/a?x=1&y=2", "http://h/b", "http://h/c"]);
    assert_eq!(list.bad, 2);
    let rdf = "<rdf:RDF xmlns='x'><channel rdf:about='http://h/'><link>http://h/</link></channel>\
        <item rdf:about='http://h/a'><link>http://h/a</link></item>\
        <item rdf:about='http://h/b'><title>b</title></item></rdf:RDF>";
    check(rdf, Kind::Rss, &["http://h/a", "http://h/b"]);
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://h/'/>\
        <entry><link href='/a'/><link rel='edit' href='http://h/edit'/></entry>\
        <entry><link rel='alternate' type='text/html' href='http://h/b?x&amp;y'/>\
        <source><link href='http://other/'/></source></entry>\
        <entry><id>tag:1</id></entry></feed>";
    let list = check(atom, Kind::Atom, &["/a", "http://h/b?x&y"]);
    assert_eq!(list.bad, 1);
    let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[\
        {\"id\":\"1\",\"url\":\"http://h/a\",\"content_html\":\"<p>\"},{\"id\":\"2\"}]}";
    assert_eq!(check(json, Kind::Json, &["http://h/a"]).bad, 1);
}
