//! Checks of a model's assumptions against the measurement, with the effect of each that is broken.
//!
//! [`check`] reads the rows of trials, [`check_loads`] reads one system under several loads, [`check_table`] a table from any source.
//! Each gives a [`Finding`] for each assumption: a sentence, a test statistic with its p-value, and an effect, which is most often by
//! how much the predicted waiting time is off.
//!
//! A million samples make every difference significant, and ten make none. So an assumption is called broken only where the effect is
//! large enough to matter and chance does not explain it, and is said to hold only where an effect that matters would have shown. All
//! other cases are "inconclusive".

mod accounts;
mod arrivals;
mod grade;
mod instruments;
mod law;
mod loads;
mod run;
mod server;
mod service;
mod table;
mod trial_set;

use std::fmt;

use kendall_station::Station;
use serde::{Deserialize, Serialize};

use crate::Trial;

pub use instruments::{SendLateness, send_lateness};
pub use law::{Closest, closest_law};
pub use loads::{Load, check_loads};
pub use table::check_table;

use trial_set::TrialSet;

/// Assumptions that a model, or the reader of a measurement, makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Check {
    /// Requests arrive at the requested rate.
    Rate,
    /// Gaps between arrivals have the law that the model has.
    ArrivalLaw,
    /// Gaps between arrivals do not depend on one another.
    IndependentArrivals,
    /// Arrivals do not wait for answers.
    OpenLoop,
    /// Service times are exponential, or which law they have.
    ServiceLaw,
    /// All requests are of one kind.
    OneKind,
    /// Service times do not depend on one another.
    IndependentService,
    /// Service times do not depend on the gaps between arrivals.
    ServiceApartFromArrivals,
    /// Service takes as long under load as without.
    ServiceApartFromLoad,
    /// The server serves as many requests at once as the model has servers.
    Servers,
    /// Requests are served in the order in which they came.
    Order,
    /// The room for waiting is that of the model.
    Room,
    /// Response times do not grow while the trial runs.
    Steady,
    /// The warm-up is left out.
    WarmUp,
    /// The mean response time is known well enough.
    Precision,
    /// Classes come in the shares that the model has.
    Shares,
    /// Number in the system = rate × response time (Little's law).
    LittlesLaw,
    /// Busy processors = rate × service time (utilisation law).
    UtilisationLaw,
    /// Users = rate × (response time + think time) (interactive response-time law).
    InteractiveLaw,
    /// Every request is answered.
    Loss,
    /// Every answer is right.
    Answers,
    /// No connection or packet was tried again after a timeout.
    Retries,
    /// Response times are those of the station, and not of the network.
    Delay,
    /// Requests leave when they are due.
    SentWhenDue,
    /// The clock is fine enough for the times that it measures.
    ClockResolution,
    /// Instants are in the order in which they must be.
    InstantsInOrder,
    /// Client and server do not share a machine.
    ApartHosts,
    /// Service time and service rate are inverse to each other, in the units that they claim.
    Units,
    /// Utilisation = rate × service time / servers.
    Utilisation,
    /// A mean response time is given only where there is a steady state.
    Stability,
    /// A computed response time is what its formula gives.
    Formula,
    /// Response time = waiting time + service time.
    Sum,
    /// A total time is one that passed, and not a sum of response times.
    TotalTime,
}

/// Whether an assumption of a model holds in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssumptionVerdict {
    /// The assumption does not hold, and that matters.
    Broken,
    /// The data are inconclusive.
    CannotTell,
    /// The assumption holds, or nearly enough.
    Holds,
}

/// A number with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// The name of the quantity.
    pub name: String,
    /// The number, always finite.
    pub value: f64,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The verdict on the assumption.
    pub verdict: AssumptionVerdict,
    /// Where, in words, such as "80/s" or "line 3".
    pub place: String,
    /// The result and its effect, in one to three sentences.
    pub sentence: String,
    /// The test's statistic, if it is a test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Named>,
    /// The probability of so large a statistic where the assumption holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The effect, as a share: 0.25 is 25 % more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Named>,
}

/// The data of trials besides their rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// The place of the trials in words, such as "80/s".
    pub place: String,
    /// Processor time of the server per second, in cores, over all trials.
    pub cpu_cores: Option<f64>,
    /// How the server's threads queued for cores, where that was watched.
    pub run_queue: Option<RunQueue>,
    /// Whether client and server share a machine.
    pub hosts: Hosts,
    /// The verdict on the sends, where there is a judge of the generator.
    pub sends: Option<SendsJudged>,
}

/// The verdict of the generator's judge on the sends of the trials. The judge knows more than the rows show: which waits were the
/// generator's own, and its counts while the rows were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendsJudged {
    /// Whether requests left when they were due, or so little later that it does not show in the response times.
    pub on_schedule: bool,
    /// Whether the requests left at the rate of the schedule.
    pub at_rate: bool,
}

/// Threads that queue for cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunQueue {
    /// The cores that the server may use.
    pub cores: f64,
    /// The number of its threads that are ready and have no core, on average over time.
    pub waiting_threads: f64,
}

/// On which machines client and server run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hosts {
    /// On one.
    Same,
    /// Client and server run on separate machines.
    Apart,
    /// Unknown.
    #[default]
    Unknown,
}

/// p-values below this count as significant.
pub const SIGNIFICANT: f64 = grade::CHANCE;

/// An effect on the waiting time below this is smaller than what sets models apart in practice.
const MATTERS: f64 = 0.1;

/// Which assumptions of a station hold in the trials of one combination. `station` is the model: its arrivals as requested, its
/// servers, capacity, discipline and classes. Checks that the rows cannot decide are inconclusive; checks that do not apply to the
/// station are left out.
pub fn check(trials: &[Trial<'_>], station: &Station, setting: &Setting) -> Vec<Finding> {
    let seen = TrialSet::new(trials, station);
    let found = [
        arrivals::rate(&seen, setting),
        arrivals::law(&seen),
        arrivals::independent(&seen),
        arrivals::open_loop(&seen),
        service::law(&seen),
        service::one_kind(&seen),
        service::independent(&seen),
        service::apart_from_arrivals(&seen),
        service::apart_from_load(&seen),
        server::servers(&seen),
        server::order(&seen),
        server::room(&seen),
        run::steady(&seen),
        run::warm_up(&seen),
        run::precision(&seen),
        run::shares(&seen),
        accounts::little(&seen),
        accounts::utilisation_law(&seen, setting),
        accounts::interactive_law(&seen),
        accounts::loss(&seen),
        accounts::answers(&seen),
        accounts::retries(&seen),
        accounts::delay(&seen),
        instruments::sent_when_due(&seen, setting),
        instruments::clock_resolution(&seen),
        instruments::instants_in_order(&seen),
        instruments::apart_hosts(setting),
    ];
    let placed = |finding: Finding| Finding { place: setting.place.clone(), ..finding };
    let mut found: Vec<Finding> = found.into_iter().flatten().map(placed).collect();
    // The start of a limited queue that is still filling is no warm-up.
    let grows = |one: &Finding| one.check == Check::Steady && one.verdict == AssumptionVerdict::Broken;
    if station.capacity.is_some() && found.iter().any(grows) {
        found.retain(|one| one.check != Check::WarmUp);
    }
    found
}

impl Finding {
    fn new(check: Check, verdict: AssumptionVerdict, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { check, verdict, place: String::new(), sentence, statistic: None, p_value: None, effect: None }
    }

    fn cannot_tell(check: Check, sentence: impl Into<String>) -> Self {
        Self::new(check, AssumptionVerdict::CannotTell, sentence)
    }

    fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    fn statistic(self, name: &str, value: f64) -> Self {
        Self { statistic: named(name, value), ..self }
    }

    fn p(self, p_value: f64) -> Self {
        Self { p_value: p_value.is_finite().then_some(p_value), ..self }
    }

    fn effect(self, name: &str, value: f64) -> Self {
        Self { effect: named(name, value), ..self }
    }
}

fn named(name: &str, value: f64) -> Option<Named> {
    value.is_finite().then(|| Named { name: name.to_owned(), value })
}

impl Check {
    /// The assumption in a few words, as a table names it.
    pub fn assumption(self) -> &'static str {
        match self {
            Self::Rate => "requests come at the requested rate",
            Self::ArrivalLaw => "arrivals have the model's distribution",
            Self::IndependentArrivals => "gaps between arrivals are independent",
            Self::OpenLoop => "arrivals do not wait for answers",
            Self::ServiceLaw => "service times are exponential",
            Self::OneKind => "requests are of one kind",
            Self::IndependentService => "service times are independent",
            Self::ServiceApartFromArrivals => "service times do not depend on arrivals",
            Self::ServiceApartFromLoad => "service times do not depend on the load",
            Self::Servers => "the number of servers is the model's",
            Self::Order => "requests are served in the order of arrival",
            Self::Room => "the capacity is the model's",
            Self::Steady => "response times do not grow",
            Self::WarmUp => "the warm-up is left out",
            Self::Precision => "the mean response time is known well",
            Self::Shares => "classes come in the model's shares",
            Self::LittlesLaw => "Little's law",
            Self::UtilisationLaw => "utilisation law",
            Self::InteractiveLaw => "interactive response-time law",
            Self::Loss => "every request is answered",
            Self::Answers => "every answer is correct",
            Self::Retries => "no packet was retransmitted",
            Self::Delay => "the response time is the station's",
            Self::SentWhenDue => "requests leave when they are due",
            Self::ClockResolution => "the clock is fine enough",
            Self::InstantsInOrder => "timestamps are in order",
            Self::ApartHosts => "client and server are on two machines",
            Self::Units => "service time and rate agree in their units",
            Self::Utilisation => "utilisation = rate × service time / servers",
            Self::Stability => "there is a steady state",
            Self::Formula => "computed response times follow from their formula",
            Self::Sum => "response = waiting + service",
            Self::TotalTime => "total times are elapsed times",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.assumption())
    }
}

impl fmt::Display for AssumptionVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "broken",
            Self::CannotTell => "inconclusive",
            Self::Holds => "holds",
        })
    }
}
