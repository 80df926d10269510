//! Hostile clients: every server meets noise, halves, floods and resets, and serves as before afterwards.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use kendall_reverse::protocol as reverse;
use kendall_testbed::hostile::{Draw, campaign, damaged};
use kendall_testbed::reset;

use super::fixtures::Fixtures;
use super::judge::try_in;
use super::server::Server;

/// A server, a valid request to it as bytes, and what a sound client asks it in the end.
struct Target {
    name: &'static str,
    command: &'static str,
    /// Whether its clients send datagrams.
    datagrams: bool,
    valid: fn(&Fixtures) -> Vec<u8>,
    /// The command of a sound client.
    sound: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        name: "reverse",
        command: "serve reverse --listen 127.0.0.1:0 --deadline 1s",
        datagrams: false,
        valid: |_| {
            reverse::Request { digest: reverse::digest(7), start: 0, end: 1000, priority: 1 }
                .encode()
                .to_vec()
        },
        sound: "load reverse://{}?difficulty=1000 --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "recover",
        command: "serve recover --listen 127.0.0.1:0 --most-file 8 --most-candidates 100000",
        datagrams: false,
        valid: |fixtures| {
            let file = std::fs::read(fixtures.path().join("notes.enc")).unwrap();
            let digest = b"\xa9\x99\x3e\x36\x47\x06\x81\x6a\xba\x3e\x25\x71\x78\x50\xc2\x6c\x9c\xd0\xd8\x9d";
            [&digest[..], &3_i32.to_be_bytes(), &(file.len() as i64).to_be_bytes(), &file].concat()
        },
        sound: "load recover://{}?length=2&passwords=2&file-bytes=100 --rate 40 --requests 2 --quiet",
    },
    Target {
        name: "text search, lines",
        command: "serve textsearch --listen 127.0.0.1:0 --data lines.txt --protocol lines --deadline 1s",
        datagrams: false,
        valid: |_| b"0;first|(a|b)*line\n".to_vec(),
        sound: "load textsearch://{} --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "text search, utf",
        command: "serve textsearch --listen 127.0.0.1:0 --data lines.txt --protocol utf --deadline 1s",
        datagrams: false,
        valid: |_| b"\x00\x0a0;the.*rst".to_vec(),
        sound: "load textsearch://{}?protocol=utf --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "hold",
        command: "serve hold --listen 127.0.0.1:0 --mean 1ms --workers 4",
        datagrams: false,
        valid: |_| 77_u64.to_be_bytes().to_vec(),
        sound: "load hold://{} --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "hold, sessions",
        command: "serve hold --listen 127.0.0.1:0 --mean 1ms --workers 4 --sessions on",
        datagrams: false,
        valid: |_| {
            let [opening, nonce, user] = [*b"KHS1\0\0\0\0", 5_u64.to_le_bytes(), 3_u64.to_le_bytes()];
            [opening, user, nonce, user, [0; 8]].concat()
        },
        sound: "load hold://{}?users=3 --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "chat",
        command: "serve chat --listen 127.0.0.1:0 --store memory: --throwaway --limits off",
        datagrams: false,
        // The greeting, and a request of a kind that may be one.
        valid: |_| b"KCHAT\x01\0\0\0\x09\x01\0\0\0\x01\x03ann".to_vec(),
        sound: "load chat://{} --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "metrics",
        command: "serve hold --listen 127.0.0.1:0 --metrics {metrics} --mean 1ms",
        datagrams: false,
        valid: |_| b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
        sound: "load http://{}/metrics --rate 40 --requests 4 --quiet --expect-text kendall_",
    },
    Target {
        name: "transport, tcp",
        command: "serve transport --listen 127.0.0.1:0 --kind tcp",
        datagrams: false,
        valid: |_| b"e\0\0\0\0\0\0\0\x04echo".to_vec(),
        sound: "load transport://{}?kind=tcp --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "transport, tls",
        command: "serve transport --listen 127.0.0.1:0 --kind tls",
        datagrams: false,
        valid: |_| tls_hello(),
        sound: "load transport://{}?kind=tls --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "transport, quic",
        command: "serve transport --listen 127.0.0.1:0 --kind quic",
        datagrams: true,
        valid: |_| [&b"\xc3\0\0\0\x01\x08destinat\x08sourceid\0\x44\x9e"[..], &[7; 1174]].concat(),
        sound: "load transport://{}?kind=quic --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "transport, CurveCP",
        command: "serve transport --listen 127.0.0.1:0 --kind curve",
        datagrams: true,
        valid: |_| curve_hello(),
        sound: "load transport://{}?kind=curve --rate 40 --requests 4 --quiet",
    },
    Target {
        name: "relay of a link",
        command: "link relay --to {hold}",
        datagrams: false,
        valid: |_| 77_u64.to_be_bytes().to_vec(),
        sound: "load hold://{} --rate 40 --requests 4 --quiet",
    },
];

/// The head of a hello of CurveCP, and noise.
fn curve_hello() -> Vec<u8> {
    [&b"QvnQ5XlH"[..], &[3; 216]].concat()
}

/// The head of a hello of TLS 1.3, and noise.
fn tls_hello() -> Vec<u8> {
    [&b"\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03"[..], &[9; 194]].concat()
}

/// Cases for each server.
const EACH: usize = 30;

#[test]
fn no_client_makes_a_server_fail() {
    let fixtures = Fixtures::new();
    let hold = fixtures.hold();
    let metrics = format!("127.0.0.1:{}", kendall_testbed::free_port());
    let servers: Vec<(Server, String, Vec<u8>)> = TARGETS
        .iter()
        .map(|target| {
            let command = target.command.replace("{metrics}", &metrics).replace("{hold}", &hold.address);
            let server = Server::start(fixtures.path(), &command.split(' ').collect::<Vec<_>>());
            let address =
                if command.contains("--metrics") { metrics.clone() } else { server.address.clone() };
            (server, address, (target.valid)(&fixtures))
        })
        .collect();
    campaign("sockets", TARGETS.len() * EACH, |number, draw| {
        let which = number as usize % TARGETS.len();
        let (server, address, valid) = &servers[which];
        if TARGETS[which].datagrams {
            send(address, valid, draw)
        } else {
            connect(address, valid, draw)
        }
        server.check().map_err(|why| format!("{}: {why}", TARGETS[which].name))
    });
    for (target, (server, address, _)) in TARGETS.iter().zip(servers) {
        let client: Vec<_> = target.sound.replace("{}", &address).split(' ').map(Into::into).collect();
        let ended = try_in(&fixtures.world(), client, false).unwrap();
        let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(
            matches!(ended.status.code(), Some(0 | 3)) && printed.contains(" 0 wrong, 0 refused"),
            "{}: {printed}",
            target.name
        );
        server.stop().unwrap_or_else(|why| panic!("{}: {why}", target.name));
    }
    hold.stop().unwrap();
}

/// One hostile connection, or many.
fn connect(address: &str, valid: &[u8], draw: &mut Draw) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    match draw.below(12) {
        0 => {
            let length = [1, 100, 10_000, 1_000_000][draw.below(4)];
            let _ = stream.write_all(&draw.bytes(length));
        }
        1 => {
            let half = draw.below(valid.len());
            let _ = stream.write_all(&valid[..half]);
            return reset(stream);
        }
        2 => {
            let half = draw.below(valid.len());
            let _ = stream.write_all(&valid[..half]);
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        3 => {
            let _ = stream.set_nodelay(true);
            for byte in valid.chunks(1).take(200) {
                if stream.write_all(byte).is_err() {
                    return;
                }
                sleep(Duration::from_millis(1));
            }
        }
        4..8 => {
            let _ = stream.write_all(&damaged(valid, draw));
        }
        8 => {
            let _ = stream.write_all(&valid.repeat(1 + draw.below(500)));
            if draw.percent(50) {
                return reset(stream);
            }
        }
        9 => {
            let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(address)).collect();
            sleep(Duration::from_millis(20));
            drop(idle);
            let _ = stream.write_all(valid);
        }
        10 => return reset(stream),
        // A text without end, as of lines and heads.
        _ => {
            let _ = stream.write_all(
                draw.pick(&["a", "\n", "\0", "\r\n", "a: b\r\n", "0;"]).repeat(200_000).as_bytes(),
            );
        }
    }
    // A part of the answer: it may be a terabyte.
    let mut answer = [0; 64 << 10];
    for _ in 0..20 {
        if !stream.read(&mut answer).is_ok_and(|bytes| bytes > 0) {
            return;
        }
    }
}

/// Hostile datagrams.
fn send(address: &str, valid: &[u8], draw: &mut Draw) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..=draw.below(50) {
        let bytes = match draw.below(4) {
            0 => {
                let length = [0, 1, 100, 1200, 60_000][draw.below(5)];
                draw.bytes(length)
            }
            1 => valid.to_vec(),
            _ => damaged(valid, draw),
        };
        let _ = socket.send_to(&bytes[..bytes.len().min(60_000)], address);
    }
}
