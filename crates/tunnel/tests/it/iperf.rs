//! iperf3 between a client and its server, through the tunnel.

use std::cell::RefCell;
use std::process::{Child, Command, Stdio};

use kendall_testbed::{has_peer, inside, wait_until};
use serde_json::Value;

use crate::network::{Network, PROBE, SERVER, SERVER6};

#[test]
fn iperf3_measures_tcp_both_ways_and_datagrams() {
    if !has_peer("iperf3", "--version") {
        eprintln!("skipped: iperf3 is not installed (tools/install test installs it)");
        return;
    }
    inside("iperf::iperf3_measures_tcp_both_ways_and_datagrams", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        let ann = network.connect("ann", &[]);
        let _iperf = Iperf::start();
        for (address, way) in [(SERVER, ""), (SERVER, "--reverse"), (SERVER6, ""), (SERVER6, "--reverse")] {
            let end = measure(&format!("--client {address} --bytes 64M {way}"));
            let [sent, received] =
                ["sent", "received"].map(|what| number(&end, &format!("/end/sum_{what}/bytes")));
            // What is still on its way when the last byte is written does not count as received.
            assert!(sent >= 64e6 && received > 0.8 * sent, "{address} {way}: {received} of {sent} bytes");
        }
        // 1 Mbit/s is far below what the tunnel passes, so that a loss would be its own.
        let end = measure(&format!("--client {SERVER} --udp --bitrate 1M --length 1400 --time 1"));
        let [lost, sent] = ["lost_packets", "packets"].map(|name| number(&end, &format!("/end/sum/{name}")));
        assert!(sent > 50.0 && lost < 0.05 * sent, "{lost} of {sent} datagrams were lost");
        assert!(ann.end().is_ok() && server.end().is_ok());
    });
}

/// iperf3 as a server, for as long as this lives.
struct Iperf(Child);

impl Iperf {
    fn start() -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", "server", "iperf3", "--server"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Iperf {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What iperf3 prints at the client's end, once its server listens.
fn measure(arguments: &str) -> Value {
    let line = format!("ip netns exec ann iperf3 --json {arguments}");
    // With --json it succeeds where it cannot connect, too, and reports that.
    let run = || {
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    };
    let last = RefCell::new(run());
    wait_until("iperf3 has measured", || {
        let is_done = last.borrow().is_object() && last.borrow()["error"].is_null();
        if !is_done {
            last.replace(run());
        }
        is_done
    });
    last.into_inner()
}

fn number(value: &Value, place: &str) -> f64 {
    value.pointer(place).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {place} in {value:#}"))
}
