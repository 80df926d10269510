//! Predictions of a fit: for a load, for an objective, for both.

use kendall_station::Estimate;
use serde::Serialize;

use super::Fit;
use super::forecast::{Forecast, Highest, NoForecast, Slo};
use super::observation::Load;

/// The conditions that a prediction is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question {
    /// A load to predict response times for.
    pub load: Option<Load>,
    /// A number of servers that differs from the measured one.
    pub servers: Option<u32>,
    /// An objective: the highest load that meets it, and with a load the servers that this load needs.
    pub slo: Option<Slo>,
}

/// The answers to a [`Question`], or the reasons why they are missing.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The model that predicts.
    pub model: String,
    /// The prediction for the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// The highest load that meets the objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest: Option<Highest>,
    /// How many servers the load needs to meet the objective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers_needed: Option<Estimate>,
    /// The reason why an answer is missing, for each that is.
    pub no_answer: Vec<String>,
    #[serde(skip)]
    overload: bool,
}

impl Prediction {
    pub(super) fn new(model: String) -> Self {
        Self {
            model,
            forecast: None,
            highest: None,
            servers_needed: None,
            no_answer: Vec::new(),
            overload: false,
        }
    }

    /// Whether an answer is missing because the load is more than the station sustains.
    pub fn is_overload(&self) -> bool {
        self.overload
    }

    /// Takes an answer, or notes why it is missing.
    pub(super) fn take<T>(&mut self, answer: Result<T, NoForecast>) -> Option<T> {
        answer
            .inspect_err(|why| {
                self.overload |= matches!(why, NoForecast::Overload { .. });
                self.no_answer.push(why.to_string());
            })
            .ok()
    }
}

impl Fit {
    /// The think time of the measured users, in s; `None` where an open stream was measured.
    pub fn measured_think_s(&self) -> Option<f64> {
        self.points.iter().find_map(|point| match point.load {
            Load::Closed { think_s, .. } => Some(think_s),
            Load::Open { .. } => None,
        })
    }

    /// The best candidate's answers to a question.
    pub fn predict(&self, question: &Question) -> Prediction {
        let Question { load, servers, slo } = *question;
        let mut prediction = Prediction::new(self.best().name.clone());
        prediction.forecast = load.and_then(|load| prediction.take(self.forecast(load, servers)));
        if let Some(slo) = slo {
            prediction.highest = prediction.take(self.highest(slo, servers));
            prediction.servers_needed = load.and_then(|load| prediction.take(self.servers_needed(load, slo)));
        }
        prediction
    }
}
