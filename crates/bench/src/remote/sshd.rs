//! An sshd with keys, a configuration and its own port.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kendall_testbed::{Program, free_port};
use tempfile::TempDir;

const SSHD: &str = "/usr/sbin/sshd";

/// A server, and the key that it admits.
pub(super) struct Sshd {
    _server: Program,
    folder: TempDir,
    port: u16,
}

impl Sshd {
    /// `None` where OpenSSH is not installed.
    pub(super) fn start() -> Option<Self> {
        let is_installed = |program| Command::new(program).stderr(Stdio::null()).status().is_ok();
        if !["ssh", "scp"].into_iter().all(is_installed) || !Path::new(SSHD).exists() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "client"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &file(key)]).status();
            assert!(made.is_ok_and(|status| status.success()), "ssh-keygen makes a key");
        }
        fs::copy(file("client.pub"), file("authorized")).expect("the folder can be written");
        // sshd wants it for privilege separation; where it cannot be made, sshd says so.
        let _ = fs::create_dir_all("/run/sshd");
        let port = free_port();
        let lines = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
             Subsystem sftp internal-sftp\nPidFile none\nSetEnv SHLVL=1\n",
            file("host"),
            file("authorized")
        );
        fs::write(file("config"), lines).expect("the folder can be written");
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f", &file("config")]).stderr(Stdio::null());
        Some(Self { _server: Program::start(command, port), folder, port })
    }

    /// `ssh` or `scp` with the options that lead to this server, of which the one for the port is each program's own.
    pub(super) fn client(&self, program: &str, port: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(["-q", "-F", "none", port, &self.port.to_string(), "-i"])
            .arg(self.folder.path().join("client"));
        command.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]);
        command
    }
}
