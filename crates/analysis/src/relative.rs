//! The levels of the last factor relative to its first, measured and simulated. Effects that are common to all levels,
//! such as the machine's speed, its noise and the choice of unit, cancel out, so an order of service can be judged
//! here.

use kendall_experiment::Measure;
use kendall_station::{Answer, Estimate};

use crate::comparison::Comparison;
use crate::ratio::{ALIKE, Order, measured_ratio, order, ratio, ratio_cell};
use crate::report::Report;
use crate::report::point::{Modelled, Point};
use crate::table::{Table, time_cell};
use kendall_stats::number::percent;

/// Ratios this near to each other are called the same, whatever their intervals.
const NEAR: f64 = 0.1;
/// An interval that reaches to more than this many times the ratio is inconclusive.
const WIDE: f64 = 1.25;

/// Each level relative to the first, for categories of which there are several; `None` for others.
pub fn relative(report: &Report) -> Option<Comparison> {
    let factor = report.factors.last()?;
    let first = factor.values.first()?;
    if !report.is_categorical() || factor.values.len() < 2 {
        return None;
    }
    let measure = if report.is_weighted() { Measure::WeightedResponse } else { Measure::MeanResponse };
    let what = measure.words();
    let lines = lines(report, (&factor.name, first), &measure);
    let notation = lines.iter().find_map(|line| Some(line.model?.notation.as_str())).unwrap_or("model");
    let mut head: Vec<String> = report.factors.iter().map(|factor| factor.name.clone()).collect();
    head.extend([
        format!("{what}, measured"),
        format!("{notation} simulated"),
        format!("measured ÷ {first}"),
        format!("simulated ÷ {first}"),
    ]);
    let row = |line: &Line<'_>| {
        let mut row = report.place_cells(line.point);
        row.extend([time_cell(line.measured), time_cell(line.simulated)]);
        row.extend(match line.is_first {
            true => ["1".to_owned(), "1".to_owned()],
            false => [ratio_cell(line.measured_ratio), ratio_cell(line.simulated_ratio)],
        });
        row
    };
    Some(Comparison {
        title: format!("Relative to {first}: {what} by {}", factor.name),
        table: Table { head, rows: lines.iter().map(row).collect() },
        sentences: sentences(report, &lines, first),
    })
}

/// One point and the first level under its heading.
struct Line<'a> {
    point: &'a Point,
    /// The first of its models that was simulated.
    model: Option<&'a Modelled>,
    is_first: bool,
    measured: Option<Estimate>,
    simulated: Option<Estimate>,
    measured_ratio: Option<Estimate>,
    simulated_ratio: Option<Estimate>,
}

fn lines<'a>(report: &'a Report, (factor, first): (&str, &str), measure: &Measure) -> Vec<Line<'a>> {
    let model = |point: &'a Point| point.models.iter().find(|model| model.simulation.answer().is_some());
    let of = |answer: &Answer| match measure {
        Measure::WeightedResponse => answer.weighted_response_s,
        _ => Some(answer.response.mean_s),
    };
    let simulated = |point| of(model(point)?.simulation.answer()?);
    let mut lines = Vec::new();
    for (_, points) in report.headings() {
        let base = points.iter().find(|point| point.setting(factor) == first).copied();
        lines.extend(points.iter().map(|&point| {
            let measured = of(&point.measured);
            Line {
                point,
                model: model(point),
                is_first: point.setting(factor) == first,
                measured,
                simulated: simulated(point),
                measured_ratio: base.and_then(|base| measured_ratio(report, measure, point, base)),
                simulated_ratio: base.and_then(|base| Some(ratio(simulated(point)?, simulated(base)?))),
            }
        }));
    }
    lines
}

/// How many ratios agree, and which is furthest off.
fn sentences(report: &Report, lines: &[Line<'_>], first: &str) -> Vec<String> {
    let ratios = lines.iter().filter(|line| !line.is_first);
    let pairs: Vec<_> =
        ratios.filter_map(|line| Some((line, line.measured_ratio?, line.simulated_ratio?))).collect();
    let off = |measured: Estimate, simulated: Estimate| (measured.value / simulated.value).ln().abs();
    let verdict_of = |&(_, measured, simulated): &(&Line<'_>, Estimate, Estimate)| {
        let (low, high) = measured.interval?;
        let near = (measured.value / simulated.value - 1.0).abs() <= NEAR;
        let inside = (low..=high).contains(&simulated.value);
        // A wide interval that holds the simulated ratio holds many others.
        (!inside || high <= WIDE * measured.value).then_some(near || inside)
    };
    let count = |verdict| pairs.iter().filter(|pair| verdict_of(pair) == verdict).count();
    let Some((line, measured, simulated)) =
        pairs.iter().max_by(|a, b| off(a.1, a.2).total_cmp(&off(b.1, b.2)))
    else {
        return Vec::new();
    };
    let mut sentences = vec![format!(
        "Relative to {first}, {} of {} measured ratios agree with the simulated ones within 10 % or their interval, {} do not, and {} \
         have too wide an interval to decide. The largest difference, at {}: measured {}, simulated {}.",
        count(Some(true)),
        pairs.len(),
        count(Some(false)),
        count(None),
        report.place(line.point),
        ratio_cell(Some(*measured)),
        ratio_cell(Some(*simulated)),
    )];
    // A gain too small to measure does not count.
    let best =
        pairs.iter().filter(|pair| pair.2.value < 1.0 - ALIKE && order(pair.2.value, pair.1) != Order::Other);
    let best = best.min_by(|a, b| a.2.value.total_cmp(&b.2.value));
    sentences.extend(best.map(|(line, measured, simulated)| {
        let unsure = match order(simulated.value, *measured) {
            Order::CannotTell => ", with too wide an interval to decide",
            _ => "",
        };
        format!(
            "The largest gain over {first} by simulation is {}, at {}; the measured gain is {}{unsure}.",
            percent(1.0 - simulated.value),
            report.place(line.point),
            percent(1.0 - measured.value)
        )
    }));
    sentences
}
