//! A server of `kendall curve` that admits one client.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::common::kendall;

const NAME: &str = "server.example";

/// The keys of a server and of the client that it admits, in a folder that is gone at the end.
pub(super) struct Ends {
    folder: TempDir,
    /// The server's public key.
    key: String,
}

/// A server, which is killed when this is dropped.
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Ends {
    pub(super) fn new() -> Self {
        // A disk would be measured otherwise.
        let in_memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = in_memory.expect("a temporary folder can be made");
        let keygen = |name: &str| {
            let made =
                Command::new(kendall()).args(["curve", "keygen"]).arg(folder.path().join(name)).output();
            String::from_utf8(made.expect("kendall is built").stdout)
                .expect("a key is text")
                .trim()
                .to_owned()
        };
        let (key, client) = (keygen("server"), keygen("client"));
        fs::write(folder.path().join("keys"), format!("{client} benchmark\n"))
            .expect("the folder can be written");
        Self { folder, key }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts `kendall curve WHAT` with these arguments behind the address.
    pub(super) fn serve(&self, what: &str, arguments: &[&str]) -> Server {
        // One that was free a moment ago.
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = socket.local_addr().expect("it is bound");
        drop(socket);
        let mut command = Command::new(kendall());
        command.args(["curve", what, NAME]).arg(self.path("server")).arg(address.to_string()).args(arguments);
        command.arg("--authorized-keys").arg(self.path("keys"));
        let mut child =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("kendall is built");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("listens on") {
            line.clear();
            let read = said.read_line(&mut line).expect("it says what it does");
            assert!(read > 0, "the server ended before it listened");
        }
        thread::spawn(move || said.read_to_end(&mut Vec::new()));
        Server { child, address }
    }

    /// `kendall curve WHAT` of the client, which is to be given what follows the options.
    pub(super) fn client(&self, what: &str, server: &Server) -> Command {
        let mut command = Command::new(kendall());
        command.args(["curve", what, "--server", NAME, &self.key, &server.address.to_string()]);
        command.arg("--key-directory").arg(self.path("client"));
        command
    }

    /// The server's name, with a path in its folder.
    pub(super) fn at_server(path: &str) -> String {
        format!("{NAME}:{path}")
    }

    /// The server's name.
    pub(super) fn name() -> &'static str {
        NAME
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
