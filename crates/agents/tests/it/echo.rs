//! A small system for the tests: each request is its number, and so is the answer, 1 ms later.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use kendall_agents::Target;
use kendall_linkmodel::Transport;
use kendall_load::{
    AnswerRead, ConnectionKind, Dialog, Dialogs, Request, RequestClass, Reuse, Route, Wire, Workload,
};
use kendall_record::Outcome;
use kendall_station::{Discipline, Servers};
use kendall_system::{Home, Settings, StationShape, Subcommands, System, no_limits};

pub(crate) static SYSTEMS: &[System] = &[System {
    name: "echo",
    about: "returns numbers",
    default_port: 5099,
    home: Home::Here,
    server: &[],
    workload: &[],
    station: |_| StationShape::unlimited(Servers::MIN, Discipline::Fifo),
    transport: |_| Transport::TCP,
    load: |server, _, _| Ok(Box::new(Numbers(server))),
    serve: |_, _| Err("the tests have their own server".into()),
    limits: no_limits,
    subcommands: Subcommands { about: "", all: &[] },
}];

struct Numbers(SocketAddr);

impl Workload for Numbers {
    fn request(&self, index: u64) -> Request {
        Request::new((index % 3) as u32, Bytes::copy_from_slice(&index.to_be_bytes()))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0); 3]
    }

    fn route(&self) -> Route<'_> {
        Route::Bytes(Wire { to: self.0, kind: ConnectionKind::TCP, reuse: Reuse::Keep }, self)
    }
}

impl Dialogs for Numbers {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Number(0))
    }
}

struct Number(u64);

impl Dialog for Number {
    fn begin(&mut self, index: u64, _: &Request) {
        self.0 = index;
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let Some(answer) = bytes.first_chunk::<8>() else { return AnswerRead::More { used: 0 } };
        let is_right = u64::from_be_bytes(*answer) == self.0;
        let outcome = if is_right { Outcome::Answered } else { Outcome::Wrong };
        AnswerRead::Done { used: 8, outcome, reuse: Reuse::Keep }
    }
}

/// A server with a thread for each connection, which ends with the process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || answer(stream?));
            }
        });
        Self { address }
    }

    pub(crate) fn target(&self) -> Target {
        Target::new(&SYSTEMS[0], self.address, &Settings::defaults(SYSTEMS[0].workload), 7)
    }
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut number = [0; 8];
    loop {
        stream.read_exact(&mut number)?;
        thread::sleep(Duration::from_millis(1));
        stream.write_all(&number)?;
    }
}
