//! Cores used over time in one trial, by thread, and threads that waited for one.

use kendall_probe::{Line, Role, Summary};

use super::{Figure, Panel, Table, key};
use crate::chart::{Frame, Quantity, Scale, ScaleLaw};
use crate::number::significant;
use crate::svg::Svg;

const SIZE: (f64, f64) = (560.0, 250.0);
/// Lines that the styles tell apart.
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
    let legend = (0..MOST_LINES.min(threads.len()))
        .map(|style| key(format!("thread {}", threads[style].0), |svg| draw_key(svg, style)))
        .collect();
    let cpu = |line: &Line| line.cpu_cores.clone();
    let waiting = |line: &Line| line.waiting_threads.clone();
    let panel = |title: &str, lines: &[(String, &Line)], of: &dyn Fn(&Line) -> Vec<f64>| Panel {
        title: title.to_owned(),
        svg: draw(title, lines, of, timeline.bin_s),
    };
    Some(Figure {
        title,
        caption: "The mean over each interval. On the left the server's busiest threads; on the right the threads of the \
                  server and of the generator (dashed) that were ready to run and had no core."
            .to_owned(),
        legend,
        panels: vec![
            panel("Cores used by thread of the server", &threads, &cpu),
            panel("Threads that waited for a core: server, generator", &whole, &waiting),
        ],
        table: table(&whole, &threads, timeline.bin_s),
    })
}

fn draw_key(svg: &mut Svg, style: usize) {
    svg.line(&super::line_class(style), (1.0, 8.0), (33.0, 8.0));
}

fn draw(title: &str, lines: &[(String, &Line)], of: &dyn Fn(&Line) -> Vec<f64>, bin_s: f64) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1, title);
    let values: Vec<Vec<f64>> = lines.iter().map(|(_, line)| of(line)).collect();
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let bins = values.first().map_or(1, Vec::len);
    let frame = Frame {
        x: Scale::new(ScaleLaw::Linear, (0.0, bins as f64 * bin_s), (62.0, SIZE.0 - 14.0)),
        y: Scale::new(ScaleLaw::Linear, (0.0, (1.1 * most).max(0.1)), (SIZE.1 - 48.0, 30.0)),
    };
    let (across, upwards) = (frame.x.ticks(Quantity::Number), frame.y.ticks(Quantity::Number));
    frame.draw_axes(&mut svg, &across, &upwards, ("time [s]", ""));
    for (style, values) in values.iter().enumerate() {
        let point = |(bin, value): (usize, &f64)| frame.at((bin as f64 + 0.5) * bin_s, *value);
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(point).collect();
        svg.polyline(&super::line_class(style), &points);
    }
    svg.finish()
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
