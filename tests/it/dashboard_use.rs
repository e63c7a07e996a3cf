//! The dashboard in a browser: who uses it, and who would misuse it.

use std::collections::BTreeSet;

use serde_json::json;

use crate::browser::Tab;
use crate::dashboard::{ODD, filled};
use crate::service::{Server, article};

fn url(server: &Server, hash: &str) -> String {
    format!("http://{}/{hash}", server.address)
}

#[test]
fn the_page_has_a_strict_policy_and_the_api_keeps_its_own() {
    let server = Server::new();
    for (path, kind) in
        [("/", "text/html"), ("/app.js", "text/javascript"), ("/app.css", "text/css")]
    {
        let answer = server.get(path);
        assert_eq!(answer.status, 200);
        assert!(answer.headers["content-type"].starts_with(kind), "{path}");
        let policy = &answer.headers["content-security-policy"];
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (at, _) in answer.body.match_indices("://") {
            let found = &answer.body[at + 3..];
            let fine = ["www.w3.org/2000/svg", "example.org"];
            assert!(fine.iter().any(|fine| found.starts_with(fine)), "{path} {at}: another place");
        }
    }
    let policy = &server.get("/v1/stats").headers["content-security-policy"];
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("self"));
    server.post("/", "text/plain", b"x").is(405, "method_not_allowed");
    let script = server.get("/app.js").body;
    for word in ["innerHTML", "outerHTML", "insertAdjacent", "eval(", "document.write"] {
        assert!(!script.contains(word), "{word}");
    }
}

#[test]
fn a_text_of_a_page_is_never_run_and_no_odd_address_is_a_link() {
    let (server, _) = filled();
    let tab = Tab::open("en-GB");
    tab.go(&url(&server, "#/articles?media=odd"));
    tab.shows(ODD);
    assert_eq!(tab.eval("document.querySelectorAll('main script, main b').length"), 0);
    tab.eval("document.querySelector('.article a').click()");
    tab.until("document.querySelector('dl.facts')");
    assert_eq!(tab.eval("document.querySelector('h1').textContent"), ODD);
    assert_eq!(tab.eval("document.title"), format!("{ODD} – uniqcrawl"));
    tab.until("document.querySelectorAll('main h2').length === 5");
    assert!(!tab.text().lines().any(|line| line == "null"), "{}", tab.text());
    tab.shot("odd-en");
    // What no store holds, in case one ever does.
    let odd = r#"<img src=x onerror="document.title='y'">"#;
    let address = "javascript:document.title='z'";
    tab.give(
        "/v1/explain",
        200,
        json!({"url": address, "state": odd, "reason": odd, "summary": odd,
        "facts": [{"name": odd, "value": odd}]}),
    );
    tab.go(&url(&server, "#/explain?url=x"));
    tab.shows(odd);
    tab.shows(address);
    for address in [
        address,
        "data:text/html,x",
        "JavaScript:1",
        " javascript:1",
        "file:///etc/passwd",
        "//x",
        "",
    ] {
        let link = format!("webLink({}).tagName", json!(address));
        assert_eq!(tab.eval(&link), "SPAN", "{address}");
    }
    assert_eq!(tab.eval("webLink('https://x.example/').rel"), "noopener noreferrer");
    let dangerous = "[...document.querySelectorAll('[href],[src]')].filter((one) => \
        !/^(https?|data:image\\/svg)/.test(one.href || one.src)).length";
    assert_eq!(tab.eval(dangerous), 0);
    assert_eq!(tab.eval("document.querySelectorAll('main img').length"), 0);
    assert!(tab.eval("document.title").as_str().unwrap().starts_with("Explain"));
    tab.is_content(&[]);
}

#[test]
fn the_policy_stops_what_would_read_text_as_html() {
    let server = Server::new();
    let tab = Tab::open("en-GB");
    tab.go(&url(&server, "#/articles"));
    tab.shows("No article fits.");
    let tried = "try { document.body.innerHTML = '<b>x</b>'; 'done' } catch (error) { error.name }";
    assert_eq!(tab.eval(tried), "TypeError");
}

#[test]
fn the_language_is_that_of_the_reader_until_another_is_chosen() {
    let (server, _) = filled();
    let tab = Tab::open("zh-CN,zh;q=0.9");
    tab.go(&url(&server, "#/articles"));
    tab.shows("2 篇相似文章");
    assert_eq!(tab.eval("document.documentElement.lang"), "zh-CN");
    assert!(tab.text().contains("2026年11月21日"), "{}", tab.text());
    tab.shot("articles-zh");
    tab.eval("document.getElementById('language').click()");
    tab.shows("2 similar articles");
    assert_eq!(tab.eval("document.documentElement.lang"), "en");
    tab.reload();
    tab.shows("2 similar articles");
    assert_eq!(tab.eval("document.title"), "Articles – uniqcrawl");
    // Every word is there in both languages, with the same parts.
    let odd = "Object.keys(WORDS.en).filter((key) => !WORDS.zh[key] || \
        String(WORDS.en[key].match(/\\{\\w+\\}/g)?.sort()) !== String(WORDS.zh[key].match(/\\{\\w+\\}/g)?.sort()))";
    assert_eq!(tab.eval(odd), json!([]));
    let reasons: Vec<_> =
        uniqcrawl::frontier::Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let unworded = format!("{}.filter((name) => !Object.hasOwn(CODES, name))", json!(reasons));
    assert_eq!(tab.eval(&unworded), json!([]), "every reason has words");
    tab.is_content(&[]);
}

#[test]
fn the_token_is_asked_for_kept_for_the_tab_and_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "correct-horse-battery").unwrap();
    let server = Server::with(|settings| settings.api.token_file.clone_from(&file));
    let tab = Tab::open("en-GB");
    tab.go(&url(&server, "#/articles"));
    tab.until("document.querySelector('dialog[open]')");
    assert_eq!(tab.eval("document.activeElement.name"), "token");
    tab.shot("token-en");
    // Left, and asked for again.
    tab.press("Escape");
    tab.shows("Without the token, nothing can be shown.");
    tab.eval("document.querySelector('.note button').click()");
    tab.until("document.querySelector('dialog[open]')");
    tab.type_text("wrong-horse-battery");
    tab.press("Enter");
    tab.shows("The service does not accept this token.");
    tab.type_text("correct-horse-battery");
    tab.press("Enter");
    tab.shows("No article fits.");
    tab.reload();
    tab.until("!document.querySelector('dialog')");
    tab.shows("No article fits.");
    assert!(!tab.eval("location.href").as_str().unwrap().contains("horse"));
    tab.is_content(&["401"]);
    let other = Tab::open("zh-CN");
    other.go(&url(&server, "#/articles"));
    other.until("document.querySelector('dialog[open]')");
    other.shows("此服务需要令牌");
    other.shot("token-zh");
}

#[test]
fn everything_can_be_reached_and_used_by_keys() {
    let (server, _) = filled();
    let tab = Tab::open("en-GB");
    tab.go(&url(&server, "#/articles"));
    tab.shows("2 similar articles");
    tab.press("Tab");
    assert_eq!(tab.eval("document.activeElement.id"), "skip");
    let seen = "document.activeElement.getBoundingClientRect().top >= 0";
    tab.until(seen);
    tab.press("Enter");
    assert_eq!(tab.eval("document.activeElement.id"), "main");
    assert_eq!(tab.eval("location.hash"), "#/articles", "the view stays");
    tab.press("Tab");
    assert_eq!(tab.eval("document.activeElement.name"), "sort", "the first control of the view");
    // From the start, the key reaches whatever can be used.
    let all = "[...document.querySelectorAll('a[href],button,input,select,textarea,summary,[tabindex=\"0\"]')]";
    tab.eval(&format!("{all}.forEach((one, at) => {{ one.dataset.at = at; }}); document.activeElement.blur(); scrollTo(0, 0)"));
    let count = tab.eval(&format!("{all}.length")).as_u64().unwrap();
    let mut reached = BTreeSet::new();
    // A field of a date has several parts.
    for _ in 0..count + 20 {
        tab.press("Tab");
        if let Some(at) = tab.eval("document.activeElement.dataset.at ?? null").as_str() {
            // The parts of a field of a date mark themselves, but for the field as a whole.
            let mark = "getComputedStyle(document.activeElement).outlineStyle !== 'none'";
            if tab.eval(mark) == true {
                reached.insert(at.parse::<u64>().unwrap());
            }
        }
    }
    assert_eq!(reached, (0..count).collect(), "reached with a focus that is seen, of {count}");
    // A view by its link, with the heading focused; and back.
    tab.eval("document.querySelector('[data-view=growing]').focus()");
    tab.press("Enter");
    tab.shows("2 further copies");
    assert_eq!(
        tab.eval("[document.activeElement.tagName, document.title]"),
        json!(["H1", "Growing – uniqcrawl"])
    );
    assert_eq!(tab.eval("document.querySelector('[aria-current=page]').textContent"), "Growing");
    tab.eval("history.back()");
    tab.shows("2 similar articles");
    assert_eq!(tab.eval("document.activeElement.textContent"), "Articles");
    tab.is_content(&[]);
}

#[test]
fn every_control_has_a_name_and_views_fit_a_narrow_screen() {
    let (server, id) = filled();
    let tab = Tab::open("en-GB");
    let pair = "left=http://sina.example/b2&right=http://sohu.example/b3";
    tab.size(360, 740);
    for (hash, text) in [
        ("#/live".to_owned(), "Running crawls"),
        ("#/charts".to_owned(), "Total: 30"),
        ("#/articles".to_owned(), "2 similar articles"),
        ("#/growing".to_owned(), "2 further copies"),
        ("#/search".to_owned(), "What to search for"),
        ("#/jobs".to_owned(), "Jobs"),
        ("#/explain?url=http://wire.example/s1".to_owned(), "What is known of it"),
        (format!("#/document/{id}?{pair}"), "Only in the right text".to_lowercase().as_str()),
    ] {
        tab.go(&url(&server, &hash));
        tab.until(&format!(
            "document.body.innerText.toLowerCase().includes({})",
            json!(text.to_lowercase())
        ));
        let controls = [
            "button",
            "link",
            "textbox",
            "combobox",
            "radio",
            "searchbox",
            "Date",
            "region",
            "navigation",
            "table",
            "image",
        ];
        let nodes = tab.accessible();
        let nameless: Vec<_> = nodes
            .iter()
            .filter(|(role, name)| controls.contains(&role.as_str()) && name.trim().is_empty())
            .collect();
        assert!(nameless.is_empty(), "{hash}: {nameless:?}");
        let has = |wanted: &str| nodes.iter().any(|(role, _)| role == wanted);
        for landmark in ["main", "navigation", "banner", "contentinfo", "heading"] {
            assert!(has(landmark), "{hash} has no {landmark}");
        }
        let odd =
            r"/\b(null|undefined|NaN|Invalid)\b|\[object|\{\w+\}/.test(document.body.innerText)";
        assert_eq!(tab.eval(odd), false, "{hash}: {}", tab.text());
        let headings = "document.querySelectorAll('h1').length";
        assert_eq!(tab.eval(headings), 1, "{hash}");
        let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(tab.eval(wide), 0, "{hash} is wider than the screen");
        let name = hash.split(['/', '?']).nth(1).unwrap().to_owned();
        tab.shot(&format!("narrow-{name}"));
    }
    tab.is_content(&["404"]);
}

#[test]
fn colours_have_contrast_in_both_schemes() {
    let (server, id) = filled();
    let tab = Tab::open("en-GB");
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        tab.call("Emulation.setEmulatedMedia", media);
        tab.go(&url(
            &server,
            &format!("#/document/{id}?left=http://sina.example/b2&right=http://sohu.example/b3"),
        ));
        tab.until("document.querySelector('.diff ins')");
        tab.shot(&format!("document-{scheme}"));
        // Each text against the nearest background that is not transparent.
        let worst = r"(() => {
            const parts = (text) => text.match(/[\d.]+/g).map(Number);
            const light = (text) => {
                const [r, g, b] = parts(text).map((v) => (v /= 255, v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4));
                return .2126 * r + .7152 * g + .0722 * b;
            };
            let worst = [99, ''];
            for (const one of document.querySelectorAll('body *')) {
                const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
                if (!own || one.tagName === 'NOSCRIPT') continue;
                let behind = one;
                const back = () => getComputedStyle(behind).backgroundColor;
                while (behind.parentElement && (/^rgba\(.*, 0\)$/.test(back()) || back().startsWith('color'))) behind = behind.parentElement;
                const [a, b] = [light(getComputedStyle(one).color), light(back())];
                const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
                if (ratio < worst[0]) worst = [ratio, `${one.tagName}.${one.className} ${getComputedStyle(one).color} ${back()}`];
            }
            return worst;
        })()";
        let worst = tab.eval(worst);
        assert!(worst[0].as_f64().unwrap() >= 4.5, "{scheme}: {worst}");
    }
    tab.is_content(&[]);
}

#[test]
fn differences_are_those_of_a_plain_model() {
    let server = Server::new();
    server.send(&article("1", 1, "a"));
    let tab = Tab::open("en-GB");
    tab.go(&url(&server, "#/articles"));
    tab.shows("Story 1");
    let faults = r"(() => {
        let state = 7;
        const random = (most) => (state = (state * 1103515245 + 12345) % 2147483648) % most;
        const lcs = (a, b) => {
            const rows = [...Array(a.length + 1)].map(() => Array(b.length + 1).fill(0));
            for (let i = 1; i <= a.length; i += 1) for (let j = 1; j <= b.length; j += 1) {
                rows[i][j] = a[i - 1] === b[j - 1] ? rows[i - 1][j - 1] + 1 : Math.max(rows[i - 1][j], rows[i][j - 1]);
            }
            return rows[a.length][b.length];
        };
        const faults = [];
        for (let n = 0; n < 4000; n += 1) {
            const list = () => Array.from({ length: random(12) }, () => 'abc'[random(3 * 1000) % 3]);
            const [a, b] = [list(), list()];
            const found = runs(a, b);
            const side = (other) => found.filter((run) => run.kind !== other).flatMap((run) => run.parts).join('');
            const same = found.filter((run) => run.kind === '=').flatMap((run) => run.parts).length;
            if (side('+') !== a.join('') || side('-') !== b.join('') || same !== lcs(a, b)) faults.push([a, b]);
        }
        return faults.slice(0, 3);
    })()";
    assert_eq!(tab.eval(faults), json!([]));
    let shown = |left: &str, right: &str| {
        tab.eval(&format!("difference({}, {})", json!(left), json!(right)))
    };
    let told = shown("He came. The quick fox ran. 完了。", "He came. The slow fox ran. 完了。");
    assert_eq!(
        told["rows"][1]["left"],
        json!([["The ", false], ["quick", true], [" fox ran.", false]])
    );
    assert_eq!(told["rows"][1]["right"][1], json!(["slow", true]));
    assert_eq!(told["rows"][2], json!({"same": true, "text": "完了。", "count": 1}));
    assert_eq!(shown("", "")["rows"], json!([]));
    assert_eq!(
        shown("One.", "")["rows"],
        json!([{"same": false, "left": [["One.", true]], "right": []}])
    );
    // Long texts with nothing in common end soon.
    let long = "difference('x y. '.repeat(60000), Array.from({length: 60000}, (_, n) => `z${n}. `).join(''))";
    assert_eq!(tab.eval(&format!("(({long}).cut)")), true);
    tab.is_content(&[]);
}
