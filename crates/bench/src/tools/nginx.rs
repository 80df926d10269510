//! An nginx that answers from memory, and counts what it answers.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) struct Nginx {
    child: Child,
    address: SocketAddr,
    status: SocketAddr,
    _folder: TempDir,
}

impl Nginx {
    /// `None` where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let [address, status] = [free(), free()];
        let path = folder.path().display();
        let configuration = format!(
            "daemon off; worker_processes 2; pid {path}/pid; error_log {path}/error.log crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;\n\
               client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c;\n\
               uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
               server {{ listen {address} backlog=4096; location / {{ return 200 \"ok\"; }} }}\n\
               server {{ listen {status}; location / {{ stub_status; }} }} }}\n"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration).expect("a configuration can be written");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).arg("-c").arg(&file).stderr(Stdio::null());
        let child = command.spawn().ok()?;
        let server = Self { child, address, status, _folder: folder };
        let listens = (0..200).any(|_| {
            sleep(Duration::from_millis(20));
            TcpStream::connect(server.status).is_ok()
        });
        assert!(listens, "nginx listens within four seconds");
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Requests for the page that it has answered so far.
    pub(crate) fn requests(&self) -> u64 {
        let mut stream = TcpStream::connect(self.status).expect("nginx listens");
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("nginx reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("nginx answers");
        // The line after "server accepts handled requests" has three numbers; the last counts this one, too.
        let after = page.split("requests").nth(1).expect("the status page has its form");
        let all: u64 =
            after.split_whitespace().nth(2).and_then(|word| word.parse().ok()).expect("a number of requests");
        all - 1
    }

    /// Processor time of its workers so far.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.workers().iter().map(|pid| schedstat_s(*pid)).sum()
    }

    /// Stops its workers for a time.
    pub(crate) fn stand_still(&self, time: Duration) {
        let workers = self.workers();
        let all = |signal| {
            for pid in &workers {
                let pid = Pid::from_raw(*pid).expect("a process has a number above 0");
                kill_process(pid, signal).expect("the worker is ours");
            }
        };
        all(Signal::STOP);
        sleep(time);
        all(Signal::CONT);
    }

    fn workers(&self) -> Vec<i32> {
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }
}

/// Time on a processor, from the scheduler's account in nanoseconds.
fn schedstat_s(pid: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("there is a free port")
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // It may be gone already.
        let _ = kill_process(pid.expect("a process has a number above 0"), Signal::TERM);
        let _ = self.child.wait();
    }
}
