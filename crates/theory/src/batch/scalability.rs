//! Scalability laws and their fits.

use super::{BatchError, Inputs, Model};
use crate::scalability::{
    Parameter, Point, aic_gaussian, aicc, amdahl, fit_amdahl, fit_usl, fit_usl_linearised, gustafson, usl,
    usl_peak,
};
use kendall_stats::student_t;

pub(super) const MODELS: &[Model] = &[
    Model {
        name: "usl_fit",
        about: "the universal scalability law fitted to throughputs, with intervals",
        inputs: "N: loads, X: throughputs, SE?: their standard errors",
        quantities: "alpha, beta, gamma, se_alpha, se_beta, se_gamma, ci95_alpha_lo, ci95_alpha_hi, ci95_beta_lo, ci95_beta_hi, \
                     ci95_gamma_lo, ci95_gamma_hi, profile95_alpha_lo, profile95_alpha_hi, profile95_beta_lo, \
                     profile95_beta_hi, profile95_gamma_lo, profile95_gamma_hi, N_peak, X_peak, profile95_N_peak_lo, \
                     profile95_N_peak_hi, residual_se, rss, AICc_no_const",
        value: usl_fit,
    },
    Model {
        name: "amdahl_fit",
        about: "Amdahl's law fitted to throughputs, with intervals",
        inputs: "N: loads, X: throughputs, SE?: their standard errors",
        quantities: "alpha, gamma, se_alpha, se_gamma, ci95_alpha_lo, ci95_alpha_hi, ci95_gamma_lo, ci95_gamma_hi, \
                     profile95_alpha_lo, profile95_alpha_hi, profile95_gamma_lo, profile95_gamma_hi, X_limit, \
                     residual_se, AICc_no_const",
        value: amdahl_fit,
    },
    Model {
        name: "usl_fit_linearised",
        about: "the universal scalability law fitted as a parabola, as in Gunther's book",
        inputs: "N: loads, X: throughputs",
        quantities: "sigma, kappa, N_peak, X_peak",
        value: linearised,
    },
    Model {
        name: "usl_predict",
        about: "the universal scalability law",
        inputs: "alpha, beta, gamma: throughput of one, N: load",
        quantities: "throughput, R_mean, N_peak, X_peak",
        value: predict,
    },
    Model {
        name: "amdahl",
        about: "Amdahl's law: the same work on N processors",
        inputs: "serial: share of the work, alpha?: the same, N?",
        quantities: "speedup, limit",
        value: amdahl_value,
    },
    Model {
        name: "gustafson",
        about: "Gustafson's law: N times the work on N processors",
        inputs: "serial: share of the time, alpha?: the same, N",
        quantities: "speedup",
        value: gustafson_value,
    },
    Model {
        name: "aicc",
        about: "Akaike's corrected criterion of a least-squares fit, without constants",
        inputs: "rss: sum of squares, n: points, params_incl_sigma",
        quantities: "AICc_no_const",
        value: aicc_value,
    },
    Model {
        name: "aic_gaussian",
        about: "Akaike's criterion of a Gaussian fit",
        inputs: "rss: sum of squares, n: points, params",
        quantities: "AIC",
        value: aic_value,
    },
];

fn no_answer(why: impl std::fmt::Display) -> BatchError {
    BatchError::NoAnswer(why.to_string())
}

/// Points of the inputs N, X and, if they are known, the standard errors `SE`.
fn points(inputs: &Inputs) -> Result<Vec<Point>, BatchError> {
    let (users, throughputs) = (inputs.numbers("N")?, inputs.numbers("X")?);
    let errors = inputs.has("SE").then(|| inputs.numbers("SE")).transpose()?;
    let counts = (users.len(), throughputs.len(), errors.as_ref().map_or(users.len(), Vec::len));
    if counts.0 != counts.1 || counts.0 != counts.2 {
        return Err(no_answer(format!(
            "{} loads, {} throughputs and {} standard errors",
            counts.0, counts.1, counts.2
        )));
    }
    let point = |i: usize| Point {
        users: users[i],
        throughput_per_s: throughputs[i],
        standard_error_per_s: errors.as_ref().map(|errors| errors[i]),
    };
    Ok((0..users.len()).map(point).collect())
}

/// A quantity of a parameter: `alpha` itself, or `se_alpha`, `ci95_alpha_hi`, `profile95_alpha_lo` and the like.
fn of_parameter(parameter: &Parameter, name: &str, quantity: &str, freedom: f64) -> Option<f64> {
    let (kind, end) = match quantity.split_once(name)? {
        ("", "") => return Some(parameter.value),
        ("se_", "") => return Some(parameter.standard_error),
        (kind, end) => (kind, end),
    };
    let wald = student_t(freedom, 0.975) * parameter.standard_error;
    match (kind, end) {
        ("ci95_", "_lo") => Some(parameter.value - wald),
        ("ci95_", "_hi") => Some(parameter.value + wald),
        ("profile95_", "_lo") => Some(parameter.interval.0),
        ("profile95_", "_hi") => Some(parameter.interval.1),
        _ => None,
    }
}

fn usl_fit(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let fit = fit_usl(&points(inputs)?).map_err(no_answer)?;
    let freedom = (fit.points - 3) as f64;
    let parameters = [("alpha", &fit.alpha), ("beta", &fit.beta), ("gamma", &fit.gamma_per_s)];
    Ok(match quantity {
        "residual_se" => Some(fit.residual_se_per_s),
        "rss" => Some(fit.sum_of_squares),
        "AICc_no_const" => Some(fit.aicc),
        "N_peak" | "X_peak" | "profile95_N_peak_lo" | "profile95_N_peak_hi" => {
            let peak = fit.peak;
            if quantity.starts_with(['N', 'X']) && peak.users.is_infinite() {
                return Err(no_answer("the fitted law has no peak, because its beta is zero"));
            }
            Some(match quantity {
                "N_peak" => peak.users,
                "X_peak" => peak.throughput_per_s,
                "profile95_N_peak_lo" => peak.interval.0,
                _ => peak.interval.1,
            })
        }
        _ => parameters.iter().find_map(|(name, parameter)| of_parameter(parameter, name, quantity, freedom)),
    })
}

fn amdahl_fit(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let points = points(inputs)?;
    let fit = fit_amdahl(&points).map_err(no_answer)?;
    let freedom = (points.len() - 2) as f64;
    Ok(match quantity {
        "X_limit" => Some(fit.limit_per_s()),
        "residual_se" => Some(fit.residual_se_per_s),
        "AICc_no_const" => Some(fit.aicc),
        _ => of_parameter(&fit.alpha, "alpha", quantity, freedom)
            .or_else(|| of_parameter(&fit.gamma_per_s, "gamma", quantity, freedom)),
    })
}

fn linearised(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let fit = fit_usl_linearised(&points(inputs)?).map_err(no_answer)?;
    let peak = usl_peak(fit.sigma, fit.kappa);
    Ok(match quantity {
        "sigma" => Some(fit.sigma),
        "kappa" => Some(fit.kappa),
        "N_peak" => Some(peak),
        "X_peak" => Some(fit.predict(peak)),
        _ => None,
    })
}

fn predict(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let (alpha, beta, gamma) = (inputs.number("alpha")?, inputs.number("beta")?, inputs.positive("gamma")?);
    let peak = usl_peak(alpha, beta);
    Ok(match quantity {
        "throughput" => Some(usl(alpha, beta, gamma, inputs.positive("N")?)),
        "R_mean" => {
            let users = inputs.positive("N")?;
            Some(users / usl(alpha, beta, gamma, users))
        }
        "N_peak" | "X_peak" if peak.is_infinite() => {
            return Err(no_answer("without beta the law has no peak"));
        }
        "N_peak" => Some(peak),
        "X_peak" => Some(usl(alpha, beta, gamma, peak)),
        _ => None,
    })
}

/// The serial share, by either of its names.
fn serial(inputs: &Inputs) -> Result<f64, BatchError> {
    let serial = inputs.number(if inputs.has("serial") { "serial" } else { "alpha" })?;
    match serial {
        serial if (0.0..=1.0).contains(&serial) => Ok(serial),
        serial => Err(no_answer(format!("the serial share is {serial}; it must be between 0 and 1"))),
    }
}

fn amdahl_value(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let serial = serial(inputs)?;
    Ok(match quantity {
        "speedup" => Some(amdahl(serial, inputs.positive("N")?)),
        "limit" if serial > 0.0 => Some(1.0 / serial),
        "limit" => return Err(no_answer("without a serial share there is no limit")),
        _ => None,
    })
}

fn gustafson_value(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    Ok((quantity == "speedup").then_some(gustafson(serial(inputs)?, inputs.positive("N")?)))
}

fn sum_of_squares(inputs: &Inputs) -> Result<(f64, usize), BatchError> {
    Ok((inputs.positive("rss")?, inputs.whole("n")? as usize))
}

fn aicc_value(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let (sum, points) = sum_of_squares(inputs)?;
    let value = aicc(sum, points, inputs.whole("params_incl_sigma")? as usize);
    if value.is_infinite() {
        return Err(no_answer(format!(
            "{points} points are too few for the corrected criterion with this number of parameters"
        )));
    }
    Ok((quantity == "AICc_no_const").then_some(value))
}

fn aic_value(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let (sum, points) = sum_of_squares(inputs)?;
    let value = aic_gaussian(sum, points, inputs.whole("params")? as usize);
    Ok((quantity == "AIC").then_some(value))
}
