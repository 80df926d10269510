//! Figures along time: rates, requests in flight and queued, response times, cores.

use kendall_analysis::Table;
use kendall_probe::{Line, Role, Timeline};
use kendall_record::Outcome;

use crate::chart::ScaleLaw;
use crate::figure::Figure;
use crate::plot::{Axis, Layer, Marks, Numbers, Plot};
use crate::svg::Marker;
use kendall_analysis::{Interval, TrialView};
use kendall_stats::number::{NONE, significant, time};

const SIZE: (f64, f64) = (560.0, 230.0);
/// The table of intervals has no more rows.
const ROWS: usize = 20;
/// Threads that are drawn, besides server and generator.
const THREADS: usize = 2;
/// The lines of a plot, in the order in which they are named.
const LINES: [&str; 4] = ["formula model0", "formula model1", "formula model2", "formula model3"];
/// What became of requests without a right answer, and the marks for it.
const FAILURES: [(Outcome, Marker, &str); 4] = [
    (Outcome::Wrong, Marker::Diamond, "simulation model1"),
    (Outcome::Refused, Marker::Square, "simulation model0"),
    (Outcome::TimedOut, Marker::Triangle, "simulation model3"),
    (Outcome::Unanswered, Marker::Cross, "simulation model2"),
];

pub(super) fn figure(view: &TrialView, cores: Option<&Timeline>) -> Figure {
    let mut plots = vec![
        ("Requests per second".to_owned(), rates(view)),
        ("Requests in flight, and queued at the server".to_owned(), in_flight(view)),
        ("Response time, by when requests were due".to_owned(), responses(view)),
        ("How many took how long, by when they were due".to_owned(), heat(view)),
    ];
    let cores = cores.filter(|timeline| timeline.lines.first().is_some_and(|line| line.cpu_cores.len() > 2));
    plots.extend(cores.map(|timeline| ("Cores used".to_owned(), used(view, timeline))));
    let left_out = if view.left_out_s > 0.0 {
        " The shaded part is the warm-up, which all results exclude."
    } else {
        ""
    };
    Figure::of(
        "Along time",
        format!(
            "In intervals of {}. Response times are drawn where requests were due, so a stall shows where its cost began; sent and \
             completed requests are counted when they were sent and completed. The grey band spans the least and the most in flight. \
             An interval shows p90 from 10 requests on, p99 from 100 on, and the maximum always. Darker cells of the heat map have \
             more requests, by equal ratios; the rings are the {} slowest requests.{left_out}",
            time(view.interval_s),
            view.slowest.len(),
        ),
        plots,
        table(view),
    )
}

/// A number of each interval, at its middle.
fn along(view: &TrialView, of: impl Fn(&Interval, f64) -> Option<f64>) -> (Numbers, Numbers) {
    let point = |(at, interval): (usize, &Interval)| {
        let (from_s, to_s) = view.bounds_s(at);
        let value = of(interval, (to_s - from_s).max(f64::MIN_POSITIVE));
        (f64::midpoint(from_s, to_s), value.unwrap_or(f64::NAN))
    };
    let (x, y) = view.intervals.iter().enumerate().map(point).unzip();
    (Numbers(x), Numbers(y))
}

fn line(view: &TrialView, label: &str, class: &str, of: impl Fn(&Interval, f64) -> Option<f64>) -> Layer {
    let (x, y) = along(view, of);
    Layer::new(label, class, Marks::Line { x, y })
}

/// A plot along the time of the trial, over its warm-up.
fn plot_over_time(view: &TrialView, title: String, y: Axis, mut layers: Vec<Layer>) -> Plot {
    if view.left_out_s > 0.0 {
        let (to, note) = (view.left_out_s, "left out".to_owned());
        layers.insert(0, Layer::unnamed("overload", Marks::Area { from: 0.0, to, note }));
    }
    let x = Axis::times("time since the start", ScaleLaw::Linear, (0.0, view.length_s));
    Plot { title, x, y, layers, size: SIZE }
}

/// The largest number of lines and points, with some room above it.
fn top(layers: &[Layer]) -> f64 {
    let numbers = layers.iter().flat_map(|layer| match &layer.marks {
        Marks::Line { y, .. } | Marks::Points { y, .. } => y.0.as_slice(),
        Marks::Band { high, .. } => high.0.as_slice(),
        _ => &[],
    });
    let most = numbers.copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    if most > 0.0 { 1.08 * most } else { 1.0 }
}

fn rates(view: &TrialView) -> Plot {
    let mut layers = vec![
        line(view, "due", LINES[1], |one, span_s| Some(one.due() as f64 / span_s)),
        line(view, "sent", LINES[2], |one, span_s| Some(one.sent as f64 / span_s)),
        line(view, "completed", LINES[0], |one, span_s| Some(one.completed as f64 / span_s)),
    ];
    for (outcome, shape, class) in FAILURES {
        let (x, y) = along(view, |one, span_s| {
            let count = one.due[outcome as usize];
            (count > 0).then(|| count as f64 / span_s)
        });
        let points: Vec<(f64, f64)> = x.0.into_iter().zip(y.0).filter(|(_, rate)| rate.is_finite()).collect();
        if !points.is_empty() {
            layers.push(Layer::new(name(outcome), class, Marks::points(shape, points)));
        }
    }
    let y = Axis::numbers("requests [1/s]", ScaleLaw::Linear, (0.0, top(&layers)));
    plot_over_time(view, format!("Requests per second in trial {}", view.trial), y, layers)
}

fn in_flight(view: &TrialView) -> Plot {
    let (x, low) = along(view, |one, _| Some(one.in_flight.least));
    let (_, high) = along(view, |one, _| Some(one.in_flight.most));
    let mut layers = vec![
        Layer::new("in flight", "band", Marks::Band { x, low, high }),
        line(view, "in flight", "ecdf", |one, _| Some(one.in_flight.mean)),
    ];
    if view.intervals.iter().any(|one| one.queued.is_some()) {
        layers.push(line(view, "queued", LINES[1], |one, _| Some(one.queued?.mean)));
    }
    let y = Axis::numbers("requests", ScaleLaw::Linear, (0.0, top(&layers)));
    plot_over_time(view, format!("Requests in flight and queued in trial {}", view.trial), y, layers)
}

fn responses(view: &TrialView) -> Plot {
    let all = [
        line(view, "p50", LINES[0], |one, _| one.p50_s),
        line(view, "p90", LINES[1], |one, _| one.p90_s),
        line(view, "p99", LINES[2], |one, _| one.p99_s),
        line(view, "longest", LINES[3], |one, _| one.longest_s),
    ];
    let has_values = |layer: &Layer| matches!(&layer.marks, Marks::Line { y, .. } if y.0.iter().any(|value| value.is_finite()));
    let layers: Vec<Layer> = all.into_iter().filter(has_values).collect();
    let times = || {
        view.intervals
            .iter()
            .flat_map(|one| [one.p50_s, one.longest_s])
            .flatten()
            .filter(|time_s| *time_s > 0.0)
    };
    let (low, high) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let y = match high > 20.0 * low {
        true => Axis::times("response time", ScaleLaw::Log, (low / 1.15, high * 1.15)),
        false => Axis::times("response time", ScaleLaw::Linear, (0.0, top(&layers))),
    };
    plot_over_time(view, format!("Response times in trial {}", view.trial), y, layers)
}

fn heat(view: &TrialView) -> Plot {
    let numbers = |values: &[f64]| Numbers(values.to_vec());
    let mut layers = Vec::new();
    if !view.heat.counts.is_empty() {
        layers.push(Layer::new(
            "requests",
            "heat",
            Marks::Heat {
                x_edges: numbers(&view.heat.due_s),
                y_edges: numbers(&view.heat.response_s),
                counts: view.heat.counts.iter().map(|&count| count as f64).collect(),
            },
        ));
    }
    let slowest = view.slowest.iter().map(|one| (one.due_s, one.out_s));
    layers.push(Layer::new("slowest", "rising", Marks::points(Marker::Ring, slowest)));
    for (outcome, shape, class) in FAILURES {
        let failed = view.failed.iter().filter(|one| one.outcome == outcome && one.out_s > 0.0);
        let points: Vec<(f64, f64)> = failed.map(|one| (one.due_s, one.out_s)).collect();
        if !points.is_empty() {
            layers.push(Layer::new(name(outcome), class, Marks::points(shape, points)));
        }
    }
    let out = view.failed.iter().map(|one| one.out_s);
    let edges = view.heat.response_s.iter().copied();
    let (low, high) = edges
        .chain(out.filter(|out_s| *out_s > 0.0))
        .fold((f64::INFINITY, 0.0f64), |(low, high), time_s| (low.min(time_s), high.max(time_s)));
    let (low, high) = if low < high { (low, high) } else { (1e-3, 1.0) };
    let y = Axis::times("response time", ScaleLaw::Log, (low / 1.1, high * 1.1));
    plot_over_time(view, format!("Heat map of response times in trial {}", view.trial), y, layers)
}

fn used(view: &TrialView, timeline: &Timeline) -> Plot {
    let lines = |role: Role, whole: bool| {
        timeline.lines.iter().filter(move |line| line.role == role && line.thread.is_empty() == whole)
    };
    let whole = lines(Role::Server, true).chain(lines(Role::Generator, true));
    let named = whole.map(|line| (line.role.name().to_owned(), line));
    let threads = lines(Role::Server, false).take(THREADS);
    let named = named.chain(threads.map(|line| (format!("thread {}", line.thread), line)));
    let layer = |((label, line), class): ((String, &Line), &str)| {
        let middle = |(at, cores): (usize, &f64)| ((at as f64 + 0.5) * timeline.bin_s, *cores);
        Layer::new(label, class, Marks::line(line.cpu_cores.iter().enumerate().map(middle)))
    };
    let layers: Vec<Layer> = named.zip(LINES).map(layer).collect();
    let y = Axis::numbers("cores", ScaleLaw::Linear, (0.0, top(&layers)));
    plot_over_time(view, format!("Cores used in trial {}", view.trial), y, layers)
}

fn name(outcome: Outcome) -> String {
    outcome.name().replace('-', " ")
}

fn table(view: &TrialView) -> Table {
    let head = [
        "from",
        "due",
        "sent",
        "completed",
        "without a right answer",
        "in flight",
        "queued",
        "p50",
        "p90",
        "p99",
        "longest",
    ];
    let every = view.intervals.len().div_ceil(ROWS).max(1);
    let known = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), time);
    let row = |(at, one): (usize, &Interval)| {
        vec![
            time(view.bounds_s(at).0),
            one.due().to_string(),
            one.sent.to_string(),
            one.completed.to_string(),
            (one.due() - one.due[Outcome::Answered as usize]).to_string(),
            significant(one.in_flight.mean, 3),
            one.queued.map_or_else(|| NONE.to_owned(), |queued| significant(queued.mean, 3)),
            known(one.p50_s),
            known(one.p90_s),
            known(one.p99_s),
            known(one.longest_s),
        ]
    };
    let rows = view.intervals.iter().enumerate().step_by(every).map(row).collect();
    Table { head: head.map(str::to_owned).to_vec(), rows }
}
