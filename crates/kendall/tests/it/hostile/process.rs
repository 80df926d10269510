//! One start of kendall, with limits of time, memory and what it writes.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kendall_testbed::LIMIT;
use rustix::fs::OFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};

use super::world::World;

/// What no command and no server may take of memory.
pub(super) const MOST_MEMORY_KB: u64 = 1 << 20;
/// How long a command that goes on until Ctrl-C may do so.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long it may take to end in order; what is interrupted again may end at once.
const AGAIN: Duration = Duration::from_secs(10);
/// A file that becomes longer ends the program by SIGXFSZ.
const MOST_FILE_BYTES: u64 = 256 << 20;

/// What a program has as its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    Kept,
    Full,
    Closed,
}

/// A start of kendall.
pub(super) struct Start<'w> {
    pub(super) world: &'w World,
    pub(super) arguments: Vec<OsString>,
    pub(super) stdin: Vec<u8>,
    pub(super) stdout: Sink,
    /// Whether the command goes on until Ctrl-C, or for as long as its options say.
    pub(super) goes_on: bool,
}

/// How it ended.
pub(super) struct FinishedProcess {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// How often it was interrupted as by Ctrl-C.
    pub(super) interrupted: u32,
}

/// kendall in a world, with no way to a terminal, a browser or the user's own files.
pub(super) fn kendall(world: &World) -> Command {
    // Tests that run in the background of a shell inherit a SIGINT that is ignored, and so would kendall.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_kendall")]);
    command.current_dir(world.here()).env("HOME", world.path("home")).env("TMPDIR", world.path("tmp"));
    for name in
        ["DISPLAY", "WAYLAND_DISPLAY", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"]
    {
        command.env_remove(name);
    }
    // Names that no host has are looked up once.
    command.env("RES_OPTIONS", "timeout:1 attempts:1").env("RUST_BACKTRACE", "0");
    command.env("KENDALL_TEST_TOKEN", format!("{}-of-the-environment", super::secrets::SECRET));
    command
}

impl Start<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// Fails where it passes a limit; it is killed then.
    pub(super) fn run(&self) -> Result<FinishedProcess, String> {
        let [stdin, stdout, stderr] =
            ["out/stdin", "out/stdout", "out/stderr"].map(|name| self.world.path(name));
        fs::write(&stdin, &self.stdin).unwrap();
        let mut command = kendall(self.world);
        command
            .args(&self.arguments)
            .stdin(File::open(&stdin).unwrap())
            .stderr(File::create(&stderr).unwrap());
        command.stdout(match self.stdout {
            Sink::Kept => File::create(&stdout).unwrap().into(),
            Sink::Full => File::options().write(true).open("/dev/full").unwrap().into(),
            Sink::Closed => Stdio::from(std::io::pipe().unwrap().1),
        });
        // Its children end with it, and Ctrl-C of a terminal reaches them all.
        let mut child = command.process_group(0).spawn().unwrap();
        let group = Pid::from_child(&child);
        let limit = Rlimit { current: Some(MOST_FILE_BYTES), maximum: Some(MOST_FILE_BYTES) };
        let _ = prlimit(Some(group), Resource::Fsize, limit);
        let ended = AtomicBool::new(false);
        let waited = thread::scope(|scope| {
            if self.arguments.iter().any(|argument| argument.as_encoded_bytes().ends_with(b"fifo")) {
                scope.spawn(|| feed(&self.world.path("here/fifo"), &ended));
            }
            let waited = self.wait(&mut child, &stdout);
            ended.store(true, Ordering::Relaxed);
            waited
        });
        let _ = kill_process_group(group, Signal::KILL);
        if waited.is_err() {
            let _ = child.wait();
        }
        let (status, interrupted) = waited.map_err(|why| {
            let said = fs::read(&stderr).unwrap_or_default();
            format!("{why}: {}", String::from_utf8_lossy(&said[..said.len().min(500)]))
        })?;
        let read = |path: &Path| fs::read(path).unwrap_or_default();
        Ok(FinishedProcess { status, stdout: read(&stdout), stderr: read(&stderr), interrupted })
    }

    fn wait(&self, child: &mut Child, stdout: &Path) -> Result<(ExitStatus, u32), String> {
        let group = Pid::from_child(child);
        let mut begun = Instant::now();
        let mut interrupted = 0;
        for round in 0_u64.. {
            if let Some(status) = child.try_wait().unwrap() {
                return Ok((status, interrupted));
            }
            let listens = || fs::read(stdout).is_ok_and(|text| text.starts_with(b"listening on "));
            // The page of a run that has ended stays until the next Ctrl-C.
            let is_due = match interrupted {
                0 => self.goes_on && (begun.elapsed() > PATIENCE || listens()),
                several => begun.elapsed() > AGAIN * several,
            };
            if is_due {
                if interrupted == 0 {
                    begun = Instant::now();
                }
                interrupted += 1;
                let _ = kill_process_group(group, Signal::INT);
            }
            if begun.elapsed() > LIMIT {
                return Err(format!(
                    "it does not end within {LIMIT:?}{}",
                    if interrupted > 0 { " of Ctrl-C" } else { "" }
                ));
            }
            if round % 8 == 7 && memory_kb(child.id()) > MOST_MEMORY_KB {
                return Err(format!("it takes more than {} MiB of memory", MOST_MEMORY_KB >> 10));
            }
            thread::sleep(Duration::from_millis(3));
        }
        unreachable!("the loop ends by a return")
    }
}

/// The memory that a process has in use; 0 where it has ended.
pub(super) fn memory_kb(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// The other end of a named pipe, until the program has ended: noise for a reader, and a reader for a writer that goes away again.
fn feed(fifo: &Path, ended: &AtomicBool) {
    let open = |options: &mut OpenOptions| options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(fifo);
    while !ended.load(Ordering::Relaxed) {
        match open(OpenOptions::new().write(true)) {
            Ok(mut pipe) => drop(pipe.write_all(b"1,2\n\x00\xff{[\n")),
            Err(_) => {
                if let Ok(mut pipe) = open(OpenOptions::new().read(true)) {
                    let _ = pipe.read(&mut [0; 4096]);
                }
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
}
