//! The client's own terminal: raw mode that is always left again, the window's size, and reading without a thread.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::net::unix::pipe;

use crate::shell::protocol::Window;

/// A terminal in raw mode: every key goes to the program. Dropping it restores the modes.
#[derive(Debug)]
pub struct RawMode {
    terminal: OwnedFd,
    before: Termios,
}

impl RawMode {
    /// Puts a terminal into raw mode.
    ///
    /// # Errors
    /// Where it is not a terminal.
    pub fn enter(terminal: impl AsFd) -> io::Result<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let before = tcgetattr(&terminal)?;
        let raw = Self { terminal, before };
        raw.enter_again()?;
        Ok(raw)
    }

    /// Puts the terminal into raw mode again, after a shell had it.
    ///
    /// # Errors
    /// Where the terminal has closed.
    pub fn enter_again(&self) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &modes)?)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// The size of a terminal's window; the default where it does not say.
pub fn window(terminal: impl AsFd) -> Window {
    match tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Window {
            columns: size.ws_col,
            rows: size.ws_row,
            x_pixels: size.ws_xpixel,
            y_pixels: size.ws_ypixel,
        },
        _ => Window::default(),
    }
}

/// Opens the terminal of a descriptor again, to read and to write without blocking: the flag would otherwise hold for all
/// programs that share the descriptor. Within a tokio runtime.
///
/// # Errors
/// Where the terminal has no name here.
pub fn open_again(number: u8) -> io::Result<(pipe::Receiver, pipe::Sender)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let terminal = openat(CWD, format!("/proc/self/fd/{number}"), flags, Mode::empty())?;
    let writer = pipe::Sender::from_owned_fd_unchecked(terminal.try_clone()?)?;
    Ok((pipe::Receiver::from_owned_fd_unchecked(terminal)?, writer))
}
