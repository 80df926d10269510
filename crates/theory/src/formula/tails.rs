//! Survival functions of waiting and response time, and the quantiles that follow from them.

use kendall_station::{Estimate, Law, QUANTILES, Quantile};

use super::closed::Seen;
use super::constant::Constant;
use super::delay::Delay;
use super::grid::Grid;
use super::many::Many;
use super::phases::Chain;
use super::room::Room;

/// What is known of the distributions of waiting and response time.
pub(super) enum Tails {
    /// Nothing beyond the moments.
    Means,
    /// M/M/m.
    Many(Many),
    /// GI/M/m.
    Delay(Delay),
    /// A wait fitted to its mean, and then service of any law.
    Fitted { delay: Delay, service: Law },
    /// M/M/m/K.
    Room(Room),
    /// M/M/m//N, with or without limited room.
    Closed(Seen),
    /// Nobody waits: the response time is the service time.
    Service(Law),
    /// M/PH/m.
    Phases { waiting: Chain, response: Chain },
    /// M/D/m.
    Constant(Constant),
    /// M/G/1 with any other law.
    Grid(Grid),
}

impl Tails {
    /// P(W > t).
    pub(super) fn waiting(&self, t_s: f64) -> Option<f64> {
        if t_s < 0.0 {
            return Some(1.0);
        }
        match self {
            Self::Means => None,
            Self::Many(Many { delay, .. }) | Self::Delay(delay) | Self::Fitted { delay, .. } => {
                Some(delay.waiting(t_s))
            }
            Self::Room(room) => Some(room.waiting(t_s)),
            Self::Closed(seen) => Some(seen.waiting(t_s)),
            Self::Service(_) => Some(0.0),
            Self::Phases { waiting, .. } => Some(waiting.survival(t_s)),
            Self::Constant(constant) => Some(constant.waiting(t_s)),
            Self::Grid(grid) => Some(grid.waiting(t_s)),
        }
    }

    /// P(R > t).
    pub(super) fn response(&self, t_s: f64) -> Option<f64> {
        if t_s < 0.0 {
            return Some(1.0);
        }
        match self {
            Self::Means => None,
            Self::Many(Many { delay, .. }) | Self::Delay(delay) => Some(delay.response(t_s)),
            Self::Fitted { delay, service } => Some(delay.response_with(service, t_s)),
            Self::Room(room) => Some(room.response(t_s)),
            Self::Closed(seen) => Some(seen.response(t_s)),
            Self::Service(law) => Some(law.survival(t_s)),
            Self::Phases { response, .. } => Some(response.survival(t_s)),
            Self::Constant(constant) => Some(constant.response(t_s)),
            Self::Grid(grid) => Some(grid.response(t_s)),
        }
    }

    /// All quantiles, of the response and of the waiting time; none where only moments are known.
    pub(super) fn quantiles(&self) -> (Vec<Quantile>, Vec<Quantile>) {
        self.quantiles_at(&QUANTILES)
    }

    /// Quantiles at ascending shares.
    pub(super) fn quantiles_at(&self, shares: &[f64]) -> (Vec<Quantile>, Vec<Quantile>) {
        if let Self::Means = self {
            return (Vec::new(), Vec::new());
        }
        if let Self::Grid(grid) = self {
            return grid.quantiles(shares);
        }
        if let Self::Closed(seen) = self {
            return seen.quantiles(shares);
        }
        let quantile = |(&p, value_s)| Quantile { p, value_s: Estimate::exact(value_s) };
        let known = "only moments and the grid were taken out above";
        let waiting: Vec<f64> = match self {
            Self::Many(Many { delay, .. }) | Self::Delay(delay) | Self::Fitted { delay, .. } => {
                shares.iter().map(|&p| delay.waiting_quantile(p)).collect()
            }
            _ => invert(shares, |t_s| self.waiting(t_s).expect(known)),
        };
        let response: Vec<f64> = match self {
            Self::Service(law) => shares.iter().map(|&p| law.quantile_s(p)).collect(),
            Self::Constant(constant) => waiting.iter().map(|&t_s| constant.response_quantile(t_s)).collect(),
            _ => invert(shares, |t_s| self.response(t_s).expect(known)),
        };
        let all = |values: Vec<f64>| shares.iter().zip(values).map(quantile).collect();
        (all(response), all(waiting))
    }
}

/// For ascending shares p, the smallest t with P(T > t) ≤ 1 − p, to one part in 10¹².
fn invert(shares: &[f64], survival: impl Fn(f64) -> f64) -> Vec<f64> {
    let (mut before_s, mut gap_s) = (0.0, 0.0);
    shares
        .iter()
        .map(|&p| {
            // The logarithm of a tail is all but straight, which makes it easy to solve for; zero is far enough down.
            let above = |t_s: f64| libm::log(survival(t_s).max(1e-300) / (1.0 - p));
            let found_s = crossing(before_s, gap_s, above);
            (before_s, gap_s) = (found_s, (found_s - before_s) / 2.0);
            found_s
        })
        .collect()
}

/// Where a falling function crosses zero, beyond `low` and perhaps not far from `step` beyond it; `low` if it is not
/// above zero there.
fn crossing(mut low: f64, mut step: f64, above: impl Fn(f64) -> f64) -> f64 {
    let mut at_low = above(low);
    if at_low <= 0.0 {
        return low;
    }
    // Any unit will do to start from; the bracket grows or shrinks to the scale of the law.
    step = if low > 0.0 { step.clamp(1e-6 * low, low) } else { 1.0 };
    let mut high = low + step;
    let mut at_high = above(high);
    while at_high > 0.0 {
        step *= 2.0;
        (low, at_low, high) = (high, at_high, high + step);
        at_high = above(high);
    }
    while low == 0.0 && high > f64::MIN_POSITIVE {
        let half = above(high / 2.0);
        if half > 0.0 {
            (low, at_low) = (high / 2.0, half);
        } else {
            (high, at_high) = (high / 2.0, half);
        }
    }
    narrowed((low, at_low), (high, at_high), above)
}

/// The right end of a bracket that is narrowed by inverse quadratic interpolation where that is safe, and by bisection
/// elsewhere (Chandrupatla 1997).
fn narrowed(left: (f64, f64), right: (f64, f64), above: impl Fn(f64) -> f64) -> f64 {
    let (mut newest, mut opposite, mut place) = (left, right, 0.5);
    loop {
        let x = newest.0 + place * (opposite.0 - newest.0);
        let found = (x, above(x));
        let dropped = if (found.1 > 0.0) == (newest.1 > 0.0) {
            newest
        } else {
            std::mem::replace(&mut opposite, newest)
        };
        newest = found;
        let width = (opposite.0 - newest.0).abs();
        let least = 2.5e-13 * newest.0.abs().max(opposite.0.abs()) / width;
        if found.1 == 0.0 {
            return found.0;
        }
        if least > 0.25 || width == 0.0 {
            return if newest.1 > 0.0 { opposite.0 } else { newest.0 };
        }
        let ((a, fa), (b, fb), (c, fc)) = (newest, opposite, dropped);
        let (xi, phi) = ((a - b) / (c - b), (fa - fb) / (fc - fb));
        let safe = phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi;
        place = match safe {
            true => fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb),
            false => 0.5,
        }
        .clamp(least, 1.0 - least);
    }
}
