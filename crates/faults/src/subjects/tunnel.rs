//! A private network between the namespace of the case and one of a client. The load goes through it.

use std::process::Command;

use super::loaded::{self, REVERSE};
use super::remote::{self, NAME, authorized, key};
use super::{Part, Requests, Scene, Subject};

/// The server's address in the network below the tunnel, and in the tunnel.
const OUTSIDE: &str = "192.0.2.1";
const INSIDE: &str = "10.77.0.1";

pub(super) const TUNNEL: Subject = Subject {
    name: "tunnel",
    system: "tunnel",
    datagrams: true,
    prepare: |scene| {
        remote::keys(scene)?;
        for command in NETWORK.lines() {
            let output = scene.command("ip").args(command.split_whitespace()).output();
            let output = output.map_err(|error| error.to_string())?;
            if !output.status.success() {
                return Err(format!("ip {command}: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        Ok(())
    },
    parts: |scene| {
        let hold = ["serve", "hold", "--mean", "2ms", "--workers", "4", "--listen"];
        let mut hold = scene.kendall(hold);
        hold.arg(format!("0.0.0.0:{}", port(&scene.second)));
        let to = format!("{OUTSIDE}:{}", port(&scene.address));
        let mut client = inside(scene, &["curve", "tunnel", "--server", NAME, &key(scene), &to]);
        client.args(["--key-directory", "client-key", NAME]);
        let everywhere = format!("0.0.0.0:{}", port(&scene.address));
        vec![
            authorized(scene, "serve-tunnel", &everywhere, &["--addresses", "disk/addresses"]),
            Part { role: "application", command: hold, ready: "listening on" },
            Part { role: "client", command: client, ready: "is up" },
        ]
    },
    requests: Requests::Probes,
    probe: |scene, n| {
        let load = loaded::probe(scene, &format!("hold://{INSIDE}:{}", port(&scene.second)), n);
        let arguments: Vec<_> = load.get_args().filter_map(|argument| argument.to_str()).collect();
        inside(scene, &arguments)
    },
    ..REVERSE
};

/// Arguments of `ip`, one command a line. `/run`, where the names are, is empty in the namespace of a case.
const NETWORK: &str = "netns add client
    link add tunnel type veth peer name eth netns client
    addr add 192.0.2.1/24 dev tunnel
    link set tunnel up
    -n client addr add 192.0.2.2/24 dev eth
    -n client link set eth up
    -n client link set lo up";

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

/// kendall in the namespace of the client.
fn inside(scene: &Scene, arguments: &[&str]) -> Command {
    let mut command = scene.command("ip");
    command.args(["netns", "exec", "client"]).arg(&scene.program).args(arguments);
    command
}
