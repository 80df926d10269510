//! One station under other loads: the line that a single answer lies on.

use kendall_station::{Answer, Arrivals, Station};

use crate::formula;

/// The formula's answer for the station at other arrival rates in 1/s, or, where its population is closed, with other
/// numbers of users, rounded. Loads without an answer are left out.
pub fn sweep(station: &Station, loads: impl IntoIterator<Item = f64>) -> Vec<(f64, Answer)> {
    let at = |load: f64| {
        let arrivals = match &station.arrivals {
            Arrivals::Open { gap } => Arrivals::Open { gap: gap.with_mean(1.0 / load) },
            Arrivals::Closed { think, .. } => {
                Arrivals::Closed { population: load.round() as u32, think: think.clone() }
            }
            Arrivals::Trace { .. } | Arrivals::Varying(_) => return None,
        };
        let answer = formula(&Station { arrivals, ..station.clone() }).ok()?;
        Some((load, answer))
    };
    loads.into_iter().filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::{Law, Servers};

    #[test]
    fn it_ends_where_the_queue_would_grow() {
        let service = Law::Exponential { mean_s: 0.1 };
        let station = Station::new(Arrivals::poisson(5.0), service, Servers::MIN);
        let line = sweep(&station, (1..=12).map(f64::from));
        assert_eq!(line.len(), 9);
        for (rate_per_s, answer) in line {
            assert!((answer.response.mean_s.value - 1.0 / (10.0 - rate_per_s)).abs() < 1e-9);
        }
    }
}
