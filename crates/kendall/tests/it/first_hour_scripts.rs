//! The scripts of `tests/first_hour`: each command is run as it stands there, and what it prints has the parts that stand below it.

use std::env;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::first_hour::server;

/// A command of a script, and what is expected of it.
#[derive(Default)]
struct Step {
    command: String,
    parts: Vec<String>,
    status: i32,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn steps(script: &str) -> Vec<Step> {
    let text = fs::read_to_string(root().join("tests/first_hour").join(script)).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (mark, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{script}: {line:?}"));
        match (mark, steps.last_mut()) {
            ("$", _) => steps.push(Step { command: rest.to_owned(), ..Step::default() }),
            ("+", Some(step)) => step.parts.push(rest.to_owned()),
            ("=", Some(step)) => step.status = rest.parse().unwrap(),
            _ => panic!("{script}: {line:?} is neither a command nor expected of one"),
        }
    }
    assert!(steps.len() >= 5, "{script} has {} commands", steps.len());
    steps
}

/// Runs a script whose server listens on this port.
fn run(script: &str, port: u16) {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_kendall")).parent().unwrap();
    let path = env::join_paths(
        [programs.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap())),
    );
    let path = path.unwrap();
    for step in steps(script) {
        // What a command measures beside other programs may be doubtful, and says so with another status.
        kendall_testbed::unless_disturbed(|| {
            let output = Command::new("sh")
                .args(["-c", &format!("{} 2>&1", step.command)])
                .env("PATH", &path)
                .env("PORT", port.to_string())
                .current_dir(folder.path())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            if text.contains("has no fonts") {
                kendall_testbed::missing("a font");
                return Ok(());
            }
            step.judge(output.status.code(), &text)
                .map_err(|why| format!("{script}: {}: {why}\n{text}", step.command))
        });
    }
}

impl Step {
    /// Whether the exit status and the output are as expected.
    fn judge(&self, status: Option<i32>, text: &str) -> Result<(), String> {
        if status != Some(self.status) {
            return Err(format!("exit status {status:?} instead of {}", self.status));
        }
        let mut rest = text;
        for part in &self.parts {
            (_, rest) = rest.split_once(part).ok_or_else(|| format!("no {part:?} in order"))?;
        }
        Ok(())
    }
}

struct Nginx {
    process: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// Starts nginx with two pages, or says why the test is left out.
    fn start() -> Option<Self> {
        if !kendall_testbed::has_peer("nginx", "-v") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
        let root = folder.path().display();
        let configuration = format!(
            "daemon off; worker_processes 1; pid {root}/pid; error_log stderr error;
            events {{ worker_connections 4096; }}
            http {{
              access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/p; fastcgi_temp_path {root}/f;
              uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
              server {{ listen {address}; location / {{ return 200 'hello'; }} }}
            }}"
        );
        fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).args(["-e", "stderr", "-c", "nginx.conf"]);
        let nginx = Self { process: command.spawn().unwrap(), address, _folder: folder };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

#[test]
fn an_engineer_with_an_nginx() {
    let Some(nginx) = Nginx::start() else { return };
    run("engineer.txt", nginx.address.port());
}

#[test]
fn a_teacher_of_queueing() {
    run("teacher.txt", 0);
}

#[test]
fn the_author_of_a_slow_server() {
    run("author.txt", server("200 OK", Duration::from_millis(5)).port());
}
