//! A system whose requests have bodies, and whose answers stream. A request is a line, `VERB N`:
//!
//! | verb | N | answer |
//! | --- | --- | --- |
//! | `put` | bytes of its body | the body, without work |
//! | `work` | the same | the body, after a moment's work |
//! | `hold` | the same | the body, once the gate is open |
//! | `same` | the same | as `hold`; all of them are equal |
//! | `vain` | the same | `no` after a moment's work, whatever the body |
//! | `rows` | rows | the numbers below N, of which the gate keeps the last; all of them are equal |
//! | `crash` | 0 | one row, then the handler panics |

use std::future::ready;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use kendall_service::{
    BodyFuture, Config, Decoded, Decoding, Handler, Malformed, Reader, Reply, Sink, Source, Step, Then, Turn,
    WholeBody,
};
use kendall_station::Job;
use kendall_testbed::{LIMIT, Running, reset};
use tokio::sync::watch;

use crate::lines::run;

/// The largest body that a store accepts.
pub(crate) const MOST: usize = 4_000_000;
/// Rows in a piece.
const PIECE_ROWS: u64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: AtomicBool,
    chunks: AtomicU64,
    truncated: AtomicU64,
    rows_made: AtomicU64,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stores {
    gate: Arc<Gate>,
}

#[derive(Debug)]
pub(crate) enum Task {
    Work { then: &'static str },
    Hold,
    Rows { to: u64, done: Option<watch::Sender<u64>> },
    Crash { begun: bool },
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Text(&'static str),
    Rows(Arc<Rows>),
    Refused,
}

/// A body in memory, in buffers of odd sizes.
#[derive(Debug)]
struct Store {
    bytes: Vec<u8>,
    buffer: [u8; 777],
    length: u64,
    gate: Arc<Gate>,
}

impl Sink<Answer> for Store {
    fn length(&self) -> u64 {
        self.length
    }

    fn buffer(&mut self) -> BodyFuture<'_, &mut [u8]> {
        let full = self.bytes.len() >= MOST;
        let buffer = if full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(&mut self.buffer[..]) };
        Box::pin(ready(buffer))
    }

    fn filled(&mut self, bytes: usize) -> BodyFuture<'_, ()> {
        self.bytes.extend(&self.buffer[..bytes]);
        Box::pin(ready(Ok(())))
    }

    fn truncated(&mut self) {
        self.gate.truncated.fetch_add(1, Ordering::SeqCst);
    }

    fn wanted(&self) -> fn(&Answer) -> bool {
        |answer| !matches!(answer, Answer::Text("no\n"))
    }

    fn finish(self: Box<Self>, _: Answer) -> (Box<dyn Reader>, Then) {
        assert_eq!(self.bytes.len() as u64, self.length);
        (Box::new(WholeBody::new(self.bytes)), Then::Keep)
    }
}

/// The rows that are done.
#[derive(Debug)]
pub(crate) struct Rows {
    done: watch::Receiver<u64>,
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct RowReader {
    at: u64,
    piece: Vec<u8>,
    rows: Rows,
}

impl Source for Rows {
    fn open(self: Arc<Self>) -> Box<dyn Reader> {
        let rows = Self { done: self.done.clone(), gate: Arc::clone(&self.gate) };
        Box::new(RowReader { at: 0, piece: Vec::new(), rows })
    }
}

impl Reader for RowReader {
    fn piece(&mut self) -> BodyFuture<'_, &[u8]> {
        Box::pin(async {
            let at = self.at;
            // An error is the end of the work: all rows that are done are there.
            let _ = self.rows.done.wait_for(|&done| done > at).await;
            let done = *self.rows.done.borrow();
            self.at = done.min(at + PIECE_ROWS);
            self.rows.gate.rows_made.fetch_add(self.at - at, Ordering::SeqCst);
            self.piece = (at..self.at).flat_map(u64::to_be_bytes).collect();
            Ok(self.piece.as_slice())
        })
    }
}

impl Stores {
    /// Begins an answer of rows.
    fn begin(&self) -> (watch::Sender<u64>, Step<Answer>) {
        let (sender, done) = watch::channel(1);
        let answer = Answer::Rows(Arc::new(Rows { done, gate: Arc::clone(&self.gate) }));
        (sender, Step::Begun { answer, attained: 1.0 })
    }
}

impl Handler for Stores {
    type Task = Task;
    type Answer = Answer;

    fn max_request_bytes(&self) -> usize {
        64
    }

    fn decode(&self, bytes: &[u8]) -> Decoding<Self> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let used_bytes = end + 1;
        let (verb, number) =
            std::str::from_utf8(&bytes[..end]).ok().and_then(|text| text.split_once(' ')).ok_or(Malformed)?;
        let length = number.parse().map_err(|_| Malformed)?;
        let store = Store { bytes: Vec::new(), buffer: [0; 777], length, gate: Arc::clone(&self.gate) };
        let work = |task| Decoded::work(used_bytes, Job::new(), task);
        Ok(Some(match verb {
            "put" => Decoded::answer(used_bytes, Answer::Text("put")).with_body(store),
            "work" => work(Task::Work { then: "done" }).with_body(store),
            "vain" => work(Task::Work { then: "no\n" }).with_body(store),
            "hold" => work(Task::Hold).with_body(store),
            "same" => work(Task::Hold).sharing(b"same".into()).with_body(store),
            "rows" => work(Task::Rows { to: length, done: None }).sharing(bytes.into()),
            "crash" => work(Task::Crash { begun: false }),
            _ => return Err(Malformed),
        }))
    }

    fn advance(&self, task: &mut Task, _: &mut Turn<Answer>) -> Step<Answer> {
        let done = |text| Step::Done(Answer::Text(text));
        self.gate.chunks.fetch_add(1, Ordering::SeqCst);
        match task {
            Task::Work { then } => return done(then),
            Task::Rows { done, .. } if done.is_none() => {
                let (sender, step) = self.begin();
                *done = Some(sender);
                return step;
            }
            Task::Rows { to, done: rows } => {
                let rows = rows.as_ref().expect("it has begun");
                let last = if self.gate.is_open() { *to } else { *to - 1 };
                rows.send_modify(|done| *done = (*done + PIECE_ROWS).min(last));
                if *rows.borrow() == *to {
                    return done("no client reads this");
                }
            }
            Task::Crash { begun: false } => {
                *task = Task::Crash { begun: true };
                return self.begin().1;
            }
            Task::Crash { .. } if self.gate.is_open() => panic!("as asked"),
            Task::Hold if self.gate.is_open() => return done("held"),
            Task::Hold | Task::Crash { .. } => {}
        }
        if !self.gate.is_open() {
            sleep(Duration::from_millis(1));
        }
        Step::Continue { attained: 1.0 }
    }

    fn encode(&self, answer: Answer) -> Reply {
        match answer {
            Answer::Text(text) => Reply::new(text.into(), Then::Keep),
            Answer::Rows(rows) => Reply::stream(rows, Then::Keep),
            Answer::Refused => Reply::new(b"refused\n".into(), Then::Close),
        }
    }

    fn refusal(&self) -> Answer {
        Answer::Refused
    }
}

/// A server of stores, and its gate.
pub(crate) struct Server {
    running: Running,
    pub(crate) gate: Arc<Gate>,
}

impl Server {
    pub(crate) fn new(config: Config) -> Self {
        let stores = Stores::default();
        let gate = Arc::clone(&stores.gate);
        Self { running: run(kendall_service::Server::bind(config, stores).unwrap()), gate }
    }

    pub(crate) fn chunks(&self) -> u64 {
        self.gate.chunks.load(Ordering::SeqCst)
    }

    pub(crate) fn truncated(&self) -> u64 {
        self.gate.truncated.load(Ordering::SeqCst)
    }

    pub(crate) fn rows_made(&self) -> u64 {
        self.gate.rows_made.load(Ordering::SeqCst)
    }
}

impl Deref for Server {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.gate.open();
    }
}

pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// All bytes until the server closes the connection.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).map(|_| bytes)
    }

    /// Disconnects with a reset.
    pub(crate) fn reset(self) {
        reset(self.0);
    }
}

/// Bytes that are all different from those a few thousand before.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251) as u8).collect()
}
