//! Stopping runs, and taking up again those that were interrupted, as their own processes that outlive this one.

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

/// This many runs that were taken up here go on at once: they share the machine, and disturb each other.
const MOST_CHILDREN: usize = 2;
/// The newest runs that failed, with their errors: this many.
const MOST_NOTES: usize = 32;
/// What such a run says on its standard error, in its folder.
const LOG: &str = "resume.log";
/// A longer log begins anew.
const LONGEST_LOG_BYTES: u64 = 1 << 20;
/// How often its length is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// This many of its last lines are shown where it failed.
const LINES_SHOWN: usize = 8;

/// Why a run is not stopped or taken up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionError {
    #[error("this run does not go on, so there is nothing to stop")]
    NotRunning,
    #[error("this run goes on already")]
    Running,
    #[error("this run was not begun by this user on this machine, or its experiment has changed since")]
    Foreign,
    #[error("{MOST_CHILDREN} runs that were taken up here go on; wait for one, or stop it")]
    Enough,
    #[error("the run cannot be stopped: {0}")]
    Stop(std::io::Error),
    #[error("the run cannot be taken up: {0}")]
    Start(std::io::Error),
}

/// The runs that were taken up here.
#[derive(Debug)]
pub(crate) struct Children {
    /// What takes a run up: `PROGRAM run --resume FOLDER`.
    program: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    going: Vec<RunId>,
    notes: HashMap<RunId, String>,
    /// Whose notes there are, the oldest first.
    order: VecDeque<RunId>,
}

/// Asks a run to stop, as Ctrl-C would, in its folder.
///
/// # Errors
/// Fails where it does not go on, or belongs to another user.
pub(crate) fn stop(folder: &Folder) -> Result<(), ActionError> {
    let folder = &folder.path();
    let head = Head::read(folder).ok().filter(Head::is_running).ok_or(ActionError::NotRunning)?;
    // The folder of another person may name any process as that of its run.
    if !origin::is_ours(folder) {
        return Err(ActionError::Foreign);
    }
    let pid = i32::try_from(head.process.pid).ok().and_then(Pid::from_raw).ok_or(ActionError::NotRunning)?;
    interrupt(pid, &head.process).map_err(|error| ActionError::Stop(error.into()))
}

/// A number of a process may be given to another while one looks; what is held on to is not.
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

    /// Takes a run up again, in its own process. `held` is its folder, and `folder` the name of that.
    ///
    /// # Errors
    /// Fails where another user began the run, where it goes on already, where enough others do, or where the process cannot be
    /// started.
    pub(crate) fn resume(
        self: &Arc<Self>,
        id: &RunId,
        held: &Folder,
        folder: &Path,
    ) -> Result<(), ActionError> {
        // The process looks at the signature again, of the experiment that it reads.
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
        // Written at its end, so that it can be cut off meanwhile.
        let log = append(&log, 0o600)?;
        let child = Command::new(&self.program)
            .args(["run", "--resume"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.try_clone()?)
            // Ctrl-C is for the page; the run goes on, and can be watched again.
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

    /// With what taking up a run ended, where that failed.
    pub(crate) fn note(&self, id: &RunId) -> Option<String> {
        self.known().notes.get(id).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins a log anew that has become too long; what is written next stands at its beginning.
fn shorten(log: &File) {
    if log.metadata().is_ok_and(|metadata| metadata.len() > LONGEST_LOG_BYTES) {
        // On a full disk it stays as long as it is.
        let _ = log.set_len(0);
    }
}

/// What to say of a run that ended so. Those that were stopped, and those that are done but missed what was expected, ended well.
fn failure(status: ExitStatus, mut log: &File) -> Option<String> {
    const ENDED_WELL: [i32; 4] = [0, 3, 4, 130];
    if status.code().is_some_and(|code| ENDED_WELL.contains(&code)) {
        return None;
    }
    let mut text = Vec::new();
    // What can be read of it is shown.
    let _ = log.rewind().and_then(|()| log.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
    Some(format!("Taking it up again ended with {status}:\n{}", last.join("\n")))
}
