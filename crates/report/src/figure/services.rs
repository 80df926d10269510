//! How long requests were in service, and the laws that the models take for it.

use super::Figure;
use super::models::line_class;
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Numbers, Plot};
use kendall_analysis::Table;
use kendall_analysis::{Point, Report, ServiceSpread};
use kendall_stats::number::{percent, time};

const SIZE: (f64, f64) = (360.0, 250.0);

/// Histograms of service times with the laws of the models over them, a panel for each point.
pub fn services(report: &Report) -> Option<Figure> {
    let spreads = || {
        report
            .points
            .iter()
            .filter_map(|point| Some((point, point.spread.as_ref().filter(|spread| spread.is_whole())?)))
    };
    let laws = laws(report);
    let panel =
        |(point, spread): (&Point, &ServiceSpread)| (report.place(point), plot(report, point, spread, &laws));
    let plots: Vec<(String, Plot)> = spreads().map(panel).collect();
    (!plots.is_empty()).then(|| {
        Figure::of(
            "Service times and the distributions of the models",
            "Bars count the service times that the server stamped, waiting excluded. A line shows the count that each distribution \
             expects in the same intervals, with the measured mean and, where it has a parameter for it, the measured variation. The \
             slowest 0.5 % lie beyond the right end.",
            plots,
            table(report, spreads()),
        )
    })
}

/// The laws in the order in which they first appear.
fn laws(report: &Report) -> Vec<String> {
    let mut laws: Vec<String> = Vec::new();
    for law in report.points.iter().filter_map(|point| point.spread.as_ref()).flat_map(|spread| &spread.laws)
    {
        if !laws.contains(&law.0) {
            laws.push(law.0.clone());
        }
    }
    laws
}

fn plot(report: &Report, point: &Point, spread: &ServiceSpread, laws: &[String]) -> Plot {
    let ServiceSpread { edges_s, shares, laws: expected } = spread;
    let (from, to) = (edges_s[..edges_s.len() - 1].iter(), edges_s[1..].iter());
    let middles: Vec<f64> =
        from.clone().zip(to.clone()).map(|(from, to)| f64::midpoint(*from, *to)).collect();
    let bars =
        Marks::Bars { from: from.copied().collect(), to: to.copied().collect(), y: Numbers(shares.clone()) };
    let mut layers = vec![Layer::new("measured", "bars", bars)];
    for (name, expected) in expected {
        let style = laws.iter().position(|law| law == name).unwrap_or_default();
        let line = Marks::line(middles.iter().copied().zip(expected.iter().copied()));
        layers.push(Layer::new(name.clone(), line_class(style), line));
    }
    let most =
        shares.iter().chain(expected.iter().flat_map(|(_, shares)| shares)).copied().fold(0.0, f64::max);
    Plot {
        title: format!("Service times at {}", report.place(point)),
        x: Axis::times("service time", ScaleLaw::Linear, (0.0, edges_s[edges_s.len() - 1])),
        y: Axis::shares("requests", ScaleLaw::Linear, (0.0, 1.1 * most)),
        layers,
        size: SIZE,
    }
}

fn table<'a>(report: &Report, spreads: impl Iterator<Item = (&'a Point, &'a ServiceSpread)>) -> Table {
    let laws = laws(report);
    let mut head = report.place_head();
    head.extend(["from", "to", "measured"].map(str::to_owned));
    head.extend(laws.iter().cloned());
    let rows = spreads.flat_map(|(point, spread)| {
        let laws = &laws;
        (0..spread.shares.len()).map(move |bin| {
            let mut row = report.place_cells(point);
            row.extend([
                time(spread.edges_s[bin]),
                time(spread.edges_s[bin + 1]),
                percent(spread.shares[bin]),
            ]);
            let of = |name: &String| {
                let own = spread.laws.iter().find(|(own, _)| own == name);
                own.map_or_else(String::new, |(_, shares)| percent(shares[bin]))
            };
            row.extend(laws.iter().map(of));
            row
        })
    });
    Table { head, rows: rows.collect() }
}
