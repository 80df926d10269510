//! How late the generator sends, and what a request costs it.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use kendall_load::{
    AnswerRead, ConnectionKind, Dialog, Dialogs, Plan, Progress, Request, RequestClass, Reuse, Route,
    RowBatches, RunSummary, Timing, Wire, Workload, run,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::Arrivals;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{ROUNDS, median, ratio};

const RATES_PER_S: [f64; 2] = [5_000.0, 20_000.0];
const ROUND: Duration = Duration::from_secs(3);
/// A request and an answer of hash reversal, for their sizes.
const REQUEST_BYTES: usize = 49;
const ANSWER_BYTES: usize = 8;

/// How late requests are sent at a constant rate, against a server that answers at once.
pub(crate) fn section(page: &mut String) {
    let server = serve();
    page.push_str(
        "\n## The generator\n\nOpen loop, constant rate, 50 kept connections, a server on the same machine that answers \
         8 bytes to 49 at once. Lags count from the instant a request was due. *Begun*: until the generator came to \
         it, for requests that found a free connection. *Sent*: until just before its first byte was handed to the \
         kernel, for all requests, with any wait for a connection and the opening of the first ones. The other side \
         is a loop woken by tokio's own timer, as load generators built on an asynchronous runtime are; it only wakes \
         and sends nothing, and the ratios are to the lag of *sent*. Precise, the generator spins for the last tens of µs and costs up to \
         a core.\n\n\
         | rate, 1/s | timing | begun p50, µs | p99, µs | sent p50, µs | p99, µs | tokio timer p50, µs | p99, µs | ratio p50 | ratio p99 | waited for a connection | CPU per request, µs | rate reached |\n\
         | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let ways = [(Timing::Sleep, "sleep"), (Timing::Precise, "precise")];
    for (rate_per_s, (timing, name)) in RATES_PER_S.iter().flat_map(|&rate| ways.map(|way| (rate, way))) {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for round in 0..ROUNDS {
            ours.push(send(server, rate_per_s, timing, round as u64));
            theirs.push(tokio_lags_ns(rate_per_s));
        }
        let us = |ns: f64| ns / 1e3;
        let run_of = |value: fn(&RunSummary) -> f64| median(ours.iter().map(|(run, _)| value(run)));
        let (b50, b99) = (run_of(|run| run.lag.p50_ns as f64), run_of(|run| run.lag.p99_ns as f64));
        let (s50, s99) = medians(ours.iter().map(|(_, sent)| *sent));
        let (t50, t99) = medians(theirs.into_iter());
        let _ = writeln!(
            page,
            "| {rate_per_s} | {name} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.0} | 1 : {} | 1 : {} | {:.2} % | {:.1} | {:.1} % |",
            us(b50),
            us(b99),
            us(s50),
            us(s99),
            us(t50),
            us(t99),
            ratio(t50 / s50),
            ratio(t99 / s99),
            run_of(|run| run.waited_for_connection as f64 / run.sent as f64) * 100.0,
            run_of(|run| run.cpu_per_request_s() * 1e6),
            run_of(|run| run.count(Outcome::Answered) as f64 / run.wall_s) / rate_per_s * 100.0,
        );
    }
}

/// One run, and the lags of what it sent.
fn send(server: SocketAddr, rate_per_s: f64, timing: Timing, seed: u64) -> (RunSummary, Lags) {
    let plan = Plan { connections: 50, timing, ..Plan::lasting(Arrivals::constant(rate_per_s), ROUND, seed) };
    // The generator gets its own thread, as it has in an experiment.
    let ping = Ping(server);
    let generator = thread::spawn(move || {
        let lag_ns = |row: RequestRow| row.send_lag_ns().map(|ns| ns as f64);
        let collect = |rows: RowBatches| lags(rows.flatten().filter_map(lag_ns).collect());
        run(&plan, &ping, &Progress::default(), &AtomicBool::new(false), collect)
            .expect("the generator can be set up")
    });
    let (run, lags) = generator.join().expect("the generator does not panic");
    assert_eq!(run.count(Outcome::Answered), run.sent, "the server answers everything");
    (run, lags)
}

/// Median and 99th percentile, in nanoseconds.
type Lags = (f64, f64);

fn lags(mut lags_ns: Vec<f64>) -> Lags {
    lags_ns.sort_by(f64::total_cmp);
    (lags_ns[lags_ns.len() / 2], lags_ns[lags_ns.len() * 99 / 100])
}

/// The median of each over the rounds.
fn medians(rounds: impl Iterator<Item = Lags> + Clone) -> Lags {
    (median(rounds.clone().map(|lags| lags.0)), median(rounds.map(|lags| lags.1)))
}

/// How late tokio's timer wakes.
fn tokio_lags_ns(rate_per_s: f64) -> Lags {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let start = tokio::time::Instant::now();
        let count = (rate_per_s * ROUND.as_secs_f64() / 2.0) as u32;
        let mut lags_ns = Vec::with_capacity(count as usize);
        for i in 1..=count {
            let due = start + Duration::from_secs_f64(f64::from(i) / rate_per_s);
            tokio::time::sleep_until(due).await;
            lags_ns.push(due.elapsed().as_nanos() as f64);
        }
        lags(lags_ns)
    })
}

/// A server that answers 8 bytes to 49, on its own thread.
fn serve() -> SocketAddr {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            send.send(listener.local_addr().expect("it is bound")).expect("the caller waits for it");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        });
    });
    receive.recv().expect("the server starts")
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; REQUEST_BYTES];
    loop {
        stream.read_exact(&mut request).await?;
        stream.write_all(&request[..ANSWER_BYTES]).await?;
    }
}

struct Ping(SocketAddr);

impl Workload for Ping {
    fn request(&self, index: u64) -> Request {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..ANSWER_BYTES].copy_from_slice(&index.to_be_bytes());
        Request::new(0, Bytes::copy_from_slice(&bytes))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Bytes(Wire { to: self.0, kind: ConnectionKind::TCP, reuse: Reuse::Keep }, self)
    }
}

impl Dialogs for Ping {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Pong([0; ANSWER_BYTES]))
    }
}

/// Expects the first bytes of the request back.
struct Pong([u8; ANSWER_BYTES]);

impl Dialog for Pong {
    fn begin(&mut self, index: u64, _: &Request) {
        self.0 = index.to_be_bytes();
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let Some(answer) = bytes.first_chunk::<ANSWER_BYTES>() else { return AnswerRead::More { used: 0 } };
        let outcome = if *answer == self.0 { Outcome::Answered } else { Outcome::Wrong };
        AnswerRead::Done { used: ANSWER_BYTES, outcome, reuse: Reuse::Keep }
    }
}
