//! The program of a session: a shell on a pseudo-terminal or on three pipes, as the session's user, in a separate kernel session,
//! with no descriptor but its own and with all signals at their defaults.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{SigHandler, Signal as NixSignal, signal};
use nix::unistd::{setgid, setgroups, setuid};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process_group, setsid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcgetpgrp, tcsetattr, tcsetwinsize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::shell::account::{Account, Identity};
use crate::shell::error::ShellError;
use crate::shell::protocol::{Exit, MAX_DATA, Source, Window};

/// The search path of a session, unless the server's own user runs it: then it is the server's.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What to run.
pub(crate) struct Launch<'a> {
    pub(crate) account: &'a Account,
    /// The type of the terminal and its window, or pipes.
    pub(crate) terminal: Option<(&'a OsStr, Window)>,
    pub(crate) command: Option<&'a OsStr>,
    /// Variables besides those of the account.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// A program that runs.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) input: Input,
    pub(crate) output: Output,
}

/// The destination of a program's input.
pub(crate) enum Input {
    Terminal(pipe::Sender),
    Pipe(ChildStdin),
    Closed,
}

/// Where a program's output comes from. What has ended is absent.
pub(crate) enum Output {
    Terminal(Option<pipe::Receiver>),
    Pipes { output: Option<ChildStdout>, errors: Option<ChildStderr> },
}

/// Starts a program. Within a tokio runtime.
///
/// # Errors
/// [`ShellError::Start`].
pub(crate) fn start(launch: &Launch<'_>) -> Result<Program, ShellError> {
    let failed = |source| ShellError::Start { program: launch.account.shell.display().to_string(), source };
    let mut command = shell(launch);
    let master = match launch.terminal {
        Some((_, window)) => {
            let (master, terminal) = open_terminal(window).map_err(failed)?;
            let again = |terminal: &OwnedFd| terminal.try_clone().map(Stdio::from);
            command.stdin(again(&terminal).map_err(failed)?).stdout(again(&terminal).map_err(failed)?);
            command.stderr(terminal);
            Some(master)
        }
        None => {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            None
        }
    };
    detach(&mut command, master.is_some(), launch.account.identity.clone());
    let mut child = Command::from(command).spawn().map_err(failed)?;
    let (input, output) = match (master, child.stdin.take()) {
        (Some(master), _) => {
            let writer =
                master.try_clone().and_then(pipe::Sender::from_owned_fd_unchecked).map_err(failed)?;
            let reader = pipe::Receiver::from_owned_fd_unchecked(master).map_err(failed)?;
            (Input::Terminal(writer), Output::Terminal(Some(reader)))
        }
        (None, stdin) => {
            let output = Output::Pipes { output: child.stdout.take(), errors: child.stderr.take() };
            (stdin.map_or(Input::Closed, Input::Pipe), output)
        }
    };
    Ok(Program { child, input, output })
}

/// The user's shell with its environment.
fn shell(launch: &Launch<'_>) -> std::process::Command {
    let Account { name, home, shell, identity } = launch.account;
    let mut command = std::process::Command::new(shell);
    let base = shell.file_name().unwrap_or(shell.as_os_str());
    match launch.command {
        Some(line) => _ = command.arg0(base).arg("-c").arg(line),
        None => {
            // What shells take as the sign that they are a login shell.
            let mut login = OsString::from("-");
            login.push(base);
            command.arg0(login);
        }
    }
    command.env_clear().envs(launch.environment.iter().map(|(name, value)| (name, value)));
    let path = std::env::var_os("PATH").filter(|_| identity.is_none()).unwrap_or_else(|| PATH.into());
    command.env("PATH", path).env("HOME", home).env("SHELL", shell).env("USER", name).env("LOGNAME", name);
    if let Some((kind, _)) = launch.terminal {
        command.env("TERM", kind);
    }
    let folder = if home.is_dir() { home.as_path() } else { Path::new("/") };
    command.current_dir(folder);
    command
}

/// A pseudo-terminal: our side, which does not block, and the program's.
fn open_terminal(window: Window) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    // By the master, because its name may be of another mount of /dev/pts.
    let terminal = ioctl_tiocgptpeer(&master, flags)?;
    let mut modes = tcgetattr(&terminal)?;
    // Erasing a character erases all its bytes.
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    resize(&master, window)?;
    fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
    Ok((master, terminal))
}

/// Gives a terminal's window this size; its programs get SIGWINCH where it is another.
pub(crate) fn resize(terminal: impl AsFd, window: Window) -> io::Result<()> {
    let Window { columns, rows, x_pixels, y_pixels } = window;
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: x_pixels, ws_ypixel: y_pixels };
    Ok(tcsetwinsize(terminal, size)?)
}

/// Has the child lead its own session and become the user, before it runs the program.
fn detach(command: &mut std::process::Command, has_terminal: bool, identity: Option<Identity>) {
    let prepare = move || {
        setsid()?;
        if has_terminal {
            ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        // Started by nohup or in the background of a script, a server ignores some, and its programs would, too.
        NixSignal::iterator().for_each(set_default);
        if let Some(Identity { user, group, groups }) = &identity {
            setgroups(groups)?;
            setgid(*group)?;
            setuid(*user)?;
        }
        close_others();
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls alone: it allocates nothing and takes no lock. The vector of groups was
    // made before.
    #[expect(unsafe_code, reason = "the standard library has no safe call for a session and its terminal")]
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Gives a signal its default action; two have no other.
fn set_default(name: NixSignal) {
    // SAFETY: the default action runs no code of ours.
    #[expect(unsafe_code, reason = "nix has no safe way to set a signal's action")]
    let _previous = unsafe { signal(name, SigHandler::SigDfl) };
}

/// Has descriptors that the server inherited closed when the program starts; those that it opened are marked so already.
fn close_others() {
    // SAFETY: it marks descriptors of a process that runs nothing but the start of another program. It fails on kernels before 5.11,
    // where descriptors that the server inherited stay open.
    #[expect(unsafe_code, reason = "there is no safe call")]
    unsafe {
        // By its number, because musl has no function for it.
        nix::libc::syscall(
            nix::libc::SYS_close_range,
            3,
            nix::libc::c_uint::MAX,
            nix::libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}

/// How a program ended.
pub(crate) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Status(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => Exit::Signal(signal.and_then(|signal| u8::try_from(signal).ok()).unwrap_or(9)),
    }
}

impl Program {
    /// Sends a signal to the programs in the foreground of the terminal, or to the program and its children.
    pub(crate) fn signal(&self, number: u8) {
        let Some(signal) = Signal::from_named_raw(number.into()) else { return };
        let foreground = match &self.input {
            Input::Terminal(terminal) => tcgetpgrp(terminal).ok(),
            Input::Pipe(_) | Input::Closed => None,
        };
        // It exists until it is waited for, so its number is that of no other process.
        let own = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let (Some(group), Some(_)) = (foreground.or(own), own) {
            _ = kill_process_group(group, signal);
        }
    }

    /// Sends the program a signal: SIGHUP once its user has left, or SIGKILL.
    pub(crate) fn hang_up(&self, signal: Signal) {
        let Some(own) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
        _ = kill_process_group(own, signal);
        if let Input::Terminal(terminal) = &self.input
            && let Ok(foreground) = tcgetpgrp(terminal)
        {
            _ = kill_process_group(foreground, signal);
        }
    }

    /// Gives the terminal's window this size.
    pub(crate) fn resize(&self, window: Window) {
        if let Input::Terminal(terminal) = &self.input {
            _ = resize(terminal, window);
        }
    }
}

impl Input {
    /// Writes some bytes, and returns how many were taken. Where the program has closed its input, all count as taken.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> usize {
        let written = match self {
            Self::Terminal(terminal) => terminal.write(bytes).await,
            Self::Pipe(pipe) => pipe.write(bytes).await,
            Self::Closed => Ok(bytes.len()),
        };
        written.unwrap_or_else(|_| {
            *self = Self::Closed;
            bytes.len()
        })
    }

    /// The input has ended: a pipe is closed; on a terminal the user types the end himself.
    pub(crate) fn end(&mut self) {
        if matches!(self, Self::Pipe(_)) {
            *self = Self::Closed;
        }
    }
}

/// The buffers that output is read into.
pub(crate) struct Buffers {
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { output: vec![0; MAX_DATA], errors: Vec::new() }
    }

    /// The first bytes of what was read of a source.
    pub(crate) fn read(&self, source: Source, length: usize) -> &[u8] {
        match source {
            Source::Output => &self.output[..length],
            Source::Errors => &self.errors[..length],
        }
    }
}

impl Output {
    /// Whether the output has ended.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Terminal(terminal) => terminal.is_none(),
            Self::Pipes { output, errors } => output.is_none() && errors.is_none(),
        }
    }

    /// Stops reading.
    pub(crate) fn close(&mut self) {
        match self {
            Self::Terminal(terminal) => *terminal = None,
            Self::Pipes { output, errors } => (*output, *errors) = (None, None),
        }
    }

    /// Reads up to `most` bytes; how many, and from where. 0 is the end of that source. Never returns where all is over. Can be
    /// cancelled.
    ///
    /// After the program's exit a terminal ends with what it holds then, although other programs may keep it open.
    pub(crate) async fn read(&mut self, into: &mut Buffers, most: usize, exited: bool) -> (Source, usize) {
        let Buffers { output: buffer, errors: error_buffer } = into;
        let most = most.min(buffer.len());
        match self {
            Self::Terminal(terminal) => {
                let read = match terminal {
                    // Not by way of the runtime, which reads only after the kernel has reported data.
                    Some(open) if exited => read_now(open, &mut buffer[..most]),
                    Some(open) => open.read(&mut buffer[..most]).await,
                    None => std::future::pending().await,
                };
                // EIO: all programs have closed it.
                let count = read.unwrap_or(0);
                if count == 0 {
                    *terminal = None;
                }
                (Source::Output, count)
            }
            Self::Pipes { output, errors } => {
                if error_buffer.is_empty() && errors.is_some() {
                    error_buffer.resize(MAX_DATA, 0);
                }
                let errors_most = most.min(error_buffer.len());
                tokio::select! {
                    count = read_pipe(output, &mut buffer[..most]) => (Source::Output, count),
                    count = read_pipe(errors, &mut error_buffer[..errors_most]) => (Source::Errors, count),
                }
            }
        }
    }
}

fn read_now(terminal: &pipe::Receiver, into: &mut [u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::read(terminal, &mut *into))?)
}

async fn read_pipe(pipe: &mut Option<impl AsyncRead + Unpin>, into: &mut [u8]) -> usize {
    let count = match pipe {
        Some(open) => open.read(into).await.unwrap_or(0),
        None => std::future::pending().await,
    };
    if count == 0 {
        *pipe = None;
    }
    count
}
