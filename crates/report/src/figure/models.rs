//! How models differ in every figure: by dash and shape, and by colour besides.

use kendall_analysis::{Point, PredictedBy, Report};
use kendall_station::Answer;

use crate::plot::{Layer, Marks};
use crate::svg::Marker;

/// The styles by which models differ; a fifth model starts again.
const STYLES: usize = 4;

/// The marker of a model's simulation.
pub(super) fn shape(model: usize) -> Marker {
    [Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross][model % STYLES]
}

/// The class of a model's formula line.
pub(super) fn line_class(model: usize) -> String {
    format!("formula model{}", model % STYLES)
}

/// The class of a model's simulation markers.
pub(super) fn marker_class(model: usize) -> String {
    format!("simulation model{}", model % STYLES)
}

/// The layers of all models: formulas as lines, then simulations as hollow markers. `points` says where; a way that says
/// nothing has no layer.
pub(super) fn model_layers(
    report: &Report,
    points: impl Fn(&str, PredictedBy) -> Vec<(f64, f64)>,
) -> Vec<Layer> {
    let mut layers = Vec::new();
    for way in [PredictedBy::Formula, PredictedBy::Simulation] {
        for (model, notation) in report.notations().into_iter().enumerate() {
            let points = points(notation, way);
            if points.is_empty() {
                continue;
            }
            let (class, marks) = match way {
                PredictedBy::Formula => (line_class(model), Marks::line(points)),
                PredictedBy::Simulation => (marker_class(model), Marks::points(shape(model), points)),
            };
            layers.push(Layer::new(format!("{notation} {way}"), class, marks));
        }
    }
    layers
}

/// What one way of one model says at a point.
pub(super) fn answer<'a>(point: &'a Point, notation: &str, way: PredictedBy) -> Option<&'a Answer> {
    let model = point.model(notation)?;
    match way {
        PredictedBy::Formula => model.formula.answer(),
        PredictedBy::Simulation => model.simulation.answer(),
    }
}
