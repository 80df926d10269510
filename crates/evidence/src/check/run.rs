//! Checks whether the run is long enough, steady, and made of the requested classes.

use kendall_record::RequestRow;
use kendall_station::Arrivals;
use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use super::grade::{grade, two_sided};
use super::trial_set::TrialSet;
use super::{AssumptionVerdict, Check, Finding};
use crate::seconds::seconds;
use kendall_stats::number::{percent, time};
use kendall_stats::{batch_means, mann_kendall, mean, mser, t_interval};

/// Halves that differ by less than this are what correlated waits do by themselves.
const GROWTH: f64 = 0.25;
/// A warm-up that moves the mean by less than this is not worth longer trials.
const WARM_UP: f64 = 0.05;
/// An interval wider than this to either side is too wide to distinguish models.
const WIDE: f64 = 0.25;
/// A share of a class that is further off than this changes what is measured.
const SHARE_OFF: f64 = 0.05;
/// Batches of MSER-5.
const BATCH: usize = 5;
/// This number of batch means shows a significant trend.
const MEANS: usize = 30;

/// Whether response times grow while the trials run: the trend of batch means that are no longer correlated (Mann and
/// Kendall), put together over the trials (Stouffer 1949), and by how much the second half is longer than the first.
pub(super) fn steady(seen: &TrialSet<'_>) -> Option<Finding> {
    let (mut z, mut tests, mut halves) = (0.0, 0, [(0.0, 0usize); 2]);
    for rows in &seen.trials {
        let series: Vec<f64> = rows.iter().filter_map(|row| Some(seconds(row.response_ns()?))).collect();
        let Some(batches) = batch_means(&series).map(|found| found.batches) else { continue };
        let length = series.len() / batches;
        let means: Vec<f64> = series.chunks_exact(length.max(1)).map(mean).collect();
        let Some(trend) = mann_kendall(&means) else { continue };
        z += trend.statistic;
        tests += 1;
        let (first, second) = series.split_at(series.len() / 2);
        for (half, part) in halves.iter_mut().zip([first, second]) {
            *half = (half.0 + part.iter().sum::<f64>(), half.1 + part.len());
        }
    }
    if tests == 0 {
        let sentence = "There are too few answers to decide whether response times grow; run longer.";
        return Some(Finding::cannot_tell(Check::Steady, sentence));
    }
    let z = z / f64::from(tests).sqrt();
    let [first_s, second_s] = halves.map(|(sum, n)| sum / n.max(1) as f64);
    let effect = if first_s > 0.0 { second_s / first_s - 1.0 } else { 0.0 };
    // Only growth is a sign of overload; who gets faster is still warming up.
    let verdict = grade(seen.count(), MEANS, two_sided(z), effect.max(0.0), GROWTH);
    let (first, second) = (time(first_s), time(second_s));
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "Response times grow while the trials run, from {first} in the first half to {second} in the second: the system is not in \
             steady state, and the mean depends on how long the trials ran. Measure at a lower rate."
        ),
        AssumptionVerdict::Holds => {
            format!("Response times do not grow: {first} in the first half, {second} in the second.")
        }
        AssumptionVerdict::CannotTell => {
            format!(
                "Response times were {first} in the first half and {second} in the second: the difference is not significant."
            )
        }
    };
    let finding = Finding::new(Check::Steady, verdict, sentence).statistic("Z", z);
    Some(finding.p(two_sided(z)).effect("second half", effect))
}

/// Whether a warm-up is left in what is counted: MSER-5 looks for one at the front.
pub(super) fn warm_up(seen: &TrialSet<'_>) -> Option<Finding> {
    // Each trial weighs by its length.
    let (mut z, mut tests, mut effect, mut weight, mut longest) = (0.0, 0, 0.0, 0.0, 0);
    for rows in &seen.trials {
        let series: Vec<f64> = rows.iter().filter_map(|row| Some(seconds(row.response_ns()?))).collect();
        let Some(cut) = mser(&series, BATCH).map(|cut| cut.batches * BATCH) else { continue };
        let (front, rest) = series.split_at(cut);
        let n = series.len() as f64;
        tests += 1;
        weight += n;
        if let (false, Some(known)) = (front.is_empty(), batch_means(rest)) {
            effect += n * (mean(&series) / mean(rest) - 1.0);
            // The variance of a mean falls with the length of its series.
            let spread = known.half_width / 1.96 * (1.0 + rest.len() as f64 / front.len() as f64).sqrt();
            z += if spread > 0.0 { (mean(front) - mean(rest)) / spread } else { 0.0 };
            longest = longest.max(cut);
        }
    }
    if tests == 0 {
        return Some(Finding::cannot_tell(
            Check::WarmUp,
            "There are too few answers to find the end of the warm-up; run longer.",
        ));
    }
    let (z, effect) = (z / f64::from(tests).sqrt(), effect / weight);
    let effect = if effect.is_finite() { effect } else { 0.0 };
    // The cut is the best of many, of which about as many as batch means are unlike each other (Bonferroni).
    let p_value = (MEANS as f64 * two_sided(z)).min(1.0);
    let verdict = grade(seen.count(), MEANS * BATCH, p_value, effect, WARM_UP);
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "The data include a warm-up: the first {longest} answers of a trial differ from the rest and move the mean by {}. Exclude \
             them with a longer warm-up.",
            percent(effect.abs())
        ),
        AssumptionVerdict::Holds => "The counted requests include no warm-up.".to_owned(),
        AssumptionVerdict::CannotTell => format!(
            "The data may include a warm-up: without the first {longest} answers of a trial the mean would change by {}. \
             Run longer to decide.",
            percent(effect.abs())
        ),
    };
    let finding = Finding::new(Check::WarmUp, verdict, sentence).statistic("z", z);
    Some(finding.p(p_value).effect("mean response", effect))
}

/// How well the mean response time is known.
pub(super) fn precision(seen: &TrialSet<'_>) -> Option<Finding> {
    let series = |rows: &Vec<&RequestRow>| {
        rows.iter().filter_map(|row| Some(seconds(row.response_ns()?))).collect::<Vec<f64>>()
    };
    let trials: Vec<Vec<f64>> = seen.trials.iter().map(series).filter(|series| !series.is_empty()).collect();
    let means: Vec<f64> = trials.iter().map(|series| mean(series)).collect();
    let (known, how) = match (t_interval(&means), trials.as_slice()) {
        (Some(known), _) => (Some(known), format!("by {} trials", means.len())),
        (None, [only]) if only.len() >= BATCH * MEANS => {
            (batch_means(only).map(|found| (found.mean, found.half_width)), "by batches of one trial".into())
        }
        _ => (None, String::new()),
    };
    let Some((mean_s, half_width)) = known.filter(|(mean_s, _)| *mean_s > 0.0) else {
        return Some(Finding::cannot_tell(
            Check::Precision,
            "There are too few answers for an interval of their mean; run longer, or run more trials.",
        ));
    };
    let relative = half_width / mean_s;
    let shown = percent(relative);
    let finding = if relative > WIDE {
        let sentence = format!(
            "The mean response time is known only to ±{shown}, {how}: too imprecise to distinguish models. Run longer, or run more \
            trials."
        );
        Finding::new(Check::Precision, AssumptionVerdict::CannotTell, sentence)
    } else {
        let sentence = format!("The mean response time is known to ±{shown} (95 % interval, {how}).");
        Finding::new(Check::Precision, AssumptionVerdict::Holds, sentence)
    };
    Some(finding.effect("half-width", relative))
}

/// Whether classes came in the shares that the model has: chi-squared (Pearson 1900).
pub(super) fn shares(seen: &TrialSet<'_>) -> Option<Finding> {
    let classes = &seen.station.classes;
    if classes.len() < 2 || matches!(seen.station.arrivals, Arrivals::Closed { .. } | Arrivals::Attended(_)) {
        return None;
    }
    let mut counts = vec![0usize; classes.len()];
    for row in seen.rows() {
        *counts.get_mut(row.class as usize)? += 1;
    }
    let n = counts.iter().sum::<usize>();
    if n < MEANS {
        return Some(Finding::cannot_tell(
            Check::Shares,
            format!("{n} requests are too few to estimate the shares of the classes; run longer."),
        ));
    }
    let expected = |class: usize| (classes[class].share * n as f64).max(f64::MIN_POSITIVE);
    let chi2: f64 =
        counts.iter().enumerate().map(|(i, &k)| (k as f64 - expected(i)).powi(2) / expected(i)).sum();
    let p_value = ChiSquared::new(classes.len() as f64 - 1.0).map_or(1.0, |law| law.sf(chi2));
    let away = |class: &usize| counts[*class] as f64 / n as f64 - classes[*class].share;
    let worst = (0..classes.len()).max_by(|a, b| away(a).abs().total_cmp(&away(b).abs()))?;
    let verdict = grade(n, 10 * MEANS, p_value, away(&worst), SHARE_OFF);
    let (name, share) = (&classes[worst].name, percent(counts[worst] as f64 / n as f64));
    let asked = percent(classes[worst].share);
    let sentence = match verdict {
        AssumptionVerdict::Broken => {
            format!(
                "{share} of the requests are of class {name}, not the requested {asked}: the load differs from the model's. \
                 Give the model the measured shares."
            )
        }
        AssumptionVerdict::Holds => {
            format!(
                "Classes came in the requested shares; the largest deviation is {name}, {share} instead of {asked}."
            )
        }
        AssumptionVerdict::CannotTell => {
            format!(
                "{n} requests are too few to decide whether classes come in the requested shares; run longer."
            )
        }
    };
    let finding = Finding::new(Check::Shares, verdict, sentence).statistic("χ²", chi2);
    Some(finding.p(p_value).effect("share", away(&worst)))
}
