//! Do requests come as the model has them?

use kendall_station::{Arrivals, Law};

use super::grade::{CHANCE, grade, off, two_sided};
use super::trial_set::{TrialSet, scv};
use super::{AssumptionVerdict, Check, Finding, MATTERS, SendsJudged, Setting};
use crate::seconds::seconds;
use kendall_stats::number::{percent, significant};
use kendall_stats::{
    Tested, autocorrelation, conditional_uniform, conditional_uniform_lewis, dispersion_index, ljung_box,
    mean, uniform_distance,
};

/// A rate that is further off than this is another rate: at a utilisation of 0.8 it moves the wait by a quarter.
const RATE_OFF: f64 = 0.05;
/// This number of gaps shows a squared coefficient of variation that changes the wait by 10 %.
const ENOUGH: usize = 200;
/// Fewer gaps make no test.
const FEWEST: usize = 20;
/// A closed loop sends at once after an answer; an open one does so in as many cases as the time after answers is long.
const AFTER_ANSWER: f64 = 0.05;

/// Is the rate at which requests were sent the one that was asked for? A generator that its judge found off the rate of its
/// schedule was off the model's, too, however little that moves.
pub(super) fn rate(seen: &TrialSet<'_>, setting: &Setting) -> Option<Finding> {
    let Arrivals::Open { gap } = &seen.station.arrivals else { return None };
    let asked_per_s = 1.0 / gap.mean_s();
    let (mut gaps, mut span_s) = (0usize, 0.0);
    for instants in seen.instants_ns(|row| row.sent) {
        if let [first, .., last] = instants.as_slice() {
            gaps += instants.len() - 1;
            span_s += seconds(last - first);
        }
    }
    if gaps < FEWEST || span_s <= 0.0 || !asked_per_s.is_finite() {
        let sentence =
            format!("{gaps} gaps between requests are too few to estimate their rate; run longer.");
        return Some(Finding::cannot_tell(Check::Rate, sentence));
    }
    let sent_per_s = gaps as f64 / span_s;
    let effect = sent_per_s / asked_per_s - 1.0;
    // The mean of n gaps is known to cv/√n.
    let z = effect * (gaps as f64).sqrt() / gap.scv().sqrt().max(1e-3);
    let verdict = match setting.sends {
        Some(SendsJudged { at_rate: false, .. }) => AssumptionVerdict::Broken,
        _ => grade(gaps, ENOUGH, two_sided(z), effect, RATE_OFF),
    };
    let (sent, asked) = (significant(sent_per_s, 3), significant(asked_per_s, 3));
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "Requests left at {sent}/s, not at the requested {asked}/s: the load differs from the model's. Give the \
             model the measured rate."
        ),
        AssumptionVerdict::Holds => format!("Requests left at {sent}/s; {asked}/s were requested."),
        AssumptionVerdict::CannotTell => {
            format!(
                "Requests left at {sent}/s; {asked}/s were requested. The difference is not significant; run longer to decide."
            )
        }
    };
    Some(
        Finding::new(Check::Rate, verdict, sentence).statistic("z", z).p(two_sided(z)).effect("rate", effect),
    )
}

/// Do the gaps have the law that was asked for? The effect is on the waiting time, by (ca² + cs²)/2 (Allen–Cunneen).
pub(super) fn law(seen: &TrialSet<'_>) -> Option<Finding> {
    let Arrivals::Open { gap } = &seen.station.arrivals else { return None };
    let gaps_s = seen.gaps_s();
    let Some(gap_scv) = scv(&gaps_s).filter(|_| gaps_s.len() >= FEWEST) else {
        let sentence = format!(
            "{} gaps between arrivals are too few to identify their distribution; run longer.",
            gaps_s.len()
        );
        return Some(Finding::cannot_tell(Check::ArrivalLaw, sentence));
    };
    let poisson = matches!(gap, Law::Exponential { .. });
    let (name, tested, variability) =
        if poisson { poisson_tests(seen, &gaps_s, gap_scv)? } else { law_test(&gaps_s, gap, gap_scv)? };
    let service_scv = seen.service_scv();
    let factor = (variability + service_scv) / (gap.scv() + service_scv);
    let factor = if factor.is_finite() { factor } else { 1.0 };
    let verdict = grade(gaps_s.len(), ENOUGH, tested.p_value, factor - 1.0, MATTERS);
    let (seen_scv, asked_scv) = (significant(variability, 2), significant(gap.scv(), 2));
    let what = if poisson { "Poisson".to_owned() } else { format!("{} as requested", gap.name()) };
    let count = gaps_s.len();
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "Arrivals are not {what}: the squared coefficient of variation of their gaps is {seen_scv}, not {asked_scv}. A model with \
             that distribution {}; use the measured one.",
            off(factor)
        ),
        AssumptionVerdict::Holds => format!(
            "Arrivals are {what}, within the precision of {count} gaps: their squared coefficient of variation is {seen_scv}."
        ),
        AssumptionVerdict::CannotTell => {
            format!("{count} gaps are too few to decide whether arrivals are {what}; run longer.")
        }
    };
    let finding = Finding::new(Check::ArrivalLaw, verdict, sentence).statistic(name, tested.statistic);
    Some(finding.p(tested.p_value).effect("wait", factor - 1.0))
}

/// The strongest of three tests of a Poisson stream, its chance corrected for there being three (Bonferroni), and the
/// variability that counts: that of the gaps, or, where counts are not dispersed as those of a Poisson stream, theirs.
fn poisson_tests(seen: &TrialSet<'_>, gaps_s: &[f64], gap_scv: f64) -> Option<(&'static str, Tested, f64)> {
    let counted = dispersion(seen, gaps_s.len());
    let tests = [
        ("D of gaps", conditional_uniform_lewis(gaps_s)),
        ("D of instants", conditional_uniform(gaps_s)),
        ("index of dispersion", counted),
    ];
    let found = tests.into_iter().filter_map(|(name, test)| Some((name, test?)));
    let (name, least) = found.min_by(|a, b| a.1.p_value.total_cmp(&b.1.p_value))?;
    let p_value = (3.0 * least.p_value).min(1.0);
    let variability = counted.filter(|test| test.p_value < CHANCE).map_or(gap_scv, |test| test.statistic);
    Some((name, Tested { statistic: least.statistic, p_value }, variability))
}

/// The dispersion of counts in spans that hold ten arrivals on average, over all trials.
fn dispersion(seen: &TrialSet<'_>, gaps: usize) -> Option<Tested> {
    let mut counts: Vec<f64> = Vec::new();
    let arrivals = seen.arrivals_ns();
    let spanned = |instants: &Vec<i64>| Some(i128::from(*instants.last()?) - i128::from(*instants.first()?));
    let total: i128 = arrivals.iter().filter_map(spanned).sum();
    let span = (total * 10 / gaps.max(1) as i128).max(1);
    for instants in &arrivals {
        let Some(&first) = instants.first() else { continue };
        let whole = spanned(instants)? / span;
        let from = counts.len();
        counts.resize(from + whole as usize, 0.0);
        for &at in instants {
            // What does not fill a span is left out at the end.
            if let Some(count) =
                counts[from..].get_mut(((i128::from(at) - i128::from(first)) / span) as usize)
            {
                *count += 1.0;
            }
        }
    }
    if counts.len() >= 10 { dispersion_index(&counts) } else { None }
}

/// Kolmogorov's distance of the gaps to the law that was asked for.
fn law_test(gaps_s: &[f64], gap: &Law, gap_scv: f64) -> Option<(&'static str, Tested, f64)> {
    let uniform: Vec<f64> = gaps_s.iter().map(|&gap_s| 1.0 - gap.survival(gap_s)).collect();
    Some(("D", uniform_distance(&uniform)?, gap_scv))
}

/// Do gaps depend on those before them?
pub(super) fn independent(seen: &TrialSet<'_>) -> Option<Finding> {
    if !matches!(seen.station.arrivals, Arrivals::Open { .. }) {
        return None;
    }
    let gaps_s = seen.gaps_s();
    let share = |scv: f64| scv / (scv + seen.service_scv());
    let share = scv(&gaps_s).map_or(0.0, share);
    Some(independence(Check::IndependentArrivals, "Gaps between arrivals", &gaps_s, share))
}

/// The lags that are looked at.
const LAGS: usize = 10;

/// Whether a series is one of independent values. `share` is the part that its variability has in the waiting time: by
/// the sum of its autocorrelations the wait grows or shrinks with it (Fendick and Whitt 1989).
pub(super) fn independence(check: Check, what: &str, values: &[f64], share: f64) -> Finding {
    let n = values.len();
    let tested = if n >= FEWEST + LAGS { ljung_box(values, LAGS) } else { None };
    let Some(tested) = tested else {
        if n > FEWEST + LAGS {
            return Finding::new(
                check,
                AssumptionVerdict::Holds,
                format!("{what} are all equal, so they are independent."),
            );
        }
        return Finding::cannot_tell(
            check,
            format!("{n} values are too few to detect dependence; run longer."),
        );
    };
    // Only those that stand out: the sum of the others is noise.
    let noise = 3.0 / (n as f64).sqrt();
    let of_lags = (1..=LAGS).filter_map(|lag| autocorrelation(values, lag));
    let sum: f64 = of_lags.filter(|r| r.abs() > noise).sum();
    let effect = (share * 2.0 * sum).max(-0.99);
    let verdict = grade(n, ENOUGH, tested.p_value, effect, MATTERS);
    let first = significant(autocorrelation(values, 1).unwrap_or(0.0), 2);
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "{what} depend on those before them: neighbours have a correlation of {first}. A model with independent values {}; \
             use the recorded values.",
            off(1.0 + effect)
        ),
        AssumptionVerdict::Holds => {
            format!("{what} do not depend on those before them enough to change the waiting time.")
        }
        AssumptionVerdict::CannotTell => {
            format!(
                "{n} values are too few to decide whether {} depend on one another; run longer.",
                lower(what)
            )
        }
    };
    Finding::new(check, verdict, sentence)
        .statistic("Q", tested.statistic)
        .p(tested.p_value)
        .effect("wait", effect)
}

/// The words as they stand within a sentence.
fn lower(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Are requests sent when answers come? Counts how many leave within a twentieth of a mean gap after an answer; in an open
/// stream that is the share of time that lies so near behind answers.
pub(super) fn open_loop(seen: &TrialSet<'_>) -> Option<Finding> {
    // Users send when answers have come, as they are meant to.
    let users = &seen.station.arrivals;
    if matches!(users, Arrivals::Closed { .. } | Arrivals::Attended(_) | Arrivals::Sessions(_)) {
        return None;
    }
    let (sent, answered) = (seen.instants_ns(|row| row.sent), seen.instants_ns(|row| row.completed));
    let gaps_ns: Vec<f64> =
        sent.iter().flat_map(|at| at.windows(2)).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let n = gaps_ns.len();
    if n < FEWEST {
        return Some(Finding::cannot_tell(
            Check::OpenLoop,
            format!("{n} gaps are too few to decide whether requests wait for answers; run longer."),
        ));
    }
    let near_ns = ((AFTER_ANSWER * mean(&gaps_ns)) as i64).max(1);
    let (mut at_once, mut covered_ns, mut span_ns) = (0usize, 0.0, 0.0);
    for (sent, answered) in sent.iter().zip(&answered) {
        let [first, rest @ ..] = sent.as_slice() else { continue };
        let last = rest.last().copied().unwrap_or(*first);
        span_ns += (last - first) as f64;
        let within = |at: &&i64| (*first..last).contains(*at);
        let inside: Vec<i64> = answered.iter().filter(within).copied().collect();
        let ends = inside.iter().skip(1).copied().chain([last]);
        covered_ns += inside.iter().zip(ends).map(|(at, end)| (end - at).min(near_ns) as f64).sum::<f64>();
        let follows = |at: &&i64| {
            let before = answered.partition_point(|answer| answer <= *at);
            before > 0 && *at - answered[before - 1] <= near_ns
        };
        at_once += rest.iter().filter(follows).count();
    }
    let (share, expected) = (at_once as f64 / n as f64, (covered_ns / span_ns).clamp(0.0, 1.0));
    let expected = if expected.is_finite() { expected } else { 0.0 };
    // Never fewer than one expected, so that one rare event is not a proof.
    let spread = (expected * (1.0 - expected) / n as f64).sqrt().max(1.0 / n as f64);
    let (z, effect) = ((share - expected) / spread, (share - expected).max(0.0));
    let verdict = grade(n, FEWEST, two_sided(z), effect, 0.5);
    let sentence = match verdict {
        AssumptionVerdict::Broken => format!(
            "{} of the requests leave right after an answer: the load is a closed loop, which sends less the slower the \
             server is. An open model such as M/M/m does not describe it: use a closed population.",
            percent(share)
        ),
        AssumptionVerdict::Holds => {
            "Requests leave whether or not answers have arrived: the load is open.".to_owned()
        }
        AssumptionVerdict::CannotTell => {
            "The gaps do not show whether requests wait for answers; run longer to decide.".to_owned()
        }
    };
    let finding = Finding::new(Check::OpenLoop, verdict, sentence).statistic("z", z);
    Some(finding.p(two_sided(z)).effect("requests after answers", share - expected))
}
