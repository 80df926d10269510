//! Peers behind address translators (NATs), in network namespaces that vanish with the test: two private networks, each behind
//! a router that translates addresses, on one public network with the relay.

use std::fs::File;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use kendall_talk::{Path, PeerTransport, Side};
use kendall_testbed::inside;
use nix::sched::{CloneFlags, setns};
use tokio::sync::watch;

use crate::peers::{Introduction, TALK, User, introduce, meet};

const RELAY: &str = "192.0.2.100:4000";

/// What a translator does with packets from the private network.
#[derive(Clone, Copy, Debug)]
enum Translator {
    /// Keeps the port where it can, whatever the destination: most of those in homes.
    KeepsPorts,
    /// Draws another port for each destination ("symmetric").
    DrawsPorts,
}

#[test]
fn two_peers_behind_translators_meet_without_the_relay() {
    inside("nat::two_peers_behind_translators_meet_without_the_relay", &["nft", "list", "ruleset"], || {
        let paths = talk_between(PeerTransport::CurveCp, [Translator::KeepsPorts; 2]);
        assert!(paths.iter().all(|path| matches!(path, Path::Direct(_))), "{paths:?}");
    });
}

#[test]
fn two_peers_behind_translators_that_draw_ports_meet_through_the_relay() {
    inside(
        "nat::two_peers_behind_translators_that_draw_ports_meet_through_the_relay",
        &["nft", "list", "ruleset"],
        || {
            let paths = talk_between(PeerTransport::CurveCp, [Translator::DrawsPorts; 2]);
            assert_eq!(paths, [Path::Relayed(RELAY.parse().unwrap()); 2]);
        },
    );
}

#[test]
fn two_peers_behind_translators_meet_over_quic() {
    inside("nat::two_peers_behind_translators_meet_over_quic", &["nft", "list", "ruleset"], || {
        let paths = talk_between(PeerTransport::Quic, [Translator::KeepsPorts; 2]);
        assert!(paths.iter().all(|path| matches!(path, Path::Direct(_))), "{paths:?}");
    });
}

#[test]
fn two_peers_behind_translators_that_draw_ports_meet_over_quic_through_the_relay() {
    inside(
        "nat::two_peers_behind_translators_that_draw_ports_meet_over_quic_through_the_relay",
        &["nft", "list", "ruleset"],
        || {
            let paths = talk_between(PeerTransport::Quic, [Translator::DrawsPorts; 2]);
            assert_eq!(paths, [Path::Relayed(RELAY.parse().unwrap()); 2]);
        },
    );
}

/// Two peers behind such translators talk; the path that each took.
fn talk_between(transport: PeerTransport, translators: [Translator; 2]) -> [Path; 2] {
    build(translators);
    let (introduced, introduction) = mpsc::channel();
    let relay = in_namespace("public", move |runtime| {
        runtime.block_on(async {
            let Introduction { peers, .. } = introduce(RELAY.parse().unwrap()).await;
            introduced.send(peers).unwrap();
            // It runs as long as the process.
            std::future::pending::<()>().await;
        });
    });
    let [to_first, to_second] = introduction.recv().unwrap();
    let first = in_namespace("home0", move |runtime| runtime.block_on(peer(transport, 0, to_first)));
    let second = in_namespace("home1", move |runtime| runtime.block_on(peer(transport, 1, to_second)));
    let paths = [first, second].map(|peer| peer.join().unwrap());
    drop(relay);
    paths
}

/// Meets the other peer and hears from it; the path of the packets.
async fn peer(transport: PeerTransport, side: usize, addresses: watch::Receiver<Vec<SocketAddr>>) -> Path {
    let local = "0.0.0.0:0".parse().unwrap();
    let (stream, path) = meet(transport, side, local, addresses, RELAY.parse().unwrap()).await.unwrap();
    let connection = stream.connection();
    let mut user = User::new(Side::new(TALK), stream);
    user.say("hello").await;
    assert_eq!(user.hear(1).await, ["hello"]);
    user.commands.send(kendall_talk::Command::Leave).await.unwrap();
    user.end().await;
    // The runtime ends with this thread, and the other side has to learn that all has arrived.
    connection.closed().await;
    path
}

/// Two homes, each behind a router with an address on the public network.
fn build(translators: [Translator; 2]) {
    let run = |line: String| {
        let status = Command::new("sh").args(["-ec", &line]).status().unwrap();
        assert!(status.success(), "{line}");
    };
    run("ip netns add public; ip -n public link add bridge type bridge; ip -n public link set bridge up; \
         ip -n public addr add 192.0.2.100/24 dev bridge; ip -n public link set lo up"
        .into());
    for (side, translator) in translators.into_iter().enumerate() {
        let masquerade = match translator {
            Translator::KeepsPorts => "masquerade",
            Translator::DrawsPorts => "masquerade random,fully-random",
        };
        run(format!(
            "ip netns add home{side}; ip netns add router{side}
             ip link add inner netns home{side} type veth peer name inner netns router{side}
             ip link add outer netns router{side} type veth peer name port{side} netns public
             ip -n public link set port{side} master bridge up
             ip -n home{side} addr add 10.0.{side}.2/24 dev inner; ip -n home{side} link set inner up
             ip -n home{side} route add default via 10.0.{side}.1
             ip -n router{side} addr add 10.0.{side}.1/24 dev inner; ip -n router{side} link set inner up
             ip -n router{side} addr add 192.0.2.{side}1/24 dev outer; ip -n router{side} link set outer up
             ip netns exec router{side} sysctl -qw net.ipv4.ip_forward=1
             ip netns exec router{side} nft add table ip nat
             ip netns exec router{side} nft add chain ip nat out '{{ type nat hook postrouting priority 100; }}'
             ip netns exec router{side} nft add rule ip nat out oifname outer {masquerade}
             ip netns exec router{side} nft add table ip guard
             for hook in input forward; do
                 ip netns exec router{side} nft add chain ip guard $hook \"{{ type filter hook $hook priority 0; }}\"
                 ip netns exec router{side} nft add rule ip guard $hook iifname outer ct state new drop
             done"
        ));
    }
}

/// A thread in a namespace, with a runtime that it does its work on.
fn in_namespace<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(tokio::runtime::Runtime) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let namespace = File::open(format!("/run/netns/{name}")).unwrap();
    thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        work(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap())
    })
}
