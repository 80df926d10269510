//! Runs and loads that report to other tools while they go on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "pushed"
question = "What arrives elsewhere?"
repeats = 1
disturbed-over = "100%"

[system]
name = "hold"
mean = "1ms"

[load]
rate = 100
duration = "2s"
"#;

/// An address that takes OTLP, and what it was sent.
fn receiver() -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, bodies) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.trim().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
            drop(sender.send(serde_json::from_slice::<Value>(&body).unwrap()));
        }
    });
    (address, bodies)
}

/// How many samples arrived, and their labels.
fn arrived(bodies: &Receiver<Value>) -> (usize, Vec<String>) {
    let mut labels = Vec::new();
    let points = |body: Value| {
        let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone();
        let sent = metrics.into_iter().find(|metric| metric["name"] == "kendall.sent").unwrap();
        let attributes = body["resourceMetrics"][0]["resource"]["attributes"].to_string();
        labels.push(attributes);
        sent["gauge"]["dataPoints"].as_array().unwrap().len()
    };
    (bodies.try_iter().map(points).sum(), labels)
}

#[test]
fn a_run_sends_its_samples_and_says_how_many_arrived() {
    let (address, bodies) = receiver();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pushed.toml"), EXPERIMENT).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kendall"))
        .current_dir(folder.path())
        .args(["run", "pushed.toml", "--json", "--otlp", &format!("http://{address}")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let (arrived, _) = arrived(&bodies);
    assert!(arrived >= 2, "{arrived}: {said}");
    assert!(said.contains(&format!("Sent {arrived} samples to http://{address}/v1/metrics.")), "{said}");
}

#[test]
fn a_load_sends_its_samples_under_the_name_of_what_it_loads() {
    let (address, bodies) = receiver();
    // It answers a request like any other server.
    let load = format!("http://{}/", receiver().0);
    let output = Command::new(env!("CARGO_BIN_EXE_kendall"))
        .args(["load", &load, "--method", "POST", "--body", "null", "--reuse", "close"])
        .args(["--rate", "50", "--duration", "2s", "--otlp", &format!("http://{address}")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let (arrived, labels) = arrived(&bodies);
    assert!(
        arrived >= 2 && labels.iter().all(|labels| labels.contains(&load)),
        "{arrived}: {labels:?} {said}"
    );
    assert!(said.contains(&format!("Sent {arrived} samples to http://{address}/v1/metrics.")), "{said}");
}
