//! The order of a turn's operations: a list scheduler.

use super::graph::Value;
use super::stages::{LATENCY, Staged};

/// Vector operations a cycle, on the processors whose throughput this is tuned for.
const WIDTH: usize = 4;
/// The number of units that can shift.
const SHIFTS: usize = 2;

/// The order of all operations of one turn, except reads. An operation that is more than `window` positions
/// ahead of the first one not yet done is only taken if no other is ready.
pub(crate) fn schedule(staged: &Staged, window: usize) -> Vec<Value> {
    let Staged { graph, due, .. } = staged;
    let mut waiting: Vec<Value> = graph.values().filter(|&value| !graph.is_read(value)).collect();
    waiting.sort_by(|a, b| due[a.0].total_cmp(&due[b.0]));

    let after = precedence(staged);
    // The cycle in which each operation begins.
    let mut begun: Vec<Option<usize>> = vec![None; graph.nodes.len()];
    let mut order = Vec::with_capacity(waiting.len());
    let (mut cycle, mut reach) = (0, window);
    while !waiting.is_empty() {
        let (mut taken, mut shifts) = (0, 0);
        let mut place = 0;
        while place < waiting.len().min(reach) && taken < WIDTH {
            let value = waiting[place];
            let shift = usize::from(graph.op(value).shifts());
            let ready = after[value.0]
                .iter()
                .all(|&(before, cycles)| begun[before.0].is_some_and(|begun| begun + cycles <= cycle));
            if ready && shifts + shift <= SHIFTS {
                begun[value.0] = Some(cycle);
                order.push(waiting.remove(place));
                taken += 1;
                shifts += shift;
            } else {
                place += 1;
            }
        }
        cycle += 1;
        reach = if taken > 0 { window } else { reach + 1 };
    }
    order
}

/// For each operation, the ones it must follow, and after how many cycles: those it needs, and all that still
/// need the value of the previous turn that it overwrites.
fn precedence(staged: &Staged) -> Vec<Vec<(Value, usize)>> {
    let graph = &staged.graph;
    let mut after = vec![Vec::new(); graph.nodes.len()];
    for user in graph.values() {
        for &value in graph.arguments(user).iter().filter(|&&value| !graph.is_read(value)) {
            if staged.is_carried(value, user) {
                after[value.0].push((user, 0));
            } else {
                after[user.0].push((value, LATENCY));
            }
        }
    }
    after
}
