//! Converts the rows of trials to the visits of a station, and to the response times that its predictions are compared with.

use kendall_record::{Outcome, RequestRow};

use super::fit::{Fit, Pair};
use super::serve::{Visit, departures};
use super::{ArrivedBy, NotReplayed, Replay, Rules};
use crate::Trial;
use kendall_stats::mean;

const NS_PER_S: f64 = 1e9;

/// The requests of some trials, ready to go through stations.
pub(super) struct Visits {
    runs: Vec<Run>,
    left_out: u64,
    arrived_by: ArrivedBy,
    delay_s: f64,
}

/// One trial, as a station without limit sees it, and as one sees it that may turn requests away.
struct Run {
    served: Stream,
    /// With those that the server turned away; `None` if it turned none away.
    everybody: Option<Stream>,
}

/// The visits in order of arrival, and the measured response of those that are compared.
struct Stream {
    visits: Vec<Visit>,
    /// Who was turned away by the server. Were it not, it would take as long as others do on average.
    refused: Vec<bool>,
    measured_s: Vec<Option<f64>>,
    /// The send lag of each request.
    late_s: Vec<f64>,
    /// The instant at which each request left the server.
    went_s: Vec<f64>,
}

impl Visits {
    pub(super) fn of(trials: &[Trial<'_>]) -> Result<Self, NotReplayed> {
        let rows = || trials.iter().flat_map(|trial| trial.rows);
        let left_out = rows().filter(|row| row.service.is_none()).count();
        let requests = rows().count();
        if left_out == requests {
            return Err(NotReplayed::NoService { requests });
        }
        let stamped = rows().filter(|row| row.service.is_some()).all(|row| row.queued.is_some());
        let (arrived_by, delay_ns) = match stamped {
            true => (ArrivedBy::Server, quantile(rows().filter_map(outside_ns), 0.5)),
            // It includes waiting, which cannot be separated; the requests that waited least have almost none.
            false => (ArrivedBy::Client, quantile(rows().filter_map(not_served_ns), 0.05)),
        };
        let delay_ns = delay_ns.ok_or(NotReplayed::NothingToCompare)?;
        let runs: Vec<Run> = trials.iter().map(|trial| Run::of(trial, delay_ns)).collect();
        if runs.iter().all(|run| run.served.measured_s.iter().all(Option::is_none)) {
            return Err(NotReplayed::NothingToCompare);
        }
        let delay_s = delay_ns as f64 / NS_PER_S;
        Ok(Self { runs, left_out: left_out as u64, arrived_by, delay_s })
    }

    /// Whether requests of different weights came.
    pub(super) fn are_weighted(&self, rules: &Rules<'_>) -> bool {
        let visits = self.runs.iter().flat_map(|run| &run.served.visits);
        let mut weights = visits.map(|visit| rules.weight(visit.class));
        let first = weights.next();
        weights.any(|weight| Some(weight) != first)
    }

    /// How many requests those that were turned away found at the server: the middle one of these numbers. `None` if none
    /// was turned away.
    pub(super) fn found_by_refused(&self) -> Option<u64> {
        let full =
            |run: &Run| run.found().into_iter().filter_map(|(found, refused)| refused.then_some(found));
        let mut found: Vec<u64> = self.runs.iter().flat_map(full).collect();
        found.sort_unstable();
        found.get(found.len() / 2).copied()
    }

    /// Replays the visits through a station, and compares them with the measurement.
    pub(super) fn replay(&self, rules: &Rules<'_>) -> Replay {
        let (mut pairs, mut turned_away, mut agreement) = (Vec::new(), 0, Agreement::default());
        for run in &self.runs {
            let stream = rules.capacity.and(run.everybody.as_ref()).unwrap_or(&run.served);
            let ends_s = departures(&stream.visits, rules);
            if let Some(room) = rules.capacity {
                run.found().into_iter().for_each(|(found, refused)| agreement.add(refused, found >= room));
            }
            let measured = stream.measured_s.iter().zip(&stream.late_s);
            for ((visit, end_s), (measured_s, late_s)) in stream.visits.iter().zip(ends_s).zip(measured) {
                match (end_s, *measured_s) {
                    (Some(end_s), Some(measured_s)) => {
                        let predicted_s = (late_s + end_s - visit.arrival_s + self.delay_s).max(0.0);
                        pairs.push(Pair { measured_s, predicted_s });
                    }
                    (None, Some(measured_s)) => {
                        turned_away += 1;
                        // It counts as an answer in no time, so that no room is never a good explanation.
                        pairs.push(Pair { measured_s, predicted_s: 0.0 });
                    }
                    (_, None) => {}
                }
            }
        }
        Replay {
            servers: rules.servers,
            discipline: rules.discipline,
            capacity: rules.capacity,
            compared: pairs.len() as u64,
            left_out: self.left_out,
            turned_away,
            refused_too: agreement.counts[1][1],
            refusal_evidence: agreement.evidence(),
            arrived_by: self.arrived_by,
            delay_s: self.delay_s,
            fit: Fit::of(&pairs),
            pairs,
        }
    }
}

/// Who was turned away by the server, and who found no room.
#[derive(Default)]
struct Agreement {
    /// By whether the server turned them away, and whether they found no room.
    counts: [[u64; 2]; 2],
}

impl Agreement {
    fn add(&mut self, by_server: bool, by_room: bool) {
        self.counts[usize::from(by_server)][usize::from(by_room)] += 1;
    }

    /// The logarithm of the likelihood ratio of "a request is rejected if it finds no capacity" to "it does not", with the shares that
    /// were found: half the statistic G (Sokal and Rohlf 1981, section 17.1). Nothing where the one goes against the other.
    fn evidence(&self) -> f64 {
        let [[neither, room], [server, both]] = self.counts.map(|row| row.map(|count| count as f64));
        let all = neither + room + server + both;
        let term = |here: f64, row: f64, column: f64| {
            if here > 0.0 { here * libm::log(here * all / (row * column)) } else { 0.0 }
        };
        if both * neither <= room * server {
            return 0.0;
        }
        let (kept, refused) = (neither + room, server + both);
        let (admits, turns) = (neither + server, room + both);
        term(neither, kept, admits)
            + term(room, kept, turns)
            + term(server, refused, admits)
            + term(both, refused, turns)
    }
}

impl Run {
    fn of(trial: &Trial<'_>, delay_ns: i64) -> Self {
        let served = |row: &&RequestRow| row.service.is_some();
        let refused =
            |row: &RequestRow| row.outcome == Outcome::Refused && row.service.is_none() && row.sent.is_some();
        let everybody = trial.rows.iter().any(refused).then(|| {
            Stream::of(trial, delay_ns, trial.rows.iter().filter(|row| served(row) || refused(row)))
        });
        Self { served: Stream::of(trial, delay_ns, trial.rows.iter().filter(served)), everybody }
    }

    /// Of each request, how many were there when it came, as it was: those that had come and not gone. And whether it was turned away.
    /// A replay that decides that anew is another from its first other decision on, and no longer shows what the server found.
    fn found(&self) -> Vec<(u64, bool)> {
        let Some(Stream { visits, refused, went_s, .. }) = &self.everybody else { return Vec::new() };
        let there = || visits.iter().zip(refused).zip(went_s).filter(|((_, refused), _)| !**refused);
        let came_s: Vec<f64> = there().map(|((visit, _), _)| visit.arrival_s).collect();
        let mut gone_s: Vec<f64> = there().map(|(_, went_s)| *went_s).collect();
        gone_s.sort_by(f64::total_cmp);
        let at = |(visit, &refused): (&Visit, &bool)| {
            let until = |instants_s: &[f64]| instants_s.partition_point(|&at_s| at_s <= visit.arrival_s);
            // Who was let in has come by then, too.
            let others = until(&came_s) - usize::from(!refused);
            (others.saturating_sub(until(&gone_s)) as u64, refused)
        };
        visits.iter().zip(refused).map(at).collect()
    }
}

impl Stream {
    fn of<'a>(trial: &Trial<'_>, delay_ns: i64, rows: impl Iterator<Item = &'a RequestRow>) -> Self {
        let half_ns = (delay_ns / 2).max(0);
        let arrival_ns =
            |row: &RequestRow| row.queued.unwrap_or_else(|| row.sent.unwrap_or(row.scheduled) + half_ns);
        let went_ns = |row: &RequestRow| {
            row.finished.or_else(|| Some(row.completed? - half_ns)).unwrap_or(i64::MAX).max(arrival_ns(row))
        };
        let mut rows: Vec<&RequestRow> = rows.collect();
        rows.sort_by_key(|row| (arrival_ns(row), row.index));
        let services: Vec<f64> =
            rows.iter().filter_map(|row| Some(row.service?.max(0) as f64 / NS_PER_S)).collect();
        let usual_s = if services.is_empty() { 0.0 } else { mean(&services) };
        let origin_ns = rows.first().map_or(0, |row| arrival_ns(row));
        let since_s = |at_ns: i64| (at_ns - origin_ns) as f64 / NS_PER_S;
        let visit = |row: &&RequestRow| Visit {
            arrival_s: since_s(arrival_ns(row)),
            service_s: row.service.map_or(usual_s, |service_ns| service_ns.max(0) as f64 / NS_PER_S),
            class: row.class as usize,
        };
        let measured_s = |row: &&RequestRow| {
            let counts = row.scheduled >= trial.warmup_ns && row.service.is_some();
            row.response_ns().filter(|_| counts).map(|response_ns| response_ns as f64 / NS_PER_S)
        };
        Self {
            visits: rows.iter().map(visit).collect(),
            refused: rows.iter().map(|row| row.service.is_none()).collect(),
            measured_s: rows.iter().map(measured_s).collect(),
            late_s: rows.iter().map(|row| late_ns(row) as f64 / NS_PER_S).collect(),
            went_s: rows.iter().map(|row| since_s(went_ns(row))).collect(),
        }
    }
}

/// The time from due to sent of a request.
fn late_ns(row: &RequestRow) -> i64 {
    row.sent.map_or(0, |sent| (sent - row.scheduled).max(0))
}

/// The part of the response that passed between client and station: what is neither waiting for a server nor keeping it
/// busy, nor the client's being late.
fn outside_ns(row: &RequestRow) -> Option<i64> {
    let (queued, started) = (row.queued?, row.started?);
    // Interrupted service takes longer than it keeps a server busy; handing over the answer comes after `finished`.
    let inside_ns = (row.finished? - started).max(row.service?);
    Some(row.response_ns()? - late_ns(row) - (started - queued) - inside_ns)
}

/// The part of the response, once sent, that was not service.
fn not_served_ns(row: &RequestRow) -> Option<i64> {
    Some((row.response_ns()? - late_ns(row) - row.service?).max(0))
}

fn quantile(values: impl Iterator<Item = i64>, p: f64) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    let rank = kendall_stats::quantile_rank(values.len().max(1) as u64, p) as usize;
    values.get(rank - 1).copied()
}
