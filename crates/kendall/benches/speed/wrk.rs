//! The generator beside wrk, a load generator in C that only goes as fast as it can, and beside a bare loop.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kendall_load::{
    Dialog, Dialogs, Plan, Progress, Reading, Request, RequestClass, Reuse, Transport, Way, Wire, Workload,
    run,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{ROUNDS, median};

const ROUND: Duration = Duration::from_secs(3);
const CONNECTIONS: u32 = 50;
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A closed loop over kept connections to nginx, as fast as it goes, and one connection alone.
pub(crate) fn section(page: &mut String) {
    page.push_str(
        "\n### Beside wrk\n\nHTTP/1.1 GET of two bytes from nginx with 2 workers on the same machine, closed loop, 3 s a round.\n\n",
    );
    let Some(nginx) = Nginx::start() else {
        page.push_str("Not measured: nginx is not installed (`tools/install bench`).\n");
        return;
    };
    let ours: Vec<Pace> = (0..ROUNDS).map(|_| closed(nginx.address, CONNECTIONS)).collect();
    page.push_str(
        "| 50 connections | requests/s | CPU per request, µs | requests/s to ours | CPU to ours |\n",
    );
    page.push_str("| --- | ---: | ---: | ---: | ---: |\n");
    let (own_per_s, own_us) =
        (median(ours.iter().map(|one| one.per_s)), median(ours.iter().map(|one| one.cpu_us)));
    let _ = writeln!(page, "| kendall, 1 thread | {own_per_s:.0} | {own_us:.1} | 1 | 1 |");
    for threads in [1, 2] {
        let rounds: Option<Vec<(Pace, Pace)>> = (0..ROUNDS)
            .map(|_| Some((closed(nginx.address, CONNECTIONS), wrk(nginx.address, threads)?)))
            .collect();
        let Some(rounds) = rounds else {
            page.push_str("\nwrk is not installed (`tools/install bench`).\n");
            break;
        };
        let _ = writeln!(
            page,
            "| wrk, {threads} thread{} | {:.0} | {:.1} | {:.2} | {:.2} |",
            if threads == 1 { "" } else { "s" },
            median(rounds.iter().map(|(_, wrk)| wrk.per_s)),
            median(rounds.iter().map(|(_, wrk)| wrk.cpu_us)),
            median(rounds.iter().map(|(own, wrk)| wrk.per_s / own.per_s)),
            median(rounds.iter().map(|(own, wrk)| wrk.cpu_us / own.cpu_us)),
        );
    }
    let floors: Vec<(f64, f64)> =
        (0..ROUNDS).map(|_| (ping_pong_us(nginx.address), closed(nginx.address, 1).p50_us)).collect();
    let _ = writeln!(
        page,
        "\nOne connection: median response {:.1} µs, of a bare loop that writes and waits {:.1} µs; apart {:.1} µs in \
         the median of the rounds.",
        median(floors.iter().map(|floor| floor.1)),
        median(floors.iter().map(|floor| floor.0)),
        median(floors.iter().map(|floor| floor.1 - floor.0)),
    );
}

/// How fast a generator went, what a request cost it, and the median response where it is known.
struct Pace {
    per_s: f64,
    cpu_us: f64,
    p50_us: f64,
}

/// Users who do not think.
fn closed(server: SocketAddr, users: u32) -> Pace {
    let arrivals = Arrivals::Closed { population: users, think: Law::Constant { mean_s: 0.0 } };
    let plan = Plan { connections: users, ..Plan::lasting(arrivals, ROUND, 1) };
    let work = move || {
        let mut responses_ns = Vec::new();
        let mut sink = |row: RequestRow| responses_ns.extend(row.response_ns().map(|ns| ns as f64));
        let run = run(&plan, &Get(server), &mut sink, &Progress::default(), &AtomicBool::new(false));
        (run.expect("the generator can be set up"), median(responses_ns.into_iter()))
    };
    let (run, p50_ns) = thread::spawn(work).join().expect("the generator does not panic");
    assert_eq!(run.count(Outcome::Answered), run.sent, "nginx answers everything");
    Pace { per_s: run.sent as f64 / run.wall_s, cpu_us: run.cpu_per_request_s() * 1e6, p50_us: p50_ns / 1e3 }
}

/// As many connections with wrk; `None` if it is not there.
fn wrk(server: SocketAddr, threads: u32) -> Option<Pace> {
    let before = children_cpu_s();
    let (threads, connections) = (format!("-t{threads}"), format!("-c{CONNECTIONS}"));
    let length = format!("-d{}s", ROUND.as_secs());
    let output = Command::new("wrk")
        .args([threads, connections, length, format!("http://{server}/")])
        .output()
        .ok()?;
    let cpu_s = children_cpu_s() - before;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let requests: f64 =
        told.lines().find_map(|line| line.split(" requests in ").next()?.trim().parse().ok())?;
    let per_s = told.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok())?;
    Some(Pace { per_s, cpu_us: cpu_s * 1e6 / requests, p50_us: f64::NAN })
}

/// CPU time of the children of this process that have ended, by proc(5) in hundredths of a second.
fn children_cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("there is proc");
    let fields = text.rsplit(')').next().expect("the name is in brackets").split_whitespace();
    // Fields 16 and 17; the first after the name is the third.
    fields.skip(13).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

/// The median of a loop that writes a request and waits for the answer, and does nothing else.
fn ping_pong_us(server: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(server).expect("nginx listens");
    stream.set_nodelay(true).expect("it is a TCP connection");
    let mut answer = [0; 4096];
    let ask = |_| {
        let before = Instant::now();
        stream.write_all(GET).expect("nginx reads");
        // An answer this short comes whole.
        assert!(stream.read(&mut answer).expect("nginx answers") > 0);
        before.elapsed().as_nanos() as f64 / 1e3
    };
    median((0..20_000).map(ask))
}

struct Get(SocketAddr);

impl Workload for Get {
    fn request(&self, _: u64) -> Request {
        Request { class: 0, bytes: Bytes::from_static(GET) }
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass { name: "all".into(), weight: 1.0 }]
    }

    fn way(&self) -> Way<'_> {
        Way::Bytes(Wire { to: self.0, transport: Transport::Tcp, reuse: Reuse::Keep }, self)
    }
}

impl Dialogs for Get {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Ok2)
    }
}

/// Expects a head, and "ok".
struct Ok2;

impl Dialog for Ok2 {
    fn begin(&mut self, _: u64, _: &Request) {}

    fn read(&mut self, bytes: &[u8]) -> Reading {
        if !bytes.ends_with(b"\r\n\r\nok") {
            return Reading::More { used: 0 };
        }
        let right = bytes.starts_with(b"HTTP/1.1 200 ");
        let outcome = if right { Outcome::Answered } else { Outcome::Wrong };
        Reading::Done { used: bytes.len(), outcome, reuse: Reuse::Keep }
    }
}

/// An nginx of its own, in a temporary folder. Stopped by its process id when dropped.
struct Nginx {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Nginx {
    /// `None` if it is not there.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = address.expect("there is a free port");
        let path = folder.path().display();
        let configuration = format!(
            "daemon off; worker_processes 2; pid {path}/pid; error_log {path}/log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; keepalive_requests 1000000000;\n\
             server {{ listen {address}; location / {{ return 200 \"ok\"; }} }} }}\n"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration).expect("the folder can be written to");
        let child = Command::new("nginx").arg("-c").arg(&file).stderr(Stdio::null()).spawn().ok()?;
        let nginx = Self { child, address, _folder: folder };
        let patience = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < patience, "nginx does not listen on {address}");
            thread::sleep(Duration::from_millis(10));
        }
        Some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process has an id");
        // It stops its workers itself.
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.child.wait();
    }
}
