//! What else the machine did while a trial ran, and whether that disturbed the trial.
//!
//! A machine that is shared is never quite quiet; therefore a trial is called disturbed by how much it was disturbed beyond what
//! was usual in the same run, and not by a fixed bound that a noisy machine would always break.

use kendall_stats::median;
use serde::{Deserialize, Serialize};

/// What else the machine did while a trial ran, as shares of what all its cores had to give.
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
    /// Both together.
    pub fn share(&self) -> f64 {
        self.steal_share + self.foreign_share
    }
}

/// What is usual in a run, and which of its trials were disturbed beyond that by more than a bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usual {
    /// The median over first attempts.
    share: f64,
    bound: f64,
}

impl Usual {
    /// By the shares of first attempts; a trial is disturbed beyond the usual by more than `bound`, which is a share, too.
    pub fn of(shares: &[f64], bound: f64) -> Self {
        Self { share: if shares.is_empty() { 0.0 } else { median(shares) }, bound }
    }

    /// Whether a trial was disturbed.
    pub fn is_beyond(&self, seen: &Disturbance) -> bool {
        seen.share() > self.share + self.bound + seen.resolution_share
    }

    /// What is to be said of a machine that was never quiet.
    pub fn doubt(&self) -> Option<String> {
        (self.share > self.bound).then(|| {
            format!(
                "Other programs or the host took {:.0} % of the machine throughout, so no trial was undisturbed",
                self.share * 100.0
            )
        })
    }

    /// Why a trial does not count.
    pub fn words(&self, seen: &Disturbance) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        format!(
            "it was disturbed: other programs took {} of the machine and its host {}, where {} together is usual in this run",
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
