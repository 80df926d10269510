//! The databases that experiments on the chat need: `tools/databases`, with fresh data for each experiment.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::experiment_file::ExperimentFile;

/// Their addresses, as in the experiment files and in `tools/databases`.
const ADDRESSES: [&str; 3] = ["127.0.0.1:15432", "127.0.0.1:13306", "127.0.0.1:16379"];
/// The last line that the script prints when they run.
const RUNNING: &str = "running until Ctrl-C";
/// On a disk, because flushes are measured; a temporary folder may be memory.
const FOLDER: &str = "/var/tmp";

/// Databases that run until this is dropped.
pub(super) struct Databases {
    /// It ends at the end of its standard input.
    script: Child,
    /// Their data.
    _folder: TempDir,
}

impl Databases {
    /// Starts them if the experiment names one of them and they do not run yet.
    pub(super) fn wanted(root: &Path, file: &ExperimentFile) -> Result<Option<Self>, String> {
        let runs = |address: &str| TcpStream::connect(address).is_ok();
        let is_named = ADDRESSES.iter().any(|address| file.text.contains(address));
        if !is_named || ADDRESSES.into_iter().all(runs) {
            return Ok(None);
        }
        let started = Self::start(&root.join("tools/databases"))?;
        match ADDRESSES.into_iter().find(|address| !runs(address)) {
            Some(silent) => Err(format!("no database of tools/databases accepts a connection at {silent}")),
            None => Ok(Some(started)),
        }
    }

    fn start(script: &Path) -> Result<Self, String> {
        let cannot = |error: std::io::Error| format!("cannot start {}: {error}", script.display());
        let folder = tempfile::tempdir_in(FOLDER).map_err(cannot)?;
        let mut command = Command::new(script);
        // Ctrl-C ends the experiment, and the databases end after it.
        command.arg(folder.path()).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut started = Self { script: command.spawn().map_err(cannot)?, _folder: folder };
        let output = started.script.stdout.take().expect("it is piped");
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        match lines.into_iter().any(|line| line == RUNNING) {
            true => Ok(started),
            false => Err("tools/databases ended before the databases ran".to_owned()),
        }
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
