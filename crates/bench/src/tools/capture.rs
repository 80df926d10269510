//! When requests left, by the packets that carried them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running tcpdump.
pub(crate) struct Capture {
    child: Child,
    messages: BufReader<ChildStderr>,
    folder: TempDir,
}

impl Capture {
    /// Whether packets can be captured here.
    pub(crate) fn is_possible() -> bool {
        let mut list = Command::new("tcpdump");
        list.args(["-i", "lo", "-d"]).stdout(Stdio::null()).stderr(Stdio::null());
        rustix::process::geteuid().is_root() && list.status().is_ok_and(|status| status.success())
    }

    /// Captures what carries bytes to a port of this machine.
    pub(crate) fn start(port: u16) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // The total length less both headers: what TCP carries.
        let filter = format!(
            "tcp dst port {port} and (ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2)) != 0"
        );
        let mut child = Command::new("tcpdump")
            .args(["-i", "lo", "-n", "--time-stamp-precision=nano", "-s", "80", "-B", "65536", "-Z", "root"])
            .arg("-w")
            .arg(folder.path().join("packets"))
            .arg(filter)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was there a moment ago");
        let mut messages = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            let read = messages.read_line(&mut line).expect("tcpdump says what it does");
            assert!(read > 0, "tcpdump captures");
        }
        sleep(Duration::from_millis(100));
        Self { child, messages, folder }
    }

    /// The instants of all packets, in nanoseconds, ascending.
    pub(crate) fn finish(mut self) -> Vec<i64> {
        sleep(Duration::from_millis(200));
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process has a number above 0"), Signal::INT).expect("it runs");
        let lines: Vec<String> = self.messages.lines().map_while(Result::ok).collect();
        self.child.wait().expect("it ends");
        let dropped = lines.iter().find(|line| line.contains("dropped by kernel"));
        assert!(dropped.is_none_or(|line| line.starts_with("0 ")), "the capture is whole: {lines:?}");
        let file = fs::read(self.folder.path().join("packets")).expect("tcpdump wrote it");
        let mut instants_ns = instants(&file);
        instants_ns.sort_unstable();
        instants_ns
    }
}

/// The stamps in a file of libpcap's format, in this machine's order of bytes.
fn instants(file: &[u8]) -> Vec<i64> {
    const NANOSECONDS: u32 = 0xa1b2_3c4d;
    let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(word(0), NANOSECONDS, "stamps are in nanoseconds");
    let mut instants_ns = Vec::new();
    let mut at = 24;
    while at + 16 <= file.len() {
        instants_ns.push(i64::from(word(at)) * 1_000_000_000 + i64::from(word(at + 4)));
        at += 16 + word(at + 8) as usize;
    }
    instants_ns
}

/// How sends lie to an even schedule.
#[derive(Clone, Copy)]
pub(crate) struct Sends {
    pub(crate) late_p50_ns: f64,
    pub(crate) late_p99_ns: f64,
    /// The coefficient of variation of the gaps between sends.
    pub(crate) gap_variation: f64,
    /// The index of dispersion of counts per millisecond.
    pub(crate) dispersion: f64,
    pub(crate) rate_per_s: f64,
}

impl Sends {
    /// `None` where there are too few. The first 1.5 s and the last 0.7 s are not judged.
    pub(crate) fn of(instants_ns: &[i64], rate_per_s: f64) -> Option<Self> {
        let (first, last) = (instants_ns.first()? + 1_500_000_000, instants_ns.last()? - 700_000_000);
        let kept: Vec<i64> = instants_ns.iter().copied().filter(|at| (first..last).contains(at)).collect();
        if kept.len() < 1_000 {
            return None;
        }
        let offset = |(k, at): (usize, &i64)| (at - kept[0]) as f64 - k as f64 * 1e9 / rate_per_s;
        let mut late_ns: Vec<f64> = kept.iter().enumerate().map(offset).collect();
        late_ns.sort_by(f64::total_cmp);
        let late = |q: f64| late_ns[(late_ns.len() as f64 * q) as usize] - late_ns[0];
        let gaps: Vec<f64> = kept.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mut counts = vec![0.0; ((last - first) / 1_000_000) as usize];
        for at in &kept {
            if let Some(count) = counts.get_mut(((at - first) / 1_000_000) as usize) {
                *count += 1.0;
            }
        }
        let (gap, gap_variance) = moments(&gaps);
        let (count, count_variance) = moments(&counts);
        Some(Self {
            late_p50_ns: late(0.5),
            late_p99_ns: late(0.99),
            gap_variation: gap_variance.sqrt() / gap,
            dispersion: count_variance / count,
            rate_per_s: kept.len() as f64 / ((kept[kept.len() - 1] - kept[0]) as f64 / 1e9),
        })
    }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n)
}
