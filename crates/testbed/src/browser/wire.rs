//! The pipe to a browser: commands in one direction, answers and events in the other, each JSON terminated by a zero byte.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;

/// Chromium reads from descriptor 3 and writes to 4, which only a shell can pass on without unsafe code. The shell also removes
/// the profile once the browser has ended, however the tests ended. No run of tests takes ten minutes.
const START: &str = r#"trap : INT TERM
timeout --kill-after=5 600 chromium --user-data-dir="$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1
rm -rf "$0" || { sleep 1; rm -rf "$0"; }"#;

const FLAGS: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--mute-audio",
];

/// Whether there is a browser to start.
pub(super) fn is_installed() -> bool {
    let asked =
        Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Locks the wire, even after a test that failed: each command is complete.
pub(super) fn lock(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A browser's process, and its events that no test has read yet.
pub(super) struct Wire {
    process: Child,
    commands: Option<ChildStdin>,
    messages: Receiver<Value>,
    last_id: u64,
    /// Events by session.
    events: HashMap<String, Vec<Value>>,
}

impl Wire {
    /// Starts a browser with its own profile.
    pub(super) fn start() -> Self {
        let profile = tempfile::Builder::new().prefix("kendall-browser-").tempdir().expect("a folder").keep();
        let mut process = Command::new("sh")
            .args(["-c", START])
            .arg(profile)
            .args(FLAGS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let commands = process.stdin.take();
        let said = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in said.split(0) {
                let Ok(message) = message else { return };
                let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { process, commands, messages, last_id: 0, events: HashMap::new() }
    }

    /// Sends a command and waits for its answer. Panics where the browser reports an error.
    pub(super) fn call(&mut self, session: Option<&str>, method: &str, parameters: &Value) -> Value {
        self.try_call(session, method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method, and returns the error that the browser reports.
    pub(super) fn try_call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: &Value,
    ) -> Result<Value, Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut command = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        let pipe = self.commands.as_mut().expect("the pipe is open until the browser is dropped");
        pipe.write_all(&bytes).expect("the browser runs");
        let until = Instant::now() + PATIENCE;
        loop {
            let mut message = self.receive(until, method);
            if message["id"] == id {
                return match message["error"].take() {
                    Value::Null => Ok(message["result"].take()),
                    error => Err(error),
                };
            }
            self.keep(message);
        }
    }

    /// All events of a session so far.
    pub(super) fn events(&mut self, session: &str) -> Vec<Value> {
        while let Ok(message) = self.messages.try_recv() {
            self.keep(message);
        }
        self.events.get(session).cloned().unwrap_or_default()
    }

    /// Drops the events of a name.
    pub(super) fn forget(&mut self, session: &str, method: &str) {
        if let Some(events) = self.events.get_mut(session) {
            events.retain(|event| event["method"] != method);
        }
    }

    /// Waits until an event of that name has come.
    pub(super) fn wait_for(&mut self, session: &str, method: &str) {
        let until = Instant::now() + PATIENCE;
        let has = |events: &Vec<Value>| events.iter().any(|event| event["method"] == method);
        while !self.events.get(session).is_some_and(has) {
            let message = self.receive(until, method);
            self.keep(message);
        }
    }

    /// Removes the events of a closed session.
    pub(super) fn close(&mut self, session: &str) {
        self.events.remove(session);
    }

    fn receive(&self, until: Instant, what: &str) -> Value {
        let left = until.saturating_duration_since(Instant::now());
        self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("{what}: the browser did not answer"))
    }

    fn keep(&mut self, message: Value) {
        if let Some(session) = message["sessionId"].as_str() {
            self.events.entry(session.to_owned()).or_default().push(message);
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // With its pipe closed, the browser ends, and the shell that waits for it removes the profile.
        drop(self.commands.take());
        let _ = self.process.wait();
    }
}
