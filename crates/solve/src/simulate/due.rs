//! Which of some servers is due first: a tournament, in which each has the instant of its next event.

/// The instants of the next events, one for each server.
pub(super) struct Due {
    /// By server, then filled up to a power of two; infinite where nothing is planned.
    at_s: Vec<f64>,
    /// The tree: 1 is the root, the children of i are 2i and 2i + 1, and the leaves are the servers in pairs. Holds who
    /// is first below. Of equals, the lower number.
    first: Vec<u32>,
}

impl Due {
    /// Of so many servers, with nothing planned.
    pub(super) fn new(servers: usize) -> Self {
        let places = servers.next_power_of_two().max(2);
        let mut due = Self { at_s: vec![f64::INFINITY; places], first: vec![0; places] };
        for node in (1..places).rev() {
            let left = 2 * node;
            due.first[node] = if left < places { due.first[left] } else { (left - places) as u32 };
        }
        due
    }

    /// The first event, and at which server; infinite if nothing is planned.
    #[inline]
    pub(super) fn first(&self) -> (f64, usize) {
        let server = self.first[1] as usize;
        (self.at_s[server], server)
    }

    /// Plans the next event of a server, in place of any other.
    #[inline]
    pub(super) fn plan(&mut self, server: usize, at_s: f64) {
        self.at_s[server] = at_s;
        let places = self.at_s.len();
        let mut node = (places + server) / 2;
        let pair = server & !1;
        let mut winner = self.sooner(pair as u32, pair as u32 + 1);
        self.first[node] = winner;
        while node > 1 {
            let sibling = self.first[node ^ 1];
            winner = if node & 1 == 0 { self.sooner(winner, sibling) } else { self.sooner(sibling, winner) };
            node /= 2;
            self.first[node] = winner;
        }
    }

    #[inline]
    fn sooner(&self, left: u32, right: u32) -> u32 {
        if self.at_s[right as usize] < self.at_s[left as usize] { right } else { left }
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
