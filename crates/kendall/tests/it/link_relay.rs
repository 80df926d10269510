//! `kendall link relay` between a client and a server of this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

fn kendall(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.args(["link", "relay"]).args(arguments);
    command
}

fn error(arguments: &[&str]) -> String {
    let output: Output = kendall(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_relay_delays_until_it_is_stopped_and_says_what_it_did() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for client in server.incoming() {
            let (mut from, mut to) = (client.as_ref().unwrap(), client.as_ref().unwrap());
            let _ = std::io::copy(&mut from, &mut to);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut relay =
        kendall(&["--to", &to, "--delay", "15ms", "--down", "delay=25ms", "--seed", "7", "--record"])
            .arg(&record)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let mut line = String::new();
    BufReader::new(relay.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let start = Instant::now();
    client.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
    assert!(start.elapsed().as_secs_f64() >= 0.040, "{:?}", start.elapsed());
    drop(client);

    kill_process(Pid::from_child(&relay), Signal::TERM).unwrap();
    let output = relay.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("handshakes are not delayed") && said.contains("seed 7"), "{said}");
    assert!(said.contains("up: delay=15ms") && said.contains("down: delay=25ms"), "{said}");
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(record.join("link.json")).unwrap()).unwrap();
    assert_eq!((&kept["down"], &kept["relayed"]["clients"]), (&"delay=25ms".into(), &1.into()));
    assert!(kept["relayed"]["link"]["up"]["late"]["p99_ns"].is_u64());
}

#[test]
fn what_cannot_be_is_refused_before_it_listens() {
    let to = ["--to", "127.0.0.1:9"];
    assert!(
        error(&[&to[..], &["--jitter", "1ms"]].concat()).contains("no packet arrives before it was sent")
    );
    assert!(error(&[&to[..], &["--rate", "10mbps"]].concat()).contains("10mbit"));
    assert!(error(&[&to[..], &["--aqm", "codel"]].concat()).contains("relay UDP"));
    assert!(error(&[&to[..], &["--up", "rat=1mbit"]].concat()).contains("a link has no setting \"rat\""));
    assert!(error(&["--to", "nowhere"]).contains("HOST:PORT"));
}

#[test]
fn a_setting_that_is_wrong_is_reported_with_its_option() {
    for (option, value) in [("--loss", "[]{"), ("--up", "rate=x"), ("--delay", "-1ms")] {
        let output = kendall(&["--to", "127.0.0.1:1", &format!("{option}={value}")]).output().unwrap();
        let why = String::from_utf8(output.stderr).unwrap();
        assert!(why.contains(&format!("'{value}' for '{option} ")), "{why}");
    }
}
