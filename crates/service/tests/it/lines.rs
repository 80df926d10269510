//! A system of lines, for tests of the runtime: several requests per connection, work of any length, and work that
//! lasts until the test ends it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use kendall_service::{Config, Decoded, Decoding, Handler, Malformed, Reply, Step, System, Then, Turn};
use kendall_station::{Job, Size};
use kendall_testbed::{LIMIT, Running, reset};

pub(crate) const MAX_BYTES: usize = 64;

/// The shared state of the test and the handler.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: AtomicBool,
    /// The number of chunks of each `hold`, by its weight.
    chunks: Mutex<BTreeMap<u64, u64>>,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    pub(crate) fn chunks(&self, weight: u64) -> u64 {
        self.chunks.lock().unwrap().get(&weight).copied().unwrap_or(0)
    }
}

/// Requests: `work N` counts to N, `hold W` lasts until the gate opens, with weight W, and so does `same W`, which
/// is equal to every other `same`; `all` answers all of these as well; `now` needs no work, `quit` closes, `panic`
/// panics. Each is a line, and so is each answer; a rejection is `no`.
#[derive(Default)]
pub(crate) struct Lines {
    gate: Arc<Gate>,
}

const SAME: &[u8] = b"same";
const BYE: &str = "bye";

pub(crate) enum Task {
    Work { done: u64, of: u64 },
    Hold { weight: u64 },
    All,
    Panic,
}

impl Handler for Lines {
    type Task = Task;
    type Answer = String;

    fn max_request_bytes(&self) -> usize {
        MAX_BYTES
    }

    fn decode(&self, bytes: &[u8]) -> Decoding<Self> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let text = std::str::from_utf8(&bytes[..end]).unwrap_or("");
        let (verb, number) = text.split_once(' ').unwrap_or((text, "0"));
        let number = number.parse().unwrap_or(0);
        let work = |weight, size, task| Decoded::work(end + 1, Job { weight, size, attained: 0.0 }, task);
        let hold = || work(number as f64, Size::Unknown, Task::Hold { weight: number });
        Ok(Some(match verb {
            "work" => work(1.0, Size::Exactly(number as f64), Task::Work { done: 0, of: number }),
            "hold" => hold(),
            "same" => hold().sharing(SAME.into()),
            "all" => work(99.0, Size::Unknown, Task::All),
            "panic" => work(1.0, Size::Unknown, Task::Panic),
            "now" => Decoded::answer(end + 1, "now".into()),
            "quit" => Decoded::answer(end + 1, BYE.into()),
            _ => return Err(Malformed),
        }))
    }

    fn advance(&self, task: &mut Task, turn: &mut Turn<String>) -> Step<String> {
        match task {
            Task::Work { done, of } => {
                let more = turn.units().min(*of - *done);
                *done += more;
                if done == of {
                    Step::Done(format!("done {of}"))
                } else {
                    Step::Continue { attained: more as f64 }
                }
            }
            Task::All => {
                turn.answer_besides(SAME.into(), "besides".into());
                Step::Done("all".into())
            }
            Task::Hold { .. } if self.gate.open.load(Ordering::SeqCst) => Step::Done("held".into()),
            Task::Hold { weight } => {
                sleep(Duration::from_millis(1));
                *self.gate.chunks.lock().unwrap().entry(*weight).or_default() += 1;
                Step::Continue { attained: 1.0 }
            }
            Task::Panic => panic!("as asked"),
        }
    }

    fn encode(&self, answer: String) -> Reply {
        let then = if answer == BYE { Then::Close } else { Then::Keep };
        Reply::new((answer + "\n").into_bytes(), then)
    }

    fn refusal(&self) -> String {
        "no".into()
    }
}

/// A server of lines, and its gate.
pub(crate) struct Server {
    running: Running,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) gate: Arc<Gate>,
}

pub(crate) fn config(workers: usize) -> Config {
    Config { workers: NonZeroUsize::new(workers).unwrap(), ..Config::new("127.0.0.1:0".parse().unwrap()) }
}

impl Server {
    pub(crate) fn new(config: Config) -> Self {
        let gate = Arc::new(Gate::default());
        let server = kendall_service::Server::bind(config, Lines { gate: Arc::clone(&gate) }).unwrap();
        let metrics = server.metrics_addr();
        Self { running: run(server), metrics, gate }
    }
}

/// Runs a server for the duration of a test.
pub(crate) fn run<S: System>(server: kendall_service::Server<S>) -> Running {
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run())
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

pub(crate) struct Peer(BufReader<TcpStream>);

impl Peer {
    pub(crate) fn connect(server: SocketAddr) -> Self {
        Self::over(TcpStream::connect(server).unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The next line; empty once the server has closed the connection, in order or with a reset.
    pub(crate) fn line(&mut self) -> String {
        let mut text = String::new();
        match self.0.read_line(&mut text) {
            Ok(_) => text.trim_end().into(),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => String::new(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Disconnects with a reset.
    pub(crate) fn reset(self) {
        reset(self.0.into_inner());
    }

    pub(crate) fn ask(&mut self, text: &str) -> String {
        self.send(text);
        self.line()
    }
}
