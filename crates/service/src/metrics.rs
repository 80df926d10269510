//! The counters of the server, under their Prometheus names.
//!
//! Two sums hold whenever nothing changes: requests received = requests ended + waiting + in service, and
//! connections accepted = connections closed + connections open.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::station::{Denied, Levels};

/// How a completely received request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The request was answered.
    Answered,
    /// The station was full.
    QueueFull,
    /// The server was shutting down.
    Shutdown,
    /// The client disconnected first.
    Cancelled,
    /// The handler panicked.
    Crashed,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The connection ended between two requests, by the client or after the last answer.
    Finished,
    /// The client ended the connection in the middle of a request.
    Incomplete,
    /// The client ended the connection before the answer, or the network failed.
    Reset,
    /// The client sent or read too little for too long.
    Deadline,
    /// The bytes were not a request.
    Malformed,
    /// There was no space for the body of a request.
    NoPlace,
    /// An answer that had begun could not continue.
    CutShort,
    /// Too many connections were open.
    ConnectionLimit,
    /// The process had no file descriptor left.
    Descriptors,
    /// The server shut down before a request arrived.
    Shutdown,
    /// The client of a session was silent for too long.
    Idle,
    /// The client of a session read its messages too slowly.
    Overrun,
}

impl From<Denied> for Fate {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Full => Self::QueueFull,
            Denied::Closing => Self::Shutdown,
        }
    }
}

const SECOND_NS: f64 = 1e9;

type Labelled = Family<[(&'static str, &'static str); 1], Counter>;

/// All counters of the server.
#[derive(Debug)]
pub(crate) struct Meters {
    registry: Registry,
    requests: Labelled,
    endings: Labelled,
    /// Requests received completely, except for their bodies.
    pub(crate) received: Counter,
    /// Connections accepted.
    pub(crate) accepted: Counter,
    /// Connections open now.
    pub(crate) open: Gauge,
    /// Requests that joined an equal one.
    pub(crate) joined: Counter,
    /// Services interrupted for another request.
    pub(crate) preemptions: Counter,
    /// Stamps that the writer could not accept in time.
    pub(crate) stamps_dropped: Counter,
    waiting: Gauge,
    busy: Gauge,
    waiting_s: Histogram,
    service_s: Histogram,
    response_s: Histogram,
    /// Bytes of bodies, in and out.
    pub(crate) body_bytes: Counter,
    pub(crate) stream_bytes: Counter,
    body_s: Histogram,
    stream_s: Histogram,
}

/// The three times of an answered request, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// From queued to finished.
    pub(crate) response_ns: i64,
    /// In service.
    pub(crate) service_ns: i64,
}

impl Meters {
    /// All counters at zero; `register` adds those of the handler.
    pub(crate) fn new(workers: usize, register: impl FnOnce(&mut Registry)) -> Self {
        // From 10 µs in steps of two to 84 s.
        let times = || Histogram::new(exponential_buckets(1e-5, 2.0, 24));
        let mut meters = Self {
            registry: Registry::with_prefix("kendall"),
            requests: Labelled::default(),
            endings: Labelled::default(),
            received: Counter::default(),
            accepted: Counter::default(),
            open: Gauge::default(),
            joined: Counter::default(),
            preemptions: Counter::default(),
            stamps_dropped: Counter::default(),
            waiting: Gauge::default(),
            busy: Gauge::default(),
            waiting_s: times(),
            service_s: times(),
            response_s: times(),
            body_bytes: Counter::default(),
            stream_bytes: Counter::default(),
            body_s: times(),
            stream_s: times(),
        };
        meters.register_all(workers);
        register(&mut meters.registry);
        meters
    }

    fn register_all(&mut self, workers: usize) {
        let configured: Gauge = Gauge::default();
        configured.set(i64::try_from(workers).unwrap_or(i64::MAX));
        let to = &mut self.registry;
        to.register(
            "requests_received",
            "Requests received completely, except for their bodies",
            self.received.clone(),
        );
        to.register("requests", "Requests that ended, by outcome", self.requests.clone());
        to.register("connections_accepted", "Connections accepted", self.accepted.clone());
        to.register("connections_closed", "Connections closed, by reason", self.endings.clone());
        to.register("connections_open", "Connections open now", self.open.clone());
        to.register("requests_waiting", "Requests waiting for a worker", self.waiting.clone());
        to.register("workers_busy", "Workers serving a request", self.busy.clone());
        to.register("workers", "Workers", configured);
        to.register("requests_joined", "Requests that joined an equal request", self.joined.clone());
        to.register("preemptions", "Services interrupted for another request", self.preemptions.clone());
        to.register("stamps_dropped", "Stamps lost to a slow disk", self.stamps_dropped.clone());
        to.register("waiting_seconds", "Time not in service, of answered requests", self.waiting_s.clone());
        to.register("service_seconds", "Time in service, of answered requests", self.service_s.clone());
        to.register(
            "response_seconds",
            "From arrival to the answer, bodies excluded",
            self.response_s.clone(),
        );
        to.register("body_bytes", "Bytes of the bodies of requests", self.body_bytes.clone());
        to.register("stream_bytes", "Bytes of answers that were streamed", self.stream_bytes.clone());
        to.register("body_seconds", "From a request's arrival to the end of its body", self.body_s.clone());
        to.register(
            "stream_seconds",
            "From the start of a streamed answer to its end",
            self.stream_s.clone(),
        );
        for fate in [Fate::Answered, Fate::QueueFull, Fate::Shutdown, Fate::Cancelled, Fate::Crashed] {
            let _ = self.requests.get_or_create(&fate.label());
        }
    }

    /// Counts a request that ended.
    pub(crate) fn ended(&self, fate: Fate) {
        self.requests.get_or_create(&fate.label()).inc();
    }

    /// Counts a request that was answered, with its times.
    pub(crate) fn answered(&self, times: Times) {
        self.ended(Fate::Answered);
        self.response_s.observe(times.response_ns as f64 / SECOND_NS);
        self.service_s.observe(times.service_ns as f64 / SECOND_NS);
        self.waiting_s.observe((times.response_ns - times.service_ns) as f64 / SECOND_NS);
    }

    /// Counts a body that arrived completely.
    pub(crate) fn body_came(&self, took_ns: i64) {
        self.body_s.observe(took_ns as f64 / SECOND_NS);
    }

    /// Counts an answer that was streamed to its end.
    pub(crate) fn streamed(&self, took_ns: i64) {
        self.stream_s.observe(took_ns as f64 / SECOND_NS);
    }

    /// Counts a connection that ended.
    pub(crate) fn closed(&self, ending: Ending) {
        self.endings.get_or_create(&ending.label()).inc();
    }

    /// All metrics in the text format of OpenMetrics 1.0, which Prometheus reads.
    pub(crate) fn text(&self, levels: Levels) -> String {
        self.waiting.set(i64::try_from(levels.waiting).unwrap_or(i64::MAX));
        self.busy.set(i64::try_from(levels.busy).unwrap_or(i64::MAX));
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

impl Fate {
    fn label(self) -> [(&'static str, &'static str); 1] {
        let name = match self {
            Self::Answered => "answered",
            Self::QueueFull => "queue-full",
            Self::Shutdown => "shutdown",
            Self::Cancelled => "cancelled",
            Self::Crashed => "crashed",
        };
        [("outcome", name)]
    }
}

impl Ending {
    fn label(self) -> [(&'static str, &'static str); 1] {
        let name = match self {
            Self::Finished => "finished",
            Self::Incomplete => "incomplete",
            Self::Reset => "reset",
            Self::Deadline => "deadline",
            Self::Malformed => "malformed",
            Self::NoPlace => "no-place",
            Self::CutShort => "cut-short",
            Self::ConnectionLimit => "connection-limit",
            Self::Descriptors => "descriptors",
            Self::Shutdown => "shutdown",
            Self::Idle => "idle",
            Self::Overrun => "overrun",
        };
        [("reason", name)]
    }
}
