//! The load of an experiment: turns its parameters into arrivals, an end and limits.

mod stages;
mod table;
pub(crate) mod trace;

use std::path::Path;
use std::time::Duration;

use kendall_evidence::streamed::Warmup;
use kendall_load::{Plan, Route, Timing, Workload};
use kendall_station::{Arrivals, Batch, Law, Sessions, Spacing};

use kendall_system::Settings;
use kendall_system::Value;

pub use table::LOAD;
use table::{gap_kind, timing};

/// The load of one combination, with its values checked against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The arrivals.
    pub schedule: Schedule,
    /// Stop after this many requests.
    pub requests: Option<u64>,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// The first part of a trial, which its answer leaves out.
    pub warmup: Warmup,
    /// The time-out of a request.
    pub timeout: Duration,
    /// The time to wait for answers at the end.
    pub drain: Duration,
    /// The most connections.
    pub connections: u32,
    /// How to wait for the next send.
    pub timing: Timing,
    /// The one core to run on.
    pub core: Option<u32>,
    /// The threads that send.
    pub threads: Threads,
}

/// The number of threads that send the requests of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// This many.
    Number(u32),
    /// One for each core that the server leaves free, at least one.
    Auto,
}

impl Default for Threads {
    fn default() -> Self {
        Self::Number(1)
    }
}

impl Threads {
    /// The number of threads by the settings of a load.
    pub fn of(settings: &Settings) -> Self {
        settings.word("generator-threads").and_then(table::threads).unwrap_or_default()
    }

    /// The number of threads over a workload, where the generator has these cores and at most this many threads have a
    /// connection and a user each. Users who hold a session need one thread, which `auto` then chooses.
    pub fn number(self, cores: Cores, most: u32, workload: &dyn Workload) -> u32 {
        match self {
            Self::Number(threads) => threads.min(most),
            Self::Auto if matches!(workload.route(), Route::Sessions(..)) => 1,
            Self::Auto => cores.free().min(most).min(table::THREADS_AT_MOST),
        }
    }
}

/// The cores of a machine for the generator and, if it is on the same machine, the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The cores that this process may use.
    pub all: u32,
    /// How many of them the server uses.
    pub server: ServerCores,
}

/// The cores that a server uses of the machine that the generator runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCores {
    /// At most this many; 0 for a server on another machine.
    Known(u32),
    /// The server is on the same machine, and the number of its threads is not known.
    Unknown,
}

impl Cores {
    /// The cores that the server leaves free, at least 1: half of all cores if its use of them is not known.
    pub fn free(self) -> u32 {
        let free = match self.server {
            ServerCores::Known(cores) => self.all.saturating_sub(cores),
            ServerCores::Unknown => self.all / 2,
        };
        free.max(1)
    }
}

/// The arrivals, as far as they are known before the capacity is.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// At a rate per second, given arrivals of one a second.
    Rate(f64, Arrivals),
    /// At a share of the capacity, given arrivals of one a second.
    Share(f64, Arrivals),
    /// The arrivals are fixed: a trace, stages or a closed population.
    Fixed(Arrivals),
}

/// The most sessions that may be expected to think at a time; each takes some 60 bytes.
const SESSIONS_AT_MOST: f64 = 1e6;

/// The form in which an experiment gives its load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadKind {
    Gaps,
    Stages,
    Trace,
    Closed,
    ClosedStages,
    Sessions,
}

impl LoadKind {
    fn of(arrivals: &str, settings: &Settings) -> Self {
        match arrivals {
            "closed" if settings.get("stages").is_some() => Self::ClosedStages,
            "closed" => Self::Closed,
            "trace" => Self::Trace,
            "sessions" => Self::Sessions,
            _ if settings.get("stages").is_some() => Self::Stages,
            _ => Self::Gaps,
        }
    }

    /// Whether a parameter applies to this kind of load.
    fn takes(self, name: &str) -> bool {
        match name {
            "rate" | "capacity" => matches!(self, Self::Gaps | Self::Sessions),
            "gap" | "arrivals-scv" => self == Self::Gaps,
            "stages" => matches!(self, Self::Stages | Self::ClosedStages),
            "trace" | "trace-column" | "trace-ties" | "speed" => self == Self::Trace,
            "users" => self == Self::Closed,
            "requests-per-session" | "session-law" => self == Self::Sessions,
            _ => true,
        }
    }

    /// The schedule of this kind of load.
    fn schedule(
        self,
        arrivals: &str,
        settings: &Settings,
        folder: &Path,
    ) -> Result<Schedule, (&'static str, String)> {
        Ok(match self {
            Self::Closed => Schedule::Fixed(closed(settings)?),
            Self::ClosedStages => {
                let text = settings.word("stages").expect("there are stages");
                let users = stages::read_users(text, think(settings)).map_err(|why| ("stages", why))?;
                let cut = |time: Duration| users.until(time.as_secs_f64());
                Schedule::Fixed(Arrivals::Attended(
                    settings.time("duration").map_or_else(|| users.clone(), cut),
                ))
            }
            Self::Trace => Schedule::Fixed(trace(settings, folder)?),
            Self::Sessions => sessions(settings)?,
            Self::Stages => Schedule::Fixed(staged(arrivals, settings)?),
            Self::Gaps => {
                let kind = gap_kind(arrivals).map_err(|message| ("arrivals", message))?;
                let scv = settings.number("arrivals-scv").filter(|_| kind.takes_scv());
                let gap =
                    kind.law(1.0, scv).map_err(|error| ("arrivals", format!("{error}; see arrivals-scv")))?;
                open(arrivals, gap, settings)?
            }
        })
    }
}

impl Load {
    /// Reads the load from its parameters. Paths are relative to `folder`.
    ///
    /// # Errors
    /// Returns the name of the missing or invalid parameter, and the reason.
    pub fn new(settings: &Settings, folder: &Path) -> Result<Self, (&'static str, String)> {
        let arrivals = settings.word("arrivals").expect("arrivals has a default");
        let kind = LoadKind::of(arrivals, settings);
        if let Some((name, _)) = settings.iter().find(|(name, _)| !kind.takes(name)) {
            let beside = if matches!(kind, LoadKind::Stages | LoadKind::ClosedStages) {
                "beside stages".into()
            } else {
                format!("with {arrivals} arrivals")
            };
            return Err((name, format!("has no effect {beside}; leave it out")));
        }
        if let Some(Value::Share(_)) = settings.get("capacity") {
            return Err((
                "capacity",
                "must be a rate, such as 100 or 2k: the capacity that 100 % stands for".into(),
            ));
        }
        let schedule = kind.schedule(arrivals, settings, folder)?;
        let (requests, duration) = (settings.whole("requests"), settings.time("duration"));
        let ends = matches!(&schedule, Schedule::Fixed(arrivals) if arrivals.ends_s().is_some());
        if requests.is_none() && duration.is_none() && !ends {
            return Err(("duration", "the load has no end; set duration or requests".into()));
        }
        if duration.is_some_and(|duration| duration.is_zero()) {
            return Err(("duration", "must be greater than 0, for example 10s".into()));
        }
        let connections = settings.whole("connections").expect("connections has a default") as u32;
        let most = most_threads(&schedule, connections);
        let time = |name| settings.time(name).expect("it has a default");
        Ok(Self {
            schedule,
            requests,
            duration,
            warmup: warmup(settings, duration)?,
            timeout: time("timeout"),
            drain: time("drain"),
            connections,
            timing: timing(settings.word("timing").expect("timing has a default")).unwrap_or_default(),
            core: settings.whole("core").map(|core| core as u32),
            threads: threads(settings, most)?,
        })
    }

    /// The arrivals, once the rate of 100 % is known.
    pub fn arrivals(&self, capacity_per_s: Option<f64>) -> Arrivals {
        let at = |rate_per_s, arrivals: &Arrivals| {
            arrivals.at_rate(rate_per_s).expect("streams and sessions can be of any rate")
        };
        match &self.schedule {
            Schedule::Rate(rate_per_s, arrivals) => at(*rate_per_s, arrivals),
            Schedule::Share(share, arrivals) => at(
                share * capacity_per_s.expect("a share of the capacity is asked for after calibration"),
                arrivals,
            ),
            Schedule::Fixed(arrivals) => arrivals.clone(),
        }
    }

    /// The number of threads that send over a workload, where the generator has these cores.
    pub fn threads(&self, cores: Cores, workload: &dyn Workload) -> u32 {
        self.threads.number(cores, most_threads(&self.schedule, self.connections), workload)
    }

    /// The plan of a run of this load by the given number of threads.
    pub fn plan(&self, capacity_per_s: Option<f64>, seed: u64, threads: u32) -> Plan {
        Plan {
            threads,
            requests: self.requests,
            duration: self.duration,
            timeout: self.timeout,
            drain: self.drain,
            connections: self.connections,
            timing: self.timing,
            core: self.core,
            ..Plan::lasting(self.arrivals(capacity_per_s), Duration::ZERO, seed)
        }
    }

    /// About how long a trial takes, warm-up included, drain excluded.
    pub fn expected(&self, capacity_per_s: Option<f64>) -> Duration {
        let arrivals = self.arrivals(capacity_per_s);
        let by_count = match (self.requests, &arrivals) {
            (_, arrivals) if arrivals.ends_s().is_some() => arrivals.ends_s(),
            (Some(requests), _) => arrivals.rate_per_s().map(|rate_per_s| requests as f64 / rate_per_s),
            (None, _) => None,
        };
        let by_count = by_count.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        match (self.duration, by_count) {
            (Some(a), Some(b)) => a.min(b),
            (Some(time), None) | (None, Some(time)) => time,
            (None, None) => Duration::ZERO,
        }
    }
}

/// The most threads that each have a connection and, in a closed population, a user.
fn most_threads(schedule: &Schedule, connections: u32) -> u32 {
    match schedule {
        Schedule::Fixed(Arrivals::Closed { population, .. }) => connections.min(*population),
        Schedule::Fixed(Arrivals::Attended(attendance)) => connections.min(attendance.most()),
        _ => connections,
    }
}

/// The threads that send, at most `most`.
fn threads(settings: &Settings, most: u32) -> Result<Threads, (&'static str, String)> {
    let threads = Threads::of(settings);
    if matches!(threads, Threads::Auto | Threads::Number(2..)) && settings.get("core").is_some() {
        return Err(("core", "is for one generator thread; leave it out with several".into()));
    }
    if matches!(threads, Threads::Number(threads) if threads > most) {
        let why = format!("must be at most {most}: each thread needs its own connection and its own user");
        return Err(("generator-threads", why));
    }
    Ok(threads)
}

/// The warm-up of a load of this duration. Times of more than 292 years, which 64 bits of nanoseconds cannot hold, become that.
fn warmup(settings: &Settings, duration: Option<Duration>) -> Result<Warmup, (&'static str, String)> {
    match settings.get("warmup") {
        Some(Value::Word(_)) if settings.get("stages").is_some() => {
            let why = "auto finds where a steady state begins, and stages have none; give a time";
            Err(("warmup", why.into()))
        }
        Some(Value::Word(_)) => Ok(Warmup::Auto),
        Some(Value::Time(time)) if duration.is_some_and(|duration| duration <= *time) => {
            Err(("warmup", "must be shorter than the duration".into()))
        }
        Some(Value::Time(time)) => Ok(Warmup::Until(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))),
        _ => Ok(Warmup::Until(0)),
    }
}

/// An open stream with the given rate or mean gap. `gap` is the law of its gaps, with mean 1.
fn open(name: &str, gap: Law, settings: &Settings) -> Result<Schedule, (&'static str, String)> {
    let once_a_second = Arrivals::Open { gap };
    match (settings.get("rate"), settings.time("gap")) {
        (Some(_), Some(_)) => Err(("gap", "sets the rate, and so does rate; leave one of them out".into())),
        (None, Some(mean)) if mean.is_zero() => {
            Err(("gap", "must be greater than 0; 1us sends practically everything at once".into()))
        }
        (None, Some(mean)) => Ok(Schedule::Rate(mean.as_secs_f64().recip(), once_a_second)),
        (Some(Value::Share(share)), None) => Ok(Schedule::Share(*share, once_a_second)),
        (Some(Value::Number(rate_per_s)), None) => Ok(Schedule::Rate(*rate_per_s, once_a_second)),
        _ => Err(("rate", format!("{name} arrivals need a rate, such as 20 or 50%, or a gap, such as 50ms"))),
    }
}

fn closed(settings: &Settings) -> Result<Arrivals, (&'static str, String)> {
    let Some(users) = settings.whole("users") else {
        return Err(("users", "closed arrivals need a number of users, such as 10".into()));
    };
    Ok(Arrivals::Closed { population: users as u32, think: think(settings) })
}

fn think(settings: &Settings) -> Law {
    let mean_s = settings.time("think").expect("think has a default").as_secs_f64();
    match settings.word("think-law") {
        Some("exponential") if mean_s > 0.0 => Law::Exponential { mean_s },
        _ => Law::Constant { mean_s },
    }
}

/// Sessions that start as a Poisson stream, at the rate that gives all their requests the set rate.
fn sessions(settings: &Settings) -> Result<Schedule, (&'static str, String)> {
    let Some(mean) = settings.number("requests-per-session") else {
        let why = "sessions need a number of requests, such as 5";
        return Err(("requests-per-session", why.into()));
    };
    let requests = match settings.word("session-law") {
        Some("constant") if mean.fract() == 0.0 => Batch::Fixed { size: mean as u32 },
        Some("constant") => {
            return Err((
                "requests-per-session",
                format!("must be a whole number where it is constant, not {mean}"),
            ));
        }
        _ => Batch::Geometric { mean },
    };
    let gap = Law::Exponential { mean_s: 1.0 };
    let sessions = Sessions { gap, requests, think: think(settings) };
    let once_a_second = Arrivals::Sessions(sessions.at_rate(1.0));
    match settings.get("rate") {
        Some(Value::Number(rate_per_s)) if sessions.at_rate(*rate_per_s).thinking() > SESSIONS_AT_MOST => {
            let why = format!(
                "would keep more than {SESSIONS_AT_MOST:.0} sessions thinking at a time; think less, or send less"
            );
            Err(("rate", why))
        }
        Some(Value::Number(rate_per_s)) => Ok(Schedule::Rate(*rate_per_s, once_a_second)),
        Some(Value::Share(share)) => Ok(Schedule::Share(*share, once_a_second)),
        _ => Err(("rate", "sessions need the rate of all their requests, such as 20 or 50%".into())),
    }
}

/// A stream whose rate goes through stages.
fn staged(law: &str, settings: &Settings) -> Result<Arrivals, (&'static str, String)> {
    let spacing = match law {
        "poisson" => Spacing::Poisson,
        "constant" => Spacing::Even,
        _ => return Err(("arrivals", format!("must be poisson or constant with stages, not {law:?}"))),
    };
    let text = settings.word("stages").expect("there are stages");
    stages::read(text, spacing).map(Arrivals::Varying).map_err(|why| ("stages", why))
}

fn trace(settings: &Settings, folder: &Path) -> Result<Arrivals, (&'static str, String)> {
    let Some(name) = settings.word("trace") else {
        return Err(("trace", "arrivals from a trace need its file, such as arrivals.txt".into()));
    };
    let ties = match settings.word("trace-ties") {
        Some("random") => trace::Ties::Random,
        _ => trace::Ties::Even,
    };
    let speed = settings.number("speed").unwrap_or(1.0);
    let how = trace::Reading { column: settings.word("trace-column"), ties, speed };
    trace::read(&folder.join(name), how).map_err(|why| ("trace", why))
}

#[cfg(test)]
mod tests;
