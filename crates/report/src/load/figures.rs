//! The two figures of a load: what passed along time, and the three times by quantile.

use kendall_record::Outcome;
use kendall_solve::streamed::{Series, SeriesBin, Streamed, TimesSeen};

use crate::chart::{Frame, Quantity, Scale, ScaleLaw, Tick};
use crate::figure::{Figure, Key, Panel, Table};
use crate::number::{NONE, significant, time};
use crate::svg::Svg;

const SIZE: (f64, f64) = (560.0, 270.0);
/// The table of a figure has no more rows than this.
const ROWS: usize = 100;
/// The curves in the order of their classes.
const CURVES: [&str; 3] = ["formula model0", "formula model1", "formula model2"];

/// Response times, rates and what was in flight, along time.
pub(super) fn along_time(seen: &Streamed) -> Figure {
    let series = &seen.series;
    let errors = series.bins.iter().any(|bin| bin.due() > bin.ended[Outcome::Answered as usize]);
    let mut panels = vec![
        Panel { title: "Response time".into(), svg: responses(seen) },
        Panel { title: "Requests per second".into(), svg: rates(series) },
        Panel { title: "In flight".into(), svg: in_flight(series) },
    ];
    if errors {
        panels.push(Panel {
            title: "Requests without a right answer, per second".into(),
            svg: errors_per_s(series),
        });
    }
    Figure {
        title: "Along time".to_owned(),
        caption: format!(
            "In bins of {}, by the instant at which requests were due: a request that waits through a stall is drawn where it \
             was due, and so is what the stall cost it. The shaded part is the warm-up, which is left out of every number.",
            time(series.width_s)
        ),
        legend: vec![
            key(CURVES[0], "median; answers per second; in flight"),
            key(CURVES[1], "90 %; requests due per second"),
            key(CURVES[2], "99 %"),
        ],
        panels,
        table: table(series),
    }
}

/// The time that a share of the requests stays below, for each of the three times.
pub(super) fn quantiles(seen: &Streamed) -> Figure {
    let of = [
        ("response time, from due", Some(&seen.response)),
        ("service time, from sent", seen.service.as_ref()),
        ("send lag", seen.send_lag.as_ref()),
    ];
    let drawn = || of.iter().zip(CURVES).filter_map(|((name, times), class)| Some((*name, (*times)?, class)));
    Figure {
        title: "How many requests took how long".to_owned(),
        caption: "The further to the right, the fewer requests took longer: each step of the axis is a tenth of those of the \
                  step before. Where the response time stands above the service time, requests waited before they were sent, \
                  which a clock that starts at sending does not see."
            .to_owned(),
        legend: drawn().map(|(name, _, class)| key(class, name)).collect(),
        panels: vec![Panel { title: String::new(), svg: curves(&drawn().map(|(_, times, class)| (times, class)).collect::<Vec<_>>()) }],
        table: curve_table(&drawn().map(|(name, times, _)| (name, times)).collect::<Vec<_>>()),
    }
}

fn key(class: &str, label: &str) -> Key {
    let mut svg = Svg::new(34.0, 16.0, label);
    svg.line(class, (1.0, 8.0), (33.0, 8.0));
    Key { svg: svg.finish(), label: label.to_owned() }
}

/// One line along time.
type Line<'a> = (&'static str, &'a dyn Fn(&SeriesBin) -> Option<f64>);

fn responses(seen: &Streamed) -> String {
    let lines: [Line<'_>; 3] = [
        (CURVES[0], &|bin| bin.response_p50_s),
        (CURVES[1], &|bin| bin.response_p90_s),
        (CURVES[2], &|bin| bin.response_p99_s),
    ];
    draw(
        "Response times along time",
        seen.warmup.used_s,
        &seen.series,
        Quantity::Time,
        "of requests due then",
        &lines,
    )
}

fn rates(series: &Series) -> String {
    let width_s = series.width_s;
    let lines: [Line<'_>; 2] = [
        (CURVES[1], &|bin| Some(bin.due() as f64 / width_s)),
        (CURVES[0], &|bin| Some(bin.completed as f64 / width_s)),
    ];
    draw("Requests per second along time", 0.0, series, Quantity::Number, "per second", &lines)
}

fn in_flight(series: &Series) -> String {
    let lines: [Line<'_>; 1] = [(CURVES[0], &|bin| Some(bin.in_flight))];
    draw("Requests in flight along time", 0.0, series, Quantity::Number, "due and not over", &lines)
}

fn errors_per_s(series: &Series) -> String {
    let width_s = series.width_s;
    let lines: [Line<'_>; 1] =
        [(CURVES[1], &|bin| Some((bin.due() - bin.ended[Outcome::Answered as usize]) as f64 / width_s))];
    draw("Requests without a right answer along time", 0.0, series, Quantity::Number, "per second", &lines)
}

/// Lines over the bins. Times are on a log scale where they differ much.
fn draw(
    title: &str,
    warmup_s: f64,
    series: &Series,
    quantity: Quantity,
    upwards: &str,
    lines: &[Line<'_>],
) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1, title);
    let end_s = series.bins.last().map_or(1.0, |bin| bin.at_s + series.width_s);
    let values = || series.bins.iter().flat_map(|bin| lines.iter().filter_map(|(_, of)| of(bin)));
    let (low, high) = values()
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let (low, high) = if low < high {
        (low, high)
    } else if high > 0.0 {
        (high / 2.0, high)
    } else {
        (0.1, 1.0)
    };
    let (law, ends) = match quantity {
        Quantity::Time if high > 20.0 * low => (ScaleLaw::Log, (low / 1.2, high * 1.2)),
        _ => (ScaleLaw::Linear, (0.0, high * 1.06)),
    };
    let frame = Frame {
        x: Scale::new(ScaleLaw::Linear, (0.0, end_s), (66.0, SIZE.0 - 14.0)),
        y: Scale::new(law, ends, (SIZE.1 - 48.0, 30.0)),
    };
    if warmup_s > 0.0 {
        let (left, right) = (frame.x.at(0.0), frame.x.at(warmup_s.min(end_s)));
        let (bottom, top) = frame.y.pixels();
        svg.rectangle("overload", (left, top), right - left, bottom - top);
    }
    let unit = frame.y.unit(quantity).map_or_else(String::new, |unit| format!(" [{}]", unit.symbol()));
    let titles = ("time since the start [s]", format!("{upwards}{unit}"));
    let across = Scale::new(ScaleLaw::Linear, (0.0, end_s), frame.x.pixels()).ticks(Quantity::Number);
    frame.draw_axes(&mut svg, &across, &frame.y.ticks(quantity), (titles.0, &titles.1));
    for (class, of) in lines {
        // A bin without a value is a gap.
        for part in series.bins.chunk_by(|a, b| of(a).is_some() == of(b).is_some()) {
            let pixels: Vec<(f64, f64)> = part
                .iter()
                .filter_map(|bin| {
                    let value = of(bin)?.max(frame.y.values().0);
                    Some(frame.at(bin.at_s + series.width_s / 2.0, value))
                })
                .collect();
            svg.polyline(class, &pixels);
        }
    }
    svg.finish()
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

/// Times against the share that takes longer, in tenths of tenths.
fn curves(drawn: &[(&TimesSeen, &str)]) -> String {
    let size = (760.0, 330.0);
    let mut svg = Svg::new(size.0, size.1, "Response time, service time and send lag by quantile");
    // A share of 1 − 10⁻ᵏ stands at k.
    let place = |p: f64| -(1.0 - p).log10();
    let points = || drawn.iter().flat_map(|(times, _)| &times.curve).filter(|(_, time_s)| *time_s > 0.0);
    let last = points().map(|(p, _)| place(*p)).fold(1.0, f64::max);
    let (low, high) = points()
        .fold((f64::INFINITY, 0.0f64), |(low, high), (_, time_s)| (low.min(*time_s), high.max(*time_s)));
    let (low, high) = if low < high { (low, high) } else { (1e-4, 1.0) };
    let frame = Frame {
        x: Scale::new(ScaleLaw::Linear, (0.0, last), (66.0, size.0 - 18.0)),
        y: Scale::new(ScaleLaw::Log, (low / 1.2, high * 1.2), (size.1 - 48.0, 30.0)),
    };
    let tick = |k: i32| {
        let p = 1.0 - 10f64.powi(-k);
        Tick { value: f64::from(k), label: Some(format!("{} %", (p * 1e8).round() / 1e6)) }
    };
    let half = Tick { value: place(0.5), label: Some("50 %".into()) };
    let mut across: Vec<Tick> = (1..=last as i32).map(tick).collect();
    across.insert(0, half);
    let titles = ("share of the requests that took no longer", "time (log scale)");
    frame.draw_axes(&mut svg, &across, &frame.y.ticks(Quantity::Time), titles);
    for (times, class) in drawn {
        let inside = times.curve.iter().filter(|(_, time_s)| *time_s > 0.0);
        let pixels: Vec<_> = inside.map(|(p, time_s)| frame.at(place(*p), *time_s)).collect();
        svg.polyline(class, &pixels);
    }
    svg.finish()
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
