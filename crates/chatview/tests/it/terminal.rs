//! A program on a pseudo-terminal, and what its user sees.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use kendall_testbed::{LIMIT, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A program whose terminal is ours.
pub(crate) struct OnTerminal {
    child: Child,
    master: File,
    terminal: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
}

impl OnTerminal {
    /// Starts a program on a terminal of this size.
    pub(crate) fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let terminal = ioctl_tiocgptpeer(&master, flags).unwrap();
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        let again = || Stdio::from(terminal.try_clone().unwrap());
        let child =
            command.stdin(again()).stdout(again()).stderr(again()).env("TERM", "xterm").spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(some(rows), some(columns), 0)));
        let master = File::from(master);
        let reader = thread::spawn({
            let (screen, mut master) = (Arc::clone(&screen), master.try_clone().unwrap());
            move || {
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = master.read(&mut piece) {
                    screen.lock().unwrap().process(&piece[..count]);
                }
            }
        });
        Self { child, master, terminal, screen, reader: Some(reader) }
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// What the screen shows.
    pub(crate) fn shown(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen shows a text.
    pub(crate) fn expect(&self, text: &str) {
        let begun = Instant::now();
        while !self.shown().contains(text) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for \"{text}\" on\n{}", self.shown());
            thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Changes the size of the terminal, of which the program learns by a signal.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(some(rows), some(columns));
        tcsetwinsize(&self.master, size(columns, rows)).unwrap();
        // The terminal is not the program's controlling one, so the kernel does not send it.
        self.signal(Signal::WINCH);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether the screen of before is back, and the terminal is as users have it.
    pub(crate) fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        let screen = self.screen.lock().unwrap();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && !screen.screen().alternate_screen()
            && !screen.screen().bracketed_paste()
            && !screen.screen().hide_cursor()
    }

    /// Waits until the program has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                wait_until("the terminal is restored", || self.is_restored());
                return status;
            }
            assert!(begun.elapsed() < LIMIT, "the program does not end:\n{}", self.shown());
            thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        // The reader ends with the terminal, of which this side is closed last.
        drop(self.reader.take());
    }
}

fn some(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a screen has cells")
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
