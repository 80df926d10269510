//! Starts a third-party server, waits until it accepts connections, and stops it with all its processes.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kendall_files::append;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, geteuid, getpid, kill_process, set_child_subreaper, wait};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

/// The time within which a server must accept a connection; some are compiled when they start.
const START_WITHIN: Duration = Duration::from_secs(60);
/// The time after which remaining processes are killed.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// The time that killed processes get to end.
const KILL_WITHIN: Duration = Duration::from_secs(1);
/// The prefix of the names of the folders.
const FOLDER: &str = "kendall-http-";
const LOCK: &str = "lock";
/// The interval at which conditions are polled.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The reason why a server cannot be hosted.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum HostError {
    #[error("cannot take a free port of {address}: {source}")]
    Port { address: SocketAddr, source: io::Error },
    #[error("cannot make an empty folder for the server in {}: {source}; set TMPDIR to another place", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot start {command:?}: {source}")]
    Start { command: String, source: io::Error },
    #[error("{command:?} accepted no connection at {address} within {} s; {{port}} in it stands for the port to listen on", START_WITHIN.as_secs())]
    NotReady { command: String, address: SocketAddr },
    #[error(
        "{command:?} exited ({status}); a server must stay in the foreground, as nginx does with 'daemon off;'"
    )]
    Ended { command: String, status: ExitStatus },
    #[error("cannot watch the server: {0}")]
    Watch(#[source] io::Error),
}

/// Starts a server by a shell command in which `{port}` stands for the port of `listen`, or for a free one if that is 0, and
/// `{folder}` for an empty folder. Calls `ready` once it accepts connections, and stops it at SIGTERM or SIGINT.
///
/// # Errors
/// Fails if the server cannot be started, accepts no connection for a minute, or exits.
pub fn host(command: &str, listen: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<(), HostError> {
    // Orphans of its processes become ours, so that they can be found and ended.
    set_child_subreaper(Some(getpid())).map_err(|error| HostError::Watch(error.into()))?;
    let address = free(listen)?;
    let folder = Folder::new()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(HostError::Watch)?;
    runtime.block_on(async {
        let result = run(command, address, &folder.path, ready).await;
        end_all().await;
        result
    })
}

async fn run(
    command: &str,
    address: SocketAddr,
    folder: &Path,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), HostError> {
    let mut stop = [SignalKind::terminate(), SignalKind::interrupt()]
        .map(|kind| signal(kind).map_err(HostError::Watch))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let (terminate, interrupt) = stop.split_at_mut(1);
    let mut child = start(command, address, folder)?;
    let ended = |status| HostError::Ended { command: command.into(), status };
    let not_ready = || HostError::NotReady { command: command.into(), address };
    tokio::select! {
        status = child.wait() => return Err(ended(status.map_err(HostError::Watch)?)),
        _ = terminate[0].recv() => return Ok(()),
        _ = interrupt[0].recv() => return Ok(()),
        reached = timeout(START_WITHIN, reached(address)) => reached.map_err(|_| not_ready())?,
    }
    ready(address);
    tokio::select! {
        status = child.wait() => Err(ended(status.map_err(HostError::Watch)?)),
        _ = terminate[0].recv() => Ok(()),
        _ = interrupt[0].recv() => Ok(()),
    }
}

fn start(command: &str, address: SocketAddr, folder: &Path) -> Result<Child, HostError> {
    let failed = |source| HostError::Start { command: command.into(), source };
    let text = command
        .replace("{port}", &address.port().to_string())
        .replace("{folder}", &folder.display().to_string());
    // Standard output is for the address of the server.
    let log = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from).map_err(failed);
    let mut shell = Command::new("/bin/sh");
    // In a separate process group: Ctrl-C at a terminal goes to kendall, which then stops the server in order.
    shell.arg("-c").arg(text).stdin(Stdio::null()).stdout(log()?).stderr(log()?).process_group(0);
    shell.kill_on_drop(true).spawn().map_err(failed)
}

/// Waits until a server listens at an address.
async fn reached(address: SocketAddr) {
    while TcpStream::connect(address).await.is_err() {
        sleep(LOOK_EVERY).await;
    }
}

/// A free address: with the given port, or any.
fn free(listen: SocketAddr) -> Result<SocketAddr, HostError> {
    // The system does not assign a port again so soon after it was free.
    let bound = TcpListener::bind(listen).and_then(|listener| listener.local_addr());
    bound.map_err(|source| HostError::Port { address: listen, source })
}

/// Stops all processes that this process has started, and their descendants; kills those that do not end.
async fn end_all() {
    let deadline = Instant::now() + STOP_WITHIN;
    let mut signalled = Vec::new();
    while has_children() && Instant::now() < deadline + KILL_WITHIN {
        let late = Instant::now() > deadline;
        let running = descendants(getpid());
        for &pid in running.iter().filter(|pid| late || !signalled.contains(*pid)) {
            // It may have ended since.
            let _ = kill_process(pid, if late { Signal::KILL } else { Signal::TERM });
        }
        signalled = running;
        sleep(LOOK_EVERY).await;
    }
}

/// Whether this process has any child, those that have ended apart. As orphans become its children, one that has none has no descendants
/// either; a walk through the processes may miss one that is handed on meanwhile.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// The descendants of a process that are still running. Those that have ended may have children until the system has given these to
/// another process.
fn descendants(of: Pid) -> Vec<Pid> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children(parent));
        next += 1;
    }
    let mut found = found.split_off(1);
    found.retain(|&pid| is_alive(pid));
    found
}

/// The processes that any thread of a process has started (proc(5), `/proc/PID/task/TID/children`).
fn children(of: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", of.as_raw_nonzero()));
    let of_thread = |thread: std::fs::DirEntry| fs::read_to_string(thread.path().join("children"));
    let lists = threads.into_iter().flatten().filter_map(|thread| of_thread(thread.ok()?).ok());
    let pids = |list: String| {
        list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect::<Vec<_>>()
    };
    lists.flat_map(pids).collect()
}

/// Whether a process is still running. One that has ended but was not waited for is a zombie; so is the first thread of a process whose
/// other threads still run.
fn is_alive(pid: Pid) -> bool {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    let threads = || fs::read_dir(format!("{folder}/task")).map_or(0, Iterator::count);
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']) || threads() > 1)
}

/// An empty folder that only this user can enter, removed at the end. After a kill, the next program that needs one removes it.
struct Folder {
    /// Inside another folder, next to the lock.
    path: PathBuf,
    _outer: TempDir,
    /// Held while the folder is in use.
    _lock: File,
}

impl Folder {
    fn new() -> Result<Self, HostError> {
        let temporary = std::env::temp_dir();
        remove_left_over(&temporary);
        let make = || {
            let private = Permissions::from_mode(0o700);
            let outer =
                tempfile::Builder::new().prefix(FOLDER).permissions(private).tempdir_in(&temporary)?;
            let lock = append(&outer.path().join(LOCK), 0o600)?;
            lock.lock()?;
            let path = outer.path().join("folder");
            fs::create_dir(&path)?;
            Ok(Self { path, _outer: outer, _lock: lock })
        };
        make().map_err(|source| HostError::Folder { path: temporary.clone(), source })
    }
}

/// Removes this user's folders that no program holds.
fn remove_left_over(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(FOLDER.as_bytes())
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        // A folder without a lock is just being created.
        if is_ours
            && let Ok(lock) = kendall_files::open(&entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            // A folder that cannot be removed stays among the temporary files.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_private_and_removed_after_a_kill() {
        let folder = Folder::new().unwrap();
        let outer = folder.path.parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&outer).unwrap().permissions().mode() & 0o777, 0o700);
        let other = Folder::new().unwrap();
        assert!(folder.path.is_dir(), "it is in use");
        // A kill gives back the lock and runs no code.
        let Folder { _outer: left, _lock: lock, .. } = folder;
        let left = left.keep();
        drop(lock);
        // Another test that starts a program shares the lock with it for a moment.
        let is_removed = || {
            let _next = Folder::new().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(10));
            !left.exists()
        };
        assert!((0..500).any(|_| is_removed()) && other.path.is_dir());
    }

    /// A program of several threads that is killed ends thread by thread, and its first thread may be the first.
    #[test]
    fn the_children_of_a_process_are_found_when_its_first_thread_has_ended() {
        if !kendall_testbed::has_peer("python3", "--version") {
            return;
        }
        let program = "import ctypes, subprocess, threading, time
print(subprocess.Popen(['sleep', '60']).pid, flush=True)
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)";
        let mut parent = std::process::Command::new("python3")
            .args(["-c", program])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(parent.stdout.as_mut().unwrap()), &mut line).unwrap();
        let child = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        let stat = format!("/proc/{}/stat", parent.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z") {
            std::thread::sleep(LOOK_EVERY);
        }
        assert!(is_alive(Pid::from_child(&parent)));
        assert!(descendants(getpid()).contains(&child));
        kill_process(child, Signal::KILL).unwrap();
        parent.kill().unwrap();
        parent.wait().unwrap();
    }
}
