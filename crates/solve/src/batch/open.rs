//! Open stations.

use kendall_station::{Answer, Arrivals, Discipline, Law, Station};

use super::{BatchError, Inputs, Model};
use crate::{
    erlang_b, erlang_c, formula, number_at_least, servers_for_p_wait, servers_for_response, waiting_survival,
};

const ANSWER: &str = "R_mean, R_var, R_p50, R_p95, R_p99, Wq_mean, Wq_var, Wq_p95, Wq_sf_at_t, L, P_wait, P_block, \
                      throughput, utilisation, P_N_ge_*";

pub(super) const MODELS: &[Model] = &[
    Model {
        name: "erlang_b",
        about: "Erlang's loss formula: the share of requests turned away where none can wait",
        inputs: "m=1: servers, a: offered load in erlang",
        quantities: "P_block",
        value: erlang,
    },
    Model {
        name: "erlang_c",
        about: "Erlang's delay formula: the share of requests that wait",
        inputs: "m=1, a: offered load in erlang",
        quantities: "P_wait",
        value: erlang,
    },
    Model {
        name: "erlang_c_inverse",
        about: "the fewest servers with so small a P(wait)",
        inputs: "a, target_pwait",
        quantities: "min_servers",
        value: sizing,
    },
    Model {
        name: "mmm_sizing",
        about: "the fewest servers with so short a 95 % response time",
        inputs: "lam, mu, slo_R_p95",
        quantities: "min_servers",
        value: sizing,
    },
    Model {
        name: "mm1",
        about: "M/M/1",
        inputs: "lam, mu, t?: for Wq_sf_at_t",
        quantities: ANSWER,
        value: exponential,
    },
    Model {
        name: "mmm",
        about: "M/M/m",
        inputs: "lam, mu, m=1, t?: for Wq_sf_at_t",
        quantities: ANSWER,
        value: exponential,
    },
    Model {
        name: "mmmk",
        about: "M/M/m/K: room for K, waiting and in service",
        inputs: "lam, mu, m=1, K, t?: for Wq_sf_at_t",
        quantities: ANSWER,
        value: exponential,
    },
    Model {
        name: "mg1",
        about: "M/G/1 by its law of service",
        inputs: "lam, service: a law, t?: for Wq_sf_at_t",
        quantities: ANSWER,
        value: general,
    },
    Model {
        name: "md1",
        about: "M/D/1",
        inputs: "lam, service_time, t?: for Wq_sf_at_t",
        quantities: ANSWER,
        value: general,
    },
    Model {
        name: "mg1_ps",
        about: "M/G/1 under processor sharing",
        inputs: "lam, mean_service, x?: a size for R_mean_given_size",
        quantities: "R_mean, R_mean_given_size",
        value: sharing,
    },
    Model {
        name: "mm1_ps",
        about: "M/M/1 under processor sharing",
        inputs: "lam, mu",
        quantities: "R_mean, R_var",
        value: sharing,
    },
];

fn no_answer(why: impl std::fmt::Display) -> BatchError {
    BatchError::NoAnswer(why.to_string())
}

fn erlang(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let (servers, load) = (inputs.servers("m")?.get(), inputs.positive("a")?);
    Ok(match quantity {
        "P_block" => Some(erlang_b(servers, load)),
        "P_wait" => Some(erlang_c(servers, load)),
        _ => None,
    })
}

fn sizing(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    if quantity != "min_servers" {
        return Ok(None);
    }
    let servers = if inputs.has("target_pwait") {
        servers_for_p_wait(inputs.positive("a")?, inputs.positive("target_pwait")?)
    } else {
        let service_s = 1.0 / inputs.positive("mu")?;
        servers_for_response(inputs.positive("lam")?, service_s, 0.95, inputs.positive("slo_R_p95")?)
    };
    Ok(servers.map(|servers| f64::from(servers.get())))
}

fn exponential(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    answered(&station(inputs, Law::exponential_rate(inputs.positive("mu")?))?, inputs, quantity)
}

fn general(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let service = match inputs.has("service") {
        true => inputs.law("service")?,
        false => Law::Constant { mean_s: inputs.positive("service_time")? },
    };
    answered(&station(inputs, service)?, inputs, quantity)
}

fn sharing(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let mean_s = match inputs.has("mu") {
        true => 1.0 / inputs.positive("mu")?,
        false => inputs.positive("mean_service")?,
    };
    let discipline = Discipline::ProcessorSharing;
    let station = Station { discipline, ..station(inputs, Law::Exponential { mean_s })? };
    match quantity {
        // Sharing stretches every size by the same factor (Kleinrock 1967).
        "R_mean_given_size" => {
            let answer = formula(&station).map_err(no_answer)?;
            Ok(Some(inputs.number("x")? * answer.response.mean_s.value / mean_s))
        }
        _ => answered(&station, inputs, quantity),
    }
}

fn station(inputs: &Inputs, service: Law) -> Result<Station, BatchError> {
    let arrivals = Arrivals::poisson(inputs.positive("lam")?);
    let capacity = inputs.has("K").then(|| inputs.whole("K")).transpose()?;
    Ok(Station { capacity, ..Station::new(arrivals, service, inputs.servers("m")?) })
}

fn answered(station: &Station, inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    if quantity == "Wq_sf_at_t" {
        return waiting_survival(station, inputs.number("t")?).map(Some).map_err(no_answer);
    }
    if let Some(n) = quantity.strip_prefix("P_N_ge_").and_then(|n| n.parse().ok()) {
        return number_at_least(station, n).map(Some).map_err(no_answer);
    }
    Ok(of_answer(&formula(station).map_err(no_answer)?, quantity))
}

/// A quantity of an answer.
pub(super) fn of_answer(answer: &Answer, quantity: &str) -> Option<f64> {
    let quantile = |times: &kendall_station::Summary, per_cent: &str| {
        Some(times.quantile(per_cent.parse::<f64>().ok()? / 100.0)?.value)
    };
    if let Some(per_cent) = quantity.strip_prefix("R_p") {
        return quantile(&answer.response, per_cent);
    }
    if let Some(per_cent) = quantity.strip_prefix("Wq_p") {
        return quantile(&answer.waiting, per_cent);
    }
    match quantity {
        "R_mean" => Some(answer.response.mean_s.value),
        "R_var" => answer.response.variance_s2,
        "Wq_mean" => Some(answer.waiting.mean_s.value),
        "Wq_var" => answer.waiting.variance_s2,
        "L" => Some(answer.in_system.value),
        "P_wait" => Some(answer.p_wait.value),
        "P_block" => Some(answer.lost.value),
        "throughput" => Some(answer.throughput_per_s.value),
        "utilisation" => Some(answer.utilisation.value),
        _ => None,
    }
}
