//! Figures of the traffic over links: goodput stacked along time, queue delay along time, delay against goodput, and the share of each
//! flow with every other.

mod matrix;

use kendall_analysis::Table;
use kendall_analysis::traffic::{Cloud, Ellipse, Goodput, HopQueue};
use kendall_stats::number::{NONE, significant, time};

use super::Figure;
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Numbers, Plot};
use crate::svg::Marker;

pub use matrix::matrix;

const SIZE: (f64, f64) = (420.0, 250.0);
/// The size of a panel that is alone.
const WIDE: (f64, f64) = (860.0, 300.0);
/// A way on which packets wait for less than this share of the longest wait has no line.
const SEEN: f64 = 0.01;
const CLOUD: (f64, f64) = (560.0, 380.0);
/// The table of a series has no more rows of each panel.
const ROWS: usize = 20;
/// Colours of kinds; beyond them a paler one with a dashed outline is of the next kinds.
const COLOURS: usize = 4;
const KINDS: usize = 2 * COLOURS;
const MARKERS: [Marker; 5] = [Marker::Disc, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];
/// Corners of half an ellipse.
const CORNERS: usize = 48;

/// A panel along time: its title, and when the measured span begins.
#[derive(Clone, Debug)]
pub struct Along<'a, T: ?Sized> {
    /// The title that distinguishes the panel; empty for a single one.
    pub title: String,
    /// The end of the shaded part; 0 for none.
    pub measured_from_s: f64,
    /// The data of the panel.
    pub data: &'a T,
}

/// The kinds that panels have, in the order of their first appearance: their places choose their colours.
fn order<'a>(kinds: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = Vec::new();
    for kind in kinds {
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    known
}

fn place(kinds: &[&str], kind: &str) -> usize {
    kinds.iter().position(|one| *one == kind).unwrap_or(0) % KINDS
}

fn megabits(bytes_per_s: f64) -> f64 {
    bytes_per_s * 8.0 / 1e6
}

/// Goodput of each flow along time, one stacked on the other; `None` where nothing arrived in any panel. `what` is the title of the
/// axis without its unit: "goodput".
pub fn goodput(title: &str, what: &str, caption: &str, panels: &[Along<'_, Goodput>]) -> Option<Figure> {
    let panels: Vec<&Along<'_, Goodput>> = panels.iter().filter(|panel| panel.data.has_any()).collect();
    let kinds = order(panels.iter().flat_map(|panel| &panel.data.flows).map(|flow| flow.kind.as_str()));
    let mut plots: Vec<(String, Plot)> =
        panels.iter().map(|panel| (panel.title.clone(), stacked(title, what, panel, &kinds))).collect();
    let head = ["run", "from", "until", "flow"].map(str::to_owned).into_iter();
    let table = Table {
        head: head.chain([format!("{what} [Mbit/s]")]).collect(),
        rows: panels.iter().flat_map(|panel| goodput_rows(panel)).collect(),
    };
    widen(&mut plots);
    (!plots.is_empty()).then(|| Figure::of(title, caption, plots, table))
}

fn stacked(title: &str, what: &str, panel: &Along<'_, Goodput>, kinds: &[&str]) -> Plot {
    let Goodput { edges_s, flows } = panel.data;
    let middles = || edges_s.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
    let mut below = vec![0.0; edges_s.len().saturating_sub(1)];
    let mut layers = Vec::new();
    for flow in flows {
        let low = below.clone();
        for (sum, rate) in below.iter_mut().zip(&flow.bytes_per_s) {
            *sum += megabits(*rate);
        }
        let class = format!("kind{} stack", place(kinds, &flow.kind));
        let marks = Marks::Band { x: middles().collect(), low: Numbers(low), high: Numbers(below.clone()) };
        layers.push(Layer::new(&*flow.kind, class, marks));
    }
    let most = below.iter().copied().filter(|rate| rate.is_finite()).fold(0.0, f64::max);
    let y = Axis::numbers(format!("{what} [Mbit/s]"), ScaleLaw::Linear, (0.0, 1.08 * most));
    along_time(described(title, &panel.title), panel.measured_from_s, y, last(edges_s), layers)
}

fn last(numbers: &[f64]) -> f64 {
    numbers.last().copied().unwrap_or(1.0)
}

fn described(title: &str, panel: &str) -> String {
    if panel.is_empty() { title.to_owned() } else { format!("{title}: {panel}") }
}

/// Gives a panel that is alone the width of the page.
fn widen(plots: &mut [(String, Plot)]) {
    if let [(_, only)] = plots {
        only.size = WIDE;
    }
}

fn along_time(title: String, measured_from_s: f64, y: Axis, to_s: f64, mut layers: Vec<Layer>) -> Plot {
    if measured_from_s > 0.0 {
        let area = Marks::Area { from: 0.0, to: measured_from_s, note: String::new() };
        layers.insert(0, Layer::unnamed("overload", area));
    }
    let x = Axis::times("time", ScaleLaw::Linear, (0.0, to_s.max(f64::MIN_POSITIVE)));
    Plot { title, x, y, layers, size: SIZE }
}

/// Each flow's mean over at most [`ROWS`] spans.
fn goodput_rows(panel: &Along<'_, Goodput>) -> Vec<Vec<String>> {
    let Goodput { edges_s, flows } = panel.data;
    let every = edges_s.len().saturating_sub(1).div_ceil(ROWS).max(1);
    let mut rows = Vec::new();
    for from in (0..edges_s.len().saturating_sub(1)).step_by(every) {
        let to = (from + every).min(edges_s.len() - 1);
        for (number, flow) in (1..).zip(flows) {
            let bytes = |at: usize| flow.bytes_per_s[at] * (edges_s[at + 1] - edges_s[at]);
            let mean = (from..to).map(bytes).sum::<f64>() / (edges_s[to] - edges_s[from]);
            rows.push(vec![
                panel.title.clone(),
                time(edges_s[from]),
                time(edges_s[to]),
                format!("{number} {}", flow.kind),
                significant(megabits(mean), 3),
            ]);
        }
    }
    rows
}

/// The wait in each queue along time, a panel for each hop of each run; `None` where no packet left a queue.
pub fn queues(panels: &[Along<'_, [HopQueue]>]) -> Option<Figure> {
    const TITLE: &str = "Queue delay along time";
    let mut plots = Vec::new();
    let mut rows = Vec::new();
    for Along { title, measured_from_s, data } in panels {
        let hops = data.iter().map(|queue| queue.hop).max().unwrap_or(0);
        for hop in 1..=hops {
            // On the way back, packets cross the links in reverse.
            let link = |queue: &HopQueue| if queue.way == "up" { hops + 1 - queue.hop } else { queue.hop };
            let own: Vec<&HopQueue> = data.iter().filter(|queue| link(queue) == hop).collect();
            let name = if hops > 1 { format!("hop {hop}") } else { String::new() };
            let words: Vec<&str> =
                [title.as_str(), &name].into_iter().filter(|word| !word.is_empty()).collect();
            let panel = words.join(", ");
            rows.extend(own.iter().flat_map(|queue| queue_rows(&panel, queue)));
            plots.push((panel.clone(), waits(described(TITLE, &panel), *measured_from_s, &own)));
        }
    }
    let head = ["run and hop", "way", "from the start", "mean", "longest"];
    let table = Table { head: head.map(str::to_owned).to_vec(), rows };
    let caption = "The queueing delay of the packets that left a queue of the link: mean and maximum, in intervals of 0.1 s or more. \
                   Where no packet left the queue, the line is interrupted. A direction whose delays stay below 1 % of the longest has \
                   no line. The shaded part is the warm-up. Hops are numbered from the server to the client.";
    widen(&mut plots);
    (!plots.is_empty()).then(|| Figure::of(TITLE, caption, plots, table))
}

fn waits(title: String, measured_from_s: f64, queues: &[&HopQueue]) -> Plot {
    let most = |queue: &HopQueue| queue.max_s.iter().flatten().copied().fold(0.0, f64::max);
    let highest = queues.iter().map(|queue| most(queue)).fold(0.0, f64::max);
    let mut layers = Vec::new();
    for queue in queues {
        if most(queue) < SEEN * highest {
            continue;
        }
        let (words, mean, longest) = match queue.way.as_str() {
            "down" => ("to the client", "formula model0", "kind0 spread"),
            _ => ("to the server", "formula model1", "kind1 spread"),
        };
        let of = |values: &[Option<f64>]| -> Numbers {
            values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
        };
        for (low, high) in runs(queue) {
            let cut = |values: &[f64]| Numbers(values[low..high].to_vec());
            let (low, high) = (cut(&of(&queue.mean_s).0), cut(&of(&queue.max_s).0));
            let x = cut(&queue.at_s);
            layers.push(Layer::new(
                format!("{words}, up to the longest"),
                longest,
                Marks::Band { x, low, high },
            ));
        }
        let x = Numbers(queue.at_s.clone());
        layers.push(Layer::new(format!("{words}, mean"), mean, Marks::Line { x, y: of(&queue.mean_s) }));
    }
    let to_s = queues.iter().map(|queue| last(&queue.at_s)).fold(0.0, f64::max);
    let y = Axis::times(
        "queue delay",
        ScaleLaw::Linear,
        (0.0, if highest > 0.0 { 1.08 * highest } else { 1e-3 }),
    );
    along_time(title, measured_from_s, y, to_s, layers)
}

/// The spans of a queue without an empty interval, by places.
fn runs(queue: &HopQueue) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut from = 0;
    for run in queue.mean_s.chunk_by(|a, b| a.is_some() == b.is_some()) {
        if run[0].is_some() && run.len() > 1 {
            spans.push((from, from + run.len()));
        }
        from += run.len();
    }
    spans
}

fn queue_rows(panel: &str, queue: &HopQueue) -> Vec<Vec<String>> {
    let known = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), time);
    let every = queue.at_s.len().div_ceil(ROWS).max(1);
    let row = |at: usize| {
        let way = if queue.way == "down" { "to the client" } else { "to the server" };
        let cells = [panel.to_owned(), way.to_owned(), time(queue.at_s[at])];
        cells.into_iter().chain([known(queue.mean_s[at]), known(queue.max_s[at])]).collect()
    };
    (0..queue.at_s.len()).step_by(every).map(row).collect()
}

/// Delay in queues against goodput, a cloud for each kind with its ellipse; `None` where no cloud has one. Panels have a title, and
/// clouds that are called after their kinds. A point is of `whose`: "one flow".
pub fn clouds(what: &str, whose: &str, panels: &[(String, Vec<Cloud>)]) -> Option<Figure> {
    const TITLE: &str = "Delay against goodput";
    let with_ellipse = |cloud: &&Cloud| cloud.ellipse().is_some();
    let kinds = order(panels.iter().flat_map(|(_, clouds)| clouds).map(|cloud| cloud.kind.as_str()));
    let (mut plots, mut rows) = (Vec::new(), Vec::new());
    for (panel, clouds) in panels {
        let shown: Vec<&Cloud> = clouds.iter().filter(with_ellipse).collect();
        if shown.is_empty() {
            continue;
        }
        rows.extend(shown.iter().filter_map(|cloud| cloud_row(panel, cloud)));
        plots.push((panel.clone(), cloud_plot(described(TITLE, panel), what, &shown, &kinds)));
    }
    let head = [
        "",
        "kind",
        "points",
        "mean delay",
        "its deviation",
        "mean [Mbit/s]",
        "its deviation",
        "correlation",
    ];
    let caption = format!(
        "Each point is {whose} in one interval of 0.1 to 1 s: the mean delay of its packets in all queues on their path, and its \
         {what}. The marker is the mean of a kind, the ellipse the one-sigma contour of the normal law that fits its points best, \
         after Winstein and Balakrishnan, “TCP ex Machina” (SIGCOMM 2013). The best place is at the top left: high {what}, no delay. A \
         narrow ellipse is a kind with steady behaviour."
    );
    let table = Table { head: head.map(str::to_owned).to_vec(), rows };
    (!plots.is_empty()).then(|| Figure::of(TITLE, caption, plots, table))
}

fn cloud_plot(title: String, what: &str, clouds: &[&Cloud], kinds: &[&str]) -> Plot {
    let (mut layers, mut far) = (Vec::new(), (0.0f64, 0.0f64));
    for cloud in clouds {
        let Some(ellipse) = cloud.ellipse() else { continue };
        let at = place(kinds, &cloud.kind);
        let stroke = format!("model{}{}", at % COLOURS, if at < COLOURS { "" } else { " second" });
        let points = || cloud.points.iter().map(|(delay_s, rate)| (*delay_s, megabits(*rate)));
        for (delay_s, rate) in points() {
            far = (far.0.max(delay_s), far.1.max(rate));
        }
        far = (
            far.0.max(ellipse.mean.0 + ellipse.deviation.0),
            far.1.max(megabits(ellipse.mean.1 + ellipse.deviation.1)),
        );
        let kind = cloud.kind.as_str();
        layers.push(Layer::new(kind, format!("cloud kind{at} {stroke}"), contour(&ellipse)));
        layers.push(Layer::new(kind, format!("spot {stroke}"), Marks::points(Marker::Dot, points())));
        let mean = (ellipse.mean.0, megabits(ellipse.mean.1));
        let shape = MARKERS[at % MARKERS.len()];
        layers.push(Layer::new(kind, format!("centre kind{at} {stroke}"), Marks::points(shape, [mean])));
    }
    // Ellipses lie under points, and means on top.
    layers.sort_by_key(|layer| {
        ["cloud", "spot", "centre"].iter().position(|class| layer.class.starts_with(class))
    });
    let room = |most: f64, none: f64| if most > 0.0 { 1.08 * most } else { none };
    let x = Axis::times("mean wait in the queues", ScaleLaw::Linear, (0.0, room(far.0, 1e-3)));
    let y = Axis::numbers(format!("{what} [Mbit/s]"), ScaleLaw::Linear, (0.0, room(far.1, 1.0)));
    Plot { title, x, y, layers, size: CLOUD }
}

/// The one-sigma contour: its upper and its lower half over the delay.
fn contour(ellipse: &Ellipse) -> Marks {
    let Ellipse { mean, deviation, correlation } = *ellipse;
    let spread = deviation.1 * (1.0 - correlation * correlation).max(0.0).sqrt();
    // Corners are near to each other where the contour turns.
    let turns = || (0..=CORNERS).map(|at| -(std::f64::consts::PI * at as f64 / CORNERS as f64).cos());
    let edge = |sign: f64| {
        let y = move |z: f64| {
            mean.1 + correlation * deviation.1 * z + sign * spread * (1.0 - z * z).max(0.0).sqrt()
        };
        turns().map(|z| megabits(y(z))).collect()
    };
    Marks::Band { x: turns().map(|z| mean.0 + deviation.0 * z).collect(), low: edge(-1.0), high: edge(1.0) }
}

fn cloud_row(panel: &str, cloud: &Cloud) -> Option<Vec<String>> {
    let Ellipse { mean, deviation, correlation } = cloud.ellipse()?;
    let rate = |rate: f64| significant(megabits(rate), 3);
    let words = [panel.to_owned(), cloud.kind.clone(), cloud.points.len().to_string()];
    let numbers =
        [time(mean.0), time(deviation.0), rate(mean.1), rate(deviation.1), significant(correlation, 2)];
    Some(words.into_iter().chain(numbers).collect())
}
