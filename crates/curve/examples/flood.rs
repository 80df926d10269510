//! What a flood of Hellos leaves of an established connection: `cargo run --release -p kendall-curve --example flood [ROUNDS]
//! [HELLOS_PER_S]`.
//!
//! Each round moves 1 GB over one stream on the loopback interface three times: in calm, under a flood from one network, and
//! under a flood from 256 networks, by a thread that sends Hellos as fast as it can, or at the given rate. Both ends and the flood are threads
//! on the same two processors. Printed is the median of the throughput per second of processor time that both ends get,
//! relative to that of the calm transfer of the round (0 where the connection failed); and how long a new client takes to connect meanwhile.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, PublicKey, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces, system_random};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BYTES: usize = 1_000_000_000;
/// Bytes that an application writes or reads at once.
const PIECE: usize = 256 << 10;
/// Processors for all threads together.
const PROCESSORS: usize = 2;

/// What one transfer took.
struct Transfer {
    took: Duration,
    /// Of both ends; absent where the connection failed.
    cpu: Option<Duration>,
    hellos: u64,
    /// How long another client took to connect during the transfer, if it did.
    connect: Option<Duration>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(9), |words| words.parse())?;
    let per_s: f64 = std::env::args().nth(2).map_or(Ok(f64::INFINITY), |words| words.parse())?;
    let floods: [&[Ipv4Addr]; 3] = [&[], &[Ipv4Addr::LOCALHOST], &many_networks()];
    let rounds: Vec<[Transfer; 3]> =
        (0..rounds).map(|_| floods.map(|sources| transfer(sources, per_s))).collect();
    println!(
        "| flood | Hellos/s | MB/s | CPU s/GB | relative throughput per CPU second | other client connects in |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (i, name) in ["none", "from one network", "from 256 networks"].into_iter().enumerate() {
        let of = |value: fn(&Transfer) -> f64| median(rounds.iter().map(|round| value(&round[i])));
        let cpu_s = |one: &Transfer| one.cpu.map_or(f64::INFINITY, |cpu| cpu.as_secs_f64());
        let connected = rounds.iter().filter_map(|round| round[i].connect).map(|took| took.as_secs_f64());
        println!(
            "| {name} | {:.0} | {:.0} | {:.2} | {:.2} | {:.0} ms in {} of {} |",
            of(|one| one.hellos as f64 / one.took.as_secs_f64()),
            of(|one| BYTES as f64 / 1e6 / one.took.as_secs_f64()),
            median(rounds.iter().map(|round| cpu_s(&round[i]) / (BYTES as f64 / 1e9))),
            median(rounds.iter().map(|round| cpu_s(&round[0]) / cpu_s(&round[i]))),
            median(connected.clone()) * 1e3,
            connected.count(),
            rounds.len(),
        );
    }
    Ok(())
}

/// Addresses of this machine in as many networks of 256 addresses.
fn many_networks() -> Vec<Ipv4Addr> {
    (0..=255).map(|network| Ipv4Addr::new(127, 1, network, 1)).collect()
}

/// Moves the bytes under a flood from these addresses.
fn transfer(sources: &[Ipv4Addr], per_s: f64) -> Transfer {
    let secret = SecretKey::generate(&mut system_random());
    let key = secret.public_key();
    let config = ServerConfig::new(secret, Extension::default(), name());
    let over = AtomicBool::new(false);
    let (bound, address) = mpsc::channel();
    let (established, begun) = mpsc::channel();
    let begin = Instant::now();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            timed(async {
                let endpoint = Endpoint::server(any(), config, RandomNonces).expect("a port is free");
                bound.send(endpoint.address()).expect("the sender waits for it");
                let mut stream = endpoint.accept().await?;
                established.send(())?;
                let (mut piece, mut received) = (vec![0; PIECE], 0);
                while received < BYTES {
                    match stream.read(&mut piece).await? {
                        0 => return Err("the sender ended early".into()),
                        more => received += more,
                    }
                }
                stream.write_all(b".").await?;
                stream.shutdown().await?;
                stream.connection().closed().await;
                Ok(())
            })
        });
        let server: SocketAddr = address.recv().expect("the receiver is bound");
        let sender = scope.spawn(move || {
            timed(async {
                let endpoint = Endpoint::client(any(), RandomNonces).expect("a port is free");
                let mut stream = endpoint.connect(client(key, server)).expect("the configuration is valid");
                let (piece, mut sent) = (vec![7; PIECE], 0);
                while sent < BYTES {
                    sent += stream.write(&piece[..PIECE.min(BYTES - sent)]).await?;
                }
                stream.shutdown().await?;
                stream.read_to_end(&mut Vec::new()).await?;
                stream.connection().closed().await;
                Ok(())
            })
        });
        begun.recv().expect("the receiver accepts");
        let over = &over;
        let flood = scope.spawn(move || flood(server, sources, per_s, over));
        let other = scope.spawn(move || connect(server, key, over));
        let [sent, received] = [sender, receiver].map(|end| end.join().expect("both ends return"));
        over.store(true, Ordering::Relaxed);
        Transfer {
            took: begin.elapsed(),
            cpu: sent.zip(received).map(|(sent, received)| sent + received),
            hellos: flood.join().expect("the flood ends"),
            connect: other.join().expect("the other client ends"),
        }
    })
}

/// Sends Hellos, each with another key, in turn from each source; returns how many.
fn flood(server: SocketAddr, sources: &[Ipv4Addr], per_s: f64, over: &AtomicBool) -> u64 {
    confine();
    let begin = Instant::now();
    let sockets: Vec<UdpSocket> =
        sources.iter().map(|source| UdpSocket::bind((*source, 0)).expect("a port is free")).collect();
    let mut hello = [0; 224];
    hello[..8].copy_from_slice(b"QvnQ5XlH");
    let mut number = 0_u64;
    for socket in sockets.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        while number as f64 > per_s * begin.elapsed().as_secs_f64() {
            thread::sleep(Duration::from_micros(100));
        }
        number += 1;
        hello[40..48].copy_from_slice(&number.to_le_bytes());
        // Where the kernel takes no more, the next one may fit.
        _ = socket.send_to(&hello, server);
    }
    number
}

/// How long a client in a network of its own takes to connect after the flood has begun.
fn connect(server: SocketAddr, key: PublicKey, over: &AtomicBool) -> Option<Duration> {
    confine();
    runtime().block_on(async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let own = "127.2.0.1:0".parse().expect("it is an address");
        let endpoint = Endpoint::client(own, RandomNonces).expect("a port is free");
        let begin = Instant::now();
        let mut stream = endpoint.connect(client(key, server)).expect("the configuration is valid");
        stream.write_all(b"!").await.expect("the stream takes a byte");
        let connection = stream.connection();
        let ended = async {
            while !over.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            established = connection.established() => established.then(|| begin.elapsed()),
            () = ended => None,
        }
    })
}

fn client(server: PublicKey, address: SocketAddr) -> ClientConfig {
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
fn any() -> SocketAddr {
    "127.0.0.1:0".parse().expect("it is an address")
}

/// The processor time of this thread in the work, unless it fails.
fn timed(work: impl Future<Output = Result<(), Box<dyn Error>>>) -> Option<Duration> {
    confine();
    if let Err(error) = runtime().block_on(work) {
        eprintln!("a transfer failed: {error}");
        return None;
    }
    Some(clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative"))
}

/// Confines this thread to the first processors that it may use.
fn confine() {
    let allowed = sched_getaffinity(None).expect("a thread can ask for its own processors");
    let mut few = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).take(PROCESSORS).for_each(|cpu| few.set(cpu));
    sched_setaffinity(None, &few).expect("a thread may use fewer processors");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
