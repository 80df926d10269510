//! The packets that the wire loses: independently, or many in a row.

use crate::random::Stream;

/// How packets are lost on the wire, after the queue and in addition to its drops.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost independently with this probability.
    Random {
        /// From 0 to 1.
        share: f64,
    },
    /// The channel of Gilbert (1960) and Elliott (1963): it is in a good or in a bad state, which may change before each
    /// packet, and loses packets with another probability in each.
    GilbertElliott {
        /// Probability that a good channel turns bad (p).
        worsens: f64,
        /// Probability that a bad channel turns good (r).
        recovers: f64,
        /// Share of packets lost while it is bad (1 − h).
        lost_in_bad: f64,
        /// Share of packets lost while it is good (1 − k).
        lost_in_good: f64,
    },
}

impl Loss {
    /// Losses that come in bursts: the average share of lost packets is `share`, in runs of this mean length (at least 1). This is
    /// Gilbert's channel that loses everything while it is bad. `None` if no channel does that: if the share is not below 1, or too
    /// high for runs this short.
    pub fn bursts(share: f64, mean_length: f64) -> Option<Self> {
        let recovers = 1.0 / mean_length;
        let worsens = recovers * share / (1.0 - share);
        let possible = (0.0..1.0).contains(&share) && mean_length >= 1.0 && worsens <= 1.0;
        possible.then_some(Self::GilbertElliott { worsens, recovers, lost_in_bad: 1.0, lost_in_good: 0.0 })
    }

    /// The long-run share of packets that it loses.
    pub fn share(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Random { share } => share,
            Self::GilbertElliott { lost_in_bad, lost_in_good, .. } => {
                let bad = self.time_in_bad();
                bad * lost_in_bad + (1.0 - bad) * lost_in_good
            }
        }
    }

    /// The ratio of the long-run variance of the share of lost packets to that of independent losses: 1 or more.
    pub fn clumping(&self) -> f64 {
        let Self::GilbertElliott { worsens, recovers, lost_in_bad, lost_in_good } = *self else { return 1.0 };
        let (bad, share) = (self.time_in_bad(), self.share());
        let stays = 1.0 - worsens - recovers;
        let varies = share * (1.0 - share);
        if varies <= 0.0 || stays <= 0.0 || stays >= 1.0 {
            return 1.0;
        }
        // The correlation of the states of packets that are k apart is the k-th power of 1 − p − r.
        let between = (lost_in_bad - lost_in_good).powi(2) * bad * (1.0 - bad);
        1.0 + 2.0 * between * stays / (1.0 - stays) / varies
    }

    /// The long-run share of packets that find a bad channel.
    fn time_in_bad(&self) -> f64 {
        match *self {
            Self::GilbertElliott { worsens, recovers, .. } if worsens > 0.0 => worsens / (worsens + recovers),
            _ => 0.0,
        }
    }
}

/// The state of a channel, one packet after the other.
#[derive(Clone, Debug)]
pub struct Channel {
    loss: Loss,
    bad: bool,
    stream: Stream,
}

impl Channel {
    /// A channel in its steady state.
    pub(crate) fn new(loss: Loss, mut stream: Stream) -> Self {
        let bad = stream.happens(loss.time_in_bad());
        Self { loss, bad, stream }
    }

    /// A channel alone, in its steady state: for callers that lose other things than packets of a [`Link`](crate::Link).
    pub fn alone(loss: Loss, seed: u64) -> Self {
        Self::new(loss, Stream::new(seed, crate::random::Purpose::Loss))
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Random { share } => self.stream.happens(share),
            Loss::GilbertElliott { worsens, recovers, lost_in_bad, lost_in_good } => {
                let changes = self.stream.happens(if self.bad { recovers } else { worsens });
                self.bad ^= changes;
                self.stream.happens(if self.bad { lost_in_bad } else { lost_in_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far a share of n independent draws may stray: 5 standard deviations, a false alarm of 6 in 10⁷.
    fn tolerance(share: f64, draws: u64) -> f64 {
        5.0 * (share * (1.0 - share) / draws as f64).sqrt()
    }

    #[test]
    fn independent_losses_come_at_their_share() {
        for (seed, share) in [(1, 0.001), (2, 0.1), (3, 0.5), (4, 1.0)] {
            let mut channel = Channel::alone(Loss::Random { share }, seed);
            let lost = (0..400_000).filter(|_| channel.loses()).count();
            assert!((lost as f64 / 400_000.0 - share).abs() <= tolerance(share, 400_000), "{share}: {lost}");
        }
    }

    #[test]
    fn bursts_have_the_share_and_the_length_asked_for() {
        let (share, length) = (0.02, 5.0);
        let mut channel = Channel::alone(Loss::bursts(share, length).unwrap(), 5);
        let lost: Vec<bool> = (0..2_000_000).map(|_| channel.loses()).collect();
        let runs: Vec<f64> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(|run| run.len() as f64).collect();
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        // Lengths are geometric, so their standard deviation is √(1 − r)/r; 5 of the mean's, as above.
        let r = 1.0 / length;
        let error = 5.0 * (1.0 - r).sqrt() / r / (runs.len() as f64).sqrt();
        assert!((mean - length).abs() < error, "mean run {mean}, {} runs", runs.len());
        // A two-state chain's share has the variance of independent draws times (1 + λ)/(1 − λ), λ = 1 − p − r.
        let p = r * share / (1.0 - share);
        let lambda = 1.0 - p - r;
        let clumping = (1.0 + lambda) / (1.0 - lambda);
        assert!((Loss::bursts(share, length).unwrap().clumping() / clumping - 1.0).abs() < 1e-12);
        let error = tolerance(share, 2_000_000) * clumping.sqrt();
        let seen = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
        assert!((seen - share).abs() < error, "share {seen}");
    }

    #[test]
    fn all_four_parameters_count() {
        let loss = Loss::GilbertElliott { worsens: 0.1, recovers: 0.3, lost_in_bad: 0.5, lost_in_good: 0.01 };
        assert!((loss.share() - 0.1325).abs() < 1e-12);
        let mut channel = Channel::alone(loss, 6);
        let lost = (0..1_000_000).filter(|_| channel.loses()).count() as f64 / 1e6;
        assert!((lost - 0.1325).abs() < 2.0 * tolerance(0.1325, 1_000_000), "{lost}");
    }

    #[test]
    fn impossible_bursts_are_rejected() {
        assert!(Loss::bursts(1.0, 5.0).is_none());
        assert!(Loss::bursts(0.9, 1.0).is_none(), "runs of one packet can lose no more than every second");
        assert!(Loss::bursts(0.1, 0.5).is_none());
        assert!(Loss::bursts(f64::NAN, 2.0).is_none());
    }
}
