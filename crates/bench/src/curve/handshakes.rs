//! What a client costs a server until it is connected.

use std::fmt::Write as _;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;

use kendall_curve::curvecp::{Endpoint, SecretKey, ServerConfig, TransmitBuffer};
use kendall_curve::{RandomNonces, system_random};

use super::ours::{client, server};
use super::transfer::cpu_time;
use crate::common::{ROUNDS, median};

const HANDSHAKES: u32 = 2_000;
const MOST_US: f64 = 70.0;

pub(super) fn row(page: &mut String) {
    let rounds: Vec<[f64; 3]> = (0..ROUNDS).map(|_| round()).collect();
    let [hello, initiate, agreements] = [0, 1, 2].map(|part| median(rounds.iter().map(|round| round[part])));
    let _ = writeln!(
        page,
        "\nA handshake takes {:.1} µs of a server's processor time without the socket: {hello:.1} for the Hello and {initiate:.1} for \
         the Initiate (at most {MOST_US:.0} wanted for both). Its three key agreements alone, by X25519, take {agreements:.1} µs in the \
         same rounds.",
        hello + initiate
    );
}

/// One end, with the system's random numbers as over a socket.
struct Side {
    endpoint: Endpoint,
    buffer: TransmitBuffer,
    address: SocketAddr,
}

impl Side {
    fn new(port: u16, server: Option<ServerConfig>) -> Self {
        let endpoint =
            Endpoint::new(Duration::ZERO, server, Box::new(system_random()), Box::new(RandomNonces));
        Self { endpoint, buffer: TransmitBuffer::new(16), address: SocketAddr::from(([127, 0, 0, 1], port)) }
    }

    /// Hands all that is due to the other side; returns the processor time that it took there, until there is an answer to send.
    fn pass(&mut self, now: Duration, to: &mut Self) -> Duration {
        let mut took = Duration::ZERO;
        while self.endpoint.poll_transmit(now, &mut self.buffer) {
            for datagram in self.buffer.transmits() {
                let mut bytes = datagram.bytes.to_vec();
                let begin = cpu_time();
                to.endpoint.handle_datagrams(now, self.address, &mut bytes, datagram.segment);
                took += cpu_time() - begin;
            }
        }
        took
    }
}

/// Microseconds per Hello, per Initiate and for the key agreements of both, the means of many handshakes.
fn round() -> [f64; 3] {
    let (mut config, key) = server();
    (config.hellos_per_s, config.hello_burst) = (1_000_000, 1_000_000);
    let (mut clients, mut server) = (Side::new(4001, None), Side::new(4000, Some(config)));
    let config = client(key, server.address);
    let mut random = system_random();
    let secrets = [(); 2].map(|()| SecretKey::generate(&mut random));
    let mut agreements = Duration::ZERO;
    let mut took = [Duration::ZERO; 2];
    for number in 0..HANDSHAKES {
        let now = Duration::from_millis(10) * number;
        let id = clients.endpoint.connect(now, config.clone()).expect("the configuration is valid");
        took[0] += clients.pass(now, &mut server);
        server.pass(now, &mut clients);
        took[1] += clients.pass(now, &mut server);
        server.pass(now, &mut clients);
        assert!(clients.endpoint.address(id).is_some(), "the server has answered");
        let begin = cpu_time();
        for secret in [&secrets[0], &secrets[1], &secrets[0]] {
            black_box(secret.box_key(black_box(&key)));
        }
        agreements += cpu_time() - begin;
        while server.endpoint.poll_event().is_some() || clients.endpoint.poll_event().is_some() {}
    }
    [took[0], took[1], agreements].map(|took| took.as_secs_f64() * 1e6 / f64::from(HANDSHAKES))
}
