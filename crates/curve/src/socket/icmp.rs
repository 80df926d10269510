//! Messages of ICMP that anyone can forge about packets that a socket may have sent.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::time::Duration;

use curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_testbed::inside;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Inbox, Socket};
use crate::{Endpoint, RandomNonces};

/// The loopback interface of the namespaces must be up.
const PROBE: [&str; 5] = ["ip", "link", "set", "lo", "up"];

/// Type and code of the messages that report a packet undeliverable: destination unreachable (RFC 792, 1122, 1812), time exceeded,
/// parameter problem.
fn messages() -> impl Iterator<Item = [u8; 2]> {
    (0..16).map(|code| [3, code]).chain([[11, 0], [12, 0]])
}

/// Sends a message about a packet of UDP between these addresses to its sender.
fn forge([kind, code]: [u8; 2], from: SocketAddr, to: SocketAddr) {
    let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else { panic!("addresses of IPv4") };
    let mut message = vec![kind, code, 0, 0, 0, 0, 0, 68];
    message.extend([0x45, 0, 4, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
    for address in [from, to] {
        message.extend(address.ip().octets());
    }
    for number in [from.port(), to.port(), 1004, 0] {
        message.extend(number.to_be_bytes());
    }
    let words = message.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.fold(0, |sum, word| (sum + word) % 0xffff);
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let raw = socket2::Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
    raw.send_to(&message, &SocketAddrV4::new(*from.ip(), 0).into()).unwrap();
}

fn within_a_runtime(work: impl Future<Output = ()>) {
    let limit = Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(limit, work).await }).expect("within a minute");
}

fn bound() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// The kernel reports errors to connected sockets: a program may hand one over.
#[test]
fn no_message_of_icmp_makes_a_socket_unusable() {
    inside("socket::icmp::no_message_of_icmp_makes_a_socket_unusable", &PROBE, || {
        assert!(Command::new(PROBE[0]).args(&PROBE[1..]).status().unwrap().success());
        within_a_runtime(async {
            let (ours, plain, peer) = (bound(), bound(), bound());
            let to = peer.local_addr().unwrap();
            for socket in [&ours, &plain] {
                socket.connect(to).unwrap();
            }
            plain.set_nonblocking(true).unwrap();
            let from = [&ours, &plain].map(|socket| socket.local_addr().unwrap());
            let socket = Socket::new(ours).unwrap();
            let mut inbox = Inbox::new();
            let mut reported = vec![];
            for message in messages() {
                for from in from {
                    forge(message, from, to);
                }
                reported.extend(plain.recv(&mut [0]).map_err(|error| error.raw_os_error().unwrap()).err());
                peer.send_to(b"packet", from[0]).unwrap();
                while inbox.is_empty() {
                    socket.readable().await.unwrap();
                    socket.receive(&mut inbox).unwrap_or_else(|error| panic!("{message:?}: {error}"));
                }
                socket.receive(&mut inbox).unwrap();
            }
            // That the messages were understood.
            for errno in [Errno::CONNREFUSED, Errno::NOPROTOOPT, Errno::PROTO, Errno::HOSTDOWN] {
                assert!(reported.contains(&errno.raw_os_error()), "{errno}: {reported:?}");
            }
        });
    });
}

#[test]
fn no_message_of_icmp_ends_or_hinders_a_connection() {
    inside("socket::icmp::no_message_of_icmp_ends_or_hinders_a_connection", &PROBE, || {
        assert!(Command::new(PROBE[0]).args(&PROBE[1..]).status().unwrap().success());
        within_a_runtime(async {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let (name, secret) = (DomainName::new("server.example").unwrap(), SecretKey::from_bytes([1; 32]));
            let config = ServerConfig::new(secret.clone(), Extension::default(), name.clone());
            let server = Endpoint::server(any, config, RandomNonces).unwrap();
            let client = Endpoint::client(any, RandomNonces).unwrap();
            let config = ClientConfig {
                identity: SecretKey::from_bytes([2; 32]),
                server: secret.public_key(),
                server_extension: Extension::default(),
                name,
                addresses: vec![server.address()],
                extension: None,
                capabilities: Default::default(),
                message: Default::default(),
            };
            let mut ours = client.connect(config).unwrap();
            let mut theirs = server.accept().await.unwrap();
            let mut echoed = vec![0; 100_000];
            for message in messages() {
                // Before, between and after packets of both sides.
                for _ in 0..3 {
                    forge(message, client.address(), server.address());
                    forge(message, server.address(), client.address());
                    ours.write_all(&[message[1]; 100_000]).await.unwrap();
                    theirs.read_exact(&mut echoed).await.unwrap();
                    theirs.write_all(&echoed).await.unwrap();
                    ours.read_exact(&mut echoed).await.unwrap();
                    assert!(echoed.iter().all(|byte| *byte == message[1]));
                }
            }
            let longest = ours.connection().stats().longest_message;
            assert_eq!(longest, 1_344, "a forged MTU shortens no packet");
            for stream in [&mut ours, &mut theirs] {
                stream.shutdown().await.unwrap();
            }
            assert_eq!(ours.read(&mut [0]).await.unwrap() + theirs.read(&mut [0]).await.unwrap(), 0);
        });
    });
}
