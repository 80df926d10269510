//! Service times and gaps against their laws, quantile by quantile, and how unevenly requests come.

use crate::chart::ScaleLaw;
use crate::figure::Figure;
use crate::plot::{Axis, Layer, Marks, Numbers, Plot, Which};
use crate::svg::Marker;
use kendall_analysis::Table;
use kendall_analysis::{AgainstLaw, TrialView};
use kendall_stats::number::{significant, time};

const SIZE: (f64, f64) = (370.0, 330.0);

/// `None` where there is nothing of it.
pub(super) fn figure(view: &TrialView) -> Option<Figure> {
    let mut plots = Vec::new();
    plots.extend(
        view.service
            .as_ref()
            .map(|against| (format!("Service times: {}", against.law), quantiles(against, "service times"))),
    );
    plots.extend(view.gaps.as_ref().map(|against| {
        (format!("Gaps between sends: {}", against.law), quantiles(against, "gaps between sends"))
    }));
    if !view.dispersion.is_empty() {
        plots.push(("Dispersion of sends".to_owned(), dispersion(view)));
    }
    (!plots.is_empty()).then(|| {
        Figure::of(
            "Distributions of service times and gaps",
            "Each dot is a measured quantile against the same quantile of a distribution: the closest one for service times, the \
             requested one for gaps. On the dashed diagonal both are equal; the grey band holds 95 % of the samples of this size from \
             that distribution, at each quantile separately. Of many quantiles some are drawn, and the extremes always. Dispersion is \
             the variance ÷ mean of the number of requests in spans of a length: 1 at every length for a Poisson stream, below 1 for \
             more even arrivals, above 1 for bursts.",
            plots,
            table(view),
        )
    })
}

fn quantiles(against: &AgainstLaw, what: &str) -> Plot {
    let most = against
        .pairs_s
        .iter()
        .map(|pair| pair.0.max(pair.1))
        .filter(|time_s| time_s.is_finite())
        .fold(0.0, f64::max);
    let range = (0.0, if most > 0.0 { 1.05 * most } else { 1.0 });
    let bands = || against.expected_s.iter();
    let layers = vec![
        Layer::new(
            "95 % of samples",
            "band",
            Marks::Band {
                x: bands().map(|band| band.0).collect(),
                low: bands().map(|band| band.1.0).collect(),
                high: bands().map(|band| band.1.1).collect(),
            },
        ),
        Layer::new("equal", "diagonal", Marks::line([(0.0, 0.0), (range.1, range.1)])),
        Layer::new("measured", "replayed", Marks::points(Marker::Dot, against.pairs_s.iter().copied())),
    ];
    Plot {
        title: format!("Quantiles of {what} against the distribution: {}", against.law),
        x: Axis::times("by the law", ScaleLaw::Linear, range),
        y: Axis::times("measured", ScaleLaw::Linear, range),
        layers,
        size: SIZE,
    }
}

fn dispersion(view: &TrialView) -> Plot {
    let all = || view.dispersion.iter();
    let numbers = |of: fn(&kendall_analysis::Dispersion) -> f64| all().map(of).collect::<Numbers>();
    let most = all().map(|one| one.index.max(one.poisson.1)).fold(1.0, f64::max);
    let mut layers = vec![
        Layer::new(
            "95 % of Poisson streams",
            "band",
            Marks::Band {
                x: numbers(|one| one.span_s),
                low: numbers(|one| one.poisson.0),
                high: numbers(|one| one.poisson.1),
            },
        ),
        Layer::new(
            "measured",
            "measured",
            Marks::points(Marker::Disc, all().map(|one| (one.span_s, one.index))),
        ),
    ];
    let scv = view.gaps.as_ref().map_or(1.0, |gaps| gaps.law_scv);
    if scv.is_finite() {
        let note = if (scv - 1.0).abs() < 1e-9 {
            "Poisson".to_owned()
        } else {
            format!("requested: tends to {}", significant(scv, 2))
        };
        layers.push(Layer::unnamed("diagonal", Marks::Rule { axis: Which::Y, at: scv, note }));
    }
    let ends = (view.dispersion[0].span_s, view.dispersion[view.dispersion.len() - 1].span_s);
    Plot {
        title: format!("Index of dispersion of sends in trial {}", view.trial),
        x: Axis::times("length of the spans", ScaleLaw::Log, (ends.0 / 1.5, ends.1 * 1.5)),
        y: Axis::numbers("variance ÷ mean of counts", ScaleLaw::Linear, (0.0, 1.1 * most.max(scv))),
        layers,
        size: SIZE,
    }
}

fn table(view: &TrialView) -> Table {
    let mut rows = Vec::new();
    for (what, against) in [("service times", &view.service), ("gaps between sends", &view.gaps)] {
        let Some(against) = against else { continue };
        rows.push(vec![
            format!("{what}: squared coefficient of variation of {}", against.n),
            significant(against.scv, 3),
            significant(against.law_scv, 3),
        ]);
    }
    for one in &view.dispersion {
        let (low, high) = one.poisson;
        rows.push(vec![
            format!("dispersion in {} spans of {}", one.spans, time(one.span_s)),
            significant(one.index, 3),
            format!("{} to {}", significant(low, 3), significant(high, 3)),
        ]);
    }
    let head = ["what", "measured", "of the distribution; of 95 % of Poisson streams"];
    Table { head: head.map(str::to_owned).to_vec(), rows }
}
