//! The two figures of a load: what passed along time, and the three times by quantile.

use kendall_analysis::Table;
use kendall_evidence::streamed::{Series, SeriesBin, Streamed, TimesSeen};
use kendall_record::Outcome;

use crate::chart::{Quantity, ScaleLaw};
use crate::figure::Figure;
use crate::plot::{Axis, Layer, Marks, Plot};
use kendall_stats::number::{NONE, significant, time};

const SIZE: (f64, f64) = (560.0, 270.0);
/// The table of a figure has no more rows than this.
const ROWS: usize = 100;
/// The curves in the order of their classes.
const CURVES: [&str; 3] = ["formula model0", "formula model1", "formula model2"];
/// What they are along time, in all panels alike.
const ALONG: [&str; 3] = [
    "median; answers per second; in flight",
    "90 %; requests due, or without a right answer, per second",
    "99 %",
];

/// Response times, rates and what was in flight, along time.
pub(super) fn along_time(seen: &Streamed) -> Figure {
    let series = &seen.series;
    let errors = series.bins.iter().any(|bin| bin.due() > bin.ended[Outcome::Answered as usize]);
    let mut plots = vec![
        ("Response time", responses(seen)),
        ("Requests per second", rates(series)),
        ("In flight", in_flight(series)),
    ];
    if errors {
        plots.push(("Requests without a right answer, per second", errors_per_s(series)));
    }
    Figure::of(
        "Along time",
        format!(
            "In bins of {}, by the instant at which requests were due: a request that waits through a stall is drawn where it was due, \
             and so is its delay. The shaded part is the warm-up, which every number excludes.",
            time(series.width_s)
        ),
        plots.into_iter().map(|(title, plot)| (title.to_owned(), plot)).collect(),
        table(series),
    )
}

/// The time that a share of the requests stays below, for each of the three times.
pub(super) fn quantiles(seen: &Streamed) -> Figure {
    let of = [
        ("response time, from due", Some(&seen.response)),
        ("service time, from sent", seen.service.as_ref()),
        ("send lag", seen.send_lag.as_ref()),
    ];
    let drawn = || of.iter().zip(CURVES).filter_map(|((name, times), class)| Some((*name, (*times)?, class)));
    Figure::of(
        "How many requests took how long",
        "The further to the right, the fewer requests took longer: each step of the axis is a tenth of those of the step before. Where \
         the response time stands above the service time, requests waited before they were sent, which a clock that starts at sending \
         does not measure (coordinated omission).",
        vec![(String::new(), curves(&drawn().collect::<Vec<_>>()))],
        curve_table(&drawn().map(|(name, times, _)| (name, times)).collect::<Vec<_>>()),
    )
}

/// One line along time: which of the curves, and its values.
type Line<'a> = (usize, &'a dyn Fn(&SeriesBin) -> Option<f64>);

fn responses(seen: &Streamed) -> Plot {
    let lines: [Line<'_>; 3] =
        [(0, &|bin| bin.response_p50_s), (1, &|bin| bin.response_p90_s), (2, &|bin| bin.response_p99_s)];
    along("Response times along time", &seen.series, Quantity::Time, "of requests due then", &lines)
        .with_warmup(seen.warmup.used_s)
}

fn rates(series: &Series) -> Plot {
    let width_s = series.width_s;
    let lines: [Line<'_>; 2] =
        [(1, &|bin| Some(bin.due() as f64 / width_s)), (0, &|bin| Some(bin.completed as f64 / width_s))];
    along("Requests per second along time", series, Quantity::Number, "per second", &lines)
}

fn in_flight(series: &Series) -> Plot {
    let lines: [Line<'_>; 1] = [(0, &|bin| Some(bin.in_flight))];
    along("Requests in flight along time", series, Quantity::Number, "due and not over", &lines)
}

fn errors_per_s(series: &Series) -> Plot {
    let width_s = series.width_s;
    let lines: [Line<'_>; 1] =
        [(1, &|bin| Some((bin.due() - bin.ended[Outcome::Answered as usize]) as f64 / width_s))];
    along("Requests without a right answer along time", series, Quantity::Number, "per second", &lines)
}

impl Plot {
    /// Shades the warm-up.
    fn with_warmup(mut self, until_s: f64) -> Self {
        if until_s > 0.0 {
            let warmup = Marks::Area { from: 0.0, to: until_s, note: String::new() };
            self.layers.insert(0, Layer::unnamed("overload", warmup));
        }
        self
    }
}

/// Lines over the bins; a bin without a value is a gap. Times are on a log scale where they differ much.
fn along(title: &str, series: &Series, quantity: Quantity, upwards: &str, lines: &[Line<'_>]) -> Plot {
    let end_s = series.bins.last().map_or(1.0, |bin| bin.at_s + series.width_s);
    let values = || series.bins.iter().flat_map(|bin| lines.iter().filter_map(|(_, of)| of(bin)));
    let (low, high) = ends(values(), (0.1, 1.0));
    let (law, range) = match quantity {
        Quantity::Time if high > 20.0 * low => (ScaleLaw::Log, (low / 1.2, high * 1.2)),
        _ => (ScaleLaw::Linear, (0.0, high * 1.06)),
    };
    let layer = |(curve, of): &Line<'_>| {
        let value = |bin: &SeriesBin| of(bin).map_or(f64::NAN, |value| value.max(range.0));
        let at = |bin: &SeriesBin| (bin.at_s + series.width_s / 2.0, value(bin));
        Layer::new(ALONG[*curve], CURVES[*curve], Marks::line(series.bins.iter().map(at)))
    };
    Plot {
        title: title.to_owned(),
        x: Axis::numbers("time since the start [s]", ScaleLaw::Linear, (0.0, end_s)),
        y: match quantity {
            Quantity::Time => Axis::times(upwards, law, range),
            _ => Axis::numbers(upwards, law, range),
        },
        layers: lines.iter().map(layer).collect(),
        size: SIZE,
    }
}

/// The least and the largest of what is above 0, with room where they are one.
fn ends(values: impl Iterator<Item = f64>, none: (f64, f64)) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    match low < high {
        true => (low, high),
        false if high > 0.0 => (high / 2.0, high),
        false => none,
    }
}

fn table(series: &Series) -> Table {
    let every = series.bins.len().div_ceil(ROWS).max(1);
    let head = [
        "from [s]",
        "due",
        "answered in it",
        "without a right answer",
        "in flight",
        "p50",
        "p90",
        "p99",
        "longest",
    ];
    let known = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), time);
    let row = |bin: &SeriesBin| {
        vec![
            significant(bin.at_s, 4),
            bin.due().to_string(),
            bin.completed.to_string(),
            (bin.due() - bin.ended[Outcome::Answered as usize]).to_string(),
            significant(bin.in_flight, 3),
            known(bin.response_p50_s),
            known(bin.response_p90_s),
            known(bin.response_p99_s),
            known(bin.response_longest_s),
        ]
    };
    Table { head: head.map(str::to_owned).into(), rows: series.bins.iter().step_by(every).map(row).collect() }
}

/// Times against the share that takes no longer.
fn curves(drawn: &[(&'static str, &TimesSeen, &'static str)]) -> Plot {
    let points = |times: &TimesSeen| {
        let shown = |(p, time_s): &&(f64, f64)| *time_s > 0.0 && *p < 1.0;
        times.curve.iter().filter(shown).copied().collect::<Vec<_>>()
    };
    let all: Vec<(f64, f64)> = drawn.iter().flat_map(|(_, times, _)| points(times)).collect();
    let last = all.iter().map(|(p, _)| *p).fold(0.9, f64::max);
    let (low, high) = ends(all.iter().map(|(_, time_s)| *time_s), (1e-4, 1.0));
    let layer = |(name, times, class): &(&'static str, &TimesSeen, &'static str)| {
        Layer::new(*name, *class, Marks::line(points(times)))
    };
    Plot {
        title: "Response time, service time and send lag by quantile".to_owned(),
        x: Axis::shares("share of the requests that took no longer", ScaleLaw::Tail, (0.0, last)),
        y: Axis::times("time", ScaleLaw::Log, (low / 1.2, high * 1.2)),
        layers: drawn.iter().map(layer).collect(),
        size: (760.0, 330.0),
    }
}

fn curve_table(drawn: &[(&str, &TimesSeen)]) -> Table {
    let mut head = vec!["share".to_owned()];
    head.extend(drawn.iter().map(|(name, _)| (*name).to_owned()));
    let longest = drawn.iter().map(|(_, times)| &times.curve).max_by_key(|curve| curve.len());
    let row = |(i, (p, _)): (usize, &(f64, f64))| {
        let mut row = vec![format!("{} %", significant(p * 100.0, 5))];
        let at = |times: &TimesSeen| {
            times.curve.get(i).map_or_else(|| NONE.to_owned(), |(_, time_s)| time(*time_s))
        };
        row.extend(drawn.iter().map(|(_, times)| at(times)));
        row
    };
    Table { head, rows: longest.into_iter().flatten().enumerate().map(row).collect() }
}
