//! M/M/m+M, also called Erlang A: waiting requests abandon after an exponential time (Palm 1957).

use kendall_station::{Answer, By, Conditions, Estimate, Formulas, Servers, Station};

use super::NoFormula;
use super::premises::{exponential_mean, poisson_rate, summary};

/// The longest queue whose probability is computed.
const MOST: usize = 10_000_000;
/// Queues that are less likely than the most likely one by this factor are left out.
const NEGLIGIBLE: f64 = 1e-20;

/// The mean patience of a station without other conditions, if it is exponential.
pub(super) fn patience_s(station: &Station) -> Option<f64> {
    let patience_s = exponential_mean(station.conditions.patience.as_ref()?)?;
    let rest = Conditions { patience: None, ..station.conditions.clone() };
    let plain = rest.first().is_none() && station.capacity.is_none() && station.classes.is_empty();
    (plain && station.discipline.formulas() == Formulas::InOrder).then_some(patience_s)
}

/// M/M/m in which a waiting request abandons after an exponential time of mean `patience_s`, unless its service has
/// begun. Times are those of served requests, `lost` is the share that abandons, and the number in the station
/// includes them while they wait. Stable at any load, but without an answer if queues of more than [`MOST`] requests matter.
///
/// From the states of the birth and death process; a served request's wait, given the requests before it, is a sum of
/// exponential stages of rates mµ + θ, mµ + 2θ, … (Zeltyn and Mandelbaum 2005, section 2).
pub(super) fn answer(station: &Station, patience_s: f64) -> Result<Answer, NoFormula> {
    let rate_per_s = poisson_rate(&station.arrivals, "of impatient customers")?;
    let servers = station.servers;
    let needs = NoFormula::NeedsExponential { law: station.service.name(), servers: servers.get() };
    let service_s = exponential_mean(&station.service).ok_or(needs)?;
    let states = States::new(rate_per_s, service_s, servers, patience_s)?;
    Ok(states.answer(rate_per_s, service_s, servers, patience_s))
}

/// The probabilities of n requests in the station, those with an idle server summed up.
struct States {
    p_free: f64,
    busy_below: f64,
    /// From m on.
    from_m: Vec<f64>,
}

impl States {
    fn new(rate_per_s: f64, service_s: f64, servers: Servers, patience_s: f64) -> Result<Self, NoFormula> {
        let too_long = NoFormula::Conditions("a queue of more than ten million requests that may abandon");
        let (load, m) = (rate_per_s * service_s, f64::from(servers.get()));
        let leave_per_s = |waiting: f64| m / service_s + waiting / patience_s;
        // Relative to the most likely queue, at which as many arrive as leave: on both sides the terms only fall.
        let likeliest = ((rate_per_s - m / service_s) * patience_s).max(0.0).floor();
        if likeliest >= MOST as f64 {
            return Err(too_long);
        }
        let mut from_m = vec![1.0; likeliest as usize + 1];
        for waiting in (1..from_m.len()).rev() {
            from_m[waiting - 1] = from_m[waiting] * leave_per_s(waiting as f64) / rate_per_s;
        }
        let (mut term, mut waiting) = (1.0, likeliest);
        while term > NEGLIGIBLE {
            if from_m.len() >= MOST {
                return Err(too_long);
            }
            waiting += 1.0;
            term *= rate_per_s / leave_per_s(waiting);
            from_m.push(term);
        }
        // States below m may be likelier than all from m on, by more than a number can hold: a common factor keeps them within range.
        let (mut p_free, mut busy_below, mut term, mut n) = (0.0, 0.0, from_m[0], m);
        let mut factor = 1.0;
        while n > 0.0 && (term > NEGLIGIBLE * p_free || n > load) {
            term *= n / load;
            n -= 1.0;
            p_free += term;
            busy_below += n * term;
            if p_free > 1e200 {
                (p_free, busy_below, term) = (p_free * 1e-200, busy_below * 1e-200, term * 1e-200);
                factor *= 1e-200;
            }
        }
        let norm = p_free + factor * from_m.iter().sum::<f64>();
        from_m.iter_mut().for_each(|p| *p *= factor / norm);
        Ok(Self { p_free: p_free / norm, busy_below: busy_below / norm, from_m })
    }

    fn answer(&self, rate_per_s: f64, service_s: f64, servers: Servers, patience_s: f64) -> Answer {
        let m = f64::from(servers.get());
        let all_busy: f64 = self.from_m.iter().sum();
        let queue: f64 = self.from_m.iter().zip(0u32..).map(|(p, waiting)| p * f64::from(waiting)).sum();
        let lost = queue / patience_s / rate_per_s;
        // A request that finds j waiting is served with probability mµ/(mµ + (j+1)θ), and then after j + 1 stages.
        let drain_per_s = m / service_s;
        let (mut mean, mut variance) = (0.0, 0.0);
        let (mut first, mut second, mut served) = (0.0, 0.0, self.p_free);
        for (p, j) in self.from_m.iter().zip(1u32..) {
            let stage_per_s = drain_per_s + f64::from(j) / patience_s;
            mean += 1.0 / stage_per_s;
            variance += 1.0 / (stage_per_s * stage_per_s);
            let chance = p * drain_per_s / stage_per_s;
            served += chance;
            first += chance * mean;
            second += chance * (variance + mean * mean);
        }
        let waiting_s = first / served;
        let variance_s2 = (second / served - waiting_s * waiting_s).max(0.0);
        let busy = self.busy_below + m * all_busy;
        let response = summary(waiting_s + service_s, Some(variance_s2 + service_s * service_s), Vec::new());
        Answer {
            by: By::Formula {
                source: "M/M/m+M, Erlang A (Palm 1957; Zeltyn and Mandelbaum 2005)".into(),
                approximate: None,
            },
            weighted_response_s: Some(response.mean_s),
            response,
            waiting: summary(waiting_s, Some(variance_s2), Vec::new()),
            p_wait: Estimate::exact(all_busy),
            throughput_per_s: Estimate::exact(busy / service_s),
            utilisation: Estimate::exact(busy / m),
            in_system: Estimate::exact(busy + queue),
            lost: Estimate::exact(lost),
            classes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula;
    use kendall_station::{Arrivals, Law};

    fn station(rate_per_s: f64, servers: u32) -> Station {
        let service = Law::Exponential { mean_s: 1.0 };
        Station::new(Arrivals::poisson(rate_per_s), service, Servers::new(servers).unwrap())
    }

    fn impatient(rate_per_s: f64, servers: u32, patience_s: f64) -> Answer {
        solved(rate_per_s, servers, patience_s).unwrap()
    }

    fn solved(rate_per_s: f64, servers: u32, patience_s: f64) -> Result<Answer, NoFormula> {
        let patience = Some(Law::Exponential { mean_s: patience_s });
        let conditions = Conditions { patience, ..Conditions::default() };
        formula(&Station { conditions, ..station(rate_per_s, servers) })
    }

    /// Ten million requests do not wait at once in an answer: neither where most queues are longer, nor where the queue is critical.
    #[test]
    fn queues_beyond_the_limit_have_no_formula() {
        for (rate, servers, patience) in [(1e8, 1, 1.0), (1.0, 1, 1e15)] {
            let why = solved(rate, servers, patience).unwrap_err();
            assert!(why.to_string().contains("a queue of more than ten million requests"), "{why}");
        }
    }

    /// Patience with the mean of service makes the station M/M/∞, whose number is Poisson.
    #[test]
    fn patience_like_service_is_as_many_servers_as_needed() {
        for (rate, servers) in [(3.0, 2), (10.0, 40), (200.0, 150), (5000.0, 1), (1e6, 1)] {
            let answer = impatient(rate, servers, 1.0);
            assert!((answer.in_system.value / rate - 1.0).abs() < 1e-9, "{rate} {servers}");
        }
    }

    #[test]
    fn endless_patience_is_m_m_m() {
        let answer = impatient(4.5, 6, 1e12);
        let plain = formula(&station(4.5, 6)).unwrap();
        for (a, b) in [
            (answer.waiting.mean_s.value, plain.waiting.mean_s.value),
            (answer.waiting.variance_s2.unwrap(), plain.waiting.variance_s2.unwrap()),
            (answer.p_wait.value, plain.p_wait.value),
        ] {
            assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        }
    }

    /// Every arrival is served or lost.
    #[test]
    fn arrivals_are_served_or_lost() {
        for (rate, servers, patience) in
            [(0.1, 3, 0.01), (50.0, 10, 2.0), (1e6, 100_000, 3.0), (99.0, 100, 1e4), (100.0, 10_000, 1.0)]
        {
            let answer = impatient(rate, servers, patience);
            let out = answer.throughput_per_s.value + answer.lost.value * rate;
            assert!((out / rate - 1.0).abs() < 1e-9, "{rate} {servers} {patience}: {out}");
        }
    }
}
