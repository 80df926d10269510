//! Programs that use a connection by plain file descriptors, as `curvecpmessage` runs them, and the terminal's own streams
//! in their place.

use std::io::{self, pipe};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::CommandFdExt;
use command_fds::FdMapping;
use curvecp::CloseReason;
use tokio::io::{AsyncWriteExt, copy, split, stdin, stdout};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::Command;
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

/// Runs a program on a connection until it exits, and returns its status.
///
/// The program's environment has PROTO=CURVECP, and of either side the addresses and of the peer the long-term public key:
/// CURVECPLOCALIP, CURVECPLOCALPORT, CURVECPREMOTEIP, CURVECPREMOTEPORT, CURVECPREMOTEKEY. The end of its output ends our
/// stream: in failure where the program failed. It is killed where the peer's stream ends in failure, so that it does not
/// take part of the data for the whole.
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
        let child = command.kill_on_drop(true).spawn()?;
        // Otherwise the pipes would stay open when the program closes them.
        drop(command);
        let to_program = Sender::from_owned_fd(to_program.into())?;
        Ok((child, to_program, Receiver::from_owned_fd(from_program.into())?))
    };
    let (mut child, mut to_program, mut from_program) = connect().map_err(failed)?;

    let (mut read, mut write) = split(stream);
    let mut inward = pin!(async move { copy(&mut read, &mut to_program).await.map(|_| read) });
    let mut outward = pin!(async move {
        _ = copy(&mut from_program, &mut write).await;
        write
    });
    // The halves of the stream that are done with, held so that it is not dropped before the program exits.
    let (mut reader, mut writer) = (None, None);
    let status = loop {
        tokio::select! {
            copied = &mut inward, if reader.is_none() => {
                let lost = copied.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
                reader = Some(copied);
                if lost {
                    _ = child.start_kill();
                }
            }
            mut write = &mut outward, if writer.is_none() => {
                let exited = timeout(EXIT_AFTER_OUTPUT, child.wait()).await;
                if !matches!(exited, Ok(Ok(status)) if !status.success()) {
                    _ = write.shutdown().await;
                }
                writer = Some(write);
            }
            status = child.wait() => break status,
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
