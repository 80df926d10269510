//! Decides which results are worth a sentence. Each threshold is defined here, once, with its reason.

use std::collections::BTreeMap;

use kendall_station::By;
use kendall_stats::median;

use crate::finding::agreement::{Agreement, WIDE, answers, compare, reason};
use crate::finding::kind::Finding;
use crate::finding::reason::{Answers, Excess, PredictedBy, Trend};
use crate::finding::{assumption, contrast, links, loss, tail};
use crate::machine_limits;
use crate::replay;
use crate::report::Report;
use crate::report::limits::LimitsUsed;
use crate::report::point::{Modelling, Point, is_of_runs};
use crate::report::resources::Resources;
use crate::report::trial::{TrialLine, WarmupBy};

/// Little's law holds exactly on a drained trial; this is room for the edges of the warm-up.
const LITTLE: f64 = 0.005;
/// Above this utilisation the time to reach a steady mean grows as 1/(1 − ρ)².
const NEARLY_FULL: f64 = 0.9;
/// Service this much longer under load is not a sampling error.
const LOAD_DEPENDENT: f64 = 1.15;
/// If the trials are independent, an interval this narrow has this probability.
const CHANCE: f64 = 1e-3;

/// All findings of a report: answers first, in the order in which they are worth reading, then notes and doubts.
pub fn findings(report: &Report) -> Vec<Finding> {
    // Of several groups the first one's range stands for the others on the first screen, where the models matter.
    let ranges = if report.is_categorical() { extremes(report) } else { ranges(report) };
    let mut ranges = ranges.into_iter();
    // Before all else: what follows would be read as being of the server.
    let mut found: Vec<Finding> = generator_limited(report).into_iter().collect();
    found.extend(loss::overload(report).map(Finding::Overload));
    found.extend(throughput(report));
    let losses = |notation| Some(Finding::Losses(loss::losses(report, notation)?));
    found.extend(report.notations().into_iter().filter_map(losses));
    let contrasts = contrast::contrasts(report);
    match contrasts.is_empty() {
        true => found.extend(ranges.by_ref().take(1)),
        false => found.extend(contrasts.into_iter().map(Finding::Contrast)),
    }
    let mut verdicts: Vec<_> =
        report.notations().into_iter().flat_map(|notation| verdicts(report, notation)).collect();
    found.extend(replay::replayed(report).map(Finding::Replayed));
    verdicts.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    found.extend(verdicts);
    found.extend(ranges);
    found.extend(unstable(report));
    found.extend(capacities(report));
    found.extend(
        report
            .notations()
            .into_iter()
            .filter_map(|notation| Some(Finding::Tail(tail::miss(report, notation)?))),
    );
    found.extend(notes(report));
    found.extend(left_out(report));
    found.extend(replaced(report));
    found.extend(doubts_of_points(report));
    found.extend(doubts_of_trials(report));
    found.extend(assumption::broken(&report.checks));
    found.extend(limited(report));
    found.extend(machine_limit(report));
    found.sort_by_key(Finding::severity);
    found
}

/// The warm-ups that were found and not set.
fn left_out(report: &Report) -> Option<Finding> {
    let found = |trial: &TrialLine| {
        let left_out = trial.left_out.filter(|left_out| left_out.by == WarmupBy::Found)?;
        Some((left_out, trial.counts.sent))
    };
    let found: Vec<_> = report.trials.iter().filter_map(found).collect();
    let mut until_s: Vec<f64> = found.iter().map(|(left_out, _)| left_out.until_ns as f64 / 1e9).collect();
    until_s.sort_by(f64::total_cmp);
    Some(Finding::LeftOut {
        trials: found.len(),
        left_out: found.iter().map(|(left_out, _)| left_out.requests).sum(),
        sent: found.iter().map(|(_, sent)| sent).sum(),
        least_s: *until_s.first()?,
        median_s: median(&until_s),
        most_s: *until_s.last()?,
    })
}

/// The attempts that do not count.
fn replaced(report: &Report) -> Option<Finding> {
    let replaced = report.trials.iter().filter(|trial| trial.is_replaced);
    let attempts: Vec<String> = replaced.map(|trial| trial.id.clone()).collect();
    (!attempts.is_empty()).then_some(Finding::Replaced { attempts })
}

/// What limits the server, in the trial in which it used most.
fn limited(report: &Report) -> Option<Finding> {
    let busiest = Resources::busiest(&report.resources)?;
    let place = report.place(report.points.get(busiest.point?)?);
    Some(Finding::Limited { place, limit: busiest.limit.clone()? })
}

/// Which of the machine's own limits the best trial of all came up against.
fn machine_limit(report: &Report) -> Option<Finding> {
    let by_throughput = |a: &&LimitsUsed, b: &&LimitsUsed| a.throughput_per_s.total_cmp(&b.throughput_per_s);
    let best = report.machine_limits.iter().max_by(by_throughput)?;
    let (place, binding) = (report.place(report.points.get(best.point)?), machine_limits::binding(best)?);
    Some(Finding::MachineLimit { place, throughput_per_s: best.throughput_per_s, binding })
}

/// The order of verdicts: models that agree, best first, then misses, worst first.
fn rank(verdict: &Finding) -> f64 {
    match verdict {
        Finding::Agreement { agreeing, of, .. } => -1e9 - *agreeing as f64 / *of as f64,
        Finding::Miss { predicted_s, measured_s, .. } => -(predicted_s / measured_s.value).ln().abs(),
        _ => 0.0,
    }
}

/// Where the measured mean starts and ends, for each group, over the points where it is a property of the system.
fn ranges(report: &Report) -> Vec<Finding> {
    let range = |(group, points): (String, Vec<&Point>)| {
        let steady: Vec<_> = points.into_iter().filter(|point| point.is_steady()).collect();
        let (first, last) = (steady.first()?, steady.last()?);
        Some(Finding::Range {
            group,
            from: report.place_in_group(first),
            from_s: first.measured.response.mean_s.value,
            to: report.place_in_group(last),
            to_s: last.measured.response.mean_s.value,
        })
    };
    report.groups().into_iter().filter_map(range).collect()
}

/// The extremes over categories, which have no order. All points count, since categories may differ in whether they are
/// steady.
fn extremes(report: &Report) -> Vec<Finding> {
    let mean_s = |point: &Point| point.measured.response.mean_s.value;
    let mut points: Vec<&Point> = report.points.iter().collect();
    points.sort_by(|a, b| mean_s(a).total_cmp(&mean_s(b)));
    let (Some(least), Some(most)) = (points.first(), points.last()) else { return Vec::new() };
    if points.len() == 1 {
        let (place, mean_s) = (report.place(least), mean_s(least));
        let (from, to) = (place.clone(), place);
        return vec![Finding::Range { group: String::new(), from, from_s: mean_s, to, to_s: mean_s }];
    }
    vec![Finding::Extremes {
        least: report.place(least),
        least_s: mean_s(least),
        most: report.place(most),
        most_s: mean_s(most),
    }]
}

/// The extremes of the throughput, if the number of users varies. Throughput of other loads is their rate.
fn throughput(report: &Report) -> Option<Finding> {
    report.factors.first().filter(|factor| factor.is_load)?;
    let per_s = |point: &&Point| point.measured.throughput_per_s.value;
    let closed = report.points.iter().filter(|point| point.offered_per_s.is_none());
    let least = closed.clone().min_by(|a, b| per_s(a).total_cmp(&per_s(b)))?;
    let most = closed.max_by(|a, b| per_s(a).total_cmp(&per_s(b)))?;
    (per_s(&most) > per_s(&least)).then(|| Finding::Throughput {
        least: report.place(least),
        least_per_s: per_s(&least),
        most: report.place(most),
        most_per_s: per_s(&most),
    })
}

/// The verdict of the measurement on one model: the points where the two agree, and the worst miss.
fn verdicts(report: &Report, notation: &str) -> Vec<Finding> {
    let (mut agreeing, mut judged, mut untold, mut ways) = (0, 0, 0, Vec::new());
    let mut misses: Vec<(&Point, PredictedBy, f64)> = Vec::new();
    for point in &report.points {
        let Some(model) = point.model(notation) else { continue };
        let comparable: Vec<_> =
            answers(model).filter(|(_, answer)| point.is_steady() || is_of_runs(answer)).collect();
        let (mut told, mut missed) = (false, false);
        for &(way, answer) in &comparable {
            match compare(point.measured.response.mean_s, answer.response.mean_s) {
                Agreement::CannotTell => continue,
                Agreement::Agrees => {}
                Agreement::Misses => {
                    missed = true;
                    misses.push((point, way, answer.response.mean_s.value));
                }
            }
            told = true;
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        judged += usize::from(told);
        untold += usize::from(!told && !comparable.is_empty());
        agreeing += usize::from(told && !missed);
    }
    let mut found = Vec::new();
    // A model that misses at most points has its miss reported, and how often it misses.
    if agreeing > 0 && 2 * agreeing >= judged {
        found.push(Finding::Agreement { model: notation.to_owned(), ways, agreeing, of: judged, untold });
    }
    let off = |&(point, _, predicted_s): &(&Point, PredictedBy, f64)| {
        (predicted_s / point.measured.response.mean_s.value).ln().abs()
    };
    if let Some(&(point, way, predicted_s)) = misses.iter().max_by(|a, b| off(a).total_cmp(&off(b))) {
        found.push(Finding::Miss {
            model: notation.to_owned(),
            way,
            place: report.place(point),
            predicted_s,
            measured_s: point.measured.response.mean_s,
            reason: point.service.and_then(|service| reason(notation, service)),
            missing: judged - agreeing,
            of: judged,
        });
    }
    found
}

/// The points where more work is offered than the servers can do, in one sentence.
fn unstable(report: &Report) -> Option<Finding> {
    let mut points = report.points.iter().filter(|point| !point.is_stable());
    let first = points.next()?;
    let answered = first.models.iter().any(|model| model.formula.answer().is_some());
    let also = points.map(|point| report.place(point)).collect();
    Some(Finding::Unstable {
        place: report.place(first),
        utilisation: first.utilisation_offered?,
        formula_answers: if answered { Answers::Some } else { Answers::None },
        measured_s: first.measured.response.mean_s.value,
        growth: if first.growing.is_some() { Trend::Rising } else { Trend::Steady },
        also,
    })
}

/// The rate at which utilisation reaches 1, by each group's most loaded point, where service is as it is under load.
fn capacities(report: &Report) -> Vec<Finding> {
    let capacity = |(group, points): (String, Vec<&Point>)| {
        let most = points.iter().max_by(|a, b| utilisation(a).total_cmp(&utilisation(b)))?;
        let capacity_of = |point: &Point| {
            Some(point.offered_per_s? / point.utilisation_offered.filter(|&value| value > 0.0)?)
        };
        let rate_per_s = capacity_of(most)?;
        // Along an axis such as the number of workers it is not one number.
        let alike =
            |point: &&Point| capacity_of(point).is_some_and(|other| (other / rate_per_s - 1.0).abs() < 0.3);
        let excess = if most.capacity.is_some() { Excess::Lost } else { Excess::Queues };
        points.iter().all(alike).then_some(Finding::Capacity { group, rate_per_s, excess })
    };
    report.groups().into_iter().filter_map(capacity).collect()
}

fn utilisation(point: &Point) -> f64 {
    point.utilisation_offered.unwrap_or(0.0)
}

fn notes(report: &Report) -> Vec<Finding> {
    let mut found = Vec::new();
    // Along any other line the system or what is asked of it changes, and the service with it.
    let is_by_load = report.factors.first().is_some_and(|factor| factor.is_load);
    for (_, points) in report.groups().into_iter().filter(|_| is_by_load && !report.is_categorical()) {
        found.extend(load_dependence(report, &points));
    }
    found.extend(nearly_full(report));
    found.extend(fixed_cost(report));
    let response_s = |point: &Point| point.measured.response.mean_s.value;
    if let Some(point) = report.points.iter().find(|point| point.delay_s > 0.5 * response_s(point)) {
        let (place, delay_s) = (report.place(point), point.delay_s);
        found.push(Finding::MostlyDelay { place, delay_s, response_s: response_s(point) });
    }
    for notation in report.notations() {
        found.extend(without_formula(report, notation));
        found.extend(approximate_formula(report, notation));
    }
    found
}

/// The points just below full use, the fullest first.
fn nearly_full(report: &Report) -> Option<Finding> {
    // A station that rejects requests has no long queues.
    let queues = |point: &Point| point.capacity.is_none() || point.measured.lost.value < loss::RARE;
    let near = |point: &&Point| (NEARLY_FULL..1.0).contains(&utilisation(point)) && queues(point);
    let mut points: Vec<_> = report.points.iter().filter(near).collect();
    points.sort_by(|a, b| utilisation(b).total_cmp(&utilisation(a)));
    let (fullest, others) = points.split_first()?;
    Some(Finding::NearlyFull {
        place: report.place(fullest),
        utilisation: utilisation(fullest),
        also: others.iter().map(|point| report.place(point)).collect(),
    })
}

/// The point at which the largest part of the service is the same for every request, if the server reports that part.
fn fixed_cost(report: &Report) -> Option<Finding> {
    let told = report.points.iter().filter_map(|point| Some((point, point.fixed_s?, point.service?.mean_s)));
    let share = |(_, fixed_s, service_s): &(&Point, f64, f64)| fixed_s / service_s;
    let (point, fixed_s, service_s) = told.max_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some(Finding::FixedCost { place: report.place(point), fixed_s, service_s })
}

/// Whether service at the highest load of a group is slower than at its lowest.
fn load_dependence(report: &Report, points: &[&Point]) -> Option<Finding> {
    let by_load = |a: &&&Point, b: &&&Point| utilisation(a).total_cmp(&utilisation(b));
    let stamped = || points.iter().filter(|point| point.service.is_some_and(|service| service.n >= 30));
    let (low, high) = (stamped().min_by(by_load)?, stamped().max_by(by_load)?);
    let (low_s, high_s) = (low.service?.mean_s, high.service?.mean_s);
    (high_s > LOAD_DEPENDENT * low_s).then(|| Finding::LoadDependent {
        low: report.place(low),
        low_s,
        high: report.place(high),
        high_s,
    })
}

/// The reason why a model has no formula at points that are stable, if there is such a point.
fn without_formula(report: &Report, notation: &str) -> Option<Finding> {
    let stable = report.points.iter().filter(|point| point.is_stable());
    stable.filter_map(|point| point.model(notation)).find_map(|model| match &model.formula {
        Modelling::NoAnswer(why) => {
            Some(Finding::NoFormula { model: model.notation.clone(), why: why.clone() })
        }
        Modelling::Answer(_) => None,
    })
}

/// What the formula of a model takes for granted, where it is an approximation at some point.
fn approximate_formula(report: &Report, notation: &str) -> Option<Finding> {
    let models = report.points.iter().filter_map(|point| point.model(notation));
    models.filter_map(|model| model.formula.answer()).find_map(|answer| match &answer.by {
        By::Formula { source, approximate: Some(how) } => Some(Finding::Approximate {
            model: notation.to_owned(),
            source: source.clone(),
            how: how.clone(),
        }),
        _ => None,
    })
}

fn doubts_of_points(report: &Report) -> Vec<Finding> {
    let mut found = Vec::new();
    let (mut wide, mut single, mut worst_relative) = (Vec::new(), Vec::new(), 0.0f64);
    for point in &report.points {
        let mean_s = point.measured.response.mean_s;
        let relative = mean_s.half_width() / mean_s.value;
        match mean_s.interval {
            None => single.push(report.place(point)),
            Some(_) if point.is_steady() && relative > WIDE => {
                wide.push(report.place(point));
                worst_relative = worst_relative.max(relative);
            }
            Some(_) => {}
        }
        // Above utilisation 1 it is bound to grow, and `Unstable` or `Overload` says so.
        let unforeseen = utilisation(point) < 1.0 && !point.is_simulated_as_run();
        if let Some(growth) = point.growing.filter(|_| unforeseen) {
            let (first_half_s, second_half_s) = (growth.first_half_s, growth.second_half_s);
            found.push(Finding::Growing { place: report.place(point), first_half_s, second_half_s });
        }
    }
    if !wide.is_empty() {
        found.push(Finding::TooWide { places: wide, worst_relative });
    }
    if !single.is_empty() {
        found.push(Finding::NoInterval { places: single });
    }
    found.extend(too_narrow(report));
    found
}

/// The trials that show the generator as much as the server.
fn generator_limited(report: &Report) -> Option<Finding> {
    let limited: Vec<&TrialLine> = report.trials.iter().filter(|trial| !trial.limits.is_empty()).collect();
    Some(Finding::GeneratorLimited {
        why: limited.first()?.limits.join("; "),
        trials: limited.into_iter().map(|trial| trial.id.clone()).collect(),
    })
}

fn doubts_of_trials(report: &Report) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut disturbed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for trial in &report.trials {
        let (sent, ended) = (trial.counts.sent, trial.counts.ended());
        if sent != ended {
            found.push(Finding::NotConserved { trial: trial.id.clone(), sent, ended });
        }
        for doubt in trial.doubts.iter().filter(|_| !trial.is_replaced) {
            disturbed.entry(doubt).or_default().push(trial.id.clone());
        }
    }
    found.extend(little(&report.trials));
    found.extend(without_answer(report));
    found.extend(with_wrong_answer(report));
    found.extend(
        disturbed.into_iter().map(|(what, trials)| Finding::Disturbed { what: what.to_owned(), trials }),
    );
    found.extend(report.doubts.iter().map(|sentence| Finding::Told { sentence: sentence.clone() }));
    found.extend(links::doubts(report));
    if report.trials.len() < report.planned_trials {
        found.push(Finding::Unfinished { done: report.trials.len(), planned: report.planned_trials });
    }
    found
}

/// The trials whose number in the system is not what Little's law says.
fn little(trials: &[TrialLine]) -> Option<Finding> {
    let gap =
        |trial: &TrialLine| Some((trial.id.clone(), trial.little_gap.filter(|gap| gap.abs() > LITTLE)?));
    let broken: Vec<_> = trials.iter().filter_map(gap).collect();
    let (worst, gap) = broken.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?.clone();
    Some(Finding::LittleBroken { trials: broken.len(), worst, gap })
}

/// Sums a count over the trials of each point; the points where it is not 0, worst first.
fn worst_first(report: &Report, count: impl Fn(&Point, &TrialLine) -> u64) -> Vec<(String, u64, u64)> {
    let total = |(index, point): (usize, &Point)| {
        let add =
            |(counted, sent), trial: &TrialLine| (counted + count(point, trial), sent + trial.counts.sent);
        let (counted, sent) = report.trials_of(index).fold((0, 0), add);
        (counted > 0).then(|| (report.place(point), counted, sent))
    };
    let mut totals: Vec<_> = report.points.iter().enumerate().filter_map(total).collect();
    let share = |total: &(String, u64, u64)| total.1 as f64 / total.2.max(1) as f64;
    totals.sort_by(|a, b| share(b).total_cmp(&share(a)));
    totals
}

fn without_answer(report: &Report) -> Option<Finding> {
    let lost = |point: &Point, TrialLine { counts, .. }: &TrialLine| {
        let refused = if loss::is_expected(point) { 0 } else { counts.refused };
        refused + counts.timed_out + counts.unanswered
    };
    let mut totals = worst_first(report, lost).into_iter();
    let (place, lost, sent) = totals.next()?;
    Some(Finding::Lost { place, lost, sent, also: totals.map(|(place, ..)| place).collect() })
}

fn with_wrong_answer(report: &Report) -> Option<Finding> {
    let mut totals = worst_first(report, |_, trial| trial.counts.wrong).into_iter();
    let (place, wrong, sent) = totals.next()?;
    Some(Finding::Wrong { place, wrong, sent, also: totals.map(|(place, ..)| place).collect() })
}

/// The point whose interval is too narrow to be true, if one is: that with the smallest chance.
fn too_narrow(report: &Report) -> Option<Finding> {
    let chance = |point: &Point| point.expected.and_then(|expected| expected.chance);
    // The more points, the more of them are narrow at random.
    let limit = CHANCE / report.points.len().max(1) as f64;
    let narrow: Vec<(&Point, f64)> = report
        .points
        .iter()
        .filter_map(|point| Some((point, chance(point).filter(|&chance| chance < limit)?)))
        .collect();
    let (worst, _) = narrow.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let also = narrow.iter().filter(|(point, _)| !std::ptr::eq(*point, *worst));
    Some(Finding::TooNarrow {
        place: report.place(worst),
        half_width_s: worst.measured.response.mean_s.half_width(),
        expected_s: worst.expected?.response_s,
        also: also.map(|(point, _)| report.place(point)).collect(),
    })
}
