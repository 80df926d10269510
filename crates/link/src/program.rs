//! Starts, watches and stops the programs at the two ends of a link.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::emulated::EmulatedLink;
use crate::end::{end_of, wait};
use crate::error::LinkError;

/// How long a server may take to end without a signal once its only client has gone, as some do.
const ENDS_UNASKED: Duration = Duration::from_millis(200);
/// How long a process may take to end after a signal.
const END_WITHIN: Duration = Duration::from_secs(3);
/// The interval between two checks whether a server listens: the kernel reports no such event.
const CHECK_EVERY: Duration = Duration::from_millis(2);

/// A server at its end of the link. Dropping it stops it and every process that it has started.
#[derive(Debug)]
pub struct ServerProgram {
    child: Child,
    ends: OwnedFd,
    port: u16,
}

impl Drop for ServerProgram {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        for (limit, then) in [(ENDS_UNASKED, Signal::TERM), (END_WITHIN, Signal::KILL)] {
            // A process that cannot be waited for is stopped at once.
            let _ = wait(&[self.ends.as_fd()], Some(limit));
            // Processes that the shell started may outlive it; or none is left.
            let _ = kill_process_group(group, then);
        }
        let _ = self.child.wait();
    }
}

impl ServerProgram {
    /// Starts a server by the shell at the server's end, and waits until it listens. `stop` becomes readable when the user
    /// interrupts.
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
        let mut server = Self { child, ends, port: 0 };
        let begun = Instant::now();
        loop {
            let seen = link.server().visit(listening)?;
            if let Some(port) = seen.port {
                server.port = port;
                return Ok(server);
            }
            let waiting_for = LinkError::step("wait for the server");
            match wait(&[server.ends.as_fd(), stop], Some(CHECK_EVERY)).map_err(waiting_for)? {
                Some(0) => {
                    let status = server.child.wait().map_err(LinkError::step("wait for the server"))?;
                    let command = command.to_owned();
                    return Err(LinkError::ServerEnded { command, status: status.to_string() });
                }
                Some(_) => return Err(LinkError::Interrupted { command: command.to_owned() }),
                None if begun.elapsed() > within => {
                    let (command, within_s) = (command.to_owned(), within.as_secs_f64());
                    return Err(if seen.on_loopback {
                        LinkError::OnLoopback { command }
                    } else {
                        LinkError::NotListening { command, within_s }
                    });
                }
                None => {}
            }
        }
    }

    /// The port on which it listened first: that for connections, if there is one, otherwise that for datagrams.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// The listening sockets of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Listening {
    /// The port of a socket that the other end of the link can reach.
    port: Option<u16>,
    /// Whether a socket listens on the loopback only.
    on_loopback: bool,
}

/// The listening sockets in the calling thread's namespace, for connections or for datagrams.
fn listening() -> Listening {
    // The state of a socket that listens for connections, and of one for datagrams.
    [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")].iter().fold(
        Listening::default(),
        |found, (table, state)| {
            let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
            found.or(sockets(&text, state))
        },
    )
}

/// The sockets of a table in this state (proc(5), /proc/net/tcp): the local address is the second field, the state the fourth.
fn sockets(table: &str, state: &str) -> Listening {
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        // 127.0.0.0/8 and ::1, in four-byte words in the machine's order.
        let loopback = address.len() == 8 && address.ends_with("7F")
            || address == "00000000000000000000000001000000"
            || address.len() == 32
                && address.starts_with("0000000000000000FFFF0000")
                && address.ends_with("7F");
        let port = u16::from_str_radix(port, 16).ok()?;
        (*fields.get(3)? == state)
            .then_some(Listening { port: (!loopback).then_some(port), on_loopback: loopback })
    };
    table.lines().filter_map(socket).fold(Listening::default(), Listening::or)
}

impl Listening {
    fn or(self, other: Self) -> Self {
        Self { port: self.port.or(other.port), on_loopback: self.on_loopback || other.on_loopback }
    }
}

/// How a program at the client's end ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this status.
    Exited(ExitStatus),
    /// By an interruption from the user.
    Interrupted,
}

impl EmulatedLink {
    /// Runs a command in the calling thread's namespace until it ends, the link breaks, or `stop` becomes readable, which happens
    /// when the user interrupts.
    ///
    /// # Errors
    /// Fails where the command cannot run, and where the link breaks.
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
            // The descriptor stays readable, so only the first event counts.
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
                    // At a terminal, Ctrl-C has reached the command already.
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

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_a_socket_that_the_other_end_can_reach() {
        let line = |address: &str, state: &str| {
            format!("   0: {address} 00000000:0000 {state} 00000000:00000000 00:0\n")
        };
        let head = "  sl  local_address rem_address   st tx_queue\n";
        let of = |lines: &[String]| sockets(&(head.to_owned() + &lines.concat()), "0A");
        assert_eq!(of(&[]), Listening::default());
        let any = line("00000000:1F90", "0A");
        assert_eq!(of(std::slice::from_ref(&any)), Listening { port: Some(8080), on_loopback: false });
        let here = line("0100007F:1F91", "0A");
        assert_eq!(of(std::slice::from_ref(&here)), Listening { port: None, on_loopback: true });
        assert_eq!(of(&[here, any]), Listening { port: Some(8080), on_loopback: true });
        assert_eq!(of(&[line("0200000A:0050", "01")]), Listening::default(), "it is connected");
        let six = line("00000000000000000000000001000000:0050", "0A");
        assert_eq!(of(&[six]), Listening { port: None, on_loopback: true });
    }
}
