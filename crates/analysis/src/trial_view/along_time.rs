//! The counts in each interval of a trial.

use kendall_record::{Outcome, RequestRow};
use kendall_stats::quantile_rank;

use crate::report::trial_view::{Interval, Spread};
use crate::trial_view::rows::{Rows, seconds};

/// Intervals of a trial at most.
const MOST: f64 = 100.0;
/// Requests due in an interval at least, on average, as long as there are ten intervals.
const FEWEST: f64 = 20.0;

/// The length of an interval: 1, 2 or 5 times a power of ten.
pub(super) fn interval_ns(rows: &Rows<'_>) -> i64 {
    let length_ns = rows.length_ns as f64;
    let requests = rows.by_due.len().max(1) as f64;
    let wanted_ns = (length_ns / MOST).max((FEWEST / requests).min(0.1) * length_ns).max(1.0);
    let power = 10f64.powf(wanted_ns.log10().floor());
    let round = [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|&ns| ns >= wanted_ns);
    round.unwrap_or(10.0 * power) as i64
}

/// What passed in each. The last one has what is left over at the end, up to half an interval more or less.
pub(super) fn intervals(rows: &Rows<'_>, interval_ns: i64) -> Vec<Interval> {
    let count = ((rows.length_ns as f64 / interval_ns as f64).round() as usize).max(1);
    let place = |at_ns: i64| ((at_ns.max(0) / interval_ns) as usize).min(count - 1);
    let bounds = |at: usize| {
        let end_ns = if at + 1 == count { rows.length_ns } else { (at as i64 + 1) * interval_ns };
        (at as i64 * interval_ns, end_ns)
    };
    let mut intervals: Vec<Interval> = Vec::with_capacity(count);
    let in_flight = levels(rows, bounds, count, |row| Some((row.scheduled, rows.end_ns(row))));
    let queue = |row: &RequestRow| Some((row.queued?, row.started?.max(row.queued?)));
    let is_stamped = rows.by_due.iter().any(|row| queue(row).is_some());
    let queued = is_stamped.then(|| levels(rows, bounds, count, queue));
    for (at, in_flight) in in_flight.into_iter().enumerate() {
        let queued = queued.as_ref().map(|queued| queued[at]);
        intervals.push(Interval {
            due: [0; Outcome::ALL.len()],
            sent: 0,
            completed: 0,
            in_flight,
            queued,
            p50_s: None,
            p90_s: None,
            p99_s: None,
            longest_s: None,
        });
    }
    let mut responses_ns: Vec<Vec<i64>> = vec![Vec::new(); count];
    for row in &rows.by_due {
        let due = place(row.scheduled);
        intervals[due].due[row.outcome as usize] += 1;
        responses_ns[due].extend(row.response_ns());
        if let Some(sent_ns) = row.sent {
            intervals[place(sent_ns)].sent += 1;
        }
        if let Some(completed_ns) = row.response_ns().and(row.completed) {
            intervals[place(completed_ns)].completed += 1;
        }
    }
    for (interval, mut responses_ns) in intervals.iter_mut().zip(responses_ns) {
        responses_ns.sort_unstable();
        let n = responses_ns.len() as u64;
        let quantile = |p: f64, fewest: u64| {
            (n >= fewest).then(|| seconds(responses_ns[quantile_rank(n, p) as usize - 1]))
        };
        interval.p50_s = quantile(0.5, 1);
        interval.p90_s = quantile(0.9, 10);
        interval.p99_s = quantile(0.99, 100);
        interval.longest_s = quantile(1.0, 1);
    }
    intervals
}

/// How many requests are in some state in each interval: the least, the mean and the most. `within` says from when to when a
/// request is.
fn levels(
    rows: &Rows<'_>,
    bounds: impl Fn(usize) -> (i64, i64),
    count: usize,
    within: impl Fn(&RequestRow) -> Option<(i64, i64)>,
) -> Vec<Spread> {
    let (mut begins, mut ends): (Vec<i64>, Vec<i64>) =
        rows.by_due.iter().filter_map(|row| within(row)).unzip();
    begins.sort_unstable();
    ends.sort_unstable();
    let (mut begun, mut ended) = (0, 0);
    let spread = |at| {
        let (from_ns, to_ns) = bounds(at);
        let level = |begun: usize, ended: usize| begun as f64 - ended as f64;
        let mut now_ns = from_ns;
        let mut spread = Spread { least: level(begun, ended), mean: 0.0, most: level(begun, ended) };
        loop {
            // What begins and ends at the same instant has begun first.
            let begins_next =
                begins.get(begun).is_some_and(|begin| ends.get(ended).is_none_or(|end| begin <= end));
            let next = if begins_next { begins.get(begun) } else { ends.get(ended) };
            let Some(&next_ns) = next.filter(|next_ns| **next_ns < to_ns) else { break };
            spread.mean += level(begun, ended) * (next_ns - now_ns).max(0) as f64;
            now_ns = now_ns.max(next_ns);
            if begins_next {
                begun += 1
            } else {
                ended += 1
            }
            spread.least = spread.least.min(level(begun, ended));
            spread.most = spread.most.max(level(begun, ended));
        }
        spread.mean += level(begun, ended) * (to_ns - now_ns).max(0) as f64;
        spread.mean /= (to_ns - from_ns).max(1) as f64;
        spread
    };
    (0..count).map(spread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial_view::rows::tests::{random_rows, rows};

    #[test]
    fn every_request_is_counted_once_and_the_mean_levels_add_up_to_the_time_out() {
        let all = random_rows(5_000);
        let rows = rows(&all);
        let interval_ns = interval_ns(&rows);
        let intervals = intervals(&rows, interval_ns);
        assert!((10..=100).contains(&intervals.len()), "{}", intervals.len());
        assert_eq!(intervals.iter().map(Interval::due).sum::<u64>(), 5_000);
        assert_eq!(intervals.iter().map(|one| one.sent).sum::<u64>(), 5_000);
        let answered = all.iter().filter(|row| row.response_ns().is_some()).count() as u64;
        assert_eq!(intervals.iter().map(|one| one.completed).sum::<u64>(), answered);
        // Little's law, exactly: the integral of the number in flight is the sum of the times out.
        let last = intervals.len() - 1;
        let length_ns = |at: usize| {
            let from_ns = at as i64 * interval_ns;
            if at == last { rows.length_ns - from_ns } else { interval_ns }
        };
        let area = |of: &dyn Fn(&Interval) -> f64| -> f64 {
            intervals.iter().enumerate().map(|(at, one)| of(one) * length_ns(at) as f64).sum()
        };
        let out_ns: i64 = all.iter().map(|row| rows.end_ns(row) - row.scheduled).sum();
        assert!((area(&|one| one.in_flight.mean) / out_ns as f64 - 1.0).abs() < 1e-9);
        let waited_ns: i64 = all.iter().filter_map(RequestRow::queueing_ns).sum();
        let queued = |one: &Interval| one.queued.expect("the server reports it").mean;
        assert!((area(&queued) / waited_ns as f64 - 1.0).abs() < 1e-9);
        for one in &intervals {
            let Spread { least, mean, most } = one.in_flight;
            assert!(least <= mean + 1e-9 && mean <= most + 1e-9 && least >= 0.0, "{one:?}");
            assert!(one.p50_s <= one.p90_s.or(one.p50_s) && one.p90_s <= one.longest_s, "{one:?}");
        }
    }

    #[test]
    fn an_interval_is_round_and_neither_short_nor_empty() {
        for requests in [1, 15, 300, 10_000] {
            let all = random_rows(requests);
            let rows = rows(&all);
            let ns = interval_ns(&rows);
            let first: i64 = ns.to_string()[..1].parse().expect("a digit");
            assert!([1, 2, 5].contains(&first), "{ns}");
            assert!(rows.length_ns / ns <= 100, "{requests}");
            assert_eq!(intervals(&rows, ns).iter().map(Interval::due).sum::<u64>(), requests);
        }
    }
}
