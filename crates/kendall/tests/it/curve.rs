//! `kendall curve`: keys, servers, clients and their programs, among themselves and with the tools of NaCl.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_testbed::{LIMIT, wait_until, written_line};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const NAME: &str = "server.example";
const ZEROS: &str = "00000000000000000000000000000000";

fn curve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.arg("curve").args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A key directory and its public key.
struct Keys {
    folder: TempDir,
    public: String,
}

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = curve(&["keygen", folder.path().join("key").to_str().unwrap()]).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        Self { folder, public: text(&made.stdout).trim().to_owned() }
    }

    fn path(&self) -> String {
        self.folder.path().join("key").to_str().unwrap().to_owned()
    }
}

/// A process that is ended when dropped.
struct Running(Child);

impl Running {
    /// Waits until the process ends.
    fn ended(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < LIMIT, "the process does not end");
            sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// `kendall curve serve` on a free port of `ip`.
struct Server {
    process: Running,
    address: String,
    errors: BufReader<ChildStderr>,
}

impl Server {
    fn start(keys: &Keys, ip: &str, options: &[&str], program: &[&str]) -> Self {
        let (path, listen) = (keys.path(), format!("{ip}:0"));
        let mut command = curve(&["serve", NAME, &path, &listen]);
        command.args(options).arg("--").args(program).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let process = Running(child);
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(line.contains("listens on"), "{line}");
        Self { process, address, errors }
    }

    fn echo(keys: &Keys) -> Self {
        Self::start(keys, "127.0.0.1", &[], &["cat"])
    }
}

/// Runs a client with this input.
fn client(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A client that ends early does not read all of it.
    let writer = std::thread::spawn(move || _ = stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

#[test]
fn keygen_makes_a_directory_that_others_cannot_read_and_replaces_none() {
    let keys = Keys::new();
    let mode = |file: &str| {
        let path = Path::new(&keys.path()).join(file);
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    };
    let files =
        [".expertsonly", ".expertsonly/secretkey", ".expertsonly/noncekey", ".expertsonly/noncecounter"];
    assert_eq!(files.map(mode), [0o700, 0o600, 0o600, 0o600]);
    assert_eq!((keys.public.len(), keys.public.bytes().all(|digit| digit.is_ascii_hexdigit())), (64, true));

    let secret = fs::read(Path::new(&keys.path()).join(".expertsonly/secretkey")).unwrap();
    let again = curve(&["keygen", &keys.path()]).output().unwrap();
    assert!(!again.status.success() && again.stdout.is_empty());
    assert!(text(&again.stderr).contains("key"), "{}", text(&again.stderr));
    assert_eq!(fs::read(Path::new(&keys.path()).join(".expertsonly/secretkey")).unwrap(), secret);

    let shown = curve(&["show", &keys.path()]).output().unwrap();
    assert_eq!(text(&shown.stdout).trim(), keys.public);
    let missing = curve(&["show", "/no/such/directory"]).output().unwrap();
    assert!(!missing.status.success());
    assert!(text(&missing.stderr).contains("/no/such/directory/publickey"), "{}", text(&missing.stderr));
}

#[test]
fn bytes_pass_both_ways_under_every_congestion_control() {
    let keys = Keys::new();
    let sent: Vec<u8> = (0..200_000_u32).map(|i| (i.wrapping_mul(i) >> 9) as u8).collect();
    for name in ["cubic", "bbr", "chicago", "chicago-polled"] {
        let server = Server::start(&keys, "127.0.0.1", &["--congestion", name], &["cat"]);
        let mut command = curve(&["cat", "--congestion", name, NAME, &keys.public, &server.address]);
        // The reference's control needs a second for the first message, and half a minute to be fast.
        let sent = if name.starts_with("chicago") { &sent[..20_000] } else { &sent[..] };
        let output = client(&mut command, sent);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert!(output.stdout == sent, "{name}: {} of {} bytes", output.stdout.len(), sent.len());
    }
    let refused =
        curve(&["cat", "--congestion", "reno", NAME, &keys.public, "127.0.0.1:1"]).output().unwrap();
    let refused = text(&refused.stderr);
    assert!(refused.contains("choose cubic, bbr, chicago or chicago-polled"), "{refused}");
}

#[test]
fn clients_of_a_server_with_threads_all_reach_it_and_a_second_server_does_not_share_its_address() {
    let keys = Keys::new();
    let server = Server::start(&keys, "127.0.0.1", &["--threads", "3"], &["cat"]);
    for i in 0..8 {
        let mut command = curve(&["cat", NAME, &keys.public, &server.address]);
        let output = client(&mut command, format!("client {i}").as_bytes());
        assert_eq!(text(&output.stdout), format!("client {i}"), "{}", text(&output.stderr));
    }
    let second = ["serve", "--threads", "2", NAME, &keys.path(), &server.address, "--", "cat"];
    let second = curve(&second).output().unwrap();
    assert!(!second.status.success());
    assert!(text(&second.stderr).contains(&server.address), "{}", text(&second.stderr));
}

#[test]
fn connect_runs_a_program_on_the_connection_and_exits_with_its_status() {
    let keys = Keys::new();
    let server = Server::echo(&keys);
    let answer = keys.folder.path().join("answer");
    let line = format!("echo question; exec >&-; cat >{}; exit 7", answer.display());
    let output =
        curve(&["connect", NAME, &keys.public, &server.address, "--", "sh", "-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&answer).unwrap(), "question\n");

    let killed = ["connect", NAME, &keys.public, &server.address, "--", "sh", "-c", "kill -9 $$"];
    assert_eq!(curve(&killed).output().unwrap().status.code(), Some(128 + 9));
    let absent = ["connect", NAME, &keys.public, &server.address, "--", "/no/such/program"];
    let absent = curve(&absent).output().unwrap();
    assert_eq!(absent.status.code(), Some(1));
    assert!(text(&absent.stderr).contains("cannot start /no/such/program"), "{}", text(&absent.stderr));
}

#[test]
fn ucspi_gives_descriptors_6_and_7_and_the_environment_names_both_ends() {
    let (keys, own) = (Keys::new(), Keys::new());
    let names = "$PROTO $CURVECPREMOTEKEY $CURVECPREMOTEIP";
    let line = format!("echo {names} >&7; exec 7>&-; cat <&6");
    let server = Server::start(&keys, "127.0.0.1", &["--ucspi"], &["sh", "-c", &line]);
    let line = format!("exec 7>&-; cat <&6; echo {names}:$CURVECPREMOTEPORT");
    let path = own.path();
    let mut command = curve(&["connect", "--key-directory", &path, NAME, &keys.public, &server.address]);
    let output = command.args(["--ucspi", "--", "sh", "-c", &line]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let port = server.address.rsplit(':').next().unwrap();
    let expected = format!("CURVECP {} 127.0.0.1\nCURVECP {} 127.0.0.1:{port}\n", own.public, keys.public);
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn a_server_that_does_not_answer_is_an_error_that_says_what_to_check() {
    let (keys, other) = (Keys::new(), Keys::new());
    let server = Server::start(&keys, "127.0.0.1", &["--allow", &other.public], &["cat"]);
    let wrong = [
        // Another key, another name, another extension, and a client that is not allowed.
        vec![NAME, &other.public, &server.address],
        vec!["other.example", &keys.public, &server.address],
        vec!["--extension", "000000000000000000000000000000ff", NAME, &keys.public, &server.address],
        vec![NAME, &keys.public, &server.address],
    ];
    for arguments in wrong {
        let mut command = curve(&["cat", "--timeout", "300ms"]);
        let output = client(command.args(&arguments), b"secret");
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
        for part in ["no server answered at", "`kendall curve show`", "UDP reaches"] {
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
    }
    let mut allowed = curve(&["cat", "--key-directory", &other.path(), NAME, &keys.public, &server.address]);
    assert_eq!(client(&mut allowed, b"welcome").stdout, b"welcome");
    let connect =
        ["connect", "--timeout", "300ms", NAME, &other.public, &server.address, "--", "sleep", "1000"];
    let silent = curve(&connect).output().unwrap();
    assert!(text(&silent.stderr).contains("no server answered at"), "{}", text(&silent.stderr));
    let digits = curve(&["cat", NAME, "abc", &server.address]).output().unwrap();
    assert!(text(&digits.stderr).contains("write 64 hexadecimal digits"), "{}", text(&digits.stderr));
}

#[test]
fn signals_end_server_client_and_their_programs() {
    let keys = Keys::new();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 0)] {
        let pid_file = keys.folder.path().join(format!("pid-{code}"));
        let line = format!("echo $$ >{}; exec sleep 1000", pid_file.display());
        let mut server = Server::start(&keys, "127.0.0.1", &[], &["sh", "-c", &line]);
        let mut command = curve(&["cat", NAME, &keys.public, &server.address]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut waiting = Running(command.spawn().unwrap());
        let pid = written_line(&pid_file);
        server.process.signal(signal);
        assert_eq!(server.process.ended().code(), Some(code), "serve at {signal:?}");
        wait_until("the server's program ends", || !Path::new("/proc").join(&pid).join("exe").exists());
        let mut rest = String::new();
        server.errors.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("panicked"), "{rest}");
        waiting.signal(signal);
        let status = waiting.ended();
        // The connection may have ended in failure before the signal came.
        assert!(status.signal().is_none() && [Some(code), Some(1)].contains(&status.code()), "cat: {status}");
    }
}

#[test]
fn a_host_with_addresses_of_both_families_is_reached_by_the_one_that_answers() {
    if UdpSocket::bind("[::1]:0").is_err() {
        return kendall_testbed::left_out("this machine has no IPv6");
    }
    let keys = Keys::new();
    for ip in ["[::1]", "127.0.0.1"] {
        let server = Server::start(&keys, ip, &[], &["sh", "-c", "echo $CURVECPREMOTEIP; cat"]);
        let output = client(&mut curve(&["cat", NAME, &keys.public, &server.address]), b"one\n");
        assert_eq!(text(&output.stdout), format!("{}\none\n", ip.trim_matches(['[', ']'])));
        // `localhost` has both where /etc/hosts says so; a server listens at one of them.
        let port = server.address.rsplit(':').next().unwrap();
        let families = std::net::ToSocketAddrs::to_socket_addrs(&format!("localhost:{port}"));
        if !families.unwrap().any(|address| address.ip().to_string() == ip.trim_matches(['[', ']'])) {
            kendall_testbed::left_out(&format!("localhost does not name {ip}"));
            continue;
        }
        let output = client(&mut curve(&["cat", NAME, &keys.public, &format!("localhost:{port}")]), b"two\n");
        assert!(
            text(&output.stdout).ends_with("\ntwo\n"),
            "{} {}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

/// Whether NaCl's tools are here.
fn has_nacl() -> bool {
    kendall_testbed::has_peer("curvecpprintkey", "--help")
}

#[test]
fn serve_answers_the_client_of_nacl() {
    if !has_nacl() {
        return;
    }
    let (keys, own) = (Keys::new(), Keys::new());
    let server = Server::start(&keys, "127.0.0.1", &[], &["sh", "-c", "echo $CURVECPREMOTEKEY; cat"]);
    let port = server.address.rsplit(':').next().unwrap();
    let mut command = Command::new("curvecpclient");
    command.args(["-c", &own.path(), NAME, &keys.public, "127.0.0.1", port, ZEROS]);
    command.args(["curvecpmessage", "-C", "sh", "-c", "echo question >&7; exec 7>&-; exec cat <&6"]);
    let mut child = Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    assert_eq!([line(), line()], [own.public.clone(), "question".to_owned()]);
}

#[test]
fn connect_and_cat_reach_the_server_of_nacl() {
    if !has_nacl() {
        return;
    }
    let keys = Keys::new();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut command = Command::new("curvecpserver");
    command.args([NAME, &keys.path(), "127.0.0.1", &port, ZEROS, "curvecpmessage", "cat"]);
    let _server = Running(command.stdin(Stdio::null()).spawn().unwrap());
    let address = format!("127.0.0.1:{port}");
    let output = client(&mut curve(&["cat", NAME, &keys.public, &address]), b"to the reference");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "to the reference");
    let line = "echo question >&7; exec 7>&-; cat <&6";
    let connect = ["connect", NAME, &keys.public, &address, "--ucspi", "--", "sh", "-c", line];
    let output = curve(&connect).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "question\n");
}
