//! Programs at the two ends of a link: started at their end, watched, stopped.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::emulated::EmulatedLink;
use crate::end::{end_of, wait};
use crate::error::LinkError;

/// How long a server may take to end without being asked once its only client has gone, as some do.
const ENDS_UNASKED: Duration = Duration::from_millis(200);
/// How long a process may take to end when it is asked to.
const END_WITHIN: Duration = Duration::from_secs(3);
/// The interval between two checks whether a server listens: the kernel reports no such event.
const CHECK_EVERY: Duration = Duration::from_millis(2);

/// A server at its end of the link. Dropping it stops it and all that it has started.
#[derive(Debug)]
pub struct ServerProgram {
    child: Child,
    ends: OwnedFd,
}

impl Drop for ServerProgram {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        for (limit, then) in [(ENDS_UNASKED, Signal::TERM), (END_WITHIN, Signal::KILL)] {
            // What cannot be waited for is stopped at once.
            let _ = wait(&[self.ends.as_fd()], Some(limit));
            // What the shell has started may still be there when the shell is not; or nothing is there any more.
            let _ = kill_process_group(group, then);
        }
        let _ = self.child.wait();
    }
}

impl ServerProgram {
    /// Starts a server by the shell at the server's end, and waits until something listens there. `stop` becomes readable when the
    /// user interrupts.
    ///
    /// # Errors
    /// Fails where the server cannot be started, ends before it listens, or does not listen in time, and on an interruption.
    pub fn start(
        link: &EmulatedLink,
        command: &str,
        within: Duration,
        stop: BorrowedFd<'_>,
    ) -> Result<Self, LinkError> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).envs(link.environment()).stdin(Stdio::null()).process_group(0);
        let child = link.server().visit(|| shell.spawn())?.map_err(LinkError::step("start the server"))?;
        let ends = end_of(&child)?;
        let mut server = Self { child, ends };
        let begun = Instant::now();
        while !link.server().visit(listens)? {
            let waiting_for = LinkError::step("wait for the server");
            match wait(&[server.ends.as_fd(), stop], Some(CHECK_EVERY)).map_err(waiting_for)? {
                Some(0) => {
                    let status = server.child.wait().map_err(LinkError::step("wait for the server"))?;
                    let command = command.to_owned();
                    return Err(LinkError::ServerEnded { command, status: status.to_string() });
                }
                Some(_) => return Err(LinkError::Interrupted { command: command.to_owned() }),
                None if begun.elapsed() > within => {
                    let within_s = within.as_secs();
                    return Err(LinkError::NotListening { command: command.to_owned(), within_s });
                }
                None => {}
            }
        }
        Ok(server)
    }
}

/// Whether anything listens in the calling thread's namespace: for connections, or for datagrams.
fn listens() -> bool {
    let has = |table: &str, state: &str| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        // Fourth in the line of a socket is its state: 0A listens for connections, 07 is of datagrams.
        text.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state))
    };
    has("tcp", "0A") || has("tcp6", "0A") || has("udp", "07") || has("udp6", "07")
}

/// How a program at the client's end ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this status.
    Exited(ExitStatus),
    /// Because the user interrupted.
    Interrupted,
}

impl EmulatedLink {
    /// Runs a command in the calling thread's namespace, until it ends, the link breaks, or `stop` becomes readable, which it does
    /// when the user interrupts.
    ///
    /// # Errors
    /// Fails where the command cannot be run, and where the link breaks.
    pub fn run_program(
        &mut self,
        mut command: Command,
        stop: BorrowedFd<'_>,
    ) -> Result<ProgramEnd, LinkError> {
        command.envs(self.environment());
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(LinkError::step(format!("run {name}")))?;
        let (ends, breaks) = (end_of(&child)?, self.ends()?);
        let failed = || LinkError::step(format!("wait for {name}"));
        let mut asked_to_end: Option<Instant> = None;
        loop {
            // It stays readable, so it counts once.
            let waited = match asked_to_end {
                None => wait(&[ends.as_fd(), breaks.as_fd(), stop], None),
                Some(since) => {
                    let left = END_WITHIN.saturating_sub(since.elapsed());
                    wait(&[ends.as_fd(), breaks.as_fd()], Some(left))
                }
            };
            match waited.map_err(failed())? {
                Some(0) => {
                    let status = child.wait().map_err(failed())?;
                    let exited = ProgramEnd::Exited(status);
                    return Ok(if asked_to_end.is_some() { ProgramEnd::Interrupted } else { exited });
                }
                Some(1) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    self.check()?;
                    return Err(LinkError::Gone { how: "it ended".into() });
                }
                Some(_) => {
                    asked_to_end = Some(Instant::now());
                    // At a terminal, Ctrl-C has reached it already.
                    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                }
                None => {
                    child.kill().map_err(failed())?;
                    asked_to_end = Some(Instant::now());
                }
            }
        }
    }
}
