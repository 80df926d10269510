//! CurveCP beside TCP on emulated links: what one flow gets alone and under loss, how two share, and what each congestion
//! control adds to the delay.

pub(crate) mod ends;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::common::median;

/// Data bytes per byte on the link: 1,280 in a packet of 1,468 with an Ethernet header, the longest that goes to a server.
const EFFICIENCY: f64 = 1280.0 / (1468.0 + 14.0);
const RATES_MBIT: [f64; 2] = [10.0, 100.0];
/// The link: a round trip of 20 ms, and the queue that `kendall link` has by default, which is one product of rate and
/// round trip at 100 Mbit/s and ten at 10.
const LINK: &str = "--delay 10ms";
/// Until all flows have started and slow start is over.
const WARM_UP_S: f64 = 5.0;
const ALONE_S: u32 = 15;
const SHARED_S: u32 = 35;
const LOSSY_S: u32 = 25;

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## CurveCP on emulated links\n\n");
    if !can_emulate() {
        page.push_str("Not measured: namespaces may not be made here (run as root).\n");
        return;
    }
    page.push_str(
        "From client to server over `kendall link` with 20 ms of round trip and its queue of 256 kB. Goodput is what arrives after \
         5 s, as a share of the protocol's ceiling: 1,280 bytes of data in a packet that takes 1,482 on the link.\n\n",
    );
    alone(page);
    shared(page);
    lossy(page);
    delays(page);
}

/// The goodput of each flow in bytes/s, and the median time in the queue.
struct LinkMeasurement {
    goodput: Vec<f64>,
    queue_ms: f64,
}

fn ceiling(mbit: f64) -> f64 {
    mbit * 1e6 / 8.0 * EFFICIENCY
}

fn row(page: &mut String, name: &str, cells: &[Option<String>]) {
    page.push_str(&format!("| {name} |"));
    for cell in cells {
        page.push_str(&format!(" {} |", cell.as_deref().unwrap_or("not measured")));
    }
    page.push('\n');
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn alone(page: &mut String) {
    page.push_str("**Alone.**\n\n| | 10 Mbit/s | 100 Mbit/s |\n| --- | ---: | ---: |\n");
    for flow in ["cubic", "bbr"] {
        let cells = RATES_MBIT.map(|mbit| {
            let seen = run(&at(mbit), ALONE_S, &[flow])?;
            Some(percent(seen.goodput[0] / ceiling(mbit)))
        });
        row(page, flow, &cells);
    }
}

/// Two flows of the transport laboratory: the share of the first, where both begin at once, and where either begins a second earlier.
/// On a link whose queue holds ten times what is on the way, who was first has more for minutes.
fn shared(page: &mut String) {
    page.push_str(
        "\n**Two flows** of `kendall transport flows`, the share of the first in what both deliver: the median and the range of three \
         runs, in which both begin at once, and either begins a second earlier. TCP is Linux's CUBIC with segments of 1,448 bytes; \
         two of those show how even a share is at all.\n\n| | 10 Mbit/s | 100 Mbit/s |\n| --- | ---: | ---: |\n",
    );
    for [first, second] in [["curve", "tcp"], ["tcp", "tcp"], ["curve", "curve"]] {
        let starts = [("", ""), ("+1", ""), ("", "+1")];
        let flows = starts.map(|(late, later)| format!("up:{first}{late},up:{second}{later}"));
        // The slow links need a twentieth of the processors each.
        let slow: Vec<Option<f64>> = thread::scope(|scope| {
            let runs = flows.each_ref().map(|flows| scope.spawn(move || share(flows, RATES_MBIT[0], "60s")));
            runs.into_iter().map(|run| run.join().ok().flatten()).collect()
        });
        let rounds = if second == "tcp" && first == "curve" { flows.len() } else { 1 };
        let fast = flows[..rounds].iter().map(|flows| share(flows, RATES_MBIT[1], "35s")).collect();
        row(page, &format!("{first} beside {second}"), &[slow, fast].map(spread));
    }
}

/// The share of the first of these flows.
fn share(flows: &str, mbit: f64, time: &str) -> Option<f64> {
    let link = format!("delay=10ms rate={mbit}mbit");
    let mut command = Command::new(crate::common::kendall());
    command.args(["transport", "flows", flows, "--link", &link, "--duration", time, "--json"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let seen: Value = serde_json::from_slice(&output.stdout).ok()?;
    seen.pointer("/flows/0/share")?.as_f64()
}

/// The median, and the range of more than one.
fn spread(shares: Vec<Option<f64>>) -> Option<String> {
    let mut shares = shares.into_iter().collect::<Option<Vec<f64>>>()?;
    shares.sort_by(f64::total_cmp);
    let middle = median(shares.iter().copied());
    match shares[..] {
        [least, .., most] => Some(format!("{middle:.2} ({least:.2} to {most:.2})")),
        _ => Some(format!("{middle:.2}")),
    }
}

fn lossy(page: &mut String) {
    page.push_str(
        "\n**1 % of packets lost**, kB/s.\n\n| | 10 Mbit/s | 100 Mbit/s |\n| --- | ---: | ---: |\n",
    );
    for flow in ["cubic", "tcp-cubic", "bbr"] {
        let cells = RATES_MBIT.map(|mbit| {
            let seen = run(&(at(mbit) + " --loss 1% --seed 7"), LOSSY_S, &[flow])?;
            Some(format!("{:.0}", seen.goodput[0] / 1e3))
        });
        row(page, flow, &cells);
    }
}

/// On a buffer of 100 ms: the delay that each control adds, and what it gets.
fn delays(page: &mut String) {
    page.push_str(
        "\n**A queue of 100 ms** at 10 Mbit/s: the median delay in it, and the goodput.\n\n\
         | | in the queue, ms | of the ceiling |\n| --- | ---: | ---: |\n",
    );
    for flow in ["cubic", "bbr", "chicago", "chicago-polled"] {
        let seen = run("--delay 10ms --rate 10mbit --queue 125k", SHARED_S, &[flow]);
        let cells = [
            seen.as_ref().map(|seen| format!("{:.1}", seen.queue_ms)),
            seen.as_ref().map(|seen| percent(seen.goodput[0] / ceiling(10.0))),
        ];
        row(page, flow, &cells);
    }
}

fn at(mbit: f64) -> String {
    format!("{LINK} --rate {mbit}mbit")
}

/// Whether this machine lets `kendall link` make namespaces.
pub(crate) fn can_emulate() -> bool {
    let mut command = Command::new(crate::common::kendall());
    command.args(["link", "run", "--quiet", "true"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs flows over a link; `None` where that failed.
fn run(link: &str, seconds: u32, flows: &[&str]) -> Option<LinkMeasurement> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (counts, record) = (folder.path().join("counts"), folder.path().join("record"));
    let program = std::env::current_exe().expect("a program knows its path");
    let program = program.to_str().expect("the path is text");
    let mut command = Command::new(crate::common::kendall());
    command.args(["link", "run", "--quiet", "--congestion", "cubic"]).args(link.split(' '));
    command.arg("--record").arg(&record);
    command.args(["--server", &format!("exec '{program}' {} server '{}'", ends::WORD, counts.display())]);
    command.args(["--", program, ends::WORD, "client", &seconds.to_string()]).args(flows);
    let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    let goodput = status.success().then(|| goodput(&counts, flows.len()))??;
    let record: Value = serde_json::from_slice(&fs::read(record.join("link.json")).ok()?).ok()?;
    let queue_ns = record.pointer("/outcome/up/waited/p50_ns")?.as_f64()?;
    Some(LinkMeasurement { goodput, queue_ms: queue_ns / 1e6 })
}

/// Bytes per second of each flow, from the end of the warm-up after all have started until the last byte.
fn goodput(counts: &Path, flows: usize) -> Option<Vec<f64>> {
    let text = fs::read_to_string(counts).ok()?;
    let read = |line: &str| line.split(' ').map(|number| number.parse().ok()).collect::<Option<Vec<f64>>>();
    // The last line may not have been finished.
    let lines: Vec<Vec<f64>> = text.lines().filter_map(read).filter(|line| line.len() > flows).collect();
    let started = lines.iter().find(|line| line[1..=flows].iter().all(|bytes| *bytes > 0.0))?[0];
    let from = lines.iter().find(|line| line[0] >= started + WARM_UP_S)?;
    let to =
        lines.iter().rev().zip(lines.iter().rev().skip(1)).find(|(line, before)| line[1..] != before[1..])?.0;
    let seconds = to[0] - from[0];
    (seconds > 0.0).then(|| (1..=flows).map(|flow| (to[flow] - from[flow]) / seconds).collect())
}
