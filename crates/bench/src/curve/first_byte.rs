//! How long a client waits for the first byte of an answer: with the handshake, and on a connection that is open.
//!
//! Client and server are this program again, at the ends of a link that `kendall link` emulates.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::transfer::runtime;
use crate::common::{kendall, median};
use crate::curve_links::can_emulate;

/// The first argument of this program where it is an end of the link.
pub(crate) const WORD: &str = "curve-first-byte-end";
const SERVER: &str = "10.0.0.2:5003";
const CONNECTIONS: usize = 21;
const MOST_ROUND_TRIPS: f64 = 1.0;

pub(super) fn row(page: &mut String) {
    let Some(times) = measure() else {
        page.push_str("\nNo handshake over a link: namespaces may not be made here (run as root).\n");
        return;
    };
    let [connecting, open] = [0, 1].map(|side| median(times.iter().map(|times| times[side])));
    let _ = writeln!(
        page,
        "\nOver `kendall link` with a round trip of 20 ms the first byte of an answer comes {connecting:.1} ms after the connection is \
         asked for, and {open:.1} ms after the question on an open one: {:.2} round trips more (at most {MOST_ROUND_TRIPS:.0} wanted).",
        (connecting - open) / 20.0
    );
}

/// Milliseconds to the first byte with the handshake and without, of each connection.
fn measure() -> Option<Vec<[f64; 2]>> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let times = folder.path().join("times");
    let program = std::env::current_exe().expect("a program knows its path");
    let program = program.to_str().filter(|_| can_emulate())?;
    let mut command = Command::new(kendall());
    command.args(["link", "run", "--quiet", "--delay", "10ms"]);
    command
        .args(["--server", &format!("exec '{program}' {WORD} server"), "--", program, WORD, "client"])
        .arg(&times);
    let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    let text = status.success().then(|| fs::read_to_string(&times).ok())??;
    text.lines()
        .map(|line| {
            let (connecting, open) = line.split_once(' ')?;
            Some([connecting.parse().ok()?, open.parse().ok()?])
        })
        .collect()
}

/// Runs the end that these arguments name: `server`, or `client FILE`.
pub(crate) fn run(arguments: &[String]) {
    runtime().block_on(async {
        match arguments {
            [end] if end == "server" => answer().await,
            [end, file] if end == "client" => ask(Path::new(file)).await,
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

async fn answer() {
    let config = ServerConfig::new(secret(), Extension::default(), name());
    let server = Endpoint::server(SERVER.parse().expect("this is an address"), config, RandomNonces);
    let server = server.expect("the port is free");
    while let Ok(mut stream) = server.accept().await {
        tokio::spawn(async move {
            while let Ok(question) = stream.read_u8().await {
                if stream.write_all(&[question]).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn ask(file: &Path) {
    let client = Endpoint::client("10.0.0.1:0".parse().expect("this is an address"), RandomNonces);
    let client = client.expect("a port is free");
    // The server may not listen yet, and then a Hello is repeated.
    waits(&mut connect(&client)).await;
    let mut times = String::new();
    for _ in 0..CONNECTIONS {
        let start = Instant::now();
        let mut stream = connect(&client);
        waits(&mut stream).await;
        let connecting = start.elapsed();
        let open = waits(&mut stream).await;
        let _ = writeln!(times, "{} {}", connecting.as_secs_f64() * 1e3, open.as_secs_f64() * 1e3);
    }
    fs::write(file, times).expect("the folder is there");
}

fn connect(client: &Endpoint) -> Stream {
    let config = ClientConfig {
        identity: SecretKey::from_bytes([2; 32]),
        server: secret().public_key(),
        server_extension: Extension::default(),
        name: name(),
        addresses: vec![SERVER.parse().expect("this is an address")],
        extension: None,
        capabilities: Default::default(),
        message: Default::default(),
    };
    client.connect(config).expect("the configuration is valid")
}

/// How long the answer to a question of one byte takes.
async fn waits(stream: &mut Stream) -> Duration {
    let start = Instant::now();
    stream.write_all(b"?").await.expect("the server answers");
    assert_eq!(stream.read_u8().await.expect("the server answers"), b'?');
    start.elapsed()
}
