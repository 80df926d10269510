//! Is the server the model's: as many servers, that order, that room?

use kendall_record::{Outcome, RequestRow};
use kendall_station::Discipline;

use super::trial_set::TrialSet;
use super::{AssumptionVerdict, Check, Finding};
use crate::seconds::seconds;
use kendall_stats::mean;
use kendall_stats::number::percent;

const FEWEST: usize = 20;
/// Busy so little of the time with one more, stamps of two workers that hand over overlap.
const OVERLAP: f64 = 0.005;
/// A request waited if it did so for more than this part of a service time.
const WAITED: f64 = 0.1;
/// This share of the waiting requests may be overtaken because of thread scheduling alone.
const OVERTAKEN: f64 = 0.02;

/// How many requests the server had in service at once.
pub(super) fn servers(seen: &TrialSet<'_>) -> Option<Finding> {
    if seen.station.discipline.preempts() {
        return None;
    }
    let spans: Vec<Vec<(i64, i64)>> = seen.whole.iter().map(|trial| in_service(trial.rows)).collect();
    let count = spans.iter().map(Vec::len).sum::<usize>();
    if count < FEWEST {
        return Some(Finding::cannot_tell(
            Check::Servers,
            "Fewer than 20 requests have the server's start and finish times; start it with --stamps if it can report them.",
        ));
    }
    let (most, expected) = (most_at_once(&spans), seen.station.servers.get() as usize);
    let waited = waiting(seen).count();
    let all = if most == 1 { "one request was".to_owned() } else { format!("{most} requests were") };
    let effect = most as f64 / expected as f64 - 1.0;
    let (verdict, sentence) = if most == expected {
        (
            AssumptionVerdict::Holds,
            format!("Up to {all} in service at once, as many as the model has servers."),
        )
    } else if most > expected {
        let sentence = format!(
            "Up to {all} in service at once; the model has {expected} {}. Set the servers to {most}.",
            plural(expected)
        );
        (AssumptionVerdict::Broken, sentence)
    } else if waited >= FEWEST && waited as f64 > 0.01 * count as f64 {
        let sentence = format!(
            "At most {all} in service at once, though {waited} requests waited; the model has {expected} {}. Set the servers to \
             {most}, or find what keeps the others idle.",
            plural(expected)
        );
        (AssumptionVerdict::Broken, sentence)
    } else {
        let sentence = format!(
            "At most {all} in service at once, and too few requests waited to show a limit: there may be more servers. Run at a higher rate."
        );
        (AssumptionVerdict::CannotTell, sentence)
    };
    let finding = Finding::new(Check::Servers, verdict, sentence).statistic("at once", most as f64);
    Some(finding.effect("servers", effect))
}

fn plural(servers: usize) -> &'static str {
    if servers == 1 { "server" } else { "servers" }
}

fn in_service(rows: &[RequestRow]) -> Vec<(i64, i64)> {
    rows.iter().filter_map(|row| row.started.zip(row.finished)).filter(|(from, to)| from < to).collect()
}

/// The most that were in service at once for more than a moment.
fn most_at_once(trials: &[Vec<(i64, i64)>]) -> usize {
    // How long each number of requests was in service, over all trials.
    let mut lasted: Vec<f64> = Vec::new();
    for spans in trials {
        let mut changes: Vec<(i64, bool)> =
            spans.iter().flat_map(|&(from, to)| [(from, true), (to, false)]).collect();
        // Who leaves at an instant is gone before the next one comes.
        changes.sort_unstable();
        let (mut count, mut before) = (0usize, changes.first().map_or(0, |change| change.0));
        for (at, comes) in changes {
            if lasted.len() <= count {
                lasted.resize(count + 1, 0.0);
            }
            lasted[count] += (at - before) as f64;
            before = at;
            count = if comes { count + 1 } else { count.saturating_sub(1) };
        }
    }
    let busy: f64 = lasted.iter().skip(1).sum();
    let mut with_more = 0.0;
    for (count, time) in lasted.iter().enumerate().skip(1).rev() {
        with_more += time;
        if with_more > OVERLAP * busy {
            return count;
        }
    }
    0
}

/// The requests that waited for a server.
fn waiting<'a>(seen: &TrialSet<'a>) -> impl Iterator<Item = &'a RequestRow> {
    let services_s = seen.services_s();
    let least_s = if services_s.is_empty() { f64::INFINITY } else { WAITED * mean(services_s) };
    let waited = move |row: &&RequestRow| row.queueing_ns().is_some_and(|ns| seconds(ns) > least_s);
    seen.rows().filter(waited).collect::<Vec<_>>().into_iter()
}

/// Whether service starts in the order of arrival.
pub(super) fn order(seen: &TrialSet<'_>) -> Option<Finding> {
    if seen.station.discipline != Discipline::Fifo {
        return None;
    }
    let waited = waiting(seen).count();
    if waited < FEWEST {
        let sentence = format!(
            "{waited} requests waited: too few to find the order of service; run longer, or at a higher rate."
        );
        return Some(Finding::cannot_tell(Check::Order, sentence));
    }
    // Two workers that take neighbours may write their stamps in the other order.
    let moment_ns = (0.01 * mean(seen.services_s()) * 1e9) as i64;
    let mut overtaken = 0;
    for rows in &seen.trials {
        let mut queued: Vec<(i64, i64)> = rows.iter().filter_map(|row| row.queued.zip(row.started)).collect();
        queued.sort_unstable();
        // From the last that came: was anyone who came later started earlier?
        let (mut earliest, mut at) = (i64::MAX, i64::MAX);
        for &(queued, started) in queued.iter().rev() {
            overtaken += usize::from(at > queued && started > earliest.saturating_add(moment_ns));
            (earliest, at) = (earliest.min(started), queued);
        }
    }
    let share = overtaken as f64 / waited as f64;
    let shown = percent(share);
    let (verdict, sentence) = if share > OVERTAKEN {
        let sentence = format!(
            "{shown} of the requests that waited were overtaken by later ones: the server does not serve in the order of arrival. The \
             model's mean may still be right; its quantiles are not. Choose the discipline that the server has."
        );
        (AssumptionVerdict::Broken, sentence)
    } else {
        (
            AssumptionVerdict::Holds,
            format!("Requests were served in the order of arrival ({shown} of {waited} overtaken)."),
        )
    };
    let finding = Finding::new(Check::Order, verdict, sentence).statistic("overtaken", overtaken as f64);
    Some(finding.effect("requests overtaken", share))
}

/// Whether requests are turned away by a server that the model gives room without end, and how much room there is.
pub(super) fn room(seen: &TrialSet<'_>) -> Option<Finding> {
    let refused: Vec<&RequestRow> = seen.rows().filter(|row| row.outcome == Outcome::Refused).collect();
    let count = refused.len();
    let share = count as f64 / seen.count().max(1) as f64;
    let servers = seen.station.servers;
    let finding = match (count, seen.station.capacity) {
        (0, None) => Finding::new(
            Check::Room,
            AssumptionVerdict::Holds,
            "No request was rejected: the queue had capacity for all.",
        ),
        (0, Some(room)) => {
            let sentence = format!("No request was rejected; the model's capacity is {room}.");
            Finding::cannot_tell(Check::Room, sentence)
        }
        (_, Some(room)) => {
            let sentence = format!("{count} requests were rejected; the model's capacity is {room}.");
            Finding::new(Check::Room, AssumptionVerdict::Holds, sentence)
        }
        (_, None) => {
            let room = found_at_refusal(seen);
            let guess = match room {
                Some(room) if room >= servers.get() as usize => {
                    format!(" The rejected requests found {room} in the server: try M/M/{servers}/{room}.")
                }
                _ => format!(" Give the model a capacity, as in M/M/{servers}/K."),
            };
            let requests = if count == 1 { "request was" } else { "requests were" };
            let sentence =
                format!("{count} {requests} rejected, but the model's capacity is unlimited.{guess}");
            Finding::new(Check::Room, AssumptionVerdict::Broken, sentence)
        }
    };
    Some(finding.statistic("refused", count as f64).effect("requests turned away", share))
}

/// How many requests were in the server when others were turned away: the middle of it.
fn found_at_refusal(seen: &TrialSet<'_>) -> Option<usize> {
    let mut found = Vec::new();
    for trial in &seen.whole {
        let admitted = |row: &RequestRow| row.queued.filter(|_| row.outcome != Outcome::Refused);
        let inside = |row: &RequestRow| admitted(row).zip(row.finished.or(row.completed));
        let (mut came, mut went): (Vec<i64>, Vec<i64>) = trial.rows.iter().filter_map(inside).unzip();
        came.sort_unstable();
        went.sort_unstable();
        let refused = trial
            .rows
            .iter()
            .filter(|row| row.outcome == Outcome::Refused)
            .filter_map(|row| row.queued.or(row.sent));
        found.extend(refused.map(|at| {
            came.partition_point(|&other| other <= at)
                .saturating_sub(went.partition_point(|&other| other <= at))
        }));
    }
    found.sort_unstable();
    found.get(found.len() / 2).copied().filter(|&count| count > 0)
}
