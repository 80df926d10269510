//! A link that goes down and up, and one that loses packets, in the network namespace of the case.

use std::time::Instant;

use super::kind::{Fault, NotInjected, PLAIN, wait};
use crate::subjects::{Running, Scene};

pub(super) const LINK_DOWN: Fault = Fault {
    name: "link-down",
    what: "link down for 0.2 to 3 s",
    inject: |running, _, draw| {
        let link = link(running);
        run(running.scene(), "ip", &format!("link set {link} down"))?;
        wait(draw, 200, 3000);
        run(running.scene(), "ip", &format!("link set {link} up"))?;
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const LOSS: Fault = Fault {
    name: "loss",
    what: "5 % of packets lost for 1 to 4 s",
    // Of a thousand connections one loses three packets of its handshake, and TCP then takes longer than a client waits.
    inject: |running, _, draw| {
        for command in [
            "add table inet faults".to_owned(),
            "add chain inet faults input { type filter hook input priority 0; }".to_owned(),
            format!("add rule inet faults input iif {} numgen random mod 100 < 5 drop", link(running)),
        ] {
            run(running.scene(), "nft", &command)?;
        }
        wait(draw, 1000, 4000);
        run(running.scene(), "nft", "delete table inet faults")?;
        Ok(Instant::now())
    },
    ..PLAIN
};

/// The device that clients and server talk over.
fn link(running: &Running) -> &'static str {
    if running.roles().contains(&"client") { "tunnel" } else { "lo" }
}

fn run(scene: &Scene, program: &str, arguments: &str) -> Result<(), NotInjected> {
    let output = scene.command(program).args(arguments.split_whitespace()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(NotInjected::LeftOut(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => Err(NotInjected::LeftOut(format!("{program}: {error}"))),
    }
}
