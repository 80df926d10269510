//! The solution of a formula for a station before it becomes an answer, and the order of service.

use kendall_station::{Formulas, Station, Summary};

use super::NoFormula;
use super::premises::{exponential_mean, summary};
use super::sharing::SharedServer;
use super::tails::Tails;

/// The solution of a model, before it becomes an answer.
pub(super) struct Solution {
    pub(super) source: &'static str,
    pub(super) approximate: Option<&'static str>,
    pub(super) p_wait: f64,
    pub(super) waiting_s: f64,
    pub(super) waiting_variance_s2: Option<f64>,
    pub(super) response_variance_s2: Option<f64>,
    pub(super) service_s: f64,
    pub(super) throughput_per_s: f64,
    pub(super) lost: f64,
    pub(super) tails: Tails,
}

/// The aspect of the order of service that matters to a formula.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Order {
    Fifo,
    /// Any other order without preemption and sizes: the number in the station has the same law.
    Lifo,
    Sharing,
    Shortest,
}

impl Solution {
    /// Response and waiting time.
    pub(super) fn summaries(&self) -> (Summary, Summary) {
        let (response, waiting) = self.tails.quantiles();
        (
            summary(self.waiting_s + self.service_s, self.response_variance_s2, response),
            summary(self.waiting_s, self.waiting_variance_s2, waiting),
        )
    }

    /// Keeps of a FIFO solution the parts that hold for another order.
    pub(super) fn ordered(self, order: Order) -> Self {
        match order {
            Order::Fifo => self,
            Order::Lifo | Order::Shortest => self.means(),
            Order::Sharing => Self {
                source: "processor sharing, insensitive to the law of service: means of M/M/m or M/M/m/K \
                         (Baskett, Chandy, Muntz and Palacios 1975)",
                ..self.means()
            },
        }
    }

    fn means(self) -> Self {
        Self { waiting_variance_s2: None, response_variance_s2: None, tails: Tails::MEANS, ..self }
    }

    /// Adds the law of the response time of M/M/1 with processor sharing.
    pub(super) fn sharing_one_exponential_server(self, rate_per_s: f64) -> Self {
        let rho = rate_per_s * self.service_s;
        let variance = (2.0 + rho) / ((1.0 - rho).powi(2) * (2.0 - rho)) * self.service_s.powi(2);
        Self {
            source: "M/M/1 processor sharing: mean and variance by Coffman, Muntz and Trotter (1970), quantiles by the integral of \
                     Pollaczek (1946) and Flatto (1997) for random order, which is the same law (Borst, Boxma, Morrison and \
                     Núñez-Queija 2003)",
            response_variance_s2: Some(variance),
            tails: Tails::of(SharedServer::new(rho, self.service_s)),
            ..self
        }
    }
}

/// The order of a station's service.
pub(super) fn order(station: &Station) -> Result<Order, NoFormula> {
    let memoryless = exponential_mean(&station.service_overall()).is_some();
    let one_law = station.classes.windows(2).all(|pair| pair[0].service == pair[1].service);
    match station.discipline.formulas() {
        Formulas::InOrder | Formulas::Classes => Ok(Order::Fifo),
        Formulas::Blind => Ok(Order::Lifo),
        Formulas::Sharing => Ok(Order::Sharing),
        Formulas::Shortest if one_law => Ok(Order::Shortest),
        // Without memory and without classes, all indices are the same.
        Formulas::Index if memoryless && station.classes.is_empty() => Ok(Order::Lifo),
        Formulas::Shortest | Formulas::Index | Formulas::Unknown => {
            Err(NoFormula::Discipline(station.discipline))
        }
    }
}
