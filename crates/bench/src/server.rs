//! The server of hash reversal, as users run it: from the engine's speed to the score.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::process::{Child, Command, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use kendall_record::clock::now_ns;
use kendall_record::stamps::{self, Stamp};
use kendall_reverse::protocol::{Request, digest};
use kendall_reverse::{Answers, Key, Memory};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{ROUNDS, median};
use crate::course::Scenario;
use crate::digest::together;
use crate::measure::fastest_engine;

/// The course's milestone, with the seed of its client.
const MILESTONE: Scenario = Scenario {
    seed: 3_435_245,
    total: 100,
    start: 0,
    difficulty: 30_000_000,
    repeat_percent: 20,
    delay: Duration::from_millis(600),
    lambda: 1.5,
};
const WIDTH: u64 = 30_000_000;

pub(crate) fn section(page: &mut String) {
    page.push_str(
        "\n## The server of hash reversal\n\nServer and clients are processes of this machine and share its processors.\n",
    );
    alone(page);
    urgent(page);
    interruptions(page);
    overhead(page);
    memory(page);
    milestone(page);
}

/// A server in its own process.
struct Server {
    child: Child,
    address: SocketAddr,
    metrics: SocketAddr,
    folder: TempDir,
}

impl Server {
    fn start(cache: Memory, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // A port that was free a moment ago.
        let metrics = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let metrics = metrics.expect("there is a free port");
        let mut child = Command::new(crate::common::kendall())
            .args(["serve", "reverse", "--listen", "127.0.0.1:0", "--cache", cache.name()])
            .args(["--metrics", &metrics.to_string()])
            // Some searches are to keep all processors busy.
            .args(["--most-candidates", &u64::MAX.to_string(), "--deadline", "1h"])
            .arg("--stamps")
            .arg(folder.path().join("stamps"))
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("the server says where it listens");
        let address = line.split_whitespace().last().and_then(|word| word.parse().ok());
        Self { child, address: address.expect("the line ends with an address"), metrics, folder }
    }

    fn send(&self, request: &Request) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.write_all(&request.encode()).expect("the server takes requests");
        stream
    }

    /// Sends a request and waits for the answer.
    fn ask(&self, request: &Request) {
        let mut answer = [0; 8];
        self.send(request).read_exact(&mut answer).expect("the server answers");
    }

    fn metric(&self, name: &str) -> f64 {
        let mut stream = TcpStream::connect(self.metrics).expect("the server has metrics");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it takes requests");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.expect("the metric is there")
    }

    /// The processor time of all its threads so far.
    fn cpu_s(&self) -> f64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the server runs");
        let ns = |task: fs::DirEntry| -> Option<f64> {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse().ok()
        };
        tasks.filter_map(|task| ns(task.ok()?)).sum::<f64>() / 1e9
    }

    /// Shuts the server down and reads its stamps.
    fn stop(mut self) -> Vec<Stamp> {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process has an id");
        kill_process(pid, Signal::TERM).expect("the server runs");
        self.child.wait().expect("it ends");
        stamps::read(&self.folder.path().join("stamps")).expect("it wrote its stamps")
    }
}

fn threads() -> usize {
    available_parallelism().map_or(1, NonZeroUsize::get)
}

/// A search through its own range, for the number at `offset` in it.
fn request(range: u64, width: u64, offset: u64, priority: u8) -> Request {
    let start = range << 34;
    Request { digest: digest(start + offset), start, end: start + width, priority }
}

/// A search that does not end while anybody looks.
fn endless() -> Request {
    Request { digest: [7; 32], start: 1 << 62, end: 1 << 63, priority: 1 }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// One request at a time: what the server needs beyond what its engine does.
fn alone(page: &mut String) {
    const REQUESTS: u64 = 40;
    let mut ratios = Vec::new();
    for round in 0..ROUNDS as u64 {
        let (before, _) = together(fastest_engine(), threads());
        let server = Server::start(Memory::Off, &[]);
        let offset = |i: u64| (2 * i + 1) * WIDTH / (2 * REQUESTS);
        for i in 0..REQUESTS {
            server.ask(&request(round * REQUESTS + i, WIDTH, offset(i), 1));
            sleep(Duration::from_millis(2));
        }
        let service_s: f64 = server.stop().iter().map(|stamp| stamp.service as f64 / 1e9).sum();
        let (after, _) = together(fastest_engine(), threads());
        let searched: f64 = (0..REQUESTS).map(|i| (offset(i) + 1) as f64).sum();
        ratios.push(service_s / (searched / ((before + after) / 2.0 * 1e6)));
    }
    let _ = writeln!(
        page,
        "\n**One request alone.** {REQUESTS} searches through {WIDTH} candidates, one after the other: the server took \
         {:.3} times the range searched ÷ the engine's own rate on {} threads, measured before and after \
         (rounds: {}).",
        median(ratios.iter().copied()),
        threads(),
        ratios.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(", "),
    );
}

/// How soon an urgent request is begun while all processors search for another.
fn urgent(page: &mut String) {
    const REQUESTS: u64 = 1000;
    let server = Server::start(Memory::Off, &[]);
    let busy = server.send(&endless());
    sleep(Duration::from_millis(200));
    let mut sent_ns = Vec::new();
    for i in 0..REQUESTS {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        let port = stream.local_addr().expect("it has an address").port();
        let bytes = request(i, 16, 3, 255).encode();
        sent_ns.push((port, now_ns()));
        stream.write_all(&bytes).expect("the server takes requests");
        stream.read_exact(&mut [0; 8]).expect("the server answers");
        drop(stream);
        sleep(Duration::from_millis(2));
    }
    drop(busy);
    let stamps = server.stop();
    let mut from_queued: Vec<f64> =
        stamps.iter().map(|stamp| (stamp.started - stamp.queued) as f64 / 1e3).collect();
    let mut from_sent: Vec<f64> = sent_ns
        .iter()
        .filter_map(|(port, sent)| {
            let stamp = stamps.iter().find(|stamp| stamp.port == *port && stamp.queued >= *sent)?;
            Some((stamp.started - sent) as f64 / 1e3)
        })
        .collect();
    from_queued.sort_by(f64::total_cmp);
    from_sent.sort_by(f64::total_cmp);
    let _ = writeln!(
        page,
        "\n**An urgent request while all processors search.** {REQUESTS} of them: first hash after p50 {:.1} µs, p99 \
         {:.1} µs from its admission; p50 {:.1} µs, p99 {:.1} µs from the instant before the client's call to send, \
         on whose way the kernel wakes the server's thread for sockets.",
        quantile(&from_queued, 0.5),
        quantile(&from_queued, 0.99),
        quantile(&from_sent, 0.5),
        quantile(&from_sent, 0.99),
    );
}

/// What it costs a search to be interrupted, and what it costs the server to drop one.
fn interruptions(page: &mut String) {
    const SPAN: Duration = Duration::from_secs(1);
    const A_SECOND: u64 = 100;
    let server = Server::start(Memory::Off, &[]);
    let hashed = || server.metric("kendall_reverse_candidates_total");
    let rate = |during: &dyn Fn(u64)| {
        let (before, begun) = (hashed(), Instant::now());
        let mut i = 0;
        while begun.elapsed() < SPAN {
            during(i);
            i += 1;
            sleep((SPAN * i as u32 / A_SECOND as u32).saturating_sub(begun.elapsed()));
        }
        (hashed() - before) / begun.elapsed().as_secs_f64()
    };
    let busy = server.send(&endless());
    sleep(Duration::from_millis(200));
    let (mut preempted, mut cancelled) = (Vec::new(), Vec::new());
    for round in 0..5 * ROUNDS as u64 {
        // All sides have a client at work, which costs them the same.
        let preempting = rate(&|i| server.ask(&request(round * A_SECOND + i, 16, 3, 255)));
        let waiting = rate(&|i| server.ask(&request(round * A_SECOND + i, 0, 0, 255)));
        let dropping = rate(&|i| drop_one(&server, round * A_SECOND + i));
        preempted.push(1.0 - preempting / waiting);
        cancelled.push(1.0 - dropping / waiting);
    }
    drop(busy);
    drop(server.stop());
    let _ = writeln!(
        page,
        "\n**Interrupting.** With a search on all threads that is preempted {A_SECOND} times a second, the server \
         hashes {:.2} % less; with one that {A_SECOND} times a second makes way for a search whose client goes away \
         after a millisecond, {:.2} % less. Both against as many requests a second that need no search.",
        median(preempted.into_iter()) * 100.0,
        median(cancelled.into_iter()) * 100.0,
    );
}

/// Begins an urgent search and goes away a millisecond later, with a reset.
fn drop_one(server: &Server, i: u64) {
    let stream = server.send(&Request { digest: [9; 32], start: i << 34, end: 1 << 61, priority: 255 });
    sleep(Duration::from_millis(1));
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is a socket");
}

/// What the order of service costs where requests are tiny.
fn overhead(page: &mut String) {
    const RATE: &str = "10000";
    let target = |server: &Server| format!("reverse://{}?difficulty=100&priority-lambda=1", server.address);
    let mut ratios = Vec::new();
    for _ in 0..2 * ROUNDS {
        let cpu_s = ["fifo", "gittins"].map(|discipline| {
            let server = Server::start(Memory::Off, &["--discipline", discipline]);
            let before = server.cpu_s();
            load(&[&target(&server), "--rate", RATE, "--duration", "2s"]);
            let spent = server.cpu_s() - before;
            drop(server.stop());
            spent
        });
        ratios.push(cpu_s[1] / cpu_s[0]);
    }
    let _ = writeln!(
        page,
        "\n**The order of service.** {RATE} requests a second of 100 candidates each cost the server {:+.1} % processor \
         time in the order of the Gittins index, against first in, first out (rounds: {}).",
        (median(ratios.iter().copied()) - 1.0) * 100.0,
        ratios.iter().map(|ratio| format!("{:+.1}", (ratio - 1.0) * 100.0)).collect::<Vec<_>>().join(", "),
    );
}

/// Whether a Bloom filter in front of the map helps.
fn memory(page: &mut String) {
    const ENTRIES: u64 = 65_536;
    let entries = NonZeroUsize::new(ENTRIES as usize).expect("it is not zero");
    let _ = write!(
        page,
        "\n**Memory.** A question to a memory of {ENTRIES} answers, in ns. The filter is asked first, whatever the map \
         would have said.\n\n| | known | unknown |\n| --- | ---: | ---: |\n"
    );
    let requests =
        |from: u64| -> Vec<Request> { (from..from + ENTRIES).map(|i| request(i, 1_000, 1, 1)).collect() };
    let (known, unknown) = (requests(0), requests(ENTRIES));
    for kind in [Memory::Map, Memory::MapAndBloom] {
        let answers = Answers::new(kind, entries).expect("it remembers");
        for (i, request) in known.iter().enumerate() {
            answers.remember(Key::of(request), Some(((i as u64) << 34) + 1));
        }
        let ns = |requests: &[Request]| {
            let round = || {
                let begun = Instant::now();
                for request in requests {
                    black_box(answers.recall(request));
                }
                begun.elapsed().as_nanos() as f64 / ENTRIES as f64
            };
            median((0..5 * ROUNDS).map(|_| round()))
        };
        let _ = writeln!(page, "| {kind} | {:.0} | {:.0} |", ns(&known), ns(&unknown));
    }
    page.push_str(
        "\nOf a known answer, most is the hash by which it is checked. A search takes a hundred thousand times as long as \
         either, so the filter makes no difference that a client could see.\n",
    );
}

/// The course's milestone at its full size, with the requests of the course's client.
fn milestone(page: &mut String) {
    let engine_rate = || together(fastest_engine(), threads()).0;
    let before = engine_rate();
    let server = Server::start(Memory::Map, &[]);
    let results = MILESTONE.run(server.address);
    drop(server.stop());
    let after = engine_rate();
    let rate = f64::midpoint(before, after);
    let bound_us = weighted_candidates() / rate;
    let _ = writeln!(
        page,
        "\n**The milestone** of the course, at its full size: the 100 requests of the course's client, 600 ms apart, in one run. Score \
         {} µs, {:.0} % right. The engine tested {before:.0} M/s before and {after:.0} M/s after. At the mean of these a server that \
         remembers every answer, searches with all processors and never lets a request wait scores {bound_us:.0} µs; ours is {:.2} \
         times that.",
        results.score,
        results.reliability_percent,
        results.score as f64 / bound_us,
    );
}

/// The mean over all requests of the priority times the candidates up to the number sought; none for a number that was found before.
fn weighted_candidates() -> f64 {
    let requests = MILESTONE.requests();
    let mut found = HashSet::new();
    let searched = requests.iter().filter(|drawn| found.insert(drawn.x));
    let weighted: u64 = searched.map(|drawn| u64::from(drawn.priority) * (drawn.x - drawn.start + 1)).sum();
    weighted as f64 / requests.len() as f64
}

/// What `kendall load` found.
fn load(arguments: &[&str]) -> Value {
    let output = Command::new(crate::common::kendall()).arg("load").args(arguments).arg("--json").output();
    let output = output.expect("the generator runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}
