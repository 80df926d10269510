//! How long a key takes from a terminal to its echo.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::ends::Ends;
use super::sshd::Sshd;
use crate::common::{ROUNDS, median};

/// What runs at the far end.
const CAT: &str = "stty raw -echo; echo ready; exec cat";
const KEYS: usize = 300;
const MOST_MS: f64 = 0.3;

pub(super) fn line(page: &mut String, ends: &Ends, sshd: Option<&Sshd>) {
    let server = ends.serve("serve-shell", &[]);
    let mut ours = ends.client("shell", &server);
    let mut ours = OnTerminal::start(ours.args(["-t", Ends::name(), CAT]));
    let mut theirs =
        sshd.map(|sshd| OnTerminal::start(sshd.client("ssh", "-p").args(["-tt", "127.0.0.1", CAT])));
    let rounds: Vec<(f64, Option<f64>)> =
        (0..ROUNDS).map(|_| (ours.echo_ms(), theirs.as_mut().map(OnTerminal::echo_ms))).collect();
    let shell = median(rounds.iter().map(|round| round.0));
    let _ = write!(
        page,
        "\n**Shell**: a key's echo by `cat` on a terminal in raw mode takes {shell:.3} ms, the median of {KEYS} keys in each round"
    );
    if theirs.is_some() {
        let ssh = median(rounds.iter().filter_map(|round| round.1));
        let apart = median(rounds.iter().filter_map(|(ours, theirs)| Some(ours - (*theirs)?)));
        let _ = write!(page, ", and over ssh {ssh:.3} ms: {apart:+.3} ms (at most {MOST_MS} wanted)");
    }
    page.push_str(".\n");
}

/// A program on a terminal whose other side is ours; it is killed when this is dropped.
struct OnTerminal {
    terminal: File,
    program: Child,
}

impl OnTerminal {
    fn start(command: &mut Command) -> Self {
        let made = || {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let terminal: OwnedFd = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
            let mut modes = tcgetattr(&terminal)?;
            modes.make_raw();
            tcsetattr(&terminal, OptionalActions::Now, &modes)?;
            rustix::io::Result::Ok((master, terminal))
        };
        let (master, terminal) = made().expect("the system has a terminal left");
        command
            .stdin(terminal.try_clone().expect("a handle is left"))
            .stdout(terminal)
            .stderr(Stdio::inherit());
        let program = command.spawn().expect("the program is installed");
        let mut on_terminal = Self { terminal: master.into(), program };
        let mut seen = Vec::new();
        while !seen.windows(5).any(|window| window == b"ready") {
            seen.push(on_terminal.byte());
        }
        // The end of the line is still on its way.
        sleep(Duration::from_millis(200));
        let _ = on_terminal.terminal.read(&mut [0; 100]);
        on_terminal.echo_ms();
        on_terminal
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.terminal.read_exact(&mut byte).expect("the program is there");
        byte[0]
    }

    /// The median of some keys, typed one after the echo of the other.
    fn echo_ms(&mut self) -> f64 {
        let key = |_| {
            // As a typist does, so that nothing is still awake from the key before.
            sleep(Duration::from_millis(2));
            let begin = Instant::now();
            self.terminal.write_all(b"x").expect("the program is there");
            assert_eq!(self.byte(), b'x', "the echo is what was typed");
            begin.elapsed().as_secs_f64() * 1e3
        };
        median((0..KEYS).map(key).collect::<Vec<_>>().into_iter())
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
