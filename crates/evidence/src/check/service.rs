//! Checks whether service is as in the model.

use kendall_station::{Knows, Law};

use super::arrivals::independence;
use super::grade::{grade, off, two_sided};
use super::law::{closest_law, in_words};
use super::trial_set::{TrialSet, scv, service_s};
use super::{AssumptionVerdict, Check, Finding, MATTERS};
use crate::seconds::seconds;
use kendall_stats::number::{percent, significant, time};
use kendall_stats::{
    anderson_darling_exponential, anderson_darling_modified, cross_correlation, mean, two_samples,
};

/// This number of service times shows a squared coefficient of variation that changes the wait by 10 %.
const ENOUGH: usize = 200;
const FEWEST: usize = 20;
/// Service this much longer under load is not an error of sampling, and moves a wait at ρ = 0.8 by more than half.
pub(super) const LOAD_DEPENDENT: f64 = 0.15;
/// A hole in the logarithms of service times this wide, with 10 or more times on either side, occurs in one exponential sample in
/// 50,000.
const HOLE: f64 = 3.0;

fn untold(check: Check, n: usize) -> Finding {
    let sentence = match n {
        0 => "The server reported no service times; start it with --stamps if it can report them.".to_owned(),
        n => format!("{n} service times are too few for this check; run longer."),
    };
    Finding::cannot_tell(check, sentence)
}

/// Are service times exponential, and if not, which law is closest? The effect is on the waiting time of M/M/m, by
/// (1 + cs²)/2 (Lee and Longton 1959).
pub(super) fn law(seen: &TrialSet<'_>) -> Option<Finding> {
    let times_s = seen.services_s();
    let (Some(scv), true) = (scv(times_s), times_s.len() >= FEWEST) else {
        return Some(untold(Check::ServiceLaw, times_s.len()));
    };
    let (n, factor) = (times_s.len(), (1.0 + scv) / 2.0);
    let Some(tested) = anderson_darling_exponential(times_s) else {
        return Some(Finding::cannot_tell(
            Check::ServiceLaw,
            "Every service time is 0 by the server's clock, which is too coarse; use a finer clock.",
        ));
    };
    let verdict = grade(n, ENOUGH, tested.p_value, factor - 1.0, MATTERS);
    let shown = significant(scv, 2);
    let sentence = match (verdict, closest_law(times_s)) {
        (AssumptionVerdict::Broken, closest) => {
            let (which, other) = match closest {
                Some(closest) if closest.distance.statistic < 0.1 => (
                    format!("the closest distribution is {}", in_words(&closest.law)),
                    seen.with_service(&closest.law),
                ),
                _ => ("no named distribution is close".to_owned(), format!("M/G/{}", seen.station.servers)),
            };
            format!(
                "Service times are not exponential: their squared coefficient of variation is {shown}, not 1, and {which}. M/M/{} {}; \
                 use {other}.",
                seen.station.servers,
                off(factor)
            )
        }
        (AssumptionVerdict::Holds, Some(closest)) if !matches!(closest.law, Law::Exponential { .. }) => {
            format!(
                "Service times vary as much as exponential ones (squared coefficient of variation {shown}), but their distribution is \
             closer to {}: the model's means hold, its high quantiles may not.",
                in_words(&closest.law)
            )
        }
        (AssumptionVerdict::Holds, _) => {
            format!(
                "Service times are close enough to exponential: their squared coefficient of variation is {shown}."
            )
        }
        (AssumptionVerdict::CannotTell, _) => {
            format!("{n} service times are too few to decide whether they are exponential; run longer.")
        }
    };
    let statistic = anderson_darling_modified(tested.statistic, n);
    let finding = Finding::new(Check::ServiceLaw, verdict, sentence).statistic("A²", statistic);
    Some(finding.p(tested.p_value).effect("wait", factor - 1.0))
}

/// Do some requests take a small part of the time of others, with none between, as answers out of a cache do?
pub(super) fn one_kind(seen: &TrialSet<'_>) -> Option<Finding> {
    let mut sorted: Vec<f64> = seen.services_s().iter().copied().filter(|x| *x > 0.0).collect();
    if sorted.len() < FEWEST {
        return Some(untold(Check::OneKind, sorted.len()));
    }
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let hole = |i: &usize| sorted[*i] / sorted[*i - 1];
    let widest = (10..n.saturating_sub(9)).max_by(|a, b| hole(a).total_cmp(&hole(b)));
    let Some(at) = widest else { return Some(untold(Check::OneKind, n)) };
    let (ratio, share) = (hole(&at), at as f64 / n as f64);
    // P(X₍ⱼ₊₁₎ > r·X₍ⱼ₎) ≤ r^(−j) for exponential times, summed over the ranks from 10 on.
    let p_value = (libm::pow(ratio, -10.0) / (1.0 - 1.0 / ratio.max(1.01))).min(1.0);
    if ratio < HOLE {
        let sentence = "Service times form one group: there is one kind of request.";
        return Some(
            Finding::new(Check::OneKind, AssumptionVerdict::Holds, sentence)
                .statistic("widest hole", ratio)
                .p(p_value),
        );
    }
    let sentence = format!(
        "There are two kinds of request: {} take {} or less, the others {} or more. A cache that answers repeated requests has this \
         effect. Give the kinds as classes, or use the measured distribution.",
        percent(share),
        time(sorted[at - 1]),
        time(sorted[at])
    );
    let finding =
        Finding::new(Check::OneKind, AssumptionVerdict::Broken, sentence).statistic("widest hole", ratio);
    Some(finding.p(p_value).effect("requests of the faster kind", share))
}

/// Do service times depend on those before them?
pub(super) fn independent(seen: &TrialSet<'_>) -> Option<Finding> {
    let times_s = seen.services_s();
    if times_s.is_empty() {
        return Some(untold(Check::IndependentService, 0));
    }
    let share = scv(times_s).map_or(0.0, |scv| scv / (scv + seen.arrival_scv()));
    Some(independence(Check::IndependentService, "Service times", times_s, share))
}

/// Are service times correlated with the gap before them? The wait follows the variance of service less gap (Kingman
/// 1962), so a correlation r changes it by −2r·ca·cs/(ca² + cs²).
pub(super) fn apart_from_arrivals(seen: &TrialSet<'_>) -> Option<Finding> {
    let (mut gaps_s, mut times_s) = (Vec::new(), Vec::new());
    for rows in &seen.trials {
        for pair in rows.windows(2) {
            if let Some(service_s) = service_s(pair[1]) {
                gaps_s.push(seconds(pair[1].scheduled - pair[0].scheduled));
                times_s.push(service_s);
            }
        }
    }
    let n = gaps_s.len();
    if n < FEWEST {
        return Some(untold(Check::ServiceApartFromArrivals, n));
    }
    let Some(r) = cross_correlation(&gaps_s, &times_s) else {
        let sentence = "Gaps or service times are constant, so neither depends on the other.";
        return Some(Finding::new(Check::ServiceApartFromArrivals, AssumptionVerdict::Holds, sentence));
    };
    let (arrivals, service) = (scv(&gaps_s).unwrap_or(1.0), scv(&times_s).unwrap_or(1.0));
    let effect = -2.0 * r * (arrivals * service).sqrt() / (arrivals + service);
    let p_value = two_sided(r * (n as f64).sqrt());
    let verdict = grade(n, ENOUGH, p_value, effect, MATTERS);
    let shown = significant(r, 2);
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "Service times depend on the gap before them (correlation {shown}): a model with independent service times {}.",
            off(1.0 + effect)
        ),
        AssumptionVerdict::Holds => "Service times do not depend on the gaps between arrivals.".to_owned(),
        AssumptionVerdict::CannotTell => {
            format!("{n} pairs are too few to decide whether service depends on arrivals; run longer.")
        }
    };
    let finding = Finding::new(Check::ServiceApartFromArrivals, verdict, sentence).statistic("r", r);
    Some(finding.p(p_value).effect("wait", effect))
}

/// Does service take longer where it starts with all servers busy than where it starts alone?
pub(super) fn apart_from_load(seen: &TrialSet<'_>) -> Option<Finding> {
    let (servers, discipline) = (seen.station.servers.get() as usize, seen.station.discipline);
    // Interruptions, and orders by size, tie the service time to the load by themselves.
    if servers < 2 || discipline.preempts() || discipline.knows() != Knows::Nothing {
        return None;
    }
    let (mut alone_s, mut busy_s) = (Vec::new(), Vec::new());
    for rows in &seen.trials {
        let mut started: Vec<i64> =
            rows.iter().filter_map(|row| row.started.and(row.finished).and(row.started)).collect();
        let mut finished: Vec<i64> = rows.iter().filter_map(|row| row.started.and(row.finished)).collect();
        started.sort_unstable();
        finished.sort_unstable();
        for row in rows {
            let (Some(at), Some(time_s)) = (row.started, service_s(row)) else { continue };
            let begun = started.partition_point(|&other| other <= at);
            let ended = finished.partition_point(|&other| other <= at);
            match begun.saturating_sub(ended) {
                0 | 1 => alone_s.push(time_s),
                count if count >= servers => busy_s.push(time_s),
                _ => {}
            }
        }
    }
    let n = alone_s.len().min(busy_s.len());
    let tested = if n >= FEWEST { two_samples(&alone_s, &busy_s) } else { None };
    let Some(tested) = tested else {
        let sentence = format!(
            "{n} requests were served alone or with all servers busy, too few to compare; run longer."
        );
        return Some(Finding::cannot_tell(Check::ServiceApartFromLoad, sentence));
    };
    Some(load_finding(&alone_s, "alone", &busy_s, "with all servers busy", tested.statistic, tested.p_value))
}

/// The finding on service times with little load, compared with those with much.
pub(super) fn load_finding(
    low_s: &[f64],
    low: &str,
    high_s: &[f64],
    high: &str,
    distance: f64,
    p_value: f64,
) -> Finding {
    let n = low_s.len().min(high_s.len());
    let (low_mean_s, high_mean_s) = (mean(low_s), mean(high_s));
    let kappa = high_mean_s / low_mean_s;
    let kappa = if kappa.is_finite() { kappa } else { 1.0 };
    let verdict = grade(n, ENOUGH / 2, p_value, kappa - 1.0, LOAD_DEPENDENT);
    let (low_time, high_time) = (time(low_mean_s), time(high_mean_s));
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "Service takes {high_time} {high} and {low_time} {low}, {} times as long: it depends on the load. Use the service time \
             measured under load.",
            significant(kappa, 2)
        ),
        AssumptionVerdict::Holds => {
            format!("Service takes {high_time} {high} and {low_time} {low}: the load hardly changes it.")
        }
        AssumptionVerdict::CannotTell => {
            format!(
                "Service takes {high_time} {high} and {low_time} {low}: {n} requests are too few to decide whether it depends on the \
                 load. Run longer."
            )
        }
    };
    let finding = Finding::new(Check::ServiceApartFromLoad, verdict, sentence).statistic("D", distance);
    finding.p(p_value).effect("service time", kappa - 1.0)
}
