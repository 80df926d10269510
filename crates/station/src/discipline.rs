//! The order of service.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The order in which waiting requests are served. [`crate::Queue`] is each of them as a data structure.
///
/// "Weight" is what a second of delay of one request costs: its priority, the larger the more urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// First in, first out.
    #[default]
    Fifo,
    /// Last in, first out, without preemption.
    Lifo,
    /// The largest weight first, without preemption.
    Priority,
    /// The largest weight first; a larger one interrupts the request in service, which later resumes where it stopped.
    PreemptivePriority,
    /// All requests share the servers equally, and each gets at most one server (Kleinrock 1967).
    ProcessorSharing,
    /// The shortest expected remaining service time first, preemptive (Schrage 1968). The expectation depends on what is
    /// known of the size: the simulator knows exact sizes, while a live server may only know a range, so its times can be
    /// longer than the simulator's.
    ShortestRemaining,
    /// The largest weight over expected service time first, without preemption (Cox and Smith 1961).
    CMu,
    /// The largest Gittins index first, preemptive: weight times the best ratio, over all horizons, of the probability to
    /// finish within the horizon to the expected service within it (Gittins 1989).
    Gittins,
}

/// The attributes of a request by which a discipline orders it, beyond its arrival time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// Nothing.
    Nothing,
    /// The request's weight.
    Weight,
    /// The request's weight, and the mean of its expected service time.
    WeightAndMean,
    /// The request's weight, the law of its expected service time, and the service it has received: the request can lose
    /// urgency while it is served.
    WeightAndLaw,
    /// The service time that it needs.
    Size,
}

/// The formulas that hold for a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formulas {
    /// The formulas for the order of arrival, with distributions.
    InOrder,
    /// Means of those: the order interrupts no request and ignores sizes, so the number in the station has the same law.
    Blind,
    /// The formulas for shared servers, which depend only on the mean of the service time.
    Sharing,
    /// The formulas for classes of different weight; without such classes, those for the order of arrival.
    Classes,
    /// The formula of Schrage and Miller (1966).
    Shortest,
    /// The formulas for the order of arrival where all indices are the same; otherwise none.
    Index,
    /// The discipline has no formula: only the simulation answers.
    Unknown,
}

/// All properties of a discipline that the rest of kendall uses; [`crate::Queue`] has its order.
struct Properties {
    name: &'static str,
    notation: &'static str,
    /// Other names in common use.
    aliases: &'static [&'static str],
    /// A description of the service, for sentences: "2 servers sharing".
    words: &'static str,
    preempts: bool,
    shares: bool,
    knows: Knows,
    formulas: Formulas,
}

impl Discipline {
    /// Every discipline, in the order in which they are listed to users.
    pub const ALL: [Self; 8] = [
        Self::Fifo,
        Self::Lifo,
        Self::Priority,
        Self::PreemptivePriority,
        Self::ProcessorSharing,
        Self::ShortestRemaining,
        Self::CMu,
        Self::Gittins,
    ];

    const fn properties(self) -> Properties {
        const PLAIN: Properties = Properties {
            name: "fifo",
            notation: "FIFO",
            aliases: &["fcfs"],
            words: "FIFO",
            preempts: false,
            shares: false,
            knows: Knows::Nothing,
            formulas: Formulas::InOrder,
        };
        match self {
            Self::Fifo => PLAIN,
            Self::Lifo => Properties {
                name: "lifo",
                notation: "LIFO",
                aliases: &["lcfs"],
                words: "LIFO",
                formulas: Formulas::Blind,
                ..PLAIN
            },
            Self::Priority => Properties {
                name: "priority",
                notation: "NPRP",
                aliases: &["hol", "prio", "np"],
                words: "by priority",
                knows: Knows::Weight,
                formulas: Formulas::Classes,
                ..PLAIN
            },
            Self::PreemptivePriority => Properties {
                name: "preemptive-priority",
                notation: "PRP",
                aliases: &["prio-pr", "pr"],
                words: "by interrupting priority",
                preempts: true,
                knows: Knows::Weight,
                formulas: Formulas::Classes,
                ..PLAIN
            },
            Self::ProcessorSharing => Properties {
                name: "processor-sharing",
                notation: "PS",
                aliases: &[],
                words: "sharing",
                preempts: true,
                shares: true,
                formulas: Formulas::Sharing,
                ..PLAIN
            },
            Self::ShortestRemaining => Properties {
                name: "shortest-remaining",
                notation: "SRPT",
                aliases: &["srp"],
                words: "SRPT",
                preempts: true,
                knows: Knows::Size,
                formulas: Formulas::Shortest,
                ..PLAIN
            },
            Self::CMu => Properties {
                name: "cmu",
                notation: "cµ",
                aliases: &["c-mu"],
                words: "cµ",
                knows: Knows::WeightAndMean,
                formulas: Formulas::Classes,
                ..PLAIN
            },
            Self::Gittins => Properties {
                name: "gittins",
                notation: "Gittins",
                aliases: &[],
                words: "Gittins",
                preempts: true,
                knows: Knows::WeightAndLaw,
                formulas: Formulas::Index,
                ..PLAIN
            },
        }
    }

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        self.properties().name
    }

    /// The name in Kendall's notation, where it is the last part.
    pub fn notation(self) -> &'static str {
        self.properties().notation
    }

    /// A description of the service, to follow the number of servers: "2 servers sharing".
    pub fn in_words(self) -> &'static str {
        self.properties().words
    }

    /// Whether a request in service may be interrupted for another.
    #[inline]
    pub const fn preempts(self) -> bool {
        self.properties().preempts
    }

    /// Whether all requests present share the servers, so that none waits.
    #[inline]
    pub const fn shares(self) -> bool {
        self.properties().shares
    }

    /// The attributes of a request by which it orders them.
    #[inline]
    pub const fn knows(self) -> Knows {
        self.properties().knows
    }

    /// The formulas that hold for the discipline.
    pub const fn formulas(self) -> Formulas {
        self.properties().formulas
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown name of a discipline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown discipline {0:?}; known are {known}", known = known())]
pub struct UnknownDiscipline(pub String);

/// The names of all but the last, and the last.
fn known() -> String {
    let [all @ .., last] = Discipline::ALL.map(Discipline::name);
    format!("{} and {last}", all.join(", "))
}

impl FromStr for Discipline {
    type Err = UnknownDiscipline;

    /// Reads the command-line name, the name in Kendall's notation, or another common name.
    fn from_str(text: &str) -> Result<Self, UnknownDiscipline> {
        let name = text.trim().to_lowercase().replace(['µ', 'μ'], "mu").replace(['_', ' '], "-");
        let is_called = |discipline: &Self| {
            let Properties { name: own, notation, aliases, .. } = discipline.properties();
            own == name
                || notation.to_lowercase().replace('µ', "mu") == name
                || aliases.contains(&name.as_str())
        };
        Self::ALL.into_iter().find(is_called).ok_or_else(|| UnknownDiscipline(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for discipline in Discipline::ALL {
            assert_eq!(discipline.name().parse(), Ok(discipline));
            assert_eq!(discipline.notation().parse(), Ok(discipline));
        }
        assert_eq!("FCFS".parse(), Ok(Discipline::Fifo));
        assert!("round".parse::<Discipline>().unwrap_err().to_string().contains("processor-sharing"));
    }
}
