//! Models judged by the 99th percentile: one that gets the mean right may still predict a wrong tail.

use std::fmt;

use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

use crate::finding::agreement::{Agreement, answers, compare, reason};
use crate::finding::reason::{PredictedBy, Reason};
use crate::report::Report;
use crate::report::point::{Point, is_of_runs};
use kendall_stats::number::{percent, time, time_with_interval};

/// The worst miss of a model's 99th percentile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence")]
pub struct TailMiss {
    pub model: String,
    pub way: PredictedBy,
    pub place: String,
    pub predicted_s: f64,
    pub measured_s: Estimate,
    pub reason: Option<Reason>,
    pub missing: usize,
    pub of: usize,
}

/// Where a model's 99th percentile is furthest from the measured one; `None` where none is off.
pub(super) fn miss(report: &Report, notation: &str) -> Option<TailMiss> {
    let (mut missing, mut of) = (0, 0);
    let mut worst: Option<(f64, &Point, PredictedBy, f64, Estimate)> = None;
    for point in &report.points {
        let Some((model, measured)) = point.model(notation).zip(point.measured.response.quantile(0.99))
        else {
            continue;
        };
        let comparable = answers(model).filter(|(_, answer)| point.is_steady() || is_of_runs(answer));
        let (mut decided, mut missed) = (false, false);
        for (way, predicted) in
            comparable.filter_map(|(way, answer)| Some((way, answer.response.quantile(0.99)?)))
        {
            let verdict = compare(measured, predicted);
            decided |= !matches!(verdict, Agreement::CannotTell);
            if matches!(verdict, Agreement::Misses) {
                missed = true;
                let off = (predicted.value / measured.value).ln().abs();
                if worst.as_ref().is_none_or(|worst| off > worst.0) {
                    worst = Some((off, point, way, predicted.value, measured));
                }
            }
        }
        of += usize::from(decided);
        missing += usize::from(missed);
    }
    let (_, point, way, predicted_s, measured_s) = worst?;
    Some(TailMiss {
        model: notation.to_owned(),
        way,
        place: report.place(point),
        predicted_s,
        measured_s,
        reason: point.service.and_then(|service| reason(notation, service)),
        missing,
        of,
    })
}

impl fmt::Display for TailMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, way, place, predicted_s, measured_s, reason, missing, of } = self;
        let off = predicted_s / measured_s.value - 1.0;
        let compared = if off > 0.0 { "overestimates" } else { "underestimates" };
        let by = if *way == PredictedBy::Simulation { " by simulation" } else { "" };
        let measured = time_with_interval(measured_s.value, measured_s.interval);
        write!(
            f,
            "{model}{by} puts the 99th percentile at {place} at {}, measured {measured}: it {compared} by {}; it misses at {missing} \
             of {of} points.",
            time(*predicted_s),
            percent(off.abs()),
        )?;
        reason.as_ref().map_or(Ok(()), |reason| write!(f, " {reason}"))
    }
}
