//! The computation of rows of open stations. `models` lists the models.

mod models;

use kendall_station::{
    Answer, Arrivals, Class, Conditions, Discipline, Law, Network, Node, Part, Servers, Station, Summary,
};

use super::{BatchError, Inputs};
use crate::{
    NoFormula, TwoMoments, erlang_b, erlang_c, fork_join_response_s, formula, load_for_loss, network_formula,
    number_at_least, quantiles, response_quantile, response_survival, servers_for_loss, servers_for_p_wait,
    servers_for_response, sharing_response_s, split, split_merge_response_s, waiting_survival,
};

pub(super) use models::MODELS;

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
    let servers = if let Some(target) = inputs.optional("target_pwait")? {
        servers_for_p_wait(load(inputs)?, target)
    } else {
        let (rate, service_s) = (inputs.positive("lam")?, service_s(inputs)?);
        let (per_cent, target_s) = percentile(inputs, "slo_R_p")?;
        servers_for_response(rate, service_s, per_cent / 100.0, target_s)
    };
    servers
        .map(|servers| Some(f64::from(servers.get())))
        .ok_or_else(|| no_answer("no number of servers is enough"))
}

/// The fewest servers, or the highest load, with which at most a given share is lost.
fn loss_sizing(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let target = one_of(inputs, &["target_pblock", "target_P_block", "target"])?;
    match quantity {
        "min_servers" => {
            let servers = servers_for_loss(load(inputs)?, target);
            servers
                .map(|servers| Some(f64::from(servers.get())))
                .ok_or_else(|| no_answer("no number of servers is enough"))
        }
        "max_load" => Ok(Some(load_for_loss(inputs.servers("m")?, target))),
        _ => Ok(None),
    }
}

/// λ·E\[S\], given as itself or by its factors.
fn load(inputs: &Inputs) -> Result<f64, BatchError> {
    if inputs.has("a") { inputs.positive("a") } else { Ok(inputs.positive("lam")? * service_s(inputs)?) }
}

/// A number above zero by the first given one of its names.
fn one_of(inputs: &Inputs, keys: &[&str]) -> Result<f64, BatchError> {
    inputs.positive(keys.iter().find(|key| inputs.has(key)).unwrap_or(&keys[0]))
}

/// A target that is named after a percentile, such as `slo_R_p95`.
fn percentile(inputs: &Inputs, prefix: &str) -> Result<(f64, f64), BatchError> {
    let named = |key: &str| per_cent(key.strip_prefix(prefix)?);
    match inputs.keys().find_map(|key| Some((named(key)?, key))) {
        Some((per_cent, key)) => Ok((per_cent, inputs.positive(key)?)),
        None => {
            Err(BatchError::Missing { key: format!("{prefix}95"), must: "the upper limit of the quantile" })
        }
    }
}

/// The percentage in the name of a quantile, such as `99.9`: digits, strictly between 0 and 100.
fn per_cent(name: &str) -> Option<f64> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    name.parse().ok().filter(|per_cent| is_plain && *per_cent > 0.0 && *per_cent < 100.0)
}

/// The mean service time, by any of its names.
fn service_s(inputs: &Inputs) -> Result<f64, BatchError> {
    if inputs.has("mu") {
        return Ok(1.0 / inputs.positive("mu")?);
    }
    if inputs.has("service") {
        return Ok(inputs.law("service")?.mean_s());
    }
    one_of(inputs, &["mean_service", "service_time", "S"])
}

fn abandoning(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let patience_s =
        if inputs.has("theta") { 1.0 / inputs.positive("theta")? } else { inputs.positive("patience")? };
    let patience = Some(Law::Exponential { mean_s: patience_s });
    let conditions = Conditions { patience, ..Conditions::default() };
    let station = station(inputs, Law::Exponential { mean_s: service_s(inputs)? })?;
    answered(&Station { conditions, ..station }, inputs, quantity)
}

fn exponential(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    answered(&station(inputs, Law::exponential_rate(inputs.positive("mu")?))?, inputs, quantity)
}

fn general(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let service = match inputs.has("service") {
        true => inputs.law("service")?,
        false if inputs.has("mu") => Law::exponential_rate(inputs.positive("mu")?),
        false => Law::Constant { mean_s: inputs.positive("service_time")? },
    };
    let station = station(inputs, service)?;
    let arrivals = match inputs.has("gap") {
        true => Arrivals::Open { gap: inputs.law("gap")? },
        false => station.arrivals,
    };
    answered(&Station { arrivals, ..station }, inputs, quantity)
}

fn shortest(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let station = station(inputs, inputs.law("service")?)?;
    answered(&Station { discipline: Discipline::ShortestRemaining, ..station }, inputs, quantity)
}

const APPROXIMATE: &str = "Wq_mean_approx, R_mean_approx, Lq_approx, L_approx, P_wait_approx";

fn two_moments(inputs: &Inputs) -> Result<(TwoMoments, f64, f64), BatchError> {
    let (rate, service_s) = (inputs.positive("lam")?, service_s(inputs)?);
    let service_scv = match inputs.optional("cs2")? {
        Some(scv) => scv,
        None if inputs.has("service") => inputs.law("service")?.scv(),
        // If it is missing, the name of the model implies constant service.
        None => 0.0,
    };
    let gap_scv = inputs.optional("ca2")?.unwrap_or(1.0);
    let moments = TwoMoments::new(rate, service_s, inputs.servers("m")?, gap_scv, service_scv);
    Ok((moments.map_err(no_answer)?, rate, service_s))
}

fn approximate(
    inputs: &Inputs,
    quantity: &str,
    by: fn(&TwoMoments) -> f64,
) -> Result<Option<f64>, BatchError> {
    let (moments, rate, service_s) = two_moments(inputs)?;
    let waiting_s = by(&moments);
    Ok(match quantity.strip_suffix("_approx").unwrap_or(quantity) {
        "Wq_mean" => Some(waiting_s),
        "R_mean" => Some(waiting_s + service_s),
        "Lq" => Some(rate * waiting_s),
        "L" => Some(rate * (waiting_s + service_s)),
        "P_wait" => Some(moments.erlang_c()),
        _ => None,
    })
}

fn bound(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let (moments, _, service_s) = two_moments(inputs)?;
    let bound_s = moments.kingman_bound_s().ok_or_else(|| no_answer("Kingman's bound is for one server"))?;
    Ok(match quantity {
        "Wq_mean_upper" => Some(bound_s),
        "R_mean_upper" => Some(bound_s + service_s),
        _ => None,
    })
}

/// Classes of priority, the first the highest: rates, and either one exponential law or the first moments of each.
fn ranked(inputs: &Inputs, quantity: &str, discipline: Discipline) -> Result<Option<f64>, BatchError> {
    let rates = inputs.numbers("lam")?;
    let laws: Vec<Law> = match inputs.has("ES") {
        true => {
            let (means, seconds) = (inputs.numbers("ES")?, inputs.numbers("ES2")?);
            let law = |(mean, second): (&f64, &f64)| law_of_moments(*mean, *second);
            means.iter().zip(&seconds).map(law).collect::<Result<_, _>>()?
        }
        false => vec![Law::Exponential { mean_s: service_s(inputs)? }; rates.len()],
    };
    if laws.len() != rates.len() {
        return Err(no_answer("each class needs its rate and its moments of service"));
    }
    let total: f64 = rates.iter().sum();
    let class = |(k, (rate, law)): (usize, (&f64, &Law))| Class {
        name: k.to_string(),
        share: rate / total,
        weight: (rates.len() - k) as f64,
        service: Some(law.clone()),
    };
    let station = Station {
        discipline,
        classes: rates.iter().zip(&laws).enumerate().map(class).collect(),
        ..Station::new(Arrivals::poisson(total), laws[0].clone(), inputs.servers("m")?)
    };
    let answer = formula(&station).map_err(no_answer)?;
    let known = |value: Option<f64>| match (value, quantity) {
        (None, "R_var" | "Wq_var") => Err(no_answer("only the means of these classes are known")),
        (value, _) => Ok(value),
    };
    if !inputs.has("cls") {
        return known(of_answer(&answer, quantity));
    }
    let one = usize::try_from(inputs.whole("cls")?).ok().and_then(|k| answer.classes.get(k));
    let one = one.ok_or_else(|| no_answer("there is no class of this number"))?;
    let rate = one.throughput_per_s.value;
    known(match quantity {
        "L" => Some(rate * one.response.mean_s.value),
        "Lq" => Some(rate * one.waiting.mean_s.value),
        _ => of_times(&one.response, &one.waiting, quantity),
    })
}

/// Some law with these moments, where an answer depends on no others: constant, or a mixture of a constant or of no
/// time with an exponential time.
fn law_of_moments(mean_s: f64, second: f64) -> Result<Law, BatchError> {
    let scv = second / (mean_s * mean_s) - 1.0;
    if scv.is_nan() || scv < -1e-12 {
        return Err(no_answer("E[S²] of a class is below the square of its E[S]"));
    }
    // Uniform around the mean, or zero with probability 1 − p and exponential otherwise.
    let part = |probability, of| Part { probability, of };
    Ok(match scv {
        scv if scv <= 1e-12 => Law::Constant { mean_s },
        scv if (scv - 1.0).abs() < 1e-12 => Law::Exponential { mean_s },
        scv if scv > 1.0 => {
            let busy = 2.0 / (1.0 + scv);
            let of = Law::Exponential { mean_s: mean_s / busy };
            Law::Mixture { parts: vec![part(1.0 - busy, Law::Constant { mean_s: 0.0 }), part(busy, of)] }
        }
        // Two equally likely sizes to either side of the mean.
        scv => {
            let off = scv.sqrt();
            let of = |factor: f64| part(0.5, Law::Constant { mean_s: mean_s * factor });
            Law::Mixture { parts: vec![of(1.0 - off), of(1.0 + off)] }
        }
    })
}

const JOINED: &str = "R_mean, R_mean_approx, L";

/// Requests in `k` parts, two by default.
fn joined(
    inputs: &Inputs,
    quantity: &str,
    by: fn(f64, f64, Servers) -> Result<f64, NoFormula>,
) -> Result<Option<f64>, BatchError> {
    let parts = if inputs.has("k") { inputs.servers("k")? } else { Servers::MIN.saturating_add(1) };
    let rate = inputs.positive("lam")?;
    let response_s = by(rate, service_s(inputs)?, parts).map_err(no_answer)?;
    Ok(match quantity.strip_suffix("_approx").unwrap_or(quantity) {
        "R_mean" => Some(response_s),
        "L" => Some(rate * response_s),
        _ => None,
    })
}

/// All servers on one request compared with one server on each; `s` is the overhead of each further server.
fn divided(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let service = match inputs.has("service") {
        true => inputs.law("service")?,
        false => Law::Exponential { mean_s: service_s(inputs)? },
    };
    let found = split(&station(inputs, service)?, inputs.optional("s")?.unwrap_or(0.0)).map_err(no_answer)?;
    let mean = |way: Result<Answer, NoFormula>| Ok(Some(way.map_err(no_answer)?.response.mean_s.value));
    match quantity {
        "R_mean_together" => mean(found.together),
        "R_mean_apart" => mean(found.apart),
        "crossover" => {
            Ok(Some(found.crossover_per_s.ok_or_else(|| no_answer("one of the two is always better"))?))
        }
        _ => Ok(None),
    }
}

/// An open network; its nodes are numbered from 0, and so are the quantities of each.
fn jackson(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let (rates, speeds, ways) = (inputs.numbers("lam")?, inputs.numbers("mu")?, inputs.rows("P")?);
    let servers = if inputs.has("m") { inputs.numbers("m")? } else { vec![1.0; rates.len()] };
    let n = rates.len();
    if [speeds.len(), servers.len(), ways.len()] != [n; 3] || ways.iter().any(|row| row.len() != n) {
        return Err(no_answer(
            "each node needs its rate, its speed, its servers and its row and column of P",
        ));
    }
    let node = |i: usize| {
        let whole =
            |m: f64| (m.fract() == 0.0 && m <= f64::from(u32::MAX)).then(|| Servers::new(m as u32))?;
        let servers = whole(servers[i]).ok_or_else(|| no_answer("a node needs a whole number of servers"))?;
        let arrivals = (rates[i] != 0.0).then(|| Arrivals::poisson(rates[i]));
        Ok(Node { arrivals, ..Node::new(i.to_string(), Law::exponential_rate(speeds[i]), servers) })
    };
    let row =
        |row: &Vec<f64>| (0..n).filter(|&to| row[to] != 0.0).map(|to| (to.to_string(), row[to])).collect();
    let network = Network {
        nodes: (0..n).map(node).collect::<Result<_, BatchError>>()?,
        routing: ways.iter().enumerate().map(|(from, ways)| (from.to_string(), row(ways))).collect(),
        population: None,
        classes: Vec::new(),
    };
    let answer = network_formula(&network).map_err(no_answer)?;
    let waiting = answer.nodes.iter().map(|node| node.throughput_per_s * node.waiting_s).sum::<f64>();
    Ok(match quantity {
        "R_mean" => Some(answer.response_s),
        "Wq_mean" => Some(waiting / answer.throughput_per_s),
        "L" => Some(answer.in_system),
        "throughput" | "X" => Some(answer.throughput_per_s),
        _ => quantity.split_once('_').and_then(|(what, place)| {
            let node = answer.nodes.get(place.parse::<usize>().ok()?)?;
            match what {
                "X" => Some(node.throughput_per_s),
                "U" => Some(node.utilisation),
                "R" => Some(node.response_s),
                "Wq" => Some(node.waiting_s),
                "L" => Some(node.in_station),
                "Lq" => Some(node.throughput_per_s * node.waiting_s),
                _ => None,
            }
        }),
    })
}

fn sharing(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let service = match inputs.has("service") {
        true => inputs.law("service")?,
        false => Law::Exponential { mean_s: service_s(inputs)? },
    };
    let mean_s = service.mean_s();
    let station = Station { discipline: Discipline::ProcessorSharing, ..station(inputs, service)? };
    match quantity {
        "R_mean_given_size" if station.servers.get() == 1 => Ok(Some(
            sharing_response_s(inputs.positive("lam")?, mean_s, inputs.number("x")?).map_err(no_answer)?,
        )),
        "R_mean_given_size" => Err(no_answer("the mean response time by size is known for one server only")),
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
    if quantity == "R_sf_at_t" {
        return response_survival(station, inputs.number("t")?).map(Some).map_err(no_answer);
    }
    if let Some(n) = quantity.strip_prefix("P_N_ge_").and_then(|n| n.parse().ok()) {
        return number_at_least(station, n).map(Some).map_err(no_answer);
    }
    if let Some(per_cent) = quantity.strip_prefix("R_p").and_then(per_cent) {
        return response_quantile(station, per_cent / 100.0).map(Some).map_err(no_answer);
    }
    if let Some(per_cent) = quantity.strip_prefix("Wq_p").and_then(per_cent) {
        return quantiles(station, per_cent / 100.0).map(|(_, waiting_s)| Some(waiting_s)).map_err(no_answer);
    }
    Ok(of_answer(&formula(station).map_err(no_answer)?, quantity))
}

/// A quantity of an answer.
pub(super) fn of_answer(answer: &Answer, quantity: &str) -> Option<f64> {
    match quantity {
        "L" => Some(answer.in_system.value),
        "Lq" => Some(answer.throughput_per_s.value * answer.waiting.mean_s.value),
        "P_wait" => Some(answer.p_wait.value),
        "P_block" | "P_lost" => Some(answer.lost.value),
        "throughput" | "X" => Some(answer.throughput_per_s.value),
        "utilisation" | "rho" => Some(answer.utilisation.value),
        _ => of_times(&answer.response, &answer.waiting, quantity),
    }
}

fn of_times(response: &Summary, waiting: &Summary, quantity: &str) -> Option<f64> {
    let (times, of) = match quantity.strip_prefix("R_") {
        Some(of) => (response, of),
        None => (waiting, quantity.strip_prefix("Wq_")?),
    };
    match of {
        "mean" => Some(times.mean_s.value),
        "var" => times.variance_s2,
        _ => Some(times.quantile(per_cent(of.strip_prefix('p')?)? / 100.0)?.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_quantile_is_a_percentage_in_digits() {
        assert_eq!((per_cent("50"), per_cent("99.9")), (Some(50.0), Some(99.9)));
        for name in ["", "0", "100", "101", "200", "foo", "nan", "inf", "1e1", "+5", "-5", "9.9.9", "."] {
            assert_eq!(per_cent(name), None, "{name}");
        }
    }
}
