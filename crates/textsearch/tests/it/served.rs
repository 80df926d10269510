//! A server on a free port, and clients written from the description of the protocol alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::ops::Deref;

use kendall_testbed::{LIMIT, Running, reset};
use kendall_textsearch::protocol::Dialect;
use kendall_textsearch::{Config, OpenOptions, Saving, TextSearchOptions, bind};
use tempfile::NamedTempFile;

pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) dialect: Dialect,
}

impl Served {
    pub(crate) fn start(rows: &str, change: impl FnOnce(&mut TextSearchOptions)) -> Self {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(rows.as_bytes()).unwrap();
        Self::of(file.path(), change)
    }

    pub(crate) fn of(file: &std::path::Path, change: impl FnOnce(&mut TextSearchOptions)) -> Self {
        let usual = TextSearchOptions::new("127.0.0.1:0".parse().unwrap(), file.to_owned());
        let workers = NonZeroUsize::new(2).unwrap();
        let mut options = TextSearchOptions {
            service: Config { workers, ..usual.service.clone() },
            open: OpenOptions { saving: Saving::Off, threads: 2, ..OpenOptions::default() },
            threads: workers,
            deadline: LIMIT * 10,
            ..usual
        };
        change(&mut options);
        let server = bind(&options).unwrap();
        let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
        let running =
            Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run());
        Self { running, dialect: options.dialect }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.running.address, self.dialect)
    }
}

impl Deref for Served {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    dialect: Dialect,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, dialect: Dialect) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self { stream: BufReader::new(stream), dialect }
    }

    pub(crate) fn ask(&mut self, request: &str) -> Vec<String> {
        self.send(request);
        self.answer()
    }

    pub(crate) fn send(&mut self, request: &str) {
        let bytes = match self.dialect {
            Dialect::Lines => format!("{request}\n").into_bytes(),
            Dialect::Utf => {
                assert!(request.is_ascii(), "other letters are for tests of the protocol");
                [&u16::try_from(request.len()).unwrap().to_be_bytes(), request.as_bytes()].concat()
            }
        };
        self.stream.get_mut().write_all(&bytes).unwrap();
    }

    /// The rows until the empty line.
    pub(crate) fn answer(&mut self) -> Vec<String> {
        match self.dialect {
            Dialect::Lines => {
                let mut rows = Vec::new();
                loop {
                    let mut row = String::new();
                    assert!(self.stream.read_line(&mut row).unwrap() > 0, "the end of {} rows", rows.len());
                    if row == "\n" {
                        return rows;
                    }
                    rows.push(row.strip_suffix('\n').unwrap().to_owned());
                }
            }
            Dialect::Utf => {
                let mut length = [0; 2];
                self.stream.read_exact(&mut length).unwrap();
                let mut message = vec![0; u16::from_be_bytes(length).into()];
                self.stream.read_exact(&mut message).unwrap();
                let message = String::from_utf8(message).unwrap();
                let rows = message.strip_suffix('\n').unwrap();
                rows.lines().map(str::to_owned).collect()
            }
        }
    }

    /// All bytes until the connection ends, and whether it ended in order.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        let ended = self.stream.read_to_end(&mut all);
        (all, ended.is_ok())
    }

    /// Disconnects like a process that is killed.
    pub(crate) fn leave(self) {
        reset(self.stream.into_inner());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads so few bytes that its answer remains in flight.
    pub(crate) fn sip(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        byte[0]
    }
}
