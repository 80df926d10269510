//! A client with a valid key that does not keep to the protocol.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use kendall_curve::KeyDirectory;
use kendall_remote::opening::{Hello, REFUSED, Service, VERSION, decode_refused};
use kendall_remote::{Dialled, Host, frame};
use kendall_testbed::{LIMIT, inside};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use crate::network::{Network, PROBE, SERVER, answers, in_namespace};

const REQUEST: u8 = 16;
const PACKET: u8 = 18;

/// A client's first messages.
fn opening(service: Service) -> Vec<u8> {
    let mut bytes = Vec::new();
    Hello { version: VERSION, service }.encode(&mut bytes);
    frame::append(&mut bytes, REQUEST, &[0]);
    bytes
}

/// Frames of packets that are wrong each in its own way.
fn wrong_packets() -> Vec<Vec<u8>> {
    let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0, 0, 10, 77, 0, 3, 10, 77, 0, 1];
    let mut wrong: Vec<Vec<u8>> = vec![vec![], vec![0; 9], vec![0; 10], vec![255; 11], vec![0; 70_000]];
    // A header of another length than the packet; another's source; a source of no version.
    wrong.push([vec![0; 10], packet[..19].to_vec()].concat());
    packet[15] = 9;
    wrong.push([vec![0; 10], packet.clone()].concat());
    packet[15] = 3;
    // Offload headers that point out of the packet, or ask for segments of nothing.
    for header in [[1, 0, 0, 0, 0, 0, 255, 255, 255, 255], [1, 1, 0, 0, 0, 0, 20, 0, 16, 0], [255; 10]] {
        wrong.push([header.to_vec(), packet.clone()].concat());
    }
    packet[0] = 0x05;
    wrong.push([vec![0; 10], packet].concat());
    wrong
}

#[test]
fn wrong_packets_reach_no_device_and_harm_no_other_client() {
    inside("hostile::wrong_packets_reach_no_device_and_harm_no_other_client", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        let ann = network.connect("ann", &[]);
        let before = received();
        let (host, keys) = (network.host("bob"), network.keys("bob"));
        let attack = in_namespace("bob", move |runtime| {
            runtime.block_on(async {
                let mut dialled = kendall_remote::dial(&host, &keys).await.unwrap();
                let mut bytes = opening(Service::Tunnel);
                for _ in 0..2000 {
                    for wrong in wrong_packets() {
                        frame::append(&mut bytes, PACKET, &wrong);
                    }
                    frame::append(&mut bytes, 99, b"no such kind");
                    dialled.stream.write_all(&bytes).await.unwrap();
                    bytes.clear();
                }
                // A frame longer than any ends the session.
                dialled.stream.write_all(&[255; 5]).await.unwrap();
                let mut rest = Vec::new();
                assert!(dialled.stream.read_to_end(&mut rest).await.is_err());
            });
        });
        while !attack.is_finished() {
            assert!(answers("ann", SERVER, 56));
        }
        attack.join().unwrap();
        let pings = received() - before;
        assert!(pings < 2000, "{pings} packets came in at the server's device");
        assert!(ann.end().is_ok() && server.end().is_ok());
    });
}

/// Packets that the server's machine has received from its device.
fn received() -> u64 {
    crate::network::sh(
        "ip netns exec server cat /sys/class/net/tun/statistics/rx_packets 2>/dev/null || \
        ip -n server -s link show tun | awk '/RX:/ { getline; print $2 }'",
    )
    .trim()
    .parse()
    .unwrap()
}

#[test]
fn a_client_of_another_service_learns_why_it_is_refused() {
    inside("hostile::a_client_of_another_service_learns_why_it_is_refused", &PROBE, || {
        let network = Network::new();
        let _server = network.serve(false);
        let (host, keys) = (network.host("bob"), network.keys("bob"));
        let asked = in_namespace("bob", move |runtime| {
            runtime.block_on(async {
                let mut dialled = kendall_remote::dial(&host, &keys).await.unwrap();
                dialled.stream.write_all(&opening(Service::Copy)).await.unwrap();
                let mut answer = Vec::new();
                dialled.stream.read_to_end(&mut answer).await.unwrap();
                answer
            })
        });
        let answer = asked.join().unwrap();
        assert_eq!(answer[4], REFUSED);
        let text = decode_refused(&answer[frame::HEADER..]).unwrap();
        assert_eq!(text, "this server has tunnels only (kendall curve tunnel)");
    });
}

/// Opens a connection that says nothing of what it wants.
async fn open_silently(host: &Host, keys: &KeyDirectory) -> Dialled {
    let mut dialled = kendall_remote::dial(host, keys).await.unwrap();
    dialled.stream.write_all(&[0]).await.unwrap();
    assert!(dialled.connection().established().await);
    dialled
}

#[test]
fn a_silent_client_takes_few_places_and_does_not_delay_the_end() {
    inside("hostile::a_silent_client_takes_few_places_and_does_not_delay_the_end", &PROBE, || {
        let network = Network::new();
        let server = network.serve(false);
        let (host, keys) = (network.host("bob"), network.keys("bob"));
        let (refused, is_refused) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let silent = in_namespace("bob", move |runtime| {
            runtime.block_on(async {
                let mut held = Vec::new();
                for _ in 0..4 {
                    held.push(open_silently(&host, &keys).await);
                }
                let mut answer = Vec::new();
                open_silently(&host, &keys).await.stream.read_to_end(&mut answer).await.unwrap();
                refused.send(decode_refused(&answer[frame::HEADER..]).unwrap()).unwrap();
                _ = stopped.await;
            });
        });
        let text = is_refused.recv_timeout(LIMIT).unwrap();
        assert!(text.contains("your key has 4 sessions"), "{text}");
        let begun = Instant::now();
        assert!(server.end().is_ok());
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        _ = stop.send(());
        silent.join().unwrap();
    });
}
