//! The throughput of a closed population at a delay, m servers and one serial server.
//!
//! [`ClosedNetwork`](kendall_theory::closed::ClosedNetwork) says more, of any network; a fit asks this one network some hundred
//! thousand times.

/// Weights below this share of the largest are left out.
const LEAST_WEIGHT: f64 = 1e-15;

/// Requests per second. Servers and serial part are put together into one station whose rate depends on how many are
/// there (Chandy, Herzog and Woo 1975), and with the delay that is a birth–death chain. Its weights rise up to one number of
/// requests at the station and fall from there, so they are added up from there on to both sides, as far as they count.
pub(super) fn throughput_per_s(users: u32, delay_s: f64, servers: u32, service_s: f64, serial_s: f64) -> f64 {
    let station = Station::new(users, servers, service_s, serial_s);
    let rate_per_s = |n: u32| if n == 0 { 0.0 } else { 1.0 / station.demand_s(n) };
    if delay_s <= 0.0 {
        return rate_per_s(users);
    }
    // The weight of n requests at the station over that of n − 1.
    let growth = |n: u32| f64::from(users - n + 1) * station.demand_s(n) / delay_s;
    let (mut mode, mut most) = (0, users);
    while mode < most {
        let middle = mode + (most - mode).div_ceil(2);
        if growth(middle) > 1.0 { mode = middle } else { most = middle - 1 }
    }
    let (mut total, mut done) = (1.0, rate_per_s(mode));
    let mut add = |weight: f64, n: u32| {
        total += weight;
        done += weight * rate_per_s(n);
        weight > LEAST_WEIGHT
    };
    let mut above = 1.0;
    let _ = (mode + 1..=users).all(|n| {
        above *= growth(n);
        add(above, n)
    });
    let mut below = 1.0;
    let _ = (1..=mode).rev().all(|n| {
        below /= growth(n);
        add(below, n - 1)
    });
    done / total
}

/// The most demands that are kept.
const MOST_KEPT: u32 = 256;

/// The servers and the serial part as one.
struct Station {
    servers: u32,
    service_s: f64,
    serial_s: f64,
    /// Seconds between two requests that leave while 1, 2, … are there. Empty without a serial part.
    demands_s: Vec<f64>,
    /// What belongs to the next of these.
    inverse: f64,
    /// The logarithm of the factor by which `inverse` grows once all servers are busy.
    log_factor: f64,
}

impl Station {
    /// With g(n) the normalising constant of n requests at both parts and h(n) that share of it in which none is at the serial one,
    /// g(n)/g(n − 1) = s + r·S/min(n, m), where r = h(n − 1)/g(n − 1). Its inverse grows by a linear recurrence.
    fn new(users: u32, servers: u32, service_s: f64, serial_s: f64) -> Self {
        let kept = if serial_s > 0.0 { users.min(servers.max(MOST_KEPT)) } else { 0 };
        let mut demands_s = Vec::with_capacity(kept as usize);
        let mut inverse = 1.0;
        for n in 1..=kept {
            let busy = f64::from(n.min(servers));
            demands_s.push(serial_s + service_s / (busy * inverse));
            inverse = 1.0 + inverse * serial_s * busy / service_s;
        }
        let log_factor = libm::log(serial_s * f64::from(servers) / service_s);
        Self { servers, service_s, serial_s, demands_s, inverse, log_factor }
    }

    fn demand_s(&self, n: u32) -> f64 {
        let busy = f64::from(n.min(self.servers));
        match self.demands_s.get(n as usize - 1) {
            Some(demand_s) => *demand_s,
            None if self.demands_s.is_empty() => self.service_s / busy,
            None => self.serial_s + self.service_s / (busy * self.inverse_at(n)),
        }
    }

    /// Beyond what is kept all servers are busy, so that the factor of the recurrence is constant.
    fn inverse_at(&self, n: u32) -> f64 {
        let steps = f64::from(n - self.demands_s.len() as u32 - 1);
        let factor = self.serial_s * f64::from(self.servers) / self.service_s;
        let grown = self.log_factor * steps;
        match grown {
            // As good as the fixed point, and as good as infinite.
            ..-40.0 => 1.0 / (1.0 - factor),
            40.0.. => f64::INFINITY,
            _ if factor == 1.0 => self.inverse + steps,
            _ => self.inverse * libm::exp(grown) + libm::expm1(grown) / (factor - 1.0),
        }
    }
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
