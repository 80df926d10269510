//! The origin of a run: where, when and by which program it was made.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Build;
use crate::folder::{read_json, utc_now, write_json};
use kendall_record::RecordError;

const FILE: &str = "manifest.json";

/// The origin of a run: `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The experiment's name.
    pub experiment: String,
    /// The seed of everything random in the run.
    pub seed: u64,
    /// The version of kendall.
    pub kendall: String,
    /// The build of that version; records from before 2026-11-26 do not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// The revision of the checkout in which the run was made, if there is one; `-dirty` where it had changes.
    pub git_revision: Option<String>,
    /// The machine that ran it.
    pub machine: Machine,
    /// The link between client and server, and the method of its emulation, if there is one.
    pub link: String,
    /// The start.
    pub started_utc: String,
    /// The end; `None` while the run is running, and for an interrupted run.
    pub ended_utc: Option<String>,
}

/// The hardware and system of a machine. An unknown property is `unknown`, or 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The machine's host name.
    pub host: String,
    /// The model of its processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Main memory, in bytes.
    pub memory_bytes: u64,
    /// The operating system's distribution.
    pub os: String,
    /// The kernel's name and release.
    pub kernel: String,
}

impl Manifest {
    /// The manifest of a run that starts here and now.
    pub fn here(experiment: &str, seed: u64) -> Self {
        Self {
            experiment: experiment.into(),
            seed,
            kendall: env!("CARGO_PKG_VERSION").into(),
            build: Some(Build::here()),
            git_revision: git_revision(),
            machine: Machine::here(),
            link: "loopback, not emulated".into(),
            started_utc: utc_now(),
            ended_utc: None,
        }
    }

    /// The time from the start to the end, with interruptions; `None` without an end.
    pub fn lasted(&self) -> Option<Duration> {
        let instant = |utc: &str| utc.parse::<jiff::Timestamp>().ok();
        instant(self.ended_utc.as_ref()?)?.duration_since(instant(&self.started_utc)?).try_into().ok()
    }

    /// Writes it to a run's folder.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), RecordError> {
        write_json(&folder.join(FILE), self)
    }

    /// Reads that of a run's folder.
    ///
    /// # Errors
    /// Fails where the file cannot be read or is of another version.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        read_json(&folder.join(FILE))
    }
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let names = rustix::system::uname();
        let unknown = || "unknown".to_owned();
        Self {
            host: names.nodename().to_string_lossy().into_owned(),
            cpu: field("/proc/cpuinfo", "model name", ':').unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            memory_bytes: memory_bytes().unwrap_or(0),
            os: field("/etc/os-release", "PRETTY_NAME", '=').unwrap_or_else(unknown),
            kernel: format!("{} {}", names.sysname().to_string_lossy(), names.release().to_string_lossy()),
        }
    }
}

fn memory_bytes() -> Option<u64> {
    let memory = field("/proc/meminfo", "MemTotal", ':')?;
    memory.strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The value of the first line with this name in a file of lines `name: value`.
fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().trim_matches('"').to_owned())
}

fn git_revision() -> Option<String> {
    let output =
        Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output().ok()?;
    let revision = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !revision.is_empty()).then_some(revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_as_written_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::here("quickstart", u64::MAX);
        assert_eq!(manifest.lasted(), None);
        (manifest.started_utc, manifest.ended_utc) =
            ("2026-11-21T23:59:30Z".into(), Some("2026-11-22T00:01:00Z".into()));
        assert_eq!(manifest.lasted(), Some(Duration::from_secs(90)));
        manifest.write(folder.path()).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest);
        assert!(manifest.machine.cores > 0 && manifest.machine.memory_bytes > 0);
        // An older record.
        manifest.build = None;
        manifest.write(folder.path()).unwrap();
        assert!(!fs::read_to_string(folder.path().join(FILE)).unwrap().contains("rustc"));
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest);
        fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Manifest::read(folder.path()).unwrap_err().to_string().contains(FILE));
    }
}
