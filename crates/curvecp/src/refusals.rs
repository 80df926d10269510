//! Datagrams that a server did not answer and that belong to no connection, counted by the network that they claim to come
//! from. The owner of the socket can keep further ones away before they cost anything.

use std::net::IpAddr;

/// Networks that are counted at once. Those that sent more than one in nine refused datagrams are among them.
const NETWORKS: usize = 8;

/// The addresses that one attacker may own: a /24 of IPv4 or a /56 of IPv6, as the bytes that all its addresses begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Network {
    /// A network of IPv4, also where the socket is one of IPv6.
    V4([u8; 3]),
    /// A network of IPv6.
    V6([u8; 7]),
}

impl Network {
    /// The network of an address.
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(*ip.octets().first_chunk().expect("an address of IPv4 has 4 bytes")),
            IpAddr::V6(ip) => Self::V6(*ip.octets().first_chunk().expect("an address of IPv6 has 16 bytes")),
        }
    }
}

/// Datagrams that a server has refused since the last count: Hellos beyond its rate or for another server, and datagrams that
/// are not packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    total: u64,
    networks: [Option<(Network, u64)>; NETWORKS],
}

impl Refusals {
    /// Counts a datagram from this address.
    ///
    /// The algorithm of Misra and Gries (1982): a datagram of a network without a counter takes one from each counter, so what
    /// remains is a lower bound, by at most a ninth of the total.
    pub fn count(&mut self, from: IpAddr) {
        self.total += 1;
        let network = Network::of(from);
        let mut free = None;
        for (i, counter) in self.networks.iter_mut().enumerate() {
            match counter {
                Some((counted, count)) if *counted == network => {
                    *count += 1;
                    return;
                }
                Some(_) => {}
                None => free = Some(i),
            }
        }
        if let Some(free) = free {
            self.networks[free] = Some((network, 1));
            return;
        }
        for counter in &mut self.networks {
            *counter = counter.map(|(network, count)| (network, count - 1)).filter(|(_, count)| *count > 0);
        }
    }

    /// All refused datagrams.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The networks that sent the most, and how many datagrams at least.
    pub fn networks(&self) -> impl Iterator<Item = (Network, u64)> {
        self.networks.iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn an_address_of_ipv4_is_in_one_network_at_sockets_of_both_families() {
        let [plain, mapped] = ["192.0.2.7", "::ffff:192.0.2.9"].map(|ip| Network::of(ip.parse().unwrap()));
        assert_eq!((plain, mapped), (Network::V4([192, 0, 2]), plain));
        let six = Network::of("2001:db8:1:2:3::4".parse().unwrap());
        assert_eq!(six, Network::V6([0x20, 0x01, 0x0d, 0xb8, 0, 1, 0]));
    }

    proptest! {
        #[test]
        fn counts_are_lower_bounds_by_at_most_a_ninth(sources in proptest::collection::vec(0_u8..15, 0..500)) {
            let mut refusals = Refusals::default();
            let mut exact = HashMap::<Network, u64>::new();
            for source in sources {
                // Low numbers come more often.
                let ip = IpAddr::from([10, 0, source * source / 15, source]);
                refusals.count(ip);
                *exact.entry(Network::of(ip)).or_default() += 1;
            }
            let total: u64 = exact.values().sum();
            prop_assert_eq!(refusals.total(), total);
            for (network, count) in exact {
                let counted = refusals.networks().find(|(one, _)| *one == network).map_or(0, |(_, count)| count);
                prop_assert!(counted <= count && 9 * (count - counted) <= total);
            }
        }
    }
}
