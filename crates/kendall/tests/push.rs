//! A run that tells other tools of itself while it goes on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "told"
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

#[test]
fn a_run_sends_its_samples_and_says_how_many_arrived() {
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
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("told.toml"), EXPERIMENT).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kendall"))
        .current_dir(folder.path())
        .args(["run", "told.toml", "--json", "--otlp", &format!("http://{address}")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let points = |body: &Value| {
        let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone();
        let sent = metrics.into_iter().find(|metric| metric["name"] == "kendall.sent").unwrap();
        sent["gauge"]["dataPoints"].as_array().unwrap().len()
    };
    let arrived: usize = bodies.try_iter().map(|body| points(&body)).sum();
    assert!(arrived >= 2, "{arrived}: {said}");
    assert!(said.contains(&format!("Sent {arrived} samples to http://{address}/v1/metrics.")), "{said}");
}
