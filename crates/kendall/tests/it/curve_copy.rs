//! `kendall curve copy` and `kendall curve serve-files`, as a user starts them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use kendall_testbed::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

const NAME: &str = "server.example";

fn curve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.arg("curve").args(arguments);
    command
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server of a folder that admits one client, which finds it by its configuration.
struct Server {
    folder: TempDir,
    process: Child,
    /// Reads what it logs until it ends.
    logged: Option<JoinHandle<String>>,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("config/kendall")).unwrap();
        fs::create_dir(path("served")).unwrap();
        let keygen = |directory: PathBuf| {
            let made = curve(&["keygen", directory.to_str().unwrap()]).output().unwrap();
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        };
        let (server, me) = (keygen(path("server")), keygen(path("config/kendall/key")));
        fs::write(path("authorized_keys"), format!("{me} Ann\n")).unwrap();
        let mut process = curve(&["serve-files", NAME])
            .arg(path("server"))
            .arg("127.0.0.1:0")
            .arg(path("served"))
            .arg("--authorized-keys")
            .arg(path("authorized_keys"))
            .arg("--read-write")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let address = line.split_whitespace().nth(4).unwrap();
        let host = format!("[backup]\nname = \"{NAME}\"\nkey = \"{server}\"\naddress = \"{address}\"\n");
        fs::write(path("config/kendall/hosts.toml"), host).unwrap();
        let logged = thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<String>>().join("\n"));
        Self { folder, process, logged: Some(logged) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn copy(&self, arguments: &[&str]) -> Command {
        let mut command = curve(&["copy"]);
        command.args(arguments).current_dir(self.folder.path()).env("XDG_CONFIG_HOME", self.path("config"));
        command
    }

    /// Ends the server, and returns what it has logged.
    fn log(mut self) -> String {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(130));
        self.logged.take().expect("the log is read once").join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn a_tree_goes_to_a_host_of_the_hosts_file_and_back_and_the_server_says_so() {
    let server = Server::start();
    fs::create_dir_all(server.path("photos/inner")).unwrap();
    fs::write(server.path("photos/inner/one"), "one").unwrap();
    let up = server.copy(&["photos", "backup:"]).output().unwrap();
    assert!(up.status.success(), "{}", errors(&up));
    assert!(errors(&up).starts_with("kendall: copied 3 files, 3 B in "), "{}", errors(&up));
    let down = server.copy(&["--quiet", "backup:photos", "back"]).output().unwrap();
    assert_eq!((down.status.code(), errors(&down)), (Some(0), String::new()));
    assert_eq!(fs::read_to_string(server.path("back/inner/one")).unwrap(), "one");

    let partly = server.copy(&["photos", "nothing", "backup:"]).output().unwrap();
    assert_eq!(partly.status.code(), Some(1));
    let said = errors(&partly);
    assert!(
        said.contains("cannot read nothing: No such file") && said.contains("1 could not be copied"),
        "{said}"
    );

    let unknown = server.copy(&["photos", "elsewhere:"]).output().unwrap();
    assert!(errors(&unknown).contains("no host is called \"elsewhere\": add it to"), "{}", errors(&unknown));
    let log = server.log();
    assert!(
        log.contains("INFO") && log.contains("Ann (") && log.contains("upload of photos to \"\""),
        "{log}"
    );
    assert!(log.contains("download of photos is done: 3 entries, 3 bytes, 0 failures"), "{log}");
}

#[test]
fn ctrl_c_leaves_a_partial_file_and_the_same_command_goes_on() {
    let server = Server::start();
    fs::write(server.path("large"), vec![7; 300 << 20]).unwrap();
    let mut copying = server.copy(&["--quiet", "large", "backup:"]).spawn().unwrap();
    let served = server.path("served");
    let partial = || {
        let size = |name: &String| served.join(name).metadata().is_ok_and(|file| file.len() > 2 << 20);
        served.join("large").exists() || names(&served).iter().any(size)
    };
    wait_until("the copy has begun", partial);
    kill_process(Pid::from_child(&copying), Signal::INT).unwrap();
    let code = copying.wait().unwrap().code();
    if code == Some(130) {
        wait_until("the server keeps the partial file", || {
            names(&served).iter().all(|name| name.starts_with(".kendall-partial."))
                && fs::File::open(served.join(&names(&served)[0])).is_ok_and(|file| file.try_lock().is_ok())
        });
        let again = server.copy(&["large", "backup:"]).output().unwrap();
        assert!(errors(&again).contains("were there already"), "{}", errors(&again));
    } else {
        assert_eq!(code, Some(0), "the copy was faster than the signal");
    }
    assert_eq!(names(&served), ["large"]);
    assert!(fs::read(served.join("large")).unwrap() == vec![7; 300 << 20]);
}

#[test]
fn on_a_terminal_a_bar_shows_rate_and_time_left_and_gives_way_to_the_summary() {
    let server = Server::start();
    fs::write(server.path("large"), vec![7; 400 << 20]).unwrap();
    for (columns, shows) in [(120, &["] ", "/s ", " left, ", " files"][..]), (40, &[" % ", "/s ", " left"])] {
        let (mut screen, terminal) = terminal(columns);
        // The command would keep the terminal open.
        let start = |mut command: Command| command.stderr(terminal).stdout(Stdio::null()).spawn().unwrap();
        let mut copying = start(server.copy(&["large", "backup:"]));
        let mut shown = Vec::new();
        // The terminal is gone with its last program, which reading reports as an error.
        _ = screen.read_to_end(&mut shown);
        assert!(copying.wait().unwrap().success());
        let shown = String::from_utf8_lossy(&shown);
        for part in shows {
            assert!(shown.contains(part), "{part:?} is missing at {columns} columns:\n{shown:?}");
        }
        let bars = shown.split(['\r', '\n']).filter(|line| line.contains("/s ") && line.contains(" left"));
        for bar in bars {
            let width = console_width(bar);
            assert!(width <= columns.into(), "{width} of {columns} columns: {bar:?}");
        }
        let last = shown.trim_end().rsplit(['\r', '\n']).next().unwrap();
        assert!(last.contains("kendall: copied 1 files, 400.00 MiB in "), "{last:?}");
    }
    let quiet = server.copy(&["large", "backup:again"]).output().unwrap();
    assert!(!errors(&quiet).contains('\u{1b}'), "no bar without a terminal: {}", errors(&quiet));
}

/// The other side of a terminal of this width, and the side of a program.
fn terminal(columns: u16) -> (fs::File, Stdio) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let side = ioctl_tiocgptpeer(&master, flags).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (master.into(), side.into())
}

/// Characters that a terminal shows of a line: without its control sequences.
fn console_width(line: &str) -> usize {
    let (mut shown, mut rest) = (0, line.chars());
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => _ = rest.by_ref().skip(1).find(char::is_ascii_alphabetic),
            _ => shown += 1,
        }
    }
    shown
}

#[test]
fn a_client_that_is_not_admitted_is_told_which_key_to_add() {
    let server = Server::start();
    fs::write(server.path("authorized_keys"), "").unwrap();
    fs::write(server.path("a"), "a").unwrap();
    let refused = server.copy(&["--timeout", "3s", "a", "backup:"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let shown = curve(&["show", server.path("config/kendall/key").to_str().unwrap()]).output().unwrap();
    let key = String::from_utf8(shown.stdout).unwrap();
    assert!(
        errors(&refused).contains(&format!("file of authorised keys? {}", key.trim())),
        "{}",
        errors(&refused)
    );
    let log = server.log();
    assert!(log.contains("is not admitted"), "{log}");
}

#[test]
fn man_pages_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_kendall")).arg("man").arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", errors(&made));
    let page = fs::read_to_string(folder.path().join("kendall-curve-copy.1")).unwrap();
    assert!(page.contains("HOST:PATH") && page.contains("hosts file"), "{page}");
}
