//! A server of kendall that hostile clients meet, with what must hold of it meanwhile and afterwards.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_testbed::LIMIT;
use rustix::process::{Pid, Signal, kill_process};

use super::process::{kendall, memory_kb};
use super::secrets::SECRET;
use super::world::{Snapshot, World};

/// What a server may have in use after all hostile clients, in KiB. Debug builds of all servers start with less than a tenth of it.
const MOST_SERVER_KB: u64 = 512 << 10;

/// A server, killed where it is dropped.
pub(super) struct Server {
    /// Where it answers, as it printed it.
    pub(super) address: String,
    child: Mutex<Child>,
    id: u32,
    world: World,
    before: Snapshot,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server that prints where it listens, in a separate world with prepared files.
    pub(super) fn start(prepared: &Path, arguments: &[&str]) -> Self {
        let world = World::new(prepared);
        let stderr = File::create(world.path("out/stderr")).unwrap();
        let mut command = kendall(&world);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let before = world.snapshot();
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.split_whitespace().last();
        let address = address.unwrap_or_else(|| panic!("{arguments:?} does not start")).to_owned();
        let id = child.id();
        Self { address, child: Mutex::new(child), id, world, before, _stdout: stdout }
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Whether it still runs, within its bound of memory, without a panic.
    ///
    /// # Errors
    /// Says what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let memory = memory_kb(self.id);
        if memory > MOST_SERVER_KB {
            return Err(format!("the server has {} MiB of memory in use", memory >> 10));
        }
        if let Some(status) = self.child.lock().unwrap().try_wait().unwrap() {
            return Err(format!("the server has ended, {status}: {}", self.log()));
        }
        let log = self.log();
        if log.contains("panicked at") { Err(format!("the server panics: {log}")) } else { Ok(()) }
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.world.path("out/stderr")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Ends it, which it must do in order and in time.
    ///
    /// # Errors
    /// Says what is wrong.
    pub(super) fn stop(self) -> Result<(), String> {
        self.check()?;
        let mut child = self.child.lock().unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > LIMIT {
                return Err("the server does not end at SIGTERM".into());
            }
            sleep(Duration::from_millis(10));
        };
        let log = self.log();
        if !status.success() || log.contains("panicked at") {
            return Err(format!("the server ends with {status}: {log}"));
        }
        if log.contains(SECRET)
            || self.world.holder_of(SECRET.as_bytes(), &self.before, &self.world.snapshot()).is_some()
        {
            return Err("the server keeps or prints a secret".into());
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}
