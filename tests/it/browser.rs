//! A headless Chromium for the tests of the dashboard, driven by `chromiumoxide`. It runs as long
//! as any tab is open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chromiumoxide::cdp::IntoEventKind;
use chromiumoxide::cdp::browser_protocol::audits::EventIssueAdded;
use chromiumoxide::cdp::browser_protocol::browser::BrowserContextId;
use chromiumoxide::cdp::browser_protocol::fetch::EventRequestPaused;
use chromiumoxide::cdp::browser_protocol::log::EventEntryAdded;
use chromiumoxide::cdp::browser_protocol::page::EventJavascriptDialogOpening;
use chromiumoxide::cdp::browser_protocol::target::{
    CreateBrowserContextParams, CreateTargetParams,
};
use chromiumoxide::cdp::js_protocol::runtime::{EventConsoleApiCalled, EventExceptionThrown};
use chromiumoxide::error::CdpError;
use chromiumoxide::types::{Command, Method, MethodId};
use chromiumoxide::{Browser, BrowserConfig, Page};
use futures_util::StreamExt as _;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How long anything may take on a machine that has much to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// What the browser complains of.
type Complaints = Arc<Mutex<Vec<String>>>;

/// A test that failed meanwhile has left a list as it is.
fn locked(complaints: &Complaints) -> MutexGuard<'_, Vec<String>> {
    complaints.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command as JSON: its answer is not read by the words of one version of the protocol.
#[derive(Debug, Clone, Serialize)]
struct Call {
    #[serde(skip)]
    method: String,
    #[serde(flatten)]
    params: Value,
}

impl Method for Call {
    fn identifier(&self) -> MethodId {
        self.method.clone().into()
    }
}

impl Command for Call {
    type Response = Value;
}

fn call(method: &str, params: Value) -> Call {
    Call { method: method.to_owned(), params }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

/// The browser, and the folder that goes with it.
struct Chromium {
    browser: Browser,
    /// Messages that nobody understood: a test may have missed something.
    unread: Complaints,
    _folder: tempfile::TempDir,
}

impl Chromium {
    /// The browser of all tabs that are open, or a new one.
    fn get() -> Arc<Self> {
        static OPEN: Mutex<Weak<Chromium>> = Mutex::new(Weak::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.upgrade().unwrap_or_else(|| {
            let browser = Arc::new(runtime().block_on(Self::start()));
            *open = Arc::downgrade(&browser);
            browser
        })
    }

    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = BrowserConfig::builder()
            .new_headless_mode()
            .user_data_dir(folder.path())
            .launch_timeout(PATIENCE)
            .request_timeout(PATIENCE)
            .surface_invalid_messages()
            .viewport(None)
            .args(["disable-gpu", "disable-component-update", "force-device-scale-factor=1"]);
        if let Ok(program) = std::env::var("CHROMIUM") {
            config = config.chrome_executable(program);
        }
        // Who is root has no sandbox.
        #[cfg(unix)]
        if rustix::process::geteuid().is_root() {
            config = config.no_sandbox();
        }
        let config = config.build().unwrap_or_else(|error| {
            panic!("{error}: `tests/run` installs one, or name its program in CHROMIUM")
        });
        let (browser, mut handler) = Browser::launch(config).await.unwrap();
        let unread = Complaints::default();
        let noted = unread.clone();
        tokio::spawn(async move {
            while let Some(told) = handler.next().await {
                // The crate listens to the network as well, of which nothing is asked here.
                if let Err(CdpError::InvalidMessage(text, error)) = told
                    && !text.contains(r#""method":"Network."#)
                {
                    locked(&noted).push(format!("{error}: {text}"));
                }
            }
        });
        Self { browser, unread, _folder: folder }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let end = async {
            if self.browser.close().await.is_ok() {
                let _ = self.browser.wait().await;
            }
        };
        // What does not end by itself is killed with its handle.
        runtime().block_on(async { drop(tokio::time::timeout(PATIENCE, end).await) });
    }
}

/// Answers of the service that a test gives itself: path (without its query) to status and body.
pub(crate) type Given = Arc<Mutex<BTreeMap<String, (u16, Value)>>>;

/// A tab with storage of its own. What it complains of is kept.
pub(crate) struct Tab {
    page: Page,
    context: BrowserContextId,
    complaints: Complaints,
    pub given: Given,
    /// Requests whose answers the test gave: method and path.
    pub sent: Arc<Mutex<Vec<String>>>,
    chromium: Arc<Chromium>,
}

impl Tab {
    /// Opens a tab whose user reads `language`.
    pub(crate) fn open(language: &str) -> Self {
        let chromium = Chromium::get();
        let (page, context, agent) = runtime().block_on(async {
            let browser = &chromium.browser;
            let context = CreateBrowserContextParams::default();
            let context = browser.create_browser_context(context).await.unwrap();
            let mut blank = CreateTargetParams::new("about:blank");
            blank.browser_context_id = Some(context.clone());
            let page = browser.new_page(blank).await.unwrap();
            (page, context, browser.user_agent().await.unwrap())
        });
        let (complaints, given, sent) = Default::default();
        let tab = Self { page, context, complaints, given, sent, chromium };
        tab.complain::<EventConsoleApiCalled>(|told| told["type"] == "error");
        tab.complain::<EventExceptionThrown>(|_| true);
        tab.complain::<EventEntryAdded>(|told| told["entry"]["level"] == "error");
        tab.complain::<EventIssueAdded>(|_| true);
        tab.complain::<EventJavascriptDialogOpening>(|_| true);
        tab.answer_requests();
        for domain in ["Page", "Runtime", "Log", "Accessibility", "Audits"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        let asked = json!({ "userAgent": agent, "acceptLanguage": language });
        tab.call("Emulation.setUserAgentOverride", asked);
        tab.call("Emulation.setTimezoneOverride", json!({ "timezoneId": "UTC" }));
        tab.size(1200, 900);
        tab
    }

    /// Keeps events of a kind that are complaints.
    fn complain<T: IntoEventKind + Serialize + Unpin>(&self, is_one: fn(&Value) -> bool) {
        let mut events = runtime().block_on(self.page.event_listener::<T>()).unwrap();
        let complaints = self.complaints.clone();
        runtime().spawn(async move {
            while let Some(event) = events.next().await {
                let told = serde_json::to_value(&*event).unwrap();
                if is_one(&told) {
                    locked(&complaints).push(told.to_string());
                }
            }
        });
    }

    /// Answers the requests that the test answers itself.
    fn answer_requests(&self) {
        let mut events =
            runtime().block_on(self.page.event_listener::<EventRequestPaused>()).unwrap();
        let (page, given, sent) = (self.page.clone(), self.given.clone(), self.sent.clone());
        runtime().spawn(async move {
            while let Some(event) = events.next().await {
                let path = event.request.url.splitn(4, '/').nth(3).unwrap_or_default();
                let path = format!("/{}", path.split(['?', '#']).next().unwrap());
                let id = &event.request_id;
                let answer = given.lock().unwrap().get(&path).cloned();
                let answer = match answer {
                    None => call("Fetch.continueRequest", json!({ "requestId": id })),
                    Some((status, body)) => {
                        sent.lock().unwrap().push(format!("{} {path}", event.request.method));
                        let kind = json!({ "name": "Content-Type", "value": "application/json" });
                        let body = BASE64_STANDARD.encode(body.to_string());
                        let params = json!({ "requestId": id, "responseCode": status,
                            "responseHeaders": [kind], "body": body });
                        call("Fetch.fulfillRequest", params)
                    }
                };
                let page = page.clone();
                // The page may have gone: then nobody waits for the answer.
                tokio::spawn(async move { drop(page.execute(answer).await) });
            }
        });
    }

    fn ask(&self, method: &str, params: Value) -> Result<Value, CdpError> {
        runtime().block_on(self.page.execute(call(method, params))).map(|told| told.result)
    }

    #[track_caller]
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        self.ask(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
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
            self.call("Fetch.enable", every);
        }
    }

    pub(crate) fn size(&self, width: u32, height: u32) {
        let asked =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", asked);
    }

    /// Goes to an address: to another view of the same page, as its links do.
    #[track_caller]
    pub(crate) fn go(&self, url: &str) {
        let page = url.split('#').next().unwrap();
        let here = self.eval("location.href.split('#')[0]");
        if here == page {
            self.eval(&format!("location.href = {}; 0", json!(url)));
            return;
        }
        let gone = runtime().block_on(self.page.goto(url));
        gone.unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// Loads the page anew.
    #[track_caller]
    pub(crate) fn reload(&self) {
        self.eval("window.isOld = true");
        self.call("Page.reload", json!({}));
        self.until("!window.isOld && document.readyState === 'complete'");
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn eval(&self, script: &str) -> Value {
        let asked = json!({ "expression": script, "returnByValue": true, "awaitPromise": true,
            "userGesture": true });
        let told = self.call("Runtime.evaluate", asked);
        assert!(told["exceptionDetails"].is_null(), "{script}: {told}");
        told["result"]["value"].clone()
    }

    /// Waits until an expression is true, whatever becomes of the page meanwhile.
    #[track_caller]
    pub(crate) fn until(&self, script: &str) {
        let end = Instant::now() + PATIENCE;
        let asked = json!({ "expression": format!("Boolean({script})"), "returnByValue": true });
        loop {
            let told = self.ask("Runtime.evaluate", asked.clone());
            if told.as_ref().is_ok_and(|told| told["result"]["value"] == true) {
                return;
            }
            assert!(Instant::now() < end, "never: {script}; {told:?}; it says: {}", self.text());
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

    /// Presses a key.
    pub(crate) fn press(&self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            other => panic!("{other} has no number"),
        };
        let mut asked = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code,
            "code": key, "text": text });
        self.call("Input.dispatchKeyEvent", asked.clone());
        asked["type"] = "keyUp".into();
        asked["text"] = "".into();
        self.call("Input.dispatchKeyEvent", asked);
    }

    pub(crate) fn type_text(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Role and name of everything that assistive technology is told of.
    pub(crate) fn accessible(&self) -> Vec<(String, String)> {
        let told = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = told["nodes"].as_array().unwrap();
        let seen = nodes.iter().filter(|node| node["ignored"] != true);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        seen.map(|node| (text(&node["role"]), text(&node["name"]))).collect()
    }

    /// Nothing went wrong in the page, but for what contains one of `known`.
    #[track_caller]
    pub(crate) fn is_content(&self, known: &[&str]) {
        let mut bad = locked(&self.complaints).clone();
        bad.retain(|told| !known.iter().any(|known| told.contains(known)));
        bad.extend(locked(&self.chromium.unread).clone());
        assert_eq!(bad, Vec::<String>::new());
    }

    /// Keeps a picture of the whole page, if the variable `DASHBOARD_SHOTS` names a folder.
    pub(crate) fn shot(&self, name: &str) {
        let Ok(folder) = std::env::var("DASHBOARD_SHOTS") else { return };
        let asked = json!({ "format": "png", "captureBeyondViewport": true });
        let told = self.call("Page.captureScreenshot", asked);
        std::fs::create_dir_all(&folder).unwrap();
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        let picture = BASE64_STANDARD.decode(told["data"].as_str().unwrap()).unwrap();
        std::fs::write(path, picture).unwrap();
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let end = self.chromium.browser.dispose_browser_context(self.context.clone());
        let _ = runtime().block_on(end);
    }
}
