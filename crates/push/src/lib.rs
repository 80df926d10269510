//! Sends what a run says of itself, while it goes on, to OpenTelemetry (OTLP over HTTP, as JSON) and to whatever takes
//! Prometheus' remote write.
//!
//! It reads `live.json` in the run's folder as any other watcher does, on its own thread for each receiver, so the load
//! knows nothing of it: a receiver that is slow or gone costs samples, which are counted, and never a request. What waits to
//! be sent is bounded. It decides nothing and computes nothing but running totals.

mod otlp;
mod post;
mod queue;
mod remote_write;
mod series;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_archive::live::{Live, Process};
use url::Url;

use post::{Posted, Poster};
use queue::Queue;

/// How often a run is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// Samples in one message at most.
const BATCH: usize = 120;
/// How long what is left may take to be sent when the run is over.
const AT_THE_END: Duration = Duration::from_secs(3);

/// Why something cannot be sent there.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The address cannot be read.
    #[error("{0:?} is no address to send to; write http://HOST:PORT/PATH")]
    Url(String),
    /// There is no thread or socket to be had.
    #[error("cannot begin to send to {url}: {source}")]
    Start {
        /// Where to.
        url: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Where samples go, and in which form.
#[derive(Clone, Debug)]
pub struct Target {
    form: Form,
    url: Url,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Otlp,
    RemoteWrite,
}

impl Target {
    /// A receiver of OpenTelemetry's metrics: `http://127.0.0.1:4318`, where `/v1/metrics` is added to a bare address.
    ///
    /// # Errors
    /// Fails on what is no http address.
    pub fn otlp(url: &str) -> Result<Self, PushError> {
        let mut url = read(url)?;
        if url.path() == "/" {
            url.set_path("/v1/metrics");
        }
        Ok(Self { form: Form::Otlp, url })
    }

    /// A receiver of Prometheus' remote write: `http://127.0.0.1:9090/api/v1/write`.
    ///
    /// # Errors
    /// Fails on what is no http address.
    pub fn remote_write(url: &str) -> Result<Self, PushError> {
        Ok(Self { form: Form::RemoteWrite, url: read(url)? })
    }
}

fn read(text: &str) -> Result<Url, PushError> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "http" && url.has_host());
    url.ok_or_else(|| PushError::Url(text.to_owned()))
}

/// An address without its user and its query, which may hold secrets.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // Both fail only for an address without a host.
    let _ = shown.set_username("").and_then(|()| shown.set_password(None));
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// What is said of a run with every sample: names and values.
pub type Labels = Vec<(String, String)>;

/// Samples on their way to a receiver.
#[derive(Debug)]
pub struct Push {
    thread: JoinHandle<PushSummary>,
    stop: mpsc::Sender<()>,
}

/// What became of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSummary {
    /// Where they went.
    pub url: String,
    /// Samples that the receiver took.
    pub sent: u64,
    /// Samples that it did not.
    pub dropped: u64,
    /// Why the last attempt that failed did.
    pub why: Option<String>,
}

impl Push {
    /// Begins to send what the run in a folder, which this process makes, says of itself.
    ///
    /// # Errors
    /// Fails where there is no thread or socket to be had.
    pub fn start(target: Target, run: &Path, labels: Labels) -> Result<Self, PushError> {
        let (stop, stopped) = mpsc::channel();
        let failed = |url: &Url| {
            let url = shown(url);
            |source| PushError::Start { url, source }
        };
        let poster = Poster::new(target.url.clone()).map_err(failed(&target.url))?;
        let sender = Sender {
            form: target.form,
            poster,
            run: run.into(),
            own: Process::here(),
            labels,
            queue: Queue::default(),
            why: None,
        };
        let builder = thread::Builder::new().name("push".to_owned());
        let thread = builder.spawn(move || sender.run(&stopped)).map_err(failed(&target.url))?;
        Ok(Self { thread, stop })
    }

    /// Sends what is left, for some seconds at most, and says what became of all.
    pub fn end(self) -> PushSummary {
        drop(self.stop);
        self.thread.join().expect("the thread that sends handles every error")
    }
}

impl fmt::Display for PushSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sent {} samples to {}", self.sent, self.url)?;
        if self.dropped > 0 {
            write!(f, "; {} were dropped", self.dropped)?;
        }
        self.why.iter().try_for_each(|why| write!(f, "; an attempt failed: {why}"))
    }
}

struct Sender {
    form: Form,
    poster: Poster,
    run: PathBuf,
    /// This process, as the run names it.
    own: Process,
    labels: Labels,
    queue: Queue,
    why: Option<String>,
}

impl Sender {
    fn run(mut self, stopped: &mpsc::Receiver<()>) -> PushSummary {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
            self.look();
            self.send(Instant::now() + EVERY);
        }
        self.look();
        let until = Instant::now() + AT_THE_END;
        while !self.queue.is_empty() && Instant::now() < until {
            if !self.send(until) {
                thread::sleep(EVERY.min(until.saturating_duration_since(Instant::now())));
            }
        }
        let (sent, dropped) = self.queue.give_up();
        PushSummary { url: shown(self.poster.url()), sent, dropped, why: self.why }
    }

    /// Takes up what the run has said since the last look. A file that is not there yet or cannot be read says nothing, nor does
    /// one that an earlier process has left.
    fn look(&mut self) {
        if let Ok(live) = Live::read(&self.run)
            && live.process == self.own
        {
            self.queue.take_up(&live);
        }
    }

    /// Sends what waits, until an instant at most. Says whether all that was tried is settled.
    fn send(&mut self, until: Instant) -> bool {
        while !self.queue.is_empty() && Instant::now() < until {
            let batch = self.queue.first(BATCH);
            let posted = match self.form {
                Form::Otlp => {
                    let message = otlp::message(&batch, &self.labels, self.queue.began_ns());
                    self.poster.post(otlp::HEADERS, message)
                }
                Form::RemoteWrite => {
                    let message = remote_write::message(&batch, &self.labels);
                    self.poster.post(remote_write::HEADERS, message)
                }
            };
            let count = batch.len();
            match posted {
                Posted::Taken => self.queue.taken(count),
                Posted::Refused(why) => {
                    self.queue.refused(count);
                    self.why = Some(why);
                }
                Posted::Later(why) => {
                    self.why = Some(why);
                    return false;
                }
            }
        }
        true
    }
}
