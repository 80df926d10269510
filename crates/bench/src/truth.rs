//! Whether what the generator says is so: quantiles of delays that are known, and every request of an overload accounted for
//! in memory that does not grow.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tools::{quantile_s, words};

/// Of a thousand requests in a row this many take this long, in milliseconds: no quantile that is asked for lies near a step.
const DELAYS: [(u64, u64); 4] = [(940, 10), (45, 50), (13, 200), (2, 800)];
/// What follows from them, in milliseconds.
const MEANT_MS: [(f64, f64); 6] =
    [(0.5, 10.0), (0.9, 10.0), (0.95, 50.0), (0.98, 50.0), (0.99, 200.0), (0.999, 800.0)];

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## What it says is so\n\n");
    delays(page);
    overload(page);
}

/// Known delays, and what is reported of them.
fn delays(page: &mut String) {
    let server = Server::start();
    let output = run(&format!("load http://{}/ --rate 400 --duration 20s --json", server.address), |_| {});
    let held_ms = server.held_ms();
    let _ = write!(
        page,
        "**Known delays**: of a thousand requests in a row a server is to hold 940 for 10 ms, 45 for 50 ms, 13 for 200 ms and 2 for \
         800 ms, and writes down how long it held each. Poisson arrivals, 400/s for 20 s, one run.\n\n\
         | quantile | meant, ms | held, ms | reported, ms | off what was meant | off what was held |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for (p, meant_ms) in MEANT_MS {
        let told = quantile_s(&output, p).map(|told_s| told_s * 1e3);
        let Some(told_ms) = told else { continue };
        let held_ms = held_ms[(held_ms.len() as f64 * p) as usize];
        let off = |true_ms: f64| (told_ms / true_ms - 1.0) * 100.0;
        let _ = writeln!(
            page,
            "| p{} | {meant_ms} | {held_ms:.2} | {told_ms:.2} | {:+.2} % | {:+.2} % |",
            p * 100.0,
            off(meant_ms),
            off(held_ms),
        );
    }
}

/// Twice what a server can do, for half a minute.
fn overload(page: &mut String) {
    let mut server = Command::new(crate::common::kendall())
        .args(words("serve hold --listen 127.0.0.1:0 --workers 4 --mean 4ms --until-stdin-ends"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kendall starts");
    let mut line = String::new();
    let output = server.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it says where it listens");
    let address = line.split_whitespace().find_map(|word| word.parse::<SocketAddr>().ok());
    let address = address.expect("an address");
    let mut resident_mb = Vec::new();
    let output = run(
        &format!("load hold://{address} --rate 2000 --connections 50 --duration 30s --drain 1s --json"),
        |child| {
            for _ in 0..3 {
                sleep(Duration::from_secs(9));
                resident_mb.push(resident_kb(child.id()) / 1e3);
            }
        },
    );
    drop(server.stdin.take());
    let _ = server.wait();
    let told: Value = serde_json::from_str(output.trim()).expect("it prints JSON");
    let number = |path: &str| told.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let ended: u64 = (0..5).map(|how| number(&format!("/run/ended/{how}"))).sum();
    let _ = writeln!(
        page,
        "\n**Twice the capacity** of a server of 1,000/s, for 30 s, over at most 50 connections, one run: {} requests were due, {ended} are \
         accounted for, {} of them answered; {} connections were opened; {} waited in the generator. Its memory after 9, 18 and \
         27 s: {} MB.",
        number("/run/sent"),
        number("/run/ended/0"),
        number("/run/connections_opened"),
        number("/run/waited_for_connection"),
        resident_mb.iter().map(|mb| format!("{mb:.1}")).collect::<Vec<_>>().join(", "),
    );
}

/// Runs kendall, looks on, and returns what it printed.
fn run(arguments: &str, mut look_on: impl FnMut(&Child)) -> String {
    let mut child = Command::new(crate::common::kendall())
        .args(words(arguments))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kendall starts");
    look_on(&child);
    let mut output = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut output).expect("it prints text");
    child.wait().expect("it ends");
    output
}

fn resident_kb(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
}

/// A server with the delays above: one thread keeps the time of all, so that none waits for a processor that others spin on.
struct Server {
    address: SocketAddr,
    /// How long each request was held, from when it had been read until its answer was handed to the kernel.
    held: Arc<Mutex<Vec<Duration>>>,
}

/// A request that is held.
struct Held {
    read: Instant,
    due: Instant,
    stream: TcpStream,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (count, held) = (Arc::new(AtomicU64::new(0)), Arc::default());
        let (hold, holding) = mpsc::channel();
        let kept = Arc::clone(&held);
        thread::spawn(move || keep_time(&holding, &kept));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, hold) = (Arc::clone(&count), hold.clone());
                // A connection that breaks is the other side's affair.
                thread::spawn(move || read(&stream, &count, &hold).ok());
            }
        });
        Self { address, held }
    }

    /// What the delays were, ascending.
    fn held_ms(&self) -> Vec<f64> {
        let held = self.held.lock().expect("no thread fails while it holds this");
        let mut held_ms: Vec<f64> = held.iter().map(|held| held.as_secs_f64() * 1e3).collect();
        held_ms.sort_by(f64::total_cmp);
        held_ms
    }
}

fn read(stream: &TcpStream, count: &AtomicU64, hold: &mpsc::Sender<Held>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        // The empty line ends a request without a body.
        if line == "\r\n" {
            let read = Instant::now();
            let due = read + Duration::from_millis(delay_ms(count.fetch_add(1, Ordering::Relaxed)));
            let held = Held { read, due, stream: stream.try_clone()? };
            if hold.send(held).is_err() {
                return Ok(());
            }
        }
    }
}

/// Answers each request when it is due. A sleeper may be woken late, so the last of the time is spun.
fn keep_time(holding: &mpsc::Receiver<Held>, kept: &Mutex<Vec<Duration>>) {
    const SPUN: Duration = Duration::from_micros(150);
    let mut queue: Vec<Held> = Vec::new();
    loop {
        let next = queue.iter().map(|held| held.due).min();
        let wait =
            next.map_or(Duration::from_secs(1), |due| due.saturating_duration_since(Instant::now() + SPUN));
        match holding.recv_timeout(wait) {
            Ok(held) => queue.push(held),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while queue.iter().any(|held| held.due <= Instant::now() + SPUN) {
            while let Some(at) = queue.iter().position(|held| held.due <= Instant::now()) {
                let mut held = queue.swap_remove(at);
                // A client that has gone gets no answer.
                let _ = held.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                kept.lock().expect("no thread fails while it holds this").push(held.read.elapsed());
            }
            queue.extend(holding.try_iter());
        }
    }
}

/// The long ones lie scattered among the others: 7 and 1000 have no divisor in common, so each place comes once.
fn delay_ms(request: u64) -> u64 {
    let mut place = request * 7 % 1000;
    for (share, ms) in DELAYS {
        if place < share {
            return ms;
        }
        place -= share;
    }
    unreachable!("the shares make a thousand")
}
