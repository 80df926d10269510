//! Agreement of predictions with measurements, and the assumption on service times that a measurement
//! contradicts.

use kendall_station::{Answer, Estimate, Kind};

use crate::finding::reason::{AssumedLaw, PredictedBy, Reason};
use crate::report::point::{Modelled, ServiceSeen};

/// A prediction this near the measurement serves for planning, however narrow the interval is.
const NEAR: f64 = 0.05;
/// An interval wider than this to either side is too wide to distinguish models.
pub(super) const WIDE: f64 = 0.25;
/// A squared coefficient of variation is called different when it is this far off.
const SCV_OFF: f64 = 0.2;

/// What a comparison of one prediction with the measurement says.
pub(super) enum Agreement {
    Agrees,
    Misses,
    CannotTell,
}

/// Compares means. They agree where their intervals meet, or within [`NEAR`].
pub(super) fn compare(measured: Estimate, predicted: Estimate) -> Agreement {
    if (predicted.value / measured.value - 1.0).abs() <= NEAR {
        return Agreement::Agrees;
    }
    let Some((low, high)) = measured.interval else { return Agreement::CannotTell };
    let (least, most) = predicted.interval.unwrap_or((predicted.value, predicted.value));
    match least <= high && most >= low {
        false => Agreement::Misses,
        true if measured.half_width() > WIDE * measured.value => Agreement::CannotTell,
        true => Agreement::Agrees,
    }
}

/// The answers that a model has, and whence.
pub(super) fn answers(model: &Modelled) -> impl Iterator<Item = (PredictedBy, &Answer)> {
    let ways = [(PredictedBy::Formula, &model.formula), (PredictedBy::Simulation, &model.simulation)];
    ways.into_iter().filter_map(|(way, modelling)| Some((way, modelling.answer()?)))
}

/// The assumption on service times that the measurement contradicts, if it does.
pub(super) fn reason(notation: &str, seen: ServiceSeen) -> Option<Reason> {
    // Letters for a population or a capacity that varies make no notation.
    let service = notation.split('/').nth(1)?;
    let (assumed, assumed_scv) = match service.parse::<Kind>().ok()? {
        Kind::Exponential => (AssumedLaw::Exponential, 1.0),
        Kind::Constant => (AssumedLaw::Constant, 0.0),
        Kind::Erlang(stages) => (AssumedLaw::Erlang, 1.0 / f64::from(stages)),
        _ => return None,
    };
    let off = (seen.scv - assumed_scv).abs() > SCV_OFF * assumed_scv.max(SCV_OFF);
    off.then_some(Reason::ServiceVariation { assumed, assumed_scv, seen_scv: seen.scv })
}
