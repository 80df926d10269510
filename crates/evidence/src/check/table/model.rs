//! Numbers that a table computed from a model.

use kendall_station::Servers;

use super::agreement::{agreement, apart};
use super::{COMPUTED, DIGITS, Known};
use crate::check::grade::off;
use crate::check::{AssumptionVerdict, Check, Finding};
use kendall_stats::number::{list, percent, significant, time};

/// Above this utilisation the time to reach a steady mean grows as 1/(1 − ρ)².
const NEARLY_FULL: f64 = 0.9;
/// Times that vary so much like exponential ones that M/M/m is within a tenth of the wait.
const EXPONENTIAL_SCV: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// E\[S\]·µ = 1, in seconds and per second; where it is a power of ten, the unit that would make it so.
pub(super) fn units(known: &Known<'_>) -> Option<Finding> {
    let (mean_s, rate_per_s) = (known.row.service_mean_s?, known.row.service_rate_per_s?);
    let product = mean_s * rate_per_s;
    let by_rate = time(1.0 / rate_per_s);
    let (printed, rate) = (significant(mean_s, 5), significant(rate_per_s, 5));
    let power = product.log10().round();
    let round = (product / 10f64.powf(power) - 1.0).abs() <= COMPUTED;
    let why = match power as i32 {
        3 if round => format!("{printed} looks like milliseconds"),
        6 if round => format!("{printed} looks like microseconds"),
        9 if round => format!("{printed} looks like nanoseconds"),
        -3 if round => "the rate looks like a rate per millisecond".to_owned(),
        times @ 1.. if round => {
            format!(
                "the given time is {} times as long, which no mix-up of units explains",
                significant(10f64.powi(times), 1)
            )
        }
        times if round && times < 0 => {
            format!(
                "the given time is 1/{} as long, which no mix-up of units explains",
                significant(10f64.powi(-times), 1)
            )
        }
        _ => format!(
            "the given time is {} times as long, so the two are from different measurements",
            significant(product, 3)
        ),
    };
    let holds =
        format!("A service time of {} and a rate of {rate}/s are inverse to each other.", time(mean_s));
    let broken = format!(
        "A service rate of {rate}/s means a service time of {by_rate}, but {printed} s is given: {why}."
    );
    let finding = agreement(Check::Units, product - 1.0, DIGITS, "service time", holds, broken);
    Some(finding.statistic("E[S]·µ", product))
}

/// Utilisation as given, and as rate × service time / servers. Lost requests count where that is closer: a rejected one needs no service,
/// but one whose client gave up may have had it.
pub(super) fn utilisation(known: &Known<'_>) -> Option<Finding> {
    let (given, offered) = (known.row.utilisation?, known.offered_utilisation()?);
    let lost = known.row.lost.filter(|_| known.rate_per_s().is_some()).unwrap_or(0.0);
    let served = (1.0 - lost) * offered;
    let of_served = lost > 0.0 && apart(given, served).abs() <= apart(given, offered).abs();
    let (computed, product) = match of_served {
        true => (served, "rate × (1 − lost) × service time / servers"),
        false => (offered, "rate × service time / servers"),
    };
    // A measured share is at most 1, and a value near 0 is rounded.
    let effect = if (given - computed).abs() < 0.001 { 0.0 } else { apart(given, computed) };
    let (shown, again) = (significant(given, 3), significant(computed, 3));
    let holds = format!("Utilisation is {shown}, and {product} is {again}.");
    let broken =
        format!("Utilisation is given as {shown}, but {product} is {again}: one of the numbers is wrong.");
    Some(agreement(Check::Utilisation, effect, COMPUTED, "utilisation", holds, broken))
}

/// Whether there is a steady state, so that a mean exists. With limited capacity there is one at any load, and no very long queue.
pub(super) fn stability(known: &Known<'_>) -> Option<Finding> {
    if known.row.users.is_some() {
        return None;
    }
    let utilisation = known.offered_utilisation()?;
    if utilisation > NEARLY_FULL && known.room().is_some() {
        return None;
    }
    let capacity = significant(f64::from(known.servers?.get()) / known.service_s?, 3);
    let shown = significant(utilisation, 3);
    let given = known.row.response_mean_s.or(known.row.response_model_s);
    let finding = if utilisation >= 1.0 {
        let mean = match given {
            Some(mean_s) => format!(
                "there is no steady state, and the mean response of {} depends on how long the run was",
                time(mean_s)
            ),
            None => {
                "the queue grows as long as requests arrive, and there is no mean response time".to_owned()
            }
        };
        let sentence = format!("Utilisation is {shown}: {mean}. Capacity is {capacity}/s.");
        Finding::new(Check::Stability, AssumptionVerdict::Broken, sentence)
    } else if utilisation > NEARLY_FULL {
        let sentence = format!(
            "Utilisation is {shown}: this close to 1 the mean depends on rare long queues, and an error of 1 % in the service time \
             moves it by {}. Capacity is {capacity}/s.",
            percent(0.01 * utilisation / (1.0 - utilisation))
        );
        Finding::cannot_tell(Check::Stability, sentence)
    } else {
        let sentence = format!("Utilisation is {shown}; capacity is {capacity}/s.");
        Finding::new(Check::Stability, AssumptionVerdict::Holds, sentence)
    };
    Some(finding.effect("utilisation above 1", utilisation - 1.0))
}

/// The mean response time that the table computed, computed again: M/M/m by Erlang's recursion and by the sum over states,
/// with the corrections that the row has room for. Where it is off, the slip that reproduces it is named.
pub(super) fn formula_of(known: &Known<'_>) -> Option<Finding> {
    let printed_s = known.row.response_model_s?;
    let Some(station) = known.exponential() else {
        known.offered_utilisation()?;
        return None; // `stability` says that there is nothing to compute; above 1, M/M/m/K is not checked.
    };
    let right_s = station.response_s();
    let by_states_s = station.service_s + waiting_by_states_s(&station);
    let m = f64::from(station.servers.get());
    let delay_s = known.row.delay_s.unwrap_or(0.0);
    let of_room = known.room().and_then(|room| Some(known.with_room(room)?.response_s));
    let of_law = known.row.service_scv.map(|scv| station.service_s + (1.0 + scv) / 2.0 * station.waiting_s);
    let models = [Some(right_s), of_room, of_law];
    let closest = |value: &f64| apart(printed_s, value + delay_s).abs().min(apart(printed_s, *value).abs());
    let nearest = models.into_iter().flatten().min_by(|a, b| closest(a).total_cmp(&closest(b)))?;
    let name = format!("M/M/{}", station.servers);
    let (printed, right) = (time(printed_s), time(right_s));
    let finding = if closest(&nearest) <= COMPUTED {
        let sentence = format!("{name} has a mean response of {right}; {printed} is given.");
        Finding::new(Check::Formula, AssumptionVerdict::Holds, sentence)
    } else {
        let ways = significant(by_states_s * 1e3, 5);
        let slip = slip(printed_s, &station).map_or_else(String::new, |slip| format!(" {slip}"));
        let sentence = format!(
            "{name} has a mean response of {right} (by Erlang's recursion {} ms, by the sum over states {ways} ms), but \
             {printed} is given.{slip}",
            significant(right_s * 1e3, 5)
        );
        Finding::new(Check::Formula, AssumptionVerdict::Broken, sentence)
    };
    Some(finding.statistic("servers", m).effect("response", apart(printed_s, right_s)))
}

/// The mean wait by the probabilities of all states: π₀ = 1/(Σ aᵏ/k! + aᵐ/(m!(1 − ρ))), each term in logarithms (Gross et
/// al. 2008, section 2.3).
fn waiting_by_states_s(station: &super::Exponential) -> f64 {
    let (m, load) = (station.servers.get(), station.rate_per_s * station.service_s);
    let utilisation = station.utilisation();
    let term = |k: u32| f64::from(k) * libm::log(load) - libm::lgamma(f64::from(k) + 1.0);
    let waiting = term(m) - libm::log(1.0 - utilisation);
    let largest = (0..m).map(term).fold(waiting, f64::max);
    let all: f64 = (0..m).map(|k| libm::exp(term(k) - largest)).sum::<f64>() + libm::exp(waiting - largest);
    let p_wait = libm::exp(waiting - largest) / all;
    p_wait * station.service_s / (f64::from(m) - load)
}

/// What makes the printed number out of the right formula, in words.
fn slip(printed_s: f64, station: &super::Exponential) -> Option<String> {
    let &super::Exponential { rate_per_s, service_s, servers, p_wait, waiting_s } = station;
    let m = f64::from(servers.get());
    let factorial = libm::tgamma(m + 1.0);
    let whole = |servers: Servers| if servers.get() == 1 { "server" } else { "servers" };
    let several = servers.get() > 1;
    let slips = [
        (
            several,
            service_s + waiting_s * factorial * factorial,
            format!("The waiting time was multiplied by {servers}! where the formula divides by it."),
        ),
        (
            several,
            service_s + waiting_s * factorial,
            format!("The waiting time lacks a division by {servers}!."),
        ),
        (true, waiting_s, "The given time is the waiting time, without the service.".to_owned()),
        (true, service_s, "The given time is the service time, without any wait.".to_owned()),
        (
            true,
            service_s + rate_per_s * waiting_s,
            "The mean number waiting was added in place of the waiting time.".to_owned(),
        ),
        (
            several,
            1.0 / (m / service_s - rate_per_s),
            format!("The given time is the response of one server {servers} times as fast."),
        ),
        (
            several,
            service_s / (1.0 - station.utilisation()),
            format!("The given time is the response of {servers} {} with a queue each.", whole(servers)),
        ),
        (
            several,
            service_s + p_wait * service_s,
            "The waiting time lacks the division by the number of free servers.".to_owned(),
        ),
        (
            true,
            service_s + waiting_s / 2.0,
            "The given time is the response with constant service times, M/D in place of M/M.".to_owned(),
        ),
        (
            true,
            1e3 * station.response_s(),
            "The given time is 1000 times too large: milliseconds given as seconds.".to_owned(),
        ),
        (
            true,
            1e-3 * station.response_s(),
            "The given time is 1000 times too small: seconds given as milliseconds.".to_owned(),
        ),
    ];
    slips
        .into_iter()
        .find(|(can_be, value_s, _)| *can_be && apart(printed_s, *value_s).abs() <= DIGITS)
        .map(|slip| slip.2)
}

/// Whether exponential service was assumed although the row has another variation.
pub(super) fn service_law(known: &Known<'_>) -> Option<Finding> {
    let scv = known.row.service_scv?;
    let factor = (1.0 + scv) / 2.0;
    let shown = significant(scv, 2);
    let finding = if EXPONENTIAL_SCV.contains(&scv) {
        let sentence = format!(
            "The squared coefficient of variation of service is {shown}: close enough to exponential."
        );
        Finding::new(Check::ServiceLaw, AssumptionVerdict::Holds, sentence)
    } else {
        let waits = known.exponential().map_or_else(String::new, |station| {
            let (assumed, right) = (time(station.waiting_s), time(factor * station.waiting_s));
            format!(": {assumed} instead of about {right}")
        });
        let law = if scv < 0.05 { "D" } else { "G" };
        let servers = known.servers.map_or_else(|| "m".to_owned(), |servers| servers.to_string());
        let sentence = format!(
            "The squared coefficient of variation of service is {shown}, not 1: M/M/{servers} {}{waits}. Use M/{law}/{servers}.",
            off(factor)
        );
        Finding::new(Check::ServiceLaw, AssumptionVerdict::Broken, sentence)
    };
    Some(finding.effect("wait", factor - 1.0))
}

/// Response = waiting + service + delay; what is more is outside, and less cannot be.
pub(super) fn sum(known: &Known<'_>) -> Option<Finding> {
    let (response_s, waiting_s) = (known.row.response_mean_s?, known.row.waiting_mean_s?);
    let parts_s = waiting_s + known.service_s? + known.row.delay_s.unwrap_or(0.0);
    let effect = apart(response_s, parts_s);
    let (all, parts) = (time(response_s), time(parts_s));
    let holds = format!("The response of {all} is waiting and service, {parts}.");
    let broken = if effect < 0.0 {
        format!(
            "The response of {all} is less than waiting and service, {parts}: they are not from the same requests."
        )
    } else {
        format!(
            "The response of {all} is more than waiting and service, {parts}: {} pass elsewhere, and no queueing model includes them. \
             Add them as a delay.",
            time(response_s - parts_s)
        )
    };
    Some(agreement(Check::Sum, effect, COMPUTED, "response", holds, broken))
}

/// Whether measured responses are longer than the model's by nearly the same time at every load: then that passes outside
/// the station.
pub(super) fn delay(rows: &[Known<'_>]) -> Option<Finding> {
    let beyond = |known: &Known<'_>| {
        let (measured_s, station) = (known.row.response_mean_s?, known.exponential()?);
        Some((
            measured_s - station.response_s() - known.row.delay_s.unwrap_or(0.0),
            measured_s,
            known.row.place(),
        ))
    };
    let beyond: Vec<_> = rows.iter().filter_map(beyond).collect();
    if beyond.len() < 2 {
        return None;
    }
    let least = beyond.iter().map(|row| row.0).fold(f64::INFINITY, f64::min);
    let most = beyond.iter().map(|row| row.0).fold(f64::NEG_INFINITY, f64::max);
    let share = beyond.iter().map(|row| row.0 / row.1).sum::<f64>() / beyond.len() as f64;
    let middle_s = f64::midpoint(least, most);
    // Nearly the same time, and not a small part of the response.
    if least <= 0.0 || most > 1.5 * least || share < 0.1 {
        return None;
    }
    let places: Vec<String> = beyond.iter().map(|row| row.2.clone()).collect();
    let sentence = format!(
        "Measured responses are {} to {} longer than the model's, by nearly the same time in every row: that time passes outside the \
         station, for example on a link. Add a delay of about {} to the model.",
        time(least),
        time(most),
        time(middle_s)
    );
    let verdict = if share > 0.5 { AssumptionVerdict::Broken } else { AssumptionVerdict::CannotTell };
    Some(Finding::new(Check::Delay, verdict, sentence).effect("response outside", share).at(list(&places)))
}
