//! The throughput of a closed population at a delay, m servers and one serial server, in one pass over the users.
//!
//! [`ClosedNetwork`](kendall_theory::closed::ClosedNetwork) says more, of any network; a fit asks this one network some hundred
//! thousand times.

/// Requests per second. Servers and serial part are put together into one station whose rate depends on how many are
/// there (Chandy, Herzog and Woo 1975), and with the delay that is a birth–death chain. Every term is positive.
pub(super) fn throughput_per_s(users: u32, delay_s: f64, servers: u32, service_s: f64, serial_s: f64) -> f64 {
    // With g(n) the normalising constant of n requests at both, and h(n) that part of it in which none is at the serial
    // server: g(n)/g(n − 1) = s + r·S/min(n, m), where r = h(n − 1)/g(n − 1).
    let mut at_servers = 1.0;
    let (mut weight, mut total, mut done) = (1.0, 1.0, 0.0);
    let mut rate_per_s = 0.0;
    for n in 1..=users {
        let share_s = at_servers * service_s / f64::from(n.min(servers));
        let ratio_s = serial_s + share_s;
        at_servers = share_s / ratio_s;
        rate_per_s = 1.0 / ratio_s;
        weight *= f64::from(users - n + 1) * ratio_s / delay_s;
        total += weight;
        done += weight * rate_per_s;
        if total > 1e200 {
            (weight, total, done) = (weight * 1e-200, total * 1e-200, done * 1e-200);
        }
    }
    if delay_s > 0.0 && done.is_finite() { done / total } else { rate_per_s }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::Servers;
    use kendall_theory::closed::{ClosedNetwork, ClosedStation};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_closed_network(
            users in 1..300u32,
            delay_s in prop_oneof![Just(0.0), 1e-6..10.0f64],
            servers in 1..40u32,
            service_s in 1e-4..1.0f64,
            serial_s in prop_oneof![Just(0.0), 1e-5..0.1f64],
        ) {
            let mut stations = vec![ClosedStation::servers("servers", service_s, Servers::new(servers).unwrap())];
            if serial_s > 0.0 {
                stations.push(ClosedStation::single("serial", serial_s));
            }
            let network = ClosedNetwork { think_s: delay_s, stations, users: u64::from(users) };
            let solved = network.solve().unwrap().throughput_per_s;
            let found = throughput_per_s(users, delay_s, servers, service_s, serial_s);
            prop_assert!((found / solved - 1.0).abs() < 1e-9, "{found} {solved}");
        }

        #[test]
        fn it_lives_at_the_edges(
            users in 1..100_000u32, delay_s in 0.0..1e6f64, servers in 1..100_000u32, service_s in 1e-9..1e3f64,
        ) {
            let found = throughput_per_s(users, delay_s, servers, service_s, 0.0);
            prop_assert!(found > 0.0 && found <= f64::from(servers) / service_s * (1.0 + 1e-9), "{found}");
        }
    }
}
