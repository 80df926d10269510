//! Shell, copy and tunnel over CurveCP as users run them, beside OpenSSH and WireGuard.

mod copy;
mod echo;
mod ends;
mod sshd;

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{ROUNDS, kendall, median, ratio};
use ends::Ends;
use sshd::Sshd;

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## Shell, copy and tunnel\n\n");
    let ends = Ends::new();
    let sshd = Sshd::start();
    if sshd.is_none() {
        page.push_str("Not compared with OpenSSH: ssh, scp or sshd is not installed.\n\n");
    }
    copy::table(page, &ends, sshd.as_ref());
    echo::line(page, &ends, sshd.as_ref());
    tunnels(page);
}

/// TCP through a tunnel, in turns with a tunnel of WireGuard's user-space implementation.
fn tunnels(page: &mut String) {
    let rounds: Option<Vec<[f64; 2]>> =
        (0..ROUNDS).map(|_| Some([through("tunnel")?, through("wireguard")?])).collect();
    let Some(rounds) = rounds else {
        page.push_str("\nTunnels are not compared: wireguard-go is not installed, or namespaces may not be made here.\n");
        return;
    };
    let [ours, theirs] = [0, 1].map(|side| median(rounds.iter().map(|round| round[side])));
    let times = median(rounds.iter().map(|[ours, theirs]| ours / theirs));
    let _ = writeln!(
        page,
        "\n**Tunnel**: TCP from server to client through an emulated link without delay or rate gets {ours:.2} Gbit/s in a tunnel of \
         kendall and {theirs:.2} Gbit/s in one of wireguard-go: {} times as much (at least 1 wanted).",
        ratio(times)
    );
}

/// Gbit/s of a flow; `None` where it cannot run here.
fn through(tunnel: &str) -> Option<f64> {
    let mut command = Command::new(kendall());
    command.args([
        "transport",
        "flows",
        tunnel,
        "--link",
        "delay=0",
        "--duration",
        "4s",
        "--warmup",
        "2s",
        "--json",
    ]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let result: Value = serde_json::from_slice(&output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| result.pointer("/flows/0/goodput_bytes_per_s")?.as_f64())?
        .map(|rate| rate * 8e-9)
}
