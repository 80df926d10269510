//! Stops runs, and resumes interrupted ones as separate processes that outlive this one.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kendall_archive::live::{Head, Process};
use kendall_archive::origin;
use kendall_files::{Folder, append, create};
use kendall_system::quoted;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::{Child, Command};

use crate::id::RunId;

/// The most resumed runs at once: they share the machine, and disturb each other.
const MOST_CHILDREN: usize = 2;
/// The number of failed runs whose errors are kept.
const MOST_NOTES: usize = 32;
/// The file in the run's folder for its standard error.
const LOG: &str = "resume.log";
/// A longer log is truncated.
const LONGEST_LOG_BYTES: u64 = 1 << 20;
/// The time between two checks of its length.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The number of its last lines that the page shows after a failure.
const LINES_SHOWN: usize = 8;

/// The reason why a run cannot be stopped or resumed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionError {
    #[error("this run is not running, so there is nothing to stop")]
    NotRunning,
    #[error("this run is already running")]
    Running,
    #[error("this run was not started by this user on this machine, or its experiment has changed since")]
    Foreign,
    #[error("{MOST_CHILDREN} resumed runs are running; wait for one to end, or stop one")]
    Enough,
    #[error("the run cannot be stopped: {0}")]
    Stop(std::io::Error),
    #[error("the run cannot be resumed: {0}")]
    Start(std::io::Error),
}

/// The runs that this process has resumed.
#[derive(Debug)]
pub(crate) struct Children {
    /// The program that resumes a run: `PROGRAM run --resume FOLDER`.
    program: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    going: Vec<RunId>,
    notes: HashMap<RunId, String>,
    /// The runs with a note, the oldest first.
    order: VecDeque<RunId>,
}

/// Interrupts the run in a folder, as Ctrl-C would.
///
/// # Errors
/// Fails where the run is not running, or belongs to another user.
pub(crate) fn stop(folder: &Folder) -> Result<(), ActionError> {
    let folder = &folder.path();
    let head = Head::read(folder).ok().filter(Head::is_running).ok_or(ActionError::NotRunning)?;
    // A folder of another user may name any process as that of its run.
    if !origin::is_ours(folder) {
        return Err(ActionError::Foreign);
    }
    let pid = i32::try_from(head.process.pid).ok().and_then(Pid::from_raw).ok_or(ActionError::NotRunning)?;
    interrupt(pid, &head.process).map_err(|error| ActionError::Stop(error.into()))
}

/// The kernel may reuse a process number at any time; a pidfd always refers to the same process.
fn interrupt(pid: Pid, process: &Process) -> rustix::io::Result<()> {
    let held = pidfd_open(pid, PidfdFlags::empty())?;
    if !process.is_there() {
        return Err(rustix::io::Errno::SRCH);
    }
    pidfd_send_signal(held, Signal::INT)
}

impl Children {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, known: Mutex::default() }
    }

    /// Resumes a run in a separate process. `held` is its open folder, and `folder` the path.
    ///
    /// # Errors
    /// Fails where another user started the run, where it is already running, where too many others are, or where the process
    /// cannot be started.
    pub(crate) fn resume(
        self: &Arc<Self>,
        id: &RunId,
        held: &Folder,
        folder: &Path,
    ) -> Result<(), ActionError> {
        // The process checks the signature of the experiment again when it reads it.
        if !origin::is_ours(&held.path()) {
            return Err(ActionError::Foreign);
        }
        if Head::read(&held.path()).is_ok_and(|head| head.is_running()) {
            return Err(ActionError::Running);
        }
        let mut known = self.known();
        if known.going.contains(id) {
            return Err(ActionError::Running);
        }
        if known.going.len() >= MOST_CHILDREN {
            return Err(ActionError::Enough);
        }
        let (child, log) = self.start(held, folder).map_err(ActionError::Start)?;
        known.notes.remove(id);
        known.order.retain(|noted| noted != id);
        known.going.push(id.clone());
        drop(known);
        tokio::spawn(Arc::clone(self).attend(id.clone(), log, child));
        Ok(())
    }

    /// The command that resumes a run, for a shell.
    pub(crate) fn command(&self, folder: &Path) -> String {
        let shown = |path: &Path| quoted(&path.display().to_string());
        format!("{} run --resume {}", shown(&self.program), shown(folder))
    }

    fn start(&self, held: &Folder, folder: &Path) -> io::Result<(Child, File)> {
        let log = held.path().join(LOG);
        create(&log)?;
        // Opened for appending, so that it can be truncated meanwhile.
        let log = append(&log, 0o600)?;
        let child = Command::new(&self.program)
            .args(["run", "--resume"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.try_clone()?)
            // Ctrl-C at the terminal stops the page only; the run continues, and can be watched again.
            .process_group(0)
            .kill_on_drop(false)
            .spawn()?;
        Ok((child, log))
    }

    /// Waits for the end of a run, and keeps its log short meanwhile.
    async fn attend(self: Arc<Self>, id: RunId, log: File, mut child: Child) {
        let ended = loop {
            tokio::select! {
                ended = child.wait() => break ended,
                () = tokio::time::sleep(LOOK_EVERY) => shorten(&log),
            }
        };
        let mut known = self.known();
        known.going.retain(|going| *going != id);
        if let Some(note) = ended.ok().and_then(|status| failure(status, &log)) {
            known.notes.insert(id.clone(), note);
            known.order.push_back(id);
            if known.order.len() > MOST_NOTES
                && let Some(oldest) = known.order.pop_front()
            {
                known.notes.remove(&oldest);
            }
        }
    }

    /// The error of a run that failed after it was resumed.
    pub(crate) fn note(&self, id: &RunId) -> Option<String> {
        self.known().notes.get(id).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Truncates a log that has become too long; the next output is at its beginning.
fn shorten(log: &File) {
    if log.metadata().is_ok_and(|metadata| metadata.len() > LONGEST_LOG_BYTES) {
        // On a full disk the log keeps its length.
        let _ = log.set_len(0);
    }
}

/// The note on how a run ended. A run that was stopped, or that is done but missed its expectations, has no note.
fn failure(status: ExitStatus, mut log: &File) -> Option<String> {
    const ENDED_WELL: [i32; 4] = [0, 3, 4, 130];
    if status.code().is_some_and(|code| ENDED_WELL.contains(&code)) {
        return None;
    }
    let mut text = Vec::new();
    // Shows the part of the log that is readable.
    let _ = log.rewind().and_then(|()| log.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
    Some(format!("The resumed run ended with {status}:\n{}", last.join("\n")))
}
