//! Programs that use a connection by plain file descriptors, as `curvecpmessage` runs them, and the terminal's own streams
//! in their place.

use std::io::{self, IsTerminal, pipe};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::CommandFdExt;
use command_fds::FdMapping;
use curvecp::CloseReason;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncWriteExt, copy, split, stdin, stdout};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{Connection, CurveError, Stream};

/// A program that ends its output and exits with a failure within this time ends the stream in failure.
const EXIT_AFTER_OUTPUT: Duration = Duration::from_millis(100);

/// The descriptors by which a program reads from and writes to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptors {
    /// Standard input and standard output.
    Standard,
    /// 6 and 7, which leaves standard input and output as they are: those of UCSPI clients, and of `curvecpmessage -c`.
    Ucspi,
}

/// A program that runs. Dropping it kills it.
struct Program {
    child: Child,
    /// Whether the program and those that it has started form a separate process group.
    has_group: bool,
}

impl Program {
    /// Kills the program and, where it has a group, the programs that it has started.
    fn kill(&mut self) {
        // A child that was waited for has no number any more, which may be another group's by now.
        let process = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let Some(process) = process else { return };
        if self.has_group {
            _ = kill_process_group(process, Signal::KILL);
        } else {
            _ = self.child.start_kill();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a program on a connection until it exits, and returns its status.
///
/// The program's environment has PROTO=CURVECP, and of either side the addresses and of the peer the long-term public key:
/// CURVECPLOCALIP, CURVECPLOCALPORT, CURVECPREMOTEIP, CURVECPREMOTEPORT, CURVECPREMOTEKEY. The end of its output ends our
/// stream: in failure where the program failed. It is killed where the peer's stream ends in failure or the future is dropped,
/// before its input ends, so that it does not take part of the data for the whole.
///
/// The program gets its own process group, so that all programs which it has started are killed with it. Where it keeps the
/// terminal as its standard input ([`Descriptors::Ucspi`]), it stays in the group of this process, because only that may read the
/// terminal; then it alone is killed.
///
/// # Errors
/// [`CurveError::Program`] where it cannot be started.
pub async fn run_program(
    stream: Stream,
    mut command: Command,
    descriptors: Descriptors,
    local: SocketAddr,
) -> Result<ExitStatus, CurveError> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let failed = |source| CurveError::Program { program, source };
    set_environment(&mut command, stream.connection(), local);
    let connect = || {
        let ((input, to_program), (from_program, output)) = (pipe()?, pipe()?);
        match descriptors {
            Descriptors::Standard => _ = command.stdin(Stdio::from(input)).stdout(Stdio::from(output)),
            Descriptors::Ucspi => {
                let mapping = |parent_fd: OwnedFd, child_fd| FdMapping { parent_fd, child_fd };
                command
                    .fd_mappings(vec![mapping(input.into(), 6), mapping(output.into(), 7)])
                    .map_err(io::Error::other)?;
            }
        }
        let has_group = descriptors == Descriptors::Standard || !io::stdin().is_terminal();
        if has_group {
            command.process_group(0);
        }
        let child = command.kill_on_drop(true).spawn()?;
        // Otherwise the pipes would stay open when the program closes them.
        drop(command);
        let to_program = Sender::from_owned_fd(to_program.into())?;
        let program = Program { child, has_group };
        Ok((program, to_program, Receiver::from_owned_fd(from_program.into())?))
    };
    let (program, mut to_program, mut from_program) = connect().map_err(failed)?;

    let (mut read, mut write) = split(stream);
    let mut inward = pin!(async move {
        let copied = copy(&mut read, &mut to_program).await;
        (copied, read, to_program)
    });
    let mut outward = pin!(async move {
        _ = copy(&mut from_program, &mut write).await;
        write
    });
    // The halves of the stream that are done with, held so that it is not dropped before the program exits.
    let (mut reader, mut writer) = (None, None);
    // Dropped first, before the pipe in `inward` closes.
    let mut program = program;
    let status = loop {
        tokio::select! {
            (copied, read, to_program) = &mut inward, if reader.is_none() => {
                if copied.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
                    program.kill();
                }
                reader = Some(read);
                // A program that is still alive sees the end of its input now.
                drop(to_program);
            }
            mut write = &mut outward, if writer.is_none() => {
                let exited = timeout(EXIT_AFTER_OUTPUT, program.child.wait()).await;
                if !matches!(exited, Ok(Ok(status)) if !status.success()) {
                    _ = write.shutdown().await;
                }
                writer = Some(write);
            }
            status = program.child.wait() => break status,
        }
    };
    let status = status.map_err(|source| CurveError::Program { program: "the program".into(), source })?;
    if writer.is_none() {
        let mut write = outward.await;
        if status.success() {
            _ = write.shutdown().await;
        }
    }
    Ok(status)
}

fn set_environment(command: &mut Command, connection: &Connection, local: SocketAddr) {
    command.env("PROTO", "CURVECP");
    command.env("CURVECPLOCALIP", local.ip().to_string()).env("CURVECPLOCALPORT", local.port().to_string());
    command.env("CURVECPREMOTEKEY", format!("{:?}", connection.peer()));
    if let Some(remote) = connection.address() {
        let (ip, port) = (remote.ip().to_string(), remote.port().to_string());
        command.env("CURVECPREMOTEIP", ip).env("CURVECPREMOTEPORT", port);
    }
}

/// Copies standard input to the peer and what the peer sends to standard output, until both have ended and the peer has
/// everything.
///
/// # Errors
/// Where the peer's stream ends in failure, the connection fails or a standard stream cannot be used.
pub async fn copy_standard_streams(stream: Stream) -> io::Result<()> {
    let connection = stream.connection().clone();
    let (mut read, mut write) = split(stream);
    let (mut input, mut output) = (stdin(), stdout());
    tokio::try_join!(
        async {
            copy(&mut input, &mut write).await?;
            write.shutdown().await
        },
        async {
            copy(&mut read, &mut output).await?;
            output.flush().await
        },
    )?;
    match connection.closed().await {
        Some(CloseReason::Finished) => Ok(()),
        _ => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "the peer has not confirmed that it has everything"))
        }
    }
}
