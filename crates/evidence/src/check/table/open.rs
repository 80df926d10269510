//! Open streams: rates, totals, room.

use super::agreement::{agreement, apart};
use super::{COMPUTED, Known};
use crate::check::{AssumptionVerdict, Check, Finding};
use kendall_stats::number::{percent, significant, time};

/// A rate that is further off than this is another rate.
const RATE_OFF: f64 = 0.05;
/// A loss below this does not change a mean.
const LOSS: f64 = 1e-3;
/// A run of fewer requests than this many times the capacity may be one burst.
const ROOMS: f64 = 10.0;
/// An interval wider than this to either side is too wide to distinguish models.
const WIDE: f64 = 0.25;

/// Requests offered, and requests answered.
pub(super) fn rate(known: &Known<'_>) -> Option<Finding> {
    let (offered, achieved) = (known.row.rate_per_s?, known.row.throughput_per_s?);
    if known.row.users.is_some() {
        return None;
    }
    let kept = offered * (1.0 - known.row.lost.unwrap_or(0.0));
    let effect = apart(achieved, kept);
    let (asked, done) = (significant(offered, 3), significant(achieved, 3));
    let holds = format!("{done}/s were answered of {asked}/s offered.");
    let broken = if effect < 0.0 {
        format!(
            "{done}/s were answered of {asked}/s offered, and the table reports no loss: the generator did not keep up, or the queue \
            grew. Check the generator, and lower the rate if it kept up."
        )
    } else {
        format!(
            "{done}/s were answered, more than the {asked}/s offered: the two rates do not count the same requests. Compare \
             rates of the same requests."
        )
    };
    Some(agreement(Check::Rate, effect, RATE_OFF, "rate", holds, broken))
}

/// A total time that is requests × response time is a sum of waits that overlap, unless requests came one by one.
pub(super) fn total_time(known: &Known<'_>) -> Option<Finding> {
    let (requests, total_s, rate_per_s) = (known.row.requests?, known.row.duration_s?, known.row.rate_per_s?);
    if known.row.users.is_some() {
        return None;
    }
    let told = [known.row.response_model_s, known.row.response_mean_s];
    let response_s = told.into_iter().flatten().min_by(|a, b| {
        let away = |response_s: f64| apart(total_s, requests * response_s).abs();
        away(*a).total_cmp(&away(*b))
    })?;
    let (product_s, arriving_s) = (requests * response_s, requests / rate_per_s);
    let count = requests;
    let sum = apart(total_s, product_s).abs() <= COMPUTED && apart(product_s, arriving_s).abs() > 0.1;
    let finding = if sum {
        let sentence = format!(
            "The total of {} is {count} × the response time of {}: waits overlap, so this is a sum of response times and not elapsed \
             time. {count} requests at {}/s take about {}.",
            time(total_s),
            time(response_s),
            significant(rate_per_s, 3),
            time(arriving_s)
        );
        Finding::new(Check::TotalTime, AssumptionVerdict::Broken, sentence)
    } else {
        let sentence = format!(
            "{count} requests came in {}, and their responses add up to {}.",
            time(total_s),
            time(product_s)
        );
        Finding::new(Check::TotalTime, AssumptionVerdict::Holds, sentence)
    };
    Some(finding.effect("total time", apart(total_s, arriving_s)))
}

/// Room that the server has and the model has not: what it loses at random arrivals, and whether all requests fit at once.
pub(super) fn room(known: &Known<'_>) -> Option<Finding> {
    let (room, servers) = (known.room()?, known.servers?);
    let lost = known.with_room(room)?.lost;
    let told = known.row.lost.unwrap_or(0.0);
    let of = match known.row.backlog {
        Some(backlog) => format!("{servers} in service and {backlog} in the backlog"),
        None => "in all".to_owned(),
    };
    let name = format!("M/M/{servers}/{room}");
    let share = if lost < 1e-9 { "next to nothing".to_owned() } else { percent(lost) };
    let short = room as f64..ROOMS * room as f64;
    let burst = known.row.requests.filter(|requests| *requests > room as f64 && short.contains(requests));
    let finding = if lost > LOSS && apart(told, lost).abs() > 0.5 {
        let sentence = format!(
            "The server's capacity is {room} ({of}): {name} loses {share} of the requests, but the table reports {}. Give \
             the model this capacity.",
            if told == 0.0 { "none".to_owned() } else { percent(told) }
        );
        Finding::new(Check::Room, AssumptionVerdict::Broken, sentence)
    } else if let Some(requests) = burst {
        let sentence = format!(
            "The server's capacity is {room} ({of}). With Poisson arrivals {name} loses {share}, but {requests} requests at once do \
             not fit: {} are rejected, or retried after seconds. A model with unlimited capacity does not show that.",
            requests - room as f64
        );
        Finding::new(Check::Room, AssumptionVerdict::Broken, sentence)
    } else {
        let sentence = format!("The server's capacity is {room} ({of}): {name} loses {share}.");
        Finding::new(Check::Room, AssumptionVerdict::Holds, sentence)
    };
    Some(finding.effect("requests turned away", lost))
}

/// The precision of the mean response from the row's number of requests: M/M/1 of the same utilisation has the asymptotic variance of
/// its mean wait in closed form (Daley 1968); of several servers only the share that waits counts.
pub(super) fn precision(known: &Known<'_>) -> Option<Finding> {
    let (requests, measured_s) = (known.row.requests?, known.row.response_mean_s?);
    if let Some(half_width_s) = known.row.response_half_width_s {
        return Some(width(half_width_s / measured_s, format!("its interval is ±{}", time(half_width_s))));
    }
    let station = known.exponential()?;
    let (rho, m) = (station.utilisation(), f64::from(station.servers.get()));
    let of_one = rho * (2.0 + 5.0 * rho - 4.0 * rho * rho + rho.powi(3)) / (1.0 - rho).powi(4);
    let waits = of_one * (station.service_s / m).powi(2) * (station.p_wait / rho).min(1.0);
    let half_width_s = 1.96 * ((waits + station.service_s.powi(2)) / requests).sqrt();
    let how =
        format!("the precision that {} requests of M/M/{} give", significant(requests, 3), station.servers);
    Some(width(half_width_s / station.response_s(), how))
}

fn width(relative: f64, how: String) -> Finding {
    let shown = percent(relative);
    let finding = if relative > WIDE {
        let sentence = format!(
            "The mean response is known only to ±{shown} ({how}): too imprecise to distinguish models. \
             Run longer, or run more trials."
        );
        Finding::cannot_tell(Check::Precision, sentence)
    } else {
        Finding::new(
            Check::Precision,
            AssumptionVerdict::Holds,
            format!("The mean response is known to about ±{shown}."),
        )
    };
    finding.effect("half-width", relative)
}
