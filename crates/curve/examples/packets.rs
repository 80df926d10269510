//! What the whole stack costs without sockets, in seconds per gigabyte.
//!
//! `cargo run --release -p kendall-curve --example packets`. Times are CPU times of the thread.

use curvecp::{
    ClientConfig, ConnectionId, DomainName, Endpoint, Event, Extension, Read, SecretKey, ServerConfig,
    TransmitBuffer,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rustix::time::{ClockId, clock_gettime};
use std::net::SocketAddr;
use std::time::Duration;

const BYTES: usize = 500_000_000;

fn main() {
    let server_address = SocketAddr::from(([127, 0, 0, 1], 4000));
    let secret = SecretKey::from_bytes([1; 32]);
    let (extension, name) = (Extension::default(), DomainName::new("machine.example").expect("a short name"));
    let config = ServerConfig::new(secret.clone(), extension, name.clone());
    let client_config = ClientConfig {
        identity: SecretKey::from_bytes([2; 32]),
        server: secret.public_key(),
        server_extension: extension,
        name,
        addresses: vec![server_address],
        extension: None,
        capabilities: Default::default(),
        message: Default::default(),
    };
    let (mut client, mut server) = (Side::new(1, None), Side::new(2, Some(config)));

    let now = Duration::ZERO;
    let id = client.endpoint.connect(now, client_config).expect("the configuration is valid");
    client.pass(now, &mut server);
    server.pass(now, &mut client);
    client.pass(now, &mut server);
    let peer = std::iter::from_fn(|| server.endpoint.poll_event())
        .find_map(|event| if let Event::NewConnection { id, .. } = event { Some(id) } else { None })
        .expect("the handshake opened a connection");
    transfer(now, &mut client, id, &mut server, peer);
}

/// Moves bytes from client to server over a link with a round trip of 1 ms.
fn transfer(start: Duration, client: &mut Side, id: ConnectionId, server: &mut Side, peer: ConnectionId) {
    let (data, mut into) = (vec![7; 1 << 20], vec![0; 1 << 20]);
    let (mut sent, mut arrived, mut now) = (0, 0, start);
    let (mut sending, mut receiving) = (Duration::ZERO, Duration::ZERO);
    while arrived < BYTES {
        let begin = cpu_time();
        sent +=
            client.endpoint.write(id, &data[..data.len().min(BYTES - sent)]).expect("the connection exists");
        client.endpoint.handle_timeout(now);
        client.pass(now, server);
        sending += (cpu_time() - begin) - server.received;
        let begin = cpu_time();
        while let Read::Bytes(n) = server.endpoint.read(peer, &mut into).expect("the connection exists") {
            arrived += n;
        }
        server.endpoint.handle_timeout(now);
        receiving += (cpu_time() - begin) + server.received;
        let begin = cpu_time();
        server.pass(now, client);
        receiving += (cpu_time() - begin) - client.received;
        sending += client.received;
        now += Duration::from_micros(500);
    }
    let per_gb = |time: Duration| time.as_secs_f64() * 1e9 / BYTES as f64;
    println!("sender: {:.3} s/GB, receiver: {:.3} s/GB", per_gb(sending), per_gb(receiving));
}

struct Side {
    endpoint: Endpoint,
    buffer: TransmitBuffer,
    /// How long the last batch took that this side received.
    received: Duration,
}

impl Side {
    fn new(seed: u64, server: Option<ServerConfig>) -> Self {
        let mut nonces = StdRng::seed_from_u64(seed + 10);
        let nonces = Box::new(move || {
            let mut nonce = [0; 16];
            nonces.fill_bytes(&mut nonce);
            nonce
        });
        let endpoint = Endpoint::new(Duration::ZERO, server, Box::new(StdRng::seed_from_u64(seed)), nonces);
        Self { endpoint, buffer: TransmitBuffer::new(256), received: Duration::ZERO }
    }

    /// Hands all that is due to the other side, in batches as the system would.
    fn pass(&mut self, now: Duration, to: &mut Self) {
        let from = SocketAddr::from(([127, 0, 0, 1], 4000));
        to.received = Duration::ZERO;
        let mut bytes = Vec::new();
        while self.endpoint.poll_transmit(now, &mut self.buffer) {
            for transmit in self.buffer.transmits() {
                bytes.clear();
                bytes.extend_from_slice(transmit.bytes);
                let begin = cpu_time();
                to.endpoint.handle_datagrams(now, from, &mut bytes, transmit.segment);
                to.received += cpu_time() - begin;
            }
        }
    }
}

/// Time that this thread has spent on a CPU.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative")
}
