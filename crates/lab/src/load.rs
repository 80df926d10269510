//! The load of an experiment: how its parameters become arrivals, a stop and limits.

mod stages;
mod trace;

use std::path::Path;
use std::time::Duration;

use kendall_load::{Plan, Timing};
use kendall_solve::streamed::Warmup;
use kendall_station::{Arrivals, Batch, Kind as LawKind, Law, Sessions, Spacing};

use crate::parameter::{Kind, Parameter, Value};
use crate::system::Settings;

/// The warm-up that is found and not set.
const AUTO: &str = "auto";

/// The parameters of `[load]`, which `kendall load` takes as options too.
pub const LOAD: &[Parameter] = &[
    Parameter {
        name: "arrivals",
        help: "law of the gaps between requests: poisson, constant, erlang-2 (any number of stages), \
               hyperexponential, uniform, log-normal, pareto; or trace, closed, or sessions",
        kind: Kind::Word(check_arrivals),
        default: Some("poisson"),
    },
    Parameter {
        name: "arrivals-scv",
        help: "squared coefficient of variation of the gaps, for hyperexponential, log-normal and pareto",
        kind: Kind::Number { least: 0.0, most: 1e6 },
        default: None,
    },
    Parameter {
        name: "rate",
        help: "requests per second, or a share of what the machine can do, such as \"80%\"",
        kind: Kind::Rate,
        default: None,
    },
    Parameter {
        name: "gap",
        help: "mean time between two requests, such as \"600ms\", instead of a rate",
        kind: Kind::Time,
        default: None,
    },
    Parameter {
        name: "capacity",
        help: "requests per second that 100% stands for; found by calibration if left out",
        kind: Kind::Number { least: 1e-6, most: 1e9 },
        default: None,
    },
    Parameter {
        name: "stages",
        help: "rates over time instead of a rate, such as \"10s: 0→500/s, 30s: 500/s, 10s: 500→0/s\"; \
               for poisson and constant arrivals; or numbers of users for closed ones, \"10s: 5, 20s: 5→50\"",
        kind: Kind::Word(check_stages),
        default: None,
    },
    Parameter {
        name: "trace",
        help: "file of instants, for arrivals = \"trace\": seconds, one a line; an access log of nginx or Apache; \
               or a table with trace-column",
        kind: Kind::Word(any_word),
        default: None,
    },
    Parameter {
        name: "trace-column",
        help: "the trace is a table, CSV with a line of names or JSON lines, and this column holds the instants",
        kind: Kind::Word(any_word),
        default: None,
    },
    Parameter {
        name: "trace-ties",
        help: "where within a second requests lie of a trace in whole seconds: even, if left out, or random",
        kind: Kind::Word(check_ties),
        default: None,
    },
    Parameter {
        name: "speed",
        help: "the trace is replayed so many times as fast as it was",
        kind: Kind::Number { least: 1e-6, most: 1e6 },
        default: None,
    },
    Parameter {
        name: "users",
        help: "how many users, for arrivals = \"closed\"",
        kind: Kind::Whole { least: 1, most: 100_000 },
        default: None,
    },
    Parameter {
        name: "think",
        help: "mean time between an answer and the same user's next request",
        kind: Kind::Time,
        default: Some("0s"),
    },
    Parameter {
        name: "think-law",
        help: "law of the think time: exponential or constant",
        kind: Kind::Word(check_think),
        default: Some("exponential"),
    },
    Parameter {
        name: "requests-per-session",
        help: "mean number of requests that a session makes, for arrivals = \"sessions\"",
        kind: Kind::Number { least: 1.0, most: 1e6 },
        default: None,
    },
    Parameter {
        name: "session-law",
        help: "law of the number of requests of a session: geometric, if left out, or constant",
        kind: Kind::Word(check_session_law),
        default: None,
    },
    Parameter {
        name: "requests",
        help: "stop after this many requests",
        kind: Kind::Whole { least: 1, most: 1_000_000_000 },
        default: None,
    },
    Parameter { name: "duration", help: "stop after this time", kind: Kind::Time, default: None },
    Parameter {
        name: "warmup",
        help: "requests due in this first part of a trial are sent but not counted in its answer; auto leaves out what \
               MSER-5 finds",
        kind: Kind::TimeOr(AUTO),
        default: Some("0s"),
    },
    Parameter {
        name: "timeout",
        help: "give a request up after this time",
        kind: Kind::Time,
        default: Some("30s"),
    },
    Parameter {
        name: "drain",
        help: "after the last request, wait this long for what is still out",
        kind: Kind::Time,
        default: Some("10s"),
    },
    Parameter {
        name: "connections",
        help: "at most this many connections; further requests wait in the generator, and that is counted",
        kind: Kind::Whole { least: 1, most: 60_000 },
        default: Some("1000"),
    },
    Parameter {
        name: "timing",
        help: "how to wait for the next send: sleep, or precise, which spins for the last tens of µs and costs up to a core",
        kind: Kind::Word(check_timing),
        default: Some("sleep"),
    },
    Parameter {
        name: "core",
        help: "the one core for the generator to run on; if left out an isolated one, or the idlest",
        kind: Kind::Whole { least: 0, most: 4095 },
        default: None,
    },
];

/// The load of one combination, with its values checked against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// When requests come.
    pub schedule: Schedule,
    /// Stop after this many requests.
    pub requests: Option<u64>,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// The first part of a trial, which its answer leaves out.
    pub warmup: Warmup,
    /// Give a request up after this time.
    pub timeout: Duration,
    /// Wait this long at the end.
    pub drain: Duration,
    /// At most this many connections.
    pub connections: u32,
    /// How to wait for the next send.
    pub timing: Timing,
    /// The one core to run on.
    pub core: Option<u32>,
}

/// When requests come, as far as it is known before the capacity is.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// At a rate per second, given arrivals of one a second.
    Rate(f64, Arrivals),
    /// At a share of the capacity, given arrivals of one a second.
    Share(f64, Arrivals),
    /// As told: a trace, stages or a closed population.
    Fixed(Arrivals),
}

/// The most sessions that may be expected to think at a time, at some 60 bytes each.
const SESSIONS_AT_MOST: f64 = 1e6;

/// Which of the ways it is in which a load can be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Gaps,
    Stages,
    Trace,
    Closed,
    ClosedStages,
    Sessions,
}

impl Way {
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

    /// Whether a parameter means anything here.
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
}

impl Load {
    /// Reads the load from its parameters. Files are taken relative to `folder`.
    ///
    /// # Errors
    /// Names the parameter that is missing or does not fit, and says what is wrong with it.
    pub fn new(settings: &Settings, folder: &Path) -> Result<Self, (&'static str, String)> {
        let arrivals = settings.word("arrivals").expect("arrivals has a default");
        let way = Way::of(arrivals, settings);
        if let Some((name, _)) = settings.iter().find(|(name, _)| !way.takes(name)) {
            let beside = if matches!(way, Way::Stages | Way::ClosedStages) {
                "beside stages".into()
            } else {
                format!("with {arrivals} arrivals")
            };
            return Err((name, format!("means nothing {beside}; leave it out")));
        }
        let schedule = match way {
            Way::Closed => Schedule::Fixed(closed(settings)?),
            Way::ClosedStages => {
                let text = settings.word("stages").expect("there are stages");
                let users = stages::read_users(text, think(settings)).map_err(|why| ("stages", why))?;
                let cut = |time: Duration| users.until(time.as_secs_f64());
                Schedule::Fixed(Arrivals::Attended(
                    settings.time("duration").map_or_else(|| users.clone(), cut),
                ))
            }
            Way::Trace => Schedule::Fixed(trace(settings, folder)?),
            Way::Sessions => sessions(settings)?,
            Way::Stages => Schedule::Fixed(staged(arrivals, settings)?),
            Way::Gaps => {
                let kind = gap_kind(arrivals).map_err(|message| ("arrivals", message))?;
                let scv = settings.number("arrivals-scv").filter(|_| kind.takes_scv());
                let gap =
                    kind.law(1.0, scv).map_err(|error| ("arrivals", format!("{error}; see arrivals-scv")))?;
                open(arrivals, gap, settings)?
            }
        };
        let (requests, duration) = (settings.whole("requests"), settings.time("duration"));
        let ends = matches!(&schedule, Schedule::Fixed(arrivals) if arrivals.ends_s().is_some());
        if requests.is_none() && duration.is_none() && !ends {
            return Err(("duration", "nothing says when to stop; set duration or requests".into()));
        }
        let warmup = warmup(settings);
        if duration.is_some_and(|duration| duration.is_zero()) {
            return Err(("duration", "must be longer than nothing".into()));
        }
        if let (Warmup::Until(until_ns), Some(duration)) = (warmup, duration)
            && until_ns as u128 >= duration.as_nanos()
        {
            return Err(("warmup", "must be shorter than the duration".into()));
        }
        if warmup == Warmup::Auto && settings.get("stages").is_some() {
            let why = "auto finds where a steady state begins, and stages have none; give a time";
            return Err(("warmup", why.into()));
        }
        let time = |name| settings.time(name).expect("it has a default");
        Ok(Self {
            schedule,
            requests,
            duration,
            warmup,
            timeout: time("timeout"),
            drain: time("drain"),
            connections: settings.whole("connections").expect("connections has a default") as u32,
            timing: timing(settings.word("timing").expect("timing has a default")).unwrap_or_default(),
            core: settings.whole("core").map(|core| core as u32),
        })
    }

    /// The arrivals, once it is known what 100 % of the capacity is.
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

    /// What a run of this load is to do.
    pub fn plan(&self, capacity_per_s: Option<f64>, seed: u64) -> Plan {
        Plan {
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

/// Nanoseconds beyond those that 64 bits can tell, which are 292 years, are as good as them.
fn warmup(settings: &Settings) -> Warmup {
    match settings.get("warmup") {
        Some(Value::Word(_)) => Warmup::Auto,
        Some(Value::Time(time)) => Warmup::Until(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)),
        _ => Warmup::Until(0),
    }
}

/// An open stream at the rate or with the mean gap that is set. `gap` is the law of its gaps, with the mean 1.
fn open(name: &str, gap: Law, settings: &Settings) -> Result<Schedule, (&'static str, String)> {
    let once_a_second = Arrivals::Open { gap };
    match (settings.get("rate"), settings.time("gap")) {
        (Some(_), Some(_)) => {
            Err(("gap", "says the same as rate in another way; leave one of them out".into()))
        }
        (None, Some(mean)) if mean.is_zero() => {
            Err(("gap", "must be longer than nothing; 1us is as good as all at once".into()))
        }
        (None, Some(mean)) => Ok(Schedule::Rate(mean.as_secs_f64().recip(), once_a_second)),
        (Some(Value::Share(share)), None) => Ok(Schedule::Share(*share, once_a_second)),
        (Some(Value::Number(rate_per_s)), None) => Ok(Schedule::Rate(*rate_per_s, once_a_second)),
        _ => Err((
            "rate",
            format!("{name} arrivals need a rate; set rate = 20, rate = \"50%\" or gap = \"50ms\""),
        )),
    }
}

fn closed(settings: &Settings) -> Result<Arrivals, (&'static str, String)> {
    let Some(users) = settings.whole("users") else {
        return Err(("users", "closed arrivals need a number of users; set users = 10".into()));
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

/// Sessions that begin as a Poisson stream, so often that the rate is that of all their requests.
fn sessions(settings: &Settings) -> Result<Schedule, (&'static str, String)> {
    let Some(mean) = settings.number("requests-per-session") else {
        let why = "sessions need a number of requests; set requests-per-session = 5";
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
        _ => Err((
            "rate",
            "sessions need the rate of all their requests; set rate = 20 or rate = \"50%\"".into(),
        )),
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
        return Err(("trace", "arrivals from a trace need its file; set trace = \"arrivals.txt\"".into()));
    };
    let ties = match settings.word("trace-ties") {
        Some("random") => trace::Ties::Random,
        _ => trace::Ties::Even,
    };
    let speed = settings.number("speed").unwrap_or(1.0);
    let how = trace::Reading { column: settings.word("trace-column"), ties, speed };
    trace::read(&folder.join(name), how).map_err(|why| ("trace", why))
}

/// A law by its name in files and options, with the mean and, where its kind has room for one, the squared coefficient of
/// variation that are given.
///
/// # Errors
/// Says in words what is wrong, to stand after the name of the parameter.
pub fn named_law(name: &str, mean_s: f64, scv: Option<f64>) -> Result<Law, String> {
    let kind = law_kind(name).ok_or_else(|| {
        format!(
            "must be exponential, constant, erlang-2 (any number of stages), hyperexponential, uniform, log-normal or \
             pareto, not {name:?}"
        )
    })?;
    kind.law(mean_s, scv.filter(|_| kind.takes_scv())).map_err(|error| error.to_string())
}

/// The kind of law that a name of arrivals stands for.
fn gap_kind(name: &str) -> Result<LawKind, String> {
    let named = if name == "poisson" { Some(LawKind::Exponential) } else { law_kind(name) };
    named.filter(|_| name != "exponential").ok_or_else(|| {
        format!(
            "must be poisson, constant, erlang-2 (any number of stages), hyperexponential, uniform, \
             log-normal, pareto, trace, closed or sessions, not {name:?}"
        )
    })
}

fn law_kind(name: &str) -> Option<LawKind> {
    Some(match name {
        "exponential" => LawKind::Exponential,
        "constant" => LawKind::Constant,
        "hyperexponential" => LawKind::Hyperexponential,
        "uniform" => LawKind::Uniform,
        "log-normal" => LawKind::LogNormal,
        "pareto" => LawKind::Pareto,
        _ => match name.strip_prefix("erlang-")?.parse().ok()? {
            stages @ 1..=10_000 => LawKind::Erlang(stages),
            _ => return None,
        },
    })
}

fn check_arrivals(name: &str) -> Result<(), String> {
    if matches!(name, "closed" | "trace" | "sessions") { Ok(()) } else { gap_kind(name).map(drop) }
}

fn check_think(name: &str) -> Result<(), String> {
    match name {
        "exponential" | "constant" => Ok(()),
        _ => Err(format!("must be exponential or constant, not {name:?}")),
    }
}

fn check_session_law(name: &str) -> Result<(), String> {
    match name {
        "geometric" | "constant" => Ok(()),
        _ => Err(format!("must be geometric or constant, not {name:?}")),
    }
}

fn check_ties(name: &str) -> Result<(), String> {
    match name {
        "even" | "random" => Ok(()),
        _ => Err(format!("must be even or random, not {name:?}")),
    }
}

fn check_stages(text: &str) -> Result<(), String> {
    let users = stages::read_users(text, Law::Constant { mean_s: 0.0 });
    users.map(drop).or_else(|_| stages::read(text, Spacing::default()).map(drop))
}

fn timing(name: &str) -> Option<Timing> {
    match name {
        "sleep" => Some(Timing::Sleep),
        "precise" => Some(Timing::Precise),
        _ => None,
    }
}

fn check_timing(name: &str) -> Result<(), String> {
    timing(name).map(drop).ok_or_else(|| format!("must be sleep or precise, not {name:?}"))
}

fn any_word(word: &str) -> Result<(), String> {
    if word.is_empty() { Err("must not be empty".into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(values: &[(&'static str, &str)]) -> Result<Load, (&'static str, String)> {
        let mut settings = Settings::defaults(LOAD);
        for (name, text) in values {
            let parameter = LOAD.iter().find(|parameter| parameter.name == *name).unwrap();
            settings.set(parameter.name, parameter.kind.read(text).unwrap());
        }
        Load::new(&settings, Path::new("."))
    }

    #[test]
    fn a_share_waits_for_the_capacity() {
        let load = load(&[("rate", "50%"), ("duration", "3s")]).unwrap();
        assert_eq!(load.arrivals(Some(200.0)), Arrivals::poisson(100.0));
        assert_eq!(load.expected(Some(200.0)), Duration::from_secs(3));
    }

    #[test]
    fn a_gap_is_a_rate_in_another_way() {
        let load = load(&[("arrivals", "constant"), ("gap", "600ms"), ("requests", "100")]).unwrap();
        let Arrivals::Open { gap } = load.arrivals(None) else { panic!("an open stream") };
        assert!((gap.mean_s() - 0.6).abs() < 1e-12, "{gap:?}");
        assert_eq!(load.expected(None).as_millis(), 60_000);
    }

    #[test]
    fn the_first_limit_stops_a_trial() {
        let load = load(&[("rate", "10"), ("duration", "30s"), ("requests", "20")]).unwrap();
        assert_eq!(load.expected(None), Duration::from_secs(2));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |values: &[(&'static str, &str)]| load(values).unwrap_err().0;
        assert_eq!(missing(&[("duration", "1s")]), "rate");
        assert_eq!(missing(&[("rate", "5")]), "duration");
        assert_eq!(missing(&[("arrivals", "closed"), ("duration", "1s")]), "users");
        assert_eq!(missing(&[("arrivals", "trace"), ("duration", "1s")]), "trace");
        assert_eq!(missing(&[("arrivals", "pareto"), ("rate", "5"), ("duration", "1s")]), "arrivals");
        assert_eq!(missing(&[("rate", "5"), ("duration", "1s"), ("warmup", "1s")]), "warmup");
        assert_eq!(missing(&[("rate", "5"), ("duration", "0s")]), "duration");
        assert_eq!(missing(&[("rate", "5"), ("gap", "1s"), ("duration", "1s")]), "gap");
        assert_eq!(missing(&[("gap", "0s"), ("duration", "1s")]), "gap");
        assert_eq!(missing(&[("rate", "5"), ("users", "3"), ("duration", "1s")]), "users");
        assert_eq!(
            missing(&[("arrivals", "closed"), ("users", "3"), ("rate", "5"), ("duration", "1s")]),
            "rate"
        );
    }

    #[test]
    fn sessions_are_told_by_the_rate_of_their_requests() {
        let shape =
            [("arrivals", "sessions"), ("requests-per-session", "4"), ("think", "1s"), ("duration", "9s")];
        let with = |more: &[(&'static str, &str)]| load(&[&shape[..], more].concat());
        let Arrivals::Sessions(sessions) = with(&[("rate", "50%")]).unwrap().arrivals(Some(400.0)) else {
            panic!("sessions")
        };
        assert!((sessions.rate_per_s() - 200.0).abs() < 1e-9 && (sessions.thinking() - 150.0).abs() < 1e-9);
        assert_eq!(sessions.requests, Batch::Geometric { mean: 4.0 });
        assert_eq!(with(&[]).unwrap_err().0, "rate");
        assert_eq!(with(&[("rate", "5"), ("users", "5")]).unwrap_err().0, "users");
        assert!(with(&[("rate", "1e9")]).unwrap_err().1.contains("sessions thinking"));
        let odd = [("arrivals", "sessions"), ("rate", "5"), ("duration", "9s"), ("session-law", "constant")];
        assert_eq!(load(&odd).unwrap_err().0, "requests-per-session");
        let odd = [&odd[..], &[("requests-per-session", "2.5")]].concat();
        assert!(load(&odd).unwrap_err().1.contains("whole number"));
    }

    #[test]
    fn a_warm_up_is_set_or_found() {
        let with = |warmup| load(&[("rate", "5"), ("duration", "3s"), ("warmup", warmup)]);
        assert_eq!(with("1s").unwrap().warmup, Warmup::Until(1_000_000_000));
        assert_eq!(with("auto").unwrap().warmup, Warmup::Auto);
        assert_eq!(with("3s").unwrap_err().0, "warmup");
        let (name, why) = load(&[("stages", "2s: 5/s"), ("warmup", "auto")]).unwrap_err();
        assert!(name == "warmup" && why.contains("steady state"), "{why}");
    }

    #[test]
    fn stages_say_themselves_when_they_end() {
        let ramp = load(&[("stages", "2s: 0→100/s, 8s: 100/s")]).unwrap();
        assert_eq!(ramp.expected(None), Duration::from_secs(10));
        let Arrivals::Varying(profile) = ramp.arrivals(None) else { panic!("stages") };
        assert_eq!((profile.expected(60.0), profile.spacing), (900.0, Spacing::Poisson));
        assert_eq!(load(&[("stages", "2s: 5/s"), ("rate", "5")]).unwrap_err().0, "rate");
        assert_eq!(load(&[("stages", "2s: 5/s"), ("arrivals", "uniform")]).unwrap_err().0, "arrivals");
        assert_eq!(
            load(&[("stages", "2s: 5/s"), ("arrivals", "closed"), ("users", "3")]).unwrap_err().0,
            "users"
        );
        let users = load(&[("stages", "2s: 5, 3s: 8"), ("arrivals", "closed")]).unwrap();
        assert_eq!(users.expected(None), Duration::from_secs(5));
        assert!(matches!(users.arrivals(None), Arrivals::Attended(users) if users.most() == 8));
        let short = load(&[("stages", "2s: 5, 3s: 8"), ("arrivals", "closed"), ("duration", "1s")]).unwrap();
        assert!(matches!(short.arrivals(None), Arrivals::Attended(users) if users.most() == 5));
        assert_eq!(load(&[("stages", "2s: 5/s"), ("arrivals", "closed")]).unwrap_err().0, "stages");
    }

    #[test]
    fn a_missing_trace_names_its_file() {
        let (_, message) = load(&[("arrivals", "trace"), ("trace", "no-such-file")]).unwrap_err();
        assert!(message.contains("no-such-file"), "{message}");
    }
}
