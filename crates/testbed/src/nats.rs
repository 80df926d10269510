//! A NATS server on a free port.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::{TempDir, tempdir};

use crate::left_out::has_peer;
use crate::program::free_port;
use crate::waiting::wait_until;

/// A configuration with a queue on disk.
pub const JETSTREAM: &str = "jetstream { store_dir: store, max_mem: 64MB, max_file: 2GB }";

/// A NATS server with its files in a temporary folder; killed when this is dropped.
#[derive(Debug)]
pub struct Nats {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

/// The program. Debian's is outside the search path of most users.
fn program() -> &'static str {
    let debian = "/usr/sbin/nats-server";
    if Path::new(debian).exists() { debian } else { "nats-server" }
}

impl Nats {
    /// Starts a server with these lines of configuration; `None` where it is not installed.
    ///
    /// # Panics
    /// Where it does not start within [`crate::LIMIT`].
    pub fn with(configuration: &str) -> Option<Self> {
        if !has_peer(program(), "--version") {
            return None;
        }
        let (folder, port) = (tempdir().expect("folders can be created"), free_port());
        let text = format!("listen: 127.0.0.1:{port}\n{configuration}\n");
        fs::write(folder.path().join("nats.conf"), text).expect("the folder can be written");
        let mut nats = Self { folder, port, child: None };
        nats.start_again();
        Some(nats)
    }

    /// Starts the server again with its files, if it is not running.
    ///
    /// # Panics
    /// Where it does not start within [`crate::LIMIT`].
    pub fn start_again(&mut self) {
        if self.child.is_some() {
            return;
        }
        let log = File::create(self.folder().join("log")).expect("the folder can be written");
        let mut command = Command::new(program());
        command.args(["-c", "nats.conf"]).current_dir(self.folder());
        command.stdin(Stdio::null()).stderr(log.try_clone().expect("files are few")).stdout(log);
        self.child = Some(command.spawn().expect("it has shown its version"));
        wait_until("nats-server listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops the server with SIGSTOP: it keeps its connections, and says nothing until [`Nats::resume`].
    ///
    /// # Panics
    /// Where it is not running.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues a paused server.
    ///
    /// # Panics
    /// Where it is not running.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("it is our process");
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its address without a user.
    pub fn url(&self) -> String {
        self.url_of("")
    }

    /// Its address with what precedes the host, such as `name:password@`.
    pub fn url_of(&self, user: &str) -> String {
        format!("nats://{user}127.0.0.1:{}", self.port)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}
