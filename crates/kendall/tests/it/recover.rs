//! `kendall serve recover`, `kendall recover` and a run of both, as users have them: in separate processes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use kendall_recover::cipher::{Cipher, encrypted_bytes};
use kendall_recover::protocol::Head;
use kendall_recover::{Algorithm, Dialect};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything here takes, so that a test that hangs fails instead.
const LIMIT: Duration = Duration::from_secs(60);
/// The key of "test".
const KEY: u128 = 0xbc22_4195_2238_500f_21b2_85fd_b75d_3e77;

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kendall"))
            .args(["serve", "recover", "--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.split_whitespace().last().unwrap().to_owned() }
    }

    /// The most memory that it ever had, in bytes.
    fn most_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kendall(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).current_dir(folder).args(arguments).output().unwrap()
}

/// One file of pieces that are all alike: what is sent, and what is to come back.
fn send_and_receive(address: &str, file_bytes: u64) {
    const PIECE: usize = 64 * 1024;
    let cipher = Cipher::new(KEY.to_be_bytes());
    let plain = vec![b'k'; PIECE];
    let mut encrypted = plain.clone();
    cipher.encrypt_blocks(&mut encrypted);
    let hash = Algorithm::Sha1.hash(b"test");
    let head = Head { id: 0, hash, lengths: 4..=4, file_bytes: encrypted_bytes(file_bytes) };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(&head.encode(Dialect::Course)).unwrap();
    (0..file_bytes / PIECE as u64).for_each(|_| stream.write_all(&encrypted).unwrap());
    stream.write_all(&cipher.last_block(&[])).unwrap();
    let mut length = [0; 8];
    stream.read_exact(&mut length).unwrap();
    assert_eq!(u64::from_be_bytes(length), file_bytes);
    let mut piece = vec![0; PIECE];
    for _ in 0..file_bytes / PIECE as u64 {
        stream.read_exact(&mut piece).unwrap();
        assert!(piece == plain);
    }
    assert_eq!(stream.read(&mut piece).unwrap(), 0);
}

/// 40 files of 20 MiB are 800 MiB, of which 32 may wait in memory.
#[test]
fn many_long_files_at_a_time_take_no_more_memory_than_they_may() {
    let server = Server::start(&["--spool-memory", "32", "--strategy", "dictionary"]);
    send_and_receive(&server.address, 1 << 20);
    let before = server.most_memory();
    thread::scope(|scope| {
        (0..40).for_each(|_| drop(scope.spawn(|| send_and_receive(&server.address, 20 << 20))));
    });
    let more = server.most_memory() - before;
    assert!(more < 160 << 20, "{} MiB more than before", more >> 20);
}

#[test]
fn a_file_is_encrypted_recovered_and_compared_and_what_is_not_found_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["--workers", "1"]);
    let plain: Vec<u8> = (0..300_000).map(|i| (i * 7 % 251) as u8).collect();
    fs::write(folder.path().join("notes"), &plain).unwrap();
    let encrypted = kendall(folder.path(), &["recover", "encrypt", "notes", "--password", "abc"]);
    let said = String::from_utf8(encrypted.stdout).unwrap();
    let digest = "a9993e364706816aba3e25717850c26c9cd0d89d";
    assert!(
        said.contains(&format!("kendall recover request notes.enc --hash {digest} --length 3")),
        "{said}"
    );
    fs::rename(folder.path().join("notes"), folder.path().join("kept")).unwrap();
    let request = |more: &[&str]| {
        let arguments = ["recover", "request", "notes.enc", "--server", &server.address];
        kendall(folder.path(), &[&arguments, more].concat())
    };
    let got = request(&["--hash", digest, "--length", "3", "--compare", "kept"]);
    let said = String::from_utf8(got.stdout).unwrap();
    assert!(got.status.success() && said.contains("the same as kept"), "{said}");
    assert!(fs::read(folder.path().join("notes")).unwrap() == plain);
    let again = request(&["--hash", digest, "--length", "3"]);
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(!again.status.success() && said.contains("exists; give another path"), "{said}");
    let through = request(&["--hash", digest, "--length", "3", "--out", "/dev/null"]);
    assert!(through.status.success(), "{}", String::from_utf8_lossy(&through.stderr));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let through = request(&["--hash", digest, "--length", "3", "--out", "/dev/stdout"]);
    assert!(through.stdout.starts_with(&plain), "{}", String::from_utf8_lossy(&through.stderr));
    let nothing = request(&["--hash", &"0".repeat(40), "--length", "2", "--out", "never"]);
    let said = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(4), "{said}");
    assert!(said.contains("closed the connection without an answer"), "{said}");
    assert!(!folder.path().join("never").exists());
    for wrong in [["--hash", "abc", "--length", "3"], ["--hash", digest, "--length", "5-3"]] {
        assert!(!request(&wrong).status.success(), "{wrong:?}");
    }
}

#[test]
fn a_signal_ends_it_though_it_searches() {
    let mut server = Server::start(&["--workers", "1"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let hash = kendall_recover::Hash::Sha256([1; 32]);
    stream.write_all(&Head { id: 0, hash, lengths: 7..=7, file_bytes: 16 }.encode(Dialect::Course)).unwrap();
    thread::sleep(Duration::from_millis(100));
    kill_process(Pid::from_raw(server.child.id() as i32).unwrap(), Signal::TERM).unwrap();
    assert!(server.child.wait().unwrap().success());
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
}

/// An experiment goes through, from the file to the answers of the three ways.
#[test]
fn an_experiment_on_it_runs_with_its_factors_and_its_replay() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = r#"
question = "Does looking words up first pay?"
repeats = 2
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "recover"
workers = 2
strategy = ["plain", "dictionary"]
dictionary = "words.txt"

[workload]
length = 4
dictionary-percent = 50
dictionary = "words.txt"
passwords = 60
file-bytes = 5000

[load]
rate = 20
duration = "2s"

[[model]]
station = "M/G/2"
"#;
    fs::write(folder.path().join("small.toml"), experiment).unwrap();
    fs::write(folder.path().join("words.txt"), "test\nlove\nfour\nword\n").unwrap();
    let run = kendall(folder.path(), &["run", "small.toml", "--json"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        assert!(point["replay"].is_object(), "{point}");
        assert!(point["models"][0]["formula"]["answer"].is_object(), "{point}");
    }
    for trial in report["trials"].as_array().unwrap() {
        assert_eq!(trial["counts"]["sent"], trial["counts"]["answered"], "{trial}");
    }
}
