//! What new users type in their first hour, as they type it, and what they must be able to read in the answer.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::served::kendall;

/// A server of HTTP that answers every request with a status, after a time, for as long as the test runs.
pub(crate) fn server(status: &'static str, after: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(&stream, status, after));
        }
    });
    address
}

fn answer(mut stream: &TcpStream, status: &str, after: Duration) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.is_empty() {
            thread::sleep(after);
            if write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    }
}

fn run(words: &[&str]) -> Output {
    kendall().args(words).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", stderr(output)))
}

/// `kendall load localhost:PORT/none` of a server that has no such page.
#[test]
fn a_load_that_is_answered_with_404_says_so_in_its_first_line() {
    let target = format!("{}/none", server("404 Not Found", Duration::ZERO));
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let output = run(&["load", &target, "-n", "100", "-r", "500", "--record", record.to_str().unwrap()]);
    let shown = stdout(&output);
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("FAILED: every answer had status 404 (100 requests)."), "{shown}");
    assert!(shown.contains("status: 404 × 100\n"), "{shown}");
    let page = std::fs::read_to_string(record.join("report.html")).unwrap().replace('\u{a0}', " ");
    assert!(page.contains(first) && page.contains("status: 404 × 100"), "{page}");
    let found: Value =
        serde_json::from_str(&std::fs::read_to_string(record.join("answer.json")).unwrap()).unwrap();
    assert_eq!(found["run"]["statuses"], serde_json::json!({ "404": 100 }));
}

/// `--rate 80%` measures what 100 % is before it loads, says what it found, and the printed command repeats the load.
#[test]
fn a_rate_in_per_cent_is_calibrated() {
    let target = server("200 OK", Duration::from_millis(5)).to_string();
    let output = run(&["load", &target, "--rate", "5%", "-n", "20", "--connections", "4"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let calibrated =
        said.lines().find(|line| line.starts_with("Calibrated: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(
        calibrated.contains("/s is the highest throughput of a closed load")
            && calibrated.contains("5.0 % of that is")
    );
    let shown = stdout(&output);
    let again = shown.lines().find(|line| line.starts_with("The same again: ")).unwrap();
    let capacity: f64 =
        again.split("--capacity ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    // At most four users, and each waits for at least 5 ms.
    assert!(capacity > 0.0 && capacity <= 4.0 / 0.005 * 1.01, "{again}");
    assert!(again.contains("--rate 5%") && shown.contains("offered "), "{again}");
    let known = run(&["load", &target, "--rate", "5%", "--capacity", "1k", "-d", "300ms", "--json"]);
    assert_eq!(json(&known)["offered_per_s"], 50.0);
    assert!(!stderr(&known).contains("Calibrated"));
}

/// Times and rates are written alike wherever one is taken, and an error names the option and shows how it is written.
#[test]
fn units_are_the_same_in_every_command() {
    let solved = |words: &[&str]| {
        let output = run(&[words, &["--only", "formula", "--json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        json(&output)["formula"]["answer"]["response"]["mean_s"]["value"].as_f64().unwrap()
    };
    let plain = solved(&["solve", "M/M/1", "--arrival-rate", "5", "--service-time", "0.1"]);
    for (rate, time) in [("5/s", "100ms"), ("300/min", "0.1s"), ("0.005k", "100ms")] {
        let same = solved(&["solve", "M/M/1", "--arrival-rate", rate, "--service-time", time]);
        assert!((same - plain).abs() < 1e-12, "{rate} {time}: {same}");
    }
    for (words, option, written) in [
        (
            &["solve", "M/M/1", "--arrival-rate", "fast", "--service-time", "1"][..],
            "--arrival-rate",
            "600/min",
        ),
        (&["solve", "M/M/1", "--arrival-rate", "1", "--service-time", "soon"], "--service-time", "100ms"),
        (&["load", "localhost:1", "-d", "soon"], "--duration", "250ms"),
        (&["load", "localhost:1", "-r", "0"], "--rate", "600/min"),
        (&["load", "localhost:1", "-d", "0s"], "--duration", "for example 10s"),
        (&["load", "localhost:1", "--arrivals", "closed"], "--users", "such as 10"),
        (
            &["load", "localhost:1", "--arrivals", "constant", "-n", "1", "--users", "2"],
            "--users",
            "leave it out",
        ),
        (&["peak", "localhost:1", "--slo", "p99<5ms", "-d", "0s"], "--duration", "for example 10s"),
        (&["doctor", "--wait-quiet", "soon"], "--wait-quiet", "250ms"),
        (&["predict", "x.csv", "--rate", "80%"], "--rate", "600/min"),
        (&["link", "run", "--wait", "soon", "true"], "--wait", "250ms"),
    ] {
        let output = run(words);
        let said = stderr(&output);
        assert!(
            !output.status.success() && said.contains(option) && said.contains(written),
            "{words:?}: {said}"
        );
        assert!(!said.contains("rate = ") && !said.contains("users = "), "in the language of files: {said}");
    }
}

/// "To pass '-x' as a value, use '-- -x'" helps no user of these commands.
#[test]
fn an_unknown_option_is_no_value() {
    for words in
        [&["load", "localhost:1", "-x"][..], &["peak", "localhost:1", "-w", "5"], &["solve", "M/M/1", "-y"]]
    {
        let said = stderr(&run(words));
        assert!(said.contains("unexpected argument") && !said.contains("'-- "), "{said}");
    }
}

/// Programs that keep the processors busy beside the other tests, and are not children of this one. They end with it, or after a while.
struct Busy(Vec<String>);

impl Busy {
    fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let script = "timeout 120 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!";
        let start = || Command::new("sh").args(["-c", script]).output().unwrap();
        Self((0..4 * processors).map(|_| stdout(&start()).trim().to_owned()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(&self.0).status();
    }
}

/// Programs that keep the machine busy are named by the doctor, before a load and after it, and "allow more connections" is no advice
/// then.
#[test]
fn what_disturbs_a_load_is_named() {
    let target = server("200 OK", Duration::from_millis(5)).to_string();
    let _busy = Busy::new();
    let doctor = run(&["doctor", "--wait-quiet", "1s", "--json"]);
    let found = json(&doctor);
    assert_eq!((found["quiet"].as_bool(), doctor.status.code()), (Some(false), Some(1)), "{found}");
    let programs = found["surroundings"]["programs"].as_array().unwrap();
    assert!(programs.iter().any(|program| program["name"] == "sh"), "{found}");
    let words = stderr(&run(&["doctor", "--wait-quiet", "1s"]));
    assert!(words.contains("kendall: not quiet within 1s: other programs took "), "{words}");
    let load = run(&["load", &target, "-n", "100", "-r", "400", "-c", "1"]);
    let (said, shown) = (stderr(&load), stdout(&load));
    assert!(said.contains("Warning: other programs took "), "{said}");
    let first = shown.lines().next().unwrap();
    assert!(first.contains("other programs took ") && !first.contains("Trustworthy"), "{shown}");
    assert!(!shown.contains("allow more connections"), "{shown}");
}

/// A teacher's first question about processor sharing: nothing waits there, and quantiles are known by formula.
#[test]
fn a_shared_server_has_a_slowdown_and_quantiles_by_formula() {
    let station = ["solve", "M/M/1/PS", "--arrival-rate", "7/s", "--service-time", "100ms"];
    let shown = stdout(&run(&station));
    assert!(shown.contains("slowdown, mean") && shown.contains("delay by sharing, mean"), "{shown}");
    assert!(!shown.contains("wait"), "{shown}");
    let found = json(&run(&[&station[..], &["--json"]].concat()));
    let quantile = |way: &str, p: f64| {
        let quantiles = found[way]["answer"]["response"]["quantiles"].as_array().unwrap();
        quantiles.iter().find(|quantile| quantile["p"] == p).unwrap()["value_s"].clone()
    };
    for p in [0.5, 0.9, 0.99] {
        let exact = quantile("formula", p)["value"].as_f64().unwrap();
        let interval = quantile("simulation", p)["interval"].clone();
        let end = |place: usize| interval[place].as_f64().unwrap();
        // The seed is fixed. An interval of 95 % is missed once in twenty, and by little.
        let margin = end(1) - end(0);
        assert!((end(0) - margin..=end(1) + margin).contains(&exact), "p{p}: {exact} of {interval}");
    }
}

/// No mean under sharing depends on the variation of service, so none need be given.
#[test]
fn a_shared_server_needs_no_coefficient_of_variation() {
    let output = run(&["solve", "M/G/1/PS", "--arrival-rate", "7", "--service-time", "0.1", "--json"]);
    assert!(output.status.success() && stderr(&output).contains("insensitivity"), "{}", stderr(&output));
    let found = json(&output);
    let mean = found["formula"]["answer"]["response"]["mean_s"]["value"].as_f64().unwrap();
    assert!((mean - 0.1 / 0.3).abs() < 1e-9, "{mean}");
    assert!(found["formula"]["answer"]["response"]["quantiles"].as_array().unwrap().is_empty(), "{found}");
    let fifo = run(&["solve", "M/G/1", "--arrival-rate", "7", "--service-time", "0.1"]);
    assert!(!fifo.status.success() && stderr(&fifo).contains("--service-scv"), "{}", stderr(&fifo));
}

#[test]
fn an_unstable_station_says_up_to_which_rate_it_is_stable() {
    let output = run(&["solve", "M/M/2", "--arrival-rate", "25", "--service-time", "100ms"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("stable below 20.00/s"), "{}", stdout(&output));
}

/// What a model says is in words; the names of its quantities are for programs.
#[test]
fn models_speak_in_words() {
    let shown = stdout(&run(&["solve", "mm1", "lam=1", "mu=2"]));
    assert!(shown.contains("P(3 or more present)") && shown.contains("response time, p99"), "{shown}");
    assert!(!shown.contains('_'), "{shown}");
}
