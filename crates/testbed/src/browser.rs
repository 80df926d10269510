//! A real browser for tests: Debian's Chromium without a window, driven over the DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>).
//!
//! The connection is a pipe rather than a port, so nothing on the machine can interfere, and the browser ends with the pipe,
//! however the tests end. All tests of a file share one browser, since it takes a second to start; they take turns.

mod wire;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use wire::Wire;

use crate::left_out::missing;

/// The time limit for a page. A browser on a busy machine of two cores needs seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The browser of a file of tests, and the lock for their turns.
static BROWSER: Mutex<Option<Browser>> = Mutex::new(None);

/// A running browser.
pub struct Browser {
    wire: Arc<Mutex<Wire>>,
}

/// A turn at the browser.
pub struct Turn(MutexGuard<'static, Option<Browser>>);

impl std::ops::Deref for Turn {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        self.0.as_ref().expect("a turn is given when the browser runs")
    }
}

/// Returns the browser once it is this test's turn. `None`, with a message, where Chromium is not installed; with `CI` set that
/// is a failure.
pub fn browser() -> Option<Turn> {
    let mut shared = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.is_none() {
        if !wire::is_installed() {
            missing("chromium");
            return None;
        }
        *shared = Some(Browser { wire: Arc::new(Mutex::new(Wire::start())) });
    }
    Some(Turn(shared))
}

impl Browser {
    /// Opens a new page at this address, loaded, 1280 × 900 pixels large, in light colours.
    pub fn open(&self, url: &str) -> Page {
        let page = self.blank();
        page.navigate(url);
        page
    }

    /// An empty page, for settings that must precede the first address.
    pub fn blank(&self) -> Page {
        // A separate window: a tab behind another one is not drawn.
        let target = self.call(None, "Target.createTarget", json!({"url": "about:blank", "newWindow": true}));
        let target = target["targetId"].as_str().expect("a target has an id").to_owned();
        let attached = self.call(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let session = attached["sessionId"].as_str().expect("a session has an id").to_owned();
        let page = Page { wire: Arc::clone(&self.wire), target, session };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        page.size(1280, 900);
        page.colours("light");
        page
    }

    /// Sets the folder for downloads.
    pub fn download_to(&self, folder: &std::path::Path) {
        self.call(
            None,
            "Browser.setDownloadBehavior",
            json!({"behavior": "allow", "downloadPath": folder.to_str().expect("a path of text")}),
        );
    }

    fn call(&self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        wire::lock(&self.wire).call(session, method, &parameters)
    }
}

/// A page; closed when dropped. Positions are in pixels of the view, from its upper left corner.
pub struct Page {
    wire: Arc<Mutex<Wire>>,
    target: String,
    session: String,
}

/// A picture, row by row, four bytes a pixel: red, green, blue, alpha.
pub struct Pixels {
    /// The number of pixels in a row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// Four bytes a pixel, row by row from the top.
    pub rgba: Vec<u8>,
}

/// The keys held down.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// Nothing is held.
    Nothing,
    /// Control.
    Control,
    /// Shift.
    Shift,
}

impl Held {
    fn bits(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Control => 2,
            Self::Shift => 8,
        }
    }
}

impl Page {
    /// Goes to an address and waits until it has loaded.
    pub fn navigate(&self, url: &str) {
        self.forget("Page.loadEventFired");
        let answer = self.call("Page.navigate", json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        self.event("Page.loadEventFired");
    }

    /// Loads the page anew.
    pub fn reload(&self) {
        self.forget("Page.loadEventFired");
        self.call("Page.reload", json!({}));
        self.event("Page.loadEventFired");
    }

    /// The value of a JavaScript expression, or of its promise once resolved. Panics with the exception where it throws.
    pub fn eval(&self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true}),
        );
        assert!(answer["exceptionDetails"].is_null(), "{expression}\n{:#}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The number value of an expression.
    pub fn number(&self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or_else(|| panic!("no number: {expression}"))
    }

    /// The text value of an expression.
    pub fn text(&self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_else(|| panic!("no text: {expression}")).to_owned()
    }

    /// Whether an expression is true. The page may be navigating to another one: until that has loaded, the result is false.
    pub fn is_true(&self, expression: &str) -> bool {
        let parameters =
            json!({"expression": format!("document.body && !!({expression})"), "returnByValue": true});
        let answer = wire::lock(&self.wire).try_call(Some(&self.session), "Runtime.evaluate", &parameters);
        // The only possible error is that the page of the expression has gone.
        let Ok(answer) = answer else { return false };
        assert!(answer["exceptionDetails"].is_null(), "{expression}\n{:#}", answer["exceptionDetails"]);
        answer["result"]["value"] == true
    }

    /// Waits until an expression is true.
    pub fn wait(&self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.is_true(expression) {
            assert!(Instant::now() < until, "still not so: {expression}\n{:?}", self.complaints());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sets the size of the view.
    pub fn size(&self, width: u32, height: u32) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
    }

    /// Sets the preferred colour scheme: "light" or "dark".
    pub fn colours(&self, scheme: &str) {
        self.media(json!([{"name": "prefers-color-scheme", "value": scheme}]));
    }

    /// Sets the reader's preferences, by the media features of CSS.
    pub fn media(&self, features: Value) {
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Disconnects the page from the network, or reconnects it.
    pub fn network(&self, is_there: Network) {
        let offline = matches!(is_there, Network::Lost);
        self.call(
            "Network.emulateNetworkConditions",
            json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}),
        );
    }

    /// The visible part of the page.
    pub fn screenshot(&self) -> Pixels {
        Pixels::decode(&self.png())
    }

    /// The visible part of the page, as a PNG file.
    pub fn png(&self) -> Vec<u8> {
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        STANDARD.decode(picture["data"].as_str().expect("a picture")).expect("base64")
    }

    /// The first element that a selector matches, as a PNG file, without the rest of the page.
    pub fn png_of(&self, selector: &str) -> Vec<u8> {
        let place = self.eval(&format!(
            "{{ const {{ x, y, width, height }} = document.querySelector({selector:?}).getBoundingClientRect();
                ({{ x: x + scrollX, y: y + scrollY, width, height, scale: 1 }}) }}"
        ));
        let picture = self.call(
            "Page.captureScreenshot",
            json!({"format": "png", "clip": place, "captureBeyondViewport": true}),
        );
        STANDARD.decode(picture["data"].as_str().expect("a picture")).expect("base64")
    }

    /// The page as printed.
    pub fn pdf(&self) -> Vec<u8> {
        let printed = self.call("Page.printToPDF", json!({"printBackground": false}));
        STANDARD.decode(printed["data"].as_str().expect("a document")).expect("base64")
    }

    /// Moves the pointer.
    pub fn point(&self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, 0, Held::Nothing);
    }

    /// A click.
    pub fn click(&self, at: (f64, f64)) {
        self.point(at);
        self.mouse("mousePressed", at, 1, Held::Nothing);
        self.mouse("mouseReleased", at, 1, Held::Nothing);
    }

    /// A double click.
    pub fn double_click(&self, at: (f64, f64)) {
        self.click(at);
        self.mouse("mousePressed", at, 2, Held::Nothing);
        self.mouse("mouseReleased", at, 2, Held::Nothing);
    }

    /// Presses at one position, moves in steps, and releases at another.
    pub fn drag(&self, from: (f64, f64), to: (f64, f64), held: Held) {
        self.mouse("mouseMoved", from, 0, held);
        self.mouse("mousePressed", from, 1, held);
        for step in 1..=5 {
            let share = f64::from(step) / 5.0;
            let at = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
            self.mouse("mouseMoved", at, 1, held);
        }
        self.mouse("mouseReleased", to, 1, held);
    }

    /// Turns the wheel: down the page by this many pixels, up where negative.
    pub fn wheel(&self, (x, y): (f64, f64), down: f64, held: Held) {
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": down, "modifiers": held.bits()}),
        );
    }

    /// Moves two fingers from two positions to two others.
    pub fn pinch(&self, from: [(f64, f64); 2], to: [(f64, f64); 2]) {
        let fingers = |share: f64| -> Vec<Value> {
            let between = |a: f64, b: f64| a + share * (b - a);
            (0..2)
                .map(|id| {
                    json!({"id": id, "x": between(from[id].0, to[id].0), "y": between(from[id].1, to[id].1)})
                })
                .collect()
        };
        self.call("Input.dispatchTouchEvent", json!({"type": "touchStart", "touchPoints": fingers(0.0)}));
        for step in 1..=5 {
            let points = fingers(f64::from(step) / 5.0);
            self.call("Input.dispatchTouchEvent", json!({"type": "touchMove", "touchPoints": points}));
        }
        self.call("Input.dispatchTouchEvent", json!({"type": "touchEnd", "touchPoints": []}));
    }

    /// Presses a key by its name: "ArrowRight", "Tab", "+".
    pub fn key(&self, key: &str) {
        let is_text = key.chars().count() == 1;
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let mut down = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if is_text {
            down["text"] = json!(key);
        }
        if key == "Enter" {
            down["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}),
        );
    }

    /// The errors in the console and in the browser's log, and uncaught exceptions.
    pub fn complaints(&self) -> Vec<String> {
        let complaint = |event: &Value| {
            let with = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(with["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if with["type"] == "error" => Some(with["args"].to_string()),
                "Log.entryAdded" if with["entry"]["level"] == "error" => Some(with["entry"].to_string()),
                _ => None,
            }
        };
        self.events().iter().filter_map(complaint).collect()
    }

    /// The addresses that the page requested, its own among them, without those of data within the page.
    pub fn requests(&self) -> Vec<String> {
        let asked = |event: &Value| {
            (event["method"] == "Network.requestWillBeSent")
                .then(|| event["params"]["request"]["url"].as_str().expect("an address").to_owned())
        };
        let is_within = |url: &String| url.starts_with("data:") || url.starts_with("blob:");
        self.events().iter().filter_map(asked).filter(|url| !is_within(url)).collect()
    }

    fn mouse(&self, kind: &str, (x, y): (f64, f64), clicks: u32, held: Held) {
        let button = if clicks > 0 { "left" } else { "none" };
        let buttons = u32::from(clicks > 0 && kind != "mouseReleased");
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons,
                   "clickCount": if kind == "mouseMoved" { 0 } else { clicks }, "modifiers": held.bits()}),
        );
    }

    /// A command of the protocol, for what has no method here.
    pub fn call(&self, method: &str, parameters: Value) -> Value {
        wire::lock(&self.wire).call(Some(&self.session), method, &parameters)
    }

    fn events(&self) -> Vec<Value> {
        wire::lock(&self.wire).events(&self.session)
    }

    fn forget(&self, method: &str) {
        wire::lock(&self.wire).forget(&self.session, method);
    }

    fn event(&self, method: &str) {
        wire::lock(&self.wire).wait_for(&self.session, method);
    }
}

/// Whether a page has a network.
#[derive(Clone, Copy, Debug)]
pub enum Network {
    /// The browser has a network.
    There,
    /// Every request fails.
    Lost,
}

impl Drop for Page {
    fn drop(&mut self) {
        // A test that fails must show its own reason, not that its page could not be closed.
        if !thread::panicking() {
            let mut wire = wire::lock(&self.wire);
            wire.call(None, "Target.closeTarget", &json!({"targetId": self.target}));
            wire.close(&self.session);
        }
    }
}

impl Pixels {
    /// Decodes a PNG file.
    pub fn decode(png: &[u8]) -> Self {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder
            .set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().expect("a PNG file");
        let mut rgba = vec![0; reader.output_buffer_size().expect("a picture that fits into memory")];
        let frame = reader.next_frame(&mut rgba).expect("a whole picture");
        assert_eq!(frame.color_type, png::ColorType::Rgba);
        Self { width: frame.width as usize, height: frame.height as usize, rgba }
    }

    /// Red, green and blue at a position.
    pub fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let from = 4 * (y * self.width + x);
        [self.rgba[from], self.rgba[from + 1], self.rgba[from + 2]]
    }

    /// The number of pixels between two corners that are within `tolerance` of a colour in each of its parts.
    pub fn count(
        &self,
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        colour: [u8; 3],
        tolerance: u8,
    ) -> usize {
        let (left, top) = (left.max(0.0) as usize, top.max(0.0) as usize);
        let (right, bottom) = ((right as usize).min(self.width), (bottom as usize).min(self.height));
        let is_near = |at: [u8; 3]| at.iter().zip(colour).all(|(&a, b)| a.abs_diff(b) <= tolerance);
        (top..bottom).map(|y| (left..right).filter(|&x| is_near(self.at(x, y))).count()).sum()
    }
}
