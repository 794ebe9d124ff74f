//! A headless Chromium, by WebDriver over a raw connection: the protocol is JSON over HTTP. The
//! benchmark of the page uses it, too.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// An upper bound for any step, also on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The program of the driver.
fn driver() -> String {
    std::env::var("LONGSHORE_TEST_CHROMEDRIVER").unwrap_or("chromedriver".to_owned())
}

/// The program of the browser.
fn browser() -> String {
    std::env::var("LONGSHORE_TEST_CHROMIUM").unwrap_or("/usr/bin/chromium".to_owned())
}

/// A browser and its driver. Dropping it ends both.
pub(crate) struct Driver {
    process: Child,
    port: u16,
    session: String,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.request("DELETE", "", None);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Driver {
    /// Returns true if the browser and its driver are installed.
    pub(crate) fn is_installed() -> bool {
        [driver(), browser()].iter().all(|program| {
            let mut command = Command::new(program);
            let output = command.arg("--version").output();
            output.is_ok_and(|output| output.status.success())
        })
    }

    /// Starts a browser with a window of this size.
    pub(crate) fn start(width: u32, height: u32) -> Self {
        let mut process = Command::new(driver())
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver must be installed: cargo xtask test --browser");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        let mut driver = Self {
            process,
            port: port.unwrap(),
            session: String::new(),
        };
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars=false".to_owned(),
            format!("--window-size={width},{height}"),
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "args": arguments,
                "binary": browser(),
            },
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = driver.request("POST", "", Some(&capabilities));
        driver.session = format!("/{}", session["sessionId"].as_str().unwrap());
        driver
    }

    /// The ID of the driver's process, whose descendants are the browser's processes.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Frees the memory of objects that scripts do not use any more.
    pub(crate) fn collect_garbage(&self) {
        let body = json!({"cmd": "HeapProfiler.collectGarbage", "params": {}});
        self.request("POST", "/goog/cdp/execute", Some(&body));
    }

    /// Sends a command of the session.
    #[track_caller]
    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.try_request(method, path, body);
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    fn try_request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} /session{}{path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.session,
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).unwrap();
        let mut answer: Value = serde_json::from_slice(&text).unwrap();
        let value = answer["value"].take();
        match value["error"].is_null() {
            true => Ok(value),
            false => Err(value),
        }
    }

    /// Opens a page.
    pub(crate) fn open(&self, address: &str) {
        self.request("POST", "/url", Some(&json!({"url": address})));
    }

    /// The result of a script.
    pub(crate) fn script(&self, script: &str) -> Value {
        let body = json!({"script": script, "args": []});
        self.request("POST", "/execute/sync", Some(&body))
    }

    /// The result of a script, or `None` if it fails.
    pub(crate) fn try_script(&self, script: &str) -> Option<Value> {
        let body = json!({"script": script, "args": []});
        let result = self.try_request("POST", "/execute/sync", Some(&body));
        result.ok()
    }

    /// The text of an element.
    pub(crate) fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({selector:?})?.textContent ?? ''");
        self.script(&script).as_str().unwrap().to_owned()
    }

    /// The number of elements.
    pub(crate) fn count(&self, selector: &str) -> u64 {
        let script = format!("return document.querySelectorAll({selector:?}).length");
        self.script(&script).as_u64().unwrap()
    }

    /// Waits until a script returns true.
    #[track_caller]
    pub(crate) fn wait(&self, script: &str) {
        let began = Instant::now();
        // A script fails while another page is loaded.
        let holds = || self.try_script(script).is_some_and(|value| value == true);
        while !holds() {
            assert!(
                began.elapsed() < TIMEOUT,
                "not reached: {script}\n{}",
                self.text("main")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until an element has a text.
    #[track_caller]
    pub(crate) fn wait_text(&self, selector: &str, wanted: &str) {
        self.wait(&format!(
            "return (document.querySelector({selector:?})?.textContent ?? '').includes({wanted:?})"
        ));
    }

    /// Waits until the scripts of the page are loaded.
    #[track_caller]
    pub(crate) fn wait_ready(&self) {
        self.wait("return document.documentElement.dataset.ready === 'true'");
    }

    /// Clicks on an element, as a user does.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        self.wait_ready();
        let wanted = json!({"using": "css selector", "value": selector});
        let element = self.request("POST", "/element", Some(&wanted));
        let id = element.as_object().unwrap().values().next().unwrap();
        let path = format!("/element/{}/click", id.as_str().unwrap());
        self.request("POST", &path, Some(&json!({})));
    }

    /// Types keys into the focused element.
    #[track_caller]
    pub(crate) fn keys(&self, keys: &str) {
        self.wait_ready();
        let press = |key: char| {
            let key = key.to_string();
            [
                json!({"type": "keyDown", "value": key}),
                json!({"type": "keyUp", "value": key}),
            ]
        };
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        let body = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.request("POST", "/actions", Some(&body));
    }

    /// Drags the mouse within an element, from and to these parts of its height.
    #[track_caller]
    pub(crate) fn drag(&self, selector: &str, from: f64, to: f64) {
        let place = format!(
            "const box = document.querySelector({selector:?}).getBoundingClientRect();
             return [box.x + box.width / 2, box.y, box.height]"
        );
        let place = self.script(&place);
        let number = |at: usize| place[at].as_f64().unwrap();
        let step = |part: f64| {
            let y = number(1) + number(2) * part;
            json!({"type": "pointerMove", "x": number(0) as i64, "y": y as i64, "duration": 0})
        };
        let actions = json!([
            step(from),
            {"type": "pointerDown", "button": 0},
            step((from + to) / 2.0),
            step(to),
            {"type": "pointerUp", "button": 0},
        ]);
        let mouse = json!({"type": "pointer", "id": "mouse", "actions": actions});
        let body = json!({"actions": [mouse]});
        self.request("POST", "/actions", Some(&body));
    }

    /// Selects the light or the dark theme.
    pub(crate) fn theme(&self, theme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
        let body = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.request("POST", "/goog/cdp/execute", Some(&body));
    }

    /// Changes the size of the page.
    pub(crate) fn size(&self, width: u32, height: u32) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let body = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics});
        self.request("POST", "/goog/cdp/execute", Some(&body));
    }

    /// Writes a picture of the page to the folder in `LONGSHORE_TEST_PICTURES`, if it is set.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("LONGSHORE_TEST_PICTURES") else {
            return;
        };
        let folder = PathBuf::from(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let picture = self.request("GET", "/screenshot", None);
        let picture = STANDARD.decode(picture.as_str().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }

    /// The errors that the browser has reported, such as violations of the content security
    /// policy.
    pub(crate) fn errors(&self) -> Vec<String> {
        let log = self.request("POST", "/se/log", Some(&json!({"type": "browser"})));
        let entries = log.as_array().unwrap().iter();
        let errors = entries.filter(|entry| entry["level"] == "SEVERE");
        errors
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            // Browsers request the icon independently of the pages.
            .filter(|message| !message.contains("favicon.ico"))
            .collect()
    }
}
