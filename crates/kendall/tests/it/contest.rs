//! `kendall compare URL-A URL-B --rate R`: servers that are measured and compared in one command.

use std::net::TcpListener;
use std::process::Output;

use serde_json::Value;

use crate::served::{Served, kendall};

/// A server that holds each request for a constant time.
fn hold(time: &str) -> Served {
    Served::new(&["hold", "--workers", "8", "--service", "constant", "--mean", time])
}

fn compare(words: &[&str]) -> Output {
    kendall().arg("compare").args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", said(output)))
}

/// What a comparison prints once it ends with this status and prints these parts. It is repeated where other programs disturbed it.
fn undisturbed(status: i32, parts: &[&str], mut attempt: impl FnMut() -> Output) -> (String, Output) {
    kendall_testbed::unless_disturbed(|| {
        let output = attempt();
        let shown = String::from_utf8(output.stdout.clone()).unwrap();
        let missing: Vec<_> = parts.iter().filter(|part| !shown.contains(**part)).collect();
        match output.status.code() {
            Some(code) if code == status && missing.is_empty() => Ok((shown, output)),
            code => Err(format!("{code:?} without {missing:?} in {shown}{}", said(&output))),
        }
    })
}

#[test]
fn servers_are_measured_in_turns_and_the_slower_one_is_named() {
    let (fast, slow) = (hold("4ms"), hold("20ms"));
    let [fast, slow] = [&fast, &slow].map(|server| format!("hold://{}", server.address));
    let folder = tempfile::tempdir().unwrap();
    let mut attempts = 0;
    let mut record = folder.path().join("record");
    let parts = ["new (8 runs) against old (8 runs)", "slower 4.", "8 pairs", "new: p50 < 10 ms: failed"];
    let (_, output) = undisturbed(4, &parts, || {
        attempts += 1;
        record = folder.path().join(format!("record{attempts}"));
        let (old, new) = (format!("old={fast}"), format!("new={slow}"));
        let load = ["--rate", "40", "--duration", "2s", "--rounds", "8"];
        let asked = ["--metric", "p50", "--expect", "p50<10ms", "--record", record.to_str().unwrap()];
        compare(&[&[&*old, &*new][..], &load, &asked].concat())
    });
    assert!(said(&output).contains("Measuring 2 servers at 40.00/s in 8 rounds"), "{}", said(&output));
    // What was kept is compared again as any loads are.
    let kept = |side: &str| format!("{side}={}/{side}-*", record.display());
    let again = compare(&[&kept("old"), &kept("new"), "--metric", "p50"]);
    assert_eq!(again.status.code(), Some(4), "{}", said(&again));
    let fewer = [&slow, &fast, "-r", "100", "-d", "2s", "--rounds", "8", "--metric", "p50", "--json"];
    let (_, better) = undisturbed(0, &["\"better\"", "\"paired\": true"], || compare(&fewer));
    assert_eq!(json(&better)["comparison"]["against"][0]["metrics"][0]["verdict"], "better");
}

/// A server is as fast as itself; with so few rounds that nothing follows, the result is not a pass.
#[test]
fn what_is_alike_passes_and_what_is_not_known_does_not() {
    let server = hold("10ms");
    let url = format!("hold://{}", server.address);
    let one = |rounds: &str, more: &[&str]| {
        let words = ["--rate", "40", "--rounds", rounds, "--metric", "p50", "--margin", "60%"];
        compare(&[&[&*url, &*url, "-d", "2s"], &words[..], more].concat())
    };
    undisturbed(0, &["equivalent within 60 %"], || one("8", &[]));
    assert_eq!(one("2", &[]).status.code(), Some(3));
    assert_eq!(one("2", &["--allow", "undecided"]).status.code(), Some(0));
    // A metric without a value in any round is not a pass either.
    let too_few = compare(&[&url, &url, "-r", "20", "-d", "1s", "--rounds", "6", "--metric", "p99.9"]);
    assert_eq!(too_few.status.code(), Some(3));
}

#[test]
fn faults_say_what_to_write() {
    let server = hold("1ms");
    let url = format!("hold://{}", server.address);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}/");
    let fault = |words: &[&str]| {
        let output = compare(words);
        assert!(!output.status.success(), "{words:?}");
        said(&output)
    };
    assert!(fault(&[&url, &url]).contains("add --rate, such as --rate 100"));
    assert!(fault(&[&url, "--rate", "10"]).contains("two sides are needed"));
    assert!(
        fault(&[&url, "results/x", "--rate", "10"]).contains("a server can only be compared with a server")
    );
    assert!(fault(&["a.csv", "b.csv", "--rate", "10"]).contains("give each side as a URL"));
    assert!(fault(&[&url, &url, "--rate", "fast"]).contains("such as 100, 100/s, 2k or 600/min"));
    assert!(fault(&[&url, &url, "--rate", "1", "-d", "1s"]).contains("contains no request"));
    let silent = fault(&[&url, &nobody, "--rate", "20", "-d", "500ms", "--rounds", "2"]);
    assert!(silent.contains("answered no request"), "{silent}");
}
