//! What connections cost in memory.

use std::fmt::Write as _;
use std::fs;

use kendall_curve::{Endpoint, RandomNonces, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::ours::{any, client, server};
use super::transfer::runtime;

const CONNECTIONS: usize = 10_000;
/// Handshakes at once.
const WAVE: usize = 200;
const MOST_MB: f64 = 300.0;

/// Opens connections, each of which carries a byte either way, and keeps them.
pub(super) fn row(page: &mut String) {
    let before = resident_mb();
    let took_mb = runtime().block_on(async {
        let (mut config, key) = server();
        (config.hellos_per_s, config.hello_burst) = (1_000_000, 1_000_000);
        let server = Endpoint::server(any(), config, RandomNonces).expect("a port is free");
        let clients = Endpoint::client(any(), RandomNonces).expect("a port is free");
        let mut held: Vec<Stream> = Vec::with_capacity(2 * CONNECTIONS);
        while held.len() < 2 * CONNECTIONS {
            let mut asking: Vec<Stream> = (0..WAVE)
                .map(|_| clients.connect(client(key, server.address())).expect("the configuration is valid"))
                .collect();
            for stream in &mut asking {
                stream.write_all(b"?").await.expect("the server answers");
            }
            for _ in 0..WAVE {
                let mut stream = server.accept().await.expect("the endpoint is open");
                assert_eq!(stream.read_u8().await.expect("the client has written"), b'?');
                stream.write_all(b"!").await.expect("the client reads");
                held.push(stream);
            }
            for mut stream in asking {
                assert_eq!(stream.read_u8().await.expect("the server has written"), b'!');
                held.push(stream);
            }
        }
        resident_mb() - before
    });
    let _ = writeln!(
        page,
        "\nIn one run {CONNECTIONS} connections take {took_mb:.0} MB of resident memory, the clients' ends in the same process included (at most \
         {MOST_MB:.0} wanted for the server alone)."
    );
}

/// Resident memory of this process: the second field of `statm`, in pages.
fn resident_mb() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("the second field is a number");
    (pages * rustix::param::page_size()) as f64 / 1e6
}
