//! A transfer over CurveCP.

use std::net::SocketAddr;
use std::sync::mpsc;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, PublicKey, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces, system_random};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::transfer::{PIECE, Transfer, run, runtime};

/// A server with a fresh key, and the public key.
pub(super) fn server() -> (ServerConfig, PublicKey) {
    let secret = SecretKey::generate(&mut system_random());
    let key = secret.public_key();
    (ServerConfig::new(secret, Extension::default(), name()), key)
}

/// A client with a fresh key.
pub(super) fn client(server: PublicKey, address: SocketAddr) -> ClientConfig {
    ClientConfig {
        identity: SecretKey::generate(&mut system_random()),
        server,
        server_extension: Extension::default(),
        name: name(),
        addresses: vec![address],
        extension: None,
        capabilities: Default::default(),
        message: Default::default(),
    }
}

fn name() -> DomainName {
    DomainName::new("server.example").expect("it is short")
}

/// A free port of the loopback interface.
pub(super) fn any() -> SocketAddr {
    "127.0.0.1:0".parse().expect("it is an address")
}

/// Moves this many bytes. `connected` learns where the server is, once the connection exists.
pub(super) fn transfer(bytes: usize, connected: impl FnOnce(SocketAddr) + Send) -> Transfer {
    let (config, key) = server();
    let (bound, address) = mpsc::channel();
    let receive = move || {
        runtime().block_on(async {
            let endpoint = Endpoint::server(any(), config, RandomNonces).expect("a port is free");
            bound.send(endpoint.address()).expect("the sender waits for it");
            let mut stream = endpoint.accept().await.expect("the sender connects");
            connected(endpoint.address());
            let (mut piece, mut received) = (vec![0; PIECE], 0);
            loop {
                match stream.read(&mut piece).await.expect("the sender ends well") {
                    0 => break,
                    more => received += more,
                }
            }
            assert_eq!(received, bytes);
            stream.write_all(b".").await.expect("the sender waits");
            stream.shutdown().await.expect("the sender waits");
            stream.connection().closed().await;
        });
    };
    let send = move || {
        runtime().block_on(async {
            let endpoint = Endpoint::client(any(), RandomNonces).expect("a port is free");
            let config = client(key, address.recv().expect("the receiver is bound"));
            let mut stream = endpoint.connect(config).expect("the configuration is valid");
            let (piece, mut sent) = (vec![7; PIECE], 0);
            while sent < bytes {
                sent += stream.write(&piece[..PIECE.min(bytes - sent)]).await.expect("the receiver reads");
            }
            stream.shutdown().await.expect("the receiver reads");
            stream.read_to_end(&mut Vec::new()).await.expect("the receiver ends well");
            stream.connection().closed().await;
        });
    };
    run(bytes, receive, send)
}
