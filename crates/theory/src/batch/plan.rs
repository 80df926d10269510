//! The number of requests for a wanted precision.

use super::{BatchError, Inputs, Model};
use crate::plan::{mm1_waiting_variance, normal_quantile};

pub(super) const MODELS: &[Model] = &[Model {
    name: "run_length_mm1",
    about: "how many customers of M/M/1 give its mean waiting time to the wanted precision",
    inputs: "rho: utilisation, mu=1, rel_halfwidth?: wanted, conf=0.95, n?: customers of a run",
    quantities: "asymptotic_var_Wq, customers_needed, rel_halfwidth",
    value: run_length,
}];

/// For the mean waiting time of M/M/1. `rel_halfwidth` is that of a run of `n` customers.
fn run_length(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let rho = inputs.positive("rho")?;
    if rho >= 1.0 {
        return Err(BatchError::NoAnswer(format!("unstable: utilisation is {rho}")));
    }
    let rate = inputs.optional("mu")?.unwrap_or(1.0);
    let variance = mm1_waiting_variance(rho, rate);
    let waiting = rho / (rate * (1.0 - rho));
    let z = || -> Result<f64, BatchError> {
        match inputs.optional("conf")?.unwrap_or(0.95) {
            confidence if confidence > 0.0 && confidence < 1.0 => Ok(normal_quantile(confidence)),
            confidence => Err(BatchError::NoAnswer(format!(
                "{confidence} is not a confidence level; it must be above 0 and below 1"
            ))),
        }
    };
    Ok(match quantity {
        "asymptotic_var_Wq" => Some(variance),
        "customers_needed" => Some((z()? / (inputs.positive("rel_halfwidth")? * waiting)).powi(2) * variance),
        "rel_halfwidth" => Some(z()? * (variance / inputs.positive("n")?).sqrt() / waiting),
        _ => None,
    })
}
