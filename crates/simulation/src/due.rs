//! A tournament tree over the servers that gives the earliest of their next events.

use std::hint::select_unpredictable;

/// The instants of the next events, one for each server.
pub(super) struct Due {
    /// The tree: 1 is the root, the children of i are 2i and 2i + 1, and the second half are the servers. Each holds
    /// the instant of the first event below it, and its server; among equals the lower number wins.
    nodes: Vec<(f64, u32)>,
}

impl Due {
    /// A tree of this many servers, without events.
    pub(super) fn new(servers: usize) -> Self {
        let leaves = servers.next_power_of_two();
        let mut nodes = vec![(f64::INFINITY, 0); 2 * leaves];
        (0..leaves).for_each(|server| nodes[leaves + server].1 = server as u32);
        Self { nodes }
    }

    /// The first event and its server; infinite if no event is planned.
    #[inline]
    pub(super) fn first(&self) -> (f64, usize) {
        let (at_s, server) = self.nodes[1];
        (at_s, server as usize)
    }

    /// Plans the next event of a server and replaces its previous one.
    #[inline]
    pub(super) fn plan(&mut self, server: usize, at_s: f64) {
        let nodes = self.nodes.as_mut_slice();
        let mut node = nodes.len() / 2 + server;
        let mut winner = (at_s, server as u32);
        nodes[node] = winner;
        while node > 1 {
            let sibling = nodes[node ^ 1];
            // The winner is unpredictable, so this avoids a branch.
            let ahead = (sibling.0 < winner.0) | ((node & 1 == 1) & (sibling.0 == winner.0));
            winner.0 = select_unpredictable(ahead, sibling.0, winner.0);
            winner.1 = select_unpredictable(ahead, sibling.1, winner.1);
            node /= 2;
            nodes[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_and_of_equals_the_lowest(
            servers in 1usize..40,
            plans in prop::collection::vec((0usize..40, 0u8..9), 0..100),
        ) {
            let mut due = Due::new(servers);
            let mut plain = vec![f64::INFINITY; servers];
            for (server, at) in plans {
                let (server, at_s) = (server % servers, if at == 0 { f64::INFINITY } else { f64::from(at) });
                due.plan(server, at_s);
                plain[server] = at_s;
                let least = plain.iter().copied().fold(f64::INFINITY, f64::min);
                let first = plain.iter().position(|&at_s| at_s == least).unwrap();
                prop_assert_eq!(due.first().0, least);
                prop_assert!(least.is_infinite() || due.first().1 == first);
            }
        }
    }
}
