//! Networks, which attempts are counted by.

use std::net::IpAddr;

/// The network of a client: its address in IPv4, the first 64 bits of it in IPv6, where a client has all the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(IpAddr);

impl Network {
    /// The network of an address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Self([a, b, c, d, 0, 0, 0, 0].into())
            }
            ip @ IpAddr::V4(_) => Self(ip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_with_many_addresses_of_ipv6_is_one_network() {
        let of = |ip: &str| Network::of(ip.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
