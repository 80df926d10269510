//! The two programs at the ends of a link: flows of TCP and CurveCP from the client to the server, counted where they arrive.
//!
//! Both are this program again, in the link's namespaces. The server writes what has arrived of each flow to a file every
//! 100 ms, so that a flow's start and end need not be agreed on.

use std::fs::{File, rename};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kendall_curve::curvecp::congestion::Algorithm;
use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, MessageConfig, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces};
use rustix::net::sockopt::set_tcp_congestion;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// The first argument of this program where it is an end of a link.
pub(crate) const WORD: &str = "curve-links-end";
/// Flows at once, at most.
const FLOWS: usize = 4;
const TCP: &str = "10.0.0.2:5001";
const CURVE: &str = "10.0.0.2:5002";
const EVERY: Duration = Duration::from_millis(100);
/// How long a client waits for a server that does not listen yet.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes that have arrived of each flow.
type Arrived = Arc<[AtomicU64; FLOWS]>;

/// Runs the end that these arguments name: `server FILE`, or `client SECONDS FLOW…`.
pub(crate) fn run(arguments: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        match arguments {
            [end, file] if end == "server" => serve(Path::new(file)).await,
            [end, seconds, flows @ ..] if end == "client" => send(seconds, flows).await,
            _ => panic!("not an end of a link: {arguments:?}"),
        }
    });
}

fn secret() -> SecretKey {
    SecretKey::from_bytes([1; 32])
}

fn name() -> DomainName {
    DomainName::new("server.example").expect("this is a name")
}

async fn serve(file: &Path) {
    let arrived = Arrived::default();
    let config = ServerConfig::new(secret(), Extension::default(), name());
    let curve = Endpoint::server(CURVE.parse().expect("this is an address"), config, RandomNonces);
    let curve = curve.expect("the port is free");
    let tcp = TcpListener::bind(TCP).await.expect("the port is free");
    let counts = arrived.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Ok(stream) = curve.accept() => drop(tokio::spawn(count(stream, counts.clone()))),
                Ok((stream, _)) = tcp.accept() => drop(tokio::spawn(count(stream, counts.clone()))),
            }
        }
    });
    let (start, beside) = (Instant::now(), file.with_extension("new"));
    let mut out = File::create(&beside).expect("the folder is there");
    rename(&beside, file).expect("the folder is there");
    loop {
        sleep(EVERY).await;
        let mut line = start.elapsed().as_secs_f64().to_string();
        arrived.iter().for_each(|flow| line += &format!(" {}", flow.load(Relaxed)));
        writeln!(out, "{line}").expect("the file can be written");
    }
}

/// Counts a flow, whose first byte is its number.
async fn count(mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, arrived: Arrived) {
    let Ok(flow) = stream.read_u8().await else { return };
    let mut piece = vec![0; 1 << 16];
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        arrived[usize::from(flow)].fetch_add(length as u64, Relaxed);
    }
}

async fn send(seconds: &str, flows: &[String]) {
    let seconds = seconds.parse().expect("this is a number");
    for (number, flow) in (0..).zip(flows) {
        // `bbr+5` begins 5 s late.
        let (kind, late) = flow.split_once('+').unwrap_or((flow, "0"));
        let (kind, late) =
            (kind.to_owned(), Duration::from_secs_f64(late.parse().expect("this is a number")));
        tokio::spawn(async move {
            sleep(late).await;
            match kind.split_once('-') {
                Some(("tcp", congestion)) => flood(tcp(congestion).await, number).await,
                _ => flood(curve(kind.parse().expect("this is a congestion control")), number).await,
            }
        });
    }
    sleep(Duration::from_secs_f64(seconds)).await;
}

async fn flood(mut stream: impl AsyncWrite + Unpin, number: u8) {
    let zeros = vec![0; 1 << 16];
    if stream.write_u8(number).await.is_ok() {
        while stream.write_all(&zeros).await.is_ok() {}
    }
}

async fn tcp(congestion: &str) -> TcpStream {
    let start = Instant::now();
    let stream = loop {
        match TcpStream::connect(TCP).await {
            Ok(stream) => break stream,
            Err(error) => assert!(start.elapsed() < PATIENCE, "cannot connect: {error}"),
        }
        sleep(EVERY).await;
    };
    set_tcp_congestion(&stream, congestion).expect("the kernel has this congestion control");
    stream
}

fn curve(algorithm: Algorithm) -> kendall_curve::Stream {
    let any = "10.0.0.1:0".parse().expect("this is an address");
    let endpoint = Endpoint::client(any, RandomNonces).expect("a port is free");
    let stream = endpoint.connect(ClientConfig {
        identity: SecretKey::from_bytes([2; 32]),
        server: secret().public_key(),
        server_extension: Extension::default(),
        name: name(),
        addresses: vec![CURVE.parse().expect("this is an address")],
        extension: None,
        capabilities: Default::default(),
        message: MessageConfig { algorithm, ..MessageConfig::default() },
    });
    stream.expect("the configuration is valid")
}
