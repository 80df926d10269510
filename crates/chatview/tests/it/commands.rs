//! The subcommands for scripts where a side ends early or is slow.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_testbed::{LIMIT, wait_until};
use rustix::process::{Pid, Signal, kill_process};

use crate::programs::Chats;

/// More than a pipe holds, and less than `recv` keeps besides.
const LINES: usize = 100;

/// A subcommand whose output is read as slowly as the test likes.
struct Piped {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    notes: ChildStderr,
}

impl Piped {
    fn start(chats: &Chats, words: &[&str]) -> Self {
        let pipes = Stdio::piped;
        let mut command = chats.command(words);
        let mut child = command.stdin(pipes()).stdout(pipes()).stderr(pipes()).spawn().unwrap();
        let (input, notes) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, lines, notes }
    }

    /// Reads lines up to one that begins so.
    fn expect(&mut self, begin: &str) {
        assert!(self.lines.any(|line| line.unwrap().starts_with(begin)), "no line begins with {begin}");
    }

    /// The number of further lines that begin so.
    fn count(&mut self, begin: &str) -> usize {
        self.lines.by_ref().filter(|line| line.as_ref().unwrap().starts_with(begin)).count()
    }

    /// Reads notes up to one that ends so.
    fn note(&mut self, end: &str) {
        let mut noted = Vec::new();
        while !noted.ends_with(end.as_bytes()) {
            let mut byte = [0];
            self.notes.read_exact(&mut byte).unwrap();
            noted.extend(byte);
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Ann begins to send bob long lines.
fn send_lines(chats: &Chats) -> Child {
    let mut sender = chats.command(&["--profile", "ann", "send", "bob", "--lines"]);
    let mut sender =
        sender.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let line = "x".repeat(2000) + "\n";
    sender.stdin.take().unwrap().write_all(line.repeat(LINES).as_bytes()).unwrap();
    sender
}

#[test]
fn what_recv_has_acknowledged_is_printed_however_it_ends() {
    for (end, status) in [(Some(Signal::INT), 130), (Some(Signal::TERM), 0), (None, 1)] {
        let chats = Chats::new();
        let mut bob = Piped::start(&chats, &["--profile", "bob", "recv", "--json"]);
        bob.expect("{\"event\":\"ready\"}");
        assert!(send_lines(&chats).wait().unwrap().success());
        match end {
            Some(signal) => bob.signal(signal),
            None => drop(chats.server.stop()),
        }
        // Until it has noticed.
        sleep(Duration::from_millis(200));
        assert_eq!(bob.count("{\"event\":\"message\""), LINES, "{end:?}");
        assert_eq!(bob.ended().code(), Some(status), "{end:?}");
    }
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_the_reader_of_the_output() {
    let chats = Chats::new();
    let mut bob = Piped::start(&chats, &["--profile", "bob", "recv", "--json"]);
    bob.expect("{\"event\":\"ready\"}");
    assert!(send_lines(&chats).wait().unwrap().success());
    // Two signals at once can arrive as one.
    let begun = Instant::now();
    while bob.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < LIMIT, "the program does not end");
        bob.signal(Signal::INT);
        sleep(Duration::from_millis(5));
    }
    assert_eq!(bob.ended().code(), Some(130));
}

#[test]
fn a_delivery_outlasts_the_directory() {
    let chats = Chats::new();
    let mut bob = Piped::start(&chats, &["--profile", "bob", "talk"]);
    bob.note("waiting for calls\n");
    let mut ann = send_lines(&chats);
    bob.note("[y/n] ");
    bob.input.write_all(b"y\n").unwrap();
    bob.expect("ann: x");
    // Bob's program is yet to print the others.
    chats.server.stop();
    assert_eq!(bob.count("ann: x"), LINES - 1);
    assert!(ann.wait().unwrap().success());
    assert!(bob.ended().success());
}

#[test]
fn a_talk_takes_no_further_calls_and_outlasts_the_directory() {
    let chats = Chats::new();
    let server = chats.server.address.to_string();
    assert!(chats.run(&["--profile", "eve", "register", "eve", "--server", &server]).status.success());
    let mut bob = Piped::start(&chats, &["--profile", "bob", "talk"]);
    bob.note("waiting for calls\n");
    let mut ann = Piped::start(&chats, &["--profile", "ann", "talk", "bob"]);
    bob.note("[y/n] ");
    bob.input.write_all(b"y\n").unwrap();
    ann.note("/quit ends the talk\n");
    wait_until("bob takes no calls", || {
        let sent = chats.run(&["--profile", "eve", "send", "bob", "hello", "--timeout", "300ms"]);
        String::from_utf8_lossy(&sent.stderr).contains("bob cannot be reached")
    });
    chats.server.stop();
    for program in [&mut ann, &mut bob] {
        program.note("the talk goes on\n");
    }
    ann.input.write_all(b"still here?\n").unwrap();
    bob.expect("ann: still here?");
    bob.input.write_all(b"/quit\n").unwrap();
    assert!(bob.ended().success());
    assert!(ann.ended().success());
}

#[test]
fn a_send_that_is_terminated_before_the_message_has_arrived_is_no_success() {
    let chats = Chats::new();
    let mut bob = Piped::start(&chats, &["--profile", "bob", "talk"]);
    bob.note("waiting for calls\n");
    let ann = Piped::start(&chats, &["--profile", "ann", "send", "bob", "hello"]);
    bob.note("[y/n] ");
    ann.signal(Signal::TERM);
    assert_eq!(ann.ended().code(), Some(130));
}

#[test]
fn names_are_those_of_the_directory_however_they_are_typed() {
    let chats = Chats::new();
    let server = chats.server.address.to_string();
    let registered = chats.run(&["--profile", "eve", "register", "Eve", "--server", &server]);
    assert!(String::from_utf8_lossy(&registered.stdout).contains("you are eve at "), "{registered:?}");
    let mut bob =
        Piped::start(&chats, &["--profile", "bob", "recv", "--json", "--from", "ANN", "--count", "1"]);
    bob.expect("{\"event\":\"ready\"}");
    assert!(chats.run(&["--profile", "ann", "send", "Bob", "hello"]).status.success());
    assert_eq!(bob.count("{\"event\":\"message\",\"from\":\"ann\""), 1);
    assert!(bob.ended().success());
    assert!(chats.run(&["--profile", "ann", "peers", "--forget", "Bob"]).status.success());
    let invalid = chats.run(&["--profile", "bob", "recv", "--from", "a name"]);
    assert_eq!(invalid.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&invalid.stderr).contains("no spaces"), "{invalid:?}");
}
