//! A headless Chromium, driven by its own protocol over a pair of pipes.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take on a machine that has much to do.
const PATIENCE: Duration = Duration::from_secs(90);

/// Starts the browser with the pipes of its protocol (3 and 4) as standard input and output. It ends
/// when its input does, and then its folder goes.
const START: &str = r#"
dir=$(mktemp -d)
[ "$(id -u)" = 0 ] && set -- --no-sandbox
"$CHROMIUM" --headless=new --remote-debugging-pipe --user-data-dir="$dir" --disable-gpu \
  --disable-dev-shm-usage --no-first-run --disable-background-networking --disable-extensions \
  --disable-component-update --disable-sync --hide-scrollbars --mute-audio \
  --force-device-scale-factor=1 "$@" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1
rm -rf "$dir"
"#;

/// Answers that wait for who asked, and where events of a page go.
#[derive(Default)]
struct Mail {
    answers: HashMap<u64, Sender<Value>>,
    events: HashMap<String, Sender<Value>>,
}

struct Browser {
    input: Mutex<(u64, ChildStdin)>,
    mail: Arc<Mutex<Mail>>,
}

fn browser() -> &'static Browser {
    static BROWSER: OnceLock<Browser> = OnceLock::new();
    BROWSER.get_or_init(|| {
        let named = std::env::var("CHROMIUM").ok();
        let usual = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
        let runs = |name: &String| {
            let asked = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            asked.is_ok_and(|out| out.status.success())
        };
        let found = named.into_iter().chain(usual).find(runs).expect(
            "no Chromium is found. Install it (Debian: apt-get install --no-install-recommends \
             chromium fonts-noto-cjk) or name its program in the variable CHROMIUM",
        );
        let mut child = Command::new("sh")
            .args(["-c", START])
            .env("CHROMIUM", found)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = Mutex::new((0, child.stdin.take().unwrap()));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mail = Arc::new(Mutex::new(Mail::default()));
        let post = mail.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while output.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
                bytes.pop();
                let told: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                bytes.clear();
                let mut mail = post.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(id) = told["id"].as_u64() {
                    mail.answers.remove(&id).map(|asked| asked.send(told));
                } else if let Some(page) = told["sessionId"].as_str().map(str::to_owned) {
                    mail.events.get(&page).map(|page| page.send(told));
                }
            }
            let _ = child.wait();
        });
        Browser { input, mail }
    })
}

impl Browser {
    fn call(&self, session: Option<&str>, method: &str, params: &Value) -> Value {
        let (asked, answer) = channel();
        {
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            input.0 += 1;
            let mut message = json!({ "id": input.0, "method": method, "params": params });
            if let Some(session) = session {
                message["sessionId"] = session.into();
            }
            let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
            mail.answers.insert(input.0, asked);
            drop(mail);
            let mut bytes = message.to_string().into_bytes();
            bytes.push(0);
            input.1.write_all(&bytes).expect("the browser lives");
        }
        let told = answer.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{method}: no answer"));
        assert!(told["error"].is_null(), "{method}: {}", told["error"]);
        told["result"].clone()
    }
}

/// Answers of the service that a test gives itself: path (without its query) to status and body.
pub(crate) type Given = Arc<Mutex<BTreeMap<String, (u16, Value)>>>;

/// A tab with storage of its own. What it complains of is kept.
pub(crate) struct Tab {
    session: String,
    context: String,
    complaints: Arc<Mutex<Vec<String>>>,
    pub given: Given,
    /// Requests whose answers the test gave: method and path.
    pub sent: Arc<Mutex<Vec<String>>>,
}

impl Tab {
    /// Opens a tab whose user reads `language`.
    pub(crate) fn open(language: &str) -> Self {
        let browser = browser();
        let context = browser.call(None, "Target.createBrowserContext", &json!({}));
        let context = context["browserContextId"].as_str().unwrap().to_owned();
        let asked = json!({ "url": "about:blank", "browserContextId": context });
        let target = browser.call(None, "Target.createTarget", &asked)["targetId"].clone();
        let asked = json!({ "targetId": target, "flatten": true });
        let session = browser.call(None, "Target.attachToTarget", &asked)["sessionId"].clone();
        let session = session.as_str().unwrap().to_owned();
        let (events, happened) = channel();
        browser.mail.lock().unwrap().events.insert(session.clone(), events);
        let tab = Self {
            session,
            context,
            complaints: Arc::default(),
            given: Given::default(),
            sent: Arc::default(),
        };
        tab.listen(happened);
        for domain in ["Page", "Runtime", "Log", "Accessibility", "Audits"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        let agent = browser.call(None, "Browser.getVersion", &json!({}))["userAgent"].clone();
        let asked = json!({ "userAgent": agent, "acceptLanguage": language });
        tab.call("Emulation.setUserAgentOverride", &asked);
        tab.call("Emulation.setTimezoneOverride", &json!({ "timezoneId": "UTC" }));
        tab.size(1200, 900);
        tab
    }

    /// Keeps complaints, and answers the requests that the test answers itself.
    fn listen(&self, happened: Receiver<Value>) {
        let (complaints, given) = (self.complaints.clone(), self.given.clone());
        let (session, sent) = (self.session.clone(), self.sent.clone());
        std::thread::spawn(move || {
            for event in happened {
                let told = &event["params"];
                let complaint = match event["method"].as_str().unwrap_or_default() {
                    "Runtime.consoleAPICalled" if told["type"] == "error" => told["args"].clone(),
                    "Runtime.exceptionThrown" => told["exceptionDetails"].clone(),
                    "Log.entryAdded" if told["entry"]["level"] == "error" => told["entry"].clone(),
                    "Audits.issueAdded" => told["issue"].clone(),
                    "Page.javascriptDialogOpening" => told.clone(),
                    "Fetch.requestPaused" => {
                        let url = told["request"]["url"].as_str().unwrap_or_default();
                        let path = url.splitn(4, '/').nth(3).unwrap_or_default();
                        let path = format!("/{}", path.split(['?', '#']).next().unwrap());
                        let id = &told["requestId"];
                        let answer = given.lock().unwrap().get(&path).cloned();
                        let (method, params) = match answer {
                            None => ("Fetch.continueRequest", json!({ "requestId": id })),
                            Some((status, body)) => {
                                let method = told["request"]["method"].as_str().unwrap();
                                sent.lock().unwrap().push(format!("{method} {path}"));
                                let kind =
                                    json!({ "name": "Content-Type", "value": "application/json" });
                                let body = base64(body.to_string().as_bytes());
                                let params = json!({ "requestId": id, "responseCode": status,
                                    "responseHeaders": [kind], "body": body });
                                ("Fetch.fulfillRequest", params)
                            }
                        };
                        let session = session.clone();
                        // The page may have gone: then nobody waits for the answer.
                        std::thread::spawn(move || {
                            let call = || browser().call(Some(&session), method, &params);
                            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
                        });
                        continue;
                    }
                    _ => continue,
                };
                complaints.lock().unwrap().push(complaint.to_string());
            }
        });
    }

    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        browser().call(Some(&self.session), method, params)
    }

    /// Gives an answer itself from now on.
    pub(crate) fn give(&self, path: &str, status: u16, body: Value) {
        let first = {
            let mut given = self.given.lock().unwrap();
            given.insert(path.to_owned(), (status, body));
            given.len() == 1
        };
        if first {
            let every = json!({ "patterns": [{ "urlPattern": "*/v1/*" }] });
            self.call("Fetch.enable", &every);
        }
    }

    pub(crate) fn size(&self, width: u32, height: u32) {
        let asked =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &asked);
    }

    pub(crate) fn go(&self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn eval(&self, script: &str) -> Value {
        let asked = json!({ "expression": script, "returnByValue": true, "awaitPromise": true,
            "userGesture": true });
        let told = self.call("Runtime.evaluate", &asked);
        assert!(told["exceptionDetails"].is_null(), "{script}: {told}");
        told["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&self, script: &str) {
        let end = Instant::now() + PATIENCE;
        let asked = json!({ "expression": format!("Boolean({script})"), "returnByValue": true });
        while self.call("Runtime.evaluate", &asked)["result"]["value"] != true {
            assert!(Instant::now() < end, "never: {script}; the page says: {}", self.text());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// What a reader sees.
    pub(crate) fn text(&self) -> String {
        self.eval("document.body?.innerText ?? ''").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows some text.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        self.until(&format!("document.body?.innerText.includes({})", json!(text)));
    }

    pub(crate) fn press(&self, key: &str) {
        self.press_with(key, 0);
    }

    /// Presses a key with Alt (1), Control (2) or Shift (8).
    pub(crate) fn press_with(&self, key: &str, modifiers: u32) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            " " => (32, " "),
            other => panic!("{other} has no number"),
        };
        let mut asked = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code,
            "code": key, "text": text, "modifiers": modifiers });
        self.call("Input.dispatchKeyEvent", &asked);
        asked["type"] = "keyUp".into();
        asked["text"] = "".into();
        self.call("Input.dispatchKeyEvent", &asked);
    }

    pub(crate) fn type_text(&self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Role and name of everything that assistive technology is told of.
    pub(crate) fn accessible(&self) -> Vec<(String, String)> {
        let told = self.call("Accessibility.getFullAXTree", &json!({}));
        let nodes = told["nodes"].as_array().unwrap();
        let seen = nodes.iter().filter(|node| node["ignored"] != true);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        seen.map(|node| (text(&node["role"]), text(&node["name"]))).collect()
    }

    /// Nothing went wrong in the page, but for what contains one of `known`.
    #[track_caller]
    pub(crate) fn is_content(&self, known: &[&str]) {
        let complaints = self.complaints.lock().unwrap();
        let bad = complaints.iter().filter(|told| !known.iter().any(|known| told.contains(known)));
        assert_eq!(bad.collect::<Vec<_>>(), Vec::<&String>::new());
    }

    /// Keeps a picture of the whole page, if the variable `DASHBOARD_SHOTS` names a folder.
    pub(crate) fn shot(&self, name: &str) {
        let Ok(folder) = std::env::var("DASHBOARD_SHOTS") else { return };
        let asked = json!({ "format": "png", "captureBeyondViewport": true });
        let told = self.call("Page.captureScreenshot", &asked);
        std::fs::create_dir_all(&folder).unwrap();
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        let picture = uniqcrawl::text::decode_base64(told["data"].as_str().unwrap()).unwrap();
        std::fs::write(path, picture).unwrap();
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let asked = json!({ "browserContextId": self.context });
        let end = || browser().call(None, "Target.disposeBrowserContext", &asked);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(end));
        let mut mail = browser().mail.lock().unwrap_or_else(PoisonError::into_inner);
        mail.events.remove(&self.session);
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let all = three.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte));
        let all = all << (8 * (3 - three.len()));
        for at in 0..4 {
            let digit = char::from(DIGITS[(all >> (18 - 6 * at) & 63) as usize]);
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}
