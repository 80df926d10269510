//! Can what measured be trusted: the generator, the clock, the machines?

use kendall_record::RequestRow;

use super::trial_set::{TrialSet, service_s};
use super::{AssumptionVerdict, Check, Finding, Hosts, Setting};
use crate::Trial;
use crate::seconds::seconds;
use kendall_stats::number::{percent, time};
use kendall_stats::{mean, quantile_rank};

/// A time is known to a twentieth where it is twenty ticks of its clock.
const TICKS: f64 = 20.0;
const FEWEST: usize = 20;

/// How late requests left by the rows of trials, and what of the response times that is. A clock that starts at sending leaves it
/// out (coordinated omission, Tene 2013).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendLateness {
    /// 99 % left at most this late, in seconds, waits for a connection included.
    pub lag_p99_s: f64,
    /// The mean response time, in seconds.
    pub response_s: f64,
    /// The share of the mean response time that passed before sending.
    pub mean_share: f64,
    /// The share that the lag has of the 99th percentile.
    pub p99_share: f64,
}

/// How late the requests of trials left, after the warm-up; `None` where fewer than 20 were answered.
pub fn send_lateness(trials: &[Trial<'_>]) -> Option<SendLateness> {
    lateness(|| {
        trials.iter().flat_map(|trial| trial.rows.iter().filter(|row| row.scheduled >= trial.warmup_ns))
    })
}

fn lateness<'r, I: Iterator<Item = &'r RequestRow>>(rows: impl Fn() -> I) -> Option<SendLateness> {
    let sent = |row: &RequestRow| Some(seconds(row.send_lag_ns()?.max(0)));
    let answered = |row: &RequestRow| Some((seconds(row.response_ns()?), sent(row)?));
    let mut lags_s: Vec<f64> = rows().filter_map(sent).collect();
    let (mut from_due_s, mut from_sent_s): (Vec<f64>, Vec<f64>) =
        rows().filter_map(answered).map(|(response_s, lag_s)| (response_s, response_s - lag_s)).unzip();
    if from_due_s.len() < FEWEST {
        return None;
    }
    for times in [&mut lags_s, &mut from_due_s, &mut from_sent_s] {
        times.sort_by(f64::total_cmp);
    }
    let p99_s = |sorted: &[f64]| sorted[quantile_rank(sorted.len() as u64, 0.99) as usize - 1];
    let share = |figure: &dyn Fn(&[f64]) -> f64| {
        let share = 1.0 - figure(&from_sent_s) / figure(&from_due_s);
        if share.is_finite() { share } else { 0.0 }
    };
    Some(SendLateness {
        lag_p99_s: p99_s(&lags_s),
        response_s: mean(&from_due_s),
        mean_share: share(&mean),
        p99_share: share(&p99_s),
    })
}

/// Whether requests left when they were due, as the judge of the generator found, with the figures of the rows.
pub(super) fn sent_when_due(seen: &TrialSet<'_>, setting: &Setting) -> Option<Finding> {
    let Some(lateness) = lateness(|| seen.rows()) else {
        return Some(Finding::cannot_tell(
            Check::SentWhenDue,
            "Fewer than 20 requests were answered, too few to measure the send lag; run longer.",
        ));
    };
    let SendLateness { lag_p99_s, response_s, mean_share, p99_share } = lateness;
    let (verdict, sentence) = match setting.sends.map(|sends| sends.on_schedule) {
        Some(false) => {
            let sentence = format!(
                "Requests left late, 1 % of them by {} or more; the mean response is {}. Response times here include that wait at the \
                 client; a clock that starts at sending shows a mean {} lower and a p99 {} lower (coordinated omission).",
                time(lag_p99_s),
                time(response_s),
                percent(mean_share),
                percent(p99_share)
            );
            (AssumptionVerdict::Broken, sentence)
        }
        Some(true) => {
            let sentence =
                format!("Requests left when they were due, 99 % of them within {}.", time(lag_p99_s));
            (AssumptionVerdict::Holds, sentence)
        }
        None => {
            let sentence = format!(
                "99 % of the requests left within {} of when they were due; the generator was not checked.",
                time(lag_p99_s)
            );
            (AssumptionVerdict::CannotTell, sentence)
        }
    };
    let finding = Finding::new(Check::SentWhenDue, verdict, sentence).statistic("p99 lag in s", lag_p99_s);
    Some(finding.effect("response at the client", mean_share))
}

/// Whether clocks tick finely enough for response and service times.
pub(super) fn clock_resolution(seen: &TrialSet<'_>) -> Option<Finding> {
    let answered = |row: &&RequestRow| row.response_ns().is_some();
    let client = seen.rows().filter(answered).flat_map(|row| [row.sent, row.completed]).flatten();
    let server = seen.rows().flat_map(|row| [row.started, row.finished]).flatten();
    let services_s: Vec<f64> = seen.rows().filter_map(service_s).collect();
    let client = tick_s(client).zip(seen.mean_response_s());
    let server = tick_s(server).zip((!services_s.is_empty()).then(|| mean(&services_s)));
    let measured = [("response", client), ("service", server)];
    let ticks = |tick_s: f64, mean_s: f64| mean_s / tick_s;
    let coarsest = measured
        .into_iter()
        .filter_map(|(what, found)| found.map(|(tick_s, mean_s)| (what, tick_s, mean_s)))
        .min_by(|a, b| ticks(a.1, a.2).total_cmp(&ticks(b.1, b.2)));
    let Some((what, tick_s, mean_s)) = coarsest else {
        return Some(Finding::cannot_tell(
            Check::ClockResolution,
            "Fewer than 20 timestamps are known, too few to find the clock's resolution; run longer.",
        ));
    };
    let count = ticks(tick_s, mean_s);
    let (verdict, sentence) = if count < TICKS {
        let sentence = format!(
            "The clock ticks every {}, and the mean {what} time is {}: its error is up to {}. Record it \
             with a finer clock.",
            time(tick_s),
            time(mean_s),
            percent(tick_s / mean_s)
        );
        (AssumptionVerdict::Broken, sentence)
    } else {
        (AssumptionVerdict::Holds, format!("The clock ticks every {} or finer.", time(tick_s)))
    };
    let finding = Finding::new(Check::ClockResolution, verdict, sentence).statistic("ticks", count);
    Some(finding.effect("resolution", if mean_s > 0.0 { tick_s / mean_s } else { 0.0 }))
}

/// The longest time of which all instants are multiples; `None` for fewer than 20 of them.
fn tick_s(instants: impl Iterator<Item = i64>) -> Option<f64> {
    let (mut tick, mut count) = (0u64, 0);
    for at in instants {
        tick = greatest_common_divisor(tick, at.unsigned_abs());
        count += 1;
    }
    (count >= FEWEST && tick > 0).then(|| tick as f64 / 1e9)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whether each row's instants are in the order in which they must be: due, sent, first byte, completed; queued, started,
/// finished. Server and client are not compared, since their clocks may differ.
pub(super) fn instants_in_order(seen: &TrialSet<'_>) -> Option<Finding> {
    let ordered = |instants: &[Option<i64>]| instants.iter().flatten().is_sorted();
    let wrong = |row: &&RequestRow| {
        !(ordered(&[Some(row.scheduled), row.sent, row.first_byte, row.completed])
            && ordered(&[row.queued, row.started, row.finished]))
    };
    let (count, all) = (seen.rows().filter(wrong).count(), seen.count());
    if all == 0 {
        return None;
    }
    let share = count as f64 / all as f64;
    let finding = if count > 0 {
        let sentence = format!(
            "{count} of {all} requests have timestamps in an impossible order, such as an answer before its request: they come from \
             different clocks, or from different requests."
        );
        Finding::new(Check::InstantsInOrder, AssumptionVerdict::Broken, sentence)
    } else {
        Finding::new(Check::InstantsInOrder, AssumptionVerdict::Holds, "All timestamps are in order.")
    };
    Some(finding.statistic("out of order", count as f64).effect("requests", share))
}

/// Whether client and server take processors from each other.
pub(super) fn apart_hosts(setting: &Setting) -> Option<Finding> {
    let finding = match setting.hosts {
        Hosts::Unknown => return None,
        Hosts::Apart => Finding::new(
            Check::ApartHosts,
            AssumptionVerdict::Holds,
            "Client and server run on separate machines.",
        ),
        Hosts::Same => Finding::cannot_tell(
            Check::ApartHosts,
            "Client and server share a machine: they compete for processors, and there is no network between them.",
        ),
    };
    Some(finding)
}
