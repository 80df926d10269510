//! The processes at the two ends of a link: begun at their end, attended, stopped.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kendall_link::EmulatedLink;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::INTERRUPTED;

/// How long a server may take to end by itself once its only client has gone, as some do.
const ENDS_BY_ITSELF: Duration = Duration::from_millis(200);
/// How long a process may take to end when it is asked to.
const END_WITHIN: Duration = Duration::from_secs(3);
/// Between two looks at whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A server at its end of the link. Dropping it stops it and all that it has started.
pub(crate) struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        for (limit, then) in [(ENDS_BY_ITSELF, Signal::TERM), (END_WITHIN, Signal::KILL)] {
            let begun = Instant::now();
            while matches!(self.0.try_wait(), Ok(None)) && begun.elapsed() < limit {
                sleep(LOOK_EVERY);
            }
            // What the shell has started may still be there when the shell is not; or nothing is there any more.
            let _ = kill_process_group(group, then);
        }
        let _ = self.0.wait();
    }
}

/// Starts a server by the shell, and waits until something listens at its end.
pub(crate) fn serve(
    link: &EmulatedLink,
    command: &str,
    wait_s: u64,
    cancel: &AtomicBool,
) -> anyhow::Result<Served> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).envs(link.environment()).stdin(Stdio::null()).process_group(0);
    let mut server = Served(link.server().visit(|| shell.spawn())?.context("cannot start the server")?);
    let begun = Instant::now();
    while !link.server().visit(listens)? {
        if let Some(status) = server.0.try_wait()? {
            bail!("the server ended before it listened ({status}): {command}");
        }
        if cancel.load(Ordering::Relaxed) {
            bail!("interrupted before the server listened: {command}");
        }
        if begun.elapsed() > Duration::from_secs(wait_s) {
            bail!("the server does not listen after {wait_s} s; give it more with --wait: {command}");
        }
        sleep(LOOK_EVERY);
    }
    Ok(server)
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

/// Runs a command in the calling thread's namespace, until it ends, the link breaks, or all is interrupted.
pub(crate) fn attend(
    link: &mut EmulatedLink,
    mut command: Command,
    cancel: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    command.envs(link.environment());
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let mut asked_to_end: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if asked_to_end.is_some() { ExitCode::from(INTERRUPTED) } else { code(status) });
        }
        if let Err(broken) = link.check() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(broken.into());
        }
        match asked_to_end {
            None if cancel.load(Ordering::Relaxed) => {
                asked_to_end = Some(Instant::now());
                // At a terminal, Ctrl-C has reached it already.
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            }
            Some(since) if since.elapsed() > END_WITHIN => child.kill()?,
            _ => {}
        }
        sleep(LOOK_EVERY);
    }
}

/// An exit status as shells have it.
fn code(status: ExitStatus) -> ExitCode {
    let signalled = || 128 + status.signal().unwrap_or(0);
    ExitCode::from(u8::try_from(status.code().unwrap_or_else(signalled)).unwrap_or(1))
}
