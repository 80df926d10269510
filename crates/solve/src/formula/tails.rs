//! Survival functions of waiting and response time, and the quantiles that follow from them.

use kendall_station::{Estimate, Law, QUANTILES, Quantile};

use super::closed::Seen;
use super::constant::Constant;
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
    /// M/M/m/K.
    Room(Room),
    /// M/M/m//N, with or without limited room.
    Closed(Seen),
    /// Nobody waits: the response time is the service time.
    Service(Law),
    /// M/G/1 with a phase-type law.
    Phases { waiting: Chain, response: Chain },
    /// M/D/1.
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
            Self::Many(many) => Some(many.waiting(t_s)),
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
            Self::Many(many) => Some(many.response(t_s)),
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
        if let Self::Means = self {
            return (Vec::new(), Vec::new());
        }
        if let Self::Grid(grid) = self {
            return grid.quantiles();
        }
        if let Self::Closed(seen) = self {
            return seen.quantiles();
        }
        let all = |value: &dyn Fn(f64) -> f64| {
            let at = |&p: &f64| Quantile { p, value_s: Estimate::exact(value(p)) };
            QUANTILES.iter().map(at).collect()
        };
        let known = "only moments and the grid were taken out above";
        let waiting = |p| match self {
            Self::Many(many) => many.waiting_quantile(p),
            _ => invert(p, |t_s| self.waiting(t_s).expect(known)),
        };
        let response = |p| match self {
            Self::Service(law) => law.quantile_s(p),
            Self::Constant(constant) => constant.response_quantile(waiting(p)),
            _ => invert(p, |t_s| self.response(t_s).expect(known)),
        };
        (all(&response), all(&waiting))
    }
}

/// The smallest t with P(T > t) ≤ 1 − p, to one part in 10¹³, by bracketing and bisection.
fn invert(p: f64, survival: impl Fn(f64) -> f64) -> f64 {
    if survival(0.0) <= 1.0 - p {
        return 0.0;
    }
    // Any unit will do to start from; the bracket grows or shrinks to the scale of the law.
    let mut high = 1.0;
    while survival(high) > 1.0 - p {
        high *= 2.0;
    }
    let mut low = high / 2.0;
    while survival(low) <= 1.0 - p {
        high = low;
        low /= 2.0;
    }
    while high - low > 1e-13 * high {
        let middle = f64::midpoint(low, high);
        if survival(middle) > 1.0 - p { low = middle } else { high = middle }
    }
    high
}
