//! New clients of a server that is flooded with Hellos. The flood and the clients have their own networks: all of 127.0.0.0/8
//! is this machine.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

const HELLOS_PER_S: u32 = 2_000;
/// A client that no answer reaches in this time counts as shut out.
const PATIENCE: Duration = Duration::from_secs(10);

fn name() -> DomainName {
    DomainName::new("server.example").unwrap()
}

fn server() -> Endpoint {
    let mut config = ServerConfig::new(SecretKey::from_bytes([1; 32]), Extension::default(), name());
    (config.hellos_per_s, config.hello_burst) = (HELLOS_PER_S, HELLOS_PER_S / 10);
    Endpoint::server("127.0.0.1:0".parse().unwrap(), config, RandomNonces).unwrap()
}

/// A flood of at most this many Hellos per millisecond, in turn from all sources, until it is dropped.
struct Flood(Arc<AtomicBool>);

impl Flood {
    fn new(server: SocketAddr, per_ms: u64, sources: impl Iterator<Item = Ipv4Addr>) -> Self {
        let sockets: Vec<_> = sources.map(|source| UdpSocket::bind((source, 0)).unwrap()).collect();
        let over = Arc::new(AtomicBool::new(false));
        let watched = over.clone();
        thread::spawn(move || {
            let mut hello = [0; 224];
            hello[..8].copy_from_slice(b"QvnQ5XlH");
            for (number, socket) in (0_u64..).zip(sockets.iter().cycle()) {
                if watched.load(Ordering::Relaxed) {
                    return;
                }
                hello[40..48].copy_from_slice(&number.to_le_bytes());
                _ = socket.send_to(&hello, server);
                if number.is_multiple_of(per_ms) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Self(over)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a client connects, which sends its first eight Hellos 250 ms apart.
async fn connects(server: SocketAddr, own: Ipv4Addr) -> bool {
    let client = Endpoint::client((own, 0).into(), RandomNonces).unwrap();
    let config = ClientConfig {
        identity: SecretKey::from_bytes([2; 32]),
        server: SecretKey::from_bytes([1; 32]).public_key(),
        server_extension: Extension::default(),
        name: name(),
        addresses: vec![server; 8],
        extension: None,
        capabilities: Default::default(),
        message: Default::default(),
    };
    let mut stream = client.connect(config).unwrap();
    stream.write_all(b"!").await.unwrap();
    tokio::time::timeout(PATIENCE, stream.connection().established()).await == Ok(true)
}

/// How many clients connect, of twelve in their own networks; it does not wait for more than `enough`.
async fn connected(server: SocketAddr, enough: usize) -> usize {
    let mut clients: JoinSet<bool> = (0..12).map(|i| connects(server, Ipv4Addr::new(127, 5, i, 1))).collect();
    let mut connected = 0;
    while connected < enough
        && let Some(connects) = clients.join_next().await
    {
        connected += usize::from(connects.unwrap());
    }
    connected
}

/// Packets that the kernel has dropped at the socket of this address.
fn dropped(address: SocketAddr) -> u64 {
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
    let port = format!(":{:04X}", address.port());
    let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|fields| fields[1].ends_with(&port)).unwrap();
    line.last().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_flood_from_one_network_stays_in_the_kernel_and_other_clients_connect() {
    let server = server();
    let _flood = Flood::new(server.address(), 20, [Ipv4Addr::new(127, 4, 0, 1)].into_iter());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let dropped = dropped(server.address());
    assert!(dropped > 1_000, "the kernel has dropped {dropped} Hellos");
    assert_eq!(connected(server.address(), 12).await, 12);
}

/// Of at most 16,000 Hellos/s one in eight is answered, and a client sends eleven while it is patient: it is shut out with
/// probability 0.23, and ten of twelve are with one of 10^-5.
#[tokio::test]
async fn clients_connect_in_spite_of_a_flood_from_everywhere() {
    let server = server();
    let everywhere = (0..=255).map(|network| Ipv4Addr::new(127, 6, network, 1));
    let _flood = Flood::new(server.address(), 16, everywhere);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(connected(server.address(), 3).await, 3);
}
