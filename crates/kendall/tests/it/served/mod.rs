//! A server to be loaded, for tests.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

/// `kendall serve` on a free port, for as long as it is held.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// Its end stops the server.
    stdin: Option<ChildStdin>,
}

impl Served {
    /// A system with its options.
    pub(crate) fn new(system: &[&str]) -> Self {
        let mut child = kendall()
            .arg("serve")
            .args(system)
            .args(["--listen", "127.0.0.1:0", "--until-stdin-ends"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        let stdin = child.stdin.take();
        Self { child, address, stdin }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }
}

pub(crate) fn kendall() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kendall"))
}
