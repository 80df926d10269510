//! A nats-server with JetStream on a free port, its files in a temporary folder.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kendall_cluster::{Cluster, ClusterAccess, ClusterOptions};
use kendall_testbed::{TempDir, free_port, has_peer, tempdir, wait_until};

/// The program. Debian's is outside the search path of most users.
fn program() -> &'static str {
    let debian = "/usr/sbin/nats-server";
    if Path::new(debian).exists() { debian } else { "nats-server" }
}

/// The server; it is killed when this is dropped.
pub(crate) struct Nats {
    folder: TempDir,
    port: u16,
    user: String,
    child: Option<Child>,
}

impl Nats {
    /// Starts the server; `None` where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("", "")
    }

    /// Starts the server with further lines of configuration. `user` is what the URL has before the host: `name:password@`.
    pub(crate) fn start_with(configuration: &str, user: &str) -> Option<Self> {
        if !has_peer(program(), "--version") {
            return None;
        }
        let (folder, port) = (tempdir().unwrap(), free_port());
        let store = folder.path().join("store");
        let text = format!(
            "listen: 127.0.0.1:{port}\njetstream {{ store_dir: {store:?}, max_mem: 64MB, max_file: 2GB }}\n{configuration}\n"
        );
        fs::write(folder.path().join("nats.conf"), text).unwrap();
        let mut nats = Self { folder, port, user: user.into(), child: None };
        nats.start_again();
        Some(nats)
    }

    /// Starts the server again with its files, if it is not running.
    pub(crate) fn start_again(&mut self) {
        if self.child.is_some() {
            return;
        }
        let log = fs::File::create(self.folder().join("log")).unwrap();
        let mut command = Command::new(program());
        command.arg("-c").arg(self.folder().join("nats.conf"));
        command.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
        self.child = Some(command.spawn().unwrap());
        let port = self.port;
        wait_until("nats-server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(&self.user)
    }

    pub(crate) fn url_of(&self, user: &str) -> String {
        format!("nats://{user}127.0.0.1:{}", self.port)
    }

    pub(crate) fn access(&self) -> ClusterAccess {
        ClusterAccess::new(self.url().parse().unwrap())
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder().join("ledger.db")
    }

    /// A server's side of the cluster.
    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::start(ClusterOptions { access: self.access(), ledger: Some(self.ledger()) }).unwrap()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}
