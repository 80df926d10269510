//! Computes the numbers to compare from the rows of a run.

use kendall_record::{Outcome, RequestRow};

use super::{Metric, Run, SHIFTED};
use crate::measured::{Trial, client_side};
use kendall_stats::{minimum_samples, quantile_rank};

/// The quantiles among the metrics, in their order.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

impl Run {
    /// The metrics of [`Metric::all`] of a run, from its rows without the warm-up; `cpu_s` is the total that its server used. A
    /// quantile is absent if there are too few requests, or if it lies among the unanswered ones.
    pub fn of(trial: &Trial<'_>, cpu_s: Option<f64>) -> Self {
        let counted = || trial.rows.iter().filter(|row| row.scheduled >= trial.warmup_ns);
        let mut responses_s: Vec<f64> =
            counted().filter_map(RequestRow::response_ns).map(|ns| ns as f64 / 1e9).collect();
        responses_s.sort_by(f64::total_cmp);
        let lost = |row: &&RequestRow| matches!(row.outcome, Outcome::TimedOut | Outcome::Unanswered);
        let n = (responses_s.len() + counted().filter(lost).count()) as u64;
        let quantile = |p: f64| {
            let rank = (n >= minimum_samples(p)).then(|| quantile_rank(n, p))?;
            responses_s.get(rank as usize - 1).copied()
        };
        let seen = client_side(std::slice::from_ref(trial)).ok();
        let due = counted().count() as f64;
        let failed = counted().filter(|row| row.outcome != Outcome::Answered).count() as f64;
        let answered = trial.rows.iter().filter(|row| row.response_ns().is_some()).count() as f64;
        let mut values = vec![seen.as_ref().map(|seen| seen.response.mean_s.value)];
        values.extend(QUANTILES.map(quantile));
        values.push(seen.map(|seen| seen.throughput_per_s.value));
        values.push(cpu_s.map(|cpu_s| cpu_s / answered).filter(|each| each.is_finite()));
        values.push((due > 0.0).then_some(failed / due));
        debug_assert_eq!(values.len(), Metric::all().len());
        let quantiles_s = SHIFTED.iter().filter_map(|&p| Some((p, quantile(p)?))).collect();
        Self { block: None, values, quantiles_s }
    }
}
