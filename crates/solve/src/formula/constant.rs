//! M/D/1. Erlang's sum of 1909 alternates and loses all digits where it matters, so the tail is that of Franx
//! (Operations Research Letters 29, 2001): between two multiples of the service time it is a Poisson mixture of the
//! tail of the queue length, and all terms are positive.

use super::poisson::Window;

/// The waiting and response times of M/D/1, in order of arrival.
pub(super) struct Constant {
    rho: f64,
    service_s: f64,
    /// `tail[j]` = P(more than j requests in the station).
    tail: Vec<f64>,
    /// The factor by which the tail falls from its last entry on.
    ratio: f64,
}

impl Constant {
    /// The number in the station by balance of its crossings (Ramaswami 1988): with A the Poisson arrivals of one
    /// service time, p_(j+1)·P(A = 0) = p_0·P(A > j) + Σ p_i·P(A > j + 1 − i).
    pub(super) fn new(rho: f64, service_s: f64) -> Self {
        let arrivals = Window::new(rho);
        let mut more: Vec<f64> = vec![0.0; arrivals.end()];
        for k in (0..arrivals.end() - 1).rev() {
            more[k] = more[k + 1] + arrivals.at(k + 1);
        }
        let mut p = vec![1.0 - rho];
        let mut steady = 0;
        let mut ratio = 0.0;
        // The ratio of neighbours converges fast: the next root of z = e^(ρ(z−1)) is far away.
        while steady < 16 && p.len() < 100_000 {
            let j = p.len() - 1;
            let up = |i: usize| more.get(j + 1 - i).copied().unwrap_or(0.0);
            let from = (j + 2).saturating_sub(more.len()).max(1);
            let crossings =
                p[0] * more.get(j).copied().unwrap_or(0.0) + (from..=j).map(|i| p[i] * up(i)).sum::<f64>();
            let next = crossings / arrivals.at(0);
            let found = next / p[j];
            steady = if (found - ratio).abs() <= 4.0 * f64::EPSILON { steady + 1 } else { 0 };
            ratio = found;
            p.push(next);
        }
        let last = p.len() - 1;
        let mut tail = vec![p[last] * ratio / (1.0 - ratio); p.len()];
        for j in (0..last).rev() {
            tail[j] = tail[j + 1] + p[j + 1];
        }
        Self { rho, service_s, tail, ratio }
    }

    /// P(W > t). With t between the (k−1)-th and k-th multiple of the service time: more than k − 1 arrivals in what
    /// is missing to the k-th, or j of them and more than k − 1 − j requests waiting.
    pub(super) fn waiting(&self, t_s: f64) -> f64 {
        if self.rho == 0.0 {
            return 0.0;
        }
        let multiples = t_s / self.service_s;
        let k = multiples.floor() + 1.0;
        let arrivals = Window::new(self.rho * (k - multiples));
        let waiting = |j: f64| {
            // One is in service: more than k − 1 − j wait when more than k − j are in the station.
            let n = k - j;
            if n <= 0.0 { 1.0 } else { self.more_than(n) }
        };
        (arrivals.first..).zip(&arrivals.terms).map(|(j, chance)| chance * waiting(j as f64)).sum()
    }

    /// P(R > t) = P(W > t − D).
    pub(super) fn response(&self, t_s: f64) -> f64 {
        if t_s < self.service_s { 1.0 } else { self.waiting(t_s - self.service_s) }
    }

    /// The quantile of the response time from that of the waiting time.
    pub(super) fn response_quantile(&self, waiting_s: f64) -> f64 {
        waiting_s + self.service_s
    }

    fn more_than(&self, n: f64) -> f64 {
        let last = self.tail.len() - 1;
        let past = n - last as f64;
        if past > 0.0 { self.tail[last] * self.ratio.powf(past) } else { self.tail[n as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Erlang's own sum, where it still has digits: P(W ≤ t) = (1−ρ) Σ (ρ(i−t))^i/i! · e^(−ρ(i−t)), i ≤ t.
    #[test]
    fn it_agrees_with_erlangs_sum() {
        for rho in [0.3f64, 0.7, 0.9] {
            let constant = Constant::new(rho, 1.0);
            for t in [0.0f64, 0.4, 1.0, 2.5, 6.3] {
                let mut factorial = 1.0;
                let mut sum = 0.0;
                for i in 0..=t.floor() as i32 {
                    factorial *= f64::from(i.max(1));
                    let x = rho * (f64::from(i) - t);
                    sum += x.powi(i) / factorial * (-x).exp();
                }
                let erlang = 1.0 - (1.0 - rho) * sum;
                assert!((constant.waiting(t) - erlang).abs() < 1e-11, "{rho} {t}");
            }
        }
    }

    /// In heavy traffic W is exponential with mean ρD/(2(1−ρ)) (Kingman 1962).
    #[test]
    fn it_lives_next_to_saturation() {
        let slack = 1e-9;
        let constant = Constant::new(1.0 - slack, 1.0);
        let mean = 0.5 / slack;
        assert!((constant.waiting(mean) - (-1.0f64).exp()).abs() < 1e-5);
    }
}
