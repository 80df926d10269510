//! The test program itself, started once more as a process of its own.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names what a process that was started by [`Again::start`] is to be.
const ROLE: &str = "KENDALL_TESTBED_ROLE";

/// One at a time: two that compute would be limited by each other.
static ALONE: Mutex<()> = Mutex::new(());

/// This test program once more, as a server that one of its tests plays; alone while it is there, and killed when it is
/// dropped.
#[derive(Debug)]
pub struct Again(Child, #[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

impl Again {
    /// Starts the program's test of this name with a role, and waits until it says `ready`. Gives what follows that word.
    ///
    /// # Panics
    /// Where the process cannot be started, or ends without a word.
    pub fn start(test: &str, role: &str) -> (Self, String) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let child = Command::new(env::current_exe().expect("a test has a program"))
            .args([test, "--exact", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("a test can be started again");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let said = { lines }.find_map(|line| Some(line.split_once("ready")?.1.trim().to_owned()));
        (Self(child, alone), said.expect("the server says when it is ready"))
    }

    /// The role of this process, if it was started by [`Again::start`].
    pub fn role() -> Option<String> {
        env::var(ROLE).ok()
    }

    /// Says that this process works, with what the one that started it is to know.
    pub fn ready(said: &str) {
        println!("\nready {said}");
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
