//! The workload of the tests, over both drivers, and small servers for it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use kendall_load::{
    AnswerRead, Connect, Connection, ConnectionKind, Dialog, Dialogs, Exchange, LocalFuture, Plan, Progress,
    Request, RequestClass, Reuse, Route, RunSummary, Stamps, Wire, Workload, run,
};
use kendall_record::clock::now_ns;
use kendall_record::{Outcome, RequestRow};
use kendall_station::Arrivals;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends the request's number, and expects it back.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    pub(crate) kind: ConnectionKind,
    pub(crate) reuse: Reuse,
    pub(crate) driver: Driver,
    /// The generator's thread pauses as it reads the answer to this request, for this time.
    pub(crate) pause: Option<(u64, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Driver {
    Poll,
    Task,
}

impl Workload for Echo {
    fn request(&self, index: u64) -> Request {
        Request::new(0, Bytes::copy_from_slice(&index.to_be_bytes()))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        let (kind, reuse) = (self.kind.clone(), self.reuse);
        match self.driver {
            Driver::Poll => Route::Bytes(Wire { to: self.address, kind, reuse }, self),
            Driver::Task => Route::Tasks(self),
        }
    }
}

impl Dialogs for Echo {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(EchoDialog { asked: 0, pause: self.pause })
    }
}

struct EchoDialog {
    asked: u64,
    pause: Option<(u64, Duration)>,
}

impl Dialog for EchoDialog {
    fn begin(&mut self, index: u64, _: &Request) {
        self.asked = index;
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        match bytes.first_chunk() {
            None => AnswerRead::More { used: 0 },
            Some(answer) => AnswerRead::Done {
                used: 8,
                outcome: judge(self.asked, *answer, self.pause),
                reuse: Reuse::Keep,
            },
        }
    }
}

fn judge(index: u64, answer: [u8; 8], pause: Option<(u64, Duration)>) -> Outcome {
    if let Some((_, time)) = pause.filter(|(at, _)| *at == index) {
        thread::sleep(time);
    }
    if u64::from_be_bytes(answer) == index { Outcome::Answered } else { Outcome::Wrong }
}

impl Connect for Echo {
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async {
            let stream = tokio::net::TcpStream::connect(self.address).await?;
            let port = stream.local_addr()?.port();
            Ok(Box::new(EchoConnection { stream, port, reuse: self.reuse, pause: self.pause })
                as Box<dyn Connection>)
        })
    }
}

struct EchoConnection {
    stream: tokio::net::TcpStream,
    port: u16,
    reuse: Reuse,
    pause: Option<(u64, Duration)>,
}

impl Connection for EchoConnection {
    fn port(&self) -> u16 {
        self.port
    }

    fn exchange<'a>(
        &'a mut self,
        index: u64,
        request: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async move {
            stamps.sent = Some(now_ns());
            let answer = self.ask(&request.bytes, stamps).await;
            stamps.completed = Some(now_ns());
            match answer {
                Ok(answer) => Exchange { outcome: judge(index, answer, self.pause), reuse: self.reuse },
                Err(_) => Exchange { outcome: Outcome::Refused, reuse: Reuse::Close },
            }
        })
    }

    fn is_open(&mut self) -> bool {
        self.stream.read(&mut [0]).now_or_never().is_none()
    }
}

impl EchoConnection {
    async fn ask(&mut self, request: &[u8], stamps: &mut Stamps) -> io::Result<[u8; 8]> {
        self.stream.write_all(request).await?;
        stamps.bytes_out = request.len() as u64;
        let mut answer = [0; 8];
        self.stream.read_exact(&mut answer).await?;
        stamps.first_byte = Some(now_ns());
        stamps.bytes_in = 8;
        Ok(answer)
    }
}

/// A server with a thread for each connection; a function handles each request. Ends with the process.
pub(crate) fn server(
    serve: impl Fn(&mut TcpStream, u64) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, serve) = (stream.unwrap(), serve.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let mut request = [0; 8];
                while stream.read_exact(&mut request).is_ok() {
                    if serve(&mut stream, u64::from_be_bytes(request)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

pub(crate) fn echo() -> SocketAddr {
    server(|stream, index| stream.write_all(&index.to_be_bytes()))
}

pub(crate) fn over(driver: Driver, address: SocketAddr) -> Echo {
    Echo { address, kind: ConnectionKind::TCP, reuse: Reuse::Keep, driver, pause: None }
}

pub(crate) fn plan(arrivals: Arrivals, ms: u64) -> Plan {
    Plan { drain: Duration::from_secs(1), ..Plan::lasting(arrivals, Duration::from_millis(ms), 7) }
}

/// Runs a plan and collects its rows.
pub(crate) fn run_all(
    plan: &Plan,
    workload: &dyn Workload,
    progress: &Progress,
    cancel: &AtomicBool,
) -> (RunSummary, Vec<RequestRow>) {
    run(plan, workload, progress, cancel, |rows| rows.flatten().collect()).unwrap()
}

/// Runs a plan and checks the invariants of every run: each request that was due ends exactly once.
pub(crate) fn rows(plan: &Plan, workload: &Echo) -> (Vec<RequestRow>, RunSummary) {
    let progress = Progress::default();
    let (summary, mut rows) = run_all(plan, workload, &progress, &AtomicBool::new(false));
    assert_eq!(summary.sent, rows.len() as u64);
    assert_eq!(summary.sent, summary.ended.iter().sum::<u64>());
    assert_eq!(summary.sent, progress.ended.load(Ordering::Relaxed));
    for (outcome, count) in Outcome::ALL.iter().zip(summary.ended) {
        assert_eq!(count, rows.iter().filter(|row| row.outcome == *outcome).count() as u64);
    }
    rows.sort_by_key(|row| row.index);
    assert!(rows.iter().zip(0..).all(|(row, index)| row.index == index), "each number once");
    for lag in [summary.lag, summary.send_lag, summary.wait_for_connection] {
        assert!(lag.p50_ns <= lag.p99_ns && lag.p99_ns <= lag.max_ns, "{lag:?}");
    }
    // Little's law: two counts of the same sum.
    let little = summary.little;
    assert!((little.in_system_s - little.responses_s).abs() <= 1e-9 * little.responses_s, "{little:?}");
    assert_eq!(progress.in_flight.load(Ordering::Relaxed), 0);
    assert_eq!(progress.waiting.load(Ordering::Relaxed), 0);
    let watched: u64 = Outcome::ALL.iter().map(|&outcome| progress.count(outcome)).sum();
    assert_eq!(summary.sent, watched);
    let seen = progress.take_responses().map_or(0, |responses| responses.len());
    assert_eq!(seen, summary.count(Outcome::Answered) + summary.count(Outcome::Wrong));
    assert!(progress.take_responses().is_none(), "they are taken once");
    (rows, summary)
}
