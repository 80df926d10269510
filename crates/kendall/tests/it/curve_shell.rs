//! `kendall curve shell` and its server as programs, the interactive client on a real terminal.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use kendall_testbed::{LIMIT, TempDir, tempdir, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

fn curve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.arg("curve").args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program that is killed when dropped.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        let begun = std::time::Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < LIMIT, "the program does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A server, and the folder with the keys and the hosts of its client.
struct Server {
    process: Running,
    log: BufReader<std::process::ChildStderr>,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let key =
            |name: &str| text(&curve(&["keygen", &path(name)]).output().unwrap().stdout).trim().to_owned();
        let (server, client) = (key("server"), key("client"));
        key("stranger");
        fs::write(path("authorized"), format!("# clients\n{client} a test\n")).unwrap();
        let (keys, authorized) = (path("server"), path("authorized"));
        let mut command =
            curve(&["serve-shell", "a.example", &keys, "127.0.0.1:0", "--authorized-keys", &authorized]);
        let mut process = Running(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let mut log = BufReader::new(process.0.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let address = line.split(" listens on ").nth(1).unwrap().split(' ').next().unwrap();
        let host = format!("[work]\nname = \"a.example\"\nkey = \"{server}\"\naddress = \"{address}\"\n");
        fs::write(path("hosts.toml"), host).unwrap();
        Self { process, log, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = curve(&["shell"]);
        command.arg("--hosts").arg(self.path("hosts.toml")).arg("--key-directory").arg(self.path("client"));
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.client(arguments).stdin(Stdio::null()).output().unwrap()
    }
}

/// A client on a terminal whose other side is ours.
struct OnTerminal {
    client: Running,
    master: File,
    terminal: OwnedFd,
    /// What has come and no text was found in yet.
    seen: String,
}

impl OnTerminal {
    fn start(mut command: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let terminal = ioctl_tiocgptpeer(&master, flags).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let again = || Stdio::from(terminal.try_clone().unwrap());
        let client =
            command.stdin(again()).stdout(again()).stderr(again()).env("TERM", "xterm").spawn().unwrap();
        Self { client: Running(client), master: master.into(), terminal, seen: String::new() }
    }

    fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until a text comes, and forgets all up to its end.
    fn expect(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let mut piece = [0; 1024];
            let count = self.master.read(&mut piece).unwrap();
            self.seen += &String::from_utf8_lossy(&piece[..count]);
        }
    }

    /// Whether the terminal is as users have it.
    fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

#[test]
fn commands_pass_bytes_statuses_and_errors() {
    let server = Server::start();
    let output = server.run(&["work", "printf 'a\\0b'; echo wrong >&2; exit 7"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(7), &b"a\0b"[..]));
    assert_eq!(text(&output.stderr), "wrong\n");
    assert_eq!(server.run(&["work", "kill -9 $$"]).status.code(), Some(128 + 9));
    let mut cat = server
        .client(&["work", "--", "wc", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    cat.stdin.take().unwrap().write_all(&vec![7; 1_000_000]).unwrap();
    assert_eq!(text(&cat.wait_with_output().unwrap().stdout).trim(), "1000000");
}

#[test]
fn a_terminal_is_raw_for_the_session_alone_and_the_session_survives_its_client() {
    let server = Server::start();
    let shell = ["-t", "work", "echo read''y; stty size; exec cat"];
    let mut first = OnTerminal::start(server.client(&shell));
    first.expect("ready");
    first.expect("33 99");
    assert!(!first.is_cooked());
    let resized = Winsize { ws_row: 20, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&first.master, resized).unwrap();
    first.type_in("typed before\n");
    first.expect("typed before\r\ntyped before");
    first.client.signal(Signal::KILL);
    first.client.ended();
    assert!(text(&server.run(&["--list", "work"]).stdout).contains("terminal"));

    let mut second = OnTerminal::start(server.client(&["--attach", "1", "work"]));
    second.expect("ready");
    second.expect("typed before\r\ntyped before");
    second.type_in("~d");
    second.expect("--attach 1 work");
    assert_eq!((second.client.ended().code(), second.is_cooked()), (Some(0), true));

    let mut third = OnTerminal::start(server.client(&["--attach", "1", "work"]));
    third.expect("ready");
    third.client.signal(Signal::TERM);
    assert_eq!((third.client.ended().code(), third.is_cooked()), (Some(128 + 15), true));

    let mut fourth = OnTerminal::start(server.client(&["--attach", "1", "work"]));
    fourth.expect("ready");
    fourth.type_in("\x04");
    assert_eq!((fourth.client.ended().code(), fourth.is_cooked()), (Some(0), true));
    let list = server.run(&["--list", "work"]);
    assert!(text(&list.stderr).contains("you have no sessions"), "{}", text(&list.stdout));
}

#[test]
fn strangers_are_not_admitted_and_the_log_says_who_did_what() {
    let mut server = Server::start();
    assert!(server.run(&["work", "true"]).status.success());
    let mut stranger = curve(&["shell", "--timeout", "1s", "--hosts"]);
    stranger.arg(server.path("hosts.toml")).arg("--key-directory").arg(server.path("stranger"));
    let refused = stranger.args(["work", "true"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(255));
    assert!(text(&refused.stderr).contains("file of authorised keys"), "{}", text(&refused.stderr));
    let sleeper =
        server.client(&["work", "sleep 1000"]).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the command runs", || text(&server.run(&["--list", "work"]).stdout).contains("sleep 1000"));
    server.process.signal(Signal::TERM);
    assert!(server.process.ended().success());
    let ended = sleeper.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(255));
    assert!(text(&ended.stderr).contains("work stops"), "{}", text(&ended.stderr));
    let mut log = String::new();
    server.log.read_to_string(&mut log).unwrap();
    for part in
        ["(a test) from 127.0.0.1:", "session 1 ended after", "status 0", "is not admitted", ": sleep 1000"]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
}
