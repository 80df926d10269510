//! Other work of the machine while a trial ran, and whether it disturbed the trial.
//!
//! A machine that is shared is never quite quiet; therefore a trial is called disturbed by how much it was disturbed beyond what
//! was usual in the same run, and not by a fixed bound that a noisy machine would always break.

use std::fmt;

use kendall_stats::median;
use kendall_stats::number::percent;
use serde::{Deserialize, Serialize};

/// Other work of the machine while a trial ran, as shares of the time of all its cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Taken away by the host of this virtual machine.
    pub steal_share: f64,
    /// Used by programs that are neither the laboratory nor its server.
    pub foreign_share: f64,
    /// Counts are too coarse to show a share below this.
    pub resolution_share: f64,
}

impl Disturbance {
    /// The share of all cores that other programs and the hypervisor used together.
    pub fn share(&self) -> f64 {
        self.steal_share + self.foreign_share
    }

    /// Whether the disturbance is large enough to change the measurement.
    pub fn is_noticeable(&self) -> bool {
        self.share() > NOTICEABLE + self.resolution_share
    }
}

/// From this share of the machine on, other programs are a reason to doubt a load that is judged alone: on two cores a fifth of one.
const NOTICEABLE: f64 = 0.1;
/// The share of a run from which on stalls are a reason to doubt it: then they determine its p99.
const STALLED: f64 = 0.01;
/// A sentence names this many programs.
const NAMED: usize = 3;
/// And no smaller share than this.
const SHOWN: f64 = 0.005;

/// Other work of the machine while a load ran that has no other trials to be compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The shares of other programs and of the host.
    pub disturbance: Disturbance,
    /// The other programs, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ForeignProgram>,
    /// How an idle thread was held up; not known where none was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
}

/// A program that is neither the laboratory nor the server that it loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignProgram {
    /// The name of its processes.
    pub name: String,
    /// The time that the program used, as a share of the time of all cores.
    pub share: f64,
}

/// How late a thread woke that had nothing to do but to wake (jHiccup, Tene 2012).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// The longest stall, in seconds.
    pub longest_s: f64,
    /// The share of the run in all stalls together.
    pub share: f64,
}

impl Surroundings {
    /// Whether other programs or the host took enough of the machine to change the measurement.
    pub fn is_noticeable(&self) -> bool {
        self.disturbance.is_noticeable()
    }

    /// The stalls, where they make a part of the run that shows.
    pub fn noticeable_stalls(&self) -> Option<Stalls> {
        self.stalls.filter(|stalls| stalls.share >= STALLED)
    }
}

/// The disturbance in words: "other programs took 96 % of the machine (rustc 61 %, cc1 33 %), and its host 2 %".
impl fmt::Display for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disturbance { steal_share, foreign_share, .. } = self.disturbance;
        let stolen = steal_share >= SHOWN;
        if stolen && foreign_share < SHOWN {
            return write!(f, "the host of this machine took {} of it", percent(steal_share));
        }
        write!(f, "other programs took {} of the machine", percent(foreign_share))?;
        let shown = self.programs.iter().take(NAMED).filter(|program| program.share >= SHOWN);
        let named: Vec<String> =
            shown.map(|program| format!("{} {}", program.name, percent(program.share))).collect();
        if !named.is_empty() {
            write!(f, " ({})", named.join(", "))?;
        }
        if stolen { write!(f, ", and its host {}", percent(steal_share)) } else { Ok(()) }
    }
}

/// The usual disturbance of a run, and the trials that were disturbed by more than a bound beyond it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usual {
    /// The median over first attempts.
    share: f64,
    bound: f64,
}

impl Usual {
    /// Makes the usual disturbance from the shares of first attempts; a trial is disturbed beyond the usual by more than `bound`,
    /// which is a share, too.
    pub fn of(shares: &[f64], bound: f64) -> Self {
        Self { share: if shares.is_empty() { 0.0 } else { median(shares) }, bound }
    }

    /// Whether a trial was disturbed.
    pub fn is_beyond(&self, seen: &Disturbance) -> bool {
        seen.share() > self.share + self.bound + seen.resolution_share
    }

    /// The doubt about a machine that was never quiet.
    pub fn doubt(&self) -> Option<String> {
        (self.share > self.bound).then(|| {
            format!(
                "Other programs or the host took {:.0} % of the machine throughout, so no trial was undisturbed",
                self.share * 100.0
            )
        })
    }

    /// The reason why a trial does not count.
    pub fn words(&self, seen: &Disturbance) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        format!(
            "it was disturbed: other programs took {} of the machine and its host {}; {} together is usual in this run",
            percent(seen.foreign_share),
            percent(seen.steal_share),
            percent(self.share)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: f64 = 0.02;

    #[test]
    fn what_other_programs_took_is_named_by_program() {
        let program = |name: &str, share| ForeignProgram { name: name.to_owned(), share };
        let mut seen = Surroundings {
            disturbance: Disturbance { foreign_share: 0.96, ..Disturbance::default() },
            programs: vec![program("rustc", 0.61), program("cc1", 0.33), program("init", 0.001)],
            stalls: Some(Stalls { longest_s: 0.03, share: 0.002 }),
        };
        assert_eq!(seen.to_string(), "other programs took 96 % of the machine (rustc 61 %, cc1 33 %)");
        assert!(seen.is_noticeable() && seen.noticeable_stalls().is_none());
        seen.disturbance = Disturbance { steal_share: 0.08, resolution_share: 0.03, ..seen.disturbance };
        assert!(seen.to_string().ends_with(", and its host 8.0 %"));
        seen.disturbance.foreign_share = 0.0;
        assert_eq!(seen.to_string(), "the host of this machine took 8.0 % of it");
        seen.disturbance.foreign_share = 0.04;
        assert!(!seen.is_noticeable(), "the counts are too coarse for that");
        seen.stalls = Some(Stalls { longest_s: 0.03, share: 0.02 });
        assert_eq!(seen.noticeable_stalls().unwrap().longest_s, 0.03);
    }

    #[test]
    fn disturbed_is_what_is_beyond_the_usual() {
        let seen = |share| Disturbance { foreign_share: share, ..Disturbance::default() };
        let quiet = Usual::of(&[0.001, 0.002, 0.003, 0.3], BOUND);
        assert!(quiet.is_beyond(&seen(0.03)) && !quiet.is_beyond(&seen(0.02)) && quiet.doubt().is_none());
        // On a machine that is always so, nothing stands out, but that is said.
        let noisy = Usual::of(&[0.30, 0.31, 0.29], BOUND);
        assert!(!noisy.is_beyond(&seen(0.31)) && noisy.is_beyond(&seen(0.35)));
        assert!(noisy.doubt().unwrap().contains("30 %"));
        assert!(!Usual::of(&[], BOUND).is_beyond(&seen(0.0)));
    }
}
