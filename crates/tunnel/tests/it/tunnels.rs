//! What users do with a tunnel.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, thread};

use kendall_testbed::{LIMIT, inside, wait_until};
use kendall_tunnel::{ClientSettings, TunnelError, connect};
use tokio::sync::oneshot;

use crate::network::{Network, PROBE, SERVER, SERVER6, answers, in_namespace, sh, wait_for_answer};

#[test]
fn packets_of_all_sizes_pass_both_ways() {
    inside("tunnels::packets_of_all_sizes_pass_both_ways", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        let ann = network.connect("ann", &[]);
        for bytes in [0, 56, 1200, 1472, 1473, 9000, 60_000] {
            for (from, to) in
                [("ann", SERVER), ("ann", SERVER6), ("server", "10.77.0.2"), ("server", "fd77:1::2")]
            {
                assert!(answers(from, to, bytes), "{bytes} bytes from {from} to {to}");
            }
        }
        for address in [SERVER, SERVER6] {
            transfer("ann", "server", address);
        }
        for address in ["10.77.0.2", "fd77:1::2"] {
            transfer("server", "ann", address);
        }
        assert!(ann.end().is_ok());
        assert!(server.end().is_ok());
        assert!(!sh("ip -n ann link; ip -n server link").contains("tun"));
    });
}

/// Sends 20 MB over TCP from one namespace to another, and checks each byte.
fn transfer(from: &str, to: &str, address: &str) {
    const LENGTH: usize = 20 << 20;
    let byte = |at: usize| (at / 3 % 251) as u8;
    let (bound, port) = mpsc::channel();
    let any = if address.contains(':') { "::" } else { "0.0.0.0" };
    let receiver = in_namespace(to, move |_| {
        let listener = TcpListener::bind((any, 0)).unwrap();
        bound.send(listener.local_addr().unwrap().port()).unwrap();
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let target = (address.to_owned(), port.recv().unwrap());
    let sender = in_namespace(from, move |_| {
        let mut stream = TcpStream::connect((target.0.as_str(), target.1)).unwrap();
        stream.write_all(&(0..LENGTH).map(byte).collect::<Vec<_>>()).unwrap();
    });
    sender.join().unwrap();
    let bytes = receiver.join().unwrap();
    assert!(bytes.len() == LENGTH && bytes.iter().enumerate().all(|(at, &found)| found == byte(at)));
}

/// Whether what was sent comes back, maybe behind an answer to what was sent before, which is shorter.
fn is_back(socket: &UdpSocket, sent: &[u8]) -> bool {
    let mut bytes = [0; 9000];
    while let Ok(length) = socket.recv(&mut bytes) {
        assert_eq!(bytes[..length], sent[..length]);
        if length == sent.len() {
            return true;
        }
    }
    false
}

#[test]
fn datagrams_and_http_pass() {
    inside("tunnels::datagrams_and_http_pass", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        let ann = network.connect("ann", &[]);
        // Ends with the test's process.
        drop(in_namespace("server", |_| {
            let socket = UdpSocket::bind((SERVER, 5000)).unwrap();
            let mut bytes = [0; 9000];
            loop {
                let (length, from) = socket.recv_from(&mut bytes).unwrap();
                socket.send_to(&bytes[..length], from).unwrap();
            }
        }));
        let asked = in_namespace("ann", |_| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            // A queue that stands too long, on a busy machine, loses datagrams; they are then sent again.
            socket.set_read_timeout(Some(LIMIT / 60)).unwrap();
            for length in (0..200).map(|turn| 1 + turn * 29) {
                let sent: Vec<u8> = (0..length).map(|at| at as u8).collect();
                wait_until("the datagram is back", || {
                    socket.send_to(&sent, (SERVER, 5000)).unwrap();
                    is_back(&socket, &sent)
                });
            }
        });
        asked.join().unwrap();
        // A web server and a client that know nothing of tunnels.
        let page = "head -c 3000000 /dev/zero | tr '\\0' x > page; exec ip netns exec server python3 -m http.server 8000 --bind";
        let mut web = Command::new("sh")
            .args(["-c", &format!("cd $(mktemp -d) && {page} {SERVER}")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let fetch = format!(
            "ip netns exec ann python3 -c 'import urllib.request as r; print(len(r.urlopen(\"http://{SERVER}:8000/page\", timeout=5).read()))'"
        );
        wait_until("the page is there", || {
            let output = Command::new("sh").args(["-c", &fetch]).output().unwrap();
            output.stdout == b"3000000\n"
        });
        web.kill().unwrap();
        web.wait().unwrap();
        assert!(ann.end().is_ok() && server.end().is_ok());
    });
}

#[test]
fn clients_have_their_own_addresses_and_reach_each_other_only_if_allowed() {
    inside("tunnels::clients_have_their_own_addresses_and_reach_each_other_only_if_allowed", &PROBE, || {
        let network = Network::new();
        for allowed in [false, true] {
            let server = network.serve(allowed);
            let ann = network.connecting("ann", &[]);
            assert!(ann.report("is up").contains("10.77.0.2/24 and fd77:1::2/64"));
            let bob = network.connecting("bob", &[]);
            assert!(bob.report("is up").contains("10.77.0.3/24 and fd77:1::3/64"));
            assert!(answers("bob", SERVER, 56) && answers("bob", SERVER6, 56));
            assert_eq!(answers("bob", "10.77.0.2", 56), allowed);
            assert_eq!(answers("ann", "fd77:1::3", 4000), allowed);
            for end in [ann, bob, server] {
                assert!(end.end().is_ok());
            }
        }
    });
}

#[test]
fn a_client_sends_from_its_own_address_alone() {
    inside("tunnels::a_client_sends_from_its_own_address_alone", &PROBE, || {
        let network = Network::new();
        let _server = network.serve(true);
        let _ann = network.connect("ann", &[]);
        let _bob = network.connect("bob", &[]);
        sh("ip -n ann addr add 10.77.0.3/32 dev tun; ip -n ann addr add 192.0.2.99/32 dev tun");
        let as_another = |source: &str| {
            let line = format!("ip netns exec ann ping -c 1 -W 1 -I {source} {SERVER}");
            Command::new("sh").args(["-c", &line]).output().unwrap().status.success()
        };
        assert!(as_another("10.77.0.2"));
        assert!(!as_another("10.77.0.3") && !as_another("192.0.2.99"));
        assert!(answers("bob", SERVER, 56));
    });
}

#[test]
fn a_network_behind_the_server_is_reached_by_a_route() {
    inside("tunnels::a_network_behind_the_server_is_reached_by_a_route", &PROBE, || {
        let network = Network::new();
        let _server = network.serve(false);
        sh("ip -n ann route add 192.0.2.8/29 dev eth; ip -n ann route add 203.0.113.0/24 via 192.0.2.1");
        let before = sh("ip -n ann route");
        // The way to the server itself has to stay beside the tunnel, as do routes that are longer than what goes through it.
        let ann = network.connect("ann", &["203.0.113.0/24", "192.0.2.0/25", "192.0.0.0/16"]);
        assert!(answers("ann", "203.0.113.2", 20_000));
        transfer("ann", "lan", "203.0.113.2");
        let ways = [
            ("192.0.2.1", "eth"),
            ("192.0.2.3", "tun"),
            ("192.0.2.9", "eth"),
            ("192.0.2.99", "tun"),
            ("192.0.2.200", "eth"),
            ("192.0.3.1", "tun"),
        ];
        for (address, device) in ways {
            let way = sh(&format!("ip -n ann route get {address}"));
            assert!(way.contains(&format!("dev {device} ")), "{way}");
        }
        assert!(ann.end().is_ok());
        assert_eq!(sh("ip -n ann route"), before);
    });
}

#[test]
fn a_tunnel_survives_a_new_address_and_a_new_server() {
    inside("tunnels::a_tunnel_survives_a_new_address_and_a_new_server", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        let ann = network.connect("ann", &[]);
        sh(
            "ip -n ann addr add 192.0.2.77/24 dev eth; ip -n ann addr del 192.0.2.2/24 dev eth; ip -n ann addr replace 192.0.2.77/24 dev eth",
        );
        wait_for_answer("ann", SERVER);
        assert!(ann.reports.try_recv().is_err(), "the connection moves, and is not opened again");
        assert!(server.end().is_ok());
        ann.report("connection was lost");
        let _server = network.serve(false);
        assert!(ann.report("is up").contains("10.77.0.2/24"));
        wait_for_answer("ann", SERVER);
        assert!(ann.end().is_ok());
    });
}

/// As after a kill or a power failure: the client hears nothing of the end.
#[test]
fn a_server_that_vanishes_is_noticed_and_its_successor_is_found() {
    inside("tunnels::a_server_that_vanishes_is_noticed_and_its_successor_is_found", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        let ann = network.connect("ann", &[]);
        sh("ip -n server link set ann down");
        _ = server.end();
        sh("ip -n server link set ann up");
        let _server = network.serve(false);
        let begun = Instant::now();
        ann.report("connection was lost");
        // After 15 s without an answer; a busy machine has three times that.
        assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
        ann.report("is up");
        wait_for_answer("ann", SERVER);
        assert!(ann.end().is_ok());
    });
}

#[test]
fn a_second_connection_of_a_key_replaces_the_first() {
    inside("tunnels::a_second_connection_of_a_key_replaces_the_first", &PROBE, || {
        let network = Network::new();
        let _server = network.serve(false);
        let first = network.connect("ann", &[]);
        assert!(answers("ann", SERVER, 56));
        // The same key from elsewhere, as after a move to another machine.
        let settings = ClientSettings {
            host: network.host("bob"),
            keys: network.keys("ann"),
            device: "tun".into(),
            routes: Vec::new(),
            timeout: LIMIT,
        };
        let (up, is_up) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let second = in_namespace("bob", move |runtime| {
            runtime.block_on(connect(settings, |line| _ = up.send(line.to_owned()), async {
                _ = stopped.await;
            }))
        });
        first.report("connection was lost");
        assert!(first.end().is_ok());
        assert!(is_up.recv_timeout(LIMIT).unwrap().contains("10.77.0.2/24"));
        wait_for_answer("bob", SERVER);
        stop.send(()).unwrap();
        assert!(second.join().unwrap().is_ok());
    });
}

/// Set in the process that is killed.
const VICTIM: &str = "KENDALL_TUNNEL_VICTIM";

#[test]
fn nothing_is_left_of_a_client_that_is_killed() {
    inside("tunnels::nothing_is_left_of_a_client_that_is_killed", &PROBE, || {
        if env::var_os(VICTIM).is_some() {
            let network = Network::new();
            let _server = network.serve(false);
            // The second one covers the server.
            let _ann = network.connect("ann", &["203.0.113.0/24", "192.0.2.0/25"]);
            println!("up");
            thread::sleep(LIMIT);
        }
        // Another process in the same namespaces, so that they outlive it.
        let mut victim = Command::new(env::current_exe().unwrap())
            .args(["--exact", "tunnels::nothing_is_left_of_a_client_that_is_killed", "--nocapture"])
            .env(VICTIM, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = victim.stdout.take().unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"up\n") {
            let mut byte = [0];
            printed.read_exact(&mut byte).unwrap();
            text.push(byte[0]);
        }
        let routes = sh("ip -n ann route");
        assert!(
            routes.contains("203.0.113.0/24 dev tun") && routes.contains("192.0.2.64/26 dev tun"),
            "{routes}"
        );
        victim.kill().unwrap();
        victim.wait().unwrap();
        wait_until("the device is gone", || !sh("ip -n ann link; ip -n server link").contains("tun:"));
        // Only that of its device is left, as the test made it.
        let left = sh("ip -n ann route; ip -n ann -6 route show proto static; ip -n ann rule");
        let own = ["192.0.2.0/24 dev eth", "0:", "32766:", "32767:"];
        assert!(left.lines().all(|line| own.iter().any(|own| line.starts_with(own))), "{left}");
    });
}

#[test]
fn what_prevents_a_tunnel_is_said() {
    inside("tunnels::what_prevents_a_tunnel_is_said", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        sh("ip -n ann route add 10.77.0.0/16 dev eth");
        let error = network.connecting("ann", &[]).failure();
        assert!(matches!(&error, TunnelError::Overlap { .. }), "{error}");
        assert!(
            error.to_string().contains("overlaps a route of this machine (10.77.0.0/16 dev eth"),
            "{error}"
        );
        sh("ip -n bob link add tun type veth peer name other");
        let error = network.connecting("bob", &[]).failure();
        assert!(error.to_string().ends_with("choose another name with --device"), "{error}");
        assert!(server.end().is_ok());
    });
}
