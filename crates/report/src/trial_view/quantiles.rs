//! How many requests took how long, to the last quantile that the sample supports.

use crate::chart::ScaleLaw;
use crate::figure::Figure;
use crate::plot::{Axis, Layer, Marks, Plot};
use kendall_analysis::Table;
use kendall_analysis::TrialView;
use kendall_stats::number::time;

const SIZE: (f64, f64) = (560.0, 300.0);
/// Quantiles that stand in the table.
const SHOWN: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.99999),
];

/// `None` where there are too few answers for a median.
pub(super) fn figure(view: &TrialView) -> Option<Figure> {
    let (last, _) = *view.quantiles_s.last()?;
    let times = || view.quantiles_s.iter().map(|(_, time_s)| *time_s).filter(|time_s| *time_s > 0.0);
    let (low, high) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    // A tenfold range at least, or the axis has hardly a label.
    let range = if low <= high { ((low / 1.15).min(high / 10.0), high * 1.15) } else { (1e-3, 1.0) };
    let points = view.quantiles_s.iter().copied();
    let plot = Plot {
        title: format!("Response times by quantile in trial {}", view.trial),
        x: Axis::shares("share of the requests that took no longer", ScaleLaw::Tail, (0.0, last)),
        y: Axis::times("response time", ScaleLaw::Log, range),
        layers: vec![Layer::new("response time", "ecdf", Marks::line(points))],
        size: SIZE,
    };
    Some(Figure::of(
        "How many requests took how long",
        "After the warm-up. The further to the right, the fewer requests took longer: from one named quantile to the next it is a \
         tenth of them. The line ends at the last quantile that the sample supports with 95 % confidence.",
        vec![(String::new(), plot)],
        table(view),
    ))
}

fn table(view: &TrialView) -> Table {
    let at = |p: f64| view.quantiles_s.iter().find(|(known, _)| (known - p).abs() < 1e-9);
    let row = |(name, p): (&str, f64)| at(p).map(|(_, time_s)| vec![name.to_owned(), time(*time_s)]);
    let head = vec!["quantile".to_owned(), "response time".to_owned()];
    Table { head, rows: SHOWN.into_iter().filter_map(row).collect() }
}
