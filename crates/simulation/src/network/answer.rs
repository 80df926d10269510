//! The answer of a network simulation.

use kendall_station::{Answer, By, Estimate};
use serde::{Deserialize, Serialize};

use super::spot::{Layout, Spot};
use super::watch::{Counts, PHASES, Stands, Totals, Watch, ratio};
use crate::SimulationError;
use crate::observer::{self, Observer};

/// The answer of a network simulation: for the network as a whole, and for each node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkAnswer {
    /// From the instant a customer arrived from outside until it left: its visits, and the time between retries. The
    /// number in the system counts all that have not left, those between retries included; lost are all that were not
    /// served; the utilisation is that of all servers together.
    pub overall: Answer,
    /// The answer of each node, in the order of the network.
    pub nodes: Vec<NodeAnswer>,
    /// The share of all customers that left because a node was full.
    pub turned_away: Estimate,
    /// The share of all customers that left because they lost their patience.
    pub abandoned: Estimate,
    /// The share of all customers that left because their server broke down.
    pub broken: Estimate,
    /// The mean number of retries of a customer.
    pub retries: Estimate,
    /// By phase of the period, where the arrivals have one; the rest of this answer is the average over the period.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseAnswer>,
    /// The customers of the whole simulation, warm-up included.
    pub counts: Counts,
}

/// The answer for one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeAnswer {
    /// The node's name.
    pub name: String,
    /// The answer for single visits: the response time is that of one visit, from admission until leaving the node, and
    /// lost is the share of the attempts that were not served. `None` if too few customers visited the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The mean number of visits of a customer.
    pub visits: Estimate,
    /// The mean share of the servers that is broken.
    pub down: Estimate,
    /// The mean share of the servers that is being set up.
    pub setting_up: Estimate,
    /// The mean number of customers that are served and wait for capacity at another node.
    pub blocked: Estimate,
}

/// The response times of customers that arrived in one phase of the period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseAnswer {
    /// The phase, from the beginning of a period, in seconds.
    pub from_s: f64,
    /// The end of the phase.
    pub to_s: f64,
    /// The mean response time of those that arrived in it and were served.
    pub response_s: Estimate,
    /// The share of all served customers that arrived in the phase.
    pub share: Estimate,
}

/// Builds the answer of one run, or of several independent ones.
pub(super) fn of(watches: Vec<Watch>, layout: &Layout, seed: u64) -> Result<NetworkAnswer, SimulationError> {
    let mut counts = Counts::default();
    let (mut overall, mut tallies) = (Vec::new(), Vec::new());
    let mut nodes: Vec<Vec<Observer>> = layout.spots.iter().map(|_| Vec::new()).collect();
    for watch in watches {
        counts.add(&watch.counts);
        overall.push(watch.overall);
        tallies.push(watch.tally);
        nodes.iter_mut().zip(watch.nodes).for_each(|(all, one)| all.push(one));
    }
    let all: u64 = overall.iter().map(Observer::customers).sum();
    let overall = observer::answer(overall, &layout.overall, seed)?;
    // Cuts the same share of the sums as warm-up as of the customers.
    let kept = match &overall.by {
        By::Simulation { customers, .. } => {
            let served = 1.0 - overall.lost.value.min(0.999_999);
            *customers as f64 / served / all as f64
        }
        _ => 1.0,
    };
    let sections: Vec<&Totals> = tallies.iter().flat_map(|tally| tally.last(kept)).collect();
    let share = |of: fn(&Totals) -> f64| ratio(&sections, of, |s| s.ended).within_bounds(0.0, 1.0);
    let node = |(i, (spot, observers)): (usize, (&Spot, Vec<Observer>))| {
        let servers = f64::from(spot.station.servers.get());
        let mean =
            |of: fn(&Stands) -> f64, among: f64| ratio(&sections, |s| of(&s.nodes[i]), |s| s.span_s * among);
        NodeAnswer {
            name: spot.name.clone(),
            answer: observer::answer(observers, &spot.station, seed).ok(),
            visits: ratio(&sections, |s| s.nodes[i].visits, |s| s.ended),
            down: mean(|s| s.down_s, servers).within_bounds(0.0, 1.0),
            setting_up: mean(|s| s.setting_up_s, servers).within_bounds(0.0, 1.0),
            blocked: mean(|s| s.blocked_s, 1.0),
        }
    };
    Ok(NetworkAnswer {
        nodes: layout.spots.iter().zip(nodes).enumerate().map(node).collect(),
        turned_away: share(|s| s.turned_away),
        abandoned: share(|s| s.abandoned),
        broken: share(|s| s.broken),
        retries: ratio(&sections, |s| s.retries, |s| s.ended),
        phases: layout.period_s.map_or_else(Vec::new, |period_s| phases(&sections, period_s)),
        counts,
        overall,
    })
}

fn phases(sections: &[&Totals], period_s: f64) -> Vec<PhaseAnswer> {
    let width_s = period_s / PHASES as f64;
    let served = |s: &Totals| s.phases.iter().map(|phase| phase.1).sum::<f64>();
    let phase = |i: usize| PhaseAnswer {
        from_s: i as f64 * width_s,
        to_s: (i + 1) as f64 * width_s,
        response_s: ratio(sections, |s| s.phases[i].0, |s| s.phases[i].1),
        share: ratio(sections, |s| s.phases[i].1, served).within_bounds(0.0, 1.0),
    };
    (0..PHASES).map(phase).collect()
}
