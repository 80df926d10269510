//! The networks from which users have logged in of late. A guesser elsewhere does not slow them down there.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::network::Network;
use crate::name::NameKey;

/// The time for which a network is known after a log-in.
const KNOWN_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

type Pair = (NameKey, Network);

/// Pairs of account and network, each with its last log-in. When there are as many as may be, the oldest gives way.
#[derive(Debug)]
pub(super) struct KnownNetworks {
    most: usize,
    last: HashMap<Pair, Duration>,
    order: BTreeSet<(Duration, Pair)>,
}

impl KnownNetworks {
    pub(super) fn new(most: usize) -> Self {
        Self { most, last: HashMap::new(), order: BTreeSet::new() }
    }

    /// The user of an account has logged in from a network.
    pub(super) fn add(&mut self, now: Duration, key: &NameKey, network: Network) {
        let pair = (key.clone(), network);
        if let Some(before) = self.last.remove(&pair) {
            self.order.remove(&(before, pair.clone()));
        }
        if self.last.len() >= self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.last.remove(&oldest);
        }
        self.order.insert((now, pair.clone()));
        self.last.insert(pair, now);
    }

    /// Whether the user of an account has logged in from a network of late.
    pub(super) fn contains(&self, now: Duration, key: &NameKey, network: Network) -> bool {
        let last = self.last.get(&(key.clone(), network));
        last.is_some_and(|last| now.saturating_sub(*last) < KNOWN_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    #[test]
    fn networks_are_known_for_a_month_and_the_oldest_gives_way() {
        let key = |name: &str| Name::new(name).unwrap().key().clone();
        let network = |last: u8| Network::of([192, 0, 2, last].into());
        let mut known = KnownNetworks::new(2);
        let day = Duration::from_secs(24 * 3600);
        known.add(day, &key("alice"), network(1));
        assert!(known.contains(30 * day, &key("alice"), network(1)));
        assert!(!known.contains(31 * day, &key("alice"), network(1)));
        assert!(!known.contains(day, &key("alice"), network(2)));
        assert!(!known.contains(day, &key("bob"), network(1)));
        known.add(2 * day, &key("bob"), network(1));
        known.add(3 * day, &key("alice"), network(1));
        known.add(4 * day, &key("carol"), network(1));
        assert!(known.contains(4 * day, &key("alice"), network(1)), "renewed");
        assert!(!known.contains(4 * day, &key("bob"), network(1)));
        assert_eq!((known.last.len(), known.order.len()), (2, 2));
    }
}
