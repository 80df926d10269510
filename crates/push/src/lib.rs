//! Sends the live state of a run to OpenTelemetry (OTLP over HTTP, as JSON) and to receivers of Prometheus' remote write.
//!
//! A separate thread for each receiver reads `live.json` in the run's folder, as any other reader does, so the load does not
//! depend on it: a slow or missing receiver costs samples, which are counted, but no requests. The queue of unsent samples has a
//! limit. This crate computes only running totals.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
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

/// The time between two reads of the live state.
const EVERY: Duration = Duration::from_millis(500);
/// The most samples in one message.
const BATCH: usize = 120;
/// The time limit for sending the remaining samples once the run is over.
const AT_THE_END: Duration = Duration::from_secs(3);

/// The reason why samples cannot be sent to a receiver.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The address is not valid.
    #[error("{0:?} is not a valid address to send to; write http://HOST:PORT/PATH")]
    Url(String),
    /// The address contains a user or a password.
    #[error(
        "cannot send to {url} with a user or a password in the address: kendall sends neither; remove them, and name a receiver \
         or a proxy that needs none"
    )]
    Credentials {
        /// The receiver, without both.
        url: String,
    },
    /// No thread or socket is available.
    #[error("cannot begin to send to {url}: {source}")]
    Start {
        /// The receiver.
        url: String,
        /// The error.
        source: std::io::Error,
    },
}

/// A receiver, and the format that it takes.
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
    /// Fails where the address is not an http address, or contains a user or a password.
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
    /// Fails where the address is not an http address, or contains a user or a password.
    pub fn remote_write(url: &str) -> Result<Self, PushError> {
        Ok(Self { form: Form::RemoteWrite, url: read(url)? })
    }
}

fn read(text: &str) -> Result<Url, PushError> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "http" && url.has_host());
    let url = url.ok_or_else(|| PushError::Url(text.to_owned()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(PushError::Credentials { url: shown(&url) });
    }
    Ok(url)
}

/// An address without its user and its query, which may be secret.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // Both fail only for an address without a host.
    let _ = shown.set_username("").and_then(|()| shown.set_password(None));
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// The labels of the run in every sample: names and values.
pub type Labels = Vec<(String, String)>;

/// The queue of samples for a receiver.
#[derive(Debug)]
pub struct Push {
    thread: JoinHandle<PushSummary>,
    stop: mpsc::Sender<()>,
}

/// The result of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSummary {
    /// The receiver.
    pub url: String,
    /// The number of samples that the receiver accepted.
    pub sent: u64,
    /// The number of dropped samples.
    pub dropped: u64,
    /// The error of the last failed attempt.
    pub why: Option<String>,
}

impl Push {
    /// Starts to send the live state of the run in a folder, which this process makes.
    ///
    /// # Errors
    /// Fails where no thread or socket is available.
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

    /// Sends the remaining samples, for some seconds at most, and returns the result.
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
    /// This process, as the live state identifies it.
    own: Process,
    labels: Labels,
    queue: Queue,
    why: Option<String>,
}

impl Sender {
    fn run(mut self, stopped: &mpsc::Receiver<()>) -> PushSummary {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
            self.read_samples();
            self.send(Instant::now() + EVERY);
        }
        self.read_samples();
        let until = Instant::now() + AT_THE_END;
        while !self.queue.is_empty() && Instant::now() < until {
            if !self.send(until) {
                thread::sleep(EVERY.min(until.saturating_duration_since(Instant::now())));
            }
        }
        let (sent, dropped) = self.queue.give_up();
        PushSummary { url: shown(self.poster.url()), sent, dropped, why: self.why }
    }

    /// Adds the samples since the last read to the queue. A file that does not exist yet, is not readable, or comes from an
    /// earlier process adds nothing.
    fn read_samples(&mut self) {
        if let Ok(live) = Live::read(&self.run)
            && live.process == self.own
        {
            self.queue.take_up(&live);
        }
    }

    /// Sends queued samples until an instant. Returns whether every attempt is settled.
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
