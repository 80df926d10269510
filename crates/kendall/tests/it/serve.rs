//! `kendall serve reverse` with a process for each request: processes that come with requests, go with clients, and
//! do not outlive the server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_reverse::SEARCH_ONE;
use kendall_reverse::protocol::{Request, decode_answer, digest};

/// Longer than anything here takes, so that a test that hangs fails instead.
const LIMIT: Duration = Duration::from_secs(60);

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kendall"))
            .args(["serve", "reverse", "--listen", "127.0.0.1:0", "--execution", "process-per-request"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.split_whitespace().last().unwrap().to_owned() }
    }

    fn send(&self, number: u64, start: u64, end: u64) -> TcpStream {
        let request = Request { digest: digest(number), start, end, priority: 1 };
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(&request.encode()).unwrap();
        stream
    }

    /// How many processes search for this server.
    fn processes(&self) -> usize {
        searchers().into_iter().filter(|&(_, parent)| parent == self.child.id()).count()
    }

    fn wait_for_processes(&self, count: usize) {
        wait_until(|| self.processes() == count);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(mut stream: TcpStream) -> u64 {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).unwrap();
    decode_answer(bytes)
}

fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "waited in vain");
        sleep(Duration::from_millis(5));
    }
}

/// All processes of this machine that search for one request, with their parents.
fn searchers() -> Vec<(u32, u32)> {
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let searcher = |id: u32| {
        let arguments = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        arguments.split('\0').any(|argument| argument == SEARCH_ONE).then_some((id, parent))
    };
    ids.filter_map(searcher).collect()
}

#[test]
fn a_process_finds_the_number_or_that_there_is_none() {
    let server = Server::start(&["--cache", "off"]);
    let streams: Vec<_> = (0..6).map(|i| (i * 1_000, server.send(i * 1_000, 0, 10_000))).collect();
    for (number, stream) in streams {
        assert_eq!(answer(stream), number);
    }
    assert_eq!(answer(server.send(20_000, 0, 10_000)), 0);
    server.wait_for_processes(0);
}

#[test]
fn requests_beyond_the_most_processes_wait_and_a_client_that_goes_takes_its_process_along() {
    let server = Server::start(&["--max-processes", "2", "--most-candidates", "18446744073709551615"]);
    let endless: Vec<_> = (0..2).map(|i| server.send(u64::MAX - i, 0, 1 << 60)).collect();
    server.wait_for_processes(2);
    let waiting = server.send(77, 0, 100);
    sleep(Duration::from_millis(50));
    assert_eq!(server.processes(), 2);
    for stream in endless {
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    }
    assert_eq!(answer(waiting), 77);
    server.wait_for_processes(0);
}

#[test]
fn processes_do_not_outlive_a_server_that_is_killed() {
    let mut server = Server::start(&["--most-candidates", "18446744073709551615"]);
    let _endless: Vec<_> = (0..3).map(|i| server.send(u64::MAX - i, 0, 1 << 60)).collect();
    server.wait_for_processes(3);
    let ids: Vec<u32> = searchers()
        .into_iter()
        .filter(|&(_, parent)| parent == server.child.id())
        .map(|(id, _)| id)
        .collect();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    wait_until(|| searchers().iter().all(|(id, _)| !ids.contains(id)));
}
