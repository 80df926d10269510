//! Published figures, and our measurements of the same.

use kendall_experiment::Measure;
use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

use crate::report::point::Point;
use crate::report::trial::TrialLine;

/// A table of figures that others published of the same experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The source in print.
    pub source: String,
    /// The measure of the figures.
    pub measure: Measure,
    /// The unit of the values: one of [`Measure::units`].
    pub unit: String,
    /// The levels of the rows that the others are compared with; empty for none.
    pub baseline: Vec<(String, String)>,
    /// The figures.
    pub rows: Vec<PublishedRow>,
}

/// One published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Factor and value, as in [`Point::settings`].
    pub settings: Vec<(String, String)>,
    /// The figure, in the unit of its table.
    pub value: f64,
}

impl Point {
    /// The measured value of a published figure's measure at this point, if there is one.
    pub fn measured_of(&self, measure: &Measure) -> Option<Estimate> {
        let answer = &self.measured;
        match measure {
            Measure::MeanResponse => Some(answer.response.mean_s),
            Measure::ClassResponse { class } => {
                let found = answer.classes.iter().find(|known| known.name == *class);
                found.map(|found| found.response.mean_s)
            }
            Measure::WeightedResponse => answer.weighted_response_s,
            Measure::TotalTime => self.total_time_s,
            Measure::Throughput => Some(answer.throughput_per_s),
            Measure::Utilisation => Some(answer.utilisation),
            Measure::Idle => {
                let Estimate { value, interval } = answer.utilisation;
                let interval = interval.map(|(low, high)| (1.0 - high, 1.0 - low));
                Some(Estimate { value: 1.0 - value, interval })
            }
        }
    }
}

impl TrialLine {
    /// The measured value of a published figure's measure in this trial, if it is kept.
    pub fn measured_of(&self, measure: &Measure) -> Option<f64> {
        match measure {
            Measure::MeanResponse => self.response_s,
            Measure::WeightedResponse => self.weighted_response_s,
            _ => None,
        }
    }
}

impl Published {
    /// The measured value at the point of a row, in the unit of the table, if there is one.
    pub fn measured(&self, point: &Point) -> Option<Estimate> {
        let (_, per_unit) = self.measure.units().iter().find(|(unit, _)| *unit == self.unit)?;
        let Estimate { value, interval } = point.measured_of(&self.measure)?;
        let interval = interval.map(|(low, high)| (low / per_unit, high / per_unit));
        Some(Estimate { value: value / per_unit, interval })
    }
}
