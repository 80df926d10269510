//! Load generators as programs: what each is called with, and how it reports.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde_json::Value;

/// The words of a command: URL, connections, how long.
type Closed = fn(&str, u32, Duration) -> Vec<String>;
/// The words of a command: URL, connections, requests per second, how long.
type Open = fn(&str, u32, u32, Duration) -> Vec<String>;
/// The 99th and 99.9th percentile from its output, in seconds; NaN for one that it does not report.
type Reported = fn(&str) -> Option<[f64; 2]>;

pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The name of the installed program; empty for kendall.
    installed_as: &'static str,
    pub(crate) closed: Option<Closed>,
    pub(crate) open: Option<Open>,
    pub(crate) reported: Option<Reported>,
}

/// Ours first.
pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "kendall",
        installed_as: "",
        closed: Some(|url, connections, time| {
            words(&format!(
                "load {url} --arrivals closed --users {connections} --connections {connections} --duration {}s --json",
                time.as_secs()
            ))
        }),
        open: Some(|url, connections, rate, time| ours(url, connections, rate, time, "")),
        reported: Some(|output| Some([quantile_s(output, 0.99)?, quantile_s(output, 0.999)?])),
    },
    Program {
        name: "kendall --generator-threads 2",
        installed_as: "",
        closed: Some(|url, connections, time| {
            words(&format!(
                "load {url} --arrivals closed --users {connections} --connections {connections} --duration {}s \
                 --generator-threads 2 --json",
                time.as_secs()
            ))
        }),
        open: None,
        reported: None,
    },
    Program {
        name: "kendall --timing precise",
        installed_as: "",
        closed: None,
        open: Some(|url, connections, rate, time| ours(url, connections, rate, time, "--timing precise")),
        reported: None,
    },
    Program {
        name: "wrk",
        installed_as: "wrk",
        closed: Some(|url, connections, time| {
            words(&format!("-t2 -c{connections} -d{}s {url}", time.as_secs()))
        }),
        open: None,
        reported: None,
    },
    Program {
        name: "oha",
        installed_as: "oha",
        closed: Some(|url, connections, time| {
            words(&format!("--no-tui --output-format json -c {connections} -z {}s {url}", time.as_secs()))
        }),
        open: Some(|url, connections, rate, time| {
            words(&format!(
                "--no-tui --output-format json --latency-correction -q {rate} -c {connections} -z {}s {url}",
                time.as_secs()
            ))
        }),
        reported: Some(|output| {
            quantiles(output, "/latencyPercentiles/p99", "/latencyPercentiles/p99.9", 1.0)
        }),
    },
    Program {
        name: "vegeta",
        installed_as: "vegeta",
        closed: None,
        open: Some(|url, connections, rate, time| {
            let attack =
                format!("vegeta attack -rate={rate}/s -workers={connections} -duration={}s", time.as_secs());
            let all = format!("echo GET {url} | {attack} | vegeta report -type=json");
            vec!["-c".into(), all]
        }),
        reported: Some(|output| quantiles(output, "/latencies/99th", "/latencies/99.9th", 1e9)),
    },
    Program {
        name: "fortio",
        installed_as: "fortio",
        closed: Some(|url, connections, time| {
            words(&format!("load -quiet -json - -qps 0 -c {connections} -t {}s {url}", time.as_secs()))
        }),
        open: Some(|url, connections, rate, time| {
            words(&format!(
                "load -quiet -json - -p 50,99,99.9 -uniform -qps {rate} -c {connections} -t {}s {url}",
                time.as_secs()
            ))
        }),
        reported: Some(|output| {
            quantiles(
                output,
                "/DurationHistogram/Percentiles/1/Value",
                "/DurationHistogram/Percentiles/2/Value",
                1.0,
            )
        }),
    },
    Program {
        name: "hey",
        installed_as: "hey",
        closed: Some(|url, connections, time| {
            words(&format!("-c {connections} -z {}s {url}", time.as_secs()))
        }),
        open: Some(|url, connections, rate, time| {
            let each = rate / connections;
            words(&format!("-c {connections} -q {each} -z {}s {url}", time.as_secs()))
        }),
        reported: Some(|output| {
            let line = output.lines().find(|line| line.trim_start().starts_with("99%"))?;
            let p99_s = line.split_whitespace().nth(2)?.parse().ok()?;
            Some([p99_s, f64::NAN])
        }),
    },
];

fn ours(url: &str, connections: u32, rate: u32, time: Duration, more: &str) -> Vec<String> {
    words(&format!(
        "load {url} --arrivals constant --rate {rate} --connections {connections} --duration {}s --json {more}",
        time.as_secs()
    ))
}

/// A quantile of the response times in what ours printed.
pub(crate) fn quantile_s(output: &str, p: f64) -> Option<f64> {
    let json: Value = serde_json::from_str(output.trim()).ok()?;
    let quantiles = json.pointer("/seen/response/quantiles")?.as_array()?;
    let of = |quantile: &&Value| quantile["p"].as_f64().is_some_and(|at| (at - p).abs() < 1e-9);
    quantiles.iter().find(of)?["value_s"].as_f64()
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn quantiles(output: &str, p99: &str, p999: &str, per_s: f64) -> Option<[f64; 2]> {
    let json: Value = serde_json::from_str(output.trim()).ok()?;
    let value = |path: &str| json.pointer(path).and_then(Value::as_f64).map(|value| value / per_s);
    Some([value(p99)?, value(p999).unwrap_or(f64::NAN)])
}

/// What a program cost and printed.
pub(crate) struct Spent {
    pub(crate) cpu_s: f64,
    pub(crate) output: String,
}

pub(crate) struct Running {
    child: Child,
    cpu_before_s: f64,
}

impl Program {
    /// Whether the program is installed.
    pub(crate) fn is_there(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        self.installed_as.is_empty()
            || std::env::split_paths(&path).any(|folder| folder.join(self.installed_as).is_file())
    }

    pub(crate) fn start(&self, words: &[String]) -> Running {
        let program = match self.installed_as {
            "" => crate::common::kendall(),
            // Two of its processes and a pipe between them.
            "vegeta" => "sh".into(),
            other => other.into(),
        };
        let cpu_before_s = children_cpu_s();
        let mut command = Command::new(program);
        let child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        Running { child: child.expect("it was there a moment ago"), cpu_before_s }
    }
}

impl Running {
    /// Waits until it ends.
    pub(crate) fn finish(&mut self) -> Spent {
        let mut output = String::new();
        let mut pipe = self.child.stdout.take().expect("it is piped");
        pipe.read_to_string(&mut output).expect("it prints text");
        self.child.wait().expect("it ends");
        Spent { cpu_s: children_cpu_s() - self.cpu_before_s, output }
    }
}

/// Processor time of all children that have been waited for.
fn children_cpu_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("a process may ask for its own");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
