//! The load of an experiment: how its parameters become arrivals, a stop and limits.

use std::path::Path;
use std::time::Duration;

use kendall_load::{Plan, Timing};
use kendall_station::{Arrivals, Kind as LawKind, Law};

use crate::parameter::{Kind, Parameter, Value};
use crate::system::Settings;

/// The parameters of `[load]`, which `kendall load` takes as options too.
pub const LOAD: &[Parameter] = &[
    Parameter {
        name: "arrivals",
        help: "law of the gaps between requests: poisson, constant, erlang-2 (any number of stages), \
               hyperexponential, uniform, log-normal, pareto; or trace, or closed",
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
        name: "trace",
        help: "file of instants in seconds, one a line, for arrivals = \"trace\"",
        kind: Kind::Word(any_word),
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
        name: "requests",
        help: "stop after this many requests",
        kind: Kind::Whole { least: 1, most: 1_000_000_000 },
        default: None,
    },
    Parameter { name: "duration", help: "stop after this time", kind: Kind::Time, default: None },
    Parameter {
        name: "warmup",
        help: "requests due in this first part of a trial are sent but not counted in its answer",
        kind: Kind::Time,
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
    pub warmup: Duration,
    /// Give a request up after this time.
    pub timeout: Duration,
    /// Wait this long at the end.
    pub drain: Duration,
    /// At most this many connections.
    pub connections: u32,
}

/// When requests come, as far as it is known before the capacity is.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// At a rate per second, with gaps of a law whose mean is 1.
    Rate(f64, Law),
    /// At a share of the capacity, with gaps of a law whose mean is 1.
    Share(f64, Law),
    /// As told: a trace or a closed population.
    Fixed(Arrivals),
}

impl Load {
    /// Reads the load from its parameters. Files are taken relative to `folder`.
    ///
    /// # Errors
    /// Names the parameter that is missing or does not fit, and says what is wrong with it.
    pub fn new(settings: &Settings, folder: &Path) -> Result<Self, (&'static str, String)> {
        let arrivals = settings.word("arrivals").expect("arrivals has a default");
        let foreign: &[&str] = match arrivals {
            "closed" => &["rate", "gap", "capacity", "arrivals-scv", "trace"],
            "trace" => &["rate", "gap", "capacity", "arrivals-scv", "users"],
            _ => &["users", "trace"],
        };
        if let Some((name, _)) = settings.iter().find(|(name, _)| foreign.contains(name)) {
            return Err((name, format!("means nothing with {arrivals} arrivals; leave it out")));
        }
        let schedule = match arrivals {
            "closed" => Schedule::Fixed(closed(settings)?),
            "trace" => Schedule::Fixed(trace(settings, folder)?),
            law => {
                let kind = gap_kind(law).map_err(|message| ("arrivals", message))?;
                let scv = settings.number("arrivals-scv").filter(|_| kind.takes_scv());
                let gap =
                    kind.law(1.0, scv).map_err(|error| ("arrivals", format!("{error}; see arrivals-scv")))?;
                open(law, gap, settings)?
            }
        };
        let (requests, duration) = (settings.whole("requests"), settings.time("duration"));
        let traced = matches!(schedule, Schedule::Fixed(Arrivals::Trace { .. }));
        if requests.is_none() && duration.is_none() && !traced {
            return Err(("duration", "nothing says when to stop; set duration or requests".into()));
        }
        let warmup = settings.time("warmup").expect("warmup has a default");
        if duration.is_some_and(|duration| duration.is_zero()) {
            return Err(("duration", "must be longer than nothing".into()));
        }
        if duration.is_some_and(|duration| warmup >= duration) {
            return Err(("warmup", "must be shorter than the duration".into()));
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
        })
    }

    /// The arrivals, once it is known what 100 % of the capacity is.
    pub fn arrivals(&self, capacity_per_s: Option<f64>) -> Arrivals {
        let at = |rate_per_s: f64, gap: &Law| Arrivals::Open { gap: gap.scaled(1.0 / rate_per_s) };
        match &self.schedule {
            Schedule::Rate(rate_per_s, gap) => at(*rate_per_s, gap),
            Schedule::Share(share, gap) => at(
                share * capacity_per_s.expect("a share of the capacity is asked for after calibration"),
                gap,
            ),
            Schedule::Fixed(arrivals) => arrivals.clone(),
        }
    }

    /// What a run of this load is to do.
    pub fn plan(&self, capacity_per_s: Option<f64>, seed: u64) -> Plan {
        Plan {
            arrivals: self.arrivals(capacity_per_s),
            seed,
            requests: self.requests,
            duration: self.duration,
            timeout: self.timeout,
            drain: self.drain,
            connections: self.connections,
            timing: Timing::Sleep,
            core: None,
        }
    }

    /// About how long a trial takes, warm-up included, drain excluded.
    pub fn expected(&self, capacity_per_s: Option<f64>) -> Duration {
        let arrivals = self.arrivals(capacity_per_s);
        let by_count = match (self.requests, &arrivals) {
            (_, Arrivals::Trace { instants_s }) => instants_s.last().copied(),
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

/// An open stream at the rate or with the mean gap that is set. `gap` is the law of its gaps, with the mean 1.
fn open(name: &str, gap: Law, settings: &Settings) -> Result<Schedule, (&'static str, String)> {
    match (settings.get("rate"), settings.time("gap")) {
        (Some(_), Some(_)) => {
            Err(("gap", "says the same as rate in another way; leave one of them out".into()))
        }
        (None, Some(mean)) if mean.is_zero() => {
            Err(("gap", "must be longer than nothing; 1us is as good as all at once".into()))
        }
        (None, Some(mean)) => Ok(Schedule::Rate(mean.as_secs_f64().recip(), gap)),
        (Some(Value::Share(share)), None) => Ok(Schedule::Share(*share, gap)),
        (Some(Value::Number(rate_per_s)), None) => Ok(Schedule::Rate(*rate_per_s, gap)),
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
    let mean_s = settings.time("think").expect("think has a default").as_secs_f64();
    let think = match settings.word("think-law") {
        Some("exponential") if mean_s > 0.0 => Law::Exponential { mean_s },
        _ => Law::Constant { mean_s },
    };
    Ok(Arrivals::Closed { population: users as u32, think })
}

fn trace(settings: &Settings, folder: &Path) -> Result<Arrivals, (&'static str, String)> {
    let Some(name) = settings.word("trace") else {
        return Err(("trace", "arrivals from a trace need its file; set trace = \"arrivals.txt\"".into()));
    };
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| ("trace", format!("cannot read {}: {error}", path.display())))?;
    Arrivals::trace(&text).map_err(|error| ("trace", format!("{}: {error}", path.display())))
}

/// The kind of law that a name of arrivals stands for.
fn gap_kind(name: &str) -> Result<LawKind, String> {
    Ok(match name {
        "poisson" => LawKind::Exponential,
        "constant" => LawKind::Constant,
        "hyperexponential" => LawKind::Hyperexponential,
        "uniform" => LawKind::Uniform,
        "log-normal" => LawKind::LogNormal,
        "pareto" => LawKind::Pareto,
        _ => match name.strip_prefix("erlang-").and_then(|stages| stages.parse().ok()) {
            Some(stages @ 1..=10_000) => LawKind::Erlang(stages),
            _ => {
                return Err(format!(
                    "must be poisson, constant, erlang-2 (any number of stages), hyperexponential, uniform, \
                     log-normal, pareto, trace or closed, not {name:?}"
                ));
            }
        },
    })
}

fn check_arrivals(name: &str) -> Result<(), String> {
    if matches!(name, "closed" | "trace") { Ok(()) } else { gap_kind(name).map(drop) }
}

fn check_think(name: &str) -> Result<(), String> {
    match name {
        "exponential" | "constant" => Ok(()),
        _ => Err(format!("must be exponential or constant, not {name:?}")),
    }
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
    fn a_missing_trace_names_its_file() {
        let (_, message) = load(&[("arrivals", "trace"), ("trace", "no-such-file")]).unwrap_err();
        assert!(message.contains("no-such-file"), "{message}");
    }
}
