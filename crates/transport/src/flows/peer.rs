//! Third-party programs as additional sources of bytes: OpenSSH, and the reference implementation of CurveCP in Debian's
//! nacl-tools.
//!
//! At the far end each gets a separate pair of keys in a folder that both ends share, and sends zeros while its client receives.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

/// CurveCP's name and extension of the reference's server.
const NAME: &str = "transport.test";
const EXTENSION: &str = "31415926535897932384626433832795";
const SSHD: &str = "/usr/sbin/sshd";
/// The file that scp copies, large enough for the longest transfer.
const SCP_FILE: &str = "scp-file";
const MOST_BYTES: u64 = 1 << 40;
const HOST: &str = "host";
const CLIENT: &str = "client";
/// The only folder without which sshd does not start.
const SSHD_NEEDS: &str = "/run/sshd";

/// A third-party program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// OpenSSH: `ssh HOST cat /dev/zero`.
    Ssh,
    /// `scp -O` of OpenSSH: the legacy protocol writes in order, so its target can be a pipe. The SFTP protocol needs a file, with
    /// which a fast link would fill the disk.
    Scp,
    /// `curvecpserver` and `curvecpclient`.
    Nacl,
}

/// The exchange of a client with a peer's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Receive zeros without end.
    Zeros,
    /// Receive a byte, and end.
    OneByte,
    /// Receive its own bytes back.
    Echo,
}

impl Wish {
    /// The remote command for it.
    fn command(self) -> &'static [&'static str] {
        match self {
            Self::Zeros => &["cat", "/dev/zero"],
            Self::OneByte => &["head", "-c", "1", "/dev/zero"],
            Self::Echo => &["cat"],
        }
    }
}

impl Peer {
    pub(crate) const ALL: [Self; 3] = [Self::Ssh, Self::Scp, Self::Nacl];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Scp => "scp",
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
            Self::Ssh => serve_ssh(self, at, port, folder).await,
            Self::Scp => {
                make_file(wish, &folder.join(SCP_FILE))?;
                serve_ssh(self, at, port, folder).await
            }
            Self::Nacl => serve_nacl(at, port, wish, folder).await,
        }
    }

    /// Starts the client; its standard output is the received bytes, and its standard input the bytes to send, if any.
    pub(crate) fn client(self, to: IpAddr, port: u16, wish: Wish, folder: &Path) -> Result<Command, String> {
        match self {
            Self::Ssh => Ok(ssh(to, port, wish, folder)),
            Self::Scp => Ok(scp(to, port, folder)),
            Self::Nacl => nacl(to, port, wish, folder),
        }
    }
}

pub(super) async fn run(command: &mut Command, package: &str) -> Result<Vec<u8>, String> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().await;
    let output = output.map_err(|error| format!("cannot run {name}: {error}; install {package}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Creates the file that scp copies: zeros, which take no space on the disk.
fn make_file(wish: Wish, path: &Path) -> Result<(), String> {
    let bytes = match wish {
        Wish::Zeros => MOST_BYTES,
        Wish::OneByte | Wish::Echo => 1,
    };
    let made = fs::File::create(path).and_then(|file| file.set_len(bytes));
    made.map_err(|error| format!("cannot make {} for scp: {error}", path.display()))
}

/// The file of a key of a peer's.
fn key(peer: Peer, of: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{}-{of}", peer.name()))
}

async fn serve_ssh(peer: Peer, at: IpAddr, port: u16, folder: &Path) -> Result<Child, String> {
    for of in [HOST, CLIENT] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(key(peer, of, folder));
        run(&mut command, "openssh-client").await?;
    }
    if !Path::new(SSHD_NEEDS).exists() {
        fs::create_dir_all(SSHD_NEEDS)
            .map_err(|error| format!("cannot make {SSHD_NEEDS}: {error}; run as root"))?;
    }
    let mut command = Command::new(SSHD);
    command.args(["-D", "-f", "/dev/null", "-p", &port.to_string(), "-h"]).arg(key(peer, HOST, folder));
    let admitted = key(peer, CLIENT, folder).with_extension("pub");
    command.arg("-o").arg(format!("AuthorizedKeysFile={}", admitted.display()));
    for option in [
        &format!("ListenAddress={at}"),
        "PidFile=none",
        "UsePAM=no",
        "StrictModes=no",
        "PermitRootLogin=yes",
        // Bash reads the user's .bashrc in a shell of the first level that SSH starts: what that does would be measured, too.
        "SetEnv=SHLVL=1",
    ] {
        command.args(["-o", option]);
    }
    start(&mut command, "openssh-server")
}

fn ssh(to: IpAddr, port: u16, wish: Wish, folder: &Path) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-T", "-p", &port.to_string()]);
    options(Peer::Ssh, &mut command, folder);
    command.arg(to.to_string()).args(wish.command());
    command
}

fn scp(to: IpAddr, port: u16, folder: &Path) -> Command {
    let mut command = Command::new("scp");
    command.args(["-O", "-q", "-P", &port.to_string()]);
    options(Peer::Scp, &mut command, folder);
    command.arg(format!("{}:{}", host(to), folder.join(SCP_FILE).display())).arg("/dev/stdout");
    command
}

/// An address before a colon.
fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The options for both clients of OpenSSH: the key, and neither the user's files nor prompts.
fn options(peer: Peer, command: &mut Command, folder: &Path) {
    command.args(["-F", "none", "-i"]).arg(key(peer, CLIENT, folder));
    for option in
        ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
    {
        command.args(["-o", option]);
    }
}

async fn serve_nacl(at: IpAddr, port: u16, wish: Wish, folder: &Path) -> Result<Child, String> {
    run(Command::new("curvecpmakekey").arg("nacl-key").current_dir(folder), "nacl-tools").await?;
    let printed =
        run(Command::new("curvecpprintkey").arg("nacl-key").current_dir(folder), "nacl-tools").await?;
    // A client that finds the file finds the complete key.
    kendall_files::replace(&folder.join("nacl-key.hex"), printed)
        .map_err(|error| format!("cannot write the key into {}: {error}", folder.display()))?;
    let mut command = Command::new("curvecpserver");
    command.args([NAME, "nacl-key", &at.to_string(), &port.to_string(), EXTENSION, "curvecpmessage"]);
    start(command.args(wish.command()).current_dir(folder), "nacl-tools")
}

fn nacl(to: IpAddr, port: u16, wish: Wish, folder: &Path) -> Result<Command, String> {
    let key = fs::read_to_string(folder.join("nacl-key.hex"));
    let key = key.map_err(|error| format!("the key of nacl's server is not there yet: {error}"))?;
    let mut command = Command::new("curvecpclient");
    command.args([NAME, key.trim(), &to.to_string(), &port.to_string(), EXTENSION]);
    // Received bytes are on descriptor 6, bytes to send go to 7. The shell ends with the last program.
    let script = if wish == Wish::Echo { "cat <&6 & exec cat >&7" } else { "exec cat <&6" };
    command.args(["curvecpmessage", "-c", "sh", "-c", script]);
    Ok(command)
}

pub(super) fn start(command: &mut Command, package: &str) -> Result<Child, String> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    quiet.spawn().map_err(|error| format!("cannot start {name}: {error}; install {package}"))
}
