//! Sockets without segmented sends (UDP_SEGMENT) and coalesced receives (UDP_GRO), as of old kernels and of drivers without checksums.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces};
use kendall_testbed::LIMIT;
use nix::libc;
use quinn_udp::{Transmit, UdpSocketState};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What the kernel is made to refuse.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Segmented,
    Coalesced,
    Both,
}

fn set(socket: &UdpSocket, level: i32, option: i32, value: i32) {
    let length = size_of::<i32>() as u32;
    // SAFETY: the value is an integer of this length.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// A free port, where the kernel refuses segmented sends: it does without checksums.
fn socket(refused: Refused) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    if matches!(refused, Refused::Segmented | Refused::Both) {
        set(&socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1);
    }
    socket
}

/// An endpoint that serves and connects.
fn endpoint(secret: u8, refused: Refused) -> Endpoint {
    let socket = socket(refused);
    let same = socket.try_clone().unwrap();
    let name = DomainName::new("server.example").unwrap();
    let config = ServerConfig::new(SecretKey::from_bytes([secret; 32]), Extension::default(), name);
    let endpoint = Endpoint::server_on(socket, config, RandomNonces).unwrap();
    if matches!(refused, Refused::Coalesced | Refused::Both) {
        set(&same, libc::SOL_UDP, libc::UDP_GRO, 0);
    }
    endpoint
}

#[test]
fn the_kernel_refuses_segmented_sends_from_such_a_socket() {
    for (refused, works) in [(Refused::Segmented, false), (Refused::Coalesced, true)] {
        let socket = socket(refused);
        let state = UdpSocketState::new((&socket).into()).unwrap();
        let transmit = Transmit {
            destination: socket.local_addr().unwrap(),
            ecn: None,
            contents: &[7; 2_000],
            segment_size: Some(1_000),
            src_ip: None,
        };
        assert_eq!(state.try_send((&socket).into(), &transmit).is_ok(), works);
        assert_eq!(state.max_gso_segments() > 1, works);
    }
}

#[tokio::test]
async fn streams_arrive_whatever_the_kernel_refuses() {
    for refused in [Refused::Segmented, Refused::Coalesced, Refused::Both] {
        let (server, client) = (endpoint(1, refused), endpoint(2, refused));
        let mut ours = client
            .connect(ClientConfig {
                identity: SecretKey::from_bytes([2; 32]),
                server: SecretKey::from_bytes([1; 32]).public_key(),
                server_extension: Extension::default(),
                name: DomainName::new("server.example").unwrap(),
                addresses: vec![server.address()],
                extension: None,
                capabilities: Default::default(),
                message: Default::default(),
            })
            .unwrap();
        let mut theirs = server.accept().await.unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let ask = async {
            ours.write_all(&sent).await?;
            ours.shutdown().await?;
            ours.read_to_end(&mut back).await
        };
        let answer = async {
            theirs.read_to_end(&mut there).await?;
            theirs.write_all(&there).await?;
            theirs.shutdown().await
        };
        let both = async { tokio::join!(ask, answer) };
        let (asked, answered) = tokio::time::timeout(LIMIT, both).await.expect("the streams go on");
        asked.unwrap();
        answered.unwrap();
        assert!(back == sent, "{refused:?}");
    }
}
