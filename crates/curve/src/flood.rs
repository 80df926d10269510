//! Judges from what a server refuses whether it is flooded, and which packets the kernel is to thin out before they cost
//! anything. It has neither a socket nor a clock: [`filter`](crate::filter) translates its decision for the kernel.

use std::time::Duration;

use curvecp::{Network, Refusals};

/// How often the judge decides anew.
const INTERVAL: Duration = Duration::from_millis(100);
/// Networks that are thinned out on their own, at most.
const NETWORKS: usize = 8;
/// The part of a server's rate of answers that one network gets.
const NETWORK_PART: f64 = 0.25;
/// Refusals per second that cost too little to act on, however low the rate of answers is.
const LEAST_RATE_PER_S: f64 = 1_000.0;
/// How often the share that passes is halved, at most.
const MAX_HALVINGS: u32 = 16;

/// The share of the packets without a connection that still passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thinning {
    /// Networks of which one packet in 2^n passes.
    pub(crate) networks: Vec<(Network, u32)>,
    /// The limit for all other networks together.
    pub(crate) others: u32,
}

impl Thinning {
    pub(crate) fn is_none(&self) -> bool {
        self.networks.is_empty() && self.others == 0
    }
}

/// Decides on thinning.
#[derive(Debug)]
pub(crate) struct Judge {
    /// Refusals per second to which a flood is thinned out: as many as there are answers, so a client that thinning delays
    /// would mostly have been refused.
    rate_per_s: f64,
    judged: Duration,
    thinning: Thinning,
}

impl Judge {
    /// For a server that answers the given number of Hellos per second.
    pub(crate) fn new(now: Duration, hellos_per_s: u32) -> Self {
        let rate_per_s = f64::from(hellos_per_s).max(LEAST_RATE_PER_S);
        Self { rate_per_s, judged: now, thinning: Thinning::default() }
    }

    pub(crate) fn thinning(&self) -> &Thinning {
        &self.thinning
    }

    pub(crate) fn is_due(&self, now: Duration) -> bool {
        now >= self.judged + INTERVAL
    }

    /// When to judge even if nothing arrives, so that thinning ends after the flood.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        (!self.thinning.is_none()).then_some(self.judged + INTERVAL)
    }

    /// Decides by the refusals since the last decision; true where the decision differs from the last.
    pub(crate) fn judge(&mut self, now: Duration, refusals: &Refusals) -> bool {
        let seconds = now.saturating_sub(self.judged).max(INTERVAL).as_secs_f64();
        self.judged = now;
        let before = self.thinning.clone();
        let mut others = refusals.total();
        let mut refused_of = |network| {
            let (_, count) = refusals.networks().find(|(refused, _)| *refused == network)?;
            others -= count;
            Some(count as f64 / seconds)
        };
        let network_rate = self.rate_per_s * NETWORK_PART;
        for (network, halvings) in &mut self.thinning.networks {
            *halvings = halvings_after(*halvings, refused_of(*network).unwrap_or(0.0), network_rate);
        }
        for (network, count) in refusals.networks() {
            let listed = before.networks.iter().any(|(listed, _)| *listed == network);
            let halvings = halvings_after(0, count as f64 / seconds, network_rate);
            if !listed && halvings > 0 && self.thinning.networks.len() < NETWORKS {
                _ = refused_of(network);
                self.thinning.networks.push((network, halvings));
            }
        }
        self.thinning.networks.retain(|(_, halvings)| *halvings > 0);
        self.thinning.others = halvings_after(self.thinning.others, others as f64 / seconds, self.rate_per_s);
        self.thinning != before
    }
}

/// How often to halve the share that passes from now on.
///
/// More than twice the rate is refused: what arrives, the rate of answers included, is brought below twice the rate. Hardly
/// anything is refused: twice as much may arrive, which is still not too much.
fn halvings_after(halvings: u32, refused_per_s: f64, rate_per_s: f64) -> u32 {
    if refused_per_s > 2.0 * rate_per_s {
        let excess = (refused_per_s + rate_per_s) / (2.0 * rate_per_s);
        (halvings + excess.log2().ceil() as u32).min(MAX_HALVINGS)
    } else if refused_per_s < rate_per_s / 8.0 {
        halvings.saturating_sub(1)
    } else {
        halvings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    const RATE: u32 = 4_000;

    /// A judge, and what the kernel passes and a server refuses by its decisions, in virtual time.
    struct Flood {
        judge: Judge,
        now: Duration,
        /// Packets per second of each source.
        sources: Vec<(IpAddr, f64)>,
    }

    impl Flood {
        fn new(sources: impl IntoIterator<Item = ([u8; 4], f64)>) -> Self {
            let sources = sources.into_iter().map(|(ip, per_s)| (ip.into(), per_s)).collect();
            Self { judge: Judge::new(Duration::ZERO, RATE), now: Duration::ZERO, sources }
        }

        fn passed_of(&self, ip: IpAddr) -> f64 {
            let Thinning { networks, others } = self.judge.thinning();
            let listed = networks.iter().find(|(network, _)| *network == Network::of(ip));
            0.5_f64.powi(listed.map_or(*others, |(_, halvings)| *halvings) as i32)
        }

        /// Packets that reach the server, per second.
        fn arriving(&self) -> f64 {
            self.sources.iter().map(|(ip, per_s)| per_s * self.passed_of(*ip)).sum()
        }

        /// Runs for a number of decisions; returns how many changed something.
        fn run(&mut self, decisions: usize) -> usize {
            let mut changes = 0;
            for _ in 0..decisions {
                let mut refusals = Refusals::default();
                let answered = (f64::from(RATE) / self.arriving()).min(1.0);
                let mut turns: Vec<(f64, IpAddr)> = vec![];
                for (ip, per_s) in &self.sources {
                    let refused = per_s * self.passed_of(*ip) * (1.0 - answered) * INTERVAL.as_secs_f64();
                    turns.extend((0..refused as u32).map(|i| (f64::from(i) / refused, *ip)));
                }
                turns.sort_by(|a, b| a.0.total_cmp(&b.0));
                turns.iter().for_each(|(_, ip)| refusals.count(*ip));
                self.now += INTERVAL;
                assert!(self.judge.is_due(self.now));
                changes += usize::from(self.judge.judge(self.now, &refusals));
            }
            changes
        }
    }

    #[test]
    fn a_server_that_refuses_little_is_left_alone() {
        let mut flood = Flood::new([([10, 0, 0, 1], 5_000.0)]);
        assert_eq!(flood.run(100), 0);
        assert_eq!(flood.judge.deadline(), None);
    }

    #[test]
    fn a_flood_from_one_network_is_thinned_out_at_once_and_no_other_is() {
        let mut flood = Flood::new([([10, 0, 0, 1], 200_000.0), ([10, 0, 0, 77], 100_000.0)]);
        flood.run(3);
        assert!(flood.arriving() < f64::from(RATE) * 2.0, "{}", flood.arriving());
        assert_eq!(flood.passed_of([10, 0, 1, 1].into()), 1.0);
        assert!(flood.run(100) < 50, "decisions settle");
        assert!(flood.arriving() < f64::from(RATE) * 3.0);
    }

    #[test]
    fn a_flood_from_everywhere_is_thinned_out_everywhere() {
        let mut flood = Flood::new((0..=255).map(|i| ([10, 0, i, 1], 1_000.0)));
        flood.run(2);
        assert!((1.0..=3.0).contains(&(flood.arriving() / f64::from(RATE))), "{}", flood.arriving());
        assert_eq!(flood.judge.thinning().networks, []);
    }

    #[test]
    fn thinning_ends_soon_after_the_flood_also_when_nothing_arrives() {
        let mut flood = Flood::new((0..=255).map(|i| ([10, 0, i, 1], 4_000.0)));
        flood.run(10);
        assert_eq!(flood.judge.deadline(), Some(flood.now + INTERVAL));
        flood.sources.clear();
        flood.run(10);
        assert_eq!((flood.judge.thinning(), flood.judge.deadline()), (&Thinning::default(), None));
    }

    #[test]
    fn more_networks_than_can_be_listed_are_thinned_out_together() {
        let mut flood = Flood::new((0..20).map(|i| ([10, 0, i, 1], 20_000.0)));
        flood.run(20);
        assert!(flood.arriving() < f64::from(RATE) * 6.0, "{}", flood.arriving());
        assert!(flood.judge.thinning().networks.len() <= NETWORKS);
    }
}
