//! The two figures of a validation: response times against the rate, and the distribution at each predicted load.

use kendall_analysis::{Compared, Table, Validated, ValidationReport};
use kendall_station::Estimate;
use kendall_stats::number::{NONE, significant, time_with_interval};

use super::{Figure, LOG_FROM};
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Numbers, Plot, Which};
use crate::svg::Marker;

/// The size of a panel: two fit beside each other on the first screen.
const SIZE: (f64, f64) = (350.0, 240.0);
/// The quantities that have a panel.
const SHOWN: [&str; 4] = ["mean", "p50", "p90", "p99"];
/// The first quantile of the distribution, and the last one that its axis shows.
const ENDS: (f64, f64) = (0.5, 0.999);

const PREDICTED: &str = "predicted, with the 95 % interval of a run";
const MEASURED: &str = "measured afterwards, with its 95 % interval";
const LOW: &str = "low loads, from which the prediction starts";
const BAND: &str = "kind0 spread";
const LINE: &str = "formula model0";

/// Response times against the rate: predicted bands, measured points on top. `None` where no load was predicted.
pub(crate) fn response(found: &ValidationReport) -> Option<Figure> {
    let panel = |quantity: &str| Some((quantity.to_owned(), along_rate(found, quantity)?));
    let figure = || {
        Figure::of(
            "Response time against the rate",
            "Bands and lines were predicted, and written to disk, before the first request of the loads that they are about. Black discs \
             were measured afterwards, rings are the low loads. The dashed line is the capacity.",
            SHOWN.into_iter().filter_map(panel).collect(),
            response_table(found),
        )
    };
    (!found.loads.is_empty()).then(figure)
}

/// The distribution at each predicted load. `None` where no load was predicted.
pub(crate) fn distribution(found: &ValidationReport) -> Option<Figure> {
    let panel = |load: &Validated| (load.name(), quantiles(load));
    let figure = || {
        Figure::of(
            "How many requests took how long",
            "The further to the right, the fewer requests took longer: each step of the axis is a tenth of those of the step before. The \
             band was predicted; the black line and discs were measured.",
            found.loads.iter().map(panel).collect(),
            distribution_table(found),
        )
    };
    (!found.loads.is_empty()).then(figure)
}

/// A predicted quantity of a load, against its rate.
struct RatePoint<'a> {
    rate_per_s: f64,
    compared: &'a Compared,
}

/// One quantity against the rate; `None` where it was not compared at any load.
fn along_rate(found: &ValidationReport, quantity: &str) -> Option<Plot> {
    let of_load = |load: &'_ Validated| load.predicted.prediction.rate_per_s;
    let mut points: Vec<RatePoint<'_>> = found
        .loads
        .iter()
        .filter_map(|load| Some(RatePoint { rate_per_s: of_load(load), compared: load.quantity(quantity)? }))
        .collect();
    points.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let capacity_per_s = found.loads.last()?.predicted.prediction.capacity_per_s.value;
    let low = || found.low.iter().filter_map(|low| Some((low.rate_per_s, low.quantity(quantity)?)));
    let predicted = || points.iter().map(|point| (point.rate_per_s, point.compared.predicted_s));
    let measured = || points.iter().map(|point| (point.rate_per_s, point.compared.measured_s));
    if points.is_empty() {
        return None;
    }
    let range = span(predicted().chain(measured()).chain(low()).map(|point| point.1));
    let most_per_s = predicted().map(|point| point.0).fold(capacity_per_s, f64::max);
    Some(Plot {
        title: format!("{quantity} of the response time against the rate"),
        x: Axis::numbers("rate [1/s]", ScaleLaw::Linear, (0.0, 1.04 * most_per_s)),
        y: time_axis("response time", range),
        layers: vec![
            Layer::unnamed(
                "capacity",
                Marks::Rule { axis: Which::X, at: capacity_per_s, note: String::new() },
            ),
            Layer::new(PREDICTED, BAND, band(predicted())),
            Layer::new(PREDICTED, LINE, Marks::line(predicted().map(|(x, estimate)| (x, estimate.value)))),
            Layer::new(PREDICTED, LINE, intervals(predicted())),
            Layer::new(LOW, "rising", Marks::points(Marker::Ring, low().map(|(x, low)| (x, low.value)))),
            Layer::new(MEASURED, "interval", intervals(measured())),
            Layer::new(
                MEASURED,
                "measured",
                Marks::points(Marker::Disc, measured().map(|(x, estimate)| (x, estimate.value))),
            ),
        ],
        size: SIZE,
    })
}

/// Predicted and measured quantiles of one load.
fn quantiles(load: &Validated) -> Plot {
    let predicted = || load.predicted.prediction.quantiles.iter().copied();
    let measured =
        || load.compared.iter().filter_map(|compared| Some((share(compared)?, compared.measured_s)));
    let curve =
        || load.curve.iter().copied().filter(|(p, time_s)| (ENDS.0..=ENDS.1).contains(p) && *time_s > 0.0);
    let range = span(
        predicted()
            .chain(measured())
            .map(|point| point.1)
            .chain(curve().map(|point| Estimate::exact(point.1))),
    );
    Plot {
        title: format!("Predicted and measured quantiles at {}", load.name()),
        x: Axis::shares("share of the requests that took no longer", ScaleLaw::Tail, (0.0, ENDS.1)),
        y: time_axis("response time", range),
        layers: vec![
            Layer::new(PREDICTED, BAND, band(predicted())),
            Layer::new(PREDICTED, LINE, Marks::line(predicted().map(|(p, estimate)| (p, estimate.value)))),
            Layer::new(MEASURED, "ecdf", Marks::line(curve())),
            Layer::new(MEASURED, "interval", intervals(measured())),
            Layer::new(
                MEASURED,
                "measured",
                Marks::points(Marker::Disc, measured().map(|(p, estimate)| (p, estimate.value))),
            ),
        ],
        size: SIZE,
    }
}

/// The share of the quantile; `None` of the mean.
fn share(compared: &Compared) -> Option<f64> {
    Some(compared.quantity.strip_prefix('p')?.parse::<f64>().ok()? / 100.0)
}

/// The area between the ends of the intervals.
fn band(points: impl Iterator<Item = (f64, Estimate)>) -> Marks {
    let (mut x, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for (at, estimate) in points {
        let (from, to) = ends(estimate);
        x.push(at);
        low.push(from);
        high.push(to);
    }
    Marks::Band { x: Numbers(x), low: Numbers(low), high: Numbers(high) }
}

fn intervals(points: impl Iterator<Item = (f64, Estimate)>) -> Marks {
    Marks::intervals(points.filter(|point| point.1.interval.is_some()).map(|(at, estimate)| {
        let (low, high) = ends(estimate);
        (at, low, high)
    }))
}

fn ends(estimate: Estimate) -> (f64, f64) {
    estimate.interval.unwrap_or((estimate.value, estimate.value))
}

/// The least and the largest time among values and ends of intervals.
fn span(estimates: impl Iterator<Item = Estimate>) -> (f64, f64) {
    let all = estimates.flat_map(|estimate| {
        let (low, high) = ends(estimate);
        [low, estimate.value, high]
    });
    let finite = all.filter(|time_s| time_s.is_finite() && *time_s > 0.0);
    let (low, high) =
        finite.fold((f64::INFINITY, 0.0_f64), |(low, high), time_s| (low.min(time_s), high.max(time_s)));
    if high > 0.0 { (low, high) } else { (0.1, 1.0) }
}

fn time_axis(title: &str, (low, high): (f64, f64)) -> Axis {
    match high / low > LOG_FROM {
        true => Axis::times(title, ScaleLaw::Log, (low / 1.3, high * 1.3)),
        false => Axis::times(title, ScaleLaw::Linear, (0.0, 1.08 * high)),
    }
}

fn estimate_cell(estimate: Estimate) -> String {
    time_with_interval(estimate.value, estimate.interval)
}

fn words(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn response_table(found: &ValidationReport) -> Table {
    let mut rows = Vec::new();
    for low in &found.low {
        for (quantity, estimate) in &low.measured_s {
            let rate = significant(low.rate_per_s, 4);
            rows.push(vec!["low".into(), rate, quantity.clone(), NONE.into(), estimate_cell(*estimate)]);
        }
    }
    for load in &found.loads {
        for compared in &load.compared {
            rows.push(vec![
                "predicted".into(),
                significant(load.predicted.prediction.rate_per_s, 4),
                compared.quantity.clone(),
                estimate_cell(compared.predicted_s),
                estimate_cell(compared.measured_s),
            ]);
        }
    }
    Table { head: words(&["load", "rate [1/s]", "quantity", "predicted", "measured"]), rows }
}

fn distribution_table(found: &ValidationReport) -> Table {
    let of_load = |load: &Validated| {
        let measured = |p: f64| {
            let compared = load.compared.iter().find(|compared| share(compared) == Some(p));
            compared.map_or_else(|| NONE.to_owned(), |compared| estimate_cell(compared.measured_s))
        };
        let row = |(p, predicted_s): &(f64, Estimate)| {
            vec![load.name(), format!("p{}", p * 100.0), estimate_cell(*predicted_s), measured(*p)]
        };
        load.predicted.prediction.quantiles.iter().map(row).collect::<Vec<_>>()
    };
    let rows = found.loads.iter().flat_map(of_load).collect();
    Table { head: words(&["load", "quantile", "predicted", "measured"]), rows }
}
