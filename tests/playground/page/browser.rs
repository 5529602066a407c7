//! Chromium without a window, steered from here.

use std::{
    fs,
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use fantoccini::{Client, ClientBuilder, Locator, elements::Element};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{BOUND, ports::free_port};

/// How often the page is looked at while waiting for something.
const LOOK: Duration = Duration::from_millis(25);

/// axe-core, which looks for things that people with disabilities cannot use.
const AXE: &str = include_str!("../../fixtures/axe/axe.min.js");

const FIND_BARRIERS: &str = r#"
    const done = arguments[arguments.length - 1];
    const element = ({ target, any, all }) => `${target.join(' ')} (${[...any, ...all].map((one) => one.message).join('; ')})`;
    axe.run(document, { resultTypes: ['violations'] }).then(
        ({ violations }) => done(violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(element).join(' | ')}`)),
        (error) => done([`axe-core failed: ${error}`]),
    );
"#;

/// One browser with one page.
pub(super) struct Browser {
    page: Client,
    _processes: Processes,
}

impl Browser {
    /// A fresh browser that shows `url`.
    pub(super) async fn open(url: &str) -> Self {
        let processes = Processes::start();
        let page = processes.session().await;
        page.goto(url).await.unwrap();
        Self { page, _processes: processes }
    }

    /// Ends the browser in good order; dropping it ends it too.
    pub(super) async fn close(self) {
        self.page.close().await.unwrap();
    }

    /// Types a line where one writes, and Enter.
    pub(super) async fn writes(&self, composer: &str, line: &str) {
        self.on(composer, "", async |field| field.send_keys(&format!("{line}\n")).await).await;
    }

    /// Replaces the value of a field.
    pub(super) async fn fills(&self, field: &str, value: &str) {
        self.on(field, "", async |field| {
            field.clear().await?;
            field.send_keys(value).await
        })
        .await;
    }

    /// Clicks the first visible match of `css` that holds `words`.
    pub(super) async fn presses(&self, css: &str, words: &str) {
        self.on(css, words, async |button| button.click().await).await;
    }

    /// Waits until a visible match of `css` holds `words`.
    pub(super) async fn shows(&self, css: &str, words: &str) {
        self.on(css, words, async |_| Ok(())).await;
    }

    /// The height of an element in pixels, as soon as there is one.
    pub(super) async fn height(&self, css: &str) -> f64 {
        self.shows(css, "").await;
        let script = "return document.querySelector(arguments[0]).getBoundingClientRect().height";
        self.page.execute(script, vec![json!(css)]).await.unwrap().as_f64().expect("a number")
    }

    /// Shows another place of the page: the part of its address after `#`.
    pub(super) async fn visits(&self, place: &str) {
        self.page.execute("location.hash = arguments[0]", vec![json!(place)]).await.unwrap();
    }

    /// What axe-core finds wrong with the page as it is now, in light and in dark mode: a line for each rule, with the
    /// elements that break it.
    pub(super) async fn barriers(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.page.execute(AXE, vec![]).await.unwrap();
        for theme in ["light", "dark"] {
            self.page
                .execute("document.documentElement.dataset.theme = arguments[0]", vec![json!(theme)])
                .await
                .unwrap();
            let Value::Array(lines) = self.page.execute_async(FIND_BARRIERS, vec![]).await.unwrap() else {
                panic!("axe-core gives a list");
            };
            found.extend(lines.iter().map(|line| format!("{theme}: {}", line.as_str().unwrap_or_default())));
        }
        found
    }

    /// Waits until nothing that is visible matches `css`.
    pub(super) async fn lacks(&self, css: &str) {
        let began = Instant::now();
        while self.find(css, "").await.is_some() {
            if began.elapsed() > BOUND {
                panic!("there still is `{css}`:\n{}", self.text().await);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Does something with an element as soon as there is one. The page may draw it anew at any time; then again.
    async fn on(&self, css: &str, words: &str, act: impl AsyncFn(&Element) -> Result<(), fantoccini::error::CmdError>) {
        let began = Instant::now();
        let mut trouble = String::new();
        loop {
            if let Some(element) = self.find(css, words).await {
                match act(&element).await {
                    Ok(()) => return,
                    Err(error) => trouble = format!(" ({error})"),
                }
            }
            if began.elapsed() > BOUND {
                panic!("no `{css}` with “{words}”{trouble}:\n{}", self.text().await);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn find(&self, css: &str, words: &str) -> Option<Element> {
        for element in self.page.find_all(Locator::Css(css)).await.unwrap() {
            // Both fail if it is gone by now.
            let (Ok(true), Ok(text)) = (element.is_displayed().await, element.text().await) else { continue };
            if text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words) {
                return Some(element);
            }
        }
        None
    }

    async fn text(&self) -> String {
        let read = self.page.execute("return document.body.innerText", vec![]).await;
        read.ok().and_then(|text| Some(text.as_str()?.to_owned())).unwrap_or_default()
    }
}

/// The driver and the browser it starts. Both end with this, whatever happens.
struct Processes {
    driver: Child,
    port: u16,
    profile: TempDir,
}

impl Processes {
    fn start() -> Self {
        let port = free_port();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot start chromedriver ({error}): install Chromium and its driver, as with `apt-get install chromium chromium-driver`")
            });
        Self { driver, port, profile: tempfile::tempdir().expect("a temporary directory") }
    }

    async fn session(&self) -> Client {
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1400,1000",
        ];
        let mut args: Vec<String> = args.map(str::to_owned).into();
        args.push(format!("--user-data-dir={}", self.profile.path().display()));
        let Value::Object(wanted) = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": args } }) else {
            unreachable!("it is written as an object");
        };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < BOUND, "chromedriver does not listen");
            tokio::time::sleep(LOOK).await;
        }
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let page = builder.capabilities(wanted).connect(&format!("http://127.0.0.1:{}", self.port)).await;
        page.unwrap_or_else(|error| panic!("Chromium does not start: {error}"))
    }

    /// The processes that work on our profile: nobody else's browser does.
    fn browsers(&self) -> Vec<String> {
        let profile = self.profile.path().to_string_lossy().into_owned();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids =
            all.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.parse::<u32>().is_ok());
        let ours = |pid: &String| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&profile))
        };
        pids.filter(ours).collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // An error means that it has already ended.
        self.driver.kill().ok();
        self.driver.wait().ok();
        let browsers = self.browsers();
        if !browsers.is_empty() {
            Command::new("kill").arg("-KILL").args(browsers).stderr(Stdio::null()).status().ok();
        }
    }
}
