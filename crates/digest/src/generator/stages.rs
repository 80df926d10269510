//! Cuts a formula into stages, so that a loop can work on several vectors at once: in one turn each stage takes
//! the next step of another vector.

use std::collections::HashMap;

use super::graph::{Graph, Op, Value};

/// Cycles from an operation to one that needs its result. The same for all vector operations used here, on the
/// processors whose throughput this is tuned for.
pub(crate) const LATENCY: usize = 2;

/// A formula in stages. A value that a later stage needs is carried: the later stage reads what the previous
/// turn has left.
pub(crate) struct Staged {
    pub(crate) graph: Graph,
    /// The stage of each value.
    pub(crate) stage: Vec<usize>,
    /// When in its turn each value is due, from 0 to 1, so that all stages advance evenly.
    pub(crate) due: Vec<f64>,
    pub(crate) result: Value,
}

impl Staged {
    /// Cuts where the given shares of the longest chain of operations are done. Operations outside that chain
    /// come as late as possible, because early values occupy registers.
    pub(crate) fn new(graph: Graph, cuts: &[f64]) -> Self {
        let start = latest_starts(&graph);
        let bounds: Vec<f64> = [0.0].into_iter().chain(cuts.iter().copied()).chain([1.0]).collect();
        let stage_of = |share: f64| cuts.iter().filter(|&&cut| cut <= share).count();
        let stage: Vec<usize> = start.iter().map(|&share| stage_of(share)).collect();
        let due = stage.iter().zip(&start);
        let due = due.map(|(&stage, share)| (share - bounds[stage]) / (bounds[stage + 1] - bounds[stage]));
        let mut staged = Self { due: due.collect(), stage, result: Value(graph.nodes.len() - 1), graph };
        staged.pass_on();
        staged
    }

    /// Whether `value` reaches `user` from the previous turn.
    pub(crate) fn is_carried(&self, value: Value, user: Value) -> bool {
        !self.graph.is_read(value) && self.stage[value.0] < self.stage[user.0]
    }

    /// Copies values that are carried for more than one turn in each stage between.
    fn pass_on(&mut self) {
        let mut copies = HashMap::new();
        for user in self.graph.values() {
            for place in 0..self.graph.arguments(user).len() {
                let mut value = self.graph.arguments(user)[place];
                if self.graph.is_read(value) {
                    continue;
                }
                for stage in self.stage[value.0] + 1..self.stage[user.0] {
                    value = *copies.entry((value, stage)).or_insert_with(|| {
                        let copy = self.graph.add(Op::Copy, vec![value]);
                        self.stage.push(stage);
                        self.due.push(self.due[value.0]);
                        copy
                    });
                }
                self.graph.nodes[user.0].arguments[place] = value;
            }
        }
    }
}

/// The latest start of each step for the earliest possible result, as a share of that time.
fn latest_starts(graph: &Graph) -> Vec<f64> {
    let mut height = vec![0; graph.nodes.len()];
    for value in graph.values().rev() {
        let own = height[value.0] + if graph.is_read(value) { 0 } else { LATENCY };
        height[value.0] = own;
        for argument in graph.arguments(value) {
            height[argument.0] = height[argument.0].max(own);
        }
    }
    let longest = height.iter().copied().max().expect("a formula has steps");
    height.iter().map(|&height| (longest - height) as f64 / longest as f64).collect()
}
