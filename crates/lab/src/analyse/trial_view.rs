//! What happened in one trial, from its rows: counted in intervals and thinned, so that it can be looked at however long it is.

mod along_time;
mod laws;
mod one_by_one;

use kendall_record::{Outcome, RequestRow};
use kendall_report::{Ended, Heat, TrialView};
use kendall_station::Arrivals;
use kendall_stats::{minimum_samples, quantile_rank};

use super::Tried;

/// Columns and rows of a heat map at most.
const HEAT: (usize, usize) = (50, 16);
/// So many of the slowest requests are marked.
const SLOWEST: usize = 12;
/// So many requests without a right answer are marked at most.
const FAILED: usize = 200;

/// The view of a trial that was to be loaded by these arrivals.
pub(super) fn view(trial: &Tried, arrivals: &Arrivals) -> TrialView {
    let rows = Rows::of(trial);
    let interval_ns = along_time::interval_ns(&rows);
    let responses_s = rows.sorted_responses_s();
    TrialView {
        trial: trial.id.clone(),
        requests: rows.by_due.len() as u64,
        length_s: seconds(rows.length_ns),
        left_out_s: seconds(trial.warmup_ns.clamp(0, rows.length_ns)),
        interval_s: seconds(interval_ns),
        intervals: along_time::intervals(&rows, interval_ns),
        heat: heat(&rows),
        slowest: slowest(&rows, SLOWEST).into_iter().map(|at| rows.ended(rows.by_due[at])).collect(),
        failed: failed(&rows),
        windows: one_by_one::windows(&rows),
        service: laws::service(&rows),
        gaps: laws::gaps(&rows, arrivals),
        dispersion: laws::dispersion(&rows),
        quantiles_s: quantiles(&responses_s),
    }
}

/// The rows of a trial in the order in which they were due.
struct Rows<'a> {
    by_due: Vec<&'a RequestRow>,
    /// Requests due before this are in no answer.
    warmup_ns: i64,
    /// Until the last one was over.
    length_ns: i64,
}

impl<'a> Rows<'a> {
    fn of(trial: &'a Tried) -> Self {
        let mut by_due: Vec<&RequestRow> = trial.rows.iter().collect();
        by_due.sort_by_key(|row| row.scheduled);
        let last = |row: &&RequestRow| row.completed.unwrap_or(0).max(row.scheduled);
        let length_ns = by_due.iter().map(last).max().unwrap_or(0).max(1);
        Self { by_due, warmup_ns: trial.warmup_ns, length_ns }
    }

    /// When a request was over: what never was is out until the end.
    fn end_ns(&self, row: &RequestRow) -> i64 {
        row.completed.unwrap_or(self.length_ns).max(row.scheduled)
    }

    fn ended(&self, row: &RequestRow) -> Ended {
        let out_ns = self.end_ns(row) - row.scheduled;
        Ended { due_s: seconds(row.scheduled), out_s: seconds(out_ns), outcome: row.outcome }
    }

    /// The requests that are in the answers.
    fn counted(&self) -> &[&'a RequestRow] {
        &self.by_due[self.by_due.partition_point(|row| row.scheduled < self.warmup_ns)..]
    }

    fn sorted_responses_s(&self) -> Vec<f64> {
        super::sorted(self.counted().iter().filter_map(|row| row.response_ns()).map(seconds))
    }
}

/// The places of the slowest requests, in the order in which they were due.
fn slowest(rows: &Rows<'_>, most: usize) -> Vec<usize> {
    let responses = rows.by_due.iter().enumerate().filter_map(|(at, row)| Some((row.response_ns()?, at)));
    let mut responses: Vec<(i64, usize)> = responses.collect();
    if responses.len() > most {
        let first = responses.len() - most;
        responses.select_nth_unstable(first);
        responses.drain(..first);
    }
    let mut places: Vec<usize> = responses.into_iter().map(|(_, at)| at).collect();
    places.sort_unstable();
    places
}

fn failed(rows: &Rows<'_>) -> Vec<Ended> {
    let failed: Vec<&RequestRow> =
        rows.by_due.iter().copied().filter(|row| row.outcome != Outcome::Answered).collect();
    evenly(failed.len(), FAILED).map(|at| rows.ended(failed[at])).collect()
}

/// So many places out of `all`, at even distances; all of them where they are no more.
fn evenly(all: usize, most: usize) -> impl Iterator<Item = usize> {
    let kept = all.min(most);
    (0..kept).map(move |at| if all > most { (2 * at + 1) * all / (2 * kept) } else { at })
}

/// How many requests due when took how long.
fn heat(rows: &Rows<'_>) -> Heat {
    let responses = || rows.by_due.iter().filter_map(|row| Some((row.scheduled, row.response_ns()?.max(1))));
    let times = responses().map(|(_, response_ns)| response_ns);
    let (least, most) = times.fold((i64::MAX, 0), |(least, most), time| (least.min(time), most.max(time)));
    if least > most {
        return Heat { due_s: Vec::new(), response_s: Vec::new(), counts: Vec::new() };
    }
    // A little beyond both, so that they fall inside whatever rounding does.
    let (low, high) = (0.999 * least as f64, 1.001 * most as f64);
    let (columns, levels) = HEAT;
    let mut counts = vec![0; columns * levels];
    for (due_ns, response_ns) in responses() {
        let column = (due_ns.max(0) as f64 / rows.length_ns as f64 * columns as f64) as usize;
        let level = ((response_ns as f64 / low).ln() / (high / low).ln() * levels as f64) as usize;
        counts[level.min(levels - 1) * columns + column.min(columns - 1)] += 1;
    }
    let edge = |at: usize| low * (high / low).powf(at as f64 / levels as f64) / 1e9;
    Heat {
        due_s: (0..=columns).map(|at| seconds(rows.length_ns) * at as f64 / columns as f64).collect(),
        response_s: (0..=levels).map(edge).collect(),
        counts,
    }
}

/// The response time that a share of the requests stays within, at shares ever nearer to 1, as far as the sample tells. Those
/// that people name are among them.
fn quantiles(sorted_s: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted_s.len() as u64;
    let tenths = (0..=90).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 10.0));
    let shares = super::sorted(tenths.chain([0.5, 0.75]));
    let told = shares.into_iter().take_while(|&p| n >= minimum_samples(p.max(0.5)));
    told.map(|p| (p, sorted_s[quantile_rank(n, p) as usize - 1])).collect()
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use kendall_station::Law;
    use kendall_stats::random::{Purpose, stream};

    use super::*;

    /// An M/M/1 queue at half its capacity, with every instant of it told; one request in a hundred times out.
    pub(super) fn random_rows(requests: u64) -> Vec<RequestRow> {
        let mut rng = stream(7, Purpose::Trial, requests);
        let (gap, service) = (Law::exponential_rate(1000.0), Law::exponential_rate(2000.0));
        let nanoseconds = |time_s: f64| (time_s * 1e9) as i64;
        let (mut due, mut free) = (0, 0);
        let row = |index| {
            due += nanoseconds(gap.sample(&mut rng));
            let service = nanoseconds(service.sample(&mut rng));
            let (sent, queued) = (due + 20_000, due + 40_000);
            let started = queued.max(free);
            free = started + service;
            let outcome = if index % 100 == 99 { Outcome::TimedOut } else { Outcome::Answered };
            RequestRow {
                index,
                class: 0,
                port: 1,
                scheduled: due,
                sent: Some(sent),
                first_byte: Some(free + 10_000),
                completed: Some(free + 20_000),
                queued: Some(queued),
                started: Some(started),
                finished: Some(free),
                service: Some(service),
                fixed: None,
                outcome,
                bytes_out: 1,
                bytes_in: 1,
            }
        };
        (0..requests).map(row).collect()
    }

    pub(super) fn rows(all: &[RequestRow]) -> Rows<'_> {
        let last = |row: &RequestRow| row.completed.unwrap_or(0).max(row.scheduled);
        Rows {
            by_due: all.iter().collect(),
            warmup_ns: 0,
            length_ns: all.iter().map(last).max().unwrap_or(1),
        }
    }

    #[test]
    fn a_heat_map_has_every_answer_once_where_it_belongs() {
        let all = random_rows(5_000);
        let rows = rows(&all);
        let heat = heat(&rows);
        assert_eq!(heat.counts.iter().sum::<u64>(), 4_950);
        assert_eq!(heat.counts.len(), (heat.due_s.len() - 1) * (heat.response_s.len() - 1));
        let quickest = all.iter().filter_map(RequestRow::response_ns).min().expect("some were answered");
        assert!((heat.response_s[0]..heat.response_s[1]).contains(&seconds(quickest)));
        assert!(heat.counts[..heat.due_s.len() - 1].iter().any(|count| *count > 0));
        assert!(super::heat(&self::rows(&all[99..100])).counts.is_empty());
    }

    #[test]
    fn quantiles_go_as_far_as_the_sample_tells() {
        let sorted_s: Vec<f64> = (1..=3000).map(f64::from).collect();
        let quantiles = quantiles(&sorted_s);
        let (p, value) = quantiles[quantiles.len() - 1];
        assert!((0.9989..0.9992).contains(&p) && (p * 3000.0 - value).abs() <= 1.0, "{p}: {value}");
        assert!(quantiles.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert!(super::quantiles(&[]).is_empty() && super::quantiles(&[1.0, 2.0]).is_empty());
    }

    #[test]
    fn failures_are_marked_and_the_slowest_are_the_slowest() {
        let all = random_rows(5_000);
        let rows = rows(&all);
        assert_eq!(failed(&rows).len(), 50);
        let places = slowest(&rows, 3);
        let least = places.iter().filter_map(|at| all[*at].response_ns()).min().expect("three");
        assert_eq!(all.iter().filter(|row| row.response_ns() >= Some(least)).count(), 3);
        assert_eq!(evenly(1000, 4).collect::<Vec<_>>(), [125, 375, 625, 875]);
        assert_eq!(evenly(3, 4).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
