//! Whether what the generator says is so: quantiles of delays that are known, and every request of an overload accounted for
//! in memory that does not grow.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tools::{quantile_s, words};

/// Of a thousand requests in a row so many take this long, in milliseconds: no quantile that is asked for lies near a step.
const DELAYS: [(u64, u64); 4] = [(940, 10), (45, 50), (13, 200), (2, 800)];
/// What follows from them, in milliseconds.
const TRUE_MS: [(f64, f64); 6] =
    [(0.5, 10.0), (0.9, 10.0), (0.95, 50.0), (0.98, 50.0), (0.99, 200.0), (0.999, 800.0)];

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## What it says is so\n\n");
    delays(page);
    overload(page);
}

/// Known delays, and what is reported of them.
fn delays(page: &mut String) {
    let server = serve();
    let output = run(&format!("load http://{server}/ --rate 400 --duration 20s --json"), |_| {});
    let _ = write!(
        page,
        "**Known delays**: of a thousand requests in a row a server holds 940 for 10 ms, 45 for 50 ms, 13 for 200 ms and 2 for \
         800 ms. Poisson arrivals, 400/s for 20 s.\n\n| quantile | true, ms | reported, ms | off by |\n| --- | ---: | ---: | ---: |\n"
    );
    for (p, true_ms) in TRUE_MS {
        let told = quantile_s(&output, p).map(|told_s| told_s * 1e3);
        let Some(told_ms) = told else { continue };
        let _ = writeln!(
            page,
            "| p{} | {true_ms} | {told_ms:.2} | {:+.2} % |",
            p * 100.0,
            (told_ms / true_ms - 1.0) * 100.0
        );
    }
}

/// Twice what a server can do, for half a minute.
fn overload(page: &mut String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_kendall"))
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
        "\n**Twice the capacity** of a server of 1,000/s, for 30 s, over at most 50 connections: {} requests were due, {ended} are \
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
    let mut child = Command::new(env!("CARGO_BIN_EXE_kendall"))
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

/// A server with a thread for each connection, and the delays above.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let count = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            // A connection that breaks is the other side's affair.
            thread::spawn(move || answer(stream, &count).ok());
        }
    });
    address
}

fn answer(mut stream: TcpStream, count: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        // The empty line ends a request without a body.
        if line == "\r\n" {
            hold(Duration::from_millis(delay_ms(count.fetch_add(1, Ordering::Relaxed))));
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        }
    }
}

/// Sleeps for most of a time and computes for the rest, for a sleeper may be woken half a millisecond late.
fn hold(time: Duration) {
    let until = Instant::now() + time;
    sleep(time - Duration::from_millis(1));
    while Instant::now() < until {
        std::hint::spin_loop();
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
