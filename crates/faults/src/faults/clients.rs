//! Clients that are slow, silent, many or wrong. What they send begins as a valid client's request does, which is recorded first.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_testbed::hostile::damaged;
use kendall_testbed::reset;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::kind::{Fault, PLAIN, always, wait};
use crate::subjects::{Requests, Running, Scene, Subject};

/// The first bytes of a valid client come within this time.
const RECORDED_WITHIN: Duration = Duration::from_secs(2);

pub(super) const HALF_OPEN: Fault = Fault {
    name: "half-open",
    what: "50 to 300 clients that begin a request and stop",
    not_for: listens_nowhere,
    others_are_served: always,
    inject: |running, _, draw| {
        let valid = valid_request(running);
        let count = 50 + draw.below(250);
        let clients: Vec<_> = (0..count).map(|_| Hostile::connect(running)).collect();
        for client in clients.iter().flatten() {
            let half = if client.is_stream() { draw.below(valid.len()) } else { valid.len() };
            client.send(&valid[..half]);
        }
        wait(draw, 500, 2000);
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const BYTE_BY_BYTE: Fault = Fault {
    name: "byte-by-byte",
    what: "30 clients that send a byte every 10 ms",
    not_for: |subject| {
        listens_nowhere(subject).or_else(|| subject.datagrams.then_some("a datagram arrives whole"))
    },
    others_are_served: always,
    inject: |running, _, _| {
        let valid = valid_request(running);
        let clients: Vec<_> = (0..30).filter_map(|_| Hostile::connect(running)).collect();
        for byte in valid.chunks(1).take(200) {
            clients.iter().for_each(|client| client.send(byte));
            sleep(Duration::from_millis(10));
        }
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const FLOOD: Fault = Fault {
    name: "flood",
    what: "200 to 2,000 connections at once (file recovery: 1,000, the web page: 450)",
    not_for: listens_nowhere,
    others_are_served: always,
    inject: |running, _, draw| {
        let valid = valid_request(running);
        let most = match running.name() {
            // The page of runs has 512 connections at most, as SECURITY.md lists.
            "web" => 450,
            // The server has 1,024 connections at most, and the load needs some.
            "recover" => 1000,
            _ => 2000,
        };
        let count = 200 + draw.below(most - 200);
        let clients: Vec<_> = (0..count).filter_map(|_| Hostile::connect(running)).collect();
        clients.iter().for_each(|client| client.send(&valid));
        wait(draw, 200, 1000);
        clients.into_iter().for_each(Hostile::end);
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const RANDOM_BYTES: Fault = Fault {
    name: "random-bytes",
    what: "200 clients that send noise or a damaged request",
    not_for: listens_nowhere,
    others_are_served: always,
    inject: |running, _, draw| {
        let valid = valid_request(running);
        for _ in 0..200 {
            let Some(client) = Hostile::connect(running) else { continue };
            let length = [1, 100, 1200, 30_000][draw.below(4)];
            client.send(&if draw.percent(50) { draw.bytes(length) } else { damaged(&valid, draw) });
            if draw.percent(30) {
                client.end();
            }
            sleep(Duration::from_millis(5));
        }
        Ok(Instant::now())
    },
    ..PLAIN
};

fn listens_nowhere(subject: &Subject) -> Option<&'static str> {
    match subject.requests {
        Requests::Inside => Some("clients do not connect to it"),
        _ if subject.name == "agents" => Some("clients do not connect to them"),
        _ => None,
    }
}

/// A connection of a hostile client, or its socket.
enum Hostile {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

impl Hostile {
    fn connect(running: &Running) -> Option<Self> {
        let address = &running.scene().address;
        if running.has_datagrams() {
            let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
            socket.connect(address).ok()?;
            return Some(Self::Datagrams(socket));
        }
        let address = address.parse().expect("scenes have valid addresses");
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
        stream.set_write_timeout(Some(Duration::from_millis(200))).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self::Stream(stream))
    }

    fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Sends, if the other end takes it.
    fn send(&self, bytes: &[u8]) {
        let _ = match self {
            Self::Stream(stream) => { stream }.write_all(bytes),
            Self::Datagrams(socket) => socket.send(&bytes[..bytes.len().min(60_000)]).map(drop),
        };
    }

    /// Ends a stream with a reset.
    fn end(self) {
        if let Self::Stream(stream) = self {
            reset(stream);
        }
    }
}

/// What a valid client sends first, recorded by a socket in place of the server; some bytes where it connects elsewhere.
fn valid_request(running: &Running) -> Vec<u8> {
    let mut scene = Scene::clone(running.scene());
    let recorded = if running.has_datagrams() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        scene.address = socket.local_addr().expect("it is bound").to_string();
        socket.set_read_timeout(Some(RECORDED_WITHIN)).expect("it is not zero");
        let mut bytes = vec![0; 2048];
        with_client(running.probe_in(&scene), || {
            socket.recv(&mut bytes).map(|length| bytes[..length].to_vec())
        })
    } else {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        scene.address = listener.local_addr().expect("it is bound").to_string();
        with_client(running.probe_in(&scene), || {
            let (mut stream, _) = accept(&listener)?;
            stream.set_read_timeout(Some(RECORDED_WITHIN))?;
            let mut bytes = vec![0; 4096];
            stream.read(&mut bytes).map(|length| bytes[..length].to_vec())
        })
    };
    recorded.ok().filter(|bytes| !bytes.is_empty()).unwrap_or_else(|| b"QvnQ5XlH of no valid client".to_vec())
}

/// The first connection; some clients make none.
fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    listener.set_nonblocking(true)?;
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < RECORDED_WITHIN => {
                sleep(Duration::from_millis(10));
            }
            accepted => return accepted,
        }
    }
}

/// Does something while a client runs.
fn with_client<T>(mut client: Command, what: impl FnOnce() -> T) -> T {
    let child = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let done = what();
    if let Ok(mut child) = child {
        let _ = child.kill();
        let _ = child.wait();
    }
    done
}

/// Lets this process have as many connections as a flood needs.
pub(crate) fn raise_limit() {
    let before = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
}
