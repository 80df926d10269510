//! A process for each request, a common design of servers: simple, and scheduled by the operating system, which
//! alternates between all processes.
//!
//! The process is a program that receives the request and the server's process id on its standard input and calls
//! [`search_one`].

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kendall_digest::sha256::{Outcome, Targets, scan};
use kendall_digest::{Engine, Interrupt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};

use crate::protocol::{REQUEST_BYTES, Request};
use crate::search::Key;

/// The subcommand of this system by which the program searches.
pub const SEARCH_ONE: &str = "search-one";
/// The name of this system, before its subcommands.
pub(crate) const SYSTEM: &str = "reverse";
/// How long the server waits before it checks whether the client is still connected.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The server's process id.
const SERVER_BYTES: usize = 4;
/// Found or not, the number, and the processor time in ns.
const RESULT_BYTES: usize = 1 + 8 + 8;

/// Reads a request, searches, and writes the answer and the processor time used, in the form that the server
/// expects. Exits with the server.
///
/// # Errors
/// Fails if the request cannot be read or the answer cannot be written.
pub fn search_one(engine: Engine, mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let (mut bytes, mut server) = ([0; REQUEST_BYTES], [0; SERVER_BYTES]);
    input.read_exact(&mut bytes)?;
    input.read_exact(&mut server)?;
    // A server that died before this signal was requested is no longer the parent.
    if getppid().map(Pid::as_raw_pid) != Some(i32::from_be_bytes(server)) {
        return Ok(());
    }
    let request = Request::decode(&bytes).expect("these are the bytes of a request");
    let range = request.start..request.end;
    let value = match scan(engine, &Targets::one(request.digest), range, &Interrupt::new()) {
        Outcome::Found { value, .. } => Some(value),
        Outcome::Absent | Outcome::Stopped { .. } => None,
    };
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let spent_ns = spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64;
    let mut result = vec![u8::from(value.is_some())];
    result.extend(value.unwrap_or(0).to_be_bytes());
    result.extend(spent_ns.to_be_bytes());
    output.write_all(&result)
}

/// A process that searches for a request; dropping this kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    result: Vec<u8>,
}

/// The result of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) value: Option<u64>,
    pub(crate) processor_ns: i64,
}

impl Process {
    /// Starts the program on a request.
    pub(crate) fn start(program: &Path, engine: Engine, key: Key) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args([SYSTEM, SEARCH_ONE])
            .env(Engine::VARIABLE, engine.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let request = Request { digest: key.digest, start: key.start, end: key.end, priority: 0 };
        let mut input = child.stdin.take().expect("it is piped");
        let process = Self { child, result: Vec::with_capacity(RESULT_BYTES) };
        input.write_all(&request.encode())?;
        input.write_all(&getpid().as_raw_pid().to_be_bytes())?;
        Ok(process)
    }

    /// Waits a while for the result; `None` if it is not ready yet.
    pub(crate) fn wait(&mut self) -> io::Result<Option<Finding>> {
        let output = self.child.stdout.as_mut().expect("it is piped");
        if poll(&mut [PollFd::new(&*output, PollFlags::IN)], Some(&LOOK_EVERY))? == 0 {
            return Ok(None);
        }
        let left = (RESULT_BYTES - self.result.len()) as u64;
        if output.take(left).read_to_end(&mut self.result)? < left as usize {
            let status = self.child.wait()?;
            return Err(io::Error::other(format!("the search process ended without a result: {status}")));
        }
        let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("these are 8 bytes"));
        let value = (self.result[0] == 1).then(|| number(&self.result[1..9]));
        let processor_ns = i64::try_from(number(&self.result[9..])).unwrap_or(i64::MAX);
        Ok(Some(Finding { value, processor_ns }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already; the point is to leave no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
