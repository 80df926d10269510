//! Which curve to believe: the one that predicts the loads it was not shown.

use std::fmt;

use super::{Amdahl, FitError, Point, Usl, fit_amdahl, fit_usl};
use crate::closed::{self, ClosedFit, ClosedShape};

/// What a curve may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// The universal scalability law.
    Usl,
    /// Amdahl's law.
    Amdahl,
    /// A closed network.
    Closed(ClosedShape),
}

/// A fitted curve.
#[derive(Clone, Debug, PartialEq)]
pub enum Fitted {
    /// The universal scalability law.
    Usl(Usl),
    /// Amdahl's law.
    Amdahl(Amdahl),
    /// A closed network.
    Closed(ClosedFit),
}

/// A curve, and how well it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The curve through all points.
    pub fitted: Fitted,
    /// How it predicts the largest loads from the smaller ones; `None` if those are too few to fit it.
    pub held_out: Option<HeldOut>,
}

/// How a curve through the smaller loads predicts the larger ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// The largest load that was shown.
    pub shown_up_to: f64,
    /// How many points were not.
    pub points: usize,
    /// The mean over those of |prediction/measurement − 1|.
    pub mean_error: f64,
    /// The largest of these.
    pub worst_error: f64,
}

impl Curve {
    /// Fits it.
    ///
    /// # Errors
    /// As the fit of the curve.
    pub fn fit(self, points: &[Point]) -> Result<Fitted, FitError> {
        match self {
            Self::Usl => fit_usl(points).map(Fitted::Usl),
            Self::Amdahl => fit_amdahl(points).map(Fitted::Amdahl),
            Self::Closed(shape) => closed::fit(points, shape).map(Fitted::Closed),
        }
    }

    /// Fits it to the loads up to `shown_up_to` and predicts the rest.
    ///
    /// # Errors
    /// As the fit of the curve, also where no point is left to predict.
    pub fn held_out(self, points: &[Point], shown_up_to: f64) -> Result<HeldOut, FitError> {
        let (shown, hidden): (Vec<Point>, Vec<Point>) =
            points.iter().partition(|point| point.users <= shown_up_to);
        if hidden.is_empty() {
            return Err(FitError::NothingHidden { shown_up_to });
        }
        let fitted = self.predictor(&shown)?;
        let error = |point: &Point| (fitted(point.users) / point.throughput_per_s - 1.0).abs();
        let errors: Vec<f64> = hidden.iter().map(error).collect();
        Ok(HeldOut {
            shown_up_to,
            points: errors.len(),
            mean_error: crate::statistics::mean(&errors),
            worst_error: errors.iter().copied().fold(0.0, f64::max),
        })
    }

    fn predictor(self, points: &[Point]) -> Result<impl Fn(f64) -> f64, FitError> {
        let fitted = self.fit(points)?;
        Ok(move |users| fitted.predict(users))
    }
}

impl Fitted {
    /// The throughput that so many users get, in requests per second.
    pub fn predict(&self, users: f64) -> f64 {
        match self {
            Self::Usl(fit) => fit.predict(users),
            Self::Amdahl(fit) => fit.predict(users),
            Self::Closed(fit) => fit.predict(users),
        }
    }

    /// Akaike's corrected criterion: less is better, among curves through the same points.
    pub fn aicc(&self) -> f64 {
        match self {
            Self::Usl(fit) => fit.aicc,
            Self::Amdahl(fit) => fit.aicc,
            Self::Closed(fit) => fit.aicc,
        }
    }
}

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usl(fit) => fit.fmt(f),
            Self::Amdahl(fit) => fit.fmt(f),
            Self::Closed(fit) => fit.fmt(f),
        }
    }
}

/// The load up to which points are shown so that the share `shown` of the different loads is, at least one being hidden.
pub fn split(points: &[Point], shown: f64) -> Option<f64> {
    let mut loads: Vec<f64> = points.iter().map(|point| point.users).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let count = ((loads.len() as f64 * shown).round() as usize).min(loads.len().saturating_sub(1));
    count.checked_sub(1).map(|last| loads[last])
}

/// Fits each curve, and puts first what predicts the loads beyond `shown_up_to` best from the others; the corrected
/// criterion decides only between curves that do equally well, and ranks those for which too few points were shown, last.
/// A curve that fits the whole well may still extrapolate badly, so both numbers are to be shown.
///
/// Curves that cannot be fitted are left out.
pub fn rank(points: &[Point], curves: &[Curve], shown_up_to: f64) -> Vec<Ranked> {
    let ranked = |curve: &Curve| {
        let fitted = curve.fit(points).ok()?;
        Some(Ranked { fitted, held_out: curve.held_out(points, shown_up_to).ok() })
    };
    let mut all: Vec<Ranked> = curves.iter().filter_map(ranked).collect();
    let error = |ranked: &Ranked| ranked.held_out.map_or(f64::INFINITY, |held_out| held_out.mean_error);
    all.sort_by(|a, b| error(a).total_cmp(&error(b)).then(a.fitted.aicc().total_cmp(&b.fitted.aicc())));
    all
}
