//! The view of one trial, from its rows: counted in intervals and thinned, so that it can be shown however long the trial is.

mod along_time;
mod laws;
mod one_by_one;
mod rows;

use kendall_evidence::Trial;
use kendall_record::{Outcome, RequestRow};
use kendall_station::Arrivals;
use kendall_stats::{minimum_samples, quantile_rank};

use crate::report::trial_view::{EndedRequest, Heat, TrialView};
use crate::thin::{evenly, sorted};
use crate::trial_view::rows::{Rows, seconds, slowest};

/// Columns and rows of a heat map at most.
const HEAT: (usize, usize) = (50, 16);
/// The number of slowest requests that are marked.
const SLOWEST: usize = 12;
/// The most requests without a right answer that are marked.
const FAILED: usize = 200;

/// The view of a trial that was to be loaded by these arrivals.
pub fn view(id: &str, trial: &Trial<'_>, arrivals: &Arrivals) -> TrialView {
    let rows = Rows::of(trial);
    let interval_ns = along_time::interval_ns(&rows);
    let responses_s = rows.sorted_responses_s();
    TrialView {
        trial: id.to_owned(),
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

fn failed(rows: &Rows<'_>) -> Vec<EndedRequest> {
    let failed: Vec<&RequestRow> =
        rows.by_due.iter().copied().filter(|row| row.outcome != Outcome::Answered).collect();
    evenly(failed.len(), FAILED).map(|at| rows.ended(failed[at])).collect()
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

/// The response time that a share of the requests stays within, at shares ever nearer to 1, as far as the sample supports. The usual
/// percentiles are among them.
fn quantiles(sorted_s: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted_s.len() as u64;
    let tenths = (0..=90).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 10.0));
    let shares = sorted(tenths.chain([0.5, 0.75]));
    let measurable = shares.into_iter().take_while(|&p| n >= minimum_samples(p.max(0.5)));
    measurable.map(|p| (p, sorted_s[quantile_rank(n, p) as usize - 1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial_view::rows::tests::{random_rows, rows};

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
