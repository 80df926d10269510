//! The system under test as its own child process, so that its CPU time and memory are its own.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use kendall_analysis::ServerUsage;
use kendall_files::create;
use rustix::process::{Pid, Signal, getpid, kill_process};

/// A server that for this long neither prints its address nor uses CPU time has failed.
const START_WITHIN: Duration = Duration::from_secs(20);
/// A server that uses CPU time may take this long to prepare its data.
const START_AT_MOST: Duration = Duration::from_secs(600);
/// A server that has not ended by then is killed.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How many of the last lines of a server's log an error shows, and the most bytes that it reads for them.
const TAIL_LINES: usize = 10;
const TAIL_BYTES: u64 = 64 * 1024;
/// The first output of a server; its address follows.
pub const LISTENING: &str = "listening on ";

/// Asks this process, which is a server of the laboratory, to stop once its standard input has ended: the program that started it
/// has then ended, too.
pub fn stop_when_stdin_ends() {
    thread::spawn(|| {
        // The loop ends at end of file, and also where reading fails.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    });
}

/// The reason why a server under test cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ServerError {
    #[error("cannot start {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("the server did not say where it listens ({how}); its log, {}, ends with:\n{tail}", log.display())]
    NotReady { how: String, log: PathBuf, tail: String },
    #[error("the server ended during the trial ({status}); its log, {}, ends with:\n{tail}", log.display())]
    Ended { status: ExitStatus, log: PathBuf, tail: String },
    #[error("the server did not stop in good order ({status}), so its stamps may be incomplete; its log, {}, ends with:\n{tail}", log.display())]
    Stop { status: ExitStatus, log: PathBuf, tail: String },
    #[error("cannot watch the server: {0}")]
    Watch(io::Error),
}

/// A running server under test. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
    /// The server ends when this pipe closes, so it does not outlive a laboratory that was killed.
    _lifeline: Option<ChildStdin>,
}

impl Server {
    /// Starts a program that prints "listening on ADDRESS" when it is ready and ends when its standard input
    /// does. What it writes to standard error goes to the log.
    ///
    /// # Errors
    /// Fails where the program cannot be started, ends early, or for 20 seconds neither says anything nor computes.
    pub(crate) fn start(program: &Path, arguments: &[OsString], log: &Path) -> Result<Self, ServerError> {
        let start = |source| ServerError::Start { program: program.into(), source };
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(create(log).map_err(start)?)
            // Ctrl-C at the terminal goes to the laboratory, which then stops the server in good order.
            .process_group(0)
            .spawn()
            .map_err(start)?;
        let lifeline = process.stdin.take();
        let stdout = process.stdout.take().expect("standard output is piped");
        let (said, hears) = mpsc::channel();
        // The thread reads on after the first line, so that the server never blocks on a full pipe.
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(said.send(line)))
        });
        let mut server =
            Self { process, address: ([0, 0, 0, 0], 0).into(), log: log.into(), _lifeline: lifeline };
        let line =
            server.first_line(&hears, START_WITHIN).ok_or_else(|| server.not_ready("it printed nothing"))?;
        let address = line.strip_prefix(LISTENING).and_then(|address| address.trim().parse().ok());
        server.address = address.ok_or_else(|| server.not_ready(&format!("it printed {line:?}")))?;
        Ok(server)
    }

    /// The first line of output; `None` where the server ends without one, or uses no CPU time for `rest`.
    fn first_line(&mut self, hears: &mpsc::Receiver<String>, rest: Duration) -> Option<String> {
        let begun = Instant::now();
        let (mut last, mut spent_s) = (begun, 0.0);
        while last.elapsed() < rest && begun.elapsed() < START_AT_MOST {
            match hears.recv_timeout(rest / 20) {
                Ok(line) => return Some(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            match self.usage() {
                Ok(ServerUsage { cpu_s, .. }) if cpu_s > spent_s => (last, spent_s) = (Instant::now(), cpu_s),
                Ok(_) => {}
                // Output from before it ended may still be under way.
                Err(_) => return hears.recv_timeout(rest).ok(),
            }
        }
        None
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's process number.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The resources that it has used so far.
    ///
    /// # Errors
    /// Fails if it has ended.
    pub(crate) fn usage(&mut self) -> Result<ServerUsage, ServerError> {
        if let Some(status) = self.process.try_wait().map_err(ServerError::Watch)? {
            return Err(ServerError::Ended { status, log: self.log.clone(), tail: tail(&self.log) });
        }
        let folder = PathBuf::from(format!("/proc/{}", self.process.id()));
        let read = |name| fs::read_to_string(folder.join(name)).map_err(ServerError::Watch);
        let own = ServerUsage {
            cpu_s: cpu_s(&read("stat")?),
            peak_memory_bytes: peak_memory_bytes(&read("status")?),
        };
        Ok(descendants(self.process.id()).into_iter().fold(own, |all, pid| {
            // The server may have ended since; its CPU time has then passed to its parent.
            let read = |name| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            ServerUsage {
                cpu_s: all.cpu_s + cpu_s(&read("stat")),
                peak_memory_bytes: all.peak_memory_bytes + peak_memory_bytes(&read("status")),
            }
        }))
    }

    /// Asks it to stop, and waits until it has.
    ///
    /// # Errors
    /// Fails if it ends with another status than success, or does not end within ten seconds and is killed.
    pub(crate) fn stop(mut self) -> Result<(), ServerError> {
        // The server may have ended already; waiting for it returns its status.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let status = match self.ended_within(STOP_WITHIN)? {
            Some(status) => status,
            None => {
                self.process.kill().map_err(ServerError::Watch)?;
                self.process.wait().map_err(ServerError::Watch)?
            }
        };
        if status.success() {
            return Ok(());
        }
        Err(ServerError::Stop { status, log: self.log.clone(), tail: tail(&self.log) })
    }

    fn ended_within(&mut self, limit: Duration) -> Result<Option<ExitStatus>, ServerError> {
        let deadline = Instant::now() + limit;
        loop {
            match self.process.try_wait().map_err(ServerError::Watch)? {
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                ended => return Ok(ended),
            }
        }
    }

    fn not_ready(&mut self, how: &str) -> ServerError {
        // The pipes of a process close a moment before its status is available.
        let how = match self.ended_within(Duration::from_secs(1)) {
            Ok(Some(status)) => format!("it ended with {status}"),
            _ => how.into(),
        };
        ServerError::NotReady { how, log: self.log.clone(), tail: tail(&self.log) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.process.try_wait(), Ok(None)) {
            return;
        }
        // A server that has started other programs ends them only if it is asked.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        if !matches!(self.ended_within(STOP_WITHIN), Ok(Some(_))) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// The last lines of a log, however long it is.
fn tail(log: &Path) -> String {
    let read = || {
        let mut file = kendall_files::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// The descendants of a process (proc(5), `/proc/PID/task/TID/children`).
fn descendants(of: u32) -> Vec<u32> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten();
        let lists =
            threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
        for list in lists.collect::<Vec<String>>() {
            found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        next += 1;
    }
    found.split_off(1)
}

/// User and system time of `/proc/PID/stat` (proc(5), fields 14 and 15), and that of children that have ended and were
/// waited for (16 and 17), in seconds.
fn cpu_s(stat: &str) -> f64 {
    times_s(stat, 4)
}

/// The first this many of these four times.
fn times_s(stat: &str, count: usize) -> f64 {
    // The command's name, field 2, may hold blanks; it ends at the last bracket.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: f64 = after_name
        .split_whitespace()
        .skip(11)
        .take(count)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// The CPU time of a process, of its descendants, and of the children that it has waited for, in seconds; `None` where there is
/// no such process.
pub(crate) fn cpu_with_children_s(pid: u32) -> Option<f64> {
    let stat = |pid| fs::read_to_string(format!("/proc/{pid}/stat"));
    let own_s = cpu_s(&stat(pid).ok()?);
    Some(descendants(pid).into_iter().fold(own_s, |all_s, pid| all_s + cpu_s(&stat(pid).unwrap_or_default())))
}

/// The CPU time of this process alone, in seconds, where the kernel reports it.
pub(crate) fn own_cpu_s() -> Option<f64> {
    Some(times_s(&fs::read_to_string("/proc/self/stat").ok()?, 2))
}

/// The high-water mark of `/proc/PID/status`, in bytes.
fn peak_memory_bytes(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn shell(script: &str) -> (Result<Server, ServerError>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c", script].map(OsString::from);
        (Server::start(Path::new("/bin/sh"), &arguments, &folder.path().join("log")), folder)
    }

    #[test]
    fn of_a_log_of_any_length_the_last_lines_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        assert_eq!(tail(&path), "");
        assert_eq!(tail(Path::new("/dev/zero")), "");
        let mut log = fs::File::create(&path).unwrap();
        // A hole takes no space on the disk.
        log.set_len(1 << 40).unwrap();
        log.seek(SeekFrom::End(0)).unwrap();
        (0..20).for_each(|line| writeln!(log, "\nline {line}").unwrap());
        let last = tail(&path);
        assert!(last.ends_with("line 18\n\nline 19") && last.lines().count() == TAIL_LINES, "{last}");
    }

    #[test]
    fn a_server_is_started_watched_and_stopped() {
        let (server, _folder) =
            shell("trap 'exit 0' TERM; echo listening on 127.0.0.1:4711; while :; do sleep 0.01; done");
        let mut server = server.unwrap();
        assert_eq!(server.address(), ([127, 0, 0, 1], 4711).into());
        assert!(server.usage().unwrap().peak_memory_bytes > 100_000);
        server.stop().unwrap();
    }

    #[test]
    fn a_server_that_computes_is_waited_for_and_one_that_rests_is_not() {
        let first_line = |script: &str| {
            let mut process =
                Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            let stdout = process.stdout.take().unwrap();
            let (said, hears) = mpsc::channel();
            thread::spawn(move || {
                BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(said.send(line)))
            });
            let log = PathBuf::new();
            let mut server = Server { process, address: ([0, 0, 0, 0], 0).into(), log, _lifeline: None };
            // Longer than any pause of the machine.
            server.first_line(&hears, Duration::from_millis(1500))
        };
        let busy = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done; echo ready";
        assert_eq!(first_line(busy).as_deref(), Some("ready"));
        assert_eq!(first_line("exec sleep 60"), None);
    }

    #[test]
    fn a_server_that_does_not_stop_in_good_order_is_an_error() {
        let (server, _folder) = shell(
            "trap 'echo disk full >&2; exit 3' TERM; echo listening on 127.0.0.1:1; while :; do sleep 0.01; done",
        );
        let message = server.unwrap().stop().unwrap_err().to_string();
        assert!(message.contains("exit status: 3") && message.contains("disk full"), "{message}");
    }

    #[test]
    fn a_server_that_ends_early_is_reported_with_its_log() {
        let (server, _folder) = shell("echo no such database >&2; exit 7");
        let message = server.unwrap_err().to_string();
        assert!(message.contains("exit status: 7") && message.contains("no such database"), "{message}");
    }

    #[test]
    fn a_server_ends_when_its_laboratory_does() {
        let (server, _folder) = shell("echo listening on 127.0.0.1:1; read line; exit 0");
        let mut server = server.unwrap();
        drop(server._lifeline.take());
        assert!(server.process.wait().unwrap().success());
    }

    #[test]
    fn the_name_of_a_process_does_not_confuse_its_times() {
        let stat = "12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 200 50 45 5";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_s(stat), 300.0 / ticks);
    }
}
