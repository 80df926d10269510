//! Cores used over time in one trial, by thread, and threads that waited for one.

use kendall_analysis::Table;
use kendall_probe::{Line, Role, Summary};

use super::Figure;
use super::models::line_class;
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot};
use kendall_stats::number::significant;

const SIZE: (f64, f64) = (560.0, 250.0);
/// The number of lines that the styles distinguish.
const MOST_LINES: usize = 4;

/// Cores used by server and generator over time, and by the server's busiest threads. `None` where there is no time to
/// speak of.
pub(crate) fn cores(summary: &Summary, title: String) -> Option<Figure> {
    let timeline = &summary.timeline;
    let bins = timeline.lines.first()?.cpu_cores.len();
    if bins < 3 {
        return None;
    }
    let of = |role: Role, whole: bool| {
        timeline.lines.iter().filter(move |line| line.role == role && line.thread.is_empty() == whole)
    };
    let whole: Vec<(String, &Line)> = [Role::Server, Role::Generator]
        .into_iter()
        .flat_map(|role| of(role, true).map(move |line| (role.name().to_owned(), line)))
        .collect();
    let threads: Vec<(String, &Line)> =
        of(Role::Server, false).take(MOST_LINES).map(|line| (line.thread.clone(), line)).collect();
    let cpu = threads.iter().map(|(name, line)| (format!("thread {name}"), line.cpu_cores.as_slice()));
    let waiting =
        whole.iter().map(|(name, line)| (format!("{name} waiting"), line.waiting_threads.as_slice()));
    let plots = [
        ("Cores used by thread of the server", plot("cores", cpu.collect(), timeline.bin_s)),
        ("Threads that waited for a core", plot("threads", waiting.collect(), timeline.bin_s)),
    ];
    Some(Figure::of(
        title,
        "The mean over each interval. On the left the server's busiest threads; on the right the threads of the server and of the \
         generator that were ready to run but had no core.",
        plots.map(|(title, plot)| (title.to_owned(), Plot { title: title.to_owned(), ..plot })).into(),
        table(&whole, &threads, timeline.bin_s),
    ))
}

/// Lines over time, each with the name that the legend gives it.
fn plot(upwards: &str, lines: Vec<(String, &[f64])>, bin_s: f64) -> Plot {
    let most = lines.iter().flat_map(|(_, values)| values.iter().copied()).fold(0.0, f64::max);
    let bins = lines.first().map_or(1, |(_, values)| values.len());
    let layer = |(style, (label, values)): (usize, (String, &[f64]))| {
        let at = |(bin, value): (usize, &f64)| ((bin as f64 + 0.5) * bin_s, *value);
        Layer::new(label, line_class(style), Marks::line(values.iter().enumerate().map(at)))
    };
    Plot {
        title: String::new(),
        x: Axis::numbers("time [s]", ScaleLaw::Linear, (0.0, bins as f64 * bin_s)),
        y: Axis::numbers(upwards, ScaleLaw::Linear, (0.0, (1.1 * most).max(0.1))),
        layers: lines.into_iter().enumerate().map(layer).collect(),
        size: SIZE,
    }
}

fn table(whole: &[(String, &Line)], threads: &[(String, &Line)], bin_s: f64) -> Table {
    let mut head = vec!["time [s]".to_owned()];
    head.extend(whole.iter().map(|(name, _)| format!("{name} [cores]")));
    head.extend(whole.iter().map(|(name, _)| format!("{name} waiting [threads]")));
    head.extend(threads.iter().map(|(name, _)| format!("{name} [cores]")));
    let bins = whole.first().map_or(0, |(_, line)| line.cpu_cores.len());
    let cell = |value: f64| significant(value, 2);
    let row = |bin: usize| {
        let mut row = vec![significant((bin as f64 + 0.5) * bin_s, 3)];
        row.extend(whole.iter().map(|(_, line)| cell(line.cpu_cores[bin])));
        row.extend(whole.iter().map(|(_, line)| cell(line.waiting_threads[bin])));
        row.extend(threads.iter().map(|(_, line)| cell(line.cpu_cores[bin])));
        row
    };
    Table { head, rows: (0..bins).map(row).collect() }
}
