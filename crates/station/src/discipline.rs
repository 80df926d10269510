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
    /// The largest weight first; whoever is in service finishes.
    Priority,
    /// The largest weight first; a larger one interrupts, and the interrupted one resumes where it was.
    PreemptivePriority,
    /// All requests share the servers equally, none more than one server (Kleinrock 1967).
    ProcessorSharing,
    /// The shortest expected remaining service time first, interrupting (Schrage 1968). Expected by what is known of
    /// the size: the simulator knows true sizes, while a live server may know no more than a range, so that it does
    /// worse than its simulation.
    ShortestRemaining,
    /// The largest weight over expected service time first; whoever is in service finishes (Cox and Smith 1961).
    CMu,
    /// The largest Gittins index first, interrupting: weight times the best ratio, over all horizons, of the
    /// chance to finish within it to the expected service within it (Gittins 1989).
    Gittins,
}

impl Discipline {
    /// All disciplines, in the order in which they are listed to users.
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

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
            Self::Priority => "priority",
            Self::PreemptivePriority => "preemptive-priority",
            Self::ProcessorSharing => "processor-sharing",
            Self::ShortestRemaining => "shortest-remaining",
            Self::CMu => "cmu",
            Self::Gittins => "gittins",
        }
    }

    /// Whether a request in service may be interrupted for another.
    pub fn preempts(self) -> bool {
        match self {
            Self::Fifo | Self::Lifo | Self::Priority | Self::CMu => false,
            Self::PreemptivePriority | Self::ProcessorSharing | Self::ShortestRemaining | Self::Gittins => {
                true
            }
        }
    }

    /// The name in Kendall's notation, where it stands last.
    pub fn notation(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO",
            Self::Lifo => "LIFO",
            Self::Priority => "NPRP",
            Self::PreemptivePriority => "PRP",
            Self::ProcessorSharing => "PS",
            Self::ShortestRemaining => "SRPT",
            Self::CMu => "cµ",
            Self::Gittins => "Gittins",
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No discipline has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown discipline {0:?}; known are fifo, lifo, priority, preemptive-priority, processor-sharing, \
     shortest-remaining, cmu and gittins"
)]
pub struct UnknownDiscipline(pub String);

impl FromStr for Discipline {
    type Err = UnknownDiscipline;

    /// Reads the command-line name, the name in Kendall's notation, or another one in common use.
    fn from_str(text: &str) -> Result<Self, UnknownDiscipline> {
        let name = text.trim().to_lowercase().replace(['µ', 'μ'], "mu").replace(['_', ' '], "-");
        let found = Self::ALL.into_iter().find(|discipline| {
            discipline.name() == name || discipline.notation().to_lowercase().replace('µ', "mu") == name
        });
        found
            .or(match name.as_str() {
                "fcfs" => Some(Self::Fifo),
                "lcfs" => Some(Self::Lifo),
                "hol" | "prio" | "np" => Some(Self::Priority),
                "prio-pr" | "pr" => Some(Self::PreemptivePriority),
                "srpt" | "srp" => Some(Self::ShortestRemaining),
                "c-mu" => Some(Self::CMu),
                _ => None,
            })
            .ok_or_else(|| UnknownDiscipline(text.into()))
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
