//! Two questions to a trial as a whole: does Little's law hold in its record, and does the number in the station grow?

use kendall_record::RequestRow;

use crate::seconds::seconds;
use kendall_stats::{self as statistics, LittleCheck};

/// Slices of a trial: the number present, and any other value without its own interval, is averaged in each.
pub(crate) const SLICES: usize = 20;

/// Little's law over a whole drained run, from the first request due to the last completed. The number in the system is
/// swept over time; throughput and response time are counted from completed requests. A request without an end is in the
/// system to the last, so that it shows as a gap. `None` if nothing was completed or no time passed.
pub fn little(rows: &[RequestRow]) -> Option<LittleCheck> {
    let mut changes: Vec<(i64, i64)> = Vec::with_capacity(2 * rows.len());
    let end = rows.iter().filter_map(|row| row.completed).max()?;
    let (mut count, mut total_s) = (0.0, 0.0);
    for row in rows {
        changes.push((row.scheduled, 1));
        if let Some(completed) = row.completed {
            changes.push((completed, -1));
            count += 1.0;
            total_s += seconds(completed - row.scheduled);
        }
    }
    changes.sort_unstable();
    let start = changes.first()?.0;
    let (mut present, mut before, mut integral) = (0, start, 0.0);
    for (at, change) in changes.into_iter().filter(|change| change.0 <= end) {
        integral += present as f64 * (at - before) as f64;
        present += change;
        before = at;
    }
    let span_ns = end - start;
    (span_ns > 0)
        .then(|| LittleCheck::new(integral / span_ns as f64, count / seconds(span_ns), total_s / count))
}

/// Whether the number of requests in the station grew through a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// By how much the number present grew per second of load.
    pub growth_per_s: f64,
    /// The slope over its standard error, which allows for the correlation of neighbouring slices.
    pub t: f64,
    /// Whether the growth is significant (one-sided, false alarm 1 in 1000) and more than a tenth of the mean number
    /// over the trial: then there is no steady state at this rate.
    pub grows: bool,
}

/// Fits a line to the mean number present in 20 slices, from `from_ns` or the first request due, if that is later, to
/// the last one due. The start leaves out the warm-up, in which the station fills from empty. `None` for a trial too
/// short to say.
pub fn trend(rows: &[RequestRow], from_ns: i64) -> Option<Trend> {
    let from = rows.iter().map(|row| row.scheduled).min()?.max(from_ns);
    let to = rows.iter().map(|row| row.scheduled).max()?;
    let counted = rows.iter().filter(|row| row.scheduled >= from).count();
    if counted < 5 * SLICES || to - from < SLICES as i64 {
        return None;
    }
    let width = (to - from) / SLICES as i64;
    let mut present = vec![0.0; SLICES];
    for row in rows {
        let end = row.completed.unwrap_or(i64::MAX);
        // Earlier requests may still be present.
        let first = ((row.scheduled - from) / width).max(0) as usize;
        for (i, number) in present.iter_mut().enumerate().skip(first) {
            let (low, high) = (from + width * i as i64, from + width * (i as i64 + 1));
            if low >= end {
                break;
            }
            *number += (end.min(high) - row.scheduled.max(low)) as f64 / width as f64;
        }
    }
    Some(trend_of(&present, seconds(width)))
}

/// The trend of the mean number present in equal slices of this width, at least three.
pub(crate) fn trend_of(present: &[f64], width_s: f64) -> Trend {
    let slices = present.len() as f64;
    let centre = (slices - 1.0) / 2.0;
    let mean = statistics::mean(present);
    let spread: f64 = (0..present.len()).map(|i| (i as f64 - centre).powi(2)).sum();
    let slope =
        present.iter().enumerate().map(|(i, n)| (i as f64 - centre) * (n - mean)).sum::<f64>() / spread;
    let residuals: Vec<f64> =
        present.iter().enumerate().map(|(i, n)| n - mean - slope * (i as f64 - centre)).collect();
    let squares: f64 = residuals.iter().map(|x| x * x).sum();
    let freedom = slices - 2.0;
    // Neighbours that move together say less than their number: the variance of a slope grows by (1 + r)/(1 − r).
    let together = statistics::lag_one_correlation(&residuals).clamp(0.0, 0.9);
    let error = (squares / freedom / spread * (1.0 + together) / (1.0 - together)).sqrt();
    let t = if error > 0.0 { slope / error } else { slope.signum() * f64::INFINITY * slope.abs().min(1.0) };
    let t = if t.is_nan() { 0.0 } else { t };
    let grows = t > statistics::student_t(freedom, 0.999) && slope * slices > 0.1 * mean;
    Trend { growth_per_s: slope / width_s, t, grows }
}
