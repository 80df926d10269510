//! Whether an emulated link is what was asked for, and how much passes it.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tools::words;

/// TCP's payload of each 1514 bytes on an Ethernet, with time stamps.
const PAYLOAD: f64 = 1448.0 / 1514.0;
const RATES_MBIT: [f64; 2] = [10.0, 100.0];
const DELAY_MS: f64 = 20.0;

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## The emulated link\n\n");
    let Some(first) = asked(RATES_MBIT[0]) else {
        page.push_str("Not measured: iperf3 is not installed, or namespaces may not be made here.\n");
        return;
    };
    page.push_str(
        "20 ms each way. Round trips by ping, goodput by iperf3 with CUBIC after its first 3 s, beside the rate less Ethernet's, IP's \
         and TCP's headers. How late the emulator handed packets out is its own account, over both directions.\n\n\
         | asked, Mbit/s | round trip, ms | asked 40 | goodput, Mbit/s | of the possible | late p99, µs |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (rate_mbit, seen) in [(RATES_MBIT[0], Some(first)), (RATES_MBIT[1], asked(RATES_MBIT[1]))] {
        let Some(LinkMeasurement { round_trip_ms, goodput_mbit, late_p99_us }) = seen else { continue };
        let _ = writeln!(
            page,
            "| {rate_mbit} | {round_trip_ms:.2} | {:+.2} % | {goodput_mbit:.2} | {:.1} % | {late_p99_us:.0} |",
            (round_trip_ms / (2.0 * DELAY_MS) - 1.0) * 100.0,
            goodput_mbit / (rate_mbit * PAYLOAD) * 100.0,
        );
    }
    page.push_str("\n**Without a rate**, what passes from end to end by TCP:");
    for back_end in ["veth", "tun"] {
        let through = iperf(&format!("--back-end {back_end}"), 6)
            .map_or_else(|| "not measured".to_owned(), |mbit| format!("{:.2} Gbit/s", mbit / 1e3));
        let _ = write!(page, " {back_end} {through},");
    }
    page.pop();
    page.push_str(".\n");
}

struct LinkMeasurement {
    round_trip_ms: f64,
    goodput_mbit: f64,
    late_p99_us: f64,
}

/// A link of this rate, measured from outside; `None` where that cannot be done here.
fn asked(rate_mbit: f64) -> Option<LinkMeasurement> {
    let link = format!("--delay {DELAY_MS}ms --rate {rate_mbit}mbit");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let record = folder.path().join("record");
    let record_link = format!("link run {link} --record {}", record.display());
    let ping = kendall(&record_link, &["--", "ping", "-c", "200", "-i", "0.01", "-q", "10.0.0.2"])?;
    // "rtt min/avg/max/mdev = 40.1/40.2/42.8/0.5 ms"
    let round_trip_ms = ping.split("mdev = ").nth(1)?.split('/').nth(1)?.parse().ok()?;
    let record: Value = serde_json::from_slice(&std::fs::read(record.join("link.json")).ok()?).ok()?;
    let late_p99_us = lateness_p99_ns(&record)? / 1e3;
    let goodput_mbit = iperf(&format!("{link} --congestion cubic"), 10)?;
    Some(LinkMeasurement { round_trip_ms, goodput_mbit, late_p99_us })
}

/// The worse direction's.
fn lateness_p99_ns(record: &Value) -> Option<f64> {
    let mut found: Option<f64> = None;
    let mut open = vec![record];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.pointer("/p99_ns").and_then(Value::as_f64) {
                        Some(ns) if name == "late" => found = Some(found.unwrap_or(0.0).max(ns)),
                        _ => open.push(value),
                    }
                }
            }
            Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    found
}

/// Mbit/s at the receiver.
fn iperf(link: &str, seconds: u32) -> Option<f64> {
    let seconds = seconds.to_string();
    let client = ["--", "iperf3", "-c", "10.0.0.2", "-J", "-O", "3", "-t", &seconds];
    let more = [&["--server", "iperf3 -s -1 >/dev/null"], &client[..]].concat();
    let told: Value = serde_json::from_str(&kendall(&format!("link run {link} --quiet"), &more)?).ok()?;
    Some(told.pointer("/end/sum_received/bits_per_second")?.as_f64()? / 1e6)
}

/// What kendall printed, if it and the command that it ran ended well.
fn kendall(arguments: &str, more: &[&str]) -> Option<String> {
    let mut command = Command::new(crate::common::kendall());
    let output = command.args(words(arguments)).args(more).stderr(Stdio::null()).output();
    let output = output.expect("kendall starts");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
