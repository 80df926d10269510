//! The folder and the ports of one case, and the commands that run there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use kendall_testbed::free_port;

/// The time limit of the command of a client.
pub const PROBE_LIMIT: Duration = Duration::from_secs(20);

/// Where a case runs: a folder, whose `disk` holds what a system stores, and ports.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The program `kendall`.
    pub program: PathBuf,
    /// The folder of the case.
    pub folder: PathBuf,
    /// The address of the first part, which it keeps over restarts.
    pub address: String,
    /// A second address.
    pub second: String,
    /// The URL of the peer; empty if there is no peer.
    pub peer: String,
    /// Variables of the environment of the first part, such as the name of a library that shifts the clock.
    pub environment: Vec<(String, String)>,
}

impl Scene {
    /// A scene in an existing folder.
    ///
    /// # Errors
    /// Fails where the folder cannot be written.
    pub fn new(program: &Path, folder: &Path) -> Result<Self, String> {
        let program = fs::canonicalize(program).map_err(|error| format!("{}: {error}", program.display()))?;
        for name in ["disk", "home", "log"] {
            fs::create_dir_all(folder.join(name))
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let address = || format!("127.0.0.1:{}", free_port());
        Ok(Self {
            program,
            folder: folder.to_owned(),
            address: address(),
            second: address(),
            peer: String::new(),
            environment: Vec::new(),
        })
    }

    /// A path in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// kendall with these arguments, in the folder.
    pub fn kendall<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command(&self.program);
        command.args(arguments);
        command
    }

    /// A program in the folder, with no way to the user's files.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env("HOME", self.path("home"))
            .env("XDG_DATA_HOME", self.path("home"))
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command of kendall that must succeed, and returns what it printed.
    ///
    /// # Errors
    /// Fails where the command does.
    pub fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.kendall(arguments).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(text(&output.stdout).trim().to_owned())
        } else {
            Err(format!("{arguments:?}: {}", text(&output.stderr)))
        }
    }
}

/// A command that is killed after this time, with status 137.
pub fn within(command: &Command, limit: Duration) -> Command {
    let mut limited = Command::new("timeout");
    limited.args(["--signal=KILL", &limit.as_secs_f64().to_string()]).arg(command.get_program());
    limited.args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        value.map(|value| limited.env(name, value));
    }
    command.get_current_dir().map(|folder| limited.current_dir(folder));
    limited
}

/// Output as text.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last line of what a command wrote to standard error.
pub(super) fn complaint(output: &Output) -> String {
    let said = text(&output.stderr);
    format!("{}: {}", output.status, said.lines().last().unwrap_or_default())
}
