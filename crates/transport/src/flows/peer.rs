//! Programs that others wrote, as sources of bytes beside ours: OpenSSH, and the reference implementation of CurveCP in Debian's
//! nacl-tools.
//!
//! At the far end each gets keys of its own in the folder that both ends share, and sends zeros for as long as its client listens.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// CurveCP's name and extension of the reference's server.
const NAME: &str = "transport.test";
const EXTENSION: &str = "31415926535897932384626433832795";
const SSHD: &str = "/usr/sbin/sshd";
/// The one folder without which sshd does not start.
const SSHD_NEEDS: &str = "/run/sshd";

/// A program that others wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// OpenSSH: `ssh HOST cat /dev/zero`.
    Ssh,
    /// `curvecpserver` and `curvecpclient`.
    Nacl,
}

/// What a client does with a peer's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Receive zeros without end.
    Zeros,
    /// Receive a byte, and end.
    OneByte,
}

impl Wish {
    /// The command that sends it.
    fn command(self) -> &'static [&'static str] {
        match self {
            Self::Zeros => &["cat", "/dev/zero"],
            Self::OneByte => &["head", "-c", "1", "/dev/zero"],
        }
    }
}

impl Peer {
    pub(crate) const ALL: [Self; 2] = [Self::Ssh, Self::Nacl];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Nacl => "nacl",
        }
    }

    /// Starts the server, which ends with the far end.
    pub(crate) async fn serve(
        self,
        at: IpAddr,
        port: u16,
        wish: Wish,
        folder: &Path,
    ) -> Result<Child, String> {
        match self {
            Self::Ssh => serve_ssh(at, port, folder).await,
            Self::Nacl => serve_nacl(at, port, wish, folder).await,
        }
    }

    /// The client, whose standard output is what arrives.
    pub(crate) fn client(self, to: IpAddr, port: u16, wish: Wish, folder: &Path) -> Result<Command, String> {
        match self {
            Self::Ssh => Ok(ssh(to, port, wish, folder)),
            Self::Nacl => nacl(to, port, folder),
        }
    }
}

async fn run(command: &mut Command, package: &str) -> Result<Vec<u8>, String> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().await;
    let output = output.map_err(|error| format!("cannot run {name}: {error}; install {package}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

async fn serve_ssh(at: IpAddr, port: u16, folder: &Path) -> Result<Child, String> {
    for key in ["ssh-host", "ssh-client"] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
        run(&mut command, "openssh-client").await?;
    }
    if !Path::new(SSHD_NEEDS).exists() {
        fs::create_dir_all(SSHD_NEEDS)
            .map_err(|error| format!("cannot make {SSHD_NEEDS}: {error}; run as root"))?;
    }
    let mut command = Command::new(SSHD);
    command.args(["-D", "-f", "/dev/null", "-p", &port.to_string(), "-h"]).arg(folder.join("ssh-host"));
    command.arg("-o").arg(format!("AuthorizedKeysFile={}", folder.join("ssh-client.pub").display()));
    for option in
        [&format!("ListenAddress={at}"), "PidFile=none", "UsePAM=no", "StrictModes=no", "PermitRootLogin=yes"]
    {
        command.args(["-o", option]);
    }
    start(&mut command, "openssh-server")
}

fn ssh(to: IpAddr, port: u16, wish: Wish, folder: &Path) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-F", "none", "-T", "-p", &port.to_string(), "-i"]).arg(folder.join("ssh-client"));
    for option in
        ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
    {
        command.args(["-o", option]);
    }
    command.arg(to.to_string()).args(wish.command());
    command
}

async fn serve_nacl(at: IpAddr, port: u16, wish: Wish, folder: &Path) -> Result<Child, String> {
    run(Command::new("curvecpmakekey").arg("nacl-key").current_dir(folder), "nacl-tools").await?;
    let printed =
        run(Command::new("curvecpprintkey").arg("nacl-key").current_dir(folder), "nacl-tools").await?;
    // A client that finds the file finds the whole key.
    let part = folder.join("nacl-key.part");
    let written = fs::write(&part, printed).and_then(|()| fs::rename(&part, folder.join("nacl-key.hex")));
    written.map_err(|error| format!("cannot write the key into {}: {error}", folder.display()))?;
    let mut command = Command::new("curvecpserver");
    command.args([NAME, "nacl-key", &at.to_string(), &port.to_string(), EXTENSION, "curvecpmessage"]);
    start(command.args(wish.command()).current_dir(folder), "nacl-tools")
}

fn nacl(to: IpAddr, port: u16, folder: &Path) -> Result<Command, String> {
    let key = fs::read_to_string(folder.join("nacl-key.hex"));
    let key = key.map_err(|error| format!("the key of nacl's server is not there yet: {error}"))?;
    let mut command = Command::new("curvecpclient");
    command.args([NAME, key.trim(), &to.to_string(), &port.to_string(), EXTENSION]);
    // What arrives is at descriptor 6. The shell ends with it.
    command.args(["curvecpmessage", "-c", "sh", "-c", "exec cat <&6"]);
    Ok(command)
}

fn start(command: &mut Command, package: &str) -> Result<Child, String> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    quiet.spawn().map_err(|error| format!("cannot start {name}: {error}; install {package}"))
}
