//! A server on several threads.

use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces, ServerGroup, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::sync::watch;

const THREADS: NonZero<usize> = NonZero::new(4).unwrap();

fn name() -> DomainName {
    DomainName::new("server.example").unwrap()
}

fn group() -> ServerGroup {
    let config = || ServerConfig::new(SecretKey::from_bytes([1; 32]), Extension::default(), name());
    ServerGroup::bind("127.0.0.1:0".parse().unwrap(), THREADS, config, || Ok(RandomNonces)).unwrap()
}

fn connect(client: &Endpoint, server: SocketAddr) -> Stream {
    let config = ClientConfig {
        identity: SecretKey::from_bytes([2; 32]),
        server: SecretKey::from_bytes([1; 32]).public_key(),
        server_extension: Extension::default(),
        name: name(),
        addresses: vec![server],
        extension: None,
        capabilities: Default::default(),
        message: Default::default(),
    };
    client.connect(config).unwrap()
}

fn client() -> Endpoint {
    Endpoint::client("127.0.0.1:0".parse().unwrap(), RandomNonces).unwrap()
}

async fn echo(stream: Stream) {
    let (mut read, mut write) = tokio::io::split(stream);
    tokio::io::copy(&mut read, &mut write).await.unwrap();
    write.shutdown().await.unwrap();
}

async fn asks(stream: &mut Stream, question: &[u8]) {
    stream.write_all(question).await.unwrap();
    let mut answer = vec![0; question.len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert!(answer == question);
}

#[tokio::test]
async fn clients_of_many_addresses_are_served() {
    let server = group();
    let address = server.address();
    tokio::spawn(async move {
        while let Ok(stream) = server.accept().await {
            tokio::spawn(echo(stream));
        }
    });
    let clients: Vec<Endpoint> = (0..20).map(|_| client()).collect();
    let mut streams: Vec<Stream> = clients.iter().map(|client| connect(client, address)).collect();
    for stream in &mut streams {
        asks(stream, b"a question").await;
    }
}

/// A relay that sends from another port to the server each time the watched number changes, as a client that moves.
async fn relay(server: SocketAddr, mut moves: watch::Receiver<u32>) -> SocketAddr {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down) = (vec![0; 2048], vec![0; 2048]);
        let mut back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut client = None;
        loop {
            tokio::select! {
                moved = moves.changed() => match moved {
                    Ok(()) => back = UdpSocket::bind("127.0.0.1:0").await.unwrap(),
                    Err(_) => return,
                },
                Ok((length, from)) = front.recv_from(&mut up) => {
                    client = Some(from);
                    _ = back.send_to(&up[..length], server).await;
                }
                Ok(length) = back.recv(&mut down) => {
                    _ = front.send_to(&down[..length], client.unwrap()).await;
                }
            }
        }
    });
    address
}

/// Of twelve moves, that none leads to another thread has a chance of 4^-12, so this test meets the handing over.
#[tokio::test]
async fn a_connection_stays_with_its_thread_when_the_client_moves() {
    let server = group();
    let (moves, watched) = watch::channel(0);
    let address = relay(server.address(), watched).await;
    let client = client();
    let mut stream = connect(&client, address);
    tokio::spawn(async move { echo(server.accept().await.unwrap()).await });
    let question: Vec<u8> = (0..30_000_u32).map(|i| ((i * i) >> 5) as u8).collect();
    for number in 1..=12 {
        asks(&mut stream, &question).await;
        moves.send(number).unwrap();
    }
    asks(&mut stream, &question).await;
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0);
}
