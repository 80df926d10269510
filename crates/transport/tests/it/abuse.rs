//! Clients that violate the protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use kendall_transport::protocol::{Head, MOST_BYTES};
use kendall_transport::{Kind, TransportOptions};

use crate::serving::{options, start};

fn connect(to: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Whether the server answers a new client.
fn answers(to: std::net::SocketAddr) -> bool {
    let mut stream = connect(to);
    let mut answer = [0; 1];
    stream.write_all(&Head::Send(1).encode()).is_ok() && stream.read_exact(&mut answer).is_ok()
}

#[test]
fn invalid_bytes_end_their_connection_and_no_other() {
    let server = start(&options(Kind::Tcp));
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &Head::Send(MOST_BYTES + 1).encode(), b"x\0\0\0\0\0\0\0\0"]
    {
        let mut stream = connect(server.address);
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // An end or a reset, but no bytes.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
        assert!(answers(server.address));
    }
    server.stop();
}

#[test]
fn connections_beyond_the_limit_are_closed_and_the_limit_frees_up() {
    let server = start(&TransportOptions { connections: 2, ..options(Kind::Tcp) });
    let mut held: Vec<TcpStream> = (0..2).map(|_| connect(server.address)).collect();
    for stream in &mut held {
        stream.write_all(&Head::Send(1).encode()).unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    assert!(!answers(server.address));
    drop(held);
    let came_back = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        answers(server.address)
    });
    assert!(came_back);
    server.stop();
}

#[test]
fn a_client_that_does_not_shake_hands_stops_neither_others_nor_the_end() {
    for kind in [Kind::Tls, Kind::Https] {
        let server = start(&options(kind));
        let silent: Vec<TcpStream> = (0..10).map(|_| connect(server.address)).collect();
        let mut babbling = connect(server.address);
        babbling.write_all(&[0x55; 4096]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert!(kind.transport().connect(server.address).await.is_ok(), "{kind}");
        });
        server.stop();
        drop(silent);
    }
}
