//! The traffic equations: the arrival rate at each node, from outside and from other nodes.

use super::{Node, Routes};

/// The probabilities from each node to each next one and to the exit.
pub(super) struct Ways {
    next: Vec<Vec<f64>>,
    leave: Vec<f64>,
}

impl Ways {
    pub(super) fn of(nodes: &[Node], routes: &Routes) -> Self {
        let row = |node: &Node| {
            let row = routes.get(&node.name);
            let to = |next: &Node| row.and_then(|row| row.get(&next.name)).copied().unwrap_or(0.0);
            nodes.iter().map(to).collect::<Vec<f64>>()
        };
        let next: Vec<Vec<f64>> = nodes.iter().map(row).collect();
        // A smaller remainder is a rounding error of probabilities that should add up to 1.
        let left = |row: &Vec<f64>| 1.0 - row.iter().sum::<f64>();
        let leave = next.iter().map(left).map(|left| if left > 1e-9 { left } else { 0.0 }).collect();
        Self { next, leave }
    }
}

/// Solves λ = γ + λP, where `coming` is γ, for a network that every customer leaves. Eliminates one node after the other and
/// redirects its arrivals to where they would go next (Grassmann, Taksar and Heyman 1985). Nothing is subtracted, so every
/// rate has full precision however often customers return.
pub(super) fn solve(mut coming: Vec<f64>, ways: &Ways) -> Vec<f64> {
    let (mut next, mut leave) = (ways.next.clone(), ways.leave.clone());
    let nodes = coming.len();
    let mut going = vec![0.0; nodes];
    for k in (0..nodes).rev() {
        going[k] = leave[k] + next[k][..k].iter().sum::<f64>();
        for i in 0..k {
            let through = next[i][k] / going[k];
            if through > 0.0 {
                let (before, after) = next.split_at_mut(k);
                before[i][..k]
                    .iter_mut()
                    .zip(&after[0][..k])
                    .for_each(|(to, &onward)| *to += through * onward);
                leave[i] += through * leave[k];
            }
        }
        let through = coming[k] / going[k];
        if through > 0.0 {
            coming[..k].iter_mut().zip(&next[k][..k]).for_each(|(at, &onward)| *at += through * onward);
        }
    }
    let mut visits: Vec<f64> = Vec::with_capacity(nodes);
    for k in 0..nodes {
        let from_before: f64 = visits.iter().zip(&next).map(|(rate, row)| rate * row[k]).sum();
        visits.push((coming[k] + from_before) / going[k]);
    }
    visits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_customer_that_returns_is_counted_each_time() {
        // Each round ends with probability 1e-12, so there are 1e12 rounds.
        let ways = Ways { next: vec![vec![0.0, 1.0], vec![1.0 - 1e-12, 0.0]], leave: vec![0.0, 1e-12] };
        let visits = solve(vec![1.0, 0.0], &ways);
        assert!(visits.iter().all(|visits| (visits / 1e12 - 1.0).abs() < 1e-12), "{visits:?}");
    }

    proptest! {
        /// Flow conservation: what enters each node and the network also leaves it.
        #[test]
        fn flows_are_conserved(
            (coming, rows) in (1usize..8).prop_flat_map(|n| (
                prop::collection::vec(0.0f64..10.0, n),
                prop::collection::vec((prop::collection::vec(0.0f64..1.0, n), 0.01f64..1.0), n),
            ))
        ) {
            let share = |(row, leave): &(Vec<f64>, f64)| {
                let sum = row.iter().sum::<f64>() + leave;
                (row.iter().map(|p| p / sum).collect::<Vec<f64>>(), leave / sum)
            };
            let (next, leave) = rows.iter().map(share).unzip();
            let ways = Ways { next, leave };
            let visits = solve(coming.clone(), &ways);
            let total: f64 = coming.iter().sum();
            for (k, &at) in visits.iter().enumerate() {
                let into = coming[k] + visits.iter().zip(&ways.next).map(|(rate, row)| rate * row[k]).sum::<f64>();
                prop_assert!((at - into).abs() <= 1e-12 * (1.0 + at), "node {}: {} and {}", k, at, into);
            }
            let out: f64 = visits.iter().zip(&ways.leave).map(|(rate, leave)| rate * leave).sum();
            prop_assert!((out - total).abs() <= 1e-11 * (1.0 + total), "{} in, {} out", total, out);
        }
    }
}
